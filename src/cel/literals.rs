//! What the server checks after types: that literal durations, timestamps, patterns and format
//! strings make sense, and that the elements of a list or map literal have one type.
//!
//! cel-go calls these AST validators. They look at literals only; the same mistake in a computed
//! value shows when the expression runs.

use super::check::Checked;
use super::issue::Issues;
use super::regex;
use super::time;
use super::tree::{Element, ExprKind, Literal, NodeId, Tree};
use super::types::Type;

mod format;

/// Call only on a tree whose types are right.
pub(super) fn validate(tree: &Tree, checked: &Checked, issues: &mut Issues<'_>) {
    let in_format = inside_format_calls(tree);
    for id in tree.ids().filter(|id| checked.is_typed(*id)) {
        match tree.kind(id) {
            ExprKind::Call { function, target, args } => {
                if let Some((at, message)) = bad_argument(tree, function, target.is_some(), args) {
                    issues.report(at, message);
                }
                if let ("format", Some(target), [list]) = (function.as_str(), target, args.as_slice()) {
                    format::validate(tree, checked, id, *target, *list, issues);
                }
            }
            ExprKind::List { elements } if !in_format.get(id.index()).is_some_and(|inside| *inside) => {
                let elements = elements.iter().map(|element| (*element, checked.type_of(element.value)));
                one_type(tree, elements, issues);
            }
            ExprKind::Map { entries } if !in_format.get(id.index()).is_some_and(|inside| *inside) => {
                let keys = entries.iter().map(|entry| Element { value: entry.key, optional: false });
                one_type(tree, keys.map(|key| (key, checked.type_of(key.value))), issues);
                let values =
                    entries.iter().map(|entry| Element { value: entry.value, optional: entry.optional });
                one_type(tree, values.map(|value| (value, checked.type_of(value.value))), issues);
            }
            _ => {}
        }
    }
}

fn bad_argument(
    tree: &Tree,
    function: &str,
    has_target: bool,
    args: &[NodeId],
) -> Option<(usize, &'static str)> {
    let first = *args.first()?;
    let ExprKind::Literal(literal) = tree.kind(first) else { return None };
    let complaint = match (function, literal) {
        ("duration", Literal::String(text)) if !time::is_duration(text) => "invalid duration argument",
        ("timestamp", Literal::String(text)) if !time::is_timestamp(text) => "invalid timestamp argument",
        ("timestamp", Literal::Int(seconds)) if !time::is_timestamp_seconds(*seconds) => {
            "invalid timestamp argument"
        }
        ("matches", Literal::String(pattern)) if has_target && !regex::is_valid(pattern) => {
            "invalid matches argument"
        }
        _ => return None,
    };
    Some((tree.at(first), complaint))
}

/// The first element that differs from the one before it is the one reported.
fn one_type<'c>(tree: &Tree, elements: impl Iterator<Item = (Element, &'c Type)>, issues: &mut Issues<'_>) {
    let mut expected: Option<Type> = None;
    for (element, found) in elements {
        let found = match found {
            Type::Optional(inner) if element.optional => inner,
            other => other,
        };
        match &expected {
            None => expected = Some(found.clone()),
            Some(expected) if expected == found => {}
            Some(expected) => {
                let message = format!("expected type '{}' but found '{}'", expected.shown(), found.shown());
                issues.report(tree.at(element.value), message);
                return;
            }
        }
    }
}

/// Arguments of `format` may differ in type. Indexed by node.
fn inside_format_calls(tree: &Tree) -> Vec<bool> {
    let mut inside = vec![false; tree.len()];
    let mut pending: Vec<NodeId> = tree
        .ids()
        .filter(|id| matches!(tree.kind(*id), ExprKind::Call { function, .. } if function == "format"))
        .flat_map(|id| tree.children(id))
        .collect();
    while let Some(id) = pending.pop() {
        if let Some(seen @ false) = inside.get_mut(id.index()) {
            *seen = true;
            pending.extend(tree.children(id));
        }
    }
    inside
}
