//! Converts the parser's nodes to the tree that is checked, as the server does: expands macros, balances chains of `&&`
//! and `||`, and reads literals. Reports reserved words, literals out of range and wrong arguments of macros.
//!
//! A part that the parser did not recognize is `Missing` in the tree. Its error has been reported, and a tree with
//! errors is not used.
//!
//! Invariant: the recursion is no deeper than the server's own limit allows.

use super::literal;
use super::parser::{LimitExceeded, Parsed};
use super::token::{Token, TokenKind};
use super::tree::{FieldNameToken, NameToken, Node, NodeIndex};
use crate::draft::ParseState;
use crate::issue::BEFORE_START;
use crate::macros;
use crate::tree::{Element, ExprKind, Literal, MapEntry, NodeId, StructField};

/// Maximum recursion depth, cel-go's `checkAndIncrementRecursionDepth`.
const MAX_DEPTH: u32 = 250;

const MIN_FREE_STACK_BYTES: usize = 128 << 10;
const EXTRA_STACK_BYTES: usize = 4 << 20;

/// Reserved words, which cannot be used as names. `in`, `true`, `false` and `null` have their own tokens.
const RESERVED_WORDS: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// Builds the tree from the nodes of the parser.
pub(super) struct TreeBuilder<'p, 't> {
    pub(super) text: &'t str,
    pub(super) nodes: &'p [Node],
    pub(super) draft: ParseState<'t>,
    pub(super) depth: u32,
}

impl<'t> TreeBuilder<'_, 't> {
    /// Adds a node and everything below it, on a new piece of stack if little is left; `Missing` for `None`.
    pub(super) fn visit(&mut self, node: Option<NodeIndex>) -> Parsed<NodeId> {
        stacker::maybe_grow(MIN_FREE_STACK_BYTES, EXTRA_STACK_BYTES, || self.visit_on_current_stack(node))
    }

    fn visit_all<const N: usize>(&mut self, nodes: [Option<NodeIndex>; N]) -> Parsed<Vec<NodeId>> {
        nodes.into_iter().map(|node| self.visit(node)).collect()
    }

    /// [`Self::visit`] on the present stack; stops at the server's limit of depth.
    fn visit_on_current_stack(&mut self, node: Option<NodeIndex>) -> Parsed<NodeId> {
        let nodes = self.nodes;
        let Some(node) = node.and_then(|node| nodes.get(node)) else {
            return Ok(self.add_missing_node(BEFORE_START));
        };
        let counted = matches!(
            node,
            Node::Conditional { .. }
                | Node::Binary { .. }
                | Node::Select { .. }
                | Node::MemberCall { .. }
                | Node::Index { .. }
        );
        self.depth += u32::from(counted);
        if self.depth > MAX_DEPTH {
            self.draft.issues.report_unpositioned("max recursion depth exceeded");
            return Err(LimitExceeded);
        }
        let visited = self.visit_kind(node);
        self.depth -= u32::from(counted);
        visited
    }

    /// Adds a node by its kind.
    fn visit_kind(&mut self, node: &Node) -> Parsed<NodeId> {
        match node {
            Node::Broken { at } => Ok(self.add_missing_node(at.unwrap_or(BEFORE_START))),
            Node::Conditional { op, parts } => {
                let args = self.visit_all(*parts)?;
                Ok(self.add_operator_call(*op, "_?_:_", args))
            }
            Node::Logic { function, terms, ops } => {
                let terms =
                    terms.iter().map(|term| self.visit(Some(*term))).collect::<Result<Vec<_>, _>>()?;
                Ok(self.add_balanced(function, &terms, ops))
            }
            Node::Binary { operator, sides: [left, right] } => {
                let args = self.visit_all([Some(*left), Some(*right)])?;
                let function = match self.text_of(*operator) {
                    "in" => "@in".to_owned(),
                    written => format!("_{written}_"),
                };
                Ok(self.add_operator_call(operator.start, function, args))
            }
            Node::Prefix { op, function, count, operand } => {
                let operand = self.visit(*operand)?;
                Ok(if count % 2 == 0 {
                    operand
                } else {
                    self.add_operator_call(*op, *function, vec![operand])
                })
            }
            Node::Select { op, operand, optional, field } => {
                let operand = self.visit(Some(*operand))?;
                let field = self.field_name_or_report_invalid(*field, None).unwrap_or_default().to_owned();
                if *optional {
                    let field = self.draft.tree.add(*op, ExprKind::Literal(Literal::String(field)));
                    return Ok(self.add_operator_call(*op, "_?._", vec![operand, field]));
                }
                Ok(self.draft.tree.add(*op, ExprKind::Select { operand, field, presence_test: false }))
            }
            Node::MemberCall { open, target, name, args } => {
                let target = self.visit(Some(*target))?;
                self.add_call_or_macro_expansion(*open, self.text_of(*name).to_owned(), Some(target), args)
            }
            Node::Index { op, operand, optional, index } => {
                let args = self.visit_all([Some(*operand), *index])?;
                Ok(self.add_operator_call(*op, if *optional { "_[?_]" } else { "_[_]" }, args))
            }
            Node::Ident(name) => Ok(match self.name_or_report_reserved_word(*name) {
                Some(text) => self.draft.tree.add(name.token.start, ExprKind::Ident(text)),
                None => self.add_missing_node(name.start),
            }),
            Node::Call { open, name, args } => match self.name_or_report_reserved_word(*name) {
                Some(function) => self.add_call_or_macro_expansion(*open, function, None, args),
                None => Ok(self.add_missing_node(name.start)),
            },
            Node::List { open, elements } => {
                let mut read = Vec::with_capacity(elements.len());
                for Element { value, optional } in elements {
                    read.push(Element { value: self.visit(Some(*value))?, optional: *optional });
                }
                Ok(self.draft.tree.add(*open, ExprKind::List { elements: read }))
            }
            Node::Map { open, entries } => {
                let mut read = Vec::with_capacity(entries.len());
                for MapEntry { key, value, optional } in entries {
                    let (key, value) = (self.visit(Some(*key))?, self.visit(Some(*value))?);
                    read.push(MapEntry { key, value, optional: *optional });
                }
                Ok(self.draft.tree.add(*open, ExprKind::Map { entries: read }))
            }
            Node::Message { name, open, start, fields } => {
                let mut read = Vec::with_capacity(fields.len());
                for field in fields {
                    if let Some(name) = self.field_name_or_report_invalid(field.name, Some(*start)) {
                        let value = self.visit(Some(field.value))?;
                        let (at, optional) = (field.colon, field.optional);
                        read.push(StructField { at, name: name.to_owned(), value, optional });
                    }
                }
                let name: String = name.iter().map(|token| self.text_of(*token)).collect();
                Ok(self.draft.tree.add(*open, ExprKind::Struct { name, fields: read }))
            }
            Node::Literal { start, token } => {
                let read = literal::read_literal(token.kind, self.text_of(*token), start != &token.start);
                Ok(match read {
                    Ok(literal) => self.draft.tree.add(*start, ExprKind::Literal(literal)),
                    Err(complaint) => {
                        self.draft.issues.report(*start, complaint);
                        self.add_missing_node(*start)
                    }
                })
            }
        }
    }

    /// Adds a node for a missing part whose error was already reported.
    fn add_missing_node(&mut self, at: usize) -> NodeId {
        self.draft.tree.add(at, ExprKind::Missing)
    }

    /// Adds the function call for an operator.
    fn add_operator_call(&mut self, at: usize, function: impl Into<String>, args: Vec<NodeId>) -> NodeId {
        self.draft.tree.add(at, ExprKind::Call { function: function.into(), target: None, args })
    }

    /// Adds a chain of one operator as a balanced tree, which is as deep as the logarithm of its length; `ops` are the
    /// positions of the operators.
    fn add_balanced(&mut self, function: &str, terms: &[NodeId], ops: &[usize]) -> NodeId {
        let middle = ops.len() / 2;
        let (Some(op), true) = (ops.get(middle), terms.len() > 1) else {
            return terms.first().copied().unwrap_or_else(|| self.add_missing_node(BEFORE_START));
        };
        let ((left, right), (before, after)) = (terms.split_at(middle + 1), ops.split_at(middle));
        let left = self.add_balanced(function, left, before);
        let right = self.add_balanced(function, right, after.get(1..).unwrap_or_default());
        self.add_operator_call(*op, function, vec![left, right])
    }

    fn text_of(&self, token: Token) -> &'t str {
        self.text.get(token.start..token.end).unwrap_or("")
    }

    /// The text of a name, with a dot if one is before it; reports a reserved word and returns `None`.
    fn name_or_report_reserved_word(&mut self, name: NameToken) -> Option<String> {
        let word = self.text_of(name.token);
        if RESERVED_WORDS.contains(&word) {
            self.draft.issues.report(name.start, format!("reserved identifier: {word}"));
            return None;
        }
        Some(if name.start == name.token.start { word.to_owned() } else { format!(".{word}") })
    }

    /// The name of a field; `None` if it is invalid. The error is reported at the field, or at `list`, the
    /// start of the fields of a message.
    fn field_name_or_report_invalid(
        &mut self,
        field: FieldNameToken,
        list: Option<usize>,
    ) -> Option<&'t str> {
        let complaint = match field.token {
            Some(token) if token.kind == TokenKind::Identifier || self.draft.env.escaped_identifiers => {
                return Some(self.text_of(token).trim_matches('`'));
            }
            Some(_) => "unsupported syntax: '`'",
            None => "unsupported ident kind",
        };
        self.draft.issues.report(list.unwrap_or(field.start), complaint);
        None
    }

    /// Adds a call, or what it expands to if it is a macro.
    fn add_call_or_macro_expansion(
        &mut self,
        open: usize,
        function: String,
        target: Option<NodeId>,
        args: &[NodeIndex],
    ) -> Parsed<NodeId> {
        let args = args.iter().map(|arg| self.visit(Some(*arg))).collect::<Result<Vec<_>, _>>()?;
        let expansion = macros::expand(&mut self.draft, open, &function, target, &args);
        Ok(expansion.unwrap_or_else(|| self.draft.tree.add(open, ExprKind::Call { function, target, args })))
    }
}
