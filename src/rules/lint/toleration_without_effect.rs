//! A toleration without an effect: the scheduler takes it for every effect, the eviction controller for none.

use crate::api::view::Toleration;
use crate::field::Path;
use crate::finding::{BadValue, Kind};
use crate::rules::{Cx, rules};

rules! { Lint, Warn;
    /// No effect.
    NO_EFFECT = "toleration-without-effect",
}

const DETAIL: &str = "without it a NoExecute taint is tolerated when the pod is scheduled and not when pods are \
                      evicted: the pod starts and is deleted; name NoSchedule or NoExecute, or write one toleration for each";

pub(crate) fn check(cx: &mut Cx<'_, '_>, at: &Path<'_>, toleration: Toleration<'_>) {
    if toleration.effect().is_empty() {
        cx.report(NO_EFFECT, &at.field("effect"), Kind::Required, BadValue::Omitted, DETAIL);
    }
}
