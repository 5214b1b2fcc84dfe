//! What the server checks after types: that literal durations, timestamps, patterns and format
//! strings make sense, and that the elements of a list or map literal have one type.
//!
//! cel-go calls these AST validators. They look at literals only; the same mistake in a computed
//! value shows when the expression runs.

use super::check::TypeCheckResult;
use super::evaluate;
use super::issue::Issues;
use super::outcome::{CelEnv, VariableScope};
use super::regex;
use super::tree::{Element, ExprKind, Literal, MapEntry, NodeId, Tree};
use super::types::Type;

mod format;

/// Reports invalid literals, and lists and maps with mixed types. The tree must have no type errors.
pub(super) fn check_literals(tree: &Tree, checked: &TypeCheckResult, env: CelEnv, issues: &mut Issues<'_>) {
    let in_format = inside_format_calls(tree);
    let is_exempt = |id: NodeId| in_format.get(id.index()).is_some_and(|inside| *inside);
    for id in tree.ids().filter(|id| checked.is_typed(*id)) {
        match tree.kind(id) {
            ExprKind::Call { function, args, .. } => {
                if let Some((at, message)) = invalid_literal_argument(tree, function, args, env) {
                    issues.report(at, message);
                }
            }
            // Policies may mix types: what is made of such a list can still be evaluated.
            ExprKind::List { .. } | ExprKind::Map { .. } if env.mixed_literals => {}
            ExprKind::List { elements } if !is_exempt(id) => {
                check_elements_have_one_type(tree, checked, elements, issues)
            }
            ExprKind::Map { entries } if !is_exempt(id) => {
                check_entries_have_uniform_types(tree, checked, entries, issues)
            }
            _ => {}
        }
    }
    // After the others, as issues at one place stay in this order.
    for id in tree.ids().filter(|id| checked.is_typed(*id)) {
        if let ExprKind::Call { function, target: Some(target), args } = tree.kind(id)
            && let ("format", [list]) = (function.as_str(), args.as_slice())
        {
            format::check_format_call(tree, checked, [id, *target, *list], issues);
        }
    }
}

/// The position and message if the first argument of a call is an invalid duration, timestamp or pattern;
/// `None` if it is valid. For `matches(text, pattern)`, the text is checked instead of the pattern, as on the
/// server.
fn invalid_literal_argument(
    tree: &Tree,
    function: &str,
    args: &[NodeId],
    env: CelEnv,
) -> Option<(usize, String)> {
    let function = function.strip_prefix('.').unwrap_or(function);
    let first = *args.first()?;
    let ExprKind::Literal(literal) = tree.kind(first) else { return None };
    let is_bad = match (function, literal) {
        ("duration" | "timestamp", _) => evaluate::conversion_fails(function, literal),
        // Policies have an engine of their own, with other limits. It checks their patterns.
        ("matches", Literal::String(pattern)) if env.scope == VariableScope::Device => {
            regex::go_program_size(pattern).is_err()
        }
        _ => false,
    };
    is_bad.then(|| (tree.error_offset(first), format!("invalid {function} argument")))
}

/// Reports the first element of a list that has another type than its first element.
fn check_elements_have_one_type(
    tree: &Tree,
    checked: &TypeCheckResult,
    elements: &[Element],
    issues: &mut Issues<'_>,
) {
    let mut expected = None;
    for element in elements {
        let at = tree.error_offset(element.value);
        let found = checked.type_of(element.value);
        let Some(found) = without_optional(found, element.optional) else {
            return issues.report(at, panic_message(found));
        };
        let expected: &Type = expected.get_or_insert(found);
        if !expected.is_equal_ignoring_nullability(found) {
            return issues.report(at, expected.mismatch_message(found));
        }
    }
}

/// Reports every key and every value of a map that has another type than the first one.
fn check_entries_have_uniform_types(
    tree: &Tree,
    checked: &TypeCheckResult,
    entries: &[MapEntry],
    issues: &mut Issues<'_>,
) {
    let mut expected = None;
    for entry in entries {
        let (found_key, found_value) = (checked.type_of(entry.key), checked.type_of(entry.value));
        let Some(found_value) = without_optional(found_value, entry.optional) else {
            return issues.report(tree.error_offset(entry.value), panic_message(found_value));
        };
        let (key, value): (&Type, &Type) = *expected.get_or_insert((found_key, found_value));
        if !key.is_equal_ignoring_nullability(found_key) {
            issues.report(tree.error_offset(entry.key), key.mismatch_message(found_key));
        }
        if !value.is_equal_ignoring_nullability(found_value) {
            issues.report(tree.error_offset(entry.value), value.mismatch_message(found_value));
        }
    }
}

/// The type inside of an optional, if the element was written as optional; otherwise the type itself. `None` if the
/// element was written as optional, but its type is unknown.
fn without_optional(found: &Type, is_optional: bool) -> Option<&Type> {
    match found {
        Type::Optional(inner) if is_optional => Some(inner),
        other => (!is_optional).then_some(other),
    }
}

/// The message about an optional element whose type is unknown. The type checker accepts it, but then cel-go reads the
/// first parameter of a type that has no parameters. The server panics and gives no answer.
fn panic_message(found: &Type) -> String {
    format!(
        "an optional element of type '{}' causes a panic in the API server: use an optional value, such as '.?name' \
         instead of '.name', or remove the '?' before the element",
        found.compile_error_spelling()
    )
}

/// For each node, whether it is inside an argument of `format`, where lists may contain mixed types.
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
