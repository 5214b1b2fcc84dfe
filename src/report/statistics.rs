//! `--statistics`: how often each rule reported something, instead of the findings.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::json::to_escaped_json;
use super::record::{collect_records, record};
use super::{DocumentResult, Format, ReportRenderer, Summary, docs_url};
use tollgate_engine::engine::Diagnostic;

/// Number of findings for each rule, origin and level.
#[derive(Clone, Default, Debug)]
pub struct Statistics {
    counts: BTreeMap<(&'static str, &'static str, &'static str), usize>,
}

/// Row for unreadable input, which is not a rule.
const UNREADABLE: (&str, &str, &str) = ("unreadable", "input", "error");

impl Statistics {
    /// Counts the findings of a document.
    pub fn count_findings(&mut self, entry: &DocumentResult<'_>) {
        if entry.error.is_some() {
            *self.counts.entry(UNREADABLE).or_default() += 1;
        }
        for located in entry.findings {
            let Diagnostic { finding, origin, level, .. } = &located.diagnostic;
            let key = (finding.rule.id, origin.name(), level.name());
            *self.counts.entry(key).or_default() += 1;
        }
    }

    /// Adds the counts of another part of the run.
    pub fn merge(&mut self, other: &Statistics) {
        for (key, count) in &other.counts {
            *self.counts.entry(*key).or_default() += count;
        }
    }

    /// Returns the counts per rule as a report, the most frequent rule first.
    pub(super) fn render(&self, report: &ReportRenderer, summary: &Summary) -> String {
        let mut rows: Vec<_> = self.counts.iter().collect();
        rows.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        if report.format == Format::Json {
            let counted = rows.iter().map(|((rule, origin, level), count)| {
                record! {
                    "count": count,
                    "rule": rule,
                    "origin": origin,
                    "level": level,
                    "docs" if given: (*rule != UNREADABLE.0).then(|| docs_url(rule)),
                }
            });
            return format!(
                "{{\"version\":{},\"profiles\":{},\n\"statistics\":{},\n\"summary\":{}}}\n",
                to_escaped_json(&env!("CARGO_PKG_VERSION")),
                to_escaped_json(&report.profiles),
                to_escaped_json(&collect_records(counted)),
                to_escaped_json(summary)
            );
        }
        let count = rows.iter().map(|(_, count)| count.to_string().len()).max().unwrap_or_default();
        let rule = rows.iter().map(|((rule, ..), _)| rule.len()).max().unwrap_or_default();
        let origin = rows.iter().map(|((_, origin, _), _)| origin.len()).max().unwrap_or_default();
        let mut out = String::new();
        for ((name, from, level), number) in &rows {
            _ = writeln!(out, "{number:>count$}  {name:rule$}  {from:origin$}  {level}");
        }
        out.push_str(&report.summary_unless_quiet(summary));
        out
    }
}
