//! The shape of what impact reads of kinds that have no schema here: pods, budgets, namespaces; and the names by which
//! objects of a state find each other.
//!
//! A pod whose fields cannot be read, or that has lost its uid, looks like a pod that nothing happens to: that is an
//! error and not an answer. Fields that are not listed are not looked at; null and absent are the same, as in Go.

use super::read::{Unreadable, unreadable};
use super::snapshot::Kind;
use crate::api::view::{ObjectMeta, View as _};
use crate::doc::{Kind as Json, Name, Value};
use crate::field::Path;

/// What a value must be.
#[derive(Debug)]
enum Shape {
    Text,
    Number,
    /// An object whose values are all texts.
    Texts,
    List(&'static Shape),
    Fields(&'static [(Name, Shape)]),
}

use Shape::{Fields, List, Number, Text, Texts};

const METADATA: Shape = Fields(&[
    (Name::of("name"), Text),
    (Name::of("namespace"), Text),
    (Name::of("uid"), Text),
    (Name::of("deletionTimestamp"), Text),
    (Name::of("labels"), Texts),
    (Name::of("ownerReferences"), List(&Fields(&[]))),
]);

const CLAIM_NAMES: Shape = List(&Fields(&[(Name::of("name"), Text), (Name::of("resourceClaimName"), Text)]));

const POD: Shape = Fields(&[
    (Name::of("metadata"), METADATA),
    (
        Name::of("spec"),
        Fields(&[
            (Name::of("nodeName"), Text),
            (Name::of("resourceClaims"), CLAIM_NAMES),
            (Name::of("schedulingGroup"), Fields(&[(Name::of("podGroupName"), Text)])),
        ]),
    ),
    (
        Name::of("status"),
        Fields(&[
            (Name::of("resourceClaimStatuses"), CLAIM_NAMES),
            (Name::of("extendedResourceClaimStatus"), Fields(&[(Name::of("resourceClaimName"), Text)])),
        ]),
    ),
]);

const EXPRESSION: Shape =
    Fields(&[(Name::of("key"), Text), (Name::of("operator"), Text), (Name::of("values"), List(&Text))]);

const BUDGET: Shape = Fields(&[
    (Name::of("metadata"), METADATA),
    (
        Name::of("spec"),
        Fields(&[(
            Name::of("selector"),
            Fields(&[(Name::of("matchLabels"), Texts), (Name::of("matchExpressions"), List(&EXPRESSION))]),
        )]),
    ),
    (Name::of("status"), Fields(&[(Name::of("disruptionsAllowed"), Number)])),
]);

const NAMESPACE: Shape = Fields(&[(Name::of("metadata"), METADATA)]);

/// Holds an object of another group against what is read of it.
pub(super) fn check(kind: Kind, object: Value<'_>) -> Result<(), Unreadable> {
    let shape = match kind {
        Kind::Pod => &POD,
        Kind::Budget => &BUDGET,
        Kind::Namespace => &NAMESPACE,
        Kind::Slice | Kind::Claim | Kind::Rule => return Ok(()),
    };
    shape.fits(&Path::ROOT, object).map_err(|(at, detail)| unreadable(kind.name(), object, at, &detail))
}

/// Says what is missing of the names by which a stored object is found; every one that a cluster printed has them.
pub(super) fn named(kind: Kind, object: Value<'_>) -> Result<(), Unreadable> {
    const METADATA: Name = Name::of("metadata");
    let metadata = ObjectMeta::of(object.field(METADATA));
    let namespaced = matches!(kind, Kind::Claim | Kind::Pod | Kind::Budget);
    let wanted = [
        ("name", metadata.name(), true),
        ("namespace", metadata.namespace(), namespaced),
        ("uid", metadata.uid(), kind == Kind::Pod),
    ];
    match wanted.into_iter().find(|(_, text, needed)| *needed && text.is_empty()) {
        None => Ok(()),
        Some((field, _, _)) => {
            let at = Path::ROOT.field("metadata");
            let detail = "is missing: every object that a cluster prints has it";
            Err(unreadable(kind.name(), object, at.field(field).owned(), detail))
        }
    }
}

type Misfit = (crate::field::FieldPath, String);

impl Shape {
    fn fits(&self, at: &Path<'_>, value: Value<'_>) -> Result<(), Misfit> {
        let (wanted, article) = self.wanted();
        if value.is_null() {
            return Ok(());
        }
        if value.kind() != wanted {
            return Err((at.owned(), format!("is not {article}")));
        }
        match self {
            Text | Number => Ok(()),
            Texts => value.members().try_for_each(|(key, value)| {
                if value.kind() == Json::String { Ok(()) } else { Text.fits(&at.key(key.text()), value) }
            }),
            List(shape) => {
                value.items().enumerate().try_for_each(|(index, item)| shape.fits(&at.index(index), item))
            }
            // One walk over what is there, instead of a search for everything that might be: of a field that is there
            // twice both must fit, as for Go, and the first fault of the document is the one that is told.
            Fields(fields) => value.members().try_for_each(|(key, member)| {
                let key = key.as_key();
                match fields.iter().find(|(name, _)| key.is(*name)) {
                    Some((_, Text)) if member.kind() == Json::String => Ok(()),
                    Some((name, shape)) => shape.fits(&at.field(name.text), member),
                    None => Ok(()),
                }
            }),
        }
    }

    fn wanted(&self) -> (Json, &'static str) {
        match self {
            Text => (Json::String, "a text"),
            Number => (Json::Number, "a number"),
            List(_) => (Json::Array, "a list"),
            Texts | Fields(_) => (Json::Object, "an object"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Snapshot;

    /// What the snapshot says of an object.
    fn said(object: &str) -> String {
        let parsed = crate::doc::parse(object).expect("JSON");
        match Snapshot::new().apply(parsed.root()) {
            Ok(kept) => format!("{kept:?}"),
            Err(unreadable) => unreadable.to_string(),
        }
    }

    fn pod(metadata: &str, rest: &str) -> String {
        said(&format!(r#"{{"apiVersion":"v1","kind":"Pod","metadata":{metadata},{rest}}}"#))
    }

    #[test]
    fn a_pod_that_cannot_be_read_is_not_one_without_claims() {
        let (whole, claims) =
            (r#"{"name":"p","namespace":"a","uid":"u"}"#, r#""spec":{"resourceClaims":[{"name":"r"}]}"#);
        assert_eq!(pod(whole, claims), "Some(Pod)");
        assert_eq!(pod(whole, r#""spec":null"#), "Some(Pod)");
        for (rest, expected) in [
            (r#""spec":"x""#, "Pod a/p: spec: is not an object"),
            (r#""spec":{"nodeName":5}"#, "Pod a/p: spec.nodeName: is not a text"),
            (r#""spec":{"resourceClaims":{"name":"r"}}"#, "Pod a/p: spec.resourceClaims: is not a list"),
            (r#""spec":{"resourceClaims":["c"]}"#, "Pod a/p: spec.resourceClaims[0]: is not an object"),
            (
                r#""spec":{"resourceClaims":[{"resourceClaimName":5}]}"#,
                "Pod a/p: spec.resourceClaims[0].resourceClaimName: is not a text",
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
            let expected = format!("Pod {field}: is missing: every object that a cluster prints has it");
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
            assert!(said(&object).contains("is missing"), "{kind}: {}", said(&object));
        }
    }

    #[test]
    fn a_version_of_the_group_that_is_not_known_is_no_other_kind() {
        let of = |version: &str, kind: &str| {
            said(&format!(
                r#"{{"apiVersion":"resource.k8s.io/{version}","kind":"{kind}","metadata":{{"name":"x"}}}}"#
            ))
        };
        assert_eq!(
            of("v2", "ResourceSlice"),
            "ResourceSlice x: apiVersion: resource.k8s.io/v2 is not known here"
        );
        assert_eq!(of("v2", "DeviceClass"), "None");
    }

    #[test]
    fn budgets_are_read_too() {
        let of = |rest: &str| {
            said(&format!(
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
            "PodDisruptionBudget a/b: spec.selector.matchLabels[app]: is not a text"
        );
    }
}
