//! Fields of `*.test.yaml`, the files of `tollgate test`.

use crate::policy::schema::{Struct, Ty, field, required};

pub(crate) static TEST_FILE: Struct = Struct {
    name: "TestFile",
    fields: &[
        field(
            "policies",
            Ty::List(&Ty::NonEmptyStr),
            "Policy files or folders beside this file; its namesake if left out",
        ),
        field(
            "namespaces",
            Ty::List(&Ty::Any),
            "Namespace objects; nothing is known of namespaces if left out",
        ),
        field(
            "state",
            Ty::List(&Ty::Any),
            "ResourceSlices, ResourceClaims, Pods and more: the state of the cluster; not known if left out",
        ),
        field("kubernetes", Ty::NonEmptyStr, "The profile; kep-5055 unless said otherwise"),
        field("now", Ty::Time, "The moment; 2026-01-01T00:00:00Z unless said otherwise"),
        required("tests", Ty::List(&Ty::Struct(&TEST_CASE)), "The cases"),
    ],
};

static TEST_CASE: Struct = Struct {
    name: "TestCase",
    fields: &[
        required("name", Ty::NonEmptyStr, "What the case shows"),
        field("object", Ty::Any, "The object"),
        field("oldObject", Ty::Any, "The stored object, for an update"),
        field("user", Ty::Any, "userInfo: username and groups"),
        field("review", Ty::Any, "An AdmissionReview, instead of object, oldObject and user"),
        required("expect", Ty::OneOf(&["allow", "warn", "audit", "deny"]), "The worst that is said"),
        field("rules", Ty::List(&Ty::NonEmptyStr), "Rules that must speak"),
        field("message", Ty::NonEmptyStr, "Part of a message, as a glob"),
        field("patch", Ty::List(&Ty::Any), "What the mutating side adds, as a JSON Patch"),
    ],
};
