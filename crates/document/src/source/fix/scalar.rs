//! Replaces scalars and renames keys, with the same quotes as the text that they replace or stand beside.

use super::{EditTarget, Replacement, ReplacementBuilder};
use crate::doc::{Syntax, Value, ValueKind};
use crate::finding::NewValue;
use crate::source::scalar::{self, ScalarValue};

impl ReplacementBuilder<'_> {
    /// Replaces a scalar or an empty container. `None` if it is on several lines, is not written, or has an anchor or a
    /// tag.
    pub(super) fn set_scalar(&self, target: EditTarget<'_>, new: &NewValue) -> Option<Vec<Replacement>> {
        let written = self.source_text(target.value);
        let is_container = matches!(target.value.kind(), ValueKind::Array | ValueKind::Object);
        // A block scalar has no quotes to keep, and nothing is no text to replace.
        if written.is_empty()
            || written.starts_with(['&', '!'])
            || !is_container && !self.is_one_line_and_not_block_scalar(target.value)
        {
            return None;
        }
        if is_container && !(self.is_flow(target.value) && target.value.is_empty()) {
            return None;
        }
        Some(vec![(Self::bytes(target.value), self.scalar_text(new, written))])
    }

    /// Renames a key. `None` if the new one exists, or if the old one is not on one line.
    pub(super) fn rename_key(&self, target: EditTarget<'_>, to: &str) -> Option<Vec<Replacement>> {
        let key = target.key?;
        let written = self.source_text(key);
        if written.is_empty() || written.contains('\n') || target.parent.get(to).exists() {
            return None;
        }
        Some(vec![(Self::bytes(key), self.string_text(to, written))])
    }

    /// The text of a value, with quotes as `like` has them: what it replaces or stands beside.
    pub(super) fn scalar_text(&self, new: &NewValue, like: &str) -> String {
        match new {
            NewValue::Str(text) => self.string_text(text, like),
            NewValue::Literal(text) => text.to_string(),
        }
    }

    /// The text of a string, with the quotes that `like` has; with double quotes if it has none and the string needs
    /// them.
    pub(super) fn string_text(&self, text: &str, like: &str) -> String {
        let is_quoted = self.document.doc.syntax() == Syntax::Json || like.starts_with('"');
        if is_quoted || text.chars().any(char::is_control) {
            return double_quoted(text);
        }
        if like.starts_with('\'') {
            return format!("'{}'", text.replace('\'', "''"));
        }
        if needs_no_quotes(text) { text.to_owned() } else { double_quoted(text) }
    }

    /// True if the value is written on one line and is not a block scalar.
    pub(super) fn is_one_line_and_not_block_scalar(&self, value: Value<'_>) -> bool {
        !self.source_text(value).contains(['\n', '\r'])
            && !self.follows_block_scalar_header(Self::bytes(value).start)
    }

    /// True if the line before ends in `|` or `>`, with or without indicators and a comment: then this is the text of a
    /// block scalar.
    fn follows_block_scalar_header(&self, at: usize) -> bool {
        if !self.begins_line(at) {
            return false;
        }
        let before = self.text(0..self.line_start(at)).trim_end().len();
        let line = self.text(self.line_start(before)..before);
        let line = line.split(" #").next().unwrap_or_default().trim_end();
        line.trim_end_matches(|letter: char| letter.is_ascii_digit() || matches!(letter, '+' | '-'))
            .ends_with(['|', '>'])
    }
}

/// True if YAML reads the text as this very string without quotes, wherever it stands.
fn needs_no_quotes(text: &str) -> bool {
    let is_harmless =
        |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '/' | '-');
    text.starts_with(|letter: char| letter.is_ascii_alphanumeric())
        && text.chars().all(is_harmless)
        && matches!(scalar::resolve_plain(text), ScalarValue::Text)
}

/// The text in double quotes, with the escapes that both JSON and YAML have.
fn double_quoted(text: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            letter if letter.is_control() => _ = write!(out, "\\u{:04x}", u32::from(letter)),
            letter => out.push(letter),
        }
    }
    out.push('"');
    out
}
