//! `skipNodeOperations` of a slice or an allocation result: the operations on a node that the driver does not need.

use super::{hub, lists};
use crate::rules::RuleContext;
use crate::rules::table::SKIP_NODE_OPERATIONS;
use tollgate_api::view::Strings;
use tollgate_document::field::Path;
use tollgate_document::finding::BadValue;

const KNOWN_OPERATIONS: [&str; 3] = ["*", "NodePrepareResources", "NodeUnprepareResources"];

/// Checks the list at `at`. `old` is the stored list, whose items declarative validation does not check again.
// upstream v1.37 validateSkipNodeOperations
pub fn check_skip_node_operations(
    cx: &mut RuleContext<'_, '_>,
    at: &Path<'_>,
    list: Strings<'_>,
    old: Strings<'_>,
) {
    let unchanged = list.iter().eq(old.iter());
    cx.check_with_declarative_if_changed(unchanged, |cx| {
        lists::for_each_duplicate(list.iter(), |index, operation| {
            let value = BadValue::json_quoted_string(operation);
            cx.report(SKIP_NODE_OPERATIONS, &at.index(index)).declarative_only().duplicate(value, "");
        });
        let stored = lists::index_names(old.iter());
        for (index, operation) in list.iter().enumerate() {
            if !KNOWN_OPERATIONS.contains(&operation) && stored.get(operation).is_none() {
                let value = BadValue::json_quoted_string(operation);
                cx.report(SKIP_NODE_OPERATIONS, &at.index(index))
                    .declarative_only()
                    .not_supported_with_suggestion(value, operation, &KNOWN_OPERATIONS);
            }
        }
    });
    let skips = |operation| list.contains(operation);
    if skips("NodePrepareResources") && !skips("NodeUnprepareResources") && !skips("*") {
        let detail = "NodePrepareResources cannot be skipped unless NodeUnprepareResources is also skipped";
        let value = hub::go_printed_value(cx, list.0, &hub::STRING_LIST_TYPE);
        cx.report(SKIP_NODE_OPERATIONS, at).invalid(value, detail);
    }
}
