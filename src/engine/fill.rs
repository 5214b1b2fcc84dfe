//! What the mutating side adds to an object: the server's defaults, as edits and as a JSON Patch.
//!
//! An object that does not decode, or that the profile does not serve, is left alone: the validating side says why.
//! Of several profiles the first one speaks, because an object can be filled in only once.
//!
//! Invariant: the patch is as small as possible, its pointers fit the version the object came in, and filling in a
//! filled object changes nothing.

use super::{Engine, Prepared, Subject, Verb, asked, identify};
use crate::api::view::Object;
use crate::case::{AdminAccess, Case, Operation};
use crate::defaults::Edit;
use crate::doc::Change;
use crate::field::Name;
use crate::{gofmt, gotime};

impl Engine {
    /// What is to be filled in.
    pub fn fill(&self, subject: &Subject<'_>) -> Vec<Edit> {
        let identity = identify(subject.object);
        let Some(profile) = self.profiles.first() else { return Vec::new() };
        if subject.verb == Verb::Other {
            return Vec::new();
        }
        let Ok((kind, version)) = identify::served(&identity, profile, subject) else { return Vec::new() };
        let new = Prepared::read(subject.object, kind, version, profile);
        if new.broken() {
            return Vec::new();
        }
        let old = subject.old.map(|old| Prepared::read(old, kind, version, profile));
        let old = old.filter(|old| !old.broken());
        let old_doc = old.as_ref().map(|old| old.defaulted(None, profile, subject.now));
        let old_object = old.as_ref().zip(old_doc.as_ref()).map(|(old, doc)| old.object(doc));
        let mut edits = new.edits(old_object, profile, subject.now);
        if !self.policies.is_empty() && subject.verb == Verb::Create {
            let object = Object::of(kind, version, new.value());
            let case = Case {
                operation: Operation::Create,
                status: !subject.subresource.is_empty(),
                object,
                old: None,
                namespace: subject.namespace,
                admin_access: AdminAccess::Unknown,
                now: gotime::parse(subject.now).ok(),
                classes: self.classes.as_deref(),
            };
            edits.extend(self.policies.defaults(&case, &asked(subject, object, profile, case.now), profile));
        }
        edits.retain(|edit| is_written(edit, subject.subresource) && !is_void(edit, &new));
        edits
    }
}

/// True if the request writes that part of the object: the status is written by itself, and only there.
fn is_written(edit: &Edit, subresource: &str) -> bool {
    let in_status = matches!(edit.at.user_steps().next(), Some(Name::Field(name)) if &**name == "status");
    in_status == (subresource == "status")
}

/// True if the edit puts what is there already.
fn is_void(edit: &Edit, object: &Prepared<'_>) -> bool {
    let Change::Replace { node, value } = &edit.change else { return false };
    let given = object.value().doc().value(*node);
    given.to_json() == value.to_json()
}

/// The edits as an RFC 6902 patch.
pub fn patch(edits: &[Edit]) -> String {
    let mut out = String::from("[");
    for (index, edit) in edits.iter().enumerate() {
        let (op, value) = match &edit.change {
            Change::Add { value, .. } | Change::Append { value, .. } => ("add", value),
            Change::Replace { value, .. } => ("replace", value),
        };
        if index > 0 {
            out.push(',');
        }
        out.push_str("{\"op\":\"");
        out.push_str(op);
        out.push_str("\",\"path\":");
        gofmt::json_string(&mut out, &edit.at.pointer());
        out.push_str(",\"value\":");
        out.push_str(&value.to_json());
        out.push('}');
    }
    out.push(']');
    out
}
