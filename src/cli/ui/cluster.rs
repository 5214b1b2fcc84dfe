//! The state of a running cluster, which watches keep current.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use super::{KnownState, OutdatedReason};
use crate::cli::clock;
use crate::cli::console::Console;
use crate::cli::devices::require_one_profile;
use crate::cli::live::{DEVICE_REPORT_KINDS, object_kind, watch_objects};
use crate::cli::outcome::Failure;
use crate::cli::shared::ReleaseArgs;
use crate::cli::snapshot::{OptionalFields, WORKLOAD_KINDS};
use crate::cli::state::OwnedObjects;
use crate::cluster::{
    CLAIM_TEMPLATES, Cluster, ListedKind, NAMESPACES, NODES, ObjectWatch, POD_DISRUPTION_BUDGETS, Timing,
    WatchState, WatchedKindStatus,
};
use tollgate_api::profile::Profile;
use tollgate_formats::count::count_with_noun;
use tollgate_formats::gotime::{self, Timestamp};

/// Kinds that forecasts and plans also read; without them, outcomes are unknown.
const FORECAST_KINDS: [ListedKind; 4] = [NAMESPACES, NODES, CLAIM_TEMPLATES, POD_DISRUPTION_BUDGETS];

/// Interval for checking whether the watches are current.
const WATCH_CHECK_PERIOD: Duration = Duration::from_millis(500);
/// Time to wait after a change for more changes, because they come in groups.
const SETTLE_TIME: Duration = Duration::from_millis(100);
/// Maximum delay before an interrupted watch is opened again. Short, because a person waits.
const MAX_BACKOFF: Duration = Duration::from_secs(1);
/// Interval for checking whether the API server responds, and the timeout of a check. Watches alone do not show
/// it: an API server that is being stopped leaves them open for up to a minute.
const PROBE_PERIOD: Duration = Duration::from_secs(1);
const PROBE_TIMEOUT: Duration = Duration::from_secs(3);
/// Number of consecutive failed checks after which the API server counts as unreachable.
const MAX_FAILED_PROBES: usize = 2;

/// Follows a running cluster with watches.
#[derive(Debug)]
pub(super) struct ClusterSource {
    watch: ObjectWatch,
    profile: &'static Profile,
    name: String,
    /// The revision of the last state that was returned.
    revision: u64,
    /// Why the state may be outdated, as the last event said; `None` if it is current.
    outdated_because: Option<String>,
    contact: Arc<Mutex<ServerReachability>>,
}

/// Whether the API server responds.
#[derive(Debug)]
struct ServerReachability {
    /// Why it does not respond; `None` if it does.
    unreachable: Option<String>,
    /// When it last responded.
    last: Timestamp,
}

impl ClusterSource {
    /// Starts the watches, and waits until everything is listed.
    pub(super) fn connect(
        release: &ReleaseArgs,
        console: &mut Console,
    ) -> Result<(ClusterSource, KnownState), Failure> {
        let asked = release.live_server()?;
        let profile = require_one_profile(&release.live_profiles()?)?;
        let wanted: Vec<ListedKind> = FORECAST_KINDS.into_iter().chain(WORKLOAD_KINDS).collect();
        let cluster = asked.cluster.with_timing(Timing { max_backoff: MAX_BACKOFF, ..Timing::default() });
        let watch = watch_objects(&cluster, &DEVICE_REPORT_KINDS, &wanted, OptionalFields::default())?;
        watch.omitted_kind_notes().iter().for_each(|note| console.note(note));
        let name = asked.endpoint().to_string();
        let contact = start_probe(&cluster)?;
        let mut source = ClusterSource { watch, profile, name, revision: 0, outdated_because: None, contact };
        let first = source.read_state();
        Ok((source, first))
    }

    /// Waits for a change. An error says why the state may be outdated.
    pub(super) fn next(&mut self) -> Result<KnownState, OutdatedReason> {
        loop {
            let revision = self.watch.wait_for_change(self.revision, WATCH_CHECK_PERIOD);
            let trouble = self.outdated_reason();
            let why = trouble.as_ref().map(|trouble| trouble.why.clone());
            let before = std::mem::replace(&mut self.outdated_because, why);
            // If only some watches are lost, changes from the others are still shown, with a note that the state may be
            // old.
            if revision > self.revision || (before.is_some() && trouble.is_none()) {
                thread::sleep(SETTLE_TIME);
                return Ok(self.read_state());
            }
            // The reason can change, too: the API server is back, and the user may no longer list a kind.
            if let Some(trouble) = trouble.filter(|trouble| before.as_ref() != Some(&trouble.why)) {
                return Err(trouble);
            }
        }
    }

    /// Returns why the state may be outdated, and since when; `None` if all watches are current.
    fn outdated_reason(&self) -> Option<OutdatedReason> {
        let now = clock::timestamp();
        let outdated_since =
            |age: Duration| Timestamp { seconds: now.seconds.saturating_sub_unsigned(age.as_secs()), ..now };
        let outdated_since = self.watch.watch_down_for().map(outdated_since);
        let contact = self.contact.lock().unwrap_or_else(PoisonError::into_inner);
        let unreachable_since = contact.unreachable.as_ref().map(|_| contact.last);
        // A connection that breaks without a word stays open for a while after the API server is gone.
        let until = outdated_since.into_iter().chain(unreachable_since).min()?;
        let why = match (outdated_since, &contact.unreachable) {
            (None, Some(why)) => why.clone(),
            _ => self.lost_watches_text(),
        };
        Some(OutdatedReason { why, current_until: Some(gotime::rfc3339(until)) })
    }

    /// Says why watches are lost.
    fn lost_watches_text(&self) -> String {
        let failures = self.watch.missing_data_messages();
        // Most often all watches are lost for the same reason.
        let others = failures.len().saturating_sub(1);
        let first = failures.into_iter().next().unwrap_or_default();
        if others == 0 {
            return first;
        }
        format!("{first} (and {})", count_with_noun(others, "other resource"))
    }

    /// Returns the current objects of the watches as a state.
    fn read_state(&mut self) -> KnownState {
        let all = self.watch.objects();
        let statuses = self.watch.status();
        self.revision = all.revision;
        let failures = self.watch.missing_data_messages();
        let (unread, listed): (Vec<_>, Vec<_>) =
            statuses.iter().partition(|status| status.state == WatchState::Forbidden);
        let kinds = |statuses: Vec<&WatchedKindStatus>| {
            statuses.into_iter().filter_map(|status| object_kind(&status.kind)).collect()
        };
        let not_listed = |kinds: &[ListedKind]| -> Vec<String> {
            let is_one = |status: &&WatchedKindStatus| {
                kinds.contains(&status.kind) && status.state == WatchState::Forbidden
            };
            let lacking = statuses.iter().filter(is_one);
            lacking.map(|status| format!("{}: {}", status.kind.resource, status.message)).collect()
        };
        let (trouble, current_until) =
            self.outdated_reason().map_or((None, None), |trouble| (Some(trouble.why), trouble.current_until));
        KnownState {
            profile: self.profile,
            source: self.name.clone(),
            taken: current_until.unwrap_or_else(clock::now_rfc3339),
            is_dump: false,
            trouble,
            missing: [failures.clone(), not_listed(&FORECAST_KINDS)].concat(),
            incomplete_for_impact: [failures.clone(), not_listed(&[POD_DISRUPTION_BUDGETS])].concat(),
            // Without nodes, devices of cordoned nodes seem to be free.
            incomplete: [failures, not_listed(&[NODES])].concat(),
            snapshot: OnceLock::new(),
            objects: OwnedObjects::of_watch(&all.objects, kinds(listed), kinds(unread)),
        }
    }
}

/// Starts a thread that checks whether the API server responds, for the life of the process. The returned value
/// has the result of the last check.
fn start_probe(cluster: &Cluster) -> Result<Arc<Mutex<ServerReachability>>, Failure> {
    let timing = Timing { request_timeout: PROBE_TIMEOUT, ..Timing::default() };
    let first = ServerReachability { unreachable: None, last: clock::timestamp() };
    let (cluster, found) = (cluster.with_timing(timing), Arc::new(Mutex::new(first)));
    let contact = found.clone();
    let check = move || {
        let mut failed = 0;
        loop {
            // An API server that refuses this request responds, too.
            let error = cluster.server_release().err().filter(|error| error.http_status_or_zero() != 403);
            failed = if error.is_some() { failed + 1 } else { 0 };
            let why = error.filter(|_| failed >= MAX_FAILED_PROBES).map(|error| error.to_string());
            let mut contact = found.lock().unwrap_or_else(PoisonError::into_inner);
            contact.unreachable = why;
            if failed == 0 {
                contact.last = clock::timestamp();
            }
            drop(contact);
            thread::sleep(PROBE_PERIOD);
        }
    };
    thread::Builder::new().name("probe".to_owned()).spawn(check).map_err(anyhow::Error::from)?;
    Ok(contact)
}
