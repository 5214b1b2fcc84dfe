//! A device as expressions see it.
//!
//! A device is created once and evaluated by many selectors. Names without a domain belong to the driver's domain.

use std::collections::BTreeMap;
use std::sync::Arc;

use tollgate_formats::quantity::Quantity;

use super::collections::{Map, MapLookup};
use super::library::quantity::SharedQuantity;
use super::library::semver::Semver;
use super::value::Value;

/// The value of a device attribute, with one of the eight types that the API allows.
#[derive(Clone, Copy, Debug)]
pub enum AttributeValue<'a> {
    /// An attribute of type `int`.
    Int(i64),
    /// An attribute of type `bool`.
    Bool(bool),
    /// An attribute of type `string`.
    String(&'a str),
    /// An attribute of type `version`.
    Version(&'a str),
    /// An attribute of type `ints`.
    Ints(&'a [i64]),
    /// An attribute of type `bools`.
    Bools(&'a [bool]),
    /// An attribute of type `strings`.
    Strings(&'a [&'a str]),
    /// An attribute of type `versions`.
    Versions(&'a [&'a str]),
}

/// A device as expressions see it, with attributes grouped by domain.
#[derive(Clone, Debug)]
pub struct Device {
    driver: Arc<str>,
    allows_multiple_allocations: bool,
    attributes: Arc<Map>,
    capacity: BTreeMap<Arc<str>, Vec<(Arc<str>, Quantity<'static>)>>,
    /// The variable `device` for expressions that do not read the capacity.
    without_capacity: Value,
    /// Name of an attribute that is a list, if there is one.
    list_attribute: Option<String>,
}

impl Device {
    /// Creates a device. Returns `None` if a version or quantity is invalid, which API servers reject.
    pub fn new<'a>(
        driver: &str,
        allows_multiple_allocations: bool,
        attributes: impl IntoIterator<Item = (&'a str, AttributeValue<'a>)>,
        capacity: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Option<Device> {
        let driver: Arc<str> = driver.into();
        let mut list_attribute = None;
        let mut domains: BTreeMap<Arc<str>, Vec<(Arc<str>, Value)>> = BTreeMap::new();
        for (name, value) in attributes {
            let value = attribute_to_value(&value)?;
            if matches!(value, Value::List(_)) && list_attribute.is_none() {
                list_attribute = Some(name.to_owned());
            }
            let (domain, id) = domain_and_name(name, &driver);
            domains.entry(domain).or_default().push((id, value));
        }
        let mut capacities: BTreeMap<Arc<str>, Vec<_>> = BTreeMap::new();
        for (name, amount) in capacity {
            let (domain, id) = domain_and_name(name, &driver);
            capacities
                .entry(domain)
                .or_default()
                .push((id, Quantity::parse(amount).ok()?.into_owned_without_text()));
        }
        let inner = |entries| Value::Map(Arc::new(Map::of_names(entries, MapLookup::Names)));
        let domains = domains.into_iter().map(|(domain, entries)| (domain, inner(entries)));
        let attributes = Arc::new(Map::of_names(domains, MapLookup::Domains));
        let mut device = Device {
            driver,
            allows_multiple_allocations,
            attributes,
            capacity: BTreeMap::new(),
            without_capacity: Value::Null,
            list_attribute,
        };
        device.without_capacity = device.variable_with_capacity();
        Some(Device { capacity: capacities, ..device })
    }

    pub(super) fn first_list_valued_attribute_name(&self) -> Option<&str> {
        self.list_attribute.as_deref()
    }

    /// Returns the value of the variable `device`: with new copies of the capacities, or a shared value without
    /// them.
    pub(super) fn variable_value(&self, needs_capacity: bool) -> Value {
        if needs_capacity { self.variable_with_capacity() } else { self.without_capacity.clone() }
    }

    /// The value of the variable `device`. Quantities are copied each time, because expressions can change
    /// them.
    fn variable_with_capacity(&self) -> Value {
        let quantity = |(id, quantity): &(Arc<str>, Quantity<'static>)| {
            (Arc::clone(id), Value::Quantity(SharedQuantity::new(quantity.clone())))
        };
        let domains = self.capacity.iter().map(|(domain, entries)| {
            let inner = Map::of_names(entries.iter().map(quantity), MapLookup::Names);
            (Arc::clone(domain), Value::Map(Arc::new(inner)))
        });
        let capacity = Value::Map(Arc::new(Map::of_names(domains, MapLookup::Domains)));
        let fields = [
            ("driver", Value::String(Arc::clone(&self.driver))),
            ("allowMultipleAllocations", Value::Bool(self.allows_multiple_allocations)),
            ("attributes", Value::Map(Arc::clone(&self.attributes))),
            ("capacity", capacity),
        ];
        let fields = fields.into_iter().map(|(name, value)| (name.into(), value));
        Value::Map(Arc::new(Map::of_names(fields, MapLookup::Names)))
    }
}

fn domain_and_name(name: &str, driver: &Arc<str>) -> (Arc<str>, Arc<str>) {
    match name.split_once('/') {
        Some((domain, id)) => (domain.into(), id.into()),
        None => (Arc::clone(driver), name.into()),
    }
}

fn attribute_to_value(value: &AttributeValue<'_>) -> Option<Value> {
    let version = |text: &str| Some(Value::Semver(Arc::new(Semver::parse(text).ok()?)));
    Some(match value {
        AttributeValue::Int(value) => Value::Int(*value),
        AttributeValue::Bool(value) => Value::Bool(*value),
        AttributeValue::String(text) => Value::string(*text),
        AttributeValue::Version(text) => version(text)?,
        AttributeValue::Ints(values) => Value::list(values.iter().copied().map(Value::Int).collect()),
        AttributeValue::Bools(values) => Value::list(values.iter().copied().map(Value::Bool).collect()),
        AttributeValue::Strings(texts) => Value::strings(texts.iter().copied()),
        AttributeValue::Versions(texts) => {
            Value::list(texts.iter().map(|text| version(text)).collect::<Option<_>>()?)
        }
    })
}
