//! The input of the engine, in the API server's words: the attributes of an admission request, and the context in which
//! they are checked.
//!
//! Plain data, no judgement. Everything in it borrows from documents that live for the length of one request.
//! [`Attributes`] exist twice on the way through the engine: of JSON values, as they were sent, and of
//! [objects](Object), decoded and with defaults.

mod known_claims;

use std::collections::BTreeMap;

use crate::impact::ClusterState;
pub use known_claims::{ClaimLocations, ClaimsInFiles};
use tollgate_api::profile::Profile;
pub use tollgate_api::review::Operation;
use tollgate_api::view::Object;
use tollgate_cel as cel;
use tollgate_document::doc::Value;
use tollgate_formats::gotime::{self, Timestamp};

/// The current time, as text for defaults and as a timestamp for comparisons.
#[derive(Clone, Copy, Debug)]
pub struct Now<'d> {
    /// The time in RFC 3339 format with whole seconds.
    pub text: &'d str,
    /// `text` as a timestamp; `None` if it is not a time.
    pub time: Option<Timestamp>,
}

impl<'d> From<&'d str> for Now<'d> {
    fn from(text: &'d str) -> Now<'d> {
        Now { text, time: gotime::parse_rfc3339(text).ok() }
    }
}

/// The attributes of an admission request.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'d, T = Value<'d>> {
    /// The operation: CREATE, UPDATE, DELETE or CONNECT.
    pub operation: Operation,
    /// The subresource that is written; empty for the object itself.
    pub subresource: &'d str,
    /// The submitted object.
    pub object: T,
    /// The stored object; `None` unless the request is an update.
    pub old_object: Option<T>,
    /// The namespace of the request; empty if it is not known.
    pub namespace: &'d str,
    /// The user who sent the request (`userInfo`); absent if not known.
    pub user: Value<'d>,
    /// Time at which the request is evaluated.
    pub now: Now<'d>,
}

impl<'d, T> Attributes<'d, T> {
    /// Returns a request that creates an object, without a user, as offline checks assume it.
    pub fn for_create(object: T, namespace: &'d str, now: &'d str) -> Attributes<'d, T> {
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

    /// True if the request writes the status subresource instead of the object.
    pub fn is_status(&self) -> bool {
        self.subresource == "status"
    }

    /// Returns this request with its objects replaced, such as by decoded ones.
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

/// A request with decoded objects and defaults, as rules see it.
pub type DecodedAttributes<'d> = Attributes<'d, Object<'d>>;

impl<'d> DecodedAttributes<'d> {
    /// Returns this request as if it wrote the stored object, without an old one, to find what was wrong before. `None`
    /// if nothing is stored.
    #[must_use]
    pub fn with_old_as_object(&self) -> Option<DecodedAttributes<'d>> {
        self.old_object.map(|object| Attributes { object, old_object: None, ..*self })
    }

    /// Returns the namespace of the request; `default` if it names none.
    pub fn namespace_or_default(&self) -> &'d str {
        if self.namespace.is_empty() { "default" } else { self.namespace }
    }

    /// Returns the namespace of the object: the request's, the object's own, or `default`. `None` for cluster-scoped
    /// kinds.
    pub fn effective_namespace_if_namespaced(&self) -> Option<&'d str> {
        self.object.kind().is_namespaced().then(|| {
            let own = self.object.metadata().namespace();
            [self.namespace, own].into_iter().find(|name| !name.is_empty()).unwrap_or("default")
        })
    }
}

/// The labels of the namespace that a request is in, if they are known: policies and admin access depend on them.
#[derive(Clone, Copy, Debug)]
pub enum LabelsIfKnown<'d> {
    /// `metadata.labels`; absent if the namespace has none.
    Known(Value<'d>),
    /// The labels are not known.
    Unknown,
}

/// Result of checking the namespace for the label that allows admin access to devices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AdminAccess {
    /// The namespace carries the admin-access label.
    Granted,
    /// The namespace does not carry the label.
    Refused,
    /// The labels of the namespace are not known.
    Unknown,
}

/// The environment in which a request is checked: the release, and the known state of the cluster.
#[derive(Clone, Copy, Debug)]
pub struct Context<'c> {
    /// The Kubernetes release or draft.
    pub profile: &'static Profile,
    /// Labels of the namespace.
    pub labels: LabelsIfKnown<'c>,
    /// Whether the namespace allows admin access to devices.
    pub admin_access: AdminAccess,
    /// The state of the cluster, if it is known.
    pub cluster: Option<&'c ClusterState>,
    /// The ResourceClasses that exist, if they are known.
    pub classes: Option<&'c ResourceClasses>,
    /// The claims that are checked together with the object, if they are known.
    pub claims: Option<ClaimsInFiles<'c>>,
    /// True if the object comes from a review, where the API server's encoder may have escaped characters of raw JSON
    /// that the client sent unescaped.
    pub from_review: bool,
    /// True if the object is already stored in a cluster, so that it is not known how it was created.
    pub is_stored: bool,
    /// The checker for CEL expressions.
    pub cel: &'c dyn cel::Checker,
}

/// The ResourceClasses (KEP-3063) that are known to exist, with their drivers.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ResourceClasses(pub BTreeMap<Box<str>, Box<str>>);

impl ResourceClasses {
    /// True if a ResourceClass of that name exists.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Returns the driver of the class with that name.
    pub fn driver(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|driver| &**driver)
    }

    /// Returns `known ResourceClasses: a, b`, with at most eight names, for messages.
    pub fn describe(&self) -> String {
        const MAX_SHOWN_CLASSES: usize = 8;
        let names: Vec<&str> = self.0.keys().take(MAX_SHOWN_CLASSES).map(|name| &**name).collect();
        match (names.is_empty(), self.0.len() > MAX_SHOWN_CLASSES) {
            (true, _) => "no ResourceClasses are known".to_owned(),
            (_, true) => format!("known ResourceClasses: {}, …", names.join(", ")),
            (_, false) => format!("known ResourceClasses: {}", names.join(", ")),
        }
    }
}
