//! The API server's own validation, by type, in the order of its `validation.go`.
//!
//! There is one file per Kubernetes type, so that a reviewer can compare it with upstream; each function cites the
//! release and the upstream function. Differences between releases are named behaviors or numbers of the profile.

pub mod lists;
pub mod naming;
pub mod qualified;

pub mod finalizers;
pub mod managed_fields;
pub mod meta;
pub mod meta_update;
pub mod object_name;
pub mod owner_references;
pub mod prepared;
pub mod template_meta;

pub mod taint;
pub mod toleration;

pub mod attributes;
pub mod binding;
pub mod capacity;
pub mod counters;
pub mod device;
pub mod node_resources;
pub mod node_selector;
pub mod partition;
pub mod request_policy;
pub mod skip_operations;
pub mod slice;

pub mod claim;
pub mod config;
pub mod constraints;
pub mod derived;
pub mod fqn;
pub mod hub;
pub mod request;
pub mod selectors;

pub mod class;
pub mod pod_claims;

pub mod taint_rule;

pub mod allocation;
pub mod conditions;
pub mod device_status;
pub mod network_data;
pub mod reserved_for;
pub mod status;

use super::{CheckFunction, CheckFunctionWithRules, RuleContext};
use crate::admission::DecodedAttributes;

/// The groups of this origin. Each reports many rules, so all are called if any of these rules is selected.
pub static CHECK_GROUPS: &[CheckFunctionWithRules] = &[
    object_check_group(meta::check_metadata),
    object_check_group(slice::check_slice),
    object_check_group(claim::check_claim),
    object_check_group(class::check_device_class),
    object_check_group(pod_claims::check_pod_claims),
    object_check_group(taint_rule::check_taint_rule),
    object_check_group(status::check_status),
    // Last: it looks at whether the others found anything.
    object_check_group(object_name::check_generate_name_if_no_errors),
];

/// Creates the group of a check function for whole objects.
const fn object_check_group(
    check: fn(&mut RuleContext<'_, '_>, &DecodedAttributes<'_>),
) -> CheckFunctionWithRules {
    CheckFunctionWithRules { rules: &[], check: CheckFunction::Object(check) }
}
