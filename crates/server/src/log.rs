//! Log lines: JSON or text, written by a separate thread, at a level that can be changed at run time.
//!
//! A worker appends its line to a buffer in memory and never waits for the disk or the pipe. If the buffer is full,
//! lines are dropped and counted: a request never waits for the log. Bodies of requests are never logged.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::fmt::{FmtContext, MakeWriter};
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer, Registry, reload};

use tollgate_formats::sanitize::{self, is_unsafe};

/// The format of log lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogFormat {
    /// One JSON object per line.
    Json,
    /// Text for terminals.
    Text,
}

/// Bytes of lines that wait to be written; further lines are dropped.
const MAX_BUFFERED_BYTES: usize = 4 << 20;
/// Interval in which log lines are collected before they are written together.
const BATCH_INTERVAL: Duration = Duration::from_millis(50);
/// Maximum time that a shutdown waits for the last log lines to be written.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(250);

/// Bytes after which a list of names is cut off.
const CUT_NAMES_AFTER_BYTES: usize = 1024;

/// The names without duplicates, in order, separated by commas; cut off if they are too long.
pub(super) fn join_distinct_names<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let mut out = String::new();
    let mut listed: Vec<&str> = Vec::new();
    for name in names {
        if listed.contains(&name) {
            continue;
        }
        listed.push(name);
        if !out.is_empty() {
            out.push(',');
        }
        if out.len() > CUT_NAMES_AFTER_BYTES {
            out.push('…');
            break;
        }
        out.push_str(name);
    }
    out
}

/// The log of the process: its writer and its level.
#[derive(Debug)]
pub struct Log {
    filter: reload::Handle<EventFilter, Registry>,
    lines: Arc<LineBuffer>,
}

impl Log {
    /// Installs the log of the process; lines go to `out`.
    pub fn install(format: LogFormat, level: LevelFilter, out: Box<dyn Write + Send>) -> anyhow::Result<Log> {
        let lines = Arc::new(LineBuffer::default());
        let (filter, handle) = reload::Layer::new(EventFilter(level));
        let writer = BufferWriter { lines: lines.clone(), is_text: format == LogFormat::Text };
        let layer = tracing_subscriber::fmt::layer().with_writer(writer).with_ansi(false);
        let layer = match format {
            LogFormat::Json => layer.event_format(JsonFormat).boxed(),
            LogFormat::Text => layer.compact().with_target(false).boxed(),
        };
        // A filter of the whole registry and not of the layer: a disabled event costs one comparison.
        tracing_subscriber::registry().with(filter).with(layer).try_init()?;
        let taken = lines.clone();
        std::thread::Builder::new().name("log".to_owned()).spawn(move || taken.run_writer(out))?;
        Ok(Log { filter: handle, lines })
    }

    /// The current level.
    pub(super) fn level(&self) -> LevelFilter {
        self.filter.clone_current().map_or(LevelFilter::OFF, |filter| filter.0)
    }

    /// Changes the level of the log while the process runs.
    pub(super) fn set_level(&self, level: LevelFilter) -> anyhow::Result<()> {
        Ok(self.filter.reload(EventFilter(level))?)
    }

    /// Flushes the buffer and ends the writer; gives up after a timeout if the output is stuck. Dropping the log would
    /// not do: the threads of a server that shuts down keep it alive.
    pub(super) fn close(&self) {
        let mut state = self.lines.state();
        state.closed = true;
        self.lines.filled.notify_all();
        let _ = self.lines.written.wait_timeout_while(state, FLUSH_TIMEOUT, |state| !state.written);
    }

    /// Number of lines dropped since the last call.
    pub(super) fn take_dropped_line_count(&self) -> u64 {
        std::mem::take(&mut self.lines.state().dropped)
    }
}

/// Flushes the buffer before the process exits.
impl Drop for Log {
    fn drop(&mut self) {
        self.close();
    }
}

/// Shows events of Tollgate up to a level. Those of libraries, which say in their own words what Tollgate reports
/// anyway, are shown from `debug` on, one level less detailed.
#[derive(Clone, Copy, Debug)]
struct EventFilter(LevelFilter);

impl EventFilter {
    /// True if an event is logged.
    fn shows(self, event: &Metadata<'_>) -> bool {
        let is_own = event.target().starts_with("tollgate");
        let limit = match self.0 {
            level if is_own => level,
            LevelFilter::DEBUG => LevelFilter::INFO,
            LevelFilter::TRACE => LevelFilter::DEBUG,
            _ => LevelFilter::OFF,
        };
        limit >= *event.level()
    }
}

impl<S: Subscriber> Layer<S> for EventFilter {
    fn register_callsite(&self, event: &'static Metadata<'static>) -> Interest {
        if self.shows(event) { Interest::always() } else { Interest::never() }
    }

    fn enabled(&self, event: &Metadata<'_>, _: Context<'_, S>) -> bool {
        self.shows(event)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.0)
    }
}

/// The buffer between the workers, which append log lines, and the thread that writes them.
#[derive(Default, Debug)]
struct LineBuffer {
    state: Mutex<BufferState>,
    filled: Condvar,
    written: Condvar,
}

/// The lines that wait to be written, and how far the writer is.
#[derive(Default, Debug)]
struct BufferState {
    text: Vec<u8>,
    dropped: u64,
    closed: bool,
    /// True if everything was written after the buffer was closed.
    written: bool,
}

impl LineBuffer {
    fn state(&self) -> std::sync::MutexGuard<'_, BufferState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a line; drops it if the buffer is full.
    fn append_unless_full(&self, line: &[u8]) {
        let mut state = self.state();
        if state.text.len() + line.len() > MAX_BUFFERED_BYTES {
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

    /// Writes lines to `out` as they arrive, until the buffer is closed.
    fn run_writer(&self, mut out: Box<dyn Write + Send>) {
        let mut taken = Vec::new();
        loop {
            let mut state = self.state();
            while state.text.is_empty() && !state.closed {
                state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if !state.closed {
                // One write for all lines of the batch interval.
                let gathered = self.filled.wait_timeout_while(state, BATCH_INTERVAL, |state| !state.closed);
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
            taken.shrink_to(MAX_BUFFERED_BYTES / 16);
            if last {
                self.state().written = true;
                self.written.notify_all();
                return;
            }
        }
    }
}

/// Gives each event a writer that appends its line to the buffer.
struct BufferWriter {
    lines: Arc<LineBuffer>,
    /// True for the text format, in which control characters must be removed here.
    is_text: bool,
}

struct EventWriter<'l>(&'l BufferWriter);

impl Write for EventWriter<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match std::str::from_utf8(line) {
            Ok(text) if self.0.is_text => self.0.lines.append_unless_full(one_line(text).as_bytes()),
            _ => self.0.lines.append_unless_full(line),
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'l> MakeWriter<'l> for BufferWriter {
    type Writer = EventWriter<'l>;

    fn make_writer(&'l self) -> EventWriter<'l> {
        EventWriter(self)
    }
}

/// Returns the event as one line without control characters, because names in requests can contain them.
fn one_line(event: &str) -> Cow<'_, str> {
    let text = event.strip_suffix('\n').unwrap_or(event);
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) && !text.contains("##") {
        return event.into();
    }
    format!("{}\n", sanitize::sanitize_as_line(&text.replace('\n', "\\n"))).into()
}

/// Writes log lines as `{"time":…,"level":…,"message":…,fields…}`; spans are not used.
struct JsonFormat;

impl<S, N> FormatEvent<S, N> for JsonFormat
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
        let mut members = JsonFields { out: &mut out, result: Ok(()) };
        event.record(&mut members);
        members.result?;
        out.write_str("}\n")
    }
}

/// Writes each field as a JSON member.
struct JsonFields<'w> {
    out: &'w mut dyn fmt::Write,
    result: fmt::Result,
}

impl JsonFields<'_> {
    fn write_field(&mut self, field: &Field, value: impl FnOnce(&mut dyn fmt::Write) -> fmt::Result) {
        if self.result.is_ok() {
            let name = || [",\"", field.name(), "\":"];
            self.result = name()
                .into_iter()
                .try_for_each(|part| self.out.write_str(part))
                .and_then(|()| value(self.out));
        }
    }
}

impl Visit for JsonFields<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.write_field(field, |out| {
            out.write_char('"')?;
            JsonEscaper(out).write_str(value)?;
            out.write_char('"')
        });
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.write_field(field, |out| {
            out.write_char('"')?;
            write!(JsonEscaper(out), "{value:?}")?;
            out.write_char('"')
        });
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.write_field(field, |out| write!(out, "{value}"));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.write_field(field, |out| write!(out, "{value}"));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.write_field(field, |out| out.write_str(if value { "true" } else { "false" }));
    }
}

/// Escapes text inside a JSON string.
struct JsonEscaper<'w>(&'w mut dyn fmt::Write);

impl fmt::Write for JsonEscaper<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // Most text is printable ASCII, which is scanned by bytes.
        let is_plain = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
        let mut rest = text;
        while let Some(at) = rest.bytes().position(|byte| !is_plain(byte)) {
            let (plain, from) = rest.split_at_checked(at).unwrap_or((rest, ""));
            self.0.write_str(plain)?;
            let mut characters = from.chars();
            match characters.next() {
                Some(c @ ('"' | '\\')) => write!(self.0, "\\{c}")?,
                Some(c) if is_unsafe(c) => {
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

    use super::{JsonEscaper, LineBuffer, MAX_BUFFERED_BYTES, one_line};

    /// Reports each call and blocks until it may continue.
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
            JsonEscaper(&mut out).write_str(text).expect("a string takes everything");
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
        let lines = Arc::new(LineBuffer::default());
        let writer = {
            let lines = lines.clone();
            std::thread::spawn(move || lines.run_writer(Box::new(out)))
        };
        lines.append_unless_full(b"first\n");
        was_called.recv().expect("the writer writes");
        let long = vec![b'x'; MAX_BUFFERED_BYTES];
        lines.append_unless_full(&long);
        lines.append_unless_full(b"one too many\n");
        assert_eq!(lines.state().dropped, 1);
        lines.state().closed = true;
        lines.filled.notify_all();
        let_go.send(()).expect("the writer waits");
        let_go.send(()).expect("the writer waits");
        writer.join().expect("the writer ends");
        let written = written.lock().expect("the writer is gone");
        assert_eq!(written.len(), b"first\n".len() + MAX_BUFFERED_BYTES);
        assert!(written.starts_with(b"first\nxxx"));
    }
}
