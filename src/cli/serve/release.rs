//! The release and the feature gates of the API server, followed while `tollgate serve` runs.
//!
//! Each has a line in `/readyz?verbose`. Gates that cannot be read degrade that line and nothing else: what a server
//! sends has passed its gates, so no request is denied because of a gate that may be off.

use std::sync::{Arc, Mutex, PoisonError};

use crate::cli::live::{gates_warning, release_warning};
use crate::cluster::{Cluster, ServerInfo};
use crate::server::{BackgroundTask, ComponentStatus, EngineHandle, MetricSample};
use tollgate_api::conform::suggest::join_with_and;
use tollgate_api::profile::{ApiKind, GateChoice, Profile, ProfileMatch, Version};

/// Returns a status that counts as ready, for a line of `/readyz?verbose`.
fn ready_status(message: String, degraded: bool) -> ComponentStatus {
    ComponentStatus { ready: true, degraded, message, samples: Vec::new() }
}

fn unready_status(message: &str) -> ComponentStatus {
    ComponentStatus { message: message.to_owned(), ..ComponentStatus::default() }
}

/// Adds the metric that says whether the feature gates were read.
fn with_gates_sample(status: ComponentStatus, are_gates_known: bool) -> ComponentStatus {
    let sample = MetricSample {
        name: "feature_gates_known",
        help: "1 if the feature gates were read from the API server",
        label: None,
        value: i64::from(are_gates_known),
    };
    ComponentStatus { samples: vec![sample], ..status }
}

/// Follows the release and feature gates of the API server, and checks against them; `choice` overrides gates. The
/// returned tasks report the status of both.
pub(super) fn follow_server_release_and_gates(
    cluster: &Cluster,
    engine_handle: EngineHandle,
    choice: Option<GateChoice>,
) -> [BackgroundTask; 2] {
    let release = unready_status("the release of the API server is not known yet");
    let gates = unready_status("the feature gates of the API server are not known yet");
    let known = Arc::new(Mutex::new((release, with_gates_sample(gates, false))));
    let [reported, of_release, of_gates] = [known.clone(), known.clone(), known];
    cluster.watch_server_info(move |info| {
        let report = use_profile_of_server(info, choice.as_ref(), &engine_handle);
        *reported.lock().unwrap_or_else(PoisonError::into_inner) = report;
    });
    let release = move || of_release.lock().unwrap_or_else(PoisonError::into_inner).0.clone();
    let gates = move || of_gates.lock().unwrap_or_else(PoisonError::into_inner).1.clone();
    [
        BackgroundTask { name: "release", status: Arc::new(release) },
        BackgroundTask { name: "feature-gates", status: Arc::new(gates) },
    ]
}

/// Makes the engine check against the release and gates of the API server, and returns the status of both; keeps the
/// default profile if the release is unknown.
fn use_profile_of_server(
    info: &ServerInfo,
    choice: Option<&GateChoice>,
    engine_handle: &EngineHandle,
) -> (ComponentStatus, ComponentStatus) {
    let reported = &info.release;
    let Some((of_release, fit)) = reported.profile() else {
        tracing::warn!(%reported, "the API server does not report a known release; checking against the default \
         profile");
        let message = format!(
            "the API server reports release `{reported}`, which is not known; checking against the \
         default profile"
        );
        let gates = ready_status("not used: the release of the API server is not known".to_owned(), false);
        return (ready_status(message, false), with_gates_sample(gates, false));
    };
    let profile =
        of_release.for_webhook_assuming_unreported_gates(&info.live, choice).unwrap_or_else(|error| {
            tracing::warn!(%reported, "--feature-gates is ignored: {error}");
            of_release
        });
    engine_handle.customize_current_and_later_engines(move |engine| engine.profiles = vec![profile]);
    let gates = log_and_build_gates_status(info, profile, choice);
    (log_and_build_release_status(info, profile, fit), gates)
}

fn log_and_build_release_status(info: &ServerInfo, profile: &Profile, fit: ProfileMatch) -> ComponentStatus {
    let (release, name) = (&info.release, profile.name);
    let message = if let Some(caveat) = release_warning(info, profile, fit) {
        tracing::warn!(%release, profile = name, "{caveat}");
        caveat
    } else {
        tracing::info!(%release, profile = name, "checking against the release of the API server");
        format!("ok (the API server runs Kubernetes {release})")
    };
    let rules =
        describe_served_taint_rule_versions(info).map(|rules| format!("; {rules}")).unwrap_or_default();
    ready_status(format!("{message}{rules}"), false)
}

/// Returns the status line about the feature gates, with a metric that says whether the API server reports them.
fn log_and_build_gates_status(
    info: &ServerInfo,
    profile: &Profile,
    choice: Option<&GateChoice>,
) -> ComponentStatus {
    let gates = profile.describe_gates();
    let from = if choice.is_some() { "set by --feature-gates" } else { "read from the API server" };
    let status = if let Some(caveat) = gates_warning(info, profile, choice) {
        tracing::warn!("{caveat}");
        ready_status(caveat, true)
    } else {
        tracing::info!(gates, "feature gates {from}");
        ready_status(format!("ok ({from}: {gates})"), false)
    };
    with_gates_sample(status, choice.is_none() && info.live.gates.is_ok())
}

/// Returns the versions in which the API server serves DeviceTaintRules: `DeviceTaintRule is served as v1alpha3
/// and v1beta2`. `None` if discovery could not be read.
fn describe_served_taint_rule_versions(info: &ServerInfo) -> Option<String> {
    let served = info.live.served.as_ref().ok()?;
    let versions: Vec<&str> = served.versions_of(ApiKind::DeviceTaintRule).map(Version::name).collect();
    Some(match versions.as_slice() {
        [] => "DeviceTaintRule is not served".to_owned(),
        versions => format!("DeviceTaintRule is served as {}", join_with_and(versions)),
    })
}

#[cfg(test)]
mod tests {
    use super::describe_served_taint_rule_versions;
    use crate::cluster::{ServerInfo, ServerRelease};
    use tollgate_api::profile::{ApiKind, LiveServer, ServedVersions, Version};

    #[test]
    fn served_versions_of_rules_are_said() {
        let mut info = ServerInfo {
            release: ServerRelease { major: "1".to_owned(), minor: "36".to_owned(), patch: String::new() },
            live: LiveServer { gates: Ok(Vec::new()), served: Ok(ServedVersions::default()) },
            stale_gates: None,
        };
        assert_eq!(
            describe_served_taint_rule_versions(&info).as_deref(),
            Some("DeviceTaintRule is not served")
        );
        let served = ServedVersions::default().with(ApiKind::DeviceTaintRule, Version::V1beta2);
        info.live.served = Ok(served);
        assert_eq!(
            describe_served_taint_rule_versions(&info).as_deref(),
            Some("DeviceTaintRule is served as v1beta2")
        );
        info.live.served = Err("403".to_owned());
        assert_eq!(describe_served_taint_rule_versions(&info), None);
    }
}
