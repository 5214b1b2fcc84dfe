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
    All(Vec<Requirement<'d>>),
}

pub(super) type Requirement<'d> = LabelRequirement<&'d str>;

impl<'d> Selector<'d> {
    /// Reads a `labelSelector` or `namespaceSelector`.
    pub(super) fn read(selector: Value<'d>) -> Selector<'d> {
        read_selector(selector, |text| text).map_or(Selector::Nothing, Selector::All)
    }

    /// Adds requirements. A selector that selects nothing stays so.
    pub(super) fn with_requirements(
        mut self,
        more: impl IntoIterator<Item = Requirement<'d>>,
    ) -> Selector<'d> {
        if let Selector::All(requirements) = &mut self {
            requirements.extend(more);
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

/// The requirement that a label has, or does not have, that value.
pub(super) fn single_value_requirement<'d>(
    key: &'d str,
    operator: LabelOperator,
    value: &'d str,
) -> Requirement<'d> {
    LabelRequirement { key, operator, values: vec![value] }
}
