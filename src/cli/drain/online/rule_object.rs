//! A DeviceTaintRule of a drain, as it is written.

use std::collections::BTreeMap;

use super::rules::DrainRule;
use crate::report::record::record;
use tollgate_api::profile::Version;
use tollgate_document::doc::Value;

/// The metadata of a stored rule that an update sends back unchanged or slightly changed.
#[derive(Clone, Debug, Default)]
pub(super) struct RuleMetadata {
    pub(super) uid: String,
    pub(super) resource_version: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) annotations: BTreeMap<String, String>,
    pub(super) finalizers: Vec<String>,
}

/// Returns a rule as JSON, for a request. `time_added` keeps the time of the taint; without it, the API server
/// sets the current time, as it must when the effect changes.
pub(super) fn rule_json(
    version: Version,
    key: &str,
    rule: &DrainRule,
    metadata: &RuleMetadata,
    time_added: Option<&str>,
) -> String {
    let object = record! {
        "apiVersion": format!("resource.k8s.io/{}", version.name()),
        "kind": "DeviceTaintRule",
        "metadata": record! {
            "name": rule.name,
            "uid" if given: metadata.uid,
            "resourceVersion" if given: metadata.resource_version,
            "labels": metadata.labels,
            "annotations": metadata.annotations,
            "finalizers" if given: metadata.finalizers,
        },
        "spec": record! {
            "deviceSelector": record! {
                "driver" if given: rule.selects.driver,
                "pool" if given: rule.selects.pool,
                "device" if given: rule.selects.device,
            },
            "taint": record! {
                "key": key,
                "effect": rule.effect.name(),
                "timeAdded" if given: time_added,
            },
        },
    };
    object.get().to_owned()
}

/// Returns the members of a map of strings, such as labels.
pub(super) fn string_members(map: Value<'_>) -> BTreeMap<String, String> {
    map.members().map(|(name, value)| (name.text().to_owned(), value.str().to_owned())).collect()
}
