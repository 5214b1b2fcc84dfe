//! DeviceClass: its selectors, its configuration and its extended resource name.

use super::{config, selectors};
use crate::admission::DecodedAttributes;
use crate::rules::RuleContext;
use crate::rules::table::EXTENDED_RESOURCE_NAME;
use tollgate_api::equal::same_member;
use tollgate_api::fields::CLASS_SPEC;
use tollgate_api::view::{ClassSpec, ObjectBody, View};
use tollgate_document::field::Path;
use tollgate_formats::names;

// upstream v1.36 ValidateDeviceClass, ValidateDeviceClassUpdate
pub fn check_device_class(cx: &mut RuleContext<'_, '_>, admission: &DecodedAttributes<'_>) {
    let ObjectBody::Class(class) = admission.object.body else { return };
    let old = admission
        .old_object
        .and_then(|old| if let ObjectBody::Class(old) = old.body { Some(old.spec()) } else { None });
    check_spec(cx, &Path::ROOT.field("spec"), class.spec(), old);
}

// upstream v1.36 validateDeviceClassSpec
fn check_spec(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, new: ClassSpec<'_>, old: Option<ClassSpec<'_>>) {
    let is_same = |json| old.is_some_and(|old| same_member(new.json(), old.json(), &CLASS_SPEC, json));
    let stored = is_same("selectors");
    cx.check_with_declarative_if_changed(stored, |cx| {
        selectors::check_selectors(cx, &at.field("selectors"), new.selectors(), stored)
    });
    let stored = is_same("config");
    cx.check_with_declarative_if_changed(stored, |cx| {
        config::check_configs(cx, &at.field("config"), new.config().value(), None, stored)
    });
    if let Some(name) = new.extended_resource_name() {
        let at = at.field("extendedResourceName");
        cx.check_with_declarative_if_changed(is_same("extendedResourceName"), |cx| {
            check_extended_resource(cx, &at, name)
        });
    }
}

// upstream v1.36 v1helper.IsExtendedResourceName; v1.37 validate.ExtendedResourceName
fn check_extended_resource(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, name: &str) {
    let mut is_covered = false;
    if cx.is_declarative {
        names::check_extended_resource(name, &mut |detail| {
            is_covered = true;
            cx.report(EXTENDED_RESOURCE_NAME, at).declarative_only().invalid(name, detail);
        });
    }
    if !is_covered && !names::is_extended_resource_name(name) {
        cx.report(EXTENDED_RESOURCE_NAME, at).invalid(name, names::INVALID_EXTENDED_RESOURCE);
    }
}
