//! A slice whose driver has capitals. The text is the warning that servers give from 1.35 on.

use crate::admission::DecodedAttributes;
use crate::rules::{Cx, rules};
use tollgate_api::view::Body;
use tollgate_document::field::Path;
use tollgate_document::finding::{BadValue, ErrorType};
use tollgate_formats::gofmt;
use tollgate_formats::names;

rules! { Lint, Warn;
    /// The driver of a slice has capitals.
    UPPERCASE = "uppercase-driver",
}

// upstream v1.36 resourceslice strategy WarningsOnCreate
pub(super) fn check(cx: &mut Cx<'_, '_>, admission: &DecodedAttributes<'_>) {
    let Body::Slice(slice) = admission.object.body else { return };
    let driver = slice.spec().driver();
    if names::lower(driver) != driver {
        let quoted = gofmt::quote(driver);
        let detail = format!("driver names should be lowercase; {quoted} contains uppercase characters");
        let spec_at = Path::ROOT.field("spec");
        cx.report(UPPERCASE, &spec_at.field("driver"), ErrorType::Invalid, BadValue::str(driver), detail);
        cx.short(UPPERCASE, "driver names should be lowercase");
        cx.help(UPPERCASE, format!("use `{}`", names::lower(driver)));
    }
}
