//! `tollgate mutate`: the objects with defaults filled in, as the user wrote them plus what is missing.
//!
//! Comments, order and layout stay: what is filled in is written into the text. The whole object is printed anew
//! only where that cannot be done. What does not decode stays as it is, with a note; `validate` says why.

mod diff;
mod print;
mod rewrite;

use std::io::Write as _;
use std::path::PathBuf;

use super::clock;
use super::console::Console;
use super::namespaces;
use super::outcome::{Failure, Tally};
use super::shared::{Shared, Standard};
use super::validate::inputs;
use crate::defaults::Edit;
use crate::engine::{
    Attributes, Engine, Judgement, Labels, NamespaceLookup as _, Namespaces, parse_rules, patch,
};
use crate::files::{self, Input, MAX_FILE};
use crate::finding::Finding;
use crate::sanitize;
use crate::source::list::{self, Item};
use crate::source::{Document, InputError, Lines, documents};

/// Print manifests with the defaults filled in
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Files, folders (searched for .yaml, .yml and .json), or `-` for stdin
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// Print a JSON Patch per object, one per line, instead of the objects
    #[arg(long)]
    patch: bool,

    /// Print a unified diff instead of the objects
    #[arg(long, conflicts_with = "patch")]
    diff: bool,

    /// Files larger than this many bytes are refused unread
    #[arg(long, value_name = "BYTES", env = "TOLLGATE_MAX_FILE", default_value_t = MAX_FILE)]
    max_file: u64,

    /// Namespace objects (YAML or JSON); a namespace that is not listed has no labels
    #[arg(long, value_name = "FILE", env = "TOLLGATE_NAMESPACES")]
    namespaces: Option<PathBuf>,

    /// The moment to use as the present one, RFC 3339
    #[arg(long, value_name = "TIME", value_parser = clock::parse)]
    now: Option<String>,
}

impl Arguments {
    pub(super) fn run(&self, shared: &Shared, console: &mut Console) -> Result<Tally, Failure> {
        let found = files::collect(&inputs(&self.paths)?);
        let rules = parse_rules("decoding").map_err(Failure::Usage)?;
        let decoding = shared.engine(Standard::Offline)?.with_rules(rules);
        let given = self.namespaces.as_deref().map(namespaces::read).transpose()?;
        let among = || namespaces::among(found.inputs.iter());
        let namespaces = given.or_else(|| decoding.policies.needs_labels().then(among).flatten());
        let now = clock::moment(self.now.as_ref());
        let mut desk = Desk {
            arguments: self,
            engine: decoding,
            namespaces,
            now,
            console,
            tally: Tally::default(),
            printed: false,
        };
        if let Some(note) = found.note() {
            desk.console.note(&note);
        }
        for error in &found.errors {
            desk.unreadable(error);
        }
        for input in &found.inputs {
            desk.file(input)?;
        }
        Ok(desk.tally)
    }
}

struct Desk<'r> {
    arguments: &'r Arguments,
    engine: Engine,
    namespaces: Option<Namespaces>,
    now: String,
    console: &'r mut Console,
    tally: Tally,
    /// Something was printed before.
    printed: bool,
}

/// What is to be done to one document.
struct Filled<'a> {
    document: Document<'a>,
    /// Edits with paths from the document's root, item by item.
    edits: Vec<Edit>,
}

impl Desk<'_> {
    fn file(&mut self, input: &Input) -> Result<(), Failure> {
        let name = input.name();
        let text = match files::read(input, self.arguments.max_file) {
            Ok(text) => text,
            Err(error) => {
                self.unreadable(&error);
                return Ok(());
            }
        };
        let lines = Lines::of(&text);
        let mut all = Vec::new();
        let mut broken = false;
        for document in documents(&text) {
            match document {
                Err(fault) => {
                    broken = true;
                    self.unreadable(&fault.input_error(&name, &lines));
                }
                Ok(document) => {
                    if let Some(error) = document.not_an_object(&name, &lines) {
                        broken = true;
                        self.unreadable(&error);
                    } else {
                        all.push(self.fill(&name, &lines, document)?);
                    }
                }
            }
        }
        // Half a file would look like a whole one.
        if broken || self.arguments.patch {
            return Ok(());
        }
        let filled = rewrite::file(&text, &all);
        if self.arguments.diff {
            let diff = diff::unified(&sanitize::line(&name), &text, &filled);
            return Ok(self.console.pass_on(&diff)?);
        }
        self.print(&text, &filled)
    }

    fn print(&mut self, text: &str, filled: &str) -> Result<(), Failure> {
        let json = text.trim_start().starts_with('{');
        let opened = filled.trim_start().starts_with("---");
        if std::mem::replace(&mut self.printed, true) && !json && !opened {
            self.console.write_all(b"---\n")?;
        }
        self.console.pass_on(filled)?;
        if !filled.ends_with('\n') {
            self.console.write_all(b"\n")?;
        }
        Ok(())
    }

    fn fill<'a>(
        &mut self,
        name: &str,
        lines: &Lines<'_>,
        document: Document<'a>,
    ) -> Result<Filled<'a>, Failure> {
        let mut edits = Vec::new();
        for item in list::items(document.doc.root()) {
            let admission = Attributes::create(item.value(), "", &self.now);
            let labels = labels_of(&item, self.namespaces.as_ref());
            let judgement = self.engine.validate(&admission, labels);
            for judged in judgement.findings() {
                let at = item.within(judged.finding.at.clone());
                let place = document.place(lines, &at, judged.finding.on_key);
                let (line, column) = (place.line, place.column);
                let name = sanitize::line(name);
                self.console.note(&format!("{name}:{line}:{column}: not filled in: {}", judged.finding));
            }
            let found = self.engine.mutate(&admission, labels).edits;
            for finding in self.engine.undecided_defaults(&admission, labels) {
                self.undecided(name, lines, &document, &item, finding);
            }
            if self.arguments.patch && !matches!(judgement, Judgement::Skipped) {
                writeln!(self.console, "{}", sanitize::json(&patch(&found)))?;
            }
            edits.extend(found.into_iter().map(|edit| Edit { at: item.within(edit.at), ..edit }));
        }
        Ok(Filled { document, edits })
    }

    /// A policy may add tolerations here, and nobody can say whether it does: what is printed is not what a cluster
    /// would store.
    fn undecided(
        &mut self,
        name: &str,
        lines: &Lines<'_>,
        document: &Document<'_>,
        item: &Item<'_>,
        mut finding: Finding,
    ) {
        finding.at = item.within(std::mem::take(&mut finding.at));
        let place = document.place(lines, &finding.at, finding.on_key);
        let (line, column) = (place.line, place.column);
        let how = if finding.rule.0 == "policy-lookup" { "; pass --namespaces FILE" } else { "" };
        self.tally.unreadable += 1;
        self.console
            .complain(&format!("{name}:{line}:{column}: default tolerations not added: {finding}{how}"));
    }

    fn unreadable(&mut self, error: &InputError) {
        self.tally.unreadable += 1;
        self.console.complain(&error.to_string());
    }
}

/// What is known of the labels of an item's namespace.
fn labels_of<'d>(item: &Item<'_>, namespaces: Option<&'d Namespaces>) -> Labels<'d> {
    let namespace = item.value().get("metadata").get("namespace").str();
    let namespace = if namespace.is_empty() { "default" } else { namespace };
    namespaces.map_or(Labels::Unknown, |all| all.labels(namespace))
}
