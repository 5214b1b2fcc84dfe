//! A toleration without a key: it tolerates every taint of every device.

use crate::api::view::Toleration;
use crate::field::Path;
use crate::finding::{BadValue, Kind};
use crate::rules::{Cx, rules};

rules! { Lint, Warn;
    /// Exists without a key.
    BLANKET = "blanket-toleration",
}

pub(crate) fn check(cx: &mut Cx<'_, '_>, at: &Path<'_>, toleration: Toleration<'_>) {
    if !toleration.key().is_empty() || toleration.operator() != "Exists" {
        return;
    }
    let kind_of_taint = match toleration.effect() {
        "" => String::new(),
        effect => format!("{effect} "),
    };
    let detail =
        format!("without a key this tolerates every {kind_of_taint}taint of every device; name the key");
    cx.report(BLANKET, &at.field("operator"), Kind::Invalid, BadValue::named("Exists"), detail);
}
