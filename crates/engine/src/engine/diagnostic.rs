//! What a diagnostic says: one form for every report and response.

use std::fmt;

use super::Diagnostic;

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
