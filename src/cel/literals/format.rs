//! Literal format strings: `"%s has %d".format([name, count])`.
//!
//! Checks the clauses against the number and types of the arguments when both are written out.

use crate::cel::check::Checked;
use crate::cel::issue::Issues;
use crate::cel::tree::{Element, ExprKind, Literal, NodeId, Tree};
use crate::cel::types::Type;

pub(super) fn validate(
    tree: &Tree,
    checked: &Checked,
    call: NodeId,
    target: NodeId,
    list: NodeId,
    issues: &mut Issues<'_>,
) {
    let (ExprKind::Literal(Literal::String(text)), ExprKind::List { elements }) =
        (tree.kind(target), tree.kind(list))
    else {
        return;
    };
    match clauses(text, tree, checked, elements) {
        Err((culprit, message)) => issues.report(tree.at(culprit.unwrap_or(call)), message),
        Ok(used) if elements.len() > used => {
            let message = format!(
                "too many arguments supplied to string.format (expected {used}, got {})",
                elements.len()
            );
            issues.report(tree.at(call), message);
        }
        Ok(_) => {}
    }
}

type Complaint = (Option<NodeId>, String);

/// How many arguments the clauses use.
fn clauses(text: &str, tree: &Tree, checked: &Checked, args: &[Element]) -> Result<usize, Complaint> {
    let mut used = 0;
    let mut rest = text;
    while let Some((_, after)) = rest.split_once('%') {
        if let Some(literal) = after.strip_prefix('%') {
            rest = literal;
            continue;
        }
        if after.is_empty() {
            return Err((None, "unexpected end of string".to_owned()));
        }
        let Some(arg) = args.get(used) else { return Err((None, format!("index {used} out of range"))) };
        let clause = match after.strip_prefix('.') {
            Some(precision) => precision.trim_start_matches(|c: char| c.is_ascii_digit()),
            None => after,
        };
        let Some(verb) = clause.chars().next() else {
            return Err((None, "could not find end of precision specifier".to_owned()));
        };
        agrees(verb, tree, checked, arg.value)?;
        used += 1;
        rest = clause.get(verb.len_utf8()..).unwrap_or("");
    }
    Ok(used)
}

fn agrees(verb: char, tree: &Tree, checked: &Checked, arg: NodeId) -> Result<(), Complaint> {
    let found = checked.type_of(arg);
    let (fits, complaint) = match verb {
        's' => return printable(tree, checked, arg),
        'd' => (matches!(found, Type::Int | Type::Uint), "decimal clause can only be used on integers"),
        'o' => (matches!(found, Type::Int | Type::Uint), "octal clause can only be used on integers"),
        'f' => {
            (matches!(found, Type::Double | Type::String), "fixed-point clause can only be used on doubles")
        }
        'e' => {
            (matches!(found, Type::Double | Type::String), "scientific clause can only be used on doubles")
        }
        'b' => (
            matches!(found, Type::Int | Type::Uint | Type::Bool),
            "only integers and bools can be formatted as binary",
        ),
        'x' | 'X' => (
            matches!(found, Type::Int | Type::Uint | Type::String | Type::Bytes),
            "only integers, byte buffers, and strings can be formatted as hex",
        ),
        other => {
            let message =
                format!("could not parse formatting clause: unrecognized formatting clause \"{other}\"");
            return Err((None, message));
        }
    };
    // Later releases print doubles with `%d` and ints with `%f`; numbers are left to them.
    let is_number = matches!(found, Type::Int | Type::Uint | Type::Double);
    if fits || found.is_dyn_or_error() || (is_number && verb != 'b') {
        return Ok(());
    }
    Err((Some(arg), format!("error during formatting: {complaint}, was given {}", found.declared())))
}

fn printable(tree: &Tree, checked: &Checked, arg: NodeId) -> Result<(), Complaint> {
    let found = checked.type_of(arg);
    if matches!(found, Type::Named(_) | Type::Optional(_)) {
        let message = format!(
            "error during formatting: string clause can only be used on strings, bools, bytes, ints, doubles, maps, \
             lists, types, durations, and timestamps, was given {}",
            found.declared()
        );
        return Err((Some(arg), message));
    }
    match tree.kind(arg) {
        ExprKind::List { .. } | ExprKind::Map { .. } => {
            tree.children(arg).into_iter().try_for_each(|child| printable(tree, checked, child))
        }
        _ => Ok(()),
    }
}
