//! Negative `tolerationSeconds`: zero in disguise.

use crate::rules::{Cx, rules};
use tollgate_api::view::Toleration;
use tollgate_document::field::Path;
use tollgate_document::finding::{BadValue, Edit, ErrorType, Fix, NewValue};

rules! { Lint, Warn;
    /// Less than no time.
    NEGATIVE = "negative-toleration-seconds",
}

pub(super) fn check(cx: &mut Cx<'_, '_>, at: &Path<'_>, toleration: Toleration<'_>) {
    if let Some(seconds) = toleration.toleration_seconds()
        && toleration.effect() == "NoExecute"
        && seconds < 0
    {
        let detail = format!("{seconds} is treated as 0: pods are evicted immediately");
        cx.report(
            NEGATIVE,
            &at.field("tolerationSeconds"),
            ErrorType::Invalid,
            BadValue::Int(seconds),
            detail,
        );
        cx.help(NEGATIVE, "set the field to 0, or remove it to tolerate the taint forever");
        cx.fix(NEGATIVE, || {
            let (at, value) = (at.field("tolerationSeconds").owned(), NewValue::Literal("0".into()));
            Fix::safe(format!("Replace `{seconds}` with `0`"), Edit::Set { at, value }).changing_a_value()
        });
    }
}
