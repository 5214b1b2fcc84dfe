//! Changed copies of a document: members and items added, values replaced. The original is never touched.
//!
//! Invariant: nodes keep the spans they had, so a finding about the copy still points into the user's text; new
//! nodes have an empty span.

use super::{Builder, Doc, Span, Value, ValueKind};

/// A value that a [`Change`] adds to a document.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum New {
    Null,
    /// A string.
    Str(Box<str>),
    /// An integer.
    Int(i64),
    List(Vec<New>),
    Object(Vec<(&'static str, New)>),
}

impl New {
    /// A string.
    pub fn str(text: impl Into<Box<str>>) -> New {
        New::Str(text.into())
    }

    /// The value as compact JSON, members in their given order.
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        match self {
            New::Null => out.push_str("null"),
            New::Str(text) => tollgate_formats::gofmt::json_string(&mut out, text),
            New::Int(number) => out = number.to_string(),
            New::List(items) => {
                let items: Vec<String> = items.iter().map(New::to_json).collect();
                out = format!("[{}]", items.join(","));
            }
            New::Object(members) => {
                out.push('{');
                for (index, (key, value)) in members.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    tollgate_formats::gofmt::json_string(&mut out, key);
                    out.push(':');
                    out.push_str(&value.to_json());
                }
                out.push('}');
            }
        }
        out
    }

    /// The number of nodes that the value takes on a tape, keys included.
    fn nodes(&self) -> usize {
        match self {
            New::List(items) => 1 + items.iter().map(New::nodes).sum::<usize>(),
            New::Object(members) => 1 + members.iter().map(|(_, value)| 1 + value.nodes()).sum::<usize>(),
            _ => 1,
        }
    }

    /// Writes the value to the end of a document, with empty spans.
    fn write(&self, out: &mut Builder<'_>) {
        match self {
            New::Null => out.owned(ValueKind::Null, Span::default(), "null"),
            New::Str(text) => out.owned(ValueKind::String, Span::default(), text),
            New::Int(number) => out.owned(ValueKind::Number, Span::default(), number.to_string()),
            New::List(items) => {
                out.open(ValueKind::Array, Span::default());
                for item in items {
                    item.write(out);
                }
                out.close(0);
            }
            New::Object(members) => {
                out.open(ValueKind::Object, Span::default());
                for (key, value) in members {
                    out.write_constant(ValueKind::String, Span::default(), key);
                    value.write(out);
                }
                out.close(0);
            }
        }
    }
}

/// A change to a document: adds or replaces a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// Adds a member to an object.
    Add {
        /// The object's [`Value::index`].
        object: u32,
        /// Key of the member.
        key: &'static str,
        value: New,
    },
    /// Adds an item after the last one of a list.
    Append {
        /// The list's [`Value::index`].
        list: u32,
        /// The item to add.
        value: New,
    },
    /// Replaces a value.
    Replace {
        /// The value's [`Value::index`].
        node: u32,
        /// The new value.
        value: New,
    },
}

impl Change {
    /// The largest number of nodes that the change adds.
    fn added_nodes(&self) -> usize {
        match self {
            Change::Add { value, .. } => 1 + value.nodes(),
            Change::Append { value, .. } | Change::Replace { value, .. } => value.nodes(),
        }
    }
}

/// Returns a changed copy of `value` as a separate document. The original is not modified.
pub fn apply<'a>(value: Value<'a>, changes: &[Change]) -> Doc<'a> {
    // To the node: one too few would double the copy of a large document.
    let nodes = value.size() + changes.iter().map(Change::added_nodes).sum::<usize>();
    let mut out = Builder::with_capacity(value.doc().source(), value.doc().syntax(), nodes);
    let plan = ChangesByNode::of(changes);
    let end = value.node().map_or(value.at, |node| node.next);
    // Open containers: (node, one past its last descendant).
    let mut open: Vec<(u32, u32)> = Vec::new();
    let mut at = value.at;
    loop {
        while let Some(&(object, close)) = open.last()
            && close <= at
        {
            plan.add_children(&mut out, object);
            out.close_copied();
            open.pop();
        }
        if at >= end {
            return out.finish();
        }
        let node = Value { doc: value.doc, at };
        let next = node.node().map_or(at + 1, |node| node.next);
        if let Some(new) = plan.replacement(at) {
            new.write(&mut out);
            at = next;
        } else if matches!(node.kind(), ValueKind::Array | ValueKind::Object) {
            out.open(node.kind(), node.span());
            open.push((at, next));
            at += 1;
        } else {
            out.copy(node);
            at += 1;
        }
    }
}

/// Changes sorted by the node that they change, so that the changes of one node are found by binary search.
struct ChangesByNode<'c>(Vec<(u32, &'c Change)>);

impl<'c> ChangesByNode<'c> {
    /// Sorts changes by node. Changes to the same node keep their order.
    fn of(changes: &'c [Change]) -> ChangesByNode<'c> {
        let node = |change: &Change| match change {
            Change::Add { object: node, .. }
            | Change::Append { list: node, .. }
            | Change::Replace { node, .. } => *node,
        };
        let mut plan: Vec<(u32, &Change)> = changes.iter().map(|change| (node(change), change)).collect();
        // Stable: members are added in the order they were asked for.
        plan.sort_by_key(|(node, _)| *node);
        ChangesByNode(plan)
    }

    /// The changes of one node, in their given order; none if it does not change.
    fn changes_at(&self, node: u32) -> impl Iterator<Item = &'c Change> {
        let from = self.0.partition_point(|(known, _)| *known < node);
        self.0.iter().skip(from).take_while(move |(known, _)| *known == node).map(|(_, change)| *change)
    }

    /// Writes the members and items that changes add at the end of `container`.
    fn add_children(&self, out: &mut Builder<'_>, container: u32) {
        for change in self.changes_at(container) {
            match change {
                Change::Add { key, value, .. } => {
                    out.write_constant(ValueKind::String, Span::default(), key);
                    value.write(out);
                }
                Change::Append { value, .. } => value.write(out),
                Change::Replace { .. } => {}
            }
        }
    }

    /// The new value for a node; `None` if it is unchanged.
    fn replacement(&self, at: u32) -> Option<&'c New> {
        self.changes_at(at).find_map(|change| match change {
            Change::Replace { value, .. } => Some(value),
            Change::Add { .. } | Change::Append { .. } => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Change, New, apply};
    use crate::doc::parse;

    #[test]
    fn changes_land_where_they_belong() {
        let doc = parse(r#"{"a":[{"x":1},null],"b":""}"#).unwrap();
        let (first, second) = (doc.root().get("a").at(0), doc.root().get("a").at(1));
        let changes = [
            Change::Add { object: first.index(), key: "y", value: New::Int(2) },
            Change::Replace { node: second.index(), value: New::Object(vec![("z", New::str("s"))]) },
            Change::Replace { node: doc.root().get("b").index(), value: New::str("t") },
            Change::Add { object: 0, key: "c", value: New::str("u") },
            Change::Append {
                list: doc.root().get("a").index(),
                value: New::List(vec![New::Int(3), New::str("v")]),
            },
        ];
        let changed = apply(doc.root(), &changes);
        assert_eq!(changed.root().to_json(), r#"{"a":[{"x":1,"y":2},{"z":"s"},[3,"v"]],"b":"t","c":"u"}"#);
    }
}
