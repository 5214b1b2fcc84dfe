//! Finds, indents, dedents and removes whole lines of a document.

use std::ops::Range;

use super::{Replacement, ReplacementBuilder};
use crate::doc::Value;

impl ReplacementBuilder<'_> {
    /// The first byte of the line that a byte is in.
    pub(super) fn line_start(&self, at: usize) -> usize {
        self.lines.line_range_at(self.document.offset + at).start.saturating_sub(self.document.offset)
    }

    /// The end of the line that contains the byte `at`, without the line break.
    pub(super) fn line_end(&self, at: usize) -> usize {
        let end =
            self.lines.line_range_at(self.document.offset + at).end.saturating_sub(self.document.offset);
        end.min(self.source().len())
    }

    /// The line break, `\n` or `\r\n`, of the line that a byte is in, or of the line before if it is the last; `\n` if
    /// there is none.
    pub(super) fn line_break(&self, at: usize) -> &'static str {
        let after = self.source().get(self.line_end(at)..).unwrap_or_default();
        let before = self.text(0..self.line_start(at));
        if after.starts_with('\r') || after.is_empty() && before.ends_with("\r\n") { "\r\n" } else { "\n" }
    }

    /// The number of bytes before a key of a block mapping in its line; `None` if they are not all blanks and dashes.
    pub(super) fn key_column(&self, key: Value<'_>) -> Option<usize> {
        let at = Self::bytes(key).start;
        let before = self.text(self.line_start(at)..at);
        before.bytes().all(|byte| matches!(byte, b' ' | b'-')).then_some(before.len())
    }

    /// True if nothing but blanks is before a byte in its line.
    pub(super) fn begins_line(&self, at: usize) -> bool {
        self.text(self.line_start(at)..at).bytes().all(|byte| byte == b' ')
    }

    /// The starts of the lines that begin inside of `bytes`, without the line in which `bytes` begins.
    fn line_starts_after_first(&self, bytes: Range<usize>) -> impl Iterator<Item = usize> {
        let breaks = self.text(bytes.clone()).match_indices('\n');
        breaks.map(move |(at, _)| bytes.start + at + 1)
    }

    /// Indents the lines of `bytes`, except the first one and blank ones, by `by` columns.
    pub(super) fn indent_lines_after_first(&self, bytes: Range<usize>, by: usize) -> Vec<Replacement> {
        let is_blank = |start: usize| self.text(start..self.line_end(start)).trim().is_empty();
        let lines = self.line_starts_after_first(bytes).filter(|start| !is_blank(*start));
        lines.map(|start| (start..start, " ".repeat(by))).collect()
    }

    /// Removes `by` columns of indentation from the lines of `bytes` except the first one. Comments may have fewer;
    /// `None` if another line has.
    pub(super) fn dedent_lines_after_first(
        &self,
        bytes: Range<usize>,
        by: usize,
    ) -> Option<Vec<Replacement>> {
        let mut out = Vec::new();
        for start in self.line_starts_after_first(bytes) {
            let line = self.text(start..self.line_end(start));
            let has = line.len() - line.trim_start_matches(' ').len();
            let is_content = !line.trim().is_empty() && !line.trim_start().starts_with('#');
            if is_content && has < by {
                return None;
            }
            if has > 0 {
                out.push((start..start + has.min(by), String::new()));
            }
        }
        Some(out)
    }

    /// Removes the lines of `bytes`, whose value is `value`, and keeps comments. `None` if `bytes` does not begin a
    /// line, or if a comment might be part of a value.
    pub(super) fn remove_lines_keeping_comments(
        &self,
        bytes: Range<usize>,
        value: Value<'_>,
    ) -> Option<Vec<Replacement>> {
        let is_simple =
            |inner: Value<'_>| inner.node_count() > 1 || self.is_one_line_and_not_block_scalar(inner);
        if !self.begins_line(bytes.start) || !value.self_and_descendants().all(is_simple) {
            return None;
        }
        // After the last of these in a line there may be a comment.
        let ends: Vec<usize> = value.self_and_descendants().map(|inner| Self::bytes(inner).end).collect();
        let mut out: Vec<Replacement> = Vec::new();
        let first = self.line_start(bytes.start);
        for start in std::iter::once(first).chain(self.line_starts_after_first(first..bytes.end)) {
            let end = self.line_end(start);
            let next = (end + self.line_break(start).len()).min(self.source().len());
            let indent = self.text(start..end).len() - self.text(start..end).trim_start_matches(' ').len();
            let content_end = ends.iter().copied().filter(|at| (start..=end).contains(at)).max();
            let tail_start = content_end.unwrap_or(start + indent);
            let tail = self.text(tail_start..end);
            let rest = tail.trim_start_matches([' ', '-', ':']);
            if content_end.is_none() && tail.starts_with('#') {
                continue;
            }
            if rest.starts_with('#') && tail.len() > rest.len() {
                out.push((start + indent..end - rest.len(), String::new()));
                continue;
            }
            // A key whose value begins in the next line is not among the ends of values in this one.
            if rest.contains('#') || bytes.end <= end && !rest.trim().is_empty() {
                return None;
            }
            match out.last_mut() {
                Some((last, _)) if last.end == start => last.end = next,
                _ => out.push((start..next, String::new())),
            }
        }
        Some(out)
    }
}
