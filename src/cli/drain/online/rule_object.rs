//! A DeviceTaintRule of a drain, as it is written and read.

use std::collections::BTreeMap;

use super::rules::DrainRule;
use super::run::StopReason;
use super::settings::RunSettings;
use crate::report::record::record;
use tollgate_api::profile::Version;
use tollgate_document::doc::{self, Doc, Value};
use tollgate_drain::{ID_LABEL, TARGET_ANNOTATION};
use tollgate_engine::impact::target::DeviceNameSelector;

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

/// Parses a rule that the API server returned.
pub(super) fn parse_rule(body: &str) -> Result<Doc<'_>, StopReason> {
    doc::parse(body).map_err(|_error| StopReason::internal("the rule is not JSON"))
}

/// Returns the device selector of a stored rule.
pub(super) fn selector_of_rule(rule: Value<'_>) -> DeviceNameSelector {
    let selector = rule.get("spec").get("deviceSelector");
    let name = |field: &str| {
        Some(selector.get(field)).filter(|name| name.exists()).map(|name| name.str().to_owned())
    };
    DeviceNameSelector { driver: name("driver"), pool: name("pool"), device: name("device") }
}

/// Returns the message that a rule with the name of a rule of this drain belongs to somebody else.
pub(super) fn foreign_rule_message(rule: Value<'_>, settings: &RunSettings) -> String {
    let metadata = rule.get("metadata");
    let name = metadata.get("name").str();
    if metadata.get("labels").get(ID_LABEL).str().is_empty() {
        return format!(
            "rule {name} exists already and is not a rule of a drain; delete it, or choose another key with --key"
        );
    }
    let target = metadata.get("annotations").get(TARGET_ANNOTATION).str();
    let whose = if target.is_empty() { "another drain".to_owned() } else { format!("the drain of {target}") };
    format!(
        "rule {name} belongs to {whose}; end that drain first with `{}`, or choose another key with --key",
        settings.end_drain_command(rule)
    )
}

pub(super) fn deleted_rule_message(name: &str) -> String {
    format!("rule {name} was deleted by somebody else")
}
