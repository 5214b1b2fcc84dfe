//! Fields of `*.test.yaml`, the files of `tollgate test`.

use crate::policy::schema::{Struct, Ty, field, required};

pub static TEST_FILE: Struct = Struct {
    name: "TestFile",
    fields: &[
        field(
            "policies",
            Ty::List(&Ty::NonEmptyStr),
            "Policy files or folders, relative to this file (default: the file with the same name, but without `.test`)",
        ),
        field(
            "namespaces",
            Ty::List(&Ty::Any),
            "Namespace objects (default: none, so namespace labels are not available)",
        ),
        field(
            "state",
            Ty::List(&Ty::Any),
            "Objects in the cluster, such as ResourceSlices, ResourceClaims and Pods (default: not available)",
        ),
        field("kubernetes", Ty::NonEmptyStr, "Release or draft to check against (default: `kep-5055`)"),
        field("now", Ty::Time, "Current time in the tests (default: 2026-01-01T00:00:00Z)"),
        required("tests", Ty::List(&Ty::Struct(&TEST_CASE)), "Test cases"),
    ],
};

static TEST_CASE: Struct = Struct {
    name: "TestCase",
    fields: &[
        required("name", Ty::NonEmptyStr, "Name of the test case"),
        field("object", Ty::Any, "Object to check"),
        field("oldObject", Ty::Any, "Stored object, for an update"),
        field("user", Ty::Any, "`userInfo` of the request, with `username` and `groups`"),
        field("now", Ty::Time, "Current time in this test case (default: that of the file)"),
        field("review", Ty::Any, "AdmissionReview that replaces `object`, `oldObject` and `user`"),
        required(
            "expect",
            Ty::OneOf(&["allow", "warn", "audit", "deny"]),
            "Expected outcome, which is the most severe level of all findings",
        ),
        field("rules", Ty::List(&Ty::NonEmptyStr), "Rules that must report a finding"),
        field("message", Ty::NonEmptyStr, "Glob that must match part of a message"),
        field("patch", Ty::List(&Ty::Any), "Expected JSON Patch from the mutating webhook"),
    ],
};
