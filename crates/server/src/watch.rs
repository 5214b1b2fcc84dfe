//! Triggers reloads: on every change in the watched directories, on request, and on a timer.
//!
//! Directories are watched and not files: a file of a Secret or ConfigMap is a symlink into a directory that is
//! deleted when it changes. Without directory events, only the timer triggers reloads.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};

use super::clock;

/// A reload starts after this long without a directory event, because one swap of a volume causes several events.
const DEBOUNCE: Duration = Duration::from_millis(50);
/// Maximum time from the first directory event to the reload, even if events continue.
const MAX_DEBOUNCE: Duration = Duration::from_millis(500);
/// Interval at which it is checked whether a loaded configuration can be used.
const WAITING_CONFIG_POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Maximum number of reloads in a row that are triggered because new directories have to be watched.
const MAX_RELOADS_FOR_NEW_DIRECTORIES: usize = 4;

/// The reason for a reload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ReloadCause {
    Changed,
    Requested,
}

/// Triggers reloads; does not wait for them. Clones trigger the same reloads.
#[derive(Clone, Debug)]
pub struct ReloadTrigger(mpsc::Sender<ReloadCause>);

impl ReloadTrigger {
    /// Triggers a reload because something other than a file changed, such as a policy in the cluster.
    pub fn notify_changed(&self) {
        let _ = self.0.send(ReloadCause::Changed);
    }

    /// Triggers a reload on request, even if no file changed.
    pub(super) fn request_reload(&self) {
        let _ = self.0.send(ReloadCause::Requested);
    }
}

/// The triggers that the thread of [`spawn_reloader`] receives.
#[derive(Debug)]
pub(super) struct TriggerReceiver(mpsc::Receiver<ReloadCause>);

/// A trigger, and its receiving end.
pub(super) fn reload_channel() -> (ReloadTrigger, TriggerReceiver) {
    let (sender, receiver) = mpsc::channel();
    (ReloadTrigger(sender), TriggerReceiver(receiver))
}

/// Starts a thread that calls `reload` after each change in the directories that it returned last, once per period, and
/// on request (then with `true`). In between, calls `is_waiting` again and again as long as it returns true.
pub(super) fn spawn_reloader(
    trigger: ReloadTrigger,
    TriggerReceiver(triggers): TriggerReceiver,
    period: Duration,
    is_waiting: impl Fn() -> bool + Send + 'static,
    reload: impl Fn(bool) -> Vec<PathBuf> + Send + 'static,
) -> std::io::Result<()> {
    let mut watched = WatchedDirectories::new(trigger.0.clone());
    std::thread::Builder::new().name("watch".to_owned()).spawn(move || {
        // Kept here: a channel without senders is closed.
        let _kept = trigger;
        let mut requested = false;
        loop {
            // Before the first wait, and again after a new directory is watched: it may have changed before that.
            for _ in 0..MAX_RELOADS_FOR_NEW_DIRECTORIES {
                let directories = reload(std::mem::take(&mut requested));
                if !watched.watch_only_returning_if_any_new(directories) {
                    break;
                }
            }
            match next_trigger(&triggers, period, &is_waiting) {
                Ok(trigger) => requested = debounce(&triggers, trigger) == ReloadCause::Requested,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    })?;
    Ok(())
}

/// Waits for a trigger or the end of the period. Meanwhile calls `is_waiting` as long as it returns true.
fn next_trigger(
    triggers: &mpsc::Receiver<ReloadCause>,
    period: Duration,
    is_waiting: &impl Fn() -> bool,
) -> Result<ReloadCause, RecvTimeoutError> {
    let start = clock::monotonic_now();
    while is_waiting() {
        let left = period.saturating_sub(start.elapsed());
        match triggers.recv_timeout(WAITING_CONFIG_POLL_INTERVAL.min(left)) {
            Err(RecvTimeoutError::Timeout) if !left.is_zero() => {}
            ended => return ended,
        }
    }
    triggers.recv_timeout(period.saturating_sub(start.elapsed()))
}

/// Waits until no more triggers arrive, at most [`MAX_DEBOUNCE`]. Returns `Requested` if any of the triggers, including
/// `first`, is a request.
fn debounce(triggers: &mpsc::Receiver<ReloadCause>, first: ReloadCause) -> ReloadCause {
    let (start, mut trigger) = (clock::monotonic_now(), first);
    while start.elapsed() < MAX_DEBOUNCE {
        match triggers.recv_timeout(DEBOUNCE) {
            Ok(ReloadCause::Requested) => trigger = ReloadCause::Requested,
            Ok(ReloadCause::Changed) => {}
            Err(_) => break,
        }
    }
    trigger
}

/// The watched directories with device and inode: a path may lead to another directory later.
struct WatchedDirectories {
    watcher: Option<RecommendedWatcher>,
    known: BTreeMap<PathBuf, Option<(u64, u64)>>,
}

impl WatchedDirectories {
    fn new(sender: mpsc::Sender<ReloadCause>) -> WatchedDirectories {
        let sender = move |event: notify::Result<notify::Event>| {
            // Reading the files is an event too, and must not trigger a reload.
            if event.is_ok_and(|event| !event.kind.is_access()) {
                let _ = sender.send(ReloadCause::Changed);
            }
        };
        let watcher = notify::recommended_watcher(sender)
            .inspect_err(|error| {
                tracing::warn!(%error, "directory events are not available; files are checked only \
                 periodically")
            })
            .ok();
        WatchedDirectories { watcher, known: BTreeMap::new() }
    }

    /// Watches exactly these directories; true if some of them are new.
    fn watch_only_returning_if_any_new(&mut self, directories: Vec<PathBuf>) -> bool {
        let Some(watcher) = &mut self.watcher else { return false };
        let mut known = BTreeMap::new();
        let mut is_new = false;
        for path in directories {
            let before = self.known.remove(&path);
            let now = device_and_inode(&path);
            let same = before == Some(now);
            if !same && before.flatten().is_some() {
                let _ = watcher.unwatch(&path);
            }
            // Directories that are watched already, too: one that was deleted and created again is another directory,
            // and may have the inode of the old one.
            let watched = watcher.watch(&path, RecursiveMode::NonRecursive);
            if !same {
                is_new |= watched.is_ok();
                if let Err(error) = watched {
                    let directory = path.display();
                    tracing::warn!(%error, %directory, "cannot watch this directory; it is checked only periodically");
                }
            }
            known.insert(path, now);
        }
        for gone in self.known.keys() {
            let _ = watcher.unwatch(gone);
        }
        self.known = known;
        is_new
    }
}

/// Device and inode of the directory that a path leads to; `None` if there is none.
fn device_and_inode(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()))
}
