//! Checks a regular expression as Go's `regexp` package (RE2 syntax) does, with Go's error texts, and translates it for
//! the `regex` crate.
//!
//! Not an engine: nothing is matched or compiled. What is counted is what Go limits: repetitions, nesting and the
//! size of the program. Go `regexp/syntax`, `parse`
//!
//! Both engines find the leftmost match by the same preferences, and their syntax is nearly the same. What differs:
//! Go's `\d`, `\w`, `\s` and `\b` know only ASCII, it has `\Q…\E` and octal escapes, a `{` that starts no repetition
//! is a literal brace, and a class has no operators.

mod class;
mod node;
mod unicode;

use std::fmt::{self, Write as _};

use node::{Group, NodeSize};

/// Maximum repetition count, including nested repetitions. Go `repeat`, `repeatIsValid`
const MAX_REPEAT: u64 = 1000;

/// A syntax error in a regular expression, with Go's message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError {
    problem: &'static str,
    /// The invalid part of the pattern.
    part: String,
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error parsing regexp: {}: `{}`", self.problem, self.part)
    }
}

/// An error with Go's words about a part of the pattern.
fn pattern_error<T>(problem: &'static str, part: &str) -> Result<T, PatternError> {
    Err(PatternError { problem, part: part.to_owned() })
}

/// The part of `from` before `rest`, which must be a suffix of it.
fn part_before<'p>(from: &'p str, rest: &str) -> &'p str {
    from.get(..from.len().saturating_sub(rest.len())).unwrap_or(from)
}

/// Parses a pattern. Returns the number of instructions of Go's program for it.
pub fn go_program_size(pattern: &str) -> Result<u64, PatternError> {
    parse_pattern(pattern).map(|parsed| parsed.size)
}

/// A pattern that Go accepts.
pub(crate) struct ParsedPattern {
    /// The pattern translated for the `regex` crate.
    pub(crate) translated: String,
    /// The number of instructions of Go's program.
    pub(crate) size: u64,
    /// The number of classes in brackets that ignore case and can contain many letters. To compile one, the `regex`
    /// crate looks up the other forms of each of its letters.
    pub(crate) large_folded_classes: u64,
}

/// Parses a pattern, and translates it for the `regex` crate.
pub(crate) fn parse_pattern(pattern: &str) -> Result<ParsedPattern, PatternError> {
    let mut parser = Parser {
        whole: pattern,
        rest: pattern,
        group: Group::default(),
        outer: Vec::new(),
        folds: false,
        large_folded_classes: 0,
        translated: String::with_capacity(pattern.len() + 16),
    };
    let mut last_repeat = None;
    while !parser.rest.is_empty() {
        let (before, length) = (parser.rest, parser.translated.len());
        last_repeat = parser.parse_element_returning_repeat_start(last_repeat)?;
        // What has no translation of its own is written alike; an empty `\Q\E` or `(?)` is nothing.
        if parser.translated.len() == length && !before.starts_with('\\') && !before.starts_with("(?") {
            parser.translated.push_str(part_before(before, parser.rest));
        }
    }
    // Each part of it may be within the limits. Go reports this before a missing parenthesis.
    let whole = parser.group.into_node();
    if let Some(problem) = whole.exceeded_limit() {
        return pattern_error(problem, pattern);
    }
    if !parser.outer.is_empty() {
        return pattern_error("missing closing )", pattern);
    }
    Ok(ParsedPattern {
        translated: parser.translated,
        size: whole.size,
        large_folded_classes: parser.large_folded_classes,
    })
}

/// Reads a pattern in Go's syntax from left to right, checks it, and translates it for the `regex` crate.
struct Parser<'p> {
    whole: &'p str,
    rest: &'p str,
    group: Group,
    /// The enclosing groups, innermost last, each with the flag to restore.
    outer: Vec<(Group, bool)>,
    /// True if letters match in either case (flag `i`).
    folds: bool,
    large_folded_classes: u64,
    /// The pattern translated for the `regex` crate.
    translated: String,
}

impl<'p> Parser<'p> {
    /// Parses one element. If it is a repetition, returns the rest of the pattern from its start; otherwise
    /// `None`.
    fn parse_element_returning_repeat_start(
        &mut self,
        last_repeat: Option<&'p str>,
    ) -> Result<Option<&'p str>, PatternError> {
        let before = self.rest;
        match before.chars().next() {
            Some('(') if before.starts_with("(?") => self.take_perl_flags_or_group()?,
            Some('(') => {
                self.skip(1);
                self.open_group(true);
            }
            Some(')') => self.close_group()?,
            Some('|') => {
                self.skip(1);
                self.group.end_alternative();
            }
            Some('[') => {
                self.rest = class::read_bracketed(before, &mut self.translated)?;
                let is_large = self.folds && class::can_be_large(part_before(before, self.rest));
                self.large_folded_classes += u64::from(is_large);
                self.push_checking_limits(NodeSize::class())?;
            }
            Some(operator @ ('*' | '+' | '?')) => {
                self.skip(1);
                self.repeat_last(before, last_repeat, |node| node.repeated_by_operator(operator))?;
                return Ok(Some(before));
            }
            Some('{') => match read_counts(before) {
                Some((low, high, after)) => {
                    self.rest = after;
                    self.repeat_counted(before, last_repeat, low, high)?;
                    return Ok(Some(before));
                }
                None => self.parse_literal_characters(1)?,
            },
            Some('\\') => self.take_escape()?,
            Some(c @ ('^' | '$' | '.')) => {
                self.skip(1);
                let is_class = c == '.';
                self.push_checking_limits(if is_class {
                    NodeSize::class()
                } else {
                    NodeSize::empty_match()
                })?;
            }
            _ => self.parse_literal_characters(1)?,
        }
        Ok(None)
    }

    /// Skips this number of bytes.
    fn skip(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or("");
    }

    /// Parses the next `count` characters as literals.
    fn parse_literal_characters(&mut self, count: usize) -> Result<(), PatternError> {
        for _ in 0..count {
            let letter = self.rest.chars().next().unwrap_or_default();
            self.skip(letter.len_utf8());
            class::push_literal(&mut self.translated, u32::from(letter));
            self.push_checking_limits(NodeSize::literal(self.folds))?;
        }
        Ok(())
    }

    /// Adds an element to the group. Fails if the element alone exceeds Go's limits; the group is checked when it ends.
    fn push_checking_limits(&mut self, node: NodeSize) -> Result<(), PatternError> {
        self.group.push(node);
        node.exceeded_limit().map_or(Ok(()), |problem| pattern_error(problem, self.whole))
    }

    /// Opens a group; `is_capture` is true for `(…)`. No function returns what a group captured, so the `regex` crate
    /// gets no captures, which take memory for each instruction.
    fn open_group(&mut self, is_capture: bool) {
        if is_capture {
            self.translated.push_str("(?:");
        }
        let outer = std::mem::replace(&mut self.group, Group::new(is_capture));
        self.outer.push((outer, self.folds));
    }

    /// Skips a parenthesis that ends a group; an error if none is open.
    fn close_group(&mut self) -> Result<(), PatternError> {
        self.skip(1);
        let Some((outer, folds)) = self.outer.pop() else { return pattern_error("unexpected )", self.whole) };
        let inner = std::mem::replace(&mut self.group, outer);
        self.folds = folds;
        self.push_checking_limits(inner.into_node())
    }

    /// Repeats the last element, after a repetition operator that starts at `before`, and returns the result. An error
    /// if there is nothing to repeat, or for a second operator such as `a**`.
    fn repeat_last(
        &mut self,
        before: &'p str,
        last_repeat: Option<&'p str>,
        repeated: impl FnOnce(NodeSize) -> NodeSize,
    ) -> Result<NodeSize, PatternError> {
        if self.rest.starts_with('?') {
            self.skip(1);
        }
        if let Some(last) = last_repeat {
            return pattern_error("invalid nested repetition operator", part_before(last, self.rest));
        }
        let Some(node) = self.group.take_last() else {
            return pattern_error("missing argument to repetition operator", part_before(before, self.rest));
        };
        let node = repeated(node);
        self.push_checking_limits(node)?;
        Ok(node)
    }

    /// Repeats the last element between `low` and `high` times; an error if the counts are too large.
    fn repeat_counted(
        &mut self,
        before: &'p str,
        last_repeat: Option<&'p str>,
        low: u64,
        high: Option<u64>,
    ) -> Result<(), PatternError> {
        if low > MAX_REPEAT || high.is_some_and(|high| high < low || high > MAX_REPEAT) {
            return pattern_error("invalid repeat count", part_before(before, self.rest));
        }
        let node = self.repeat_last(before, last_repeat, |node| node.repeated(low, high))?;
        if (low >= 2 || high.is_some_and(|high| high >= 2)) && node.copies > MAX_REPEAT {
            return pattern_error("invalid repeat count", part_before(before, self.rest));
        }
        Ok(())
    }

    /// Reads `(?P<name>`, `(?<name>`, `(?i)` or `(?i:`, and opens a group unless it only sets flags.
    fn take_perl_flags_or_group(&mut self) -> Result<(), PatternError> {
        let start = self.rest;
        let is_python = start.len() > 4 && start.starts_with("(?P<");
        if is_python || (start.len() > 3 && start.starts_with("(?<")) {
            let Some(end) = start.find('>') else { return pattern_error("invalid named capture", start) };
            let name = start.get(if is_python { 4 } else { 3 }..end).unwrap_or("");
            if name.is_empty() || !name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric()) {
                return pattern_error("invalid named capture", start.get(..=end).unwrap_or(start));
            }
            self.skip(end + 1);
            self.open_group(true);
            return Ok(());
        }
        self.skip(2);
        // Of a flag that is given twice, the last counts.
        let mut flags = ['i', 'm', 's', 'U'].map(|flag| (flag, None));
        let (mut is_negated, mut has_flag) = (false, false);
        while let Some(c) = self.rest.chars().next() {
            self.skip(c.len_utf8());
            match (c, flags.iter_mut().find(|(flag, _)| *flag == c)) {
                (_, Some((_, is_on))) => (*is_on, has_flag) = (Some(!is_negated), true),
                ('-', _) if !is_negated => (is_negated, has_flag) = (true, false),
                (':' | ')', _) if !is_negated || has_flag => {
                    let with = |wanted| flags.iter().filter(move |(_, is_on)| *is_on == Some(wanted));
                    let on: String = with(true).map(|(flag, _)| flag).collect();
                    let off: String = with(false).map(|(flag, _)| flag).collect();
                    let minus = if off.is_empty() { "" } else { "-" };
                    if c == ':' || has_flag {
                        let _ = write!(self.translated, "(?{on}{minus}{off}{c}");
                    }
                    let [(_, folds), ..] = flags;
                    if c == ':' {
                        self.open_group(false);
                    }
                    self.folds = folds.unwrap_or(self.folds);
                    return Ok(());
                }
                _ => break,
            }
        }
        pattern_error("invalid or unsupported Perl syntax", part_before(start, self.rest))
    }

    /// Parses an escape sequence.
    fn take_escape(&mut self) -> Result<(), PatternError> {
        let start = self.rest;
        match start.as_bytes().get(1) {
            Some(b'A' | b'b' | b'B' | b'z') => {
                self.skip(2);
                let anchor = part_before(start, self.rest);
                // Words are those of ASCII.
                let is_word_boundary = anchor.eq_ignore_ascii_case("\\b");
                let (open, close) = if is_word_boundary { ("(?-u:", ")") } else { ("", "") };
                self.translated.extend([open, anchor, close]);
                self.push_checking_limits(NodeSize::empty_match())
            }
            Some(b'C') => pattern_error("invalid escape sequence", "\\C"),
            Some(b'Q') => {
                let quoted = start.get(2..).unwrap_or("");
                let (literal, rest) = quoted.split_once("\\E").unwrap_or((quoted, ""));
                self.rest = quoted;
                self.parse_literal_characters(literal.chars().count())?;
                self.rest = rest;
                Ok(())
            }
            _ => {
                let node = if let Some(rest) = class::skip_escaped_class(start)? {
                    self.rest = rest;
                    self.translated.push_str(&class::translated_class(part_before(start, rest)));
                    NodeSize::class()
                } else {
                    let (code, rest) = class::read_escaped_character(start)?;
                    self.rest = rest;
                    class::push_literal(&mut self.translated, code);
                    NodeSize::literal(self.folds)
                };
                self.push_checking_limits(node)
            }
        }
    }
}

/// The counts of a repetition `{2}`, `{2,}` or `{2,5}` at the start of a text, and what follows it; `None` for anything
/// else, which is literal. The upper count is `None` if there is none.
fn read_counts(text: &str) -> Option<(u64, Option<u64>, &str)> {
    let (low, rest) = read_count(text.get(1..)?)?;
    if let Some(rest) = rest.strip_prefix('}') {
        return Some((low, Some(low), rest));
    }
    let rest = rest.strip_prefix(',')?;
    if let Some(rest) = rest.strip_prefix('}') {
        return Some((low, None, rest));
    }
    let (high, rest) = read_count(rest)?;
    Some((low, Some(high), rest.strip_prefix('}')?))
}

/// The number at the start of a text and what follows it; `None` if there is none. What does not fit into 64 bits is
/// the largest number, which is more than any repetition can have.
fn read_count(text: &str) -> Option<(u64, &str)> {
    let length = text.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, rest) = text.split_at_checked(length)?;
    if digits.is_empty() || (digits.len() > 1 && digits.starts_with('0')) {
        return None;
    }
    Some((digits.parse().unwrap_or(u64::MAX), rest))
}
