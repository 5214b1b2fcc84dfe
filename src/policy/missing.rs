//! Tolerations that are stored and that an update lacks: what a policy's defaults added, and its owner's file has not.
//!
//! Requests are compared in their order, and a list lacks something if what it has comes in the same order in the stored
//! one. Whether anything else differs is not seen here: whoever asks compares the whole once these are back.
//!
//! Invariant: with the edits made, each list is the stored one.

use crate::api::view::{List, Object, RequestBody, Toleration, View as _};
use crate::defaults::Edit;
use crate::doc::{Change, Kind, New};
use crate::field::{FieldPath, Path};
use crate::site;

/// What one list of tolerations lacks.
#[derive(Clone, Debug)]
pub struct MissingTolerations {
    /// What puts it back.
    pub edits: Vec<Edit>,
    /// How many there are.
    pub count: usize,
    /// The list is written anew as a whole, and where.
    anew: Option<FieldPath>,
}

impl MissingTolerations {
    /// True if an edit is of a list that is written anew.
    pub fn replaces(&self, edit: &Edit) -> bool {
        let starts = |list: &FieldPath| {
            let mut steps = edit.at.user_steps();
            list.user_steps().all(|step| steps.next() == Some(step))
        };
        self.anew.as_ref().is_some_and(starts)
    }
}

/// What the claim or template lacks of the stored one; `None` if no list lacks anything, or one has something else.
pub fn missing_tolerations(new: Object<'_>, old: Object<'_>) -> Option<Vec<MissingTolerations>> {
    let mut stored: Vec<RequestBody<'_>> = Vec::new();
    site::requests(old, &mut |_, request| stored.push(request));
    let mut stored = stored.into_iter();
    let (mut missing, mut is_other) = (Vec::new(), false);
    site::requests(new, &mut |at, request| {
        let Some(old) = stored.next().filter(|_| !is_other) else {
            is_other = true;
            return;
        };
        match lacking(at, request, site::tolerations_of(old)) {
            Ok(None) => {}
            Ok(Some(list)) => missing.push(list),
            Err(Other) => is_other = true,
        }
    });
    (!is_other && stored.next().is_none() && !missing.is_empty()).then_some(missing)
}

/// The list has something that the stored one has not.
struct Other;

fn lacking(
    at: &Path<'_>,
    request: RequestBody<'_>,
    stored: List<'_, Toleration<'_>>,
) -> Result<Option<MissingTolerations>, Other> {
    let list = site::tolerations_of(request);
    let mut given = list.iter().peekable();
    let mut lacks: Vec<Toleration<'_>> = Vec::new();
    let mut is_begun = true;
    for old in stored.iter() {
        if given.next_if(|new| is_same(*new, old)).is_some() {
            is_begun &= lacks.is_empty();
        } else {
            lacks.push(old);
        }
    }
    if given.next().is_some() {
        return Err(Other);
    }
    if lacks.is_empty() {
        return Ok(None);
    }
    let (count, list_at) = (lacks.len(), at.field("tolerations"));
    if is_begun && list.value().kind() == Kind::Array {
        let edits = lacks.into_iter().enumerate().map(|(index, toleration)| {
            let change = Change::Append { list: list.value().index(), value: written(toleration) };
            Edit { at: list_at.index(list.len() + index).owned(), change }
        });
        return Ok(Some(MissingTolerations { edits: edits.collect(), count, anew: None }));
    }
    let value = New::List(stored.iter().map(written).collect());
    let change = if list.value().exists() {
        Change::Replace { node: list.value().index(), value }
    } else {
        Change::Add { object: request.value().index(), key: "tolerations", value }
    };
    let edit = Edit { at: list_at.owned(), change };
    Ok(Some(MissingTolerations { edits: vec![edit], count, anew: Some(list_at.owned()) }))
}

/// The operator as the server fills it in.
fn operator(toleration: Toleration<'_>) -> &str {
    match toleration.operator() {
        "" => "Equal",
        given => given,
    }
}

fn is_same(new: Toleration<'_>, old: Toleration<'_>) -> bool {
    operator(new) == operator(old)
        && (new.key(), new.value(), new.effect()) == (old.key(), old.value(), old.effect())
        && new.toleration_seconds() == old.toleration_seconds()
}

fn written(toleration: Toleration<'_>) -> New {
    let texts = [
        ("key", toleration.key()),
        ("operator", operator(toleration)),
        ("value", toleration.value()),
        ("effect", toleration.effect()),
    ];
    let given = texts.into_iter().filter(|(_, text)| !text.is_empty());
    let mut fields: Vec<(&'static str, New)> = given.map(|(name, text)| (name, New::str(text))).collect();
    fields.extend(toleration.toleration_seconds().map(|seconds| ("tolerationSeconds", New::Int(seconds))));
    New::Object(fields)
}
