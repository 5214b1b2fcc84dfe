//! The report of an audit: the formats of `validate`, with what was listed and counted by rule and by namespace, or
//! OpenReports objects.

use std::collections::BTreeMap;
use std::io::Write as _;

use serde::Serialize;

use super::deadlines::ExpiriesAndForgottenRules;
use super::openreports::OpenReports;
use super::{AuditSettings, HTML_FORMAT, OPENREPORTS_FORMAT};
use crate::cli::console::Console;
use crate::cli::outcome::{ExitCounts, Failure};
use crate::cli::picture::{self, StateSource};
use crate::cli::policy::EXPORT_DIGEST;
use crate::cli::{table, to_safe_json};
use crate::report::record::{collect_records, record};
use crate::report::{DocumentResult, FileReportPart, Format, ReportRenderer, Statistics, Summary};
use tollgate_document::doc::Value;
use tollgate_engine::policy::PolicySet;
use tollgate_engine::rules::FindingLevel;

/// Writes the report of an audit object by object, and counts its findings.
#[derive(Debug)]
pub(super) struct AuditReporter {
    report: ReportRenderer,
    /// The results, for `-o openreports`.
    open_reports: Option<OpenReports>,
    /// For `-o html`: the JSON report so far, which the page shows, and the time of the audit.
    drawn: Option<(String, String)>,
    /// Where the objects come from.
    pub(super) source: StateSource,
    summary: Summary,
    statistics: Statistics,
    totals: FindingTotals,
    started: bool,
    failure: Option<Failure>,
    /// `kubectl` with the flags that make it use the same cluster.
    pub(super) kubectl: String,
    /// Address and release of the cluster; `None` for a dump.
    pub(super) cluster: Option<String>,
    /// Messages about objects that could not be listed or read.
    pub(super) incomplete: Vec<String>,
    pub(super) not_served: Vec<String>,
    pub(super) deadlines: ExpiriesAndForgottenRules,
    /// ValidatingAdmissionPolicies that were exported from other policies.
    pub(super) outdated_exports: Vec<String>,
    /// Resource, apiVersion, number of objects.
    pub(super) listed: Vec<(&'static str, String, usize)>,
}

impl AuditReporter {
    /// Starts the report in the format `output`, and writes its header to the console if the format has one.
    pub(super) fn start_report(
        output: &str,
        statistics: bool,
        run: &AuditSettings<'_>,
        console: &mut Console,
    ) -> Result<AuditReporter, Failure> {
        let report = ReportRenderer {
            format: if output == HTML_FORMAT {
                Format::Json
            } else {
                Format::parse(output).unwrap_or(Format::Text)
            },
            profiles: run.engine.profiles.iter().map(|profile| profile.name).collect(),
            styled: console.styled,
            quiet: Console::is_quiet(),
            statistics,
            show_skipped: false,
            of_cluster: true,
            foldable: false,
        };
        let open_reports = (output == OPENREPORTS_FORMAT).then(|| OpenReports::new(&run.now, run.namespace));
        let drawn = (output == HTML_FORMAT).then(|| (report.header(), run.now.clone()));
        if open_reports.is_none() && drawn.is_none() {
            console.write_all(report.header().as_bytes())?;
        }
        let mut deadlines = ExpiriesAndForgottenRules::default();
        deadlines.add_expiring_entries(&run.engine.policies, &run.now);
        Ok(AuditReporter {
            report,
            deadlines,
            open_reports,
            drawn,
            source: StateSource::default(),
            summary: Summary::default(),
            statistics: Statistics::default(),
            totals: FindingTotals::default(),
            started: false,
            failure: None,
            kubectl: "kubectl".to_owned(),
            cluster: None,
            incomplete: Vec::new(),
            not_served: Vec::new(),
            outdated_exports: Vec::new(),
            listed: Vec::new(),
        })
    }

    /// Adds the result of one object to the report.
    pub(super) fn add_object_result(&mut self, entry: &DocumentResult<'_>, uid: &str, console: &mut Console) {
        let mut own = Summary { files: 1, ..Summary::default() };
        own.count_document(entry);
        self.summary.merge(&own);
        self.statistics.count_findings(entry);
        self.totals.count_findings_of_object(entry);
        if let Some(reports) = &mut self.open_reports {
            return reports.add_object_result(entry, uid);
        }
        let mut piece = FileReportPart::default();
        self.report.append_document(&mut piece, entry);
        self.report.finish_file(&mut piece, entry.file, &own);
        if !piece.is_empty() {
            let is_first = !std::mem::replace(&mut self.started, true);
            if let Some((json, _)) = &mut self.drawn {
                return json.push_str(piece.text_without_first_separator(is_first));
            }
            let written = console.write_all(piece.text_without_first_separator(is_first).as_bytes());
            if let Err(error) = written {
                self.failure.get_or_insert(error.into());
            }
        }
    }

    /// Adds a ValidatingAdmissionPolicy to the outdated exports if `tollgate policy export` made it from other policies
    /// than the loaded ones. Does nothing if no policies are loaded.
    pub(super) fn add_if_outdated_export(&mut self, kind: &str, object: Value<'_>, policies: &PolicySet) {
        let metadata = object.get("metadata");
        let digest = metadata.get("annotations").get(EXPORT_DIGEST).str();
        let is_exported = kind == "ValidatingAdmissionPolicy" && !digest.is_empty();
        if is_exported && !policies.is_empty() && digest != policies.digest() {
            self.outdated_exports.push(metadata.get("name").str().to_owned());
        }
    }

    /// Writes the rest of the report, and returns the counts for the exit code.
    pub(super) fn finish_report(mut self, console: &mut Console) -> Result<ExitCounts, Failure> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        if let Some(reports) = &mut self.open_reports {
            self.incomplete.iter().for_each(|what| reports.add_error("incomplete", what));
        }
        let text = match (&self.open_reports, self.report.format) {
            (Some(reports), _) => reports.to_list_json(),
            (None, Format::Text | Format::Concise | Format::Github)
                if self.report.quiet && !self.report.statistics =>
            {
                String::new()
            }
            (None, Format::Text) if !self.report.statistics => {
                format!("{}{}{}", self.summary_line(), self.totals.tables(), self.deadlines.tables())
            }
            (None, Format::Json) => self.json_end_with_audit()?,
            (None, _) => self.report.footer(&self.summary, &self.statistics),
        };
        match self.drawn.take() {
            Some((json, at)) => {
                let page = self.source.page_metadata(&self.incomplete);
                picture::write_page(tollgate_picture::pages::audit(&(json + &text), &at, &page), console)?;
            }
            None => console.write_all(text.as_bytes())?,
        }
        if let Some(reports) = self.open_reports.as_ref().filter(|_| self.incomplete.is_empty()) {
            let command = reports.prune_command(&self.kubectl);
            console.note(&format!(
                "after you apply these reports, delete the reports from earlier audits with: {command}"
            ));
        }
        if !self.outdated_exports.is_empty() {
            let names = self.outdated_exports.join(", ");
            console.note(&format!(
                "these ValidatingAdmissionPolicies were exported from other policies: {names}; export the policies again \
                 with `tollgate policy export --to vap`, and delete those that the new export does not contain"
            ));
        }
        if !self.incomplete.is_empty() {
            console.note("some objects could not be read; there may be more findings");
        }
        Ok(ExitCounts {
            denied: self.summary.denied,
            warned: self.summary.warned,
            unreadable: self.summary.unreadable + self.incomplete.len(),
            ..ExitCounts::default()
        })
    }

    /// Returns the summary of the audit: `412 objects: 3 invalid, 2 with warnings, 407 valid`.
    fn summary_line(&self) -> String {
        // The releases are in the first line on stderr.
        ReportRenderer { profiles: Vec::new(), ..self.report.clone() }.summary_unless_quiet(&self.summary)
    }

    /// Returns the end of the JSON report with the member `audit`, which only this command adds to the JSON of
    /// `validate`.
    fn json_end_with_audit(&self) -> Result<String, Failure> {
        let listed = self.listed.iter().map(|(resource, api_version, objects)| {
            record! { "resource": resource, "apiVersion": api_version, "objects": objects }
        });
        let record = record! {
            "cluster": self.cluster,
            "listed": collect_records(listed),
            "notServed": self.not_served,
            "incomplete": self.incomplete,
            "outdatedExports" if given: self.outdated_exports,
            "byRule": self.totals.by_rule,
            "byNamespace": self.totals.by_namespace,
            "expiringEntries": self.deadlines.expiring_entries,
            "failingClaims": self.deadlines.failing_claims,
            "forgottenRules": self.deadlines.forgotten_rules,
        };
        let end = self.report.footer(&self.summary, &self.statistics);
        let open = end.trim_end().strip_suffix('}').unwrap_or(&end);
        Ok(format!("{open},\n\"audit\":{}}}\n", to_safe_json(&record)?))
    }
}

/// Number of findings by level, and of objects with at least one finding, for one rule or namespace.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize)]
struct FindingCounts {
    denied: usize,
    warned: usize,
    audited: usize,
    /// Objects with at least one finding.
    objects: usize,
}

impl FindingCounts {
    fn count_finding(&mut self, level: FindingLevel) {
        match level {
            FindingLevel::Deny => self.denied += 1,
            FindingLevel::Warn => self.warned += 1,
            FindingLevel::Audit => self.audited += 1,
        }
    }
}

/// Counts by rule and by namespace; objects without a namespace are under the empty name.
#[derive(Clone, Default, Debug)]
struct FindingTotals {
    by_rule: BTreeMap<&'static str, FindingCounts>,
    by_namespace: BTreeMap<String, FindingCounts>,
}

impl FindingTotals {
    /// Counts the findings of an object by rule and by namespace. An object without findings adds nothing.
    fn count_findings_of_object(&mut self, entry: &DocumentResult<'_>) {
        let mut rules: Vec<&'static str> = Vec::new();
        for located in entry.findings {
            let rule = located.diagnostic.finding.rule.id;
            let count = self.by_rule.entry(rule).or_default();
            count.count_finding(located.diagnostic.level);
            count.objects += usize::from(!rules.contains(&rule));
            rules.push(rule);
            let count = self.by_namespace.entry(entry.namespace.to_owned()).or_default();
            count.count_finding(located.diagnostic.level);
            count.objects += usize::from(rules.len() == 1);
        }
    }

    /// A table by rule and one by namespace, the largest numbers first; empty if nothing was found.
    fn tables(&self) -> String {
        if self.by_rule.is_empty() {
            return String::new();
        }
        // Most audits use no policies with `action: Audit`.
        let audited = self.by_rule.values().any(|count| count.audited > 0);
        let header = |what: &'static str| {
            let levels: &[&str] =
                if audited { &["DENIED", "WARNED", "AUDITED"] } else { &["DENIED", "WARNED"] };
            [&[what][..], levels, &["OBJECTS"][..]].concat()
        };
        let by_rule = finding_count_rows(
            self.by_rule.iter().map(|(rule, count)| ((*rule).to_owned(), *count)),
            audited,
        );
        let name = |name: &String| if name.is_empty() { "(cluster)".to_owned() } else { name.clone() };
        let by_namespace = self.by_namespace.iter().map(|(namespace, count)| (name(namespace), *count));
        let by_namespace = finding_count_rows(by_namespace, audited);
        let rules = table::format_table(&header("RULE"), &by_rule);
        let namespaces = table::format_table(&header("NAMESPACE"), &by_namespace);
        format!("\n{rules}\n{namespaces}")
    }
}

/// Returns the rows of a table, sorted by the numbers of findings, highest first; `audited` adds the column of
/// audit findings.
fn finding_count_rows(
    counts: impl Iterator<Item = (String, FindingCounts)>,
    audited: bool,
) -> Vec<Vec<String>> {
    let mut counts: Vec<(String, FindingCounts)> = counts.collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse((count.denied, count.warned, count.audited)));
    let row = |(name, count): (String, FindingCounts)| {
        let mut row = vec![name, count.denied.to_string(), count.warned.to_string()];
        if audited {
            row.push(count.audited.to_string());
        }
        row.push(count.objects.to_string());
        row
    };
    counts.into_iter().map(row).collect()
}
