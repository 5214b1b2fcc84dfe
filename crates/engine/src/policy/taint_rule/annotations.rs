//! `requireAnnotations` and `maxAgeSeconds`: until when a rule is needed, by whom and for what.
//!
//! Checked when a rule is created and when an update changes its spec. An update of the annotations alone is not
//! checked, like every update that leaves the spec unchanged, so whoever may update a rule can extend it; `tollgate
//! audit`, which counts from the creation, reports it then.
//!
//! Not here: rules that nobody has removed in time. `impact::forgotten` finds them.

use super::RuleCheckContext;
use crate::policy::ViolationReport;
use crate::rule_annotations::{self, EXPIRES};
use crate::rules::table::POLICY_TAINT_RULE;
use tollgate_api::view::{Object, ObjectMeta};
use tollgate_document::doc::Value;
use tollgate_document::field::Path;
use tollgate_document::finding::BadValue;
use tollgate_formats::gotime::{self, Timestamp};

/// The compiled `requireAnnotations` and `maxAgeSeconds` of a policy.
#[derive(Debug)]
pub(super) struct AnnotationPolicy {
    /// The annotations that a rule must have.
    pub(super) required: Vec<&'static str>,
    /// Maximum number of seconds from the creation of a rule until it expires; `None` if it is not limited.
    pub(super) max_age_seconds: Option<i64>,
}

impl AnnotationPolicy {
    /// Compiles the fields of `spec`, whose types are already checked; `None` if neither is set.
    pub(super) fn read(spec: Value<'_>) -> Option<AnnotationPolicy> {
        let max_age_seconds = spec.get("maxAgeSeconds").int();
        let is_required = |name: &&&str| {
            let is_listed = spec.get("requireAnnotations").items().any(|item| item.str() == **name);
            is_listed || **name == EXPIRES && max_age_seconds.is_some()
        };
        let required: Vec<&'static str> = rule_annotations::ALL.iter().filter(is_required).copied().collect();
        (!required.is_empty()).then_some(AnnotationPolicy { required, max_age_seconds })
    }

    /// Reports annotations that are missing, a time that cannot be read or is past, and one that is too late.
    pub(super) fn check_required_annotations_and_expiry(
        &self,
        check: &RuleCheckContext<'_>,
        report: &mut ViolationReport<'_>,
    ) {
        let RuleCheckContext { policy, admission, context, .. } = check;
        let metadata = admission.object.metadata();
        let metadata_at = Path::ROOT.field("metadata");
        let annotations_at = metadata_at.field("annotations");
        let now = admission.now.time;
        // The server sets it, and it never changes.
        let stored = admission.old_object.map(Object::metadata);
        let stored = stored.or(context.is_stored.then_some(metadata));
        let created = stored.and_then(ObjectMeta::creation_timestamp).or(now);
        let latest = created.zip(self.max_age_seconds).map(|(created, seconds)| Timestamp {
            seconds: created.seconds.saturating_add(seconds),
            ..created
        });
        for name in &self.required {
            let at = annotations_at.key(name);
            let Some(value) = rule_annotations::non_blank_annotation(metadata, name) else {
                let short = "this annotation is required";
                let example = match (*name, latest) {
                    (EXPIRES, Some(latest)) => format!("; set it to {} or earlier", gotime::rfc3339(latest)),
                    (EXPIRES, None) => "; set it to a time, such as 2027-01-01T00:00:00Z".to_owned(),
                    _ => String::new(),
                };
                let detail = || format!("{short} by {}{example}", policy.describe());
                report
                    .report(policy, POLICY_TAINT_RULE, &at)
                    .required(detail)
                    .with_warning_texts(policy, short, None);
                continue;
            };
            if *name != EXPIRES {
                continue;
            }
            let problem = match gotime::parse_rfc3339(value) {
                Err(_) => "is not a time in RFC 3339, such as 2027-01-01T00:00:00Z".to_owned(),
                Ok(expires) if now.is_some_and(|now| expires <= now) => {
                    "is in the past: set a later time, or delete the rule".to_owned()
                }
                Ok(expires) => match latest.filter(|latest| expires > *latest) {
                    Some(latest) => {
                        let seconds = self.max_age_seconds.unwrap_or_default();
                        let latest = gotime::rfc3339(latest);
                        format!("is too late: a rule may be at most {seconds}s old; set {latest} or earlier")
                    }
                    None => continue,
                },
            };
            let detail = || format!("{problem}; required by {}", policy.describe());
            let short = problem.split([':', ';', ',']).next().unwrap_or_default();
            report
                .report(policy, POLICY_TAINT_RULE, &at)
                .invalid(BadValue::str(value), detail)
                .with_warning_texts(policy, short, None);
        }
    }
}
