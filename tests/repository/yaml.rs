//! YAML texts as JSON, and objects as the types of a real release.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "builds JSON")]
#![allow(clippy::expect_used, reason = "a test that cannot read its data has failed")]

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;

/// The documents of a YAML text as JSON.
pub(crate) fn documents(text: &str) -> Vec<Value> {
    tollgate::documents(text)
        .map(|document| {
            let document = document.unwrap_or_else(|fault| panic!("{fault:?}\n{text}"));
            serde_json::from_str(&document.doc.root().to_json()).expect("JSON")
        })
        .collect()
}

/// The error if an object does not decode as its type without loss, which means that a field is misspelled.
pub(crate) fn type_fault(object: &Value) -> Option<String> {
    use k8s_openapi::api::{apps::v1::Deployment, batch, coordination, core::v1, networking, policy, rbac};
    let kind = object["kind"].as_str().unwrap_or_default();
    let whole = match kind {
        "Namespace" => round_trip::<v1::Namespace>(object),
        "Service" => round_trip::<v1::Service>(object),
        "Secret" => round_trip::<v1::Secret>(object),
        "ConfigMap" => round_trip::<v1::ConfigMap>(object),
        "Pod" => round_trip::<v1::Pod>(object),
        "Deployment" => round_trip::<Deployment>(object),
        "CronJob" => round_trip::<batch::v1::CronJob>(object),
        "PodDisruptionBudget" => round_trip::<policy::v1::PodDisruptionBudget>(object),
        "NetworkPolicy" => round_trip::<networking::v1::NetworkPolicy>(object),
        "ValidatingWebhookConfiguration" => round_trip::<ValidatingWebhookConfiguration>(object),
        "MutatingWebhookConfiguration" => round_trip::<MutatingWebhookConfiguration>(object),
        "ServiceAccount" => round_trip::<v1::ServiceAccount>(object),
        "ClusterRole" => round_trip::<rbac::v1::ClusterRole>(object),
        "Role" => round_trip::<rbac::v1::Role>(object),
        "RoleBinding" => round_trip::<rbac::v1::RoleBinding>(object),
        "Lease" => round_trip::<coordination::v1::Lease>(object),
        "CustomResourceDefinition" => round_trip::<CustomResourceDefinition>(object),
        "ClusterRoleBinding" => round_trip::<rbac::v1::ClusterRoleBinding>(object),
        // Kinds of cert-manager, whose types are not here: the fields it documents.
        "Issuer" => return unknown_field(&object["spec"], &["selfSigned", "ca"]),
        "Certificate" => {
            let known = [
                "isCA",
                "commonName",
                "secretName",
                "duration",
                "renewBefore",
                "privateKey",
                "usages",
                "dnsNames",
                "issuerRef",
            ];
            return unknown_field(&object["spec"], &known);
        }
        _ => return Some(format!("{kind} is not expected")),
    };
    match whole {
        Ok(whole) => first_lost_field(&whole, object, kind),
        Err(error) => Some(format!("{kind}: {error}")),
    }
}

fn unknown_field(spec: &Value, known: &[&str]) -> Option<String> {
    let mut fields = spec.as_object().into_iter().flat_map(serde_json::Map::keys);
    fields.find(|field| !known.contains(&field.as_str())).map(|field| format!("spec.{field} is not a field"))
}

fn round_trip<T: serde::de::DeserializeOwned + serde::Serialize>(object: &Value) -> Result<Value, String> {
    let typed: T = serde_json::from_value(object.clone()).map_err(|error| error.to_string())?;
    serde_json::to_value(typed).map_err(|error| error.to_string())
}

/// The first field that a decoded object does not have. Empty lists and maps may go.
fn first_lost_field(whole: &Value, part: &Value, at: &str) -> Option<String> {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => part.iter().find_map(|(name, value)| {
            let is_empty = value.as_array().is_some_and(Vec::is_empty)
                || value.as_object().is_some_and(serde_json::Map::is_empty);
            match whole.get(name) {
                Some(held) => first_lost_field(held, value, &format!("{at}.{name}")),
                None if is_empty => None,
                None => Some(format!("{at}.{name} is not a field")),
            }
        }),
        (Value::Array(whole), Value::Array(part)) if whole.len() == part.len() => {
            let pairs = whole.iter().zip(part).enumerate();
            pairs
                .into_iter()
                .find_map(|(index, (whole, part))| first_lost_field(whole, part, &format!("{at}[{index}]")))
        }
        // Go decodes the bounds of a schema as floats.
        (Value::Number(whole), Value::Number(part)) if whole.as_f64() == part.as_f64() => None,
        _ => (whole != part).then(|| format!("{at}: {part} decodes as {whole}")),
    }
}
