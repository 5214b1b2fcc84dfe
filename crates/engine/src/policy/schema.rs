//! The schema language of policy files, and the check of a document against a schema.
//!
//! The schemas are in `policy::fields`; this file defines their types. It reports the errors of a document: unknown,
//! duplicate and missing fields, wrong types, and values that are not among the allowed ones. `tollgate schema` prints
//! the same schemas as JSON Schemas.
//!
//! Invariant: the code that reads a document without errors need not check types again.

use std::borrow::Cow;
use std::collections::HashSet;

use tollgate_api::conform::suggest::{self, distance};
use tollgate_document::doc::{Value, ValueKind};
use tollgate_document::field::{FieldPath, Path};
use tollgate_formats::gotime;

/// The type of a field or of a list's items.
#[derive(Clone, Copy, Debug)]
pub enum FieldType {
    /// A string that is not empty.
    NonEmptyStr,
    /// Any string, including an empty one.
    Str,
    /// A string or a number; a number is read as the text in the file.
    Word,
    /// A string of this format.
    Text(&'static TextFormat),
    /// One of these strings.
    OneOf(&'static [&'static str]),
    /// A whole number of at least this.
    Int(i64),
    /// A whole number that is not negative, or a percentage from `1%` to `100%`.
    IntOrPercent,
    Bool,
    /// A time in RFC 3339 format.
    Time,
    /// An object with any fields, such as a JSON Schema.
    AnyObject,
    /// Any value.
    Any,
    List(&'static FieldType),
    /// A list that is not empty: without items, it would select nothing.
    NonEmptyList(&'static FieldType),
    /// An object with arbitrary keys and string values.
    StrMap,
    /// An object whose keys are from a long list, with values of one type.
    MapOf {
        keys: fn() -> Vec<&'static str>,
        /// Hint in error messages about where to find the keys.
        hint: &'static str,
        values: &'static FieldType,
    },
    /// One of these types, chosen by the type of the value.
    AnyOf(&'static [FieldType]),
    /// An object type of policy files: its name and its fields.
    Object(&'static ObjectSchema),
}

impl FieldType {
    /// True if a value of this JSON type can be of this type.
    fn accepts_json_type(&self, kind: ValueKind) -> bool {
        match self {
            FieldType::Any => true,
            FieldType::AnyOf(types) => types.iter().any(|ty| ty.accepts_json_type(kind)),
            FieldType::Word | FieldType::IntOrPercent => {
                matches!(kind, ValueKind::String | ValueKind::Number)
            }
            FieldType::NonEmptyStr
            | FieldType::Str
            | FieldType::Text(_)
            | FieldType::OneOf(_)
            | FieldType::Time => kind == ValueKind::String,
            FieldType::Int(_) => kind == ValueKind::Number,
            FieldType::Bool => kind == ValueKind::Bool,
            FieldType::List(_) | FieldType::NonEmptyList(_) => kind == ValueKind::Array,
            FieldType::AnyObject | FieldType::StrMap | FieldType::MapOf { .. } | FieldType::Object(_) => {
                kind == ValueKind::Object
            }
        }
    }
}

/// A format of string fields, with its check and its JSON Schema pattern.
#[derive(Debug)]
pub struct TextFormat {
    /// A regular expression that matches every text that the format accepts.
    pub pattern: &'static str,
    /// Calls a function with each problem of a string, as a message.
    pub(super) report_problems: fn(&str, &mut dyn FnMut(String)),
}

/// The schema of an object with fixed fields.
#[derive(Debug)]
pub struct ObjectSchema {
    /// Name of the type in the JSON Schema.
    pub name: &'static str,
    pub fields: &'static [FieldSchema],
}

/// A field of an object type.
#[derive(Debug)]
pub struct FieldSchema {
    pub name: &'static str,
    /// Type of the field.
    pub ty: FieldType,
    /// True if the field must be there.
    pub required: bool,
    /// Description in the JSON Schema.
    pub doc: &'static str,
}

/// Creates a field that may be left out.
pub const fn optional_field(name: &'static str, ty: FieldType, doc: &'static str) -> FieldSchema {
    FieldSchema { name, ty, required: false, doc }
}

/// Creates a field that must be there.
pub const fn required_field(name: &'static str, ty: FieldType, doc: &'static str) -> FieldSchema {
    FieldSchema { name, ty, required: true, doc }
}

/// An error or warning about one field of a policy document.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct PolicyFault {
    /// Path of the field.
    pub(super) at: FieldPath,
    /// True if the key of the field is wrong, not its value.
    pub(super) on_key: bool,
    /// For expressions: the string value, and the byte offset of the error in it.
    pub(super) in_text: Option<(Box<str>, usize)>,
    /// True for a warning, with which the policy can still be used.
    pub(super) is_warning: bool,
    /// Message of the error or warning.
    pub(super) message: String,
}

/// Collects the errors and warnings about a policy document.
#[derive(Debug, Default)]
pub(super) struct PolicyFaults(pub(super) Vec<PolicyFault>);

impl PolicyFaults {
    /// Adds an error about the value at this path.
    pub(super) fn report(&mut self, at: &Path<'_>, message: impl Into<String>) {
        self.push(at, message.into(), |_| {});
    }

    /// Adds an error about the string at this path, starting at a byte offset.
    pub(super) fn report_in_text(&mut self, at: &Path<'_>, text: &str, offset: usize, message: String) {
        self.push(at, message, |fault| fault.in_text = Some((text.into(), offset)));
    }

    /// Adds a warning about the string at this path, starting at a byte offset.
    pub(super) fn warn_in_text(&mut self, at: &Path<'_>, text: &str, offset: usize, message: String) {
        self.push(at, message, |fault| {
            fault.in_text = Some((text.into(), offset));
            fault.is_warning = true;
        });
    }

    /// Adds an error about the key at this path.
    fn report_on_key(&mut self, at: &Path<'_>, message: String) {
        self.push(at, message, |fault| fault.on_key = true);
    }

    fn push(&mut self, at: &Path<'_>, message: String, set: impl FnOnce(&mut PolicyFault)) {
        let mut fault =
            PolicyFault { at: at.owned(), on_key: false, in_text: None, is_warning: false, message };
        set(&mut fault);
        self.0.push(fault);
    }

    /// Checks a value against a type, and adds an error for each difference.
    pub(super) fn check_value(&mut self, value: Value<'_>, ty: &FieldType, at: &Path<'_>) {
        let (kind, text) = (value.kind(), value.text());
        if !ty.accepts_json_type(kind) {
            return self.report_wrong_type(value, ty, at);
        }
        match ty {
            FieldType::Object(ty) => {
                let names: Vec<&str> = ty.fields.iter().map(|field| field.name).collect();
                let all = || format!("known fields: {}", names.join(", "));
                let type_of = |index: usize| ty.fields.get(index).map(|field| &field.ty);
                self.check_members(value, at, "field", &names, all, type_of);
                let required = ty.fields.iter().filter(|field| field.required);
                for field in required.filter(|field| !value.get(field.name).exists()) {
                    self.report(&at.field(field.name), "this field is required");
                }
            }
            FieldType::MapOf { keys, hint, values } => {
                self.check_members(value, at, "name", &keys(), || (*hint).to_owned(), |_| Some(*values));
            }
            FieldType::AnyOf(types) => {
                let possible = types.iter().filter(|ty| ty.accepts_json_type(kind));
                possible.for_each(|ty| self.check_value(value, ty, at));
            }
            FieldType::NonEmptyList(_) if value.is_empty() => {
                let message =
                    "must not be empty: it would match nothing; without the field, everything matches";
                self.report(at, message);
            }
            FieldType::List(item) | FieldType::NonEmptyList(item) => {
                for (index, element) in value.items().enumerate() {
                    self.check_value(element, item, &at.index(index));
                }
            }
            FieldType::StrMap => {
                for (key, member) in value.members() {
                    self.check_value(member, &FieldType::Str, &at.key(key.text()));
                }
            }
            FieldType::NonEmptyStr | FieldType::Word if text.is_empty() => {
                self.report(at, "must not be empty")
            }
            FieldType::Text(format) => {
                (format.report_problems)(text, &mut |message| self.report(at, message));
            }
            FieldType::OneOf(words) if !words.contains(&text) => {
                self.report(at, format!("{text:?} is not supported; {}", suggest::hint_use_one_of(words)));
            }
            FieldType::IntOrPercent if kind == ValueKind::Number => {
                self.check_value(value, &FieldType::Int(0), at)
            }
            FieldType::IntOrPercent if parse_percentage(text).is_none() => {
                self.report(at, format!("{text:?} is not a percentage from `1%` to `100%`"));
            }
            FieldType::Int(least) => match value.int() {
                Some(number) if number >= *least => {}
                Some(number) => self.report(at, format!("{number} is too small; the minimum is {least}")),
                None => self.report(at, format!("{text} is not an integer")),
            },
            FieldType::Time if gotime::parse_rfc3339(text).is_err() => {
                self.report(at, format!("{text:?} is not a time in RFC 3339, such as 2027-01-01T00:00:00Z"));
            }
            _ => {}
        }
    }

    /// Reports a value of another JSON type than a type takes.
    fn report_wrong_type(&mut self, value: Value<'_>, ty: &FieldType, at: &Path<'_>) {
        if value.kind() == ValueKind::Null {
            return self.report(at, format!("no value; expected {}", type_name(ty)));
        }
        let wants_text = matches!(ty, FieldType::Str | FieldType::NonEmptyStr | FieldType::Text(_));
        let hint = wants_text.then(|| suggest::hint_to_quote(value)).flatten();
        let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
        let found = json_type_name_with_article(value.kind());
        self.report(at, format!("expected {}, found {found}{hint}", type_name(ty)));
    }

    /// Checks the members of an object whose keys must be among `names`; `type_of` returns the type of the value for the
    /// name with an index. `what` is the word for a key, and `usual_hint` the hint for one that resembles no name.
    fn check_members<'t>(
        &mut self,
        value: Value<'_>,
        at: &Path<'_>,
        what: &str,
        names: &[&str],
        usual_hint: impl Fn() -> String,
        type_of: impl Fn(usize) -> Option<&'t FieldType>,
    ) {
        let mut seen = HashSet::new();
        for (key, member) in value.members() {
            let name = key.text();
            let member_at = at.field(name);
            let Some(ty) = names.iter().position(|known| *known == name).and_then(&type_of) else {
                let near = nearest_name(names.iter().copied(), name);
                let hint = near.map_or_else(&usual_hint, |near| format!("did you mean `{near}`?"));
                self.report_on_key(&member_at, format!("unknown {what}; {hint}"));
                continue;
            };
            if !seen.insert(name) {
                self.report_on_key(&member_at, "this field is set twice".to_owned());
            }
            self.check_value(member, ty, &member_at);
        }
    }
}

/// Returns the most similar name, ignoring case; `None` if none is similar enough.
pub fn nearest_name<'n>(names: impl Iterator<Item = &'n str>, name: &str) -> Option<&'n str> {
    names
        .map(|known| (distance(&known.to_lowercase(), &name.to_lowercase()), known))
        .filter(|(distance, known)| *distance <= 1 + known.len().min(name.len()) / 5)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// Returns the number in a percentage from `1%` to `100%`; `None` if the text is anything else.
pub(super) fn parse_percentage(text: &str) -> Option<u8> {
    let digits = text.strip_suffix('%')?;
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
    digits.parse().ok().filter(|number| is_plain && *number <= 100)
}

/// Returns the name of a type for messages, with an article, such as `a string`.
fn type_name(ty: &FieldType) -> Cow<'static, str> {
    let name = match ty {
        FieldType::AnyOf(types) => {
            let names: Vec<_> = types.iter().map(type_name).collect();
            return names.join(" or ").into();
        }
        FieldType::NonEmptyStr
        | FieldType::Str
        | FieldType::Word
        | FieldType::Text(_)
        | FieldType::OneOf(_) => "a string",
        FieldType::Int(_) => "an integer",
        FieldType::IntOrPercent => "an integer or a percentage",
        FieldType::Bool => "true or false",
        FieldType::Time => "a time",
        FieldType::List(_) | FieldType::NonEmptyList(_) => "a list",
        FieldType::Any => "a value",
        FieldType::AnyObject | FieldType::StrMap | FieldType::MapOf { .. } | FieldType::Object(_) => {
            "an object"
        }
    };
    Cow::Borrowed(name)
}

/// Returns the name of a JSON type for messages, with an article, such as `a list`.
fn json_type_name_with_article(kind: ValueKind) -> &'static str {
    match kind {
        ValueKind::Null => "null",
        ValueKind::Bool => "a boolean",
        ValueKind::Number => "a number",
        ValueKind::String => "a string",
        ValueKind::Array => "a list",
        ValueKind::Object => "an object",
    }
}
