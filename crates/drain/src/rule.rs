//! Labels, annotations and IDs of the DeviceTaintRules of a drain, and the rules in the form that a forecast needs.

use crate::request::DrainRequest;
use sha2::{Digest as _, Sha256};
use tollgate_api::profile::Version;
use tollgate_document::doc::OwnedJsonValue;
use tollgate_engine::impact::target::{DeviceNameSelector, DeviceTarget};

/// Label of a DeviceTaintRule with the ID of its drain.
pub const ID_LABEL: &str = "tollgate.dev/drain-id";
/// Annotation with the targets as the user entered them.
pub const TARGET_ANNOTATION: &str = "tollgate.dev/target";
/// Annotation with the flags as the user entered them.
pub const FLAGS_ANNOTATION: &str = "tollgate.dev/flags";
/// Annotation with the start time of the drain, which `--force-after` uses.
pub const STARTED_ANNOTATION: &str = "tollgate.dev/started";

/// Number of hexadecimal digits of the hash that identifies a drain.
const ID_LENGTH: usize = 12;

/// A DeviceTaintRule with the effect NoSchedule as JSON, in the given version of `resource.k8s.io`. It
/// contains only the fields that a forecast needs.
pub(crate) fn noschedule_rule_json(
    name: &str,
    selects: &DeviceNameSelector,
    key: &str,
    version: Version,
) -> String {
    let selector =
        selects.specified_names().map(|(field, value)| (field, OwnedJsonValue::str(value))).collect();
    let taint = vec![("key", OwnedJsonValue::str(key)), ("effect", OwnedJsonValue::str("NoSchedule"))];
    let spec =
        vec![("deviceSelector", OwnedJsonValue::Object(selector)), ("taint", OwnedJsonValue::Object(taint))];
    let rule = OwnedJsonValue::Object(vec![
        ("apiVersion", OwnedJsonValue::str(format!("resource.k8s.io/{}", version.name()))),
        ("kind", OwnedJsonValue::str("DeviceTaintRule")),
        ("metadata", OwnedJsonValue::Object(vec![("name", OwnedJsonValue::str(name))])),
        ("spec", OwnedJsonValue::Object(spec)),
    ]);
    rule.to_json()
}

/// The ID of a drain, a valid label value. It depends only on the set of targets and the key.
pub fn drain_id_from_targets_and_key(request: &DrainRequest) -> String {
    let mut targets: Vec<String> = request.targets.iter().map(canonical_target).collect();
    targets.sort_unstable();
    targets.dedup();
    let mut hash = Sha256::new();
    for part in targets.iter().chain([&request.key]) {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    let mut id = format!("{:x}", hash.finalize());
    id.truncate(ID_LENGTH);
    id
}

/// The canonical text of a target: `a` and `a/*` are equal.
fn canonical_target(target: &DeviceTarget) -> String {
    match target {
        DeviceTarget::Node(node) => format!("node/{node}"),
        DeviceTarget::Devices(DeviceNameSelector { driver, pool, device }) => {
            let parts = [driver, pool, device].map(|name| name.as_deref().unwrap_or("*"));
            parts.join("/")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{drain_id_from_targets_and_key, noschedule_rule_json};
    use crate::request::{DEFAULT_KEY, DrainRequest, MoveOptions};
    use tollgate_api::profile::{ApiKind, Profile};
    use tollgate_document::doc;
    use tollgate_engine::impact::target::{DeviceNameSelector, DeviceTarget};
    use tollgate_engine::impact::{ProposedChange, Snapshot};
    use tollgate_formats::gotime::Timestamp;

    fn request(targets: &[&str], key: &str) -> DrainRequest {
        DrainRequest {
            typed: targets.iter().map(|text| (*text).to_owned()).collect(),
            targets: targets.iter().map(|text| DeviceTarget::parse(text).expect("a target")).collect(),
            key: key.to_owned(),
            options: MoveOptions::default(),
        }
    }

    #[test]
    fn the_same_targets_and_key_have_the_same_id() {
        let id = drain_id_from_targets_and_key(&request(&["node/a", "gpu.example.com"], DEFAULT_KEY));
        assert_eq!(
            id,
            drain_id_from_targets_and_key(&request(&["gpu.example.com/*", "node/a", "node/a"], DEFAULT_KEY))
        );
        assert_ne!(id, drain_id_from_targets_and_key(&request(&["node/a"], DEFAULT_KEY)));
        assert_ne!(
            id,
            drain_id_from_targets_and_key(&request(&["node/a", "gpu.example.com"], "example.com/repair"))
        );
        let is_valid = |letter: u8| letter.is_ascii_lowercase() || letter.is_ascii_digit();
        assert!(id.len() <= 63 && id.bytes().all(is_valid), "{id}");
    }

    #[test]
    fn every_release_reads_the_rule() {
        let names = DeviceNameSelector {
            driver: Some("gpu.example.com".to_owned()),
            pool: Some("rack/7".to_owned()),
            device: None,
        };
        for profile in ["1.34", "1.36", "1.37"].map(|name| Profile::named(name).expect("a release")) {
            for version in profile.versions(ApiKind::DeviceTaintRule) {
                let json = noschedule_rule_json("drain-1", &names, DEFAULT_KEY, *version);
                let rule = doc::parse(&json).expect("JSON");
                let at = Timestamp::parse("2030-01-01T00:00:00Z").expect("a time");
                let snapshot = Snapshot::new();
                let change = ProposedChange::from_rule_manifest(rule.root(), None, &snapshot, profile, at);
                assert_eq!(change.expect("a rule").name(), "drain-1");
            }
        }
    }
}
