//! `--state DUMP…`: the state of a cluster from `kubectl get … -A -o yaml`, as a snapshot.
//!
//! Lists or documents, YAML or JSON, files, folders or stdin. Kinds that impact does not need are skipped. An object
//! that cannot be read is an error with its position: if it were left out, the result would look like "no impact".

mod inventory;
mod objects;
mod server;

use std::path::PathBuf;
use std::sync::Arc;

use super::console::Console;
use super::outcome::Failure;
use crate::files;
pub(super) use inventory::{
    DumpInventory, DumpOmissions, OmissionMessageSuffixes, format_missing_kinds, join_with_or,
    truncated_list_messages,
};
#[cfg(feature = "cluster")]
pub(super) use objects::OwnedObject;
pub(super) use objects::{OwnedObjects, StateObjects};
pub(super) use server::RecordedServer;
use tollgate_document::doc;
use tollgate_document::field::{FieldPath, Path};
use tollgate_document::source::{LineIndex, documents, list};
use tollgate_engine::impact::{DetailsToStore, Snapshot};

/// Maximum size of a dump in bytes.
pub(super) const MAX_DUMP_BYTES: u64 = 1 << 30;

/// The command that makes a dump for impact and audit.
pub(super) const KUBECTL_DUMP: &str =
    "kubectl get resourceslices,resourceclaims,pods,devicetaintrules,pdb -A -o yaml";

/// The command that makes a dump for devices and forecast, which also read nodes, classes, templates and workloads.
pub(super) const KUBECTL_FORECAST_DUMP: &str = "kubectl get nodes,deviceclasses,resourceslices,resourceclaims,\
    resourceclaimtemplates,devicetaintrules,pods,replicasets,deployments,statefulsets,daemonsets,jobs,cronjobs,pdb,\
    namespaces -A -o yaml";

/// Reads the cluster state from these inputs, and prints notes about what may be missing; `None` if there are no
/// paths.
pub(super) fn read_snapshot(
    paths: &[PathBuf],
    console: &mut Console,
) -> Result<Option<Arc<Snapshot>>, Failure> {
    if paths.is_empty() {
        return Ok(None);
    }
    let (snapshot, inventory) = read_with_inventory(paths, DetailsToStore::default())?;
    print_omissions(&inventory.impact_omissions(false).messages(), console);
    Ok(Some(Arc::new(snapshot)))
}

/// Ends of messages about missing kinds, for commands that also work with an incomplete dump.
pub(super) const INCOMPLETE_DUMP_TEXTS: OmissionMessageSuffixes<'_> = OmissionMessageSuffixes {
    note: "; it may be incomplete",
    hint: ". If the cluster contains no such objects, add --assume-complete",
};

/// Prints one note with these messages about what is missing from a dump; nothing if there are none.
pub(super) fn print_omissions(omissions: &[String], console: &mut Console) {
    if !omissions.is_empty() {
        console.note(&format!("{}{}", omissions.join("; "), INCOMPLETE_DUMP_TEXTS.note));
    }
}

/// The name and the text of each file of a dump.
type NamedTexts = Vec<(String, String)>;

/// Reads the files, folders or stdin of `--state`: the name and the text of each.
pub(super) fn read_texts(paths: &[PathBuf]) -> Result<NamedTexts, Failure> {
    #[cfg(not(feature = "cluster"))]
    if paths.is_empty() {
        return Err(Failure::Usage("--state is required: this build cannot connect to clusters".to_owned()));
    }
    Ok(files::read_all_or_fail(paths, MAX_DUMP_BYTES)?)
}

/// Reads the state from these inputs, with an inventory of their kinds.
pub(super) fn read_with_inventory(
    paths: &[PathBuf],
    details: DetailsToStore,
) -> Result<(Snapshot, DumpInventory), Failure> {
    parse_dump_with_cluster_objects(&read_texts(paths)?, details)
}

/// Reads the state for `tollgate impact`: with the counters of devices, and with their attributes if a stored
/// rule needs them or `needs_attributes` is set for a given rule. Also returns the texts, for callers that need
/// more of the objects than the snapshot contains.
pub(super) fn read_impact_state(
    paths: &[PathBuf],
    needs_attributes: bool,
) -> Result<(Snapshot, DumpInventory, NamedTexts), Failure> {
    // Attributes are most of a state, and rules that need them are rare, so the rules are read first.
    let details = DetailsToStore { attributes: needs_attributes, counters: true };
    let texts = read_texts(paths)?;
    let (mut snapshot, mut inventory) = parse_dump_with_cluster_objects(&texts, details)?;
    if !needs_attributes && snapshot.has_class_or_expression_rules() {
        (snapshot, inventory) = parse_snapshot(&texts, DetailsToStore { attributes: true, ..details })?;
    }
    Ok((snapshot, inventory, texts))
}

/// Parses the texts of a dump; an error if they contain no cluster objects.
fn parse_dump_with_cluster_objects(
    texts: &[(String, String)],
    details: DetailsToStore,
) -> Result<(Snapshot, DumpInventory), Failure> {
    let (snapshot, inventory) = parse_snapshot(texts, details)?;
    if !inventory.has_impact_objects_or_empty_lists() {
        let names: Vec<&str> = texts.iter().map(|(name, _)| name.as_str()).collect();
        let message =
            format!("{}: contains no cluster objects; create a dump with `{KUBECTL_DUMP}`", names.join(", "));
        return Err(Failure::Input(message));
    }
    Ok((snapshot, inventory))
}

/// Parses texts, each with its name, into a snapshot, with an inventory of their kinds.
pub(super) fn parse_snapshot(
    texts: &[(String, String)],
    details: DetailsToStore,
) -> Result<(Snapshot, DumpInventory), Failure> {
    let (mut snapshot, mut inventory) = (Snapshot::with_details(details), DumpInventory::default());
    for (file, text) in texts {
        add_text(file, text, &mut snapshot, &mut inventory)?;
    }
    Ok((snapshot, inventory))
}

/// Adds the objects of one text of a dump to the snapshot and the inventory.
fn add_text(
    file: &str,
    text: &str,
    snapshot: &mut Snapshot,
    inventory: &mut DumpInventory,
) -> Result<(), Failure> {
    let lines = LineIndex::from_text(text);
    inventory.add_header(text);
    let mut is_empty = true;
    for document in documents(text).with_max_size(usize::MAX) {
        let document = document.map_err(|fault| fault.input_error(file, &lines))?;
        is_empty = false;
        inventory.add_document(file, document.doc.root());
        for item in list::objects(document.doc.root()) {
            let object = item.typed_value();
            let fault = |at: FieldPath, what: &dyn std::fmt::Display| {
                Failure::at_location(file, &document.locate(&lines, &item.path_in_document(at), false), what)
            };
            if object.kind() != doc::ValueKind::Object {
                return Err(fault(
                    Path::ROOT.owned(),
                    &"expected an object; to pass several objects, use a List and put them in `items`",
                ));
            }
            snapshot.apply(object).map_err(|unreadable| fault(unreadable.at.clone(), &unreadable))?;
        }
    }
    if is_empty {
        inventory.add_empty_file(file);
    }
    Ok(())
}
