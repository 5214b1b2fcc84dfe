//! The webhook without HTTP: an AdmissionReview in, an AdmissionReview out. Pure and synchronous.
//!
//! `read → is it ours → judge or fill in → answer`. A review that cannot be read is an error value; its caller knows
//! what to say (the server: 400; `tollgate review`: an answer in its place).
//!
//! Invariant: what is not ours is admitted, and so are DELETE and CONNECT; the mutating side never refuses. What the
//! request says it is about and what it carries are the same kind, or it is refused.

use std::borrow::Cow;

use super::{Engine, Filled, Judgement, Labels, Subject, Verb, answer, identify};
use crate::api::review::{BadReview, Operation, Request};
use crate::defaults::Edit;
use crate::doc;

/// Which webhook is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// May the object be written?
    Validate,
    /// What is to be filled in?
    Mutate,
}

/// What the engine must be told, because it reads no clock and knows no cluster.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// The present moment, RFC 3339 in whole seconds.
    pub now: &'a str,
    /// What is known of the labels of a namespace.
    pub labels: &'a dyn Fn(&str) -> Labels<'a>,
    /// How old that is, in seconds, if it may have changed since.
    pub age: Option<u64>,
}

impl<'a> Surroundings<'a> {
    /// Labels that are what they are now.
    pub fn of(now: &'a str, labels: &'a dyn Fn(&str) -> Labels<'a>) -> Surroundings<'a> {
        Surroundings { now, labels, age: None }
    }
}

impl std::fmt::Debug for Surroundings<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Surroundings").field("now", &self.now).finish_non_exhaustive()
    }
}

/// What was decided about one request.
#[derive(Clone, Debug)]
pub struct Decision {
    /// The verdict and why.
    pub judgement: Judgement,
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
            judgement: Judgement::Skipped,
            edits: Vec::new(),
            put_back: 0,
            unknown_version: false,
            age: None,
        }
    }

    /// The verdict.
    pub fn allowed(&self) -> bool {
        self.judgement.allowed()
    }
}

/// Bytes of a large review for each of its keys and values, at least; slices and claims have eighteen.
const DENSEST: usize = 16;
/// Keys and values that any review may have: more than two objects as large as a server stores them.
const SMALL: usize = 512 << 10;

/// Answers one review.
pub fn admit(
    engine: &Engine,
    review: &[u8],
    side: Side,
    around: Surroundings<'_>,
) -> Result<Vec<u8>, BadReview> {
    admit_telling(engine, review, side, around, &mut |_, _| {})
}

/// Answers one review and tells what was asked and decided, for those who count and log.
pub fn admit_telling(
    engine: &Engine,
    review: &[u8],
    side: Side,
    around: Surroundings<'_>,
    tell: &mut dyn FnMut(&Request<'_>, &Decision),
) -> Result<Vec<u8>, BadReview> {
    // The API server passes opaque parameters on byte by byte, whatever they are. Go reads each bad byte as U+FFFD.
    let text = std::str::from_utf8(review).map_or_else(|_| String::from_utf8_lossy(review), Cow::Borrowed);
    // Time and memory go with the nodes of a tape, and a text made to be dense has one for two bytes.
    let nodes = (text.len() / DENSEST).max(SMALL);
    let mut document = doc::parse_within(&text, nodes).map_err(|error| BadReview {
        uid: "".into(),
        at: error.at,
        detail: format!("the AdmissionReview cannot be read: {}", error.detail),
    })?;
    if side == Side::Validate {
        engine.recall(&mut document);
    }
    let request = Request::read(document.root())?;
    let decision = decide(engine, &request, side, around);
    tell(&request, &decision);
    Ok(answer(engine, &request, &decision).encode())
}

/// Decides about one request.
pub fn decide(engine: &Engine, request: &Request<'_>, side: Side, around: Surroundings<'_>) -> Decision {
    let verb = match request.operation {
        Operation::Create => Verb::Create,
        Operation::Update => Verb::Update,
        Operation::Delete | Operation::Connect => return Decision::admitted(),
    };
    if !engine.exact {
        if let Some(finding) = identify::mismatch(request) {
            return match side {
                Side::Validate => Decision { judgement: engine.refused(*finding), ..Decision::admitted() },
                Side::Mutate => Decision::admitted(),
            };
        }
        match identify::of_request(request) {
            identify::Claim::Ours => {}
            identify::Claim::NewerThanUs => {
                return Decision { unknown_version: true, ..Decision::admitted() };
            }
            identify::Claim::NotOurs => return Decision::admitted(),
        }
    }
    let namespace = match request.namespace {
        "" => identify::own_namespace(request.object),
        given => given,
    };
    let subject = Subject {
        object: request.object,
        old: request.old_object,
        verb,
        subresource: request.sub_resource,
        namespace: request.namespace,
        labels: (around.labels)(namespace),
        now: around.now,
        user: request.user,
    };
    let uses_labels = || !namespace.is_empty() && engine.policies.needs_labels();
    let decided = Decision { age: around.age.filter(|_| uses_labels()), ..Decision::admitted() };
    match side {
        Side::Validate => Decision { judgement: engine.judge(&subject), ..decided },
        Side::Mutate => {
            let Filled { edits, put_back } = engine.filled(&subject);
            Decision { edits, put_back, ..decided }
        }
    }
}
