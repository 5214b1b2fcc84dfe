//! Checks the fields that impact reads of kinds without a schema (pods, budgets, namespaces), and the names and uids by
//! which objects refer to each other.
//!
//! A pod whose fields cannot be read, or that has lost its uid, would look like an unaffected pod, so it is an
//! error. Fields that are not listed are not checked; null and absent are the same, as in Go.

use super::kinds::SnapshotKind;
use super::read::{UnreadableObject, unreadable_object};
use tollgate_api::view::{ObjectMeta, View as _};
use tollgate_document::doc::{FieldName, Value, ValueKind as Json};
use tollgate_document::field::Path;

/// The type that a field must have.
#[derive(Debug)]
enum FieldShape {
    Str,
    Number,
    /// An object whose values are all strings.
    StrMap,
    List(&'static FieldShape),
    Fields(&'static [(FieldName, FieldShape)]),
}

use FieldShape::{Fields, List, Number, Str, StrMap};

/// Pairs the name of a field with the type that the field must have.
const fn row(name: &'static str, shape: FieldShape) -> (FieldName, FieldShape) {
    (FieldName::from_text(name), shape)
}

const METADATA: FieldShape = Fields(&[
    row("name", Str),
    row("namespace", Str),
    row("uid", Str),
    row("deletionTimestamp", Str),
    row("labels", StrMap),
    row("ownerReferences", List(&Fields(&[]))),
]);

const CLAIM_NAMES: FieldShape = List(&Fields(&[row("name", Str), row("resourceClaimName", Str)]));

const POD: FieldShape = Fields(&[
    row("metadata", METADATA),
    row(
        "spec",
        Fields(&[
            row("nodeName", Str),
            row("resourceClaims", CLAIM_NAMES),
            row("schedulingGroup", Fields(&[row("podGroupName", Str)])),
        ]),
    ),
    row(
        "status",
        Fields(&[
            row("phase", Str),
            row("conditions", List(&Fields(&[row("type", Str), row("status", Str)]))),
            row("resourceClaimStatuses", CLAIM_NAMES),
            row("extendedResourceClaimStatus", Fields(&[row("resourceClaimName", Str)])),
        ]),
    ),
]);

const LABEL_REQUIREMENT: FieldShape =
    Fields(&[row("key", Str), row("operator", Str), row("values", List(&Str))]);

const BUDGET: FieldShape = Fields(&[
    row("metadata", METADATA),
    row(
        "spec",
        Fields(&[
            row(
                "selector",
                Fields(&[row("matchLabels", StrMap), row("matchExpressions", List(&LABEL_REQUIREMENT))]),
            ),
            row("unhealthyPodEvictionPolicy", Str),
        ]),
    ),
    row(
        "status",
        Fields(&[
            row("disruptionsAllowed", Number),
            row("currentHealthy", Number),
            row("desiredHealthy", Number),
        ]),
    ),
]);

const NAMESPACE: FieldShape = Fields(&[row("metadata", METADATA)]);

/// Checks the types of the fields that impact reads of a Pod, PodDisruptionBudget or Namespace. Ok for other kinds,
/// which are checked by their schema.
pub(super) fn check_field_types_if_no_schema(
    kind: SnapshotKind,
    object: Value<'_>,
) -> Result<(), UnreadableObject> {
    let shape = match kind {
        SnapshotKind::Pod => &POD,
        SnapshotKind::Budget => &BUDGET,
        SnapshotKind::Namespace => &NAMESPACE,
        SnapshotKind::Slice | SnapshotKind::Claim | SnapshotKind::Rule | SnapshotKind::Class => return Ok(()),
    };
    shape
        .check_shape(&Path::ROOT, object)
        .map_err(|(at, detail)| unreadable_object(kind.name(), object, at, &detail))
}

/// Checks that an object has a name and, if its kind needs them, the namespace and the uid that other objects refer to
/// it by.
pub(super) fn check_required_metadata(kind: SnapshotKind, object: Value<'_>) -> Result<(), UnreadableObject> {
    const METADATA: FieldName = FieldName::from_text("metadata");
    let metadata = ObjectMeta::of(object.field(METADATA));
    let namespaced = matches!(kind, SnapshotKind::Claim | SnapshotKind::Pod | SnapshotKind::Budget);
    let wanted = [
        ("name", metadata.name(), true),
        ("namespace", metadata.namespace(), namespaced),
        ("uid", metadata.uid(), kind == SnapshotKind::Pod),
    ];
    match wanted.into_iter().find(|(_, text, needed)| *needed && text.is_empty()) {
        None => Ok(()),
        Some((field, _, _)) => {
            let at = Path::ROOT.field("metadata");
            let detail = "is missing; every object in a cluster has this field";
            Err(unreadable_object(kind.name(), object, at.field(field).owned(), detail))
        }
    }
}

/// The path of a value that has the wrong shape, and what is wrong with it.
type ShapeError = (tollgate_document::field::FieldPath, String);

impl FieldShape {
    /// Checks that a value has this shape; null and absent always have it. The error is the path and what is wrong
    /// there.
    fn check_shape(&self, at: &Path<'_>, value: Value<'_>) -> Result<(), ShapeError> {
        let (expected, article) = self.expected_type();
        if value.is_null_or_absent() {
            return Ok(());
        }
        if value.kind() != expected {
            return Err((at.owned(), format!("is not {article}")));
        }
        match self {
            Str | Number => Ok(()),
            StrMap => value.members().try_for_each(|(key, value)| {
                if value.kind() == Json::String {
                    Ok(())
                } else {
                    Str.check_shape(&at.key(key.text()), value)
                }
            }),
            List(shape) => value
                .items()
                .enumerate()
                .try_for_each(|(index, item)| shape.check_shape(&at.index(index), item)),
            // One pass over the fields that are present: duplicates are all checked, as Go does, and the first error of
            // the document is reported.
            Fields(fields) => value.members().try_for_each(|(key, member)| {
                let key = key.as_key();
                match fields.iter().find(|(name, _)| key.has_name(*name)) {
                    Some((_, Str)) if member.kind() == Json::String => Ok(()),
                    Some((name, shape)) => shape.check_shape(&at.field(name.text), member),
                    None => Ok(()),
                }
            }),
        }
    }

    /// Returns the JSON type of this shape, and its name with an article.
    fn expected_type(&self) -> (Json, &'static str) {
        match self {
            Str => (Json::String, "a string"),
            Number => (Json::Number, "a number"),
            List(_) => (Json::Array, "a list"),
            StrMap | Fields(_) => (Json::Object, "an object"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Snapshot;

    /// Describes an object as the snapshot stores it.
    fn read_into_snapshot(object: &str) -> String {
        let parsed = tollgate_document::doc::parse(object).expect("JSON");
        match Snapshot::new().apply(parsed.root()) {
            Ok(kept) => format!("{kept:?}"),
            Err(unreadable) => unreadable.to_string(),
        }
    }

    fn pod(metadata: &str, rest: &str) -> String {
        read_into_snapshot(&format!(r#"{{"apiVersion":"v1","kind":"Pod","metadata":{metadata},{rest}}}"#))
    }

    #[test]
    fn a_pod_that_cannot_be_read_is_not_one_without_claims() {
        let (whole, claims) =
            (r#"{"name":"p","namespace":"a","uid":"u"}"#, r#""spec":{"resourceClaims":[{"name":"r"}]}"#);
        assert_eq!(pod(whole, claims), "Some(Pod)");
        assert_eq!(pod(whole, r#""spec":null"#), "Some(Pod)");
        for (rest, expected) in [
            (r#""spec":"x""#, "Pod a/p: spec: is not an object"),
            (r#""spec":{"nodeName":5}"#, "Pod a/p: spec.nodeName: is not a string"),
            (r#""spec":{"resourceClaims":{"name":"r"}}"#, "Pod a/p: spec.resourceClaims: is not a list"),
            (r#""spec":{"resourceClaims":["c"]}"#, "Pod a/p: spec.resourceClaims[0]: is not an object"),
            (
                r#""spec":{"resourceClaims":[{"resourceClaimName":5}]}"#,
                "Pod a/p: spec.resourceClaims[0].resourceClaimName: is not a string",
            ),
            (
                r#""status":{"resourceClaimStatuses":"x"}"#,
                "Pod a/p: status.resourceClaimStatuses: is not a list",
            ),
        ] {
            assert_eq!(pod(whole, rest), expected, "{rest}");
        }
        let twice = format!(r#"{claims},"spec":5"#);
        assert_eq!(pod(whole, &twice), "Pod a/p: spec: is not an object", "{twice}");
    }

    #[test]
    fn what_has_no_name_cannot_be_found() {
        let claims = r#""spec":{"resourceClaims":[{"name":"r","resourceClaimName":"c"}]}"#;
        for (metadata, field) in [
            (r#"{"name":"p","namespace":"a"}"#, "a/p: metadata.uid"),
            (r#"{"name":"p","uid":"u"}"#, "p: metadata.namespace"),
            (r#"{"namespace":"a","uid":"u"}"#, "a/: metadata.name"),
            ("null", ": metadata.name"),
        ] {
            let expected = format!("Pod {field}: is missing; every object in a cluster has this field");
            assert_eq!(pod(metadata, claims), expected, "{metadata}");
        }
        assert_eq!(pod(r#"{"name":"p","namespace":"a"}"#, r#""spec":{}"#), "Some(Pod)", "uses no claim");
        for (kind, metadata) in [
            ("ResourceSlice", r#"{"generateName":"s-"}"#),
            ("ResourceClaim", r#"{"name":"c"}"#),
            ("DeviceTaintRule", r#"{"generateName":"r-"}"#),
        ] {
            let object =
                format!(r#"{{"apiVersion":"resource.k8s.io/v1","kind":"{kind}","metadata":{metadata}}}"#);
            assert!(
                read_into_snapshot(&object).contains("is missing"),
                "{kind}: {}",
                read_into_snapshot(&object)
            );
        }
    }

    #[test]
    fn a_version_of_the_group_that_is_not_known_is_no_other_kind() {
        let of = |version: &str, kind: &str| {
            read_into_snapshot(&format!(
                r#"{{"apiVersion":"resource.k8s.io/{version}","kind":"{kind}","metadata":{{"name":"x"}}}}"#
            ))
        };
        assert_eq!(
            of("v2", "ResourceSlice"),
            "ResourceSlice x: apiVersion: resource.k8s.io/v2 is not supported"
        );
        assert_eq!(of("v2", "DeviceClass"), "None");
    }

    #[test]
    fn budgets_are_read_too() {
        let of = |rest: &str| {
            read_into_snapshot(&format!(
                r#"{{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{{"name":"b","namespace":"a"}},{rest}}}"#
            ))
        };
        assert_eq!(of(r#""status":{"disruptionsAllowed":1}"#), "Some(Budget)");
        assert_eq!(
            of(r#""status":{"disruptionsAllowed":"1"}"#),
            "PodDisruptionBudget a/b: status.disruptionsAllowed: is not a number"
        );
        assert_eq!(
            of(r#""spec":{"selector":{"matchLabels":{"app":1}}}"#),
            "PodDisruptionBudget a/b: spec.selector.matchLabels[app]: is not a string"
        );
    }
}
