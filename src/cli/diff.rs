//! A unified diff of two texts, by lines, with three lines of context.
//!
//! The comparison is the `similar` crate's: its memory is linear in the texts. Lines end at a line feed only.
//!
//! Invariant: a diff that is applied to the old text gives the new one, line ends included.

use std::fmt::Write as _;

use similar::{DiffOp, TextDiff};

const CONTEXT_LINES: usize = 3;

/// Whether the header of a hunk contains line counts of 1: `@@ -3,1 +3,1 @@` or `@@ -3 +3 @@`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum HunkHeaderLineCounts {
    /// Yes: `@@ -3,1 +3,1 @@`.
    Always,
    /// No, as in `diff -u`: `@@ -3 +3 @@`.
    AboveOne,
}

/// The unified diff from `old` to `new`; empty if they are equal.
pub(super) fn unified_diff(name: &str, old: &str, new: &str, counts: HunkHeaderLineCounts) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) =
        (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
    let diff = TextDiff::from_slices(&old, &new);
    let mut out = String::new();
    for hunk in diff.unified_diff().context_radius(CONTEXT_LINES).iter_hunks() {
        if out.is_empty() {
            // A tab ends a name with blanks, as in `diff -u` and in git.
            let end = if name.contains(' ') { "\t" } else { "" };
            _ = write!(out, "--- {name}{end}\n+++ {name}{end}\n");
        }
        write_hunk_header(&mut out, hunk.ops(), counts);
        for change in hunk.iter_changes() {
            _ = write!(out, "{}{}", change.tag(), change.value());
            if !change.value().ends_with('\n') {
                out.push_str("\n\\ No newline at end of file\n");
            }
        }
    }
    out
}

fn write_hunk_header(out: &mut String, ops: &[DiffOp], counts: HunkHeaderLineCounts) {
    let (Some(first), Some(last)) = (ops.first(), ops.last()) else { return };
    let (old, new) =
        (first.old_range().start..last.old_range().end, first.new_range().start..last.new_range().end);
    // Lines are counted from 1; an empty range names the line before it.
    let range =
        |range: std::ops::Range<usize>| match (range.start + usize::from(!range.is_empty()), range.len()) {
            (start, 1) if counts == HunkHeaderLineCounts::AboveOne => start.to_string(),
            (start, count) => format!("{start},{count}"),
        };
    _ = writeln!(out, "@@ -{} +{} @@", range(old), range(new));
}

#[cfg(test)]
mod tests {
    use super::HunkHeaderLineCounts;

    fn unified(name: &str, old: &str, new: &str) -> String {
        super::unified_diff(name, old, new, HunkHeaderLineCounts::Always)
    }

    #[test]
    fn a_count_of_one_is_left_out_as_in_diff() {
        let unified =
            |old: &str, new: &str| super::unified_diff("x", old, new, HunkHeaderLineCounts::AboveOne);
        let old = "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\n";
        let new = "a\nB\nc\nd\ne\nf\ng\nh\ni\nj\nl";
        let expected = "--- x\n+++ x\n@@ -1,5 +1,5 @@\n a\n-b\n+B\n c\n d\n e\n@@ -8,5 +8,4 @@\n h\n i\n j\n-k\n-l\n+l\n\\ No newline at end of file\n";
        assert_eq!(unified(old, new), expected);
        assert_eq!(unified(old, old), "");
        assert_eq!(unified("a\n", "a\nb\n"), "--- x\n+++ x\n@@ -1 +1,2 @@\n a\n+b\n");
        assert_eq!(unified("a\r\nb\n", "b\n"), "--- x\n+++ x\n@@ -1,2 +1 @@\n-a\r\n b\n");
    }

    #[test]
    fn a_tab_ends_a_name_with_blanks() {
        assert!(unified("a b", "a\n", "b\n").starts_with("--- a b\t\n+++ a b\t\n@@"));
    }

    #[test]
    fn added_lines_are_shown_with_their_context() {
        let old = "a\nb\nc\nd\ne\nf\ng\n";
        let new = "a\nb\nc\nd\nx\ne\nf\ng\n";
        assert_eq!(unified("n", old, new), "--- n\n+++ n\n@@ -2,6 +2,7 @@\n b\n c\n d\n+x\n e\n f\n g\n");
        assert_eq!(unified("n", old, old), "");
        let changed = "a\nB\nc\nd\ne\nf\nG";
        let expected = "--- n\n+++ n\n@@ -1,7 +1,7 @@\n a\n-b\n+B\n c\n d\n e\n f\n-g\n+G\n\\ No newline at end of file\n";
        assert_eq!(unified("n", old, changed), expected);
    }

    #[test]
    fn any_two_texts_can_be_compared() {
        for (old, new) in [("", "a\n"), ("a\n", ""), ("a\nb\nc\n", "c\nb\na\n"), ("x", "y")] {
            let diff = unified("n", old, new);
            let (mut from, mut to) = (String::new(), String::new());
            for line in diff.lines().skip(2).filter(|line| !line.starts_with("@@") && !line.starts_with('\\'))
            {
                let (sign, text) = line.split_at(1);
                if sign != "+" {
                    from = from + text + "\n";
                }
                if sign != "-" {
                    to = to + text + "\n";
                }
            }
            assert_eq!((from.trim_end(), to.trim_end()), (old.trim_end(), new.trim_end()), "{diff}");
        }
    }
}
