//! The kinds of policies: the one place that lists them.
//!
//! The checks of a kind are in the file named after it, its fields in `policy/fields/`. Here everything that depends on
//! the kind is a column of the table or an exhaustive match, so that a new kind does not compile until it is complete.

use super::load::SchemaSource;
use super::schema::{FieldType, ObjectSchema, PolicyFaults};
use super::{MatchedPolicy, Policy, ViolationReport, fields, parameters, taint, taint_rule, toleration};
use crate::rules::table::{POLICY_PARAMETERS, POLICY_TAINT, POLICY_TAINT_RULE, POLICY_TOLERATION};
use tollgate_api::profile::ApiKind;
use tollgate_document::doc::Value;
use tollgate_document::field::Path;
use tollgate_document::finding::RuleId;

/// Declares the kinds from a table: the module of each kind, the type of its `spec`, the name of its resources in URLs,
/// and the rule under which its policies report violations. The fields of a kind are in the module of the same name in
/// `fields`.
macro_rules! kinds {
    ($($kind:ident: $module:ident::$spec:ident, $plural:literal, $rule:expr;)*) => {
        /// A kind of policy, such as TolerationPolicy.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum PolicyKind {
            $(#[doc = concat!(stringify!($kind), "Policy")] $kind,)*
        }

        impl PolicyKind {
            /// Every kind, in the order in which they are checked and listed.
            pub const ALL: [PolicyKind; [$($plural),*].len()] = [$(PolicyKind::$kind),*];

            /// Returns the name of its resources in URLs, such as `tolerationpolicies`.
            pub fn plural(self) -> &'static str {
                match self { $(PolicyKind::$kind => $plural,)* }
            }

            /// Returns the fields of its documents.
            pub fn document_schema(self) -> &'static ObjectSchema {
                match self { $(PolicyKind::$kind => &fields::$module::POLICY,)* }
            }

            /// Returns the rule under which its policies report violations.
            pub(super) fn violation_rule(self) -> RuleId {
                match self { $(PolicyKind::$kind => $rule,)* }
            }

            /// Returns the kinds of objects that its policies can apply to; `match.resources` narrows them.
            pub(super) fn applicable_kinds(self) -> &'static [ApiKind] {
                match self { $(PolicyKind::$kind => fields::$module::APPLICABLE_KINDS,)* }
            }
        }

        /// The compiled `spec`, without the fields that all kinds share.
        #[derive(Debug)]
        pub(super) enum PolicySpec { $($kind($module::$spec),)* }

        impl PolicySpec {
            pub(super) fn kind(&self) -> PolicyKind {
                match self { $(PolicySpec::$kind(_) => PolicyKind::$kind,)* }
            }

            $(
                /// Returns the `spec`, if it is of this kind.
                pub(super) fn $module(&self) -> Option<&$module::$spec> {
                    if let PolicySpec::$kind(spec) = self { Some(spec) } else { None }
                }
            )*
        }
    };
}

kinds! {
    Toleration: toleration::TolerationPolicy, "tolerationpolicies", POLICY_TOLERATION;
    Taint: taint::TaintPolicy, "taintpolicies", POLICY_TAINT;
    TaintRule: taint_rule::TaintRulePolicy, "taintrulepolicies", POLICY_TAINT_RULE;
    Parameter: parameters::ParameterPolicy, "parameterpolicies", POLICY_PARAMETERS;
}

impl PolicyKind {
    /// Returns the kind with that name in policy files, such as `TolerationPolicy`.
    pub fn parse(name: &str) -> Option<PolicyKind> {
        PolicyKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns the name of the kind in policy files, such as `TolerationPolicy`.
    pub fn name(self) -> &'static str {
        self.document_schema().name
    }

    /// The API group of the custom resources of all policy kinds.
    pub const GROUP: &str = "tollgate.dev";
    /// The only version of the custom resources of all policy kinds.
    pub const VERSION: &str = "v1alpha1";

    /// Returns the fields of `spec`.
    pub fn spec_schema(self) -> &'static ObjectSchema {
        let spec = self.document_schema().fields.iter().find(|field| field.name == "spec");
        match spec.map(|field| field.ty) {
            Some(FieldType::Object(spec)) => spec,
            _ => self.document_schema(),
        }
    }

    /// Compiles `spec`, whose types have already been checked, and reports further errors.
    pub(super) fn read_spec(
        self,
        spec: Value<'_>,
        at: &Path<'_>,
        schemas: &mut SchemaSource<'_>,
        faults: &mut PolicyFaults,
    ) -> PolicySpec {
        match self {
            PolicyKind::Toleration => {
                PolicySpec::Toleration(toleration::TolerationPolicy::read(spec, at, faults))
            }
            PolicyKind::Taint => PolicySpec::Taint(taint::TaintPolicy::read(spec, at, schemas, faults)),
            PolicyKind::TaintRule => PolicySpec::TaintRule(taint_rule::TaintRulePolicy::read(spec)),
            PolicyKind::Parameter => {
                PolicySpec::Parameter(parameters::ParameterPolicy::read(spec, at, schemas, faults))
            }
        }
    }
}

/// Returns the policies of one kind, each with its `spec`.
pub(super) fn policies_of_kind<'s, T>(
    policies: &[MatchedPolicy<'s>],
    spec: fn(&'s PolicySpec) -> Option<&'s T>,
) -> impl Iterator<Item = (MatchedPolicy<'s>, &'s T)> + Clone {
    policies.iter().filter_map(move |matched| Some((*matched, spec(&matched.policy.spec)?)))
}

/// Returns the policies of one kind that bind the user, each with its `spec`.
pub(super) fn policies_of_kind_not_exempting_user<'s, T>(
    policies: &[MatchedPolicy<'s>],
    spec: fn(&'s PolicySpec) -> Option<&'s T>,
) -> Vec<(&'s Policy, &'s T)> {
    let binding = policies_of_kind(policies, spec).filter(|(matched, _)| matched.binds);
    binding.map(|(matched, spec)| (matched.policy, spec)).collect()
}

/// Checks a request against the policies that match, kind by kind.
pub(super) fn check_matched_policies(policies: &[MatchedPolicy<'_>], report: &mut ViolationReport<'_>) {
    for kind in PolicyKind::ALL {
        match kind {
            PolicyKind::Toleration => toleration::check_tolerations(policies, report),
            PolicyKind::Taint => taint::check_taints(policies, report),
            PolicyKind::TaintRule => taint_rule::check_taint_rule(policies, report),
            PolicyKind::Parameter => parameters::check_parameters(policies, report),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::PolicyKind;
    use crate::policy::schema::{FieldType, ObjectSchema};

    fn words(ty: &FieldType) -> BTreeSet<&'static str> {
        match ty {
            FieldType::List(item) | FieldType::NonEmptyList(item) => words(item),
            FieldType::OneOf(words) => words.iter().copied().collect(),
            _ => BTreeSet::new(),
        }
    }

    fn row(ty: &'static ObjectSchema, name: &str) -> &'static FieldType {
        let row = ty.fields.iter().find(|field| field.name == name);
        &row.unwrap_or_else(|| panic!("{} has no field {name}", ty.name)).ty
    }

    fn fields(ty: &'static ObjectSchema, name: &str) -> &'static ObjectSchema {
        let FieldType::Object(found) = row(ty, name) else { panic!("{}.{name} is no object", ty.name) };
        found
    }

    #[test]
    fn a_kind_has_the_name_of_its_documents_and_is_found_by_it() {
        for kind in PolicyKind::ALL {
            assert_eq!(kind.name(), format!("{kind:?}Policy"));
            assert_eq!(words(row(kind.document_schema(), "kind")), BTreeSet::from([kind.name()]));
            assert_eq!(PolicyKind::parse(kind.name()), Some(kind));
        }
        assert_eq!(PolicyKind::parse("Toleration"), None);
    }

    #[test]
    fn match_resources_takes_the_kinds_that_the_policy_can_be_about() {
        for kind in PolicyKind::ALL {
            let spec = fields(kind.document_schema(), "spec");
            let known: BTreeSet<&str> =
                kind.applicable_kinds().iter().map(|resource| resource.name()).collect();
            assert_eq!(words(row(fields(spec, "match"), "resources")), known, "{}", kind.name());
        }
    }

    #[test]
    fn every_kind_is_in_the_documents() {
        let page = include_str!("../../../../docs/reference/policies.md");
        for kind in PolicyKind::ALL {
            assert!(
                page.contains(kind.name()),
                "docs/reference/policies.md does not mention {}",
                kind.name()
            );
        }
    }
}
