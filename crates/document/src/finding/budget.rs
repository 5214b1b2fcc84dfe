//! Limits on the findings about one object: texts are shortened, and beyond a number of bytes findings are only
//! counted.
//!
//! A hostile object of a hundred kilobytes can contain a million errors, each with the whole object as its value.
//! Omitted findings still count for the verdict, under the ID of their rule. [`FindingBudget::without_shortening`] has
//! no limits, for comparisons with a server.
//!
//! Invariant: this is deterministic. The same findings in the same order are always shortened and omitted in the same
//! way.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::{BadValue, ErrorType, Finding, RuleId};

/// Maximum length in bytes of a value or a detail. Longer ones are shortened.
const MAX_ONE_TEXT_BYTES: usize = 16 << 10;
/// Bytes that the texts of all findings about one object may have together.
const MAX_TEXT_BYTES: usize = 1 << 20;
/// Approximate number of bytes that a finding takes in a response in addition to its texts.
const FINDING_OVERHEAD_BYTES: usize = 100;
/// Maximum number of findings for one object.
const MAX_FINDINGS: usize = 10_000;
/// [`MAX_TEXT_BYTES`] for webhook responses. The limit is lower because many responses are computed at the same time
/// and the sender controls the number of errors. A finding takes several times the memory of its text.
const MAX_RESPONSE_TEXT_BYTES: usize = 160 << 10;
/// [`MAX_FINDINGS`] for a response of the webhook.
const MAX_RESPONSE_FINDINGS: usize = 800;

/// Suffix of a truncated text.
const TRUNCATION_SUFFIX: &str = "… (shortened)";

/// The remaining number of findings and bytes of text for an object.
#[derive(Clone, Copy, Debug)]
pub struct FindingBudget {
    text: usize,
    bytes: usize,
    findings: usize,
}

impl Default for FindingBudget {
    /// The budget for one object outside of the webhook: 10,000 findings, with a megabyte of text together.
    fn default() -> FindingBudget {
        FindingBudget { text: MAX_ONE_TEXT_BYTES, bytes: MAX_TEXT_BYTES, findings: MAX_FINDINGS }
    }
}

impl FindingBudget {
    /// A budget that shortens no text, and keeps 10,000 findings.
    pub fn without_shortening() -> FindingBudget {
        FindingBudget { text: usize::MAX, bytes: usize::MAX, findings: MAX_FINDINGS }
    }

    /// The budget for one object: [`FindingBudget::without_shortening`] if `is_exact`, else a smaller one for a
    /// response of the webhook, or the default.
    pub fn for_report(is_exact: bool, is_response: bool) -> FindingBudget {
        match (is_exact, is_response) {
            (true, _) => FindingBudget::without_shortening(),
            (false, true) => FindingBudget {
                bytes: MAX_RESPONSE_TEXT_BYTES,
                findings: MAX_RESPONSE_FINDINGS,
                ..FindingBudget::default()
            },
            (false, false) => FindingBudget::default(),
        }
    }

    /// A budget for any number of findings, whose texts are shortened to `text` bytes: for callers that do not keep
    /// them.
    pub fn with_unlimited_findings(text: usize) -> FindingBudget {
        FindingBudget { text, bytes: usize::MAX, findings: usize::MAX }
    }

    /// True if the budget shortens no text.
    pub fn never_shortens(&self) -> bool {
        self.text == usize::MAX
    }

    /// True if the budget is used up: no further finding is kept.
    pub fn is_used_up(&self) -> bool {
        self.findings == 0 || self.bytes == 0
    }

    /// Maximum number of bytes of text in the next finding; 0 if no finding is kept. Texts need not be
    /// written beyond it.
    pub fn next_finding_max_text_bytes(&self) -> usize {
        if self.is_used_up() { 0 } else { self.text }
    }

    /// Shortens the finding's texts and takes it from the budget. Returns false if the budget is used up: then neither
    /// this finding nor a later one is kept.
    pub fn shorten_and_spend(&mut self, finding: &mut Finding) -> bool {
        if self.is_used_up() {
            return false;
        }
        finding.shorten(self.text);
        let Some(left) = self.bytes.checked_sub(finding.approximate_response_bytes()) else {
            self.bytes = 0;
            return false;
        };
        if self.bytes < usize::MAX {
            self.bytes = left;
        }
        self.findings = self.findings.saturating_sub(1);
        true
    }
}

impl Finding {
    /// Creates a finding that represents `count` omitted findings. `rule` is the rule for such findings.
    pub fn for_omitted(rule: RuleId, count: usize) -> Finding {
        let (noun, verb) = if count == 1 { ("finding", "was") } else { ("findings", "were") };
        let detail = format!("… and {count} more {noun} {verb} left out");
        let (at, value) = (crate::field::FieldPath::default(), BadValue::count(count));
        Finding::new(rule, at, ErrorType::LeftOut, value, detail)
    }

    /// The number of omitted findings that this one represents; 0 for an ordinary finding.
    pub fn omitted_finding_count(&self) -> usize {
        match (self.kind, &self.value) {
            (ErrorType::LeftOut, BadValue::Int(count)) => usize::try_from(*count).unwrap_or_default(),
            _ => 0,
        }
    }

    /// Shortens each text of the finding that is longer than `limit` bytes.
    fn shorten(&mut self, limit: usize) {
        if let BadValue::Str(text) | BadValue::Json(text) = &mut self.value
            && let Some(shorter) = shortened_if_longer_than(text, limit)
        {
            *text = shorter.into();
        }
        let others = [&mut self.help, &mut self.short, &mut self.advice];
        for text in others.into_iter().flatten().chain([&mut self.detail]) {
            if let Some(shorter) = shortened_if_longer_than(text, limit) {
                *text = Cow::Owned(shorter);
            }
        }
    }

    /// Approximate number of bytes that the finding takes in a response.
    fn approximate_response_bytes(&self) -> usize {
        let value = match &self.value {
            BadValue::Str(text) | BadValue::Json(text) => text.len(),
            _ => 8,
        };
        let also: usize = self.also.iter().map(crate::field::FieldPath::estimated_printed_bytes).sum();
        let help: usize =
            [&self.help, &self.short, &self.advice].into_iter().flatten().map(|text| text.len()).sum();
        let server_at = self.server_at.as_ref().map_or(0, String::len);
        // A fix repeats paths that are counted here, and is not part of an answer.
        FINDING_OVERHEAD_BYTES
            + value
            + self.detail.len()
            + self.at.estimated_printed_bytes()
            + also
            + help
            + server_at
    }
}

/// The first `limit` bytes of a text, with a note that it was cut; `None` if it is not longer.
fn shortened_if_longer_than(text: &str, limit: usize) -> Option<String> {
    (text.len() > limit)
        .then(|| [tollgate_formats::gofmt::byte_prefix(text, limit), TRUNCATION_SUFFIX].concat())
}

/// The findings about one object.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    kept: Vec<Finding>,
    /// Number of omitted findings of each rule.
    left_out: BTreeMap<RuleId, usize>,
    budget: FindingBudget,
}

impl Findings {
    /// An empty list that keeps as many findings as the budget allows.
    pub fn with_budget(budget: FindingBudget) -> Findings {
        Findings { budget, ..Findings::default() }
    }

    /// The remaining budget.
    pub fn remaining_budget(&self) -> FindingBudget {
        self.budget
    }

    /// The findings that are kept, in the order they were added.
    pub fn kept(&self) -> &[Finding] {
        &self.kept
    }

    /// True if findings were left out.
    #[cfg(test)]
    pub fn has_omitted(&self) -> bool {
        !self.left_out.is_empty()
    }

    /// True if findings were omitted that belong to a rule for which `such` returns true.
    pub fn has_omitted_where(&self, such: impl Fn(RuleId) -> bool) -> bool {
        self.left_out.keys().any(|rule| such(rule))
    }

    /// Adds a finding and returns it; `None` if the budget is used up and it is only counted.
    pub fn push_within_budget(&mut self, mut finding: Finding) -> Option<&mut Finding> {
        if !self.budget.shorten_and_spend(&mut finding) {
            self.record_omitted(finding.rule, 1);
            return None;
        }
        Some(self.kept.push_mut(finding))
    }

    /// Records that `count` more findings of a rule were omitted.
    pub fn record_omitted(&mut self, rule: RuleId, count: usize) {
        if count > 0 {
            *self.left_out.entry(rule).or_default() += count;
        }
    }

    /// Removes the kept findings from the index `first` on for which `excused` returns true.
    pub fn remove_excused_from(&mut self, first: usize, mut excused: impl FnMut(&Finding) -> bool) {
        let mut index = 0;
        self.kept.retain(|finding| {
            index += 1;
            index <= first || !excused(finding)
        });
    }

    /// The kept findings, and how many of each rule were left out.
    pub fn into_parts(self) -> (Vec<Finding>, BTreeMap<RuleId, usize>) {
        (self.kept, self.left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::{FindingBudget, Findings, MAX_ONE_TEXT_BYTES, MAX_TEXT_BYTES};
    use crate::field::Path;
    use crate::finding::{BadValue, ErrorType, Finding, FindingLevel, Rule, RuleOrigin};

    static RULE: Rule = Rule::new("a", RuleOrigin::Lint, FindingLevel::Warn);

    fn finding(value: &str) -> Finding {
        Finding { value: BadValue::str(value), kind: ErrorType::Invalid, ..Finding::for_omitted(&RULE, 0) }
    }

    #[test]
    fn values_are_shortened_above_a_length_and_findings_counted_past_another() {
        for (length, kept) in [
            (MAX_ONE_TEXT_BYTES, MAX_ONE_TEXT_BYTES),
            (MAX_ONE_TEXT_BYTES + 1, MAX_ONE_TEXT_BYTES + "… (shortened)".len()),
        ] {
            let mut budget = FindingBudget::default();
            let mut one = finding(&"x".repeat(length));
            assert!(budget.shorten_and_spend(&mut one));
            let BadValue::Str(text) = &one.value else { panic!("{one:?}") };
            assert_eq!(text.len(), kept);
        }
        let mut findings = Findings::default();
        for _ in 0..1_000 {
            findings.push_within_budget(finding(&"ö".repeat(MAX_ONE_TEXT_BYTES)));
        }
        let count = findings.kept().len();
        assert!(
            (MAX_TEXT_BYTES / MAX_ONE_TEXT_BYTES - 2..MAX_TEXT_BYTES / MAX_ONE_TEXT_BYTES).contains(&count),
            "{count}"
        );
        assert!(findings.has_omitted() && findings.remaining_budget().is_used_up());
        assert_eq!(findings.into_parts().1, [(&RULE, 1_000 - count)].into());
    }

    #[test]
    fn what_is_exact_is_not_shortened() {
        let mut budget = FindingBudget::without_shortening();
        let long = "x".repeat(2 * MAX_TEXT_BYTES);
        let mut one = finding(&long);
        one.at = Path::ROOT.field("spec").owned();
        assert!(budget.shorten_and_spend(&mut one) && budget.shorten_and_spend(&mut one.clone()));
        assert_eq!(one.value, BadValue::str(&long));
    }

    #[test]
    fn what_was_left_out_is_counted_in_words() {
        assert_eq!(
            Finding::for_omitted(&RULE, 1).server_message_without_path(),
            "… and 1 more finding was left out"
        );
        assert_eq!(
            Finding::for_omitted(&RULE, 12).server_message_without_path(),
            "… and 12 more findings were left out"
        );
        assert_eq!(Finding::for_omitted(&RULE, 12).omitted_finding_count(), 12);
    }
}
