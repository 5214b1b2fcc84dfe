//! The objects of a running cluster, whole: what [`StateObjects`] has of a dump.
//!
//! Copies are kept of what a snapshot would save of each object, because a page is gone when the next one is read.

use super::objects::MissingObjects;
use super::{ConnectedServer, LiveObjects, Omissions};
use crate::cli::console::Console;
use crate::cli::snapshot::{Projection, keep_needed_fields};
use crate::cli::state::StateObjects;
use crate::cluster::{ListedKind, ReadLimits};
use tollgate_document::doc::Value;

/// Reads the objects of these kinds, and prints what is missing to stderr. What the user may not list is a failure for
/// the kinds in `needed`, and a note for those in `wanted`.
pub(in crate::cli) fn read_objects<'k>(
    asked: &ConnectedServer,
    needed: &[ListedKind],
    wanted: impl IntoIterator<Item = &'k ListedKind>,
    console: &mut Console,
) -> (StateObjects<'static>, Omissions) {
    let mut found = StateObjects::default();
    let omissions = add_objects(&mut found, asked, needed, wanted, console);
    (found, omissions)
}

/// Like [`read_objects`], but adds to objects that were read before.
pub(super) fn add_objects<'k>(
    found: &mut StateObjects<'static>,
    asked: &ConnectedServer,
    needed: &[ListedKind],
    wanted: impl IntoIterator<Item = &'k ListedKind>,
    console: &mut Console,
) -> Omissions {
    let mut objects = LiveObjects::new(asked, None);
    let projection = Projection { with_parameters: false, annotations: &[], with_messages: false };
    let needed = needed.iter().map(|kind| (kind, true));
    for (kind, is_needed) in needed.chain(wanted.into_iter().map(|kind| (kind, false))) {
        let mut missing = MissingObjects::default();
        let mut add = |api_version: &str, object: Value<'_>, _: &mut Console| {
            let kept = keep_needed_fields(kind, object, projection);
            if let Err(error) = found.add_copy(api_version, kind.kind, kept.root()) {
                missing.add(|| error.to_string());
            }
        };
        if is_needed {
            objects.read(kind, ReadLimits::WHOLE, console, &mut add);
        } else {
            // Why something is missing was said, and the report does without it.
            _ = objects.read_if_allowed(kind, ReadLimits::WHOLE, console, &mut add);
        }
        missing.report(&mut objects.omissions, console);
    }
    objects.omissions
}
