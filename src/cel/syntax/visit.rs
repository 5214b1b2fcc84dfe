//! What the server says of a text that it has parsed, with holes where it could not: reserved words, literals out of
//! range, arguments of macros.
//!
//! Of what is visited only its kind is kept, and what names and selections are of, because macros ask for nothing else.

use super::parser::Stop;
use super::token::{Kind, Token};
use super::tree::{Field, Name, Node, NodeIndex};
use super::unescape::unescape;
use crate::cel::issue::BEFORE_START;
use crate::cel::lower::Draft;
use crate::cel::macros;
use crate::cel::tree::{ExprKind, NodeId};

/// cel-go `checkAndIncrementRecursionDepth`
const MAX_DEPTH: u32 = 250;

const RED_ZONE: usize = 128 << 10;
const MORE_STACK: usize = 4 << 20;

/// Words that name nothing. `in`, `true`, `false` and `null` are tokens of their own and never come here.
const RESERVED: [&str; 17] = [
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

pub(super) struct Visitor<'p, 't> {
    pub(super) text: &'t str,
    pub(super) nodes: &'p [Node],
    pub(super) draft: Draft<'t>,
    pub(super) depth: u32,
}

impl<'t> Visitor<'_, 't> {
    pub(super) fn visit(&mut self, node: Option<NodeIndex>) -> Result<NodeId, Stop> {
        stacker::maybe_grow(RED_ZONE, MORE_STACK, || self.visit_here(node))
    }

    fn visit_here(&mut self, node: Option<NodeIndex>) -> Result<NodeId, Stop> {
        let nodes = self.nodes;
        let Some(node) = node.and_then(|node| nodes.get(node)) else { return Ok(self.missing(BEFORE_START)) };
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
            self.draft.issues.internal("max recursion depth exceeded");
            return Err(Stop);
        }
        let visited = self.visit_kind(node);
        self.depth -= u32::from(counted);
        visited
    }

    fn visit_kind(&mut self, node: &Node) -> Result<NodeId, Stop> {
        match node {
            Node::Broken { at } => Ok(self.missing(at.unwrap_or(BEFORE_START))),
            Node::Conditional { op, parts } => {
                for part in parts {
                    self.visit(*part)?;
                }
                Ok(self.some_call(*op))
            }
            Node::Logic { terms, ops } => {
                for term in terms {
                    self.visit(Some(*term))?;
                }
                // Chains are balanced, so the middle operator stands for the whole.
                Ok(self.some_call(ops.get(ops.len() / 2).copied().unwrap_or(BEFORE_START)))
            }
            Node::Binary { op, sides } => {
                for side in sides {
                    self.visit(Some(*side))?;
                }
                Ok(self.some_call(*op))
            }
            Node::Prefix { op, count, operand } => {
                let operand = self.visit(*operand)?;
                Ok(if count % 2 == 0 { operand } else { self.some_call(*op) })
            }
            Node::Select { op, operand, optional, field } => {
                let operand = self.visit(Some(*operand))?;
                let field = self.field(*field, None).unwrap_or_default();
                if *optional {
                    return Ok(self.some_call(*op));
                }
                let kind = ExprKind::Select { operand, field: field.to_owned(), presence_test: false };
                Ok(self.draft.tree.add(*op, kind))
            }
            Node::MemberCall { open, target, name, args } => {
                let target = self.visit(Some(*target))?;
                self.call(*open, self.text_of(*name), Some(target), args)
            }
            Node::Index { op, operand, index } => {
                self.visit(Some(*operand))?;
                self.visit(*index)?;
                Ok(self.some_call(*op))
            }
            Node::Ident(name) => Ok(match self.name(*name) {
                Some(text) => self.draft.tree.add(name.token.start, ExprKind::Ident(text)),
                None => self.missing(name.start),
            }),
            Node::Call { open, name, args } => match self.name(*name) {
                Some(function) => self.call(*open, &function, None, args),
                None => Ok(self.missing(name.start)),
            },
            Node::List { open, elements } => {
                for element in elements {
                    self.visit(Some(*element))?;
                }
                Ok(self.draft.tree.add(*open, ExprKind::List { elements: Vec::new() }))
            }
            Node::Map { open, entries } => {
                for entry in entries {
                    self.visit(Some(entry.key))?;
                    self.visit(Some(entry.value))?;
                }
                Ok(self.missing(*open))
            }
            Node::Message { open, start, fields } => {
                for field in fields {
                    if self.field(field.name, Some(*start)).is_some() {
                        self.visit(Some(field.value))?;
                    }
                }
                Ok(self.missing(*open))
            }
            Node::Literal { start, token } => {
                self.literal(*start, *token);
                Ok(self.missing(*start))
            }
        }
    }

    /// Something of which no macro asks anything.
    fn missing(&mut self, at: usize) -> NodeId {
        self.draft.tree.add(at, ExprKind::Missing)
    }

    fn some_call(&mut self, at: usize) -> NodeId {
        let call = ExprKind::Call { function: String::new(), target: None, args: Vec::new() };
        self.draft.tree.add(at, call)
    }

    fn text_of(&self, token: Token) -> &'t str {
        self.text.get(token.start..token.end).unwrap_or("")
    }

    fn name(&mut self, name: Name) -> Option<String> {
        let word = self.text_of(name.token);
        if RESERVED.contains(&word) {
            self.draft.issues.report(name.start, format!("reserved identifier: {word}"));
            return None;
        }
        Some(if name.start == name.token.start { word.to_owned() } else { format!(".{word}") })
    }

    /// The name of a field. What is wrong with it is reported where it is, or at `list`, the first of several.
    fn field(&mut self, field: Field, list: Option<usize>) -> Option<&'t str> {
        let complaint = match field.token {
            Some(token) if token.kind == Kind::Identifier || self.draft.env.escaped_identifiers => {
                return Some(self.text_of(token).trim_matches('`'));
            }
            Some(_) => "unsupported syntax: '`'",
            None => "unsupported ident kind",
        };
        self.draft.issues.report(list.unwrap_or(field.start), complaint);
        None
    }

    fn call(
        &mut self,
        open: usize,
        function: &str,
        target: Option<NodeId>,
        args: &[NodeIndex],
    ) -> Result<NodeId, Stop> {
        let args = args.iter().map(|arg| self.visit(Some(*arg))).collect::<Result<Vec<_>, _>>()?;
        let expansion = macros::expand(&mut self.draft, open, function, target, &args);
        Ok(expansion.unwrap_or_else(|| self.some_call(open)))
    }

    fn literal(&mut self, start: usize, token: Token) {
        let text = self.text_of(token);
        let sign = if start == token.start { "" } else { "-" };
        let wrong = match token.kind {
            Kind::Int => match text.strip_prefix("0x") {
                Some(digits) => i64::from_str_radix(&format!("{sign}{digits}"), 16).err(),
                None => format!("{sign}{text}").parse::<i64>().err(),
            }
            .map(|_| "invalid int literal"),
            Kind::Uint => {
                let digits = text.get(..text.len().saturating_sub(1)).unwrap_or("");
                match digits.strip_prefix("0x") {
                    Some(digits) => u64::from_str_radix(digits, 16).err(),
                    None => digits.parse::<u64>().err(),
                }
                .map(|_| "invalid uint literal")
            }
            Kind::Float => text
                .parse::<f64>()
                .ok()
                .filter(|value| value.is_finite())
                .map_or(Some("invalid double literal"), |_| None),
            Kind::String => unescape(text, false).err(),
            Kind::Bytes => unescape(text.get(1..).unwrap_or(""), true).err(),
            _ => None,
        };
        if let Some(complaint) = wrong {
            self.draft.issues.report(start, complaint);
        }
    }
}
