//! A stretch: as far as the text that is read is, to the byte, that of its [model](super::model). Its nodes are copied,
//! across the ends and beginnings of containers, however many there are.
//!
//! Not a reader: where the texts part, it says what is to be read there. Invariant: a node is copied only if all of it
//! and the byte after it are in the stretch; a container of which only the beginning is, is opened.

use super::build::Open;
use super::{Builder, Kind, Marks, Node};

/// A place in the text of a model, from which on ours may be the same.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fork {
    pub(super) first: First,
    /// The byte there.
    pub(super) from: u32,
    /// It is not looked at beyond this byte.
    pub(super) reach: u32,
}

/// What is at a fork.
#[derive(Clone, Copy, Debug)]
pub(super) enum First {
    /// That value.
    Value(u32),
    /// After a value or before a key: that node is the next, in the open container or after it.
    Rest(u32),
}

/// As far as the texts are the same.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    /// One past the last byte, in the text of the model.
    pub(super) end: u32,
    /// How much further on our text is.
    pub(super) ahead: u32,
}

/// Where the texts part.
#[derive(Clone, Copy, Debug)]
pub(super) struct Halt {
    /// The byte to read next, in the text of the model.
    pub(super) at: u32,
    pub(super) then: Then,
}

/// What is to be read.
#[derive(Clone, Copy, Debug)]
pub(super) enum Then {
    /// What follows a value.
    After,
    /// The first key or item of the container just opened, or its end.
    Inside(Kind),
    /// A value that has that model and is not written as it.
    Value(u32),
}

/// The nodes of a stretch are found first and copied together.
struct Found {
    /// One past the last that is copied.
    end: u32,
    halt: Option<Halt>,
}

impl Builder<'_> {
    /// Copies what is whole; `None` if nothing is.
    #[expect(clippy::cast_possible_truncation, reason = "an index of this tape")]
    pub(super) fn follow(&mut self, first: First, stretch: Stretch) -> Option<Halt> {
        let (First::Value(start) | First::Rest(start)) = first;
        let moved = self.doc.nodes.len() as u32 - start;
        let found = match first {
            First::Value(value) => self.find_value(value, stretch, moved)?,
            First::Rest(node) => self.find_members(node, stretch, moved, None)?,
        };
        let copied = self.doc.nodes.len();
        self.doc.nodes.extend_from_within(start as usize..found.end as usize);
        for node in self.doc.nodes.iter_mut().skip(copied) {
            node.span.start += stretch.ahead;
            node.span.end += stretch.ahead;
            node.next += moved;
            node.marks.add(Marks::COPIED);
        }
        // What was only begun goes on in its own way.
        for begun in self.open.iter().rev().take_while(|open| open.node as usize >= copied) {
            if let Some(node) = self.doc.nodes.get_mut(begun.node as usize) {
                node.marks.remove(Marks::COPIED);
            }
        }
        found.halt
    }

    fn find_value(&mut self, value: u32, stretch: Stretch, moved: u32) -> Option<Found> {
        let known = *self.node(value)?;
        if known.span.end >= stretch.end {
            let halt = self.enter(value, known, stretch, moved)?;
            return self.find_members(value + 1, stretch, moved, Some(halt));
        }
        let halt = Some(Halt { at: known.span.end, then: Then::After });
        if self.model_at(known.next).is_some() {
            self.find_members(known.next, stretch, moved, halt)
        } else {
            Some(Found { end: known.next, halt })
        }
    }

    /// From the next key or item of the open container on, which is that node; `halt` if nothing more is whole.
    fn find_members(
        &mut self,
        mut node: u32,
        stretch: Stretch,
        moved: u32,
        mut halt: Option<Halt>,
    ) -> Option<Found> {
        loop {
            let open = self.open.last()?;
            let (model, key) = (open.model, u32::from(open.kind == Kind::Object));
            while node < model.end
                && let Some(known) = self.node(node + key).filter(|known| known.span.end < stretch.end)
            {
                node = known.next;
                halt = Some(Halt { at: known.span.end, then: Then::After });
            }
            if node < model.end {
                let (value, known) = (node + key, *self.node(node + key)?);
                let at = if key == 0 { known.span.start } else { self.node(node)?.span.end };
                let is_there = at < stretch.end && (key == 0 || self.is_colon(at));
                if !is_there {
                    // If nothing was found, the key may be another one.
                    halt?;
                    self.go_on_at(node);
                    return Some(Found { end: node, halt });
                }
                self.go_on_at(known.next);
                halt = self.enter(value, known, stretch, moved);
                if halt.is_none() {
                    let halt = Some(Halt { at: at + key, then: Then::Value(value) });
                    return Some(Found { end: value, halt });
                }
                node = value + 1;
            } else {
                self.go_on_at(node);
                let end = self.node(model.of)?.span.end;
                if end > stretch.end {
                    return Some(Found { end: node, halt });
                }
                self.close_before(node + moved, end + stretch.ahead);
                halt = Some(Halt { at: end, then: Then::After });
                if self.model_at(node).is_none() {
                    return Some(Found { end: node, halt });
                }
            }
        }
    }

    /// Opens a container of which not more than the beginning is in the stretch; `None` if it is none, or not even that.
    fn enter(&mut self, model: u32, known: Node, stretch: Stretch, moved: u32) -> Option<Halt> {
        let is_container = matches!(known.kind, Kind::Array | Kind::Object);
        if !is_container || known.span.start >= stretch.end {
            return None;
        }
        let like = self.like(model, &known);
        self.open.push(Open { node: model + moved, kind: known.kind, model: like });
        Some(Halt { at: known.span.start + 1, then: Then::Inside(known.kind) })
    }

    fn go_on_at(&mut self, next: u32) {
        if let Some(open) = self.open.last_mut() {
            open.model.next = next;
        }
    }

    fn is_colon(&self, at: u32) -> bool {
        self.doc.source.as_bytes().get(at as usize) == Some(&b':')
    }
}

/// How many bytes are the same before the first that is not.
#[inline]
pub(super) fn alike(one: &[u8], other: &[u8]) -> usize {
    let blocks = one.as_chunks::<32>().0.iter().zip(other.as_chunks::<32>().0);
    let mut alike = 32 * blocks.take_while(|(one, other)| one == other).count();
    let words = one.as_chunks::<8>().0.iter().zip(other.as_chunks::<8>().0).skip(alike / 8);
    for (one, other) in words {
        let differ = u64::from_le_bytes(*one) ^ u64::from_le_bytes(*other);
        if differ != 0 {
            return alike + differ.trailing_zeros() as usize / 8;
        }
        alike += 8;
    }
    let bytes = one.iter().zip(other).skip(alike);
    alike + bytes.take_while(|(one, other)| one == other).count()
}
