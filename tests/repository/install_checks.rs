//! Checks of the objects of an installation, independent of how they were built: kustomize, the chart, `tollgate
//! manifests`.
//!
//! Each check returns the problems that it finds. `installs.rs` runs the checks on every variant, and plants an error
//! for each of them.
#![cfg_attr(not(feature = "online"), allow(dead_code, reason = "the checks need the whole program"))]
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "builds JSON")]
#![allow(clippy::indexing_slicing, reason = "a missing field is null, and null is a fault")]

mod access;
mod pod;

use serde_json::{Value, json};

use access::{flags, permissions, webhooks};
use pod::{mounts, network, probes, restricted, selectors, service};

use crate::kustomize::id;
use crate::yaml::type_fault;

/// The objects of an installation, in the order in which they are applied.
pub(crate) struct Installation {
    pub(crate) objects: Vec<Value>,
    /// True if the namespace is created separately, as with `helm install --create-namespace`.
    pub(crate) namespace_exists: bool,
    /// Secrets and ConfigMaps that the user creates.
    pub(crate) from_user: &'static [&'static str],
}

/// A check, which returns the problems.
type Check = fn(&Installation) -> Vec<String>;

/// Every check with its name.
pub(crate) const CHECKS: [(&str, Check); 13] = [
    ("decodes as the API types", types),
    ("each object once", identities),
    ("order", order),
    ("namespace", namespaces),
    ("service and ports", service),
    ("labels and selectors", selectors),
    ("secrets, config maps and mounts", mounts),
    ("probes and ports", probes),
    ("network policy", network),
    ("permissions", permissions),
    ("webhooks", webhooks),
    ("flags and variables", flags),
    ("restricted pods", restricted),
];

impl Installation {
    /// All problems, each with the name of the check.
    pub(crate) fn faults(&self) -> Vec<String> {
        let named = |(name, check): &(&str, Check)| {
            check(self).into_iter().map(|fault| format!("{name}: {fault}")).collect::<Vec<_>>()
        };
        CHECKS.iter().flat_map(named).collect()
    }

    fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        self.objects.iter().filter(move |object| object["kind"] == kind)
    }

    fn find(&self, kind: &str, name: &Value) -> Option<&Value> {
        self.objects.iter().find(|object| object["kind"] == kind && object["metadata"]["name"] == *name)
    }

    /// The Deployment; without one only webhook configurations were printed.
    fn deployment(&self) -> Option<&Value> {
        self.of_kind("Deployment").next()
    }

    fn pod(&self) -> Option<&Value> {
        self.deployment().map(|deployment| &deployment["spec"]["template"]["spec"])
    }

    fn container(&self) -> Option<&Value> {
        self.pod().map(|pod| &pod["containers"][0])
    }

    fn namespace(&self) -> Value {
        self.deployment().map_or(Value::Null, |deployment| deployment["metadata"]["namespace"].clone())
    }

    /// The value of a flag of `serve`, given as an argument or a variable.
    fn setting(&self, flag: &str) -> Option<String> {
        let container = self.container()?;
        let argument = texts(&container["args"]).find_map(|argument| {
            let rest = argument.strip_prefix("--")?.strip_prefix(flag)?;
            if rest.is_empty() { Some("") } else { rest.strip_prefix('=') }
        });
        let variable = json!(format!("TOLLGATE_{}", flag.to_uppercase().replace('-', "_")));
        let mut variables = container["env"].as_array().into_iter().flatten();
        let variable = variables.find(|found| found["name"] == variable);
        // A field of the pod instead of a value: the only one in use is its namespace.
        let value = variable
            .map(|found| found["value"].as_str().map_or("metadata.namespace".to_owned(), str::to_owned));
        argument.map(str::to_owned).or(value)
    }
}

fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn fault_unless(holds: bool, fault: impl FnOnce() -> String) -> Option<String> {
    (!holds).then(fault)
}

fn types(all: &Installation) -> Vec<String> {
    all.objects.iter().filter_map(type_fault).collect()
}

fn identities(all: &Installation) -> Vec<String> {
    let mut ids: Vec<String> = all.objects.iter().map(id).collect();
    ids.sort();
    ids.windows(2)
        .filter(|pair| pair[0] == pair[1])
        .map(|pair| format!("{} is there twice", pair[0]))
        .collect()
}

/// The namespace first: nothing can be created in it before. Webhook configurations last: what fails closed must not be
/// registered before the server.
fn order(all: &Installation) -> Vec<String> {
    let is_webhook = |object: &Value| object["kind"].as_str().is_some_and(|kind| kind.contains("Webhook"));
    let last = all.objects.iter().position(is_webhook).unwrap_or(all.objects.len());
    let after = all.objects.iter().skip(last).find(|object| !is_webhook(object));
    let first = all.objects.iter().position(|object| object["kind"] == "Namespace");
    let late = after.map(|object| format!("{} comes after a webhook configuration", id(object)));
    late.into_iter()
        .chain(fault_unless(first.unwrap_or(0) == 0, || "the Namespace is not first".to_owned()))
        .collect()
}

/// Checks that everything is in one namespace, which is part of the installation.
fn namespaces(all: &Installation) -> Vec<String> {
    let Some(deployment) = all.deployment() else { return Vec::new() };
    let own = &deployment["metadata"]["namespace"];
    let mut faults: Vec<String> = all
        .objects
        .iter()
        .filter(|object| {
            !object["metadata"]["namespace"].is_null() && object["metadata"]["namespace"] != *own
        })
        .map(|object| format!("{} is not in {own}", id(object)))
        .collect();
    let exists = all.namespace_exists || all.find("Namespace", own).is_some();
    faults.extend(fault_unless(exists, || format!("the namespace {own} is not there")));
    faults
}
