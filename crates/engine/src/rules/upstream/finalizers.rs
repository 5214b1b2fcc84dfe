//! Finalizers: label keys, fully qualified, and none added to what is being deleted.

use super::{hub, lists};
use crate::rules::Cx;
use crate::rules::table::{FINALIZER_NAME, METADATA_CHANGED};
use tollgate_api::view::Strings;
use tollgate_document::field::Path;
use tollgate_document::finding::BadValue;
use tollgate_formats::{gofmt, names};

/// The finalizers that need no domain.
const STANDARD: [&str; 3] = ["kubernetes", ORPHAN, FOREGROUND];
const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// Checks that each finalizer is a label key, and that `orphan` and `foregroundDeletion` are not both set. The server's
/// path ends at the list.
// upstream v1.36 ValidateFinalizers
pub fn check_finalizers(cx: &mut Cx<'_, '_>, at: &Path<'_>, finalizers: Strings<'_>) {
    let (unit, word) = (cx.profile.label_unit, cx.profile.label_key_word);
    for (index, finalizer) in finalizers.iter().enumerate() {
        names::label_key(finalizer, unit, word, &mut |detail| {
            cx.report(FINALIZER_NAME, &at.own_index(index)).invalid(finalizer, detail);
        });
    }
    if finalizers.contains(ORPHAN) && finalizers.contains(FOREGROUND) {
        let value = printed_list(cx, finalizers);
        cx.report(FINALIZER_NAME, at)
            .invalid(value, "finalizer orphan and foregroundDeletion cannot be both set");
    }
}

/// Checks that each finalizer has a domain or is a standard one. `at` is the metadata.
// upstream v1.36 core validation, validateKubeFinalizerName
pub fn check_finalizer_domains(cx: &mut Cx<'_, '_>, at: &Path<'_>, finalizers: Strings<'_>) {
    let at = at.field("finalizers");
    for (index, finalizer) in finalizers.iter().enumerate() {
        if !finalizer.contains('/') && !STANDARD.contains(&finalizer) {
            cx.report(FINALIZER_NAME, &at.index(index))
                .invalid(finalizer, "name is neither a standard finalizer name nor is it fully qualified");
        }
    }
}

/// Reports finalizers that an update adds to an object that is being deleted.
// upstream v1.36 ValidateNoNewFinalizers
pub fn check_no_new_finalizers(cx: &mut Cx<'_, '_>, at: &Path<'_>, new: Strings<'_>, old: Strings<'_>) {
    let stored = lists::index_names(old.iter());
    let is_added = |finalizer: &&str| stored.get(*finalizer).is_none();
    if !new.iter().any(|finalizer| is_added(&finalizer)) {
        return;
    }
    let mut added: Vec<&str> = new.iter().filter(is_added).collect();
    added.sort_unstable();
    added.dedup();
    let detail = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
        gofmt::quote_list_within(&added, cx.max_text_bytes())
    );
    cx.report(METADATA_CHANGED, at).forbidden(detail);
}

/// Returns a list of finalizers as the release's Go code prints it.
fn printed_list(cx: &Cx<'_, '_>, finalizers: Strings<'_>) -> BadValue {
    if cx.profile.quotes_null {
        let mut out = String::from("[]string{");
        for (index, finalizer) in finalizers.iter().enumerate() {
            if out.len() > cx.max_text_bytes() {
                break;
            }
            out.push_str(if index > 0 { ", " } else { "" });
            out.push_str(&gofmt::quote(gofmt::head(finalizer, cx.max_text_bytes())));
        }
        out.push('}');
        return BadValue::Json(out.into());
    }
    hub::printed(cx, finalizers.0, &hub::STRINGS)
}
