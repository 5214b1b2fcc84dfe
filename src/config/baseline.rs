//! Baselines: findings that existed before Tollgate was introduced, listed in a file of the repository. They are
//! counted, not reported.
//!
//! A finding is identified by rule, object and field, not by its line. List indexes are ignored, because items come and
//! go; instead, the number of equal findings is compared.
//!
//! Invariant: a baseline contains only lints. The same findings give the same file, sorted, one per line.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::report::{DocumentResult, LocatedFinding};
use tollgate_document::field::{FieldPath, SegmentName};
use tollgate_document::source::{InputError, LineIndex, documents};
use tollgate_engine::policy::{FieldType, ObjectSchema, document_errors, optional_field, required_field};
use tollgate_engine::rules::{self, RuleOrigin, RuleSet};
use tollgate_formats::gofmt::push_json_string;

/// The version of the baseline format, the only one that is written and read.
const FORMAT_VERSION: &str = "tollgate.dev/baseline/v1";
/// Prefix of the version of every baseline, by which baselines are recognized.
const FORMAT_PREFIX: &str = "tollgate.dev/baseline/";
/// Maximum size of a baseline in bytes.
pub(crate) const MAX_BASELINE_BYTES: u64 = 64 << 20;

static BASELINE_SCHEMA: ObjectSchema = ObjectSchema {
    name: "Baseline",
    fields: &[
        required_field("version", FieldType::OneOf(&[FORMAT_VERSION]), "Version of the format"),
        required_field("findings", FieldType::List(&FieldType::Object(&FINDING_SCHEMA)), "Known findings"),
    ],
};

static FINDING_SCHEMA: ObjectSchema = ObjectSchema {
    name: "KnownFinding",
    fields: &[
        required_field("file", FieldType::NonEmptyStr, "File, relative to the baseline"),
        required_field("rule", FieldType::NonEmptyStr, "Rule"),
        optional_field("kind", FieldType::Str, "Kind of the object"),
        optional_field("namespace", FieldType::Str, "Namespace of the object"),
        optional_field("name", FieldType::Str, "Name of the object"),
        optional_field("field", FieldType::Str, "Field, without indexes"),
        optional_field("count", FieldType::Int(1), "Number of findings (default: 1)"),
    ],
};

/// Identifies a finding within its file. The order of the fields is the order of entries in the baseline.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
struct FindingKey {
    kind: String,
    namespace: String,
    name: String,
    field: String,
    rule: String,
}

impl FindingKey {
    fn from_finding(object: &DocumentResult<'_>, located: &LocatedFinding) -> FindingKey {
        FindingKey {
            kind: object.kind.to_owned(),
            namespace: object.namespace.to_owned(),
            name: object.name.to_owned(),
            field: without_indexes(&located.diagnostic.finding.at),
            rule: located.diagnostic.finding.rule.id.to_owned(),
        }
    }
}

/// Number of known occurrences of each finding.
type FindingCounts = BTreeMap<FindingKey, usize>;

/// Accepted findings, as read from a baseline file.
#[derive(Clone, Default, Debug)]
pub(crate) struct Baseline {
    /// The findings of each file.
    files: BTreeMap<String, FindingCounts>,
}

impl Baseline {
    /// True if a new baseline may overwrite this text: it is empty or a baseline, even a broken one, as after a merge.
    pub(crate) fn can_overwrite_text(text: &str) -> bool {
        text.trim_ascii().is_empty() || Baseline::is_baseline(text)
    }

    /// True if the text is a baseline, even a broken one.
    pub(crate) fn is_baseline(text: &str) -> bool {
        text.contains(FORMAT_PREFIX)
    }

    /// Parses a baseline file; `name` is its path in errors.
    pub(crate) fn parse(name: &str, text: &str) -> Result<Baseline, Vec<InputError>> {
        let lines = LineIndex::from_text(text);
        let fault = |at, message: &str| vec![InputError::at(name, &lines, at, message)];
        let document = match documents(text).with_max_size(usize::MAX).next() {
            Some(Ok(document)) => document,
            Some(Err(error)) => return Err(fault(error.at, &error.message)),
            None => return Err(fault(0, "not a baseline: the file is empty")),
        };
        let errors = document_errors(name, &document, &lines, &BASELINE_SCHEMA);
        if !errors.is_empty() {
            return Err(errors);
        }
        let mut baseline = Baseline::default();
        for item in document.doc.root().get("findings").items() {
            let text = |key| item.get(key).str().to_owned();
            let rule = text("rule");
            // A rule that is gone, or is none, finds nothing: the entry is stale. One that is no lint must not be
            // silenced.
            if let Some(known) = rules::find(&rule).filter(|known| known.origin != RuleOrigin::Lint) {
                let origin = known.origin.name();
                let message = format!("a baseline can contain only lints, but {rule} has origin {origin}");
                return Err(fault(document.offset + item.get("rule").span().start as usize, &message));
            }
            let key = FindingKey {
                kind: text("kind"),
                namespace: text("namespace"),
                name: text("name"),
                field: text("field"),
                rule,
            };
            let count = item.get("count").int().and_then(|count| usize::try_from(count).ok()).unwrap_or(1);
            let known = baseline.files.entry(text("file")).or_default().entry(key).or_default();
            *known = known.saturating_add(count);
        }
        Ok(baseline)
    }

    /// Returns the known findings of a file; empty if the baseline does not have it.
    pub(crate) fn known_in_file(&self, file: &str) -> KnownFindings {
        KnownFindings { left: self.files.get(file).cloned().unwrap_or_default(), is_new: false }
    }

    /// Returns the files with known findings, and how many each has.
    pub(crate) fn files_with_counts(&self) -> impl Iterator<Item = (&str, usize)> {
        self.files.iter().map(|(file, counts)| {
            (file.as_str(), counts.values().fold(0_usize, |sum, count| sum.saturating_add(*count)))
        })
    }

    /// Adds the findings of a file.
    pub(crate) fn add_file_findings(&mut self, file: &str, found: KnownFindings) {
        if !found.left.is_empty() {
            self.files.entry(file.to_owned()).or_default().extend(found.left);
        }
    }

    /// Number of findings in all files.
    pub(crate) fn total_finding_count(&self) -> usize {
        self.files_with_counts().fold(0, |sum, (_, count)| sum.saturating_add(count))
    }

    /// Returns the text of the baseline file.
    pub(crate) fn to_yaml(&self) -> String {
        let mut out = format!("{{\"version\": \"{FORMAT_VERSION}\", \"findings\": [");
        let mut separator = "\n";
        for (file, counts) in &self.files {
            for (key, count) in counts {
                out.push_str(separator);
                separator = ",\n";
                let mut lead = "{";
                let fields = [
                    ("file", file),
                    ("kind", &key.kind),
                    ("namespace", &key.namespace),
                    ("name", &key.name),
                    ("field", &key.field),
                    ("rule", &key.rule),
                ];
                for (name, text) in fields.into_iter().filter(|(_, text)| !text.is_empty()) {
                    _ = write!(out, "{lead}\"{name}\": ");
                    push_json_string(&mut out, text);
                    lead = ", ";
                }
                if *count > 1 {
                    _ = write!(out, ", \"count\": {count}");
                }
                out.push('}');
            }
        }
        out.push_str("\n]}\n");
        out
    }
}

/// The known findings of one file that were not found yet; or if a new baseline is written, those found so far.
#[derive(Clone, Default, Debug)]
pub(crate) struct KnownFindings {
    left: FindingCounts,
    is_new: bool,
}

impl KnownFindings {
    /// Findings for a new baseline: [`Self::try_accept`] accepts every lint and records it.
    pub(crate) fn for_new_baseline() -> KnownFindings {
        KnownFindings { left: FindingCounts::new(), is_new: true }
    }

    /// Returns true if the baseline has the finding, and then uses up one occurrence of it; otherwise returns false and
    /// changes nothing. While a new baseline is written, records every lint and returns true. Always returns false for
    /// findings that are not lints.
    pub(super) fn try_accept(&mut self, object: &DocumentResult<'_>, located: &LocatedFinding) -> bool {
        if located.diagnostic.origin != RuleOrigin::Lint || !self.is_new && self.left.is_empty() {
            return false;
        }
        let key = FindingKey::from_finding(object, located);
        if self.is_new {
            *self.left.entry(key).or_default() += 1;
            return true;
        }
        match self.left.get_mut(&key) {
            None => false,
            Some(1) => self.left.remove(&key).is_some(),
            Some(count) => {
                *count -= 1;
                true
            }
        }
    }

    /// Returns the number of known findings that the file no longer has. Counts only rules that ran.
    pub(crate) fn stale_count(&self, rules: &RuleSet) -> usize {
        let has_run = |rule: &str| rules::find(rule).is_none_or(|rule| rules.has(rule));
        let left = self.left.iter().filter(|(key, _)| !self.is_new && has_run(&key.rule));
        left.fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }
}

/// Returns a path without list indices, such as `spec.devices.requests[].exactly.tolerations[]`.
fn without_indexes(at: &FieldPath) -> String {
    let mut out = String::new();
    for step in at.user_steps() {
        match step {
            SegmentName::Index(_) => out.push_str("[]"),
            SegmentName::Field(name) if out.is_empty() => out.push_str(name),
            SegmentName::Field(name) => _ = write!(out, ".{name}"),
            SegmentName::Key(key) => _ = write!(out, "[{key}]"),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{Baseline, FORMAT_VERSION, KnownFindings};

    #[test]
    fn what_is_written_is_read() {
        let text = format!(
            "{{\"version\": \"{FORMAT_VERSION}\", \"findings\": [\n\
             {{\"file\": \"a.yaml\", \"kind\": \"ResourceClaim\", \"namespace\": \"ml\", \"name\": \"c\", \"field\": \"spec[]\", \"rule\": \"blanket-toleration\", \"count\": 2}},\n\
             {{\"file\": \"b \\\"c\\\".yaml\", \"kind\": \"DeviceTaintRule\", \"name\": \"r\", \"rule\": \"gone\"}}\n]}}\n"
        );
        let baseline = Baseline::parse("b.json", &text).expect("a baseline");
        assert_eq!(baseline.to_yaml(), text);
        assert_eq!((baseline.total_finding_count(), baseline.files_with_counts().count()), (3, 2));
        assert_eq!(
            Baseline::default().to_yaml(),
            format!("{{\"version\": \"{FORMAT_VERSION}\", \"findings\": [\n]}}\n")
        );
        let mut other = Baseline::default();
        other.add_file_findings("a.yaml", KnownFindings::for_new_baseline());
        assert_eq!(other.total_finding_count(), 0);
    }

    #[test]
    fn what_is_no_baseline_is_refused_with_a_position() {
        let finding = |rule: &str, count: &str| {
            format!(
                "{{\"version\": \"{FORMAT_VERSION}\", \"findings\": [\n{{\"file\": \"a\", \"rule\": \"{rule}\"{count}}}]}}"
            )
        };
        for (text, expected) in [
            (String::new(), "b:1:1: not a baseline: the file is empty"),
            ("[]".to_owned(), "b:1:1: expected an object"),
            ("{\"findings\": []}".to_owned(), "b:1:1: version: this field is required"),
            (
                finding("taint-effect", ""),
                "b:2:23: a baseline can contain only lints, but taint-effect has origin upstream",
            ),
            (finding("duplicate-taint", ", \"count\": 0"), "b:2:51: findings[0].count: 0 is too small"),
            (finding("duplicate-taint", ", \"line\": 3"), "b:2:42: findings[0].line: unknown field"),
        ] {
            let errors = Baseline::parse("b", &text).expect_err(&text);
            assert!(errors[0].to_string().starts_with(expected), "{} {expected}", errors[0]);
        }
        let huge = finding("duplicate-taint", ", \"count\": 9223372036854775807");
        let twice = huge.replace("}]", "},{\"file\": \"a\", \"rule\": \"duplicate-taint\", \"count\": 9223372036854775807},{\"file\": \"a\", \"rule\": \"duplicate-taint\", \"count\": 9223372036854775807}]");
        assert_eq!(Baseline::parse("b", &twice).expect("a baseline").total_finding_count(), usize::MAX);
    }
}
