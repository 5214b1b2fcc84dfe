//! The fields of policy files: data. This file has the rows that several kinds share; each kind has a file of its
//! own.
//!
//! What the fields mean is in `docs/reference/policies.md` and in the files named after the kinds. `policy::kind`
//! lists the kinds.

/// Declares the schema of a policy kind: the common fields and its own spec.
macro_rules! policy_file {
    ($kind:literal, $spec:ident) => {
        Struct {
            name: $kind,
            fields: &[
                super::API_VERSION_FIELD,
                required("kind", Ty::OneOf(&[$kind]), concat!("Always `", $kind, "`")),
                super::META,
                required("spec", Ty::Struct(&$spec), "Specification of the policy"),
                super::STATUS,
            ],
        }
    };
}

/// The spec of a policy: what every kind has, and its own fields.
macro_rules! policy_spec {
    ($name:literal, $match:ident, $($own:expr),* $(,)?) => {
        Struct {
            name: $name,
            fields: &[
                field("match", Ty::Struct(&$match), "Objects to which the policy applies (default: all)"),
                super::EXEMPT,
                super::ACTION,
                super::ENFORCE_FROM,
                super::CONTACT,
                super::DOCS,
                super::FAILURE,
                super::UNAVAILABLE,
                super::CONDITIONS,
                super::VALIDATIONS,
                $($own,)*
            ],
        }
    };
}

mod formats;
pub(super) mod parameters;
pub(super) mod taint;
pub(super) mod taint_rule;
mod test_file;
pub(super) mod toleration;

pub use test_file::TEST_FILE;

use super::schema::{Field, Struct, Ty, field, required};

/// The only supported apiVersion of policy files.
pub(super) const API_VERSION: &str = "tollgate.dev/v1alpha1";

const EFFECTS: Ty = Ty::OneOf(&["None", "NoSchedule", "NoExecute"]);
const LEVELS: &[&str] = &["Deny", "Warn", "Allow"];
const API_VERSION_FIELD: Field =
    required("apiVersion", Ty::OneOf(&[API_VERSION]), "Always `tollgate.dev/v1alpha1`");
const STATUS: Field =
    field("status", Ty::Any, "Status of a custom resource; ignored by Tollgate when it reads policies");
const META: Field = required("metadata", Ty::Struct(&METADATA), "Metadata of the policy");

/// A field that the API server sets on stored resources.
const fn set_by_server(name: &'static str) -> Field {
    field(name, Ty::Any, "Used by the API server; ignored by Tollgate")
}

static METADATA: Struct = Struct {
    name: "Metadata",
    fields: &[
        required("name", Ty::NonEmptyStr, "Name of the policy, shown in every message about it"),
        field("labels", Ty::StrMap, "Labels for other tools; ignored by Tollgate"),
        field("annotations", Ty::StrMap, "Annotations for other tools; ignored by Tollgate"),
        set_by_server("creationTimestamp"),
        set_by_server("deletionGracePeriodSeconds"),
        set_by_server("deletionTimestamp"),
        set_by_server("finalizers"),
        set_by_server("generateName"),
        set_by_server("generation"),
        set_by_server("managedFields"),
        set_by_server("ownerReferences"),
        set_by_server("resourceVersion"),
        set_by_server("uid"),
    ],
};

const EXEMPT: Field = field(
    "exempt",
    Ty::Struct(&EXEMPTION),
    "Users, groups and service accounts that this policy does not restrict",
);
const ACTION: Field =
    field("action", Ty::OneOf(&["Deny", "Warn", "Audit"]), "What happens on a violation (default: `Deny`)");
const ENFORCE_FROM: Field = field(
    "enforceFrom",
    Ty::Time,
    "Time from which `action: Deny` is in force; until then, violations are warnings (default: from the start)",
);

const FAILURE: Field = field(
    "failurePolicy",
    Ty::OneOf(&["Fail", "Ignore"]),
    "What happens if an expression cannot be evaluated: `Fail` treats this as a violation, and `Ignore` treats \
     the expression as true (default: `Fail`)",
);

const UNAVAILABLE: Field = field(
    "onUnavailable",
    Ty::OneOf(&["Allow", "Deny"]),
    "What the API server does with the objects of this policy while Tollgate does not respond; `Deny` sets \
     `failurePolicy: Fail` in the webhook entries for them (default: `Allow`)",
);

const CONTACT: Field = field(
    "contact",
    Ty::NonEmptyStr,
    "Contact for questions about this policy; shown in every message about it",
);
const DOCS: Field = field(
    "docs",
    Ty::NonEmptyStr,
    "URL of a page that explains this policy; shown in every message about it",
);

const CONDITION_TY: Ty = Ty::Struct(&CONDITION);
const CONDITIONS: Field = field(
    "matchConditions",
    Ty::List(&CONDITION_TY),
    "Conditions that must all be true for the policy to apply",
);
const VALIDATION_TY: Ty = Ty::Struct(&VALIDATION);
const VALIDATIONS: Field =
    field("validations", Ty::List(&VALIDATION_TY), "Expressions that must all be true");
const GLOBS: Ty = Ty::NonEmptyList(&Ty::NonEmptyStr);
/// A list of exemptions, which may be empty.
const EXEMPTIONS: Ty = Ty::List(&Ty::NonEmptyStr);
/// The type of fields that contain a glob pattern for namespaces.
const NAMESPACE_GLOB: Ty = Ty::Text(&formats::NAMESPACE_GLOB);
const NAMESPACES: Field =
    field("namespaces", Ty::NonEmptyList(&NAMESPACE_GLOB), "Namespaces to include, as globs (default: all)");
const EXCLUDED: Field =
    field("excludeNamespaces", Ty::List(&NAMESPACE_GLOB), "Namespaces to exclude, as globs");
const SELECTED: Field = field("namespaceSelector", Ty::Struct(&SELECTOR), "Namespaces to include, by label");
const OPERATIONS: Field = field(
    "operations",
    Ty::NonEmptyList(&Ty::OneOf(&["CREATE", "UPDATE", "*"])),
    "Operations to include: `CREATE`, `UPDATE`, or `*` for both (default: both)",
);

const DRIVERS: Field = field("drivers", GLOBS, "Drivers to include, as globs (default: all)");

static SELECTOR: Struct = Struct {
    name: "LabelSelector",
    fields: &[
        field("matchLabels", Ty::StrMap, "Labels and values that the namespace must have"),
        field("matchExpressions", Ty::List(&Ty::Struct(&REQUIREMENT)), "Requirements that must all be met"),
    ],
};

static REQUIREMENT: Struct = Struct {
    name: "LabelSelectorRequirement",
    fields: &[
        required("key", Ty::NonEmptyStr, "Name of the label"),
        required(
            "operator",
            Ty::OneOf(&["In", "NotIn", "Exists", "DoesNotExist"]),
            "Operator that compares the label with the values",
        ),
        field("values", Ty::List(&Ty::Str), "Values for `In` and `NotIn`"),
    ],
};

static EXEMPTION: Struct = Struct {
    name: "Exempt",
    fields: &[
        field("users", EXEMPTIONS, "Users, as globs"),
        field("groups", EXEMPTIONS, "Groups, as globs"),
        field("serviceAccounts", EXEMPTIONS, "Service accounts, as globs that match `namespace/name`"),
    ],
};

static CONDITION: Struct = Struct {
    name: "MatchCondition",
    fields: &[
        field("name", Ty::NonEmptyStr, "Name of the condition, shown in messages"),
        required("expression", Ty::NonEmptyStr, "CEL expression that returns true or false"),
    ],
};

static VALIDATION: Struct = Struct {
    name: "Validation",
    fields: &[
        required("expression", Ty::NonEmptyStr, "CEL expression that must be true"),
        field("message", Ty::NonEmptyStr, "Message that is shown if the expression is false"),
        field(
            "messageExpression",
            Ty::NonEmptyStr,
            "CEL expression that returns the message; replaces `message`",
        ),
    ],
};

const VALUES: Field =
    field("values", Ty::NonEmptyList(&Ty::Str), "Values that the entry matches (default: all)");
const ENTRY_EFFECTS: Field =
    field("effects", Ty::NonEmptyList(&EFFECTS), "Effects that the entry matches (default: all)");
const REASON: Field = field("reason", Ty::NonEmptyStr, "Reason for this entry, shown in messages");
const EXPIRES: Field =
    field("expires", Ty::Time, "Time at which the entry expires; an expired entry is ignored");
const SCHEMA_FILE: Field =
    field("schemaFile", Ty::NonEmptyStr, "File with the JSON Schema, relative to the policy file");
