//! The table of all rules. A rule is one line here, and its number is its position.
//!
//! A lint, or a file of documented limits, is listed with the part of the object that its function `check` looks at:
//! `lint.rs` and `documented.rs` declare their files and groups from this table. The rules of the API server call each
//! other, so `upstream.rs` lists its functions itself. What follows the name of a rule says what is special about it
//! ([`Rule`]); its page is `docs/rules/NAME.md`.
//!
//! Invariant: a rule is named by its constant, and its text is written only here.

use tollgate_document::finding::RuleInput::{Cluster, Drafts, Files, Labels, Release, Server, Time};
use tollgate_document::finding::{FindingLevel, Rule, RuleId, RuleOrigin};

/// A rule about objects that cannot be decoded, with the level Deny.
const fn decoding(id: &'static str) -> Rule {
    Rule::new(id, RuleOrigin::Decoding, FindingLevel::Deny)
}

/// A rule about fields that only strict decoding rejects, with the level Deny.
const fn strict_decoding(id: &'static str) -> Rule {
    Rule::new(id, RuleOrigin::Strict, FindingLevel::Deny)
}

/// A rule of the API server, with the level Deny.
const fn upstream(id: &'static str) -> Rule {
    Rule::new(id, RuleOrigin::Upstream, FindingLevel::Deny)
}

/// A rule for a limit that is documented but not enforced by any server, with the level Deny.
const fn documented_limit(id: &'static str) -> Rule {
    Rule::new(id, RuleOrigin::Documented, FindingLevel::Deny)
}

/// A lint, with the level Warn.
const fn lint(id: &'static str) -> Rule {
    Rule::new(id, RuleOrigin::Lint, FindingLevel::Warn)
}

/// A rule for violations of policies, with the default level Deny.
const fn policy(id: &'static str) -> Rule {
    Rule::new(id, RuleOrigin::Policy, FindingLevel::Deny)
}

macro_rules! table {
    (
        rules { $($first:ident = $first_rule:expr;)* }
        documented { $($limits:ident: $limits_check:ident { $($limit:ident = $limit_rule:expr;)* })* }
        lint { $($lints:ident: $lints_check:ident { $($lint:ident = $lint_rule:expr;)* })* }
        rules { $($last:ident = $last_rule:expr;)* }
    ) => {
        table! { @numbered
            $($first = $first_rule;)* $($($limit = $limit_rule;)*)* $($($lint = $lint_rule;)*)* $($last = $last_rule;)*
        }
        table! { @files documented_files, $($limits: $limits_check { $($limit)* })* }
        table! { @files lint_files, $($lints: $lints_check { $($lint)* })* }
    };
    (@numbered $($name:ident = $rule:expr;)*) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms, reason = "named like the constants")]
        enum RuleNumber { $($name,)* Count }

        /// All rules of all origins.
        pub static RULE_TABLE: [Rule; RuleNumber::Count as usize] = [$($rule.with_table_index(RuleNumber::$name as usize),)*];

        $(
            #[allow(clippy::indexing_slicing, reason = "the compiler checks the index of a constant")]
            pub const $name: RuleId = &RULE_TABLE[RuleNumber::$name as usize];
        )*
    };
    (@files $files:ident, $($file:ident: $check:ident { $($rule:ident)* })*) => {
        /// Declares the files of an origin, and lists them as `CHECK_GROUPS`.
        macro_rules! $files {
            () => {
                $(mod $file;)*

                /// The groups of this origin.
                pub(super) static CHECK_GROUPS: &[$crate::rules::CheckFunctionWithRules] =
                    &[$($crate::rules::CheckFunctionWithRules {
                    rules: &[$($crate::rules::table::$rule),*],
                    check: $crate::rules::CheckFunction::$check($file::check),
                },)*];
            };
        }
        pub(super) use $files;
    };
}

table! {
    rules {
        // Objects that cannot be decoded, or only by dropping something.
        MISSING_TYPE = decoding("missing-type");
        UNSERVED_VERSION = decoding("unserved-version");
        WRONG_CONTENT_TYPE = decoding("wrong-type");
        BAD_TIME = decoding("bad-time");
        BAD_QUANTITY = decoding("bad-quantity");
        FINDINGS_LEFT_OUT = decoding("findings-left-out");
        UNKNOWN_FIELD = strict_decoding("unknown-field");
        DUPLICATE_KEY = strict_decoding("duplicate-key");
        // The rules of the API server, by file of `upstream/`: meta.rs
        OBJECT_NAMESPACE = upstream("object-namespace");
        OBJECT_GENERATION = upstream("object-generation");
        OBJECT_LABELS = upstream("object-labels");
        OBJECT_ANNOTATIONS = upstream("object-annotations");
        // meta_update.rs
        METADATA_CHANGED = upstream("metadata-changed");
        RESOURCE_VERSION = upstream("resource-version");
        // owner_references.rs
        OWNER_REFERENCE = upstream("owner-reference");
        // finalizers.rs
        FINALIZER_NAME = upstream("finalizer-name");
        // managed_fields.rs
        MANAGED_FIELDS = upstream("managed-fields");
        // template_meta.rs
        TEMPLATE_METADATA = upstream("template-metadata");
        // taint.rs
        TAINT_KEY = upstream("taint-key");
        TAINT_VALUE = upstream("taint-value");
        TAINT_EFFECT = upstream("taint-effect");
        TOO_MANY_TAINTS = upstream("too-many-taints");
        // toleration.rs
        TOLERATION_KEY = upstream("toleration-key");
        TOLERATION_OPERATOR = upstream("toleration-operator");
        TOLERATION_VALUE = upstream("toleration-value");
        TOLERATION_EFFECT = upstream("toleration-effect");
        // slice.rs
        SLICE_DRIVER = upstream("slice-driver");
        SLICE_POOL = upstream("slice-pool");
        SLICE_IMMUTABLE_FIELD = upstream("slice-immutable-field");
        SLICE_NODE_SELECTION = upstream("slice-node-selection");
        TOO_MANY_DEVICES = upstream("too-many-devices");
        DUPLICATE_DEVICE = upstream("duplicate-device");
        DEVICES_WITH_SHARED_COUNTERS = upstream("devices-with-shared-counters");
        // device.rs
        DEVICE_NAME = upstream("device-name");
        DEVICE_NODE_SELECTION = upstream("device-node-selection");
        // attributes.rs
        ATTRIBUTE_NAME = upstream("attribute-name");
        ATTRIBUTE_VALUE = upstream("attribute-value");
        TOO_MANY_ATTRIBUTES = upstream("too-many-attributes");
        // capacity.rs
        CAPACITY_NAME = upstream("capacity-name");
        // request_policy.rs
        CAPACITY_REQUEST_POLICY = upstream("capacity-request-policy");
        // counters.rs
        SHARED_COUNTERS = upstream("shared-counters");
        CONSUMED_COUNTERS = upstream("consumed-counters");
        TOO_MANY_COUNTERS = upstream("too-many-counters");
        UNKNOWN_COUNTER = upstream("unknown-counter");
        COMPATIBILITY_GROUPS = upstream("compatibility-groups");
        // binding.rs
        BINDING_CONDITIONS = upstream("binding-conditions");
        // node_resources.rs
        NODE_ALLOCATABLE_RESOURCES = upstream("node-allocatable-resources");
        // partition.rs
        PARTITION_TYPE_ATTRIBUTE = upstream("partition-type-attribute");
        // skip_operations.rs
        SKIP_NODE_OPERATIONS = upstream("skip-node-operations");
        // claim.rs
        IMMUTABLE_CLAIM_SPEC = upstream("immutable-claim-spec");
        ADMIN_ACCESS = upstream("admin-access");
        // request.rs
        TOO_MANY_REQUESTS = upstream("too-many-requests");
        DUPLICATE_REQUEST = upstream("duplicate-request");
        REQUEST_NAME = upstream("request-name");
        REQUEST_SHAPE = upstream("request-shape");
        REQUEST_DEVICE_CLASS = upstream("request-device-class");
        REQUEST_ALLOCATION_MODE = upstream("request-allocation-mode");
        REQUEST_COUNT = upstream("request-count");
        // selectors.rs
        TOO_MANY_SELECTORS = upstream("too-many-selectors");
        EMPTY_SELECTOR = upstream("empty-selector");
        CEL_EXPRESSION = upstream("cel-expression");
        CEL_LENGTH = upstream("cel-length");
        CEL_COST = upstream("cel-cost");
        CEL_UNCHECKED = lint("cel-unchecked");
        // derived.rs
        TOO_MANY_DERIVED_ATTRIBUTES = upstream("too-many-derived-attributes");
        DERIVED_ATTRIBUTE_NAME = upstream("derived-attribute-name");
        DUPLICATE_DERIVED_ATTRIBUTE = upstream("duplicate-derived-attribute");
        DERIVED_ATTRIBUTE_EXPRESSION = upstream("derived-attribute-expression");
        DERIVED_ATTRIBUTE_COST = upstream("derived-attribute-cost");
        // constraints.rs
        TOO_MANY_CONSTRAINTS = upstream("too-many-constraints");
        CONSTRAINT_ATTRIBUTE = upstream("constraint-attribute");
        REQUEST_REFERENCE = upstream("request-reference");
        // config.rs
        TOO_MANY_CONFIGS = upstream("too-many-configs");
        EMPTY_CONFIG = upstream("empty-config");
        OPAQUE_DRIVER = upstream("opaque-driver");
        OPAQUE_PARAMETERS = upstream("opaque-parameters");
        // class.rs
        EXTENDED_RESOURCE_NAME = upstream("extended-resource-name");
        // pod_claims.rs
        POD_CLAIM_NAME = upstream("pod-claim-name");
        POD_CLAIM_SOURCE = upstream("pod-claim-source");
        CONTAINER_CLAIM = upstream("container-claim");
        // taint_rule.rs
        RULE_DRIVER = upstream("rule-driver");
        RULE_POOL = upstream("rule-pool");
        RULE_DEVICE = upstream("rule-device");
        RULE_DEVICE_CLASS = upstream("rule-device-class");
        // allocation.rs
        ALLOCATION_CHANGED = upstream("allocation-changed");
        TOO_MANY_RESULTS = upstream("too-many-results");
        RESULT_DEVICE = upstream("result-device");
        RESULT_SHARE_ID = upstream("result-share-id");
        ALLOCATION_NODE_SELECTOR = upstream("allocation-node-selector");
        ALLOCATION_CONFIG_SOURCE = upstream("allocation-config-source");
        // reserved_for.rs
        RESERVED_FOR = upstream("reserved-for");
        TOO_MANY_CONSUMERS = upstream("too-many-consumers");
        // device_status.rs
        DEVICE_STATUS_NAME = upstream("device-status-name");
        DEVICE_STATUS_UNALLOCATED = upstream("device-status-unallocated");
        DUPLICATE_DEVICE_STATUS = upstream("duplicate-device-status");
        DEVICE_STATUS_DATA = upstream("device-status-data");
        // conditions.rs
        STATUS_CONDITION = upstream("status-condition");
        TOO_MANY_CONDITIONS = upstream("too-many-conditions");
        // network_data.rs
        NETWORK_DATA = upstream("network-data");
        // object_name.rs
        OBJECT_NAME = upstream("object-name");
    }
    documented {
        too_many_tolerations: Tolerations { TOO_MANY_TOLERATIONS = documented_limit("too-many-tolerations"); }
        empty_key_without_exists: Toleration { EMPTY_KEY_WITHOUT_EXISTS = documented_limit("empty-key-without-exists"); }
        slice_taints: Object {
            TOO_MANY_SLICE_TAINTS = documented_limit("too-many-slice-taints");
            DEVICES_AND_TAINTS = documented_limit("devices-and-taints");
            SLICE_TAINT_DEVICE = documented_limit("slice-taint-device");
            NESTED_AND_INLINED_TAINT = documented_limit("nested-and-inlined-taint");
        }
        taint_content: Taint {
            OVERSIZED_TAINT_DATA = documented_limit("oversized-taint-data");
            OVERSIZED_TAINT_DESCRIPTION = documented_limit("oversized-taint-description");
            EVICTION_RATE = documented_limit("eviction-rate");
        }
        slice_patch: Object {
            PATCH_FILTER = documented_limit("patch-filter");
            PATCH_ATTRIBUTE_NAME = documented_limit("patch-attribute-name");
            PATCH_ATTRIBUTE_VALUE = documented_limit("patch-attribute-value");
            TOO_MANY_PATCH_ATTRIBUTES = documented_limit("too-many-patch-attributes");
            TOO_MANY_PATCH_TAINTS = documented_limit("too-many-patch-taints");
            PATCH_TAINT_EFFECT = documented_limit("patch-taint-effect");
        }
        classic: Object {
            CLASSIC_DRIVER = documented_limit("classic-driver");
            CLASSIC_CLASS_NAME = documented_limit("classic-class-name");
            UNKNOWN_RESOURCE_CLASS = documented_limit("unknown-resource-class");
            CLASSIC_ALLOCATION_MODE = documented_limit("classic-allocation-mode");
            IMMUTABLE_CLASSIC_CLAIM = documented_limit("immutable-classic-claim");
            CLAIM_PHASE = documented_limit("claim-phase");
            CLAIM_PHASE_TRANSITION = documented_limit("claim-phase-transition");
            CLAIM_USER_LIMIT = documented_limit("claim-user-limit");
            CLAIM_RESERVED_FOR = documented_limit("claim-reserved-for");
            CLAIM_SCHEDULING = documented_limit("claim-scheduling");
            GENERATED_CLAIM_NAME = documented_limit("generated-claim-name");
            CLAIM_TEMPLATE_METADATA = documented_limit("claim-template-metadata");
            NESTED_AND_INLINED_TEMPLATE = documented_limit("nested-and-inlined-template");
        }
        taint_replacement: Object {
            TAINT_OPTION_KEY = documented_limit("taint-option-key");
            DUPLICATE_TAINT_OPTION = documented_limit("duplicate-taint-option");
            TAINT_OPTION_DURATION = documented_limit("taint-option-duration");
        }
    }
    lint {
        // — tolerations —
        blanket_toleration: Toleration { BLANKET_TOLERATION = lint("blanket-toleration"); }
        toleration_without_effect: Toleration { TOLERATION_WITHOUT_EFFECT = lint("toleration-without-effect"); }
        toleration_of_none: Toleration { TOLERATION_OF_NONE = lint("toleration-of-none"); }
        toleration_seconds: Toleration {
            SECONDS_WITHOUT_NOEXECUTE = lint("seconds-without-noexecute").tagged_unnecessary();
            NEGATIVE_TOLERATION_SECONDS = lint("negative-toleration-seconds");
            OVERFLOWING_TOLERATION_SECONDS = lint("overflowing-toleration-seconds");
        }
        reserved_toleration_key: Toleration { RESERVED_TOLERATION_KEY = lint("reserved-toleration-key"); }
        duplicate_toleration: Tolerations { DUPLICATE_TOLERATION = lint("duplicate-toleration").tagged_unnecessary(); }
        // — taints —
        reserved_taint_key: Taint { RESERVED_TAINT_KEY = lint("reserved-taint-key"); }
        rate_without_noexecute: Taint { RATE_WITHOUT_NOEXECUTE = lint("rate-without-noexecute").tagged_unnecessary(); }
        future_time_added: Taint { FUTURE_TIME_ADDED = lint("future-time-added").depends_on(Time); }
        restarted_time: Taint { RESTARTED_TIME = lint("restarted-time"); }
        duplicate_taint: Taints { DUPLICATE_TAINT = lint("duplicate-taint").tagged_unnecessary(); }
        overwritten_patch_taint: Taints { OVERWRITTEN_PATCH_TAINT = lint("overwritten-patch-taint"); }
        untainted_partitions: Object { UNTAINTED_PARTITIONS = lint("untainted-partitions"); }
        // — rules —
        wide_selector: Selector {
            MISSING_TAINT_SELECTOR = lint("missing-taint-selector");
            EMPTY_TAINT_SELECTOR = lint("empty-taint-selector");
            DRIVER_WIDE_TAINT = lint("driver-wide-taint");
        }
        removed_selector_field: Selector {
            REMOVED_SELECTOR_FIELD = lint("removed-selector-field").tagged_deprecated().depends_on(Release);
        }
        device_without_pool: Selector { DEVICE_WITHOUT_POOL = lint("device-without-pool"); }
        uppercase_selector_driver: Selector { UPPERCASE_SELECTOR_DRIVER = lint("uppercase-selector-driver"); }
        // — whole objects —
        uppercase_driver: Object { UPPERCASE_DRIVER = lint("uppercase-driver"); }
        unchecked_attribute_name: Object { UNCHECKED_ATTRIBUTE_NAME = lint("unchecked-attribute-name"); }
        two_attribute_constraint: Object { TWO_ATTRIBUTE_CONSTRAINT = lint("two-attribute-constraint"); }
        admin_access_unchecked: Object { ADMIN_ACCESS_UNCHECKED = lint("admin-access-unchecked").depends_on(Labels); }
        claim_in_other_namespace: Object {
            CLAIM_IN_OTHER_NAMESPACE = lint("claim-in-other-namespace").depends_on(Files);
        }
        // — classic DRA —
        classic_pod_claim: Object { CLASSIC_POD_CLAIM = lint("classic-pod-claim").tagged_deprecated(); }
        allocated_without_finalizer: Object { ALLOCATED_WITHOUT_FINALIZER = lint("allocated-without-finalizer"); }
        allocated_without_node: Object { ALLOCATED_WITHOUT_NODE = lint("allocated-without-node"); }
        stale_scheduling: Object { STALE_SCHEDULING = lint("stale-scheduling"); }
        // — FoundationDB —
        taint_replacement: Object {
            TAINT_REPLACEMENT_OFF = lint("taint-replacement-off");
            IGNORED_REPLACEMENT_FIELD = lint("ignored-replacement-field").tagged_unnecessary();
            REDUNDANT_TAINT_OPTION = lint("redundant-taint-option").tagged_unnecessary();
            ZERO_CONCURRENT_REPLACEMENTS = lint("zero-concurrent-replacements");
        }
    }
    rules {
        // What an API server does not serve, or drops.
        DROPPED_FIELD = lint("dropped-field").tagged_unnecessary().depends_on(Server);
        VERSION_OFF_BY_DEFAULT = lint("version-off-by-default").tagged_deprecated().depends_on(Server);
        SOON_REMOVED_VERSION = lint("soon-removed-version").depends_on(Server);
        DRAFT_ONLY_FIELD = lint("draft-only-field").depends_on(Drafts);
        RULE_WITHOUT_EFFECT = lint("rule-without-effect").tagged_unnecessary().depends_on(Server);
        RULE_TAKES_EFFECT = lint("rule-takes-effect").depends_on(Cluster);
        // What a DeviceTaintRule does to the cluster.
        TAINT_RULE_IMPACT = lint("taint-rule-impact").depends_on(Cluster);
        // Comments that suppress lints.
        UNUSED_SUPPRESSION = lint("unused-suppression").not_suppressible();
        INVALID_SUPPRESSION = lint("invalid-suppression").not_suppressible();
        // What is wrong with policies themselves, and what they report.
        INVALID_POLICY = documented_limit("invalid-policy");
        UNDEFINED_EXPRESSION_FIELD = lint("undefined-expression-field");
        POLICY_TOLERATION = policy("policy-toleration");
        POLICY_TAINT = policy("policy-taint");
        POLICY_TAINT_DATA = policy("policy-taint-data");
        POLICY_TAINT_RULE = policy("policy-taint-rule");
        POLICY_PARAMETERS = policy("policy-parameters");
        POLICY_VALIDATION = policy("policy-validation");
        POLICY_LOOKUP = policy("policy-lookup");
    }
}
