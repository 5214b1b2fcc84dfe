//! What was found, counted by rule and by namespace.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::cli::table;
use crate::report::DocumentResult;
use tollgate_engine::rules::Level;

/// Numbers of findings, and of objects that have them.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize)]
pub(super) struct Count {
    pub(super) denied: usize,
    pub(super) warned: usize,
    pub(super) audited: usize,
    /// Objects with such a finding.
    pub(super) objects: usize,
}

impl Count {
    fn add(&mut self, level: Level) {
        match level {
            Level::Deny => self.denied += 1,
            Level::Warn => self.warned += 1,
            Level::Audit => self.audited += 1,
        }
    }
}

/// Counts by rule and by namespace; objects without a namespace are under the empty name.
#[derive(Clone, Default, Debug)]
pub(super) struct Totals {
    pub(super) by_rule: BTreeMap<&'static str, Count>,
    pub(super) by_namespace: BTreeMap<String, Count>,
}

impl Totals {
    /// Counts the findings of an object.
    pub(super) fn add(&mut self, entry: &DocumentResult<'_>) {
        let mut rules: Vec<&'static str> = Vec::new();
        for located in entry.findings {
            let rule = located.diagnostic.finding.rule.id;
            let count = self.by_rule.entry(rule).or_default();
            count.add(located.diagnostic.level);
            count.objects += usize::from(!rules.contains(&rule));
            rules.push(rule);
            let count = self.by_namespace.entry(entry.namespace.to_owned()).or_default();
            count.add(located.diagnostic.level);
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
        let by_rule = rows(self.by_rule.iter().map(|(rule, count)| ((*rule).to_owned(), *count)), audited);
        let name = |name: &String| if name.is_empty() { "(cluster)".to_owned() } else { name.clone() };
        let by_namespace = self.by_namespace.iter().map(|(namespace, count)| (name(namespace), *count));
        let by_namespace = rows(by_namespace, audited);
        let rules = table::aligned(&header("RULE"), &by_rule);
        let namespaces = table::aligned(&header("NAMESPACE"), &by_namespace);
        format!("\n{rules}\n{namespaces}")
    }
}

/// The rows of a table, the largest numbers first; `audited` adds the column of audit findings.
fn rows(counts: impl Iterator<Item = (String, Count)>, audited: bool) -> Vec<Vec<String>> {
    let mut counts: Vec<(String, Count)> = counts.collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse((count.denied, count.warned, count.audited)));
    let row = |(name, count): (String, Count)| {
        let mut row = vec![name, count.denied.to_string(), count.warned.to_string()];
        if audited {
            row.push(count.audited.to_string());
        }
        row.push(count.objects.to_string());
        row
    };
    counts.into_iter().map(row).collect()
}
