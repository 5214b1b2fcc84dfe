//! The record of the API server in a dump: a separate document that `tollgate snapshot` writes first.
//!
//! It is not a comment, because tools that rewrite YAML would drop it. Readers that do not know the document skip it,
//! like any object of another API group. If the server did not report something, the reason is recorded instead.
//!
//! Invariant: reading what was written gives the same server.

#[cfg(feature = "cluster")]
use std::fmt::Write as _;

use tollgate_api::profile::{ApiKind, Gate, LiveServer, ServedVersions, Version};
use tollgate_document::doc::{Value, ValueKind as NodeKind};
use tollgate_document::source::documents;

/// The apiVersion of the document that records the API server in a dump. It is not the group of policies, which
/// `validate` checks.
const API_VERSION: &str = "snapshot.tollgate.dev/v1alpha1";
const KIND: &str = "SnapshotInfo";

/// The release, feature gates and served versions of the API server that a dump records, and what the dump leaves out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::cli) struct RecordedServer {
    /// Release of the API server, such as `1.36`.
    pub(in crate::cli) release: String,
    pub(in crate::cli) live: LiveServer,
    /// True if the dump leaves out the content of opaque parameters.
    pub(in crate::cli) omits_parameters: bool,
}

impl RecordedServer {
    /// Finds the record of the API server in the text of a dump; `None` if there is none.
    pub(in crate::cli) fn find(text: &str) -> Option<RecordedServer> {
        if !text.contains(KIND) {
            return None;
        }
        // It comes first: what follows is not parsed.
        documents(text)
            .with_max_size(usize::MAX)
            .flatten()
            .find_map(|document| parse_record(document.doc.root()))
    }

    /// Returns the record as a JSON document.
    #[cfg(feature = "cluster")]
    pub(in crate::cli) fn to_json(&self) -> String {
        let text = self.to_yaml();
        let record = documents(&text).flatten().next();
        record.map(|document| document.doc.root().to_json()).unwrap_or_default()
    }

    /// Returns the record as a YAML document.
    #[cfg(feature = "cluster")]
    pub(in crate::cli) fn to_yaml(&self) -> String {
        let text = |text: &str| serde_json::to_string(text).unwrap_or_default();
        let mut out = format!("---\napiVersion: {API_VERSION}\nkind: {KIND}\n");
        _ = writeln!(out, "kubernetes: {}", text(&self.release));
        match &self.live.gates {
            Ok(gates) => {
                let gates: Vec<String> =
                    gates.iter().map(|(gate, is_on)| format!("{}: {is_on}", gate.name())).collect();
                _ = writeln!(out, "featureGates: {{{}}}", gates.join(", "));
            }
            Err(why) => _ = writeln!(out, "featureGatesUnknown: {}", text(why)),
        }
        match &self.live.served {
            Ok(served) => {
                let versions = |kind: &ApiKind| {
                    let names: Vec<&str> = served.versions_of(*kind).map(Version::name).collect();
                    (!names.is_empty()).then(|| format!("{}: [{}]", kind.name(), names.join(", ")))
                };
                let kinds: Vec<String> = resource_k8s_io_kinds().filter_map(|kind| versions(&kind)).collect();
                _ = writeln!(out, "served: {{{}}}", kinds.join(", "));
            }
            Err(why) => _ = writeln!(out, "servedUnknown: {}", text(why)),
        }
        if self.omits_parameters {
            out.push_str("opaqueParameters: omitted\n");
        }
        out
    }
}

/// Returns the kinds whose served versions are recorded, because they differ between servers.
fn resource_k8s_io_kinds() -> impl Iterator<Item = ApiKind> {
    ApiKind::ALL.into_iter().filter(|kind| kind.group() == "resource.k8s.io")
}

/// Parses the record from a document; `None` if it is something else.
fn parse_record(root: Value<'_>) -> Option<RecordedServer> {
    let is_it = root.get("apiVersion").str() == API_VERSION && root.get("kind").str() == KIND;
    let named = Some(root.get("kubernetes").str()).filter(|name| is_it && !name.is_empty())?;
    let why = |field: &str| {
        let why = root.get(field).str();
        if why.is_empty() { "not in the dump".to_owned() } else { why.to_owned() }
    };
    let gates = root.get("featureGates");
    let gate = |(key, value): (Value<'_>, Value<'_>)| Some((Gate::named(key.text())?, value.bool()?));
    let gates = match gates.kind() {
        NodeKind::Object => Ok(gates.members().filter_map(gate).collect()),
        _ => Err(why("featureGatesUnknown")),
    };
    let served = root.get("served");
    let served = match served.kind() {
        NodeKind::Object => Ok(resource_k8s_io_kinds().fold(ServedVersions::default(), |known, kind| {
            let versions = served.get(kind.name()).items().filter_map(|item| Version::parse(item.str()));
            versions.fold(known, |known, version| known.with(kind, version))
        })),
        _ => Err(why("servedUnknown")),
    };
    let omits_parameters = root.get("opaqueParameters").str() == "omitted";
    Some(RecordedServer { release: named.to_owned(), live: LiveServer { gates, served }, omits_parameters })
}

#[cfg(all(test, feature = "cluster"))]
mod tests {
    use super::RecordedServer;
    use tollgate_api::profile::{ApiKind, Gate, LiveServer, ServedVersions, Version};

    #[test]
    fn what_is_written_is_read() {
        let served = ServedVersions::default()
            .with(ApiKind::DeviceTaintRule, Version::V1beta2)
            .with(ApiKind::ResourceSlice, Version::V1beta1)
            .with(ApiKind::ResourceSlice, Version::V1);
        // JSON sorts them by name.
        let gates = vec![(Gate::DRADeviceTaintRules, false), (Gate::DRADeviceTaints, true)];
        for live in [
            LiveServer { gates: Ok(gates), served: Ok(served) },
            LiveServer { gates: Err("/metrics: \"no\"".into()), served: Err("403".into()) },
            LiveServer { gates: Ok(Vec::new()), served: Ok(ServedVersions::default()) },
        ] {
            let omits_parameters = live.gates.is_err();
            let server = RecordedServer { release: "1.36+".to_owned(), live, omits_parameters };
            let text = server.to_yaml();
            let found = RecordedServer::find(&format!("# a comment\n{text}---\nkind: PodList\n"));
            assert_eq!(found.as_ref(), Some(&server));
            let text = server.to_json();
            assert_eq!(
                RecordedServer::find(&format!("{text}\n{{\"kind\":\"PodList\"}}\n")),
                Some(server),
                "{text}"
            );
        }
        assert_eq!(RecordedServer::find("kind: SnapshotInfo\nkubernetes: '1.36'\n"), None, "of nobody");
    }
}
