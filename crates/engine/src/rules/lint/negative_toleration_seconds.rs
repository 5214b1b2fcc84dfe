//! Negative `tolerationSeconds`, which Kubernetes treats as zero.

use crate::rules::RuleContext;
use crate::rules::table::NEGATIVE_TOLERATION_SECONDS;
use tollgate_api::view::Toleration;
use tollgate_document::field::Path;
use tollgate_document::finding::{BadValue, Edit, Fix, NewValue};

pub(super) fn check(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, toleration: Toleration<'_>) {
    if let Some(seconds) = toleration.toleration_seconds()
        && toleration.effect() == "NoExecute"
        && seconds < 0
    {
        let detail = format_args!("{seconds} is treated as 0: pods are evicted immediately");
        cx.report(NEGATIVE_TOLERATION_SECONDS, &at.field("tolerationSeconds"))
            .invalid(BadValue::Int(seconds), detail)
            .help("set the field to 0, or remove it to tolerate the taint forever")
            .fix_if_fixable(|| {
                let (at, value) = (at.field("tolerationSeconds").owned(), NewValue::Literal("0".into()));
                Fix::safe(format!("Replace `{seconds}` with `0`"), Edit::Set { at, value }).marked_unsafe()
            });
    }
}
