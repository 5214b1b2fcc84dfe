//! Admission control for Kubernetes device taints and tolerations (Dynamic Resource Allocation, KEP-5055).
//!
//! One engine gives the API server's own verdict on ResourceSlices, ResourceClaims, DeviceTaintRules and the other
//! objects that carry taints and tolerations. `tollgate serve`, `tollgate validate` and this library share it.
//!
//! An [`Engine`] is made of [profiles](Profile) (releases of Kubernetes), [rules](RuleSet) and, optionally,
//! [policies](PolicySet) and the [state of a cluster](Snapshot). It checks a [request](Attributes) and returns a
//! [`Verdict`]: [diagnostics](Diagnostic), each a [`Finding`] with its level. [`documents`] reads YAML and JSON as
//! kubectl does; a [`ReportRenderer`] writes what was found; [`assess_impact`] tells which pods a DeviceTaintRule
//! evicts.
//!
//! ```
//! use tollgate::{Attributes, Engine, LabelsIfKnown, Profile, RuleSet, documents};
//!
//! let manifest = "
//! apiVersion: resource.k8s.io/v1beta2
//! kind: DeviceTaintRule
//! metadata: {name: drain}
//! spec:
//!   deviceSelector: {driver: gpu.example.com}
//!   taint: {key: example.com/drain, effect: NoExec}
//! ";
//! let profile = Profile::named("1.37").expect("a known release");
//! let engine = Engine::new(vec![profile], RuleSet::parse("upstream,decoding")?);
//! let document = documents(manifest).next().expect("one document").expect("it can be read");
//! let request = Attributes::for_create(document.doc.root(), "", "2026-11-15T12:00:00Z");
//!
//! let verdict = engine.validate(&request, LabelsIfKnown::Unknown);
//! assert!(!verdict.is_allowed());
//! assert_eq!(verdict.findings()[0].finding.user_path(), "spec.taint.effect");
//! # Ok::<(), String>(())
//! ```
//!
//! This package is the program: command line and reports, with the webhook and the client of an API server from
//! `tollgate-server` and `tollgate-cluster`. The core that it re-exports here starts no thread, opens no file and reads
//! no clock; it is the crate `tollgate-engine` and those below it, and a program that needs only the core depends on
//! these instead. Of the default features, `cluster` adds the client of an API server, and `serve` the webhook.

pub mod config;
pub mod pages;
mod registration;
mod report;

#[cfg(feature = "cluster")]
pub mod conformance;

mod cli;

#[cfg(fuzzing)]
#[doc(hidden)]
pub use cli::fuzzing;
pub use cli::run;
pub use report::{
    AcceptedBy, AcceptedFinding, DocumentResult, DocumentStatus, FileReportPart, Format, LocatedFinding,
    ReportRenderer, SkipCounts, SkipReason, Statistics, Summary, UncheckedMentionCounts, UnreadPathCounts,
};
#[cfg(feature = "cluster")]
pub use tollgate_cluster as cluster;
/// The core: what a program needs that checks objects itself.
pub use tollgate_engine::*;
pub use tollgate_files as files;
#[cfg(feature = "serve")]
pub use tollgate_server as server;
