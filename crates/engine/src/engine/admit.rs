//! The webhook without HTTP: an AdmissionReview in, an AdmissionReview out. Pure and synchronous.
//!
//! `parse → read (is it ours?) → labels of its namespace, from the caller → decide (validate or mutate) → respond`. Shells
//! that have to fetch the labels take the steps one by one. A review that cannot be read is an error value; its caller knows
//! what to say (the server: 400; `tollgate review`: an answer in its place).
//!
//! Invariant: what is not ours is admitted, and so are DELETE and CONNECT; the mutating side never refuses. What the
//! request says it is about and what it carries are the same kind, or it is refused.

use std::borrow::Cow;

use super::{Attributes, Engine, Mutation, NamespaceLookup, Source, Verdict, identify, respond};
use crate::defaults::Edit;
use tollgate_api::review::{BadReview, Request};
use tollgate_document::doc::{self, Doc, Value};
use tollgate_document::finding::Finding;

/// Which webhook is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Endpoint {
    /// May the object be written?
    Validate,
    /// What is to be filled in?
    Mutate,
}

/// What was decided about one request.
#[derive(Clone, Debug)]
pub struct Decision {
    /// The verdict and why.
    pub verdict: Verdict,
    /// What to fill in; the mutating side only.
    pub edits: Vec<Edit>,
    /// How many of them are tolerations that the stored object has and the submitted one lacked.
    pub put_back: usize,
    /// The request is for a version of our kinds that is newer than we are.
    pub unknown_version: bool,
    /// The labels it was judged by may have changed since so many seconds.
    pub age: Option<u64>,
}

impl Decision {
    fn admitted() -> Decision {
        Decision {
            verdict: Verdict::Skipped,
            edits: Vec::new(),
            put_back: 0,
            unknown_version: false,
            age: None,
        }
    }

    /// The verdict.
    pub fn allowed(&self) -> bool {
        self.verdict.allowed()
    }
}

/// Bytes of a very large review for each of its keys and values, at least.
const DENSEST: usize = 24;
/// Keys and values that any review may have: one for ten bytes of two objects, each as large as a server stores them
/// (1.5 MiB). Real ones have one for eighteen.
const SMALL: usize = 320 << 10;

/// Answers one review. The engine reads no clock and knows no cluster: `now` (RFC 3339 in whole seconds) and the labels
/// of namespaces come from the caller.
pub fn admit(
    engine: &Engine,
    review: &[u8],
    endpoint: Endpoint,
    now: &str,
    namespaces: &dyn NamespaceLookup,
) -> Result<Vec<u8>, BadReview> {
    let text = review_text(review);
    let document = parse_review(&text)?;
    let review = Review::read(engine, document.root())?;
    let decision = review.decide(engine, endpoint, now, namespaces);
    Ok(respond(engine, &review.request, &decision).encode())
}

/// The text of a review. The API server passes opaque parameters on byte by byte, whatever they are. Go reads each bad byte
/// as U+FFFD.
pub fn review_text(review: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(review).map_or_else(|_| String::from_utf8_lossy(review), Cow::Borrowed)
}

/// The document of a review.
pub fn parse_review(text: &str) -> Result<Doc<'_>, BadReview> {
    // Time and memory go with the nodes of a tape, and a text made to be dense has one for two bytes.
    let nodes = (text.len() / DENSEST).max(SMALL);
    doc::parse_within(text, nodes).map_err(|error| BadReview {
        uid: "".into(),
        at: error.at,
        detail: format!("the AdmissionReview cannot be read: {}", error.detail),
        is_too_dense: error.is_too_dense,
    })
}

/// A review that was read: the request, and what it is about.
#[derive(Debug)]
pub struct Review<'r> {
    /// The request.
    pub request: Request<'r>,
    subject: Subject<'r>,
}

/// What a request is about, which decides whether its object is checked.
#[derive(Debug)]
enum Subject<'r> {
    /// An object that is checked, and the namespace that it is in.
    Checked { namespace: &'r str },
    /// A kind of ours in a version that is newer than we are.
    NewerThanUs,
    /// Nothing that is checked.
    Other,
    /// It says one kind and carries another.
    Mismatch(Box<Finding>),
}

impl<'r> Review<'r> {
    /// Reads the request of a review.
    pub fn read(engine: &Engine, root: Value<'r>) -> Result<Review<'r>, BadReview> {
        Ok(Review::from_request(engine, Request::read(root)?))
    }

    fn from_request(engine: &Engine, request: Request<'r>) -> Review<'r> {
        Review { request, subject: Subject::of_request(engine, &request) }
    }

    /// The namespace whose labels the decision depends on, if policies need labels.
    pub fn namespace(&self) -> Option<&'r str> {
        match self.subject {
            Subject::Checked { namespace } => Some(namespace).filter(|namespace| !namespace.is_empty()),
            Subject::NewerThanUs | Subject::Other | Subject::Mismatch(_) => None,
        }
    }

    /// Decides about the request.
    pub fn decide(
        &self,
        engine: &Engine,
        endpoint: Endpoint,
        now: &str,
        namespaces: &dyn NamespaceLookup,
    ) -> Decision {
        let request = &self.request;
        let namespace = match &self.subject {
            Subject::Checked { namespace } => *namespace,
            Subject::NewerThanUs => return Decision { unknown_version: true, ..Decision::admitted() },
            Subject::Mismatch(finding) if endpoint == Endpoint::Validate => {
                return Decision { verdict: engine.denied_with((**finding).clone()), ..Decision::admitted() };
            }
            Subject::Mismatch(_) | Subject::Other => return Decision::admitted(),
        };
        let admission = Attributes {
            operation: request.operation,
            subresource: request.sub_resource,
            object: request.object,
            old_object: request.old_object,
            namespace: request.namespace,
            user: request.user,
            now: now.into(),
        };
        let labels = namespaces.labels(namespace);
        let uses_labels = || !namespace.is_empty() && engine.policies.needs_labels();
        let decided = Decision { age: namespaces.age().filter(|_| uses_labels()), ..Decision::admitted() };
        match endpoint {
            Endpoint::Validate => {
                Decision { verdict: engine.validate_from(&admission, labels, Source::Review), ..decided }
            }
            Endpoint::Mutate => {
                let Mutation { edits, put_back } = engine.mutate(&admission, labels);
                Decision { edits, put_back, ..decided }
            }
        }
    }
}

impl<'r> Subject<'r> {
    fn of_request(engine: &Engine, request: &Request<'r>) -> Subject<'r> {
        if !request.operation.writes_object() {
            return Subject::Other;
        }
        if !engine.exact {
            if let Some(finding) = identify::kind_mismatch(request) {
                return Subject::Mismatch(finding);
            }
            match identify::ownership_of(request) {
                identify::Ownership::Ours => {}
                identify::Ownership::NewerThanUs => return Subject::NewerThanUs,
                identify::Ownership::NotOurs => return Subject::Other,
            }
        }
        let namespace = match request.namespace {
            "" => identify::own_namespace(request.object),
            given => given,
        };
        Subject::Checked { namespace }
    }
}

/// Decides about one request.
pub fn decide(
    engine: &Engine,
    request: &Request<'_>,
    endpoint: Endpoint,
    now: &str,
    namespaces: &dyn NamespaceLookup,
) -> Decision {
    Review::from_request(engine, *request).decide(engine, endpoint, now, namespaces)
}
