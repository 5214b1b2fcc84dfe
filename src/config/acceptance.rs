//! Sorts the findings about an object into those that are reported, accepted and allowed.
//!
//! Overrides with `allow` accept lints, whatever level the lints have: they replace suppression comments in files that
//! cannot have comments. Other levels are applied in layers: the file, its overrides, the command line.
//!
//! Invariant: only lints are accepted. Findings of the API server, the documentation or policies keep their level,
//! unless the command line sets another.

use super::baseline::KnownFindings;
use super::file::LevelOverride;
use super::levels::{LevelSetting, Levels};
use crate::report::{AcceptedBy, AcceptedFinding, DocumentResult, LocatedFinding};
use tollgate_engine::rules::{FindingLevel, RuleOrigin};

/// The levels and overrides that decide which findings of one file are reported, accepted or allowed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LevelsAndOverrides<'c> {
    /// Levels of the configuration file.
    pub(crate) file_levels: &'c Levels,
    /// Levels of the command line.
    pub(crate) flag_levels: &'c Levels,
    /// The overrides of the configuration that apply to the file.
    pub(crate) overrides: &'c [&'c LevelOverride],
}

/// The findings about one object: those to report, and those that are accepted.
#[derive(Default, Debug)]
pub(crate) struct SplitFindings {
    /// Findings to report.
    pub(crate) reported: Vec<LocatedFinding>,
    /// Findings that are only counted, with what accepts them.
    pub(crate) accepted: Vec<AcceptedFinding>,
    /// Number of findings of rules with the level `allow`.
    pub(crate) allowed: usize,
}

impl SplitFindings {
    /// True if a reported finding denies the object.
    pub(crate) fn is_denied(&self) -> bool {
        self.reported.iter().any(|located| located.diagnostic.level == FindingLevel::Deny)
    }
}

impl LevelsAndOverrides<'_> {
    /// Sorts the findings about an object into those to report, those that are accepted, and those of allowed
    /// rules. Findings in the baseline are removed from `known`. Of `object`, only kind, namespace and name are used.
    pub(crate) fn split_accepted(
        &self,
        object: &DocumentResult<'_>,
        findings: Vec<LocatedFinding>,
        known: &mut KnownFindings,
    ) -> SplitFindings {
        let mut sorted = SplitFindings::default();
        if findings.is_empty() {
            return sorted;
        }
        let overrides: Vec<&LevelOverride> = self
            .overrides
            .iter()
            .copied()
            .filter(|item| item.applies_to_object_ignoring_paths(object))
            .collect();
        let levels = self.levels_with_overrides(&overrides);
        for mut located in findings {
            if let Some(reason) = accepting_override_reason(&overrides, &located) {
                let by = AcceptedBy::Override { reason: reason.to_owned() };
                sorted.accepted.push(AcceptedFinding { located, by });
            } else if !levels.set_level_if_reported(&mut located.diagnostic) {
                sorted.allowed += 1;
            } else if known.try_accept(object, &located) {
                sorted.accepted.push(AcceptedFinding { located, by: AcceptedBy::Baseline });
            } else {
                sorted.reported.push(located);
            }
        }
        sorted
    }

    /// Returns the levels for an object to which these overrides apply: of the file, then the overrides, then the
    /// flags. The last one that sets a rule counts.
    fn levels_with_overrides(&self, overrides: &[&LevelOverride]) -> Levels {
        let mut levels = self.file_levels.clone();
        for item in overrides {
            levels.extend(&item.levels);
        }
        levels.extend(self.flag_levels);
        levels
    }
}

/// Returns the reason of the override that accepts a lint; `None` if none does. The last override that names the
/// rule decides.
fn accepting_override_reason<'o>(
    overrides: &[&'o LevelOverride],
    located: &LocatedFinding,
) -> Option<&'o str> {
    let (rule, origin) = (located.diagnostic.finding.rule, located.diagnostic.origin);
    let is_lint = origin == RuleOrigin::Lint;
    let decides = |item: &&&'o LevelOverride| item.levels.setting_for_rule(rule, origin).is_some();
    let item = overrides.iter().rev().find(decides).filter(|_| is_lint)?;
    (item.levels.setting_for_rule(rule, origin) == Some(LevelSetting::Allow)).then_some(item.reason.as_str())
}
