//! Levels by rule and by origin: what `--deny`, `--warn`, `--allow` and `levels` of a configuration say.
//!
//! A rule is more specific than its origin and wins; among equals the last one wins.
//!
//! Invariant: the verdict follows from the levels, so nothing but a level decides whether a finding denies.

use std::collections::BTreeMap;

use tollgate_document::finding::RuleId;
use tollgate_engine::engine::Diagnostic;
use tollgate_engine::rules::table::FINDINGS_LEFT_OUT;
use tollgate_engine::rules::{self, FindingLevel, RuleOrigin};

tollgate_formats::named_enum! {
    /// The level that a rule is set to, the weakest first. The names are the words in flags and files.
    #[derive(PartialOrd, Ord)]
    pub(crate) enum LevelSetting {
        /// Counted, not reported.
        Allow = "allow",
        /// Reported as a warning.
        Warn = "warn",
        /// Reported, and the object is invalid.
        Deny = "deny",
    }
}

impl LevelSetting {
    /// Returns the level that findings get; `None` if they are not reported.
    pub(super) fn level(self) -> Option<FindingLevel> {
        match self {
            LevelSetting::Allow => None,
            LevelSetting::Warn => Some(FindingLevel::Warn),
            LevelSetting::Deny => Some(FindingLevel::Deny),
        }
    }
}

/// The rule or origin that a level is set for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum LevelTarget {
    /// All rules of an origin.
    Origin(RuleOrigin),
    /// A single rule.
    Rule(RuleId),
}

impl LevelTarget {
    /// Returns the rule or origin of that name; `None` if there is none.
    pub(crate) fn from_name(name: &str) -> Option<LevelTarget> {
        let origin = RuleOrigin::ALL.into_iter().find(|origin| origin.name() == name);
        origin.map(LevelTarget::Origin).or_else(|| rules::find(name).map(LevelTarget::Rule))
    }

    /// Returns the name of the rule or origin, such as `blanket-toleration` or `lint`.
    pub(crate) fn rule_or_origin_name(self) -> &'static str {
        match self {
            LevelTarget::Rule(rule) => rule.id,
            LevelTarget::Origin(origin) => origin.name(),
        }
    }
}

/// The levels that flags or a configuration file set for rules and origins.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct Levels(BTreeMap<LevelTarget, LevelSetting>);

impl Levels {
    /// Sets a level; a later one for the same target replaces it.
    pub(crate) fn set(&mut self, target: LevelTarget, setting: LevelSetting) {
        self.0.insert(target, setting);
    }

    /// Adds all settings of `others`, which override existing ones.
    pub(crate) fn extend(&mut self, others: &Levels) {
        self.0.extend(&others.0);
    }

    /// Returns the setting of exactly this rule or origin; a rule without one does not inherit that of its
    /// origin.
    pub(crate) fn explicit_setting(&self, target: LevelTarget) -> Option<LevelSetting> {
        self.0.get(&target).copied()
    }

    /// Returns all settings with the names of their rules and origins.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&'static str, LevelSetting)> {
        self.0.iter().map(|(target, setting)| (target.rule_or_origin_name(), *setting))
    }

    /// Returns the setting that applies to a rule: its own, or else that of its origin.
    pub(crate) fn setting_for_rule(&self, rule: RuleId, origin: RuleOrigin) -> Option<LevelSetting> {
        let own = self.explicit_setting(LevelTarget::Rule(rule));
        own.or_else(|| self.explicit_setting(LevelTarget::Origin(origin)))
    }

    /// Sets the level of a finding to the one for its rule. Returns false if it must not be reported.
    pub(crate) fn set_level_if_reported(&self, diagnostic: &mut Diagnostic) -> bool {
        let setting = if diagnostic.finding.rule == FINDINGS_LEFT_OUT {
            self.setting_for_omission_finding(diagnostic.level)
        } else {
            self.setting_for_rule(diagnostic.finding.rule, diagnostic.origin)
        };
        let Some(setting) = setting else { return true };
        let level = setting.level();
        diagnostic.level = level.unwrap_or(diagnostic.level);
        level.is_some()
    }

    /// Returns the setting for the finding that says how many findings were omitted: its own; or `Deny` if any
    /// rule or origin is set to it, because a denied finding may be among those omitted. `None` keeps its
    /// `level`.
    fn setting_for_omission_finding(&self, level: FindingLevel) -> Option<LevelSetting> {
        self.explicit_setting(LevelTarget::Rule(FINDINGS_LEFT_OUT)).or_else(|| {
            (level == FindingLevel::Warn && self.0.values().any(|setting| *setting == LevelSetting::Deny))
                .then_some(LevelSetting::Deny)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::LevelSetting::{self, Allow, Deny, Warn};
    use super::{FINDINGS_LEFT_OUT, LevelTarget, Levels};
    use tollgate_document::field::FieldPath;
    use tollgate_document::finding::{BadValue, ErrorType, Finding};
    use tollgate_engine::engine::Diagnostic;
    use tollgate_engine::rules::{self, FindingLevel};

    type Given<'a> = &'a [(&'a str, LevelSetting)];

    fn levels(list: Given<'_>) -> Levels {
        let mut levels = Levels::default();
        for (name, setting) in list {
            levels.set(LevelTarget::from_name(name).unwrap(), *setting);
        }
        levels
    }

    /// The level of a rule's findings after applying the settings.
    fn level(levels: &Levels, rule: &str) -> Option<FindingLevel> {
        let rule = rules::find(rule).unwrap();
        let finding = Finding::new(rule, FieldPath::default(), ErrorType::Invalid, BadValue::Omitted, "odd");
        let mut diagnostic = Diagnostic::new(finding, Vec::new());
        levels.set_level_if_reported(&mut diagnostic).then_some(diagnostic.level)
    }

    #[test]
    fn a_rule_wins_over_its_origin_and_the_last_one_over_the_first() {
        let table: [(Given<'_>, &str, Option<FindingLevel>); 7] = [
            (&[], "blanket-toleration", Some(FindingLevel::Warn)),
            (&[("lint", Deny)], "blanket-toleration", Some(FindingLevel::Deny)),
            (&[("blanket-toleration", Allow), ("lint", Deny)], "blanket-toleration", None),
            (&[("lint", Allow), ("lint", Deny)], "blanket-toleration", Some(FindingLevel::Deny)),
            (&[("lint", Deny)], "taint-effect", Some(FindingLevel::Deny)),
            (&[("taint-effect", Warn)], "taint-effect", Some(FindingLevel::Warn)),
            (&[("upstream", Allow)], "taint-effect", None),
        ];
        for (list, rule, expected) in table {
            assert_eq!(level(&levels(list), rule), expected, "{list:?} {rule}");
        }
    }

    #[test]
    fn what_was_left_out_is_lowered_only_by_its_own_name() {
        let left_out = |list: Given<'_>, counted| {
            let mut finding = Diagnostic {
                finding: Finding::for_omitted(FINDINGS_LEFT_OUT, 7),
                origin: rules::RuleOrigin::Upstream,
                level: counted,
                profiles: vec![],
                policy: None,
            };
            levels(list).set_level_if_reported(&mut finding).then_some(finding.level)
        };
        assert_eq!(left_out(&[("upstream", Allow)], FindingLevel::Deny), Some(FindingLevel::Deny));
        assert_eq!(left_out(&[("lint", Allow)], FindingLevel::Warn), Some(FindingLevel::Warn));
        assert_eq!(
            left_out(&[("lint", Allow), ("duplicate-taint", Deny)], FindingLevel::Warn),
            Some(FindingLevel::Deny)
        );
        assert_eq!(left_out(&[("findings-left-out", Allow)], FindingLevel::Deny), None);
    }
}
