//! Finalizers: each must be a label key with a domain or a standard name, and none may be added to an object that is
//! being deleted.

use super::{hub, lists};
use crate::rules::RuleContext;
use crate::rules::table::{FINALIZER_NAME, METADATA_CHANGED};
use tollgate_api::view::Strings;
use tollgate_document::field::Path;
use tollgate_document::finding::BadValue;
use tollgate_formats::{gofmt, names};

/// The finalizers that need no domain.
const STANDARD_FINALIZERS: [&str; 3] = ["kubernetes", ORPHAN_FINALIZER, FOREGROUND_FINALIZER];
const ORPHAN_FINALIZER: &str = "orphan";
const FOREGROUND_FINALIZER: &str = "foregroundDeletion";

/// Checks that each finalizer is a label key, and that `orphan` and `foregroundDeletion` are not both set. The path in
/// the server's message has no index.
// upstream v1.36 ValidateFinalizers
pub fn check_finalizer_names_and_conflict(
    cx: &mut RuleContext<'_, '_>,
    at: &Path<'_>,
    finalizers: Strings<'_>,
) {
    let (unit, word) = (cx.profile.label_unit, cx.profile.label_key_word);
    for (index, finalizer) in finalizers.iter().enumerate() {
        names::check_label_key(finalizer, unit, word, &mut |detail| {
            cx.report(FINALIZER_NAME, &at.user_only_index(index)).invalid(finalizer, detail);
        });
    }
    if finalizers.contains(ORPHAN_FINALIZER) && finalizers.contains(FOREGROUND_FINALIZER) {
        let value = printed_list(cx, finalizers);
        cx.report(FINALIZER_NAME, at)
            .invalid(value, "finalizer orphan and foregroundDeletion cannot be both set");
    }
}

/// Checks that each finalizer has a domain or is a standard one. `at` is the metadata.
// upstream v1.36 core validation, validateKubeFinalizerName
pub fn check_finalizer_domains(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, finalizers: Strings<'_>) {
    let at = at.field("finalizers");
    for (index, finalizer) in finalizers.iter().enumerate() {
        if !finalizer.contains('/') && !STANDARD_FINALIZERS.contains(&finalizer) {
            cx.report(FINALIZER_NAME, &at.index(index))
                .invalid(finalizer, "name is neither a standard finalizer name nor is it fully qualified");
        }
    }
}

/// Reports finalizers that an update adds to an object that is being deleted.
// upstream v1.36 ValidateNoNewFinalizers
pub fn check_no_new_finalizers(
    cx: &mut RuleContext<'_, '_>,
    at: &Path<'_>,
    new: Strings<'_>,
    old: Strings<'_>,
) {
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
        gofmt::quote_sorted_list_stopping_after(&added, cx.max_value_bytes())
    );
    cx.report(METADATA_CHANGED, at).forbidden(detail);
}

/// Returns a list of finalizers as the release's Go code prints it.
fn printed_list(cx: &RuleContext<'_, '_>, finalizers: Strings<'_>) -> BadValue {
    if cx.profile.quotes_null {
        let mut out = String::from("[]string{");
        for (index, finalizer) in finalizers.iter().enumerate() {
            if out.len() > cx.max_value_bytes() {
                break;
            }
            out.push_str(if index > 0 { ", " } else { "" });
            out.push_str(&gofmt::quote(gofmt::byte_prefix(finalizer, cx.max_value_bytes())));
        }
        out.push('}');
        return BadValue::Json(out.into());
    }
    hub::go_printed_value(cx, finalizers.0, &hub::STRING_LIST_TYPE)
}
