//! A progress bar on stderr, for long runs on terminals only.
#![expect(clippy::disallowed_methods, reason = "how long a run takes is this file's business")]

use std::io::Write as _;
use std::time::{Duration, Instant};

use super::super::console::Console;
use crate::report::Summary;

/// Shorter runs show nothing.
const PATIENCE: Duration = Duration::from_millis(700);
/// Redrawing faster helps nobody.
const PAUSE: Duration = Duration::from_millis(100);
const WIDTH: usize = 30;

/// How far a run is.
#[derive(Debug)]
pub(super) struct Progress {
    total: usize,
    done: usize,
    watched: bool,
    started: Instant,
    drawn: Option<Instant>,
    visible: bool,
}

impl Progress {
    /// A run over so many files.
    pub(super) fn of(total: usize) -> Progress {
        let watched = Console::is_watched();
        Progress { total, done: 0, watched, started: Instant::now(), drawn: None, visible: false }
    }

    /// One file more is done.
    pub(super) fn step(&mut self) {
        self.done += 1;
    }

    /// Draws the bar, if somebody looks and it is time.
    pub(super) fn show(&mut self, summary: &Summary) {
        let recent = self.drawn.is_some_and(|drawn| drawn.elapsed() < PAUSE);
        if !self.watched || recent || self.started.elapsed() < PATIENCE {
            return;
        }
        let filled = (WIDTH * self.done).checked_div(self.total).unwrap_or(WIDTH).min(WIDTH);
        let (bar, rest) = ("=".repeat(filled), " ".repeat(WIDTH - filled));
        let (done, total, invalid) = (self.done, self.total, summary.invalid);
        _ = write!(std::io::stderr(), "\r\x1b[K[{bar}{rest}] {done}/{total} files, {invalid} invalid");
        _ = std::io::stderr().flush();
        self.drawn = Some(Instant::now());
        self.visible = true;
    }

    /// Takes the bar away before something else is printed.
    pub(super) fn hide(&mut self) {
        if std::mem::take(&mut self.visible) {
            _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
