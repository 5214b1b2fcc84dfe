//! Admission control for Kubernetes device taints and tolerations (Dynamic Resource Allocation, KEP-5055).
//!
//! One engine gives the API server's own verdict on ResourceSlices, ResourceClaims, DeviceTaintRules and the other
//! objects that carry taints and tolerations. `tollgate serve`, `tollgate validate` and this library share it.
//!
//! An [`Engine`] is made of [profiles](Profile) (releases of Kubernetes), [rules](RuleSet) and, optionally,
//! [policies](PolicySet) and the [state of a cluster](Snapshot). It checks a [request](Attributes) and returns a
//! [`Verdict`]: [diagnostics](Diagnostic), each a [`Finding`] with its level. [`documents`] reads YAML and JSON as
//! kubectl does; a [`Report`] writes what was found; [`assess_impact`] tells which pods a DeviceTaintRule evicts.
//!
//! ```
//! use tollgate::{Attributes, Engine, Labels, Profile, RuleSet, documents};
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
//! let request = Attributes::create(document.doc.root(), "", "2026-11-15T12:00:00Z");
//!
//! let verdict = engine.validate(&request, Labels::Unknown);
//! assert!(!verdict.allowed());
//! assert_eq!(verdict.findings()[0].finding.field(), "spec.taint.effect");
//! # Ok::<(), String>(())
//! ```
//!
//! Without default features this is a pure core: it starts no thread, opens no file and reads no clock. The feature
//! `cli` adds the program, `serve` the webhook, `cluster` the client of an API server.

#![cfg_attr(
    not(all(feature = "serve", feature = "cluster")),
    allow(dead_code, unused_imports, unreachable_pub, reason = "the shells that are left out use it")
)]

#[cfg(test)]
extern crate self as tollgate;

// — pure core, in reading order; ARCHITECTURE.md is the map —
mod field;
mod finding;
mod gofmt;
mod gotime;
mod names;
mod netaddr;
mod quantity;
mod sanitize;

mod cel;
mod doc;
mod profile;

mod admission;
mod api;
mod site;
mod tolerance;

mod impact;

mod rules;

mod defaults;
mod source;

mod policy;

mod engine;
mod registration;

mod config;

mod report;

#[cfg(feature = "cluster")]
mod conformance;

// — shells —
#[cfg(feature = "cli")]
mod files;

#[cfg(feature = "cluster")]
mod cluster;

#[cfg(feature = "serve")]
mod server;

#[cfg(feature = "cli")]
mod cli;

// — the front door —
pub use admission::{Attributes, ClaimsAround, KnownClaims, Labels, Now, Operation, ResourceClasses};
#[cfg(feature = "cli")]
pub use cli::run;
pub use doc::{Doc, SyntaxError, Value, ValueKind, parse as parse_json};
pub use engine::{Diagnostic, Endpoint, Engine, Mutation, NamespaceLookup, Namespaces, Verdict, admit};
pub use field::FieldPath;
pub use finding::{Applicability, BadValue, Edit, ErrorType, Finding, Fix, NewValue, RuleId};
pub use gotime::Timestamp;
pub use impact::{
    ClusterState, Impact, ImpactQuery, PodImpact, PodOutcome, ProposedChange, RuleCondition, Snapshot,
    SnapshotKind, UnreadableObject, assess as assess_impact,
};
pub use policy::{PolicyError, PolicyFile, PolicySet, ReadFile};
pub use profile::{Gate, GateChoice, Gates, Profile};
pub use report::{
    AcceptedBy, AcceptedFinding, DocumentResult, DocumentStatus, Format, LocatedFinding, Mentions, NotRead,
    Piece, Report, SkipCounts, SkipReason, Statistics, Summary,
};
pub use rules::{Level, Origin, Rule, RuleSet};
pub use source::{
    Document, DocumentError, Documents, InputError, Lines, SourceLocation, TextEdit, TextFix,
    apply as apply_edits, documents,
};

/// What the project's own benches, examples and socket tests use. No promise is made about it.
#[doc(hidden)]
pub mod internals {
    pub use crate::api::review::{BadReview, Request};
    pub use crate::api::{fields, schema};
    #[cfg(feature = "cluster")]
    pub use crate::cluster::{API_CALLS, ApiCall, CallTarget, NeededBy, ObjectNames};
    #[cfg(feature = "cluster")]
    pub use crate::cluster::{
        Cluster, LabelLookup, ManifestFn, NamespaceWatch, Registration, Target, Timing,
    };
    pub use crate::config::Suppressions;
    pub use crate::engine::{Decision, admit_observed};
    #[cfg(feature = "cli")]
    pub use crate::files::{Input, MAX_FILE, collect as collect_files, read as read_file};
    pub use crate::impact::{budgets, count, differences};
    pub use crate::profile::{ApiKind, Version};
    #[cfg(feature = "serve")]
    pub use crate::server::{Certificates, Limits, SelfSignedCerts, Server, Settings, TlsVersions};
    pub use crate::source::list;
}

/// The tests that need what is behind the front door.
#[cfg(test)]
#[path = "../tests/engine/main.rs"]
mod engine_tests;
