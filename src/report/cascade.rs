//! Findings that follow from another one: a forgotten `exactly:` makes every field of its request unknown.
//!
//! For text reports only: reports for programs contain every finding of the server separately.
//!
//! Invariant: a finding is folded only into a reported one that has the same level and profiles.

use super::LocatedFinding;
use tollgate_api::conform::suggest::join_with_and;
use tollgate_engine::rules::table::{REQUEST_SHAPE, UNKNOWN_FIELD};

/// Beginning of the help for an unknown field that belongs inside `exactly`.
const INSIDE_EXACTLY_HELP_PREFIX: &str = "since v1beta2, the fields of a request are in `exactly`";

/// Note for an error that the API server reports only after the cause is fixed.
pub(super) const HIDDEN_ERROR_NOTE: &str =
    "the API server reports this error after the field is moved into `exactly`";

/// True if a finding follows from another one, so that a text report mentions it there and does not show it.
pub(super) fn follows_from_other_finding(finding: &LocatedFinding, all: &[LocatedFinding]) -> bool {
    all.iter().any(|cause| follows_from_missing_exactly(finding, cause))
}

/// Returns a sentence about the findings that follow from this one: `2 more errors follow from this: the unknown
/// fields …`; `None` if there are none.
pub(super) fn describe_consequences(cause: &LocatedFinding, all: &[LocatedFinding]) -> Option<String> {
    let following: Vec<String> = all
        .iter()
        .filter(|finding| follows_from_missing_exactly(finding, cause))
        .map(|finding| {
            let field = finding.diagnostic.finding.user_path();
            let name = field.rsplit('.').next().unwrap_or_default();
            format!("`{name}` in line {}", finding.location.line)
        })
        .collect();
    match following.as_slice() {
        [] => None,
        [one] => Some(format!("1 more error follows from this: the unknown field {one}")),
        several => Some(format!(
            "{} more errors follow from this: the unknown fields {}",
            several.len(),
            join_with_and(several)
        )),
    }
}

/// True if a finding is about a field that is unknown only because `exactly` is missing, which `cause` reports.
fn follows_from_missing_exactly(finding: &LocatedFinding, cause: &LocatedFinding) -> bool {
    let (one, other) = (&finding.diagnostic, &cause.diagnostic);
    let is_pair = one.finding.rule == UNKNOWN_FIELD && other.finding.rule == REQUEST_SHAPE;
    let is_moved =
        || one.finding.help.as_deref().is_some_and(|help| help.starts_with(INSIDE_EXACTLY_HELP_PREFIX));
    let is_inside = || {
        let (field, request) = (one.finding.user_path(), other.finding.user_path());
        field.strip_prefix(request.as_str()).is_some_and(|rest| rest.starts_with('.'))
    };
    is_pair && one.level == other.level && one.profiles == other.profiles && is_moved() && is_inside()
}
