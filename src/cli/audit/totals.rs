//! What was found, counted by rule and by namespace.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::cli::table;
use crate::report::DocumentResult;
use crate::rules::Level;

/// Counts of findings.
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
            let rule = located.diagnostic.finding.rule.0;
            let count = self.by_rule.entry(rule).or_default();
            count.add(located.diagnostic.level);
            count.objects += usize::from(!rules.contains(&rule));
            rules.push(rule);
            match self.by_namespace.get_mut(entry.namespace) {
                Some(count) => count.add(located.diagnostic.level),
                None => self
                    .by_namespace
                    .entry(entry.namespace.to_owned())
                    .or_default()
                    .add(located.diagnostic.level),
            }
        }
        if let Some(count) = self.by_namespace.get_mut(entry.namespace).filter(|_| !rules.is_empty()) {
            count.objects += 1;
        }
    }

    /// Two tables, the largest numbers first; empty if nothing was found.
    pub(super) fn tables(&self) -> String {
        if self.by_rule.is_empty() {
            return String::new();
        }
        let header = |what: &'static str| [what, "DENIED", "WARNED", "OBJECTS"];
        let by_rule = rows(self.by_rule.iter().map(|(rule, count)| ((*rule).to_owned(), *count)));
        let name = |name: &String| if name.is_empty() { "(cluster)".to_owned() } else { name.clone() };
        let by_namespace = rows(self.by_namespace.iter().map(|(namespace, count)| (name(namespace), *count)));
        let rules = table::aligned(&header("RULE"), &by_rule);
        let namespaces = table::aligned(&header("NAMESPACE"), &by_namespace);
        format!("\n{rules}\n{namespaces}")
    }
}

fn rows(counts: impl Iterator<Item = (String, Count)>) -> Vec<Vec<String>> {
    let mut counts: Vec<(String, Count)> =
        counts.filter(|(_, count)| count.denied + count.warned > 0).collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse((count.denied, count.warned)));
    let row = |(name, count): (String, Count)| {
        vec![name, count.denied.to_string(), count.warned.to_string(), count.objects.to_string()]
    };
    counts.into_iter().map(row).collect()
}
