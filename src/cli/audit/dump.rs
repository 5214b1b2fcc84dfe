//! The objects of a dump: read twice, once for namespaces and the state that policies need, once to be judged.

use std::path::PathBuf;
use std::sync::Arc;

use super::AuditRun;
use super::judge::judge;
use super::reporter::AuditReporter;
use crate::cli::console::Console;
use crate::cli::outcome::Failure;
use crate::cli::state::{self, KUBECTL};
use crate::doc::Value;
use crate::engine::{Identity, NamespaceLookup as _, Namespaces, identify};
use crate::files::{self, Input};
use crate::report::DocumentResult;
use crate::source::{Lines, documents, list};

/// Largest dump in bytes.
const MAX_STATE: u64 = 1 << 30;

/// Audits the objects of these files.
pub(super) fn audit(
    paths: &[PathBuf],
    mut run: AuditRun<'_>,
    reporter: &mut AuditReporter,
    console: &mut Console,
) -> Result<(), Failure> {
    let found = files::collect(paths).without_outside_links();
    if let Some(error) = found.errors.first() {
        return Err(Failure::Input(error.to_string()));
    }
    let mut texts = Vec::new();
    for input in &found.inputs {
        let text = files::read(input, MAX_STATE).map_err(|error| Failure::Input(error.to_string()))?;
        texts.push((input.name(), text));
    }
    if run.needs_state() {
        let (snapshot, inventory) = state::read_texts(&texts)?;
        let omissions = inventory.omissions(false);
        omissions.iter().for_each(|omission| console.error(omission));
        reporter.incomplete.extend(omissions);
        run.engine = run.engine.with_snapshot(Arc::new(snapshot));
    }
    let namespaces = namespaces(&texts);
    let mut judged = 0;
    for (file, text) in &texts {
        let lines = Lines::of(text);
        for document in documents(text).with_max_size(usize::MAX) {
            let document = match document {
                Ok(document) => document,
                Err(fault) => {
                    let error = fault.input_error(file, &lines);
                    reporter.add(&DocumentResult::unreadable(&error, text, fault.index), "", console);
                    continue;
                }
            };
            if let Some(error) = document.not_an_object(file, &lines) {
                reporter.add(&DocumentResult::unreadable(&error, text, document.index), "", console);
                continue;
            }
            for what in state::incomplete_lists(file, document.doc.root(), |_, _| true) {
                if !reporter.incomplete.contains(&what) {
                    console.error(&what);
                    reporter.incomplete.push(what);
                }
            }
            for item in list::objects(document.doc.root()) {
                let object = item.value();
                if is_other_kind(object) {
                    continue;
                }
                judged += 1;
                let namespace = object.get("metadata").get("namespace").str();
                judge(&run, &item, namespaces.labels(namespace), reporter, console);
            }
        }
    }
    if judged == 0 {
        let names: Vec<String> = found.inputs.iter().map(Input::name).collect();
        let names = names.join(", ");
        let message = format!(
            "{names}: contains no objects to judge; make a dump with `tollgate snapshot` or `{KUBECTL}`"
        );
        return Err(Failure::Input(message));
    }
    Ok(())
}

/// A kind that Tollgate does not judge: it is there for impact, or for no reason.
fn is_other_kind(object: Value<'_>) -> bool {
    matches!(identify(object), Identity::Foreign)
}

/// The Namespaces of the dump. Without any, nothing is known of labels.
fn namespaces(texts: &[(String, String)]) -> Option<Namespaces> {
    let mut namespaces = Namespaces::new(true);
    for (_, text) in texts.iter().filter(|(_, text)| text.contains("Namespace")) {
        for document in documents(text).with_max_size(usize::MAX).flatten() {
            for item in list::objects(document.doc.root()) {
                let object = item.value();
                if object.get("apiVersion").str() == "v1" && object.get("kind").str() == "Namespace" {
                    namespaces.add(object);
                }
            }
        }
    }
    (!namespaces.is_empty()).then_some(namespaces)
}
