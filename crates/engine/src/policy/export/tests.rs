//! The export itself is tested in `tests/engine/export.rs`; here is what its parts rely on.

use super::super::kind::PolicyKind;
use super::super::schema::{Struct, Ty};
use super::omission::{OmissionReason, Treatment, treatment};

fn spec(kind: PolicyKind) -> &'static Struct {
    let row = kind.schema().fields.iter().find(|field| field.name == "spec").unwrap();
    let Ty::Struct(spec) = &row.ty else { panic!("{} has no spec", kind.name()) };
    spec
}

/// A new field must not be exported as if it did nothing.
#[test]
fn every_field_is_exported_or_listed() {
    for kind in PolicyKind::ALL {
        for field in spec(kind).fields {
            let unknown =
                matches!(treatment(kind, field.name), Treatment::LeftOut(OmissionReason::UnknownField, _));
            assert!(
                !unknown,
                "{}: say in policy/export/omission.rs what happens to {}",
                kind.name(),
                field.name
            );
        }
        let unknown = treatment(kind, "aFieldOfALaterRelease");
        assert!(matches!(unknown, Treatment::LeftOut(OmissionReason::UnknownField, _)));
    }
}
