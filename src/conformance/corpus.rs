//! The shipped cases: objects to create, compiled into the program.
//!
//! They are the creates of `tests/conformance`; `tests/engine/shipped.rs` derives them and says what is left out:
//! updates, which need a stored object, and whatever ever made an API server panic, or could.

use std::io::Read as _;

use flate2::read::GzDecoder;

use tollgate_api::profile::{ApiKind, Profile, Version};
use tollgate_document::doc::{self, Value};
use tollgate_engine::engine::{TypeClassification, classify_type};

/// A part of the conformance cases that are compiled into the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CorpusSet {
    /// Cases that were written by hand, each for a topic.
    Corpus,
    /// Generated cases with random mistakes and expressions.
    Generated,
}

impl CorpusSet {
    /// Decompresses the cases: a line about what is left out, then one JSON object per line and case.
    pub fn to_jsonl(self) -> Result<String, String> {
        let compressed: &[u8] = match self {
            CorpusSet::Corpus => include_bytes!("corpus.jsonl.gz"),
            CorpusSet::Generated => include_bytes!("generated.jsonl.gz"),
        };
        let mut text = String::new();
        let read = GzDecoder::new(compressed).read_to_string(&mut text);
        read.map(|_| text).map_err(|error| format!("cannot read the bundled cases: {error}"))
    }
}

/// An object to create on an API server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Case {
    pub id: String,
    pub kind: ApiKind,
    pub version: Version,
    /// The object as JSON, as it is sent.
    pub object: String,
}

/// The cases to compare, and the number of those that were left out.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Corpus {
    pub cases: Vec<Case>,
    /// Number of updates, which are left out because they need a stored object.
    pub updates: usize,
    /// Number of objects that are left out because they could make an API server panic.
    pub dangerous: usize,
}

impl Corpus {
    /// Reads the cases of these sets. Namespaced objects are moved to `namespace`.
    pub fn read(sets: &[CorpusSet], namespace: &str) -> Result<Corpus, String> {
        let mut corpus = Corpus::default();
        for set in sets {
            corpus.add_jsonl(&set.to_jsonl()?, namespace).ok_or("cannot read the bundled cases")?;
        }
        Ok(corpus)
    }

    /// Adds the cases of a text: a line with their number, then one case on each line. Objects that have a namespace are
    /// moved to `namespace`. `None` if the text cannot be parsed.
    fn add_jsonl(&mut self, text: &str, namespace: &str) -> Option<()> {
        let (head, cases) = text.split_once('\n')?;
        let head = doc::parse(head).ok()?;
        let count = |name: &str| head.root().get(name).int().and_then(|count| usize::try_from(count).ok());
        self.updates += count("updates")?;
        self.dangerous += count("dangerous")?;
        for line in cases.lines() {
            let line = doc::parse(line).ok()?;
            let (id, object) = (line.root().get("id").str(), line.root().get("object").str());
            let (kind, version) = dra_kind_and_version_in_a_release(doc::parse(object).ok()?.root())?;
            let object = if kind.is_namespaced() {
                replace_namespace_if_set(object, namespace)?
            } else {
                object.to_owned()
            };
            self.cases.push(Case { id: id.to_owned(), kind, version, object });
        }
        Some(())
    }
}

/// Returns the kind and version of an object of `resource.k8s.io`; `None` for other groups, and if no release serves
/// them.
pub fn dra_kind_and_version_in_a_release(object: Value<'_>) -> Option<(ApiKind, Version)> {
    let TypeClassification::Ours { api_version, kind } = classify_type(object) else { return None };
    let (group, version) = api_version.rsplit_once('/')?;
    let (kind, version) = (ApiKind::from_group_and_name(group, kind)?, Version::parse(version)?);
    let serves = |profile: &&Profile| profile.is_release && profile.versions(kind).contains(&version);
    (kind.only_version_if_profile_independent().is_none() && Profile::ALL.iter().any(serves))
        .then_some((kind, version))
}

/// Returns an object (JSON) with its namespace replaced, if it names one, because it must be that of the request.
/// `None` if it cannot be parsed.
fn replace_namespace_if_set(object: &str, namespace: &str) -> Option<String> {
    let document = doc::parse(object).ok()?;
    let named = document.root().get("metadata").get("namespace");
    if named.str().is_empty() {
        return Some(object.to_owned());
    }
    let (start, end) = (named.span().start as usize, named.span().end as usize);
    Some([object.get(..start)?, "\"", namespace, "\"", object.get(end..)?].concat())
}

#[cfg(test)]
mod tests {
    use super::{ApiKind, Corpus, CorpusSet, Version, doc, replace_namespace_if_set};

    #[test]
    fn every_shipped_case_has_an_address() {
        let corpus = Corpus::read(&[CorpusSet::Corpus], "team").expect("cases");
        assert!(corpus.cases.len() > 1_400 && corpus.updates > 200 && corpus.dangerous > 0);
        let has =
            |kind, version| corpus.cases.iter().any(|case| case.kind == kind && case.version == version);
        assert!(has(ApiKind::DeviceTaintRule, Version::V1) && has(ApiKind::ResourceSlice, Version::V1beta1));
        let all = Corpus::read(&[CorpusSet::Corpus, CorpusSet::Generated], "team").expect("cases");
        assert!(all.cases.len() > corpus.cases.len() + 10_000 && all.updates > corpus.updates);
        for case in all.cases.iter().filter(|case| case.kind.is_namespaced()) {
            let object = doc::parse(&case.object).expect("JSON");
            let namespace = object.root().get("metadata").get("namespace").str();
            assert!(["", "team"].contains(&namespace), "{}: {namespace}", case.id);
        }
    }

    #[test]
    fn only_the_namespace_changes() {
        for (object, expected) in [
            (
                r#"{"metadata": {"namespace" : "a", "name": "a"}}"#,
                r#"{"metadata": {"namespace" : "team", "name": "a"}}"#,
            ),
            (r#"{"metadata":{"name":"a"}}"#, r#"{"metadata":{"name":"a"}}"#),
            (r#"{"metadata":{"namespace":7}}"#, r#"{"metadata":{"namespace":7}}"#),
            (r#"{"metadata":null}"#, r#"{"metadata":null}"#),
        ] {
            assert_eq!(replace_namespace_if_set(object, "team").as_deref(), Some(expected));
        }
    }
}
