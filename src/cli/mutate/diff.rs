//! A unified diff of two texts, by lines, with three lines of context.
//!
//! Myers' greedy algorithm on what is left after the common beginning and end. Texts that differ in more than
//! [`MAX_EDITS`] lines are shown as one replacement.

use std::fmt::Write as _;

const CONTEXT: usize = 3;
const MAX_EDITS: usize = 2000;

/// What happens to a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Op {
    Keep,
    Remove,
    Add,
}

/// The diff, empty if the texts are equal.
pub(super) fn unified(name: &str, old: &str, new: &str) -> String {
    if old == new {
        return String::new();
    }
    let (old, new): (Vec<&str>, Vec<&str>) =
        (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
    let ops = script(&old, &new);
    let mut out = format!("--- {name}\n+++ {name}\n");
    for hunk in hunks(&ops) {
        write_hunk(&mut out, &old, &new, &ops, hunk);
    }
    out
}

/// Ranges of the script that are printed together.
fn hunks(ops: &[Op]) -> Vec<(usize, usize)> {
    let mut hunks: Vec<(usize, usize)> = Vec::new();
    for (at, _) in ops.iter().enumerate().filter(|(_, op)| **op != Op::Keep) {
        let (from, to) = (at.saturating_sub(CONTEXT), (at + CONTEXT + 1).min(ops.len()));
        match hunks.last_mut() {
            Some((_, end)) if from <= *end => *end = to,
            _ => hunks.push((from, to)),
        }
    }
    hunks
}

fn write_hunk(out: &mut String, old: &[&str], new: &[&str], ops: &[Op], (from, to): (usize, usize)) {
    let count = |ops: &[Op], skipped: Op| ops.iter().filter(|op| **op != skipped).count();
    let (before, inside) = (ops.get(..from).unwrap_or_default(), ops.get(from..to).unwrap_or_default());
    let (mut old_at, mut new_at) = (count(before, Op::Add), count(before, Op::Remove));
    let (old_count, new_count) = (count(inside, Op::Add), count(inside, Op::Remove));
    let start = |at: usize, count: usize| if count == 0 { at } else { at + 1 };
    let (old_start, new_start) = (start(old_at, old_count), start(new_at, new_count));
    _ = writeln!(out, "@@ -{old_start},{old_count} +{new_start},{new_count} @@");
    for op in inside {
        let (sign, line) = match op {
            Op::Keep => (' ', old.get(old_at)),
            Op::Remove => ('-', old.get(old_at)),
            Op::Add => ('+', new.get(new_at)),
        };
        old_at += usize::from(*op != Op::Add);
        new_at += usize::from(*op != Op::Remove);
        let line = line.copied().unwrap_or_default();
        out.push(sign);
        out.push_str(line);
        if !line.ends_with('\n') {
            out.push_str("\n\\ No newline at end of file\n");
        }
    }
}

fn script(old: &[&str], new: &[&str]) -> Vec<Op> {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old, new) = (old.get(head..).unwrap_or_default(), new.get(head..).unwrap_or_default());
    let tail = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
    let old = old.get(..old.len() - tail).unwrap_or_default();
    let new = new.get(..new.len() - tail).unwrap_or_default();
    let middle = shortest(old, new)
        .unwrap_or_else(|| [vec![Op::Remove; old.len()], vec![Op::Add; new.len()]].concat());
    [vec![Op::Keep; head], middle, vec![Op::Keep; tail]].concat()
}

/// The shortest script, unless it is too long.
fn shortest(old: &[&str], new: &[&str]) -> Option<Vec<Op>> {
    let most = (old.len() + new.len()).min(MAX_EDITS);
    // reach[k + most]: the furthest line of `old` on diagonal k = old − new.
    let mut reach = vec![0_usize; 2 * most + 2];
    let mut trace: Vec<Vec<usize>> = Vec::new();
    let cell = |reach: &[usize], k: isize| reach.get(k.saturating_add_unsigned(most).unsigned_abs()).copied();
    for edits in 0..=most {
        let bound = edits.cast_signed();
        trace.push(reach.clone());
        for k in (-bound..=bound).step_by(2) {
            let down = k == -bound || k != bound && cell(&reach, k - 1)? < cell(&reach, k + 1)?;
            let mut x = if down { cell(&reach, k + 1)? } else { cell(&reach, k - 1)? + 1 };
            let mut y = x.checked_add_signed(-k)?;
            while x < old.len() && y < new.len() && old.get(x) == new.get(y) {
                (x, y) = (x + 1, y + 1);
            }
            *reach.get_mut(k.saturating_add_unsigned(most).unsigned_abs())? = x;
            if x >= old.len() && y >= new.len() {
                return backtrack(&trace, old.len(), new.len(), most);
            }
        }
    }
    None
}

fn backtrack(trace: &[Vec<usize>], mut x: usize, mut y: usize, most: usize) -> Option<Vec<Op>> {
    let mut ops = Vec::new();
    for (edits, reach) in trace.iter().enumerate().rev() {
        let bound = edits.cast_signed();
        let k = x.cast_signed() - y.cast_signed();
        let cell = |k: isize| reach.get(k.saturating_add_unsigned(most).unsigned_abs()).copied();
        let down = k == -bound || k != bound && cell(k - 1)? < cell(k + 1)?;
        let before_k = if down { k + 1 } else { k - 1 };
        let before_x = if edits == 0 { 0 } else { cell(before_k)? };
        let before_y = if edits == 0 { 0 } else { before_x.checked_add_signed(-before_k)? };
        while x > before_x && y > before_y {
            ops.push(Op::Keep);
            (x, y) = (x - 1, y - 1);
        }
        if edits > 0 {
            ops.push(if down { Op::Add } else { Op::Remove });
            (x, y) = (before_x, before_y);
        }
    }
    ops.reverse();
    Some(ops)
}

#[cfg(test)]
mod tests {
    use super::unified;

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
