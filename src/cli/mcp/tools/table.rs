//! The rows of the tools: names, texts, bounds and flags. No row is a file, a cluster or a flag that changes anything.

use super::{Form, PLAIN, Place, Row, Setting, ToolSpec, required, row};

const TIME: &str = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{8,18}(Z|[+-][0-9]{2}:[0-9]{2})$";
const NOW: Row =
    row("now", Form::Text(TIME), Place::Flag("--now"), "Use this RFC 3339 time as the current time");
const TARGETS: &str =
    "Devices, each as DRIVER[/POOL[/DEVICE]], or as node/NAME for the devices that only this node can use";
const STATE: &[Setting] = &[Setting::State, Setting::Completeness, Setting::Context];

/// All tools of the MCP server.
pub(in super::super) const ALL: &[ToolSpec] = &[
    ToolSpec {
        name: "validate",
        title: "Validate manifests",
        about: "Check Kubernetes manifests (ResourceSlice, ResourceClaim, ResourceClaimTemplate, DeviceClass, \
                DeviceTaintRule, and workloads with claims) as the API server does, and report likely mistakes in device \
                taints and tolerations. Exit code 1 means that something is denied.",
        command: &["validate", "--output=json"],
        gets: &[Setting::Policies, Setting::Namespaces, Setting::State, Setting::Context],
        needs: None,
        rows: &[
            required(row("manifests", Form::Manifest, Place::Stdin, "YAML or JSON, one or more documents")),
            row(
                "kubernetes",
                Form::Profile,
                Place::Flag("--kubernetes"),
                "Release or draft to check against",
            ),
            NOW,
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
        rows: &[row(
            "rule",
            Form::Text(PLAIN),
            Place::Operand,
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
        gets: STATE,
        needs: Some(Setting::State),
        rows: &[
            row("targets", Form::Texts, Place::Operand, TARGETS),
            row(
                "tainted",
                Form::Switch,
                Place::Flag("--tainted"),
                "Only devices with a taint that keeps pods away",
            ),
            row(
                "free",
                Form::Switch,
                Place::Flag("--free"),
                "Only devices that the scheduler would allocate",
            ),
            row("nodes", Form::Texts, Place::Flag("--node"), "Only devices of these nodes"),
            row(
                "classes",
                Form::Texts,
                Place::Flag("--class"),
                "Only devices that match these DeviceClasses",
            ),
            row(
                "namespaces",
                Form::Texts,
                Place::Flag("--namespace"),
                "Only devices that claims in these namespaces hold",
            ),
            NOW,
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
        gets: STATE,
        needs: Some(Setting::State),
        rows: &[
            row(
                "rules",
                Form::Manifest,
                Place::Stdin,
                "DeviceTaintRules (or ResourceSlices) as YAML or JSON",
            ),
            row("targets", Form::Texts, Place::Flag("--target"), TARGETS),
            row(
                "effect",
                Form::OneOf(&["None", "NoSchedule", "NoExecute"]),
                Place::Flag("--effect"),
                "Assume that the rules have this effect",
            ),
            row(
                "by",
                Form::OneOf(&["namespace", "workload", "node"]),
                Place::Flag("--by"),
                "Group and count the evicted pods instead of listing each",
            ),
            row("limit", Form::Number(1, 10_000), Place::Flag("--limit"), "Maximum number of pods to list"),
            NOW,
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
        gets: STATE,
        needs: Some(Setting::State),
        rows: &[
            row("objects", Form::Manifest, Place::Stdin, "Objects to apply, as YAML or JSON, in this order"),
            row(
                "samples",
                Form::Number(1, 1024),
                Place::Flag("--samples"),
                "Number of courses to play (default: 64); more take longer",
            ),
            row("seed", Form::Number(0, 1 << 53), Place::Flag("--seed"), "Seed for the choice among nodes"),
            NOW,
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
        gets: STATE,
        needs: Some(Setting::State),
        rows: &[
            required(row("targets", Form::Texts, Place::Operand, TARGETS)),
            row(
                "key",
                Form::Text(PLAIN),
                Place::Flag("--key"),
                "Key of the taint (default: tollgate.dev/drain)",
            ),
            row(
                "maxWave",
                Form::Number(1, 100),
                Place::Flag("--max-wave"),
                "Maximum number of pods in a wave",
            ),
            row(
                "moveUnknown",
                Form::Switch,
                Place::Flag("--move-unknown"),
                "Plan to move pods whose outcome is unknown",
            ),
            row("force", Form::Switch, Place::Flag("--force"), "Plan to move pods that nothing recreates"),
            row(
                "deleteEmptyDirData",
                Form::Switch,
                Place::Flag("--delete-emptydir-data"),
                "Plan to move pods with emptyDir volumes, whose data a drain would delete",
            ),
            row(
                "evictDaemonSetPods",
                Form::Switch,
                Place::Flag("--evict-daemonset-pods"),
                "Plan to move pods of DaemonSets",
            ),
            row(
                "ignoreDoNotDisrupt",
                Form::Switch,
                Place::Flag("--ignore-do-not-disrupt"),
                "Plan to move pods with annotations that ask not to be disrupted",
            ),
            row(
                "samples",
                Form::Number(1, 1024),
                Place::Flag("--samples"),
                "Number of courses to play (default: 64)",
            ),
            NOW,
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
        gets: &[Setting::Policies, Setting::Namespaces, Setting::Context],
        needs: Some(Setting::Policies),
        rows: &[
            required(row("namespace", Form::Text(PLAIN), Place::Operand, "Namespace of the claim")),
            row(
                "toleration",
                Form::Text(PLAIN),
                Place::Operand,
                "Toleration as KEY[=VALUE][:EFFECT[:SECONDS]]; * is every key",
            ),
            row("user", Form::Text(PLAIN), Place::Flag("--as"), "User who creates the claim"),
            row("groups", Form::Texts, Place::Flag("--as-group"), "Groups of the user"),
            NOW,
        ],
        output: Some(include_str!("../../schema/policy-check.json")),
        narrow: "ask for one toleration",
    },
];
