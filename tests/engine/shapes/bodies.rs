//! Bodies made from the tables of the API's types: every list, map, text and struct of every kind, as long as wanted,
//! and wrong in every way that has a name.
//!
//! Shared by `tests/engine/shapes.rs` (bytes, counted) and `benches/shapes.rs` (time, measured). Nothing is listed by
//! hand: a field that a new release brings is covered when its row is.

use std::collections::HashSet;
use std::fmt::Write as _;

use tollgate::Profile;
use tollgate_api::fields;
use tollgate_api::profile::{ApiKind, Version};
use tollgate_api::schema::{Field, FieldType, StructSchema};

/// A field of a kind, with the path of fields that leads to it.
#[derive(Clone)]
pub(crate) struct HostileField {
    pub(crate) kind: ApiKind,
    pub(crate) version: Version,
    pub(crate) way: Vec<&'static Field>,
}

impl HostileField {
    /// The type of the field.
    pub(crate) fn ty(&self) -> &'static FieldType {
        &self.way.last().expect("a place has a field").ty
    }

    /// Name of the field, such as `ResourceClaim v1 spec.devices.requests`.
    pub(crate) fn name(&self) -> String {
        let way: Vec<&str> = self.way.iter().map(|field| field.json).collect();
        format!("{} {} {}", self.kind.name(), self.version.name(), way.join("."))
    }

    fn in_status(&self) -> bool {
        self.way.first().is_some_and(|field| field.json == "status")
    }
}

/// Every field of every type that a profile serves, at its first occurrence.
pub(crate) fn places(profile: &'static Profile) -> Vec<HostileField> {
    let mut all: Vec<HostileField> = Vec::new();
    let mut met = HashSet::new();
    for kind in ApiKind::ALL {
        for &version in profile.versions(kind) {
            let mut way = Vec::new();
            descend(fields::root_struct(kind, version), &mut way, &mut |way| {
                let last = way.last().map(|field| std::ptr::from_ref::<Field>(field));
                if met.insert((last, kind.has_full_schema())) {
                    all.push(HostileField { kind, version, way: way.to_vec() });
                }
            });
        }
    }
    all
}

fn descend(
    ty: &'static StructSchema,
    way: &mut Vec<&'static Field>,
    found: &mut dyn FnMut(&[&'static Field]),
) {
    for field in ty.fields {
        way.push(field);
        found(way);
        if let Some(inner) = inside(&field.ty)
            && way.len() < 12
        {
            descend(inner, way, found);
        }
        way.pop();
    }
}

/// The struct that a type contains, directly or in lists and maps.
fn inside(ty: &'static FieldType) -> Option<&'static StructSchema> {
    match ty {
        FieldType::Struct(inner) | FieldType::StringOr(inner) => Some(inner),
        FieldType::List(item) => inside(item),
        FieldType::Map { value, .. } => inside(value),
        _ => None,
    }
}

/// How a field is filled in a hostile review.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Style {
    /// Realistic elements, each different.
    Plausible,
    /// Equal elements.
    Repeated,
    /// Empty elements.
    Empty,
    Null,
    /// Elements of another JSON type.
    WrongType,
    /// Elements with an unknown field.
    Unknown,
    /// Elements that are too long and contain characters that must be escaped.
    Odd,
    /// Many unknown fields beside the field.
    Strangers,
    /// The field itself, repeated many times.
    Again,
    /// A single long text of letters and of characters that must be escaped.
    Letters,
    Controls,
    Digits,
    /// Many short parts, each of them invalid.
    Parts,
    /// A long key that takes half of the bytes, with errors below it.
    LongKey,
}

impl Style {
    const OF_LISTS: [Style; 9] = [
        Style::Plausible,
        Style::Repeated,
        Style::Empty,
        Style::Null,
        Style::WrongType,
        Style::Unknown,
        Style::Odd,
        Style::Again,
        Style::LongKey,
    ];
    const OF_STRUCTS: [Style; 2] = [Style::Strangers, Style::Again];
    const OF_SCALARS: [Style; 5] =
        [Style::Letters, Style::Controls, Style::Digits, Style::Parts, Style::Again];

    /// The styles that apply to a field of this type.
    pub(crate) fn of(ty: &FieldType) -> &'static [Style] {
        match ty {
            FieldType::List(_) | FieldType::Map { .. } => &Style::OF_LISTS,
            FieldType::Struct(_) | FieldType::StringOr(_) => &Style::OF_STRUCTS,
            _ => &Style::OF_SCALARS,
        }
    }
}

/// The kind of request for an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RequestKind {
    Create,
    /// The stored object has the same elements in another order.
    Turned,
    /// The stored object has valid elements.
    Mended,
    Mutate,
}

impl RequestKind {
    pub(crate) const ALL: [RequestKind; 4] =
        [RequestKind::Turned, RequestKind::Mended, RequestKind::Create, RequestKind::Mutate];
}

/// A review in which the field takes about `bytes` bytes.
pub(crate) fn review(place: &HostileField, style: Style, ask: RequestKind, bytes: usize) -> String {
    let is_update = matches!(ask, RequestKind::Turned | RequestKind::Mended) || place.in_status();
    let share = if is_update { bytes / 2 } else { bytes };
    let new = object(place, style, share, false);
    let (group, version, kind) = (place.kind.group(), place.version.name(), place.kind.name());
    let (resource, sub) = (place.kind.resource(), if place.in_status() { "status" } else { "" });
    let operation = if is_update { "UPDATE" } else { "CREATE" };
    let mut out = format!(
        r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"u","kind":{{"group":"{group}","version":"{version}","kind":"{kind}"}},"resource":{{"group":"{group}","version":"{version}","resource":"{resource}"}},"subResource":"{sub}","operation":"{operation}","namespace":"a","name":"a","object":{new}"#
    );
    if is_update {
        let old = match ask {
            RequestKind::Mended => object(place, Style::Plausible, share, false),
            _ => object(place, style, share, true),
        };
        _ = write!(out, r#","oldObject":{old}"#);
    }
    out.push_str("}}");
    out
}

fn object(place: &HostileField, style: Style, bytes: usize, turned: bool) -> String {
    let api_version = match place.kind.group() {
        "" => place.version.name().to_owned(),
        group => format!("{group}/{}", place.version.name()),
    };
    let leaf = Leaf { style, bytes, turned };
    let mut out = format!(r#"{{"apiVersion":"{api_version}","kind":"{}""#, place.kind.name());
    let root = fields::root_struct(place.kind, place.version);
    leaf.members(&mut out, root, &place.way, true);
    out.push('}');
    out
}

/// How the value at the end of a path is written.
#[derive(Clone, Copy)]
struct Leaf {
    style: Style,
    bytes: usize,
    turned: bool,
}

impl Leaf {
    /// Writes the members of a struct on the path: its scalars, and the next step.
    fn members(self, out: &mut String, ty: &'static StructSchema, way: &[&'static Field], is_root: bool) {
        let Some((next, rest)) = way.split_first() else { return };
        for field in ty.fields {
            if field.json != next.json && !(is_root && matches!(field.json, "apiVersion" | "kind")) {
                sketch(out, field, self.style);
            }
        }
        if !rest.is_empty() {
            comma(out);
            _ = write!(out, "\"{}\":", next.json);
            return self.down(out, &next.ty, rest);
        }
        match self.style {
            Style::Strangers => self.fill(out, |out, index| _ = write!(out, "\"stranger-{index}\":0")),
            Style::Again => self.fill(out, |out, index| {
                _ = write!(out, "\"{}\":", next.json);
                element(out, &next.ty, Style::Plausible, index);
            }),
            _ => {
                comma(out);
                _ = write!(out, "\"{}\":", next.json);
                self.last(out, &next.ty);
            }
        }
    }

    fn down(self, out: &mut String, ty: &'static FieldType, rest: &[&'static Field]) {
        match ty {
            FieldType::Struct(inner) | FieldType::StringOr(inner) => {
                out.push('{');
                self.members(out, inner, rest, false);
                out.push('}');
            }
            FieldType::List(item) => {
                out.push('[');
                self.down(out, item, rest);
                out.push(']');
            }
            FieldType::Map { value, .. } => {
                out.push_str("{\"a.example.com/a\":");
                self.down(out, value, rest);
                out.push('}');
            }
            _ => out.push_str("null"),
        }
    }

    /// Writes the field at the end of the path.
    fn last(self, out: &mut String, ty: &'static FieldType) {
        let unit = match self.style {
            Style::Letters => Some("abcdefgh"),
            Style::Controls => Some("\\u0001\\u009b\\\"<\u{e9}"),
            Style::Digits => Some("12345678"),
            Style::Parts => Some("A_//.: "),
            _ => None,
        };
        if let Some(unit) = unit {
            let text = unit.repeat(self.bytes / unit.len());
            let quote = if self.style == Style::Digits && matches!(ty, FieldType::Int) { "" } else { "\"" };
            _ = write!(out, "{quote}{text}{quote}");
            return;
        }
        match ty {
            FieldType::List(item) => {
                out.push('[');
                if self.style == Style::LongKey {
                    self.long_key(out, item);
                } else {
                    self.fill(out, |out, index| element(out, item, self.style, index));
                }
                out.push(']');
            }
            FieldType::Map { value, .. } => {
                out.push('{');
                if self.style == Style::LongKey {
                    _ = write!(out, "\"{}\":", "k".repeat(self.bytes / 2));
                    self.long_key(out, value);
                } else {
                    self.fill(out, |out, index| {
                        match self.style {
                            Style::Repeated => out.push_str("\"a.example.com/a\":"),
                            Style::Odd => _ = write!(out, "\"\\u0001 {index} {}\":", "ö".repeat(100)),
                            _ => _ = write!(out, "\"a.example.com/a-{index}\":"),
                        }
                        element(out, value, self.style, index);
                    });
                }
                out.push('}');
            }
            _ => element(out, ty, self.style, 0),
        }
    }

    /// Writes errors into one element until they take half of the bytes.
    fn long_key(self, out: &mut String, ty: &'static FieldType) {
        let leaf = Leaf { bytes: self.bytes / 2, ..self };
        let Some(inner) = inside(ty) else { return element(out, ty, Style::WrongType, 0) };
        out.push('{');
        match inner.fields.iter().find(|field| matches!(field.ty, FieldType::List(_))) {
            Some(field) => {
                _ = write!(out, "\"{}\":[", field.json);
                leaf.fill(out, |out, _| out.push_str("[]"));
                out.push(']');
            }
            None => leaf.fill(out, |out, index| _ = write!(out, "\"stranger-{index}\":0")),
        }
        out.push('}');
    }

    /// Writes elements until there are enough bytes.
    fn fill(self, out: &mut String, mut write: impl FnMut(&mut String, usize)) {
        let mut one = String::new();
        write(&mut one, 1_000);
        let count = (self.bytes / (one.len() + 1)).max(1);
        for number in 0..count {
            comma(out);
            write(out, if self.turned { count - 1 - number } else { number });
        }
    }
}

fn comma(out: &mut String) {
    if !out.ends_with(['{', '[', ',']) {
        out.push(',');
    }
}

/// Writes a field beside the path with realistic scalars, or nothing.
fn sketch(out: &mut String, field: &'static Field, style: Style) {
    let is_scalar = !matches!(
        field.ty,
        FieldType::Struct(_)
            | FieldType::StringOr(_)
            | FieldType::List(_)
            | FieldType::Map { .. }
            | FieldType::Raw
    );
    let is_status = matches!(field.json, "deletionTimestamp" | "deletionGracePeriodSeconds");
    if is_scalar && !is_status && style != Style::Empty {
        comma(out);
        _ = write!(out, "\"{}\":", field.json);
        element(out, &field.ty, Style::Repeated, 0);
    } else if field.json == "metadata" {
        comma(out);
        out.push_str(r#""metadata":{"name":"a","uid":"u","resourceVersion":"1"}"#);
    }
}

/// Writes one value of a type.
fn element(out: &mut String, ty: &'static FieldType, style: Style, index: usize) {
    let index = if style == Style::Repeated { 0 } else { index };
    match style {
        Style::Null => return out.push_str("null"),
        Style::WrongType => {
            let wrong = match ty {
                FieldType::Struct(_) | FieldType::Map { .. } => "7",
                _ => "{}",
            };
            return out.push_str(wrong);
        }
        _ => {}
    }
    match ty {
        FieldType::Str | FieldType::Named(_) | FieldType::CoreNamed(_) | FieldType::Uid => match style {
            Style::Empty => out.push_str("\"\""),
            Style::Odd => _ = write!(out, "\"\\u0001 <{index}> {}\"", "ö".repeat(100)),
            _ => _ = write!(out, "\"a-{index}\""),
        },
        FieldType::Int => _ = write!(out, "{}", if style == Style::Odd { i64::MIN } else { 1 }),
        FieldType::Bool => out.push_str("true"),
        FieldType::Quantity => out.push_str(if style == Style::Odd { "\"-1e-999\"" } else { "\"1\"" }),
        FieldType::Time => {
            out.push_str(if style == Style::Odd { "\"soon\"" } else { "\"2026-01-01T00:00:00Z\"" })
        }
        FieldType::Raw => _ = write!(out, "{{\"a\":[{index},{{\"b\":null}}]}}"),
        FieldType::Struct(inner) | FieldType::StringOr(inner) => {
            out.push('{');
            if style == Style::Unknown {
                out.push_str("\"stranger\":0");
            }
            for field in inner.fields.iter().filter(|_| style != Style::Empty && style != Style::Unknown) {
                comma(out);
                _ = write!(out, "\"{}\":", field.json);
                element(out, &field.ty, style, index);
            }
            out.push('}');
        }
        FieldType::List(item) => {
            out.push('[');
            element(out, item, style, index);
            out.push(']');
        }
        FieldType::Map { value, .. } => {
            out.push_str("{\"a\":");
            element(out, value, style, index);
            out.push('}');
        }
    }
}

/// A review of a claim with 32 times 32 different selectors of about `bytes` bytes in total, which are valid
/// if `is_right`.
#[allow(dead_code, reason = "the test has no clock")]
pub(crate) fn expressions(bytes: usize, is_right: bool) -> String {
    let one = (bytes / 1_024).min(10_000);
    let term = if is_right { r#"device.driver == 'a' && "# } else { r#"device.nope == a && "# };
    let expression =
        |number: usize| format!("{}device.driver == 'b-{number}'", term.repeat(one / term.len()));
    let request = |request: usize| {
        let selectors: Vec<String> = (0..32)
            .map(|selector| {
                format!(r#"{{"cel":{{"expression":"{}"}}}}"#, expression(request * 32 + selector))
            })
            .collect();
        format!(
            r#"{{"name":"r-{request}","exactly":{{"deviceClassName":"a","selectors":[{}]}}}}"#,
            selectors.join(",")
        )
    };
    let requests: Vec<String> = (0..32).map(request).collect();
    format!(
        r#"{{"request":{{"uid":"u","kind":{{"group":"resource.k8s.io","version":"v1","kind":"ResourceClaim"}},"operation":"CREATE","object":{{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{{"name":"a"}},"spec":{{"devices":{{"requests":[{}]}}}}}}}}}}"#,
        requests.join(",")
    )
}
