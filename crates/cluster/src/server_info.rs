//! What the API server says about itself: its release, its feature gates, the versions it serves.
//!
//! Gates are in its metrics, which not everybody may read; versions are in its discovery. What cannot be read is an
//! error with its reason, never "off" or "not served". Replicas of an API server have metrics of their own: the gates
//! are those of the replica that answers.

use std::ops::ControlFlow;

use super::Cluster;
use super::api_error::ApiError;
use super::client::ApiClient;
use super::retry::Backoff;
use super::version::{ServerRelease, fetch_release};
use tollgate_api::profile::{ApiKind, Gate, LiveServer, ServedVersions, Version};
use tollgate_document::doc;

/// Name of the metric that has a line for each feature gate.
const GATE_METRIC: &str = "kubernetes_feature_enabled";
/// The API group whose served versions are read.
const GROUP: &str = "resource.k8s.io";

/// The release, feature gates and served versions that the API server reports.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerInfo {
    pub release: ServerRelease,
    pub live: LiveServer,
    /// Why the feature gates could not be read this time; set if those of an earlier time are used.
    pub stale_gates: Option<String>,
}

impl Cluster {
    /// Asks the API server for its release, feature gates and served versions. Must not be called on the cluster's
    /// own thread: it waits for requests that run there.
    pub fn server_info(&self) -> Result<ServerInfo, ApiError> {
        self.block_on_request(|client| async move { fetch_info(&client).await })
    }

    /// Asks the API server for its release, which shows that it responds. Not for the cluster's own thread.
    pub fn server_release(&self) -> Result<ServerRelease, ApiError> {
        self.block_on_request(|client| async move { fetch_release(&client).await })
    }

    /// Asks the API server again and again, since it may be upgraded. Calls `on_change` with the first answer, and with
    /// every answer that differs from the one before.
    pub fn watch_server_info(&self, on_change: impl Fn(&ServerInfo) + Send + 'static) {
        let client = self.client.clone();
        self.spawn(async move {
            let mut backoff = Backoff::new(client.timing);
            let mut known: Option<ServerInfo> = None;
            loop {
                match fetch_info(&client).await {
                    Ok(info) => {
                        backoff.reset();
                        let info = with_earlier_gates_if_unread(info, known.as_ref());
                        if known.as_ref() != Some(&info) {
                            on_change(&info);
                            known = Some(info);
                        }
                        tokio::time::sleep(client.timing.max_backoff.saturating_mul(10)).await;
                    }
                    Err(error) => {
                        tracing::warn!("cannot read the release of the API server; retrying: {error}");
                        backoff.wait().await;
                    }
                }
            }
        });
    }
}

/// If the feature gates could not be read this time, uses those that the same release reported before.
fn with_earlier_gates_if_unread(mut info: ServerInfo, before: Option<&ServerInfo>) -> ServerInfo {
    let before = before.filter(|before| before.release.eq(&info.release));
    if let (Some(before), Err(why)) = (before, &info.live.gates)
        && let Ok(gates) = &before.live.gates
    {
        info.stale_gates = Some(why.clone());
        info.live.gates = Ok(gates.clone());
    }
    info
}

/// Asks the API server once. Only a release that cannot be read is an error.
async fn fetch_info(client: &ApiClient) -> Result<ServerInfo, ApiError> {
    let reported = fetch_release(client).await?;
    let live = LiveServer { gates: fetch_gates(client).await, served: fetch_served(client).await };
    Ok(ServerInfo { release: reported, live, stale_gates: None })
}

/// Reads the feature gates from `/metrics`, up to the end of their metric.
async fn fetch_gates(client: &ApiClient) -> Result<Vec<(Gate, bool)>, String> {
    let (mut gates, mut is_there) = (Vec::new(), false);
    let read = |line: &[u8]| match FeatureGateMetricLine::parse(line) {
        FeatureGateMetricLine::OtherMetric if is_there => ControlFlow::Break(()),
        FeatureGateMetricLine::OtherMetric => ControlFlow::Continue(()),
        FeatureGateMetricLine::Gate(gate) => {
            is_there = true;
            gates.extend(gate);
            ControlFlow::Continue(())
        }
    };
    let read = client.read_lines("/metrics", "text/plain", read).await;
    match read {
        Err(error) => Err(format!("/metrics: {error}")),
        Ok(()) if gates.is_empty() => {
            Err(format!("/metrics contains no {GATE_METRIC} for a known feature gate"))
        }
        Ok(()) => Ok(gates),
    }
}

/// A parsed line of the metrics: a feature gate, or anything else.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FeatureGateMetricLine {
    /// A line of the feature gate metric; `None` for a gate that Tollgate does not know.
    Gate(Option<(Gate, bool)>),
    OtherMetric,
}

impl FeatureGateMetricLine {
    /// Parses a line such as `kubernetes_feature_enabled{name="DRADeviceTaints",stage="BETA"} 1`.
    fn parse(line: &[u8]) -> FeatureGateMetricLine {
        let rest = line.strip_prefix(GATE_METRIC.as_bytes()).and_then(|rest| rest.strip_prefix(b"{"));
        let Some(rest) = rest else { return FeatureGateMetricLine::OtherMetric };
        let gate = || {
            let (labels, value) = std::str::from_utf8(rest).ok()?.split_once('}')?;
            let name =
                labels.split(',').find_map(|label| label.strip_prefix("name=\"")?.strip_suffix('"'))?;
            let is_on = match value.split_whitespace().next()? {
                "1" => true,
                "0" => false,
                _ => return None,
            };
            Some((Gate::named(name)?, is_on))
        };
        FeatureGateMetricLine::Gate(gate())
    }
}

/// Reads from discovery which versions of each kind the API server serves.
async fn fetch_served(client: &ApiClient) -> Result<ServedVersions, String> {
    let group = format!("/apis/{GROUP}");
    let text = match client.get(&group).await {
        // A server without the group says so.
        Err(error) if error.http_status_or_zero() == 404 => return Ok(ServedVersions::default()),
        other => other.map_err(|error| format!("{group}: {error}"))?,
    };
    let mut served = ServedVersions::default();
    for version in parse_known_versions(&text).ok_or_else(|| format!("{group}: not an APIGroup"))? {
        let path = format!("{group}/{}", version.name());
        let text = client.get(&path).await.map_err(|error| format!("{path}: {error}"))?;
        let kinds = parse_known_kinds(&text).ok_or_else(|| format!("{path}: not an APIResourceList"))?;
        served = kinds.into_iter().fold(served, |served, kind| served.with(kind, version));
    }
    Ok(served)
}

/// The versions in an APIGroup (JSON) that Tollgate knows; `None` if the text is something else.
fn parse_known_versions(text: &str) -> Option<Vec<Version>> {
    let group = doc::parse(text).ok()?;
    let group = group.root();
    (group.get("kind").str() == "APIGroup").then_some(())?;
    Some(group.get("versions").items().filter_map(|item| Version::parse(item.get("version").str())).collect())
}

/// The kinds in an APIResourceList (JSON) that Tollgate knows; `None` if the text is something else.
fn parse_known_kinds(text: &str) -> Option<Vec<ApiKind>> {
    let list = doc::parse(text).ok()?;
    let list = list.root();
    (list.get("kind").str() == "APIResourceList").then_some(())?;
    let is_kind = |kind: &ApiKind, name: &str| kind.resource() == name;
    let kind = |item: doc::Value<'_>| {
        // Subresources have a name with a slash.
        ApiKind::parse_dra_kind(item.get("kind").str()).filter(|kind| is_kind(kind, item.get("name").str()))
    };
    Some(list.get("resources").items().filter_map(kind).collect())
}

#[cfg(test)]
mod tests {
    use super::{
        ApiKind, FeatureGateMetricLine, Gate, LiveServer, ServerInfo, ServerRelease, Version,
        parse_known_kinds, parse_known_versions, with_earlier_gates_if_unread,
    };
    use tollgate_api::profile::ServedVersions;

    #[test]
    fn a_sample_is_a_gate() {
        let taints = FeatureGateMetricLine::Gate(Some((Gate::DRADeviceTaints, true)));
        let off = FeatureGateMetricLine::Gate(Some((Gate::DRAAdminAccess, false)));
        for (line, expected) in [
            (r#"kubernetes_feature_enabled{name="DRADeviceTaints",stage="BETA"} 1"#, taints),
            (r#"kubernetes_feature_enabled{stage="BETA",name="DRADeviceTaints"} 1 1700000000"#, taints),
            (r#"kubernetes_feature_enabled{name="DRAAdminAccess",stage=""} 0"#, off),
            (
                r#"kubernetes_feature_enabled{name="WatchList",stage="BETA"} 1"#,
                FeatureGateMetricLine::Gate(None),
            ),
            (
                r#"kubernetes_feature_enabled{name="DRADeviceTaints",stage="BETA"} NaN"#,
                FeatureGateMetricLine::Gate(None),
            ),
            (r#"kubernetes_feature_enabled{name="DRADeviceTaints""#, FeatureGateMetricLine::Gate(None)),
            (
                r#"kubernetes_feature_enabled_total{name="DRADeviceTaints"} 1"#,
                FeatureGateMetricLine::OtherMetric,
            ),
            (
                "# HELP kubernetes_feature_enabled [BETA] This metric records",
                FeatureGateMetricLine::OtherMetric,
            ),
            ("", FeatureGateMetricLine::OtherMetric),
        ] {
            assert_eq!(FeatureGateMetricLine::parse(line.as_bytes()), expected, "{line}");
        }
        assert_eq!(
            FeatureGateMetricLine::parse(b"kubernetes_feature_enabled{name=\"\xff\"} 1"),
            FeatureGateMetricLine::Gate(None)
        );
    }

    #[test]
    fn discovery_is_read_by_kind() {
        let group =
            r#"{"kind":"APIGroup","versions":[{"version":"v1"},{"version":"v1beta2"},{"version":"v9"}]}"#;
        assert_eq!(parse_known_versions(group), Some(vec![Version::V1, Version::V1beta2]));
        let list = r#"{"kind":"APIResourceList","resources":[
            {"name":"resourceclaims","kind":"ResourceClaim"},{"name":"resourceclaims/status","kind":"ResourceClaim"},
            {"name":"widgets","kind":"Widget"}]}"#;
        assert_eq!(parse_known_kinds(list), Some(vec![ApiKind::ResourceClaim]));
        for other in ["", "{}", r#"{"kind":"Status"}"#, "<html>"] {
            assert_eq!((parse_known_versions(other), parse_known_kinds(other)), (None, None), "{other}");
        }
    }

    #[test]
    fn gates_that_were_read_once_are_kept_for_that_release() {
        let info = |minor: &str, gates| ServerInfo {
            release: ServerRelease { major: "1".to_owned(), minor: minor.to_owned(), patch: String::new() },
            live: LiveServer { gates, served: Ok(ServedVersions::default()) },
            stale_gates: None,
        };
        let gates = Ok(vec![(Gate::DRADeviceTaints, true)]);
        let before = info("36", gates.clone());
        let kept = with_earlier_gates_if_unread(info("36", Err("gone".to_owned())), Some(&before));
        assert_eq!((&kept.live.gates, kept.stale_gates.as_deref()), (&gates, Some("gone")));
        let upgraded = with_earlier_gates_if_unread(info("37", Err("gone".to_owned())), Some(&before));
        assert_eq!((upgraded.live.gates.is_err(), upgraded.stale_gates), (true, None));
        let again =
            with_earlier_gates_if_unread(info("36", Ok(vec![(Gate::DRADeviceTaints, false)])), Some(&kept));
        assert_eq!(again.stale_gates, None);
    }
}
