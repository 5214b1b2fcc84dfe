//! How current what is known of one resource is.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::ask::Trouble;

/// Shared by who follows the resource and who tells of it.
#[derive(Debug)]
pub struct Fresh {
    resource: &'static str,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// When everything known was last known to be current.
    heard: Option<Instant>,
    /// Why it may not be.
    lost: Option<String>,
    served: bool,
    failed: u64,
    lists: u64,
    unreadable: u64,
}

/// How it stands.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Freshness {
    /// All of it was read at least once, or it is not served.
    pub synced: bool,
    /// How old what is known is, if the watch is lost.
    pub age: Option<Duration>,
    /// For people.
    pub says: String,
    /// What the API server refused or did not answer, ever.
    pub failed: u64,
    /// How often all of it was listed.
    pub lists: u64,
    /// Objects that could not be read.
    pub unreadable: u64,
}

impl Fresh {
    pub(super) fn new(resource: &'static str) -> Fresh {
        Fresh { resource, state: Mutex::default() }
    }

    /// `resourceslices`
    pub fn resource(&self) -> &'static str {
        self.resource
    }

    /// How it stands now.
    pub fn look(&self) -> Freshness {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let age = state.lost.is_some().then(|| state.heard.map(|heard| heard.elapsed())).flatten();
        let says = match (&state.lost, &state.heard) {
            (None, None) => "not read yet".to_owned(),
            (None, Some(_)) if !state.served => "not served by this cluster".to_owned(),
            (None, Some(_)) => "ok".to_owned(),
            (Some(trouble), None) => format!("not read yet: {trouble}"),
            (Some(trouble), Some(heard)) => {
                format!("the watch is lost, what is known is {} s old: {trouble}", heard.elapsed().as_secs())
            }
        };
        Freshness {
            synced: state.heard.is_some(),
            age,
            says,
            failed: state.failed,
            lists: state.lists,
            unreadable: state.unreadable,
        }
    }

    /// All of it was read at least once, or it is not served.
    pub fn is_synced(&self) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).heard.is_some()
    }

    /// How old what is known is, if the watch is lost.
    pub fn age(&self) -> Option<Duration> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.lost.as_ref().and(state.heard).map(|heard| heard.elapsed())
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(super) fn listed(&self, count: usize) {
        let resource = self.resource;
        tracing::info!(resource, count, "listed");
        self.change(|state| {
            state.served = true;
            state.lists += 1;
            state.heard = Some(Instant::now());
            state.lost = None;
        });
    }

    pub(super) fn heard(&self) {
        self.change(|state| {
            state.heard = Some(Instant::now());
            if state.lost.take().is_some() {
                tracing::info!(resource = self.resource, "watched again");
            }
        });
    }

    pub(super) fn not_served(&self) {
        self.change(|state| {
            state.served = false;
            state.heard = Some(Instant::now());
            state.lost = None;
        });
    }

    pub(super) fn lost(&self, trouble: &Trouble) {
        let hint = match trouble.code() {
            401 => "; are the credentials still good?",
            403 => "; manifests/overlays/cluster has the ClusterRole",
            _ => "",
        };
        tracing::warn!(resource = self.resource, "not watched, trying again: {trouble}{hint}");
        self.change(|state| {
            state.failed += 1;
            state.lost = Some(format!("{trouble}{hint}"));
        });
    }

    pub(super) fn unreadable(&self) {
        self.change(|state| state.unreadable += 1);
    }
}
