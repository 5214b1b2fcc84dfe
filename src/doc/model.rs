//! What was read before as the model of what is read next: devices of one slice repeat each other's keys, and whole
//! parts, to the byte. A part that is written as its model is copied from the tape instead of being read again.
//!
//! The model of an item is the item at the same place of the list's own model, or else the item before it; the model
//! of a member is the next member of the object's model. It is a guess: the bytes decide, and a wrong one costs time.

use super::{Builder, Kind, Node, Span, Text};

/// The part of the tape that an open container is held against.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Model {
    /// The next item, or the key of the next member.
    next: u32,
    /// One past the last of them.
    end: u32,
    /// The item read last, in a list.
    before: u32,
}

/// No node can be the model of another before it, so the first one is nobody's.
pub(super) const NONE: u32 = 0;

impl<'a> Builder<'a> {
    /// What is written is the model of what comes: for readers of text.
    pub(super) fn learning(self) -> Builder<'a> {
        Builder { learns: true, ..self }
    }

    /// The node of a model.
    #[inline]
    pub(super) fn model(&self, model: u32) -> Option<&Node> {
        if model == NONE { None } else { self.doc.nodes.get(model as usize) }
    }

    /// Starts a list or an object that may have a model.
    #[inline]
    pub(super) fn open_like(&mut self, kind: Kind, span: Span, model: u32) {
        self.open(kind, span);
        if model == NONE {
            return;
        }
        let known = self.model(model).filter(|known| known.kind == kind).map(|known| known.next);
        if let (Some(end), Some(open)) = (known, self.open.last_mut()) {
            open.model = Model { next: model + 1, end, before: NONE };
        }
    }

    /// The model of the item that is read next.
    #[expect(clippy::cast_possible_truncation, reason = "an index of this tape")]
    pub(super) fn model_of_item(&mut self) -> u32 {
        let at = self.doc.nodes.len() as u32;
        let Some(open) = self.open.last_mut().filter(|_| self.learns) else { return NONE };
        let mut model = std::mem::replace(&mut open.model.before, at);
        if open.model.next < open.model.end {
            model = open.model.next;
            open.model.next = self.doc.nodes.get(model as usize).map_or(open.model.end, |known| known.next);
        }
        model
    }

    /// The key of the model's next member.
    #[inline]
    pub(super) fn model_of_key(&self) -> u32 {
        self.open.last().filter(|open| open.model.next < open.model.end).map_or(NONE, |open| open.model.next)
    }

    /// The key after that of the model: a member may have been left out.
    pub(super) fn key_after(&self, model: u32) -> u32 {
        let after = self.doc.nodes.get(model as usize + 1).map_or(NONE, |value| value.next);
        if self.open.last().is_some_and(|open| after < open.model.end) { after } else { NONE }
    }

    /// Writes the key of a model at another place; returns the model of its value.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "an index of this tape")]
    pub(super) fn repeat_key(&mut self, model: u32, start: u32) -> u32 {
        let at = self.doc.nodes.len() as u32;
        let Some([known, value]) = self.doc.nodes.get(model as usize..model as usize + 2) else {
            return NONE;
        };
        let (copy, after) = (shifted(*known, start, known.span.start), value.next);
        self.doc.nodes.push(Node { next: at + 1, ..copy });
        if let Some(open) = self.open.last_mut() {
            open.model.next = after;
        }
        model + 1
    }

    /// Writes a model and all in it again, from `start` on. False if that cannot be: a text of its own belongs to one
    /// place only.
    #[expect(clippy::cast_possible_truncation, reason = "an index of this tape")]
    pub(super) fn repeat(&mut self, model: u32, start: u32) -> bool {
        let Some(&first) = self.doc.nodes.get(model as usize) else { return false };
        let nodes = self.doc.nodes.get(model as usize..first.next as usize).unwrap_or_default();
        if nodes.iter().any(|node| node.text == Text::Owned) {
            return false;
        }
        let moved = self.doc.nodes.len() as u32 - model;
        for index in model..first.next {
            let Some(&node) = self.doc.nodes.get(index as usize) else { return false };
            self.doc.nodes.push(Node { next: node.next + moved, ..shifted(node, start, first.span.start) });
        }
        true
    }
}

/// The node as it is when what began at `model_start` begins at `start`.
#[inline]
fn shifted(node: Node, start: u32, model_start: u32) -> Node {
    let move_by = |at: u32| start + (at - model_start);
    Node { span: Span { start: move_by(node.span.start), end: move_by(node.span.end) }, ..node }
}

#[cfg(test)]
mod tests {
    use crate::doc::json::Reader;
    use crate::doc::{Builder, Syntax};

    /// What a reader that learns, or does not, makes of a text.
    fn read(text: &str, learns: bool) -> Result<String, String> {
        let mut reader = Reader::of(text, true);
        let mut out = Builder { learns, ..Builder::new(text, Syntax::Json) };
        reader.document(&mut out).map_err(|fault| fault.to_string())?;
        Ok(format!("{:?}", out.finish()))
    }

    /// Texts whose parts repeat each other, almost repeat each other, or end in the middle of it.
    fn texts() -> Vec<String> {
        let values = [
            r#"{"a":1,"b":"x","c":[1,2,{"d":null}]}"#,
            r#"{"a":12,"b":"x","c":[1,2,{"d":null}]}"#,
            r#"{"a":1,"c":[1,2,{"d":null}]}"#,
            r#"{"b":"x","c":[1,2,{"d":nul}]}"#,
            r#"{"a":1,"b":"x\n","c":[1,2,{"d":null}],"e":true}"#,
            r#"{ "a" : 1 , "b":"xy","c":[1,2,{"d":nulls}]}"#,
            r#"{"key":"k","value":"v","effect":"NoSchedule","timeAdded":"2026-01-01T00:00:00Z"}"#,
            r#"{"key":"k","effect":"NoSchedule","timeAdded":"2026-01-01T00:00:00Z"}"#,
            r#"{"key":"k","value":"w","effect":"NoSchedule","timeAdded":"2026-01-01T00:00:01Z"}"#,
            "[]",
            "{}",
            "1",
            "\"1\"",
            "true",
            "1.5",
            "15",
            "[[1],[1],[1,2]]",
            "{\"a\":1,\"a\":1}",
            "",
        ];
        let mut texts = Vec::new();
        for one in values {
            for other in values {
                texts.push(format!("[{one},{other},{one},{other}]"));
                texts.push(format!("[[{one},{other}],[{one},{one}],[{other},{one},{one}]]"));
                texts.push(format!("[{{\"list\":[{one}],\"x\":{other}}}, {{\"list\":[{one} ],\"x\":{other}}},{{\"list\":[{one},{other}]"));
            }
        }
        texts
    }

    #[test]
    fn a_model_changes_nothing_but_the_time() {
        let mut fine = 0;
        for text in texts() {
            let found = read(&text, true);
            assert_eq!(found, read(&text, false), "{text}");
            fine += usize::from(found.is_ok());
        }
        assert!(fine > 300, "only {fine} texts are JSON");
    }

    #[test]
    fn a_hostile_text_cannot_make_comparing_expensive() {
        // Every level of every item is like its model up to the last byte.
        let item = |last: usize| format!("{}{last}{}", "[".repeat(2_000), "]".repeat(2_000));
        let items: Vec<String> = (0..100).map(item).collect();
        let text = format!("[{}]", items.join(","));
        let mut reader = Reader::of(&text, true);
        let credit = reader.credit();
        let mut out = Builder::new(&text, Syntax::Json).learning();
        reader.document(&mut out).unwrap();
        assert!(
            credit > 0 && reader.credit() == 0,
            "the credit is used up, and then it is read without models"
        );
    }
}
