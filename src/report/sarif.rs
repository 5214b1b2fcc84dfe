//! SARIF 2.1.0: what code scanning reads.
//!
//! Every rule is listed with its page, so that a result can be explained where it is shown. Inputs that cannot be
//! read are results too, of the rule `unreadable`: a notification would be hidden by most viewers.
//!
//! Invariant: locations are URIs, relative to the working folder wherever the file lies below it (`files` names it so).

use serde::Serialize;

use super::json::encode;
use super::text::message;
use super::{
    AcceptedBy, DocumentResult, LocatedFinding, Report, ReportWriter, SEPARATOR, Summary, docs_url,
    fingerprint, first_sentence,
};
use crate::pages::page;
use tollgate_document::source::{InputError, TextFix};
use tollgate_engine::rules::{self, Level, RuleId};

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";
/// Not a rule of ours, but every result needs one.
const UNREADABLE: &str = "unreadable";

#[derive(Serialize)]
struct Message<'a> {
    text: &'a str,
}

#[derive(Serialize)]
struct MultiformatMessage<'a> {
    text: &'a str,
    markdown: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReportingDescriptor<'a> {
    id: &'a str,
    short_description: Message<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    help_uri: Option<String>,
    help: MultiformatMessage<'a>,
    default_configuration: DefaultConfiguration,
    properties: RuleProperties<'a>,
}

#[derive(Serialize)]
struct DefaultConfiguration {
    level: &'static str,
}

#[derive(Serialize)]
struct RuleProperties<'a> {
    tags: [&'a str; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SarifResult<'a> {
    rule_id: &'a str,
    rule_index: usize,
    level: &'static str,
    message: Message<'a>,
    locations: [Location; 1],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    related_locations: Vec<Location>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fixes: Vec<Fix<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    partial_fingerprints: Option<PartialFingerprints>,
    #[serde(skip_serializing_if = "Option::is_none")]
    suppressions: Option<[Suppression<'a>; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    properties: Option<ResultProperties<'a>>,
}

/// What tells a result from others in later runs.
#[derive(Serialize)]
struct PartialFingerprints {
    #[serde(rename = "tollgateFinding/v1")]
    finding: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Fix<'a> {
    description: Message<'a>,
    artifact_changes: [ArtifactChange<'a>; 1],
    properties: FixProperties,
}

#[derive(Serialize)]
struct FixProperties {
    applicability: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ArtifactChange<'a> {
    artifact_location: ArtifactLocation,
    replacements: Vec<Replacement<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Replacement<'a> {
    deleted_region: Region,
    inserted_content: Message<'a>,
}

#[derive(Serialize)]
struct Suppression<'a> {
    /// `inSource` or `external`
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    justification: Option<&'a str>,
}

#[derive(Serialize)]
struct ResultProperties<'a> {
    profiles: &'a [&'static str],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Location {
    physical_location: PhysicalLocation,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    logical_locations: Vec<LogicalLocation>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LogicalLocation {
    fully_qualified_name: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PhysicalLocation {
    artifact_location: ArtifactLocation,
    #[serde(skip_serializing_if = "Option::is_none")]
    region: Option<Region>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ArtifactLocation {
    uri: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    uri_base_id: Option<&'static str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Region {
    start_line: usize,
    start_column: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_column: Option<usize>,
}

/// `-o sarif`
pub(super) struct Writer;

impl ReportWriter for Writer {
    /// Writes the tool and its rules.
    fn begin(&self, report: &Report) -> String {
        let rules: Vec<String> =
            rules::all().map(rule_descriptor).chain(std::iter::once(unreadable_descriptor())).collect();
        format!(
            "{{\"$schema\":{},\"version\":\"2.1.0\",\"runs\":[{{\"tool\":{{\"driver\":{{\"name\":\"tollgate\",\
         \"semanticVersion\":{},\"informationUri\":{},\"rules\":[\n{}\n]}}}},\"columnKind\":\"unicodeCodePoints\",\
         \"properties\":{{\"profiles\":{}}},\"results\":[\n",
            encode(&SCHEMA),
            encode(&env!("CARGO_PKG_VERSION")),
            encode(&env!("CARGO_PKG_REPOSITORY")),
            rules.join(",\n"),
            encode(&report.profiles),
        )
    }

    fn add(&self, out: &mut String, entry: &DocumentResult<'_>, _: &Report) {
        let artifact = || artifact_location(entry.file);
        if let Some(error) = entry.error {
            push_result(out, &unreadable(error, artifact()));
        }
        let reported = entry.findings.iter().map(|located| (located, None));
        let accepted = entry.accepted.iter().map(|accepted| (&accepted.located, Some(&accepted.by)));
        for (located, by) in reported.chain(accepted) {
            let finding = &located.diagnostic.finding;
            let mut text = message(&located.diagnostic);
            if let Some(help) = &finding.help {
                text.push_str("\nhelp: ");
                text.push_str(help);
            }
            let also = located.also.iter().map(|also| location(artifact(), also, None)).collect();
            push_result(
                out,
                &SarifResult {
                    rule_id: finding.rule.id,
                    rule_index: finding.rule.number,
                    level: level(located.diagnostic.level),
                    message: Message { text: &text },
                    locations: [location_of(located, artifact())],
                    related_locations: also,
                    fixes: located.fix.iter().map(|fix| self::fix(fix, artifact())).collect(),
                    partial_fingerprints: Some(PartialFingerprints {
                        finding: fingerprint::of_finding(entry, located),
                    }),
                    suppressions: by.map(|by| [suppression(by)]),
                    properties: Some(ResultProperties { profiles: &located.diagnostic.profiles }),
                },
            );
        }
    }

    fn end(&self, _: &Summary, _: &Report) -> String {
        "\n]}]}\n".to_owned()
    }
}

/// The reporting descriptor of a rule, as JSON.
fn rule_descriptor(rule: RuleId) -> String {
    let about = first_sentence(page(rule));
    let about = if about.is_empty() { rule.id } else { &about };
    encode(&ReportingDescriptor {
        id: rule.id,
        short_description: Message { text: about },
        help_uri: Some(docs_url(rule.id)),
        help: MultiformatMessage { text: page(rule), markdown: page(rule) },
        default_configuration: DefaultConfiguration { level: level(rule.level) },
        properties: RuleProperties { tags: [rule.origin.name()] },
    })
}

/// The reporting descriptor for input that cannot be read, as JSON.
fn unreadable_descriptor() -> String {
    let text = "The input cannot be read or parsed, so nothing in it was checked.";
    encode(&ReportingDescriptor {
        id: UNREADABLE,
        short_description: Message { text },
        help_uri: None,
        help: MultiformatMessage { text, markdown: text },
        default_configuration: DefaultConfiguration { level: "error" },
        properties: RuleProperties { tags: ["input"] },
    })
}

/// Appends a result as JSON, with the separator before it.
fn push_result(out: &mut String, found: &SarifResult<'_>) {
    out.push_str(SEPARATOR);
    out.push_str(&encode(found));
}

fn unreadable(error: &InputError, artifact: ArtifactLocation) -> SarifResult<'_> {
    let region = (error.line > 0).then_some(Region {
        start_line: error.line,
        start_column: error.column.max(1),
        end_line: None,
        end_column: None,
    });
    let physical_location = PhysicalLocation { artifact_location: artifact, region };
    SarifResult {
        // It comes after all rules.
        rule_id: UNREADABLE,
        rule_index: rules::all().count(),
        level: "error",
        message: Message { text: &error.message },
        locations: [Location { physical_location, logical_locations: Vec::new() }],
        related_locations: Vec::new(),
        fixes: Vec::new(),
        partial_fingerprints: None,
        suppressions: None,
        properties: None,
    }
}

fn suppression(by: &AcceptedBy) -> Suppression<'_> {
    match by {
        AcceptedBy::Comment { reason } => Suppression { kind: "inSource", justification: Some(reason) },
        AcceptedBy::Baseline => Suppression { kind: "external", justification: Some("in the baseline") },
        AcceptedBy::Override { reason } => Suppression { kind: "external", justification: Some(reason) },
    }
}

fn location_of(located: &LocatedFinding, artifact: ArtifactLocation) -> Location {
    location(artifact, &located.location, Some(located.diagnostic.finding.field()))
}

fn location(
    artifact: ArtifactLocation,
    at: &tollgate_document::source::SourceLocation,
    field: Option<String>,
) -> Location {
    let region = region(at);
    let logical = field.filter(|field| !field.is_empty());
    Location {
        physical_location: PhysicalLocation { artifact_location: artifact, region: Some(region) },
        logical_locations: logical
            .into_iter()
            .map(|name| LogicalLocation { fully_qualified_name: name })
            .collect(),
    }
}

fn region(at: &tollgate_document::source::SourceLocation) -> Region {
    Region {
        start_line: at.line,
        start_column: at.column,
        end_line: Some(at.end_line),
        end_column: Some(at.end_column),
    }
}

fn fix(fix: &TextFix, artifact_location: ArtifactLocation) -> Fix<'_> {
    let replacements = fix.edits.iter().map(|edit| Replacement {
        deleted_region: region(&edit.location),
        inserted_content: Message { text: &edit.text },
    });
    Fix {
        description: Message { text: &fix.title },
        artifact_changes: [ArtifactChange { artifact_location, replacements: replacements.collect() }],
        properties: FixProperties { applicability: fix.applicability.name() },
    }
}

fn level(level: Level) -> &'static str {
    match level {
        Level::Deny => "error",
        Level::Warn => "warning",
        Level::Audit => "note",
    }
}

/// The location of a file as a URI: relative if its name is.
fn artifact_location(file: &str) -> ArtifactLocation {
    if file.starts_with('/') {
        return ArtifactLocation { uri: format!("file://{}", percent_encode(file)), uri_base_id: None };
    }
    if file.starts_with('<') {
        return ArtifactLocation { uri: file.trim_matches(['<', '>']).to_owned(), uri_base_id: None };
    }
    ArtifactLocation { uri: percent_encode(file), uri_base_id: Some("%SRCROOT%") }
}

/// Encodes a path as RFC 3986 requires.
fn percent_encode(path: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => {
                out.push(char::from(byte));
            }
            _ => _ = write!(out, "%{byte:02X}"),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::artifact_location;

    #[test]
    fn files_are_uris() {
        for (file, uri) in [
            ("a b/c.yaml", "a%20b/c.yaml"),
            ("/home/mean/x.yaml", "file:///home/mean/x.yaml"),
            ("a\\b.yaml", "a%5Cb.yaml"),
            ("<stdin>", "stdin"),
            ("ä:b", "%C3%A4%3Ab"),
        ] {
            assert_eq!(artifact_location(file).uri, uri, "{file}");
        }
    }
}
