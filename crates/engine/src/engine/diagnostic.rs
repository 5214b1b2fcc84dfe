//! The message of a diagnostic, which all reports and responses share.

use std::fmt;

use super::Diagnostic;
use tollgate_document::finding::Finding;

impl Diagnostic {
    /// A finding with the origin and the level of its rule.
    pub fn new(finding: Finding, profiles: Vec<&'static str>) -> Diagnostic {
        let (origin, level) = (finding.rule.origin, finding.rule.level);
        Diagnostic { finding, origin, level, profiles, policy: None }
    }

    /// Returns the message without the field path: in the API server's words for findings of the API server, in plain
    /// words for all others.
    pub fn message_without_path(&self) -> String {
        self.finding.message_without_path(self.origin.message_style())
    }
}

/// Writes `field: body`.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.finding.message_with_path(self.origin.message_style()))
    }
}
