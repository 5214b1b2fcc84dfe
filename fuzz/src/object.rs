//! An object as JSON, as a create request and as YAML: both have the same findings, paths lead into the document, and
//! an engine that has checked other objects before answers like a new one.

use std::cell::RefCell;

use tollgate_api::profile::{self, Profile};
use tollgate_document::doc;
use tollgate_engine::{Attributes, Engine, LabelsIfKnown, RuleSet, Verdict, documents};

const NOW: &str = "2026-11-15T03:04:05Z";
const RULES: &str = "upstream,documented,lint,decoding,strict";

fn engine(profile: &'static Profile) -> Engine {
    Engine::new(vec![profile], RuleSet::parse(RULES).expect("origins")).with_api_server_verdicts()
}

thread_local! {
    /// One engine for each profile, with the expressions that were accepted so far.
    static ENGINES: RefCell<Vec<Engine>> = RefCell::new(profile::ALL.iter().map(|profile| engine(profile)).collect());
}

fn said(verdict: &Verdict) -> Vec<String> {
    verdict
        .findings()
        .iter()
        .map(|found| format!("{} {}", found.finding.user_path(), found.message_without_path()))
        .collect()
}

/// The first byte selects the profile; the rest is the object.
pub(crate) fn run(data: &[u8]) {
    let Some((&choice, object)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(object) else { return };
    let Ok(document) = doc::parse(text) else { return };
    let choice = usize::from(choice) % profile::ALL.len();
    let attributes = Attributes::for_create(document.root(), "", NOW);
    let from_json =
        ENGINES.with_borrow(|engines| said(&engines[choice].validate(&attributes, LabelsIfKnown::Unknown)));
    let from_new = said(&engine(profile::ALL[choice]).validate(&attributes, LabelsIfKnown::Unknown));
    assert_eq!(from_json, from_new, "what was checked before changes the answer");

    // The same object without its white space and escapes, read as YAML. Duplicate keys, which YAML does not allow, and
    // texts above the limits of YAML are left out.
    let compact = document.root().to_json();
    let mut read = documents(&compact);
    let Some(Ok(yaml)) = read.next() else { return };
    let again = doc::parse(&compact).expect("JSON that was written here");
    let json = said(
        &engine(profile::ALL[choice])
            .validate(&Attributes::for_create(again.root(), "", NOW), LabelsIfKnown::Unknown),
    );
    let attributes = Attributes::for_create(yaml.doc.root(), "", NOW);
    let from_yaml = said(&engine(profile::ALL[choice]).validate(&attributes, LabelsIfKnown::Unknown));
    assert_eq!(json, from_yaml, "as JSON and as YAML: {compact}");
}
