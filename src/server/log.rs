//! Log lines: JSON or text, written by a thread of their own, at a level that can be changed while serving.
//!
//! A worker appends its line to a buffer in memory and never waits for the disk or the pipe. If nobody takes the
//! lines, they are dropped and counted: logging is not worth an admission. Bodies of requests are never logged.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::fmt::{FmtContext, MakeWriter};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer as _, Registry, reload};

use crate::sanitize::{self, is_active};

/// How a line looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogFormat {
    /// One JSON object per line.
    Json,
    /// For people.
    Text,
}

/// Lines that wait to be written; beyond it they are dropped.
const BUFFER: usize = 4 << 20;
/// How long lines are gathered before they are written together.
const GATHER: Duration = Duration::from_millis(50);
/// How long the end waits for the last lines to be taken.
const LAST_WORDS: Duration = Duration::from_millis(250);

/// The log of the process: keeps its writer alive, and knows the level.
#[derive(Debug)]
pub struct Log {
    level: reload::Handle<LevelFilter, Registry>,
    lines: Arc<Lines>,
}

impl Log {
    /// Installs the log of the process; lines go to `out`.
    pub fn install(format: LogFormat, level: LevelFilter, out: Box<dyn Write + Send>) -> anyhow::Result<Log> {
        let lines = Arc::new(Lines::default());
        let (filter, handle) = reload::Layer::new(level);
        let writer = Append { lines: lines.clone(), is_text: format == LogFormat::Text };
        let layer = tracing_subscriber::fmt::layer().with_writer(writer).with_ansi(false);
        let layer = match format {
            LogFormat::Json => layer.event_format(JsonLine).boxed(),
            LogFormat::Text => layer.compact().with_target(false).boxed(),
        };
        // A filter of the whole registry and not of the layer: what is off costs one comparison.
        tracing_subscriber::registry().with(filter).with(layer).try_init()?;
        let taken = lines.clone();
        std::thread::Builder::new().name("log".to_owned()).spawn(move || taken.write_to(out))?;
        Ok(Log { level: handle, lines })
    }

    /// The level now.
    pub(super) fn level(&self) -> LevelFilter {
        self.level.clone_current().unwrap_or(LevelFilter::OFF)
    }

    /// Changes the level.
    pub(super) fn set_level(&self, level: LevelFilter) -> anyhow::Result<()> {
        Ok(self.level.reload(level)?)
    }

    /// Writes what is still in the buffer and ends, or gives up: nobody may be taking the lines. The threads of a
    /// server that ends keep the log alive, so that waiting for its drop would lose the last lines.
    pub(super) fn close(&self) {
        let mut state = self.lines.state();
        state.closed = true;
        self.lines.filled.notify_all();
        let _ = self.lines.written.wait_timeout_while(state, LAST_WORDS, |state| !state.written);
    }

    /// Lines dropped since the last call.
    pub(super) fn take_dropped(&self) -> u64 {
        std::mem::take(&mut self.lines.state().dropped)
    }
}

/// What is still in the buffer is written before the process ends.
impl Drop for Log {
    fn drop(&mut self) {
        self.close();
    }
}

/// The buffer between workers and the writer.
#[derive(Default, Debug)]
struct Lines {
    state: Mutex<State>,
    filled: Condvar,
    written: Condvar,
}

#[derive(Default, Debug)]
struct State {
    text: Vec<u8>,
    dropped: u64,
    closed: bool,
    /// Everything was, after `closed`.
    written: bool,
}

impl Lines {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn append(&self, line: &[u8]) {
        let mut state = self.state();
        if state.text.len() + line.len() > BUFFER {
            state.dropped += 1;
            return;
        }
        let was_empty = state.text.is_empty();
        state.text.extend_from_slice(line);
        drop(state);
        // The writer sleeps only on an empty buffer, so only its first line wakes it.
        if was_empty {
            self.filled.notify_one();
        }
    }

    fn write_to(&self, mut out: Box<dyn Write + Send>) {
        let mut taken = Vec::new();
        loop {
            let mut state = self.state();
            while state.text.is_empty() && !state.closed {
                state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if !state.closed {
                // Gather: one write for all lines of the next moment.
                let gathered = self.filled.wait_timeout_while(state, GATHER, |state| !state.closed);
                state = gathered.unwrap_or_else(PoisonError::into_inner).0;
            }
            let last = state.closed;
            std::mem::swap(&mut taken, &mut state.text);
            drop(state);
            // A broken pipe or a full disk is no reason to stop serving; the lines are lost.
            if out.write_all(&taken).and_then(|()| out.flush()).is_err() {
                let lines = taken.split(|byte| *byte == b'\n').count() - 1;
                self.state().dropped += u64::try_from(lines).unwrap_or(u64::MAX);
            }
            taken.clear();
            taken.shrink_to(BUFFER / 16);
            if last {
                self.state().written = true;
                self.written.notify_all();
                return;
            }
        }
    }
}

/// Gives each event a writer that appends its line to the buffer.
struct Append {
    lines: Arc<Lines>,
    /// Lines for people, which escape nothing by themselves.
    is_text: bool,
}

struct OneLine<'l>(&'l Append);

impl Write for OneLine<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match std::str::from_utf8(line) {
            Ok(text) if self.0.is_text => self.0.lines.append(one_line(text).as_bytes()),
            _ => self.0.lines.append(line),
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'l> MakeWriter<'l> for Append {
    type Writer = OneLine<'l>;

    fn make_writer(&'l self) -> OneLine<'l> {
        OneLine(self)
    }
}

/// An event as one line that can only be read: names in it come from requests.
fn one_line(event: &str) -> Cow<'_, str> {
    let text = event.strip_suffix('\n').unwrap_or(event);
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) && !text.contains("##") {
        return event.into();
    }
    format!("{}\n", sanitize::line(&text.replace('\n', "\\n"))).into()
}

/// `{"time":…,"level":…,"message":…,fields…}`; spans are not used.
struct JsonLine;

impl<S, N> FormatEvent<S, N> for JsonLine
where
    S: Subscriber + for<'s> LookupSpan<'s>,
    N: for<'w> FormatFields<'w> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut out: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        out.write_str("{\"time\":\"")?;
        super::clock::write_now(&mut out)?;
        out.write_str("\",\"level\":\"")?;
        out.write_str(event.metadata().level().as_str())?;
        out.write_char('"')?;
        let mut members = Members { out: &mut out, result: Ok(()) };
        event.record(&mut members);
        members.result?;
        out.write_str("}\n")
    }
}

/// Writes each field as a member.
struct Members<'w> {
    out: &'w mut dyn fmt::Write,
    result: fmt::Result,
}

impl Members<'_> {
    fn member(&mut self, field: &Field, value: impl FnOnce(&mut dyn fmt::Write) -> fmt::Result) {
        if self.result.is_ok() {
            let name = || [",\"", field.name(), "\":"];
            self.result = name()
                .into_iter()
                .try_for_each(|part| self.out.write_str(part))
                .and_then(|()| value(self.out));
        }
    }
}

impl Visit for Members<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.member(field, |out| {
            out.write_char('"')?;
            Escaped(out).write_str(value)?;
            out.write_char('"')
        });
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.member(field, |out| {
            out.write_char('"')?;
            write!(Escaped(out), "{value:?}")?;
            out.write_char('"')
        });
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.member(field, |out| write!(out, "{value}"));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.member(field, |out| write!(out, "{value}"));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.member(field, |out| out.write_str(if value { "true" } else { "false" }));
    }
}

/// Text inside a JSON string.
struct Escaped<'w>(&'w mut dyn fmt::Write);

impl fmt::Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // Printable ASCII is most of it, and is looked at by bytes.
        let is_plain = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
        let mut rest = text;
        while let Some(at) = rest.bytes().position(|byte| !is_plain(byte)) {
            let (plain, from) = rest.split_at_checked(at).unwrap_or((rest, ""));
            self.0.write_str(plain)?;
            let mut characters = from.chars();
            match characters.next() {
                Some(c @ ('"' | '\\')) => write!(self.0, "\\{c}")?,
                Some(c) if is_active(c) => {
                    let mut units = [0; 2];
                    c.encode_utf16(&mut units).iter().try_for_each(|unit| write!(self.0, "\\u{unit:04x}"))?;
                }
                Some(c) => self.0.write_char(c)?,
                None => {}
            }
            rest = characters.as_str();
        }
        self.0.write_str(rest)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::sync::mpsc;
    use std::sync::{Arc, Mutex};

    use super::{BUFFER, Escaped, Lines, one_line};

    /// Tells when it was called and waits until it may go on.
    struct Slow {
        called: mpsc::Sender<()>,
        go_on: Arc<Mutex<mpsc::Receiver<()>>>,
        written: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Slow {
        fn write(&mut self, text: &[u8]) -> io::Result<usize> {
            self.called.send(()).expect("the test listens");
            self.go_on.lock().expect("one user").recv().expect("the test answers");
            self.written.lock().expect("one user").extend_from_slice(text);
            Ok(text.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn whatever_is_logged_is_one_json_string() {
        use std::fmt::Write as _;
        for (text, expected) in [
            ("plain", "plain"),
            ("", ""),
            ("a \"b\" \\ c", "a \\\"b\\\" \\\\ c"),
            ("line\nnext\ttab\u{1}", "line\\u000anext\\u0009tab\\u0001"),
            ("设备 🔥 ä", "设备 🔥 ä"),
            ("\u{9b}31m\u{85}\u{202e}x\u{7f}\u{e0041}", "\\u009b31m\\u0085\\u202ex\\u007f\\udb40\\udc41"),
        ] {
            let mut out = String::new();
            Escaped(&mut out).write_str(text).expect("a string takes everything");
            assert_eq!(out, expected);
        }
    }

    #[test]
    fn an_event_is_one_line_of_text() {
        assert_eq!(one_line("INFO denied name=a\n"), "INFO denied name=a\n");
        let forged = "INFO denied name=a\n::error::x\u{1b}[2J\u{9b}\n";
        assert_eq!(one_line(forged), "INFO denied name=a\\n::error::x\u{fffd}[2J\u{fffd}\n");
    }

    #[test]
    fn a_stuck_reader_costs_lines_and_not_time() {
        let (called, was_called) = mpsc::channel();
        let (let_go, go_on) = mpsc::channel();
        let written = Arc::new(Mutex::new(Vec::new()));
        let out = Slow { called, go_on: Arc::new(Mutex::new(go_on)), written: written.clone() };
        let lines = Arc::new(Lines::default());
        let writer = {
            let lines = lines.clone();
            std::thread::spawn(move || lines.write_to(Box::new(out)))
        };
        lines.append(b"first\n");
        was_called.recv().expect("the writer writes");
        let long = vec![b'x'; BUFFER];
        lines.append(&long);
        lines.append(b"one too many\n");
        assert_eq!(lines.state().dropped, 1);
        lines.state().closed = true;
        lines.filled.notify_all();
        let_go.send(()).expect("the writer waits");
        let_go.send(()).expect("the writer waits");
        writer.join().expect("the writer ends");
        let written = written.lock().expect("the writer is gone");
        assert_eq!(written.len(), b"first\n".len() + BUFFER);
        assert!(written.starts_with(b"first\nxxx"));
    }
}
