//! Copies a run of nodes: as far as the text equals that of its [template](super::repeat_template), across the ends and
//! beginnings of containers.
//!
//! This does not parse text: where the texts differ, it returns what the reader must read next. Invariant: a node is
//! copied only if all of it and the byte after it are in the run; a container that is only partly in the run is opened.

use super::build::OpenContainer;
use super::{Builder, Node, ValueKind};

/// A position in the template's text at which a matching run can start.
#[derive(Clone, Copy, Debug)]
pub(super) struct TemplateRunStart {
    pub(super) first: RunStartNode,
    /// Byte offset of the start of the run in the template's text.
    pub(super) from: u32,
    /// Offset after the last byte of the template's text that may be compared.
    pub(super) reach: u32,
}

/// The node at the start of a run.
#[derive(Clone, Copy, Debug)]
pub(super) enum RunStartNode {
    Value(u32),
    /// The run starts after a value or before a key; this node is the next one, in the open container or after it.
    AfterValue(u32),
}

/// The bytes that are equal in the template's text and in the text that is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct MatchedByteRun {
    /// Offset after the last byte, in the template's text.
    pub(super) end: u32,
    /// Distance in bytes from the template's text to the text being read.
    pub(super) offset: u32,
}

/// The position at which the reader continues after a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResumePoint {
    /// The byte to read next, in the text of the template.
    pub(super) at: u32,
    pub(super) next: NextToken,
}

/// The token that the reader finds where it continues.
#[derive(Clone, Copy, Debug)]
pub(super) enum NextToken {
    /// A comma, the end of a container, or the end of the text.
    After,
    /// The first key or item of the container just opened, or its end.
    Inside(ValueKind),
    /// A value that differs from this node, its template.
    Value(u32),
}

/// The nodes of a run, from its first node up to `end`: they are found first and then copied together.
struct CopyRange {
    /// Index after the last copied node.
    end: u32,
    resume: Option<ResumePoint>,
}

impl Builder<'_> {
    /// Copies all nodes that are completely in the run, and opens containers that are only partly in it.
    /// Returns the position at which to continue; `None` if nothing was copied.
    #[expect(clippy::cast_possible_truncation, reason = "an index of this tape")]
    pub(super) fn copy_nodes_in_matched_run(
        &mut self,
        first: RunStartNode,
        run: MatchedByteRun,
    ) -> Option<ResumePoint> {
        let (RunStartNode::Value(start) | RunStartNode::AfterValue(start)) = first;
        let node_shift = self.doc.nodes.len() as u32 - start;
        let found = match first {
            RunStartNode::Value(value) => self.find_copy_range_from_value(value, run, node_shift)?,
            RunStartNode::AfterValue(node) => {
                self.find_copy_range_from_member(node, run, node_shift, None)?
            }
        };
        let copied = self.doc.nodes.len();
        self.doc.nodes.extend_from_within(start as usize..found.end as usize);
        for node in self.doc.nodes.iter_mut().skip(copied) {
            node.span.start += run.offset;
            node.span.end += run.offset;
            node.next += node_shift;
        }
        found.resume
    }

    /// Finds the nodes to copy for a run that starts with `value`; `node_shift` is how far nodes move on the tape.
    fn find_copy_range_from_value(
        &mut self,
        value: u32,
        run: MatchedByteRun,
        node_shift: u32,
    ) -> Option<CopyRange> {
        let known = *self.node(value)?;
        if known.span.end >= run.end {
            let resume = self.open_container_begun_in_run(value, known, run, node_shift)?;
            return self.find_copy_range_from_member(value + 1, run, node_shift, Some(resume));
        }
        let resume = Some(ResumePoint { at: known.span.end, next: NextToken::After });
        if self.template_if_next_is(known.next).is_some() {
            self.find_copy_range_from_member(known.next, run, node_shift, resume)
        } else {
            Some(CopyRange { end: known.next, resume })
        }
    }

    /// Finds the nodes to copy, starting at `node`, the next key or item of the open container. `resume` is
    /// the position to continue at if no further node is complete.
    fn find_copy_range_from_member(
        &mut self,
        mut node: u32,
        run: MatchedByteRun,
        node_shift: u32,
        mut resume: Option<ResumePoint>,
    ) -> Option<CopyRange> {
        loop {
            let open = self.open.last()?;
            let (template, key) = (open.template, u32::from(open.kind == ValueKind::Object));
            while node < template.end
                && let Some(known) = self.node(node + key).filter(|known| known.span.end < run.end)
            {
                node = known.next;
                resume = Some(ResumePoint { at: known.span.end, next: NextToken::After });
            }
            if node < template.end {
                let (value, known) = (node + key, *self.node(node + key)?);
                let at = if key == 0 { known.span.start } else { self.node(node)?.span.end };
                let is_there = at < run.end && (key == 0 || self.is_colon(at));
                if !is_there {
                    // If nothing was found, the key may be another one.
                    resume?;
                    self.set_next_template_node(node);
                    return Some(CopyRange { end: node, resume });
                }
                self.set_next_template_node(known.next);
                resume = self.open_container_begun_in_run(value, known, run, node_shift);
                if resume.is_none() {
                    let resume = Some(ResumePoint { at: at + key, next: NextToken::Value(value) });
                    return Some(CopyRange { end: value, resume });
                }
                node = value + 1;
            } else {
                self.set_next_template_node(node);
                let end = self.node(template.of)?.span.end;
                if end > run.end {
                    return Some(CopyRange { end: node, resume });
                }
                self.close_with_next_node(node + node_shift, end + run.offset);
                resume = Some(ResumePoint { at: end, next: NextToken::After });
                if self.template_if_next_is(node).is_none() {
                    return Some(CopyRange { end: node, resume });
                }
            }
        }
    }

    /// Opens a container whose beginning is in the run. Returns the position at which to continue; `None` if
    /// `known` is not a container or begins after the run.
    fn open_container_begun_in_run(
        &mut self,
        template: u32,
        known: Node,
        run: MatchedByteRun,
        node_shift: u32,
    ) -> Option<ResumePoint> {
        let is_container = matches!(known.kind, ValueKind::Array | ValueKind::Object);
        if !is_container || known.span.start >= run.end {
            return None;
        }
        let inner = self.template_from_node(template, &known);
        self.open.push(OpenContainer { node: template + node_shift, kind: known.kind, template: inner });
        Some(ResumePoint { at: known.span.start + 1, next: NextToken::Inside(known.kind) })
    }

    /// Sets the node that the open container's next key or item is compared with.
    fn set_next_template_node(&mut self, next: u32) {
        if let Some(open) = self.open.last_mut() {
            open.template.next = next;
        }
    }

    /// True if the source has a colon at that byte.
    fn is_colon(&self, at: u32) -> bool {
        self.doc.source.as_bytes().get(at as usize) == Some(&b':')
    }
}

/// The number of bytes at the start of both texts that are equal.
#[inline]
pub(super) fn common_prefix(one: &[u8], other: &[u8]) -> usize {
    let blocks = one.as_chunks::<32>().0.iter().zip(other.as_chunks::<32>().0);
    let mut common_prefix = 32 * blocks.take_while(|(one, other)| one == other).count();
    let words = one.as_chunks::<8>().0.iter().zip(other.as_chunks::<8>().0).skip(common_prefix / 8);
    for (one, other) in words {
        let differ = u64::from_le_bytes(*one) ^ u64::from_le_bytes(*other);
        if differ != 0 {
            return common_prefix + differ.trailing_zeros() as usize / 8;
        }
        common_prefix += 8;
    }
    let bytes = one.iter().zip(other).skip(common_prefix);
    common_prefix + bytes.take_while(|(one, other)| one == other).count()
}
