//! More tolerations in a request than the API documentation allows; no release counts them.

use crate::rules::{Cx, rules};
use tollgate_api::view::{List, Toleration};
use tollgate_document::field::Path;
use tollgate_document::finding::{BadValue, ErrorType};

rules! { Documented, Deny;
    /// More tolerations than documented.
    TOO_MANY = "too-many-tolerations",
}

pub(super) fn check(cx: &mut Cx<'_, '_>, at: &Path<'_>, list: List<'_, Toleration<'_>>) {
    let Some(limit) = cx.profile.documented.tolerations else { return };
    let count = list.len();
    if count > limit {
        let detail = format!("the API documentation allows at most {limit}");
        cx.report(TOO_MANY, at, ErrorType::TooMany, BadValue::Excess { count, limit }, detail);
    }
}
