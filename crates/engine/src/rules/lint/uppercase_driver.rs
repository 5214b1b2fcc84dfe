//! A slice whose driver name has uppercase letters. The text is the warning of API servers since 1.35.

use crate::admission::DecodedAttributes;
use crate::rules::RuleContext;
use crate::rules::table::UPPERCASE_DRIVER;
use tollgate_api::view::ObjectBody;
use tollgate_document::field::Path;
use tollgate_formats::{gofmt, names};

// upstream v1.36 resourceslice strategy WarningsOnCreate
pub(super) fn check(cx: &mut RuleContext<'_, '_>, admission: &DecodedAttributes<'_>) {
    let ObjectBody::Slice(slice) = admission.object.body else { return };
    let driver = slice.spec().driver();
    let lowercase = names::go_to_lower(driver);
    if lowercase != driver {
        let quoted = gofmt::quote(driver);
        let detail = format!("driver names should be lowercase; {quoted} contains uppercase characters");
        cx.report(UPPERCASE_DRIVER, &Path::ROOT.field("spec").field("driver"))
            .invalid(driver, detail)
            .short_detail("driver names should be lowercase")
            .help_if(names::has_subdomain_shape(&lowercase).then(|| format!("use `{lowercase}`")));
    }
}
