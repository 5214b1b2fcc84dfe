//! Finds the policies that can match a namespace by the literal prefixes of their patterns, without testing each one.
//!
//! A cluster can have a policy for each of a thousand teams, and a request is about one namespace. The result is a
//! superset in the order of the policies; `PolicyScope::match_request` decides.

use std::collections::HashMap;
use std::sync::Arc;

use super::Policy;

/// Finds the policies of a set that can match a namespace, by the beginnings of their patterns.
#[derive(Debug, Default)]
pub(super) struct NamespaceIndex {
    /// Policies for every namespace, or with patterns that begin with a wildcard.
    everywhere: Vec<u32>,
    /// Policies by the part of a pattern before its first wildcard.
    by_start: HashMap<Box<str>, Vec<u32>>,
    /// The distinct lengths of these prefixes.
    lengths: Vec<usize>,
}

impl NamespaceIndex {
    /// Builds the index of these policies.
    pub(super) fn from_policies(policies: &[Arc<Policy>]) -> NamespaceIndex {
        let mut index = NamespaceIndex::default();
        for (number, policy) in (0u32..).zip(policies) {
            let Some(patterns) = &policy.scope.namespaces else {
                index.everywhere.push(number);
                continue;
            };
            for pattern in patterns.patterns() {
                let start = pattern.split(['*', '?']).next().unwrap_or_default();
                if start.is_empty() {
                    index.everywhere.push(number);
                } else {
                    index.by_start.entry(start.into()).or_default().push(number);
                    index.lengths.push(start.len());
                }
            }
        }
        index.lengths.sort_unstable();
        index.lengths.dedup();
        index
    }

    /// Returns the indexes of the policies that can match the namespace, in order; some of them may not match it.
    pub(super) fn candidates(&self, namespace: &str) -> Vec<u32> {
        let mut found = self.everywhere.clone();
        for length in &self.lengths {
            let Some(start) = namespace.get(..*length) else { continue };
            found.extend(self.by_start.get(start).into_iter().flatten());
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::{PolicyFile, PolicySet};

    fn set(namespaces: &[&str]) -> PolicySet {
        let policies = namespaces.iter().enumerate().map(|(number, list)| {
            format!(
                "{{apiVersion: tollgate.dev/v1alpha1, kind: TolerationPolicy, metadata: {{name: p{number}}}, \
                 spec: {{match: {{{list}}}, allow: []}}}}"
            )
        });
        let text = policies.collect::<Vec<_>>().join("\n---\n");
        let files = [PolicyFile { name: "p.yaml".to_owned(), text }];
        PolicySet::load(&files, &|_| Err("no files".to_owned())).unwrap()
    }

    #[test]
    fn candidates_are_all_policies_that_can_match_in_order() {
        let set = set(&[
            "namespaces: [ml-*, ml-a]",
            "",
            "namespaces: ['*-prod']",
            "namespaces: [web]",
            "namespaces: ['m?-a']",
        ]);
        for (namespace, expected) in
            [("ml-a", &[0, 1, 2, 4][..]), ("web", &[1, 2, 3]), ("we", &[1, 2]), ("", &[1, 2]), ("é", &[1, 2])]
        {
            assert_eq!(set.index.candidates(namespace), expected, "{namespace}");
        }
    }
}
