//! A DeviceTaintRule of a drain, as it is written.

use std::collections::BTreeMap;

use serde::Serialize;

use super::halt::Halt;
use super::rules::DrainRule;
use tollgate_api::profile::Version;
use tollgate_document::doc::Value;
use tollgate_engine::impact::target::DeviceNames;

/// A DeviceTaintRule that is written.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RuleObject {
    api_version: String,
    kind: &'static str,
    pub(super) metadata: RuleMetadata,
    pub(super) spec: RuleSpec,
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RuleMetadata {
    pub(super) name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) uid: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) resource_version: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) annotations: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) finalizers: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RuleSpec {
    device_selector: RuleSelector,
    pub(super) taint: RuleTaint,
}

#[derive(Clone, Debug, Serialize)]
struct RuleSelector {
    #[serde(skip_serializing_if = "Option::is_none")]
    driver: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pool: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RuleTaint {
    key: String,
    effect: &'static str,
    /// The API server sets it in a rule that has none, so it is left out only when the effect changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) time_added: Option<String>,
}

impl RuleObject {
    pub(super) fn new(version: Version, key: &str, rule: &DrainRule, metadata: RuleMetadata) -> RuleObject {
        let DeviceNames { driver, pool, device } = rule.selects.clone();
        RuleObject {
            api_version: format!("resource.k8s.io/{}", version.name()),
            kind: "DeviceTaintRule",
            metadata: RuleMetadata { name: rule.name.clone(), ..metadata },
            spec: RuleSpec {
                device_selector: RuleSelector { driver, pool, device },
                taint: RuleTaint { key: key.to_owned(), effect: rule.effect.name(), time_added: None },
            },
        }
    }

    pub(super) fn json(&self) -> Result<String, Halt> {
        serde_json::to_string(self).map_err(Halt::internal)
    }
}

/// The members of a map of texts.
pub(super) fn texts(map: Value<'_>) -> BTreeMap<String, String> {
    map.members().map(|(name, value)| (name.text().to_owned(), value.str().to_owned())).collect()
}
