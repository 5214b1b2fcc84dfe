//! Admin access where nothing is known of the namespace that must allow it.

use crate::admission::{AdminAccess, DecodedAttributes};
use crate::rules::RuleContext;
use crate::rules::table::ADMIN_ACCESS_UNCHECKED;
use crate::site;
use tollgate_api::view::Request;

pub(super) fn check(cx: &mut RuleContext<'_, '_>, admission: &DecodedAttributes<'_>) {
    if admission.is_status() || cx.context.admin_access != AdminAccess::Unknown {
        return;
    }
    site::visit_claim_spec(admission.object, |at, spec| {
        let devices_at = at.field("devices");
        let requests_at = devices_at.field("requests");
        for (index, request) in spec.devices().requests().iter().enumerate() {
            let Some(body) = request.exactly(cx.version) else { continue };
            if body.admin_access() == Some(true) {
                let detail = "not checked, because the labels of the namespace are not available";
                let request_at = requests_at.index(index);
                let exactly_at = Request::exactly_path(&request_at, cx.version);
                let label = cx.profile.admin_access_label;
                cx.report(ADMIN_ACCESS_UNCHECKED, &exactly_at.field("adminAccess")).forbidden(detail).help(format_args!(
                "the API server rejects this request unless the namespace has the label `{label}: \"true\"`; to \
                 check the label, pass the Namespace object with `--namespaces FILE`"
            ));
            }
        }
    });
}
