//! One ValidatingAdmissionPolicy while it is written: its variables, its validations and the policies in it.
//!
//! Invariant: whether a policy applies is evaluated once for a request. An error in its conditions is an error of the
//! ValidatingAdmissionPolicy, even where a test around it would hide the error.

use std::collections::BTreeSet;

use super::expressions::{self, ExportedConditions};
use super::omission::{Omission, OmissionReason};
use super::source::PolicyToExport;
use super::text::{BoolExpr, cel_string_list};
use super::{AdmissionPolicy, ExportedValidation, NamedExpression, claims, rules, slices};
use crate::policy::kind::PolicySpec;
use crate::rules::FindingLevel;
use tollgate_api::profile::{ApiKind, Profile, Version};
use tollgate_formats::gotime::Timestamp;

/// A ValidatingAdmissionPolicy under construction.
pub(super) struct PolicyDraft<'d> {
    pub(super) kind: ApiKind,
    pub(super) policies: Vec<PolicyInDraft<'d>>,
    pub(super) now: Timestamp,
    pub(super) profiles: &'d [&'d Profile],
    pub(super) omissions: &'d mut BTreeSet<Omission>,
    variables: Vec<NamedExpression>,
    validations: Vec<ExportedValidation>,
    /// Validations of policies with `failurePolicy: Ignore`, which are exported as a separate object.
    lenient: Vec<ExportedValidation>,
}

/// A policy that is part of a draft, with the expressions for whether it matches a request and restricts the user.
#[derive(Clone, Debug)]
pub(super) struct PolicyInDraft<'d> {
    pub(super) source: &'d PolicyToExport<'d>,
    /// Whether the policy applies to the request, so that its allow entries count.
    pub(super) matches: BoolExpr,
    /// Whether it also restricts the user.
    pub(super) binds: BoolExpr,
}

impl<'d> PolicyDraft<'d> {
    /// Writes all checks of these policies for objects of that kind.
    pub(super) fn new(
        kind: ApiKind,
        sources: &[&'d PolicyToExport<'d>],
        now: Timestamp,
        profiles: &'d [&'d Profile],
        omissions: &'d mut BTreeSet<Omission>,
    ) -> PolicyDraft<'d> {
        let (policies, variables) = (Vec::new(), Vec::new());
        let (validations, lenient) = (Vec::new(), Vec::new());
        let mut draft =
            PolicyDraft { kind, policies, now, profiles, omissions, variables, validations, lenient };
        if kind.is_namespaced() {
            let labels =
                "has(namespaceObject.metadata.labels) ? dyn(namespaceObject.metadata.labels) : dyn({})";
            draft.declare_variable("namespaceLabels", labels);
        }
        expressions::declare_policy_expression_variables(&mut draft);
        for source in sources {
            draft.add_policy(source);
        }
        match kind {
            ApiKind::ResourceClaim | ApiKind::ResourceClaimTemplate => claims::export_tolerations(&mut draft),
            ApiKind::ResourceSlice => slices::export_slice_taints(&mut draft),
            ApiKind::DeviceTaintRule => rules::export_rule_checks(&mut draft),
            _ => {}
        }
        expressions::export_validations(&mut draft);
        draft
    }

    /// Lists a part of a policy as left out.
    pub(super) fn omit(
        &mut self,
        source: &PolicyToExport<'_>,
        field: impl Into<String>,
        reason: OmissionReason,
        message: impl Into<String>,
    ) {
        self.omissions.insert(source.omission(field, reason, message));
    }

    /// Returns the policies of the draft with a `spec` of one kind, each with that `spec`.
    pub(super) fn policies_of_kind<T>(
        &self,
        spec: fn(&'d PolicySpec) -> Option<&'d T>,
    ) -> Vec<(PolicyInDraft<'d>, &'d T)> {
        let ours = self.policies.iter();
        ours.filter_map(|bound| Some((bound.clone(), spec(&bound.source.policy.spec)?))).collect()
    }

    /// Declares a variable, and returns the expression that reads it.
    pub(super) fn declare_variable(&mut self, name: &str, expression: impl Into<String>) -> String {
        if !self.variables.iter().any(|known| known.name == name) {
            self.variables.push(NamedExpression { name: name.to_owned(), expression: expression.into() });
        }
        format!("variables.{name}")
    }

    /// Declares a variable for a test and returns the test that reads it. A constant test is returned as it is.
    pub(super) fn declare_test_variable(&mut self, name: &str, test: BoolExpr) -> BoolExpr {
        match test {
            BoolExpr::When(_) => BoolExpr::from_call(self.declare_variable(name, test.text())),
            constant => constant,
        }
    }

    /// Adds a validation to the exported policy: the test must be true, or the request is denied with the message.
    pub(super) fn add_validation(&mut self, test: &BoolExpr, message: String) {
        if *test != BoolExpr::Always {
            self.validations.push(ExportedValidation::new(test, message));
        }
    }

    /// Adds a validation of a policy. With `ignores_failures`, it admits the request if it cannot be evaluated.
    pub(super) fn add_policy_validation(&mut self, validation: ExportedValidation, ignores_failures: bool) {
        let list = if ignores_failures { &mut self.lenient } else { &mut self.validations };
        list.push(validation);
    }

    /// Adds a policy, and declares variables for whether it applies to the request and binds the user.
    fn add_policy(&mut self, source: &'d PolicyToExport<'d>) {
        let scope = source.matches_scope(self.kind);
        if scope == BoolExpr::Never {
            return;
        }
        let conditions = expressions::export_conditions(source, self.kind, self.omissions);
        let matches = match &conditions {
            ExportedConditions::Exact(test) => scope.and(test.clone()),
            ExportedConditions::None | ExportedConditions::LeftOut => scope,
        };
        let matches = self.declare_test_variable(&format!("matches_{}", source.id), matches);
        let exempt = source.exempts_user();
        let binds = match conditions {
            ExportedConditions::LeftOut => BoolExpr::Never,
            _ if source.only_grants => BoolExpr::Never,
            _ if exempt == BoolExpr::Never => matches.clone(),
            _ => {
                let binds = matches.clone().and(exempt.not());
                self.declare_test_variable(&format!("binds_{}", source.id), binds)
            }
        };
        if let ExportedConditions::Exact(_) = conditions {
            let evaluated = BoolExpr::from_comparison(format!("{} in [true, false]", matches.text()));
            self.add_validation(
                &evaluated,
                source.violation_message("the match conditions cannot be evaluated"),
            );
        }
        self.policies.push(PolicyInDraft { source, matches, binds });
    }

    /// Returns the ValidatingAdmissionPolicies, without variables that no expression reads.
    pub(super) fn into_admission_policies(mut self, action: FindingLevel) -> Vec<AdmissionPolicy> {
        self.require_known_version_and_shape();
        let lists = [(self.validations, false), (self.lenient, true)].into_iter();
        let finished = lists.filter(|(validations, _)| !validations.is_empty());
        finished
            .map(|(validations, ignores_failures)| AdmissionPolicy {
                kind: self.kind,
                action,
                ignores_failures,
                match_conditions: match_conditions_for_spec_changes(self.kind),
                variables: used_variables(&self.variables, &validations),
                validations,
            })
            .collect()
    }

    /// Adds a validation that denies objects in API versions, or with fields, that the expressions do not support.
    fn require_known_version_and_shape(&mut self) {
        if self.validations.is_empty() {
            return;
        }
        let releases = Profile::all_with_patches().filter(|profile| profile.is_release);
        let served = releases.flat_map(|profile| profile.serves).filter(|(kind, _)| *kind == self.kind);
        let versions: BTreeSet<Version> = served.flat_map(|(_, versions)| versions.iter().copied()).collect();
        let versions: Vec<&str> = versions.into_iter().map(Version::name).collect();
        let shape = match self.kind {
            ApiKind::ResourceClaim | ApiKind::ResourceClaimTemplate => {
                let known = "has(r.exactly) || has(r.firstAvailable) || has(r.deviceClassName)";
                BoolExpr::from_call(format!("variables.requests.all(r, {known})"))
            }
            ApiKind::DeviceTaintRule => BoolExpr::from_call("has(object.spec.taint)"),
            _ => BoolExpr::Always,
        };
        let version = BoolExpr::from_comparison(format!(
            "request.kind.version in {}",
            cel_string_list(versions.iter().copied())
        ));
        let binds = BoolExpr::any(self.policies.iter().map(|policy| policy.binds.clone()));
        let test = binds.not().or(version.and(shape));
        let message = format!(
            "the exported policies do not support this API version; supported versions: {}",
            versions.join(", ")
        );
        self.validations.insert(0, ExportedValidation::new(&test, message));
    }
}

impl ExportedValidation {
    /// A validation with a fixed message.
    pub(super) fn new(test: &BoolExpr, message: String) -> ExportedValidation {
        ExportedValidation { expression: test.text().to_owned(), message, message_expression: None }
    }
}

/// Returns the match conditions of the exported objects, which admit updates that do not change the spec, or only
/// narrow or weaken a rule.
fn match_conditions_for_spec_changes(kind: ApiKind) -> Vec<NamedExpression> {
    let condition = |name: &str, expression: String| NamedExpression { name: name.to_owned(), expression };
    let unchanged = "request.operation != 'UPDATE' || !has(object.spec) || !has(oldObject.spec) \
                     || object.spec != oldObject.spec";
    let mut conditions = vec![condition("spec-changed", unchanged.to_owned())];
    if kind == ApiKind::DeviceTaintRule {
        conditions.push(condition("not-only-narrowed-or-weakened", rules::widens_or_strengthens_condition()));
    }
    conditions
}

/// Returns the variables that the validations read, directly or through other variables.
fn used_variables(variables: &[NamedExpression], validations: &[ExportedValidation]) -> Vec<NamedExpression> {
    let mut used: Vec<NamedExpression> = Vec::new();
    for variable in variables.iter().rev() {
        let reader = format!("variables.{}", variable.name);
        let reads = |text: &str| expressions::has_word(text, &reader);
        let is_read_by = |validation: &ExportedValidation| {
            reads(&validation.expression) || validation.message_expression.as_deref().is_some_and(reads)
        };
        let is_used = validations.iter().any(is_read_by) || used.iter().any(|other| reads(&other.expression));
        if is_used {
            used.push(variable.clone());
        }
    }
    used.reverse();
    used
}
