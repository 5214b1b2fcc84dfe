//! A rule that selects a driver by a name with uppercase letters: accepted, but it does not match a lowercase name.

use crate::rules::RuleContext;
use crate::rules::table::UPPERCASE_SELECTOR_DRIVER;
use crate::site::DeviceSelection;
use tollgate_api::view::TaintSelector;
use tollgate_document::field::Path;
use tollgate_formats::{gofmt, names};

pub(super) fn check(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, selection: &DeviceSelection<'_>) {
    let driver = selection.selector.and_then(TaintSelector::driver).unwrap_or_default();
    if names::go_to_lower(driver) != driver {
        let detail = format_args!("{} does not match a lowercase driver name", gofmt::quote(driver));
        cx.report(UPPERCASE_SELECTOR_DRIVER, &at.field("driver"))
            .invalid(driver, detail)
            .short_detail("does not match a lowercase driver name")
            .help(format_args!("driver names are case-sensitive; use `{}`", names::go_to_lower(driver)));
    }
}
