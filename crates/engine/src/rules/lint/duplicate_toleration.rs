//! A toleration that occurs twice in one request.

use crate::rules::{Cx, duplicates, rules};
use tollgate_api::view::{List, Toleration};
use tollgate_document::field::Path;
use tollgate_document::finding::{BadValue, Edit, ErrorType, Fix};

rules! { Lint, Warn;
    /// Key, operator, value and effect occurred before.
    DUPLICATE = "duplicate-toleration",
}

const SAME: &str = "an earlier toleration has the same key, operator, value and effect";
const OTHER_PERIOD: &str = "an earlier toleration differs from this one only in `tolerationSeconds`";
const HELP: &str = "the shorter `tolerationSeconds` applies (an unset field means forever); remove one of the two \
                    tolerations";

pub(super) fn check(cx: &mut Cx<'_, '_>, at: &Path<'_>, list: List<'_, Toleration<'_>>) {
    duplicates::each(list.iter(), identity, |(first, one), (later, other)| {
        let same_time = one.toleration_seconds() == other.toleration_seconds();
        let detail = if same_time { SAME } else { OTHER_PERIOD };
        cx.report(DUPLICATE, &at.index(later), ErrorType::Duplicate, BadValue::str(other.key()), detail);
        cx.also(DUPLICATE, &at.index(first));
        if same_time {
            let edit = || Edit::Remove { at: at.index(later).owned() };
            cx.help(DUPLICATE, "remove one of the two tolerations");
            cx.fix(DUPLICATE, || Fix::safe("Remove the repeated toleration", edit()));
        } else {
            cx.help(DUPLICATE, HELP);
        }
    });
}

fn identity(toleration: Toleration<'_>) -> [&[u8]; 4] {
    [toleration.key(), toleration.value(), toleration.operator(), toleration.effect()].map(str::as_bytes)
}
