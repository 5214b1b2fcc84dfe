//! The tree as the `cel` crate's parser makes it: a second opinion on `syntax`, for tests only.
//!
//! The crate's parser is used without macros, because its expansions differ from the server's in names, errors and
//! cost.

use cel::common::ast::{
    CallExpr, EntryExpr, Expr, IdedEntryExpr, IdedExpr, LiteralValue, SourceInfo, operators,
};

use crate::draft::ParseState;
use crate::issue::Issues;
use crate::macros;
use crate::outcome::CelEnv;
use crate::tree::{Element, ExprKind, Literal, MapEntry, NodeId, StructField, Tree};

/// Maximum recursion depth, cel-go's `checkAndIncrementRecursionDepth`.
const MAX_DEPTH: u32 = 250;
/// The parser counts from zero where cel-go counts from one.
const MAX_NESTING: u16 = 249;

/// Parses an expression with the `cel` crate; `None` if there are syntax errors.
pub(super) fn parse(expression: &str, env: CelEnv) -> Option<Tree> {
    let parser = cel::Env::default()
        .parser()
        .max_recursion_depth(MAX_NESTING)
        .enable_ident_escape_syntax(env.escaped_identifiers);
    let (syntax, source) = parser.parse_with_source_info(expression).ok()?;
    let draft = ParseState { tree: Tree::default(), issues: Issues::new(expression), env };
    let mut lowering = Lowering { draft, source: &source, depth: 0 };
    lowering.lower(syntax);
    let ParseState { tree, issues, .. } = lowering.draft;
    issues.is_empty().then_some(tree)
}

/// Converts the nodes of the `cel` crate to Tollgate's.
struct Lowering<'t> {
    draft: ParseState<'t>,
    source: &'t SourceInfo,
    depth: u32,
}

impl Lowering<'_> {
    /// The byte offset of one of the crate's nodes.
    fn at(&self, id: u64) -> usize {
        self.source.offset_for(id).map_or(0, |(start, _)| start as usize)
    }

    /// Adds a node and everything below it; `Missing` beyond the server's depth.
    fn lower(&mut self, syntax: IdedExpr) -> NodeId {
        let at = self.at(syntax.id);
        let counted = counts_towards_depth(&syntax.expr);
        if counted && self.depth >= MAX_DEPTH {
            if self.draft.issues.is_empty() {
                self.draft.issues.report_unpositioned("max recursion depth exceeded");
            }
            return self.draft.tree.add(at, ExprKind::Missing);
        }
        self.depth += u32::from(counted);
        let id = self.lower_kind(at, syntax.expr);
        self.depth -= u32::from(counted);
        id
    }

    /// The position of the minus before `at`, or `at` if there is none: the crate's position of a negative number is
    /// that of its first digit.
    fn sign_before(&self, at: usize) -> usize {
        let before = self.draft.issues.source().get(..at).unwrap_or("").trim_end();
        before.strip_suffix('-').map_or(at, str::len)
    }

    fn lower_kind(&mut self, at: usize, syntax: Expr) -> NodeId {
        let kind = match syntax {
            // The parser was told to expand nothing.
            Expr::Unspecified | Expr::Comprehension(_) => ExprKind::Missing,
            Expr::Literal(literal) => {
                let literal = lower_literal(literal);
                let at = if is_negative(&literal) { self.sign_before(at) } else { at };
                return self.draft.tree.add(at, ExprKind::Literal(literal));
            }
            Expr::Ident(name) => ExprKind::Ident(name),
            Expr::Select(select) => {
                let operand = self.lower(*select.operand);
                ExprKind::Select { operand, field: select.field, presence_test: select.test }
            }
            Expr::Call(call) => return self.lower_call(at, call),
            Expr::List(list) => {
                let optional = list.optional_indices;
                let elements = list
                    .elements
                    .into_iter()
                    .enumerate()
                    .map(|(position, element)| Element {
                        value: self.lower(element),
                        optional: optional.contains(&position),
                    })
                    .collect();
                ExprKind::List { elements }
            }
            Expr::Map(map) => ExprKind::Map { entries: self.lower_entries(map.entries) },
            Expr::Struct(literal) => {
                let fields = literal
                    .entries
                    .into_iter()
                    .filter_map(|entry| match entry.expr {
                        EntryExpr::StructField(field) => Some(StructField {
                            at: self.at(entry.id),
                            name: field.field,
                            value: self.lower(field.value),
                            optional: field.optional,
                        }),
                        EntryExpr::MapEntry(_) => None,
                    })
                    .collect();
                ExprKind::Struct { name: literal.type_name, fields }
            }
        };
        self.draft.tree.add(at, kind)
    }

    fn lower_entries(&mut self, entries: Vec<IdedEntryExpr>) -> Vec<MapEntry> {
        entries
            .into_iter()
            .filter_map(|entry| match entry.expr {
                EntryExpr::MapEntry(entry) => {
                    let key = self.lower(entry.key);
                    let value = self.lower(entry.value);
                    Some(MapEntry { key, value, optional: entry.optional })
                }
                EntryExpr::StructField(_) => None,
            })
            .collect()
    }

    fn lower_call(&mut self, at: usize, call: CallExpr) -> NodeId {
        let target = call.target.map(|target| self.lower(*target));
        let args: Vec<NodeId> = call.args.into_iter().map(|arg| self.lower(arg)).collect();
        let function = call.func_name;
        match macros::expand(&mut self.draft, at, &function, target, &args) {
            Some(expansion) => expansion,
            None => self.draft.tree.add(at, ExprKind::Call { function, target, args }),
        }
    }
}

/// True if the server counts the node towards its limit of depth: not parentheses, literals, lists, `&&` and `||`.
fn counts_towards_depth(syntax: &Expr) -> bool {
    match syntax {
        Expr::Select(_) => true,
        Expr::Call(call) => call.target.is_some() || is_counted_operator(&call.func_name),
        _ => false,
    }
}

fn is_counted_operator(function: &str) -> bool {
    matches!(
        function,
        operators::CONDITIONAL
            | operators::SUBSTRACT
            | operators::ADD
            | operators::MULTIPLY
            | operators::DIVIDE
            | operators::MODULO
            | operators::EQUALS
            | operators::NOT_EQUALS
            | operators::GREATER_EQUALS
            | operators::LESS_EQUALS
            | operators::GREATER
            | operators::LESS
            | operators::IN
            | operators::INDEX
            | operators::OPT_INDEX
            | operators::OPT_SELECT
    )
}

fn lower_literal(literal: LiteralValue) -> Literal {
    match literal {
        LiteralValue::Null => Literal::Null,
        LiteralValue::Boolean(value) => Literal::Bool(value.into_inner()),
        LiteralValue::Int(value) => Literal::Int(value.into_inner()),
        LiteralValue::UInt(value) => Literal::Uint(value.into_inner()),
        LiteralValue::Double(value) => Literal::Double(value.into_inner()),
        LiteralValue::String(value) => Literal::String(value.into_inner()),
        LiteralValue::Bytes(value) => Literal::Bytes(value.into_inner()),
    }
}

fn is_negative(literal: &Literal) -> bool {
    match literal {
        Literal::Int(value) => *value < 0,
        Literal::Double(value) => value.is_sign_negative(),
        _ => false,
    }
}
