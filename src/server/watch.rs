//! Looks after certificates: on every change of their directories, and on a timer.
//!
//! The directory is watched and not the file: a file of a Secret is a symlink into a directory that is deleted when
//! the Secret changes. Where directory events cannot be had, the timer alone does it.

use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};

/// Runs `look` after each change in one of the directories and once per period, on a thread of its own, for as long
/// as the process lives.
pub(super) fn spawn<'p>(
    directories: impl Iterator<Item = &'p Path>,
    period: Duration,
    look: impl Fn() + Send + 'static,
) -> std::io::Result<()> {
    let (changed, changes) = mpsc::channel();
    let watcher = watch(directories, changed.clone());
    std::thread::Builder::new().name("watch".to_owned()).spawn(move || {
        // Kept here: a watcher that is dropped is deaf, a channel without senders is closed.
        let _kept = (watcher, changed);
        loop {
            // Before the first wait too: something may have changed before it was watched.
            look();
            match changes.recv_timeout(period) {
                // A swap is several events; look once for those that are there.
                Ok(()) => while changes.try_recv().is_ok() {},
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    })?;
    Ok(())
}

fn watch<'p>(
    directories: impl Iterator<Item = &'p Path>,
    changed: mpsc::Sender<()>,
) -> Option<RecommendedWatcher> {
    let tell = move |event: notify::Result<notify::Event>| {
        // Reading the files is an event too; it must not make us read them again.
        if event.is_ok_and(|event| !event.kind.is_access()) {
            let _ = changed.send(());
        }
    };
    let mut watcher = match notify::recommended_watcher(tell) {
        Ok(watcher) => watcher,
        Err(error) => {
            tracing::warn!(%error, "no directory events; certificates are looked at on a timer only");
            return None;
        }
    };
    for directory in directories {
        if let Err(error) = watcher.watch(directory, RecursiveMode::NonRecursive) {
            let directory = directory.display();
            tracing::warn!(%error, %directory, "no events of this directory; it is looked at on a timer only");
        }
    }
    Some(watcher)
}
