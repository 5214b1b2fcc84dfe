//! Checks of the access between the program and the API server: permissions, webhooks, and the flags that determine
//! them.
#![cfg_attr(
    not(feature = "online"),
    allow(dead_code, unused_imports, reason = "the checks need the whole program")
)]
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "builds JSON")]
#![allow(clippy::indexing_slicing, reason = "a missing field is null, and null is a fault")]

use serde_json::{Value, json};

use super::{Installation, fault_unless, items, texts};

/// Checks that the service account of `serve` has exactly the permissions that it needs.
#[cfg(feature = "online")]
pub(super) fn permissions(all: &Installation) -> Vec<String> {
    use tollgate::cluster::NeededBy;
    let mut faults = Vec::new();
    let Some(pod) = all.pod() else { return faults };
    let watched = all.setting("cluster").unwrap_or_else(|| "nothing".to_owned());
    faults.extend(audit_permissions(all));
    faults.extend(drain_permissions(all));
    faults.extend(policy_resources(all));
    let is_needed = |needed_by| match needed_by {
        NeededBy::Register => all.setting("register").is_some(),
        NeededBy::RegisterOwner => all.setting("register-owner").is_some(),
        NeededBy::Cluster => watched != "nothing",
        NeededBy::ClusterState => watched == "all",
        NeededBy::PolicySource => uses_policy_resources(all),
        // Commands, with rights of their own.
        NeededBy::Impact | NeededBy::Audit | NeededBy::Snapshot | NeededBy::Drain | NeededBy::DrainForce => {
            false
        }
    };
    let owner = all.setting("register-owner").unwrap_or_default();
    let mut configurations = vec!["tollgate".to_owned()];
    configurations.extend(
        all.setting("register-with")
            .iter()
            .flat_map(|with| with.split(','))
            .map(|api| format!("tollgate-{api}")),
    );
    let needed = needed_rows(&|call| is_needed(call.needed_by), &owner, &configurations);
    let granted = granted(all, &pod["serviceAccountName"]);
    let asks = !needed.is_empty();
    for missing in needed.iter().filter(|row| !granted.contains(*row)) {
        faults.push(format!("{} is not granted", missing.join(" ")));
    }
    for surplus in granted.iter().filter(|row| !needed.contains(*row)) {
        // The role names the configurations of all other APIs, so that one can be added without changing it.
        let of_other_api =
            surplus[0] == "admissionregistration.k8s.io" && surplus[3].starts_with("tollgate-");
        faults.extend(fault_unless(of_other_api && asks, || {
            format!("{} is granted and not needed", surplus.join(" "))
        }));
    }
    let mounted = pod["automountServiceAccountToken"] == true;
    faults.extend(fault_unless(mounted == asks, || {
        format!("token mounted: {mounted}; API server asked: {asks}")
    }));
    if asks {
        let account = all.find("ServiceAccount", &pod["serviceAccountName"]);
        faults.extend(fault_unless(account.is_some(), || {
            format!("no ServiceAccount {}", pod["serviceAccountName"])
        }));
        let role = all.find("ClusterRole", &json!(owner));
        faults.extend(fault_unless(role.is_some(), || format!("the owner {owner:?} is not a ClusterRole")));
    }
    faults
}

/// Checks that the service account of the audit CronJob has exactly the permissions that it needs.
#[cfg(feature = "online")]
fn audit_permissions(all: &Installation) -> Vec<String> {
    use tollgate::cluster::NeededBy;
    let mut faults = Vec::new();
    for job in all.of_kind("CronJob") {
        let template = &job["spec"]["jobTemplate"]["spec"]["template"];
        let (pod, account) = (&template["spec"], &template["spec"]["serviceAccountName"]);
        let needed = needed_rows(&|call| call.needed_by == NeededBy::Audit, "", &[]);
        let granted = granted(all, account);
        let missing = needed.iter().filter(|row| !granted.contains(*row));
        faults.extend(missing.map(|row| format!("audit: {} is not granted", row.join(" "))));
        let surplus = granted.iter().filter(|row| !needed.contains(*row));
        faults.extend(surplus.map(|row| format!("audit: {} is granted and not needed", row.join(" "))));
        let selected = all.of_kind("Service").any(|service| {
            service["spec"]["selector"].as_object().is_some_and(|labels| {
                labels.iter().all(|(key, value)| template["metadata"]["labels"][key] == *value)
            })
        });
        let (of_pod, own) = (&pod["securityContext"], &pod["containers"][0]["securityContext"]);
        for (holds, what) in [
            (all.find("ServiceAccount", account).is_some(), "there is no such ServiceAccount"),
            (pod["automountServiceAccountToken"] == true, "no token is mounted"),
            (!selected, "the Service of the webhook selects its pods"),
            (pod["containers"][0]["args"][0] == "audit", "the command is not audit"),
            (of_pod["runAsNonRoot"] == true && own["readOnlyRootFilesystem"] == true, "not restricted"),
            (own["capabilities"] == json!({"drop": ["ALL"]}), "capabilities are not dropped"),
        ] {
            faults.extend(fault_unless(holds, || format!("audit: {what}")));
        }
    }
    faults
}

/// The roles of `tollgate drain` grant what it requests, and nothing else; and there is the Lease that it updates.
#[cfg(feature = "online")]
fn drain_permissions(all: &Installation) -> Vec<String> {
    use tollgate::cluster::{DRAIN_LEASE, NeededBy};
    let mut faults = Vec::new();
    let of_lease = |row: &[String; 4]| row[0] == "coordination.k8s.io";
    let needed = |needed_by| needed_rows(&|call| call.needed_by == needed_by, "", &[]);
    let (in_namespace, everywhere): (Vec<_>, Vec<_>) =
        needed(NeededBy::Drain).into_iter().partition(of_lease);
    let roles: Vec<&Value> = all.of_kind("Role").chain(all.of_kind("ClusterRole")).collect();
    let expected = [
        ("ClusterRole", "tollgate-drain", everywhere),
        ("ClusterRole", "tollgate-drain-force", needed(NeededBy::DrainForce)),
        ("Role", "tollgate-drain", in_namespace),
    ];
    if !roles.iter().any(|role| role["metadata"]["name"] == "tollgate-drain") {
        return faults;
    }
    for (kind, name, needed) in expected {
        let Some(role) = all.find(kind, &json!(name)) else {
            faults.push(format!("drain: there is no {kind} {name}"));
            continue;
        };
        let granted = rule_rows(role);
        let missing = needed.iter().filter(|row| !granted.contains(*row));
        faults.extend(missing.map(|row| format!("drain: {kind} {name}: {} is not granted", row.join(" "))));
        let surplus = granted.iter().filter(|row| !needed.contains(*row));
        faults.extend(
            surplus.map(|row| format!("drain: {kind} {name}: {} is granted and not needed", row.join(" "))),
        );
    }
    let lease = all.find("Lease", &json!(DRAIN_LEASE));
    faults.extend(fault_unless(lease.is_some(), || format!("drain: there is no Lease {DRAIN_LEASE}")));
    faults
}

/// True if policies can be custom resources.
#[cfg(feature = "online")]
fn uses_policy_resources(all: &Installation) -> bool {
    all.setting("policy-source").is_some_and(|source| source.split(',').any(|store| store == "cluster"))
}

/// Checks the objects that policies as custom resources need: their definitions, the Lease in the right
/// namespace, and roles that are not aggregated to other roles.
#[cfg(feature = "online")]
fn policy_resources(all: &Installation) -> Vec<String> {
    use tollgate::cluster::{POLICY_KINDS, POLICY_LEASE};
    if !uses_policy_resources(all) {
        return Vec::new();
    }
    let mut faults = Vec::new();
    for kind in POLICY_KINDS {
        let name = json!(kind.kubectl_resource_name());
        let found = all.find("CustomResourceDefinition", &name);
        faults.extend(fault_unless(found.is_some(), || format!("there is no definition of {name}")));
    }
    let lease = all.find("Lease", &json!(POLICY_LEASE)).map(|lease| &lease["metadata"]["namespace"]);
    faults.extend(fault_unless(lease == Some(&all.namespace()), || format!("no Lease {POLICY_LEASE}")));
    let namespace = all.setting("policy-lease-namespace").unwrap_or_default();
    faults.extend(fault_unless(
        namespace == "metadata.namespace" || json!(namespace) == all.namespace(),
        || format!("the Lease is looked for in {namespace}"),
    ));
    faults.extend(fault_unless(all.setting("cluster").is_some(), || "the cluster is not watched".to_owned()));
    for name in ["tollgate-policy-admin", "tollgate-policy-reader"] {
        let role = all.find("ClusterRole", &json!(name));
        let is_alone =
            role.is_some_and(|role| !role.to_string().contains("rbac.authorization.k8s.io/aggregate"));
        faults
            .extend(fault_unless(is_alone, || format!("{name} is not there, or aggregates to another role")));
    }
    faults
}

/// Group (or `URL`), resource, verb and name of everything that some calls need.
#[cfg(feature = "online")]
fn needed_rows(
    is_needed: &dyn Fn(&tollgate::cluster::ApiCall) -> bool,
    owner: &str,
    configurations: &[String],
) -> Vec<[String; 4]> {
    use tollgate::cluster::{API_CALLS, CallTarget, DRAIN_LEASE, ObjectNames, POLICY_LEASE};
    let mut needed: Vec<[String; 4]> = Vec::new();
    for call in API_CALLS.iter().filter(|call| is_needed(call)) {
        for verb in call.verbs {
            let row = |group: &str, what: &str, name: &str| [group, what, *verb, name].map(str::to_owned);
            match call.target {
                CallTarget::Resource { group, resource, names } => match names {
                    ObjectNames::All => needed.push(row(group, resource, "*")),
                    ObjectNames::Owner => needed.push(row(group, resource, owner)),
                    ObjectNames::DrainLease => needed.push(row(group, resource, DRAIN_LEASE)),
                    ObjectNames::PolicyLease => needed.push(row(group, resource, POLICY_LEASE)),
                    ObjectNames::Configurations => {
                        needed.extend(configurations.iter().map(|name| row(group, resource, name)));
                    }
                },
                CallTarget::Url(url) => needed.push(row("URL", url, "*")),
                CallTarget::PublicUrl(_) => {}
            }
        }
    }
    needed
}

#[cfg(not(feature = "online"))]
pub(super) fn permissions(_: &Installation) -> Vec<String> {
    Vec::new()
}

/// Group (or `URL`), resource, verb and name of everything that is granted to a service account.
#[cfg(feature = "online")]
fn granted(all: &Installation, account: &Value) -> Vec<[String; 4]> {
    let mut granted = Vec::new();
    let namespace = all.namespace();
    for binding in all.of_kind("ClusterRoleBinding").chain(all.of_kind("RoleBinding")) {
        let is_subject = |subject: &Value| {
            subject["kind"] == "ServiceAccount"
                && subject["name"] == *account
                && subject["namespace"] == namespace
        };
        if !items(&binding["subjects"]).any(is_subject) {
            continue;
        }
        let kind = binding["roleRef"]["kind"].as_str().unwrap_or_default();
        let role = all.find(kind, &binding["roleRef"]["name"]);
        granted.extend(role.into_iter().flat_map(rule_rows));
    }
    granted
}

/// Group (or `URL`), resource, verb and name of everything that a role grants.
#[cfg(feature = "online")]
fn rule_rows(role: &Value) -> Vec<[String; 4]> {
    let mut granted = Vec::new();
    for rule in items(&role["rules"]) {
        let names: Vec<&str> = texts(&rule["resourceNames"]).collect();
        let names = if names.is_empty() { vec!["*"] } else { names };
        for verb in texts(&rule["verbs"]) {
            granted.extend(
                texts(&rule["nonResourceURLs"]).map(|url| ["URL", url, verb, "*"].map(str::to_owned)),
            );
            for group in texts(&rule["apiGroups"]) {
                for resource in texts(&rule["resources"]) {
                    granted.extend(names.iter().map(|name| [group, resource, verb, name].map(str::to_owned)));
                }
            }
        }
    }
    granted
}

/// Every entry reaches the server, and nothing that the cluster or Tollgate itself needs depends on it.
pub(super) fn webhooks(all: &Installation) -> Vec<String> {
    let mut faults = Vec::new();
    let namespace = all.namespace();
    for configuration in all.objects.iter().filter(|object| object["webhooks"].is_array()) {
        let path =
            if configuration["kind"] == "MutatingWebhookConfiguration" { "/mutate" } else { "/validate" };
        for webhook in items(&configuration["webhooks"]) {
            let (name, client) = (&webhook["name"], &webhook["clientConfig"]);
            let mut fault =
                |holds: bool, what: &str| faults.extend(fault_unless(holds, || format!("{name}: {what}")));
            let service = &client["service"];
            fault(client.get("url").is_some() != client.get("service").is_some(), "not one address");
            if let Some(url) = client["url"].as_str() {
                fault(
                    url.starts_with("https://") && url.ends_with(path),
                    "the URL is not https, or not the path",
                );
            } else {
                let found = all.find("Service", &service["name"]);
                fault(
                    found.is_some_and(|found| found["metadata"]["namespace"] == service["namespace"]),
                    "no such Service",
                );
                let ports = found.map_or(&Value::Null, |found| &found["spec"]["ports"]);
                fault(
                    items(ports).any(|port| port["port"] == service["port"]),
                    "no such port of the Service",
                );
                fault(service["path"] == path, "another path");
            }
            fault(client["caBundle"].as_str().is_some_and(|bundle| !bundle.is_empty()), "no caBundle");
            let own = if namespace.is_null() { json!("tollgate-system") } else { namespace.clone() };
            for rule in items(&webhook["rules"]) {
                fault(rule["operations"] == json!(["CREATE", "UPDATE"]), "other operations");
                // A server outside of the cluster has no namespace that could be exempt.
                let exempt = if client["url"].is_null() {
                    json!(["kube-system", own])
                } else {
                    json!(["kube-system"])
                };
                let left_out = items(&webhook["namespaceSelector"]["matchExpressions"]).any(|expression| {
                    expression["key"] == "kubernetes.io/metadata.name"
                        && expression["operator"] == "NotIn"
                        && expression["values"] == exempt
                });
                fault(
                    rule["scope"] == "Cluster" || left_out,
                    "other namespaces than kube-system and its own are left out",
                );
            }
        }
    }
    faults
}

/// Flags and variables exist in the program.
#[cfg(feature = "online")]
pub(super) fn flags(all: &Installation) -> Vec<String> {
    use std::sync::OnceLock;
    static HELP: OnceLock<String> = OnceLock::new();
    let Some(container) = all.container() else { return Vec::new() };
    let help = HELP.get_or_init(|| {
        let mut help = std::process::Command::new(env!("CARGO_BIN_EXE_tollgate"));
        let output = help.args(["serve", "--help"]).env("COLUMNS", "1000").output();
        output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
    });
    let mut faults = Vec::new();
    let mut arguments = texts(&container["args"]);
    faults.extend(fault_unless(arguments.next() == Some("serve"), || "the command is not serve".to_owned()));
    for argument in arguments {
        let flag = argument.split('=').next().unwrap_or_default();
        let known =
            help.lines().any(|line| line.split_whitespace().any(|word| word.trim_end_matches(',') == flag));
        faults.extend(fault_unless(known, || format!("{flag} is not a flag")));
    }
    for variable in items(&container["env"]).filter_map(|variable| variable["name"].as_str()) {
        let known = !variable.starts_with("TOLLGATE_") || help.contains(&format!("[env: {variable}="));
        faults.extend(fault_unless(known, || format!("{variable} is not a variable of the program")));
    }
    faults
}

#[cfg(not(feature = "online"))]
pub(super) fn flags(_: &Installation) -> Vec<String> {
    Vec::new()
}
