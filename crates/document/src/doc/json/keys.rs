//! Reads the keys of objects.
//!
//! Nearly all keys are short and known names of fields, found by their first sixteen bytes.

use super::{BoxedSyntaxError, ExpectedToken, Reader, span, strings};
use crate::doc::{Builder, name, repeat_template};

impl Reader<'_> {
    /// Reads a key and the colon after it, or copies them and what follows as far as the text equals that of their
    /// template. Returns what comes next.
    #[expect(clippy::inline_always, reason = "called in one place, for every value")]
    #[inline(always)]
    pub(super) fn read_key_or_copy_from_template<const COPIES: bool>(
        &mut self,
        out: &mut Builder<'_>,
    ) -> Result<ExpectedToken, BoxedSyntaxError> {
        self.peek_token();
        let template = if COPIES { out.template_of_next_key() } else { repeat_template::NO_TEMPLATE };
        if template != repeat_template::NO_TEMPLATE {
            let next = self.copy_nodes_of_matching_text(out, out.run_start_at_key(template));
            let next = next.or_else(|| match out.template_key_after(template) {
                repeat_template::NO_TEMPLATE => None,
                after => self.copy_nodes_of_matching_text(out, out.run_start_at_key(after)),
            });
            if let Some(next) = next {
                return Ok(next);
            }
        }
        self.template = repeat_template::NO_TEMPLATE;
        if !self.try_read_plain_key_and_colon(out) {
            self.read_any_key_and_colon(out)?;
        }
        Ok(ExpectedToken::UnlikeTemplate)
    }

    /// Reads a key without escapes and with a colon right after it, as nearly all keys are. Returns false, and reads
    /// nothing, if there is none.
    #[expect(clippy::inline_always, reason = "a third of the time that reading takes")]
    #[inline(always)]
    pub(super) fn try_read_plain_key_and_colon(&mut self, out: &mut Builder<'_>) -> bool {
        let (start, inner) = (self.at, self.at + 1);
        if self.peek() != Some(b'"') {
            return false;
        }
        let block = self.bytes.get(inner..).and_then(<[u8]>::first_chunk);
        let short = block.and_then(|block| Some((block, strings::plain_length_of_block(block)?)));
        // A short key is in one block with its closing quote, and its name is found by the block.
        let (end, name) = if let Some((block, length)) = short {
            (inner + length, name::known_short_name_number(block, length))
        } else {
            let end = self.plain_end();
            (end, name::known_name_number(self.bytes.get(inner..end).unwrap_or_default()))
        };
        if self.bytes.get(end..end + 2) != Some(b"\":") {
            return false;
        }
        out.write_quoted_key(span(start, end + 1), name);
        self.at = end + 2;
        true
    }

    /// Reads a key with escapes or with white space before its colon; an error if there is no key.
    #[cold]
    pub(super) fn read_any_key_and_colon(&mut self, out: &mut Builder<'_>) -> Result<(), BoxedSyntaxError> {
        if self.peek() != Some(b'"') {
            return Err(self.unexpected("looking for beginning of object key string"));
        }
        self.read_string(out)?;
        self.skip_colon()
    }

    /// Moves past the colon after a key.
    pub(super) fn skip_colon(&mut self) -> Result<(), BoxedSyntaxError> {
        self.skip_space();
        if self.peek() != Some(b':') {
            return Err(self.unexpected("after object key"));
        }
        self.at += 1;
        Ok(())
    }
}
