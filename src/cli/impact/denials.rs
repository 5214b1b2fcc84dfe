//! Why the API server of a release would reject an object, which is then not assessed.

use crate::cli::console::Console;
use tollgate_api::profile::Profile;
use tollgate_document::doc::Value;
use tollgate_engine::engine::{Attributes, Diagnostic, Engine, LabelsIfKnown};
use tollgate_engine::rules::{FindingLevel, RuleSet};
use tollgate_formats::count::count_with_noun;
use tollgate_formats::sanitize;

/// Returns the first reason why the API server would reject the object; `None` if it would accept it.
pub(in crate::cli) fn first_denial(
    object: Value<'_>,
    profile: &'static Profile,
    now: &str,
) -> Option<String> {
    denials("upstream,decoding", object, profile, now).into_iter().next()
}

/// Maximum number of denials printed for an object; a slice may have thousands.
const MAX_PRINTED_DENIALS: usize = 10;

/// Prints the reasons why `by`, a release, rejects the object `name`.
pub(in crate::cli) fn print_denials(console: &mut Console, by: &str, name: &str, denials: &[String]) {
    let name = sanitize::sanitize_as_line(name);
    for denial in denials.iter().take(MAX_PRINTED_DENIALS) {
        console.error(&format!("{by} rejects {name}: {denial}"));
    }
    if denials.len() > MAX_PRINTED_DENIALS {
        let more = denials.len() - MAX_PRINTED_DENIALS;
        console.error(&format!(
            "{by} rejects {name}: {}; `tollgate validate` shows all of them",
            count_with_noun(more, "more error")
        ));
    }
}

/// Checks an object with these rules and origins, and returns the messages of the findings that deny it.
pub(super) fn denials(rules: &str, object: Value<'_>, profile: &'static Profile, now: &str) -> Vec<String> {
    let Ok(rules) = RuleSet::parse(rules) else { return Vec::new() };
    let engine = Engine::new(vec![profile], rules);
    let verdict = engine.validate(&Attributes::for_create(object, "", now), LabelsIfKnown::Unknown);
    let denials = verdict.findings().iter().filter(|diagnostic| diagnostic.level == FindingLevel::Deny);
    denials.map(Diagnostic::to_string).collect()
}
