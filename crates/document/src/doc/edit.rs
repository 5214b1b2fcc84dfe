//! Changed copies of a document: members and items added, values replaced. The original is never touched.
//!
//! Invariant: nodes keep the spans they had, so a finding about the copy still points into the user's text; new
//! nodes have an empty span.

use super::{Builder, Doc, Span, Value, ValueKind};

/// A value that a [`DocChange`] adds to a document.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OwnedJsonValue {
    Null,
    /// A string.
    Str(Box<str>),
    /// An integer.
    Int(i64),
    List(Vec<OwnedJsonValue>),
    Object(Vec<(&'static str, OwnedJsonValue)>),
}

impl OwnedJsonValue {
    /// A string.
    pub fn str(text: impl Into<Box<str>>) -> OwnedJsonValue {
        OwnedJsonValue::Str(text.into())
    }

    /// The value as compact JSON, members in their given order.
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        match self {
            OwnedJsonValue::Null => out.push_str("null"),
            OwnedJsonValue::Str(text) => tollgate_formats::gofmt::push_json_string(&mut out, text),
            OwnedJsonValue::Int(number) => out = number.to_string(),
            OwnedJsonValue::List(items) => {
                let items: Vec<String> = items.iter().map(OwnedJsonValue::to_json).collect();
                out = format!("[{}]", items.join(","));
            }
            OwnedJsonValue::Object(members) => {
                out.push('{');
                for (index, (key, value)) in members.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    tollgate_formats::gofmt::push_json_string(&mut out, key);
                    out.push(':');
                    out.push_str(&value.to_json());
                }
                out.push('}');
            }
        }
        out
    }

    /// The number of nodes that the value takes on a tape, keys included.
    fn node_count(&self) -> usize {
        match self {
            OwnedJsonValue::List(items) => 1 + items.iter().map(OwnedJsonValue::node_count).sum::<usize>(),
            OwnedJsonValue::Object(members) => {
                1 + members.iter().map(|(_, value)| 1 + value.node_count()).sum::<usize>()
            }
            _ => 1,
        }
    }

    /// Writes the value to the end of a document, with empty spans.
    fn write(&self, out: &mut Builder<'_>) {
        match self {
            OwnedJsonValue::Null => out.write_owned(ValueKind::Null, Span::default(), "null"),
            OwnedJsonValue::Str(text) => out.write_owned(ValueKind::String, Span::default(), text),
            OwnedJsonValue::Int(number) => {
                out.write_owned(ValueKind::Number, Span::default(), number.to_string())
            }
            OwnedJsonValue::List(items) => {
                out.open(ValueKind::Array, Span::default());
                for item in items {
                    item.write(out);
                }
                out.close(0);
            }
            OwnedJsonValue::Object(members) => {
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
pub enum DocChange {
    /// Adds a member to an object.
    Add {
        /// The object's [`Value::index`].
        object: u32,
        /// Key of the member.
        key: &'static str,
        value: OwnedJsonValue,
    },
    /// Adds an item after the last one of a list.
    Append {
        /// The list's [`Value::index`].
        list: u32,
        /// The item to add.
        value: OwnedJsonValue,
    },
    /// Replaces a value.
    Replace {
        /// The value's [`Value::index`].
        node: u32,
        /// The new value.
        value: OwnedJsonValue,
    },
}

impl DocChange {
    /// The largest number of nodes that the change adds.
    fn added_nodes(&self) -> usize {
        match self {
            DocChange::Add { value, .. } => 1 + value.node_count(),
            DocChange::Append { value, .. } | DocChange::Replace { value, .. } => value.node_count(),
        }
    }
}

/// Returns a changed copy of `value` as a separate document. The original is not modified.
pub fn apply_changes<'a>(value: Value<'a>, changes: &[DocChange]) -> Doc<'a> {
    // To the node: one too few would double the copy of a large document.
    let nodes = value.node_count() + changes.iter().map(DocChange::added_nodes).sum::<usize>();
    let mut out = Builder::with_capacity(value.doc().source(), value.doc().syntax(), nodes);
    let plan = ChangesByNode::sorted(changes);
    let end = value.node().map_or(value.at, |node| node.next);
    // Open containers: (node, one past its last descendant).
    let mut open: Vec<(u32, u32)> = Vec::new();
    let mut at = value.at;
    loop {
        while let Some(&(object, close)) = open.last()
            && close <= at
        {
            plan.add_children(&mut out, object);
            out.close_keeping_span();
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
struct ChangesByNode<'c>(Vec<(u32, &'c DocChange)>);

impl<'c> ChangesByNode<'c> {
    /// Sorts changes by node. Changes to the same node keep their order.
    fn sorted(changes: &'c [DocChange]) -> ChangesByNode<'c> {
        let node = |change: &DocChange| match change {
            DocChange::Add { object: node, .. }
            | DocChange::Append { list: node, .. }
            | DocChange::Replace { node, .. } => *node,
        };
        let mut plan: Vec<(u32, &DocChange)> = changes.iter().map(|change| (node(change), change)).collect();
        // Stable: members are added in the order they were asked for.
        plan.sort_by_key(|(node, _)| *node);
        ChangesByNode(plan)
    }

    /// The changes of one node, in their given order; none if it does not change.
    fn changes_at(&self, node: u32) -> impl Iterator<Item = &'c DocChange> {
        let from = self.0.partition_point(|(known, _)| *known < node);
        self.0.iter().skip(from).take_while(move |(known, _)| *known == node).map(|(_, change)| *change)
    }

    /// Writes the members and items that changes add at the end of `container`.
    fn add_children(&self, out: &mut Builder<'_>, container: u32) {
        for change in self.changes_at(container) {
            match change {
                DocChange::Add { key, value, .. } => {
                    out.write_constant(ValueKind::String, Span::default(), key);
                    value.write(out);
                }
                DocChange::Append { value, .. } => value.write(out),
                DocChange::Replace { .. } => {}
            }
        }
    }

    /// The new value for a node; `None` if it is unchanged.
    fn replacement(&self, at: u32) -> Option<&'c OwnedJsonValue> {
        self.changes_at(at).find_map(|change| match change {
            DocChange::Replace { value, .. } => Some(value),
            DocChange::Add { .. } | DocChange::Append { .. } => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{DocChange, OwnedJsonValue, apply_changes};
    use crate::doc::parse;

    #[test]
    fn changes_land_where_they_belong() {
        let doc = parse(r#"{"a":[{"x":1},null],"b":""}"#).unwrap();
        let (first, second) = (doc.root().get("a").item(0), doc.root().get("a").item(1));
        let changes = [
            DocChange::Add { object: first.index(), key: "y", value: OwnedJsonValue::Int(2) },
            DocChange::Replace {
                node: second.index(),
                value: OwnedJsonValue::Object(vec![("z", OwnedJsonValue::str("s"))]),
            },
            DocChange::Replace { node: doc.root().get("b").index(), value: OwnedJsonValue::str("t") },
            DocChange::Add { object: 0, key: "c", value: OwnedJsonValue::str("u") },
            DocChange::Append {
                list: doc.root().get("a").index(),
                value: OwnedJsonValue::List(vec![OwnedJsonValue::Int(3), OwnedJsonValue::str("v")]),
            },
        ];
        let changed = apply_changes(doc.root(), &changes);
        assert_eq!(changed.root().to_json(), r#"{"a":[{"x":1,"y":2},{"z":"s"},[3,"v"]],"b":"t","c":"u"}"#);
    }
}
