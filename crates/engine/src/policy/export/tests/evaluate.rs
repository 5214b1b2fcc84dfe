//! An exported ValidatingAdmissionPolicy, evaluated as an API server does.

use super::super::expressions::has_word;
use super::super::{AdmissionPolicy, Export, ExportedValidation, NamedExpression};
use crate::policy::cel::{Variables, evaluate_any_length};
use crate::rules::FindingLevel;
use tollgate_api::profile::ApiKind;

/// Returns the violations of the ValidatingAdmissionPolicies, each with its action and message or error.
pub(super) fn violations(
    export: &Export,
    kind: ApiKind,
    variables: &Variables<'_>,
) -> Vec<(FindingLevel, String)> {
    let ours = export.policies.iter().filter(|policy| policy.kind == kind);
    ours.flat_map(|policy| violations_of(policy, variables)).collect()
}

fn violations_of(policy: &AdmissionPolicy, variables: &Variables<'_>) -> Vec<(FindingLevel, String)> {
    let matches =
        |condition: &NamedExpression| evaluate_any_length(&condition.expression, variables) != Ok(false);
    if !policy.match_conditions.iter().all(matches) {
        return Vec::new();
    }
    let violation = |validation: &ExportedValidation| match evaluate_any_length(
        &inlined(&validation.expression, &policy.variables),
        variables,
    ) {
        Ok(true) => None,
        Ok(false) => Some((policy.action, validation.message.clone())),
        Err(_) if policy.ignores_failures => None,
        Err(error) => Some((policy.action, error)),
    };
    policy.validations.iter().filter_map(violation).collect()
}

/// Returns the expression with every variable replaced by its definition. A variable uses only earlier
/// variables.
fn inlined(text: &str, variables: &[NamedExpression]) -> String {
    let mut text = text.to_owned();
    for NamedExpression { name, expression } in variables.iter().rev() {
        let reader = format!("variables.{name}");
        if has_word(&text, &reader) {
            // No name is the start of another one in the tests, apart from those with a suffix after `_`.
            text = replace_word(&text, &reader, &format!("({expression})"));
        }
    }
    text
}

fn replace_word(text: &str, word: &str, by: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(word) {
        let (before, after) = rest.split_at(at);
        let after = &after[word.len()..];
        let is_part = after.starts_with(|letter: char| letter.is_ascii_alphanumeric() || letter == '_');
        out.push_str(before);
        out.push_str(if is_part { word } else { by });
        rest = after;
    }
    out + rest
}
