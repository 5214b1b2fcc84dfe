//! The objects of one kind as lists of some objects each, in YAML or JSON.
//!
//! Invariant: what is written reads as complete documents, whatever was listed, and a list that is not complete says so
//! with a `continue` token, as a page of the API server does.

use std::fmt::Write as _;

use super::fields::{OptionalFields, keep_needed_fields};
use crate::cli::mutate::print;
use crate::cluster::ListedKind;
use tollgate_document::doc::Value;
use tollgate_formats::{gofmt, sanitize};

/// Number of objects per document. Readers keep one document in memory at a time.
const OBJECTS_PER_DOCUMENT: usize = 100;

/// The format of a snapshot.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(super) enum Format {
    /// Documents with comments.
    Yaml,
    /// JSON documents, one after the other. They are read faster.
    Json,
}

/// Writes the objects of one kind as lists, so that each object does not repeat its type.
pub(super) struct ListWriter<'k> {
    kind: &'k ListedKind,
    format: Format,
    /// Number of objects written so far.
    pub(super) count: usize,
    api_version: String,
}

impl<'k> ListWriter<'k> {
    pub(super) fn new(kind: &'k ListedKind, format: Format) -> ListWriter<'k> {
        ListWriter { kind, format, count: 0, api_version: String::new() }
    }

    /// Appends an object, and before it the beginning of a new list if the last one is full.
    pub(super) fn append_object(
        &mut self,
        out: &mut String,
        api_version: &str,
        object: Value<'_>,
        projection: OptionalFields<'_>,
    ) {
        let is_first = self.count.is_multiple_of(OBJECTS_PER_DOCUMENT);
        if is_first {
            self.end_list(out);
            api_version.clone_into(&mut self.api_version);
            self.begin_list(out, "");
        }
        self.count += 1;
        let kept = keep_needed_fields(self.kind, object, projection);
        match self.format {
            // An item of a list: two columns to the right, with a dash in front of the first line.
            Format::Yaml => {
                out.push_str(if is_first { "items:\n" } else { "" });
                for (index, line) in print::to_block_yaml(kept.root()).lines().enumerate() {
                    out.push_str(if index == 0 { "- " } else { "  " });
                    out.push_str(line);
                    out.push('\n');
                }
            }
            Format::Json => {
                out.push_str(if is_first { ",\"items\":[\n" } else { ",\n" });
                out.push_str(&kept.root().to_json());
            }
        }
    }

    /// Writes the type and the metadata of a list, without its items. `metadata` is the `continue` token.
    fn begin_list(&self, out: &mut String, metadata: &str) {
        let (api_version, kind) = (&self.api_version, self.kind.kind);
        match self.format {
            Format::Yaml => {
                _ = write!(out, "---\napiVersion: {api_version}\nkind: {kind}List\n");
                if !metadata.is_empty() {
                    _ = writeln!(out, "metadata: {{continue: {metadata}}}");
                }
            }
            Format::Json => {
                _ = write!(out, "{{\"apiVersion\":\"{api_version}\",\"kind\":\"{kind}List\"");
                if !metadata.is_empty() {
                    _ = write!(out, ",\"metadata\":{{\"continue\":\"{metadata}\"}}");
                }
            }
        }
    }

    /// Writes the end of the list that contains the objects so far. YAML needs none.
    fn end_list(&self, out: &mut String) {
        if self.format == Format::Json && self.count > 0 {
            out.push_str("\n]}\n");
        }
    }

    /// Ends the last list of the kind. If there were no objects, writes an empty list in the apiVersion `listed`,
    /// which says that the cluster has none.
    pub(super) fn end_lists_or_write_empty_list(&mut self, out: &mut String, listed: Option<&str>) {
        self.end_list(out);
        if let Some(api_version) = listed.filter(|_| self.count == 0) {
            api_version.clone_into(&mut self.api_version);
            self.begin_list(out, "");
            out.push_str(match self.format {
                Format::Yaml => "items: []\n",
                Format::Json => ",\"items\":[]}\n",
            });
        }
    }

    /// Writes an empty list with a `continue` token, which tells every reader that the list is not complete. Comes
    /// after the end of the lists.
    pub(super) fn mark_incomplete(&mut self, out: &mut String, why: &str) {
        if self.count == 0 {
            let version = self.kind.versions.first().copied().unwrap_or_default();
            self.api_version = self.kind.api_version(version);
        }
        self.begin_list(out, "incomplete");
        match self.format {
            Format::Yaml => _ = writeln!(out, "items: []\n# {}", sanitize::sanitize_as_line(why)),
            Format::Json => {
                out.push_str(",\"items\":[],\"incomplete\":");
                gofmt::push_json_string(out, why);
                out.push_str("}\n");
            }
        }
    }
}
