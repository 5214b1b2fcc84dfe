//! `--state DUMP…`: the state of a cluster from `kubectl get … -A -o yaml`, as a snapshot.
//!
//! Lists or documents, YAML or JSON, files, folders or stdin. What impact does not read is skipped; what it would read
//! and cannot is an error with its place, because a hole in the state looks like "nothing happens".

mod inventory;

use std::path::PathBuf;
use std::sync::Arc;

use super::console::Console;
use super::outcome::Failure;
use crate::doc;
use crate::engine::Engine;
use crate::field::{FieldPath, Path};
use crate::files::{self, Input};
use crate::impact::Snapshot;
use crate::sanitize;
use crate::source::{Lines, documents, list};
pub(super) use inventory::Inventory;

/// Bytes of a dump at most.
const MAX_STATE: u64 = 1 << 30;

/// What to ask the cluster for.
pub(super) const KUBECTL: &str =
    "kubectl get resourceslices,resourceclaims,pods,devicetaintrules,pdb -A -o yaml";

/// The state that those inputs hold; what may be missing from it is noted.
pub(super) fn read(paths: &[PathBuf], console: &mut Console) -> Result<Snapshot, Failure> {
    let (snapshot, inventory) = read_whole(paths)?;
    note(&inventory.holes(false), console);
    Ok(snapshot)
}

/// Says what is missing from a dump.
pub(super) fn note(holes: &[String], console: &mut Console) {
    if !holes.is_empty() {
        console.note(&format!("{}; it may be incomplete", holes.join("; ")));
    }
}

/// The state that those inputs hold, and what they contain.
pub(super) fn read_whole(paths: &[PathBuf]) -> Result<(Snapshot, Inventory), Failure> {
    let found = files::collect(paths).whole();
    if let Some(error) = found.errors.first() {
        return Err(Failure::Input(error.to_string()));
    }
    let mut snapshot = Snapshot::new();
    let mut inventory = Inventory::default();
    let mut kept = 0;
    for input in &found.inputs {
        kept += add(input, &mut snapshot, &mut inventory)?;
    }
    if kept == 0 {
        let names: Vec<String> = found.inputs.iter().map(Input::name).collect();
        let message =
            format!("{}: contains no cluster objects; make a dump with `{KUBECTL}`", names.join(", "));
        return Err(Failure::Input(message));
    }
    Ok((snapshot, inventory))
}

/// The engine with the state that `--state` names, if it names any.
pub(super) fn known(engine: Engine, paths: &[PathBuf], console: &mut Console) -> Result<Engine, Failure> {
    if paths.is_empty() {
        return Ok(engine);
    }
    Ok(engine.with_snapshot(Arc::new(read(paths, console)?)))
}

/// Adds the objects of one input; tells how many were kept.
fn add(input: &Input, snapshot: &mut Snapshot, inventory: &mut Inventory) -> Result<usize, Failure> {
    let file = input.name();
    let text = files::read(input, MAX_STATE).map_err(|error| Failure::Input(error.to_string()))?;
    let lines = Lines::of(&text);
    let mut kept = 0;
    let mut is_empty = true;
    for document in documents(&text).with_max_size(usize::MAX) {
        let document =
            document.map_err(|fault| Failure::Input(fault.input_error(&file, &lines).to_string()))?;
        is_empty = false;
        inventory.add(&file, document.doc.root());
        for item in list::items(document.doc.root()) {
            let object = item.value();
            let fault = |at: FieldPath, what: &dyn std::fmt::Display| {
                let place = document.place(&lines, &item.within(at), false);
                let file = sanitize::line(&file);
                Failure::Input(format!("{file}:{}:{}: {what}", place.line, place.column))
            };
            if object.kind() != doc::Kind::Object {
                return Err(fault(Path::ROOT.owned(), &"this is no object; a list has them as its `items`"));
            }
            match snapshot.apply(object) {
                Ok(found) => kept += usize::from(found.is_some()),
                Err(unreadable) => return Err(fault(unreadable.at.clone(), &unreadable)),
            }
        }
    }
    if is_empty {
        inventory.add_empty(&file);
    }
    Ok(kept)
}
