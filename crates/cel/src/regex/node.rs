//! How large the parts of a pattern are, as far as Go limits it: height, size of the program, copies of the innermost
//! part that repetitions make.
//!
//! An estimate of Go's tree in one respect: alternatives with common beginnings are not joined, so that some very long
//! ones count as larger than they are.

/// Maximum height of the syntax tree, Go's `maxHeight`.
const MAX_TREE_HEIGHT: u32 = 1000;
/// Maximum size of a program in instructions, Go's `maxSize`.
const MAX_PROGRAM_INSTRUCTIONS: u64 = (128 << 20) / 40;

/// Size, height and repetitions of a part of a pattern.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodeSize {
    height: u32,
    /// The number of instructions of its program.
    pub(super) size: u64,
    /// The most copies that nested repetitions make of something inside.
    pub(super) copies: u64,
    kind: PartKind,
}

/// How a part of a pattern combines with the parts beside it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum PartKind {
    /// A literal character, which matches in either case if `folds` is true. Adjacent ones form one part.
    Literal { folds: bool },
    /// A part that matches exactly one character. Alternatives of such parts, and of literals, form one class.
    Class,
    #[default]
    Other,
}

impl NodeSize {
    /// A part that matches no character, such as `^` or `\b`.
    pub(super) fn empty_match() -> NodeSize {
        NodeSize { height: 1, size: 1, copies: 1, kind: PartKind::Other }
    }

    /// Returns the node for a class of characters, such as `[a-z]`.
    pub(super) fn class() -> NodeSize {
        NodeSize { kind: PartKind::Class, ..NodeSize::empty_match() }
    }

    /// A literal character. It matches in either case if `folds` is true.
    pub(super) fn literal(folds: bool) -> NodeSize {
        NodeSize { kind: PartKind::Literal { folds }, ..NodeSize::empty_match() }
    }

    /// Go's message if the part is beyond its limits.
    pub(super) fn exceeded_limit(self) -> Option<&'static str> {
        if self.height > MAX_TREE_HEIGHT {
            return Some("expression nests too deeply");
        }
        (self.size > MAX_PROGRAM_INSTRUCTIONS).then_some("expression too large")
    }

    /// The height and size of the part when it is repeated by `*`, `+` or `?`.
    pub(super) fn repeated_by_operator(self, operator: char) -> NodeSize {
        let more = if operator == '*' { 2 } else { 1 };
        NodeSize { height: self.height + 1, size: self.size + more, kind: PartKind::Other, ..self }
    }

    /// The part, repeated from `low` to `high` times; without an upper limit if that is `None`.
    pub(super) fn repeated(self, low: u64, high: Option<u64>) -> NodeSize {
        let (size, times) = match high {
            None if low == 0 => (self.size + 2, 1),
            None => (low.saturating_mul(self.size) + 1, low),
            Some(high) => (high.saturating_mul(self.size) + (high - low), high),
        };
        let copies = if high == Some(0) { 1 } else { self.copies.saturating_mul(times.max(1)) };
        NodeSize { height: self.height + 1, size: size.max(1), copies, kind: PartKind::Other }
    }

    /// Two parts, one after the other or as alternatives.
    fn joined_with(self, other: NodeSize) -> NodeSize {
        NodeSize {
            height: self.height.max(other.height),
            size: self.size.saturating_add(other.size),
            copies: self.copies.max(other.copies),
            kind: PartKind::Other,
        }
    }
}

/// Nodes of a pattern that follow each other. Adjacent literal characters are combined.
#[derive(Clone, Copy, Debug, Default)]
struct Sequence {
    joined: Option<NodeSize>,
    count: u32,
    run: PartKind,
    last: Option<NodeSize>,
}

impl Sequence {
    /// Adds a part, which is kept separate until the next one, because a repetition may follow.
    fn push(&mut self, node: NodeSize) {
        self.join_last();
        self.last = Some(node);
    }

    /// Adds the last part to the others.
    fn join_last(&mut self) {
        let Some(node) = self.last.take() else { return };
        let continues_run = matches!(node.kind, PartKind::Literal { .. }) && node.kind == self.run;
        self.count += u32::from(!continues_run);
        self.run = node.kind;
        self.joined = Some(self.joined.map_or(node, |joined| joined.joined_with(node)));
    }

    /// All parts as one; a part that matches nothing if there are none.
    fn into_node(mut self) -> NodeSize {
        self.join_last();
        let node = self.joined.unwrap_or_else(NodeSize::empty_match);
        if self.count > 1 { NodeSize { height: node.height + 1, ..node } } else { node }
    }
}

/// The alternatives inside of parentheses, while they are read.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    is_capture: bool,
    alternatives: Option<NodeSize>,
    count: u32,
    ends_with_character: bool,
    sequence: Sequence,
}

impl Group {
    pub(super) fn new(is_capture: bool) -> Group {
        Group { is_capture, ..Group::default() }
    }

    pub(super) fn push(&mut self, node: NodeSize) {
        self.sequence.push(node);
    }

    /// Removes and returns the last part, to which a repetition operator applies; `None` if there is none.
    pub(super) fn take_last(&mut self) -> Option<NodeSize> {
        self.sequence.last.take()
    }

    /// Ends an alternative and begins the next one.
    pub(super) fn end_alternative(&mut self) {
        let node = std::mem::take(&mut self.sequence).into_node();
        let is_character = node.kind != PartKind::Other;
        if self.ends_with_character && is_character {
            return;
        }
        self.ends_with_character = is_character;
        self.alternatives = Some(self.alternatives.map_or(node, |before| before.joined_with(node)));
        self.count += 1;
    }

    /// The whole group as one part.
    pub(super) fn into_node(mut self) -> NodeSize {
        self.end_alternative();
        let mut node = self.alternatives.unwrap_or_else(NodeSize::empty_match);
        if self.count > 1 {
            node.height += 1;
            node.size = node.size.saturating_add(u64::from(self.count) - 1);
        }
        if self.is_capture {
            node = NodeSize { height: node.height + 1, size: node.size + 2, kind: PartKind::Other, ..node };
        }
        node
    }
}
