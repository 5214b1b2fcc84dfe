//! The rows of the tools: names, texts, bounds and flags. No row is a file, a cluster or a flag that changes anything.

use super::ArgPlace::{Flag, Operand, Stdin};
use super::ArgType::{Manifest, Number, OneOf, Profile, Switch, Text, Texts};
use super::{InheritedFlag, PLAIN_TEXT, ToolArg, ToolSpec, arg, required};

const TIME_PATTERN: &str = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{8,18}(Z|[+-][0-9]{2}:[0-9]{2})$";
const NOW_ARG: ToolArg =
    arg("now", Text(TIME_PATTERN), Flag("--now"), "Use this RFC 3339 time as the current time");
const TARGETS_ABOUT: &str =
    "Devices, each as DRIVER[/POOL[/DEVICE]], or as node/NAME for the devices that only this node can use";
const STATE_FLAGS: &[InheritedFlag] =
    &[InheritedFlag::State, InheritedFlag::Completeness, InheritedFlag::Context];

/// All tools of the MCP server.
pub(in super::super) const ALL: &[ToolSpec] = &[
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
            required(arg("manifests", Manifest, Stdin, "YAML or JSON, one or more documents")),
            arg("kubernetes", Profile, Flag("--kubernetes"), "Release or draft to check against"),
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
        rows: &[arg(
            "rule",
            Text(PLAIN_TEXT),
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
            arg("targets", Texts, Operand, TARGETS_ABOUT),
            arg("tainted", Switch, Flag("--tainted"), "Only devices with a taint that keeps pods away"),
            arg("free", Switch, Flag("--free"), "Only devices that the scheduler would allocate"),
            arg("nodes", Texts, Flag("--node"), "Only devices of these nodes"),
            arg("classes", Texts, Flag("--class"), "Only devices that match these DeviceClasses"),
            arg(
                "namespaces",
                Texts,
                Flag("--namespace"),
                "Only devices that claims in these namespaces hold",
            ),
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
            arg("rules", Manifest, Stdin, "DeviceTaintRules (or ResourceSlices) as YAML or JSON"),
            arg("targets", Texts, Flag("--target"), TARGETS_ABOUT),
            arg(
                "effect",
                OneOf(&["None", "NoSchedule", "NoExecute"]),
                Flag("--effect"),
                "Assume that the rules have this effect",
            ),
            arg(
                "by",
                OneOf(&["namespace", "workload", "node"]),
                Flag("--by"),
                "Group and count the evicted pods instead of listing each",
            ),
            arg("limit", Number(1, 10_000), Flag("--limit"), "Maximum number of pods to list"),
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
            arg("objects", Manifest, Stdin, "Objects to apply, as YAML or JSON, in this order"),
            arg(
                "samples",
                Number(1, 1024),
                Flag("--samples"),
                "Number of courses to play (default: 64); more take longer",
            ),
            arg("seed", Number(0, 1 << 53), Flag("--seed"), "Seed for the choice among nodes"),
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
            required(arg("targets", Texts, Operand, TARGETS_ABOUT)),
            arg("key", Text(PLAIN_TEXT), Flag("--key"), "Key of the taint (default: tollgate.dev/drain)"),
            arg("maxWave", Number(1, 100), Flag("--max-wave"), "Maximum number of pods in a wave"),
            arg("moveUnknown", Switch, Flag("--move-unknown"), "Plan to move pods whose outcome is unknown"),
            arg("force", Switch, Flag("--force"), "Plan to move pods that nothing recreates"),
            arg(
                "deleteEmptyDirData",
                Switch,
                Flag("--delete-emptydir-data"),
                "Plan to move pods with emptyDir volumes, whose data a drain would delete",
            ),
            arg(
                "evictDaemonSetPods",
                Switch,
                Flag("--evict-daemonset-pods"),
                "Plan to move pods of DaemonSets",
            ),
            arg(
                "ignoreDoNotDisrupt",
                Switch,
                Flag("--ignore-do-not-disrupt"),
                "Plan to move pods with annotations that ask not to be disrupted",
            ),
            arg("samples", Number(1, 1024), Flag("--samples"), "Number of courses to play (default: 64)"),
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
            required(arg("namespace", Text(PLAIN_TEXT), Operand, "Namespace of the claim")),
            arg(
                "toleration",
                Text(PLAIN_TEXT),
                Operand,
                "Toleration as KEY[=VALUE][:EFFECT[:SECONDS]]; * is every key",
            ),
            arg("user", Text(PLAIN_TEXT), Flag("--as"), "User who creates the claim"),
            arg("groups", Texts, Flag("--as-group"), "Groups of the user"),
            NOW_ARG,
        ],
        output: Some(include_str!("../../schema/policy-check.json")),
        narrow: "ask for one toleration",
    },
];
