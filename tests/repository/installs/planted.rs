//! Plants an error for each check into objects that pass all checks.
#![cfg_attr(
    not(feature = "online"),
    allow(dead_code, unused_imports, reason = "the checks need the whole program")
)]
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "builds JSON")]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that cannot read its data has failed"
)]

use serde_json::{Value, json};

use super::overlay;
use crate::install_checks::{CHECKS, Installation};
use crate::kustomize::Files;

/// A planted error: the check that must report it, its description, and the change that introduces it.
type Planted = (&'static str, &'static str, fn(&mut Vec<Value>));

fn object<'a>(objects: &'a mut [Value], kind: &str) -> &'a mut Value {
    objects.iter_mut().find(|object| object["kind"] == kind).expect("it is there")
}

fn role<'a>(o: &'a mut [Value], kind: &str, name: &str) -> &'a mut Value {
    let is_it = |object: &&mut Value| object["kind"] == kind && object["metadata"]["name"] == name;
    o.iter_mut().find(is_it).expect("it is there")
}

fn container(objects: &mut [Value]) -> &mut Value {
    &mut object(objects, "Deployment")["spec"]["template"]["spec"]["containers"][0]
}

fn rename_variable(objects: &mut [Value], from: &str, to: &str) {
    let variables = container(objects)["env"].as_array_mut().expect("variables");
    let found = variables.iter_mut().find(|variable| variable["name"] == from).expect("it is there");
    found["name"] = json!(to);
}

const PLANTED: &[Planted] = &[
    ("decodes as the API types", "a misspelt field", |o| {
        object(o, "Service")["spec"]["select"] = json!({});
        object(o, "Service")["spec"]["port"] = json!(1);
    }),
    ("each object once", "an object twice", |o| o.push(o[1].clone())),
    ("order", "something after the webhook configurations", |o| {
        let first = o.remove(1);
        o.push(first);
    }),
    ("order", "the namespace not first", |o| o.swap(0, 1)),
    ("namespace", "an object in another namespace", |o| {
        object(o, "Service")["metadata"]["namespace"] = json!("other")
    }),
    ("namespace", "a namespace that nobody creates", |o| {
        object(o, "Namespace")["metadata"]["name"] = json!("other")
    }),
    ("service and ports", "a Service of another name", |o| {
        object(o, "Service")["metadata"]["name"] = json!("gate")
    }),
    ("service and ports", "a Service that selects nothing", |o| {
        object(o, "Service")["spec"]["selector"] = json!({"app": "x"})
    }),
    ("service and ports", "a port that is not registered", |o| {
        object(o, "Service")["spec"]["ports"][0]["port"] = json!(8443)
    }),
    ("service and ports", "a targetPort of the wrong port", |o| {
        object(o, "Service")["spec"]["ports"][0]["targetPort"] = json!("ops")
    }),
    ("service and ports", "another port is listened on", |o| {
        container(o)["args"].as_array_mut().expect("a list").push(json!("--listen=0.0.0.0:9443"));
    }),
    ("labels and selectors", "a Deployment that does not select its pods", |o| {
        object(o, "Deployment")["spec"]["template"]["metadata"]["labels"] = json!({"app": "x"});
    }),
    ("labels and selectors", "a PDB of other pods", |o| {
        object(o, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"] = json!({"app": "x"});
    }),
    ("labels and selectors", "a PDB that blocks every drain", |o| {
        object(o, "PodDisruptionBudget")["spec"]["minAvailable"] = json!(3)
    }),
    ("labels and selectors", "a NetworkPolicy of other pods", |o| {
        object(o, "NetworkPolicy")["spec"]["podSelector"]["matchLabels"] = json!({"app": "x"});
    }),
    ("labels and selectors", "a spread of other pods", |o| {
        let pod = &mut object(o, "Deployment")["spec"]["template"]["spec"];
        pod["topologySpreadConstraints"][0]["labelSelector"]["matchLabels"] = json!({"app": "x"});
    }),
    ("labels and selectors", "an object that an uninstall by label leaves", |o| {
        object(o, "ValidatingWebhookConfiguration")["metadata"]["labels"] = json!({});
    }),
    ("secrets, config maps and mounts", "another Secret than the one that exists", |o| {
        object(o, "Secret")["metadata"]["name"] = json!("other");
    }),
    ("secrets, config maps and mounts", "a Secret without the key", |o| {
        object(o, "Secret")["data"] = json!({"tls.crt": ""});
    }),
    ("secrets, config maps and mounts", "a mount without a volume", |o| {
        container(o)["volumeMounts"][0]["name"] = json!("x")
    }),
    ("secrets, config maps and mounts", "a certificate outside of the mount", |o| {
        container(o)["volumeMounts"][0]["mountPath"] = json!("/cert");
    }),
    ("probes and ports", "a probe of the wrong port", |o| {
        container(o)["readinessProbe"]["httpGet"]["port"] = json!("webhook")
    }),
    ("probes and ports", "a probe of the wrong path", |o| {
        container(o)["livenessProbe"]["httpGet"]["path"] = json!("/readyz")
    }),
    ("probes and ports", "a pod that is killed while it drains", |o| {
        object(o, "Deployment")["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = json!(15);
    }),
    ("probes and ports", "an image without a version", |o| container(o)["image"] = json!("tollgate:latest")),
    ("network policy", "a port that the pod does not have", |o| {
        object(o, "NetworkPolicy")["spec"]["ingress"][1]["ports"][0]["port"] = json!("metrics");
    }),
    ("network policy", "a webhook that only pods reach", |o| {
        object(o, "NetworkPolicy")["spec"]["ingress"][0]["from"] = json!([{"namespaceSelector": {}}]);
    }),
    ("network policy", "probes and metrics that all pods reach", |o| {
        object(o, "NetworkPolicy")["spec"]["ingress"][1]["from"] = json!([{"namespaceSelector": {}}]);
    }),
    ("network policy", "probes and metrics that everybody reaches", |o| {
        object(o, "NetworkPolicy")["spec"]["ingress"][1]["from"] = json!([]);
    }),
    ("network policy", "a way out that is not needed", |o| {
        object(o, "NetworkPolicy")["spec"]["egress"] = json!([{"ports": [{"port": 443}]}]);
    }),
    ("webhooks", "another Service", |o| {
        object(o, "ValidatingWebhookConfiguration")["webhooks"][0]["clientConfig"]["service"]["name"] =
            json!("gate");
    }),
    ("webhooks", "another namespace of the Service", |o| {
        object(o, "ValidatingWebhookConfiguration")["webhooks"][1]["clientConfig"]["service"]["namespace"] =
            json!("other");
    }),
    ("webhooks", "another port of the Service", |o| {
        object(o, "MutatingWebhookConfiguration")["webhooks"][0]["clientConfig"]["service"]["port"] =
            json!(8443);
    }),
    ("webhooks", "the path of the other endpoint", |o| {
        object(o, "MutatingWebhookConfiguration")["webhooks"][0]["clientConfig"]["service"]["path"] =
            json!("/validate");
    }),
    ("webhooks", "no caBundle", |o| {
        object(o, "ValidatingWebhookConfiguration")["webhooks"][2]["clientConfig"]["caBundle"] = json!("");
    }),
    ("webhooks", "claims of kube-system", |o| {
        let selector = &mut object(o, "ValidatingWebhookConfiguration")["webhooks"][0]["namespaceSelector"];
        selector["matchExpressions"][0]["values"] = json!(["tollgate-system"]);
    }),
    ("webhooks", "claims of its own namespace", |o| {
        let selector = &mut object(o, "ValidatingWebhookConfiguration")["webhooks"][0]["namespaceSelector"];
        selector["matchExpressions"][0]["values"] = json!(["kube-system"]);
    }),
    ("restricted pods", "a namespace that enforces nothing", |o| {
        object(o, "Namespace")["metadata"]["labels"] = json!({"app.kubernetes.io/name": "tollgate"});
    }),
    ("restricted pods", "a root file system that can be written", |o| {
        container(o)["securityContext"]["readOnlyRootFilesystem"] = json!(false);
    }),
];

/// Plants errors in the output of `tollgate manifests`, which contains every kind of object except RBAC.
#[cfg(feature = "online")]
#[test]
fn every_check_notices_a_planted_fault() {
    let printed = crate::manifests::printed_with_certificate("planted", &[]);
    assert_eq!(
        Installation { objects: printed.clone(), namespace_exists: false, from_user: &[] }.faults(),
        [""; 0]
    );
    for (check, fault, plant) in PLANTED {
        let mut objects = printed.clone();
        plant(&mut objects);
        let faults = Installation { objects, namespace_exists: false, from_user: &[] }.faults();
        assert!(faults.iter().any(|found| found.starts_with(&format!("{check}: "))), "{fault}: {faults:?}");
    }
    for (check, _) in CHECKS {
        let planted = PLANTED.iter().chain(PLANTED_IN_OVERLAY).any(|(planted, ..)| *planted == check);
        assert!(planted, "no fault is planted for {check}");
    }
}

const PLANTED_IN_OVERLAY: &[Planted] = &[
    ("permissions", "a verb less", |o| {
        object(o, "ClusterRole")["rules"][0]["verbs"] = json!(["list", "watch"])
    }),
    ("permissions", "a resource less", |o| {
        object(o, "ClusterRole")["rules"][0]["resources"] = json!(["pods"])
    }),
    ("permissions", "no metrics", |o| {
        let rules = object(o, "ClusterRole")["rules"].as_array_mut().expect("rules");
        rules.retain(|rule| rule.get("nonResourceURLs").is_none());
    }),
    ("permissions", "more than is needed", |o| {
        let rules = object(o, "ClusterRole")["rules"].as_array_mut().expect("rules");
        rules.push(json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}));
    }),
    ("permissions", "a binding of another account", |o| {
        object(o, "ClusterRoleBinding")["subjects"][0]["name"] = json!("other");
    }),
    ("permissions", "a binding of another namespace", |o| {
        object(o, "ClusterRoleBinding")["subjects"][0]["namespace"] = json!("other");
    }),
    ("permissions", "no token", |o| {
        object(o, "Deployment")["spec"]["template"]["spec"]["automountServiceAccountToken"] = json!(false);
    }),
    ("permissions", "another configuration than those that are named", |o| {
        let variables = container(o)["env"].as_array_mut().expect("variables");
        variables.push(json!({"name": "TOLLGATE_REGISTER_WITH", "value": "other"}));
    }),
    ("permissions", "an owner that is not there", |o| {
        let variables = container(o)["env"].as_array_mut().expect("variables");
        let owner = variables
            .iter_mut()
            .find(|found| found["name"] == "TOLLGATE_REGISTER_OWNER")
            .expect("it is there");
        owner["value"] = json!("other");
    }),
    ("network policy", "no way to the API server", |o| {
        object(o, "NetworkPolicy")["spec"]["egress"] = json!([])
    }),
    ("flags and variables", "a flag that does not exist", |o| {
        container(o)["args"].as_array_mut().expect("a list").push(json!("--register-everything"));
    }),
    ("flags and variables", "a variable that does not exist", |o| {
        rename_variable(o, "TOLLGATE_CLUSTER", "TOLLGATE_CLUSTERS");
    }),
    ("secrets, config maps and mounts", "policies in no volume", |o| {
        let variables = container(o)["env"].as_array_mut().expect("variables");
        variables.push(json!({"name": "TOLLGATE_POLICY", "value": "/policies"}));
    }),
];

/// Plants errors in the overlay that needs most permissions.
#[cfg(feature = "online")]
#[test]
fn every_check_of_permissions_notices_a_planted_fault() {
    let files = Files::of_repository();
    for (check, fault, plant) in PLANTED_IN_OVERLAY {
        let mut planted = overlay(&files, "cluster");
        plant(&mut planted.objects);
        let faults = planted.faults();
        assert!(faults.iter().any(|found| found.starts_with(&format!("{check}: "))), "{fault}: {faults:?}");
    }
}

/// Faults in the nightly audit.
#[cfg(feature = "online")]
#[test]
fn faults_of_the_audit_are_noticed() {
    fn role(o: &mut [Value]) -> &mut Value {
        o.iter_mut()
            .find(|object| object["kind"] == "ClusterRole" && object["metadata"]["name"] == "tollgate-audit")
            .expect("it is there")
    }
    fn pod(o: &mut [Value]) -> &mut Value {
        &mut object(o, "CronJob")["spec"]["jobTemplate"]["spec"]["template"]
    }
    let files = Files::of_repository();
    let planted: [Planted; 6] = [
        ("permissions", "a resource less", |o| role(o)["rules"][0]["resources"] = json!(["resourceclaims"])),
        ("permissions", "a verb more", |o| role(o)["rules"][1]["verbs"] = json!(["list", "delete"])),
        ("permissions", "another account", |o| pod(o)["spec"]["serviceAccountName"] = json!("tollgate")),
        ("permissions", "no token", |o| pod(o)["spec"]["automountServiceAccountToken"] = json!(false)),
        ("permissions", "pods that the Service selects", |o| {
            pod(o)["metadata"]["labels"]["app.kubernetes.io/name"] = json!("tollgate");
        }),
        ("permissions", "another command", |o| {
            pod(o)["spec"]["containers"][0]["args"] = json!(["serve"]);
        }),
    ];
    for (check, fault, plant) in planted {
        let mut planted = overlay(&files, "audit");
        plant(&mut planted.objects);
        let faults = planted.faults();
        assert!(faults.iter().any(|found| found.starts_with(&format!("{check}: "))), "{fault}: {faults:?}");
    }
}

/// Faults in the roles of `tollgate drain`.
#[cfg(feature = "online")]
#[test]
fn faults_of_the_drain_roles_are_noticed() {
    let files = Files::of_repository();
    let planted: [Planted; 7] = [
        ("permissions", "a verb less", |o| {
            role(o, "ClusterRole", "tollgate-drain")["rules"][0]["verbs"] = json!(["list"]);
        }),
        ("permissions", "pods that every drain may delete", |o| {
            role(o, "ClusterRole", "tollgate-drain")["rules"][1]["verbs"] =
                json!(["list", "watch", "delete"]);
        }),
        ("permissions", "nodes that may be deleted by force", |o| {
            role(o, "ClusterRole", "tollgate-drain-force")["rules"][0]["resources"] =
                json!(["pods", "nodes"]);
        }),
        ("permissions", "every Lease", |o| {
            let rule = &mut role(o, "Role", "tollgate-drain")["rules"][0];
            rule.as_object_mut().expect("a rule").remove("resourceNames");
        }),
        ("permissions", "no role for the Lease", |o| o.retain(|object| object["kind"] != "Role")),
        ("permissions", "no Lease", |o| o.retain(|object| object["kind"] != "Lease")),
        ("namespace", "a Lease that the Role is not for", |o| {
            object(o, "Lease")["metadata"]["namespace"] = json!("default");
        }),
    ];
    for (check, fault, plant) in planted {
        let mut planted = overlay(&files, "drain");
        plant(&mut planted.objects);
        let faults = planted.faults();
        assert!(faults.iter().any(|found| found.starts_with(&format!("{check}: "))), "{fault}: {faults:?}");
    }
}

/// Faults in what policies that are custom resources need.
#[cfg(feature = "online")]
#[test]
fn faults_of_policy_resources_are_noticed() {
    let files = Files::of_repository();
    let planted: [Planted; 8] = [
        ("permissions", "policies that the server may change", |o| {
            role(o, "ClusterRole", "tollgate-policies")["rules"][0]["verbs"] =
                json!(["list", "watch", "patch"]);
        }),
        ("permissions", "a status that cannot be written", |o| {
            role(o, "ClusterRole", "tollgate-policies")["rules"].as_array_mut().expect("rules").truncate(1);
        }),
        ("permissions", "every Lease", |o| {
            let rule = &mut role(o, "Role", "tollgate-policies")["rules"][0];
            rule.as_object_mut().expect("a rule").remove("resourceNames");
        }),
        ("permissions", "no binding for the Lease", |o| o.retain(|object| object["kind"] != "RoleBinding")),
        ("permissions", "no Lease", |o| o.retain(|object| object["kind"] != "Lease")),
        ("permissions", "a definition that is missing", |o| {
            o.retain(|object| object["metadata"]["name"] != "taintpolicies.tollgate.dev");
        }),
        ("permissions", "a role that every admin of a namespace gets", |o| {
            role(o, "ClusterRole", "tollgate-policy-admin")["metadata"]["labels"] =
                json!({"rbac.authorization.k8s.io/aggregate-to-admin": "true"});
        }),
        ("permissions", "a cluster that is not watched", |o| {
            let variables = container(o)["env"].as_array_mut().expect("variables");
            variables.retain(|variable| variable["name"] != "TOLLGATE_CLUSTER");
        }),
    ];
    for (check, fault, plant) in planted {
        let mut planted = overlay(&files, "policy-resources");
        plant(&mut planted.objects);
        let faults = planted.faults();
        assert!(faults.iter().any(|found| found.starts_with(&format!("{check}: "))), "{fault}: {faults:?}");
    }
}

/// Plants errors in the certificates of cert-manager, and a Secret that is never created.
#[test]
fn faults_of_certificates_are_noticed() {
    let files = Files::of_repository();
    let planted: [Planted; 4] = [
        ("secrets, config maps and mounts", "a Certificate of another Secret", |o| {
            let made = o
                .iter_mut()
                .find(|object| object["spec"]["secretName"] == "tollgate-tls")
                .expect("it is there");
            made["spec"]["secretName"] = json!("other");
        }),
        ("secrets, config maps and mounts", "a Certificate of another name", |o| {
            let made = o
                .iter_mut()
                .find(|object| object["spec"]["secretName"] == "tollgate-tls")
                .expect("it is there");
            made["spec"]["dnsNames"] = json!(["tollgate.default.svc"]);
        }),
        ("secrets, config maps and mounts", "an Issuer that is not there", |o| {
            o.retain(|object| object["kind"] != "Issuer");
        }),
        ("decodes as the API types", "a misspelt field", |o| {
            object(o, "Certificate")["spec"]["dnsName"] = json!("x")
        }),
    ];
    for (check, fault, plant) in planted {
        let mut installation = overlay(&files, "cert-manager");
        plant(&mut installation.objects);
        let faults = installation.faults();
        assert!(faults.iter().any(|found| found.starts_with(&format!("{check}: "))), "{fault}: {faults:?}");
    }
    let nobody = Installation { from_user: &[], ..overlay(&files, "existing-secret") };
    assert!(nobody.faults().iter().any(|fault| fault.contains("nobody creates the Secret")));
}
