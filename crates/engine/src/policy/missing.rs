//! Stored tolerations that an update lacks: those that a policy's defaults added and that the manifest does not have.
//!
//! Requests are compared in order, and a list lacks tolerations if it is a subsequence of the stored list. Other
//! differences are not checked here: the caller compares the whole object after the edits.
//!
//! Invariant: after the edits, each list equals the stored one.

use super::toleration::WrittenToleration;
use crate::defaults::Edit;
use crate::site;
use tollgate_api::view::{List, Object, RequestBody, Toleration, View as _};
use tollgate_document::doc::{DocChange, OwnedJsonValue, ValueKind};
use tollgate_document::field::{FieldPath, Path};

/// The tolerations of a stored list that are missing in the update.
#[derive(Clone, Debug)]
pub struct TolerationsMissingInUpdate {
    /// The edits that add the tolerations.
    pub edits: Vec<Edit>,
    /// Number of missing tolerations.
    pub count: usize,
    /// The path of the list, if it is replaced as a whole.
    rewritten_list: Option<FieldPath>,
}

impl TolerationsMissingInUpdate {
    /// True if the edit is inside of a list that these edits replace as a whole.
    pub fn replaces_list_of_edit(&self, edit: &Edit) -> bool {
        let starts = |list: &FieldPath| {
            let mut steps = edit.at.user_steps();
            list.user_steps().all(|step| steps.next() == Some(step))
        };
        self.rewritten_list.as_ref().is_some_and(starts)
    }
}

/// Returns what the tolerations of a new claim or template lack compared with the stored object, list by list; `None`
/// if no list lacks anything, or if one is not a subsequence of the stored list.
pub fn tolerations_missing_in_update(
    new: Object<'_>,
    old: Object<'_>,
) -> Option<Vec<TolerationsMissingInUpdate>> {
    let mut stored: Vec<RequestBody<'_>> = Vec::new();
    site::visit_requests_and_subrequests(old, &mut |_, request| stored.push(request));
    let mut stored = stored.into_iter();
    let (mut missing, mut is_other) = (Vec::new(), false);
    site::visit_requests_and_subrequests(new, &mut |at, request| {
        let Some(old) = stored.next().filter(|_| !is_other) else {
            is_other = true;
            return;
        };
        match missing_in_request(at, request, site::tolerations_of(old)) {
            Ok(None) => {}
            Ok(Some(list)) => missing.push(list),
            Err(NotASubsequence) => is_other = true,
        }
    });
    (!is_other && stored.next().is_none() && !missing.is_empty()).then_some(missing)
}

/// The tolerations of a request are not a subsequence of the stored ones, so that the update changes more than it
/// omits.
struct NotASubsequence;

/// Returns the stored tolerations that a request lacks; `None` if it lacks none.
fn missing_in_request(
    at: &Path<'_>,
    request: RequestBody<'_>,
    stored: List<'_, Toleration<'_>>,
) -> Result<Option<TolerationsMissingInUpdate>, NotASubsequence> {
    let list = site::tolerations_of(request);
    let mut given = list.iter().peekable();
    let mut missing: Vec<Toleration<'_>> = Vec::new();
    let mut is_prefix = true;
    for old in stored.iter() {
        if given.next_if(|new| stored_form(*new) == stored_form(old)).is_some() {
            is_prefix &= missing.is_empty();
        } else {
            missing.push(old);
        }
    }
    if given.next().is_some() {
        return Err(NotASubsequence);
    }
    if missing.is_empty() {
        return Ok(None);
    }
    let (count, list_at) = (missing.len(), at.field("tolerations"));
    if is_prefix && list.value().kind() == ValueKind::Array {
        let edits = missing.into_iter().enumerate().map(|(index, toleration)| {
            let change = DocChange::Append {
                list: list.value().index(),
                value: stored_form(toleration).to_new_json(),
            };
            Edit { at: list_at.index(list.len() + index).owned(), change }
        });
        return Ok(Some(TolerationsMissingInUpdate { edits: edits.collect(), count, rewritten_list: None }));
    }
    let value =
        OwnedJsonValue::List(stored.iter().map(|toleration| stored_form(toleration).to_new_json()).collect());
    let change = if list.value().exists() {
        DocChange::Replace { node: list.value().index(), value }
    } else {
        DocChange::Add { object: request.json().index(), key: "tolerations", value }
    };
    let edit = Edit { at: list_at.owned(), change };
    Ok(Some(TolerationsMissingInUpdate { edits: vec![edit], count, rewritten_list: Some(list_at.owned()) }))
}

/// Returns a toleration as the server stores it: with its operator filled in.
fn stored_form(toleration: Toleration<'_>) -> WrittenToleration {
    WrittenToleration::read_with_default_operator(toleration.json())
}
