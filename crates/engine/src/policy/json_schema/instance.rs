//! The document tape as an instance of the `jsonschema` crate, so that its assertions read our values in place.
//!
//! Invariant: every answer costs at most one walk over the value it is asked of, and comparing with a schema's value
//! costs at most the size of that one. A value too large to print is not turned into a generic tree.
#![expect(clippy::disallowed_types, reason = "the validator takes a generic JSON tree")]

use std::borrow::Cow;

use jsonschema::JsonType;
use jsonschema::json::{Array, Json, JsonNumber, Node, NodeIdentity, Object, cmp};

use tollgate_document::doc::{Items, Members, Value, ValueKind};

/// Values longer than this are not repeated in the text of a fault.
pub(super) const MAX_SHOWN: usize = 1024;

/// Our representation, as the crate names it.
#[derive(Debug)]
pub(super) struct Tape;

/// A value of a document, or the bare name of a property.
#[derive(Clone, Debug)]
pub(super) enum Instance<'a> {
    /// A value of a document.
    Value(Value<'a>),
    /// A name on its own.
    Name(&'a str),
}

impl Json for Tape {
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

/// A number, by its literal.
#[derive(Debug)]
pub(super) struct Literal<'a>(&'a str);

impl Literal<'_> {
    fn number(&self) -> serde_json::Number {
        serde_json::from_str(self.0).unwrap_or_else(|_| serde_json::Number::from(0))
    }
}

impl JsonNumber for Literal<'_> {
    fn as_u64(&self) -> Option<u64> {
        self.number().as_u64()
    }

    fn as_i64(&self) -> Option<i64> {
        self.number().as_i64()
    }

    fn as_f64(&self) -> Option<f64> {
        self.number().as_f64()
    }

    fn as_str(&self) -> Cow<'_, str> {
        Cow::Borrowed(self.0)
    }

    fn to_number(&self) -> Cow<'_, serde_json::Number> {
        Cow::Owned(self.number())
    }
}

impl<'a> Instance<'a> {
    fn of_kind(&self, kind: ValueKind) -> Option<Value<'a>> {
        match self {
            Instance::Value(value) if value.kind() == kind => Some(*value),
            _ => None,
        }
    }
}

impl<'a> Node<'a, Tape> for Instance<'a> {
    type Object = Container<'a>;
    type Array = Container<'a>;
    type Number = Literal<'a>;

    fn as_object(&self) -> Option<Container<'a>> {
        self.of_kind(ValueKind::Object).map(Container)
    }

    fn as_array(&self) -> Option<Container<'a>> {
        self.of_kind(ValueKind::Array).map(Container)
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        match self {
            Instance::Name(name) => Some(Cow::Borrowed(name)),
            Instance::Value(value) => {
                (value.kind() == ValueKind::String).then(|| Cow::Borrowed(value.text()))
            }
        }
    }

    fn as_number(&self) -> Option<Literal<'a>> {
        self.of_kind(ValueKind::Number).map(|value| Literal(value.text()))
    }

    fn as_boolean(&self) -> Option<bool> {
        self.of_kind(ValueKind::Bool).and_then(Value::bool)
    }

    fn is_null(&self) -> bool {
        self.of_kind(ValueKind::Null).is_some()
    }

    fn json_type(&self) -> JsonType {
        match self {
            Instance::Name(_) => JsonType::String,
            Instance::Value(value) => match value.kind() {
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
            Instance::Value(value) => equal(*value, expected),
        }
    }

    fn to_value(&self) -> Cow<'a, serde_json::Value> {
        Cow::Owned(match self {
            Instance::Name(name) => serde_json::Value::from(*name),
            Instance::Value(value) if is_short(*value) => {
                let parsed = serde_json::from_str(&value.to_json());
                debug_assert!(parsed.is_ok(), "`can_be_checked` lets only numbers pass that parse");
                parsed.unwrap_or_default()
            }
            Instance::Value(_) => serde_json::Value::Null,
        })
    }

    fn identity(&self) -> Option<NodeIdentity> {
        None
    }
}

/// True if the value may be repeated in a text.
pub(super) fn is_short(value: Value<'_>) -> bool {
    let bytes = value.descendants().take(MAX_SHOWN).map(|part| part.text().len() + 1).sum::<usize>();
    bytes <= MAX_SHOWN && value.size() < MAX_SHOWN
}

/// Equality with a value of the schema. Ends where they differ, so it costs at most the size of `expected`.
fn equal(value: Value<'_>, expected: &serde_json::Value) -> bool {
    match (value.kind(), expected) {
        (ValueKind::Null, serde_json::Value::Null) => true,
        (ValueKind::Bool, serde_json::Value::Bool(expected)) => value.bool() == Some(*expected),
        (ValueKind::Number, serde_json::Value::Number(expected)) => {
            cmp::equal_numbers(&Literal(value.text()), expected)
        }
        (ValueKind::String, serde_json::Value::String(expected)) => value.text_is(expected),
        (ValueKind::Array, serde_json::Value::Array(expected)) => {
            let mut items = value.items();
            expected.iter().all(|expected| items.next().is_some_and(|item| equal(item, expected)))
                && items.next().is_none()
        }
        (ValueKind::Object, serde_json::Value::Object(expected)) => {
            let mut left = expected.len();
            value.members().all(|(key, member)| {
                let known = expected.get(key.text()).filter(|_| left > 0);
                left = left.saturating_sub(1);
                known.is_some_and(|expected| equal(member, expected))
            }) && left == 0
        }
        _ => false,
    }
}

/// An object or an array.
#[derive(Debug)]
pub(super) struct Container<'a>(Value<'a>);

impl<'a> Object<'a, Tape> for Container<'a> {
    type Node = Instance<'a>;
    type MemberName = &'a str;
    type MembersIter = Named<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, key: &String) -> Option<Instance<'a>> {
        let found = self.0.get(key);
        found.exists().then_some(Instance::Value(found))
    }

    fn members(&self) -> Named<'a> {
        Named(self.0.members())
    }
}

/// Members with the texts of their keys.
pub(super) struct Named<'a>(Members<'a>);

impl<'a> Iterator for Named<'a> {
    type Item = (&'a str, Instance<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|(key, member)| (key.text(), Instance::Value(member)))
    }
}

impl<'a> Array<'a, Tape> for Container<'a> {
    type Node = Instance<'a>;
    type ElementsIter = Elements<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn elements(&self) -> Elements<'a> {
        Elements(self.0.items())
    }

    /// By sorting: no choice of items makes it slower.
    fn is_unique(&self) -> bool {
        let mut items: Vec<String> = self.0.items().map(canonical).collect();
        items.sort_unstable();
        items.windows(2).all(|pair| matches!(pair, [one, next] if one != next))
    }
}

/// Items of an array.
pub(super) struct Elements<'a>(Items<'a>);

impl<'a> Iterator for Elements<'a> {
    type Item = Instance<'a>;

    fn next(&mut self) -> Option<Instance<'a>> {
        self.0.next().map(Instance::Value)
    }
}

/// JSON in which equal values have equal texts: keys are sorted, and `1.0` is `1`.
fn canonical(value: Value<'_>) -> String {
    let has_odd_number = value
        .descendants()
        .any(|part| part.kind() == ValueKind::Number && part.bytes().iter().any(|b| !b.is_ascii_digit()));
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
            let number = Literal(value.text()).number();
            let whole = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 1e30);
            match whole {
                #[expect(clippy::cast_possible_truncation, reason = "whole and small")]
                Some(float) if number.is_f64() => out.push_str(&(float as i128).to_string()),
                _ => out.push_str(&number.to_string()),
            }
        }
        ValueKind::Array => {
            out.push('[');
            for item in value.items() {
                write_canonical(item, out);
                out.push(',');
            }
            out.push(']');
        }
        ValueKind::Object => {
            let mut members: Vec<_> = value.members().map(|(key, member)| (key.text(), member)).collect();
            members.sort_by_key(|(key, _)| *key);
            out.push('{');
            for (key, member) in members {
                tollgate_formats::gofmt::json_string(out, key);
                out.push(':');
                write_canonical(member, out);
                out.push(',');
            }
            out.push('}');
        }
        _ => out.push_str(&value.to_json()),
    }
}
