//! The two streams: reports to stdout, everything else to stderr, and whether either may be coloured.
//!
//! The one place that touches the process's streams. Invariant: stdout carries nothing but the report, and a reader of
//! it that goes away ends the report, not the run: the exit code is the same whether or not anybody reads.

use std::io::{self, BufWriter, IsTerminal as _, Write};

use anstream::ColorChoice;

use super::shared::Color;
use crate::sanitize;

/// Where a command writes.
#[derive(Debug)]
pub(super) struct Console {
    out: BufWriter<Patient<io::Stdout>>,
    /// The report may be coloured.
    pub(super) styled: bool,
    color: Color,
}

impl Console {
    /// The process's streams. `NO_COLOR` and `CLICOLOR_FORCE` count unless a flag decides.
    pub(super) fn open(color: Color) -> Console {
        let styled = is_styled(color, || anstream::AutoStream::choice(&io::stdout()));
        Console { out: BufWriter::with_capacity(1 << 16, Patient::new(io::stdout())), styled, color }
    }

    /// Says something that is not part of the report.
    pub(super) fn complain(&mut self, message: &str) {
        self.say("error", "\x1b[1;31m", message);
    }

    /// The same, less grave.
    pub(super) fn note(&mut self, message: &str) {
        self.say("note", "\x1b[1m", message);
    }

    fn say(&mut self, word: &str, style: &str, message: &str) {
        _ = self.out.flush();
        let styled = is_styled(self.color, || anstream::AutoStream::choice(&io::stderr()));
        let (on, off) = if styled { (style, "\x1b[0m") } else { ("", "") };
        // There is no third stream to complain to.
        _ = writeln!(io::stderr(), "{on}{word}{off}: {}", sanitize::text(message));
    }

    /// Writes a part of the report that is for people, with names and texts of others in it.
    pub(super) fn show(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(sanitize::text(text).as_bytes())
    }

    /// Writes data for programs as it is, unless somebody looks at it.
    pub(super) fn pass_on(&mut self, text: &str) -> io::Result<()> {
        if !io::stdout().is_terminal() {
            return self.out.write_all(text.as_bytes());
        }
        // Tabs belong to the layout.
        let parts: Vec<_> = text.split('\t').map(sanitize::characters).collect();
        self.out.write_all(parts.join("\t").as_bytes())
    }

    /// Progress may be shown: somebody looks at stderr.
    pub(super) fn is_watched() -> bool {
        io::stderr().is_terminal()
    }

    /// The reader of stdout went away: what is written from now on is dropped.
    pub(super) fn is_closed(&self) -> bool {
        self.out.get_ref().is_closed
    }

    /// Drops what could not be written, and all that follows: the report is not what this command is about.
    pub(super) fn discard(&mut self) {
        self.out.get_mut().is_closed = true;
    }

    /// The last of the report leaves the process.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Write for Console {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A writer that takes everything once its reader went away.
#[derive(Debug)]
pub(super) struct Patient<W> {
    inner: W,
    is_closed: bool,
}

impl<W: Write> Patient<W> {
    pub(super) fn new(inner: W) -> Patient<W> {
        Patient { inner, is_closed: false }
    }

    /// What was written, and whether anybody is left to read.
    fn heard<T>(&mut self, written: io::Result<T>, instead: T) -> io::Result<T> {
        match written {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.is_closed = true;
                Ok(instead)
            }
            other => other,
        }
    }
}

impl<W: Write> Write for Patient<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_closed {
            return Ok(bytes.len());
        }
        let written = self.inner.write(bytes);
        self.heard(written, bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.is_closed {
            return Ok(());
        }
        let flushed = self.inner.flush();
        self.heard(flushed, ())
    }
}

/// A word of a command line that is printed to be copied.
pub(super) fn shell_word(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=:,@%+".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    // What cannot be shown cannot be copied either; within the quotes nothing else is special.
    format!("'{}'", sanitize::line(word).replace('\'', r"'\''"))
}

fn is_styled(color: Color, automatic: impl Fn() -> ColorChoice) -> bool {
    match color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => automatic() != ColorChoice::Never,
    }
}
