//! A toleration that occurs twice in one request.

use crate::rules::table::DUPLICATE_TOLERATION;
use crate::rules::{RuleContext, duplicates};
use tollgate_api::view::{List, Toleration};
use tollgate_document::field::Path;
use tollgate_document::finding::{Edit, Fix};

const SAME_DETAIL: &str = "an earlier toleration has the same key, operator, value and effect";
const OTHER_SECONDS_DETAIL: &str = "an earlier toleration differs from this one only in `tolerationSeconds`";
const HELP: &str = "the shorter `tolerationSeconds` applies (an unset field means forever); remove one of the two \
                    tolerations";

pub(super) fn check<'d>(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, list: List<'d, Toleration<'d>>) {
    // Tolerations that are equal in these are duplicates, regardless of their seconds.
    let identity = |toleration: Toleration<'d>| {
        [toleration.key(), toleration.value(), toleration.operator(), toleration.effect()].map(str::as_bytes)
    };
    duplicates::for_each_repeat(list.iter(), identity, |(first, one), (later, other)| {
        let same_time = one.toleration_seconds() == other.toleration_seconds();
        let detail = if same_time { SAME_DETAIL } else { OTHER_SECONDS_DETAIL };
        let later_at = at.index(later);
        let reported = cx
            .report(DUPLICATE_TOLERATION, &later_at)
            .duplicate(other.key(), detail)
            .also_at(&at.index(first));
        if same_time {
            let edit = || Edit::Remove { at: later_at.owned() };
            reported
                .help("remove one of the two tolerations")
                .fix_if_fixable(|| Fix::safe("Remove the repeated toleration", edit()));
        } else {
            reported.help(HELP);
        }
    });
}
