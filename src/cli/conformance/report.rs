//! The table of agreement, for people and for programs, and the file of differences.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use serde_json::value::RawValue;

use super::send::{Ending, RunResult};
use crate::cli::live::AskedServer;
use crate::cli::outcome::Failure;
use crate::cli::table::{aligned, thousands};
use crate::conformance::{Answer, Case, Corpus, Count, OwnAnswer, Refusal, Row, SameParts};
use crate::files;
use crate::report::record::{Json, list, record};

/// The header of the table: server, profile and scope.
pub(super) struct ReportHeader {
    context: Option<String>,
    server: String,
    release: String,
    profile: &'static str,
    feature_gates: String,
    /// The gates are those that the server reports.
    gates_read: bool,
    namespace: String,
    /// Number of updates in the corpus, which are not sent.
    updates_not_asked: usize,
    /// Objects that could make an API server panic, which are not shipped.
    dangerous_not_shipped: usize,
}

impl ReportHeader {
    pub(super) fn new(asked: &AskedServer, namespace: &str, corpus: &Corpus) -> ReportHeader {
        let endpoint = asked.endpoint().clone();
        ReportHeader {
            context: endpoint.context,
            server: endpoint.server,
            release: asked.info.release.to_string(),
            profile: asked.profile.name,
            feature_gates: asked.profile.describe_gates(),
            gates_read: asked.profile.gates.are_live,
            namespace: namespace.to_owned(),
            updates_not_asked: corpus.updates,
            dangerous_not_shipped: corpus.dangerous,
        }
    }
}

/// Formats the table as text.
pub(super) fn text(header: &ReportHeader, result: &RunResult) -> String {
    let mut out = String::new();
    let gates = if header.gates_read { "read from /metrics" } else { "not read from the API server" };
    for (name, value) in [
        ("context", header.context.as_deref().unwrap_or("the cluster of this pod").to_owned()),
        ("server", format!("{}, Kubernetes {}", header.server, header.release)),
        ("compared", format!("with Tollgate's verdict for Kubernetes {}", header.profile)),
        ("gates", format!("{gates}: {}", header.feature_gates)),
        ("namespace", header.namespace.clone()),
    ] {
        _ = writeln!(out, "{name:<9}  {value}");
    }
    let total = &result.agreement.total;
    let rows = result.agreement.rows.iter();
    let rows = rows.filter(|(_, row)| row.verdict.of > 0 || row.without_verdict() > row.not_served);
    let mut rows: Vec<Vec<String>> =
        rows.map(|((kind, version), row)| cells(kind.name(), version.name(), row)).collect();
    rows.push(cells("all", "", total));
    let columns =
        ["KIND", "VERSION", "COMPARED", "VERDICT", "TYPE AND FIELD", "TEXT", "DIFFERENT", "NO VERDICT"];
    _ = write!(out, "\n{}", aligned(&columns, &rows));
    _ = writeln!(
        out,
        "\nno verdict: {} not served, {} rejected by other webhooks or policies, {} not allowed, {} failed",
        thousands(total.not_served),
        thousands(total.other_admission),
        thousands(total.not_allowed),
        thousands(total.failed)
    );
    _ = writeln!(
        out,
        "not sent: {} updates, which require stored objects",
        thousands(header.updates_not_asked)
    );
    _ = writeln!(
        out,
        "not included: {} objects that could make an API server panic",
        thousands(header.dangerous_not_shipped)
    );
    for (class, message) in &result.examples {
        _ = writeln!(out, "{class}, for example: {message}");
    }
    out
}

/// The cells of a row of the table.
fn cells(kind: &str, version: &str, row: &Row) -> Vec<String> {
    let mut cells = vec![kind.to_owned(), version.to_owned(), thousands(row.verdict.of)];
    cells.extend([row.verdict, row.fields, row.texts].map(Count::percent));
    cells.extend([row.differing, row.without_verdict()].map(thousands));
    cells
}

/// Returns the table of results as JSON.
pub(super) fn json(header: &ReportHeader, result: &RunResult) -> Json {
    let rows = result.agreement.rows.iter();
    let rows = rows.map(|((kind, version), row)| json_row(Some((kind.name(), version.name())), row));
    record! {
        "context": header.context,
        "server": header.server,
        "release": header.release,
        "profile": header.profile,
        "featureGates": header.feature_gates,
        "gatesRead": header.gates_read,
        "namespace": header.namespace,
        "updatesNotAsked": header.updates_not_asked,
        "dangerousNotShipped": header.dangerous_not_shipped,
        "complete": matches!(result.ending, Ending::Complete),
        "rows": list(rows),
        "total": json_row(None, &result.agreement.total),
    }
}

fn json_row(of: Option<(&str, &str)>, row: &Row) -> Json {
    record! {
        "kind" if given: of.map(|(kind, _)| kind),
        "version" if given: of.map(|(_, version)| version),
        "compared": row.verdict.of,
        "sameVerdict": row.verdict.same,
        "withFields": row.fields.of,
        "sameFields": row.fields.same,
        "withTexts": row.texts.of,
        "sameTexts": row.texts.same,
        "differing": row.differing,
        "notServed": row.not_served,
        "otherAdmission": row.other_admission,
        "notAllowed": row.not_allowed,
        "failed": row.failed,
    }
}

/// A case on which the verdicts of Tollgate and the API server differ.
pub(super) struct Differing<'d> {
    pub(super) case: &'d Case,
    pub(super) answer: &'d Answer,
    pub(super) own: &'d OwnAnswer,
    pub(super) same: SameParts,
}

/// The file of `--out`, with the differences.
#[derive(Debug)]
pub(super) struct DifferenceFile {
    file: BufWriter<File>,
    name: String,
}

impl DifferenceFile {
    pub(super) fn create(path: &Path) -> Result<DifferenceFile, Failure> {
        let name = path.display().to_string();
        match File::create(path) {
            Ok(file) => Ok(DifferenceFile { file: BufWriter::new(file), name }),
            Err(error) => Err(Failure::Usage(format!("--out {name}: {}", files::io_reason(&error)))),
        }
    }

    pub(super) fn write(&mut self, differing: &Differing<'_>) -> Result<(), Failure> {
        let Differing { case, answer, own, same } = differing;
        let parts = [
            ("verdict", same.verdict),
            ("fields", same.fields != Some(false)),
            ("texts", same.texts != Some(false)),
        ];
        let object = RawValue::from_string(case.object.clone());
        let line = record! {
            "id": case.id,
            "kind": case.kind.name(),
            "version": case.version.name(),
            "differs": parts.iter().filter(|(_, is_same)| !is_same).map(|(name, _)| *name).collect::<Vec<_>>(),
            "server": answer_record(answer),
            "tollgate": record! { "allowed": own.allowed, "errors": own.texts },
            "object": object.map_err(|error| Failure::Internal(error.into()))?,
        };
        writeln!(self.file, "{line}").map_err(|error| self.failure(&error))
    }

    pub(super) fn finish(mut self) -> Result<(), Failure> {
        self.file.flush().map_err(|error| self.failure(&error))
    }

    fn failure(&self, error: &std::io::Error) -> Failure {
        Failure::Internal(anyhow::anyhow!("cannot write {}: {}", self.name, files::io_reason(error)))
    }
}

/// The record of an answer in the file of `--out`.
fn answer_record(answer: &Answer) -> Json {
    match answer {
        Answer::Refused(Refusal::Undecodable(words)) => record! { "allowed": false, "errors": [words] },
        Answer::Refused(Refusal::Invalid { texts, .. }) => record! { "allowed": false, "errors": texts },
        _ => record! { "allowed": true, "errors": [(); 0] },
    }
}
