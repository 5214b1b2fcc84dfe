//! Standard output for reports, standard error for messages, and whether either is coloured.
//!
//! The only place that uses the process's streams. A command that runs as part of another one writes the same to memory
//! instead. Invariant: stdout contains nothing but the report, and a closed pipe ends the report but not the run: the
//! exit code is the same whether or not anybody reads.

use std::io::BufRead as _;
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::sync::OnceLock;

use anstream::ColorChoice;

use super::shared::{Color, OutputArgs};
use tollgate_formats::sanitize;

/// The output of a command: the report to stdout, and messages to stderr.
#[derive(Debug)]
pub(super) struct Console {
    out: BufWriter<IgnoreBrokenPipe<io::Stdout>>,
    /// The report may be coloured.
    pub(super) styled: bool,
    /// The report and the messages, if they are kept in memory; `None` if they go to the streams of the process.
    captured: Option<(Vec<u8>, CapturedMessages)>,
}

/// Messages of a command for stderr, kept instead of printed if its output is captured.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(super) struct CapturedMessages {
    pub(super) errors: Vec<String>,
    /// Warnings and notes.
    pub(super) notes: Vec<String>,
}

/// The `--quiet` and `--color` flags of the process; set once, before anything is written.
pub(super) static OUTPUT_FLAGS: OnceLock<OutputArgs> = OnceLock::new();

fn output_flags() -> OutputArgs {
    OUTPUT_FLAGS.get().copied().unwrap_or(OutputArgs { quiet: false, color: Color::Auto })
}

impl Console {
    /// The console of this process: stdout with a buffer. Colors follow `--color`, and without it the variables
    /// `NO_COLOR` and `CLICOLOR_FORCE` and whether stdout is a terminal.
    pub(super) fn open() -> Console {
        let styled = is_styled(|| anstream::AutoStream::choice(&io::stdout()));
        let out = BufWriter::with_capacity(1 << 16, IgnoreBrokenPipe::new(io::stdout()));
        Console { out, styled, captured: None }
    }

    /// Returns a console that keeps its output in memory, for a command that another one runs, as `tollgate ui`
    /// does.
    #[cfg(feature = "ui")]
    pub(super) fn captured() -> Console {
        Console { styled: false, captured: Some(Default::default()), ..Console::open() }
    }

    /// Returns the report and the messages that were written to a console in memory.
    #[cfg(feature = "ui")]
    pub(super) fn into_captured(self) -> (String, CapturedMessages) {
        let (report, messages) = self.captured.unwrap_or_default();
        (String::from_utf8(report).unwrap_or_default(), messages)
    }

    /// True with `--quiet`: only findings are printed.
    pub(super) fn is_quiet() -> bool {
        output_flags().quiet
    }

    /// Prints an error to stderr.
    pub(super) fn error(&mut self, message: &str) {
        self.print_message("error", "\x1b[1;31m", message);
    }

    /// Prints a warning to stderr.
    pub(super) fn warning(&mut self, message: &str) {
        self.print_message("warning", "\x1b[1;33m", message);
    }

    /// Prints a note to stderr, unless only findings are wanted.
    pub(super) fn note(&mut self, message: &str) {
        if Console::is_quiet() && self.captured.is_none() {
            return;
        }
        self.print_message("note", "\x1b[1m", message);
    }

    fn print_message(&mut self, word: &str, style: &str, message: &str) {
        if let Some((_, CapturedMessages { errors, notes })) = &mut self.captured {
            let list = if word == "error" { errors } else { notes };
            list.push(sanitize::sanitize_multiline_text(message).into_owned());
            return;
        }
        _ = self.out.flush();
        let styled = is_styled(|| anstream::AutoStream::choice(&io::stderr()));
        let (on, off) = if styled { (style, "\x1b[0m") } else { ("", "") };
        // If stderr fails, there is nowhere to report it.
        _ = writeln!(io::stderr(), "{on}{word}{off}: {}", sanitize::sanitize_multiline_text(message));
    }

    /// Writes text to stderr unchanged, for commands whose report belongs there. Ignores failures, because there
    /// is nowhere to report them.
    pub(super) fn write_stderr(&mut self, text: &str) {
        if let Some((_, messages)) = &mut self.captured {
            messages.notes.push(text.to_owned());
            return;
        }
        _ = self.out.flush();
        _ = io::stderr().write_all(text.as_bytes());
    }

    /// Writes text for people; control characters in it are replaced.
    pub(super) fn write_sanitized_text(&mut self, text: &str) -> io::Result<()> {
        self.write_all(sanitize::sanitize_multiline_text(text).as_bytes())
    }

    /// Writes data for programs unchanged; on a terminal, control characters other than tabs and line feeds are
    /// replaced.
    pub(super) fn write_data_sanitized_for_terminal(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() || self.captured.is_some() || !io::stdout().is_terminal() {
            return self.write_all(text.as_bytes());
        }
        // Tabs are part of the layout.
        let parts: Vec<_> = text.split('\t').map(sanitize::replace_unsafe_except_line_breaks).collect();
        self.write_all(parts.join("\t").as_bytes())
    }

    /// True if stdout is a terminal, so that a person reads the report.
    pub(super) fn is_stdout_terminal() -> bool {
        io::stdout().is_terminal()
    }

    /// True if stdin is a terminal, so that a person can answer.
    pub(super) fn is_stdin_terminal() -> bool {
        io::stdin().is_terminal()
    }

    /// Asks a question on stderr. True if the answer is yes; everything else is a no.
    pub(super) fn confirm(&mut self, question: &str) -> bool {
        _ = self.out.flush();
        _ = write!(io::stderr(), "{} [y/N] ", sanitize::sanitize_as_line(question));
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line);
        read.is_ok() && ["y", "yes"].contains(&line.trim().to_lowercase().as_str())
    }

    /// Waits until a person presses Enter; false at the end of stdin.
    #[cfg(feature = "ui")]
    pub(super) fn wait_for_enter() -> bool {
        let mut line = String::new();
        matches!(io::stdin().lock().read_line(&mut line), Ok(1..))
    }

    /// True if stderr is a terminal, so that progress may be shown.
    pub(super) fn is_stderr_terminal() -> bool {
        io::stderr().is_terminal()
    }

    /// True if the reader of stdout has closed the pipe; further output is dropped.
    pub(super) fn is_stdout_closed(&self) -> bool {
        self.out.get_ref().is_closed
    }

    /// Drops all further output, for commands whose output does not matter.
    #[cfg(feature = "serve")]
    pub(super) fn discard_output(&mut self) {
        self.out.get_mut().is_closed = true;
    }

    /// Flushes the report to stdout.
    pub(super) fn flush_stdout(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Write for Console {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.captured {
            Some((report, _)) => report.write(bytes),
            None => self.out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A writer that ignores all output after a broken pipe.
#[derive(Debug)]
pub(super) struct IgnoreBrokenPipe<W> {
    inner: W,
    is_closed: bool,
}

impl<W: Write> IgnoreBrokenPipe<W> {
    pub(super) fn new(inner: W) -> IgnoreBrokenPipe<W> {
        IgnoreBrokenPipe { inner, is_closed: false }
    }

    /// Turns a broken pipe into success with the value `instead`; other results stay.
    fn ignore_broken_pipe<T>(&mut self, written: io::Result<T>, instead: T) -> io::Result<T> {
        match written {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.is_closed = true;
                Ok(instead)
            }
            other => other,
        }
    }
}

impl<W: Write> Write for IgnoreBrokenPipe<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_closed {
            return Ok(bytes.len());
        }
        let written = self.inner.write(bytes);
        self.ignore_broken_pipe(written, bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.is_closed {
            return Ok(());
        }
        let flushed = self.inner.flush();
        self.ignore_broken_pipe(flushed, ())
    }
}

/// True if `CI` is set to anything but `false`, as CI systems do.
#[expect(clippy::disallowed_methods, reason = "not a setting of Tollgate, so not a flag")]
pub(super) fn is_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| !value.is_empty() && !value.eq_ignore_ascii_case("false"))
}

/// Returns the word as a shell must get it: in quotes if it needs them.
pub(super) fn quote_for_shell(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=:,@%+".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    // Control characters are replaced; within the quotes nothing else is special.
    format!("'{}'", sanitize::sanitize_as_line(word).replace('\'', r"'\''"))
}

/// True if a stream is coloured: by `--color`, and with `auto` by what the stream is.
fn is_styled(automatic: impl Fn() -> ColorChoice) -> bool {
    match output_flags().color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => automatic() != ColorChoice::Never,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, ErrorKind, Write};

    use super::{IgnoreBrokenPipe, quote_for_shell};

    struct Failing(ErrorKind);

    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(self.0.into())
        }
    }

    #[test]
    fn only_a_broken_pipe_is_ignored() {
        let mut closed = IgnoreBrokenPipe::new(Failing(ErrorKind::BrokenPipe));
        assert!(closed.write_all(b"text").is_ok() && closed.flush().is_ok() && closed.is_closed);
        let mut full = IgnoreBrokenPipe::new(Failing(ErrorKind::StorageFull));
        assert!(full.write_all(b"text").is_err() && full.flush().is_err() && !full.is_closed);
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(quote_for_shell("certs/a-b_c.d"), "certs/a-b_c.d");
        assert_eq!(quote_for_shell(""), "''");
        assert_eq!(quote_for_shell("it's $HOME"), r"'it'\''s $HOME'");
    }
}
