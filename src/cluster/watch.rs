//! One resource of the API server, followed: listed once, then every change, for as long as the process lives.
//!
//! The last version seen is where a broken watch goes on; if that version is gone, everything is listed anew. A watch without a word is dead, one that ends at once is not asked for again at once.
//! What was told last stays in use meanwhile, and its age is known: that is why this is not kube's own watcher.
//!
//! Invariant: after a list the sink holds what the list held, and nothing is forgotten while the API server is away.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tokio::time::{Instant, timeout};

use super::Cluster;
use super::ask::{Client, Lines, Trouble, refusal};
use super::fresh::Fresh;
use super::retry::{Backoff, Timing};
use crate::doc::{self, Value};

/// What is followed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Resource {
    /// `resourceslices`: for people and as label.
    pub(super) name: &'static str,
    /// Where it may be, the newest version first: what is not served there (404) is looked for at the next.
    pub(super) paths: &'static [&'static str],
    /// How much of each object is asked for in a list.
    pub(super) accept: &'static str,
    /// And in a watch.
    pub(super) accept_watch: &'static str,
    /// Objects of one page of a list: what is in memory at once.
    pub(super) page: usize,
}

/// The objects of a list: namespace (empty for kinds that have none) and name.
#[derive(Debug, Default)]
pub(super) struct Keys(HashMap<Box<str>, HashSet<Box<str>>>);

impl Keys {
    fn insert(&mut self, namespace: &str, name: &str) {
        match self.0.get_mut(namespace) {
            Some(names) => _ = names.insert(name.into()),
            None => _ = self.0.insert(namespace.into(), HashSet::from([name.into()])),
        }
    }

    pub(super) fn contains(&self, namespace: &str, name: &str) -> bool {
        self.0.get(namespace).is_some_and(|names| names.contains(name))
    }

    fn len(&self) -> usize {
        self.0.values().map(HashSet::len).sum()
    }
}

/// Where objects go.
pub(super) trait Sink: Send + Sync {
    /// Keeps an object that was found at a path, or says why it cannot.
    fn put(&self, path: &str, object: Value<'_>) -> Result<(), String>;
    /// Forgets one.
    fn remove(&self, namespace: &str, name: &str);
    /// Forgets all but these.
    fn retain(&self, keys: &Keys);
}

/// An API server that is away or busy will know where we were. One that answers and refuses so often may not: it may have
/// been restored from a backup, and then nothing but a list helps.
const MOST_REFUSALS: usize = 5;

/// Follows one resource.
pub(super) struct Follower<S> {
    pub(super) client: Client,
    pub(super) timing: Timing,
    pub(super) resource: Resource,
    pub(super) sink: Arc<S>,
    pub(super) fresh: Arc<Fresh>,
}

/// Where a watch goes on.
struct Place {
    path: &'static str,
    version: String,
}

/// Why a watch ended.
enum End {
    /// In good order: it goes on.
    Over,
    /// The version is gone: everything is listed anew.
    Gone,
}

impl<S: Sink + 'static> Follower<S> {
    /// Begins to follow, for as long as the process lives.
    pub(super) fn begin(self, cluster: &Cluster) {
        let follower = Arc::new(self);
        cluster.spawn(async move {
            outlive(&follower.fresh, follower.timing, || follower.clone().follow()).await;
        });
    }

    async fn follow(self: Arc<Self>) {
        let mut backoff = Backoff::new(self.timing);
        let mut place = None;
        let mut refusals = 0;
        loop {
            let began = Instant::now();
            match self.round(&mut place).await {
                Ok(()) if place.is_none() => {
                    // Not served. An upgrade may change that; it is not waited for.
                    tokio::time::sleep(self.timing.most.saturating_mul(10)).await;
                    continue;
                }
                Ok(()) => refusals = 0,
                Err(trouble) => {
                    refusals += usize::from(trouble.code() != 0);
                    if refusals >= MOST_REFUSALS {
                        (place, refusals) = (None, 0);
                    }
                    self.fresh.lost(&trouble);
                }
            }
            if began.elapsed() >= self.timing.stable {
                backoff.reset();
            } else {
                backoff.wait().await;
            }
        }
    }

    /// Lists if need be, and watches until the watch ends. `None` afterwards: not served.
    async fn round(&self, place: &mut Option<Place>) -> Result<(), Trouble> {
        let mut here = match place.take() {
            Some(place) => place,
            None => match self.list().await? {
                Some(place) => place,
                None => return Ok(()),
            },
        };
        let ended = self.watch(&mut here).await;
        match ended {
            Ok(End::Gone) => {
                tracing::info!(resource = self.resource.name, "the version is gone, listing again");
                *place = self.list().await?;
                Ok(())
            }
            Ok(End::Over) => {
                *place = Some(here);
                Ok(())
            }
            Err(trouble) => {
                *place = Some(here);
                Err(trouble)
            }
        }
    }

    /// Reads everything, page by page; `None` if no version of it is served.
    async fn list(&self) -> Result<Option<Place>, Trouble> {
        for path in self.resource.paths {
            match self.list_at(path).await {
                Ok(place) => return Ok(Some(place)),
                Err(trouble) if trouble.code() == 404 => {}
                Err(trouble) => return Err(trouble),
            }
        }
        self.sink.retain(&Keys::default());
        self.fresh.not_served();
        Ok(None)
    }

    async fn list_at(&self, path: &'static str) -> Result<Place, Trouble> {
        let mut keys = Keys::default();
        let mut next = String::new();
        loop {
            let query = format!("{path}?limit={}{next}", self.resource.page);
            let text = self.client.get(&query, self.resource.accept).await?;
            let list = parse(&text)?;
            for object in list.root().get("items").items() {
                let (namespace, name) = key(object);
                keys.insert(namespace, name);
                self.put(path, object);
            }
            let metadata = list.root().get("metadata");
            match metadata.get("continue").str() {
                "" => {
                    self.sink.retain(&keys);
                    self.fresh.no_holes(|(namespace, name)| !keys.contains(namespace, name));
                    self.fresh.listed(keys.len());
                    return Ok(Place { path, version: metadata.get("resourceVersion").str().to_owned() });
                }
                token => next = format!("&continue={}", escaped(token)),
            }
        }
    }

    async fn watch(&self, place: &mut Place) -> Result<End, Trouble> {
        let seconds = self.timing.watch.as_secs().max(1);
        let (path, version) = (place.path, &place.version);
        let query = format!(
            "{path}?watch=true&allowWatchBookmarks=true&resourceVersion={version}&timeoutSeconds={seconds}"
        );
        let lines = match self.client.watch(&query, self.resource.accept_watch).await {
            Err(trouble) if matches!(trouble.code(), 404 | 410) => return Ok(End::Gone),
            answer => answer?,
        };
        // What was listed or told before is what there is, up to what this watch is about to tell.
        self.fresh.heard();
        self.read(lines, place).await
    }

    async fn read(&self, mut lines: Lines, place: &mut Place) -> Result<End, Trouble> {
        loop {
            let Ok(next) = timeout(self.timing.silence, lines.next()).await else {
                return Err(Trouble::Unreachable(format!("no word for {:?}", self.timing.silence)));
            };
            let Some(line) = next? else { return Ok(End::Over) };
            self.fresh.heard();
            let event = parse(&line)?;
            let object = event.root().get("object");
            match event.root().get("type").str() {
                "ADDED" | "MODIFIED" => self.put(place.path, object),
                "DELETED" => {
                    let (namespace, name) = key(object);
                    self.sink.remove(namespace, name);
                    self.fresh.no_hole(namespace, name);
                }
                "BOOKMARK" => {}
                _ => {
                    let code = object.get("code").int().and_then(|code| u16::try_from(code).ok());
                    return match code.unwrap_or(500) {
                        410 => Ok(End::Gone),
                        code => Err(refusal(code, &object.to_json())),
                    };
                }
            }
            let version = object.get("metadata").get("resourceVersion").str();
            if !version.is_empty() {
                version.clone_into(&mut place.version);
            }
        }
    }

    fn put(&self, path: &str, object: Value<'_>) {
        let (namespace, name) = key(object);
        match self.sink.put(path, object) {
            Ok(()) => self.fresh.no_hole(namespace, name),
            Err(why) => {
                tracing::warn!(
                    resource = self.resource.name,
                    namespace,
                    name,
                    why,
                    "an object cannot be read"
                );
                self.fresh.unreadable(namespace, name);
            }
        }
    }
}

/// Does something that never ends, and begins it anew if it panics: what nobody follows any more must not pass for
/// current.
async fn outlive<F>(fresh: &Fresh, timing: Timing, mut work: impl FnMut() -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut backoff = Backoff::new(timing);
    loop {
        let began = Instant::now();
        match tokio::spawn(work()).await {
            Err(error) if error.is_panic() => fresh.panicked(),
            _ => return,
        }
        if began.elapsed() >= timing.stable {
            backoff.reset();
        }
        backoff.wait().await;
    }
}

fn key(object: Value<'_>) -> (&str, &str) {
    let metadata = object.get("metadata");
    (metadata.get("namespace").str(), metadata.get("name").str())
}

fn parse(text: &str) -> Result<doc::Doc<'_>, Trouble> {
    doc::parse(text)
        .map_err(|error| Trouble::Unreachable(format!("the answer is not JSON: {}", error.detail)))
}

/// A token in a query: everything but letters, digits, `-`, `_` and `.` in hexadecimal.
fn escaped(token: &str) -> String {
    let mut text = String::with_capacity(token.len());
    for byte in token.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.') {
            text.push(char::from(byte));
        } else {
            text.push('%');
            for half in [byte >> 4, byte & 15] {
                text.push(char::from_digit(u32::from(half), 16).unwrap_or('0').to_ascii_uppercase());
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::{Arc, Fresh, Timing, escaped, outlive};

    #[test]
    fn a_panic_is_told_and_the_watch_begins_anew() {
        let least = Duration::from_millis(1);
        let timing = Timing { least, most: least, ..Timing::default() };
        let (fresh, begun) = (Arc::new(Fresh::new("pods")), Arc::new(AtomicUsize::new(0)));
        fresh.listed(1);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(outlive(&fresh, timing, || {
            let (fresh, begun) = (fresh.clone(), begun.clone());
            async move {
                match begun.fetch_add(1, Ordering::Relaxed) {
                    0 => panic!("a bug"),
                    _ => assert!(fresh.look().says.contains("internal error"), "{:?}", fresh.look()),
                }
            }
        }));
        assert_eq!(begun.load(Ordering::Relaxed), 2, "once more, and then it went well");
        assert!(fresh.age().is_some(), "nothing was heard since");
    }

    #[test]
    fn tokens_are_escaped() {
        assert_eq!(escaped("abC-_.9"), "abC-_.9");
        assert_eq!(escaped("a=b/c+ä"), "a%3Db%2Fc%2B%C3%A4");
    }
}
