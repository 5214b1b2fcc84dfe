//! The state of a cluster that impact needs, read once: what `--state DUMP` is to a dump.
//!
//! Objects go into the snapshot as pages arrive, so memory is that of the snapshot and of one page.

use super::{AskedServer, LiveObjects, Omissions};
use crate::cli::console::Console;
use crate::cluster::{BUDGETS, CLAIMS, ListedKind, PODS, RULES, SLICES};
use crate::impact::Snapshot;

/// The kinds of a snapshot.
const STATE_KINDS: [ListedKind; 5] = [SLICES, CLAIMS, PODS, RULES, BUDGETS];

/// Unreadable objects that are named one by one.
const MAX_NAMED: usize = 10;

/// Reads the state; what is missing was said on stderr.
pub(in crate::cli) fn read_state(asked: &AskedServer, console: &mut Console) -> (Snapshot, Omissions) {
    let mut snapshot = Snapshot::new();
    let mut objects = LiveObjects::of(asked, None);
    let mut unreadable = Vec::new();
    for kind in &STATE_KINDS {
        objects.read(kind, console, &mut |api_version, object, _| {
            if let Err(error) = snapshot.apply_as(api_version, kind.kind, object) {
                unreadable.push(error.to_string());
            }
        });
    }
    let more = unreadable.len().saturating_sub(MAX_NAMED);
    for error in unreadable.into_iter().take(MAX_NAMED) {
        objects.omissions.fail(error, console);
    }
    if more > 0 {
        objects.omissions.fail(format!("{more} more objects cannot be read"), console);
    }
    (snapshot, objects.omissions)
}
