//! `--statistics`: how often each rule reported something, instead of the findings.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use super::json::encode;
use super::{DocumentResult, Format, Report, Summary, docs_url};
use tollgate_engine::rules::{Level, Origin};

/// Counts per rule; a rule of policies counts per level.
#[derive(Clone, Default, Debug)]
pub struct Statistics {
    counts: BTreeMap<(&'static str, &'static str, &'static str), usize>,
}

#[derive(Serialize)]
struct RuleCount {
    count: usize,
    rule: &'static str,
    origin: &'static str,
    level: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    docs: Option<String>,
}

/// What is not a rule, but counts.
const UNREADABLE: (&str, &str, &str) = ("unreadable", "input", "error");

impl Statistics {
    /// Counts the findings of a document.
    pub fn add(&mut self, entry: &DocumentResult<'_>) {
        if entry.error.is_some() {
            *self.counts.entry(UNREADABLE).or_default() += 1;
        }
        for located in entry.findings {
            let (origin, level): (Origin, Level) = (located.diagnostic.origin, located.diagnostic.level);
            let key = (located.diagnostic.finding.rule.id, origin.name(), level.name());
            *self.counts.entry(key).or_default() += 1;
        }
    }

    /// Adds the counts of another part of the run.
    pub fn merge(&mut self, other: &Statistics) {
        for (key, count) in &other.counts {
            *self.counts.entry(*key).or_default() += count;
        }
    }

    /// The counts per rule as a report, the most frequent rule first.
    pub(super) fn render(&self, report: &Report, summary: &Summary) -> String {
        let mut rows: Vec<RuleCount> = self
            .counts
            .iter()
            .map(|(&(rule, origin, level), &count)| {
                let docs = (rule != UNREADABLE.0).then(|| docs_url(rule));
                RuleCount { count, rule, origin, level, docs }
            })
            .collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.count));
        if report.format == Format::Json {
            return format!(
                "{{\"version\":{},\"profiles\":{},\n\"statistics\":{},\n\"summary\":{}}}\n",
                encode(&env!("CARGO_PKG_VERSION")),
                encode(&report.profiles),
                encode(&rows),
                encode(summary)
            );
        }
        let widest = |width: fn(&RuleCount) -> usize| rows.iter().map(width).max().unwrap_or_default();
        let (count, rule) = (widest(|row| row.count.to_string().len()), widest(|row| row.rule.len()));
        let origin = widest(|row| row.origin.len());
        let mut out = String::new();
        for row in &rows {
            _ = writeln!(
                out,
                "{:>count$}  {:rule$}  {:origin$}  {}",
                row.count, row.rule, row.origin, row.level
            );
        }
        out.push_str(&report.summary(summary));
        out
    }
}
