//! Fixes of findings: which of them may be applied unasked, and what holds for several profiles.

use super::{Diagnostic, KIND};
use crate::doc::Value;
use crate::finding::{Applicability, Edit, Finding, NewValue};

/// Says of each fix whether it may be applied without being asked for.
pub(super) fn classify(findings: &mut [Finding], object: Value<'_>) {
    for fix in findings.iter_mut().filter_map(|finding| finding.fix.as_mut()) {
        // A kind that is to be corrected counts as what it becomes.
        let becomes = fix.edits.iter().find_map(|edit| match edit {
            Edit::Set { at, value: NewValue::Str(kind) } if at.pointer() == "/kind" => Some(&**kind),
            _ => None,
        });
        if !fix.is_safe_for(becomes.unwrap_or_else(|| object.field(KIND).str())) {
            fix.applicability = Applicability::Unsafe;
        }
    }
}

/// Adds a profile that finds the same. Fixes that differ leave no single right one.
pub(super) fn join(diagnostic: &mut Diagnostic, other: &Finding, profile: &'static str) {
    if diagnostic.finding.fix != other.fix {
        diagnostic.finding.fix = None;
    }
    diagnostic.profiles.push(profile);
}
