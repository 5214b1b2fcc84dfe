//! Label selectors, parsed once for repeated matching.
//!
//! A selector that is absent selects nothing; an empty one selects everything. A selector with an unknown operator,
//! which no API server accepts, selects nothing.

use tollgate_document::doc::Value;

/// Labels, sorted by key.
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
pub fn selects(selector: Value<'_>, labels: Value<'_>) -> bool {
    Selector::read(selector).matches(&Labels::read(labels, &[]))
}

/// A `metav1.LabelSelector`.
#[derive(Clone, Debug)]
pub(super) enum Selector<'d> {
    Nothing,
    /// Selects objects that meet all requirements.
    All(Vec<Requirement<'d>>),
}

#[derive(Clone, Debug)]
pub(super) struct Requirement<'d> {
    key: &'d str,
    operator: Operator,
    values: Vec<&'d str>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

impl<'d> Selector<'d> {
    /// Reads a `labelSelector` or `namespaceSelector`.
    pub(super) fn read(selector: Value<'d>) -> Selector<'d> {
        if selector.is_null() {
            return Selector::Nothing;
        }
        let labels = selector.get("matchLabels").members();
        let mut requirements: Vec<Requirement<'d>> =
            labels.map(|(key, value)| Requirement::is(key.text(), value.str())).collect();
        for expression in selector.get("matchExpressions").items() {
            let operator = match expression.get("operator").str() {
                "In" => Operator::In,
                "NotIn" => Operator::NotIn,
                "Exists" => Operator::Exists,
                "DoesNotExist" => Operator::DoesNotExist,
                _ => return Selector::Nothing,
            };
            let values = expression.get("values").items().map(Value::str).collect();
            requirements.push(Requirement { key: expression.get("key").str(), operator, values });
        }
        Selector::All(requirements)
    }

    /// Adds requirements. A selector that selects nothing stays so.
    pub(super) fn and(mut self, more: impl IntoIterator<Item = Requirement<'d>>) -> Selector<'d> {
        if let Selector::All(requirements) = &mut self {
            requirements.extend(more);
        }
        self
    }

    /// True if the selector selects everything.
    pub(super) fn is_everything(&self) -> bool {
        matches!(self, Selector::All(requirements) if requirements.is_empty())
    }

    pub(super) fn matches(&self, labels: &Labels<'_>) -> bool {
        match self {
            Selector::Nothing => false,
            Selector::All(requirements) => requirements.iter().all(|requirement| requirement.holds(labels)),
        }
    }
}

impl<'d> Requirement<'d> {
    /// The label must have this value.
    pub(super) fn is(key: &'d str, value: &'d str) -> Requirement<'d> {
        Requirement { key, operator: Operator::In, values: vec![value] }
    }

    /// The label must not have this value.
    pub(super) fn is_not(key: &'d str, value: &'d str) -> Requirement<'d> {
        Requirement { key, operator: Operator::NotIn, values: vec![value] }
    }

    fn holds(&self, labels: &Labels<'_>) -> bool {
        let value = labels.get(self.key);
        match self.operator {
            Operator::In => value.is_some_and(|value| self.values.contains(&value)),
            Operator::NotIn => value.is_none_or(|value| !self.values.contains(&value)),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
        }
    }
}
