//! What the API server itself refuses, type by type, in the order of its `validation.go`.
//!
//! One file per Kubernetes type so that a reviewer can hold the two side by side; each is cited by release and
//! function. Where releases differ the profile says so by a named behaviour or a number.

pub mod go_json;
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

use super::{Check, Group};

/// The groups of this origin. Files that are only called by others have no check of their own.
pub static GROUPS: &[Group] = &[
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
