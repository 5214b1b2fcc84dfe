//! Label selectors (`metav1.LabelSelector`), parsed into a list of requirements on labels that can be evaluated often.
//!
//! A selector that is absent selects nothing; an empty one selects everything. A selector with an unknown operator,
//! which no API server accepts, selects nothing.

use tollgate_document::doc::Value;

/// A requirement on one label. The type `S` of its strings is chosen by the caller, such as `&str` or `String`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LabelRequirement<S> {
    /// Key of the label.
    pub key: S,
    /// How the value of the label is compared with `values`.
    pub operator: LabelOperator,
    /// The values of `In` and `NotIn`.
    pub values: Vec<S>,
}

tollgate_formats::named_enum! {
    /// The operator of a label requirement, such as `In` or `Exists`.
    pub enum LabelOperator {
        In = "In",
        NotIn = "NotIn",
        Exists = "Exists",
        DoesNotExist = "DoesNotExist",
    }
}

/// Reads the requirements of a selector, of which all must hold. `None` if it selects nothing.
pub fn read_selector<'d, S>(
    selector: Value<'d>,
    mut text: impl FnMut(&'d str) -> S,
) -> Option<Vec<LabelRequirement<S>>> {
    if selector.is_null_or_absent() {
        return None;
    }
    let labels = selector.get("matchLabels").members();
    let mut requirements: Vec<LabelRequirement<S>> = labels
        .map(|(key, value)| LabelRequirement {
            key: text(key.text()),
            operator: LabelOperator::In,
            values: vec![text(value.str())],
        })
        .collect();
    for expression in selector.get("matchExpressions").items() {
        requirements.push(LabelRequirement {
            operator: LabelOperator::ALL
                .into_iter()
                .find(|known| known.name() == expression.get("operator").str())?,
            key: text(expression.get("key").str()),
            values: expression.get("values").items().map(|value| text(value.str())).collect(),
        });
    }
    Some(requirements)
}

impl<S: AsRef<str>> LabelRequirement<S> {
    /// True if an object meets the requirement, given the value of its label.
    // upstream v1.36 labels.Requirement.Matches
    pub fn holds(&self, value: Option<&str>) -> bool {
        let is_listed = value.is_some_and(|value| self.values.iter().any(|known| known.as_ref() == value));
        match self.operator {
            LabelOperator::In => is_listed,
            LabelOperator::NotIn => !is_listed,
            LabelOperator::Exists => value.is_some(),
            LabelOperator::DoesNotExist => value.is_none(),
        }
    }
}
