//! Findings about what an API server does not serve: fields behind feature gates that are off, versions that are off by
//! default or that the next release removes, and what exists in drafts only.
//!
//! Nothing is checked here: `api::gated` and `api::drafts` know the fields, `profile` the versions, and the engine
//! reports. Nothing is reported for objects from a webhook: the API server serves their version, and has already
//! dropped disabled fields.

use std::collections::HashSet;

use crate::rules::table::{
    DRAFT_ONLY_FIELD, DROPPED_FIELD, RULE_TAKES_EFFECT, RULE_WITHOUT_EFFECT, SOON_REMOVED_VERSION,
    VERSION_OFF_BY_DEFAULT,
};
use tollgate_api::drafts::{DraftOnlyPart, DraftPart, draft_only_parts};
use tollgate_api::gated::DroppedField;
use tollgate_api::profile::{ApiKind, Profile, Version};
use tollgate_api::view::{Object, ObjectBody};
use tollgate_document::field::{FieldPath, Path, SegmentName};
use tollgate_document::finding::{BadValue, ErrorType, Finding, RuleId};
use tollgate_formats::names;

/// Creates a finding that shows no value, with the error type of fields that must not be set.
fn forbidden_finding(rule: RuleId, at: FieldPath, detail: String) -> Finding {
    Finding::new(rule, at, ErrorType::Forbidden, BadValue::Omitted, detail)
}

/// Returns the finding for a field that the server drops because its feature gate is off.
pub fn dropped_field_finding(field: &DroppedField, profile: &Profile) -> Finding {
    let names = field
        .at
        .user_steps()
        .filter_map(|step| if let SegmentName::Field(name) = step { Some(name) } else { None });
    let (name, gate) = (names.last().map_or("", |name| &**name), field.gate.name());
    let state = match (profile.gates.are_live, profile.is_gate_on_by_default(field.gate)) {
        (true, _) => "off on this API server",
        (false, true) => "on by default",
        (false, false) => "off by default",
    };
    let detail =
        format!("Kubernetes {} drops `{name}` unless the feature gate {gate} is on ({state})", profile.name);
    forbidden_finding(DROPPED_FIELD, field.at.clone(), detail)
}

/// Returns findings about what the server does not serve of an object: a version that is off, a rule that nothing acts
/// on, or parts that only drafts have and the stored object does not.
pub fn unserved_findings(
    object: Object<'_>,
    old: Option<Object<'_>>,
    profile: &Profile,
    is_stored: bool,
) -> Vec<Finding> {
    let (kind, version) = (object.kind(), object.version);
    let mut parts = if profile.warns_of_drafts { draft_only_parts(object) } else { Vec::new() };
    if let Some(old) = old.filter(|_| !parts.is_empty()) {
        let stored: HashSet<String> =
            draft_only_parts(old).iter().map(DraftOnlyPart::path_without_indexes).collect();
        parts.retain(|part| !stored.contains(&part.path_without_indexes()));
    }
    let drafts = parts.iter().map(|part| draft_only_finding(part, kind, version));
    // A stored object is served in every version there is; only if there is none, nobody can reach it.
    let is_reachable =
        is_stored && profile.versions(kind).iter().any(|version| profile.is_served(kind, *version));
    // Without the release, so that several releases have one finding.
    let off = why_version_is_off(kind, version, profile, "Kubernetes").filter(|_| !is_reachable);
    let at = Path::ROOT.field("apiVersion");
    let off = off.map(|detail| forbidden_finding(VERSION_OFF_BY_DEFAULT, at.owned(), detail));
    let off_everywhere =
        profile.warns_of_drafts.then(|| version_off_everywhere_finding(kind, version)).flatten();
    let off_everywhere = off_everywhere.filter(|_| !is_reachable);
    let inert = ineffective_taint_rule_finding(kind, profile, off.is_some());
    // A stored object is not bound to the version in which it is listed.
    let removed =
        if is_stored { None } else { version_removed_in_next_release_finding(kind, version, profile) };
    off.into_iter().chain(off_everywhere).chain(removed).chain(inert).chain(drafts).collect()
}

/// Returns a finding if a DeviceTaintRule has no effect in this profile or, if the feature gates are unknown,
/// one that names the gates it depends on. If the API version is disabled as well, only disabled gates are
/// reported, because enabling the version is not sufficient.
fn ineffective_taint_rule_finding(kind: ApiKind, profile: &Profile, is_version_off: bool) -> Option<Finding> {
    if kind != ApiKind::DeviceTaintRule {
        return None;
    }
    let why = if is_version_off {
        profile.why_gates_disable_device_taint_rules()
    } else {
        profile.why_device_taint_rules_do_nothing()
    };
    let detail = match why {
        Some(why) => format!("{why}, so the rule has no effect"),
        None => profile.describe_gates_rules_may_lack()?,
    };
    let at = Path::ROOT.field("kind").owned();
    Some(forbidden_finding(RULE_WITHOUT_EFFECT, at, detail))
}

/// Returns a finding if a DeviceTaintRule takes effect with this profile but not before: not in the cluster where it is
/// stored or, without one, not in an earlier profile of the run.
pub fn rule_begins_to_act_finding(
    object: Object<'_>,
    cluster: Option<&Profile>,
    profile: &Profile,
    profiles: &[&'static Profile],
) -> Option<Finding> {
    let ObjectBody::Rule(rule) = object.body else { return None };
    let consequence = match rule.spec().taint().effect() {
        "NoExecute" => "evicts the pods that use the selected devices",
        "NoSchedule" => "keeps new pods off the selected devices",
        _ => return None,
    };
    let name = object.metadata().name();
    let name = if names::has_subdomain_shape(name) { name } else { "NAME" };
    let (detail, command) = match cluster {
        Some(cluster) if profile.is_release && profile.acts_on_device_taint_rules() => {
            let why = cluster.why_device_taint_rules_do_nothing()?;
            let today = "so this rule has no effect in the cluster today; after the upgrade";
            let command = format!("kubectl get devicetaintrule {name} -o yaml | tollgate impact -");
            (format!("{why}, {today}, it {consequence}"), command)
        }
        Some(_) => return None,
        None => {
            let (first, why) = Profile::first_release_acting_on_taint_rules(profiles, object.version)?;
            if first.name != profile.name {
                return None;
            }
            let upgrade = format!("after an upgrade to Kubernetes {}", profile.name);
            let detail = format!("{why}, so this rule has no effect there; {upgrade}, it {consequence}");
            (detail, "tollgate impact FILE".to_owned())
        }
    };
    let at = Path::ROOT.field("spec").field("taint").field("effect").owned();
    let help = format!(
        "to list the affected pods, run `{command} --kubernetes {}`; delete the rule if it is obsolete",
        profile.name
    );
    Some(Finding { help: Some(help.into()), ..forbidden_finding(RULE_TAKES_EFFECT, at, detail) })
}

/// Returns a finding if the next release no longer serves the version.
fn version_removed_in_next_release_finding(
    kind: ApiKind,
    version: Version,
    profile: &Profile,
) -> Option<Finding> {
    let next = profile.next_release_if_dropping_version(kind, version)?;
    let (group, newest) = (kind.group(), profile.versions(kind).last()?.name());
    let (kind, version) = (kind.name(), version.name());
    let detail = format!("Kubernetes {next} no longer serves {kind} in {group}/{version}");
    let at = Path::ROOT.field("apiVersion").owned();
    let help = format!("before you upgrade to Kubernetes {next}, change the manifest to {group}/{newest}");
    Some(Finding { help: Some(help.into()), ..forbidden_finding(SOON_REMOVED_VERSION, at, detail) })
}

/// Returns the finding for a part of an object that no release serves.
fn draft_only_finding(part: &DraftOnlyPart, kind: ApiKind, version: Version) -> Finding {
    let (group, kind, version) = (kind.group(), kind.name(), version.name());
    let detail = match part.what {
        DraftPart::Kind => format!("no Kubernetes release serves {kind}"),
        DraftPart::Version => format!("no Kubernetes release serves {kind} in {group}/{version}"),
        DraftPart::Field(name) => {
            format!(
                "no Kubernetes release has `{name}` in {group}/{version}, so API servers reject or drop it"
            )
        }
    };
    let draft = part
        .draft
        .map(|draft| format!("; to check against the draft instead, use --kubernetes {}", draft.name));
    let help = format!("remove it{}", draft.unwrap_or_default());
    Finding {
        on_key: matches!(part.what, DraftPart::Field(_)),
        help: Some(help.into()),
        ..forbidden_finding(DRAFT_ONLY_FIELD, part.at.clone(), detail)
    }
}

/// Returns why the server does not serve a version; `None` if it does. `name` is how servers of the release are called
/// in the text.
pub fn why_version_is_off(kind: ApiKind, version: Version, profile: &Profile, name: &str) -> Option<String> {
    if !profile.is_release || profile.is_served(kind, version) {
        return None;
    }
    // A stored object may be listed in a version that this release does not have: its own newest one can be turned on.
    let versions = profile.versions(kind);
    let is_own = versions.contains(&version);
    let version = if is_own { version } else { *versions.last()? };
    let (group, version) = (kind.group(), version.name());
    let flag = format!("--runtime-config={group}/{version}=true");
    let in_version = if is_own { format!(" in {group}/{version}") } else { String::new() };
    let served = format!("serve {}{in_version}", kind.name());
    Some(match profile.discovered {
        Some(_) => {
            format!("this API server does not {served}; to enable it, start kube-apiserver with {flag}")
        }
        None => {
            format!("{name} does not {served} by default; to enable it, start kube-apiserver with {flag}")
        }
    })
}

/// Returns a finding for an object checked without a release, if newer releases no longer have its version, or if it is
/// an alpha version that is off by default everywhere. None for beta versions, which each cluster can turn on.
fn version_off_everywhere_finding(kind: ApiKind, version: Version) -> Option<Finding> {
    let releases = || Profile::ALL.iter().copied().filter(|profile| profile.is_release);
    let knows = |release: &&Profile| release.versions(kind).contains(&version);
    let on_by_default = |version| move |release: &&Profile| release.serves_by_default(kind, version);
    let (first, last) = (releases().find(knows)?, releases().rfind(knows)?);
    if releases().any(|release| on_by_default(version)(&release)) {
        return None;
    }
    let (group, name) = (kind.group(), version.name());
    let served = format!("{} in {group}/{name}", kind.name());
    let dropped_in = releases().skip_while(|release| release.name != last.name).nth(1);
    if dropped_in.is_none() && !matches!(version, Version::V1alpha1 | Version::V1alpha3) {
        return None;
    }
    let (detail, enable) = match dropped_in {
        Some(next) => (format!("no Kubernetes release since {} serves {served}", next.name), String::new()),
        None => (
            format!("Kubernetes {} to {} do not serve {served} by default", first.name, last.name),
            format!(", or start kube-apiserver with --runtime-config={group}/{name}=true"),
        ),
    };
    let at = Path::ROOT.field("apiVersion").owned();
    let since = releases().find(|release| on_by_default(Version::V1)(release));
    let help = since.map(|since| {
        let since = since.name;
        format!("use `apiVersion: {group}/v1`, which is on by default since Kubernetes {since}{enable}")
            .into()
    });
    Some(Finding { help, ..forbidden_finding(VERSION_OFF_BY_DEFAULT, at, detail) })
}
