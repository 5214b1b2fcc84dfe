//! The fields of policy files: data. What they mean is in `docs/policies.md` and in the files named after the kinds.

use super::schema::{Field, Struct, Ty, field, required};

/// The only version of policy files.
pub const API_VERSION: &str = "tollgate.dev/v1alpha1";

const EFFECTS: Ty = Ty::Word(&["None", "NoSchedule", "NoExecute"]);
const LEVELS: &[&str] = &["Deny", "Warn", "Allow"];

const API: Field = required("apiVersion", Ty::Word(&[API_VERSION]), "Always tollgate.dev/v1alpha1");
const META: Field = required("metadata", Ty::Struct(&METADATA), "The policy's name");

static METADATA: Struct = Struct {
    name: "Metadata",
    fields: &[
        required("name", Ty::Text, "The policy's name, told in every refusal"),
        field("labels", Ty::Strings, "For other tools; not read"),
        field("annotations", Ty::Strings, "For other tools; not read"),
    ],
};

/// A file of tests.
pub static TEST_FILE: Struct = Struct {
    name: "TestFile",
    fields: &[
        field(
            "policies",
            Ty::List(&Ty::Text),
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
        field("kubernetes", Ty::Text, "The profile; kep-5055 unless said otherwise"),
        field("now", Ty::Time, "The moment; 2026-01-01T00:00:00Z unless said otherwise"),
        required("tests", Ty::List(&Ty::Struct(&TEST_CASE)), "The cases"),
    ],
};

static TEST_CASE: Struct = Struct {
    name: "TestCase",
    fields: &[
        required("name", Ty::Text, "What the case shows"),
        field("object", Ty::Any, "The object"),
        field("oldObject", Ty::Any, "The stored object, for an update"),
        field("user", Ty::Any, "userInfo: username and groups"),
        field("review", Ty::Any, "An AdmissionReview, instead of object, oldObject and user"),
        required("expect", Ty::Word(&["allow", "warn", "audit", "deny"]), "The worst that is said"),
        field("rules", Ty::List(&Ty::Text), "Rules that must speak"),
        field("message", Ty::Text, "Part of a message, as a glob"),
        field("patch", Ty::List(&Ty::Any), "What the mutating side adds, as a JSON Patch"),
    ],
};

/// Every kind of policy.
pub static KINDS: [&Struct; 4] = [&TOLERATION_POLICY, &TAINT_POLICY, &TAINT_RULE_POLICY, &PARAMETER_POLICY];

/// TolerationPolicy.
pub(super) static TOLERATION_POLICY: Struct = Struct {
    name: "TolerationPolicy",
    fields: &[
        API,
        required("kind", Ty::Word(&["TolerationPolicy"]), "TolerationPolicy"),
        META,
        required("spec", Ty::Struct(&TOLERATION_SPEC), "What it says"),
    ],
};

/// TaintPolicy.
pub(super) static TAINT_POLICY: Struct = Struct {
    name: "TaintPolicy",
    fields: &[
        API,
        required("kind", Ty::Word(&["TaintPolicy"]), "TaintPolicy"),
        META,
        required("spec", Ty::Struct(&TAINT_SPEC), "What it says"),
    ],
};

/// TaintRulePolicy.
pub(super) static TAINT_RULE_POLICY: Struct = Struct {
    name: "TaintRulePolicy",
    fields: &[
        API,
        required("kind", Ty::Word(&["TaintRulePolicy"]), "TaintRulePolicy"),
        META,
        required("spec", Ty::Struct(&TAINT_RULE_SPEC), "What it says"),
    ],
};

/// ParameterPolicy.
pub(super) static PARAMETER_POLICY: Struct = Struct {
    name: "ParameterPolicy",
    fields: &[
        API,
        required("kind", Ty::Word(&["ParameterPolicy"]), "ParameterPolicy"),
        META,
        required("spec", Ty::Struct(&PARAMETER_SPEC), "What it says"),
    ],
};

const EXEMPT: Field = field("exempt", Ty::Struct(&EXEMPTION), "Who is not bound by this policy");
const ACTION: Field = field(
    "action",
    Ty::Word(&["Deny", "Warn", "Audit"]),
    "What a violation does; Deny unless said otherwise",
);
const FAILURE: Field = field(
    "failurePolicy",
    Ty::Word(&["Fail", "Ignore"]),
    "What an expression that fails does: Fail denies, Ignore counts as true; Fail unless said otherwise",
);
const CONDITION_TY: Ty = Ty::Struct(&CONDITION);
const CONDITIONS: Field =
    field("matchConditions", Ty::List(&CONDITION_TY), "The policy applies where all are true");
const VALIDATION_TY: Ty = Ty::Struct(&VALIDATION);
const VALIDATIONS: Field = field("validations", Ty::List(&VALIDATION_TY), "Expressions that must be true");

static TOLERATION_SPEC: Struct = Struct {
    name: "TolerationPolicySpec",
    fields: &[
        field("match", Ty::Struct(&CLAIM_MATCH), "Where it applies; everywhere if left out"),
        EXEMPT,
        ACTION,
        FAILURE,
        CONDITIONS,
        VALIDATIONS,
        field(
            "allow",
            Ty::List(&Ty::Struct(&GRANT)),
            "What may be tolerated. Left out: no restriction. []: nothing, unless another policy allows it",
        ),
        field("deny", Ty::List(&Ty::Struct(&REFUSAL)), "What may not be tolerated, whatever is allowed"),
        field(
            "defaults",
            Ty::List(&Ty::Struct(&DEFAULT)),
            "Added to every request of a new claim or template; allowed by being here",
        ),
    ],
};

static TAINT_SPEC: Struct = Struct {
    name: "TaintPolicySpec",
    fields: &[
        field("match", Ty::Struct(&TAINT_MATCH), "Where it applies; everywhere if left out"),
        EXEMPT,
        ACTION,
        FAILURE,
        CONDITIONS,
        VALIDATIONS,
        field(
            "allow",
            Ty::List(&Ty::Struct(&TAINT_ENTRY)),
            "Taints that may be published. Left out: no restriction",
        ),
        field("deny", Ty::List(&Ty::Struct(&TAINT_ENTRY)), "Taints that may not, whatever is allowed"),
        field("data", Ty::List(&Ty::Struct(&DATA)), "What a taint's data must look like, by key"),
        field("maxEvictionsPerSecond", Ty::Int(1), "The largest evictionsPerSecond of a taint"),
    ],
};

static TAINT_RULE_SPEC: Struct = Struct {
    name: "TaintRulePolicySpec",
    fields: &[
        field("match", Ty::Struct(&RULE_MATCH), "Where it applies; everywhere if left out"),
        EXEMPT,
        ACTION,
        FAILURE,
        CONDITIONS,
        VALIDATIONS,
        field(
            "requireSelector",
            Ty::List(&Ty::Word(&["driver", "pool", "device", "any"])),
            "Criteria that deviceSelector must set; `any`: at least one, whichever",
        ),
        field("twoSteps", Ty::Bool, "A rule starts with effect None and is raised later, selector untouched"),
        field("maxImpact", Ty::Struct(&IMPACT), "How much a rule may touch; needs the state of the cluster"),
        field(
            "onUnknown",
            Ty::Word(LEVELS),
            "What happens if the impact is not known; Deny unless said otherwise",
        ),
        field("acknowledge", Ty::Struct(&ACKNOWLEDGE), "Who may go past maxImpact, by an annotation"),
    ],
};

static PARAMETER_SPEC: Struct = Struct {
    name: "ParameterPolicySpec",
    fields: &[
        field("match", Ty::Struct(&PARAMETER_MATCH), "Where it applies; everywhere if left out"),
        EXEMPT,
        ACTION,
        FAILURE,
        CONDITIONS,
        VALIDATIONS,
        field("schemas", Ty::List(&Ty::Struct(&PARAMETERS)), "What opaque parameters must look like"),
        field(
            "unknown",
            Ty::Word(LEVELS),
            "Parameters of another apiVersion or kind; Allow unless said otherwise",
        ),
    ],
};

const GLOBS: Ty = Ty::List(&Ty::Text);
const NAMESPACES: Field = field("namespaces", GLOBS, "Namespaces, as globs; all if left out");
const EXCLUDED: Field = field("excludeNamespaces", GLOBS, "Namespaces it does not apply to, as globs");
const SELECTED: Field = field("namespaceSelector", Ty::Struct(&SELECTOR), "Namespaces by their labels");
const OPERATIONS: Field = field(
    "operations",
    Ty::List(&Ty::Word(&["CREATE", "UPDATE", "*"])),
    "What is done to the object; both if left out",
);
const DRIVERS: Field = field("drivers", GLOBS, "Drivers, as globs; all if left out");

static CLAIM_MATCH: Struct =
    Struct { name: "ClaimMatch", fields: &[NAMESPACES, EXCLUDED, SELECTED, OPERATIONS, CLAIM_KINDS] };
const CLAIM_KINDS: Field = field(
    "resources",
    Ty::List(&Ty::Word(&["ResourceClaim", "ResourceClaimTemplate"])),
    "Kinds of objects; both if left out",
);

static TAINT_MATCH: Struct = Struct {
    name: "TaintMatch",
    fields: &[NAMESPACES, EXCLUDED, SELECTED, DRIVERS, OPERATIONS, TAINT_KINDS],
};
const TAINT_KINDS: Field = field(
    "resources",
    Ty::List(&Ty::Word(&["ResourceSlice", "DeviceTaintRule", "ResourceSlicePatch"])),
    "Kinds of objects; all if left out",
);

static RULE_MATCH: Struct = Struct {
    name: "RuleMatch",
    fields: &[
        NAMESPACES,
        EXCLUDED,
        SELECTED,
        DRIVERS,
        OPERATIONS,
        field("resources", Ty::List(&Ty::Word(&["DeviceTaintRule"])), "Kinds of objects"),
    ],
};

/// Of both groups where a name is used twice: classic DRA has a ResourceClaim too.
const PARAMETER_KINDS: &[&str] = &[
    "ResourceClaim",
    "ResourceClaimTemplate",
    "DeviceClass",
    "ResourceClass",
    "Pod",
    "Deployment",
    "StatefulSet",
    "DaemonSet",
    "ReplicaSet",
    "Job",
    "CronJob",
];
static PARAMETER_MATCH: Struct = Struct {
    name: "ParameterMatch",
    fields: &[
        NAMESPACES,
        EXCLUDED,
        SELECTED,
        DRIVERS,
        OPERATIONS,
        field("resources", Ty::List(&Ty::Word(PARAMETER_KINDS)), "Kinds of objects; all if left out"),
    ],
};

static SELECTOR: Struct = Struct {
    name: "LabelSelector",
    fields: &[
        field("matchLabels", Ty::Strings, "Labels with these values"),
        field("matchExpressions", Ty::List(&Ty::Struct(&REQUIREMENT)), "All of these"),
    ],
};

static REQUIREMENT: Struct = Struct {
    name: "LabelSelectorRequirement",
    fields: &[
        required("key", Ty::Text, "The label"),
        required("operator", Ty::Word(&["In", "NotIn", "Exists", "DoesNotExist"]), "How it is compared"),
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
        field("name", Ty::Text, "For messages"),
        required("expression", Ty::Text, "CEL; true or false"),
    ],
};

static VALIDATION: Struct = Struct {
    name: "Validation",
    fields: &[
        required("expression", Ty::Text, "CEL; must be true"),
        field("message", Ty::Text, "What to say if it is not"),
        field("messageExpression", Ty::Text, "CEL; a string to say instead of message"),
    ],
};

const KEY: Field = required("key", Ty::Text, "A key, `prefix/*`, or `*`");
const VALUES: Field = field("values", Ty::List(&Ty::Str), "Values; every value if left out");
const ENTRY_EFFECTS: Field = field("effects", Ty::List(&EFFECTS), "Effects; every effect if left out");
const REASON: Field = field("reason", Ty::Text, "Why; told where it helps");
const EXPIRES: Field = field("expires", Ty::Time, "From then on the entry does not count");

static GRANT: Struct = Struct {
    name: "AllowedToleration",
    fields: &[
        KEY,
        VALUES,
        ENTRY_EFFECTS,
        field("maxTolerationSeconds", Ty::Int(0), "How long NoExecute may be tolerated; forever if left out"),
        REASON,
        EXPIRES,
    ],
};

static REFUSAL: Struct =
    Struct { name: "DeniedToleration", fields: &[KEY, VALUES, ENTRY_EFFECTS, REASON, EXPIRES] };

static DEFAULT: Struct = Struct {
    name: "DefaultToleration",
    fields: &[
        field("key", Ty::Text, "The key; every key if left out"),
        field("operator", Ty::Word(&["Equal", "Exists"]), "Equal unless said otherwise"),
        field("value", Ty::Str, "The value, for Equal"),
        field("effect", EFFECTS, "The effect; every effect if left out"),
        field("tolerationSeconds", Ty::Int(i64::MIN), "How long NoExecute is tolerated"),
    ],
};

static TAINT_ENTRY: Struct = Struct {
    name: "TaintEntry",
    fields: &[
        required("key", Ty::Text, "Keys as a glob; ${driver} is the driver of the slice or selector"),
        VALUES,
        ENTRY_EFFECTS,
        REASON,
        EXPIRES,
    ],
};

const SCHEMA: Field = field("schema", Ty::Schema, "A JSON Schema");
const SCHEMA_FILE: Field = field("schemaFile", Ty::Text, "A file with a JSON Schema, beside this file");

static DATA: Struct = Struct {
    name: "TaintData",
    fields: &[
        required("key", Ty::Text, "Keys as a glob"),
        field("required", Ty::Bool, "The taint must have data; false unless said otherwise"),
        SCHEMA,
        SCHEMA_FILE,
    ],
};

static PARAMETERS: Struct = Struct {
    name: "ParameterSchema",
    fields: &[
        field("apiVersion", Ty::Text, "apiVersion of the parameters; left out for those that name none"),
        field("kind", Ty::Text, "kind of the parameters; left out for those that name none"),
        SCHEMA,
        SCHEMA_FILE,
    ],
};

static IMPACT: Struct = Struct {
    name: "MaxImpact",
    fields: &[
        field("devices", Ty::Int(0), "Devices that the rule selects"),
        field("pods", Ty::Int(0), "Pods that it would evict"),
        field("namespaces", Ty::Int(0), "Namespaces of those pods"),
    ],
};

static ACKNOWLEDGE: Struct = Struct {
    name: "Acknowledge",
    fields: &[
        required("annotation", Ty::Text, "The annotation; its value is the number of pods"),
        field("groups", GLOBS, "Groups that may, as globs; everyone if left out"),
    ],
};
