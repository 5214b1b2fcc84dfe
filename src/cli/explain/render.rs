//! A rule's page for a terminal: wrapped to its width, with headings, code and emphasis styled instead of marked.
//!
//! Knows the Markdown that rule pages use: headings, paragraphs, lists, tables, fenced code, `code`, **bold** and links.
//!
//! Invariant: no word is lost but for paths to other pages, and code keeps its lines, so that it can be copied.

use std::borrow::Cow;

/// Widest text: longer lines are hard to read.
pub(super) const MAX_WIDTH: usize = 100;
/// Narrowest text: below that, a terminal wraps by itself.
const MIN_WIDTH: usize = 30;
const CODE_INDENT: &str = "    ";

/// How to render.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    /// Columns of the terminal.
    pub(super) width: usize,
    /// Colours may be used.
    pub(super) styled: bool,
}

/// The page as text.
pub(super) fn render(page: &str, style: Style) -> String {
    let style = Style { width: style.width.clamp(MIN_WIDTH, MAX_WIDTH), ..style };
    let mut out = String::with_capacity(page.len() + 256);
    let mut paragraph = Paragraph { text: String::new(), first: "", rest: "" };
    let mut in_code = false;
    for line in page.lines() {
        let fence = line.starts_with("```");
        if fence || in_code {
            paragraph.flush(&mut out, style);
            if !fence {
                let code = style.paint(line, CODE);
                out.push_str(CODE_INDENT);
                out.push_str(&code);
                out.push('\n');
            }
            in_code ^= fence;
            continue;
        }
        let heading = line.trim_start_matches('#');
        if heading.len() < line.len() && heading.starts_with(' ') {
            paragraph.flush(&mut out, style);
            out.push_str(&style.paint(heading.trim(), BOLD));
            out.push('\n');
        } else if line.trim().is_empty() {
            paragraph.flush(&mut out, style);
            out.push('\n');
        } else if line.starts_with('|') {
            // A table is aligned by its author.
            paragraph.flush(&mut out, style);
            out.push_str(&inline(line, style));
            out.push('\n');
        } else if let Some(item) = line.strip_prefix("- ") {
            paragraph.flush(&mut out, style);
            paragraph = Paragraph { text: item.to_owned(), first: "- ", rest: "  " };
        } else {
            if !paragraph.text.is_empty() {
                paragraph.text.push(' ');
            }
            paragraph.text.push_str(line.trim());
        }
    }
    paragraph.flush(&mut out, style);
    out
}

const BOLD: &str = "\x1b[1m";
const CODE: &str = "\x1b[36m";

impl Style {
    fn paint<'t>(self, text: &'t str, colour: &str) -> Cow<'t, str> {
        if self.styled && !text.is_empty() { format!("{colour}{text}\x1b[0m").into() } else { text.into() }
    }
}

/// Lines that are wrapped together.
struct Paragraph {
    text: String,
    first: &'static str,
    rest: &'static str,
}

impl Paragraph {
    fn flush(&mut self, out: &mut String, style: Style) {
        let text = std::mem::take(&mut self.text);
        let (first, rest) = (std::mem::take(&mut self.first), std::mem::take(&mut self.rest));
        let mut column = 0;
        for (index, word) in words(&text).enumerate() {
            let width = shown_width(word, style);
            if index == 0 {
                out.push_str(first);
                column = first.len();
            } else if column + 1 + width > style.width {
                out.push('\n');
                out.push_str(rest);
                column = rest.len();
            } else {
                out.push(' ');
                column += 1;
            }
            out.push_str(&inline(word, style));
            column += width;
        }
        if column > 0 {
            out.push('\n');
        }
    }
}

/// The words of a text; a span of code, bold or a link is one word, so that its marks stay together.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text.trim_start();
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (mut in_code, mut in_bold, mut in_link) = (false, false, false);
        let end = rest
            .char_indices()
            .find(|&(at, letter)| {
                match letter {
                    '`' => in_code = !in_code,
                    '*' if !in_code && rest.get(at..).is_some_and(|rest| rest.starts_with("**")) => {
                        in_bold = !in_bold;
                    }
                    '[' if !in_code && link(rest.get(at..).unwrap_or_default()).is_some() => in_link = true,
                    ')' if in_link => in_link = false,
                    _ => {}
                }
                letter == ' ' && !in_code && !in_bold && !in_link
            })
            .map_or(rest.len(), |(at, _)| at);
        let (word, after) = rest.split_at_checked(end)?;
        rest = after.trim_start();
        Some(word)
    })
}

fn shown_width(word: &str, style: Style) -> usize {
    inline(word, Style { styled: false, ..style }).chars().count()
        // Without colours the marks of code stay.
        - if style.styled { word.matches('`').count() } else { 0 }
}

/// `[text](target)` at the start: text, target, and what follows.
fn link(text: &str) -> Option<(&str, &str, &str)> {
    let (label, rest) = text.strip_prefix('[')?.split_once("](")?;
    let (target, rest) = rest.split_once(')')?;
    (!label.contains(['[', ']', '`']) && !target.contains(' ')).then_some((label, target, rest))
}

/// Code, bold and links within a line.
fn inline(text: &str, style: Style) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        if let Some((code, after)) = rest.strip_prefix('`').and_then(|rest| rest.split_once('`')) {
            if style.styled {
                out.push_str(&style.paint(code, CODE));
            } else {
                out.push('`');
                out.push_str(code);
                out.push('`');
            }
            rest = after;
        } else if let Some((bold, after)) = rest.strip_prefix("**").and_then(|rest| rest.split_once("**")) {
            out.push_str(&style.paint(bold, BOLD));
            rest = after;
        } else if let Some((label, target, after)) = link(rest) {
            out.push_str(label);
            // A path from one page to another leads nowhere from a terminal.
            if target.contains("://") {
                out.push_str(" (");
                out.push_str(target);
                out.push(')');
            }
            rest = after;
        } else {
            out.push(letter);
            rest = rest.get(letter.len_utf8()..).unwrap_or_default();
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{Style, render};
    use crate::rules;

    #[test]
    fn a_page_is_wrapped_and_styled() {
        let page = "# some-rule\n\n**lint · warn** Says `a b` about\nsomething that is long enough for [two](../x.md) lines\nand [more](https://a.b).\n\n- an\n  item\n\n```yaml\na: `b`\n```\n";
        let plain = "some-rule\n\nlint · warn Says `a b` about something\nthat is long enough for two lines and\nmore (https://a.b).\n\n- an item\n\n    a: `b`\n";
        assert_eq!(render(page, Style { width: 40, styled: false }), plain);
        let styled = render(page, Style { width: 40, styled: true });
        assert!(styled.starts_with(
            "\x1b[1msome-rule\x1b[0m\n\n\x1b[1mlint · warn\x1b[0m Says \x1b[36ma b\x1b[0m about"
        ));
        assert!(styled.contains("    \x1b[36ma: `b`\x1b[0m\n"));
    }

    #[test]
    fn no_page_loses_a_word_or_runs_over() {
        let letters =
            |text: &str| -> String { text.chars().filter(|letter| letter.is_alphanumeric()).collect() };
        let path = regex::Regex::new(r"\]\([^):]*\)").expect("a pattern");
        for rule in rules::all() {
            let code: Vec<&str> = rule.doc.lines().filter(|line| line.starts_with("```")).collect();
            let without_fences: String =
                rule.doc.lines().filter(|line| !code.contains(line)).collect::<Vec<_>>().join("\n");
            let without_fences = path.replace_all(&without_fences, "");
            for width in [40, 80, 500] {
                let text = render(rule.doc, Style { width, styled: false });
                assert_eq!(letters(&text), letters(&without_fences), "{} at {width}", rule.id);
                for line in text.lines().filter(|line| !line.starts_with([' ', '|'])) {
                    let is_one_word = super::words(line.trim_start_matches("- ")).nth(1).is_none();
                    assert!(
                        line.chars().count() <= width.min(super::MAX_WIDTH) || is_one_word,
                        "{}: {line}",
                        rule.id
                    );
                }
            }
        }
    }
}
