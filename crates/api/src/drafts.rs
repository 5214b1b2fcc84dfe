//! Finds the parts of an object that no Kubernetes release serves: fields, versions and kinds of drafts.
//!
//! It uses the tables of fields and profiles, so that new releases and drafts need no change here. A field that an
//! earlier release had was removed, and does not belong to a draft: rules report it where it matters. Kinds outside
//! of `resource.k8s.io` are the same in all profiles, and never reported.
//!
//! Invariant: it only finds these parts; the engine reports them.

use std::sync::LazyLock;

use super::fields;
use super::schema::{Field, FieldType, StructSchema};
use super::steps;
use super::view::Object;
use crate::profile::{ApiKind, Availability, Profile, Version};
use tollgate_document::field::{FieldPath, Path, SegmentName};

/// A part of an object that no release serves.
#[derive(Debug)]
pub struct DraftOnlyPart {
    /// Path of the part.
    pub at: FieldPath,
    /// The kind of part.
    pub what: DraftPart,
    /// The first draft that has the part; `None` if none does.
    pub draft: Option<&'static Profile>,
}

impl DraftOnlyPart {
    /// The fields of the path without indexes and keys, `spec.taints.taint`: the same for the same part of another
    /// object.
    pub fn path_without_indexes(&self) -> String {
        let names = self.at.user_steps().filter_map(|step| match step {
            SegmentName::Field(name) => Some(&**name),
            _ => None,
        });
        names.collect::<Vec<_>>().join(".")
    }
}

/// The part of the API that only drafts have: a kind, a version or a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DraftPart {
    /// A kind of object.
    Kind,
    /// A version of a kind that is served in others.
    Version,
    /// The field with this name.
    Field(&'static str),
}

/// A struct with fields that no release has in some version of a kind.
#[derive(Debug)]
struct StructWithDraftFields {
    /// The path, as `steps` reads it.
    path: String,
    fields: Vec<&'static Field>,
}

/// The fields of a version of a kind that none of the releases serving it has.
struct DraftFields {
    of: (ApiKind, Version),
    structs: Vec<StructWithDraftFields>,
}

/// The draft fields of each version of a kind that some release serves.
static DRAFT_FIELDS: LazyLock<Vec<DraftFields>> = LazyLock::new(|| {
    let all = ApiKind::ALL.into_iter().filter(|kind| kind.only_version_if_profile_independent().is_none());
    let versions = all.flat_map(|kind| Version::ALL.map(|version| (kind, version)));
    versions
        .filter_map(|(kind, version)| {
            let releases = releases_until_removal(kind, version)?;
            let mut found = Vec::new();
            collect_structs_with_draft_fields(fields::root_struct(kind, version), releases, "", &mut found);
            Some(DraftFields { of: (kind, version), structs: found })
        })
        .collect()
});

/// The profiles of releases, oldest first.
fn releases() -> impl Iterator<Item = &'static Profile> {
    Profile::ALL.iter().copied().filter(|profile| profile.is_release)
}

/// The releases up to the last one that serves the version; `None` if none does.
fn releases_until_removal(kind: ApiKind, version: Version) -> Option<Availability> {
    let serves = |release: &Profile| release.versions(kind).contains(&version);
    releases().any(serves).then(|| {
        let before = releases().take_while(|release| !serves(release));
        let serving = releases().filter(|release| serves(release));
        before.chain(serving).fold(Availability::NEVER, |all, release| all.or(release.fields))
    })
}

/// Adds the struct `of`, and structs below it, if they have fields that no release has; `path` leads to it. Structs are
/// a few levels deep, and none contains itself.
fn collect_structs_with_draft_fields(
    of: &'static StructSchema,
    releases: Availability,
    path: &str,
    found: &mut Vec<StructWithDraftFields>,
) {
    // A field that changed its type has a row for each.
    let is_released = |field: &&Field| {
        of.fields.iter().any(|other| other.json == field.json && other.known.overlaps(releases))
    };
    let (released, fields): (Vec<&Field>, Vec<&Field>) = of.fields.iter().partition(is_released);
    if !fields.is_empty() {
        found.push(StructWithDraftFields { path: path.to_owned(), fields });
    }
    for field in released {
        let Some(inner) = field.ty.innermost_struct() else { continue };
        let dot = if path.is_empty() { "" } else { "." };
        let each = match field.ty {
            FieldType::List(_) => "[]",
            FieldType::Map { .. } => "{}",
            _ => "",
        };
        let path = format!("{path}{dot}{}{each}", field.json);
        collect_structs_with_draft_fields(inner, releases, &path, found);
    }
}

/// The parts of an object that no release serves: its kind, its version, or fields.
pub fn draft_only_parts(object: Object<'_>) -> Vec<DraftOnlyPart> {
    let (kind, version) = (object.kind(), object.version);
    if kind.only_version_if_profile_independent().is_some() {
        return Vec::new();
    }
    let whole = |name: &str, what| {
        let serves = |draft: &&Profile| draft.versions(kind).contains(&version);
        let draft = Profile::drafts().find(serves);
        vec![DraftOnlyPart { at: Path::ROOT.field(name).owned(), what, draft }]
    };
    // Nearly everything is of a version that some release serves, and then there are rows.
    let Some(rows) = DRAFT_FIELDS.iter().find(|rows| rows.of == (kind, version)) else {
        let is_served = releases().any(|release| !release.versions(kind).is_empty());
        return if is_served {
            whole("apiVersion", DraftPart::Version)
        } else {
            whole("kind", DraftPart::Kind)
        };
    };
    let mut found = Vec::new();
    for draft_struct in &rows.structs {
        steps::visit(object.value(), &draft_struct.path, version, &Path::ROOT, &mut |value, at| {
            for field in
                draft_struct.fields.iter().filter(|field| !value.field(field.name).is_null_or_absent())
            {
                let draft = Profile::drafts().find(|draft| draft.fields.drafts_only().overlaps(field.known));
                let at = at.field(field.json).owned();
                found.push(DraftOnlyPart { at, what: DraftPart::Field(field.json), draft });
            }
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{DRAFT_FIELDS, releases};
    use crate::profile::{ApiKind, Profile, Version};

    #[test]
    fn the_tables_know_what_only_drafts_have() {
        let names = |kind, version| -> Vec<&str> {
            let rows = DRAFT_FIELDS.iter().find(|rows| rows.of == (kind, version)).expect("a served version");
            rows.structs.iter().flat_map(|of| &of.fields).map(|field| field.json).collect()
        };
        let of_taint = ["description", "data", "evictionsPerSecond"];
        // Selection by class was removed before there was a v1: that is not a draft's.
        assert_eq!(names(ApiKind::DeviceTaintRule, Version::V1), of_taint);
        assert_eq!(names(ApiKind::ResourceSlice, Version::V1), [&["taints"], &of_taint[..]].concat());
        assert_eq!(names(ApiKind::ResourceClaim, Version::V1), [""; 0]);
        // Only 1.33 served it, and lists came later.
        assert!(names(ApiKind::ResourceSlice, Version::V1alpha3).contains(&"ints"));
    }

    /// If a draft adds an effect, it must be reported like a field.
    #[test]
    fn no_effect_is_a_drafts_alone() {
        for effect in Profile::DEFAULT.effects {
            assert!(releases().any(|release| release.effects.contains(effect)), "{effect}");
        }
    }
}
