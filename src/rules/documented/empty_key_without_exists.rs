//! A toleration without a key whose operator is not Exists: documented as invalid, accepted by every release.
//!
//! The text is the one that upstream has for tolerations of pods.

use crate::api::view::Toleration;
use crate::field::Path;
use crate::finding::{BadValue, ErrorType};
use crate::rules::{Cx, rules};

rules! { Documented, Deny;
    /// No key, and the operator is Equal.
    EMPTY_KEY = "empty-key-without-exists",
}

const DETAIL: &str =
    "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";

pub(crate) fn check(cx: &mut Cx<'_, '_>, at: &Path<'_>, toleration: Toleration<'_>) {
    // An operator that is unknown is refused by the server itself.
    if toleration.key().is_empty() && toleration.operator() == "Equal" {
        cx.report(EMPTY_KEY, &at.field("operator"), ErrorType::Invalid, BadValue::named("Equal"), DETAIL);
        cx.help(
            EMPTY_KEY,
            "name the key of the taint to tolerate; an empty key with Equal tolerates any key of that value",
        );
    }
}
