//! A server's verdict and Tollgate's about one object, part by part: verdict, type and field of each error, text.

use std::collections::BTreeSet;

use super::answer::{Answer, Refusal};
use super::corpus::Case;
use tollgate_api::profile::Profile;
use tollgate_document::doc;
use tollgate_engine::engine::{Attributes, Engine, LabelsIfKnown};
use tollgate_engine::rules::RuleSet;

/// Placeholder for the random suffix of a generated name.
const RANDOM_SUFFIX: &str = "<rand>";
/// Length of the random suffix that an API server appends to `generateName`.
const RANDOM_SUFFIX_LENGTH: usize = 5;

/// Checks cases as an API server of this release with these feature gates would, for objects in one namespace.
#[derive(Debug)]
pub struct CaseChecker {
    engine: Engine,
    /// Labels of the namespace, JSON.
    labels: String,
    namespace: String,
    now: String,
}

/// Tollgate's verdict on a case.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TollgateVerdict {
    pub allowed: bool,
    /// Type and field of each error.
    pub fields: BTreeSet<(String, String)>,
    /// Field and text of each error.
    pub texts: BTreeSet<String>,
    /// The text of each error without its field, to compare with decoding errors.
    details: BTreeSet<String>,
}

impl CaseChecker {
    /// Creates a checker for a server of this profile. `labels` are those of the namespace, as JSON.
    pub fn new(
        profile: &'static Profile,
        namespace: &str,
        labels: &str,
        now: &str,
    ) -> Result<CaseChecker, String> {
        let engine =
            Engine::new(vec![profile], RuleSet::parse("upstream,decoding")?).with_api_server_verdicts();
        let [namespace, labels, now] = [namespace, labels, now].map(str::to_owned);
        Ok(CaseChecker { engine, labels, namespace, now })
    }

    /// Checks a case and returns Tollgate's verdict.
    pub fn check_case(&self, case: &Case) -> TollgateVerdict {
        let (Ok(object), Ok(labels)) = (doc::parse(&case.object), doc::parse(&self.labels)) else {
            return TollgateVerdict::default();
        };
        let namespace = if case.kind.is_namespaced() { self.namespace.as_str() } else { "" };
        let attributes = Attributes::for_create(object.root(), namespace, &self.now);
        let verdict = self.engine.validate(&attributes, LabelsIfKnown::Known(labels.root()));
        let mut own = TollgateVerdict { allowed: verdict.is_allowed(), ..TollgateVerdict::default() };
        for diagnostic in verdict.findings() {
            let finding = &diagnostic.finding;
            let (field, body) = (finding.server_path(), finding.server_message_without_path());
            own.fields.insert((finding.kind.cause_reason().to_owned(), field.clone()));
            own.details.insert(finding.detail.to_string());
            own.texts.insert(if field.is_empty() { body } else { format!("{field}: {body}") });
        }
        own
    }
}

/// Which parts of Tollgate's verdict agree with that of the server; `None` for a part that the server's verdict
/// does not have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AgreeingParts {
    pub verdict: bool,
    pub fields: Option<bool>,
    pub texts: Option<bool>,
}

impl AgreeingParts {
    /// True if every part that can be compared agrees.
    pub fn all_agree(self) -> bool {
        self.verdict && self.fields != Some(false) && self.texts != Some(false)
    }
}

/// Result of comparing the two verdicts on an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Comparison {
    /// The server gave a verdict, and these parts of it agree.
    Compared(AgreeingParts),
    /// The server returned no verdict.
    NoVerdict,
}

impl Comparison {
    /// Compares a server's answer with Tollgate's.
    pub fn from_verdicts(answer: &Answer, own: &TollgateVerdict) -> Comparison {
        let same = match answer {
            Answer::Accepted => AgreeingParts {
                verdict: own.allowed,
                fields: Some(own.fields.is_empty()),
                texts: Some(own.texts.is_empty()),
            },
            // The first error of a decoder names no field.
            Answer::Refused(Refusal::Undecodable(words)) => AgreeingParts {
                verdict: !own.allowed,
                fields: None,
                texts: Some(own.details.contains(words)),
            },
            Answer::Refused(Refusal::Invalid { fields, texts }) => AgreeingParts {
                verdict: !own.allowed,
                fields: Some(*fields == own.fields),
                texts: Some(are_equal_except_random_suffix(texts, &own.texts)),
            },
            _ => return Comparison::NoVerdict,
        };
        Comparison::Compared(same)
    }
}

/// True if both have the same texts, except for the random suffix of a generated name.
fn are_equal_except_random_suffix(server: &BTreeSet<String>, own: &BTreeSet<String>) -> bool {
    if server.len() != own.len() {
        return false;
    }
    own.iter().all(|text| match text.split_once(RANDOM_SUFFIX) {
        None => server.contains(text),
        Some((before, after)) => server.iter().any(|said| {
            let rest = said.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
            rest.is_some_and(|rest| rest.len() == RANDOM_SUFFIX_LENGTH)
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::{
        AgreeingParts, Answer, Case, CaseChecker, Comparison, Refusal, TollgateVerdict,
        are_equal_except_random_suffix,
    };
    use tollgate_api::profile::{ApiKind, GateChoice, Profile, Version};

    fn judge(release: &str, gates: &str, labels: &str) -> CaseChecker {
        let profile = Profile::named(release).expect("a release");
        let profile = profile.with_gates(&GateChoice::parse(gates).expect("gates")).expect("gates");
        CaseChecker::new(profile, "default", labels, "2026-01-02T03:04:05Z").expect("a judge")
    }

    fn slice(effect: &str) -> Case {
        let object = format!(
            r#"{{"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{{"name":"a"}},"spec":{{
                "driver":"d.example.com","nodeName":"n","pool":{{"name":"n","generation":1,"resourceSliceCount":1}},
                "devices":[{{"name":"gpu","taints":[{{"key":"a","effect":{effect}}}]}}]}}}}"#
        );
        Case { id: "a".to_owned(), kind: ApiKind::ResourceSlice, version: Version::V1, object }
    }

    fn refused(kind: &str, field: &str, text: &str) -> Answer {
        Answer::Refused(Refusal::Invalid {
            fields: [(kind.to_owned(), field.to_owned())].into(),
            texts: [format!("{field}: {text}")].into(),
        })
    }

    fn compared(answer: &Answer, own: &TollgateVerdict) -> (bool, Option<bool>, Option<bool>) {
        match Comparison::from_verdicts(answer, own) {
            Comparison::Compared(AgreeingParts { verdict, fields, texts }) => (verdict, fields, texts),
            Comparison::NoVerdict => panic!("{answer:?}"),
        }
    }

    #[test]
    fn parts_are_compared_one_by_one() {
        let own = judge("1.36", "all", "{}").check_case(&slice(r#""Never""#));
        let (kind, field) = ("FieldValueNotSupported", "spec.devices[0].taints[0].effect");
        let text = r#"Unsupported value: "Never": supported values: "NoExecute", "NoSchedule", "None""#;
        let yes = Some(true);
        assert_eq!(compared(&refused(kind, field, text), &own), (true, yes, yes));
        assert_eq!(compared(&refused(kind, field, "Unsupported"), &own), (true, yes, Some(false)));
        assert_eq!(compared(&refused("FieldValueInvalid", field, text), &own), (true, Some(false), yes));
        assert_eq!(compared(&Answer::Accepted, &own), (false, Some(false), Some(false)));
        // A server with the gate off drops the taint, and so does the judge.
        let own = judge("1.35", "default", "{}").check_case(&slice(r#""Never""#));
        assert_eq!(compared(&Answer::Accepted, &own), (true, yes, yes));
    }

    #[test]
    fn a_decoder_has_words_and_no_fields() {
        let own = judge("1.36", "all", "{}").check_case(&slice("7"));
        let said = own.details.iter().next().expect("an error").clone();
        let undecodable = |words: &str| Answer::Refused(Refusal::Undecodable(words.to_owned()));
        assert_eq!(compared(&undecodable(&said), &own), (true, None, Some(true)));
        assert_eq!(compared(&undecodable("json: something else"), &own), (true, None, Some(false)));
    }

    #[test]
    fn failures_are_not_compared() {
        let own = TollgateVerdict { allowed: true, ..TollgateVerdict::default() };
        for answer in [
            Answer::OtherAdmission("no".to_owned()),
            Answer::Failed("503".to_owned()),
            Answer::NotAllowed("no".to_owned()),
            Answer::NotServed,
            Answer::Persisted,
        ] {
            assert_eq!(Comparison::from_verdicts(&answer, &own), Comparison::NoVerdict);
        }
    }

    #[test]
    fn a_random_name_is_any_name() {
        let texts = |text: &str| [text.to_owned()].into();
        let own = texts(r#"metadata.name: Invalid value: "A-<rand>": no"#);
        assert!(are_equal_except_random_suffix(
            &texts(r#"metadata.name: Invalid value: "A-x7k2p": no"#),
            &own
        ));
        assert!(!are_equal_except_random_suffix(
            &texts(r#"metadata.name: Invalid value: "B-x7k2p": no"#),
            &own
        ));
        assert!(!are_equal_except_random_suffix(
            &texts(r#"metadata.name: Invalid value: "A-x7k2": no"#),
            &own
        ));
    }
}
