//! `tollgate review`: AdmissionReviews in, AdmissionReviews out: the webhook without HTTP.
//!
//! Reviews are answered in order, while the input is read. A review that cannot be parsed is answered with an error
//! that has its line and column, and does not stop the rest.

use std::fs::File;
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};

use super::console::Console;
use super::namespaces;
use super::outcome::{ExitCounts, Failure};
use super::shared::{DefaultRules, EngineArgs, ExitArgs};
use super::stream::{JsonFrame, JsonFrames, MAX_FRAME_BYTES};
use super::{clock, state};
use crate::files;
use crate::report::review_line;
use tollgate_api::review::{BadReview, Request};
use tollgate_document::doc;
use tollgate_engine::engine::{
    Decision, Endpoint, Engine, NamespaceLabelLookup, Review, bad_request_response, respond,
};
use tollgate_engine::rules::FindingLevel;
use tollgate_formats::sanitize;

/// Print the responses that the webhook would return to AdmissionReviews
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Files with AdmissionReviews in JSON, pretty-printed or one per line; `-` for stdin
    #[arg(value_name = "FILE", default_value = "-")]
    files: Vec<PathBuf>,

    /// Respond as the mutating webhook, with a patch that adds defaults
    #[arg(long, conflicts_with = "findings")]
    mutate: bool,

    /// Print one JSON object with `uid`, `allowed` and `findings` for each review instead of an AdmissionReview
    #[arg(long)]
    findings: bool,

    /// Check objects of all kinds, and updates that change nothing, exactly as the API server does
    #[arg(long)]
    exact: bool,

    /// YAML or JSON file with Namespace objects
    ///
    /// Namespaces that are not in the file are treated as having no labels other than kubernetes.io/metadata.name.
    #[arg(long, value_name = "FILE", env = "TOLLGATE_NAMESPACES")]
    namespaces: Option<PathBuf>,

    /// File or folder with the cluster state; can be repeated
    ///
    /// Used to report the impact of DeviceTaintRules and to enforce maxImpact and maxTainted in policies.
    #[arg(long, value_name = "DUMP", env = "TOLLGATE_STATE")]
    state: Vec<PathBuf>,

    #[command(flatten)]
    clock: clock::ClockArgs,

    #[command(flatten)]
    engine: EngineArgs,

    #[command(flatten)]
    exit: ExitArgs,
}

impl Arguments {
    pub(super) fn run(&self, console: &mut Console) -> Result<ExitCounts, Failure> {
        let engine = self.engine.engine(DefaultRules::Webhook)?;
        let engine = if self.exact { engine.with_api_server_verdicts() } else { engine };
        let state = state::read_snapshot(&self.state, console)?;
        let engine = state.into_iter().fold(engine, Engine::with_snapshot);
        let namespaces = self.namespaces.as_deref().map(namespaces::read_file).transpose()?;
        let now = self.clock.now();
        let mut reviewer = Reviewer {
            arguments: self,
            engine,
            now: &now,
            namespaces: &namespaces,
            console,
            tally: ExitCounts::default(),
            stops_after_denial: !self.exit.zero.exit_zero,
        };
        for file in &self.files {
            reviewer.review_path(file)?;
        }
        Ok(self.exit.apply_exit_flags(reviewer.tally))
    }
}

/// State while the AdmissionReviews of a stream are answered.
struct Reviewer<'r> {
    arguments: &'r Arguments,
    engine: Engine,
    now: &'r str,
    namespaces: &'r dyn NamespaceLabelLookup,
    console: &'r mut Console,
    tally: ExitCounts,
    /// True unless `--exit-zero` is set: after a denial the exit code is final, and reading can stop if nobody
    /// reads the output.
    stops_after_denial: bool,
}

impl Reviewer<'_> {
    fn review_path(&mut self, path: &Path) -> Result<(), Failure> {
        if path.as_os_str() == "-" {
            return self.review_stream("<stdin>", io::stdin().lock());
        }
        let name = path.display().to_string();
        #[expect(clippy::disallowed_methods, reason = "a stream is read as it comes, not as a whole file")]
        match File::open(path) {
            Ok(file) => self.review_stream(&name, file),
            Err(error) => {
                self.report_and_count_unreadable(&format!("{name}: {}", files::io_reason(&error)));
                Ok(())
            }
        }
    }

    fn review_stream(&mut self, name: &str, input: impl Read) -> Result<(), Failure> {
        let mut frames = JsonFrames::new(input);
        let mut count = 0;
        // Text that is not JSON, such as YAML, gets one answer up to the next object, not one for each word.
        let mut is_other_text = false;
        loop {
            let frame = match frames.next() {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                Err(error) => {
                    self.report_and_count_unreadable(&format!("{name}: {error}"));
                    return Ok(());
                }
            };
            count += 1;
            let is_object = frame.too_large || frame.bytes.starts_with(b"{");
            if is_other_text && !is_object {
                continue;
            }
            let is_answered = is_other_text && frame.column > 1;
            match self.answer(&frame) {
                Ok(()) => is_other_text = false,
                Err(ReviewError::Output(error)) => return Err(error.into()),
                Err(ReviewError::Review(_) | ReviewError::Text(_)) if is_answered => {}
                Err(ReviewError::Review(bad)) => self.answer_unreadable(name, &frame, &bad)?,
                Err(ReviewError::Text(mut bad)) => {
                    is_other_text = !is_object;
                    if is_other_text {
                        bad.detail += "; `tollgate review` reads JSON (convert YAML with `yq -o=json`)";
                    }
                    frames.resume_in_broken_frame(&frame);
                    self.answer_unreadable(name, &frame, &bad)?;
                }
            }
            if frames.buffer_has_only_blanks() {
                self.console.flush()?;
            }
            // A stream may be endless: stop if the output is closed and the exit code is final.
            if self.console.is_stdout_closed() && self.tally.denied > 0 && self.stops_after_denial {
                return Ok(());
            }
        }
        if count == 0 {
            self.report_and_count_unreadable(&format!(
                "{name}: the input is empty; expected an AdmissionReview"
            ));
        }
        Ok(())
    }

    /// Prints the response to one AdmissionReview.
    fn answer(&mut self, frame: &JsonFrame) -> Result<(), ReviewError> {
        if frame.too_large {
            return Err(ReviewError::not_json(
                0,
                format!("the AdmissionReview is larger than {} MiB", MAX_FRAME_BYTES >> 20),
            ));
        }
        // As the server decodes it.
        let text = String::from_utf8_lossy(&frame.bytes);
        let document = doc::parse(&text).map_err(|error| {
            ReviewError::not_json(error.at, format!("the AdmissionReview is not JSON: {}", error.detail))
        })?;
        let request = Request::from_review(document.root()).map_err(ReviewError::Review)?;
        let endpoint = if self.arguments.mutate { Endpoint::Mutate } else { Endpoint::Validate };
        let decision = Review::from_request(&self.engine, request).decide(
            &self.engine,
            endpoint,
            self.now,
            self.namespaces,
        );
        let line = if self.arguments.findings {
            review_line(request.uid, &decision.verdict, None).into_bytes()
        } else {
            respond(&self.engine, &request, &decision).encode_admission_review()
        };
        self.count_denials_and_warnings(&decision);
        self.write_sanitized_json_line(&line).map_err(ReviewError::Output)
    }

    fn count_denials_and_warnings(&mut self, decision: &Decision) {
        for diagnostic in decision.verdict.findings() {
            match diagnostic.level {
                FindingLevel::Deny => self.tally.denied += 1,
                FindingLevel::Warn => self.tally.warned += 1,
                FindingLevel::Audit => {}
            }
        }
    }

    /// Prints an error and the response to input that is not an AdmissionReview.
    fn answer_unreadable(&mut self, name: &str, frame: &JsonFrame, bad: &BadReview) -> Result<(), Failure> {
        let (line, column) = position_in_input(frame, bad.at);
        let message = format!("{}:{line}:{column}: {}", sanitize::sanitize_as_line(name), bad.detail);
        self.report_and_count_unreadable(&message);
        let line = if self.arguments.findings {
            review_line(&bad.uid, &tollgate_engine::engine::Verdict::Skipped, Some(&message)).into_bytes()
        } else {
            bad_request_response(&bad.uid, message).encode_admission_review()
        };
        Ok(self.write_sanitized_json_line(&line)?)
    }

    fn report_and_count_unreadable(&mut self, message: &str) {
        self.tally.unreadable += 1;
        self.console.error(message);
    }

    fn write_sanitized_json_line(&mut self, line: &[u8]) -> io::Result<()> {
        // The same JSON as the server's, with control characters escaped.
        match std::str::from_utf8(line) {
            Ok(text) => self.console.write_all(sanitize::escape_unsafe_chars_in_json(text).as_bytes())?,
            Err(_) => self.console.write_all(line)?,
        }
        self.console.write_all(b"\n")
    }
}

/// The reason why an AdmissionReview cannot be answered.
enum ReviewError {
    /// It is JSON, but not an AdmissionReview.
    Review(BadReview),
    /// It is not JSON, so the next value may begin inside of it.
    Text(BadReview),
    Output(io::Error),
}

impl ReviewError {
    fn not_json(at: usize, detail: String) -> ReviewError {
        ReviewError::Text(BadReview { uid: "".into(), at, detail, is_too_dense: false })
    }
}

/// Returns line and column in the input of a byte of the frame, from 1; columns count characters.
fn position_in_input(frame: &JsonFrame, at: usize) -> (usize, usize) {
    let before = String::from_utf8_lossy(frame.bytes.get(..at).unwrap_or(&frame.bytes)).into_owned();
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count();
    match before.matches('\n').count() {
        0 => (frame.line, frame.column + column),
        lines => (frame.line + lines, column + 1),
    }
}
