//! The fields of policy files: data. This file has the rows that several kinds share; each kind has a file of its own.
//!
//! What the fields mean is in `docs/reference/policies.md` and in the files named after the kinds. `policy::kind` lists the kinds.

/// A policy file of that kind: what every kind has, and its own spec.
macro_rules! policy_file {
    ($kind:literal, $spec:ident) => {
        Struct {
            name: $kind,
            fields: &[
                API,
                required("kind", Ty::OneOf(&[$kind]), $kind),
                META,
                required("spec", Ty::Struct(&$spec), "What it says"),
            ],
        }
    };
}

pub(super) mod parameters;
pub(super) mod taint;
pub(super) mod taint_rule;
mod test_file;
pub(super) mod toleration;

pub(crate) use test_file::TEST_FILE;

use super::schema::{Field, Struct, Ty, field, required};

/// The only version of policy files.
pub(crate) const API_VERSION: &str = "tollgate.dev/v1alpha1";

const EFFECTS: Ty = Ty::OneOf(&["None", "NoSchedule", "NoExecute"]);
const LEVELS: &[&str] = &["Deny", "Warn", "Allow"];
const API: Field = required("apiVersion", Ty::OneOf(&[API_VERSION]), "Always tollgate.dev/v1alpha1");
const META: Field = required("metadata", Ty::Struct(&METADATA), "The policy's name");

static METADATA: Struct = Struct {
    name: "Metadata",
    fields: &[
        required("name", Ty::NonEmptyStr, "The policy's name, told in every refusal"),
        field("labels", Ty::StrMap, "For other tools; not read"),
        field("annotations", Ty::StrMap, "For other tools; not read"),
    ],
};

const EXEMPT: Field = field("exempt", Ty::Struct(&EXEMPTION), "Who is not bound by this policy");
const ACTION: Field = field(
    "action",
    Ty::OneOf(&["Deny", "Warn", "Audit"]),
    "What a violation does; Deny unless said otherwise",
);

const FAILURE: Field = field(
    "failurePolicy",
    Ty::OneOf(&["Fail", "Ignore"]),
    "What an expression that fails does: Fail denies, Ignore counts as true; Fail unless said otherwise",
);

const CONTACT: Field =
    field("contact", Ty::NonEmptyStr, "Whom to ask about this policy; shown in every message about it");
const DOCS: Field =
    field("docs", Ty::NonEmptyStr, "Where this policy is explained, a URL; shown in every message about it");

const CONDITION_TY: Ty = Ty::Struct(&CONDITION);
const CONDITIONS: Field =
    field("matchConditions", Ty::List(&CONDITION_TY), "The policy applies where all are true");
const VALIDATION_TY: Ty = Ty::Struct(&VALIDATION);
const VALIDATIONS: Field = field("validations", Ty::List(&VALIDATION_TY), "Expressions that must be true");
const GLOBS: Ty = Ty::List(&Ty::NonEmptyStr);
const NAMESPACES: Field = field("namespaces", GLOBS, "Namespaces, as globs; all if left out");
const EXCLUDED: Field = field("excludeNamespaces", GLOBS, "Namespaces it does not apply to, as globs");
const SELECTED: Field = field("namespaceSelector", Ty::Struct(&SELECTOR), "Namespaces by their labels");
const OPERATIONS: Field = field(
    "operations",
    Ty::List(&Ty::OneOf(&["CREATE", "UPDATE", "*"])),
    "What is done to the object; both if left out",
);

const DRIVERS: Field = field("drivers", GLOBS, "Drivers, as globs; all if left out");

static SELECTOR: Struct = Struct {
    name: "LabelSelector",
    fields: &[
        field("matchLabels", Ty::StrMap, "Labels with these values"),
        field("matchExpressions", Ty::List(&Ty::Struct(&REQUIREMENT)), "All of these"),
    ],
};

static REQUIREMENT: Struct = Struct {
    name: "LabelSelectorRequirement",
    fields: &[
        required("key", Ty::NonEmptyStr, "The label"),
        required("operator", Ty::OneOf(&["In", "NotIn", "Exists", "DoesNotExist"]), "How it is compared"),
        field("values", Ty::List(&Ty::Str), "For In and NotIn"),
    ],
};

static EXEMPTION: Struct = Struct {
    name: "Exempt",
    fields: &[
        field("users", GLOBS, "User names, as globs"),
        field("groups", GLOBS, "Groups, as globs"),
        field("serviceAccounts", GLOBS, "namespace/name, as globs"),
    ],
};

static CONDITION: Struct = Struct {
    name: "MatchCondition",
    fields: &[
        field("name", Ty::NonEmptyStr, "For messages"),
        required("expression", Ty::NonEmptyStr, "CEL; true or false"),
    ],
};

static VALIDATION: Struct = Struct {
    name: "Validation",
    fields: &[
        required("expression", Ty::NonEmptyStr, "CEL; must be true"),
        field("message", Ty::NonEmptyStr, "What to say if it is not"),
        field("messageExpression", Ty::NonEmptyStr, "CEL; a string to say instead of message"),
    ],
};

const VALUES: Field = field("values", Ty::List(&Ty::Str), "Values; every value if left out");
const ENTRY_EFFECTS: Field = field("effects", Ty::List(&EFFECTS), "Effects; every effect if left out");
const REASON: Field = field("reason", Ty::NonEmptyStr, "Why; told where it helps");
const EXPIRES: Field = field("expires", Ty::Time, "From then on the entry does not count");
const SCHEMA: Field = field("schema", Ty::Schema, "A JSON Schema");
const SCHEMA_FILE: Field =
    field("schemaFile", Ty::NonEmptyStr, "A file with a JSON Schema, beside this file");
