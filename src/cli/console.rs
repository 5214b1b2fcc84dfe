//! The two streams: reports to stdout, everything else to stderr, and whether either may be coloured.
//!
//! The one place that touches the process's streams. Invariant: stdout carries nothing but the report, and a reader of
//! it that goes away ends the report, not the run: the exit code is the same whether or not anybody reads.

use std::io::{self, BufWriter, IsTerminal as _, Write};

use anstream::ColorChoice;

use super::shared::Color;
use crate::report::printable;

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
        _ = writeln!(io::stderr(), "{on}{word}{off}: {}", printable(message));
    }

    /// Progress may be shown: somebody looks at stderr.
    pub(super) fn is_watched() -> bool {
        io::stderr().is_terminal()
    }

    /// The reader of stdout went away: what is written from now on is dropped.
    pub(super) fn is_closed(&self) -> bool {
        self.out.get_ref().is_closed
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

fn is_styled(color: Color, automatic: impl Fn() -> ColorChoice) -> bool {
    match color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => automatic() != ColorChoice::Never,
    }
}
