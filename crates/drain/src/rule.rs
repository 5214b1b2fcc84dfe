//! The DeviceTaintRules of a drain as JSON, and the id by which they are found again.

use crate::request::DrainRequest;
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use tollgate_api::profile::Version;
use tollgate_engine::impact::target::{DeviceNames, DeviceTarget};
use tollgate_formats::gofmt::json_string;

/// The label of a rule that has the id of its drain.
pub const ID_LABEL: &str = "tollgate.dev/drain-id";
/// The annotation with the targets as they were typed.
pub const TARGET_ANNOTATION: &str = "tollgate.dev/target";
/// The annotation with the flags as they were typed.
pub const FLAGS_ANNOTATION: &str = "tollgate.dev/flags";
pub const REASON_ANNOTATION: &str = "tollgate.dev/reason";
pub const OWNER_ANNOTATION: &str = "tollgate.dev/owner";
pub const EXPIRES_ANNOTATION: &str = "tollgate.dev/expires";
/// The annotation with the time at which the drain started, from which `--force-after` counts.
pub const STARTED_ANNOTATION: &str = "tollgate.dev/started";

/// Characters of an id.
const ID_BYTES: usize = 6;

/// What a rule of a drain says. Texts that are empty are left out.
#[derive(Clone, Copy, Debug)]
pub struct RuleContent<'a> {
    pub name: &'a str,
    pub selects: &'a DeviceNames,
    pub key: &'a str,
    /// `None` or `NoSchedule`.
    pub effect: &'a str,
    pub id: &'a str,
    pub target: &'a str,
    pub flags: &'a str,
    pub reason: &'a str,
    pub owner: &'a str,
    pub expires: &'a str,
    pub started: &'a str,
}

/// A rule as JSON, in that version of `resource.k8s.io`.
pub fn rule_json(content: &RuleContent<'_>, version: Version) -> String {
    let mut out = format!(r#"{{"apiVersion":"resource.k8s.io/{}","kind":"DeviceTaintRule""#, version.name());
    let annotations = [
        (TARGET_ANNOTATION, content.target),
        (FLAGS_ANNOTATION, content.flags),
        (REASON_ANNOTATION, content.reason),
        (OWNER_ANNOTATION, content.owner),
        (EXPIRES_ANNOTATION, content.expires),
        (STARTED_ANNOTATION, content.started),
    ];
    out.push_str(r#","metadata":{"name":"#);
    json_string(&mut out, content.name);
    out.push_str(r#","labels":"#);
    write_map(&mut out, [(ID_LABEL, content.id)].into_iter());
    out.push_str(r#","annotations":"#);
    write_map(&mut out, annotations.into_iter());
    out.push_str(r#"},"spec":{"deviceSelector":"#);
    write_map(&mut out, content.selects.criteria());
    out.push_str(r#","taint":"#);
    write_map(&mut out, [("key", content.key), ("effect", content.effect)].into_iter());
    out.push_str("}}");
    out
}

/// Writes the members whose values are not empty.
fn write_map<'k, 'v>(out: &mut String, members: impl Iterator<Item = (&'k str, &'v str)>) {
    out.push('{');
    let mut separator = "";
    for (key, value) in members.filter(|(_, value)| !value.is_empty()) {
        out.push_str(separator);
        json_string(out, key);
        out.push(':');
        json_string(out, value);
        separator = ",";
    }
    out.push('}');
}

/// The id of a drain, which is a valid value of a label: the same for the same targets, in whatever order, and the same
/// key.
pub fn drain_id(request: &DrainRequest) -> String {
    let mut targets: Vec<String> = request.targets.iter().map(target_text).collect();
    targets.sort_unstable();
    targets.dedup();
    let mut hash = Sha256::new();
    for part in targets.iter().chain([&request.key]) {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    let mut id = String::new();
    for byte in hash.finalize().iter().take(ID_BYTES) {
        _ = write!(id, "{byte:02x}");
    }
    id
}

/// A target in one spelling: `a` and `a/*` are the same.
fn target_text(target: &DeviceTarget) -> String {
    match target {
        DeviceTarget::Node(node) => format!("node/{node}"),
        DeviceTarget::Devices(DeviceNames { driver, pool, device }) => {
            let parts = [driver, pool, device].map(|name| name.as_deref().unwrap_or("*"));
            parts.join("/")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ID_LABEL, REASON_ANNOTATION, RuleContent, drain_id, rule_json};
    use crate::request::{DEFAULT_KEY, DrainRequest, MoveOptions};
    use tollgate_api::profile::{ApiKind, Profile};
    use tollgate_document::doc;
    use tollgate_engine::impact::target::{DeviceNames, DeviceTarget};
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
        let id = drain_id(&request(&["node/a", "gpu.example.com"], DEFAULT_KEY));
        assert_eq!(id, drain_id(&request(&["gpu.example.com/*", "node/a", "node/a"], DEFAULT_KEY)));
        assert_ne!(id, drain_id(&request(&["node/a"], DEFAULT_KEY)));
        assert_ne!(id, drain_id(&request(&["node/a", "gpu.example.com"], "example.com/repair")));
        let is_valid = |letter: u8| letter.is_ascii_lowercase() || letter.is_ascii_digit();
        assert!(id.len() <= 63 && id.bytes().all(is_valid), "{id}");
    }

    #[test]
    fn every_release_reads_the_rule_and_texts_stay_as_they_are() {
        let names = DeviceNames {
            driver: Some("gpu.example.com".to_owned()),
            pool: Some("rack/7".to_owned()),
            device: None,
        };
        let content = RuleContent {
            name: "drain-1",
            selects: &names,
            key: DEFAULT_KEY,
            effect: "NoSchedule",
            id: "0a1b",
            target: "node/a gpu.example.com",
            flags: "",
            reason: "fan \"3\"\nis <loud>",
            owner: "",
            expires: "",
            started: "2030-01-01T00:00:00Z",
        };
        let now = Timestamp::parse("2030-01-01T00:00:00Z").expect("a time");
        for release in ["1.36", "1.37"] {
            let profile = Profile::named(release).expect("a release");
            for version in profile.versions(ApiKind::DeviceTaintRule) {
                let text = rule_json(&content, *version);
                let rule = doc::parse(&text).expect("JSON");
                let metadata = rule.root().get("metadata");
                assert_eq!(metadata.get("labels").get(ID_LABEL).str(), "0a1b");
                assert_eq!(metadata.get("annotations").get(REASON_ANNOTATION).str(), content.reason);
                // What is empty is left out.
                assert_eq!(metadata.get("annotations").members().count(), 3, "{text}");
                let spec = rule.root().get("spec");
                assert_eq!(
                    spec.get("deviceSelector").to_json(),
                    r#"{"driver":"gpu.example.com","pool":"rack/7"}"#
                );
                let read =
                    ProposedChange::from_rule_manifest(rule.root(), None, &Snapshot::new(), profile, now);
                assert!(read.is_ok(), "{release}: {text}");
            }
        }
    }
}
