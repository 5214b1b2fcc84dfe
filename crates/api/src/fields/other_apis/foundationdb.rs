//! FoundationDBCluster: only the fields about replacements because of node taints. Other fields are not checked.
//!
//! The operator reads `spec.automationOptions.replacements.taintReplacementOptions`. Its design document writes
//! `automaticReplacementOptions` and, in its prose, `taints`. These are listed too, so that rules can report them.

use crate::fields::partial_struct;
use crate::profile::Availability;
use crate::schema::{Field, FieldType, StructSchema};

pub(in crate::fields) static TAINT_REPLACEMENT_OPTION: StructSchema = partial_struct(
    "TaintReplacementOption",
    &[p!("key", FieldType::Str), p!("durationInSeconds", FieldType::Int)],
);
pub(in crate::fields) const TAINT_OPTIONS: FieldType =
    FieldType::List(&FieldType::Struct(&TAINT_REPLACEMENT_OPTION));
pub(in crate::fields) static REPLACEMENTS: StructSchema = partial_struct(
    "AutomaticReplacementOptions",
    &[
        p!("enabled", FieldType::Bool),
        p!("maxConcurrentReplacements", FieldType::Int),
        f!("taintReplacementOptions", TAINT_OPTIONS),
        p!("taintReplacementTimeSeconds", FieldType::Int),
        f!("taints", TAINT_OPTIONS),
    ],
);
pub(in crate::fields) const MISSPELLED_REPLACEMENTS: Field =
    f!("automaticReplacementOptions", FieldType::Struct(&REPLACEMENTS));
pub(in crate::fields) static AUTOMATION: StructSchema = partial_struct(
    "FoundationDBClusterAutomationOptions",
    &[f!("replacements", FieldType::Struct(&REPLACEMENTS)), MISSPELLED_REPLACEMENTS],
);
pub(in crate::fields) static CLUSTER_SPEC: StructSchema = partial_struct(
    "FoundationDBClusterSpec",
    &[f!("automationOptions", FieldType::Struct(&AUTOMATION)), MISSPELLED_REPLACEMENTS],
);
pub(in crate::fields) static FOUNDATION_DB_CLUSTER: StructSchema =
    kind!(partial_struct, "FoundationDBCluster", CLUSTER_SPEC);
