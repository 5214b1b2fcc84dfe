//! Adapts the document tape to the `jsonschema` crate, so that it reads values in place.
//!
//! Invariant: every access to the data takes a number of steps from the [`EvaluationMeter`] that corresponds to its
//! cost. No value is converted to a generic tree.
#![expect(clippy::disallowed_types, reason = "the validator takes a generic JSON tree")]

use std::borrow::Cow;

use jsonschema::JsonType;
use jsonschema::json::{Array, Json, JsonNumber, Node, NodeIdentity, Object, cmp};

use super::budget::EvaluationMeter;
use super::shortened_name;
use tollgate_document::doc::{Items, Members, Value, ValueKind};

/// The document tape as a representation of the `jsonschema` crate.
#[derive(Debug)]
pub(super) struct TapeJsonRepresentation;

/// A value of a document, or the bare name of a property.
#[derive(Clone, Debug)]
pub(super) enum Instance<'a> {
    /// A value of a document, and the meter for accessing it.
    Value(Value<'a>, &'a EvaluationMeter<'a>),
    /// The name of a property, whose access was already charged.
    Name(&'a str),
}

impl Json for TapeJsonRepresentation {
    type Node<'a> = Instance<'a>;
    type PreparedKey = String;
    type StringBuffer = String;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(buffer: &mut String, string: &str, f: impl FnOnce(Instance<'_>) -> T) -> T {
        buffer.clear();
        buffer.push_str(string);
        f(Instance::Name(buffer))
    }
}

/// A number of a document, as it is written.
#[derive(Debug)]
pub(super) struct NumberLiteral<'a>(&'a str);

impl NumberLiteral<'_> {
    fn parse_or_zero(&self) -> serde_json::Number {
        serde_json::from_str(self.0).unwrap_or_else(|_| serde_json::Number::from(0))
    }
}

impl JsonNumber for NumberLiteral<'_> {
    fn as_u64(&self) -> Option<u64> {
        self.parse_or_zero().as_u64()
    }

    fn as_i64(&self) -> Option<i64> {
        self.parse_or_zero().as_i64()
    }

    fn as_f64(&self) -> Option<f64> {
        self.parse_or_zero().as_f64()
    }

    fn as_str(&self) -> Cow<'_, str> {
        Cow::Borrowed(self.0)
    }

    fn to_number(&self) -> Cow<'_, serde_json::Number> {
        Cow::Owned(self.parse_or_zero())
    }
}

impl<'a> Instance<'a> {
    /// Returns the value if it has this JSON type and enough steps are left to read it.
    fn value_of_type_within_budget(&self, kind: ValueKind) -> Option<Value<'a>> {
        match self {
            Instance::Value(value, meter) if value.kind() == kind && meter.take_steps(1) => Some(*value),
            _ => None,
        }
    }

    fn container_of_type_within_budget(&self, kind: ValueKind) -> Option<Container<'a>> {
        let Instance::Value(_, meter) = self else { return None };
        self.value_of_type_within_budget(kind).map(|value| Container { value, meter })
    }
}

impl<'a> Node<'a, TapeJsonRepresentation> for Instance<'a> {
    type Object = Container<'a>;
    type Array = Container<'a>;
    type Number = NumberLiteral<'a>;

    fn as_object(&self) -> Option<Container<'a>> {
        self.container_of_type_within_budget(ValueKind::Object)
    }

    fn as_array(&self) -> Option<Container<'a>> {
        self.container_of_type_within_budget(ValueKind::Array)
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        match self {
            Instance::Name(name) => Some(Cow::Borrowed(name)),
            Instance::Value(value, meter) => {
                let text = (value.kind() == ValueKind::String).then(|| value.text())?;
                meter.take_steps(read_cost(text)).then_some(Cow::Borrowed(text))
            }
        }
    }

    fn as_number(&self) -> Option<NumberLiteral<'a>> {
        self.value_of_type_within_budget(ValueKind::Number).map(|value| NumberLiteral(value.text()))
    }

    fn as_boolean(&self) -> Option<bool> {
        self.value_of_type_within_budget(ValueKind::Bool).and_then(Value::bool)
    }

    fn is_null(&self) -> bool {
        self.value_of_type_within_budget(ValueKind::Null).is_some()
    }

    fn json_type(&self) -> JsonType {
        match self {
            Instance::Name(_) => JsonType::String,
            Instance::Value(value, _) => match value.kind() {
                ValueKind::Null => JsonType::Null,
                ValueKind::Bool => JsonType::Boolean,
                ValueKind::Number => JsonType::Number,
                ValueKind::String => JsonType::String,
                ValueKind::Array => JsonType::Array,
                ValueKind::Object => JsonType::Object,
            },
        }
    }

    fn equals_value(&self, expected: &serde_json::Value) -> bool {
        match self {
            Instance::Name(name) => expected.as_str() == Some(name),
            Instance::Value(value, meter) => {
                meter.take_steps(read_cost(value.text())) && equals_expected(*value, expected)
            }
        }
    }

    /// Called by the `jsonschema` crate to create an error. Returns the index of the value instead of a copy,
    /// which could be large, or `null` if the error is unreliable.
    fn to_value(&self) -> Cow<'a, serde_json::Value> {
        Cow::Owned(match self {
            Instance::Name(name) => serde_json::Value::from(shortened_name(name)),
            Instance::Value(value, meter) if meter.count_error(value.len()) => value.index().into(),
            Instance::Value(..) => serde_json::Value::Null,
        })
    }

    /// Returns the key under which the crate caches its result for a list or object.
    fn identity(&self) -> Option<NodeIdentity> {
        match self {
            Instance::Value(value, _) if matches!(value.kind(), ValueKind::Array | ValueKind::Object) => {
                Some(NodeIdentity::tagged(0, value.index()))
            }
            _ => None,
        }
    }
}

/// Returns the number of steps that reading a string takes, by its length.
fn read_cost(text: &str) -> u64 {
    1 + text.len() as u64 / 64
}

/// True if a value equals `expected`, a value in the schema. Stops at the first difference, so that the cost is at most
/// the size of `expected`.
fn equals_expected(value: Value<'_>, expected: &serde_json::Value) -> bool {
    match (value.kind(), expected) {
        (ValueKind::Null, serde_json::Value::Null) => true,
        (ValueKind::Bool, serde_json::Value::Bool(expected)) => value.bool() == Some(*expected),
        (ValueKind::Number, serde_json::Value::Number(expected)) => {
            cmp::equal_numbers(&NumberLiteral(value.text()), expected)
        }
        (ValueKind::String, serde_json::Value::String(expected)) => value.text_is(expected),
        (ValueKind::Array, serde_json::Value::Array(expected)) => {
            let mut items = value.items();
            expected.iter().all(|expected| items.next().is_some_and(|item| equals_expected(item, expected)))
                && items.next().is_none()
        }
        (ValueKind::Object, serde_json::Value::Object(expected)) => {
            let mut left = expected.len();
            value.members().all(|(key, member)| {
                let known = expected.get(key.text()).filter(|_| left > 0);
                left = left.saturating_sub(1);
                known.is_some_and(|expected| equals_expected(member, expected))
            }) && left == 0
        }
        _ => false,
    }
}

/// An object or array of a document, and the meter for reading it.
#[derive(Debug)]
pub(super) struct Container<'a> {
    value: Value<'a>,
    meter: &'a EvaluationMeter<'a>,
}

impl<'a> Object<'a, TapeJsonRepresentation> for Container<'a> {
    type Node = Instance<'a>;
    type MemberName = &'a str;
    type MembersIter = MemberIterator<'a>;

    fn len(&self) -> usize {
        self.value.len()
    }

    fn get(&self, key: &String) -> Option<Instance<'a>> {
        let found = self.meter.take_steps(1 + self.value.len() as u64 / 8).then(|| self.value.get(key))?;
        found.exists().then_some(Instance::Value(found, self.meter))
    }

    fn members(&self) -> MemberIterator<'a> {
        MemberIterator { members: self.value.members(), meter: self.meter }
    }
}

/// Iterates over the members of an object, with the texts of their keys.
pub(super) struct MemberIterator<'a> {
    members: Members<'a>,
    meter: &'a EvaluationMeter<'a>,
}

impl<'a> Iterator for MemberIterator<'a> {
    type Item = (&'a str, Instance<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (key, member) = self.members.next()?;
        let name = key.text();
        self.meter.take_steps(read_cost(name)).then_some((name, Instance::Value(member, self.meter)))
    }
}

impl<'a> Array<'a, TapeJsonRepresentation> for Container<'a> {
    type Node = Instance<'a>;
    type ElementsIter = ItemIterator<'a>;

    fn len(&self) -> usize {
        self.value.len()
    }

    fn elements(&self) -> ItemIterator<'a> {
        ItemIterator { items: self.value.items(), meter: self.meter }
    }

    /// Checks for duplicates by sorting, so that the cost does not depend on the items.
    fn is_unique(&self) -> bool {
        let texts: usize = self.value.self_and_descendants().map(|part| part.text_bytes().len()).sum();
        if !self.meter.take_steps(self.value.node_count() as u64 + texts as u64 / 64) {
            return true;
        }
        let mut items: Vec<String> = self.value.items().map(canonical_json).collect();
        items.sort_unstable();
        items.windows(2).all(|pair| matches!(pair, [one, next] if one != next))
    }
}

/// Iterates over the items of an array.
pub(super) struct ItemIterator<'a> {
    items: Items<'a>,
    meter: &'a EvaluationMeter<'a>,
}

impl<'a> Iterator for ItemIterator<'a> {
    type Item = Instance<'a>;

    fn next(&mut self) -> Option<Instance<'a>> {
        let item = self.items.next()?;
        self.meter.take_steps(1).then_some(Instance::Value(item, self.meter))
    }
}

/// Returns JSON in which equal values have equal texts: keys are sorted, and `1.0` is written as `1`.
fn canonical_json(value: Value<'_>) -> String {
    let has_odd_number = value.self_and_descendants().any(|part| {
        part.kind() == ValueKind::Number && part.text_bytes().iter().any(|b| !b.is_ascii_digit())
    });
    if !has_odd_number {
        return value.to_json();
    }
    let mut out = String::new();
    write_canonical(value, &mut out);
    out
}

fn write_canonical(value: Value<'_>, out: &mut String) {
    match value.kind() {
        ValueKind::Number => {
            let number = NumberLiteral(value.text()).parse_or_zero();
            let whole = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 1e30);
            match whole {
                #[expect(clippy::cast_possible_truncation, reason = "whole and small")]
                Some(float) if number.is_f64() => out.push_str(&(float as i128).to_string()),
                _ => out.push_str(&number.to_string()),
            }
        }
        ValueKind::Array => {
            out.push('[');
            for (index, item) in value.items().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_canonical(item, out);
            }
            out.push(']');
        }
        ValueKind::Object => {
            let mut members: Vec<_> = value.members().map(|(key, member)| (key.text(), member)).collect();
            members.sort_by_key(|(key, _)| *key);
            out.push('{');
            for (index, (key, member)) in members.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                tollgate_formats::gofmt::push_json_string(out, key);
                out.push(':');
                write_canonical(member, out);
            }
            out.push('}');
        }
        _ => out.push_str(&value.to_json()),
    }
}
