//! Text from a cluster, as it is shown on a page.
//!
//! Names and messages come from objects that anybody may have written. HTML is escaped wherever a text is written; what
//! escaping does not change are characters that are invisible or reorder others. They are written as escapes when a
//! report is read, so no page can forget it.
//!
//! Invariant: a [`SafeText`] has no control character and no invisible character.

use std::fmt::Write as _;
use std::ops::Deref;

use maud::{Escaper, Markup, Render, html};
use serde::Deserialize;
use tollgate_formats::sanitize::is_unsafe;

use crate::frame::group_thousands;
use crate::map::NamespaceAndName;

/// A text whose unsafe characters are visible, such as `\u202e`.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Deserialize)]
#[serde(from = "String")]
pub struct SafeText(String);

impl From<String> for SafeText {
    fn from(text: String) -> SafeText {
        // Most texts are plain names, and whether one is, is seen in a moment.
        if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) || !text.contains(is_unsafe) {
            return SafeText(text);
        }
        let mut shown = String::with_capacity(text.len() + 16);
        for letter in text.chars() {
            match letter {
                '\n' => shown.push_str("\\n"),
                '\t' => shown.push_str("\\t"),
                _ if is_unsafe(letter) => _ = write!(shown, "\\u{:04x}", u32::from(letter)),
                _ => shown.push(letter),
            }
        }
        SafeText(shown)
    }
}

impl From<&str> for SafeText {
    fn from(text: &str) -> SafeText {
        SafeText::from(text.to_owned())
    }
}

impl Deref for SafeText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// The text as a name that is not broken over two lines, unless a line has room for nothing else.
pub(crate) fn unbroken(text: &str) -> Markup {
    html! { span.w { (text) } }
}

/// The text with possible line breaks after each slash, equals sign and colon, such as a taint in a narrow cell.
pub(crate) fn breakable_after_separators(text: &str) -> Markup {
    html! {
        @for (index, part) in text.split_inclusive(['/', '=', ':']).enumerate() {
            @if index > 0 { wbr; }
            (SafeText::from(part))
        }
    }
}

/// Namespace and name of an object, such as `research/llm-train-0`, with a possible line break after the namespace.
pub(crate) fn namespaced(object: &NamespaceAndName) -> Markup {
    html! { (object.namespace) "/" (unbroken(&object.name)) }
}

/// The first `most` parts, and the number of the others if there are more: `gpu-0, gpu-1 and 2 more`. `separator` is
/// written between all parts, also before the last one; `before_count` only before `2 more`.
pub(crate) fn first_parts_and_number_of_others(
    parts: impl ExactSizeIterator<Item = Markup>,
    most: usize,
    [separator, before_count]: [&str; 2],
) -> Markup {
    let more = parts.len().saturating_sub(most);
    html! {
        @for (index, part) in parts.take(most).enumerate() {
            @if index > 0 { (separator) }
            (part)
        }
        @if more > 0 { (before_count) (group_thousands(more)) " more" }
    }
}

impl Render for SafeText {
    fn render_to(&self, buffer: &mut String) {
        _ = Escaper::new(buffer).write_str(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::SafeText;
    use maud::html;

    #[test]
    fn what_cannot_be_seen_is_written_as_an_escape() {
        for (written, shown) in [
            ("gpu-0", "gpu-0"),
            ("a\u{202e}b\u{0}\u{1b}[2J\n\t", "a\\u202eb\\u0000\\u001b[2J\\n\\t"),
            ("é设备🔥", "é设备🔥"),
        ] {
            assert_eq!(&*SafeText::from(written), shown);
            let read: SafeText =
                serde_json::from_str(&serde_json::to_string(written).expect("JSON")).expect("text");
            assert_eq!(&*read, shown);
        }
    }

    #[test]
    fn a_text_is_escaped_in_elements_and_attributes() {
        let text = SafeText::from("\"><script>alert(1)</script>&amp;");
        let shown = html! { p title=(text) { (text) } }.into_string();
        let escaped = "&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;&amp;amp;";
        assert_eq!(shown, format!("<p title=\"{escaped}\">{escaped}</p>"));
    }
}
