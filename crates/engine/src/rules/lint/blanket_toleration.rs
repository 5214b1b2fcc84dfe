//! A toleration without a key: it tolerates every taint of every device.

use crate::rules::{Cx, rules};
use tollgate_api::view::Toleration;
use tollgate_document::field::Path;
use tollgate_document::finding::{BadValue, ErrorType};

rules! { Lint, Warn;
    /// Exists without a key.
    BLANKET = "blanket-toleration",
}

pub(super) fn check(cx: &mut Cx<'_, '_>, at: &Path<'_>, toleration: Toleration<'_>) {
    if !toleration.key().is_empty() || toleration.operator() != "Exists" {
        return;
    }
    let at = at.field("operator");
    let detail = match toleration.effect() {
        "" => "`operator: Exists` without a key tolerates every taint on every device".to_owned(),
        effect => format!("`operator: Exists` without a key tolerates every {effect} taint on every device"),
    };
    cx.report(BLANKET, &at, ErrorType::Invalid, BadValue::named("Exists"), detail);
    cx.help(BLANKET, "set `key` to the key of the taint that you want to tolerate");
}
