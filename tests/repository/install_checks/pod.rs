//! The workload: Service, labels, mounts, probes, network policy, security.
#![cfg_attr(
    not(feature = "online"),
    allow(dead_code, unused_imports, reason = "the checks need the whole program")
)]
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "builds JSON")]
#![allow(clippy::indexing_slicing, reason = "a missing field is null, and null is a fault")]

use serde_json::{Value, json};

use super::{Installation, fault_unless, items};
use crate::kustomize::id;

/// Checks the path from the API server: the registered Service, its port, and its pods.
pub(super) fn service(all: &Installation) -> Vec<String> {
    let mut faults = Vec::new();
    let Some(deployment) = all.deployment() else { return faults };
    let Some(service) = all.find("Service", &json!("tollgate")) else {
        return vec!["there is no Service tollgate".to_owned()];
    };
    let labels = &deployment["spec"]["template"]["metadata"]["labels"];
    if !is_selected(&service["spec"]["selector"], labels) {
        faults.push("the Service selects no pod".to_owned());
    }
    let port = items(&service["spec"]["ports"]).find(|port| port["port"] == 443);
    match port {
        Some(port) if container_port(all, &port["targetPort"]) == Some(8443) => {}
        Some(port) => {
            faults.push(format!("targetPort {} is not the port of the webhook", port["targetPort"]))
        }
        None => faults.push("the Service has no port 443, which is registered".to_owned()),
    }
    for (flag, default) in [("listen", "0.0.0.0:8443"), ("ops-listen", "0.0.0.0:8081")] {
        let listens = all.setting(flag).unwrap_or_else(|| default.to_owned());
        let port = listens.rsplit(':').next().and_then(|port| port.parse().ok());
        let declared = items(&all.container().unwrap_or(&Value::Null)["ports"])
            .any(|found| found["containerPort"].as_u64() == port);
        faults.extend(fault_unless(declared, || format!("--{flag} {listens} is not a containerPort")));
    }
    faults
}

/// The number of a container port that is given by name or number.
fn container_port(all: &Installation, port: &Value) -> Option<u64> {
    let mut ports = items(&all.container()?["ports"]);
    ports.find(|found| found["name"] == *port || found["containerPort"] == *port)?["containerPort"].as_u64()
}

/// A selector (a map of labels) selects these labels.
fn is_selected(selector: &Value, labels: &Value) -> bool {
    let selector = selector.as_object().filter(|selector| !selector.is_empty());
    selector.is_some_and(|selector| selector.iter().all(|(key, value)| labels[key] == *value))
}

pub(super) fn selectors(all: &Installation) -> Vec<String> {
    let Some(deployment) = all.deployment() else { return Vec::new() };
    let labels = &deployment["spec"]["template"]["metadata"]["labels"];
    let mut selectors = vec![("Deployment", &deployment["spec"]["selector"]["matchLabels"])];
    for kind in ["PodDisruptionBudget", "NetworkPolicy"] {
        let field = if kind == "NetworkPolicy" { "podSelector" } else { "selector" };
        selectors.extend(all.of_kind(kind).map(|found| (kind, &found["spec"][field]["matchLabels"])));
    }
    let spread = items(&deployment["spec"]["template"]["spec"]["topologySpreadConstraints"]);
    selectors
        .extend(spread.map(|found| ("topologySpreadConstraints", &found["labelSelector"]["matchLabels"])));
    let mut faults: Vec<String> = selectors
        .into_iter()
        .filter(|(_, selector)| !is_selected(selector, labels))
        .map(|(kind, selector)| format!("{kind} selects {selector}, and pods have {labels}"))
        .collect();
    let replicas = deployment["spec"]["replicas"].as_u64();
    for budget in all.of_kind("PodDisruptionBudget") {
        let left = budget["spec"]["minAvailable"].as_u64();
        faults.extend(fault_unless(left < replicas, || {
            format!("minAvailable {left:?} of {replicas:?} replicas blocks every drain")
        }));
    }
    faults.extend(fault_unless(all.of_kind("PodDisruptionBudget").count() == 1, || {
        "there is no PDB".to_owned()
    }));
    // `uninstall` deletes by this label.
    for object in &all.objects {
        let label = &object["metadata"]["labels"]["app.kubernetes.io/name"];
        faults.extend(fault_unless(label == "tollgate", || format!("{} has no label", id(object))));
    }
    faults
}

/// Volumes, mounts, and the files that flags name.
pub(super) fn mounts(all: &Installation) -> Vec<String> {
    let mut faults = Vec::new();
    let (Some(pod), Some(container)) = (all.pod(), all.container()) else { return faults };
    for mount in items(&container["volumeMounts"]) {
        let exists = items(&pod["volumes"]).any(|volume| volume["name"] == mount["name"]);
        faults.extend(fault_unless(exists, || format!("no volume {}", mount["name"])));
    }
    for volume in items(&pod["volumes"]) {
        let mounted = items(&container["volumeMounts"]).any(|mount| mount["name"] == volume["name"]);
        faults.extend(fault_unless(mounted, || format!("the volume {} is not mounted", volume["name"])));
        for (kind, name) in
            [("Secret", &volume["secret"]["secretName"]), ("ConfigMap", &volume["configMap"]["name"])]
        {
            let made = all
                .of_kind("Certificate")
                .any(|made| kind == "Secret" && made["spec"]["secretName"] == *name);
            let given = name.as_str().is_some_and(|name| all.from_user.contains(&name));
            let exists = name.is_null() || made || given || all.find(kind, name).is_some();
            faults.extend(fault_unless(exists, || format!("nobody creates the {kind} {name}")));
        }
    }
    for flag in ["tls-cert", "tls-key", "policy", "register-ca"] {
        let Some(path) = all.setting(flag) else { continue };
        let is_in = |mount: &&Value| {
            let folder = mount["mountPath"].as_str().unwrap_or("-");
            path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let Some(mount) = items(&container["volumeMounts"]).find(is_in) else {
            faults.push(format!("--{flag} {path} is in no volume"));
            continue;
        };
        let file = path.rsplit('/').next().unwrap_or_default();
        let volume = items(&pod["volumes"]).find(|volume| volume["name"] == mount["name"]);
        let secret = volume.and_then(|volume| all.find("Secret", &volume["secret"]["secretName"]));
        if let Some(secret) = secret {
            faults.extend(fault_unless(secret["data"].get(file).is_some(), || {
                format!("the Secret has no {file}")
            }));
        }
    }
    // The certificate is for the name that the API server uses.
    let name = json!(format!("tollgate.{}.svc", all.namespace().as_str().unwrap_or_default()));
    let server = all.of_kind("Certificate").filter(|made| made["spec"]["isCA"] != true);
    for certificate in server {
        let named = items(&certificate["spec"]["dnsNames"]).any(|found| *found == name);
        faults.extend(fault_unless(named, || format!("the Certificate is not for {name}")));
    }
    for certificate in all.of_kind("Certificate") {
        let issuer = &certificate["spec"]["issuerRef"];
        let exists = issuer["kind"] != "Issuer" || all.find("Issuer", &issuer["name"]).is_some();
        faults.extend(fault_unless(exists, || format!("there is no Issuer {}", issuer["name"])));
    }
    for issuer in all.of_kind("Issuer").filter(|issuer| issuer["spec"].get("ca").is_some()) {
        let secret = &issuer["spec"]["ca"]["secretName"];
        let made = all
            .of_kind("Certificate")
            .any(|made| made["spec"]["secretName"] == *secret && made["spec"]["isCA"] == true);
        faults.extend(fault_unless(made, || format!("nobody creates the CA {secret}")));
    }
    faults
}

pub(super) fn probes(all: &Installation) -> Vec<String> {
    let mut faults = Vec::new();
    let (Some(pod), Some(container)) = (all.pod(), all.container()) else { return faults };
    for (probe, path) in [("readinessProbe", "/readyz"), ("livenessProbe", "/livez")] {
        let get = &container[probe]["httpGet"];
        faults.extend(fault_unless(get["path"] == path, || format!("{probe} asks {}", get["path"])));
        let is_ops = container_port(all, &get["port"]) == Some(8081);
        faults.extend(fault_unless(is_ops, || format!("{probe} asks port {}", get["port"])));
    }
    let drain = all.setting("drain").unwrap_or_default();
    let drain: u64 = drain.trim_end_matches('s').parse().unwrap_or(u64::MAX);
    let grace = pod["terminationGracePeriodSeconds"].as_u64().unwrap_or_default();
    faults.extend(fault_unless(drain < grace, || format!("killed after {grace} s, within the drain")));
    let versioned = container["image"].as_str().is_some_and(|image| {
        image.contains('@') || image.rsplit_once(':').is_some_and(|(_, tag)| !["", "latest"].contains(&tag))
    });
    faults.extend(fault_unless(versioned, || format!("the image {} has no version", container["image"])));
    faults
}

/// Checks the network policy: the webhook port is open to all, the port for probes and metrics to some
/// namespaces, and egress if the API server is queried.
pub(super) fn network(all: &Installation) -> Vec<String> {
    let mut faults = Vec::new();
    if all.deployment().is_none() {
        return faults;
    }
    for policy in all.of_kind("NetworkPolicy") {
        let ports = |rule: &Value| items(&rule["ports"]).map(|port| port["port"].clone()).collect::<Vec<_>>();
        for port in items(&policy["spec"]["ingress"]).flat_map(ports) {
            let known = container_port(all, &port).is_some();
            faults.extend(fault_unless(known, || format!("the port {port} is not a port of the pod")));
        }
        let is_narrow = |peer: &Value| {
            ["namespaceSelector", "podSelector"]
                .iter()
                .any(|field| peer[field]["matchLabels"].as_object().is_some_and(|labels| !labels.is_empty()))
        };
        for (port, to_all) in [(8443, true), (8081, false)] {
            let rules: Vec<&Value> = items(&policy["spec"]["ingress"])
                .filter(|rule| ports(rule).iter().any(|found| container_port(all, found) == Some(port)))
                .collect();
            let is_right = rules.iter().all(|rule| match rule.get("from") {
                None => to_all,
                Some(from) => !to_all && items(from).next().is_some() && items(from).all(is_narrow),
            });
            faults.extend(fault_unless(is_right && !rules.is_empty(), || {
                format!("the port {port} is open to {rules:?}")
            }));
        }
        let out = items(&policy["spec"]["egress"]).next().is_some();
        let asks = all.setting("register").is_some() || all.setting("cluster").is_some();
        faults.extend(fault_unless(out == asks, || {
            format!("the way out is open: {out}; it is needed: {asks}")
        }));
    }
    faults
}

/// The namespace enforces the Pod Security Standard `restricted`, and the pod complies.
pub(super) fn restricted(all: &Installation) -> Vec<String> {
    let mut faults = Vec::new();
    let (Some(pod), Some(container)) = (all.pod(), all.container()) else { return faults };
    for namespace in all.of_kind("Namespace") {
        let enforced = &namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"];
        faults.extend(fault_unless(enforced == "restricted", || "restricted is not enforced".to_owned()));
    }
    let (of_pod, own) = (&pod["securityContext"], &container["securityContext"]);
    for (holds, what) in [
        (of_pod["runAsNonRoot"] == true, "runAsNonRoot"),
        (of_pod["runAsUser"].as_u64().is_some_and(|user| user > 0), "runAsUser"),
        (of_pod["seccompProfile"]["type"] == "RuntimeDefault", "seccompProfile"),
        (own["allowPrivilegeEscalation"] == false, "allowPrivilegeEscalation"),
        (own["readOnlyRootFilesystem"] == true, "readOnlyRootFilesystem"),
        (own["capabilities"] == json!({"drop": ["ALL"]}), "capabilities"),
        (container["resources"]["limits"].get("memory").is_some(), "a memory limit"),
    ] {
        faults.extend(fault_unless(holds, || format!("{what} is not set")));
    }
    faults
}
