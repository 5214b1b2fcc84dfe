//! What the API server itself refuses, type by type, in the order of its `validation.go`.
//!
//! One file per Kubernetes type so that a reviewer can hold the two side by side; each is cited by release and
//! function. Where releases differ the profile says so by a named behaviour or a number.

pub(crate) mod go_json;
pub(crate) mod lists;
pub(crate) mod naming;
pub(crate) mod qualified;

pub(crate) mod finalizers;
pub(crate) mod managed_fields;
pub(crate) mod meta;
pub(crate) mod meta_update;
pub(crate) mod object_name;
pub(crate) mod owner_references;
pub(crate) mod prepared;
pub(crate) mod template_meta;

pub(crate) mod taint;
pub(crate) mod toleration;

pub(crate) mod attributes;
pub(crate) mod binding;
pub(crate) mod capacity;
pub(crate) mod counters;
pub(crate) mod device;
pub(crate) mod node_resources;
pub(crate) mod node_selector;
pub(crate) mod partition;
pub(crate) mod request_policy;
pub(crate) mod skip_operations;
pub(crate) mod slice;

pub(crate) mod claim;
pub(crate) mod config;
pub(crate) mod constraints;
pub(crate) mod derived;
pub(crate) mod fqn;
pub(crate) mod hub;
pub(crate) mod request;
pub(crate) mod selectors;

pub(crate) mod class;
pub(crate) mod pod_claims;

pub(crate) mod taint_rule;

pub(crate) mod allocation;
pub(crate) mod conditions;
pub(crate) mod device_status;
pub(crate) mod network_data;
pub(crate) mod reserved_for;
pub(crate) mod status;

use super::{Check, Group};

/// The groups of this origin. Files that are only called by others have no check of their own.
pub(crate) static GROUPS: &[Group] = &[
    Group { rules: meta::RULES, check: Check::Object(meta::check) },
    Group { rules: meta_update::RULES, check: Check::Engine },
    Group { rules: owner_references::RULES, check: Check::Engine },
    Group { rules: finalizers::RULES, check: Check::Engine },
    Group { rules: managed_fields::RULES, check: Check::Engine },
    Group { rules: template_meta::RULES, check: Check::Engine },
    Group { rules: taint::RULES, check: Check::Engine },
    Group { rules: toleration::RULES, check: Check::Engine },
    Group { rules: slice::RULES, check: Check::Object(slice::check) },
    Group { rules: device::RULES, check: Check::Engine },
    Group { rules: attributes::RULES, check: Check::Engine },
    Group { rules: capacity::RULES, check: Check::Engine },
    Group { rules: request_policy::RULES, check: Check::Engine },
    Group { rules: counters::RULES, check: Check::Engine },
    Group { rules: binding::RULES, check: Check::Engine },
    Group { rules: node_resources::RULES, check: Check::Engine },
    Group { rules: partition::RULES, check: Check::Engine },
    Group { rules: skip_operations::RULES, check: Check::Engine },
    Group { rules: claim::RULES, check: Check::Object(claim::check) },
    Group { rules: request::RULES, check: Check::Engine },
    Group { rules: selectors::RULES, check: Check::Engine },
    Group { rules: selectors::unchecked::RULES, check: Check::Engine },
    Group { rules: derived::RULES, check: Check::Engine },
    Group { rules: constraints::RULES, check: Check::Engine },
    Group { rules: config::RULES, check: Check::Engine },
    Group { rules: class::RULES, check: Check::Object(class::check) },
    Group { rules: pod_claims::RULES, check: Check::Object(pod_claims::check) },
    Group { rules: taint_rule::RULES, check: Check::Object(taint_rule::check) },
    Group { rules: allocation::RULES, check: Check::Object(status::check) },
    Group { rules: reserved_for::RULES, check: Check::Engine },
    Group { rules: device_status::RULES, check: Check::Engine },
    Group { rules: conditions::RULES, check: Check::Engine },
    Group { rules: network_data::RULES, check: Check::Engine },
    // Last: it looks at whether the others found anything.
    Group { rules: object_name::RULES, check: Check::Object(object_name::check_last) },
];
