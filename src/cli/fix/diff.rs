//! The difference of two texts as `diff -u` and `git apply` write it.
//!
//! Lines are compared by Myers' greedy search, whose cost grows with the number of changed lines and not with the text.
//!
//! Invariant: a patch that is applied to the old text gives the new one, line ends included.

use std::fmt::Write as _;

/// Lines around a change.
const CONTEXT: usize = 3;
/// Changed lines that are searched for; past it, all lines between the first and the last change count as changed.
const MAX_CHANGES: usize = 1_000;

/// Lines of both texts that are the same, by their numbers.
type Pairs = Vec<(usize, usize)>;

/// The unified diff from `old` to `new`; empty if they are equal.
pub(in super::super) fn unified(name: &str, old: &str, new: &str) -> String {
    if old == new {
        return String::new();
    }
    let (old_lines, new_lines): (Vec<&str>, Vec<&str>) =
        (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
    let mut out = format!("--- {name}\n+++ {name}\n");
    for hunk in hunks(&common_lines(&old_lines, &new_lines), old_lines.len(), new_lines.len()) {
        hunk.write(&mut out, &old_lines, &new_lines);
    }
    out
}

/// Runs of lines: the same in both, or replaced.
#[derive(Debug)]
struct Hunk {
    old: (usize, usize),
    new: (usize, usize),
    /// Pairs inside.
    same: Pairs,
}

impl Hunk {
    fn write(&self, out: &mut String, old: &[&str], new: &[&str]) {
        let range = |(start, end): (usize, usize)| match end - start {
            1 => format!("{}", start + 1),
            0 => format!("{start},0"),
            count => format!("{},{count}", start + 1),
        };
        _ = writeln!(out, "@@ -{} +{} @@", range(self.old), range(self.new));
        let (mut at_old, mut at_new) = (self.old.0, self.new.0);
        for &(same_old, same_new) in self.same.iter().chain([&(self.old.1, self.new.1)]) {
            push(out, '-', old.get(at_old..same_old).unwrap_or_default());
            push(out, '+', new.get(at_new..same_new).unwrap_or_default());
            if same_old < self.old.1 {
                push(out, ' ', old.get(same_old..=same_old).unwrap_or_default());
            }
            (at_old, at_new) = (same_old + 1, same_new + 1);
        }
    }
}

fn push(out: &mut String, mark: char, lines: &[&str]) {
    for line in lines {
        out.push(mark);
        out.push_str(line);
        if !line.ends_with('\n') {
            out.push_str("\n\\ No newline at end of file\n");
        }
    }
}

/// Groups the changes into hunks with lines of context; changes near each other share one.
fn hunks(same: &[(usize, usize)], old_count: usize, new_count: usize) -> Vec<Hunk> {
    let mut changes: Vec<((usize, usize), (usize, usize))> = Vec::new();
    let (mut at_old, mut at_new) = (0, 0);
    for &(same_old, same_new) in same.iter().chain([&(old_count, new_count)]) {
        if (at_old, at_new) != (same_old, same_new) {
            match changes.last_mut() {
                Some((old, new)) if at_old - old.1 <= 2 * CONTEXT => {
                    old.1 = same_old;
                    new.1 = same_new;
                }
                _ => changes.push(((at_old, same_old), (at_new, same_new))),
            }
        }
        (at_old, at_new) = (same_old + 1, same_new + 1);
    }
    let with_context = |(old, new): ((usize, usize), (usize, usize))| {
        let before = CONTEXT.min(old.0);
        let after = CONTEXT.min(old_count - old.1);
        let (old, new) = ((old.0 - before, old.1 + after), (new.0 - before, new.1 + after));
        let is_inside = |pair: &&(usize, usize)| old.0 <= pair.0 && pair.0 < old.1;
        let from = same.partition_point(|pair| pair.0 < old.0);
        let inside = same.iter().skip(from).take_while(is_inside).copied().collect();
        Hunk { old, new, same: inside }
    };
    changes.into_iter().map(with_context).collect()
}

/// The lines that both texts have, in order. If too much differs, only those at the start and end.
fn common_lines(old: &[&str], new: &[&str]) -> Pairs {
    let head = old.iter().zip(new).take_while(|(one, other)| one == other).count();
    let rest = old.len().min(new.len()) - head;
    let tail =
        old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(one, other)| one == other).count();
    let middle = |lines: &[&str]| head..lines.len() - tail;
    let (inner_old, inner_new) =
        (old.get(middle(old)).unwrap_or_default(), new.get(middle(new)).unwrap_or_default());
    let mut pairs: Pairs = (0..head).map(|line| (line, line)).collect();
    let inner = shortest_edit(inner_old, inner_new).unwrap_or_default();
    pairs.extend(inner.into_iter().map(|(one, other)| (one + head, other + head)));
    pairs.extend((0..tail).rev().map(|line| (old.len() - 1 - line, new.len() - 1 - line)));
    pairs
}

/// The lines that both texts have, in order, by Myers' algorithm; `None` if more than [`MAX_CHANGES`] lines differ.
fn shortest_edit(old: &[&str], new: &[&str]) -> Option<Pairs> {
    let limit = (old.len() + new.len()).min(MAX_CHANGES);
    // By diagonal, shifted to be positive: how many old lines are read.
    let mut reached = vec![0_usize; 2 * limit + 3];
    let mut history: Vec<Vec<usize>> = Vec::new();
    let read = |reached: &[usize], at: usize| reached.get(at).copied().unwrap_or_default();
    for changes in 0..=limit {
        history.push(reached.clone());
        for step in (0..=2 * changes).step_by(2) {
            let at = limit + 1 + step - changes;
            let down = step == 0 || step < 2 * changes && read(&reached, at - 1) < read(&reached, at + 1);
            let mut x = if down { read(&reached, at + 1) } else { read(&reached, at - 1) + 1 };
            let Some(mut y) = (x + limit + 1).checked_sub(at) else { continue };
            while old.get(x).is_some_and(|line| new.get(y) == Some(line)) {
                (x, y) = (x + 1, y + 1);
            }
            if let Some(slot) = reached.get_mut(at) {
                *slot = x;
            }
            if x >= old.len() && y >= new.len() {
                return Some(walk_back(&history, limit, (old.len(), new.len())));
            }
        }
    }
    None
}

/// Follows the history of the search back from its end, and returns the pairs on the way.
fn walk_back(history: &[Vec<usize>], limit: usize, end: (usize, usize)) -> Pairs {
    let (mut x, mut y) = end;
    let mut pairs = Vec::new();
    for (changes, reached) in history.iter().enumerate().rev() {
        let read = |at: usize| reached.get(at).copied().unwrap_or_default();
        let at = x + limit + 1 - y;
        let step = at + changes - limit - 1;
        let down = step == 0 || step < 2 * changes && read(at - 1) < read(at + 1);
        let from = if down { at + 1 } else { at - 1 };
        let start_x = if changes == 0 { 0 } else { read(from) };
        let start_y = if changes == 0 { 0 } else { (start_x + limit + 1).saturating_sub(from) };
        while x > start_x && y > start_y {
            // The step itself changes one line; all others are the same.
            if changes > 0 && (x, y) == (start_x + usize::from(!down), start_y + usize::from(down)) {
                break;
            }
            (x, y) = (x - 1, y - 1);
            pairs.push((x, y));
        }
        (x, y) = (start_x, start_y);
    }
    pairs.reverse();
    pairs
}

#[cfg(test)]
mod tests {
    use super::{common_lines, unified};

    #[test]
    fn a_patch_has_the_changes_and_what_is_around_them() {
        let old = "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\n";
        let new = "a\nB\nc\nd\ne\nf\ng\nh\ni\nj\nl";
        let expected = "--- x\n+++ x\n@@ -1,5 +1,5 @@\n a\n-b\n+B\n c\n d\n e\n@@ -8,5 +8,4 @@\n h\n i\n j\n-k\n-l\n+l\n\\ No newline at end of file\n";
        assert_eq!(unified("x", old, new), expected);
        assert_eq!(unified("x", old, old), "");
        assert_eq!(unified("x", "a\n", "a\nb\n"), "--- x\n+++ x\n@@ -1 +1,2 @@\n a\n+b\n");
        assert_eq!(unified("x", "a\r\nb\n", "b\n"), "--- x\n+++ x\n@@ -1,2 +1 @@\n-a\r\n b\n");
    }

    #[test]
    fn lines_that_are_paired_are_the_same_and_in_order() {
        let mut seed = 7_u32;
        let mut next = |below: u32| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 16) % below
        };
        for _ in 0..300 {
            let letters = ["a\n", "b\n", "c\n"];
            let mut lines = || (0..next(12)).map(|_| letters[next(3) as usize]).collect::<Vec<_>>();
            let (old, new) = (lines(), lines());
            let pairs = common_lines(&old, &new);
            assert!(pairs.iter().all(|(one, other)| old[*one] == new[*other]), "{old:?} {new:?}");
            assert!(pairs.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 < two[1].1));
            // As long as the longest common subsequence.
            let mut table = vec![vec![0; new.len() + 1]; old.len() + 1];
            for i in 0..old.len() {
                for j in 0..new.len() {
                    table[i + 1][j + 1] =
                        if old[i] == new[j] { table[i][j] + 1 } else { table[i][j + 1].max(table[i + 1][j]) };
                }
            }
            assert_eq!(pairs.len(), table[old.len()][new.len()], "{old:?} {new:?}");
        }
    }
}
