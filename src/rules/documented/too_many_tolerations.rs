//! More tolerations in a request than the API documentation allows; no release counts them.

use crate::api::view::{List, Toleration};
use crate::field::Path;
use crate::finding::{BadValue, ErrorType};
use crate::rules::{Cx, rules};

rules! { Documented, Deny;
    /// More tolerations than documented.
    TOO_MANY = "too-many-tolerations",
}

pub(crate) fn check(cx: &mut Cx<'_, '_>, at: &Path<'_>, list: List<'_, Toleration<'_>>) {
    let Some(limit) = cx.profile.documented.tolerations else { return };
    let count = list.len();
    if count > limit {
        let detail = format!("the API documentation allows at most {limit}");
        cx.report(TOO_MANY, at, ErrorType::TooMany, BadValue::Excess { count, limit }, detail);
    }
}
