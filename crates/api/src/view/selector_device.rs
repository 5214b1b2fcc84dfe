//! A device as CEL selectors see it.

use super::{Attribute, DeviceBody, Strings};
use crate::conform::raw_quantity_text;
use tollgate_cel::evaluate::{AttributeValue, Device};
use tollgate_document::doc::Value;

impl DeviceBody<'_> {
    /// The device as CEL selectors see it. `None` if a version or quantity is malformed, which no API server accepts.
    pub fn device_for_selectors(self, driver: &str) -> Option<Device> {
        self.device_for_cel(driver, self.allow_multiple_allocations() == Some(true))
    }

    /// The device as the CEL selectors of a DeviceTaintRule see it. In 1.33 and 1.34, they cannot read
    /// whether the device allows multiple allocations. `None` as in [`DeviceBody::device_for_selectors`].
    // upstream v1.34 Tracker.applyPatches
    pub fn device_for_taint_rules(self, driver: &str) -> Option<Device> {
        self.device_for_cel(driver, false)
    }

    fn device_for_cel(self, driver: &str, allows_multiple_allocations: bool) -> Option<Device> {
        let attributes: Vec<(&str, Attribute<'_>, AttributeListItems<'_>)> = (self.attributes().iter())
            .map(|(name, attribute)| (name, attribute, AttributeListItems::from_attribute(attribute)))
            .collect();
        let values = attributes
            .iter()
            .filter_map(|(name, attribute, lists)| Some((*name, attribute_value(*attribute, lists)?)));
        let capacity = self.capacity().iter().map(|(name, capacity)| {
            // In v1alpha3 the value itself is the quantity.
            let value = capacity.0.get("value");
            (name, raw_quantity_text(if value.exists() { value } else { capacity.0 }))
        });
        Device::new(driver, allows_multiple_allocations, values, capacity)
    }
}

/// The items of an attribute that is a list.
struct AttributeListItems<'d> {
    ints: Vec<i64>,
    bools: Vec<bool>,
    strings: Vec<&'d str>,
    versions: Vec<&'d str>,
}

impl<'d> AttributeListItems<'d> {
    fn from_attribute(attribute: Attribute<'d>) -> AttributeListItems<'d> {
        let strings = |list: Strings<'d>| list.iter().collect();
        AttributeListItems {
            ints: attribute.0.get("ints").items().filter_map(Value::int).collect(),
            bools: attribute.0.get("bools").items().filter_map(Value::bool).collect(),
            strings: strings(attribute.strings()),
            versions: strings(attribute.versions()),
        }
    }
}

/// The value of an attribute; `None` if it has none.
fn attribute_value<'a>(
    attribute: Attribute<'a>,
    lists: &'a AttributeListItems<'a>,
) -> Option<AttributeValue<'a>> {
    if let Some(int) = attribute.0.get("int").int() {
        return Some(AttributeValue::Int(int));
    }
    if let Some(bool) = attribute.0.get("bool").bool() {
        return Some(AttributeValue::Bool(bool));
    }
    if let Some(string) = attribute.string() {
        return Some(AttributeValue::String(string));
    }
    if let Some(version) = attribute.version() {
        return Some(AttributeValue::Version(version));
    }
    let is_given = |name| !attribute.0.get(name).is_null_or_absent();
    match () {
        () if is_given("ints") => Some(AttributeValue::Ints(&lists.ints)),
        () if is_given("bools") => Some(AttributeValue::Bools(&lists.bools)),
        () if is_given("strings") => Some(AttributeValue::Strings(&lists.strings)),
        () if is_given("versions") => Some(AttributeValue::Versions(&lists.versions)),
        () => None,
    }
}
