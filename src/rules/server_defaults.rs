//! Findings about the defaults of an API server: fields behind feature gates that are off, versions that are not served.
//!
//! Nothing is checked here: `api::gated` knows the fields, `profile` the versions, and the engine reports. Never from a
//! webhook: what arrives there was served, and was not dropped.

use super::{Check, Group, rules};
use crate::api::gated::DroppedField;
use crate::field::{Name, Path};
use crate::finding::{BadValue, ErrorType, Finding};
use crate::profile::{ApiKind, Profile, Version};

rules! { Lint, Warn;
    /// A field that the server drops because a feature gate is off.
    DROPPED_FIELD = "dropped-field",
    /// A version that is not served by default.
    VERSION_OFF_BY_DEFAULT = "version-off-by-default",
}

/// The groups of this file.
pub(crate) static GROUPS: &[Group] = &[Group { rules: RULES, check: Check::Engine }];

/// That the server drops a field.
pub(crate) fn dropped_field(field: &DroppedField, profile: &Profile) -> Finding {
    let names =
        field.at.user_steps().filter_map(|step| if let Name::Field(name) = step { Some(name) } else { None });
    let (name, gate) = (names.last().map_or("", |name| &**name), field.gate.name());
    let state = match (profile.gates.are_live, profile.has_on_by_default(field.gate)) {
        (true, _) => "off on this API server",
        (false, true) => "on by default",
        (false, false) => "off by default",
    };
    let detail =
        format!("Kubernetes {} drops `{name}` unless the feature gate {gate} is on ({state})", profile.name);
    Finding::new(DROPPED_FIELD, field.at.clone(), ErrorType::Forbidden, BadValue::Omitted, detail)
}

/// That the server does not serve a version, if it does not: the running one, or else one with the defaults.
pub(crate) fn version_off_by_default(kind: ApiKind, version: Version, profile: &Profile) -> Option<Finding> {
    if !profile.is_release || profile.is_served(kind, version) {
        return None;
    }
    let (group, version) = (kind.group(), version.name());
    let flag = format!("--runtime-config={group}/{version}=true");
    let served = format!("serve {} in {group}/{version}", kind.name());
    let detail = match profile.discovered {
        Some(_) => format!("this API server does not {served}: it needs {flag}"),
        None => {
            format!("Kubernetes {} does not {served} by default: its API server needs {flag}", profile.name)
        }
    };
    let at = Path::ROOT.field("apiVersion").owned();
    Some(Finding::new(VERSION_OFF_BY_DEFAULT, at, ErrorType::Forbidden, BadValue::Omitted, detail))
}
