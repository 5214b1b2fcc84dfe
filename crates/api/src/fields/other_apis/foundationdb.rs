//! FoundationDBCluster, as far as taints of nodes are concerned: everything else is let be.
//!
//! The operator reads `spec.automationOptions.replacements.taintReplacementOptions`. Its design document writes
//! `automaticReplacementOptions` and, in its prose, `taints`: those are rows so that they can be told of.

use crate::fields::meta::{API_VERSION, KIND, META};
use crate::fields::partial_struct;
use crate::profile::Availability;
use crate::schema::{Field, StructTy, Ty};

pub(in crate::fields) static TAINT_OPTION: StructTy =
    partial_struct("TaintReplacementOption", &[p!("key", Ty::Str), p!("durationInSeconds", Ty::Int)]);
pub(in crate::fields) const TAINT_OPTIONS: Ty = Ty::List(&Ty::Struct(&TAINT_OPTION));
pub(in crate::fields) static REPLACEMENTS: StructTy = partial_struct(
    "AutomaticReplacementOptions",
    &[
        p!("enabled", Ty::Bool),
        p!("maxConcurrentReplacements", Ty::Int),
        f!("taintReplacementOptions", TAINT_OPTIONS),
        p!("taintReplacementTimeSeconds", Ty::Int),
        f!("taints", TAINT_OPTIONS),
    ],
);
pub(in crate::fields) const MISSPELLED: Field = f!("automaticReplacementOptions", Ty::Struct(&REPLACEMENTS));
pub(in crate::fields) static AUTOMATION: StructTy = partial_struct(
    "FoundationDBClusterAutomationOptions",
    &[f!("replacements", Ty::Struct(&REPLACEMENTS)), MISSPELLED],
);
pub(in crate::fields) static CLUSTER_SPEC: StructTy = partial_struct(
    "FoundationDBClusterSpec",
    &[f!("automationOptions", Ty::Struct(&AUTOMATION)), MISSPELLED],
);
pub(in crate::fields) static FOUNDATION_DB_CLUSTER: StructTy =
    partial_struct("FoundationDBCluster", &[API_VERSION, KIND, META, f!("spec", Ty::Struct(&CLUSTER_SPEC))]);
