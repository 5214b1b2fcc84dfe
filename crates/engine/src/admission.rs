//! The input of the engine, in the API server's words: the attributes of an admission request, and the context in which
//! they are checked.
//!
//! Plain data, no judgement. Everything in it borrows from documents that live for the length of one request.
//! [`Attributes`] exist twice on the way through the engine: of JSON values, as they were sent, and of
//! [objects](Object), decoded and with defaults.

mod known_claims;

use std::collections::BTreeMap;

use crate::impact::ClusterState;
pub use known_claims::{ClaimsAround, KnownClaims};
use tollgate_api::profile::Profile;
pub use tollgate_api::review::Operation;
use tollgate_api::view::Object;
use tollgate_cel as cel;
use tollgate_document::doc::Value;
use tollgate_formats::gotime::{self, Timestamp};

/// The current time: as text for what is filled in, as a number for what is compared.
#[derive(Clone, Copy, Debug)]
pub struct Now<'d> {
    /// RFC 3339 in whole seconds.
    pub text: &'d str,
    /// `text` as a timestamp; `None` if it is not a time.
    pub time: Option<Timestamp>,
}

impl<'d> From<&'d str> for Now<'d> {
    fn from(text: &'d str) -> Now<'d> {
        Now { text, time: gotime::parse(text).ok() }
    }
}

/// What a request is.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'d, T = Value<'d>> {
    /// What is done.
    pub operation: Operation,
    /// The subresource that is written, empty for the object itself.
    pub subresource: &'d str,
    /// The object.
    pub object: T,
    /// The stored object of an update.
    pub old_object: Option<T>,
    /// The namespace of the request, empty if it is not known.
    pub namespace: &'d str,
    /// Who sent it (`userInfo`), absent if nobody is known.
    pub user: Value<'d>,
    /// The current time.
    pub now: Now<'d>,
}

impl<'d, T> Attributes<'d, T> {
    /// The creation of an object by nobody in particular, as offline checks assume it.
    pub fn create(object: T, namespace: &'d str, now: &'d str) -> Attributes<'d, T> {
        Attributes {
            operation: Operation::Create,
            subresource: "",
            object,
            old_object: None,
            namespace,
            user: Value::absent(),
            now: now.into(),
        }
    }

    /// The status subresource is written, not the object.
    pub fn is_status(&self) -> bool {
        self.subresource == "status"
    }

    /// This request with other forms of its objects.
    pub fn with_objects<U>(&self, object: U, old_object: Option<U>) -> Attributes<'d, U> {
        Attributes {
            operation: self.operation,
            subresource: self.subresource,
            object,
            old_object,
            namespace: self.namespace,
            user: self.user,
            now: self.now,
        }
    }
}

/// A request whose objects are decoded and have their defaults, as the rules see it.
pub type DecodedAttributes<'d> = Attributes<'d, Object<'d>>;

impl<'d> DecodedAttributes<'d> {
    /// This request as if it wrote what is stored: shows what was wrong before. `None` if nothing is stored.
    #[must_use]
    pub fn for_stored_object(&self) -> Option<DecodedAttributes<'d>> {
        self.old_object.map(|object| Attributes { object, old_object: None, ..*self })
    }

    /// The namespace of the request; `default` if it names none.
    pub fn namespace_or_default(&self) -> &'d str {
        if self.namespace.is_empty() { "default" } else { self.namespace }
    }

    /// The namespace of the object, if its kind has one: the request's, the object's own, or `default`.
    pub fn object_namespace(&self) -> Option<&'d str> {
        self.object.kind().is_namespaced().then(|| {
            let own = self.object.metadata().namespace();
            [self.namespace, own].into_iter().find(|name| !name.is_empty()).unwrap_or("default")
        })
    }
}

/// What is known of the labels of a namespace.
#[derive(Clone, Copy, Debug)]
pub enum Labels<'d> {
    /// They are these: `metadata.labels`, absent if there are none.
    Known(Value<'d>),
    /// There is no namespace data.
    Unknown,
}

/// Whether a namespace allows admin access to devices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AdminAccess {
    /// The namespace carries the admin-access label.
    Granted,
    /// It does not.
    Refused,
    /// There is no namespace data.
    Unknown,
}

/// What is known around a request: the release, and the cluster as far as it is visible.
#[derive(Clone, Copy, Debug)]
pub struct Context<'c> {
    /// The release or draft.
    pub profile: &'static Profile,
    /// Labels of the namespace.
    pub labels: Labels<'c>,
    /// Whether the namespace allows admin access.
    pub admin_access: AdminAccess,
    /// The state of the cluster, if it is known.
    pub cluster: Option<&'c ClusterState>,
    /// The ResourceClasses that exist, if they are known.
    pub classes: Option<&'c ResourceClasses>,
    /// The claims that are checked together with the object, if they are known.
    pub claims: Option<ClaimsAround<'c>>,
    /// The object comes from a review: in raw JSON the API server's encoder has escaped what the client may have sent
    /// as it is.
    pub from_review: bool,
    /// The object is stored already: nobody asks to store it, and how it came to be is not known.
    pub is_stored: bool,
    /// Who checks CEL expressions.
    pub cel: &'c dyn cel::Checker,
}

/// The ResourceClasses (KEP-3063) that are known to exist, with their drivers.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ResourceClasses(pub BTreeMap<Box<str>, Box<str>>);

impl ResourceClasses {
    /// True if there is a class of that name.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The driver of a class.
    pub fn driver(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|driver| &**driver)
    }

    /// The classes, for people.
    pub fn describe(&self) -> String {
        const MAX_SHOWN: usize = 8;
        let names: Vec<&str> = self.0.keys().take(MAX_SHOWN).map(|name| &**name).collect();
        match (names.is_empty(), self.0.len() > MAX_SHOWN) {
            (true, _) => "no ResourceClasses are known".to_owned(),
            (_, true) => format!("known ResourceClasses: {}, …", names.join(", ")),
            (_, false) => format!("known ResourceClasses: {}", names.join(", ")),
        }
    }
}
