//! The items and members of containers, in document order, including duplicates.
//!
//! Invariant: a step reads one node of the tape, independent of the size of the values that are skipped.

use super::node::Node;
use super::{Doc, FieldName, Value};

/// A key of an object.
#[derive(Clone, Copy, Debug)]
pub struct ObjectKey<'d> {
    pub(super) value: Value<'d>,
    /// The number of the key's [`FieldName`]; 0 if the key is not in the table of known names.
    pub(super) number: u8,
}

impl ObjectKey<'_> {
    /// The number of the key's [`FieldName`]; `None` if the key is not in the table of known names, so that its text
    /// must be compared.
    #[inline]
    pub fn known_name_number(self) -> Option<usize> {
        (self.number != 0).then_some(usize::from(self.number))
    }

    /// True if the key has that name.
    #[inline]
    pub fn has_name(self, name: FieldName) -> bool {
        if self.number == 0 { self.value.text_is(name.text) } else { self.number == name.number }
    }
}

/// Iterator over the items of a list.
#[derive(Clone)]
pub struct Items<'d> {
    pub(super) doc: &'d Doc<'d>,
    pub(super) at: u32,
    pub(super) end: u32,
}

impl<'d> Iterator for Items<'d> {
    type Item = Value<'d>;

    fn next(&mut self) -> Option<Value<'d>> {
        if self.at >= self.end {
            return None;
        }
        let item = Value { doc: self.doc, at: self.at };
        self.at = item.node().map_or(self.end, |node| node.next);
        Some(item)
    }
}

/// Iterator over the members of an object.
#[derive(Clone)]
pub struct Members<'d> {
    pub(super) doc: &'d Doc<'d>,
    pub(super) at: u32,
    /// The nodes of the document up to the end of the object.
    pub(super) nodes: &'d [Node],
}

impl<'d> Members<'d> {
    /// Moves past the next member, and returns the index of its key and the key. Its value is the next node.
    #[inline]
    pub(super) fn next_key(&mut self) -> Option<(u32, &'d Node)> {
        let at = self.at;
        // A key is one node, its value the next.
        let [key, value] = self.nodes.get(at as usize..at as usize + 2)? else { return None };
        self.at = value.next;
        Some((at, key))
    }
}

impl<'d> Iterator for Members<'d> {
    type Item = (Value<'d>, Value<'d>);

    #[inline]
    fn next(&mut self) -> Option<(Value<'d>, Value<'d>)> {
        let (at, _) = self.next_key()?;
        Some((Value { doc: self.doc, at }, Value { doc: self.doc, at: at + 1 }))
    }
}

#[cfg(test)]
mod tests {
    use crate::doc::{FieldName, Value, parse};

    #[test]
    fn fields_are_found_in_any_order() {
        const NAMES: [FieldName; 4] = [
            FieldName::from_text("key"),
            FieldName::from_text("notInTheTable"),
            FieldName::from_text("value"),
            FieldName::from_text("effect"),
        ];
        for (text, expected) in [
            (r#"{"key":"k","notInTheTable":"n","value":"v","effect":"e"}"#, ["k", "n", "v", "e"]),
            (r#"{"effect":"e","other":{"key":"x"},"value":"v","key":"k"}"#, ["k", "", "v", "e"]),
            (r#"{"k\u0065y":"k","x":[1,2],"notInTheTable":"n"}"#, ["k", "n", "", ""]),
            (r#"{"key":"first","value":"v","key":"last"}"#, ["last", "", "v", ""]),
            (r#"["key","k"]"#, [""; 4]),
            ("{}", [""; 4]),
        ] {
            let parsed = parse(text).unwrap();
            assert_eq!(parsed.root().fields_last_duplicate_wins(NAMES).map(Value::text), expected, "{text}");
            for (name, expected) in NAMES.into_iter().zip(expected) {
                let is_repeated = expected == "last";
                let found = parsed.root().field(name).text();
                assert_eq!(found, if is_repeated { "first" } else { expected }, "{text}");
            }
        }
    }
}
