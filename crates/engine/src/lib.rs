//! The checks of Tollgate: what an API server says about an object with device taints or tolerations, what the policies
//! of a cluster say, and what a DeviceTaintRule would do.
//!
//! [`engine`] decides about a request ([`admission`]) with the [`rules`] of the API server and the [`policy`] files of
//! an administrator, and fills in [`defaults`]. [`site`] knows where taints and tolerations are in objects,
//! [`tolerance`] which taints a toleration matches, and [`impact`] which pods a rule evicts. All of them are functions
//! of their input: no files, no clock, no threads, no network.
//!
//! ```
//! use tollgate_engine::{Attributes, Engine, LabelsIfKnown, Profile, RuleSet, documents};
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

pub mod admission;
pub mod defaults;
pub mod engine;
pub mod impact;
pub mod policy;
pub mod rule_annotations;
pub mod rules;
pub mod site;
pub mod tolerance;

pub use admission::{
    Attributes, ClaimLocations, ClaimsInFiles, LabelsIfKnown, Now, Operation, ResourceClasses,
};
pub use engine::{
    Diagnostic, Endpoint, Engine, LoadedNamespaces, Mutation, NamespaceLabelLookup, Verdict, admit,
};
pub use impact::{
    ClusterState, Impact, ImpactQuery, PodImpact, PodOutcome, ProposedChange, RuleCondition, Snapshot,
    SnapshotKind, UnreadableObject, assess as assess_impact,
};
pub use policy::{PolicyFile, PolicyResource, PolicySet, ReadSchemaFile};
pub use rules::{FindingLevel, Rule, RuleOrigin, RuleSet};
pub use tollgate_api::profile::{Gate, GateChoice, Gates, Profile};
pub use tollgate_document::doc::{Doc, SyntaxError, Value, ValueKind, parse as parse_json};
pub use tollgate_document::field::FieldPath;
pub use tollgate_document::finding::{
    Applicability, BadValue, Edit, ErrorType, Finding, Fix, NewValue, RuleId,
};
pub use tollgate_document::source::{
    Document, DocumentError, Documents, InputError, LineIndex, SourceLocation, TextEdit, TextFix,
    apply as apply_edits, documents,
};
pub use tollgate_formats::gotime::Timestamp;
