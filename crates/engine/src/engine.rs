//! The engine: checks a document and returns findings with levels. Pure; shared by the server and the command line.
//!
//! The steps are `identify → conform → default → drop → rules`, once per profile; then the findings of all profiles
//! are merged and sorted. The guard, which admits every update that leaves the spec (for a status request: the
//! status) unchanged, is applied only here (`tests/engine/guard.rs`).

mod admit;
mod as_stored;
mod checked_expressions;
mod cluster;
mod diagnostic;
mod fill;
mod fixes;
mod identify;
mod left_out;
mod memory;
mod namespaces;
mod own_kinds;
mod prepare;
mod response;
mod verdict;

pub use admit::{
    Decision, Endpoint, Review, admit, decode_review_text_like_go, parse_review_unless_too_dense,
};
pub use as_stored::stored_json;
pub use cluster::ClusterSource;
pub use fill::{Mutation, json_patch};
pub use identify::{TypeClassification, classify_type};
pub use memory::memory_bytes_for_body;
pub use namespaces::{LoadedNamespaces, NamespaceLabelLookup, OwnedLabels};
pub use prepare::DecodedObject;
pub use response::{bad_request_response, respond};
pub use verdict::Verdict;

pub use crate::admission::{
    Attributes, ClaimLocations, ClaimsInFiles, LabelsIfKnown, Operation, ResourceClasses,
};

use std::sync::Arc;

use crate::admission::{AdminAccess, Context};
use crate::impact::Snapshot;
use crate::policy::{PolicyLocation, PolicySet, Violations};
use crate::rules::server_defaults::{dropped_field_finding, rule_begins_to_act_finding, unserved_findings};
use crate::rules::table::{
    ADMIN_ACCESS_UNCHECKED, FINDINGS_LEFT_OUT, TAINT_RULE_IMPACT, UNKNOWN_FIELD, WRONG_CONTENT_TYPE,
};
use crate::rules::upstream::meta_update;
use crate::rules::{self, FindingLevel, RuleOrigin, RuleSet};
use checked_expressions::AcceptedExpressionCache;
use left_out::OmittedFindingCounts;
use tollgate_api::conform::DecodeError;
use tollgate_api::gated::{dropped_fields, without_dropped_fields};
use tollgate_api::profile::{ApiKind, Profile};
use tollgate_api::view::Object;
use tollgate_document::doc::{Doc, FieldName};
use tollgate_document::finding::{Finding, FindingBudget, Findings, RuleId};

const KIND: FieldName = FieldName::from_text("kind");

/// Checks requests and manifests against Kubernetes releases, rules, policies and the state of a cluster.
#[derive(Clone, Debug)]
pub struct Engine {
    /// The profiles to check objects against; at least one.
    pub profiles: Vec<&'static Profile>,
    /// The enabled rules.
    pub rules: RuleSet,
    /// Cache of accepted expressions.
    expressions: Arc<AcceptedExpressionCache>,
    /// True to return exactly the API server's verdict: unchanged specs are checked, and no kind is skipped.
    pub exact: bool,
    /// True if objects arrive from an API server, which has already dropped the fields of disabled feature gates and
    /// checked that it serves their version.
    pub comes_from_server: bool,
    /// True if objects are already stored in a cluster. They are checked in the version in which they were listed,
    /// even if no profile serves it, and policies about the creation of objects do not apply.
    are_stored: bool,
    /// The profile of the cluster in which the objects are stored; `None` if it is unknown or they are not stored.
    stored_on: Option<&'static Profile>,
    /// The administrator's policies.
    pub policies: Arc<PolicySet>,
    /// Source of the cluster state; `None` if there is no cluster.
    pub cluster: Option<ClusterSource>,
    /// The existing ResourceClasses; claims that name another one are reported. `None` if they are unknown.
    pub classes: Option<Arc<ResourceClasses>>,
}

/// A finding with its level and the profiles that it applies to.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    /// The finding itself: rule, path and message.
    pub finding: Finding,
    /// The origin of the rule that reports it.
    pub origin: RuleOrigin,
    /// Level: deny, warn or audit.
    pub level: FindingLevel,
    /// Names of the profiles to which the finding applies, in the order of [`Engine::profiles`].
    pub profiles: Vec<&'static str>,
    /// The policy that reported the finding, if it was a policy.
    pub policy: Option<PolicyLocation>,
}

/// A finding for one profile, before the findings of all profiles are merged. The order of the fields determines the
/// order of the findings in reports.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct ProfileFinding {
    finding: Finding,
    /// Level and location of the policy that reports the finding; `None` if a rule does.
    ground: Option<(FindingLevel, PolicyLocation)>,
    /// Index of the profile in [`Engine::profiles`].
    rank: usize,
}

impl Engine {
    /// Creates an engine for these profiles and rules, without policies and without cluster state.
    pub fn new(profiles: Vec<&'static Profile>, rules: RuleSet) -> Engine {
        Engine {
            profiles,
            rules,
            expressions: Arc::default(),
            exact: false,
            comes_from_server: false,
            are_stored: false,
            stored_on: None,
            policies: Arc::default(),
            cluster: None,
            classes: None,
        }
    }

    /// Configures the engine for requests from an API server, which has dropped the fields of disabled feature gates.
    #[must_use]
    pub fn for_server_requests(mut self) -> Engine {
        self.comes_from_server = true;
        self
    }

    /// Configures the engine for objects stored in a cluster. If the profile of the cluster is given, differences
    /// between it and the engine's profiles are reported as well.
    #[must_use]
    pub fn for_stored_objects(self, cluster: Option<&'static Profile>) -> Engine {
        Engine { are_stored: true, stored_on: cluster, ..self }
    }

    /// Replaces the policies of the engine.
    #[must_use]
    pub fn with_policies(self, policies: Arc<PolicySet>) -> Engine {
        Engine { policies, ..self }
    }

    /// Sets the source of the cluster state, which is queried for every DeviceTaintRule.
    #[must_use]
    pub fn with_cluster(self, cluster: ClusterSource) -> Engine {
        Engine { cluster: Some(cluster), ..self }
    }

    /// Sets a fixed state of the cluster, such as one read from a dump.
    #[must_use]
    pub fn with_snapshot(self, snapshot: Arc<Snapshot>) -> Engine {
        self.with_cluster(ClusterSource::from_snapshot(snapshot))
    }

    /// Sets the ResourceClasses that exist, so that claims that name another are reported; `None` if unknown.
    #[must_use]
    pub fn with_classes(self, classes: Option<Arc<ResourceClasses>>) -> Engine {
        Engine { classes, ..self }
    }

    /// Configures the engine to return exactly the verdict of the API server; see [`Engine::exact`].
    #[must_use]
    pub fn with_api_server_verdicts(self) -> Engine {
        Engine { exact: true, ..self }
    }

    /// Validates one object as if it came from a file, and returns what the API server, the lints and the policies
    /// report about the request.
    pub fn validate(&self, admission: &Attributes<'_>, labels: LabelsIfKnown<'_>) -> Verdict {
        self.validate_for_all_profiles(admission, labels, None, false)
    }

    /// Like [`Engine::validate`], for one of several files. `claims` are the claims of all files, so that a pod whose
    /// claim is in another namespace is reported.
    pub fn validate_with_claims(
        &self,
        admission: &Attributes<'_>,
        labels: LabelsIfKnown<'_>,
        claims: Option<ClaimsInFiles<'_>>,
    ) -> Verdict {
        self.validate_for_all_profiles(admission, labels, claims, false)
    }

    /// Validates one object for all profiles, and merges their findings. Skips objects of kinds that Tollgate does not
    /// check, unless the engine is exact. `claims` are the claims that are checked together with it, if known.
    /// `from_review` is true if the object comes from an API server, and false for a file, from which no server has
    /// dropped fields.
    fn validate_for_all_profiles(
        &self,
        admission: &Attributes<'_>,
        labels: LabelsIfKnown<'_>,
        claims: Option<ClaimsInFiles<'_>>,
        from_review: bool,
    ) -> Verdict {
        if !admission.operation.writes_object() {
            return Verdict::Checked(Vec::new());
        }
        if let Some(kind) = own_kinds::policy_kind_of(admission.object) {
            return self.verdict_for_all_profiles(&self.policy_object_findings(kind, admission));
        }
        let identity = classify_type(admission.object);
        let is_unchecked = |profile: &&Profile| identify::is_served_but_unchecked_kind(&identity, profile);
        let is_foreign =
            matches!(identity, TypeClassification::Foreign) || self.profiles.iter().all(is_unchecked);
        if !self.exact && is_foreign {
            return Verdict::Skipped;
        }
        // One state for the whole request, whatever the watcher learns meanwhile. Only a rule asks for it: whoever
        // holds a state makes the watcher copy it before the next change.
        let is_rule = admission.object.field(KIND).text_is(ApiKind::DeviceTaintRule.name());
        let cluster = self.cluster.as_ref().filter(|_| is_rule).and_then(ClusterSource::current_state);
        let mut all: Vec<ProfileFinding> = Vec::new();
        let mut left_out = OmittedFindingCounts::default();
        for (rank, profile) in self.profiles.iter().enumerate() {
            let mut findings = Findings::with_budget(FindingBudget::for_report(self.exact, from_review));
            let context = Context {
                cluster: cluster.as_ref(),
                claims,
                from_review,
                ..self.context_without_cluster(profile, labels)
            };
            let violations = self.validate_for_profile(&identity, admission, &context, &mut findings);
            let (mut findings, not_kept) = findings.into_parts();
            if !from_review {
                fixes::mark_unsafe_fixes(&mut findings, admission.object);
            }
            left_out.merge_profile_counts_by_maximum(not_kept, violations.left_out);
            all.extend(findings.into_iter().map(|finding| ProfileFinding { finding, ground: None, rank }));
            all.extend(violations.list.into_iter().map(|violation| ProfileFinding {
                finding: violation.finding,
                ground: Some((violation.level, violation.policy)),
                rank,
            }));
        }
        let mut merged = self.merge_profile_findings(all);
        self.cut_to_budget(&mut merged, left_out, FindingBudget::for_report(self.exact, from_review));
        Verdict::Checked(merged)
    }

    /// Returns the context that rules and policies get for a request, from the profile, the labels and the engine's
    /// settings. The state of the cluster and the claims around the object are left empty.
    fn context_without_cluster<'c>(
        &'c self,
        profile: &'static Profile,
        labels: LabelsIfKnown<'c>,
    ) -> Context<'c> {
        let admin_access = self.admin_access(profile, labels);
        Context {
            profile,
            labels,
            admin_access,
            cluster: None,
            classes: self.classes.as_deref(),
            claims: None,
            from_review: false,
            is_stored: self.are_stored,
            cel: &*self.expressions,
        }
    }

    /// Removes the findings beyond the budget if there are several profiles, whose findings together can exceed it.
    /// Adds a finding for each level and origin in `left_out` that states how many were removed, so that they still
    /// deny.
    fn cut_to_budget(
        &self,
        merged: &mut Vec<Diagnostic>,
        mut left_out: OmittedFindingCounts,
        mut budget: FindingBudget,
    ) {
        if self.profiles.len() > 1 {
            merged.retain_mut(|diagnostic| {
                let is_kept = budget.shorten_and_spend(&mut diagnostic.finding);
                if !is_kept {
                    left_out.add_count(diagnostic.level, diagnostic.origin, 1);
                }
                is_kept
            });
        }
        for ((level, origin), count) in left_out.0 {
            let profiles = self.profiles.iter().map(|profile| profile.name).collect();
            merged.push(Diagnostic {
                finding: Finding::for_omitted(FINDINGS_LEFT_OUT, count),
                origin,
                level,
                profiles,
                policy: None,
            });
        }
    }

    /// Validates an object for the profile of the context. Adds the findings of rules to `findings`, and returns the
    /// violations of policies.
    fn validate_for_profile(
        &self,
        identity: &TypeClassification<'_>,
        admission: &Attributes<'_>,
        context: &Context<'_>,
        findings: &mut Findings,
    ) -> Violations {
        let profile = context.profile;
        if identify::is_served_but_unchecked_kind(identity, profile) {
            return Violations::default();
        }
        let served = if self.are_stored { identify::kind_of_stored_object } else { identify::served_kind };
        let (kind, version) = match served(identity, profile, admission) {
            Ok(served) => served,
            Err(finding) => {
                self.push_if_reported(findings, *finding);
                return Violations::default();
            }
        };
        let new = DecodedObject::decode(admission.object, kind, version, profile);
        let old = admission.old_object.map(|old| DecodedObject::decode_stored(old, kind, version, profile));
        if new.has_fatal_errors() || old.as_ref().is_some_and(DecodedObject::has_fatal_errors) {
            let [errors, strict] = new.left_out;
            let old_left_out = old.as_ref().map_or(0, |old| old.left_out[0]);
            let of_old =
                |error: DecodeError| DecodeError { detail: format!("oldObject: {}", error.detail), ..error };
            let old_errors = old.into_iter().flat_map(|old| old.errors).map(of_old);
            let all = new.errors.into_iter().chain(old_errors).chain(new.strict);
            self.report_decode_errors(all, [errors + old_left_out, strict], findings);
            return Violations::default();
        }
        prepare::with_prepared_stored_object(old.as_ref(), version, profile, admission.now.text, |old| {
            self.run_rules_and_policies(&new, old, admission, context, findings)
        })
    }

    /// Runs the rules and policies on an object that was decoded successfully, with defaults filled in and dropped
    /// fields removed. Adds the findings of rules, and returns the violations of policies.
    fn run_rules_and_policies(
        &self,
        new: &DecodedObject<'_>,
        old: Option<Object<'_>>,
        admission: &Attributes<'_>,
        context: &Context<'_>,
        findings: &mut Findings,
    ) -> Violations {
        let profile = context.profile;
        let doc = new.defaulted_if_changed(old, profile, admission.now.text);
        let object = new.view_of_defaulted(doc.as_ref());
        let (kind, version) = (object.kind(), object.version);
        let without =
            self.drop_and_report_disabled_fields(context, object, old, admission.is_status(), findings);
        let object = prepare::with_document(object, version, without.as_ref());
        let decoded = admission.with_objects(object, old);
        self.report_decode_errors(new.strict.iter().cloned(), new.left_out, findings);
        if self.exact
            && let Some(finding) =
                meta_update::missing_taint_rule_resource_version(admission, kind, version, profile)
        {
            self.push_if_reported(findings, finding);
            return Violations::default();
        }
        if !self.exact && prepare::leaves_written_part_unchanged(&decoded) {
            if rules::lint::allocated_claim_loses_last_finalizer(&decoded) {
                self.rules.run_lints(&decoded, context, findings);
            }
            return Violations::default();
        }
        self.rules.run_with_ratcheting(&decoded, context, findings);
        if context.cluster.is_some()
            && self.rules.has(TAINT_RULE_IMPACT)
            && let Some(finding) = cluster::taint_rule_impact_finding(&decoded, context)
        {
            findings.push_within_budget(finding);
        }
        let budget = FindingBudget::for_report(self.exact, context.from_review);
        self.policies.find_new_violations(&decoded, context, &self.rules, budget)
    }

    /// Reports decoding errors. `left_out` are the numbers of `[errors, errors of strict decoding only]` that the
    /// decoder did not list; they count as omitted findings.
    fn report_decode_errors(
        &self,
        errors: impl IntoIterator<Item = DecodeError>,
        left_out: [usize; 2],
        findings: &mut Findings,
    ) {
        for error in errors {
            self.push_if_reported(findings, rules::input::decoding_finding(error));
        }
        for (rule, count) in [WRONG_CONTENT_TYPE, UNKNOWN_FIELD].into_iter().zip(left_out) {
            if count > 0 && self.reports_rule(rule) {
                findings.record_omitted(rule, count);
            }
        }
    }

    /// Returns a copy of the object without the fields that the server drops because their feature gates are off;
    /// `None` if it drops none or the gates are not known. For an object from a file, adds a finding for each such
    /// field and for each part that the release does not serve.
    fn drop_and_report_disabled_fields<'r>(
        &self,
        context: &Context<'_>,
        object: Object<'r>,
        old: Option<Object<'_>>,
        is_status: bool,
        findings: &mut Findings,
    ) -> Option<Doc<'r>> {
        let profile = context.profile;
        let are_assumed = profile.gates.are_assumed;
        if context.from_review && (self.comes_from_server || are_assumed) {
            return None;
        }
        if !context.from_review {
            let change = rule_begins_to_act_finding(object, self.stored_on, profile, &self.profiles);
            for finding in unserved_findings(object, old, profile, self.are_stored).into_iter().chain(change)
            {
                self.push_if_reported(findings, finding);
            }
        }
        let dropped = dropped_fields(object, old, is_status, profile);
        if !context.from_review {
            for field in &dropped {
                self.push_if_reported(findings, dropped_field_finding(field, profile));
            }
        }
        if are_assumed || dropped.is_empty() {
            return None;
        }
        Some(without_dropped_fields(object, &dropped))
    }

    /// Returns whether the namespace's labels grant admin access. Unknown labels count as refused where nothing else
    /// would report the unchecked access.
    fn admin_access(&self, profile: &Profile, labels: LabelsIfKnown<'_>) -> AdminAccess {
        match labels {
            LabelsIfKnown::Known(labels) if labels.get(profile.admin_access_label).str() == "true" => {
                AdminAccess::Granted
            }
            LabelsIfKnown::Known(_) => AdminAccess::Refused,
            // Somebody must speak: where the warning is not wanted, the server's rule does, as for a namespace
            // without the label.
            LabelsIfKnown::Unknown if self.exact || !self.rules.has(ADMIN_ACCESS_UNCHECKED) => {
                AdminAccess::Refused
            }
            LabelsIfKnown::Unknown => AdminAccess::Unknown,
        }
    }

    /// Sorts the findings of all profiles and joins equal ones into one diagnostic that lists the profiles. Repeated
    /// findings of one profile are dropped, as at the API server.
    fn merge_profile_findings(&self, mut all: Vec<ProfileFinding>) -> Vec<Diagnostic> {
        // Equal elements cannot be told apart, so their order does not matter.
        all.sort_unstable();
        let mut merged: Vec<Diagnostic> = Vec::with_capacity(all.len());
        for ProfileFinding { finding, ground, rank } in all {
            let Some(profile) = self.profiles.get(rank).map(|profile| profile.name) else { continue };
            let is_same = |last: &&mut Diagnostic| {
                let said_by = ground.as_ref().map(|(level, policy)| (*level, policy));
                let was_by = last.policy.as_ref().map(|policy| (last.level, policy));
                last.finding.is_equal_except_server_path(&finding) && said_by == was_by
            };
            match merged.last_mut().filter(is_same) {
                Some(last) if last.profiles.contains(&profile) => {}
                Some(last) => {
                    // If the fixes differ, neither is right for all profiles.
                    if last.finding.fix != finding.fix {
                        last.finding.fix = None;
                    }
                    last.profiles.push(profile);
                }
                None => {
                    let origin = finding.rule.origin;
                    let (level, policy) =
                        ground.map_or((finding.rule.level, None), |(level, policy)| (level, Some(policy)));
                    merged.push(Diagnostic { finding, origin, level, profiles: vec![profile], policy });
                }
            }
        }
        let rank = |name: &&'static str| self.profiles.iter().position(|profile| profile.name == *name);
        for diagnostic in &mut merged {
            diagnostic.profiles.sort_by_key(rank);
        }
        merged
    }

    /// Adds the finding if its rule is reported by this engine (see [`Engine::reports_rule`]).
    fn push_if_reported(&self, findings: &mut Findings, finding: Finding) {
        if self.reports_rule(finding.rule) {
            findings.push_within_budget(finding);
        }
    }

    /// True if the rule is selected or has the origin `decoding`, which is always reported: no rule checks an object
    /// that cannot be decoded.
    fn reports_rule(&self, rule: RuleId) -> bool {
        self.rules.has(rule) || rule.origin == RuleOrigin::Decoding
    }
}
