//! Why a value is not valid: the places, in the words of the `jsonschema` crate.
//!
//! Goes only where something is wrong, and into each pair of subschema and value once. Alternatives (`anyOf`, `oneOf`,
//! `not`) are one fault where they stand; the faults of their branches are not collected, because that tree grows with
//! every level.

use std::collections::HashSet;
use std::fmt::Write as _;

use super::evaluate::Evaluation;
use super::graph::Subschema;
use super::instance::{Instance, is_short};
use tollgate_document::doc::{Value, ValueKind};
use tollgate_document::field::Path;

/// More faults than this about one value help nobody.
const MAX_FAULTS: usize = 16;
/// Values of this many bytes are shown, and the one that exceeds them.
const MAX_BYTES: usize = 64 * 1024;
/// Names that are listed in one fault.
const MAX_NAMES: usize = 16;

/// A violation and its path.
#[derive(Debug)]
pub(in crate::policy) struct SchemaViolation {
    /// The value there, as JSON; `None` where it is about all of a value that cannot be shown.
    pub(in crate::policy) value: Option<String>,
    /// What is wrong.
    pub(in crate::policy) text: String,
    /// It is the key that is wrong.
    pub(in crate::policy) on_key: bool,
}

/// Where faults go.
pub(super) struct ViolationSink<'v> {
    visit: &'v mut dyn FnMut(&Path<'_>, SchemaViolation),
    said: usize,
    bytes: usize,
}

impl<'v> ViolationSink<'v> {
    pub(super) fn new(visit: &'v mut dyn FnMut(&Path<'_>, SchemaViolation)) -> ViolationSink<'v> {
        ViolationSink { visit, said: 0, bytes: 0 }
    }

    /// Enough was said about this value.
    pub(super) fn is_full(&self) -> bool {
        self.said >= MAX_FAULTS || self.bytes >= MAX_BYTES
    }

    /// Nothing was said.
    pub(super) fn is_empty(&self) -> bool {
        self.said == 0
    }

    pub(super) fn report(&mut self, at: &Path<'_>, value: String, text: String, on_key: bool) {
        if self.is_full() {
            return;
        }
        self.said += 1;
        self.bytes += value.len();
        (self.visit)(at, SchemaViolation { value: Some(value), text, on_key });
    }

    /// Reports that all of a value is at fault, without showing it, however much was reported before.
    pub(super) fn report_whole(&mut self, at: &Path<'_>, text: &str) {
        self.said += 1;
        (self.visit)(at, SchemaViolation { value: None, text: text.to_owned(), on_key: false });
    }

    fn report_value(&mut self, at: &Path<'_>, value: Value<'_>, text: String) {
        self.report(at, value.to_json(), text, false);
    }
}

/// Says why a value is not valid.
pub(super) struct Explanation<'x, 'e, 'v> {
    pub(super) run: &'x mut Evaluation<'e>,
    pub(super) faults: &'x mut ViolationSink<'v>,
    pub(super) seen: HashSet<(u32, u32)>,
}

impl Explanation<'_, '_, '_> {
    /// What is wrong with a value that is not valid under that subschema.
    pub(super) fn explain(&mut self, number: u32, value: Value<'_>, at: &Path<'_>) {
        let Some(schema) = self.run.graph().get(number) else { return };
        if self.faults.is_full() || self.run.is_spent || !self.seen.insert((number, value.index())) {
            return;
        }
        if schema.never {
            let text = format!("False schema does not allow {}", shown(value));
            return self.faults.report_value(at, value, text);
        }
        if !self.run.descend() {
            return;
        }
        let before = self.faults.said;
        self.assertions(schema, value, at);
        match value.kind() {
            ValueKind::Object => self.members(schema, value, at),
            ValueKind::Array => self.items(schema, value, at),
            _ => {}
        }
        self.branches(schema, value, at);
        for next in &schema.references {
            self.explain_child(*next, value, at);
        }
        // A branch that does not hold evaluates nothing: what is left over follows from that.
        if self.faults.said == before {
            self.rest(schema, value, at);
        }
        self.run.ascend();
    }

    /// Explains what is wrong with a value, if it is not valid under that subschema.
    fn explain_child(&mut self, number: u32, value: Value<'_>, at: &Path<'_>) {
        if !self.faults.is_full() && !self.run.is_valid(number, value) {
            self.explain(number, value, at);
        }
    }

    fn assertions(&mut self, schema: &Subschema, value: Value<'_>, at: &Path<'_>) {
        if self.run.asserted(schema, value) {
            return;
        }
        let Some(assertions) = &schema.assertions else { return };
        for fault in assertions.validator.iter_errors(Instance::Value(value)) {
            if self.faults.is_full() {
                return;
            }
            let text = if is_short(value) { fault.to_string() } else { fault.masked().to_string() };
            self.faults.report_value(at, value, text);
        }
    }

    fn members(&mut self, schema: &Subschema, value: Value<'_>, at: &Path<'_>) {
        if !schema.has_members() {
            return;
        }
        let is_never = |next: Option<u32>, this: &Self| {
            next.and_then(|next| this.run.graph().get(next)).is_some_and(|next| next.never)
        };
        let none_else = is_never(schema.additional, self);
        let mut unexpected = UnexpectedProperties::default();
        for (key, member) in value.members() {
            if self.faults.is_full() || !self.run.take_for_key(schema, key) {
                return;
            }
            schema.for_member(key, &mut |next| {
                if none_else && Some(next) == schema.additional {
                    unexpected.add(key.text());
                } else {
                    self.explain_child(next, member, &at.field(key.text()));
                }
            });
        }
        if let Some(names) = unexpected.describe() {
            self.faults.report_value(at, value, format!("Additional properties are not allowed ({names})"));
        }
        let Some(names) = schema.names else { return };
        if is_never(schema.names, self) && !value.is_empty() {
            let text = format!("False schema does not allow {}", shown(value));
            return self.faults.report_value(at, value, text);
        }
        for (key, _) in value.members() {
            if self.faults.is_full() {
                return;
            }
            // A fault of a name is a fault of the object.
            self.explain_child(names, key, at);
        }
    }

    fn items(&mut self, schema: &Subschema, value: Value<'_>, at: &Path<'_>) {
        if !schema.has_items() {
            return;
        }
        for (index, item) in value.items().enumerate() {
            if self.faults.is_full() || !self.run.take(1) {
                return;
            }
            let next = schema.for_item(index);
            let is_never = next.and_then(|next| self.run.graph().get(next)).is_some_and(|next| next.never);
            if is_never && schema.items_are_additional && index >= schema.prefix.len() {
                let mut unexpected = UnexpectedProperties::default();
                value.items().skip(index).for_each(|item| unexpected.add_json(item));
                if let Some(names) = unexpected.describe() {
                    let text = format!("Additional items are not allowed ({names})");
                    self.faults.report_value(at, value, text);
                }
                break;
            }
            if let Some(next) = next {
                self.explain_child(next, item, &at.index(index));
            }
        }
        if let Some(contains) = schema.contains
            && !self.run.is_contained(contains, value)
        {
            let text = format!("None of {} are valid under the given schema", shown(value));
            self.faults.report_value(at, value, text);
        }
    }

    fn branches(&mut self, schema: &Subschema, value: Value<'_>, at: &Path<'_>) {
        for (name, next) in &schema.dependents {
            if self.run.has_member(value, name) {
                self.explain_child(*next, value, at);
            }
        }
        for next in &schema.all_of {
            self.explain_child(*next, value, at);
        }
        let is_any =
            schema.any_of.is_empty() || schema.any_of.iter().any(|next| self.run.is_valid(*next, value));
        if !is_any {
            self.alternatives(value, at, "not valid under any", "anyOf");
        }
        if !schema.one_of.is_empty() {
            match self.run.count_up_to_two(&schema.one_of, value) {
                0 => self.alternatives(value, at, "not valid under any", "oneOf"),
                1 => {}
                _ => self.alternatives(value, at, "valid under more than one", "oneOf"),
            }
        }
        if let Some((not, text)) = &schema.not
            && self.run.is_valid(*not, value)
        {
            self.faults.report_value(at, value, format!("{text} is not allowed for {}", shown(value)));
        }
        if let Some(next) = self.run.chosen(schema, value) {
            self.explain_child(next, value, at);
        }
    }

    fn alternatives(&mut self, value: Value<'_>, at: &Path<'_>, requirement: &str, keyword: &str) {
        if self.run.is_spent {
            return;
        }
        let text =
            format!("{} is {requirement} of the schemas listed in the '{keyword}' keyword", shown(value));
        self.faults.report_value(at, value, text);
    }

    fn rest(&mut self, schema: &Subschema, value: Value<'_>, at: &Path<'_>) {
        let Some((next, parts)) = self.run.unevaluated(schema, value) else { return };
        let mut unexpected = UnexpectedProperties::default();
        for (index, part) in parts {
            if unexpected.is_full() || self.run.is_spent {
                break;
            }
            if !self.run.is_valid(next, part) {
                match value.members().nth(index) {
                    Some((key, _)) => unexpected.add(key.text()),
                    None => unexpected.add(&shown(part)),
                }
            }
        }
        if self.run.is_spent {
            return;
        }
        let what = if value.kind() == ValueKind::Object { "properties" } else { "items" };
        if let Some(names) = unexpected.describe() {
            self.faults.report_value(at, value, format!("Unevaluated {what} are not allowed ({names})"));
        }
    }
}

/// A value in a text; a long one is not repeated there.
fn shown(value: Value<'_>) -> String {
    if is_short(value) { value.to_json() } else { "value".to_owned() }
}

/// Names that should not be there.
#[derive(Default)]
struct UnexpectedProperties {
    names: String,
    count: usize,
}

impl UnexpectedProperties {
    fn is_full(&self) -> bool {
        self.count > MAX_NAMES
    }

    fn add(&mut self, name: &str) {
        self.count += 1;
        let comma = if self.names.is_empty() { "" } else { ", " };
        if self.count <= MAX_NAMES {
            _ = write!(self.names, "{comma}'{}'", super::cut(name));
        }
    }

    fn add_json(&mut self, value: Value<'_>) {
        self.count += 1;
        let comma = if self.names.is_empty() { "" } else { ", " };
        if self.count <= MAX_NAMES {
            _ = write!(self.names, "{comma}{}", shown(value));
        }
    }

    /// `'a', 'b' were unexpected`
    fn describe(&self) -> Option<String> {
        match self.count {
            0 => None,
            1 => Some(format!("{} was unexpected", self.names)),
            2..=MAX_NAMES => Some(format!("{} were unexpected", self.names)),
            _ => Some(format!("{} and more were unexpected", self.names)),
        }
    }
}
