//! Values as compact JSON text.
//!
//! For a JSON document the text is the source's own bytes: sizes are measured on what was received. For YAML it is
//! the JSON that kubectl would send: keys sorted, Go's escapes. No recursion, so nesting cannot exhaust the stack.

use std::borrow::Cow;

use super::{Items, Syntax, Value, ValueKind};
use crate::gofmt::{head, json_string};

impl<'d> Value<'d> {
    /// The JSON text of this value: as received, or as kubectl would send it.
    pub fn raw_json(self) -> Cow<'d, str> {
        if self.doc.syntax == Syntax::Json {
            let span = self.span();
            let whole = self.doc.source.get(span.start as usize..span.end as usize);
            if let Some(text) = whole
                && !text.is_empty()
            {
                return Cow::Borrowed(text);
            }
        }
        Cow::Owned(self.to_json())
    }

    /// Bytes of [`Value::raw_json`] with `<`, `>`, `&`, U+2028 and U+2029 written as themselves. Go's encoder escapes
    /// them: of what a client sent, a review has the escapes.
    pub fn unescaped_len(self) -> usize {
        let raw = self.raw_json();
        let mut saved = 0;
        let mut escapes = raw.as_bytes();
        while let Some(at) = escapes.iter().position(|byte| *byte == b'\\') {
            let escape = escapes.get(at..).unwrap_or_default();
            let (length, shorter) = match escape.get(..6) {
                Some(br"\u003c" | br"\u003e" | br"\u0026") => (6, 5),
                Some(br"\u2028" | br"\u2029") => (6, 3),
                _ => (2, 0),
            };
            saved += shorter;
            escapes = escape.get(length..).unwrap_or_default();
        }
        raw.len() - saved
    }

    /// Compact JSON with sorted keys and Go's string escapes (`<`, `>`, `&` too), the last of duplicate keys kept.
    pub fn to_json(self) -> String {
        self.json_within(usize::MAX)
    }

    /// The same; it may end anywhere past `max_bytes`.
    pub fn json_within(self, max_bytes: usize) -> String {
        let string = |out: &mut String, text| json_string(out, head(text, max_bytes));
        let mut out = String::new();
        let mut open: Vec<Rest<'d>> = Vec::new();
        let mut next = Some(self);
        while out.len() <= max_bytes {
            if let Some(value) = next.take() {
                match value.kind() {
                    ValueKind::String => string(&mut out, value.text()),
                    ValueKind::Null => out.push_str("null"),
                    ValueKind::Bool | ValueKind::Number => out.push_str(head(value.text(), max_bytes)),
                    ValueKind::Array => {
                        out.push('[');
                        open.push(Rest::Items(value.items()));
                    }
                    ValueKind::Object => {
                        out.push('{');
                        open.push(Rest::Members(sorted_members(value).into_iter()));
                    }
                }
            }
            match open.last_mut() {
                None => break,
                Some(Rest::Items(items)) => {
                    next = items.next();
                    separate(&mut out, '[', ']', next.is_some());
                }
                Some(Rest::Members(members)) => {
                    let member = members.next();
                    separate(&mut out, '{', '}', member.is_some());
                    if let Some((key, value)) = member {
                        string(&mut out, key);
                        out.push(':');
                        next = Some(value);
                    }
                }
            }
            if next.is_none() {
                open.pop();
            }
        }
        out
    }
}

/// What of a container is not written yet.
enum Rest<'d> {
    Items(Items<'d>),
    Members(std::vec::IntoIter<(&'d str, Value<'d>)>),
}

/// A comma before all but the first, or the end.
fn separate(out: &mut String, start: char, end: char, goes_on: bool) {
    if !goes_on {
        out.push(end);
    } else if !out.ends_with(start) {
        out.push(',');
    }
}

fn sorted_members<'d>(value: Value<'d>) -> Vec<(&'d str, Value<'d>)> {
    let mut members: Vec<(&'d str, Value<'d>)> =
        value.members().map(|(key, member)| (key.text(), member)).collect();
    members.sort_by_key(|(key, _)| *key);
    // The sort is stable: of equal keys the last one written comes last and is kept.
    let mut kept: Vec<(&'d str, Value<'d>)> = Vec::with_capacity(members.len());
    for member in members {
        match kept.last_mut() {
            Some(last) if last.0 == member.0 => *last = member,
            _ => kept.push(member),
        }
    }
    kept
}
