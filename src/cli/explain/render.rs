//! A rule's page for a terminal: wrapped to its width, with headings, code and emphasis styled instead of marked.
//!
//! Knows the Markdown that rule pages use: headings, paragraphs, lists, tables, fenced code, `code`, **bold** and
//! links.
//!
//! Invariant: all words stay, except paths to other pages. The output has no Markdown marks, except that without
//! colours code stays between backticks, as in messages. Code blocks keep their lines, so that they can be copied.

use std::borrow::Cow;

/// Maximum width of text in columns, because longer lines are hard to read.
pub(super) const MAX_WIDTH: usize = 100;
/// Minimum width of text in columns; a narrower terminal wraps by itself.
const MIN_WIDTH: usize = 30;
const CODE_INDENT: &str = "    ";

/// Width and colors for rendering a page.
#[derive(Clone, Copy, Debug)]
pub(super) struct RenderStyle {
    /// Columns of the terminal.
    pub(super) width: usize,
    /// True if colors may be used.
    pub(super) styled: bool,
}

/// Renders a Markdown page as text for a terminal.
pub(super) fn render_page(page: &str, style: RenderStyle) -> String {
    let style = RenderStyle { width: style.width.clamp(MIN_WIDTH, MAX_WIDTH), ..style };
    let mut out = String::with_capacity(page.len() + 256);
    let mut paragraph = Paragraph { text: String::new(), first: "", rest: "" };
    let mut table = Vec::new();
    let mut in_code = false;
    for line in page.lines() {
        let is_row = !in_code && line.starts_with('|');
        if !is_row {
            push_table(&mut out, &std::mem::take(&mut table), style);
        }
        let is_fence = line.starts_with("```");
        let is_blank = line.trim().is_empty();
        let heading = line.trim_start_matches('#');
        let is_heading = heading.len() < line.len() && heading.starts_with(' ');
        let item = line.strip_prefix("- ");
        if is_row || is_fence || in_code || is_blank || is_heading || item.is_some() {
            paragraph.render_wrapped_and_clear(&mut out, style);
        }
        if is_row {
            table.push(row_cells(line));
        } else if is_fence {
            in_code = !in_code;
        } else if in_code {
            out.extend([CODE_INDENT, &style.paint(line, CODE_COLOR), "\n"]);
        } else if is_heading {
            out.extend([&*style.paint(heading.trim(), BOLD), "\n"]);
        } else if is_blank {
            out.push('\n');
        } else if let Some(item) = item {
            paragraph = Paragraph { text: item.to_owned(), first: "- ", rest: "  " };
        } else {
            if !paragraph.text.is_empty() {
                paragraph.text.push(' ');
            }
            paragraph.text.push_str(line.trim());
        }
    }
    paragraph.render_wrapped_and_clear(&mut out, style);
    push_table(&mut out, &table, style);
    out
}

const BOLD: &str = "\x1b[1m";
const CODE_COLOR: &str = "\x1b[36m";

impl RenderStyle {
    fn paint<'t>(self, text: &'t str, colour: &str) -> Cow<'t, str> {
        if self.styled && !text.is_empty() { format!("{colour}{text}\x1b[0m").into() } else { text.into() }
    }
}

/// Text of a paragraph or list item that is wrapped as a whole, with the prefixes of its first line and of the
/// rest.
struct Paragraph {
    text: String,
    first: &'static str,
    rest: &'static str,
}

impl Paragraph {
    fn render_wrapped_and_clear(&mut self, out: &mut String, style: RenderStyle) {
        let text = std::mem::take(&mut self.text);
        let (mut prefix, rest) = (std::mem::take(&mut self.first), std::mem::take(&mut self.rest));
        for line in wrap_and_render_markdown_words(&text, style.width - prefix.len(), style) {
            out.extend([prefix, &line.text, "\n"]);
            prefix = rest;
        }
    }
}

/// A line of wrapped text.
struct WrappedLine {
    text: String,
    /// Its width in columns, without the codes of colours.
    width: usize,
}

/// Wraps the text to `width` columns. A longer word gets its own line.
fn wrap_and_render_markdown_words(text: &str, width: usize, style: RenderStyle) -> Vec<WrappedLine> {
    let mut lines: Vec<WrappedLine> = Vec::new();
    for word in words_keeping_markup_spans_whole(text) {
        let (shown, word_width) = (render_inline(word, style), rendered_width(word, style));
        match lines.last_mut().filter(|line| line.width + 1 + word_width <= width) {
            Some(line) => {
                line.text.push(' ');
                line.text.push_str(&shown);
                line.width += 1 + word_width;
            }
            None => lines.push(WrappedLine { text: shown, width: word_width }),
        }
    }
    lines
}

/// The cells of a Markdown table row: `| a | b |`. A bar in a cell is written `\|`.
fn row_cells(row: &str) -> Vec<String> {
    let row = row.replace("\\|", "\0");
    let row = row.trim().trim_start_matches('|').trim_end_matches('|');
    row.split('|').map(|cell| cell.trim().replace('\0', "|")).collect()
}

const COLUMN_GAP: &str = "  ";
/// Minimum width of a column whose cells are longer; if the terminal has less room, rows are printed as list
/// items.
const MIN_COLUMN_WIDTH: usize = 10;

/// Appends a table. Each column is as wide as its longest cell, or less if the terminal is narrow; then cells are
/// wrapped.
fn push_table(out: &mut String, rows: &[Vec<String>], style: RenderStyle) {
    let is_row = |row: &&Vec<String>| {
        !row.iter().all(|cell| cell.contains('-') && cell.chars().all(|letter| "-:".contains(letter)))
    };
    let rows: Vec<&Vec<String>> = rows.iter().filter(is_row).collect();
    let columns = rows.iter().map(|row| row.len()).max().unwrap_or_default();
    if columns == 0 {
        return;
    }
    let widest = |column: usize, width: fn(&str, RenderStyle) -> usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| width(cell, style)).max().unwrap_or_default()
    };
    let natural: Vec<usize> = (0..columns).map(|column| widest(column, rendered_width)).collect();
    let mut widths: Vec<usize> = (0..columns).map(|column| widest(column, longest_word_width)).collect();
    let gaps = COLUMN_GAP.len() * (columns - 1);
    let mut rest = style.width.saturating_sub(gaps + widths.iter().sum::<usize>());
    // What is left goes to those that need it, in equal parts.
    loop {
        let needy = widths.iter().zip(&natural).filter(|(width, natural)| width < natural).count();
        let Some(share) = rest.checked_div(needy).filter(|_| rest > 0) else { break };
        for (width, natural) in widths.iter_mut().zip(&natural) {
            let more = natural.saturating_sub(*width).min(share.max(1)).min(rest);
            *width += more;
            rest -= more;
        }
    }
    let is_narrow = |(width, natural): (&usize, &usize)| *width < MIN_COLUMN_WIDTH.min(*natural);
    if gaps + widths.iter().sum::<usize>() > style.width || widths.iter().zip(&natural).any(is_narrow) {
        return push_rows_as_items(out, &rows, style);
    }
    for (number, row) in rows.iter().enumerate() {
        let mut cells: Vec<_> = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| wrap_and_render_markdown_words(cell, *width, style).into_iter())
            .collect();
        for _ in 0..cells.iter().map(ExactSizeIterator::len).max().unwrap_or_default() {
            let mut line = String::new();
            for (cell, width) in cells.iter_mut().zip(&widths) {
                let part = cell.next().unwrap_or(WrappedLine { text: String::new(), width: 0 });
                line.push_str(&if number == 0 {
                    style.paint(&part.text, BOLD)
                } else {
                    part.text.as_str().into()
                });
                line.push_str(&" ".repeat(width.saturating_sub(part.width)));
                line.push_str(COLUMN_GAP);
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        if number == 0 && !style.styled {
            let line: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
            out.push_str(&line.join(COLUMN_GAP));
            out.push('\n');
        }
    }
}

/// Appends a table that is too wide for the terminal: a list item for each row, with the names of its columns.
fn push_rows_as_items(out: &mut String, rows: &[&Vec<String>], style: RenderStyle) {
    let Some((header, rows)) = rows.split_first() else { return };
    for row in rows {
        for (number, (name, cell)) in header.iter().zip(row.iter()).enumerate() {
            let text = if name.is_empty() { cell.clone() } else { format!("{name}: {cell}") };
            let first = if number == 0 { "- " } else { "  " };
            Paragraph { text, first, rest: "  " }.render_wrapped_and_clear(out, style);
        }
    }
}

fn longest_word_width(text: &str, style: RenderStyle) -> usize {
    words_keeping_markup_spans_whole(text).map(|word| rendered_width(word, style)).max().unwrap_or_default()
}

/// Splits a text into words. A span of code or bold text, or a link, is one word.
fn words_keeping_markup_spans_whole(text: &str) -> impl Iterator<Item = &str> {
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
                    '[' if !in_code && leading_link(rest.get(at..).unwrap_or_default()).is_some() => {
                        in_link = true
                    }
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

/// Returns the columns that a word takes when rendered.
fn rendered_width(word: &str, style: RenderStyle) -> usize {
    render_inline(word, RenderStyle { styled: false, ..style }).chars().count()
        // Without colours the marks of code stay.
        - if style.styled { word.matches('`').count() } else { 0 }
}

/// Parses `[text](target)` at the start: text, target, and what follows. `None` if there is no link.
fn leading_link(text: &str) -> Option<(&str, &str, &str)> {
    let (label, rest) = text.strip_prefix('[')?.split_once("](")?;
    let (target, rest) = rest.split_once(')')?;
    (!label.contains(['[', ']']) && !target.contains(' ')).then_some((label, target, rest))
}

/// Renders code, bold text and links within a line.
pub(super) fn render_inline(text: &str, style: RenderStyle) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        if let Some((code, after)) = rest.strip_prefix('`').and_then(|rest| rest.split_once('`')) {
            if style.styled {
                out.push_str(&style.paint(code, CODE_COLOR));
            } else {
                out.extend(["`", code, "`"]);
            }
            rest = after;
        } else if let Some((bold, after)) = rest.strip_prefix("**").and_then(|rest| rest.split_once("**")) {
            out.push_str(&style.paint(bold, BOLD));
            rest = after;
        } else if let Some((label, target, after)) = leading_link(rest) {
            out.push_str(&render_inline(label, style));
            // A path from one page to another leads nowhere from a terminal.
            if target.contains("://") {
                out.extend([" (", target, ")"]);
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
    use std::collections::HashSet;

    use super::{RenderStyle, render_page};
    use crate::pages::rule_page;
    use tollgate_engine::rules;

    #[test]
    fn a_page_is_wrapped_and_styled() {
        let page = "# some-rule\n\n**lint · warn** Says `a b` about\nsomething that is long enough for [two](../x.md) lines\nand [more](https://a.b).\n\n- an\n  item\n\n```yaml\na: `b`\n```\n";
        let plain = "some-rule\n\nlint · warn Says `a b` about something\nthat is long enough for two lines and\nmore (https://a.b).\n\n- an item\n\n    a: `b`\n";
        assert_eq!(render_page(page, RenderStyle { width: 40, styled: false }), plain);
        let styled = render_page(page, RenderStyle { width: 40, styled: true });
        assert!(styled.starts_with(
            "\x1b[1msome-rule\x1b[0m\n\n\x1b[1mlint · warn\x1b[0m Says \x1b[36ma b\x1b[0m about"
        ));
        assert!(styled.contains("    \x1b[36ma: `b`\x1b[0m\n"));
    }

    #[test]
    fn a_table_has_columns() {
        let page = "| release | what `v1` has |\n|---|:---|\n| 1.33 | none |\n| 1.34 to 1.36 | a \\| b, and a longer text [here](x.md) |\n\nMore.\n";
        let narrow = "release       what `v1` has\n------------  ----------------\n1.33          none\n1.34 to 1.36  a | b, and a\n              longer text here\n\nMore.\n";
        let plain = render_page(page, RenderStyle { width: 30, styled: false });
        assert_eq!(plain, narrow);
        let page_of_long_words = page.replace("none", "a-word-that-fits-into-no-column");
        let records = "- release: 1.33\n  what `v1` has:\n  a-word-that-fits-into-no-column\n- release: 1.34 to 1.36\n  what `v1` has: a | b, and a\n  longer text here\n\nMore.\n";
        assert_eq!(render_page(&page_of_long_words, RenderStyle { width: 30, styled: false }), records);
        let styled = render_page(page, RenderStyle { width: 80, styled: true });
        let wide = "\x1b[1mrelease\x1b[0m       \x1b[1mwhat \x1b[36mv1\x1b[0m has\x1b[0m\n1.33          none\n1.34 to 1.36  a | b, and a longer text here\n\nMore.\n";
        assert_eq!(styled, wide);
    }

    #[test]
    fn no_page_loses_a_word_or_runs_over() {
        let letters =
            |text: &str| -> String { text.chars().filter(|letter| letter.is_alphanumeric()).collect() };
        let path = regex::Regex::new(r"\]\([^):]*\)").expect("a pattern");
        for rule in rules::all() {
            let code: Vec<&str> = rule_page(rule).lines().filter(|line| line.starts_with("```")).collect();
            let without_fences: String =
                rule_page(rule).lines().filter(|line| !code.contains(line)).collect::<Vec<_>>().join("\n");
            let without_fences = path.replace_all(&without_fences, "");
            let tables = |line: &&str| line.starts_with('|');
            let without_tables: Vec<&str> = without_fences.lines().filter(|line| !tables(line)).collect();
            let prose: Vec<&str> = rule_page(rule).lines().filter(|line| !tables(line)).collect();
            for width in [40, 80, 500] {
                let style = RenderStyle { width, styled: false };
                let ordered = render_page(&prose.join("\n"), style);
                assert_eq!(letters(&ordered), letters(&without_tables.join("\n")), "{} at {width}", rule.id);
                // The words of a table are in another order, and its header may be repeated.
                let text = render_page(rule_page(rule), style);
                let shown: HashSet<String> = text.split_whitespace().map(letters).collect();
                for word in without_fences.split_whitespace().map(letters) {
                    assert!(shown.contains(&word), "{} at {width}: {word}", rule.id);
                }
                assert!(!text.contains("](") && !text.contains("**") && !text.contains("```"), "{text}");
                assert!(!text.lines().any(|line| line.starts_with(['|', '#'])), "{text}");
                let is_wide = |line: &str| line.chars().count() > width.min(super::MAX_WIDTH);
                // A cell can be no narrower than its longest word.
                assert!(
                    width < 80
                        || !text
                            .lines()
                            .any(|line| is_wide(line) && line.contains("  ") && !line.starts_with("    ")),
                    "{text}"
                );
                for line in ordered.lines().filter(|line| !line.starts_with(' ')) {
                    let is_one_word = super::words_keeping_markup_spans_whole(line.trim_start_matches("- "))
                        .nth(1)
                        .is_none();
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
