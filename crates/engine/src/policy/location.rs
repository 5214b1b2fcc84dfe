//! The name and location of a policy, for messages and for programs that count by policy.

use std::ops::Deref;

use super::{Policy, PolicySet};
use crate::rules::FindingLevel;

/// The location of a policy, as text, with its kind and name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct PolicyLocation {
    text: Box<str>,
    id: Box<str>,
}

impl PolicyLocation {
    /// Returns kind and name of the policy: `TolerationPolicy/research`.
    pub fn kind_and_name(&self) -> &str {
        &self.id
    }

    /// Returns the name of the policy.
    pub fn name(&self) -> &str {
        self.id.split_once('/').map_or(&*self.id, |(_, name)| name)
    }
}

/// `file:line name` of the policy, or `TolerationPolicy/research generation 3` for a resource.
impl Deref for PolicyLocation {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl Policy {
    /// Returns kind and name: `TolerationPolicy/research`.
    pub(super) fn kind_and_name(&self) -> String {
        format!("{}/{}", self.spec.kind().name(), self.name)
    }

    /// Returns kind and name, by which the policies of two sets are compared: `TolerationPolicy research`.
    pub(super) fn title(&self) -> String {
        format!("{} {}", self.spec.kind().name(), self.name)
    }

    /// Returns the location: `policies/research.yaml:1 research`, or `TolerationPolicy/research generation 3` for a
    /// resource.
    pub(super) fn location(&self) -> PolicyLocation {
        let text = match self.generation {
            None => format!("{} {}", self.source, self.name),
            Some(generation) => format!("{} generation {generation}", self.source),
        };
        PolicyLocation { text: text.into(), id: self.kind_and_name().into() }
    }
}

impl PolicySet {
    /// Returns kind and name of each policy, and its action.
    pub fn policies_with_action_levels(&self) -> impl Iterator<Item = (String, FindingLevel)> {
        self.policies.iter().map(|policy| (policy.kind_and_name(), policy.action))
    }
}
