//! What the mutating side adds to an object: the server's defaults, as edits and as a JSON Patch.
//!
//! An object that does not decode, or that the profile does not serve, is left alone: the validating side says why.
//! Of several profiles the first one speaks, because an object can be filled in only once.
//!
//! What a policy added to a claim is not in its owner's file, and specs cannot change: an update that only lacks
//! tolerations gets them back, so that applying the same file again changes nothing.
//!
//! Invariant: the patch is as small as possible, its pointers fit the version the object came in, and filling in a
//! filled object changes nothing.

use super::{Engine, Prepared, Subject, Verb, asked, identify};
use crate::api::convert::reshaped;
use crate::api::equal;
use crate::api::view::Object;
use crate::case::{AdminAccess, Case, Operation};
use crate::defaults::{Edit, Extent};
use crate::doc::{Change, Doc, apply};
use crate::field::Name;
use crate::finding::Finding;
use crate::{gofmt, gotime, policy};

/// What the mutating side does to an object.
#[derive(Clone, Debug, Default)]
pub struct Filled {
    /// The edits.
    pub edits: Vec<Edit>,
    /// How many tolerations of the stored object were put back.
    pub put_back: usize,
}

impl Engine {
    /// What is to be filled in.
    pub fn fill(&self, subject: &Subject<'_>) -> Vec<Edit> {
        self.filled(subject).edits
    }

    /// The same, and what is to be told of it.
    pub fn filled(&self, subject: &Subject<'_>) -> Filled {
        let identity = identify(subject.object);
        let Some(profile) = self.profiles.first() else { return Filled::default() };
        if subject.verb == Verb::Other {
            return Filled::default();
        }
        let Ok((kind, version)) = identify::served(&identity, profile, subject) else {
            return Filled::default();
        };
        let new = Prepared::read(subject.object, kind, version, profile);
        if new.broken() {
            return Filled::default();
        }
        let old = subject.old.map(|old| {
            Prepared::read(old, kind, identify::stored_version(old, kind).unwrap_or(version), profile)
        });
        let old = old.filter(|old| !old.broken());
        let old_doc = old.as_ref().map(|old| old.defaulted(None, profile, subject.now));
        let old_object = old.as_ref().zip(old_doc.as_ref()).map(|(old, doc)| old.object(doc));
        let moved = old_object.and_then(|old| reshaped(old.value(), kind, old.version, version));
        let old_object = old_object.map(|old| {
            let value = moved.as_ref().map_or(old.value(), Doc::root);
            Object { written: old.written, ..Object::of(kind, version, value) }
        });
        let mut edits = new.edits(old_object, profile, subject.now, Extent::Sent);
        let mut put_back = 0;
        if let Some(old) =
            old_object.filter(|_| subject.verb == Verb::Update && subject.subresource.is_empty())
            && let Some(missing) = missing_tolerations(&new, old, &edits)
        {
            put_back = missing.iter().map(|list| list.count).sum();
            // A list that is written anew has everything that was to be filled in.
            edits.retain(|edit| !missing.iter().any(|list| list.replaces(edit)));
            edits.extend(missing.into_iter().flat_map(|list| list.edits));
        }
        if !self.policies.is_empty() && subject.verb == Verb::Create {
            let object = Object::of(kind, version, new.value());
            let case = self.new_case(subject, object);
            edits.extend(self.policies.defaults(&case, &asked(subject, object, profile, case.now), profile));
        }
        edits.retain(|edit| is_written(edit, subject.subresource) && !is_void(edit, &new));
        Filled { edits, put_back }
    }

    /// Why policies cannot tell which tolerations they add to a new object. [`Engine::fill`] leaves those out.
    pub fn undecided(&self, subject: &Subject<'_>) -> Vec<Finding> {
        let identity = identify(subject.object);
        let Some(profile) = self.profiles.first() else { return Vec::new() };
        if self.policies.is_empty() || subject.verb != Verb::Create {
            return Vec::new();
        }
        let Ok((kind, version)) = identify::served(&identity, profile, subject) else { return Vec::new() };
        let new = Prepared::read(subject.object, kind, version, profile);
        if new.broken() {
            return Vec::new();
        }
        let object = Object::of(kind, version, new.value());
        let case = self.new_case(subject, object);
        self.policies.undecided_defaults(&case, &asked(subject, object, profile, case.now))
    }

    fn new_case<'d>(&'d self, subject: &Subject<'d>, object: Object<'d>) -> Case<'d> {
        Case {
            operation: Operation::Create,
            status: !subject.subresource.is_empty(),
            object,
            old: None,
            namespace: subject.namespace,
            admin_access: AdminAccess::Unknown,
            now: gotime::parse(subject.now).ok(),
            classes: self.classes.as_deref(),
        }
    }
}

/// The stored tolerations that an update lacks, if its spec lacks nothing else: `edits` are the server's own.
fn missing_tolerations(
    new: &Prepared<'_>,
    old: Object<'_>,
    edits: &[Edit],
) -> Option<Vec<policy::MissingTolerations>> {
    let object = Object::of(old.kind(), old.version, new.value());
    let missing = policy::missing_tolerations(object, old)?;
    let kept = edits.iter().filter(|edit| !missing.iter().any(|list| list.replaces(edit)));
    let all = kept.chain(missing.iter().flat_map(|list| &list.edits));
    let changes: Vec<Change> = all.map(|edit| edit.change.clone()).collect();
    let whole = apply(new.value(), &changes);
    let whole = Object::of(old.kind(), old.version, whole.root());
    equal::same(whole, old, "spec").then_some(missing)
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
