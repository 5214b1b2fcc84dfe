//! Derived attributes of requests and sub-requests (1.37): their names, the constraints that must refer to them, and
//! their total cost.
//!
//! Names and emptiness are declarative checks; references, expressions and costs are hand-written ones.

use std::cell::OnceCell;
use std::collections::HashSet;

use super::{fqn, lists, selectors};
use crate::rules::RuleContext;
use crate::rules::table::{
    DERIVED_ATTRIBUTE_COST, DERIVED_ATTRIBUTE_EXPRESSION, DERIVED_ATTRIBUTE_NAME,
    DUPLICATE_DERIVED_ATTRIBUTE, TOO_MANY_DERIVED_ATTRIBUTES,
};
use tollgate_api::view::{Constraint, Derived, List};
use tollgate_cel::ExpressionPurpose;
use tollgate_document::field::Path;
use tollgate_document::finding::BadValue;

/// Maximum number of derived attributes of one request.
const MAX_DERIVED_ATTRIBUTES: usize = 32;
/// Maximum total cost of all expressions in a claim.
const MAX_TOTAL_COST: u64 = 1_000_000;

/// The request or sub-request that has derived attributes, by the names with which constraints refer to it.
#[derive(Clone, Copy, Debug)]
pub struct RequestRef<'d> {
    /// Name of the request.
    pub request: &'d str,
    /// The sub-request, if it is one.
    pub sub: Option<&'d str>,
}

impl RequestRef<'_> {
    /// True if `reference`, an item of a constraint's `requests`, names this request or, for a sub-request, the request
    /// that it is part of.
    fn is_named_by_constraint(self, reference: &str) -> bool {
        let Some(sub) = self.sub else { return reference == self.request };
        // A reference without a slash means every sub-request; upstream cuts at the first slash.
        let whole = reference.strip_prefix(self.request).and_then(|rest| rest.strip_prefix('/'));
        whole == Some(sub) || reference == self.request.split('/').next().unwrap_or_default()
    }
}

/// The attributes that the constraints of a claim name, and the cost of all derived attributes so far.
#[derive(Debug)]
pub struct DerivedAttributeChecker<'d> {
    constraints: List<'d, Constraint<'d>>,
    /// Pairs of request (empty for all requests) and constrained attribute; only for claims with many, and built when
    /// first needed.
    index: OnceCell<Option<HashSet<(&'d str, &'d str)>>>,
    cost: u64,
}

impl<'d> DerivedAttributeChecker<'d> {
    /// Starts the check of a claim: `constraints` are all of its constraints, which derived attributes must be named
    /// in, and the total cost is zero.
    pub fn new(constraints: List<'d, Constraint<'d>>) -> DerivedAttributeChecker<'d> {
        DerivedAttributeChecker { constraints, index: OnceCell::new(), cost: 0 }
    }

    /// Checks the derived attributes of one request or sub-request, and adds their cost.
    // upstream v1.37 validateDeviceDerivedAttributes
    pub fn check_derived_and_add_cost(
        &mut self,
        cx: &mut RuleContext<'_, '_>,
        at: &Path<'_>,
        list: List<'_, Derived<'_>>,
        owner: RequestRef<'_>,
    ) {
        for (index, attribute) in list.iter().enumerate() {
            let (at, name, text) = (at.index(index), attribute.name(), attribute.expression());
            if !name.is_empty() && !self.is_referenced_by_constraint(name, owner) {
                let detail = "must be referenced by at least one matchAttribute or distinctAttribute constraint \
                              targeting this request";
                cx.report(DERIVED_ATTRIBUTE_NAME, &at.field("name"))
                    .invalid(BadValue::json_quoted_string(name), detail);
            }
            if !text.is_empty() && cx.is_hand_written {
                let (at, purpose) = (at.field("expression"), ExpressionPurpose::DerivedAttribute);
                let cost = selectors::check_expression_and_estimate_cost(cx, &at, text, purpose, false);
                // The server's sum wraps around: two expressions of unbounded cost are reported by themselves only.
                self.cost = self.cost.wrapping_add(cost.unwrap_or_default());
            }
        }
        lists::for_each_duplicate(list.iter().map(Derived::name), |index, name| {
            cx.report(DUPLICATE_DERIVED_ATTRIBUTE, &at.index(index)).duplicate(name, "");
        });
        check_derived_declaratively(cx, at, list);
    }

    /// True if a constraint for this request names the attribute.
    // upstream v1.37 isAttributeUsedByConstraint
    fn is_referenced_by_constraint(&self, name: &str, owner: RequestRef<'_>) -> bool {
        let Some(index) = self.index.get_or_init(|| index_constraints_if_many(self.constraints)) else {
            return self.constraints.iter().any(|constraint| {
                let requests = constraint.requests();
                constrained_attribute(constraint) == Some(name)
                    && (requests.is_empty()
                        || requests
                            .iter()
                            .any(|reference| reference.is_empty() || owner.is_named_by_constraint(reference)))
            });
        };
        let has = |reference: &str| index.contains(&(reference, name));
        let whole = match owner.sub {
            None => has(owner.request),
            Some(sub) => has(&format!("{}/{sub}", owner.request)),
        };
        has("") || whole || owner.sub.is_some() && has(owner.request.split('/').next().unwrap_or_default())
    }

    /// Reports that all derived attributes of a claim cost too much, once every request was checked. `at` is the
    /// claim's `devices`.
    // upstream v1.37 validateDeviceClaim
    pub fn check_total_cost(&self, cx: &mut RuleContext<'_, '_>, at: &Path<'_>) {
        if self.cost > MAX_TOTAL_COST {
            let detail = "too complex, total cost of derived attribute CEL expressions in the claim exceeds \
                          cost limit";
            cx.report(DERIVED_ATTRIBUTE_COST, at).forbidden(detail);
        }
    }
}

/// Reports what declarative validation finds in a list of derived attributes: too many, bad names, missing expressions.
/// Does nothing if declarative validation does not check this part.
fn check_derived_declaratively(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, list: List<'_, Derived<'_>>) {
    if !cx.is_declarative {
        return;
    }
    if list.len() > MAX_DERIVED_ATTRIBUTES {
        let detail = lists::at_most_message(MAX_DERIVED_ATTRIBUTES);
        cx.report(TOO_MANY_DERIVED_ATTRIBUTES, at)
            .declarative_only()
            .too_many(BadValue::count(list.len()), detail);
        return;
    }
    for (index, attribute) in list.iter().enumerate() {
        let at = at.index(index);
        if attribute.name().is_empty() {
            cx.report(DERIVED_ATTRIBUTE_NAME, &at.field("name")).declarative_only().required("");
        } else {
            fqn::check_declarative(cx, DERIVED_ATTRIBUTE_NAME, &at.field("name"), attribute.name());
        }
        if attribute.expression().is_empty() {
            cx.report(DERIVED_ATTRIBUTE_EXPRESSION, &at.field("expression")).declarative_only().required("");
        }
    }
}

/// Returns the attribute that a constraint is about.
fn constrained_attribute(constraint: Constraint<'_>) -> Option<&str> {
    constraint.match_attribute().or(constraint.distinct_attribute())
}

/// Returns pairs of request (empty for all requests) and constrained attribute; `None` if there are so few that
/// searching is faster.
// upstream v1.37 gatherConstraintAttributes
fn index_constraints_if_many<'d>(
    constraints: List<'d, Constraint<'d>>,
) -> Option<HashSet<(&'d str, &'d str)>> {
    let references: usize = constraints.iter().map(|constraint| 1 + constraint.requests().len()).sum();
    if references <= lists::MAX_SEARCHED_ITEMS {
        return None;
    }
    let mut index = HashSet::new();
    for constraint in constraints.iter() {
        let Some(name) = constrained_attribute(constraint) else { continue };
        if constraint.requests().is_empty() {
            index.insert(("", name));
        }
        index.extend(constraint.requests().iter().map(|reference| (reference, name)));
    }
    Some(index)
}
