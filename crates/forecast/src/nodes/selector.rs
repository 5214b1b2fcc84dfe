//! Label selectors with further requirements, as pods have them.

use tollgate_api::labels::{LabelOperator, LabelRequirement, read_selector};
use tollgate_document::doc::Value;

/// The labels of an object, sorted by key.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(super) struct Labels<'d>(Vec<(&'d str, &'d str)>);

impl<'d> Labels<'d> {
    /// Reads the labels of an object. `further` labels override them.
    pub(super) fn read(labels: Value<'d>, further: &[(&'d str, &'d str)]) -> Labels<'d> {
        let own = labels.members().map(|(key, value)| (key.text(), value.str()));
        let mut all: Vec<_> = further.iter().copied().chain(own).collect();
        all.sort_by_key(|&(key, _)| key);
        all.dedup_by_key(|(key, _)| *key);
        Labels(all)
    }

    pub(super) fn get(&self, key: &str) -> Option<&'d str> {
        let place = self.0.binary_search_by_key(&key, |&(known, _)| known).ok()?;
        self.0.get(place).map(|&(_, value)| value)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&'d str, &'d str)> {
        self.0.iter().copied()
    }
}

/// True if a label selector, such as that of a PodDisruptionBudget, selects an object with these labels.
pub fn label_selector_matches(selector: Value<'_>, labels: Value<'_>) -> bool {
    Selector::read(selector).matches(&Labels::read(labels, &[]))
}

/// A `metav1.LabelSelector`.
#[derive(Clone, Debug)]
pub(super) enum Selector<'d> {
    Nothing,
    /// Selects objects that meet all requirements.
    All(Vec<LabelRequirement<&'d str>>),
}

impl<'d> Selector<'d> {
    /// Reads a `labelSelector` or `namespaceSelector`.
    pub(super) fn read(selector: Value<'d>) -> Selector<'d> {
        read_selector(selector, |text| text).map_or(Selector::Nothing, Selector::All)
    }

    /// Adds a requirement for each of these keys that the labels have: that an object has the same value, or with
    /// `NotIn` another one. A selector that selects nothing stays so.
    pub(super) fn with_values_of_labels(
        mut self,
        keys: Value<'d>,
        operator: LabelOperator,
        labels: &Labels<'d>,
    ) -> Selector<'d> {
        if let Selector::All(requirements) = &mut self {
            for key in keys.items().map(Value::str) {
                let values = labels.get(key).map(|value| vec![value]);
                requirements.extend(values.map(|values| LabelRequirement { key, operator, values }));
            }
        }
        self
    }

    /// True if the selector selects everything.
    pub(super) fn selects_everything(&self) -> bool {
        matches!(self, Selector::All(requirements) if requirements.is_empty())
    }

    pub(super) fn matches(&self, labels: &Labels<'_>) -> bool {
        match self {
            Selector::Nothing => false,
            Selector::All(requirements) => {
                requirements.iter().all(|wanted| wanted.holds(labels.get(wanted.key)))
            }
        }
    }
}
