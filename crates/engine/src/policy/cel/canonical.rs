//! One text for all expressions that differ only in how they are written: spaces, parentheses, quotes, the order of
//! operands of `&&`, `||`, `==` and `!=`, and the names of loop variables.
//!
//! Not here: any other knowledge of when two expressions are equal. Expressions with different texts may be equal.
//!
//! Invariant: expressions with the same text have the same result for every request, errors included.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use ::cel::IdedExpr;
use ::cel::common::ast::{CallExpr, EntryExpr, Expr, LiteralValue, operators};

use super::env;

/// Splits an expression at `&&` into the parts that must all be true, each as a canonical text; a part that is the
/// literal `true` is omitted. `None` if the expression cannot be parsed.
pub(in crate::policy) fn conjuncts(expression: &str) -> Option<BTreeSet<String>> {
    let parsed = env().parser().parse(expression).ok()?;
    let mut writer = CanonicalWriter::default();
    let mut parts = BTreeSet::new();
    writer.collect_operands(&parsed, operators::LOGICAL_AND, &mut parts);
    parts.remove("true");
    Some(parts)
}

/// Writes expressions so that equal ones have equal texts, however they are formatted.
#[derive(Default)]
struct CanonicalWriter {
    /// Loop variables in scope, the innermost last.
    scope: Vec<String>,
}

impl CanonicalWriter {
    fn node_text(&mut self, node: &IdedExpr) -> String {
        match &node.expr {
            Expr::Unspecified => "unspecified".to_owned(),
            Expr::Ident(name) => match self.scope.iter().rposition(|known| known == name) {
                Some(depth) => format!("@{depth}"),
                None => name.clone(),
            },
            Expr::Literal(literal) => literal_text(literal),
            Expr::Call(call) => self.call_text(node, call),
            Expr::Select(select) => {
                let what = if select.test { "?" } else { "" };
                format!("{}.{what}{}", self.node_text(&select.operand), select.field)
            }
            Expr::List(list) => {
                let items: Vec<String> =
                    list.elements.iter().map(|element| self.node_text(element)).collect();
                format!("[{:?};{}]", list.optional_indices, items.join(","))
            }
            Expr::Map(map) => self.entries_text("", &map.entries),
            Expr::Struct(made) => self.entries_text(&made.type_name, &made.entries),
            Expr::Comprehension(each) => {
                let (range, start) = (self.node_text(&each.iter_range), self.node_text(&each.accu_init));
                let outside = self.scope.len();
                self.scope.push(each.iter_var.clone());
                self.scope.extend(each.iter_var2.clone());
                self.scope.push(each.accu_var.clone());
                let parts = [&each.loop_cond, &each.loop_step, &each.result].map(|part| self.node_text(part));
                self.scope.truncate(outside);
                format!("each{}({range};{start};{})", u8::from(each.iter_var2.is_some()), parts.join(";"))
            }
        }
    }

    fn call_text(&mut self, node: &IdedExpr, call: &CallExpr) -> String {
        let name = call.func_name.as_str();
        if call.target.is_none() && matches!(name, operators::LOGICAL_AND | operators::LOGICAL_OR) {
            let mut parts = BTreeSet::new();
            self.collect_operands(node, name, &mut parts);
            // The neutral element.
            parts.remove(if name == operators::LOGICAL_AND { "true" } else { "false" });
            let parts: Vec<String> = parts.into_iter().collect();
            return match parts.as_slice() {
                [] => (name == operators::LOGICAL_AND).to_string(),
                [only] => only.clone(),
                _ => format!("{name}({})", parts.join(",")),
            };
        }
        let mut arguments: Vec<String> = call.args.iter().map(|argument| self.node_text(argument)).collect();
        if matches!(name, operators::EQUALS | operators::NOT_EQUALS) {
            arguments.sort();
        }
        let target =
            call.target.as_ref().map(|target| format!("{}.", self.node_text(target))).unwrap_or_default();
        format!("{target}{name}({})", arguments.join(","))
    }

    /// Collects the operands of nested calls of one logical operator.
    fn collect_operands(&mut self, node: &IdedExpr, operator: &str, into: &mut BTreeSet<String>) {
        match &node.expr {
            Expr::Call(call) if call.target.is_none() && call.func_name == operator => {
                for argument in &call.args {
                    self.collect_operands(argument, operator, into);
                }
            }
            _ => _ = into.insert(self.node_text(node)),
        }
    }

    fn entries_text(&mut self, name: &str, entries: &[::cel::common::ast::IdedEntryExpr]) -> String {
        let mut out = format!("{name}{{");
        for entry in entries {
            let (key, value, optional) = match &entry.expr {
                EntryExpr::MapEntry(entry) => (self.node_text(&entry.key), &entry.value, entry.optional),
                EntryExpr::StructField(field) => (field.field.clone(), &field.value, field.optional),
            };
            let value = self.node_text(value);
            // Writing to a `String` cannot fail.
            _ = write!(out, "{optional} {key}: {value},");
        }
        out.push('}');
        out
    }
}

/// Returns a literal so that its text shows its type: `1`, `1u` and `1.0d` differ.
fn literal_text(literal: &LiteralValue) -> String {
    match literal {
        LiteralValue::Boolean(value) => value.inner().to_string(),
        LiteralValue::Null => "null".to_owned(),
        LiteralValue::String(text) => format!("{:?}", text.inner()),
        LiteralValue::Int(number) => format!("{}", number.inner()),
        LiteralValue::UInt(number) => format!("{}u", number.inner()),
        LiteralValue::Double(number) => format!("{:?}d", number.inner()),
        LiteralValue::Bytes(bytes) => format!("b{:?}", bytes.inner()),
    }
}

#[cfg(test)]
mod tests {
    use super::conjuncts;

    #[test]
    fn how_an_expression_is_written_does_not_matter() {
        let same = [
            ("a.b == 'x'", "( a . b ) == \"x\""),
            ("a && b", "b && (a)"),
            ("a && (b && c)", "(c && a) && b"),
            ("a || b", "(b) || a"),
            ("true && a", "a"),
            ("a == 1", "1 == a"),
            ("object.l.all(x, x.y > 1)", "object.l.all(item, item.y > 1)"),
            ("true", "(true)"),
        ];
        for (one, other) in same {
            let (one, other) = (one.replace('a', "object.a"), other.replace('a', "object.a"));
            let (one, other) = (one.replace("object.all", "all"), other.replace("object.all", "all"));
            assert_eq!(conjuncts(&one).unwrap(), conjuncts(&other).unwrap(), "{one} {other}");
        }
    }

    #[test]
    fn what_differs_has_another_text() {
        let different = [
            ("object.a", "object.b"),
            ("object.a == 1", "object.a == 1u"),
            ("object.a == '1'", "object.a == 1"),
            ("object.a == 1.0", "object.a == 1"),
            ("object.a - object.b > 0", "object.b - object.a > 0"),
            ("has(object.a)", "object.a"),
            ("object.l.all(x, x > 1)", "object.l.exists(x, x > 1)"),
            ("object.l.all(x, object.m.all(y, x == y))", "object.l.all(x, object.m.all(y, y == y))"),
            ("object.a && object.b", "object.a || object.b"),
            ("false", "true"),
        ];
        for (one, other) in different {
            assert_ne!(conjuncts(one).unwrap(), conjuncts(other).unwrap(), "{one} {other}");
        }
        assert!(conjuncts("true").unwrap().is_empty());
        assert_eq!(conjuncts("object.a && object.b").unwrap().len(), 2);
    }
}
