//! The webhook without HTTP: an AdmissionReview in, an AdmissionReview out. Pure and synchronous.
//!
//! `read → decide (is it ours → validate or mutate) → respond`. A review that cannot be read is an error value; its caller knows
//! what to say (the server: 400; `tollgate review`: an answer in its place).
//!
//! Invariant: what is not ours is admitted, and so are DELETE and CONNECT; the mutating side never refuses. What the
//! request says it is about and what it carries are the same kind, or it is refused.

use std::borrow::Cow;

use super::{Attributes, Engine, Mutation, NamespaceLookup, Source, Verdict, identify, respond};
use crate::defaults::Edit;
use tollgate_api::review::{BadReview, Request};
use tollgate_document::doc;

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
    admit_observed(engine, review, endpoint, now, namespaces, &mut |_, _| {})
}

/// [`admit`] that shows the request and the decision to `observe`, which counts and logs.
pub fn admit_observed(
    engine: &Engine,
    review: &[u8],
    endpoint: Endpoint,
    now: &str,
    namespaces: &dyn NamespaceLookup,
    observe: &mut dyn FnMut(&Request<'_>, &Decision),
) -> Result<Vec<u8>, BadReview> {
    // The API server passes opaque parameters on byte by byte, whatever they are. Go reads each bad byte as U+FFFD.
    let text = std::str::from_utf8(review).map_or_else(|_| String::from_utf8_lossy(review), Cow::Borrowed);
    // Time and memory go with the nodes of a tape, and a text made to be dense has one for two bytes.
    let nodes = (text.len() / DENSEST).max(SMALL);
    let document = doc::parse_within(&text, nodes).map_err(|error| BadReview {
        uid: "".into(),
        at: error.at,
        detail: format!("the AdmissionReview cannot be read: {}", error.detail),
        is_too_dense: error.is_too_dense,
    })?;
    let request = Request::read(document.root())?;
    let decision = decide(engine, &request, endpoint, now, namespaces);
    observe(&request, &decision);
    Ok(respond(engine, &request, &decision).encode())
}

/// Decides about one request.
pub fn decide(
    engine: &Engine,
    request: &Request<'_>,
    endpoint: Endpoint,
    now: &str,
    namespaces: &dyn NamespaceLookup,
) -> Decision {
    if !request.operation.writes_object() {
        return Decision::admitted();
    }
    if !engine.exact {
        if let Some(finding) = identify::mismatch(request) {
            return match endpoint {
                Endpoint::Validate => Decision { verdict: engine.refused(*finding), ..Decision::admitted() },
                Endpoint::Mutate => Decision::admitted(),
            };
        }
        match identify::of_request(request) {
            identify::Ownership::Ours => {}
            identify::Ownership::NewerThanUs => {
                return Decision { unknown_version: true, ..Decision::admitted() };
            }
            identify::Ownership::NotOurs => return Decision::admitted(),
        }
    }
    let namespace = match request.namespace {
        "" => identify::own_namespace(request.object),
        given => given,
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
