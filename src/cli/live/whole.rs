//! Reads objects of a running cluster for reports that need more than a snapshot for impact. `StateObjects` holds the
//! same for a dump.
//!
//! Objects are copied with the fields that `tollgate snapshot` would save, because a page is freed when the next one is
//! read.

use super::object_kind;
use super::objects::MissingObjects;
use super::{ClusterLister, ConnectedServer, UnreadObjectMessages};
use crate::cli::console::Console;
use crate::cli::snapshot::{OptionalFields, keep_needed_fields};
use crate::cli::state::OwnedObjects;
use crate::cluster::{KeptFieldsAndSizeLimit, ListedKind};
use tollgate_document::doc::Value;

/// Reads the objects of these kinds, and prints what is missing to stderr, with the consequence. What the user may not
/// list is a failure for the kinds in `needed`, and a note for those in `wanted`. Also returns the failures.
pub(in crate::cli) fn read_objects<'k>(
    asked: &ConnectedServer,
    needed: impl IntoIterator<Item = &'k ListedKind>,
    wanted: impl IntoIterator<Item = &'k ListedKind>,
    consequence: &str,
    console: &mut Console,
) -> (OwnedObjects, UnreadObjectMessages) {
    let mut found = OwnedObjects::default();
    let unread = list_objects_into(&mut found, asked, needed, wanted, console);
    if !unread.failures.is_empty() {
        console.note(&format!("some objects could not be read{consequence}"));
    }
    (found, unread)
}

/// Like [`read_objects`], but adds to objects that were read before.
pub(in crate::cli) fn list_objects_into<'k>(
    found: &mut OwnedObjects,
    asked: &ConnectedServer,
    needed: impl IntoIterator<Item = &'k ListedKind>,
    wanted: impl IntoIterator<Item = &'k ListedKind>,
    console: &mut Console,
) -> UnreadObjectMessages {
    let mut objects = ClusterLister::new(asked, None);
    let needed = needed.into_iter().map(|kind| (kind, true));
    for (kind, is_needed) in needed.chain(wanted.into_iter().map(|kind| (kind, false))) {
        let mut missing = MissingObjects::default();
        let mut add = |api_version: &str, object: Value<'_>, _: &mut Console| {
            let kept = keep_needed_fields(kind, object, OptionalFields::WITH_MESSAGES);
            if let Err(error) = found.add_copy(api_version, kind.kind, kept.root()) {
                missing.add_description_or_only_count(|| error.to_string());
            }
        };
        let whole = KeptFieldsAndSizeLimit::WHOLE_OBJECTS;
        // Why something is missing was said, and the report does without it.
        if objects.list_objects(kind, is_needed, whole, console, &mut add).is_err()
            && let Some(kind) = object_kind(kind)
        {
            found.mark_unread(kind);
        }
        missing.print_and_add_to(&mut objects.omissions, console);
    }
    objects.omissions
}
