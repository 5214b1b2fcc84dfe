//! SARIF 2.1.0: what code scanning reads.
//!
//! Every rule is listed with its page, so that a result can be explained where it is shown. Inputs that cannot be
//! read are results too, of the rule `unreadable`: a notification would be hidden by most viewers.
//!
//! Invariant: locations are URIs; those of files below the working folder are relative to it.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::json::{push_separator_and_record, to_escaped_json};
use super::record::{Json, collect_records, record};
use super::text::message_with_help;
use super::{
    AcceptedBy, DocumentResult, ReportRenderer, ReportWriter, Summary, docs_url, fingerprint, first_sentence,
};
use crate::pages::rule_page;
use tollgate_document::source::{SourceLocation, TextFix};
use tollgate_engine::rules::{self, FindingLevel, RuleId};

const SARIF_SCHEMA_URL: &str = "https://json.schemastore.org/sarif-2.1.0.json";
/// Rule ID for unreadable input, because SARIF requires a rule for every result.
const UNREADABLE: &str = "unreadable";

/// Writes `-o sarif`.
pub(super) struct Writer;

impl ReportWriter for Writer {
    /// Writes the tool and its rules.
    fn begin(&self, report: &ReportRenderer) -> String {
        let rules = rules::all().map(rule_descriptor).chain([unreadable_descriptor()]);
        let rules: Vec<String> = rules.map(|rule| to_escaped_json(&rule)).collect();
        format!(
            "{{\"$schema\":{},\"version\":\"2.1.0\",\"runs\":[{{\"tool\":{{\"driver\":{{\"name\":\"tollgate\",\
         \"semanticVersion\":{},\"informationUri\":{},\"rules\":[\n{}\n]}}}},\"columnKind\":\"unicodeCodePoints\",\
         \"properties\":{{\"profiles\":{}}},\"results\":[\n",
            to_escaped_json(&SARIF_SCHEMA_URL),
            to_escaped_json(&env!("CARGO_PKG_VERSION")),
            to_escaped_json(&env!("CARGO_PKG_REPOSITORY")),
            rules.join(",\n"),
            to_escaped_json(&report.profiles),
        )
    }

    fn add(&self, out: &mut String, entry: &DocumentResult<'_>, _: &ReportRenderer) {
        let file = entry.file;
        if let Some(error) = entry.error {
            let start = |number: usize| (error.line > 0).then_some(number);
            let region = record! {
                "startLine" if given: start(error.line),
                "startColumn" if given: start(error.column.max(1)),
            };
            let physical = record! { "artifactLocation": artifact_location(file), "region" if given: region };
            let found = record! {
                "ruleId": UNREADABLE,
                // It comes after all rules.
                "ruleIndex": rules::all().count(),
                "level": "error",
                "message": record! { "text": error.message },
                "locations": [record! { "physicalLocation": physical }],
            };
            push_separator_and_record(out, &found);
        }
        let reported = entry.findings.iter().map(|located| (located, None));
        let accepted = entry.accepted.iter().map(|accepted| (&accepted.located, Some(&accepted.by)));
        for (located, by) in reported.chain(accepted) {
            let finding = &located.diagnostic.finding;
            let also: Vec<Json> = located.also.iter().map(|also| location(file, also, None)).collect();
            let fixes: Vec<Json> = located.fix.iter().map(|fix| fix_record(fix, file)).collect();
            let found = record! {
                "ruleId": finding.rule.id,
                "ruleIndex": finding.rule.number,
                "level": sarif_level(located.diagnostic.level),
                "message": record! { "text": message_with_help(&located.diagnostic, "\nhelp: ") },
                "locations": [location(file, &located.location, Some(finding.user_path()))],
                "relatedLocations" if given: also,
                "fixes" if given: fixes,
                "partialFingerprints": record! {
                    "tollgateFinding/v1": fingerprint::of_finding(entry, located),
                },
                "suppressions" if given: by.map(|by| [suppression_record(by)]),
                "properties": record! { "profiles": located.diagnostic.profiles },
            };
            push_separator_and_record(out, &found);
        }
    }

    fn end(&self, _: &Summary, _: &ReportRenderer) -> String {
        "\n]}]}\n".to_owned()
    }
}

/// Returns the SARIF descriptor of a rule.
fn rule_descriptor(rule: RuleId) -> Json {
    let about = first_sentence(rule_page(rule));
    let about = if about.is_empty() { rule.id } else { &about };
    let uri = docs_url(rule.id);
    descriptor(rule.id, about, Some(&uri), rule_page(rule), sarif_level(rule.level), rule.origin.name())
}

/// Returns the SARIF descriptor of the rule for unreadable input.
fn unreadable_descriptor() -> Json {
    let text = "The input cannot be read or parsed, so nothing in it was checked.";
    descriptor(UNREADABLE, text, None, text, "error", "input")
}

fn descriptor(id: &str, about: &str, uri: Option<&str>, help: &str, level: &str, tag: &str) -> Json {
    record! {
        "id": id,
        "shortDescription": record! { "text": about },
        "helpUri" if given: uri,
        "help": record! { "text": help, "markdown": help },
        "defaultConfiguration": record! { "level": level },
        "properties": record! { "tags": [tag] },
    }
}

fn suppression_record(by: &AcceptedBy) -> Json {
    let (kind, justification) = match by {
        AcceptedBy::Comment { reason } => ("inSource", reason.as_str()),
        AcceptedBy::Baseline => ("external", "in the baseline"),
        AcceptedBy::Override { reason } => ("external", reason.as_str()),
    };
    record! { "kind": kind, "justification": justification }
}

fn location(file: &str, at: &SourceLocation, field: Option<String>) -> Json {
    let logical = field.filter(|field| !field.is_empty());
    let logical: Vec<Json> = logical.into_iter().map(|name| record! { "fullyQualifiedName": name }).collect();
    record! {
        "physicalLocation": record! {
            "artifactLocation": artifact_location(file),
            "region": region(at),
        },
        "logicalLocations" if given: logical,
    }
}

fn region(at: &SourceLocation) -> Json {
    record! {
        "startLine": at.line,
        "startColumn": at.column,
        "endLine": at.end_line,
        "endColumn": at.end_column,
    }
}

fn fix_record(fix: &TextFix, file: &str) -> Json {
    let replacements = fix.edits.iter().map(|edit| {
        record! {
            "deletedRegion": region(&edit.location),
            "insertedContent": record! { "text": edit.text },
        }
    });
    let change = record! {
        "artifactLocation": artifact_location(file),
        "replacements": collect_records(replacements),
    };
    record! {
        "description": record! { "text": fix.title },
        "artifactChanges": [change],
        "properties": record! { "applicability": fix.applicability.name() },
    }
}

fn sarif_level(level: FindingLevel) -> &'static str {
    match level {
        FindingLevel::Deny => "error",
        FindingLevel::Warn => "warning",
        FindingLevel::Audit => "note",
    }
}

/// Returns the location of a file as a URI: relative if its name is.
fn artifact_location(file: &str) -> Json {
    if file.starts_with('/') {
        return record! { "uri": format!("file://{}", percent_encode(file)) };
    }
    // Not a file: `<stdin>`.
    if let Some(name) = file.strip_prefix('<').and_then(|rest| rest.strip_suffix('>')) {
        return record! { "uri": name };
    }
    record! { "uri": percent_encode(file), "uriBaseId": "%SRCROOT%" }
}

/// Encodes a path as RFC 3986 requires.
fn percent_encode(path: &str) -> String {
    const UNENCODED_CHARS: AsciiSet =
        NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.').remove(b'~');
    utf8_percent_encode(path, &UNENCODED_CHARS).to_string()
}

#[cfg(test)]
mod tests {
    use super::artifact_location;

    #[test]
    fn files_are_uris() {
        for (file, uri) in [
            ("a b/c.yaml", "a%20b/c.yaml"),
            ("<x>&.yaml", "%3Cx%3E%26.yaml"),
            ("/home/mean/x.yaml", "file:///home/mean/x.yaml"),
            ("a\\b.yaml", "a%5Cb.yaml"),
            ("<stdin>", "stdin"),
            ("ä:b", "%C3%A4%3Ab"),
        ] {
            let location = artifact_location(file);
            assert!(location.get().starts_with(&format!(r#"{{"uri":"{uri}""#)), "{file}: {location}");
        }
    }
}
