//! Compares the field and type names of resource.k8s.io with Go's, because error messages contain them.
//!
//! The table was read from the types of 1.36 and 1.37 by reflection. Every field that either side has is compared.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot read its data has failed")]

use std::collections::BTreeSet;

use tollgate_api::fields;
use tollgate_api::profile::{ApiKind, Availability, Profile, Version};
use tollgate_api::schema::{FieldType, StructSchema};

/// Struct, field and type.
type Row = (String, String, String);

const KINDS: [ApiKind; 5] = [
    ApiKind::ResourceSlice,
    ApiKind::ResourceClaim,
    ApiKind::ResourceClaimTemplate,
    ApiKind::DeviceTaintRule,
    ApiKind::DeviceClass,
];

/// The fields of the Go types, except types with their own decoder.
fn go_fields(release: &str, version: Version) -> BTreeSet<Row> {
    let table = include_str!("../conformance/go-types.tsv");
    let rows = table.lines().filter(|line| !line.starts_with('#')).map(|line| line.split('\t'));
    rows.filter_map(|mut columns| {
        let mut next = || columns.next().expect("five columns");
        let (at, owner, field, ty, releases) = (next(), next(), next(), next(), next());
        let is_asked = at == version.name() && releases.split(',').any(|one| one == release);
        is_asked.then(|| (owner.to_owned(), field.replace("TypeMeta.", ""), ty.to_owned()))
    })
    .collect()
}

/// The fields in Tollgate's schema.
fn tollgate_fields(kinds: &[ApiKind], version: Version, available: Availability) -> BTreeSet<Row> {
    let mut rows = BTreeSet::new();
    for kind in kinds {
        visit(fields::root_struct(*kind, version), version, available, &mut rows);
    }
    rows
}

fn visit(ty: &'static StructSchema, version: Version, available: Availability, rows: &mut BTreeSet<Row>) {
    for field in ty.fields.iter().filter(|field| field.known.overlaps(available)) {
        let name = field.embedded.map_or_else(String::new, |embedded| format!("{embedded}."));
        let go = match field.ty {
            // A time is decoded as a string, and an error says so; these are any JSON.
            FieldType::Time => "v1.Time".to_owned(),
            FieldType::Raw if field.json == "fieldsV1" => "v1.FieldsV1".to_owned(),
            ty => ty.go_name(version),
        };
        rows.insert((ty.name.to_owned(), format!("{name}{}", field.json), go));
        if let Some(inner) = field.ty.innermost_struct() {
            visit(inner, version, available, rows);
        }
    }
}

#[test]
fn structs_fields_and_types_have_the_names_that_go_prints() {
    let mut compared = 0;
    for release in ["1.36", "1.37"] {
        let profile = Profile::named(release).expect("a release");
        for version in [Version::V1alpha3, Version::V1beta1, Version::V1beta2, Version::V1] {
            let expected = go_fields(release, version);
            let has = |kind: &ApiKind| expected.iter().any(|(owner, ..)| owner == kind.name());
            let kinds: Vec<ApiKind> = KINDS.into_iter().filter(has).collect();
            let found = tollgate_fields(&kinds, version, profile.fields);
            let missing: Vec<_> = expected.difference(&found).collect();
            let invented: Vec<_> = found.difference(&expected).collect();
            assert!(
                missing.is_empty() && invented.is_empty(),
                "{release} {version:?}: Go has {missing:#?}, we have {invented:#?}"
            );
            compared += found.len();
        }
    }
    assert!(compared > 1_000, "{compared}");
}
