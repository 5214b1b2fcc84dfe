//! The webhook without HTTP: reads an AdmissionReview and returns an AdmissionReview. Pure and synchronous.
//!
//! The steps are `parse → read and classify → look up namespace labels (by the caller) → decide (validate or mutate)
//! → respond`. Callers that must fetch the labels call the steps one by one. An unreadable review is returned as an
//! error, which the caller reports (the server with status 400, `tollgate review` in its output).
//!
//! Invariant: requests for kinds that Tollgate does not check are admitted, and so are DELETE and CONNECT; the
//! mutating webhook never denies. A request whose kind differs from that of its object is denied.

use std::borrow::Cow;

use super::{Attributes, Engine, Mutation, NamespaceLabelLookup, Verdict, identify, respond};
use crate::defaults::Edit;
use tollgate_api::review::{BadReview, Request};
use tollgate_document::doc::{self, Doc, Value};
use tollgate_document::finding::Finding;

/// The webhook that receives a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Endpoint {
    /// The validating webhook, which admits or denies the object.
    Validate,
    /// The mutating webhook, which adds defaults.
    Mutate,
}

/// The decision about one admission request. The default admits it unchanged and unchecked.
#[derive(Clone, Debug, Default)]
pub struct Decision {
    /// The verdict with its findings.
    pub verdict: Verdict,
    /// The edits that fill in defaults; empty for the validating webhook.
    pub edits: Vec<Edit>,
    /// Number of tolerations of the stored object that the edits restore because the submitted object lacks
    /// them.
    pub put_back: usize,
    /// True if the request is for one of the checked kinds, in a version that this program does not know.
    pub unknown_version: bool,
    /// Age in seconds of the namespace labels that the decision depends on, if they may have changed since.
    pub age: Option<u64>,
}

/// Minimum average number of bytes per key or value in a review. Reviews with more than
/// [`MAX_NODES_AT_ANY_DENSITY`] keys and values that are denser than this are rejected.
const MIN_BYTES_PER_NODE: usize = 24;
/// Number of keys and values up to which a review is accepted whatever its density: one for every ten bytes of two
/// objects of the largest size that a server stores (1.5 MiB). Real objects have one for every eighteen bytes.
const MAX_NODES_AT_ANY_DENSITY: usize = 320 << 10;

/// Decides about the request in an AdmissionReview and returns the AdmissionReview with the response. `now` (RFC 3339
/// in whole seconds) and the labels of namespaces come from the caller.
pub fn admit(
    engine: &Engine,
    review: &[u8],
    endpoint: Endpoint,
    now: &str,
    namespaces: &dyn NamespaceLabelLookup,
) -> Result<Vec<u8>, BadReview> {
    let text = decode_review_text_like_go(review);
    let document = parse_review_unless_too_dense(&text)?;
    let review = Review::read(engine, document.root())?;
    let decision = review.decide(engine, endpoint, now, namespaces);
    Ok(respond(engine, &review.request, &decision).encode_admission_review())
}

/// Returns the bytes of a review as text, with each invalid UTF-8 byte replaced by U+FFFD, as Go reads them. The API
/// server passes opaque parameters on byte by byte, so they can be invalid.
pub fn decode_review_text_like_go(review: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(review) {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(review.len());
    for chunk in review.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    Cow::Owned(text)
}

/// Parses the text of a review. Refuses a text that has too many keys and values for its length, because they take time
/// and memory.
pub fn parse_review_unless_too_dense(text: &str) -> Result<Doc<'_>, BadReview> {
    // Time and memory go with the nodes of a tape, and a text made to be dense has one for two bytes.
    let nodes = (text.len() / MIN_BYTES_PER_NODE).max(MAX_NODES_AT_ANY_DENSITY);
    doc::parse_with_node_limit(text, nodes).map_err(|error| BadReview {
        uid: "".into(),
        at: error.at,
        detail: format!("the AdmissionReview cannot be read: {}", error.detail),
        is_too_dense: error.is_too_dense,
    })
}

/// An AdmissionReview with its request and classification.
#[derive(Debug)]
pub struct Review<'r> {
    /// The admission request.
    pub request: Request<'r>,
    class: RequestClass<'r>,
}

/// Classification of a request, which determines whether its object is checked.
#[derive(Debug)]
enum RequestClass<'r> {
    /// An object to check, and the namespace that it is in (empty if it is in none).
    Checked { namespace: &'r str },
    /// A kind that Tollgate checks, in a version that this program does not know.
    NewerVersion,
    /// A request that is not checked: it is about another kind, or writes no object.
    Other,
    /// `request.kind` and the kind of the object differ.
    Mismatch(Box<Finding>),
}

impl<'r> Review<'r> {
    /// Reads the request of a review, and determines whether its object is checked.
    pub fn read(engine: &Engine, root: Value<'r>) -> Result<Review<'r>, BadReview> {
        Ok(Review::from_request(engine, Request::from_review(root)?))
    }

    /// Classifies a request that was already read.
    pub fn from_request(engine: &Engine, request: Request<'r>) -> Review<'r> {
        Review { request, class: RequestClass::classify(engine, &request) }
    }

    /// Returns the namespace whose labels the caller must look up; `None` if the object is not checked or is in no
    /// namespace.
    pub fn namespace_to_look_up(&self) -> Option<&'r str> {
        match self.class {
            RequestClass::Checked { namespace } => Some(namespace).filter(|namespace| !namespace.is_empty()),
            RequestClass::NewerVersion | RequestClass::Other | RequestClass::Mismatch(_) => None,
        }
    }

    /// Decides about the request, for the validating or the mutating webhook. Requests that are not checked are
    /// admitted.
    pub fn decide(
        &self,
        engine: &Engine,
        endpoint: Endpoint,
        now: &str,
        namespaces: &dyn NamespaceLabelLookup,
    ) -> Decision {
        let request = &self.request;
        let namespace = match &self.class {
            RequestClass::Checked { namespace } => *namespace,
            RequestClass::NewerVersion => return Decision { unknown_version: true, ..Decision::default() },
            RequestClass::Mismatch(finding) if endpoint == Endpoint::Validate => {
                return Decision {
                    verdict: engine.verdict_for_all_profiles(std::slice::from_ref(finding)),
                    ..Decision::default()
                };
            }
            RequestClass::Mismatch(_) | RequestClass::Other => return Decision::default(),
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
        let uses_labels = || !namespace.is_empty() && engine.policies.needs_namespace_labels();
        let decided = Decision {
            age: namespaces.age_seconds_if_stale().filter(|_| uses_labels()),
            ..Decision::default()
        };
        match endpoint {
            Endpoint::Validate => Decision {
                verdict: engine.validate_for_all_profiles(&admission, labels, None, true),
                ..decided
            },
            Endpoint::Mutate => {
                let Mutation { edits, put_back } = engine.mutate(&admission, labels);
                Decision { edits, put_back, ..decided }
            }
        }
    }
}

impl<'r> RequestClass<'r> {
    /// Determines whether the request is checked, and the namespace of its object.
    fn classify(engine: &Engine, request: &Request<'r>) -> RequestClass<'r> {
        if !request.operation.writes_object() {
            return RequestClass::Other;
        }
        if !engine.exact {
            if let Some(finding) = identify::kind_mismatch(request) {
                return RequestClass::Mismatch(finding);
            }
            match identify::kind_support(request) {
                identify::KindSupport::Supported => {}
                identify::KindSupport::NewerVersion => return RequestClass::NewerVersion,
                identify::KindSupport::NotChecked => return RequestClass::Other,
            }
        }
        let namespace = match request.namespace {
            "" => identify::metadata_namespace_or_default(request.object),
            given => given,
        };
        RequestClass::Checked { namespace }
    }
}

#[cfg(test)]
mod tests {
    use super::decode_review_text_like_go;

    #[test]
    fn each_invalid_byte_is_replaced_as_in_go() {
        for (bytes, expected) in [
            (&b"\"a\xe2\x82\""[..], "\"a\u{fffd}\u{fffd}\""),
            (b"\xf0\x9f\x92 \xc3", "\u{fffd}\u{fffd}\u{fffd} \u{fffd}"),
            (b"\xed\xa0\x80", "\u{fffd}\u{fffd}\u{fffd}"),
            ("\u{20ac}é".as_bytes(), "\u{20ac}é"),
        ] {
            assert_eq!(decode_review_text_like_go(bytes), expected, "{bytes:?}");
        }
    }
}
