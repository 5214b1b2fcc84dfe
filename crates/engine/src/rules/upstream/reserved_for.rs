//! `status.reservedFor` of a claim: who may use the allocated devices.

use super::lists;
use crate::rules::RuleContext;
use crate::rules::table::{RESERVED_FOR, TOO_MANY_CONSUMERS};
use tollgate_api::equal;
use tollgate_api::fields::{CLAIM_STATUS, CONSUMER};
use tollgate_api::view::{ClaimStatus, Consumer, View as _};
use tollgate_document::field::Path;
use tollgate_document::finding::BadValue;

/// Maximum number of consumers of one claim.
const MAX_CONSUMERS: usize = 256;

/// Checks the entries, each by itself and for duplicates.
// upstream v1.36 validateResourceClaimStatusUpdate, validateResourceClaimUserReference
pub fn check_reserved_for(
    cx: &mut RuleContext<'_, '_>,
    at: &Path<'_>,
    new: ClaimStatus<'_>,
    old: ClaimStatus<'_>,
) {
    let list = new.reserved_for();
    let unchanged = equal::same_member(new.json(), old.json(), &CLAIM_STATUS, "reservedFor");
    cx.check_with_declarative_if_changed(unchanged, |cx| {
        if !lists::report_too_many_and_should_continue(cx, TOO_MANY_CONSUMERS, at, list.len(), MAX_CONSUMERS)
        {
            return;
        }
        for (index, consumer) in list.iter().enumerate() {
            let at = at.index(index);
            for (field, value) in
                [("resource", consumer.resource()), ("name", consumer.name()), ("uid", consumer.uid())]
            {
                if value.is_empty() {
                    cx.report(RESERVED_FOR, &at.field(field)).required("");
                }
            }
        }
        let print = if cx.profile.quotes_null { BadValue::str } else { BadValue::json_quoted_string };
        lists::check_unique_key(cx, RESERVED_FOR, at, list.value(), &CONSUMER, "uid", print);
    });
}

/// Checks that only an allocated claim is reserved, and that an object that is being deleted gets no new consumers.
pub fn check_may_be_reserved(
    cx: &mut RuleContext<'_, '_>,
    at: &Path<'_>,
    new: ClaimStatus<'_>,
    old: ClaimStatus<'_>,
    is_deleted: bool,
) {
    let list = new.reserved_for();
    if list.is_empty() {
        return;
    }
    if new.allocation().is_none() {
        cx.report(RESERVED_FOR, at).forbidden("may not be specified when `allocated` is not set");
    } else if is_deleted {
        let stored = lists::ItemsByKey::from_items(old.reserved_for().iter(), all_fields);
        if list.iter().any(|consumer| stored.get(&all_fields(consumer)).is_none()) {
            let detail =
                "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set";
            cx.report(RESERVED_FOR, at).forbidden(detail);
        }
    }
}

/// Returns all fields of an entry, for comparing.
fn all_fields(consumer: Consumer<'_>) -> Vec<&str> {
    CONSUMER.fields.iter().map(|field| consumer.json().get(field.json).str()).collect()
}
