//! The properties of a rule: its ID, its origin, and how its findings are treated.
//!
//! The rules themselves are in a table of the engine, and a finding refers to its rule by the entry in it.
//!
//! Invariant: the number of a rule is its index in the table.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use super::MessageStyle;

/// A rule, as a reference to its entry in the table of rules.
pub type RuleId = &'static Rule;

/// A rule. Rules are equal if they are the same entry, and sorted by ID.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Stable ID of the rule, which is also the name of its page in `docs/rules`, such as `taint-effect`.
    pub id: &'static str,
    /// The source of the rule.
    pub origin: RuleOrigin,
    /// The level of its findings, unless a policy sets another one.
    pub level: FindingLevel,
    /// How editors highlight the finding.
    pub tag: Option<EditorTag>,
    /// Input besides the text of the object that findings of this rule depend on.
    pub depends_on: RuleInput,
    /// True if a comment in the file can suppress findings of this rule.
    pub is_suppressible: bool,
    /// Index of the rule in the table.
    pub number: usize,
}

impl Rule {
    /// Creates a rule whose findings depend only on the text, without an index yet. Comments can suppress it
    /// if it is a lint.
    pub const fn new(id: &'static str, origin: RuleOrigin, level: FindingLevel) -> Rule {
        let is_suppressible = matches!(origin, RuleOrigin::Lint);
        Rule { id, origin, level, tag: None, depends_on: RuleInput::Text, is_suppressible, number: 0 }
    }

    /// True if an update is reported only if it introduces the problem. False for the API server's rules,
    /// which compare with the stored object themselves.
    pub const fn is_ratcheted(&self) -> bool {
        matches!(self.origin, RuleOrigin::Documented | RuleOrigin::Lint)
    }

    /// Tags the rule as being about fields without effect.
    #[must_use]
    pub const fn tagged_unnecessary(self) -> Rule {
        Rule { tag: Some(EditorTag::Unnecessary), ..self }
    }

    /// Tags the rule as being about fields that newer releases do not have.
    #[must_use]
    pub const fn tagged_deprecated(self) -> Rule {
        Rule { tag: Some(EditorTag::Deprecated), ..self }
    }

    /// Declares that findings depend on more than the text, so that another run may report others.
    #[must_use]
    pub const fn depends_on(self, depends_on: RuleInput) -> Rule {
        Rule { depends_on, ..self }
    }

    /// Declares that comments cannot suppress findings of this rule.
    #[must_use]
    pub const fn not_suppressible(self) -> Rule {
        Rule { is_suppressible: false, ..self }
    }

    /// Sets the index of the rule in the table.
    #[must_use]
    pub const fn with_table_index(self, number: usize) -> Rule {
        Rule { number, ..self }
    }
}

impl PartialEq for Rule {
    fn eq(&self, other: &Rule) -> bool {
        self.number == other.number
    }
}

impl Eq for Rule {}

impl PartialOrd for Rule {
    fn partial_cmp(&self, other: &Rule) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Rule {
    fn cmp(&self, other: &Rule) -> Ordering {
        self.id.cmp(other.id)
    }
}

impl Hash for Rule {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id)
    }
}

/// How editors highlight a finding: as unnecessary or deprecated text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EditorTag {
    /// A field that has no effect where it is: editors show it faded.
    Unnecessary,
    /// A field that newer releases do not have: editors strike it through.
    Deprecated,
}

/// Input besides the text of the object that a finding depends on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RuleInput {
    /// Only the text of the object.
    Text,
    /// The release that is checked against.
    Release,
    /// The versions and feature gates of an API server.
    Server,
    /// Whether the user named a release or draft.
    Drafts,
    /// The labels of the namespace.
    Labels,
    /// The other files of the run.
    Files,
    /// The state of the cluster.
    Cluster,
    /// The current time.
    Time,
}

tollgate_formats::named_enum! {
    /// The source of a rule: who considers the object wrong.
    #[derive(PartialOrd, Ord, Hash)]
    pub enum RuleOrigin {
        /// The API server of the profile rejects the object.
        Upstream = "upstream",
        /// The documentation forbids the value, but no server enforces it.
        Documented = "documented",
        /// The value is valid, but almost certainly a mistake.
        Lint = "lint",
        /// A policy of the administrator forbids the value.
        Policy = "policy",
        /// The object cannot be decoded.
        Decoding = "decoding",
        /// Reported only by strict decoding.
        Strict = "strict",
    }
}

impl RuleOrigin {
    /// The style in which messages of such rules are written.
    pub fn message_style(self) -> MessageStyle {
        match self {
            RuleOrigin::Upstream | RuleOrigin::Decoding | RuleOrigin::Strict => MessageStyle::ApiServer,
            RuleOrigin::Documented => MessageStyle::Documented,
            RuleOrigin::Lint | RuleOrigin::Policy => MessageStyle::Plain,
        }
    }
}

tollgate_formats::named_enum! {
    /// The effect of a finding on the verdict about a request, the weakest first, with their names in reports and
    /// settings.
    #[derive(PartialOrd, Ord, Hash)]
    pub enum FindingLevel {
        /// The request is allowed; the finding is only recorded.
        Audit = "audit",
        /// The request is allowed; the user is warned.
        Warn = "warn",
        /// The request is refused.
        Deny = "deny",
    }
}
