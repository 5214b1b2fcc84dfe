//! How current what is known of one resource is.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::ask::Trouble;

/// A watch that lives has a bookmark each minute. After this long without a word nobody can say that what is known is
/// still true, although the watch is given up only later.
const QUIET: Duration = Duration::from_secs(90);

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
    /// Namespace and name of what is there and cannot be read: what is known has these holes.
    holes: HashSet<(Box<str>, Box<str>)>,
}

impl State {
    /// How old what is known is at a moment, if it may not be true any more.
    fn age(&self, now: Instant) -> Option<Duration> {
        let age = now.saturating_duration_since(self.heard?);
        let is_quiet = self.served && age > QUIET;
        (self.lost.is_some() || is_quiet).then_some(age)
    }
}

/// How it stands.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Freshness {
    /// All of it was read at least once, or it is not served.
    pub synced: bool,
    /// How old what is known is, if the watch is lost or too quiet.
    pub age: Option<Duration>,
    /// For people.
    pub says: String,
    /// What the API server refused or did not answer, ever.
    pub failed: u64,
    /// How often all of it was listed.
    pub lists: u64,
    /// Objects that could not be read, ever.
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
        let age = state.age(Instant::now());
        let says = match (&state.lost, age) {
            (None, _) if state.heard.is_none() => "not read yet".to_owned(),
            (None, _) if !state.served => "not served by this cluster".to_owned(),
            (None, None) => match state.holes.len() {
                0 => "ok".to_owned(),
                1 => "ok, 1 object unreadable".to_owned(),
                holes => format!("ok, {holes} objects unreadable"),
            },
            (None, Some(age)) => format!("no word for {} s, what is known is that old", age.as_secs()),
            (Some(trouble), None) => format!("not read yet: {trouble}"),
            (Some(trouble), Some(age)) => {
                format!("the watch is lost, what is known is {} s old: {trouble}", age.as_secs())
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

    /// How old what is known is, if the watch is lost or too quiet.
    pub fn age(&self) -> Option<Duration> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).age(Instant::now())
    }

    /// How many objects are there that cannot be read.
    pub fn holes(&self) -> usize {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).holes.len()
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

    /// Whoever followed it ended by a bug of ours.
    pub(super) fn panicked(&self) {
        let what = "internal error while watching, please report it";
        tracing::error!(resource = self.resource, "{what}; trying again");
        self.change(|state| {
            state.failed += 1;
            state.lost = Some(what.to_owned());
        });
    }

    /// An object is there and cannot be read.
    pub(super) fn unreadable(&self, namespace: &str, name: &str) {
        self.change(|state| {
            state.unreadable += 1;
            state.holes.insert((namespace.into(), name.into()));
        });
    }

    /// An object was read, or is gone.
    pub(super) fn no_hole(&self, namespace: &str, name: &str) {
        self.no_holes(|hole| *hole.0 == *namespace && *hole.1 == *name);
    }

    /// The same for all that `gone` (namespace, name) names.
    pub(super) fn no_holes(&self, gone: impl Fn((&str, &str)) -> bool) {
        self.change(|state| {
            if !state.holes.is_empty() {
                state.holes.retain(|(namespace, name)| !gone((namespace, name)));
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::{Duration, Instant, QUIET, State};

    #[test]
    fn a_watch_that_is_too_quiet_is_not_current() {
        let heard = Instant::now();
        let mut state = State { heard: Some(heard), served: true, ..State::default() };
        let late = heard + QUIET + Duration::from_secs(5);
        assert_eq!(state.age(heard + Duration::from_secs(80)), None, "a bookmark is on its way");
        assert_eq!(state.age(late), Some(Duration::from_secs(95)));
        state.served = false;
        assert_eq!(state.age(late), None, "nobody tells of what is not served");
        state.lost = Some("gone".to_owned());
        assert_eq!(state.age(heard), Some(Duration::ZERO), "lost is lost at once");
        state.heard = None;
        assert_eq!(state.age(late), None, "nothing is known that could be old");
    }
}
