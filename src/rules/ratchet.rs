//! What was already wrong in the stored object and did not change is no reason to refuse.
//!
//! Upstream's rules ratchet as each release does, inside their own files. Everything of ours goes through here: the
//! same checks are run on the stored object, and each of its findings excuses one equal finding of the new one.
//! Equal means the same rule saying the same of the same value in the same place. A place is its path, where items
//! of a list go by their name (devices, requests) or, if they have none (taints, tolerations), by any index.

use std::collections::HashMap;
use std::fmt::Write as _;

use crate::api::view::Object;
use crate::doc::Value;
use crate::field::Name;
use crate::finding::Finding;

/// What an object is found to have wrong.
pub(crate) struct Known {
    /// How often each thing was said.
    said: HashMap<String, usize>,
}

impl Known {
    /// The findings about a stored object.
    pub(crate) fn of<F: AsRef<Finding>>(findings: &[F], object: Object<'_>) -> Known {
        let mut said = HashMap::new();
        for finding in findings {
            *said.entry(statement(finding.as_ref(), object)).or_default() += 1;
        }
        Known { said }
    }

    /// True if the stored object had this too. One old mistake excuses one new one: a second blanket toleration is
    /// a new mistake.
    pub(crate) fn excuses(&mut self, finding: &Finding, object: Object<'_>) -> bool {
        let left = self.said.get_mut(&statement(finding, object)).filter(|left| **left > 0);
        left.map(|left| *left -= 1).is_some()
    }
}

/// What a finding says, in words that do not depend on the order of lists.
fn statement(finding: &Finding, object: Object<'_>) -> String {
    let mut out = format!("{}\n{:?}\n{}\n{}\n", finding.rule, finding.kind, finding.value, finding.detail);
    let mut value = object.value();
    for step in finding.at.user_steps() {
        value = match step {
            Name::Index(index) => value.at(*index),
            Name::Field(name) | Name::Key(name) => value.get(name),
        };
        _ = match step {
            Name::Index(_) => write!(out, "\n[{:?}]", name_of(value)),
            Name::Field(name) | Name::Key(name) => write!(out, "\n{name:?}"),
        };
    }
    // Where the finding does not show the value, it cannot tell one value from another.
    if !finding.kind.shows_value() {
        _ = write!(out, "\n={}", value.to_json());
    }
    out
}

/// What an item of a list goes by: its own name, or the device it speaks of.
fn name_of(item: Value<'_>) -> &str {
    let name = item.get("name").str();
    if name.is_empty() { item.get("device").str() } else { name }
}
