//! What a diagnostic says: one form for every report and response.

use std::fmt;

use super::Diagnostic;
use crate::rules::{self, Level, Origin};
use tollgate_document::finding::RuleId;

impl Diagnostic {
    /// What stands after the path: the API server's words for its verdicts, plain ones for everything else.
    pub fn body(&self) -> String {
        self.finding.body_in(self.origin.message_style())
    }
}

/// `field: body`
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.finding.message_in(self.origin.message_style()))
    }
}

/// Whose rule it is, and its level by default.
pub(super) fn origin_and_level(rule: RuleId) -> (Origin, Level) {
    rules::find(rule.0).map_or((Origin::Upstream, Level::Deny), |rule| (rule.origin, rule.level))
}
