//! DeviceTaintRule: its selector and its taint. Status is in `status`.

use super::{naming, selectors, taint};
use crate::admission::DecodedAttributes;
use crate::rules::RuleContext;
use crate::rules::table::{RULE_DEVICE, RULE_DEVICE_CLASS, RULE_DRIVER, RULE_POOL};
use tollgate_api::equal::same_member;
use tollgate_api::fields::TAINT_SELECTOR;
use tollgate_api::view::{ObjectBody, TaintRuleSpec, TaintSelector, View};
use tollgate_document::field::Path;

// upstream v1.36 ValidateDeviceTaintRule, ValidateDeviceTaintRuleUpdate
pub fn check_taint_rule(cx: &mut RuleContext<'_, '_>, admission: &DecodedAttributes<'_>) {
    let ObjectBody::Rule(rule) = admission.object.body else { return };
    if admission.is_status() {
        return;
    }
    let old = admission
        .old_object
        .and_then(|old| if let ObjectBody::Rule(rule) = old.body { Some(rule.spec()) } else { None });
    check_spec(cx, &Path::ROOT.field("spec"), rule.spec(), old);
}

// upstream v1.36 validateDeviceTaintRuleSpec
fn check_spec(
    cx: &mut RuleContext<'_, '_>,
    at: &Path<'_>,
    new: TaintRuleSpec<'_>,
    old: Option<TaintRuleSpec<'_>>,
) {
    if let Some(selector) = new.device_selector() {
        let stored = old.and_then(TaintRuleSpec::device_selector);
        check_selector(cx, &at.field("deviceSelector"), selector, stored);
    }
    taint::check_taint(cx, &at.field("taint"), new.taint(), old.map(TaintRuleSpec::taint));
}

// upstream v1.34 validateDeviceTaintSelector
fn check_selector(
    cx: &mut RuleContext<'_, '_>,
    at: &Path<'_>,
    new: TaintSelector<'_>,
    old: Option<TaintSelector<'_>>,
) {
    if let Some(class) = new.device_class_name() {
        naming::check_dns_subdomain(cx, RULE_DEVICE_CLASS, &at.field("deviceClassName"), class);
    }
    if let Some(driver) = new.driver() {
        naming::check_driver_name(cx, RULE_DRIVER, &at.field("driver"), driver);
    }
    if let Some(pool) = new.pool() {
        naming::check_pool_name(cx, RULE_POOL, &at.field("pool"), pool);
    }
    if let Some(device) = new.device() {
        naming::check_dns_label(cx, RULE_DEVICE, &at.field("device"), device);
    }
    let stored = old.is_some_and(|old| same_member(new.json(), old.json(), &TAINT_SELECTOR, "selectors"));
    selectors::check_selectors(cx, &at.field("selectors"), new.selectors(), stored);
}
