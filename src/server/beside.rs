//! What runs beside the server and has a say in it: told in `/readyz` and `/metrics`, never asked during a request.
//!
//! The server does not know what it is (a registration, a watched cluster); whoever starts both brings them together.

use std::fmt::Write as _;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::engine::OwnedLabels;

/// Whether the server answers: true from when both ports do until the drain begins. Clones are the same switch.
#[derive(Clone, Debug, Default)]
pub struct Serving(Arc<AtomicBool>);

impl Serving {
    /// It answers.
    pub fn is_on(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    pub(super) fn set(&self, on: bool) {
        self.0.store(on, Ordering::Release);
    }
}

/// Everything that runs beside the server.
#[derive(Clone, Debug, Default)]
pub struct Company {
    /// What is told of.
    pub jobs: Vec<Job>,
    /// Who knows the labels of namespaces; without it they are what was loaded with the policies.
    pub namespaces: Option<Arc<dyn NamespaceSource>>,
}

/// What is known of a namespace.
#[derive(Clone, Debug)]
pub enum Found {
    /// Its labels.
    Known(OwnedLabels),
    /// Nothing yet; it can be asked for.
    Missing,
    /// Nothing.
    Unknown,
}

/// The answer to [`NamespaceSource::ask`].
pub type Answer = Pin<Box<dyn Future<Output = Result<OwnedLabels, String>> + Send>>;

/// Somebody who knows the labels of namespaces.
pub trait NamespaceSource: std::fmt::Debug + Send + Sync {
    /// Some policy asks for labels.
    fn need(&self);
    /// What is known now; nobody waits for anything.
    fn labels(&self, namespace: &str) -> Found;
    /// How old that is, in seconds, if it may have changed since.
    fn age(&self) -> Option<u64>;
    /// Asks for one that is missing.
    fn ask(&self, namespace: &str) -> Answer;
}

/// One thing that runs beside the server.
#[derive(Clone)]
pub struct Job {
    /// Its name in `/readyz?verbose`.
    pub name: &'static str,
    /// How it stands now.
    pub look: Arc<dyn Fn() -> Report + Send + Sync>,
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Job").field("name", &self.name).finish_non_exhaustive()
    }
}

/// How a job stands.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// The server may say that it is ready.
    pub ready: bool,
    /// Something is wrong that does not keep the server from answering: shown by `/readyz?verbose`, not in its status.
    pub degraded: bool,
    /// For people.
    pub says: String,
    /// For `/metrics`.
    pub samples: Vec<Sample>,
}

/// One number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sample {
    /// Without `tollgate_`; a counter's ends in `_total`.
    pub name: &'static str,
    /// What it counts.
    pub help: &'static str,
    /// Label and value; both have a fixed set.
    pub label: Option<(&'static str, &'static str)>,
    /// The number.
    pub value: i64,
}

/// Puts the samples before the end of a text of metrics.
pub(super) fn append(text: &mut String, mut samples: Vec<Sample>) {
    if samples.is_empty() {
        return;
    }
    let end = text.trim_end().strip_suffix("# EOF").map_or(text.len(), str::len);
    text.truncate(end);
    // The samples of one metric stand together, whoever told them.
    samples.sort_by_key(|sample| sample.name);
    let mut last = "";
    for Sample { name, help, label, value } in samples {
        let family = name.strip_suffix("_total").unwrap_or(name);
        // A `String` takes everything.
        if name != last {
            let kind = if family == name { "gauge" } else { "counter" };
            let _ = write!(text, "# HELP tollgate_{family} {help}.\n# TYPE tollgate_{family} {kind}\n");
            last = name;
        }
        let _ = match label {
            Some((label, of)) => writeln!(text, "tollgate_{name}{{{label}=\"{of}\"}} {value}"),
            None => writeln!(text, "tollgate_{name} {value}"),
        };
    }
    text.push_str("# EOF\n");
}

#[cfg(test)]
mod tests {
    use super::{Sample, append};

    #[test]
    fn samples_stand_together_before_the_end() {
        let sample = |name, of, value| Sample { name, help: "How often", label: Some(("of", of)), value };
        let mut text = "a 1\n# EOF\n".to_owned();
        append(&mut text, vec![sample("b_total", "x", 1), sample("c", "x", 2), sample("b_total", "y", 3)]);
        let expected = "a 1\n# HELP tollgate_b How often.\n# TYPE tollgate_b counter\ntollgate_b_total{of=\"x\"} 1\n\
            tollgate_b_total{of=\"y\"} 3\n# HELP tollgate_c How often.\n# TYPE tollgate_c gauge\ntollgate_c{of=\"x\"} 2\n# EOF\n";
        assert_eq!(text, expected);
        let before = text.clone();
        append(&mut text, Vec::new());
        assert_eq!(text, before);
    }
}
