//! `tollgate impact` for the relatives: ResourceSlicePatches (draft r1) and FoundationDBClusters.
//!
//! They are asked about like rules, but what they do depends on objects that a snapshot does not keep whole (patches,
//! nodes, pods without claims), so the state is read as documents.

use std::path::PathBuf;

use super::{Arguments, complain, denials, patch, replacement};
use crate::cli::clock;
use crate::cli::console::Console;
use crate::cli::outcome::{Failure, Tally};
use crate::cli::shared::Shared;
use crate::cli::state::Inventory;
use crate::doc::Value;
use crate::files::{self, Input};
use crate::profile;
use crate::sanitize;
use crate::source::list::Item;
use crate::source::{Document, Lines, documents, list};

/// Bytes of a dump at most.
const MAX_STATE: u64 = 1 << 30;

/// What was told of relatives.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// What counts for the exit code.
    pub(super) tally: Tally,
    /// How many relatives there were.
    pub(super) relatives: usize,
    /// How many other objects of ours there are.
    pub(super) others: usize,
}

/// The relatives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Relative {
    Patch,
    FoundationDb,
}

impl Relative {
    fn of(object: Value<'_>) -> Option<Relative> {
        match (object.get("apiVersion").str(), object.get("kind").str()) {
            ("resource.k8s.io/v1alpha3", "ResourceSlicePatch") => Some(Relative::Patch),
            ("apps.foundationdb.org/v1beta2", "FoundationDBCluster") => Some(Relative::FoundationDb),
            _ => None,
        }
    }
}

/// Tells what the relatives among the files do. What comes from a pipe can be read only once, and is left to others.
pub(super) fn tell(arguments: &Arguments, shared: &Shared, console: &mut Console) -> Result<Told, Failure> {
    let mut told = Told::default();
    let texts = Texts::read(&arguments.paths, Input::can_be_read_twice)?;
    let written = texts.documents()?;
    let subjects = items(&written);
    let is_relative = |item: &&Item<'_>| Relative::of(item.value()).is_some();
    told.others = subjects.len() - subjects.iter().filter(is_relative).count();
    if told.others == subjects.len() {
        return Ok(told);
    }
    let dump = Texts::read(&arguments.state, |_| true)?;
    let stored = dump.documents()?;
    let mut inventory = Inventory::default();
    for document in &stored {
        inventory.add("the dump", document.doc.root());
    }
    let stored = items(&stored);
    let state: Vec<Value<'_>> = stored.iter().map(Item::value).collect();
    for value in state.iter().filter(|value| Relative::of(**value).is_some()) {
        // A hole in the state looks like "nothing happens".
        if let Some(fault) = denials("decoding", *value, profile::DEFAULT, "").first() {
            let name = sanitize::line(value.get("metadata").get("name").str());
            return Err(Failure::Input(format!("{} {name}: {fault}", value.get("kind").str())));
        }
    }
    let is_of = |wanted| subjects.iter().any(|item| Relative::of(item.value()) == Some(wanted));
    if arguments.fail_over.is_some() && is_of(Relative::FoundationDb) {
        return Err(Failure::Usage("--fail-over is not supported for a FoundationDBCluster".to_owned()));
    }
    let holes = inventory.holes(arguments.assume_complete);
    // Others say it themselves, of the same dump.
    if is_of(Relative::Patch) && told.others == 0 {
        arguments.doubt(&holes, &mut told.tally, console);
    }
    let now = clock::moment(arguments.at.as_ref());
    for item in &subjects {
        let Some(relative) = Relative::of(item.value()) else { continue };
        told.relatives += 1;
        for profile in shared.profiles() {
            let denials = denials("upstream,documented,decoding,strict", item.value(), profile, &now);
            if !denials.is_empty() {
                told.tally.denied += denials.len();
                complain(console, profile.name, item.value(), &denials);
                continue;
            }
            match relative {
                Relative::Patch => {
                    let around = patch::Around { state: &state, holes: &holes, profile, now: &now };
                    told.tally.denied += patch::tell(item.value(), around, arguments, console)?;
                }
                // The operator does not depend on the release.
                Relative::FoundationDb => {
                    replacement::tell(item.value(), &state, &now, arguments, console)?;
                    break;
                }
            }
        }
    }
    Ok(told)
}

/// Texts to borrow from.
struct Texts(Vec<(String, String)>);

impl Texts {
    fn read(paths: &[PathBuf], wanted: impl Fn(&Input) -> bool) -> Result<Texts, Failure> {
        let found = files::collect(paths).whole();
        if let Some(error) = found.errors.first() {
            return Err(Failure::Input(error.to_string()));
        }
        let mut texts = Vec::new();
        for input in found.inputs.iter().filter(|input| wanted(input)) {
            let text = files::read(input, MAX_STATE).map_err(|error| Failure::Input(error.to_string()))?;
            texts.push((input.name(), text));
        }
        Ok(Texts(texts))
    }

    fn documents(&self) -> Result<Vec<Document<'_>>, Failure> {
        let mut found = Vec::new();
        for (name, text) in &self.0 {
            let lines = Lines::of(text);
            for document in documents(text).with_max_size(usize::MAX) {
                found.push(
                    document.map_err(|fault| Failure::Input(fault.input_error(name, &lines).to_string()))?,
                );
            }
        }
        Ok(found)
    }
}

fn items<'d>(documents: &'d [Document<'_>]) -> Vec<Item<'d>> {
    documents.iter().flat_map(|document| list::items(document.doc.root())).collect()
}
