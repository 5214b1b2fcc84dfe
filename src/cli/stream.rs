//! A stream of JSON values, pretty-printed or one per line, cut into frames without parsing them.
//!
//! A frame ends where its brackets close. What is not JSON must not swallow what follows: a raw newline in a string
//! or an object that begins where none can begin ends the frame, and [`Frames::resume`] finds the next value inside a
//! frame that turned out to be broken. Memory is bounded by the largest frame, whatever the length of the stream.

use std::io::{self, Read};

/// Larger values are refused unread; an UPDATE carries an object of at most 3 MiB twice.
pub(super) const MAX_FRAME: usize = 32 << 20;

/// A piece of the stream that should be one JSON value.
#[derive(Debug)]
pub(super) struct Frame {
    /// Its bytes; empty if it is too large.
    pub(super) bytes: Vec<u8>,
    /// The line it starts on, from 1.
    pub(super) line: usize,
    /// Over [`MAX_FRAME`].
    pub(super) too_large: bool,
}

/// The frames of a stream.
#[derive(Debug)]
pub(super) struct Frames<R> {
    input: R,
    buffer: Vec<u8>,
    /// First byte of the buffer that is not yet part of a frame.
    start: usize,
    line: usize,
    ended: bool,
}

impl<R: Read> Frames<R> {
    /// The frames of `input`.
    pub(super) fn of(input: R) -> Frames<R> {
        Frames { input, buffer: Vec::new(), start: 0, line: 1, ended: false }
    }

    /// The next frame.
    pub(super) fn next(&mut self) -> io::Result<Option<Frame>> {
        self.buffer.drain(..self.start);
        self.start = 0;
        loop {
            let blank = self.buffer.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            self.drop_front(blank);
            if !self.buffer.is_empty() {
                break;
            }
            if !self.refill()? {
                return Ok(None);
            }
        }
        let line = self.line;
        let Some(end) = self.find_end()? else {
            self.skip_to_next()?;
            return Ok(Some(Frame { bytes: Vec::new(), line, too_large: true }));
        };
        let bytes = self.buffer.get(..end).unwrap_or_default().to_vec();
        self.start = end;
        self.line += newlines(&bytes);
        Ok(Some(Frame { bytes, line, too_large: false }))
    }

    /// Goes back to the first value that may begin inside a broken frame: an object at the start of a line.
    pub(super) fn resume(&mut self, frame: &Frame) {
        let Some(at) = frame.bytes.windows(2).position(|pair| pair == b"\n{") else { return };
        self.start -= frame.bytes.len() - (at + 1);
        self.line = frame.line + newlines(frame.bytes.get(..=at).unwrap_or_default());
    }

    /// True if nothing but blanks is waiting: the next frame may take a while.
    pub(super) fn is_drained(&self) -> bool {
        self.buffer.iter().skip(self.start).all(u8::is_ascii_whitespace)
    }

    /// One past the frame's last byte; `None` if it is too large.
    fn find_end(&mut self) -> io::Result<Option<usize>> {
        let mut scan = Scan::default();
        let mut at = 0;
        loop {
            while let Some(&byte) = self.buffer.get(at) {
                if let Some(end) = scan.step(byte, at) {
                    return Ok(Some(end));
                }
                at += 1;
            }
            if at > MAX_FRAME {
                return Ok(None);
            }
            if !self.refill()? {
                return Ok(Some(at));
            }
        }
    }

    /// Drops the rest of a value that is too large.
    fn skip_to_next(&mut self) -> io::Result<()> {
        loop {
            let next = self.buffer.windows(2).position(|pair| pair == b"\n{");
            // The last byte stays: it may be the newline before the next value.
            self.drop_front(next.map_or(self.buffer.len().saturating_sub(1), |at| at + 1));
            if next.is_some() {
                return Ok(());
            }
            if !self.refill()? {
                self.buffer.clear();
                return Ok(());
            }
        }
    }

    fn drop_front(&mut self, count: usize) {
        self.line += newlines(self.buffer.get(..count).unwrap_or_default());
        self.buffer.drain(..count);
    }

    fn refill(&mut self) -> io::Result<bool> {
        if self.ended {
            return Ok(false);
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

fn newlines(bytes: &[u8]) -> usize {
    bytes.split(|byte| *byte == b'\n').count().saturating_sub(1)
}

/// Where in a value the scan is.
#[derive(Default)]
struct Scan {
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// The last byte that is not blank, 0 at first.
    last: u8,
    at_line_start: bool,
}

impl Scan {
    /// Takes one byte; returns the end of the frame if this byte decides it.
    fn step(&mut self, byte: u8, at: usize) -> Option<usize> {
        if self.in_string {
            return self.step_string(byte, at);
        }
        let first_of_line = std::mem::replace(&mut self.at_line_start, byte == b'\n');
        if byte.is_ascii_whitespace() {
            return (self.depth == 0).then_some(at);
        }
        let last = std::mem::replace(&mut self.last, byte);
        match byte {
            b'{' | b'[' => {
                // An object cannot begin here: the value before it is broken off.
                let misplaced = first_of_line && !matches!(last, b',' | b'[' | b':');
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

    fn step_string(&mut self, byte: u8, at: usize) -> Option<usize> {
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
    use super::Frames;

    /// Frames of a text; broken ones (by the real parser) are marked and resumed.
    fn frames(text: &str) -> Vec<String> {
        let mut frames = Frames::of(text.as_bytes());
        let mut out = Vec::new();
        while let Some(frame) = frames.next().unwrap() {
            let text = String::from_utf8(frame.bytes.clone()).unwrap();
            let good = crate::doc::parse(&text).is_ok();
            out.push(format!("{}{}", frame.line, if good { "" } else { "!" }));
            if !good {
                frames.resume(&frame);
            }
        }
        out
    }

    #[test]
    fn a_broken_value_does_not_swallow_the_next() {
        let table: [(&str, &[&str]); 12] = [
            ("{}\n{}\n", &["1", "2"]),
            ("{} {}{}", &["1", "1", "1"]),
            ("\n\n{\n \"a\": [\n  {}\n ]\n}\n{\n}\n", &["3", "8"]),
            ("{\"a\": \"}{\\\"\"}\n[1]", &["1", "2"]),
            ("{\"a\": {\"b\": 1\n{}\n{}", &["1!", "2", "3"]),
            ("{\"a\": \"b\n{}\n", &["1!", "2"]),
            ("{\"a\": [\n{}\n{}\n", &["1!", "2", "3"]),
            ("{\"a\": 1,\n{}\n{}\n", &["1!", "2", "3"]),
            ("junk {}\n} {}\n", &["1!", "1", "2!", "2"]),
            ("{\"a\": [\n{},\n{}\n]}\n{}", &["1", "5"]),
            ("{\"a\"", &["1!"]),
            ("", &[]),
        ];
        for (text, expected) in table {
            assert_eq!(frames(text), expected, "{text:?}");
        }
    }
}
