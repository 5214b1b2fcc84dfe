//! `tollgate impact` for other APIs: ResourceSlicePatches (draft r1) and FoundationDBClusters.
//!
//! Their impact depends on objects that a snapshot does not contain (patches, nodes, pods without claims), so the dump
//! is read as documents.

use super::{Arguments, denials, print_denials};
use crate::cli::console::Console;
use crate::cli::outcome::{ExitCounts, Failure};
use crate::cli::shared::ReportOutput;
use crate::cli::state::{self, DumpInventory, MAX_DUMP_BYTES};
use crate::files::{self, Input};
use tollgate_api::profile;
use tollgate_document::doc::Value;
use tollgate_document::source::list::DocumentObject;
use tollgate_document::source::{Document, LineIndex, documents, list};
use tollgate_formats::sanitize;

/// The result of reporting objects of other APIs than DeviceTaintRule and ResourceSlice.
#[derive(Debug, Default)]
pub(super) struct OtherApiReport {
    /// Counts for the exit code.
    pub(super) tally: ExitCounts,
    /// Number of reported objects.
    pub(super) reported: usize,
    /// Number of objects that are not of these APIs.
    pub(super) remaining: usize,
}

/// An API other than DeviceTaintRules and ResourceSlices whose objects can evict pods.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum OtherApi {
    Patch,
    FoundationDb,
}

impl OtherApi {
    /// The API of an object; `None` if it is not one of these.
    fn from_object(object: Value<'_>) -> Option<OtherApi> {
        match (object.get("apiVersion").str(), object.get("kind").str()) {
            ("resource.k8s.io/v1alpha3", "ResourceSlicePatch") => Some(OtherApi::Patch),
            ("apps.foundationdb.org/v1beta2", "FoundationDBCluster") => Some(OtherApi::FoundationDb),
            _ => None,
        }
    }
}

/// The flags, state and time with which objects of other APIs are assessed.
#[derive(Clone, Copy)]
pub(super) struct OtherApiAssessment<'a> {
    pub(super) arguments: &'a Arguments,
    pub(super) state: &'a [Value<'a>],
    /// Messages about what is missing from the state.
    pub(super) omissions: &'a [String],
    pub(super) now: &'a str,
}

/// Reports the impact of the objects of other APIs in the files. Leaves pipes to the caller, because they can be read
/// only once.
pub(super) fn report_other_api_impacts(
    arguments: &Arguments,
    console: &mut Console,
) -> Result<OtherApiReport, Failure> {
    let mut report = OtherApiReport::default();
    let mut paths = files::collect_all_or_fail(&arguments.paths)?;
    paths.retain(Input::can_be_read_twice);
    let read = |input: &Input| Ok((input.name(), files::read(input, MAX_DUMP_BYTES)?));
    let texts = paths.iter().map(read).collect::<Result<Vec<_>, Failure>>()?;
    let written = parse_documents(&texts)?;
    let written = listed_objects(&written);
    let objects = written.iter().map(DocumentObject::typed_value);
    let subjects: Vec<(OtherApi, Value<'_>)> =
        objects.filter_map(|object| Some((OtherApi::from_object(object)?, object))).collect();
    report.remaining = written.len() - subjects.len();
    if subjects.is_empty() {
        return Ok(report);
    }
    if arguments.output == ReportOutput::Html {
        let message = "-o html is not available for a ResourceSlicePatch or FoundationDBCluster; use `-o text` or `-o json`";
        return Err(Failure::Usage(message.to_owned()));
    }
    if arguments.state.paths.is_empty() {
        let message =
            "the impact of a ResourceSlicePatch or FoundationDBCluster requires a dump; use --state";
        return Err(Failure::Usage(message.to_owned()));
    }
    let dump = state::read_texts(&arguments.state.paths)?;
    let stored = parse_documents(&dump)?;
    let mut inventory = DumpInventory::default();
    for document in &stored {
        inventory.add_document("the dump", document.doc.root());
    }
    let stored = listed_objects(&stored);
    let state: Vec<Value<'_>> = stored.iter().map(DocumentObject::typed_value).collect();
    for value in state.iter().filter(|value| OtherApi::from_object(**value).is_some()) {
        // An object that is missing from the state would look like "no impact".
        if let Some(fault) = denials("decoding", *value, profile::DEFAULT, "").first() {
            let name = sanitize::sanitize_as_line(value.get("metadata").get("name").str());
            return Err(Failure::Input(format!("{} {name}: {fault}", value.get("kind").str())));
        }
    }
    let has = |wanted| subjects.iter().any(|(api, _)| *api == wanted);
    if arguments.max.is_some() && has(OtherApi::FoundationDb) {
        return Err(Failure::Usage("--max is not supported for a FoundationDBCluster".to_owned()));
    }
    let omissions = inventory.impact_omissions(arguments.state.assume_complete);
    // With remaining objects, the caller reports it for the same dump.
    let omissions = if has(OtherApi::Patch) && report.remaining == 0 {
        arguments.report_dump_omissions(omissions, &mut report.tally, console)
    } else {
        omissions.messages()
    };
    let now = &arguments.clock.now();
    let assessed = OtherApiAssessment { arguments, state: &state, omissions: &omissions, now };
    for (api, object) in subjects {
        report.reported += 1;
        for profile in arguments.release.profiles()? {
            let denials = denials("upstream,documented,decoding,strict", object, profile, now);
            if !denials.is_empty() {
                report.tally.denied += denials.len();
                let name = object.get("metadata").get("name").str();
                print_denials(console, profile.name, name, &denials);
                continue;
            }
            match api {
                OtherApi::Patch => {
                    let exceeded =
                        assessed.report_patch_and_count_exceeded_limits(object, profile, console)?;
                    report.tally.denied += exceeded;
                }
                // The operator does not depend on the release.
                OtherApi::FoundationDb => {
                    assessed.report_foundationdb_process_replacements(object, console)?;
                    break;
                }
            }
        }
    }
    Ok(report)
}

fn parse_documents(texts: &[(String, String)]) -> Result<Vec<Document<'_>>, Failure> {
    let mut found = Vec::new();
    for (name, text) in texts {
        let lines = LineIndex::from_text(text);
        for document in documents(text).with_max_size(usize::MAX) {
            found.push(document.map_err(|fault| fault.input_error(name, &lines))?);
        }
    }
    Ok(found)
}

/// Returns the objects in the documents; those in lists one by one.
fn listed_objects<'d>(documents: &'d [Document<'_>]) -> Vec<DocumentObject<'d>> {
    documents.iter().flat_map(|document| list::objects(document.doc.root())).collect()
}
