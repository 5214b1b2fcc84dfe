//! `audit` and `snapshot` at the double: every kind, the same report from a cluster and from its snapshot, and what
//! fails.

use std::path::Path;

use serde_json::{Value, json};

use crate::double::Double;
use crate::double::policies::TOLERATION_POLICIES;
use crate::live::{double, files, only_reads, run, run_in};
use crate::state::{BUDGETS, CLAIMS, PODS, RULES, SLICES, claim, pod, slice};

const NAMESPACES: &str = "/api/v1/namespaces";
const TEMPLATES: &str = "/apis/resource.k8s.io/v1/resourceclaimtemplates";
const CLASSES: &str = "/apis/resource.k8s.io/v1/deviceclasses";
const FOUNDATIONDB: &str = "/apis/apps.foundationdb.org/v1beta2/foundationdbclusters";

const POLICY: &str = "
apiVersion: tollgate.dev/v1alpha1
kind: TolerationPolicy
metadata: {name: research}
spec:
  match: {namespaceSelector: {matchLabels: {team: ml}}}
  action: Deny
  allow: [{key: example.com/slow}]
---
apiVersion: tollgate.dev/v1alpha1
kind: TaintRulePolicy
metadata: {name: careful}
spec:
  action: Warn
  twoSteps: true
  maxImpact: {pods: 2}
";

/// A cluster with problems: a claim with a toleration that a policy does not allow, a rule that evicts more
/// pods than allowed, and a slice with two errors of which one is a lint.
fn cluster_with_problems(name: &str) -> Double {
    let double = double(name);
    for collection in [NAMESPACES, TEMPLATES, CLASSES] {
        double.serves(collection);
    }
    for (name, team) in [("ml", "ml"), ("web", "shop")] {
        double.put(NAMESPACES, json!({"metadata": {"name": name, "labels": {"team": team}}}));
    }
    for namespace in ["ml", "web"] {
        let mut tolerant = claim(namespace, "tolerant", "node-9", "gpu-9");
        tolerant["spec"]["devices"]["requests"][0]["exactly"]["tolerations"] =
            json!([{"key": "example.com/broken", "operator": "Exists", "effect": "NoSchedule"}]);
        tolerant["spec"]["devices"]["config"] = json!([{"opaque": {"driver": "gpu.example.com", "parameters":
            {"apiVersion": "gpu.example.com/v1", "kind": "GpuConfig", "password": "TOKEN"}}}]);
        tolerant["metadata"]["annotations"] =
            json!({"kubectl.kubernetes.io/last-applied-configuration": "TOKEN"});
        tolerant["metadata"]["managedFields"] = json!([{"manager": "kubectl", "operation": "Update",
            "apiVersion": "resource.k8s.io/v1", "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": {}}]);
        double.put(CLAIMS, tolerant);
    }
    double.put(RULES, json!({
        "metadata": {"name": "drain", "generation": 2},
        "spec": {
            "deviceSelector": {"driver": "gpu.example.com"},
            "taint": {"key": "example.com/broken", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"},
        },
        "status": {"conditions": [{"type": "EvictionInProgress", "status": "True", "reason": "PodsPendingEviction",
            "message": "TOKEN", "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 2}]},
    }));
    double.put(TEMPLATES, json!({
        "metadata": {"name": "gpu", "namespace": "web"},
        "spec": {
            "metadata": {"annotations": {"vendor.example.com/license": "TOKEN"}, "labels": {"team": "shop"}},
            "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}},
        },
    }));
    let mut odd = slice("odd", 2);
    odd["spec"]["devices"][0]["taints"] = json!([{"key": "example.com/a", "effect": "NoSchedule"}]);
    odd["spec"]["devices"][1]["taints"] =
        json!([{"key": "-bad-", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}]);
    double.put(SLICES, odd);
    let mut secret = pod("web", "secret");
    secret["spec"]["containers"] =
        json!([{"name": "c", "env": [{"name": "PASSWORD", "value": "TOKEN"}], "args": ["TOKEN"]}]);
    double.put(PODS, secret);
    double
}

fn write(folder: &Path) {
    std::fs::write(folder.join("policy.yaml"), POLICY).expect("written");
}

const NOW: &str = "2026-02-01T00:00:00Z";

#[test]
fn a_cluster_and_its_snapshot_give_the_same_report() {
    let (double, folder) = (cluster_with_problems("audit-same"), files("audit-same"));
    write(&folder);
    double.page(3);
    let (code, out, err) = run(&double, &folder, &["snapshot", "-o", "state.yaml"]);
    assert_eq!((code, out.as_str()), (0, ""), "{err}");
    let text = std::fs::read_to_string(folder.join("state.yaml")).expect("written");
    assert!(!text.contains("TOKEN") && !text.contains("PASSWORD"), "{text}");
    for line in [
        "# cluster: context double (http://127.0.0.1:",
        "# kubernetes: 1.36.4\n",
        "# feature gates: the defaults of 1.36",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(!text.contains("a token of ours"));
    let (_, _, err) = run(&double, &folder, &["audit", "--state", "state.yaml"]);
    let omitted = "note: state.yaml: the snapshot omits the content of opaque parameters";
    assert!(err.contains(omitted), "{err}");
    let (code, _, err) = run(&double, &folder, &["snapshot", "--with-parameters", "-o", "whole.yaml"]);
    assert_eq!(code, 0, "{err}");
    let (_, _, err) = run(&double, &folder, &["audit", "--state", "whole.yaml"]);
    assert!(!err.contains("opaque parameters"), "{err}");
    // Lines differ: what the snapshot leaves out is not shown.
    let without_lines = |out: &str| -> Vec<Value> {
        let mut report: Value = serde_json::from_str(out).expect("JSON");
        let results = report["results"].as_array_mut().expect("results");
        for finding in
            results.iter_mut().flat_map(|result| result["findings"].as_array_mut().expect("findings"))
        {
            for key in ["line", "column", "endLine", "endColumn"] {
                finding.as_object_mut().expect("an object").remove(key);
            }
        }
        let audit = &report["audit"];
        vec![
            report["results"].clone(),
            report["summary"].clone(),
            audit["byRule"].clone(),
            audit["byNamespace"].clone(),
        ]
    };
    for (format, compare) in [
        (
            "text",
            &(|out: &str| vec![json!(out.split_once(" objects: ").expect("a summary").1)])
                as &dyn Fn(&str) -> Vec<Value>,
        ),
        ("json", &without_lines),
        ("openreports", &|out: &str| vec![json!(out)]),
    ] {
        let common =
            ["audit", "--policy", "policy.yaml", "--kubernetes", "1.36,1.37", "--now", NOW, "-o", format];
        let live = run(&double, &folder, &common);
        let dumped = run(&double, &folder, &[&common[..], &["--state", "state.yaml"]].concat());
        assert_eq!((live.0, dumped.0), (1, 1), "{format}: {}{}", live.2, dumped.2);
        assert_eq!(compare(&live.1), compare(&dumped.1), "{format}");
    }
    for format in ["sarif", "junit", "github"] {
        let (code, out, err) = run(&double, &folder, &["audit", "--policy", "policy.yaml", "-o", format]);
        assert!(
            code == 1 && out.contains("taint-key") && out.contains("resourceslices/odd"),
            "{format}: {out}{err}"
        );
    }
    for format in ["concise", "github"] {
        let (_, out, _) = run(&double, &folder, &["audit", "--policy", "policy.yaml", "-o", format]);
        assert!(out.contains(" objects: ") && !out.contains(" files"), "{format}: {out}");
    }
    let impact = ["impact", "rule.yaml", "--at", NOW, "-o", "json", "--kubernetes", "1.36"];
    let live = run(&double, &folder, &impact);
    let dumped = run(&double, &folder, &[&impact[..], &["--state", "state.yaml"]].concat());
    assert_eq!((live.0, live.1), (0, dumped.1), "{}", live.2);
    only_reads(&double);
}

#[test]
fn everything_that_is_stored_is_judged() {
    let (double, folder) = (cluster_with_problems("audit-all"), files("audit-all"));
    write(&folder);
    let (code, out, err) =
        run(&double, &folder, &["audit", "--policy", "policy.yaml", "--now", NOW, "-o", "json"]);
    assert_eq!(code, 1, "{err}");
    let report: Value = serde_json::from_str(&out).expect("JSON");
    let found: Vec<String> = report["results"]
        .as_array()
        .expect("results")
        .iter()
        .flat_map(|result| {
            let file = result["file"].as_str().expect("a name").to_owned();
            result["findings"]
                .as_array()
                .expect("findings")
                .iter()
                .map(move |finding| {
                    format!(
                        "{file} {} {} {}",
                        finding["level"].as_str().expect("level"),
                        finding["rule"].as_str().expect("rule"),
                        finding["field"].as_str().expect("field")
                    )
                })
                .collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(
        found,
        [
            "resourceclaims/ml/tolerant deny policy-toleration spec.devices.requests[0].exactly.tolerations[0]",
            "resourceslices/odd deny taint-key spec.devices[1].taints[0].key",
            "devicetaintrules/drain warn policy-taint-rule spec",
            "devicetaintrules/drain warn driver-wide-taint spec.deviceSelector.driver",
        ],
        "what only a server sets is no fault, and how a stored rule got its effect is not judged: {out}"
    );
    assert_eq!(report["profiles"], json!(["1.36"]), "the cluster's own release");
    let (_, schema, _) = run(&double, &folder, &["schema", "validate"]);
    let schema = jsonschema::validator_for(&serde_json::from_str(&schema).expect("JSON")).expect("a schema");
    let errors: Vec<String> = schema.iter_errors(&report).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    for pointer in ["/audit", "/audit/listed/0", "/audit/byRule/taint-key"] {
        let mut changed = report.clone();
        changed.pointer_mut(pointer).expect("there")["surprise"] = json!(true);
        assert!(!schema.is_valid(&changed), "the schema allows any key in {pointer}");
    }
    let audit = &report["audit"];
    assert_eq!(audit["byRule"]["taint-key"], json!({"denied": 1, "warned": 0, "audited": 0, "objects": 1}));
    assert_eq!(audit["byNamespace"]["ml"]["denied"], 1);
    assert_eq!(audit["incomplete"], json!([]));
    assert_eq!(
        audit["notServed"],
        json!([
            "foundationdbclusters.apps.foundationdb.org",
            "resourceclasses.cdi.k8s.io",
            "resourceclaims.cdi.k8s.io"
        ])
    );
    let listed = audit["listed"].as_array().expect("a list");
    assert!(
        listed.contains(
            &json!({"resource": "devicetaintrules", "apiVersion": "resource.k8s.io/v1beta2", "objects": 1})
        ),
        "{audit}"
    );
    let (_, text, _) = run(&double, &folder, &["audit", "--policy", "policy.yaml", "--now", NOW]);
    assert!(text.contains(" --> resourceslices/odd:"), "{text}");
    assert!(text.contains(" key: \"-bad-\"\n"), "the object is shown as YAML: {text}");
    assert!(text.contains("23 objects: 2 invalid, 1 with warnings, 20 valid\n"), "{text}");
    assert!(
        text.contains(
            "NAMESPACE  DENIED  WARNED  OBJECTS\n(cluster)  1       2       2\nml         1       0       1\n"
        ),
        "{text}"
    );
    // One namespace needs the rights of that namespace only.
    let before = double.requests().len();
    let (code, text, err) =
        run(&double, &folder, &["audit", "--policy", "policy.yaml", "-n", "web", "--now", NOW]);
    assert!(code == 0 && text.starts_with("9 objects: 9 valid"), "{text}{err}");
    assert!(
        double
            .requests()
            .iter()
            .skip(before)
            .all(|line| !line.contains("/pods?") || line.contains("/namespaces/web/pods?"))
    );
}

#[test]
fn what_the_audit_cannot_list_is_said() {
    let (double, folder) = (cluster_with_problems("audit-403"), files("audit-403"));
    double.refuse(&[(NAMESPACES, 403), (TEMPLATES, 404)]);
    let (code, out, err) = run(&double, &folder, &["audit", "-o", "json", "--rules", "lint"]);
    assert_eq!(code, 3, "{err}");
    let report: Value = serde_json::from_str(&out).expect("JSON");
    assert!(
        report["audit"]["incomplete"][0]
            .as_str()
            .is_some_and(|why| why.starts_with("cannot list namespaces: the API server returned 403")),
        "{out}"
    );
    assert!(err.contains("note: this API server does not serve resourceclaimtemplates"), "{err}");
    assert!(err.contains("note: some objects could not be read; there may be more findings"), "{err}");
    // The snapshot says so in its place, and whoever reads it learns of it.
    double.refuse(&[(PODS, 403)]);
    double.page(2);
    double.break_lists_after(4, 500);
    let (code, text, err) = run(&double, &folder, &["snapshot"]);
    assert_eq!(code, 3, "{err}");
    assert!(text.contains("---\napiVersion: v1\nkind: PodList\nmetadata: {continue: incomplete}\nitems: []\n# cannot list pods: the API server returned 403: "), "{text}");
    assert!(text.contains("kind: ResourceClaimList\nmetadata: {continue: incomplete}\nitems: []\n# cannot list resourceclaims: "), "{text}");
    std::fs::write(folder.join("part.yaml"), text).expect("written");
    let (code, _, err) = run(&double, &folder, &["audit", "--state", "part.yaml", "--rules", "lint"]);
    assert!(code == 3 && err.contains("part.yaml contains an incomplete ResourceClaimList"), "{err}");
    let (_, _, err) = run(&double, &folder, &["impact", "rule.yaml", "--state", "part.yaml"]);
    assert!(err.contains("part.yaml contains an incomplete PodList"), "{err}");
    let (code, _, err) = run_in(&double, &folder, &["snapshot"], &[("CI", "true")]);
    assert!(code == 2 && err.contains("CI is set; choose the cluster with --context NAME\n"), "{err}");
}

/// Without `--policy`, the audit judges as a webhook with the policies of the cluster would.
#[test]
fn stored_policies_apply_without_policy_files() {
    let (double, folder) = (cluster_with_problems("audit-policies"), files("audit-policies"));
    let audit = |more: &[&str]| run(&double, &folder, &[&["audit", "--rules", "policy"], more].concat());
    let (code, out, err) = audit(&[]);
    assert!(code == 0 && !err.contains("polic"), "no definitions: {out}{err}");
    double.install_policies();
    let (code, out, err) = audit(&[]);
    assert!(code == 0 && !err.contains("polic"), "no policies: {out}{err}");
    double.put(TOLERATION_POLICIES, json!({
        "apiVersion": "tollgate.dev/v1alpha1", "kind": "TolerationPolicy", "metadata": {"name": "research", "uid": "u"},
        "spec": {"match": {"namespaceSelector": {"matchLabels": {"team": "ml"}}}, "allow": [{"key": "example.com/slow"}]},
    }));
    let (code, out, err) = audit(&[]);
    assert!(code == 1 && out.contains("policy research"), "{out}{err}");
    assert!(err.contains("note: checking against the policies of the cluster (1)"), "{err}");
    std::fs::write(folder.join("policy.yaml"), POLICY.replace("example.com/slow", "example.com/*"))
        .expect("written");
    let (code, out, err) = audit(&["--policy", "policy.yaml"]);
    assert!(code == 0 && !err.contains("of the cluster"), "only the file: {out}{err}");
    double.refuse(&[("/tolerationpolicies", 403)]);
    let (code, out, err) = audit(&[]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(err.contains("note: the policies of the cluster are not checked: "), "{err}");
    assert!(err.contains("ClusterRole tollgate-policy-reader"), "{err}");
    double.refuse(&[("/tolerationpolicies", 500)]);
    let (code, out, err) = audit(&[]);
    assert!(code == 3 && err.contains("cannot list tolerationpolicies.tollgate.dev"), "{out}{err}");
    only_reads(&double);
}

#[test]
fn an_incomplete_snapshot_never_passes_as_complete() {
    let (double, folder) = (cluster_with_problems("audit-part"), files("audit-part"));
    for (collection, kind) in [
        (NAMESPACES, "NamespaceList"),
        (TEMPLATES, "ResourceClaimTemplateList"),
        (PODS, "PodList"),
        (RULES, "DeviceTaintRuleList"),
        (BUDGETS, "PodDisruptionBudgetList"),
    ] {
        double.refuse(&[(collection, 403)]);
        let (code, _, err) = run(&double, &folder, &["snapshot", "-o", "part.yaml"]);
        assert_eq!(code, 3, "{kind}: {err}");
        let says = format!("part.yaml contains an incomplete {kind}");
        let (code, _, err) = run(&double, &folder, &["audit", "--state", "part.yaml", "--rules", "lint"]);
        assert!(code == 3 && err.contains(&format!("error: {says}")), "{kind}: {err}");
        let impact = ["impact", "rule.yaml", "--state", "part.yaml", "-o", "json"];
        let (_, out, err) = run(&double, &folder, &impact);
        let record: Value = serde_json::from_str(&out).expect("JSON");
        // Impact reads neither templates nor namespaces.
        if [TEMPLATES, NAMESPACES].contains(&collection) {
            assert!(record["incomplete"] == json!([]) && !err.contains("incomplete"), "{kind}: {out}{err}");
            continue;
        }
        let (code, _, err) = run(&double, &folder, &impact);
        let expected = format!("error: the dump is incomplete: {says}\n");
        assert!(code == 3 && err.ends_with(&expected), "as at the cluster: {kind}: {err}");
        assert_eq!(record["incomplete"], json!([says]), "{kind}: {out}");
        let limited = [&impact[..], &["--max", "pods=100", "--assume-complete"]].concat();
        let (code, _, err) = run(&double, &folder, &limited);
        assert!(code == 3 && err.contains(&format!("cannot check --max: {says}\n")), "{kind}: {err}");
    }
}

/// Without permission to list slices, it must not be reported that a device is in no slice.
#[test]
fn what_was_not_listed_is_not_known() {
    let (double, folder) = (cluster_with_problems("audit-unknown"), files("audit-unknown"));
    double.refuse(&[(SLICES, 403)]);
    let (code, _, err) = run(&double, &folder, &["snapshot", "-o", "part.yaml"]);
    assert_eq!(code, 3, "{err}");
    for state in [&[][..], &["--state", "part.yaml"]] {
        let (code, out, err) = run(&double, &folder, &[&["impact", "rule.yaml"], state].concat());
        assert_eq!(code, 3, "{err}");
        assert!(out.contains("total: at least 7 pods evicted") && !out.contains("in no slice"), "{out}");
    }
    let all = [SLICES, CLAIMS, PODS, RULES, BUDGETS, NAMESPACES, TEMPLATES, CLASSES];
    double.refuse(&all.map(|collection| (collection, 403)));
    let (code, _, err) = run(&double, &folder, &["snapshot", "-o", "none.yaml"]);
    assert_eq!(code, 3, "{err}");
    let (code, _, err) = run(&double, &folder, &["impact", "rule.yaml", "--state", "none.yaml"]);
    let expected = "error: the dump is incomplete: none.yaml contains an incomplete ResourceClaimList; none.yaml \
        contains an incomplete ResourceSliceList; ";
    assert!(code == 3 && err.contains(expected), "{err}");
}

#[test]
fn an_upgrade_is_judged_beforehand() {
    let (double, folder) = (cluster_with_problems("audit-upgrade"), files("audit-upgrade"));
    let (code, out, err) = run(
        &double,
        &folder,
        &["audit", "--kubernetes", "1.33", "--rules", "upstream,decoding,strict", "-o", "json"],
    );
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("note: Kubernetes 1.33 serves DeviceTaintRule as v1alpha3, not as v1beta2; the objects are checked in the version in which they were listed"), "{err}");
    assert!(!out.contains("unserved-version"), "{out}");
    // 1.33 and 1.34 know no status of a rule, and audits do not judge it.
    for release in ["1.33", "1.34"] {
        let (_, out, err) = run(
            &double,
            &folder,
            &["audit", "--kubernetes", release, "--rules", "upstream,decoding,strict", "-o", "json"],
        );
        assert!(out.contains("taint-key") && !out.contains("unknown-field"), "{release}: {out}{err}");
    }
    let (_, out, _) =
        run(&double, &folder, &["audit", "--kubernetes", "1.33", "--rules", "version-off-by-default"]);
    assert!(out.contains("--runtime-config=resource.k8s.io/v1beta2=true"), "{out}");
    assert!(!out.contains("resource.k8s.io/v1=true"), "1.33 has no v1: {out}");
    let (code, out, _) = run(
        &double,
        &folder,
        &["audit", "--kubernetes", "1.37", "--rules", "dropped-field,version-off-by-default"],
    );
    assert_eq!(code, 0, "{out}");
    // 1.35 has DeviceTaintRules only in a version that is off by default, behind a gate that is off by default.
    let (_, out, _) =
        run(&double, &folder, &["audit", "--kubernetes", "1.35", "--rules", "version-off-by-default"]);
    assert!(out.contains("devicetaintrules/drain"), "{out}");
    // The finding is at the version of the object, so it names no other one but in the flag.
    let (_, out, _) =
        run(&double, &folder, &["audit", "--kubernetes", "1.34", "--rules", "version-off-by-default"]);
    let expected = "Kubernetes does not serve DeviceTaintRule by default; to enable it, start kube-apiserver with \
        --runtime-config=resource.k8s.io/v1alpha3=true";
    assert!(out.contains(expected), "{out}");
}

#[test]
fn rules_that_an_upgrade_puts_into_effect_are_reported() {
    let (double, folder) = (cluster_with_problems("audit-effect"), files("audit-effect"));
    let audit = |more: &[&str]| {
        let arguments = [&["audit", "--kubernetes", "1.37", "--rules", "rule-takes-effect"], more].concat();
        run(&double, &folder, &arguments)
    };
    double.release("36");
    double.report_gates(&[("DRADeviceTaints", true), ("DRADeviceTaintRules", false)]);
    let (code, out, err) = audit(&[]);
    assert!(code == 0 && out.contains("warning[rule-takes-effect]"), "{out}{err}");
    assert!(
        out.contains("DRADeviceTaintRules is off on this API server, so this rule has no effect"),
        "{out}"
    );
    assert!(
        out.contains("`kubectl get devicetaintrule drain -o yaml | tollgate impact - --kubernetes 1.37`"),
        "{out}"
    );
    // A snapshot says the same.
    let (code, _, err) = run(&double, &folder, &["snapshot", "-o", "state.yaml"]);
    assert_eq!(code, 0, "{err}");
    // Lines differ: what the snapshot leaves out is not shown.
    let without_line = |(_, out, _): (i32, String, String)| {
        let (_, message) = out.split_once(": warning[").expect("a warning");
        message.to_owned()
    };
    assert_eq!(
        without_line(audit(&["--state", "state.yaml", "-o", "concise"])),
        without_line(audit(&["-o", "concise"]))
    );
    // The flag is about the release that is asked for.
    let (_, out, _) = audit(&["--feature-gates", "DRADeviceTaintRules=true"]);
    assert!(out.contains("rule-takes-effect"), "{out}");
    let (_, out, _) = audit(&["--feature-gates", "DRADeviceTaintRules=false"]);
    assert!(!out.contains("rule-takes-effect"), "{out}");
    double.report_gates(&[("DRADeviceTaints", true), ("DRADeviceTaintRules", true)]);
    let (_, out, _) = audit(&[]);
    assert!(!out.contains("rule-takes-effect"), "it acts already: {out}");
}

#[test]
fn findings_of_level_audit_are_shown_and_counted() {
    let (double, folder) = (cluster_with_problems("audit-level"), files("audit-level"));
    std::fs::write(folder.join("policy.yaml"), POLICY.replace("action: Deny", "action: Audit"))
        .expect("written");
    let audit = |more: &[&str]| {
        let arguments = ["audit", "--policy", "policy.yaml", "--rules", "policy-toleration", "--now", NOW];
        run(&double, &folder, &[&arguments, more].concat())
    };
    let (code, out, err) = audit(&[]);
    assert!(code == 0 && out.contains("audit[policy-toleration]"), "{out}{err}");
    assert!(out.contains("23 objects: 23 valid; 1 audit finding\n"), "{out}");
    assert!(out.contains("ml         0       0       1        1\n"), "{out}");
    let (_, out, _) = audit(&["--allow", "policy"]);
    assert!(out.contains("23 objects: 23 valid; not reported: 1 allowed\n"), "{out}");
    let (_, out, _) = audit(&["--statistics"]);
    assert!(out.starts_with("1  policy-toleration  policy  audit\n23 objects: "), "{out}");
    let (_, out, _) = audit(&["-o", "concise"]);
    assert!(out.contains(": audit[policy-toleration] ") && out.contains("\n23 objects: "), "{out}");
    let (_, out, _) = audit(&["-o", "json", "--statistics"]);
    let report: Value = serde_json::from_str(&out).expect("JSON");
    let (_, schema, _) = run(&double, &folder, &["schema", "validate"]);
    let schema = jsonschema::validator_for(&serde_json::from_str(&schema).expect("JSON")).expect("a schema");
    assert!(
        schema.is_valid(&report) && report["audit"]["byRule"]["policy-toleration"]["audited"] == 1,
        "{out}"
    );
}

#[test]
fn reports_are_those_of_openreports() {
    let (double, folder) = (cluster_with_problems("audit-openreports"), files("audit-openreports"));
    write(&folder);
    let (_, out, err) =
        run(&double, &folder, &["audit", "--policy", "policy.yaml", "--now", NOW, "-o", "openreports"]);
    // Fewer findings need fewer reports: those of earlier audits are found by a label.
    let prune = "kubectl delete reports.openreports.io,clusterreports.openreports.io -A -l \
        'app.kubernetes.io/managed-by=tollgate,tollgate.dev/audit-time!=1769904000'\n";
    assert!(
        err.ends_with(&format!(
            "note: after you apply these reports, delete the reports from earlier audits with: {prune}"
        )),
        "{err}"
    );
    let labelled = |item: &Value| item["metadata"]["labels"]["tollgate.dev/audit-time"] == "1769904000";
    let list: Value = serde_json::from_str(&out).expect("JSON");
    assert!(list["items"].as_array().expect("items").iter().all(labelled), "{out}");
    let (_, _, err) = run(&double, &folder, &["audit", "-n", "ml", "--now", NOW, "-o", "openreports"]);
    assert!(err.contains("kubectl delete reports.openreports.io -n ml -l 'app"), "{err}");
    let list: Value = serde_json::from_str(&out).expect("JSON");
    let schema: Value = serde_json::from_str(include_str!("data/openreports.schema.json")).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let errors: Vec<String> = validator.iter_errors(&list).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    let kinds: Vec<String> = list["items"]
        .as_array()
        .expect("items")
        .iter()
        .map(|item| {
            format!(
                "{} {} {}",
                item["kind"].as_str().expect("kind"),
                item["metadata"]["namespace"].as_str().unwrap_or("-"),
                item["summary"]
            )
        })
        .collect();
    assert_eq!(
        kinds,
        [
            r#"ClusterReport - {"error":0,"fail":1,"pass":3,"skip":0,"warn":2}"#,
            r#"Report ml {"error":0,"fail":1,"pass":8,"skip":0,"warn":0}"#,
            r#"Report web {"error":0,"fail":0,"pass":9,"skip":0,"warn":0}"#,
        ]
    );
    assert_eq!(list["items"][1]["results"][0]["policy"], "research");
    let wrong = json!({"apiVersion": "v1", "kind": "List", "items": [{"kind": "Report"}]});
    assert!(!validator.is_valid(&wrong), "the schema refuses something");
}

#[test]
fn reports_can_be_applied_whatever_their_number() {
    let (double, folder) = (cluster_with_problems("audit-large"), files("audit-large"));
    for number in 0..20 {
        let mut wrong = slice(&format!("wrong-{number}"), 64);
        for device in wrong["spec"]["devices"].as_array_mut().expect("devices") {
            device["taints"] =
                json!([{"key": "<a&b>", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}]);
        }
        double.put(SLICES, wrong);
    }
    double.refuse(&[(PODS, 403), (TEMPLATES, 500)]);
    let (code, out, err) = run(&double, &folder, &["audit", "--now", NOW, "-o", "openreports"]);
    assert_eq!(code, 1, "{err}");
    let list: Value = serde_json::from_str(&out).expect("JSON");
    let schema: Value = serde_json::from_str(include_str!("data/openreports.schema.json")).expect("JSON");
    assert!(jsonschema::validator_for(&schema).expect("a schema").is_valid(&list));
    let items = list["items"].as_array().expect("items");
    let mut names = std::collections::BTreeSet::new();
    let (mut failed, mut errors) = (0, Vec::new());
    for item in items {
        assert!(names.insert(item["metadata"].to_string()), "{}", item["metadata"]);
        // kubectl keeps it in an annotation, with Go's escapes.
        let text = item.to_string();
        let size = text.len() + 5 * text.bytes().filter(|byte| b"<>&".contains(byte)).count();
        assert!(size < 250_000, "{size}");
        let results = item["results"].as_array().expect("results");
        for kind in ["fail", "warn", "error"] {
            let count = results.iter().filter(|result| result["result"] == kind).count();
            assert_eq!(item["summary"][kind], count, "{}", item["metadata"]);
        }
        failed += item["summary"]["fail"].as_u64().expect("a count");
        let is_error = |result: &&Value| result["result"] == "error";
        errors.extend(results.iter().filter(is_error).map(|result| {
            assert_eq!(item["kind"], "ClusterReport");
            result["message"].as_str().expect("a message").to_owned()
        }));
    }
    assert!(failed >= 1281 && items.len() > 4, "{failed} in {}", items.len());
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert!(errors.iter().any(|error| error.starts_with("cannot list pods: ")), "{errors:?}");
}

#[test]
fn a_namespace_that_does_not_exist_is_no_clean_one() {
    let (double, folder) = (cluster_with_problems("audit-nosuch"), files("audit-nosuch"));
    for name in ["", "a/b", "A", "-a"] {
        let (code, out, err) = run(&double, &folder, &["audit", &format!("--namespace={name}")]);
        assert!(code == 2 && out.is_empty() && err.contains("--namespace"), "{name}: {err}");
    }
    let (code, _, err) = run(&double, &folder, &["audit", "-n", "nosuch"]);
    assert!(code == 3 && err.contains("error: namespace nosuch does not exist"), "{err}");
    double.refuse(&[("/api/v1/namespaces/nosuch?", 403)]);
    let (code, _, err) = run(&double, &folder, &["audit", "-n", "nosuch"]);
    let expected = "error: cannot check whether namespace nosuch exists: the API server returned 403";
    assert!(code == 3 && err.contains(expected), "{err}");
    double.refuse(&[("/api/v1/namespaces/ml?", 403)]);
    let (code, _, err) = run(&double, &folder, &["audit", "-n", "ml"]);
    assert!(code != 3 && err.contains("note: cannot read the labels of namespace ml"), "{err}");
    double.refuse(&[]);
    double.put(NAMESPACES, json!({"metadata": {"name": "empty"}}));
    let (code, _, err) = run(&double, &folder, &["audit", "-n", "empty"]);
    assert_eq!(code, 0, "{err}");
    let (code, _, err) = run(&double, &folder, &["snapshot", "-o", "state.yaml"]);
    assert_eq!(code, 0, "{err}");
    let (code, _, err) = run(&double, &folder, &["audit", "--state", "state.yaml", "-n", "nosuch"]);
    assert!(code == 3 && err.contains("error: the dump contains no objects in namespace nosuch"), "{err}");
    let (code, _, err) = run(&double, &folder, &["audit", "--state", "state.yaml", "-n", "empty"]);
    assert_eq!(code, 0, "{err}");
}

#[test]
fn what_is_no_dump_cannot_be_read() {
    let (double, folder) = (cluster_with_problems("audit-foreign"), files("audit-foreign"));
    let claim = "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: c, namespace: d}\n\
                 spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}\n";
    for (text, at) in [
        ("foo: bar\n".to_owned(), "dump.yaml:1:1"),
        ("kind: [Pod]\napiVersion: v1\n".to_owned(), "dump.yaml:1:1"),
        (format!("{claim}---\napiVersion: v1\nkin\n"), "dump.yaml:"),
        (
            format!("{claim}---\napiVersion: v1\nkind: List\nitems:\n- apiVersion: resource.k8s.io/v1\n"),
            "dump.yaml:9:3",
        ),
    ] {
        std::fs::write(folder.join("dump.yaml"), &text).expect("written");
        for format in ["text", "json"] {
            let (code, out, err) = run(&double, &folder, &["audit", "--state", "dump.yaml", "-o", format]);
            assert_eq!(code, 3, "{text}: {out}{err}");
            assert!(
                !out.contains("missing-type") && (format == "json" || out.contains(at)),
                "{text}: {out}{err}"
            );
        }
    }
}

#[test]
fn apis_that_are_installed_on_their_own_are_judged_where_they_are() {
    let (double, folder) = (cluster_with_problems("audit-fdb"), files("audit-fdb"));
    double.serves(FOUNDATIONDB);
    double.put("/apis", json!({"metadata": {"name": "apps.foundationdb.org"}, "kind": "APIGroup"}));
    double.put(FOUNDATIONDB, json!({
        "metadata": {"name": "db", "namespace": "web"},
        "spec": {"automationOptions": {"replacements": {"enabled": true, "taintReplacementOptions": [{"key": "*", "durationInSeconds": -5}]}},
                 "processes": {"general": {"podTemplate": {"spec": {"containers": [{"env": [{"value": "TOKEN"}]}]}}}}},
    }));
    let (_, out, err) = run(&double, &folder, &["audit", "--rules", "documented,lint"]);
    assert!(out.contains("foundationdbclusters/web/db"), "{out}{err}");
    let (code, text, _) = run(&double, &folder, &["snapshot"]);
    assert!(code == 0 && text.contains("taintReplacementOptions") && !text.contains("TOKEN"), "{text}");
}
