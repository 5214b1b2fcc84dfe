//! A running API server: its profile for `--kubernetes cluster`, with feature gates and served versions, and the
//! cluster that commands without `--state` read.
//!
//! A command connects once, and prints to stderr which API server it uses and what it had to assume. `tollgate serve`
//! connects repeatedly and shares these messages.
//!
//! Invariant: whatever cannot be read is reported with the reason and with what is assumed instead.

mod objects;
mod state;

pub(super) use objects::{ClusterLister, MissingObjects, UnreadObjectMessages};
#[cfg(feature = "ui")]
pub(super) use state::DEVICE_REPORT_KINDS;
pub(super) use state::{
    BoundedSnapshot, FORECAST_KINDS, read_device_report_objects, read_forecast_objects,
    read_nodes_and_scheduling_objects, read_state, read_state_for_impact, watch_objects,
};

use super::console::Console;
use super::outcome::Failure;
use crate::cluster::{ApiEndpoint, Cluster, ClusterTarget, ListedKind, ServerInfo, Timing};
use tollgate_api::profile::{GateChoice, Profile, ProfileMatch};
use tollgate_forecast::ObjectKind;

/// End of a message: how to let Tollgate read the feature gates of the API server.
const GATES_HINT: &str = "allow `get` on the nonResourceURL /metrics, or set --feature-gates";

/// Converts a listed kind to the kind of object in forecasts; `None` if forecasts do not read it.
pub(super) fn object_kind(kind: &ListedKind) -> Option<ObjectKind> {
    let version = kind.versions.first().copied().unwrap_or_default();
    ObjectKind::from_type_meta(&kind.api_version(version), kind.kind)
}

/// A connection to an API server, with its release, feature gates and served versions, and the profile for them.
#[derive(Clone, Debug)]
pub(super) struct ConnectedServer {
    pub(super) cluster: Cluster,
    pub(super) info: ServerInfo,
    pub(super) profile: &'static Profile,
    pub(super) fit: ProfileMatch,
}

impl ConnectedServer {
    /// Connects to the API server of `--context` or of the current context, reads its release and feature gates,
    /// and prints notes about them and about what had to be assumed.
    pub(super) fn connect(
        target: ClusterTarget<'_>,
        choice: Option<&GateChoice>,
        console: &mut Console,
    ) -> Result<ConnectedServer, Failure> {
        let cluster = Cluster::start_without_connecting(target, Timing::default())
            .map_err(|error| Failure::Input(format!("{error:#}")))?;
        let endpoint = cluster.endpoint().clone();
        let info = cluster.server_info().map_err(|error| Failure::Input(format!("{endpoint}: {error}")))?;
        let (release, fit) = info.release.profile().ok_or_else(|| {
            Failure::Input(format!(
                "{endpoint}: the API server does not report its release; set --kubernetes"
            ))
        })?;
        let profile = release.for_server(&info.live, choice).map_err(Failure::Usage)?;
        let asked = ConnectedServer { cluster, info, profile, fit };
        console.note(&asked.describe_server(choice));
        asked.assumption_warnings(choice).iter().for_each(|caveat| console.note(caveat));
        Ok(asked)
    }

    pub(super) fn endpoint(&self) -> &ApiEndpoint {
        self.cluster.endpoint()
    }

    /// Returns the line about the API server and its release: `context dev (https://…): Kubernetes 1.36; feature
    /// gates read from /metrics: …`
    fn describe_server(&self, choice: Option<&GateChoice>) -> String {
        let (endpoint, release) = (self.endpoint(), &self.info.release);
        let from = match (choice, &self.info.live.gates) {
            (Some(_), _) => "set by --feature-gates",
            (None, Ok(_)) => "read from /metrics",
            (None, Err(_)) => return format!("{endpoint}: Kubernetes {release}"),
        };
        let gates = self.profile.describe_gates();
        format!("{endpoint}: Kubernetes {release}; feature gates {from}: {gates}")
    }

    /// Returns warnings about a release, feature gates or served versions that had to be assumed, and about gates
    /// that differ from `--feature-gates`.
    fn assumption_warnings(&self, choice: Option<&GateChoice>) -> Vec<String> {
        let mut caveats = Vec::new();
        caveats.extend(release_warning(&self.info, self.profile, self.fit));
        caveats.extend(gates_warning(&self.info, self.profile, choice));
        if let Err(why) = &self.info.live.served {
            caveats.push(format!(
                "cannot read the served API versions ({why}); assuming the defaults of {}",
                self.profile.name
            ));
        }
        caveats
    }
}

/// Returns a warning if this program has no profile for the release of the API server; `None` if it has.
pub(super) fn release_warning(info: &ServerInfo, profile: &Profile, fit: ProfileMatch) -> Option<String> {
    let than = match fit {
        ProfileMatch::Exact => return None,
        ProfileMatch::NewerServer => "newer",
        ProfileMatch::OlderServer => "older",
    };
    let (release, name) = (&info.release, profile.name);
    Some(format!(
        "the API server runs Kubernetes {release}, which is {than} than all supported releases; checking \
     against {name}"
    ))
}

/// Returns a warning if the feature gates of the API server are not known, may be outdated, or differ from
/// `--feature-gates`.
pub(super) fn gates_warning(
    info: &ServerInfo,
    profile: &Profile,
    choice: Option<&GateChoice>,
) -> Option<String> {
    let contradictions = profile.gates_differing_on_server(&info.live);
    match (choice, &info.live.gates) {
        (Some(_), _) if !contradictions.is_empty() => Some(format!(
            "--feature-gates differs from what the API server reports ({}); using --feature-gates",
            contradictions.join(", ")
        )),
        (Some(_), _) => None,
        (None, Err(why)) => {
            let assumed = profile.describe_gates();
            Some(format!("cannot read the feature gates ({why}); assuming {assumed}; {GATES_HINT}"))
        }
        (None, Ok(_)) => {
            let why = info.stale_gates.as_ref()?;
            Some(format!("cannot refresh the feature gates ({why}); using the last known feature gates"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{gates_warning, release_warning};
    use crate::cluster::{ServerInfo, ServerRelease};
    use tollgate_api::profile::{Gate, GateChoice, LiveServer, Profile, ProfileMatch, ServedVersions};

    fn info(gates: Result<Vec<(Gate, bool)>, String>) -> ServerInfo {
        ServerInfo {
            release: ServerRelease { major: "1".to_owned(), minor: "36".to_owned(), patch: String::new() },
            live: LiveServer { gates, served: Ok(ServedVersions::default()) },
            stale_gates: None,
        }
    }

    #[test]
    fn what_is_assumed_is_said() {
        let base = Profile::named("1.36").expect("a release");
        let silent = info(Err("/metrics: the API server returned 403: forbidden".to_owned()));
        let profile = base.for_server(&silent.live, None).expect("gates");
        let caveat = gates_warning(&silent, profile, None).expect("a caveat");
        assert_eq!(
            caveat,
            "cannot read the feature gates (/metrics: the API server returned 403: forbidden); assuming the defaults \
             of 1.36; off: DRADeviceTaintRules, DRAListTypeAttributes, DRANodeAllocatableResources; allow `get` on the \
             nonResourceURL /metrics, or set --feature-gates"
        );
        let choice = GateChoice::parse("DRADeviceTaints=false").expect("a choice");
        let reporting = info(Ok(vec![(Gate::DRADeviceTaints, true)]));
        let profile = base.for_server(&reporting.live, Some(&choice)).expect("gates");
        let caveat = gates_warning(&reporting, profile, Some(&choice)).expect("a caveat");
        assert!(
            caveat.contains("differs from what the API server reports (DRADeviceTaints=true);"),
            "{caveat}"
        );
        assert_eq!(gates_warning(&silent, profile, Some(&choice)), None, "nobody contradicts");
        let live = base.for_server(&reporting.live, None).expect("gates");
        assert_eq!(gates_warning(&reporting, live, None), None);
        let stale = ServerInfo { stale_gates: Some("gone".to_owned()), ..reporting };
        assert!(gates_warning(&stale, live, None).is_some_and(|caveat| caveat.contains("(gone)")));
    }

    #[test]
    fn other_releases_are_said() {
        let base = Profile::named("1.36").expect("a release");
        let info = info(Ok(Vec::new()));
        assert_eq!(release_warning(&info, base, ProfileMatch::Exact), None);
        let newer = release_warning(&info, base, ProfileMatch::NewerServer).expect("a caveat");
        assert_eq!(
            newer,
            "the API server runs Kubernetes 1.36, which is newer than all supported releases; checking \
         against 1.36"
        );
    }
}
