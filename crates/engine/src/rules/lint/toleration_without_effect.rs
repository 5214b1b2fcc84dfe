//! A toleration without an effect: the scheduler applies it to every effect, the eviction controller to none. According
//! to the drafts, both apply it to every effect.

use crate::rules::RuleContext;
use crate::rules::table::TOLERATION_WITHOUT_EFFECT;
use tollgate_api::view::Toleration;
use tollgate_document::field::Path;

const DETAIL: &str =
    "without an effect, pods can be scheduled onto devices tainted NoExecute and are then evicted";
const SHORT: &str = "without an effect, pods on devices tainted NoExecute are evicted";
const HELP: &str = "set `effect` to `NoSchedule` or `NoExecute`, or add one toleration for each effect; the eviction \
                    controller ignores tolerations without `effect: NoExecute`";

pub(super) fn check(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, toleration: Toleration<'_>) {
    if toleration.effect().is_empty() && !cx.profile.empty_effect_stops_eviction {
        cx.report(TOLERATION_WITHOUT_EFFECT, &at.field("effect"))
            .required(DETAIL)
            .short_detail(SHORT)
            .help(HELP);
    }
}
