//! What was read before as the model of what is read next: devices of one slice repeat each other's keys, and whole
//! parts, to the byte. As far as the text goes on like that of the model, nodes are copied instead of being read again.
//!
//! The model of an item is the item at the same place of the list's own model, or else the item before it; the model
//! of a member is the next member of the object's model. It is a guess: the bytes decide, and a wrong one costs time.
//!
//! Here is what is held against what; [`super::stretch`] copies. Invariant: a text and that of its model are at the same
//! place of the grammar, so the same bytes are the same nodes.

use super::stretch::{First, Fork};
use super::{Builder, Kind, Node, Span};

/// The part of the tape that an open container is held against.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Model {
    /// The container.
    pub(super) of: u32,
    /// What comes in it after the model of what is read now: an item, or the key of a member.
    pub(super) next: u32,
    /// One past the last of them.
    pub(super) end: u32,
    /// Up to this byte the text goes on in step with the one that is read: the end of this container, or of one around it.
    reach: u32,
    /// The item of ours that was read last, in a list.
    before: u32,
}

/// No node can be the model of another before it, so the first one is nobody's.
pub(super) const NONE: u32 = 0;

impl<'a> Builder<'a> {
    /// What is written is the model of what comes: for readers of text.
    pub(super) fn learning(self) -> Builder<'a> {
        Builder { learns: true, ..self }
    }

    #[inline]
    pub(super) fn node(&self, index: u32) -> Option<&Node> {
        self.doc.nodes.get(index as usize)
    }

    /// The model of the open container, if it goes on with that node: then both are in step.
    #[inline]
    pub(super) fn model_at(&self, next: u32) -> Option<&Model> {
        self.open.last().map(|open| &open.model).filter(|model| model.of != NONE && model.next == next)
    }

    /// Starts a list or an object that may have a model.
    #[inline]
    pub(super) fn open_like(&mut self, kind: Kind, span: Span, model: u32) {
        let known = if model == NONE { None } else { self.node(model).filter(|known| known.kind == kind) };
        let like = known.map(|known| self.like(model, known));
        self.open(kind, span);
        if let (Some(like), Some(open)) = (like, self.open.last_mut()) {
            open.model = like;
        }
    }

    /// The model of a container that is opened.
    #[inline]
    pub(super) fn like(&self, of: u32, known: &Node) -> Model {
        let reach = self.model_at(known.next).map_or(known.span.end, |around| around.reach);
        Model { of, next: of + 1, end: known.next, reach, before: NONE }
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
        let after = self.node(model + 1).map_or(NONE, |value| value.next);
        if self.open.last().is_some_and(|open| after < open.model.end) { after } else { NONE }
    }

    /// Before a value that has that model.
    #[inline]
    pub(super) fn before_value(&self, model: u32) -> Option<Fork> {
        let known = self.node(model)?;
        // A byte more than the value: a number might go on.
        let reach = self.model_at(known.next).map_or(known.span.end + 1, |around| around.reach);
        Some(self.fork(First::Value(model), known.span.start, reach))
    }

    /// After a value that has that model and is not written as it.
    #[inline]
    pub(super) fn after_value(&self, model: u32) -> Option<Fork> {
        let known = self.node(model)?;
        let around = self.model_at(known.next)?;
        Some(self.fork(First::Rest(known.next), known.span.end, around.reach))
    }

    /// Before a key that has that model, in the open container.
    #[inline]
    pub(super) fn before_key(&self, model: u32) -> Option<Fork> {
        let around = &self.open.last()?.model;
        Some(self.fork(First::Rest(model), self.node(model)?.span.start, around.reach))
    }

    #[inline]
    fn fork(&self, first: First, from: u32, reach: u32) -> Fork {
        // A text that is not in the source belongs to one node only: there the models end.
        let reach = if self.doc.owned.is_empty() { reach } else { reach.min(self.first_owned(first)) };
        Fork { first, from, reach }
    }

    /// One past the first byte of the first such text.
    fn first_owned(&self, first: First) -> u32 {
        let (First::Value(node) | First::Rest(node)) = first;
        let owner = self.doc.owned.first_from(node).and_then(|owner| self.node(owner));
        owner.map_or(u32::MAX, |owner| owner.span.start + 1)
    }
}

#[cfg(test)]
mod tests {
    use crate::doc::json::Reader;
    use crate::doc::{Builder, Marks, Syntax};

    /// What a reader that learns, or does not, makes of a text.
    fn read(text: &str, learns: bool) -> Result<String, String> {
        let mut reader = Reader::of(text);
        let mut out = Builder { learns, ..Builder::new(text, Syntax::Json) };
        reader.document(&mut out).map_err(|fault| fault.to_string())?;
        let mut document = out.finish();
        document.nodes.iter_mut().for_each(|node| node.marks = Marks::default());
        Ok(format!("{document:?}"))
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

    /// Reads texts with models and without; how many of them are JSON.
    fn read_both_ways(texts: impl IntoIterator<Item = String>) -> usize {
        let is_fine = |text: &String| {
            let found = read(text, true);
            assert_eq!(found, read(text, false), "{text}");
            found.is_ok()
        };
        texts.into_iter().filter(is_fine).count()
    }

    #[test]
    fn a_model_changes_nothing_but_the_time() {
        let fine = read_both_ways(texts());
        assert!(fine > 300, "only {fine} texts are JSON");
    }

    /// Lists of items that are each other's copies but for some bytes that were changed, left out or put in.
    fn damaged() -> impl Iterator<Item = String> {
        let items = [
            r#"{"name":"a","attributes":{"x":{"string":"v"},"y":{"int":1}},"taints":[{"key":"k","value":"v-1","effect":"E"},{"key":"l","value":"v-2","effect":"E"}],"n":[1,[2,[3,{}]],[]]}"#,
            r#"[{"a":"\n","b":[true,null,12.5e3]},{"a":"\n","b":[true,null,12.5e3]},"\u0041",{"":{}}]"#,
            r#"{"devices" : [ { "name" : "x" } , { "name" : "y" , "more" : [ ] } ] }"#,
        ];
        let mut seed = 1_u64;
        let mut number = move |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(seed >> 33).unwrap() % below
        };
        (0..30_000).map(move |round| {
            let item = items[round % items.len()];
            let copies: Vec<String> = (0..2 + number(3))
                .map(|_| {
                    let mut copy = item.as_bytes().to_vec();
                    for _ in 0..number(2) {
                        let (at, byte) = (number(copy.len()), br#"{}[],:"\ 0123456789abcdefgh"#[number(27)]);
                        match number(3) {
                            0 => copy[at] = byte,
                            1 => copy.insert(at, byte),
                            _ => _ = copy.remove(at),
                        }
                    }
                    String::from_utf8(copy).unwrap()
                })
                .collect();
            let list = format!("[{}]", copies.join(","));
            if number(2) == 0 { format!("[{list},{list},[{}]]", copies[0]) } else { list }
        })
    }

    #[test]
    fn almost_the_same_is_read_as_it_is() {
        let fine = read_both_ways(damaged());
        assert!((7_000..25_000).contains(&fine), "{fine} texts are JSON");
    }

    #[test]
    fn a_hostile_text_cannot_make_comparing_expensive() {
        // Every level of every item is like its model up to the last byte; the text repeats itself; every other node
        // has a text of its own.
        let deep = |last: usize| format!("{}{last}{}", "[".repeat(2_000), "]".repeat(2_000));
        let long = |last: usize| format!("{{\"{}\":{last}}}", "k".repeat(2_000));
        let texts = [
            (0..100).map(deep).collect::<Vec<_>>(),
            (0..100).map(long).collect(),
            vec!["{\"a\":1}".to_owned(); 10_000],
            vec!["\"\\n\"".to_owned(); 10_000],
            vec![format!("[{}]", vec!["\"\\n\",1"; 2_000].join(",")); 20],
        ];
        for items in texts {
            let text = format!("[{}]", items.join(","));
            let mut reader = Reader::of(&text);
            let mut out = Builder::new(&text, Syntax::Json).learning();
            reader.document(&mut out).unwrap();
            assert!(
                reader.compared > 0 && reader.compared < 4 * text.len(),
                "{}",
                reader.compared / text.len()
            );
        }
    }
}
