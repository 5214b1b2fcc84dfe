//! Finds tolerations and selectors that match more after a change of an object.
//!
//! Fixes are checked with it: a fix of a value that a server accepts must not make it match more. Selectors of rules
//! and patches are compared as by the ratchet, tolerations by the taints that they match. Anything that cannot be
//! compared counts as more.

use std::collections::HashMap;

use super::ratchet::{filter_or_empty, is_new_selector_same_or_narrower};
use crate::site::{tolerations_of, visit_requests_and_subrequests};
use crate::tolerance::coverage::ToleratedTaints;
use tollgate_api::view::{Object, ObjectBody, View as _};
use tollgate_document::field::{FieldPath, Path, PathAudience};

/// A toleration or selector that matches more than before.
#[derive(Debug)]
pub struct WidenedTolerationOrSelector {
    /// The toleration or selector.
    pub at: FieldPath,
    /// True if it is empty, so that it matches everything.
    pub is_empty: bool,
}

/// Returns the tolerations and selectors that match more than in `before`, which is `None` if no server could read the
/// old object.
pub fn find_widened_tolerations_and_selectors(
    before: Option<Object<'_>>,
    after: Object<'_>,
) -> Vec<WidenedTolerationOrSelector> {
    let mut found = Vec::new();
    find_widened_tolerations(before, after, &mut found);
    find_widened_selectors(before, after, &mut found);
    found
}

/// The tolerations of an object, by request and by the taints that they match. Of tolerations that differ only in their
/// seconds, only the longest is kept, which bounds the cost of a lookup.
#[derive(Default)]
struct ToleratedByRequest<'d>(HashMap<RequestTaintKeyAndValue<'d>, Vec<ToleratedTaints<'d>>>);

/// A request, and the key and value that its toleration matches; `None` is every key or value.
type RequestTaintKeyAndValue<'d> = (String, Option<&'d str>, Option<&'d str>);

impl<'d> ToleratedByRequest<'d> {
    /// Adds a toleration of a request; of those with the same effects, only the longest is kept.
    fn add_keeping_longest(&mut self, request: String, taints: ToleratedTaints<'d>) {
        let known = self.0.entry((request, taints.key, taints.value)).or_default();
        match known.iter_mut().find(|known| known.effects == taints.effects) {
            Some(shorter) if taints.contains(shorter) => *shorter = taints,
            Some(_) => {}
            None => known.push(taints),
        }
    }

    /// True if one toleration of the request matches all of these taints, for at least as long.
    fn has_toleration_covering(&self, request: &str, taints: &ToleratedTaints<'d>) -> bool {
        let (key, value) = (taints.key, taints.value);
        [(key, value), (key, None), (None, value), (None, None)].into_iter().any(|(key, value)| {
            let known = self.0.get(&(request.to_owned(), key, value));
            known.is_some_and(|known| known.iter().any(|known| known.contains(taints)))
        })
    }
}

/// Adds the tolerations in `after` that match more than the tolerations of the same request in `before`.
fn find_widened_tolerations(
    before: Option<Object<'_>>,
    after: Object<'_>,
    found: &mut Vec<WidenedTolerationOrSelector>,
) {
    // The server's path of a request is the same in every version.
    let name = |at: &Path<'_>| at.owned().print(PathAudience::Hub);
    let mut tolerated = ToleratedByRequest::default();
    if let Some(before) = before {
        visit_requests_and_subrequests(before, &mut |at, request| {
            for toleration in tolerations_of(request).iter() {
                tolerated.add_keeping_longest(name(at), ToleratedTaints::from_toleration(toleration));
            }
        });
    }
    visit_requests_and_subrequests(after, &mut |at, request| {
        let (request_name, at) = (name(at), at.field("tolerations"));
        for (index, toleration) in tolerations_of(request).iter().enumerate() {
            if !tolerated
                .has_toleration_covering(&request_name, &ToleratedTaints::from_toleration(toleration))
            {
                let is_empty = toleration.json().is_empty();
                found.push(WidenedTolerationOrSelector { at: at.index(index).owned(), is_empty });
            }
        }
    });
}

/// Adds the selector of a rule or patch if it matches more than in `before`.
fn find_widened_selectors(
    before: Option<Object<'_>>,
    after: Object<'_>,
    found: &mut Vec<WidenedTolerationOrSelector>,
) {
    let spec_at = Path::ROOT.field("spec");
    let (at, old, new) = match (before.map(|before| before.body), after.body) {
        // A rule without a selector evicts nobody, one with an empty selector everybody.
        (Some(ObjectBody::Rule(old)), ObjectBody::Rule(new)) => {
            (spec_at.field("deviceSelector"), old.spec().device_selector(), new.spec().device_selector())
        }
        (_, ObjectBody::Rule(new)) => (spec_at.field("deviceSelector"), None, new.spec().device_selector()),
        (Some(ObjectBody::Patch(old)), ObjectBody::Patch(new)) => {
            let (old, new) = (filter_or_empty(old.spec().devices()), filter_or_empty(new.spec().devices()));
            (spec_at.field("devices"), Some(old), Some(new))
        }
        _ => return,
    };
    let is_wider = match (old, new) {
        (_, None) => old.is_some(),
        (None, Some(_)) => true,
        (Some(old), Some(new)) => !is_new_selector_same_or_narrower(old, new),
    };
    if is_wider {
        let is_empty = new.is_none_or(|new| new.json().is_empty());
        found.push(WidenedTolerationOrSelector { at: at.owned(), is_empty });
    }
}
