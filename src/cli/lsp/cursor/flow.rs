//! Reads YAML flow style and JSON: brackets, commas and colons, over several lines.
//!
//! A bracket that is not closed, as while the user types, ends at a line that is not indented more than the key or dash
//! that the bracket belongs to.

use super::{CursorPlace, Scanner, Step, unquoted};

/// An open bracket or brace.
struct Bracket<'t> {
    is_map: bool,
    /// The index of the container of this bracket.
    container: usize,
    /// In a mapping: the key whose value follows, and the index of the container for that value.
    key: Option<(&'t str, usize)>,
    /// Offset at which the current word started.
    word: Option<usize>,
}

impl<'t> Scanner<'t> {
    /// Reads a flow collection, from its first bracket, as the value of the last key or dash. Returns where the next
    /// line starts.
    pub(super) fn read_flow(&mut self, start: usize, next: usize) -> usize {
        let container = self.innermost_container();
        let indent = self.open_nodes.last().map(|node| node.column);
        let bytes = self.text.as_bytes();
        let mut open: Vec<Bracket<'t>> = Vec::new();
        let mut at = start;
        let mut end = next;
        while at < self.end {
            let byte = bytes.get(at).copied().unwrap_or_default();
            if at >= end {
                end = self.next_line(at);
                let line = self.slice(at..end);
                let content = line.trim_start();
                let column = line.len() - content.len();
                let goes_on = content.starts_with(['}', ']']) || content.is_empty();
                if !goes_on && indent.is_some_and(|indent| column <= indent) {
                    return at;
                }
            }
            if at == self.at && !open.is_empty() && !matches!(byte, b'"' | b'\'') {
                self.record_cursor_in_flow(&open, at);
            }
            match byte {
                b'{' | b'[' => {
                    let inner = self.container_of_bracket(open.last(), container);
                    open.push(Bracket { is_map: byte == b'{', container: inner, key: None, word: None });
                }
                b'}' | b']' => {
                    if let Some(bracket) = open.pop() {
                        self.remember_flow_type_meta(&bracket, at);
                    }
                    if open.is_empty() {
                        return self.finish_line_after_flow(at + 1, end);
                    }
                    if let Some(bracket) = open.last_mut() {
                        bracket.word = None;
                    }
                }
                b',' => {
                    if let Some(bracket) = open.last_mut() {
                        let done = std::mem::replace(bracket, Bracket { key: None, word: None, ..*bracket });
                        self.remember_flow_type_meta(&done, at);
                    }
                }
                b':' if is_key_colon(bytes, at) => self.read_flow_key(open.last_mut(), at),
                b'"' | b'\'' => {
                    let close = string_end(bytes, at, end);
                    if let Some(bracket) = open.last_mut() {
                        bracket.word.get_or_insert(at);
                    }
                    if (at..=close).contains(&self.at) {
                        self.record_cursor_in_flow(&open, close);
                    }
                    at = close;
                    continue;
                }
                b'#' if at > 0 && bytes.get(at - 1).is_some_and(u8::is_ascii_whitespace) => {
                    if self.found.is_none() && (at..end).contains(&self.at) {
                        self.record_cursor_place_unless_found(
                            CursorPlace::Comment,
                            at,
                            at + self.slice(at..end).trim_end().len(),
                        );
                    }
                    at = end;
                    continue;
                }
                byte if byte.is_ascii_whitespace() => {}
                _ => {
                    if let Some(bracket) = open.last_mut() {
                        bracket.word.get_or_insert(at);
                    }
                }
            }
            at += 1;
        }
        if self.at == self.end && !open.is_empty() {
            self.record_cursor_in_flow(&open, self.end);
        }
        self.end
    }

    /// Handles the rest of the line after the last bracket: nothing, or a comment.
    fn finish_line_after_flow(&mut self, at: usize, end: usize) -> usize {
        let rest = self.slice(at..end);
        if let Some(comment) = rest.find('#').map(|comment| at + comment)
            && (comment..end).contains(&self.at)
        {
            self.record_cursor_place_unless_found(CursorPlace::Comment, comment, at + rest.trim_end().len());
        }
        if self.found.is_none() && (at..end).contains(&self.at) {
            self.found = Some((CursorPlace::Nowhere, self.at..self.at, self.innermost_container()));
        }
        end
    }

    fn read_flow_key(&mut self, bracket: Option<&mut Bracket<'t>>, at: usize) {
        let Some(bracket) = bracket.filter(|bracket| bracket.is_map && bracket.key.is_none()) else { return };
        let key = unquoted(self.slice(bracket.word.unwrap_or(at)..at));
        bracket.word = None;
        bracket.key = Some((key, self.add_container(bracket.container, Step::Key(key))));
    }

    /// Returns the container that a bracket inside of `around` opens: a new item of a list, or the value of the last
    /// key; else `outermost`.
    fn container_of_bracket(&mut self, around: Option<&Bracket<'t>>, outermost: usize) -> usize {
        match around {
            Some(list) if !list.is_map => self.add_container(list.container, Step::Item),
            Some(map) => map.key.map_or(outermost, |(_, container)| container),
            None => outermost,
        }
    }

    fn remember_flow_type_meta(&mut self, bracket: &Bracket<'t>, at: usize) {
        if let (Some((key, _)), Some(start)) = (bracket.key, bracket.word) {
            self.remember_type_meta(bracket.container, key, self.slice(start..at).trim());
        }
    }

    /// Records that the cursor is on a key or value of the innermost bracket, whose word ends at `end`.
    fn record_cursor_in_flow(&mut self, open: &[Bracket<'t>], end: usize) {
        let (None, Some(bracket)) = (&self.found, open.last()) else { return };
        let word = match bracket.word {
            Some(start) => start..(start + self.slice(start..end.max(self.at)).trim_end().len()).max(self.at),
            None => self.at..self.at,
        };
        // The rest of a word that the cursor is in.
        let rest = self.slice(word.end..self.end);
        let stop = rest.find(|letter: char| letter.is_whitespace() || ",:{}[]\"'".contains(letter));
        let word = word.start..word.end + stop.unwrap_or(rest.len());
        let found = match (bracket.key, bracket.is_map) {
            (Some((key, _)), _) => (CursorPlace::Value(key), bracket.container),
            (None, true) => (CursorPlace::Key, bracket.container),
            (None, false) => (CursorPlace::Key, self.add_container(bracket.container, Step::Item)),
        };
        self.found = Some((found.0, word, found.1));
    }
}

/// True for a colon that ends a key: followed by white space or another value, or preceded by a quoted key.
fn is_key_colon(bytes: &[u8], at: usize) -> bool {
    let after = bytes.get(at + 1).copied().unwrap_or(b' ');
    let before = at.checked_sub(1).and_then(|before| bytes.get(before)).copied().unwrap_or_default();
    after.is_ascii_whitespace() || b",{}[]\"'".contains(&after) || before == b'"' || before == b'\''
}

/// Returns the position after the closing quote of a string; `line_end` if it is not closed.
fn string_end(bytes: &[u8], start: usize, line_end: usize) -> usize {
    let quote = bytes.get(start).copied().unwrap_or_default();
    let mut at = start + 1;
    while at < line_end {
        match bytes.get(at) {
            Some(b'\\') if quote == b'"' => at += 1,
            Some(byte) if *byte == quote => return at + 1,
            Some(b'\n' | b'\r') => return at,
            _ => {}
        }
        at += 1;
    }
    line_end
}
