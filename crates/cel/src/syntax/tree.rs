//! The nodes that the parser creates; parts that it did not recognize are absent. They are in an arena, so that deeply
//! nested nodes are not dropped recursively.

use super::token::Token;
use crate::tree::{Element, MapEntry};

/// Index of a node in the arena.
pub(super) type NodeIndex = usize;

/// A parsed node. Positions are byte offsets in the expression; an absent part was not recognized.
#[derive(Debug)]
pub(super) enum Node {
    /// No alternative matches. Errors point at `at`, or have no position.
    Broken {
        at: Option<usize>,
    },
    Conditional {
        op: usize,
        parts: [Option<NodeIndex>; 3],
    },
    /// `a && b && c`, or the same with `||`.
    Logic {
        function: &'static str,
        terms: Vec<NodeIndex>,
        ops: Vec<usize>,
    },
    /// A relation or arithmetic.
    Binary {
        operator: Token,
        sides: [NodeIndex; 2],
    },
    /// `!` or `-`, `count` times.
    Prefix {
        op: usize,
        function: &'static str,
        count: usize,
        operand: Option<NodeIndex>,
    },
    Select {
        op: usize,
        operand: NodeIndex,
        optional: bool,
        field: FieldNameToken,
    },
    MemberCall {
        open: usize,
        target: NodeIndex,
        name: Token,
        args: Vec<NodeIndex>,
    },
    Index {
        op: usize,
        operand: NodeIndex,
        optional: bool,
        index: Option<NodeIndex>,
    },
    Ident(NameToken),
    Call {
        open: usize,
        name: NameToken,
        args: Vec<NodeIndex>,
    },
    List {
        open: usize,
        elements: Vec<Element<NodeIndex>>,
    },
    /// An entry that ends before its value is dropped.
    Map {
        open: usize,
        entries: Vec<MapEntry<NodeIndex>>,
    },
    /// `name` has the dots and identifiers before `open`; fields begin at `start`.
    Message {
        name: Vec<Token>,
        open: usize,
        start: usize,
        fields: Vec<MessageField>,
    },
    Literal {
        start: usize,
        token: Token,
    },
}

/// An identifier. `start` is the byte of the dot before it, if there is one, else that of the identifier.
#[derive(Clone, Copy, Debug)]
pub(super) struct NameToken {
    pub(super) start: usize,
    pub(super) token: Token,
}

/// The name of a field. Errors point at `start`, which may be a superfluous token.
#[derive(Clone, Copy, Debug)]
pub(super) struct FieldNameToken {
    pub(super) start: usize,
    /// The name token; absent if another token is there.
    pub(super) token: Option<Token>,
}

/// A field of a message literal. A field that ends before its value is dropped.
#[derive(Clone, Copy, Debug)]
pub(super) struct MessageField {
    pub(super) name: FieldNameToken,
    /// True if the field is written `?name: value`.
    pub(super) optional: bool,
    pub(super) colon: usize,
    pub(super) value: NodeIndex,
}
