//! More tolerations in a request than the API documentation allows; no release counts them.

use crate::rules::RuleContext;
use crate::rules::table::TOO_MANY_TOLERATIONS;
use tollgate_api::view::{List, Toleration};
use tollgate_document::field::Path;
use tollgate_document::finding::BadValue;

pub(super) fn check(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, list: List<'_, Toleration<'_>>) {
    let Some(limit) = cx.profile.documented.tolerations else { return };
    let count = list.len();
    if count > limit {
        let detail = format_args!("the API documentation allows at most {limit}");
        cx.report(TOO_MANY_TOLERATIONS, at).too_many(BadValue::Excess { count, limit }, detail);
    }
}
