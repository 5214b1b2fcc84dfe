//! Admin access where nothing is known of the namespace that must allow it.

use crate::admission::{AdminAccess, DecodedAttributes};
use crate::rules::RuleContext;
use crate::rules::table::ADMIN_ACCESS_UNCHECKED;
use crate::site;

pub(super) fn check(cx: &mut RuleContext<'_, '_>, admission: &DecodedAttributes<'_>) {
    if admission.is_status() || cx.context.admin_access != AdminAccess::Unknown {
        return;
    }
    site::visit_requests_and_subrequests(admission.object, &mut |at, request| {
        if request.admin_access() == Some(true) {
            let detail = "not checked, because the labels of the namespace are not available";
            let label = cx.profile.admin_access_label;
            cx.report(ADMIN_ACCESS_UNCHECKED, &at.field("adminAccess")).forbidden(detail).help(format_args!(
                "the API server rejects this request unless the namespace has the label `{label}: \"true\"`; to \
                 check the label, pass the Namespace object with `--namespaces FILE`"
            ));
        }
    });
}
