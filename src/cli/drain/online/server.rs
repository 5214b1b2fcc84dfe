//! The API server as a drain sees it: requests with answers, the objects that are watched, and the time.
//!
//! A drain talks to a [`Server`] and to nothing else. `LiveServer` is a running cluster; the tests have one that
//! replays what a running cluster answered. The time only moves with an exchange, so that a replay makes the same
//! decisions.
//!
//! Invariant: the objects are those of all watches at one time, or [`Server::refresh`] says why they are not.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::cli::state::OwnedObject;
use crate::cluster::{ApiError, DrainApiRequest};
use tollgate_document::doc::{self, Value};
use tollgate_forecast::{ObjectKind, State};
use tollgate_formats::gotime::Timestamp;

/// The response of the API server to a request of a drain: status code and body.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ServerResponse {
    pub(super) code: u16,
    pub(super) body: String,
}

impl ServerResponse {
    pub(super) fn is_success(&self) -> bool {
        (200..300).contains(&self.code)
    }

    /// True if the request should be sent again: the API server failed or is overloaded. An eviction that a PDB
    /// refuses also has the code 429, but is no such failure.
    pub(super) fn is_retryable_failure(&self) -> bool {
        (self.code >= 500 || self.code == 429) && !self.is_refused_by_pdb()
    }

    /// True if the API server refuses an eviction because of PDBs: one does not allow it now, or several select the
    /// pod.
    pub(super) fn is_refused_by_pdb(&self) -> bool {
        let message = self.status_code_and_message();
        message.contains("disruption budget") || message.contains("PodDisruptionBudget")
    }

    /// Returns the message of a `Status` with its code, and the causes that it does not contain, such as the PDB that
    /// refuses an eviction; the beginning of the body if it is not a `Status`.
    pub(super) fn status_code_and_message(&self) -> String {
        let status = doc::parse(&self.body).ok();
        let root = status.as_ref().map_or(Value::absent(), doc::Doc::root);
        let message = root.get("message").str();
        let mut text = if message.is_empty() { self.body.clone() } else { message.to_owned() };
        for cause in root.get("details").get("causes").items() {
            let cause = cause.get("message").str();
            if !text.contains(cause) {
                text = format!("{text} {cause}");
            }
        }
        format!("{}: {}", self.code, text.chars().take(500).collect::<String>())
    }
}

/// The operations on a cluster that a drain needs; tests replace it by recordings and a cluster in memory.
pub(super) trait Server {
    /// Returns the time at the end of the last request, refresh or pause. It does not change in between, so that a
    /// replay makes the same decisions.
    fn time_of_last_exchange(&self) -> Timestamp;
    /// Waits for this time, or until the user interrupts.
    fn pause(&mut self, duration: Duration);
    /// After this call, Ctrl-C and SIGTERM only set what [`Server::is_interrupted`] returns. Before, they end the process.
    fn catch_interrupts(&mut self) {}
    /// True after Ctrl-C or SIGTERM.
    fn is_interrupted(&self) -> bool;
    /// Sends a request and returns the response, even if its status is an error.
    fn send(&mut self, request: &DrainApiRequest) -> Result<ServerResponse, ApiError>;
    /// Updates the objects from the watches. The error says why they may be outdated.
    fn refresh(&mut self) -> Result<(), String>;
    /// Returns the watched objects, as of the last refresh.
    fn objects(&self) -> &ObjectStore;
    /// Lists all claims of the cluster with a request, because a watch may be behind.
    fn list_claims(&mut self) -> Result<ObjectStore, String>;
}

/// The name of an object: its kind, its namespace, which is empty for cluster-scoped kinds, and its name.
pub(super) type ObjectKey = (ObjectKind, String, String);

/// Objects of a cluster by name.
#[derive(Clone, Default, Debug)]
pub(super) struct ObjectStore {
    pub(super) objects: BTreeMap<ObjectKey, OwnedObject>,
    /// The kinds of which all objects are stored, even if there are none.
    pub(super) listed: Vec<ObjectKind>,
}

impl ObjectStore {
    /// Stores an object, or removes it if `object` is `None`.
    pub(super) fn insert_or_remove(&mut self, key: ObjectKey, object: Option<OwnedObject>) {
        match object {
            Some(object) => _ = self.objects.insert(key, object),
            None => _ = self.objects.remove(&key),
        }
    }

    /// Returns all ResourceClaims with their apiVersions.
    pub(super) fn claims(&self) -> impl Iterator<Item = (&str, Value<'_>)> {
        let claims = self.objects.iter().filter(|((kind, ..), _)| *kind == ObjectKind::ResourceClaim);
        claims.map(|(_, stored)| (&*stored.api_version, stored.object.root()))
    }

    /// Returns the objects by kind, as plans and forecasts read them.
    pub(super) fn state(&self) -> State<'_> {
        let mut state = State::default();
        for stored in self.objects.values() {
            state.add_with_type(&stored.api_version, stored.kind, stored.object.root());
        }
        self.listed.iter().for_each(|kind| state.mark_listed(*kind));
        let unread = ObjectKind::ALL.into_iter().filter(|kind| !self.listed.contains(kind));
        unread.for_each(|kind| state.mark_unread(kind));
        state
    }

    /// Returns the object with that kind, namespace and name.
    pub(super) fn get(&self, kind: ObjectKind, namespace: &str, name: &str) -> Option<Value<'_>> {
        let key = (kind, namespace.to_owned(), name.to_owned());
        self.objects.get(&key).map(|stored| stored.object.root())
    }

    /// The objects of a kind, by namespace and name.
    pub(super) fn objects_of_kind(&self, kind: ObjectKind) -> impl Iterator<Item = Value<'_>> {
        let first = (kind, String::new(), String::new());
        let of_kind = self.objects.range(first..).take_while(move |((found, ..), _)| *found == kind);
        of_kind.map(|(_, stored)| stored.object.root())
    }
}

#[cfg(test)]
mod tests {
    use super::ServerResponse;

    #[test]
    fn causes_that_the_message_lacks_are_added() {
        let body = r#"{"kind":"Status","message":"Cannot evict pod as it would violate the pod's disruption budget.",
            "details":{"causes":[{"message":"The disruption budget chat needs 2 healthy pods and has 2 currently"},
            {"message":"disruption budget"}]}}"#;
        let found = ServerResponse { code: 429, body: body.to_owned() }.status_code_and_message();
        assert_eq!(
            found,
            "429: Cannot evict pod as it would violate the pod's disruption budget. The disruption budget chat needs 2 \
             healthy pods and has 2 currently"
        );
    }
}
