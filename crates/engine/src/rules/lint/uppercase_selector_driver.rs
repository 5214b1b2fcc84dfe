//! A rule that selects a driver by a name with capitals: accepted, and compared letter by letter.

use crate::rules::{Cx, rules};
use crate::site::DeviceSelection;
use tollgate_api::view::TaintSelector;
use tollgate_document::field::Path;
use tollgate_document::finding::{BadValue, ErrorType};
use tollgate_formats::gofmt;
use tollgate_formats::names;

rules! { Lint, Warn;
    /// The driver of a selector has capitals.
    UPPERCASE = "uppercase-selector-driver",
}

pub(super) fn check(cx: &mut Cx<'_, '_>, at: &Path<'_>, selection: &DeviceSelection<'_>) {
    let driver = selection.selector.and_then(TaintSelector::driver).unwrap_or_default();
    if names::lower(driver) != driver {
        let detail = format!("{} does not match a lowercase driver name", gofmt::quote(driver));
        cx.report(UPPERCASE, &at.field("driver"), ErrorType::Invalid, BadValue::str(driver), detail);
        cx.short(UPPERCASE, "does not match a lowercase driver name");
        cx.help(UPPERCASE, format!("driver names are case-sensitive; use `{}`", names::lower(driver)));
    }
}
