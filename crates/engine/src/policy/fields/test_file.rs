//! Fields of `*.test.yaml`, the files of `tollgate test`.

use crate::policy::schema::{FieldType, ObjectSchema, optional_field, required_field};

pub static TEST_FILE: ObjectSchema = ObjectSchema {
    name: "TestFile",
    fields: &[
        optional_field(
            "policies",
            FieldType::List(&FieldType::NonEmptyStr),
            "Policy files or folders, relative to this file (default: the file with the same name, but without `.test`)",
        ),
        optional_field(
            "namespaces",
            FieldType::List(&FieldType::AnyObject),
            "Namespace objects (default: none, so namespace labels are not available)",
        ),
        optional_field(
            "state",
            FieldType::List(&FieldType::AnyObject),
            "Objects in the cluster, such as ResourceSlices, ResourceClaims and Pods (default: not available)",
        ),
        optional_field(
            "kubernetes",
            FieldType::Word,
            "Release or draft to check against (default: `kep-5055`)",
        ),
        optional_field("now", FieldType::Time, "Current time in the tests (default: 2026-01-01T00:00:00Z)"),
        required_field("tests", FieldType::List(&FieldType::Object(&TEST_CASE)), "Test cases"),
    ],
};

static USER: ObjectSchema = ObjectSchema {
    name: "UserInfo",
    fields: &[
        optional_field("username", FieldType::Str, "Name of the user"),
        optional_field("uid", FieldType::Str, "UID of the user"),
        optional_field("groups", FieldType::List(&FieldType::NonEmptyStr), "Groups of the user"),
        optional_field(
            "extra",
            FieldType::AnyObject,
            "Other information from the authenticator, as lists by name",
        ),
    ],
};

static TEST_CASE: ObjectSchema = ObjectSchema {
    name: "TestCase",
    fields: &[
        required_field("name", FieldType::NonEmptyStr, "Name of the test case"),
        optional_field("object", FieldType::AnyObject, "Object to check; required without `review`"),
        optional_field("oldObject", FieldType::AnyObject, "Stored object, for an update"),
        optional_field("user", FieldType::Object(&USER), "`userInfo` of the request (default: nobody)"),
        optional_field("now", FieldType::Time, "Current time in this test case (default: that of the file)"),
        optional_field(
            "review",
            FieldType::AnyObject,
            "AdmissionReview that replaces `object`, `oldObject` and `user`",
        ),
        required_field(
            "expect",
            FieldType::OneOf(&["allow", "warn", "audit", "deny"]),
            "Expected outcome, which is the most severe level of all findings",
        ),
        optional_field("rules", FieldType::List(&FieldType::NonEmptyStr), "Rules that must report a finding"),
        optional_field("message", FieldType::NonEmptyStr, "Glob that must match part of a message"),
        optional_field(
            "patch",
            FieldType::List(&FieldType::Any),
            "Expected JSON Patch from the mutating webhook",
        ),
    ],
};
