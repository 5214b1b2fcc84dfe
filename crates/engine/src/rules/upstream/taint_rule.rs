//! DeviceTaintRule: its selector and its taint. Status is in `status`.

use super::{naming, selectors, taint};
use crate::admission::DecodedAttributes;
use crate::rules::RuleContext;
use crate::rules::table::{RULE_DEVICE, RULE_DEVICE_CLASS, RULE_DRIVER, RULE_POOL};
use tollgate_api::equal::same_member;
use tollgate_api::fields::TAINT_SELECTOR;
use tollgate_api::schema::StructSchema;
use tollgate_api::view::{ObjectBody, TaintRuleSpec, TaintSelector, View};
use tollgate_document::field::Path;
use tollgate_document::finding::RuleId;

// upstream v1.36 ValidateDeviceTaintRule, ValidateDeviceTaintRuleUpdate, validateDeviceTaintRuleSpec
pub fn check_taint_rule(cx: &mut RuleContext<'_, '_>, admission: &DecodedAttributes<'_>) {
    let ObjectBody::Rule(rule) = admission.object.body else { return };
    if admission.is_status() {
        return;
    }
    let old = admission
        .old_object
        .and_then(|old| if let ObjectBody::Rule(rule) = old.body { Some(rule.spec()) } else { None });
    let (at, new) = (Path::ROOT.field("spec"), rule.spec());
    if let Some(selector) = new.device_selector() {
        let rules = [RULE_DEVICE_CLASS, RULE_DRIVER, RULE_POOL, RULE_DEVICE];
        let stored = old.and_then(TaintRuleSpec::device_selector);
        check_selector(cx, rules, &at.field("deviceSelector"), selector, stored, &TAINT_SELECTOR);
    }
    taint::check_taint(cx, &at.field("taint"), new.taint(), old.map(TaintRuleSpec::taint));
}

/// Checks the criteria of a selector, each under its rule: class, driver, pool and device. `ty` are the fields of the
/// selector.
// upstream v1.34 validateDeviceTaintSelector
pub fn check_selector(
    cx: &mut RuleContext<'_, '_>,
    [class_rule, driver_rule, pool_rule, device_rule]: [RuleId; 4],
    at: &Path<'_>,
    new: TaintSelector<'_>,
    old: Option<TaintSelector<'_>>,
    ty: &'static StructSchema,
) {
    if let Some(class) = new.device_class_name() {
        naming::check_dns_subdomain(cx, class_rule, &at.field("deviceClassName"), class);
    }
    if let Some(driver) = new.driver() {
        naming::check_driver_name(cx, driver_rule, &at.field("driver"), driver);
    }
    if let Some(pool) = new.pool() {
        naming::check_pool_name(cx, pool_rule, &at.field("pool"), pool);
    }
    if let Some(device) = new.device() {
        naming::check_dns_label(cx, device_rule, &at.field("device"), device);
    }
    let stored = old.is_some_and(|old| same_member(new.json(), old.json(), ty, "selectors"));
    selectors::check_selectors(cx, &at.field("selectors"), new.selectors(), stored);
}
