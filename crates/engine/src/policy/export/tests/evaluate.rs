//! An exported ValidatingAdmissionPolicy, evaluated as an API server does.

use super::super::expressions::has_word;
use super::super::{AdmissionPolicy, AdmissionPolicyExport, NamedExpression};
use crate::policy::cel::{UnlimitedProgram, Variables};
use crate::rules::FindingLevel;
use tollgate_api::profile::ApiKind;

/// ValidatingAdmissionPolicies whose expressions are compiled once for all requests.
pub(super) struct LoadedExport(Vec<LoadedPolicy>);

struct LoadedPolicy {
    kind: ApiKind,
    action: FindingLevel,
    ignores_failures: bool,
    match_conditions: Vec<UnlimitedProgram>,
    /// Each with the message of its violation.
    validations: Vec<(UnlimitedProgram, String)>,
}

impl LoadedExport {
    pub(super) fn new(export: &AdmissionPolicyExport) -> LoadedExport {
        LoadedExport(export.policies.iter().map(LoadedPolicy::new).collect())
    }

    /// Returns the violations of the policies, each with its action and message or error.
    pub(super) fn violations(&self, kind: ApiKind, variables: &Variables<'_>) -> Vec<(FindingLevel, String)> {
        let ours = self.0.iter().filter(|policy| policy.kind == kind);
        ours.flat_map(|policy| policy.violations(variables)).collect()
    }
}

impl LoadedPolicy {
    fn new(policy: &AdmissionPolicy) -> LoadedPolicy {
        let compile = |text: &str| UnlimitedProgram::compile(text).unwrap();
        let conditions = policy.match_conditions.iter();
        let validations = policy.validations.iter();
        LoadedPolicy {
            kind: policy.kind,
            action: policy.action,
            ignores_failures: policy.ignores_failures,
            match_conditions: conditions.map(|condition| compile(&condition.expression)).collect(),
            validations: validations
                .map(|validation| {
                    let expression = inlined(&validation.expression, &policy.variables);
                    (compile(&expression), validation.message.clone())
                })
                .collect(),
        }
    }

    fn violations(&self, variables: &Variables<'_>) -> Vec<(FindingLevel, String)> {
        if self.match_conditions.iter().any(|condition| condition.evaluate_bool(variables) == Ok(false)) {
            return Vec::new();
        }
        let violation =
            |(program, message): &(UnlimitedProgram, String)| match program.evaluate_bool(variables) {
                Ok(true) => None,
                Ok(false) => Some((self.action, message.clone())),
                Err(_) if self.ignores_failures => None,
                Err(error) => Some((self.action, error)),
            };
        self.validations.iter().filter_map(violation).collect()
    }
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
