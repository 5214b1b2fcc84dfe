//! The schemas of policy files: their fields, with types and descriptions. This file has the parts that several kinds
//! share; each kind has a file of its own.
//!
//! What the fields mean is in `docs/reference/policies.md` and in the files named after the kinds. `policy::kind`
//! lists the kinds.

/// Declares the schema of a policy kind: the common fields and its own spec.
macro_rules! policy_file {
    ($kind:literal, $spec:ident) => {
        ObjectSchema {
            name: $kind,
            fields: &[
                required_field(
                    "apiVersion",
                    FieldType::OneOf(&[super::API_VERSION]),
                    "Always `tollgate.dev/v1alpha1`",
                ),
                required_field("kind", FieldType::OneOf(&[$kind]), concat!("Always `", $kind, "`")),
                required_field("metadata", FieldType::Object(&super::METADATA), "Metadata of the policy"),
                required_field("spec", FieldType::Object(&$spec), "Specification of the policy"),
                optional_field(
                    "status",
                    FieldType::Any,
                    "Status of a custom resource; ignored by Tollgate when it reads policies",
                ),
            ],
        }
    };
}

/// The spec of a policy: what every kind has, and its own fields.
macro_rules! policy_spec {
    ($name:literal, $match:ident, $($own:expr),* $(,)?) => {
        ObjectSchema {
            name: $name,
            fields: &[
                optional_field(
                    "match",
                    FieldType::Object(&$match),
                    "Objects to which the policy applies (default: all)",
                ),
                optional_field(
                    "exempt",
                    FieldType::Object(&super::EXEMPTION),
                    "Users, groups and service accounts that this policy does not restrict",
                ),
                optional_field(
                    "action",
                    FieldType::OneOf(&["Deny", "Warn", "Audit"]),
                    "What happens on a violation (default: `Deny`)",
                ),
                optional_field(
                    "enforceFrom",
                    FieldType::Time,
                    "Time from which `action: Deny` is in force; until then, violations are warnings (default: from the start)",
                ),
                optional_field(
                    "contact",
                    FieldType::NonEmptyStr,
                    "Contact for questions about this policy; shown in every message about it",
                ),
                optional_field(
                    "docs",
                    FieldType::NonEmptyStr,
                    "URL of a page that explains this policy; shown in every message about it",
                ),
                optional_field(
                    "failurePolicy",
                    FieldType::OneOf(&["Fail", "Ignore"]),
                    "What happens if an expression cannot be evaluated: `Fail` treats this as a violation, and `Ignore` treats \
                     the expression as true (default: `Fail`)",
                ),
                optional_field(
                    "onUnavailable",
                    FieldType::OneOf(&["Allow", "Deny"]),
                    "What the API server does with the objects of this policy while Tollgate does not respond; `Deny` sets \
                     `failurePolicy: Fail` in the webhook entries for them (default: `Allow`)",
                ),
                optional_field(
                    "matchConditions",
                    FieldType::List(&FieldType::Object(&super::MATCH_CONDITION)),
                    "Conditions that must all be true for the policy to apply",
                ),
                optional_field(
                    "validations",
                    FieldType::List(&FieldType::Object(&super::VALIDATION)),
                    "Expressions that must all be true",
                ),
                $($own,)*
            ],
        }
    };
}

/// The objects to which the policies of a kind can apply: their kinds, and the drivers if the policies can select them.
macro_rules! policy_match {
    ($name:literal, $resources:expr, $doc:literal $(, $drivers:expr)?) => {
        ObjectSchema {
            name: $name,
            fields: &[
                optional_field(
                    "namespaces",
                    FieldType::NonEmptyList(&super::NAMESPACE_GLOB),
                    "Namespaces to include, as globs (default: all)",
                ),
                optional_field(
                    "excludeNamespaces",
                    FieldType::List(&super::NAMESPACE_GLOB),
                    "Namespaces to exclude, as globs",
                ),
                optional_field(
                    "namespaceSelector",
                    FieldType::Object(&super::LABEL_SELECTOR),
                    "Namespaces to include, by label",
                ),
                $($drivers,)?
                optional_field(
                    "operations",
                    FieldType::NonEmptyList(&FieldType::OneOf(&["CREATE", "UPDATE", "*"])),
                    "Operations to include: `CREATE`, `UPDATE`, or `*` for both (default: both)",
                ),
                optional_field("resources", FieldType::NonEmptyList(&FieldType::OneOf($resources)), $doc),
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

use super::schema::{FieldSchema, FieldType, ObjectSchema, optional_field, required_field};

/// The only supported apiVersion of policy files.
pub(super) const API_VERSION: &str = "tollgate.dev/v1alpha1";

const EFFECT_TYPE: FieldType = FieldType::OneOf(&["None", "NoSchedule", "NoExecute"]);
const LEVELS: &[&str] = &["Deny", "Warn", "Allow"];

/// A field that the API server sets on stored resources.
const fn server_set_field(name: &'static str) -> FieldSchema {
    optional_field(name, FieldType::Any, "Used by the API server; ignored by Tollgate")
}

static METADATA: ObjectSchema = ObjectSchema {
    name: "Metadata",
    fields: &[
        required_field("name", FieldType::NonEmptyStr, "Name of the policy, shown in every message about it"),
        optional_field("labels", FieldType::StrMap, "Labels for other tools; ignored by Tollgate"),
        optional_field("annotations", FieldType::StrMap, "Annotations for other tools; ignored by Tollgate"),
        server_set_field("creationTimestamp"),
        server_set_field("deletionGracePeriodSeconds"),
        server_set_field("deletionTimestamp"),
        server_set_field("finalizers"),
        server_set_field("generateName"),
        server_set_field("generation"),
        server_set_field("managedFields"),
        server_set_field("ownerReferences"),
        server_set_field("resourceVersion"),
        server_set_field("uid"),
    ],
};

const GLOB_LIST: FieldType = FieldType::NonEmptyList(&FieldType::NonEmptyStr);
/// A list of exemptions, which may be empty.
const EXEMPTION_LIST: FieldType = FieldType::List(&FieldType::NonEmptyStr);
/// The type of fields that contain a glob pattern for namespaces.
const NAMESPACE_GLOB: FieldType = FieldType::Text(&formats::NAMESPACE_GLOB);

const DRIVERS: FieldSchema =
    optional_field("drivers", GLOB_LIST, "Drivers to include, as globs (default: all)");

static LABEL_SELECTOR: ObjectSchema = ObjectSchema {
    name: "LabelSelector",
    fields: &[
        optional_field("matchLabels", FieldType::StrMap, "Labels and values that the namespace must have"),
        optional_field(
            "matchExpressions",
            FieldType::List(&FieldType::Object(&LABEL_REQUIREMENT)),
            "Requirements that must all be met",
        ),
    ],
};

static LABEL_REQUIREMENT: ObjectSchema = ObjectSchema {
    name: "LabelSelectorRequirement",
    fields: &[
        required_field("key", FieldType::NonEmptyStr, "Name of the label"),
        required_field(
            "operator",
            FieldType::OneOf(&["In", "NotIn", "Exists", "DoesNotExist"]),
            "Operator that compares the label with the values",
        ),
        optional_field("values", FieldType::List(&FieldType::Str), "Values for `In` and `NotIn`"),
    ],
};

static EXEMPTION: ObjectSchema = ObjectSchema {
    name: "Exempt",
    fields: &[
        optional_field("users", EXEMPTION_LIST, "Users, as globs"),
        optional_field("groups", EXEMPTION_LIST, "Groups, as globs"),
        optional_field(
            "serviceAccounts",
            EXEMPTION_LIST,
            "Service accounts, as globs that match `namespace/name`",
        ),
    ],
};

static MATCH_CONDITION: ObjectSchema = ObjectSchema {
    name: "MatchCondition",
    fields: &[
        optional_field("name", FieldType::NonEmptyStr, "Name of the condition, shown in messages"),
        required_field("expression", FieldType::NonEmptyStr, "CEL expression that returns true or false"),
    ],
};

static VALIDATION: ObjectSchema = ObjectSchema {
    name: "Validation",
    fields: &[
        required_field("expression", FieldType::NonEmptyStr, "CEL expression that must be true"),
        optional_field("message", FieldType::NonEmptyStr, "Message that is shown if the expression is false"),
        optional_field(
            "messageExpression",
            FieldType::NonEmptyStr,
            "CEL expression that returns the message; replaces `message`",
        ),
    ],
};

const ENTRY_VALUES: FieldSchema = optional_field(
    "values",
    FieldType::NonEmptyList(&FieldType::Str),
    "Values that the entry matches (default: all)",
);
const ENTRY_EFFECTS: FieldSchema = optional_field(
    "effects",
    FieldType::NonEmptyList(&EFFECT_TYPE),
    "Effects that the entry matches (default: all)",
);
const ENTRY_REASON: FieldSchema =
    optional_field("reason", FieldType::NonEmptyStr, "Reason for this entry, shown in messages");
const ENTRY_EXPIRES: FieldSchema = optional_field(
    "expires",
    FieldType::Time,
    "Time at which the entry expires; an expired entry is ignored",
);
const SCHEMA_FILE: FieldSchema = optional_field(
    "schemaFile",
    FieldType::NonEmptyStr,
    "File with the JSON Schema, relative to the policy file",
);
