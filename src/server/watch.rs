//! Looks after files that others write: on every change of their directories, when asked, and on a timer.
//!
//! Directories are watched and not files: a file of a Secret or ConfigMap is a symlink into a directory that is
//! deleted when it changes. Where directory events cannot be had, the timer alone does it.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};

use super::clock;

/// A swap is several events, and a file is not written at once: look when it has been quiet for this long …
const QUIET: Duration = Duration::from_millis(50);
/// … or when it has been restless for this long.
const RESTLESS: Duration = Duration::from_millis(500);
/// Looks in a row because new directories came to be watched.
const AGAIN: usize = 4;

/// Why to look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Why {
    Changed,
    Asked,
}

/// The thread that looks.
#[derive(Debug)]
pub(super) struct Watch(mpsc::Sender<Why>);

impl Watch {
    /// Look now, whether anything changed or not.
    pub(super) fn ask(&self) {
        let _ = self.0.send(Why::Asked);
    }
}

/// Runs `look` after each change in one of the directories it returned, when asked (then with `true`) and once per
/// period, on a thread of its own, for as long as the process lives.
pub(super) fn spawn(
    period: Duration,
    look: impl Fn(bool) -> Vec<PathBuf> + Send + 'static,
) -> std::io::Result<Watch> {
    let (tell, told) = mpsc::channel();
    let mut directories = Directories::new(tell.clone());
    let watch = Watch(tell.clone());
    std::thread::Builder::new().name("watch".to_owned()).spawn(move || {
        // Kept here: a channel without senders is closed.
        let _kept = tell;
        let mut asked = false;
        loop {
            // Before the first wait too, and again after a directory came to be watched: something may have changed
            // before it was.
            for _ in 0..AGAIN {
                let places = look(std::mem::take(&mut asked));
                if !directories.follow(places) {
                    break;
                }
            }
            match told.recv_timeout(period) {
                Ok(why) => asked = settle(&told, why) == Why::Asked,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    })?;
    Ok(watch)
}

/// Waits until nothing more is told, but not for ever.
fn settle(told: &mpsc::Receiver<Why>, first: Why) -> Why {
    let (start, mut why) = (clock::instant(), first);
    while start.elapsed() < RESTLESS {
        match told.recv_timeout(QUIET) {
            Ok(Why::Asked) => why = Why::Asked,
            Ok(Why::Changed) => {}
            Err(_) => break,
        }
    }
    why
}

/// The directories that are watched, each with what it was: a path may come to lead elsewhere.
struct Directories {
    watcher: Option<RecommendedWatcher>,
    known: BTreeMap<PathBuf, Option<(u64, u64)>>,
}

impl Directories {
    fn new(tell: mpsc::Sender<Why>) -> Directories {
        let tell = move |event: notify::Result<notify::Event>| {
            // Reading the files is an event too; it must not make us read them again.
            if event.is_ok_and(|event| !event.kind.is_access()) {
                let _ = tell.send(Why::Changed);
            }
        };
        let watcher = notify::recommended_watcher(tell)
            .inspect_err(
                |error| tracing::warn!(%error, "no directory events; files are looked at on a timer only"),
            )
            .ok();
        Directories { watcher, known: BTreeMap::new() }
    }

    /// Watches these directories and no others; true if some were not watched before.
    fn follow(&mut self, places: Vec<PathBuf>) -> bool {
        let Some(watcher) = &mut self.watcher else { return false };
        let mut known = BTreeMap::new();
        let mut is_new = false;
        for place in places {
            let before = self.known.remove(&place);
            let now = identity(&place);
            let same = before == Some(now);
            if !same && before.flatten().is_some() {
                let _ = watcher.unwatch(&place);
            }
            // Also what is watched already: a directory that was deleted and made again is another one, and may have
            // the number of the old one.
            let watched = watcher.watch(&place, RecursiveMode::NonRecursive);
            if !same {
                is_new |= watched.is_ok();
                if let Err(error) = watched {
                    let directory = place.display();
                    tracing::warn!(%error, %directory, "no events of this directory; it is looked at on a timer only");
                }
            }
            known.insert(place, now);
        }
        for gone in self.known.keys() {
            let _ = watcher.unwatch(gone);
        }
        self.known = known;
        is_new
    }
}

/// Which directory a path leads to now.
fn identity(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()))
}
