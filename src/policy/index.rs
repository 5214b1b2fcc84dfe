//! Which policies can be about a namespace at all: found by what their patterns begin with, not by asking each.
//!
//! A thousand teams have a thousand policies, and a request is about one namespace. The answer is a superset, in
//! the order of the policies; `Scope::applies` has the last word.

use std::collections::HashMap;

use super::Policy;

/// The index of a set.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// About every namespace, or about patterns that begin with a star.
    everywhere: Vec<u32>,
    /// By the part of a pattern before its first star or question mark.
    by_start: HashMap<Box<str>, Vec<u32>>,
    /// The lengths of those parts, each once.
    lengths: Vec<usize>,
}

impl Index {
    /// The index of these policies.
    pub(super) fn of(policies: &[Policy]) -> Index {
        let mut index = Index::default();
        for (number, policy) in (0u32..).zip(policies) {
            let Some(patterns) = policy.scope.namespaces() else {
                index.everywhere.push(number);
                continue;
            };
            for pattern in patterns {
                let start = pattern.pattern().split(['*', '?']).next().unwrap_or_default();
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

    /// The numbers of the policies that can be about the namespace, in order.
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
