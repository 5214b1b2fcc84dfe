//! The table of agreement, for people and for programs, and the file of differences.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use serde_json::value::RawValue;

use super::send::{Ending, RunResult};
use crate::cli::live::ConnectedServer;
use crate::cli::outcome::Failure;
use crate::cli::table::format_table;
use crate::conformance::{
    AgreeingParts, AgreementCount, AgreementRow, Answer, Case, Corpus, Refusal, TollgateVerdict,
};
use crate::files;
use crate::report::record::{Json, collect_records, record};
use tollgate_formats::count::group_thousands;

/// What was compared: server, profile and scope.
#[derive(Clone, Copy)]
pub(super) struct ReportHeader<'r> {
    pub(super) asked: &'r ConnectedServer,
    pub(super) namespace: &'r str,
    pub(super) corpus: &'r Corpus,
}

/// Returns the report as text: cluster, table of agreement, and counts of objects that were not compared.
pub(super) fn report_text(header: ReportHeader<'_>, result: &RunResult) -> String {
    let ReportHeader { asked, namespace, corpus } = header;
    let (endpoint, profile) = (asked.endpoint(), asked.profile);
    let mut out = String::new();
    let gates = if profile.gates.are_live { "read from /metrics" } else { "not read from the API server" };
    for (name, value) in [
        ("context", endpoint.context.as_deref().unwrap_or("the cluster of this pod").to_owned()),
        ("server", format!("{}, Kubernetes {}", endpoint.server, asked.info.release)),
        ("compared", format!("with Tollgate's verdict for Kubernetes {}", profile.name)),
        ("gates", format!("{gates}: {}", profile.describe_gates())),
        ("namespace", namespace.to_owned()),
    ] {
        _ = writeln!(out, "{name:<9}  {value}");
    }
    let total = &result.agreement.total;
    let rows = result.agreement.rows.iter();
    let rows = rows.filter(|(_, row)| row.verdict.of > 0 || row.without_verdict() > row.not_served);
    let mut rows: Vec<Vec<String>> =
        rows.map(|((kind, version), row)| row_cells(kind.name(), version.name(), row)).collect();
    rows.push(row_cells("all", "", total));
    let columns =
        ["KIND", "VERSION", "COMPARED", "VERDICT", "TYPE AND FIELD", "TEXT", "DIFFERENT", "NO VERDICT"];
    _ = write!(out, "\n{}", format_table(&columns, &rows));
    _ = writeln!(
        out,
        "\nno verdict: {} not served, {} rejected by other webhooks or policies, {} not allowed, {} failed",
        group_thousands(total.not_served),
        group_thousands(total.other_admission),
        group_thousands(total.not_allowed),
        group_thousands(total.failed)
    );
    _ = writeln!(out, "not sent: {} updates, which require stored objects", group_thousands(corpus.updates));
    _ = writeln!(
        out,
        "not included: {} objects that could make an API server panic",
        group_thousands(corpus.dangerous)
    );
    for (class, message) in &result.examples {
        _ = writeln!(out, "{class}, for example: {message}");
    }
    out
}

/// Returns the cells of one row: kind, version and the numbers of compared, equal and different responses.
fn row_cells(kind: &str, version: &str, row: &AgreementRow) -> Vec<String> {
    let mut cells = vec![kind.to_owned(), version.to_owned(), group_thousands(row.verdict.of)];
    cells.extend([row.verdict, row.fields, row.texts].map(AgreementCount::percent));
    cells.extend([row.differing, row.without_verdict()].map(group_thousands));
    cells
}

/// Returns the report as JSON: cluster, rows of agreement, and counts of objects that were not compared.
pub(super) fn report_json(header: ReportHeader<'_>, result: &RunResult) -> Json {
    let ReportHeader { asked, namespace, corpus } = header;
    let rows = result.agreement.rows.iter();
    let rows = rows.map(|((kind, version), row)| json_row(Some((kind.name(), version.name())), row));
    record! {
        "context": asked.endpoint().context,
        "server": asked.endpoint().server,
        "release": asked.info.release.to_string(),
        "profile": asked.profile.name,
        "featureGates": asked.profile.describe_gates(),
        "gatesRead": asked.profile.gates.are_live,
        "namespace": namespace,
        "updatesNotAsked": corpus.updates,
        "dangerousNotShipped": corpus.dangerous,
        "complete": matches!(result.ending, Ending::Complete),
        "rows": collect_records(rows),
        "total": json_row(None, &result.agreement.total),
    }
}

fn json_row(of: Option<(&str, &str)>, row: &AgreementRow) -> Json {
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

/// The file of `--out`: a line of JSON for each case with a difference.
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

    /// Writes a case for which Tollgate and the API server differ, with both results and the object.
    pub(super) fn write_difference(
        &mut self,
        case: &Case,
        answer: &Answer,
        own: &TollgateVerdict,
        same: AgreeingParts,
    ) -> Result<(), Failure> {
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
        writeln!(self.file, "{line}").map_err(|error| self.write_failure(&error))
    }

    pub(super) fn finish(mut self) -> Result<(), Failure> {
        self.file.flush().map_err(|error| self.write_failure(&error))
    }

    fn write_failure(&self, error: &std::io::Error) -> Failure {
        Failure::Internal(anyhow::anyhow!("cannot write {}: {}", self.name, files::io_reason(error)))
    }
}

/// Returns the verdict and the errors of an API server as JSON for the file of `--out`.
fn answer_record(answer: &Answer) -> Json {
    match answer {
        Answer::Refused(Refusal::Undecodable(words)) => record! { "allowed": false, "errors": [words] },
        Answer::Refused(Refusal::Invalid { texts, .. }) => record! { "allowed": false, "errors": texts },
        _ => record! { "allowed": true, "errors": [(); 0] },
    }
}
