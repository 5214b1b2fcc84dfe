//! A toleration without an effect: the scheduler takes it for every effect, the eviction controller for none. By the words
//! of the drafts it is every effect for both.

use crate::api::view::Toleration;
use crate::field::Path;
use crate::finding::{BadValue, ErrorType};
use crate::rules::{Cx, rules};

rules! { Lint, Warn;
    /// No effect.
    NO_EFFECT = "toleration-without-effect",
}

const DETAIL: &str = "pods are scheduled onto NoExecute taints, then evicted";
const HELP: &str = "the eviction controller counts only tolerations that say NoExecute; name the effect, or write one \
                    toleration for each";

pub(crate) fn check(cx: &mut Cx<'_, '_>, at: &Path<'_>, toleration: Toleration<'_>) {
    if toleration.effect().is_empty() && !cx.profile.empty_effect_stops_eviction {
        cx.report(NO_EFFECT, &at.field("effect"), ErrorType::Required, BadValue::Omitted, DETAIL);
        cx.help(NO_EFFECT, HELP);
    }
}
