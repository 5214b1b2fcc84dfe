//! Determines the type of an object, and whether the profile serves it.
//!
//! The API server reads `apiVersion` and `kind` first and ignores case; all other fields depend on the type. Kinds of
//! other groups are not checked; a checked kind with a wrong apiVersion is reported.

mod mend;

use crate::admission::Attributes;
use crate::policy::PolicyKind;
use crate::rules::table::{MISSING_TYPE, UNSERVED_VERSION, WRONG_CONTENT_TYPE};
use tollgate_api::conform::suggest::{distance, join_with_and, nearest_if_unambiguous};
use tollgate_api::profile::{self, ApiKind, CLASSIC_VERSIONS, FORMER_KINDS, Profile, Version};
use tollgate_api::review::{Operation, Request};
use tollgate_document::doc::{FieldName, Value, ValueKind};
use tollgate_document::field::Path;
use tollgate_document::finding::{BadValue, ErrorType, Finding, RuleId};
use tollgate_formats::gofmt;

/// The API group of device taints and tolerations, to which most of the checked kinds belong.
pub(super) const RESOURCE_GROUP: &str = "resource.k8s.io";

const API_VERSION: FieldName = FieldName::from_text("apiVersion");
const KIND: FieldName = FieldName::from_text("kind");

/// The type of an object according to its `apiVersion` and `kind`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TypeClassification<'d> {
    /// The value is not an object, or its `apiVersion` or `kind` is not a string. The text describes the
    /// problem.
    Unreadable(&'static str),
    /// `kind` or `apiVersion` is absent or empty; the text names the field.
    Missing(&'static str),
    /// An object of the group `resource.k8s.io`, or a kind that Tollgate checks under another apiVersion. The profile
    /// may or may not serve it.
    Ours {
        /// `apiVersion` as written.
        api_version: &'d str,
        /// `kind` as written in the object.
        kind: &'d str,
    },
    /// An object of another group, which is not checked.
    Foreign,
}

/// Reads `apiVersion` and `kind` of an object and returns whether it is one that Tollgate checks.
pub fn classify_type(object: Value<'_>) -> TypeClassification<'_> {
    if object.kind() != ValueKind::Object {
        return TypeClassification::Unreadable("not an object");
    }
    let found = classify_api_version_and_kind(type_meta(object).ok());
    if found != TypeClassification::Foreign {
        return found;
    }
    // kubectl sends keys in order, so that of `kind` and `KIND` the server reads `kind` last.
    let exact = |name: &str| object.last_key_and_value(name).map_or("", |(_, value)| value.str());
    match classify_api_version_and_kind(Some((exact(API_VERSION.text), exact(KIND.text)))) {
        ours @ TypeClassification::Ours { .. } => ours,
        _ => found,
    }
}

/// Classifies an object by the values of `apiVersion` and `kind`. `None` means that one of them is not a string,
/// and `""` that it is absent.
fn classify_api_version_and_kind<'d>(type_meta: Option<(&'d str, &'d str)>) -> TypeClassification<'d> {
    let Some((api_version, kind)) = type_meta else {
        return TypeClassification::Unreadable("apiVersion and kind must be strings");
    };
    if kind.is_empty() {
        return TypeClassification::Missing("kind");
    }
    if api_version.is_empty() {
        return TypeClassification::Missing("apiVersion");
    }
    let (group, version) = split_api_version(api_version);
    let is_miscased = |known: ApiKind| {
        known.group() == group && known.name() != kind && known.name().eq_ignore_ascii_case(kind)
    };
    let ours = ApiKind::is_fully_checked_group(group)
        || ApiKind::ALL
            .into_iter()
            .any(|known| is_miscased(known) && is_version_in_all_profiles(known, version))
        || ApiKind::from_group_and_name(group, kind)
            .is_some_and(|kind| is_version_in_all_profiles(kind, version))
        || ApiKind::parse_dra_kind(kind).is_some() && !is_foreign_group_not_misspelling(group);
    if ours { TypeClassification::Ours { api_version, kind } } else { TypeClassification::Foreign }
}

/// Splits an `apiVersion` into group and version; the group is empty for the core group (`v1`).
pub(super) fn split_api_version(api_version: &str) -> (&str, &str) {
    api_version.rsplit_once('/').unwrap_or(("", api_version))
}

/// True if the kind exists only in fixed versions and `version` is one of them. False for kinds whose versions depend
/// on the profile.
fn is_version_in_all_profiles(kind: ApiKind, version: &str) -> bool {
    kind.only_version_if_profile_independent()
        .is_some_and(|only| only.iter().any(|only| only.name() == version))
}

/// True if the group may define its own kinds with the same names, such as DeviceClass: it contains a dot, as
/// custom resources require, and is not a misspelling of `resource.k8s.io`.
fn is_foreign_group_not_misspelling(group: &str) -> bool {
    const MAX_TYPOS: usize = 2;
    let written = group.to_ascii_lowercase();
    let is_near = |ours: &str| distance(&written, ours) <= MAX_TYPOS || ours.starts_with(&written);
    // Custom resources of Kubernetes' own projects are in `x-k8s.io`.
    let is_slip = !written.ends_with(".x-k8s.io")
        && (["k8s.io", "kubernetes.io"].contains(&&*written)
            || [RESOURCE_GROUP, "resource.kubernetes.io"].into_iter().any(is_near));
    group.contains('.') && !group.contains('/') && !is_slip
}

/// True if the profile serves the object's kind and version in `resource.k8s.io`, but Tollgate does not check
/// this kind.
pub(super) fn is_served_but_unchecked_kind(identity: &TypeClassification<'_>, profile: &Profile) -> bool {
    let TypeClassification::Ours { api_version, kind } = identity else { return false };
    let (group, version) = split_api_version(api_version);
    // A list without items is one that the server has registered, too.
    let item = kind.strip_suffix("List").unwrap_or_default();
    let is_served = |version| profile.unchecked_versions(kind).contains(&version);
    let is_list = |version| {
        let checked = ApiKind::from_group_and_name(group, item)
            .is_some_and(|item| profile.can_serve(item, version, false));
        checked || profile.unchecked_versions(item).contains(&version)
    };
    group == RESOURCE_GROUP
        && Version::parse(version).is_some_and(|version| is_served(version) || is_list(version))
}

/// Returns what to use instead of a kind of classic DRA, which was removed in 1.32; `None` for any other kind.
fn removed_kind_advice(group: &str, kind: &str) -> Option<&'static str> {
    let found = FORMER_KINDS.iter().find(|(name, _)| group == RESOURCE_GROUP && *name == kind);
    found.map(|(_, advice)| *advice)
}

/// Whether Tollgate checks the kind of an admission request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum KindSupport {
    /// A kind and version that Tollgate checks.
    Supported,
    /// A kind that Tollgate checks, in a version that is newer than this program.
    NewerVersion,
    /// Any other kind, version or subresource, which Tollgate does not check.
    NotChecked,
}

/// Returns `apiVersion` and `kind` of an object as Go's decoder reads them, `""` for a missing or null one; an error
/// with the name and the type of the first that is not a string.
pub(super) fn type_meta(object: Value<'_>) -> Result<(&str, &str), (&'static str, ValueKind)> {
    let read = |name: FieldName| type_field_ignoring_case(object, name).map_err(|kind| (name.text, kind));
    Ok((read(API_VERSION)?, read(KIND)?))
}

/// Returns whether Tollgate checks the request's kind and subresource. A request without a kind counts as
/// `Supported`; its object then determines the kind.
pub(super) fn kind_support(request: &Request<'_>) -> KindSupport {
    let written = request.kind;
    if written.kind.is_empty() {
        return if matches!(request.sub_resource, "" | "status") {
            KindSupport::Supported
        } else {
            KindSupport::NotChecked
        };
    }
    if written.group == PolicyKind::GROUP && PolicyKind::parse(written.kind).is_some() {
        return match (request.sub_resource, written.version) {
            ("", PolicyKind::VERSION) => KindSupport::Supported,
            ("", _) => KindSupport::NewerVersion,
            _ => KindSupport::NotChecked,
        };
    }
    let Some(kind) = ApiKind::from_group_and_name(written.group, written.kind) else {
        return KindSupport::NotChecked;
    };
    let is_judged = match request.sub_resource {
        "" => true,
        "status" => kind.has_full_schema(),
        // The request's object is the whole Pod.
        "ephemeralcontainers" => kind == ApiKind::Pod,
        _ => false,
    };
    let is_known = match kind.only_version_if_profile_independent() {
        Some(_) => is_version_in_all_profiles(kind, written.version),
        None => Version::parse(written.version).is_some_and(|version| version != Version::V1alpha1),
    };
    match (is_judged, is_known) {
        (true, true) => KindSupport::Supported,
        // Other versions of kinds that we know in part are the business of others.
        (true, false) if kind.has_full_schema() => KindSupport::NewerVersion,
        _ => KindSupport::NotChecked,
    }
}

/// Returns a finding if the kinds of `request.kind` and the object or old object differ and Tollgate checks
/// one of them. API servers never send such requests, and it is unknown which kind would be stored.
pub(super) fn kind_mismatch(request: &Request<'_>) -> Option<Box<Finding>> {
    let old = request.old_object.filter(|_| request.operation == Operation::Update);
    let object = Some((request.object, "request.object"));
    [object, old.map(|old| (old, "request.oldObject"))]
        .into_iter()
        .flatten()
        .find_map(|(object, name)| kind_mismatch_of(object, request, name))
}

/// Returns a finding if the kinds of `request.kind` and this object differ. `name` is the path of the object
/// in the message. Returns `None` if either kind cannot be read.
fn kind_mismatch_of(object: Value<'_>, request: &Request<'_>, name: &str) -> Option<Box<Finding>> {
    let requested = request.kind;
    if requested.kind.is_empty() || object.kind() != ValueKind::Object {
        return None;
    }
    // What cannot be read or says nothing is refused where objects are judged.
    let (api_version, kind) = type_meta(object).ok()?;
    let (group, version) = split_api_version(api_version);
    if kind.is_empty() || api_version.is_empty() {
        return None;
    }
    if (group, version, kind) == (requested.group, requested.version, requested.kind) {
        return None;
    }
    let is_ours = matches!(classify_type(object), TypeClassification::Ours { .. })
        || kind_support(request) != KindSupport::NotChecked;
    let (field, value) = if kind == requested.kind { ("apiVersion", api_version) } else { ("kind", kind) };
    let separator = if requested.group.is_empty() { "" } else { "/" };
    let detail = format!(
        "{name} must match request.kind, which is {} in {}",
        gofmt::quote(requested.kind),
        gofmt::quote(&[requested.group, separator, requested.version].concat())
    );
    let (at, value) = (Path::ROOT.field(field).owned(), BadValue::str(value));
    is_ours.then(|| Box::new(Finding::new(UNSERVED_VERSION, at, ErrorType::Invalid, value, detail)))
}

/// Returns the namespace that the object names in its own metadata: `default` if it names none, and empty for
/// cluster-scoped or unknown kinds. For requests that name no namespace.
pub(super) fn metadata_namespace_or_default(object: Value<'_>) -> &str {
    let (api_version, kind) =
        (type_field_ignoring_case(object, API_VERSION), type_field_ignoring_case(object, KIND));
    let known = ApiKind::from_group_and_name(
        split_api_version(api_version.unwrap_or_default()).0,
        kind.unwrap_or_default(),
    );
    let own = object.get("metadata").get("namespace").str();
    match known.filter(|kind| kind.is_namespaced()) {
        Some(_) if own.is_empty() => "default",
        Some(_) => own,
        None => "",
    }
}

/// Returns the value of `apiVersion` or `kind` as Go's decoder reads it: of the members whose names equal `name` in any
/// case, the last one. `""` if there is none or it is null; an error with the type of the first that is not a string.
fn type_field_ignoring_case(object: Value<'_>, name: FieldName) -> Result<&str, ValueKind> {
    let mut found = "";
    // A key that was recognised is a name as we write it, and these two have no other spelling among those.
    let is_meant = |key: Value<'_>| match key.as_key().known_name_number() {
        Some(number) => number == name.number(),
        None => key.text_bytes().eq_ignore_ascii_case(name.text.as_bytes()),
    };
    for (_, value) in object.members().filter(|(key, _)| is_meant(*key)) {
        match value.kind() {
            ValueKind::String => found = value.text(),
            ValueKind::Null => {}
            kind => return Err(kind),
        }
    }
    Ok(found)
}

/// Returns the version in a stored object's `apiVersion`; `None` if it is unknown or the group is not that of `kind`.
pub(super) fn version_of_stored_object(object: Value<'_>, kind: ApiKind) -> Option<Version> {
    let (group, version) = split_api_version(type_field_ignoring_case(object, API_VERSION).ok()?);
    Version::parse(version).filter(|_| group == kind.group())
}

/// Returns the kind and version with these names; `None` if either is unknown.
pub(super) fn parse_kind(api_version: &str, kind: &str) -> Option<(ApiKind, Version)> {
    let (group, version) = split_api_version(api_version);
    ApiKind::from_group_and_name(group, kind).zip(Version::parse(version))
}

/// Returns the kind and version to decode the object as; a finding if they are unreadable, missing or not served by the
/// profile.
pub(super) fn served_kind(
    identity: &TypeClassification<'_>,
    profile: &Profile,
    admission: &Attributes<'_>,
) -> Result<(ApiKind, Version), Box<Finding>> {
    let object = admission.object;
    let (api_version, kind) = match identity {
        TypeClassification::Unreadable(_) => return Err(Box::new(unreadable_type_finding(object))),
        TypeClassification::Missing(field) => {
            return Err(Box::new(missing_type_finding(field, object, profile)));
        }
        TypeClassification::Ours { api_version, kind } => (*api_version, *kind),
        TypeClassification::Foreign => type_meta(object).unwrap_or_default(),
    };
    if let Some((kind, version)) = parse_kind(api_version, kind)
        && profile.can_serve(kind, version, admission.is_status())
    {
        return Ok((kind, version));
    }
    let mut finding = unserved_finding(api_version, kind, profile, admission.subresource);
    if admission.subresource.is_empty() {
        finding.fix = mend::type_fix(object, api_version, kind, profile).map(Box::new);
    }
    Err(Box::new(finding))
}

/// Returns the kind and version to decode a stored object as. The version need not be served, because the API server
/// converts between all versions of a kind; a finding if the profile serves the kind in none.
pub(super) fn kind_of_stored_object(
    identity: &TypeClassification<'_>,
    profile: &Profile,
    admission: &Attributes<'_>,
) -> Result<(ApiKind, Version), Box<Finding>> {
    if let TypeClassification::Ours { api_version, kind } = identity
        && let Some((kind, version)) = parse_kind(api_version, kind)
        && !profile.versions(kind).is_empty()
    {
        return Ok((kind, version));
    }
    served_kind(identity, profile, admission)
}

/// Returns the finding for something that is not an object, or whose `apiVersion` or `kind` is not a string, in Go's
/// words.
fn unreadable_type_finding(object: Value<'_>) -> Finding {
    if object.kind() == ValueKind::Object {
        let (field, kind) = type_meta(object).err().unwrap_or(("kind", ValueKind::Null));
        let detail = format!(
            "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go struct field .{field} of \
             type string",
            kind.name_in_go_decode_errors()
        );
        return type_finding(WRONG_CONTENT_TYPE, &Path::ROOT.field(field), ErrorType::TypeInvalid, detail);
    }
    let what = object.kind().name_in_go_decode_errors();
    let detail = format!(
        "couldn't get version/kind; json parse error: json: cannot unmarshal {what} into Go value of type struct \
         {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}"
    );
    type_finding(WRONG_CONTENT_TYPE, &Path::ROOT, ErrorType::TypeInvalid, detail)
}

/// Returns the finding for an object without the field, `kind` or `apiVersion`, with a hint at what to write.
fn missing_type_finding(field: &'static str, object: Value<'_>, profile: &Profile) -> Finding {
    let go = if field == "kind" { "Kind" } else { field };
    let mut finding = type_finding(
        MISSING_TYPE,
        &Path::ROOT.field(field),
        ErrorType::Required,
        format!("Object '{go}' is missing"),
    );
    let (api_version, kind) = type_meta(object).unwrap_or_default();
    let help = if field == "kind" {
        // Without apiVersion, the object could be of any group.
        let kinds =
            if api_version.is_empty() { Vec::new() } else { kind_names_of(split_api_version(api_version).0) };
        (!kinds.is_empty())
            .then(|| format!("add `kind`; Tollgate checks these kinds here: {}", kinds.join(", ")))
    } else {
        let known = ApiKind::ALL.into_iter().find(|known| known.name() == kind);
        let served = known.map(|known| served_versions(known.group(), known.name(), profile));
        served.filter(|served| !served.is_empty()).map(|served| {
            let newest = served.first().map_or("", String::as_str);
            let (title, all) = (profile.title(), join_with_and(&served));
            let others = format!("; {title} serves {kind} as {all}");
            format!("add `apiVersion: {newest}`{}", if served.len() > 1 { &*others } else { "" })
        })
    };
    finding.help = Some(help.map_or_else(
        || {
            let example = match (field, api_version) {
                ("kind", "") => "apiVersion: resource.k8s.io/v1` and `kind: ResourceClaim",
                ("kind", _) => "kind: ResourceClaim",
                _ => "apiVersion: resource.k8s.io/v1",
            };
            format!("every object requires apiVersion and kind, for example `{example}`").into()
        },
        Into::into,
    ));
    finding
}

/// Returns the finding for an `apiVersion` and `kind` that the profile does not serve, or not with that subresource,
/// with what to write instead.
fn unserved_finding(api_version: &str, kind: &str, profile: &Profile, subresource: &str) -> Finding {
    let (written_group, written_version) = split_api_version(api_version);
    let group = probable_group(written_group, kind);
    let served = served_versions(group, kind, profile);
    let (field, help) = if served.is_empty() {
        ("kind", unserved_kind_advice(group, kind, profile))
    } else if !subresource.is_empty() && served.iter().any(|version| version == api_version) {
        ("kind", format!("{} has no `{subresource}` subresource for {kind}", profile.title()))
    } else {
        let last = CLASSIC_VERSIONS
            .iter()
            .find(|(version, _)| group == RESOURCE_GROUP && *version == written_version);
        let classic = last.map_or(String::new(), |(_, last)| {
            format!("{api_version} is classic DRA, which Kubernetes served until {last}; ")
        });
        let served = join_with_and(&served);
        ("apiVersion", format!("{classic}{} serves {kind} as {served}", profile.title()))
    };
    let detail =
        format!("no kind {} is registered for version {}", gofmt::quote(kind), gofmt::quote(api_version));
    let value = if field == "kind" { kind } else { api_version };
    let (at, value) = (Path::ROOT.field(field).owned(), BadValue::str(value));
    let finding = Finding::new(UNSERVED_VERSION, at, ErrorType::Invalid, value, detail);
    Finding { help: Some(help.into()), ..finding }
}

/// Returns the apiVersions (such as `resource.k8s.io/v1`) in which the profile serves a kind, newest first; empty if it
/// does not serve the kind.
fn served_versions(group: &str, kind: &str, profile: &Profile) -> Vec<String> {
    let checked =
        ApiKind::from_group_and_name(group, kind).map(|kind| profile.versions(kind)).unwrap_or_default();
    let unchecked = if group == RESOURCE_GROUP { profile.unchecked_versions(kind) } else { &[] };
    let mut versions: Vec<Version> = checked.iter().chain(unchecked).copied().collect();
    versions.sort_unstable_by(|one, other| other.cmp(one));
    let prefix = if group.is_empty() { String::new() } else { format!("{group}/") };
    versions.iter().map(|version| format!("{prefix}{}", version.name())).collect()
}

/// Returns advice for a kind that the profile does not serve in any version.
fn unserved_kind_advice(group: &str, kind: &str, profile: &Profile) -> String {
    let known = kind_names_of(group);
    if let Some(advice) = removed_kind_advice(group, kind) {
        return format!("{kind} is part of classic DRA, which Kubernetes 1.32 removed; {advice}");
    }
    let others = profiles_serving(kind);
    if known.contains(&kind) || !others.is_empty() {
        return format!(
            "{} does not serve this kind; it is available in {}",
            profile.name,
            join_with_and(&others)
        );
    }
    match nearest_if_unambiguous(kind, known.iter().copied()) {
        Some(name) if name.eq_ignore_ascii_case(kind) => {
            format!("kinds are case-sensitive: did you mean `{name}`?")
        }
        Some(name) => format!("did you mean `{name}`?"),
        None => format!("Tollgate checks these kinds in {group}: {}", known.join(", ")),
    }
}

/// Returns the written group if it is known or contains such a kind (ignoring case). Otherwise returns
/// `resource.k8s.io`, which was probably intended.
fn probable_group<'g>(group: &'g str, kind: &str) -> &'g str {
    let has = |known: &ApiKind| known.group() == group && known.name().eq_ignore_ascii_case(kind);
    if ApiKind::is_fully_checked_group(group) || ApiKind::ALL.iter().any(has) {
        group
    } else {
        RESOURCE_GROUP
    }
}

/// Returns the names of the known kinds of a group.
fn kind_names_of(group: &str) -> Vec<&'static str> {
    ApiKind::ALL.into_iter().filter(|kind| kind.group() == group).map(ApiKind::name).collect()
}

/// Returns the names of the profiles that serve a kind in some version.
fn profiles_serving(kind: &str) -> Vec<&'static str> {
    let serves = |profile: &&Profile| {
        ApiKind::parse_dra_kind(kind).is_some_and(|kind| !profile.versions(kind).is_empty())
            || !profile.unchecked_versions(kind).is_empty()
    };
    profile::ALL.iter().copied().filter(serves).map(|profile| profile.name).collect()
}

/// Creates a finding about `apiVersion`, `kind` or the object as a whole that shows no value.
fn type_finding(rule: RuleId, at: &Path<'_>, kind: ErrorType, detail: String) -> Finding {
    Finding::new(rule, at.owned(), kind, BadValue::Omitted, detail)
}
