//! One thing to judge: an object, what is done to it, and what the server would know about it.
//!
//! Plain data, no judgement. Everything in it borrows from documents that live for the length of the judgement.

use crate::api::view::Object;
use crate::gotime::Timestamp;

/// What is being done to the object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// CREATE
    Create,
    /// UPDATE
    Update,
}

/// What is known of the labels of the object's namespace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AdminAccess {
    /// The namespace carries the admin-access label.
    Granted,
    /// It does not.
    Refused,
    /// There is no namespace data.
    Unknown,
}

/// One object to judge, prepared as the server prepares it: conforming and with defaults.
#[derive(Clone, Copy, Debug)]
pub struct Case<'d> {
    /// What is being done.
    pub operation: Operation,
    /// The status subresource is written, not the object.
    pub status: bool,
    /// The object.
    pub object: Object<'d>,
    /// What is stored, for an update.
    pub old: Option<Object<'d>>,
    /// The namespace of the request (or `default`), for objects that name none.
    pub namespace: &'d str,
    /// Whether the namespace allows admin access.
    pub admin_access: AdminAccess,
    /// The present moment, if it is known.
    pub now: Option<Timestamp>,
}

impl<'d> Case<'d> {
    /// The stored object as a case of its own, to learn what was wrong before.
    #[must_use]
    pub fn stored(&self) -> Option<Case<'d>> {
        self.old.map(|object| Case { object, old: None, ..*self })
    }
}
