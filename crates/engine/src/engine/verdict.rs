//! The verdict about one request.

use super::Diagnostic;
use crate::rules::Level;

/// The verdict about one request.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// The object is of a kind that is not checked.
    Skipped,
    /// The object was checked; without findings it is clean.
    Checked(Vec<Diagnostic>),
}

impl Verdict {
    /// Returns the findings; none if the object was skipped.
    pub fn findings(&self) -> &[Diagnostic] {
        match self {
            Verdict::Skipped => &[],
            Verdict::Checked(findings) => findings,
        }
    }

    /// True if no finding denies the request.
    pub fn allowed(&self) -> bool {
        self.findings().iter().all(|diagnostic| diagnostic.level != Level::Deny)
    }
}
