//! A toleration without a key: it tolerates every taint of every device.

use crate::rules::RuleContext;
use crate::rules::table::BLANKET_TOLERATION;
use tollgate_api::view::Toleration;
use tollgate_document::field::Path;
use tollgate_document::finding::BadValue;

pub(super) fn check(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, toleration: Toleration<'_>) {
    if !toleration.key().is_empty() || toleration.operator() != "Exists" {
        return;
    }
    let detail = match toleration.effect() {
        "" => "`operator: Exists` without a key tolerates every taint on every device".to_owned(),
        effect => format!("`operator: Exists` without a key tolerates every {effect} taint on every device"),
    };
    cx.report(BLANKET_TOLERATION, &at.field("operator"))
        .invalid(BadValue::json_quoted_string("Exists"), detail)
        .help("set `key` to the key of the taint that you want to tolerate");
}
