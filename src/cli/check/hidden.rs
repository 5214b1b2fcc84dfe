//! What is wrong inside of a request whose `exactly:` was forgotten: the API server drops these fields, and so says
//! nothing about them until they are where they belong.
//!
//! For people only: programs get what the server says.

use serde_json::Value as Json;

use super::TextChecker;
use crate::doc;
use crate::engine::{Diagnostic, Verdict};
use crate::field::FieldPath;
use crate::finding::Edit;
use crate::rules::{Level, Origin};
use crate::source::list::ListedObject;

/// The member that was forgotten.
const FORGOTTEN: &str = "exactly";

/// The errors that the server would report if the fields were inside of `exactly`, at the places where they are now.
pub(super) fn errors(
    checker: &TextChecker<'_>,
    file: &str,
    item: &ListedObject<'_>,
    found: &[Diagnostic],
) -> Vec<Diagnostic> {
    let edits =
        found.iter().filter_map(|diagnostic| diagnostic.finding.fix.as_ref()).flat_map(|fix| &fix.edits);
    let mut requests: Vec<(&FieldPath, &[Box<str>])> = edits
        .filter_map(|edit| match edit {
            Edit::Nest { into, key, members } if **key == *FORGOTTEN => Some((into, members.as_slice())),
            _ => None,
        })
        .collect();
    // Each of the fields has the same fix.
    requests.sort();
    requests.dedup();
    if requests.is_empty() {
        return Vec::new();
    }
    let Some(text) = nested(item, &requests) else { return Vec::new() };
    let Ok(document) = doc::parse(&text) else { return Vec::new() };
    let Verdict::Checked(errors) = checker.validate_object(file, document.root(), None) else {
        return Vec::new();
    };
    let inside = |mut error: Diagnostic| {
        let at =
            requests.iter().find_map(|(request, _)| error.finding.at.without_step(request, FORGOTTEN))?;
        error.finding.at = at;
        error.finding.also.clear();
        error.finding.fix = None;
        error.finding.server_at = None;
        (error.level == Level::Deny && error.origin != Origin::Lint).then_some(error)
    };
    errors.into_iter().filter_map(inside).collect()
}

/// The object as JSON, with the members of these requests in `exactly`.
fn nested(item: &ListedObject<'_>, requests: &[(&FieldPath, &[Box<str>])]) -> Option<String> {
    let mut object: Json = serde_json::from_str(&item.value().to_json()).ok()?;
    for (request, members) in requests {
        let request = object.pointer_mut(&request.pointer())?.as_object_mut()?;
        let moved = members.iter().filter_map(|member| request.remove_entry(&**member)).collect();
        request.insert(FORGOTTEN.to_owned(), Json::Object(moved));
    }
    serde_json::to_string(&object).ok()
}
