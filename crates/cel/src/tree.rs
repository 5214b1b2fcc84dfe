//! The expression as the checker reads it: an arena of nodes with macros already expanded.
//!
//! The parser makes it (`syntax`). Types and sizes are kept per node, in vectors beside it.
//!
//! Invariant: a node's children have smaller numbers than the node, so there are no cycles.

/// Index of a node in its tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NodeId(u32);

impl NodeId {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A node of the tree: its kind, and the position of errors about it.
#[derive(Debug)]
pub(super) struct Node {
    /// Byte offset in the expression's text of what an error about this node points at.
    pub(super) at: usize,
    pub(super) kind: ExprKind,
}

/// The kind of a node, with its children.
#[derive(Debug, Clone)]
pub(super) enum ExprKind {
    /// A placeholder where the parser or a macro already reported an error.
    Missing,
    Literal(Literal),
    Ident(String),
    Select {
        operand: NodeId,
        field: String,
        presence_test: bool,
    },
    Call {
        function: String,
        target: Option<NodeId>,
        args: Vec<NodeId>,
    },
    List {
        elements: Vec<Element>,
    },
    Map {
        entries: Vec<MapEntry>,
    },
    Struct {
        name: String,
        fields: Vec<StructField>,
    },
    Loop(Box<Loop>),
}

impl ExprKind {
    fn children_mut(&mut self) -> Vec<&mut NodeId> {
        match self {
            ExprKind::Missing | ExprKind::Literal(_) | ExprKind::Ident(_) => Vec::new(),
            ExprKind::Select { operand, .. } => vec![operand],
            ExprKind::Call { target, args, .. } => target.iter_mut().chain(args).collect(),
            ExprKind::List { elements } => elements.iter_mut().map(|element| &mut element.value).collect(),
            ExprKind::Map { entries } => {
                entries.iter_mut().flat_map(|entry| [&mut entry.key, &mut entry.value]).collect()
            }
            ExprKind::Struct { fields, .. } => fields.iter_mut().map(|field| &mut field.value).collect(),
            ExprKind::Loop(body) => {
                let Loop { range, init, condition, step, result, .. } = &mut **body;
                vec![range, init, condition, step, result]
            }
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(String),
    Bytes(Vec<u8>),
}

/// An element of a list, of this tree or of the parser's.
#[derive(Debug, Clone, Copy)]
pub(super) struct Element<N = NodeId> {
    pub(super) value: N,
    /// True if the element is written `?value`.
    pub(super) optional: bool,
}

/// An entry of a map, of this tree or of the parser's.
#[derive(Debug, Clone, Copy)]
pub(super) struct MapEntry<N = NodeId> {
    pub(super) key: N,
    pub(super) value: N,
    /// True if the entry is written `?key: value`.
    pub(super) optional: bool,
}

#[derive(Debug, Clone)]
pub(super) struct StructField {
    /// Byte offset of what an error about this field points at.
    pub(super) at: usize,
    pub(super) name: String,
    pub(super) value: NodeId,
    /// True if the field is written `?name: value`.
    pub(super) optional: bool,
}

/// The expansion of macros such as `all` and `map`: folds `range` into `accumulator`.
#[derive(Debug, Clone)]
pub(super) struct Loop {
    pub(super) range: NodeId,
    pub(super) variable: String,
    pub(super) second_variable: Option<String>,
    pub(super) accumulator: String,
    pub(super) init: NodeId,
    pub(super) condition: NodeId,
    pub(super) step: NodeId,
    pub(super) result: NodeId,
    /// True for `cel.bind` and similar macros, which never iterate and only bind `init` to a name in
    /// `result`.
    pub(super) is_bind: bool,
}

static MISSING: Node = Node { at: 0, kind: ExprKind::Missing };

/// All nodes of an expression.
#[derive(Debug, Default)]
pub(super) struct Tree {
    nodes: Vec<Node>,
}

impl Tree {
    /// Adds a node. Its children must already be added.
    pub(super) fn add(&mut self, at: usize, kind: ExprKind) -> NodeId {
        // A text of some kilobytes has some thousand nodes; the cast cannot wrap.
        let id = NodeId(u32::try_from(self.nodes.len()).unwrap_or(u32::MAX));
        self.nodes.push(Node { at, kind });
        id
    }

    /// A node; `Missing` if there is none with that number.
    pub(super) fn node(&self, id: NodeId) -> &Node {
        self.nodes.get(id.index()).unwrap_or(&MISSING)
    }

    pub(super) fn kind(&self, id: NodeId) -> &ExprKind {
        &self.node(id).kind
    }

    /// The byte offset that an error about a node points at.
    pub(super) fn error_offset(&self, id: NodeId) -> usize {
        self.node(id).at
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The node added last: parents come after their children.
    pub(super) fn root(&self) -> NodeId {
        NodeId(u32::try_from(self.nodes.len().saturating_sub(1)).unwrap_or(u32::MAX))
    }

    /// All nodes, children before their parents.
    pub(super) fn ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..u32::try_from(self.nodes.len()).unwrap_or(u32::MAX)).map(NodeId)
    }

    /// The nodes directly below this one.
    pub(super) fn children(&self, id: NodeId) -> Vec<NodeId> {
        self.kind(id).clone().children_mut().into_iter().map(|child| *child).collect()
    }

    /// Adds a copy of a node and everything below it, and returns it. If a macro uses its target twice, the
    /// server checks and charges both. Copied nodes keep their positions, but the fields of messages get that of the
    /// macro.
    pub(super) fn copy_subtree(&mut self, id: NodeId, macro_at: usize) -> NodeId {
        let at = self.error_offset(id);
        let mut kind = self.kind(id).clone();
        for child in kind.children_mut() {
            *child = self.copy_subtree(*child, macro_at);
        }
        if let ExprKind::Struct { fields, .. } = &mut kind {
            for field in fields {
                field.at = macro_at;
            }
        }
        self.add(at, kind)
    }

    /// The dotted name `a.b.c` if the node is only an identifier with plain selections; `None` otherwise.
    pub(super) fn qualified_name(&self, id: NodeId) -> Option<String> {
        let mut segments = Vec::new();
        let mut current = id;
        loop {
            match self.kind(current) {
                ExprKind::Ident(name) => {
                    segments.push(name.as_str());
                    break;
                }
                ExprKind::Select { operand, field, presence_test: false } => {
                    segments.push(field.as_str());
                    current = *operand;
                }
                _ => return None,
            }
        }
        segments.reverse();
        Some(segments.join("."))
    }
}
