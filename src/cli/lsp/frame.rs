//! Frames of the base protocol: headers, a blank line, and as many bytes as `Content-Length` says.
//!
//! Does not parse the JSON of messages. After input that is not a frame, it continues at the next `Content-Length`, so
//! that a bad message does not affect later ones.
//!
//! Invariant: memory grows with the bytes that arrived, never with the number in a header, and has a limit.

use std::io::{self, BufRead, Read as _, Write};

/// Maximum size of a message in bytes.
const MAX_MESSAGE_BYTES: u64 = 32 << 20;
/// Maximum size of a message that is skipped because it is too large; beyond it, the session ends.
const MAX_SKIPPED_BYTES: u64 = 1 << 30;
/// Maximum length of a header line in bytes.
const MAX_HEADER_LINE_BYTES: usize = 4096;

/// A received message, or the reason why there is none.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Frame {
    /// The body of a message.
    Body(Vec<u8>),
    /// Input that is no message, and why.
    Bad(String),
}

/// Reads the messages of the protocol, each with a `Content-Length` header.
#[derive(Debug)]
pub(super) struct FrameReader<R> {
    input: R,
    /// True if bad input was reported and the reader searches for the next header.
    is_lost: bool,
}

impl<R: BufRead> FrameReader<R> {
    pub(super) fn new(input: R) -> FrameReader<R> {
        FrameReader { input, is_lost: false }
    }

    /// Reads the next frame; `None` at the end of the input. After bad input, it continues at the next
    /// `Content-Length`.
    pub(super) fn next(&mut self) -> io::Result<Option<Frame>> {
        let mut length = None;
        loop {
            let Some(line) = self.read_header_line()? else { return Ok(None) };
            let line = String::from_utf8_lossy(&line);
            let line = line.trim_end_matches(['\r', '\n']);
            if line.is_empty() {
                match length {
                    Some(length) => return self.read_body(length),
                    // Blank lines between messages do no harm.
                    None => continue,
                }
            }
            match parse_header(line, self.is_lost) {
                HeaderLine::Length(found) => {
                    length = Some(found);
                    self.is_lost = false;
                }
                HeaderLine::Other => {}
                HeaderLine::Bad if self.is_lost => {}
                HeaderLine::Bad => {
                    self.is_lost = true;
                    let shown: String = line.chars().take(64).collect();
                    return Ok(Some(Frame::Bad(format!("invalid header {shown:?}"))));
                }
            }
        }
    }

    /// Reads a body of this length; a longer one than allowed is skipped and becomes a bad frame.
    fn read_body(&mut self, length: u64) -> io::Result<Option<Frame>> {
        if length > MAX_SKIPPED_BYTES {
            let message = format!("Content-Length {length} is too large");
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        if length > MAX_MESSAGE_BYTES {
            io::copy(&mut self.input.by_ref().take(length), &mut io::sink())?;
            let limit = MAX_MESSAGE_BYTES >> 20;
            return Ok(Some(Frame::Bad(format!("the message has {length} bytes; the limit is {limit} MiB"))));
        }
        let mut body = Vec::new();
        self.input.by_ref().take(length).read_to_end(&mut body)?;
        // Half a message: the other side is gone.
        Ok((body.len() as u64 == length).then_some(Frame::Body(body)))
    }

    /// Reads a line with its line break; of a line that is too long, only the end. `None` at the end of the
    /// input.
    fn read_header_line(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        loop {
            let mut part = self.input.by_ref().take(MAX_HEADER_LINE_BYTES as u64);
            if part.read_until(b'\n', &mut line)? == 0 {
                return Ok(if line.is_empty() { None } else { Some(line) });
            }
            if line.ends_with(b"\n") {
                return Ok(Some(line));
            }
            if line.len() > MAX_HEADER_LINE_BYTES {
                line.drain(..line.len() - MAX_HEADER_LINE_BYTES);
            }
        }
    }
}

/// A line of the header of a message: the length of the message, another header, or no header.
enum HeaderLine {
    Length(u64),
    Other,
    Bad,
}

/// Parses a header line. After bad input (`is_lost`) the header may follow other bytes on its line.
fn parse_header(line: &str, is_lost: bool) -> HeaderLine {
    const HEADER_NAME: &str = "content-length:";
    let lower = line.to_ascii_lowercase();
    let start = match lower.rfind(HEADER_NAME) {
        Some(start) if start == 0 || is_lost => start + HEADER_NAME.len(),
        _ if is_lost => return HeaderLine::Bad,
        _ => {
            let is_name = |name: &str| {
                !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            };
            let is_header = lower.split_once(':').is_some_and(|(name, _)| is_name(name));
            return if is_header { HeaderLine::Other } else { HeaderLine::Bad };
        }
    };
    lower.get(start..).and_then(|value| value.trim().parse().ok()).map_or(HeaderLine::Bad, HeaderLine::Length)
}

/// Writes a frame and flushes.
pub(super) fn write_frame(output: &mut impl Write, body: &str) -> io::Result<()> {
    write!(output, "Content-Length: {}\r\n\r\n{body}", body.len())?;
    output.flush()
}

#[cfg(test)]
mod tests {
    use super::{Frame, FrameReader, MAX_MESSAGE_BYTES};

    fn read(input: &[u8]) -> Vec<Frame> {
        let mut reader = FrameReader::new(input);
        std::iter::from_fn(|| reader.next().expect("no error")).collect()
    }

    fn body(text: &str) -> Frame {
        Frame::Body(text.as_bytes().to_vec())
    }

    #[test]
    fn frames_are_read_one_after_the_other() {
        let input =
            b"Content-Length: 2\r\n\r\n{}Content-Type: application/x\r\ncontent-length:3\n\n[1]\r\n\r\n";
        assert_eq!(read(input), [body("{}"), body("[1]")]);
        assert_eq!(read(b"Content-Length: 9\r\n\r\n{}"), [], "half a message");
        assert_eq!(read(b"Content-Le"), [Frame::Bad("invalid header \"Content-Le\"".to_owned())]);
    }

    #[test]
    fn bad_input_costs_no_other_message() {
        let long = "x".repeat(100_000);
        let garbage: [&[u8]; 5] = [
            b"hello\r\n",
            b"\x7fELF\0\xff\xfe",
            b"Content-Length: many\r\n\r\n{}",
            b"Content-Length: -1\r\n\r\n",
            long.as_bytes(),
        ];
        for garbage in garbage {
            let mut input = garbage.to_vec();
            input.extend(b"\nContent-Length: 2\r\n\r\n{}Content-Length: 2\r\n\r\n[]");
            let frames = read(&input);
            assert!(matches!(&frames[0], Frame::Bad(_)), "{frames:?}");
            assert_eq!(frames[1..], [body("{}"), body("[]")]);
        }
    }

    #[test]
    fn a_length_alone_takes_no_memory() {
        let mut input = format!("Content-Length: {}\r\n\r\n", MAX_MESSAGE_BYTES + 2).into_bytes();
        assert!(matches!(&read(&input)[..], [Frame::Bad(_)]));
        input.resize(input.len() + usize::try_from(MAX_MESSAGE_BYTES).unwrap() + 2, b' ');
        input.extend(b"Content-Length: 2\r\n\r\n{}");
        assert!(matches!(&read(&input)[..], [Frame::Bad(_), Frame::Body(_)]));
        let mut huge = FrameReader::new(&b"Content-Length: 99999999999999\r\n\r\n{}"[..]);
        assert!(huge.next().is_err());
    }
}
