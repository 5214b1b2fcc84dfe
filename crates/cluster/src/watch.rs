//! Lists and watches one resource, for the life of the process.
//!
//! A broken watch continues at the last resourceVersion; if that has expired, everything is listed again. A watch
//! without events is closed, and one that ends at once is retried with backoff. Cached objects stay in use meanwhile,
//! and their age is known: that is why this is not kube's own watcher. An event that is older than the one before it
//! changes nothing.
//!
//! Invariant: after a list the sink has exactly the listed objects, and nothing is removed while the API server is
//! unreachable.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use tokio::time::{Instant, timeout};

use super::Cluster;
use super::api_error::{ApiError, event_error};
use super::client::{ApiClient, FULL_OBJECTS, Page};
use super::list::check_is_list_of_kind;
use super::listed_kind::ListedKind;
use super::page::{PageSize, TooLargeObject};
use super::retry::{Backoff, Timing};
use super::watch_health::WatchHealth;
use super::watch_lines::{CompleteOrTruncatedWatchLine, WatchLines};
use tollgate_document::doc::{KeptFields, KeptObject, ObjectWithDeferredMember, Value};

/// A resource to list and watch, with its group, versions and media types.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct WatchedResource {
    /// The watched kind. Its resource name is used in messages and as a metric label.
    pub(super) kind: ListedKind,
    /// Media type of the list request.
    pub(super) accept: &'static str,
    /// Media type of the watch request.
    pub(super) accept_watch: &'static str,
    /// Number of objects per page of a list, if they are small.
    pub(super) page: usize,
    /// The fields of an object that are read.
    pub(super) keep: &'static KeptFields,
    /// Maximum number of keys and values of an object that is kept, because whoever creates objects must not decide how
    /// much memory they take.
    pub(super) max_nodes: usize,
}

impl WatchedResource {
    /// Returns the kind of a list of the objects: `PodList`.
    fn list_kind(&self) -> String {
        let kind = if self.accept == FULL_OBJECTS { self.kind.kind } else { "PartialObjectMetadata" };
        format!("{kind}List")
    }
}

/// The objects of a list that are stored, or that should be: namespace (empty for cluster-scoped kinds) and name.
#[derive(Debug, Default)]
pub(super) struct ObjectKeys(HashMap<Box<str>, HashSet<Box<str>>>);

impl ObjectKeys {
    fn insert(&mut self, namespace: &str, name: &str) {
        self.0.entry(namespace.into()).or_default().insert(name.into());
    }

    pub(super) fn contains(&self, namespace: &str, name: &str) -> bool {
        self.0.get(namespace).is_some_and(|names| names.contains(name))
    }
}

/// Stores the objects that a [`Reflector`] reads.
pub(super) trait ObjectSink: Send + Sync {
    /// Stores an object, in an `apiVersion` that items of a list do not repeat. An error says why it cannot be read or
    /// stored.
    fn put(&self, api_version: &str, object: Value<'_>) -> Result<StoreOutcome, String>;
    /// Removes an object that was deleted or can no longer be stored.
    fn remove(&self, namespace: &str, name: &str);
    /// Removes all objects that are not among the keys.
    fn retain(&self, keys: &ObjectKeys);
    /// True, once, if objects were left out for lack of memory and there is enough memory now, so that everything
    /// should be listed again. The default is for sinks that do not need this.
    fn take_relist_request_after_memory_freed(&self) -> bool {
        false
    }
}

/// Whether a sink stored an object or does not need it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum StoreOutcome {
    Yes,
    NotNeeded,
}

/// A watch can continue after an API server was unreachable or busy. After this many error responses in a row it may
/// not: the server may have been restored from a backup, and then everything must be listed again.
const MAX_ERRORS_BEFORE_RELIST: usize = 5;

/// Lists and watches one resource, and passes the objects to a sink.
pub(super) struct Reflector<S> {
    client: ApiClient,
    resource: WatchedResource,
    sink: Arc<S>,
    health: Arc<WatchHealth>,
}

/// The API version and resourceVersion at which a watch continues.
struct WatchPosition {
    /// Path of the resource, such as `/apis/resource.k8s.io/v1/resourceslices`.
    path: String,
    /// API version of the objects, such as `resource.k8s.io/v1`.
    api_version: String,
    /// The last resourceVersion that was read.
    version: String,
}

/// The reason why a watch ended, which decides whether it continues or lists again.
enum WatchEnd {
    /// The API server closed the watch, which continues at its position.
    Closed,
    /// The resourceVersion has expired: everything is listed again.
    Expired,
}

impl<S: ObjectSink + 'static> Reflector<S> {
    /// Starts to list and watch a resource, for the life of the process.
    pub(super) fn start(
        cluster: &Cluster,
        resource: WatchedResource,
        sink: Arc<S>,
        health: Arc<WatchHealth>,
    ) {
        let reflector = Arc::new(Reflector { client: cluster.client.clone(), resource, sink, health });
        cluster.spawn(async move {
            restart_on_panic(&reflector.health, reflector.client.timing, || reflector.clone().run()).await;
        });
    }

    async fn run(self: Arc<Self>) {
        let mut backoff = Backoff::new(self.client.timing);
        let mut position = None;
        let mut api_errors = 0;
        loop {
            let began = Instant::now();
            match self.list_and_watch(&mut position).await {
                Ok(()) if position.is_none() => {
                    // Not served. An upgrade may change that.
                    tokio::time::sleep(self.client.timing.not_served_delay).await;
                    continue;
                }
                Ok(()) => {
                    api_errors = 0;
                    backoff.reset_if_worked_long_enough(began.elapsed());
                }
                Err(error) => {
                    api_errors += usize::from(error.http_status_or_zero() != 0);
                    if api_errors >= MAX_ERRORS_BEFORE_RELIST {
                        (position, api_errors) = (None, 0);
                    }
                    self.health.record_error(&error);
                }
            }
            if began.elapsed() >= self.client.timing.stable_after {
                backoff.reset();
            } else {
                backoff.wait().await;
            }
        }
    }

    /// Lists everything if `position` is `None` or left-out objects may fit now, then watches until the watch ends.
    /// Sets `position` to where the next watch continues, or to `None` if the resource is not served.
    async fn list_and_watch(&self, position: &mut Option<WatchPosition>) -> Result<(), ApiError> {
        let mut current =
            match position.take().filter(|_| !self.sink.take_relist_request_after_memory_freed()) {
                Some(position) => position,
                None => match self.list_in_newest_served_version().await? {
                    Some(position) => position,
                    None => return Ok(()),
                },
            };
        let ended = self.watch(&mut current).await;
        // After an error, also of the list below, the watch continues where it ended, unless that place expired.
        *position = Some(current);
        let lists_again = match ended? {
            WatchEnd::Closed => self.client.timing.list_after_watch,
            WatchEnd::Expired => {
                let resource = self.resource.kind.resource;
                tracing::info!(resource, "the resource version expired; listing again");
                *position = None;
                true
            }
        };
        if lists_again {
            *position = self.list_in_newest_served_version().await?;
        }
        Ok(())
    }

    /// Lists all objects, page by page; `None` if no version is served.
    async fn list_in_newest_served_version(&self) -> Result<Option<WatchPosition>, ApiError> {
        for version in self.resource.kind.versions {
            match self.list_in_version(version).await {
                Ok(position) => return Ok(Some(position)),
                Err(error) if error.http_status_or_zero() == 404 => {}
                Err(error) => return Err(error),
            }
        }
        self.sink.retain(&ObjectKeys::default());
        self.health.record_not_served();
        Ok(None)
    }

    /// Lists all objects in one API version, and removes objects from the sink that no longer exist.
    async fn list_in_version(&self, version: &str) -> Result<WatchPosition, ApiError> {
        let kind = &self.resource.kind;
        let (path, api_version) = (kind.list_path(version, None), kind.api_version(version));
        let mut keys = ObjectKeys::default();
        let (mut count, mut token) = (0, String::new());
        let mut page = PageSize::new(self.resource.page);
        self.health.clear_unreadable_overflow();
        loop {
            let query = page.path(&path, &token);
            let read = self.client.get_page(&query, self.resource.accept, page.max_bytes()).await;
            let version = match read {
                Err(error) if page.shrink_after_error(&error) => continue,
                Err(error) => {
                    let Some(skipped) = TooLargeObject::from_page_error(&error) else { return Err(error) };
                    keys.insert(skipped.namespace, skipped.name);
                    self.remove_and_record_unreadable(skipped.namespace, skipped.name, TOO_LARGE);
                    count += 1;
                    skipped.token.clone_into(&mut token);
                    skipped.version.to_owned()
                }
                Ok(Page { text, .. }) => {
                    let list = ObjectWithDeferredMember::parse_deferring(&text, "items")
                        .map_err(|_error| ApiError::not_json())?;
                    check_is_list_of_kind(&list, &self.resource.list_kind()).map_err(ApiError::Unexpected)?;
                    let before = count;
                    for part in list.read_deferred_items(self.resource.keep, self.resource.max_nodes) {
                        let part = part.map_err(|_error| ApiError::not_json())?;
                        if self.put_or_record_unreadable(&api_version, &part) {
                            let (namespace, name) = namespace_and_name(part.doc.root());
                            keys.insert(namespace, name);
                        }
                        count += 1;
                    }
                    page.adapt_to_page(count - before, text.len());
                    let metadata = list.without_deferred_member().get("metadata");
                    metadata.get("continue").str().clone_into(&mut token);
                    metadata.get("resourceVersion").str().to_owned()
                }
            };
            if token.is_empty() {
                self.sink.retain(&keys);
                self.health.clear_unreadable_if(|(namespace, name)| !keys.contains(namespace, name));
                self.health.record_list(count);
                return Ok(WatchPosition { path, api_version, version });
            }
        }
    }

    /// Opens a watch at a position and reads it to its end.
    async fn watch(&self, position: &mut WatchPosition) -> Result<WatchEnd, ApiError> {
        let query = format!("{}?{}", position.path, watch_query(&position.version, self.client.timing));
        let lines = match self.client.watch(&query, self.resource.accept_watch).await {
            Err(error) if matches!(error.http_status_or_zero(), 404 | 410) => return Ok(WatchEnd::Expired),
            answer => answer?,
        };
        // The cache is current, up to the events that this watch will deliver.
        self.health.record_event();
        self.read_events(lines, position).await
    }

    /// Passes the events of a watch on to the sink, and moves `position` on, until the watch ends.
    async fn read_events(
        &self,
        mut lines: WatchLines,
        position: &mut WatchPosition,
    ) -> Result<WatchEnd, ApiError> {
        let mut has_advanced = false;
        loop {
            let limit = self.client.timing.silence_timeout;
            let Ok(next) = timeout(limit, lines.next()).await else {
                return Err(ApiError::Unreachable(format!("no events for {limit:?}")));
            };
            let Some(line) = next? else { return Ok(WatchEnd::Closed) };
            self.health.record_event();
            let line = match line {
                CompleteOrTruncatedWatchLine::Event(line) => line,
                CompleteOrTruncatedWatchLine::TooLong(head) => {
                    let Some(skipped) = TooLargeObject::from_event_head(&head) else {
                        return Ok(WatchEnd::Expired);
                    };
                    let TooLargeObject { namespace, name, version, event, .. } = skipped;
                    if is_older_resource_version(version, &position.version) {
                        continue;
                    }
                    if event == "DELETED" {
                        self.remove_and_clear_unreadable(namespace, name);
                    } else {
                        self.remove_and_record_unreadable(namespace, name, TOO_LARGE);
                    }
                    if !version.is_empty() {
                        version.clone_into(&mut position.version);
                    }
                    continue;
                }
            };
            let not_json = |_error| ApiError::not_json();
            let event = ObjectWithDeferredMember::parse_deferring(&line, "object").map_err(not_json)?;
            let part = event
                .read_deferred_member_or_identity(self.resource.keep, self.resource.max_nodes)
                .map_err(not_json)?;
            let object = part.doc.root();
            let version = object.get("metadata").get("resourceVersion").str();
            if is_older_resource_version(version, &position.version) {
                // An event that was already read, and is sent again. If it is the first one, the API server does not
                // know the position of this watch: it may have been restored from a backup.
                if has_advanced {
                    continue;
                }
                return Ok(WatchEnd::Expired);
            }
            match event.without_deferred_member().get("type").str() {
                "ADDED" | "MODIFIED" => _ = self.put_or_record_unreadable(&position.api_version, &part),
                "DELETED" => {
                    let (namespace, name) = namespace_and_name(object);
                    self.remove_and_clear_unreadable(namespace, name);
                }
                "BOOKMARK" => {}
                _ => {
                    let status = event
                        .read_deferred_member_or_identity(&KeptFields::All, self.resource.max_nodes)
                        .map_err(not_json)?;
                    let error = event_error(status.doc.root());
                    return if error.http_status_or_zero() == 410 {
                        Ok(WatchEnd::Expired)
                    } else {
                        Err(error)
                    };
                }
            }
            if !version.is_empty() {
                has_advanced = true;
                version.clone_into(&mut position.version);
            }
        }
    }

    /// Stores an object, or records why it cannot be stored. Returns false if the sink does not need it.
    fn put_or_record_unreadable(&self, api_version: &str, part: &KeptObject<'_>) -> bool {
        let (namespace, name) = namespace_and_name(part.doc.root());
        if !part.is_whole {
            let max = self.resource.max_nodes;
            let why = format!("has more than {max} keys and values, which is the maximum to limit memory");
            self.remove_and_record_unreadable(namespace, name, &why);
            return true;
        }
        match self.sink.put(api_version, part.doc.root()) {
            Ok(stored) => {
                self.health.clear_unreadable(namespace, name);
                stored == StoreOutcome::Yes
            }
            Err(why) => {
                self.health.add_unreadable(namespace, name, &why);
                true
            }
        }
    }

    /// Removes an object from the sink that exists and cannot be stored, and records why.
    fn remove_and_record_unreadable(&self, namespace: &str, name: &str, why: &str) {
        self.sink.remove(namespace, name);
        self.health.add_unreadable(namespace, name, why);
    }

    fn remove_and_clear_unreadable(&self, namespace: &str, name: &str) {
        self.sink.remove(namespace, name);
        self.health.clear_unreadable(namespace, name);
    }
}

/// Message for an object that is too large to be read.
const TOO_LARGE: &str = "has more than 8 MiB, which is the maximum to limit memory";

/// Runs a task that never ends, and restarts it if it panics: a cache that is no longer updated must not count as
/// current.
async fn restart_on_panic<F>(health: &WatchHealth, timing: Timing, mut work: impl FnMut() -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut backoff = Backoff::new(timing);
    loop {
        let began = Instant::now();
        match tokio::spawn(work()).await {
            Err(error) if error.is_panic() => health.record_panic(),
            _ => return,
        }
        if began.elapsed() >= timing.stable_after {
            backoff.reset();
        }
        backoff.wait().await;
    }
}

/// Returns the query of a watch that starts at a resourceVersion.
pub(super) fn watch_query(version: &str, timing: Timing) -> String {
    let seconds = timing.watch_timeout.as_secs().max(1);
    format!("watch=true&allowWatchBookmarks=true&resourceVersion={version}&timeoutSeconds={seconds}")
}

/// True if a resourceVersion is older than another. They are numbers in every API server of Kubernetes; others say
/// nothing about their order.
fn is_older_resource_version(version: &str, than: &str) -> bool {
    match (version.parse::<u64>(), than.parse::<u64>()) {
        (Ok(version), Ok(than)) => version < than,
        _ => false,
    }
}

/// Namespace and name of an object.
pub(super) fn namespace_and_name(object: Value<'_>) -> (&str, &str) {
    let metadata = object.get("metadata");
    (metadata.get("namespace").str(), metadata.get("name").str())
}

/// Percent-encodes everything but letters, digits, `-`, `_` and `.`.
pub(super) fn percent_encode(token: &str) -> String {
    const ENCODED_CHARS: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');
    utf8_percent_encode(token, &ENCODED_CHARS).to_string()
}

#[cfg(any(test, fuzzing))]
pub(super) mod fuzzing;

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::fuzzing::read_from;
    use super::{Arc, Timing, WatchEnd, WatchHealth, percent_encode, restart_on_panic};

    #[test]
    fn a_panic_is_told_and_the_watch_begins_anew() {
        let delay = Duration::from_millis(1);
        let timing = Timing { min_backoff: delay, max_backoff: delay, ..Timing::default() };
        let (health, runs) = (Arc::new(WatchHealth::new("pods")), Arc::new(AtomicUsize::new(0)));
        health.record_list(1);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(restart_on_panic(&health, timing, || {
            let (health, runs) = (health.clone(), runs.clone());
            async move {
                match runs.fetch_add(1, Ordering::Relaxed) {
                    0 => panic!("a bug"),
                    _ => assert!(health.status().message.contains("internal error"), "{:?}", health.status()),
                }
            }
        }));
        assert_eq!(runs.load(Ordering::Relaxed), 2, "once more, and then it went well");
        assert!(health.age_if_stale().is_some(), "nothing was heard since");
    }

    fn event(kind: &str, name: &str, version: u32) -> String {
        format!(
            "{{\"type\":\"{kind}\",\"object\":{{\"metadata\":{{\"name\":\"{name}\",\"resourceVersion\":\"{version}\"}}}}}}\n"
        )
    }

    #[test]
    fn an_event_that_is_sent_again_changes_nothing() {
        let stream = [
            event("ADDED", "a", 5),
            event("DELETED", "b", 6),
            event("DELETED", "a", 4),
            event("ADDED", "b", 3),
            event("ADDED", "c", 7),
            event("ADDED", "c", 7),
        ];
        let (keys, ended) = read_from("2", stream.concat().as_bytes());
        let names: Vec<&str> = keys.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, ["a", "c"]);
        assert!(matches!(ended, Ok(WatchEnd::Closed)));
    }

    #[test]
    fn an_api_server_that_begins_before_the_position_is_listed() {
        let stream = event("ADDED", "a", 5);
        let (keys, ended) = read_from("9", stream.as_bytes());
        assert!(keys.is_empty() && matches!(ended, Ok(WatchEnd::Expired)), "{keys:?}");
        // Versions that are no numbers say nothing.
        let (keys, ended) = read_from("x9", stream.as_bytes());
        assert!(keys.len() == 1 && matches!(ended, Ok(WatchEnd::Closed)), "{keys:?}");
    }

    #[test]
    fn tokens_are_escaped() {
        assert_eq!(percent_encode("abC-_.9"), "abC-_.9");
        assert_eq!(percent_encode("a=b/c+ä"), "a%3Db%2Fc%2B%C3%A4");
    }
}
