//! Finds the position of the cursor in a document: the enclosing keys and lists, and whether it is on a key or on a
//! value.
//!
//! A text being typed is invalid most of the time, so it is not parsed: the position follows from the indentation in
//! block style and from brackets in flow style and JSON, and lines that are not understood are skipped. A wrong
//! result only causes a wrong suggestion.
//!
//! Invariant: never panics, time is linear in the document, whatever the text is.

mod flow;
#[cfg(test)]
mod tests;

use std::ops::Range;

/// The step from a container to the value that contains the cursor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step<'t> {
    /// The value of this key.
    Key(&'t str),
    /// An item of a list.
    Item,
}

/// What the cursor is on: a key, a value, a comment, or text without completions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CursorPlace<'t> {
    /// A key, or an item without keys.
    Key,
    /// The value of this key.
    Value(&'t str),
    /// A comment.
    Comment,
    /// Text without completions, such as a block scalar.
    Nowhere,
}

/// The position of the cursor in the document.
#[derive(Debug)]
pub(super) struct Cursor<'t> {
    pub(super) place: CursorPlace<'t>,
    /// Byte range of the word that the cursor is in or directly after.
    pub(super) word: Range<usize>,
    /// True if the document is JSON: keys and strings are quoted.
    pub(super) is_json: bool,
    /// The containers around the cursor, outermost first.
    pub(super) containers: Vec<Container<'t>>,
}

/// A mapping or a list around the cursor.
#[derive(Clone, Debug)]
pub(super) struct Container<'t> {
    parent: usize,
    /// The step that leads to the container; `None` for the outermost.
    pub(super) step: Option<Step<'t>>,
    /// All keys of the container, including those after the cursor.
    pub(super) keys: Vec<&'t str>,
    pub(super) api_version: &'t str,
    pub(super) kind: &'t str,
}

/// Determines what is at a byte of a text, and the containers around it.
pub(super) fn find_cursor(text: &str, at: usize) -> Cursor<'_> {
    let part = document_around(text, at);
    let mut scanner = Scanner {
        text,
        end: part.end,
        at,
        containers: vec![Container::new(0, None)],
        open_nodes: Vec::new(),
        found: None,
    };
    scanner.scan(part.start);
    let (place, word, container) = scanner.found.unwrap_or((CursorPlace::Key, at..at, 0));
    let mut chain = Vec::new();
    let mut next = Some(container);
    while let Some(container) = next.and_then(|index| scanner.containers.get(index)) {
        chain.push(container.clone());
        next = container.step.map(|_| container.parent);
    }
    chain.reverse();
    let is_json = text.get(part).is_some_and(|part| part.trim_start().starts_with('{'));
    Cursor { place, word, is_json, containers: chain }
}

/// Returns the byte range of the YAML document around the cursor, between its `---` lines.
fn document_around(text: &str, at: usize) -> Range<usize> {
    let (mut start, mut line_start) = (0, 0);
    for line in text.split_inclusive('\n') {
        let next = line_start + line.len();
        if line.starts_with("---") && line_start <= at && next <= at {
            start = next;
        } else if line.starts_with("---") && line_start > at {
            return start..line_start;
        }
        line_start = next;
    }
    start..text.len()
}

impl<'t> Container<'t> {
    fn new(parent: usize, step: Option<Step<'t>>) -> Container<'t> {
        Container { parent, step, keys: Vec::new(), api_version: "", kind: "" }
    }
}

/// A key or dash whose value can continue on the next lines.
struct OpenNode {
    column: usize,
    is_item: bool,
    /// Index of the container that is its value.
    container: usize,
}

/// Reads the lines of a document, and remembers its containers, those that are open, and where the cursor is.
struct Scanner<'t> {
    text: &'t str,
    end: usize,
    at: usize,
    containers: Vec<Container<'t>>,
    open_nodes: Vec<OpenNode>,
    found: Option<(CursorPlace<'t>, Range<usize>, usize)>,
}

impl<'t> Scanner<'t> {
    fn scan(&mut self, start: usize) {
        let mut at = start;
        while at < self.end {
            at = self.read_line(at);
        }
        if self.found.is_none() && self.at >= start {
            // After the last line break.
            self.record_cursor_on_blank_line(self.at - self.line_start(self.at));
        }
    }

    /// Reads the block content that starts on this line. Returns the start of the next unread line.
    fn read_line(&mut self, start: usize) -> usize {
        let next = self.next_line(start);
        let line = self.slice(start..next).trim_end();
        let content = line.trim_start_matches(' ');
        let column = line.len() - content.len();
        let is_here = self.is_unfound_cursor_on_line(start, next);
        if content.is_empty() || is_here && self.at < start + column {
            if is_here {
                self.record_cursor_on_blank_line(self.at - start);
            }
            return next;
        }
        if content.starts_with('#') {
            if is_here {
                self.record_cursor_place_unless_found(
                    CursorPlace::Comment,
                    start + column,
                    start + line.len(),
                );
            }
            return next;
        }
        self.read_node(start, column, next)
    }

    /// Reads a key, item or value at a column of a line; returns where the next unread line starts.
    fn read_node(&mut self, line: usize, mut column: usize, next: usize) -> usize {
        let line_end = line + self.slice(line..next).trim_end().len();
        let is_here = |scanner: &Scanner<'_>| scanner.is_unfound_cursor_on_line(line, next);
        // Dashes: each opens an item.
        while let Some(rest) = self.slice(line + column..line_end).strip_prefix('-') {
            if !rest.is_empty() && !rest.starts_with(' ') {
                break;
            }
            self.close_nodes(|node| node.column > column || node.column == column && node.is_item);
            self.open_node(column, Step::Item);
            column += 1 + (rest.len() - rest.trim_start().len());
        }
        let start = line + column;
        let content = self.slice(start..line_end);
        if content.is_empty() {
            // A dash with nothing after it.
            if is_here(self) {
                self.found = Some((CursorPlace::Key, self.at..self.at, self.innermost_container()));
            }
            return next;
        }
        self.close_nodes(|node| node.column >= column);
        if content.starts_with(['{', '[']) {
            return self.read_flow(start, next);
        }
        let owner = self.innermost_container();
        let (code, comment) = split_comment(content);
        if is_here(self) && comment.is_some_and(|comment| self.at > start + comment) {
            self.record_cursor_place_unless_found(
                CursorPlace::Comment,
                start + comment.unwrap_or_default(),
                line_end,
            );
        }
        let Some(colon) = key_colon(code) else {
            // A word that will be a key, or an item that is none.
            if is_here(self) {
                self.record_cursor_place_unless_found(CursorPlace::Key, start, start + code.trim_end().len());
            }
            return next;
        };
        let key = unquoted(code.get(..colon).unwrap_or_default());
        if is_here(self) && self.at <= start + colon {
            self.record_cursor_place_unless_found(CursorPlace::Key, start, start + colon);
        }
        self.open_node(column, Step::Key(key));
        let value = code.get(colon + 1..).unwrap_or_default();
        let value_start = start + colon + 1 + (value.len() - value.trim_start().len());
        let value = value.trim();
        if value.starts_with(['{', '[']) {
            if is_here(self) && self.at <= value_start {
                self.found = Some((CursorPlace::Value(key), self.at..self.at, owner));
            }
            return self.read_flow(value_start, next);
        }
        self.remember_type_meta(owner, key, value);
        if is_here(self) {
            let start = if value.is_empty() { self.at } else { value_start.min(self.at) };
            self.record_cursor_place_unless_found(
                CursorPlace::Value(key),
                start,
                (value_start + value.len()).max(self.at),
            );
            if let Some((_, _, container)) = &mut self.found {
                *container = owner;
            }
        }
        if value.starts_with(['|', '>']) { self.skip_block_scalar(next, column) } else { next }
    }

    /// Skips the lines of a block scalar that are indented by more than `column`; returns where the next line starts.
    fn skip_block_scalar(&mut self, mut at: usize, column: usize) -> usize {
        while at < self.end {
            let next = self.next_line(at);
            let line = self.slice(at..next).trim_end();
            let indent = line.len() - line.trim_start().len();
            let is_inside = line.is_empty() || indent > column;
            if !is_inside {
                break;
            }
            let is_typed = self.at.saturating_sub(at) > column;
            if self.is_unfound_cursor_on_line(at, next) && is_typed {
                self.found = Some((CursorPlace::Nowhere, self.at..self.at, self.innermost_container()));
            }
            at = next;
        }
        at
    }

    /// Records that the cursor is at a column of a blank line, where a key may be typed.
    fn record_cursor_on_blank_line(&mut self, column: usize) {
        let around = self.open_nodes.iter().rfind(|node| node.column < column);
        let container = around.map_or(0, |node| node.container);
        self.found = Some((CursorPlace::Key, self.at..self.at, container));
    }

    /// Records that the cursor is in or after the word between two bytes, unless it was found before.
    fn record_cursor_place_unless_found(&mut self, place: CursorPlace<'t>, start: usize, end: usize) {
        if self.found.is_none() {
            let word = start..end.max(start);
            let is_inside = word.start <= self.at && self.at <= word.end;
            self.found =
                Some((place, if is_inside { word } else { self.at..self.at }, self.innermost_container()));
        }
    }

    /// True if the cursor was not found yet and is on this line. At the end of the text, it is on the last line.
    fn is_unfound_cursor_on_line(&self, line: usize, next: usize) -> bool {
        let is_last = next == self.at && next == self.end && !self.slice(line..next).ends_with('\n');
        self.found.is_none() && ((line..next).contains(&self.at) || is_last)
    }

    /// Opens a key or dash at a column. Its value can continue on the next lines.
    fn open_node(&mut self, column: usize, step: Step<'t>) {
        let container = self.add_container(self.innermost_container(), step);
        self.open_nodes.push(OpenNode { column, is_item: step == Step::Item, container });
    }

    /// Adds a container below `parent` and returns its index.
    fn add_container(&mut self, parent: usize, step: Step<'t>) -> usize {
        if let (Step::Key(key), Some(parent)) = (step, self.containers.get_mut(parent)) {
            parent.keys.push(key);
        }
        self.containers.push(Container::new(parent, Some(step)));
        self.containers.len() - 1
    }

    /// Remembers the value of `apiVersion` or `kind` in its container; other keys are ignored.
    fn remember_type_meta(&mut self, owner: usize, key: &str, value: &'t str) {
        let Some(owner) = self.containers.get_mut(owner) else { return };
        match key {
            "apiVersion" => owner.api_version = unquoted(value),
            "kind" => owner.kind = unquoted(value),
            _ => {}
        }
    }

    /// Closes the innermost open keys and dashes as long as `is_over` is true.
    fn close_nodes(&mut self, is_over: impl Fn(&OpenNode) -> bool) {
        while self.open_nodes.last().is_some_and(&is_over) {
            self.open_nodes.pop();
        }
    }

    /// Returns the index of the innermost container that is open.
    fn innermost_container(&self) -> usize {
        self.open_nodes.last().map_or(0, |node| node.container)
    }

    fn slice(&self, bytes: Range<usize>) -> &'t str {
        self.text.get(bytes).unwrap_or_default()
    }

    fn next_line(&self, at: usize) -> usize {
        self.slice(at..self.end).find('\n').map_or(self.end, |line_break| at + line_break + 1)
    }

    fn line_start(&self, at: usize) -> usize {
        self.slice(0..at).rfind('\n').map_or(0, |line_break| line_break + 1)
    }
}

/// Splits a line into its code and the position at which its comment starts; `None` without a comment.
fn split_comment(content: &str) -> (&str, Option<usize>) {
    let mut quote = None;
    let mut before = ' ';
    for (at, letter) in content.char_indices() {
        match (quote, letter) {
            (None, '"' | '\'') if before == ' ' => quote = Some(letter),
            (Some(open), letter) if letter == open && before != '\\' => quote = None,
            (None, '#') if before == ' ' || before == '\t' => {
                return (content.get(..at).unwrap_or_default(), Some(at));
            }
            _ => {}
        }
        before = letter;
    }
    (content, None)
}

/// Returns the position of the colon that ends a key; `None` if the code does not start with a key.
fn key_colon(code: &str) -> Option<usize> {
    let quote = code.chars().next().filter(|letter| matches!(letter, '"' | '\''));
    let from = match quote {
        Some(quote) => 1 + code.get(1..)?.find(quote)? + 1,
        None => 0,
    };
    let rest = code.get(from..)?;
    let is_end = |at: usize| {
        rest.get(at + 1..).is_some_and(|after| after.is_empty() || after.starts_with([' ', '\t']))
    };
    let colon = rest.match_indices(':').map(|(at, _)| at).find(|at| is_end(*at))?;
    Some(from + colon)
}

/// Returns a plain or quoted scalar without its quotes.
fn unquoted(text: &str) -> &str {
    let text = text.trim();
    let inner = |quote: char| text.strip_prefix(quote).map(|rest| rest.strip_suffix(quote).unwrap_or(rest));
    inner('"').or_else(|| inner('\'')).unwrap_or(text)
}
