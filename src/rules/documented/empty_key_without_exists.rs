//! A toleration without a key whose operator is not Exists: documented as invalid, accepted by every release.
//!
//! The text is the one that upstream has for tolerations of pods.

use crate::api::view::{Toleration, View as _};
use crate::field::Path;
use crate::finding::{BadValue, Edit, ErrorType, Fix, NewValue};
use crate::rules::{Cx, rules};

rules! { Documented, Deny;
    /// No key, and the operator is Equal.
    EMPTY_KEY = "empty-key-without-exists",
}

const DETAIL: &str =
    "the API documentation requires `operator: Exists` when `key` is empty, to match all keys and values";

pub(crate) fn check(cx: &mut Cx<'_, '_>, at: &Path<'_>, toleration: Toleration<'_>) {
    // An operator that is unknown is refused by the server itself.
    if toleration.key().is_empty() && toleration.operator() == "Equal" {
        cx.report(EMPTY_KEY, &at.field("operator"), ErrorType::Invalid, BadValue::named("Equal"), DETAIL);
        cx.help(
            EMPTY_KEY,
            "set `key` to the key of the taint; with Equal, an empty key tolerates every taint with this value",
        );
        // With a value somebody means a key that is not there.
        if toleration.value().is_empty() {
            let is_written = toleration.json().get("operator").span() != crate::doc::Span::default();
            cx.fix(EMPTY_KEY, || with_exists(at, is_written));
        }
    }
}

/// Tolerates every key, which is more than before.
fn with_exists(at: &Path<'_>, is_written: bool) -> Fix {
    let value = NewValue::Str("Exists".into());
    let fix = if is_written {
        Fix::safe("Replace `Equal` with `Exists`", Edit::Set { at: at.field("operator").owned(), value })
    } else {
        Fix::safe("Add `operator: Exists`", Edit::Insert { into: at.owned(), key: "operator".into(), value })
    };
    fix.changing_a_value()
}
