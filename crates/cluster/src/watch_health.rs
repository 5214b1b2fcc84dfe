//! Whether the cache of one resource is current.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::api_error::ApiError;

/// Maximum number of unreadable objects that are remembered by name: whoever creates objects must not decide how much
/// memory their names take.
const MAX_REMEMBERED_UNREADABLE: usize = 10_000;
/// Maximum number of unreadable objects that are logged one by one.
const MAX_LOGGED_UNREADABLE: usize = 20;

/// Time without an event after which a cache may be out of date. A working watch is opened again each minute.
const STALE_AFTER: Duration = Duration::from_secs(90);

/// The health of one watch, shared by the task that watches and those that report it.
#[derive(Debug)]
pub(crate) struct WatchHealth {
    resource: &'static str,
    /// Folder of the manifests with the ClusterRole that the watch needs, for messages.
    role: &'static str,
    state: Mutex<HealthState>,
}

#[derive(Debug, Default)]
struct HealthState {
    /// When the cache was last known to be current.
    last_event: Option<Instant>,
    /// The error because of which the watch is lost; `None` while it works.
    lost: Option<LostWatch>,
    served: bool,
    failed: u64,
    lists: u64,
    unreadable: u64,
    /// Namespace and name of objects that exist and cannot be read: they are missing from the cache.
    unreadable_objects: HashSet<(Box<str>, Box<str>)>,
    /// True if there are more unreadable objects than are remembered, until everything is listed again.
    has_more: bool,
}

/// The last error of a watch that is lost.
#[derive(Debug)]
struct LostWatch {
    /// When the watch was lost.
    since: Instant,
    /// The HTTP status code; 0 if there was no response.
    code: u16,
    why: String,
}

/// Whether a watch is current, or why its cache is not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WatchState {
    /// Everything is listed, and the watch works.
    Current,
    /// The objects were not listed yet.
    NotListed,
    /// The API server does not serve the resource.
    NotServed,
    /// The user may not list or watch the resource.
    Forbidden,
    /// Everything was listed, but the watch is lost or without events for too long.
    Interrupted,
}

impl HealthState {
    fn watch_state(&self, now: Instant) -> WatchState {
        match &self.lost {
            Some(LostWatch { code: 403, .. }) => WatchState::Forbidden,
            _ if self.last_event.is_none() => WatchState::NotListed,
            None if !self.served => WatchState::NotServed,
            _ if self.age_if_stale(now).is_some() => WatchState::Interrupted,
            _ => WatchState::Current,
        }
    }

    /// Number of objects that exist and cannot be read; one more if there are more than are remembered.
    fn unreadable_count(&self) -> usize {
        self.unreadable_objects.len() + usize::from(self.has_more)
    }

    /// Returns the time since the last event if the watch is lost or was quiet for too long; `None` if the cache is
    /// current, or if nothing was listed yet.
    fn age_if_stale(&self, now: Instant) -> Option<Duration> {
        let age = now.saturating_duration_since(self.last_event?);
        let is_quiet = self.served && age > STALE_AFTER;
        (self.lost.is_some() || is_quiet).then_some(age)
    }

    /// Returns for how long the watch has been down; `None` if the cache is current, or if nothing was listed yet.
    /// Unlike [`HealthState::age_if_stale`], this counts from the loss of the watch and not from the last event, unless
    /// events had stopped long before.
    fn watch_down_for(&self, now: Instant) -> Option<Duration> {
        let age = self.age_if_stale(now)?;
        let lost = self.lost.as_ref().map(|lost| now.saturating_duration_since(lost.since));
        Some(lost.filter(|lost| age.saturating_sub(*lost) <= STALE_AFTER).unwrap_or(age))
    }

    /// Records why the watch is lost; if it is lost already, since when stays the same.
    fn record_lost_watch(&mut self, code: u16, why: String) {
        let since = self.lost.as_ref().map_or_else(Instant::now, |lost| lost.since);
        self.failed += 1;
        self.lost = Some(LostWatch { since, code, why });
    }
}

/// Whether a watch is current, the age of its cache, and what could not be read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WatchStatus {
    /// Everything was listed at least once, or the resource is not served.
    pub synced: bool,
    /// The age of the cache, if the watch is lost or without events for too long.
    pub age: Option<Duration>,
    /// The status in words.
    pub message: String,
    /// Number of failed requests.
    pub failed: u64,
    /// Number of complete lists.
    pub lists: u64,
    /// Number of objects that could not be read since the process started.
    pub unreadable: u64,
}

impl WatchHealth {
    /// Creates the health of a watch that `serve` runs.
    pub(super) fn new(resource: &'static str) -> WatchHealth {
        WatchHealth::with_cluster_role_folder(resource, "manifests/overlays/cluster")
    }

    /// Creates the health of a watch that needs a ClusterRole of the manifests in the folder `role`.
    pub(super) fn with_cluster_role_folder(resource: &'static str, role: &'static str) -> WatchHealth {
        WatchHealth { resource, role, state: Mutex::default() }
    }

    /// Returns the name of the watched resource: `resourceslices`.
    pub(crate) fn resource(&self) -> &'static str {
        self.resource
    }

    /// Returns the current status of the watch.
    pub(crate) fn status(&self) -> WatchStatus {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let age = state.age_if_stale(Instant::now());
        let message = match (&state.lost, age) {
            (None, _) if state.last_event.is_none() => "not listed yet".to_owned(),
            (None, _) if !state.served => "not served by this cluster".to_owned(),
            (None, None) => match state.unreadable_count() {
                0 => "ok".to_owned(),
                1 => "ok, 1 object unreadable".to_owned(),
                unreadable_objects => format!("ok, {unreadable_objects} objects unreadable"),
            },
            (None, Some(age)) => format!("the cached data is stale: no events for {} s", age.as_secs()),
            (Some(lost), None) => format!("not listed yet: {}", lost.why),
            (Some(lost), Some(_)) => format!("the watch is interrupted: {}", lost.why),
        };
        WatchStatus {
            synced: state.last_event.is_some(),
            age,
            message,
            failed: state.failed,
            lists: state.lists,
            unreadable: state.unreadable,
        }
    }

    /// Returns whether the watch is current, or why it is not.
    pub(crate) fn watch_state(&self) -> WatchState {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).watch_state(Instant::now())
    }

    /// True if everything was listed at least once, or if the resource is not served.
    pub(crate) fn is_synced(&self) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).last_event.is_some()
    }

    /// The age of the cache, if the watch is lost or without events for too long.
    pub(crate) fn age_if_stale(&self) -> Option<Duration> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).age_if_stale(Instant::now())
    }

    /// Returns for how long the watch has been down; `None` if the cache is current.
    pub(crate) fn watch_down_for(&self) -> Option<Duration> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).watch_down_for(Instant::now())
    }

    /// Number of objects that exist and cannot be read.
    pub(crate) fn unreadable_count(&self) -> usize {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).unreadable_count()
    }

    fn change(&self, change: impl FnOnce(&mut HealthState)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Forgets that there were more unreadable objects than are remembered: everything is listed again.
    pub(super) fn clear_unreadable_overflow(&self) {
        self.change(|state| state.has_more = false);
    }

    /// Records and logs a complete list of `count` objects.
    pub(super) fn record_list(&self, count: usize) {
        let (resource, unreadable) = (self.resource, self.unreadable_count());
        if unreadable > 0 {
            tracing::warn!(resource, count, unreadable, "listed; some objects are not cached");
        } else {
            tracing::info!(resource, count, "listed");
        }
        self.change(|state| {
            state.served = true;
            state.lists += 1;
            state.last_event = Some(Instant::now());
            state.lost = None;
        });
    }

    /// Records that the watch delivered something, so that the cache is current.
    pub(super) fn record_event(&self) {
        self.change(|state| {
            state.last_event = Some(Instant::now());
            if state.lost.take().is_some() {
                tracing::info!(resource = self.resource, "watch restored");
            }
        });
    }

    /// Records that the API server does not serve the resource.
    pub(super) fn record_not_served(&self) {
        self.change(|state| {
            state.served = false;
            state.last_event = Some(Instant::now());
            state.lost = None;
        });
    }

    /// Records and logs a failed request; the watch counts as lost until the next event or list.
    pub(super) fn record_error(&self, error: &ApiError) {
        let hint = match error.http_status_or_zero() {
            401 => "; check the credentials".to_owned(),
            403 => format!("; apply the ClusterRole of {} and bind it to this user", self.role),
            _ => String::new(),
        };
        tracing::warn!(resource = self.resource, "watch failed; retrying: {error}{hint}");
        self.change(|state| state.record_lost_watch(error.http_status_or_zero(), format!("{error}{hint}")));
    }

    /// Records that the task that watches panicked; the watch counts as lost.
    pub(super) fn record_panic(&self) {
        tracing::error!(
            resource = self.resource,
            "internal error while watching; please report it; retrying"
        );
        let why = "internal error while watching; please report it";
        self.change(|state| state.record_lost_watch(0, why.to_owned()));
    }

    /// Records and logs an object that exists and cannot be read or stored.
    pub(super) fn add_unreadable(&self, namespace: &str, name: &str, why: &str) {
        self.change(|state| {
            state.unreadable += 1;
            let known = state.unreadable_objects.len();
            if known >= MAX_REMEMBERED_UNREADABLE {
                state.has_more = true;
                return;
            }
            state.unreadable_objects.insert((namespace.into(), name.into()));
            // Those behind them are in the count.
            if known < MAX_LOGGED_UNREADABLE {
                let resource = self.resource;
                tracing::warn!(resource, namespace, name, why, "an object is not cached");
            }
        });
    }

    /// Forgets an unreadable object, because it was read or deleted.
    pub(super) fn clear_unreadable(&self, namespace: &str, name: &str) {
        self.change(|state| {
            if !state.unreadable_objects.is_empty() {
                state.unreadable_objects.remove(&(namespace.into(), name.into()));
            }
        });
    }

    /// Forgets all unreadable objects (namespace, name) for which `gone` is true.
    pub(super) fn clear_unreadable_if(&self, gone: impl Fn((&str, &str)) -> bool) {
        self.change(|state| {
            if !state.unreadable_objects.is_empty() {
                state.unreadable_objects.retain(|(namespace, name)| !gone((namespace, name)));
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::{Duration, HealthState, Instant, LostWatch, STALE_AFTER, WatchState};

    #[test]
    fn a_watch_that_is_too_quiet_is_not_current() {
        let last_event = Instant::now();
        let mut state = HealthState { last_event: Some(last_event), served: true, ..HealthState::default() };
        let late = last_event + STALE_AFTER + Duration::from_secs(5);
        assert_eq!(
            state.age_if_stale(last_event + Duration::from_secs(80)),
            None,
            "a bookmark is on its way"
        );
        assert_eq!(state.age_if_stale(late), Some(Duration::from_secs(95)));
        assert_eq!(state.watch_state(last_event), WatchState::Current);
        assert_eq!(state.watch_state(late), WatchState::Interrupted);
        state.served = false;
        assert_eq!(state.age_if_stale(late), None, "nobody tells of what is not served");
        assert_eq!(state.watch_state(late), WatchState::NotServed);
        let since = last_event + Duration::from_secs(40);
        state.lost = Some(LostWatch { since, code: 0, why: "gone".to_owned() });
        assert_eq!(state.age_if_stale(last_event), Some(Duration::ZERO), "lost is lost at once");
        assert_eq!(
            state.watch_down_for(late),
            Some(Duration::from_secs(55)),
            "it was open until it was lost"
        );
        let lost_late = Some(LostWatch { since: late, code: 0, why: "gone".to_owned() });
        let quiet = HealthState { last_event: Some(last_event), lost: lost_late, ..HealthState::default() };
        assert_eq!(quiet.watch_down_for(late), Some(Duration::from_secs(95)), "events had stopped before");
        assert_eq!(state.watch_state(last_event), WatchState::Interrupted);
        state.last_event = None;
        assert_eq!(state.age_if_stale(late), None, "nothing is known that could be old");
        assert_eq!(state.watch_state(late), WatchState::NotListed);
        state.lost = Some(LostWatch { since, code: 403, why: "forbidden".to_owned() });
        assert_eq!(state.watch_state(late), WatchState::Forbidden);
    }
}
