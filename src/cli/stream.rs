//! A stream of JSON values, pretty-printed or one per line, cut into frames without parsing them.
//!
//! A frame ends where its brackets close. What is not JSON must not swallow what follows: a raw newline in a string or
//! an object that begins where none can begin ends the frame, and [`JsonFrames::resume_in_broken_frame`] finds the next
//! value inside a frame that turned out to be broken. Memory is bounded by the largest frame, whatever the length of
//! the stream.

use std::io::{self, Read};

/// Maximum size of a value in bytes; larger ones are skipped. Sufficient for an AdmissionReview of an UPDATE,
/// which contains an object of at most 3 MiB twice.
pub(super) const MAX_FRAME_BYTES: usize = 32 << 20;

/// A piece of the stream that should be one JSON value.
#[derive(Debug)]
pub(super) struct JsonFrame {
    /// Its bytes; empty if it is too large.
    pub(super) bytes: Vec<u8>,
    /// The line it starts on, from 1.
    pub(super) line: usize,
    /// The column it starts at, from 1, in characters.
    pub(super) column: usize,
    /// True if it has more than [`MAX_FRAME_BYTES`].
    pub(super) too_large: bool,
}

/// Reads a stream and cuts it into frames.
#[derive(Debug)]
pub(super) struct JsonFrames<R> {
    input: R,
    buffer: Vec<u8>,
    /// First byte of the buffer that is not yet part of a frame.
    start: usize,
    line: usize,
    column: usize,
    /// Number of bytes from `start` that belonged to a broken frame. In them, every object at the start of a line
    /// begins a frame, so that they are scanned only once more.
    suspect: usize,
    ended: bool,
}

impl<R: Read> JsonFrames<R> {
    /// Creates a reader of the frames of `input`.
    pub(super) fn new(input: R) -> JsonFrames<R> {
        JsonFrames { input, buffer: Vec::new(), start: 0, line: 1, column: 1, suspect: 0, ended: false }
    }

    /// Reads the next frame; `None` at the end of the stream.
    pub(super) fn next(&mut self) -> io::Result<Option<JsonFrame>> {
        loop {
            let blank = self.unread().iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            self.advance(blank);
            if !self.unread().is_empty() {
                break;
            }
            if !self.refill()? {
                return Ok(None);
            }
        }
        let (line, column) = (self.line, self.column);
        let Some(end) = self.find_frame_end_unless_too_large()? else {
            self.skip_oversized_to_next_object_line()?;
            return Ok(Some(JsonFrame { bytes: Vec::new(), line, column, too_large: true }));
        };
        let bytes = self.unread().get(..end).unwrap_or_default().to_vec();
        self.advance(end);
        Ok(Some(JsonFrame { bytes, line, column, too_large: false }))
    }

    /// Goes back to the first value that may begin inside a broken frame: an object at the start of a line.
    pub(super) fn resume_in_broken_frame(&mut self, frame: &JsonFrame) {
        let Some(at) = frame.bytes.windows(2).position(|pair| pair == b"\n{") else { return };
        self.suspect = frame.bytes.len() - (at + 1);
        self.start -= self.suspect;
        self.line = frame.line + count_newlines(frame.bytes.get(..=at).unwrap_or_default());
        self.column = 1;
    }

    /// True if only blanks are buffered, so that the next frame may take a while.
    pub(super) fn buffer_has_only_blanks(&self) -> bool {
        self.unread().iter().all(u8::is_ascii_whitespace)
    }

    fn unread(&self) -> &[u8] {
        self.buffer.get(self.start..).unwrap_or_default()
    }

    /// Finds the position after the frame's last byte; `None` if the frame is too large.
    fn find_frame_end_unless_too_large(&mut self) -> io::Result<Option<usize>> {
        let mut scan = FrameScanner { suspect: self.suspect, ..FrameScanner::default() };
        let mut at = 0;
        loop {
            while let Some(&byte) = self.buffer.get(self.start + at) {
                if let Some(end) = scan.scan_byte(byte, at) {
                    return Ok(Some(end));
                }
                at += 1;
            }
            if at > MAX_FRAME_BYTES {
                return Ok(None);
            }
            if !self.refill()? {
                return Ok(Some(at));
            }
        }
    }

    /// Drops the rest of a value that is larger than [`MAX_FRAME_BYTES`].
    fn skip_oversized_to_next_object_line(&mut self) -> io::Result<()> {
        loop {
            let next = self.unread().windows(2).position(|pair| pair == b"\n{");
            // The last byte stays: it may be the newline before the next value.
            self.advance(next.map_or(self.unread().len().saturating_sub(1), |at| at + 1));
            if next.is_some() {
                return Ok(());
            }
            if !self.refill()? {
                self.advance(self.unread().len());
                return Ok(());
            }
        }
    }

    /// Moves past `count` bytes, and counts their lines and columns.
    fn advance(&mut self, count: usize) {
        let passed = self.unread().get(..count).unwrap_or_default();
        let (lines, tail) =
            (count_newlines(passed), passed.rsplit(|byte| *byte == b'\n').next().unwrap_or_default());
        // Characters: bytes that do not continue one.
        let characters = tail.iter().filter(|byte| **byte & 0xc0 != 0x80).count();
        self.column = if lines > 0 { 1 } else { self.column } + characters;
        self.line += lines;
        self.start += count;
        self.suspect = self.suspect.saturating_sub(count);
    }

    fn refill(&mut self) -> io::Result<bool> {
        if self.ended {
            return Ok(false);
        }
        // What was left behind goes when it is the greater part, so that no byte is moved twice on average.
        if self.start > self.buffer.len() / 2 {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        let before = self.buffer.len();
        self.buffer.resize(before + (64 << 10), 0);
        let read = loop {
            match self.input.read(self.buffer.get_mut(before..).unwrap_or_default()) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        self.buffer.truncate(before + *read.as_ref().unwrap_or(&0));
        self.ended = read? == 0;
        Ok(!self.ended)
    }
}

fn count_newlines(bytes: &[u8]) -> usize {
    bytes.split(|byte| *byte == b'\n').count().saturating_sub(1)
}

/// Scans the bytes of a JSON value for its end, by brackets and strings.
#[derive(Default)]
struct FrameScanner {
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// The last byte that is not blank, 0 at first.
    last: u8,
    at_line_start: bool,
    /// Before this position, an object at the start of a line begins a frame, whatever precedes it.
    suspect: usize,
}

impl FrameScanner {
    /// Reads one byte. Returns the end of the frame if the frame ends with or before this byte.
    fn scan_byte(&mut self, byte: u8, at: usize) -> Option<usize> {
        if self.in_string {
            return self.scan_string_byte_or_end_at_newline(byte, at);
        }
        let first_of_line = std::mem::replace(&mut self.at_line_start, byte == b'\n');
        if byte.is_ascii_whitespace() {
            return (self.depth == 0).then_some(at);
        }
        let last = std::mem::replace(&mut self.last, byte);
        match byte {
            b'{' | b'[' => {
                // An object cannot begin here: the value before it is broken off.
                let misplaced = first_of_line && (at < self.suspect || !matches!(last, b',' | b'[' | b':'));
                if last != 0 && (self.depth == 0 || byte == b'{' && misplaced) {
                    return Some(at);
                }
                self.depth += 1;
            }
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                if self.depth == 0 {
                    return Some(at + 1);
                }
            }
            b'"' => self.in_string = true,
            _ => {}
        }
        None
    }

    fn scan_string_byte_or_end_at_newline(&mut self, byte: u8, at: usize) -> Option<usize> {
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' => self.escaped = true,
            b'"' => self.in_string = false,
            // No JSON string has a raw newline.
            b'\n' => return Some(at),
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::JsonFrames;

    /// Frames of a text; broken ones (by the real parser) are marked and resumed.
    fn frames(text: &str) -> Vec<String> {
        let mut frames = JsonFrames::new(text.as_bytes());
        let mut out = Vec::new();
        while let Some(frame) = frames.next().unwrap() {
            let text = String::from_utf8(frame.bytes.clone()).unwrap();
            let good = tollgate_document::doc::parse(&text).is_ok();
            let column = if frame.column == 1 { String::new() } else { format!(":{}", frame.column) };
            out.push(format!("{}{column}{}", frame.line, if good { "" } else { "!" }));
            if !good {
                frames.resume_in_broken_frame(&frame);
            }
        }
        out
    }

    #[test]
    fn a_stream_of_broken_values_is_read_in_one_go() {
        let text = "{\"a\":[\n".repeat(100_000);
        assert_eq!(frames(&text).len(), 100_000);
        let text = format!("{{\"a\":[\n{}", "{},\n".repeat(100_000));
        assert_eq!(frames(&text).len(), 200_001, "each object, and the comma after it");
    }

    #[test]
    fn a_broken_value_does_not_swallow_the_next() {
        let table: [(&str, &[&str]); 12] = [
            ("{}\n{}\n", &["1", "2"]),
            ("{} {}{}", &["1", "1:4", "1:6"]),
            ("\n\n{\n \"a\": [\n  {}\n ]\n}\n{\n}\n", &["3", "8"]),
            ("{\"a\": \"}{\\\"\"}\n[1]", &["1", "2"]),
            ("{\"a\": {\"b\": 1\n{}\n{}", &["1!", "2", "3"]),
            ("{\"a\": \"b\n{}\n", &["1!", "2"]),
            ("{\"a\": [\n{}\n{}\n", &["1!", "2", "3"]),
            ("{\"a\": 1,\n{}\n{}\n", &["1!", "2", "3"]),
            ("é {}\n} {}\n", &["1!", "1:3", "2!", "2:3"]),
            ("{\"a\": [\n{},\n{}\n]}\n{}", &["1", "5"]),
            ("{\"a\"", &["1!"]),
            ("", &[]),
        ];
        for (text, expected) in table {
            assert_eq!(frames(text), expected, "{text:?}");
        }
    }
}
