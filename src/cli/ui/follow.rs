//! Follows the state: whenever it changes, the report about its devices goes to the pages.
//!
//! Invariant: the report is made at most once a second, and the last state is always reported.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::known::KnownState;
use super::site::UiPages;
use crate::cli::clock;
use crate::cli::outcome::Failure;
use tollgate_ui::LivePageStore;

/// Minimum time between two reports.
const MIN_PUBLISH_INTERVAL: Duration = Duration::from_secs(1);

/// Follows the state of a dump or cluster.
pub(super) trait StateFollower: Send {
    /// Waits for a change.
    fn next(&mut self) -> StateEvent;
}

/// A change of the followed state.
pub(super) enum StateEvent {
    /// There is a new state.
    Changed(Box<KnownState>),
    /// The state may be outdated: it cannot be read, or watches are lost. The pages keep showing the last one.
    Old(OutdatedReason),
}

/// Why a state may be outdated.
#[derive(Debug)]
pub(super) struct OutdatedReason {
    pub(super) why: String,
    /// When the state was last known to be current, in RFC 3339; `None` for a dump.
    pub(super) current_until: Option<String>,
}

/// Starts the thread that follows the state, for the life of the process.
pub(super) fn start_following(
    mut source: Box<dyn StateFollower>,
    board: Arc<LivePageStore>,
    site: Arc<UiPages>,
) -> Result<(), Failure> {
    let follow = move || {
        loop {
            let event = source.next();
            let start = clock::monotonic();
            match event {
                StateEvent::Changed(state) => site.set_state(*state),
                StateEvent::Old(trouble) => board.mark_out_of_date(trouble.why, trouble.current_until),
            }
            thread::sleep(MIN_PUBLISH_INTERVAL.saturating_sub(start.elapsed()));
        }
    };
    thread::Builder::new().name("state".to_owned()).spawn(follow).map_err(anyhow::Error::from)?;
    Ok(())
}
