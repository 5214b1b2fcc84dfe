//! The objects of a running cluster, whole: what [`StateObjects`] has of a dump.
//!
//! Copies are kept of all objects, because a page is gone when the next one is read.

use super::objects::MissingObjects;
use super::{AskedServer, LiveObjects, Omissions};
use crate::cli::console::Console;
use crate::cli::state::StateObjects;
use crate::cluster::{CLAIMS, CLASSES, ListedKind, PODS, RULES, ReadLimits, SLICES};

/// What a report on devices needs.
const KINDS: [ListedKind; 5] = [SLICES, CLASSES, CLAIMS, RULES, PODS];

/// Reads the objects of the cluster, and prints what is missing to stderr.
pub(in crate::cli) fn read_objects(
    asked: &AskedServer,
    console: &mut Console,
) -> (StateObjects<'static>, Omissions) {
    let mut found = StateObjects::of_cluster();
    let mut objects = LiveObjects::new(asked, None);
    for kind in &KINDS {
        let mut missing = MissingObjects::default();
        objects.read(kind, ReadLimits::WHOLE, console, &mut |api_version, object, _| {
            if let Err(error) = found.add_copy(api_version, kind.kind, object) {
                missing.add(|| error.to_string());
            }
        });
        missing.report(&mut objects.omissions, console);
    }
    (found, objects.omissions)
}
