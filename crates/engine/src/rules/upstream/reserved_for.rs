//! `status.reservedFor` of a claim: who may use the allocated devices.

use super::lists;
use crate::rules::RuleContext;
use crate::rules::table::{RESERVED_FOR, TOO_MANY_CONSUMERS};
use tollgate_api::fields::{CLAIM_STATUS, CONSUMER};
use tollgate_api::view::{ClaimStatus, Consumer, List, View as _};
use tollgate_api::{equal, print};
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
    cx.check_part(unchanged, |cx| {
        if !lists::check_max_items(cx, TOO_MANY_CONSUMERS, at, list.len(), MAX_CONSUMERS) {
            return;
        }
        for (index, consumer) in list.iter().enumerate() {
            check_consumer(cx, &at.index(index), consumer);
        }
        check_duplicates(cx, at, list);
    });
}

fn check_consumer(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, consumer: Consumer<'_>) {
    for (field, value) in
        [("resource", consumer.resource()), ("name", consumer.name()), ("uid", consumer.uid())]
    {
        if value.is_empty() {
            cx.report(RESERVED_FOR, &at.field(field)).required("");
        }
    }
}

fn check_duplicates(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, list: List<'_, Consumer<'_>>) {
    let entries = list.iter().enumerate();
    lists::for_each_duplicate_by(
        entries,
        |(_, consumer)| consumer.uid(),
        |(index, consumer)| {
            let at = at.index(index);
            if cx.is_declarative {
                let whole =
                    print::struct_text(consumer.json(), &CONSUMER, cx.profile.fields, cx.max_text_bytes());
                cx.report(RESERVED_FOR, &at).declarative_only().duplicate(BadValue::Json(whole.into()), "");
                return;
            }
            let value = lists::named_string(cx, consumer.uid());
            if cx.profile.duplicates_at_key_field {
                cx.report(RESERVED_FOR, &at.field("uid")).duplicate(value, "");
            } else {
                cx.report(RESERVED_FOR, &at).duplicate(value, "");
            }
        },
    );
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
    } else if is_deleted && has_new_consumers(list, old.reserved_for()) {
        let detail =
            "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set";
        cx.report(RESERVED_FOR, at).forbidden(detail);
    }
}

/// True if an entry is not among the stored ones.
fn has_new_consumers(new: List<'_, Consumer<'_>>, old: List<'_, Consumer<'_>>) -> bool {
    let stored = lists::ItemsByKey::from_items(old.iter(), all_fields);
    new.iter().any(|consumer| stored.get(&all_fields(consumer)).is_none())
}

/// Returns all fields of an entry, for comparing.
fn all_fields(consumer: Consumer<'_>) -> Vec<&str> {
    CONSUMER.fields.iter().map(|field| consumer.json().get(field.json).str()).collect()
}
