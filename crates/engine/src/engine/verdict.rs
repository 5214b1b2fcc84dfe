//! The verdict about one request.

use super::Diagnostic;
use crate::rules::Level;

/// The verdict.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// Not an object we judge.
    Skipped,
    /// Judged; no findings mean clean.
    Checked(Vec<Diagnostic>),
}

impl Verdict {
    /// The findings.
    pub fn findings(&self) -> &[Diagnostic] {
        match self {
            Verdict::Skipped => &[],
            Verdict::Checked(findings) => findings,
        }
    }

    /// True if nothing denies.
    pub fn allowed(&self) -> bool {
        self.findings().iter().all(|diagnostic| diagnostic.level != Level::Deny)
    }
}
