//! What was found, counted by rule and by namespace.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::cli::table;
use crate::report::DocumentResult;
use tollgate_engine::rules::FindingLevel;

/// Number of findings by level, and of objects with at least one finding, for one rule or namespace.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize)]
pub(super) struct FindingCounts {
    pub(super) denied: usize,
    pub(super) warned: usize,
    pub(super) audited: usize,
    /// Objects with at least one finding.
    pub(super) objects: usize,
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
pub(super) struct FindingTotals {
    pub(super) by_rule: BTreeMap<&'static str, FindingCounts>,
    pub(super) by_namespace: BTreeMap<String, FindingCounts>,
}

impl FindingTotals {
    /// Counts the findings of an object by rule and by namespace. An object without findings adds nothing.
    pub(super) fn count_findings_of_object(&mut self, entry: &DocumentResult<'_>) {
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
    pub(super) fn tables(&self) -> String {
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
