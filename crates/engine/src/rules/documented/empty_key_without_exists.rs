//! A toleration without a key whose operator is not Exists: documented as invalid, accepted by every release.
//!
//! The text is the one that upstream has for tolerations of pods. There is no fix: `operator: Exists` would tolerate
//! more than before, and nobody but the author knows the key.

use crate::rules::RuleContext;
use crate::rules::table::EMPTY_KEY_WITHOUT_EXISTS;
use tollgate_api::view::Toleration;
use tollgate_document::field::Path;
use tollgate_document::finding::BadValue;

const DETAIL: &str =
    "the API documentation requires `operator: Exists` when `key` is empty, to match all keys and values";

pub(super) fn check(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, toleration: Toleration<'_>) {
    // An operator that is unknown is refused by the server itself.
    if toleration.key().is_empty() && toleration.operator() == "Equal" {
        cx.report(EMPTY_KEY_WITHOUT_EXISTS, &at.field("operator"))
            .invalid(BadValue::json_quoted_string("Equal"), DETAIL)
            .help("set `key` to the key of the taint; with Equal, an empty key tolerates every taint with this value");
    }
}
