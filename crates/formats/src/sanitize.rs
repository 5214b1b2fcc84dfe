//! Makes untrusted text safe to print: on a terminal, in a log, in the output of a CI job.
//!
//! Names, values, file names and messages come from manifests, requests and folders. Unsafe characters are replaced by
//! U+FFFD: control characters (ESC, and C1 such as U+009B, which starts the same sequences), characters that change the
//! direction of text or are invisible, and those that make a line a command of a CI server, at its start (`::error::`)
//! or anywhere in it (`##[error]`). In JSON the same characters are escaped instead: [`escape_unsafe_chars_in_json`].
//!
//! The replacement is not reversible. Invariant: the result has no unsafe character except line breaks, and a text that
//! needs no change is not copied.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::RangeInclusive;

/// Replacement for an unsafe character.
const REPLACEMENT: char = '\u{fffd}';
/// Commands of CI servers anywhere in a line: GitHub (old form), Azure Pipelines, TeamCity.
const CI_COMMANDS: [&str; 3] = ["##[", "##vso[", "##teamcity["];

/// Characters that are invisible or change how others are shown, besides control characters: soft hyphen, Arabic
/// letter mark, fillers and selectors without a glyph; zero width, direction marks, separators, embeddings, invisible
/// operators, isolates; byte order mark and annotations; shorthand and musical controls, tags, further selectors.
const INVISIBLE_RANGES: [RangeInclusive<char>; 15] = [
    '\u{ad}'..='\u{ad}',
    '\u{61c}'..='\u{61c}',
    '\u{115f}'..='\u{1160}',
    '\u{17b4}'..='\u{17b5}',
    '\u{180b}'..='\u{180f}',
    '\u{200b}'..='\u{200f}',
    '\u{2028}'..='\u{202e}',
    '\u{2060}'..='\u{206f}',
    '\u{3164}'..='\u{3164}',
    '\u{feff}'..='\u{feff}',
    '\u{ffa0}'..='\u{ffa0}',
    '\u{fff0}'..='\u{fffb}',
    '\u{1bca0}'..='\u{1bca3}',
    '\u{1d173}'..='\u{1d17a}',
    '\u{e0000}'..='\u{e0fff}',
];

/// True for control characters and invisible characters.
pub fn is_unsafe(letter: char) -> bool {
    letter.is_control() || !letter.is_ascii() && INVISIBLE_RANGES.iter().any(|range| range.contains(&letter))
}

/// The text with unsafe characters, except line breaks, replaced by U+FFFD.
pub fn replace_unsafe_except_line_breaks(text: &str) -> Cow<'_, str> {
    replace_chars(text, |letter| letter != '\n' && is_unsafe(letter))
}

/// The text with unsafe characters, except line breaks, replaced, and with commands of CI servers made harmless.
pub fn sanitize_multiline_text(text: &str) -> Cow<'_, str> {
    neutralize_ci_commands(replace_unsafe_except_line_breaks(text))
}

/// The text as one line, such as a name: with unsafe characters and line breaks replaced, and with commands of CI
/// servers made harmless.
pub fn sanitize_as_line(name: &str) -> Cow<'_, str> {
    neutralize_ci_commands(replace_chars(name, is_unsafe))
}

/// The text with commands of CI servers made harmless.
fn neutralize_ci_commands(text: Cow<'_, str>) -> Cow<'_, str> {
    if !contains_marked_ci_command(&text) && !text.lines().any(is_github_command) {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 8);
    for line in text.split_inclusive('\n') {
        let first_colon = is_github_command(line).then_some(line.len() - line.trim_start().len());
        for (at, letter) in line.char_indices() {
            let rest = line.get(at + letter.len_utf8()..).unwrap_or_default();
            let is_mark = letter == '#' && hash_between_completes_ci_command(&out, rest);
            out.push(if is_mark || first_colon == Some(at) { REPLACEMENT } else { letter });
        }
    }
    out.into()
}

/// The JSON text with unsafe characters and commands of CI servers escaped, so that its value does not change.
pub fn escape_unsafe_chars_in_json(text: &str) -> Cow<'_, str> {
    // Between tokens there are only line breaks and tabs, and `#` occurs in strings only.
    let is_escaped = |letter: char| !matches!(letter, '\n' | '\r' | '\t') && is_unsafe(letter);
    if !text.contains(is_escaped) && !contains_marked_ci_command(text) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 64);
    let mut rest = text.chars();
    while let Some(letter) = rest.next() {
        if is_escaped(letter) || letter == '#' && hash_between_completes_ci_command(&out, rest.as_str()) {
            for unit in letter.encode_utf16(&mut [0; 2]) {
                _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(letter);
        }
    }
    out.into()
}

/// Replaces unsafe characters outside of ASCII and commands of CI servers in a source line. Also returns the range
/// `mark`, adjusted so that it covers the same characters in the result. ASCII control characters are left to the
/// caller, which shows them in its own way.
pub fn sanitize_excerpt_except_ascii_controls(
    text: &str,
    mark: std::ops::Range<usize>,
) -> (Cow<'_, str>, std::ops::Range<usize>) {
    let is_replaced = |letter: char| !letter.is_ascii() && is_unsafe(letter);
    if !text.contains(is_replaced) && !contains_marked_ci_command(text) {
        return (text.into(), mark);
    }
    let mut out = String::with_capacity(text.len() + 8);
    let (mut start, mut end) = (None, None);
    for (at, letter) in text.char_indices() {
        start = start.or((at >= mark.start).then_some(out.len()));
        end = end.or((at >= mark.end).then_some(out.len()));
        let rest = text.get(at + letter.len_utf8()..).unwrap_or_default();
        let is_command = letter == '#' && hash_between_completes_ci_command(&out, rest);
        out.push(if is_command || is_replaced(letter) { REPLACEMENT } else { letter });
    }
    let mark = start.unwrap_or(out.len())..end.unwrap_or(out.len());
    (out.into(), mark)
}

/// The text with the characters that `is_replaced` accepts replaced; borrowed if there are none.
fn replace_chars(text: &str, is_replaced: impl Fn(char) -> bool) -> Cow<'_, str> {
    // Bytes first: most texts are printable ASCII.
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) || !text.contains(&is_replaced) {
        return text.into();
    }
    text.chars()
        .map(|letter| if is_replaced(letter) { REPLACEMENT } else { letter })
        .collect::<String>()
        .into()
}

/// True if the text contains one of [`CI_COMMANDS`].
fn contains_marked_ci_command(text: &str) -> bool {
    CI_COMMANDS.iter().any(|command| text.contains(command))
}

/// True if the line is a command of GitHub Actions: `::name …::…` after any blanks.
fn is_github_command(line: &str) -> bool {
    line.trim_start().strip_prefix("::").is_some_and(|rest| rest.contains("::"))
}

/// True if a `#` between `before` and `after` is the second one of a command such as `##[error]`.
fn hash_between_completes_ci_command(before: &str, after: &str) -> bool {
    before.ends_with('#')
        && CI_COMMANDS
            .iter()
            .any(|command| command.strip_prefix("##").is_some_and(|word| after.starts_with(word)))
}

#[cfg(test)]
mod tests {
    use super::{
        escape_unsafe_chars_in_json, replace_unsafe_except_line_breaks, sanitize_as_line,
        sanitize_excerpt_except_ascii_controls, sanitize_multiline_text,
    };

    #[test]
    fn what_is_active_is_not_shown() {
        for (written, shown) in [
            ("plain ä 设备 🔥", "plain ä 设备 🔥"),
            ("a\u{1b}[2J\u{202e}b\u{9b}\u{85}\nc", "a\u{fffd}[2J\u{fffd}b\u{fffd}\u{fffd}\nc"),
            ("a\u{200b}b\u{feff}\u{e0041}\u{2028}", "a\u{fffd}b\u{fffd}\u{fffd}\u{fffd}"),
            ("a\r\nb\tc\u{7f}\0", "a\u{fffd}\nb\u{fffd}c\u{fffd}\u{fffd}"),
        ] {
            assert_eq!(replace_unsafe_except_line_breaks(written), shown, "{written:?}");
            assert_eq!(sanitize_multiline_text(written), shown, "{written:?}");
            assert_eq!(sanitize_as_line(written), shown.replace('\n', "\u{fffd}"), "{written:?}");
        }
    }

    #[test]
    fn no_line_is_a_command_of_a_ci_server() {
        for (written, shown) in [
            ("::error::x", "\u{fffd}:error::x"),
            ("a\n \u{a0}::error file=a::x\nb", "a\n \u{a0}\u{fffd}:error file=a::x\nb"),
            ("listen on ::1", "listen on ::1"),
            ("::1", "::1"),
            ("a ::error::", "a ::error::"),
            ("a ##[error]b ##vso[x]y ## [z]", "a #\u{fffd}[error]b #\u{fffd}vso[x]y ## [z]"),
            ("###[x]", "##\u{fffd}[x]"),
        ] {
            assert_eq!(sanitize_multiline_text(written), shown, "{written:?}");
        }
        assert_eq!(sanitize_as_line("r\n::error::x"), "r\u{fffd}::error::x");
        assert_eq!(sanitize_as_line("::error::x"), "\u{fffd}:error::x");
    }

    #[test]
    fn json_is_escaped_in_its_own_way() {
        let written = "{\"a\":\"\u{9b}\u{202e}\u{e0041}##[error]\",\n\"b\":1}";
        let shown = escape_unsafe_chars_in_json(written);
        assert_eq!(shown, "{\"a\":\"\\u009b\\u202e\\udb40\\udc41#\\u0023[error]\",\n\"b\":1}");
    }

    #[test]
    fn a_mark_stays_where_it_was() {
        let (shown, mark) =
            sanitize_excerpt_except_ascii_controls("\u{9b}a: \u{85}x\u{200b} # ##[error]", 5..10);
        assert_eq!(shown, "\u{fffd}a: \u{fffd}x\u{fffd} # #\u{fffd}[error]");
        assert_eq!(shown.get(mark), Some("\u{fffd}x\u{fffd}"));
        assert_eq!(sanitize_excerpt_except_ascii_controls("a\u{9b}", 3..3).1, 4..4);
        assert_eq!(sanitize_excerpt_except_ascii_controls("a", 0..1).1, 0..1);
    }
}
