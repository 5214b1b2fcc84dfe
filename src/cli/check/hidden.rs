//! Errors inside of a device request that lacks `exactly:`. The API server drops the fields that belong in it, so it
//! reports their errors only after they are moved there.
//!
//! Shown in text for people only. Formats for programs contain what the API server reports.

use super::TextChecker;
use tollgate_document::doc::{self, Value};
use tollgate_document::field::{FieldPath, SegmentName};
use tollgate_document::finding::Edit;
use tollgate_document::source::list::DocumentObject;
use tollgate_engine::engine::{Diagnostic, Verdict};
use tollgate_engine::rules::{FindingLevel, RuleOrigin};
use tollgate_formats::gofmt;

/// The member of a request that was forgotten, so that its fields are one level too high.
const FORGOTTEN_MEMBER: &str = "exactly";

/// Returns the errors that the API server would report next if the fields were inside of `exactly`, located where
/// they are now. Empty if no finding is about a forgotten `exactly`.
pub(super) fn errors_hidden_by_missing_exactly(
    checker: &TextChecker<'_>,
    file: &str,
    item: &DocumentObject<'_>,
    found: &[Diagnostic],
) -> Vec<Diagnostic> {
    let edits =
        found.iter().filter_map(|diagnostic| diagnostic.finding.fix.as_ref()).flat_map(|fix| &fix.edits);
    let mut requests: Vec<(&FieldPath, &[Box<str>])> = edits
        .filter_map(|edit| match edit {
            Edit::Nest { into, key, members } if **key == *FORGOTTEN_MEMBER => {
                Some((into, members.as_slice()))
            }
            _ => None,
        })
        .collect();
    // Each of the fields has the same fix.
    requests.sort();
    requests.dedup();
    if requests.is_empty() {
        return Vec::new();
    }
    let text = nest_in_exactly(item, &requests);
    let Ok(document) = doc::parse(&text) else { return Vec::new() };
    let Verdict::Checked(errors) = checker.validate(file, document.root(), None) else {
        return Vec::new();
    };
    let inside = |mut error: Diagnostic| {
        let at = requests.iter().find_map(|(request, _)| {
            error.finding.at.without_field_after_prefix(request, FORGOTTEN_MEMBER)
        })?;
        error.finding.at = at;
        error.finding.also.clear();
        error.finding.fix = None;
        error.finding.server_at = None;
        (error.level == FindingLevel::Deny && error.origin != RuleOrigin::Lint).then_some(error)
    };
    errors.into_iter().filter_map(inside).collect()
}

/// Returns the object as JSON, with these members of each request moved into `exactly`.
fn nest_in_exactly(item: &DocumentObject<'_>, requests: &[(&FieldPath, &[Box<str>])]) -> String {
    let mut object = item.typed_value().to_json();
    for (path, members) in requests {
        let request = path.user_steps().fold(item.typed_value(), |value, step| match step {
            SegmentName::Index(index) => value.items().nth(*index).unwrap_or(Value::absent()),
            SegmentName::Field(name) | SegmentName::Key(name) => value.get(name),
        });
        let (mut kept, mut moved) = (String::new(), String::new());
        for (key, value) in request.members() {
            let is_moved = members.iter().any(|member| **member == *key.text());
            let out = if is_moved { &mut moved } else { &mut kept };
            out.push_str(if out.is_empty() { "" } else { "," });
            gofmt::push_json_string(out, key.text());
            out.push(':');
            out.push_str(&value.to_json());
        }
        let comma = if kept.is_empty() { "" } else { "," };
        let fixed = format!("{{{kept}{comma}\"{FORGOTTEN_MEMBER}\":{{{moved}}}}}");
        // Requests of the same text have the same fix.
        object = object.replace(&request.to_json(), &fixed);
    }
    object
}
