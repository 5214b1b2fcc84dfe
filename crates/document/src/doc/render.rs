//! Values as compact JSON text.
//!
//! Sizes are those of the JSON that an API server receives, whatever the layout or syntax of the source. For a file
//! this is the JSON that kubectl makes of it: compact, keys sorted, Go's numbers and escapes. For an AdmissionReview it
//! is the shortest text that a client can have sent. There is no recursion, so nesting cannot exhaust the stack.

use std::borrow::Cow;

use super::{Items, Syntax, Value, ValueKind};
use tollgate_formats::gofmt::{byte_prefix, normalize_json_number, push_json_string, quote};

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

    /// True if kubectl would send more than `limit` bytes for this value of a file. It decodes JSON and YAML
    /// and encodes the result with Go's `encoding/json`.
    pub fn exceeds_bytes_when_sent_by_kubectl(self, limit: usize) -> bool {
        // One byte of JSON becomes at most six: `<` is escaped, and `1e20` has 21 digits.
        if self.doc.syntax == Syntax::Json && self.span().len() as usize <= limit / 6 {
            return false;
        }
        // A string may be cut up to three bytes early, before a character that does not fit.
        self.to_json_with_numbers(limit + 8, normalize_json_number).len() > limit
    }

    /// The smallest number of bytes in which a client can have sent this value of an AdmissionReview to the API server:
    /// [`Value::raw_json`] without whitespace, and with `<`, `>`, `&`, U+2028 and U+2029 unescaped, because an API
    /// server removes whitespace and escapes these characters.
    pub fn min_received_bytes(self) -> usize {
        let raw = self.raw_json();
        let (mut length, mut in_string) = (0, false);
        let mut rest = raw.as_bytes();
        while let Some(first) = rest.first() {
            let (read, counted) = match (first, rest.get(..6)) {
                (b'\\', Some(br"\u003c" | br"\u003e" | br"\u0026")) => (6, 1),
                (b'\\', Some(br"\u2028" | br"\u2029")) => (6, 3),
                (b'\\', _) => (2, 2),
                (b' ' | b'\t' | b'\n' | b'\r', _) if !in_string => (1, 0),
                _ => (1, 1),
            };
            in_string ^= *first == b'"';
            length += counted;
            rest = rest.get(read..).unwrap_or_default();
        }
        length
    }

    /// Compact JSON with sorted keys and Go's string escapes (`<`, `>`, `&` too), the last of duplicate keys kept.
    pub fn to_json(self) -> String {
        self.to_json_cut_after(usize::MAX)
    }

    /// [`Value::to_json`]; the text may end anywhere past `max_bytes` bytes.
    pub fn to_json_cut_after(self, max_bytes: usize) -> String {
        self.to_json_with_numbers(max_bytes, |literal| Cow::Borrowed(literal))
    }

    /// [`Value::to_json`] for people: strings are quoted as in messages, with `<`, `>` and `&` as they are. Not to be
    /// parsed, because control characters have Go's escapes.
    pub fn to_json_for_messages(self) -> String {
        self.write_json(usize::MAX, |out, text| out.push_str(&quote(text)), |literal| Cow::Borrowed(literal))
    }

    /// [`Value::to_json`] with numbers written by `number`; the text may end anywhere past `max_bytes` bytes.
    fn to_json_with_numbers(self, max_bytes: usize, number: impl Fn(&str) -> Cow<'_, str>) -> String {
        self.write_json(max_bytes, |out, text| push_json_string(out, byte_prefix(text, max_bytes)), number)
    }

    /// Compact JSON with sorted keys, and strings and numbers as written by `string` and `number`; the text may end
    /// anywhere past `max_bytes` bytes.
    fn write_json(
        self,
        max_bytes: usize,
        string: impl Fn(&mut String, &str),
        number: impl Fn(&str) -> Cow<'_, str>,
    ) -> String {
        let mut out = String::new();
        let mut open: Vec<UnwrittenParts<'d>> = Vec::new();
        let mut next = Some(self);
        while out.len() <= max_bytes {
            if let Some(value) = next.take() {
                match value.kind() {
                    ValueKind::String => string(&mut out, value.text()),
                    ValueKind::Null => out.push_str("null"),
                    ValueKind::Bool => out.push_str(value.text()),
                    ValueKind::Number => out.push_str(byte_prefix(&number(value.text()), max_bytes)),
                    ValueKind::Array => {
                        out.push('[');
                        open.push(UnwrittenParts::Items(value.items()));
                    }
                    ValueKind::Object => {
                        out.push('{');
                        open.push(UnwrittenParts::Members(sorted_members_last_key_wins(value).into_iter()));
                    }
                }
            }
            match open.last_mut() {
                None => break,
                Some(UnwrittenParts::Items(items)) => {
                    next = items.next();
                    write_comma_or_closing_bracket(&mut out, '[', ']', next.is_some());
                }
                Some(UnwrittenParts::Members(members)) => {
                    let member = members.next();
                    write_comma_or_closing_bracket(&mut out, '{', '}', member.is_some());
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

/// The items or members of a container that are not written yet.
enum UnwrittenParts<'d> {
    Items(Items<'d>),
    Members(std::vec::IntoIter<(&'d str, Value<'d>)>),
}

/// Writes what comes before the next item or member: a comma unless it is the first one. Writes the closing bracket
/// instead if there is none (`goes_on` is false).
fn write_comma_or_closing_bracket(out: &mut String, start: char, end: char, goes_on: bool) {
    if !goes_on {
        out.push(end);
    } else if !out.ends_with(start) {
        out.push(',');
    }
}

/// The members sorted by key; of equal keys, only the last one.
fn sorted_members_last_key_wins<'d>(value: Value<'d>) -> Vec<(&'d str, Value<'d>)> {
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
