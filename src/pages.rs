//! The pages of rules, `docs/rules`: what `explain`, editors and SARIF show about a rule. A test compares them with the
//! table of rules.

use tollgate_document::finding::RuleId;

/// Name and Markdown text of each rule page, sorted by name; `build.rs` makes the list.
static RULE_PAGES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/pages.rs"));

/// Returns the Markdown page about a rule; empty if there is none.
pub fn rule_page(rule: RuleId) -> &'static str {
    let found = RULE_PAGES.binary_search_by_key(&rule.id, |(name, _)| name).ok();
    found.and_then(|index| RULE_PAGES.get(index)).map_or("", |(_, text)| text)
}
