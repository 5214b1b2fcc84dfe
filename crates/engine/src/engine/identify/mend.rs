//! Fixes for an apiVersion or kind that is not served.
//!
//! A kind is corrected where one spelling is near. A version is replaced by the newest served one in which the object
//! means the same: it decodes there as it is, or with its requests and devices in the shape of that version.

use super::{kind_names_of, probable_group, removed_kind_advice, split_api_version};
use crate::engine::prepare::schema;
use tollgate_api::conform::decode_by_schema;
use tollgate_api::conform::suggest::nearest_if_unambiguous;
use tollgate_api::profile::{ApiKind, Profile, Version};
use tollgate_document::doc::Value;
use tollgate_document::field::Path;
use tollgate_document::finding::{Edit, Fix};

/// Maximum number of nodes of an object that is converted, because each candidate version takes one decoding.
const MAX_CONVERTED_NODES: usize = 20_000;

/// Returns the fix that corrects `apiVersion` and `kind` of an object that is not served; `None` if there is not
/// exactly one right answer.
pub(super) fn type_fix(object: Value<'_>, api_version: &str, kind: &str, profile: &Profile) -> Option<Fix> {
    // Another spelling of the keys themselves is not the place to write to.
    if !object.get("apiVersion").exists() || !object.get("kind").exists() {
        return None;
    }
    let (written_group, written_version) = split_api_version(api_version);
    let group = probable_group(written_group, kind);
    if removed_kind_advice(group, kind).is_some() {
        return None;
    }
    let known = kind_names_of(group);
    let name = known
        .iter()
        .find(|name| **name == kind)
        .copied()
        .or_else(|| nearest_if_unambiguous(kind, known.into_iter()))?;
    let kind_of = ApiKind::from_group_and_name(group, name)?;
    let rename = (name != kind).then(|| Fix::replace(Path::ROOT.field("kind").owned(), kind, name));
    let served = profile.versions(kind_of);
    if group == written_group && served.iter().any(|version| version.name() == written_version) {
        return rename;
    }
    let mut newest_first: Vec<Version> = served.to_vec();
    newest_first.sort_unstable_by(|one, other| other.cmp(one));
    // A version that is served was meant, whatever else decodes.
    let meant = newest_first.iter().find(|version| version.name() == written_version).copied();
    let candidates = meant.map_or(newest_first, |version| vec![version]);
    let (version, edits) = candidates.into_iter().find_map(|version| {
        let reshape = conversion_edits(object, kind_of, version, profile)?;
        Some((version, reshape))
    })?;
    let new = format!("{group}/{}", version.name());
    let new = new.trim_start_matches('/');
    let mut fix = Fix::replace(Path::ROOT.field("apiVersion").owned(), api_version, new);
    // Without a release nobody knows which versions the cluster serves.
    if meant.is_none() && !profile.is_release {
        fix = fix.marked_unsafe();
    }
    if let Some(rename) = rename {
        fix.edits.extend(rename.edits);
        fix.title = format!("{} and `{kind}` with `{name}`", fix.title).into();
    }
    if !edits.is_empty() {
        fix.title = format!("{}, and convert the object to that version", fix.title).into();
        fix.edits.extend(edits);
    }
    Some(fix)
}

/// Returns the edits that convert an object to the shape of a version: empty if it has that shape, `None` if it cannot
/// be converted or is too large.
fn conversion_edits(
    object: Value<'_>,
    kind: ApiKind,
    version: Version,
    profile: &Profile,
) -> Option<Vec<Edit>> {
    if object.node_count() > MAX_CONVERTED_NODES {
        return None;
    }
    let conformed = decode_by_schema(object, schema(kind, version, profile));
    if !conformed.errors.is_empty() || conformed.left_out != [0; 2] {
        return None;
    }
    let mut edits: Vec<Edit> = Vec::new();
    for error in conformed.strict {
        for edit in error.fix?.edits {
            let is_reshaping = matches!(edit, Edit::Nest { .. } | Edit::Unnest { .. });
            if !is_reshaping {
                return None;
            }
            if !edits.contains(&edit) {
                edits.push(edit);
            }
        }
    }
    Some(edits)
}
