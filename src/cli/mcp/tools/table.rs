//! The rows of the tools: names, texts, bounds and flags. No row is a file, a cluster or a flag that changes anything.

use super::ArgDestination::{Flag, Operand, Stdin};
use super::ArgType::{Manifest, OneOf, Profile, Text, Texts};
use super::{
    InheritedFlag, ToolArg, ToolSpec, number, optional_arg, plain_text, required_arg, switch, texts,
};

const TIME_PATTERN: &str = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{8,18}(Z|[+-][0-9]{2}:[0-9]{2})$";
const NOW_ARG: ToolArg =
    optional_arg("now", Text(TIME_PATTERN), Flag("--now"), "Use this RFC 3339 time as the current time");
const TARGETS_ABOUT: &str =
    "Devices, each as DRIVER[/POOL[/DEVICE]], or as node/NAME for the devices that only this node can use";
const STATE_FLAGS: &[InheritedFlag] =
    &[InheritedFlag::State, InheritedFlag::Completeness, InheritedFlag::Context];

/// All tools of the MCP server.
pub(in super::super) const ALL_TOOLS: &[ToolSpec] = &[
    ToolSpec {
        name: "validate",
        title: "Validate manifests",
        about: "Check Kubernetes manifests (ResourceSlice, ResourceClaim, ResourceClaimTemplate, DeviceClass, \
                DeviceTaintRule, and workloads with claims) as the API server does, and report likely mistakes in device \
                taints and tolerations. Exit code 1 means that something is denied.",
        command: &["validate", "--output=json"],
        gets: &[
            InheritedFlag::Policies,
            InheritedFlag::Namespaces,
            InheritedFlag::State,
            InheritedFlag::Context,
        ],
        needs: None,
        rows: &[
            required_arg(optional_arg("manifests", Manifest, Stdin, "YAML or JSON, one or more documents")),
            optional_arg("kubernetes", Profile, Flag("--kubernetes"), "Release or draft to check against"),
            NOW_ARG,
        ],
        output: Some(include_str!("../../schema/validate.json")),
        narrow: "check fewer documents in a call",
    },
    ToolSpec {
        name: "explain",
        title: "Explain a rule",
        about: "Return the documentation of a rule, by the ID that a finding has, as Markdown. Without a rule, list all \
                rules.",
        command: &["explain"],
        gets: &[],
        needs: None,
        rows: &[plain_text(
            "rule",
            Operand,
            "ID of the rule, or an origin (upstream, documented, lint, policy, decoding, strict) to list its rules",
        )],
        output: None,
        narrow: "name a rule",
    },
    ToolSpec {
        name: "devices",
        title: "Show devices",
        about: "List devices: their state (allocated, tainted, blocked, shared, unpublished, free), taints, the claims and \
                pods that hold them, and counts per DeviceClass.",
        command: &["devices", "--output=json"],
        gets: STATE_FLAGS,
        needs: Some(InheritedFlag::State),
        rows: &[
            optional_arg("targets", Texts, Operand, TARGETS_ABOUT),
            switch("tainted", "--tainted", "Only devices with a taint that keeps pods away"),
            switch("free", "--free", "Only devices that the scheduler would allocate"),
            texts("nodes", "--node", "Only devices of these nodes"),
            texts("classes", "--class", "Only devices that match these DeviceClasses"),
            texts("namespaces", "--namespace", "Only devices that claims in these namespaces hold"),
            NOW_ARG,
        ],
        output: Some(include_str!("../../schema/devices.json")),
        narrow: "select devices with `targets`, `nodes`, `classes`, `namespaces`, `tainted` or `free`",
    },
    ToolSpec {
        name: "impact",
        title: "Show the impact of a DeviceTaintRule",
        about: "Show what DeviceTaintRules would do if they were created: selected devices, evicted pods with times and \
                reasons, and PodDisruptionBudgets. Give the rules, or targets.",
        command: &["impact", "--output=json"],
        gets: STATE_FLAGS,
        needs: Some(InheritedFlag::State),
        rows: &[
            optional_arg("rules", Manifest, Stdin, "DeviceTaintRules (or ResourceSlices) as YAML or JSON"),
            texts("targets", "--target", TARGETS_ABOUT),
            optional_arg(
                "effect",
                OneOf(&["None", "NoSchedule", "NoExecute"]),
                Flag("--effect"),
                "Assume that the rules have this effect",
            ),
            optional_arg(
                "by",
                OneOf(&["namespace", "workload", "node"]),
                Flag("--by"),
                "Group and count the evicted pods instead of listing each",
            ),
            number("limit", (1, 10_000), "--limit", "Maximum number of pods to list"),
            NOW_ARG,
        ],
        output: Some(include_str!("../../schema/impact.json")),
        narrow: "set `by` or `limit`, or give fewer rules",
    },
    ToolSpec {
        name: "forecast",
        title: "Forecast where pods go",
        about: "Forecast what happens if objects are applied: which pods are evicted, where they and new pods go, and which \
                stay pending. Without objects, forecast the pods that wait now.",
        command: &["forecast", "--output=json"],
        gets: STATE_FLAGS,
        needs: Some(InheritedFlag::State),
        rows: &[
            optional_arg("objects", Manifest, Stdin, "Objects to apply, as YAML or JSON, in this order"),
            number(
                "samples",
                (1, 1024),
                "--samples",
                "Number of courses to play (default: 64); more take longer",
            ),
            number("seed", (0, 1 << 53), "--seed", "Seed for the choice among nodes"),
            NOW_ARG,
        ],
        output: Some(include_str!("../../schema/forecast.json")),
        narrow: "apply fewer objects in a call",
    },
    ToolSpec {
        name: "drain_plan",
        title: "Plan a drain",
        about: "Plan how to move pods off devices: the rules, the waves, and the pods that stay and why. Plans only: it \
                creates nothing and evicts nothing. Exit code 1 means that not every pod can move.",
        command: &["drain", "--dry-run", "--output=json"],
        gets: STATE_FLAGS,
        needs: Some(InheritedFlag::State),
        rows: &[
            required_arg(optional_arg("targets", Texts, Operand, TARGETS_ABOUT)),
            plain_text("key", Flag("--key"), "Key of the taint (default: tollgate.dev/drain)"),
            number("maxWave", (1, 100), "--max-wave", "Maximum number of pods in a wave"),
            switch("moveUnknown", "--move-unknown", "Plan to move pods whose outcome is unknown"),
            switch("force", "--force", "Plan to move pods that nothing recreates"),
            switch(
                "deleteEmptyDirData",
                "--delete-emptydir-data",
                "Plan to move pods with emptyDir volumes, whose data a drain would delete",
            ),
            switch("evictDaemonSetPods", "--evict-daemonset-pods", "Plan to move pods of DaemonSets"),
            switch(
                "ignoreDoNotDisrupt",
                "--ignore-do-not-disrupt",
                "Plan to move pods with annotations that ask not to be disrupted",
            ),
            number("samples", (1, 1024), "--samples", "Number of courses to play (default: 64)"),
            NOW_ARG,
        ],
        output: Some(include_str!("../../schema/drain.json")),
        narrow: "plan for fewer devices in a call",
    },
    ToolSpec {
        name: "policy_check",
        title: "Check what a namespace may tolerate",
        about: "Show which device tolerations the policies allow claims in a namespace, or whether one toleration is \
                allowed. Exit code 1 means that it is denied.",
        command: &["policy", "check", "--output=json"],
        gets: &[InheritedFlag::Policies, InheritedFlag::Namespaces, InheritedFlag::Context],
        needs: Some(InheritedFlag::Policies),
        rows: &[
            required_arg(plain_text("namespace", Operand, "Namespace of the claim")),
            plain_text("toleration", Operand, "Toleration as KEY[=VALUE][:EFFECT[:SECONDS]]; * is every key"),
            plain_text("user", Flag("--as"), "User who creates the claim"),
            texts("groups", "--as-group", "Groups of the user"),
            NOW_ARG,
        ],
        output: Some(include_str!("../../schema/policy-check.json")),
        narrow: "ask for one toleration",
    },
];
