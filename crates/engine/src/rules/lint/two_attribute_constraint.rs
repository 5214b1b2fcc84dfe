//! A constraint with both matchAttribute and distinctAttribute: the second is ignored.

use crate::admission::DecodedAttributes;
use crate::rules::RuleContext;
use crate::rules::table::TWO_ATTRIBUTE_CONSTRAINT;
use crate::site;

pub(super) fn check(cx: &mut RuleContext<'_, '_>, admission: &DecodedAttributes<'_>) {
    if admission.is_status() {
        return;
    }
    site::visit_claim_or_template_spec(admission.object, |at, spec| {
        let devices_at = at.field("devices");
        let constraints_at = devices_at.field("constraints");
        for (index, constraint) in spec.devices().constraints().iter().enumerate() {
            if constraint.match_attribute().is_some() && constraint.distinct_attribute().is_some() {
                let detail = "ignored, because `matchAttribute` is also set";
                cx.report(TWO_ATTRIBUTE_CONSTRAINT, &constraints_at.index(index).field("distinctAttribute"))
                    .forbidden(detail)
                    .help("set `matchAttribute` and `distinctAttribute` in separate constraints");
            }
        }
    });
}
