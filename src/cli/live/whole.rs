//! The objects of a running cluster, whole: what [`StateObjects`] has of a dump.
//!
//! Copies are kept of what a snapshot would save of each object, because a page is gone when the next one is read.

use super::objects::MissingObjects;
use super::{ClusterLister, ConnectedServer, UnreadObjectMessages};
use crate::cli::console::Console;
use crate::cli::snapshot::{OptionalFields, keep_needed_fields};
use crate::cli::state::StateObjects;
use crate::cluster::{ListedKind, ReadOptions};
use tollgate_document::doc::Value;

/// Reads the objects of these kinds, and prints what is missing to stderr. What the user may not list is a failure for
/// the kinds in `needed`, and a note for those in `wanted`.
pub(in crate::cli) fn read_objects<'k>(
    asked: &ConnectedServer,
    needed: &[ListedKind],
    wanted: impl IntoIterator<Item = &'k ListedKind>,
    console: &mut Console,
) -> (StateObjects<'static>, UnreadObjectMessages) {
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
) -> UnreadObjectMessages {
    let mut objects = ClusterLister::new(asked, None);
    let projection = OptionalFields { with_parameters: false, annotations: &[], with_messages: false };
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
            objects.list_objects(kind, ReadOptions::WHOLE_OBJECTS, console, &mut add);
        } else {
            // Why something is missing was said, and the report does without it.
            _ = objects.list_objects_if_allowed(kind, ReadOptions::WHOLE_OBJECTS, console, &mut add);
        }
        missing.print_and_add_to(&mut objects.omissions, console);
    }
    objects.omissions
}
