//! `tollgate review`: AdmissionReviews in, AdmissionReviews out: the webhook without HTTP.
//!
//! A stream, answered as it is read: one in, one out, in order. A review that cannot be read is answered in its
//! place, with its line and column, and does not stop the rest.

use std::fs::File;
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};

use super::console::Console;
use super::namespaces;
use super::outcome::{Failure, Tally};
use super::shared::{Shared, Standard};
use super::stream::{Frame, Frames, MAX_FRAME};
use super::{clock, state};
use crate::api::review::{BadReview, Request};
use crate::doc;
use crate::engine::{Decision, Engine, NamespaceLookup, Side, decide, refusal, respond};
use crate::files;
use crate::report::review_line;
use crate::rules::Level;
use crate::sanitize;

/// Answer AdmissionReviews as the webhook would
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// JSON values, pretty-printed or one per line; `-` is stdin
    #[arg(value_name = "FILE", default_value = "-")]
    files: Vec<PathBuf>,

    /// Answer as the mutating webhook: what is to be filled in
    #[arg(long, conflicts_with = "findings")]
    mutate: bool,

    /// Print {"uid", "allowed", "findings"} per review instead of an AdmissionReview
    #[arg(long)]
    findings: bool,

    /// Judge as the API server itself would: every kind, also what did not change
    #[arg(long)]
    exact: bool,

    /// Namespace objects (YAML or JSON); a namespace that is not listed has no labels
    #[arg(long, value_name = "FILE", env = "TOLLGATE_NAMESPACES")]
    namespaces: Option<PathBuf>,

    /// The state of a cluster, to say what DeviceTaintRules will do and to judge maxImpact: files, folders
    #[arg(long, value_name = "DUMP", env = "TOLLGATE_STATE")]
    state: Vec<PathBuf>,

    /// The moment to use as the present one, RFC 3339
    #[arg(long, value_name = "TIME", value_parser = clock::parse)]
    now: Option<String>,
}

impl Arguments {
    pub(super) fn run(&self, shared: &Shared, console: &mut Console) -> Result<Tally, Failure> {
        let engine = shared.engine(Standard::Webhook)?;
        let engine = if self.exact { engine.exactly() } else { engine };
        let engine = state::known(engine, &self.state, console)?;
        let namespaces = self.namespaces.as_deref().map(namespaces::read).transpose()?;
        let now = clock::moment(self.now.as_ref());
        let denial_decides = !shared.exit_zero;
        let tally = Tally::default();
        let mut desk = Desk {
            arguments: self,
            engine,
            now: &now,
            namespaces: &namespaces,
            console,
            tally,
            denial_decides,
        };
        for file in &self.files {
            desk.serve(file)?;
        }
        Ok(desk.tally)
    }
}

/// One run: what is needed to answer, and what was counted.
struct Desk<'r> {
    arguments: &'r Arguments,
    engine: Engine,
    now: &'r str,
    namespaces: &'r dyn NamespaceLookup,
    console: &'r mut Console,
    tally: Tally,
    /// After a denial nothing changes the exit code.
    denial_decides: bool,
}

impl Desk<'_> {
    fn serve(&mut self, path: &Path) -> Result<(), Failure> {
        if path.as_os_str() == "-" {
            return self.serve_stream("<stdin>", io::stdin().lock());
        }
        let name = path.display().to_string();
        #[expect(clippy::disallowed_methods, reason = "a stream is read as it comes, not as a whole file")]
        match File::open(path) {
            Ok(file) => self.serve_stream(&name, file),
            Err(error) => {
                self.unreadable(&format!("{name}: {}", files::reason(&error)));
                Ok(())
            }
        }
    }

    fn serve_stream(&mut self, name: &str, input: impl Read) -> Result<(), Failure> {
        let mut frames = Frames::of(input);
        let mut count = 0;
        loop {
            let frame = match frames.next() {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                Err(error) => {
                    self.unreadable(&format!("{name}: {error}"));
                    return Ok(());
                }
            };
            count += 1;
            match self.review(&frame) {
                Ok(()) => {}
                Err(Bad::Output(error)) => return Err(error.into()),
                Err(Bad::Review(bad)) => self.refuse(name, &frame, &bad)?,
                Err(Bad::Text(bad)) => {
                    frames.resume(&frame);
                    self.refuse(name, &frame, &bad)?;
                }
            }
            if frames.is_drained() {
                self.console.flush()?;
            }
            // A stream may have no end: when nobody reads the answers and the exit code is known, that is one.
            if self.console.is_closed() && self.tally.denied > 0 && self.denial_decides {
                return Ok(());
            }
        }
        if count == 0 {
            self.unreadable(&format!("{name}: no AdmissionReview: the input is empty"));
        }
        Ok(())
    }

    /// Answers one review.
    fn review(&mut self, frame: &Frame) -> Result<(), Bad> {
        if frame.too_large {
            return Err(Bad::at(0, format!("the AdmissionReview is larger than {} MiB", MAX_FRAME >> 20)));
        }
        // As the server reads it.
        let text = String::from_utf8_lossy(&frame.bytes);
        let document = doc::parse(&text).map_err(|error| {
            Bad::at(error.at, format!("the AdmissionReview is not JSON: {}", error.detail))
        })?;
        let request = Request::read(document.root()).map_err(Bad::Review)?;
        let side = if self.arguments.mutate { Side::Mutate } else { Side::Validate };
        let decision = decide(&self.engine, &request, side, self.now, self.namespaces);
        let line = if self.arguments.findings {
            review_line(request.uid, &decision.judgement, None).into_bytes()
        } else {
            respond(&self.engine, &request, &decision).encode()
        };
        self.count(&decision);
        self.write_line(&line).map_err(Bad::Output)
    }

    fn count(&mut self, decision: &Decision) {
        for judged in decision.judgement.findings() {
            match judged.level {
                Level::Deny => self.tally.denied += 1,
                Level::Warn => self.tally.warned += 1,
                Level::Audit => {}
            }
        }
    }

    /// Answers what is no review, in its place.
    fn refuse(&mut self, name: &str, frame: &Frame, bad: &BadReview) -> Result<(), Failure> {
        let (line, column) = place(frame, bad.at);
        let message = format!("{}:{line}:{column}: {}", sanitize::line(name), bad.detail);
        self.unreadable(&message);
        let line = if self.arguments.findings {
            review_line(&bad.uid, &crate::engine::Judgement::Skipped, Some(&message)).into_bytes()
        } else {
            refusal(&bad.uid, message).encode()
        };
        Ok(self.write_line(&line)?)
    }

    fn unreadable(&mut self, message: &str) {
        self.tally.unreadable += 1;
        self.console.complain(message);
    }

    fn write_line(&mut self, line: &[u8]) -> io::Result<()> {
        // The same JSON as the server's; what could steer a terminal is written as an escape.
        match std::str::from_utf8(line) {
            Ok(text) => self.console.write_all(sanitize::json(text).as_bytes())?,
            Err(_) => self.console.write_all(line)?,
        }
        self.console.write_all(b"\n")
    }
}

/// Why a review has no ordinary answer.
enum Bad {
    /// JSON, but no review.
    Review(BadReview),
    /// No JSON: the next value may begin inside the frame.
    Text(BadReview),
    Output(io::Error),
}

impl Bad {
    fn at(at: usize, detail: String) -> Bad {
        Bad::Text(BadReview { uid: "".into(), at, detail })
    }
}

/// Line and column of a byte of the frame; columns count characters.
fn place(frame: &Frame, at: usize) -> (usize, usize) {
    let before = String::from_utf8_lossy(frame.bytes.get(..at).unwrap_or(&frame.bytes)).into_owned();
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count();
    match before.matches('\n').count() {
        0 => (frame.line, frame.column + column),
        lines => (frame.line + lines, column + 1),
    }
}
