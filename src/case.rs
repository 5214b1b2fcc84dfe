//! One thing to judge: an object, what is done to it, and what the server would know about it.
//!
//! Plain data, no judgement. Everything in it borrows from documents that live for the length of the judgement.

use std::collections::BTreeMap;

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

/// The ResourceClasses (KEP-3063) that are known to exist, with their drivers.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Classes(pub BTreeMap<Box<str>, Box<str>>);

impl Classes {
    /// True if there is a class of that name.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The driver of a class.
    pub fn driver(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|driver| &**driver)
    }

    /// The classes, for people.
    pub fn told(&self) -> String {
        const SHOWN: usize = 8;
        let names: Vec<&str> = self.0.keys().take(SHOWN).map(|name| &**name).collect();
        match (names.is_empty(), self.0.len() > SHOWN) {
            (true, _) => "no class is known".to_owned(),
            (_, true) => format!("known are {}, …", names.join(", ")),
            (_, false) => format!("known are {}", names.join(", ")),
        }
    }
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
    /// The classes that exist, if somebody said so.
    pub classes: Option<&'d Classes>,
}

impl<'d> Case<'d> {
    /// The stored object as a case of its own, to learn what was wrong before.
    #[must_use]
    pub fn stored(&self) -> Option<Case<'d>> {
        self.old.map(|object| Case { object, old: None, ..*self })
    }
}
