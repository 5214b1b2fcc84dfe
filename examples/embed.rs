//! Checks an object as the API server of Kubernetes 1.37 would, in a program of your own.
//! `cargo run --example embed`
#![allow(clippy::print_stdout, clippy::disallowed_macros, reason = "a program for people")]

use tollgate_engine::{Attributes, Engine, LabelsIfKnown, Profile, RuleSet, documents};

const MANIFEST: &str = include_str!("driver-authors/wrong.yaml");

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let profile = Profile::named("1.37").ok_or("not a known release")?;
    let engine = Engine::new(vec![profile], RuleSet::parse("upstream,documented,lint,decoding,strict")?);
    for document in documents(MANIFEST) {
        let document = document.map_err(|error| error.message)?;
        let request = Attributes::for_create(document.doc.root(), "default", "2026-11-16T12:00:00Z");
        for diagnostic in engine.validate(&request, LabelsIfKnown::Unknown).findings() {
            println!(
                "{}: {}: {}",
                diagnostic.level.name(),
                diagnostic.finding.user_path(),
                diagnostic.finding.server_message_without_path()
            );
        }
    }
    Ok(())
}
