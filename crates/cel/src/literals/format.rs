//! Literal format strings: `"%s has %d".format([name, count])`.
//!
//! Checks the clauses against the number and types of the arguments when both are literals, and stops at the first
//! that is wrong. cel-go `ext/formatting.go`, `stringFormatValidator`

use crate::check::TypeCheckResult;
use crate::evaluate::{clause_type_requirement, read_precision};
use crate::issue::Issues;
use crate::tree::{Element, ExprKind, Literal, NodeId, Tree};
use crate::types::Type;

/// Reports what is wrong with a call of `format`, if its format string and its list of arguments are literals.
pub(super) fn check_format_call(
    tree: &Tree,
    checked: &TypeCheckResult,
    [call, target, list]: [NodeId; 3],
    issues: &mut Issues<'_>,
) {
    let (ExprKind::Literal(Literal::String(text)), ExprKind::List { elements }) =
        (tree.kind(target), tree.kind(list))
    else {
        return;
    };
    match (FormatArguments { tree, checked, args: elements }).check_clauses_and_count_arguments(text) {
        Err((culprit, message)) => issues.report(tree.error_offset(culprit.unwrap_or(call)), message),
        Ok(used) if elements.len() > used => {
            let message = format!(
                "too many arguments supplied to string.format (expected {used}, got {})",
                elements.len()
            );
            issues.report(tree.error_offset(call), message);
        }
        Ok(_) => {}
    }
}

/// An error message, and the argument it is about; `None` if it is about the format string.
type FormatError = (Option<NodeId>, String);

/// The arguments of a call of `format`, against which the clauses of its format string are checked.
struct FormatArguments<'t> {
    tree: &'t Tree,
    checked: &'t TypeCheckResult,
    args: &'t [Element],
}

impl FormatArguments<'_> {
    /// Checks all clauses, and returns how many arguments they use.
    fn check_clauses_and_count_arguments(&self, text: &str) -> Result<usize, FormatError> {
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
            let Some(arg) = self.args.get(used) else {
                return Err((None, format!("index {used} out of range")));
            };
            let (clause, _) = read_precision(after).map_err(|problem| (None, problem))?;
            self.check_clause(clause, arg.value)?;
            used += 1;
            let mut behind = clause.chars();
            behind.next();
            rest = behind.as_str();
        }
        Ok(used)
    }

    /// Checks that an argument matches a formatting clause, whose text begins with its verb.
    fn check_clause(&self, clause: &str, arg: NodeId) -> Result<(), FormatError> {
        let found = self.checked.type_of(arg).without_wrapper();
        // The server reads a byte for a character.
        let verb = clause.bytes().next().map_or('\0', char::from);
        let rule = clause_type_requirement(verb).map_err(|problem| (None, problem))?;
        let fits = match verb {
            's' => return self.check_string_argument(arg, rule),
            'd' | 'o' => matches!(found, Type::Int | Type::Uint),
            'f' | 'e' => matches!(found, Type::Double | Type::String),
            'b' => matches!(found, Type::Int | Type::Uint | Type::Bool),
            _ => matches!(found, Type::Int | Type::Uint | Type::String | Type::Bytes),
        };
        if fits || *found == Type::Dyn { Ok(()) } else { Err(self.wrong_argument(arg, rule)) }
    }

    /// Checks the argument of `%s`, which takes nearly all types. In list and map literals, each element is checked.
    fn check_string_argument(&self, arg: NodeId, rule: &str) -> Result<(), FormatError> {
        let found = self.checked.type_of(arg);
        if matches!(found, Type::Named(_) | Type::Optional(_) | Type::Any) {
            return Err(self.wrong_argument(arg, rule));
        }
        match self.tree.kind(arg) {
            ExprKind::List { .. } | ExprKind::Map { .. } => {
                let mut children = self.tree.children(arg).into_iter();
                children.try_for_each(|child| self.check_string_argument(child, rule))
            }
            _ => Ok(()),
        }
    }

    /// The complaint that an argument has the wrong type for its clause.
    fn wrong_argument(&self, arg: NodeId, rule: &str) -> FormatError {
        let found = self.checked.type_of(arg).without_wrapper().bare_name();
        (Some(arg), format!("error during formatting: {rule}, was given {found}"))
    }
}
