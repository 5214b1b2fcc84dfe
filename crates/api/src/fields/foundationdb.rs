//! FoundationDBCluster, as far as taints of nodes are concerned: everything else is let be.
//!
//! The operator reads `spec.automationOptions.replacements.taintReplacementOptions`. Its design document writes
//! `automaticReplacementOptions` and, in its prose, `taints`: those are rows so that they can be told of.

use super::meta::{API_VERSION, KIND, META};
use super::open;
use crate::profile::Availability;
use crate::schema::{Field, StructTy, Ty};

pub(super) static TAINT_OPTION: StructTy =
    open("TaintReplacementOption", &[p!("key", Ty::Str), p!("durationInSeconds", Ty::Int)]);
pub(super) const TAINT_OPTIONS: Ty = Ty::List(&Ty::Struct(&TAINT_OPTION));
pub(super) static REPLACEMENTS: StructTy = open(
    "AutomaticReplacementOptions",
    &[
        p!("enabled", Ty::Bool),
        p!("maxConcurrentReplacements", Ty::Int),
        f!("taintReplacementOptions", TAINT_OPTIONS),
        p!("taintReplacementTimeSeconds", Ty::Int),
        f!("taints", TAINT_OPTIONS),
    ],
);
pub(super) const WRITTEN_SO: Field = f!("automaticReplacementOptions", Ty::Struct(&REPLACEMENTS));
pub(super) static AUTOMATION: StructTy = open(
    "FoundationDBClusterAutomationOptions",
    &[f!("replacements", Ty::Struct(&REPLACEMENTS)), WRITTEN_SO],
);
pub(super) static CLUSTER_SPEC: StructTy =
    open("FoundationDBClusterSpec", &[f!("automationOptions", Ty::Struct(&AUTOMATION)), WRITTEN_SO]);
pub(super) static FOUNDATION_DB_CLUSTER: StructTy =
    open("FoundationDBCluster", &[API_VERSION, KIND, META, f!("spec", Ty::Struct(&CLUSTER_SPEC))]);
