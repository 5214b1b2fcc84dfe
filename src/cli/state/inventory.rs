//! Which kinds a dump contains, and which are missing: the impact on an incomplete dump would look like "no impact".
//!
//! A `List` of kubectl does not say which kinds were requested, so a kind without objects may have none in the cluster
//! or may not have been dumped. A typed list (`ResourceClaimList`) says so, even if it is empty.

use std::collections::BTreeMap;

use super::RecordedServer;
use crate::cli::console::Console;
use crate::cli::outcome::ExitCounts;
use tollgate_api::profile::Profile;
use tollgate_document::doc::{Value, ValueKind as NodeKind};
use tollgate_document::source::list;
use tollgate_engine::impact::SnapshotKind;
use tollgate_forecast::ObjectKind;

/// A dump without objects of one of these kinds is reported as incomplete, because without them nothing would be
/// evicted.
const REQUIRED_KINDS: [(SnapshotKind, &str); 3] = [
    (SnapshotKind::Slice, "ResourceSlices"),
    (SnapshotKind::Claim, "ResourceClaims"),
    (SnapshotKind::Pod, "Pods"),
];

/// The parts and kinds of objects that a dump lacks, as messages.
#[derive(Clone, Debug, Default)]
pub(in crate::cli) struct DumpOmissions {
    /// Files and lists that are certainly incomplete.
    pub(in crate::cli) parts: Vec<String>,
    /// Message about kinds without objects. The cluster may have none either; `--assume-complete` says so.
    pub(in crate::cli) kinds: Option<String>,
}

/// Texts that a command appends to messages about kinds that a dump lacks.
#[derive(Clone, Copy, Debug)]
pub(in crate::cli) struct OmissionMessageSuffixes<'a> {
    /// End of a note: the consequence.
    pub(in crate::cli) note: &'a str,
    /// End of an error: what to do.
    pub(in crate::cli) hint: &'a str,
}

impl DumpOmissions {
    /// Returns all messages.
    pub(in crate::cli) fn messages(self) -> Vec<String> {
        self.parts.into_iter().chain(self.kinds).collect()
    }

    /// Prints what is missing, and returns the messages. Truncated parts are errors. A kind without objects is a
    /// note, because the cluster may have none; but an error if `limited`, because `--max` must not pass
    /// unchecked.
    pub(in crate::cli) fn print_as_note_or_error_and_collect(
        self,
        limited: bool,
        texts: OmissionMessageSuffixes<'_>,
        tally: &mut ExitCounts,
        console: &mut Console,
    ) -> Vec<String> {
        let (is_certain, lacks_kinds) = (!self.parts.is_empty(), self.kinds.is_some());
        let messages = self.messages();
        if messages.is_empty() {
            return messages;
        }
        let what = messages.join("; ");
        if !limited && !is_certain {
            console.note(&format!("{what}{}", texts.note));
            return messages;
        }
        tally.unreadable += 1;
        // A list that was cut off stays so, whatever is assumed.
        let hint = if lacks_kinds { texts.hint } else { "" };
        let error = if limited {
            format!("cannot check --max: {what}{hint}")
        } else {
            format!("the dump is incomplete: {what}")
        };
        console.error(&error);
        messages
    }
}

/// The kinds of objects, server and release that the files of a dump contain, without the objects.
#[derive(Debug, Default)]
pub(in crate::cli) struct DumpInventory {
    kinds: Vec<SnapshotKind>,
    has_objects: bool,
    /// Kinds with objects in the dump, of those that forecasts read.
    pub(in crate::cli) object_kinds: Vec<ObjectKind>,
    /// Kinds with a typed list in the dump, which can be empty.
    pub(in crate::cli) listed_kinds: Vec<ObjectKind>,
    /// Messages about truncated lists, each with its kind; a plain `List` has no kind.
    cut_lists: Vec<(Option<ObjectKind>, String)>,
    /// Kinds of workloads whose list is truncated before its first item, as snapshots record a kind that the user may
    /// not list, each with a message.
    pub(in crate::cli) unread_workload_kinds: Vec<(ObjectKind, String)>,
    omissions: Vec<String>,
    /// The values in the headers of its files, by their names: release, cluster and time.
    header: BTreeMap<String, Vec<String>>,
    /// API servers that its files record.
    servers: Vec<RecordedServer>,
}

/// Returns the message that a dump contains nothing of these kinds, such as `Nodes`; `None` if there are no
/// kinds.
pub(in crate::cli) fn format_missing_kinds(kinds: &[String]) -> Option<String> {
    let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
    (!kinds.is_empty()).then(|| format!("the dump contains no {}", join_with_or(&kinds)))
}

impl DumpInventory {
    /// Records the kinds in one document of a dump, and truncated lists that impact reads.
    pub(in crate::cli) fn add_document(&mut self, file: &str, root: Value<'_>) {
        for list in list::all_lists(root) {
            push_if_new(&mut self.kinds, typed_list_kind(list, SnapshotKind::from_type_meta));
        }
        for omission in truncated_list_messages(file, root, is_list_read_by_impact) {
            push_if_new(&mut self.omissions, Some(omission));
        }
        for item in list::objects(root).filter(|item| item.value_as_written().kind() == NodeKind::Object) {
            let (version, kind) = item.api_version_and_kind();
            let snapshot_kind = SnapshotKind::from_type_meta(version, kind);
            self.has_objects |= snapshot_kind.is_some_and(|kind| kind != SnapshotKind::Class);
            push_if_new(&mut self.kinds, snapshot_kind);
            push_if_new(&mut self.object_kinds, ObjectKind::from_type_meta(version, kind));
        }
    }

    /// Records the lists in one document of a dump whose objects are all read. A typed list says that its kind
    /// was dumped, even if it is empty.
    pub(in crate::cli) fn add_typed_and_truncated_lists(&mut self, file: &str, root: Value<'_>) {
        for kind in list::all_lists(root)
            .into_iter()
            .filter_map(|list| typed_list_kind(list, ObjectKind::from_type_meta))
        {
            self.add_object_kind(kind);
            self.listed_kinds.push(kind);
        }
        for cut in list::all_lists(root).into_iter().filter(|list| is_truncated(*list)) {
            let (version, name) = (cut.get("apiVersion").str(), cut.get("kind").str());
            let kind = name.strip_suffix("List").and_then(|kind| ObjectKind::from_type_meta(version, kind));
            if let Some(kind) = kind.filter(|kind| kind.is_workload() && cut.get("items").is_empty()) {
                self.unread_workload_kinds.push((kind, incomplete_message(file, cut)));
            }
            // A plain `List` may contain anything.
            if kind.is_some() || name == "List" {
                self.cut_lists.push((kind, incomplete_message(file, cut)));
            }
        }
    }

    /// Records that the dump has an object or a list of a kind.
    pub(in crate::cli) fn add_object_kind(&mut self, kind: ObjectKind) {
        push_if_new(&mut self.object_kinds, Some(kind));
    }

    /// Returns a message that names those of the wanted kinds that the dump does not contain; `None` if it contains
    /// all of them.
    pub(in crate::cli) fn missing_object_kinds_message(&self, wanted: &[ObjectKind]) -> Option<String> {
        let missing = wanted.iter().filter(|kind| !self.object_kinds.contains(kind));
        let missing: Vec<String> = missing.map(|kind| kind.plural()).collect();
        format_missing_kinds(&missing)
    }

    /// Returns messages about empty files and about truncated lists of these kinds.
    pub(in crate::cli) fn incomplete_parts_for_kinds(&self, kinds: &[ObjectKind]) -> Vec<String> {
        let cut = self.cut_lists.iter().filter(|(kind, _)| kind.is_none_or(|kind| kinds.contains(&kind)));
        let mut parts = self.omissions.clone();
        cut.for_each(|(_, message)| push_if_new(&mut parts, Some(message.clone())));
        parts
    }

    /// Returns messages about empty files, and about truncated lists except for kinds of workloads that could not be
    /// read.
    pub(in crate::cli) fn incomplete_parts(&self) -> Vec<String> {
        let is_unread =
            |kind: &ObjectKind| self.unread_workload_kinds.iter().any(|(unread, _)| unread == kind);
        let kinds: Vec<ObjectKind> = ObjectKind::ALL.into_iter().filter(|kind| !is_unread(kind)).collect();
        self.incomplete_parts_for_kinds(&kinds)
    }

    /// Reads the header of a dump of `tollgate snapshot`: release, cluster and time in comments, and the record
    /// of the API server.
    pub(in crate::cli) fn add_header(&mut self, text: &str) {
        self.servers.extend(RecordedServer::find(text).filter(|server| !self.servers.contains(server)));
        for line in text.lines().take_while(|line| line.starts_with('#')) {
            let Some((name, value)) = line.strip_prefix("# ").and_then(|line| line.split_once(": ")) else {
                continue;
            };
            if ["kubernetes", "cluster", "time"].contains(&name) {
                push_if_new(self.header.entry(name.to_owned()).or_default(), Some(value.trim().to_owned()));
            }
        }
    }

    /// Returns context and address of the cluster that the dump names; `None` if it names none or several.
    pub(in crate::cli) fn cluster_if_unique(&self) -> Option<&str> {
        only_value(self.header.get("cluster")?).map(String::as_str)
    }

    /// Returns when the cluster was read, if the dump says so; of several times the earliest.
    pub(in crate::cli) fn earliest_snapshot_time(&self) -> Option<&str> {
        self.header.get("time")?.iter().min().map(String::as_str)
    }

    /// Returns the release of the cluster, such as `1.37`; `None` if the dump names none or several.
    fn release_if_unique(&self) -> Option<&str> {
        only_value(self.header.get("kubernetes")?).map(String::as_str)
    }

    /// Returns the release of the cluster, as the record of its API server says, or else as the headers say.
    pub(in crate::cli) fn release(&self) -> Option<&str> {
        let recorded = self.recorded_server_if_unique().map(|server| server.release.as_str());
        recorded.or(self.release_if_unique())
    }

    /// Sets the release that the user gives. Fails with the release that the dump records, if that is another one.
    pub(in crate::cli) fn set_release_if_unknown(&mut self, release: &Profile) -> Result<(), String> {
        let Some(known) = self.release() else {
            self.header.insert("kubernetes".to_owned(), vec![release.name.to_owned()]);
            return Ok(());
        };
        match Profile::from_name_or_version(known) {
            Some(profile) if profile.is_same_minor_release(release) => Ok(()),
            _ => Err(known.to_owned()),
        }
    }

    /// Returns the API server that the dump records; `None` if it records none or several.
    pub(in crate::cli) fn recorded_server_if_unique(&self) -> Option<&RecordedServer> {
        only_value(&self.servers)
    }

    /// Records that a file is empty, as after a command that failed.
    pub(in crate::cli) fn add_empty_file(&mut self, file: &str) {
        self.omissions.push(format!("{file} is empty"));
    }

    /// True if the dump has objects that impact reads, or empty lists of all required kinds. Classes alone do not
    /// count.
    pub(in crate::cli) fn has_impact_objects_or_empty_lists(&self) -> bool {
        self.has_objects || REQUIRED_KINDS.iter().all(|(kind, _)| self.kinds.contains(kind))
    }

    /// Returns what the dump lacks for an impact. With `assume_complete`, a kind without objects does not count
    /// as missing.
    pub(in crate::cli) fn impact_omissions(self, assume_complete: bool) -> DumpOmissions {
        let missing = REQUIRED_KINDS.into_iter().filter(|(kind, _)| !self.kinds.contains(kind));
        let missing: Vec<String> = missing.map(|(_, name)| name.to_owned()).collect();
        let kinds = format_missing_kinds(&missing).filter(|_| !assume_complete);
        DumpOmissions { parts: self.omissions, kinds }
    }
}

/// Returns the kind of the items of a typed list; `None` for a plain `List`, and for kinds that `find` does not know.
fn typed_list_kind<K>(list: Value<'_>, find: fn(&str, &str) -> Option<K>) -> Option<K> {
    let kind = list::last_member(list, "kind").str().strip_suffix("List")?;
    find(list::last_member(list, "apiVersion").str(), kind)
}

fn push_if_new<T: PartialEq>(known: &mut Vec<T>, new: Option<T>) {
    known.extend(new.filter(|new| !known.contains(new)));
}

fn only_value<T>(values: &[T]) -> Option<&T> {
    match values {
        [only] => Some(only),
        _ => None,
    }
}

/// Returns the names as an enumeration: `ResourceSlices, ResourceClaims or Pods`.
pub(in crate::cli) fn join_with_or(names: &[&str]) -> String {
    match names {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        _ => names.concat(),
    }
}

/// True for a list that may contain what impact reads, by its apiVersion and kind. A plain `List` may contain anything.
fn is_list_read_by_impact(version: &str, kind: &str) -> bool {
    // Impact does not depend on namespaces, and rarely on classes.
    let is_read = |kind| {
        SnapshotKind::from_type_meta(version, kind)
            .is_some_and(|kind| !matches!(kind, SnapshotKind::Namespace | SnapshotKind::Class))
    };
    kind == "List" || kind.strip_suffix("List").is_none_or(is_read)
}

/// Returns a message for each truncated list of a document, of the types for which `is_needed` is true.
pub(in crate::cli) fn truncated_list_messages(
    file: &str,
    root: Value<'_>,
    is_needed: fn(&str, &str) -> bool,
) -> impl Iterator<Item = String> {
    let is_needed = move |list: &Value<'_>| {
        is_needed(list.get("apiVersion").str(), list.get("kind").str()) && is_truncated(*list)
    };
    list::all_lists(root).into_iter().filter(is_needed).map(move |list| incomplete_message(file, list))
}

/// True if a list is truncated: the API server has more items.
fn is_truncated(list: Value<'_>) -> bool {
    let metadata = list.get("metadata");
    let remaining = metadata.get("remainingItemCount").int();
    !metadata.get("continue").str().is_empty() || remaining.is_some_and(|count| count != 0)
}

fn incomplete_message(file: &str, list: Value<'_>) -> String {
    format!("{file} contains an incomplete {}", list.get("kind").str())
}

#[cfg(test)]
mod tests {
    use super::DumpInventory;
    use tollgate_document::doc;

    fn omissions(texts: &[&str], assume_complete: bool) -> Vec<String> {
        let mut inventory = DumpInventory::default();
        for text in texts {
            inventory.add_document("dump", doc::parse(text).expect("JSON").root());
        }
        inventory.impact_omissions(assume_complete).messages()
    }

    #[test]
    fn the_header_of_a_snapshot_says_the_release() {
        let found = |texts: &[&str]| {
            let mut inventory = DumpInventory::default();
            for text in texts {
                inventory.add_header(text);
            }
            inventory.release_if_unique().map(str::to_owned)
        };
        let header = "# a snapshot\n# kubernetes: 1.37\n---\nkind: PodList\n";
        assert_eq!(found(&[header, "kind: PodList", header]).as_deref(), Some("1.37"));
        assert_eq!(found(&["kind: PodList\n# kubernetes: 1.37\n"]), None, "not in the header");
        assert_eq!(found(&[header, "# kubernetes: 1.36\n"]), None, "not one cluster");
    }

    #[test]
    fn a_dump_says_what_it_does_not_contain() {
        let pod = r#"{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Pod"}]}"#;
        assert_eq!(omissions(&[pod], false), ["the dump contains no ResourceSlices or ResourceClaims"]);
        assert!(omissions(&[pod], true).is_empty());
        let typed =
            |kind: &str| format!(r#"{{"apiVersion":"resource.k8s.io/v1","kind":"{kind}List","items":[]}}"#);
        let (slices, claims) = (typed("ResourceSlice"), typed("ResourceClaim"));
        assert!(omissions(&[pod, &slices, &claims], false).is_empty(), "an empty list names its kind");
        let page = r#"{"apiVersion":"v1","kind":"PodList","metadata":{"continue":"x"},"items":[]}"#;
        assert_eq!(omissions(&[page], true), ["dump contains an incomplete PodList"]);
        let mut empty = DumpInventory::default();
        empty.add_empty_file("dump");
        assert_eq!(empty.impact_omissions(true).messages(), ["dump is empty"]);
    }
}
