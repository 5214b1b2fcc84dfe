//! A progress bar on stderr, for long runs on terminals only.
#![expect(clippy::disallowed_methods, reason = "how long a run takes is this file's business")]

use std::io::Write as _;
use std::time::{Duration, Instant};

use super::console::Console;

/// Runs that are shorter than this show no progress bar.
const SHOW_DELAY: Duration = Duration::from_millis(700);
/// Minimum time between two redraws.
const REDRAW_INTERVAL: Duration = Duration::from_millis(100);
const BAR_WIDTH: usize = 30;

/// The progress bar of a run, on a terminal.
#[derive(Debug)]
pub(super) struct ProgressBar {
    total: usize,
    done: usize,
    is_terminal: bool,
    started: Instant,
    drawn: Option<Instant>,
    visible: bool,
}

impl ProgressBar {
    /// Progress of a run over `total` items.
    pub(super) fn with_total(total: usize) -> ProgressBar {
        let is_terminal = Console::is_stderr_terminal();
        ProgressBar { total, done: 0, is_terminal, started: Instant::now(), drawn: None, visible: false }
    }

    /// Counts one finished item for the progress bar.
    pub(super) fn count_item(&mut self) {
        self.done += 1;
    }

    /// Counts finished items. `remaining`, if known, says how many more there are.
    #[cfg(feature = "cluster")]
    pub(super) fn count_items(&mut self, items: usize, remaining: Option<usize>) {
        self.done += items;
        self.total = remaining.map_or(self.done, |remaining| self.done + remaining);
    }

    /// Draws the bar with the number of items and these words: `files, 2 invalid`. Only on a terminal, and not too
    /// often.
    pub(super) fn draw_bar_if_due(&mut self, items: std::fmt::Arguments<'_>) {
        let recent = self.drawn.is_some_and(|drawn| drawn.elapsed() < REDRAW_INTERVAL);
        if !self.is_terminal || recent || self.started.elapsed() < SHOW_DELAY {
            return;
        }
        let filled = (BAR_WIDTH * self.done).checked_div(self.total).unwrap_or(BAR_WIDTH).min(BAR_WIDTH);
        let (bar, rest) = ("=".repeat(filled), " ".repeat(BAR_WIDTH - filled));
        let (done, total) = (self.done, self.total);
        _ = write!(std::io::stderr(), "\r\x1b[K[{bar}{rest}] {done}/{total} {items}");
        _ = std::io::stderr().flush();
        self.drawn = Some(Instant::now());
        self.visible = true;
    }

    /// Erases the bar before other output.
    pub(super) fn erase_bar(&mut self) {
        if std::mem::take(&mut self.visible) {
            _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
