//! `--fix`, `--unsafe-fixes` and `--diff`: writes the fixes of a file, or shows them as a patch.
//!
//! Fixed files are written in place; the fixed text of standard input goes to stdout, and so do the patches of
//! `--diff`. Then the report goes to stderr.

use crate::files::{self, Input};
use crate::report::Summary;
use tollgate_document::finding::Applicability;

use super::super::check::{TextChecker, TextSource};
use super::super::diff::{self, HunkHeaderLineCounts};
use super::super::fix::{FixedText, Fixer};
use super::super::outcome::Failure;

/// Flags of `validate` about fixes.
#[derive(Clone, Copy, Debug, clap::Args)]
#[command(next_help_heading = "Fixes")]
pub(super) struct FixArguments {
    /// Apply safe fixes to the files, and report the remaining findings
    #[arg(long)]
    fix: bool,

    /// Also apply fixes that might change the meaning of an object or activate a taint
    #[arg(long)]
    unsafe_fixes: bool,

    /// Print the fixes as a patch without changing files; exit 1 if there are fixes
    #[arg(long)]
    diff: bool,
}

/// Whether fixes are written or shown as a diff, and whether unsafe ones are included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct FixMode {
    applies: Applicability,
    /// True with `--diff`: prints a patch instead of writing, and fixes make the exit code 1.
    pub(super) diff: bool,
}

/// The text of an input after fixes, what is printed, and how many findings were fixed.
#[derive(Debug, Default)]
pub(super) struct FixOutcome {
    /// The text after the fixes, which is checked instead; `None` if nothing was fixed.
    pub(super) text: Option<String>,
    /// Output for stdout.
    pub(super) printed: String,
    /// Error if a file could not be written.
    pub(super) error: Option<String>,
    /// Findings that were, or would be, fixed.
    pub(super) findings: usize,
}

impl FixArguments {
    /// Returns how fixes are applied; `None` without `--fix` and `--diff`. An error for `--unsafe-fixes` alone, which
    /// has no effect.
    pub(super) fn mode(self) -> Result<Option<FixMode>, Failure> {
        let applies = if self.unsafe_fixes { Applicability::Unsafe } else { Applicability::Safe };
        let mode = (self.fix || self.diff).then_some(FixMode { applies, diff: self.diff });
        if self.unsafe_fixes && mode.is_none() {
            return Err(Failure::Usage("--unsafe-fixes requires --fix or --diff".to_owned()));
        }
        Ok(mode)
    }
}

/// Corrects the numbers of fixable findings in `summary`, the summary of this text alone: how many `--fix` would fix,
/// and how many more `--unsafe-fixes` would. Tries the fixes, because some are not applied.
pub(super) fn recount_fixable_by_trying_fixes(
    summary: &mut Summary,
    texts: TextChecker<'_>,
    source: TextSource,
    file: &str,
    text: &str,
) {
    if summary.fixable + summary.fixable_unsafely == 0 {
        return;
    }
    let fixed = |applies| Fixer { texts, applies, source }.fix(file, text).map_or(0, |fixed| fixed.findings);
    summary.fixable = fixed(Applicability::Safe);
    summary.fixable_unsafely = fixed(Applicability::Unsafe).saturating_sub(summary.fixable);
}

impl FixMode {
    /// Fixes one input: writes the file, or returns a patch or the fixed text of stdin, which the caller prints.
    pub(super) fn fix_input(
        self,
        input: &Input,
        text: &str,
        source: TextSource,
        texts: TextChecker<'_>,
    ) -> FixOutcome {
        let fixer = Fixer { texts, applies: self.applies, source };
        let name = input.name();
        let Some(FixedText { text: new, findings }) = fixer.fix(&name, text) else {
            let is_copied = *input == Input::Stdin && !self.diff;
            let printed = if is_copied { text.to_owned() } else { String::new() };
            return FixOutcome { printed, ..FixOutcome::default() };
        };
        let printed = match input {
            _ if self.diff => {
                let marked = |text: &str| input.byte_order_mark().to_owned() + text;
                diff::unified_diff(&name, &marked(text), &marked(&new), HunkHeaderLineCounts::AboveOne)
            }
            Input::Stdin => new.clone(),
            Input::File(path) => match files::replace_if_unchanged(path, text, &new) {
                Ok(()) => String::new(),
                Err(reason) => return FixOutcome { error: Some(reason), ..FixOutcome::default() },
            },
        };
        FixOutcome { text: Some(new), printed, findings, error: None }
    }

    /// Adds the fixed findings to the summary, and removes them from the number of fixable ones.
    pub(super) fn count_fixed_and_clear_fixable(self, summary: &mut Summary, outcome: &FixOutcome) {
        summary.fixed += outcome.findings;
        summary.fixed_files += usize::from(outcome.findings > 0);
        summary.is_diff = self.diff;
        summary.fixable = 0;
        if self.applies == Applicability::Unsafe {
            summary.fixable_unsafely = 0;
        }
    }
}
