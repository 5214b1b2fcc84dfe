//! Writes a decision as an AdmissionReview response: status, causes, warnings, audit annotations.
//!
//! kubectl prints only the causes of a 422 and only the message of other codes, so both must be complete. The API
//! server drops warnings with control characters and truncates long ones, so warnings are short and contain none.
//!
//! Invariant: there are at most [`MAX_WARNINGS`] warnings of at most [`MAX_WARNING_CHARS`] characters, and the others
//! are counted. A response has at most [`MAX_RESPONSE_BYTES`] bytes of JSON, unless the engine is exact.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::iter;

use super::{Decision, Diagnostic, Engine, fill};
use crate::rules::table::{FINDINGS_LEFT_OUT, INVALID_POLICY, TAINT_RULE_IMPACT};
use crate::rules::{FindingLevel, RuleOrigin};
use tollgate_api::review::{Request, Response, Status, StatusCause, StatusDetails};
use tollgate_document::finding::{ErrorType, Finding, MessageStyle};
use tollgate_formats::count::count_with_noun;

/// Maximum number of characters of one warning.
const MAX_WARNING_CHARS: usize = 120;
/// Maximum number of warnings of one response, including the one that counts the rest.
const MAX_WARNINGS: usize = 8;
/// Maximum number of characters of the first finding in the message of a 422: kubectl prints the causes,
/// which are complete.
const MAX_FIRST_FINDING_CHARS: usize = 400;
/// Maximum number of bytes of all reasons in the message of a 403, and in that of a 422 for an invalid policy. kubectl
/// prints only the message of a 403, and of a 422 if it applies several objects or changes one.
const MAX_REASONS_BYTES: usize = 32 << 10;
/// Maximum length in bytes of a response, because an API server has to read, log and send it on.
const MAX_RESPONSE_BYTES: usize = 1 << 20;
/// Bytes of a response that are reserved for everything but the causes.
const BYTES_BESIDES_CAUSES: usize = 128 << 10;
/// Maximum number of characters of a name in a response: no object has a longer one.
const MAX_NAME_CHARS: usize = 512;
/// Maximum number of characters of an annotation.
const MAX_ANNOTATION_CHARS: usize = 4 << 10;

/// Returns the response to a request: a patch, a denial, or an admission with warnings.
pub fn respond(engine: &Engine, request: &Request<'_>, decision: &Decision) -> Response {
    if !decision.edits.is_empty() {
        let patch = fill::json_patch(&decision.edits);
        // In base64, four bytes for three.
        if patch.len() / 3 * 4 <= MAX_RESPONSE_BYTES - BYTES_BESIDES_CAUSES {
            let mut response = Response::patched(request.uid, &patch);
            if decision.put_back > 0 {
                let restored = count_with_noun(decision.put_back, "toleration");
                let text = format!("the spec is immutable: restored {restored} that this update omits");
                response.warnings.push(text);
            }
            return response;
        }
        let text =
            "no defaults are added, because the patch would be larger than 1 MiB [tollgate]".to_owned();
        let mut response = Response::allowed(request.uid);
        response.warnings.push(text);
        return response;
    }
    let findings = decision.verdict.findings();
    let of_level = |level: FindingLevel| findings.iter().filter(move |diagnostic| diagnostic.level == level);
    let denials: Vec<&Diagnostic> = of_level(FindingLevel::Deny).collect();
    let mut response = match denials.first() {
        None => Response::allowed(request.uid),
        Some(first) => Response::denied(request.uid, denial_status(engine, request, first, &denials)),
    };
    response.warnings = warnings(of_level(FindingLevel::Warn), denials.is_empty());
    if decision.unknown_version {
        let kind = request.kind;
        let text =
            format!("not checked: Tollgate does not support {}/{} {}", kind.group, kind.version, kind.kind);
        response.warnings.push(shortened_to_chars(&replace_control_characters(&text), MAX_WARNING_CHARS));
    }
    response.audit_annotations = audit_annotations(engine, findings);
    if let Some(age) = decision.age {
        response.audit_annotations.insert("namespace-labels-age", format!("{age}s"));
        // Whom a policy says something to should know by what it was said; others cannot do anything about it.
        if findings.iter().any(|diagnostic| diagnostic.policy.is_some()) {
            let text = format!(
                "checked with namespace labels that are {age}s old, because the watch on namespaces is interrupted"
            );
            response.warnings.push(text);
        }
    }
    response
}

/// Returns the response with code 400 to something that is not a readable review.
pub fn bad_request_response(uid: &str, message: String) -> Response {
    Response::denied(uid, Status::failure(400, "BadRequest", message, None))
}

/// Returns the status for all denials together: 422 if the API server would refuse the object, 403 if only policies do,
/// 500 if policies could not be evaluated. `first` is the denial that the message of a 422 starts with.
fn denial_status(
    engine: &Engine,
    request: &Request<'_>,
    first: &Diagnostic,
    denials: &[&Diagnostic],
) -> Status {
    let name = &*shortened_to_chars(object_name(request), MAX_NAME_CHARS);
    let (group, kind) = (
        shortened_to_chars(request.kind.group, MAX_NAME_CHARS),
        &*shortened_to_chars(request.kind.kind, MAX_NAME_CHARS),
    );
    let only_policy = denials.iter().all(|diagnostic| diagnostic.origin == RuleOrigin::Policy);
    // A policy that cannot be judged is an error of ours, not of the object.
    let undecided =
        only_policy && denials.iter().all(|diagnostic| diagnostic.finding.kind == ErrorType::Internal);
    let (code, reason, verdict) = match (undecided, only_policy) {
        (true, _) => (500, "InternalError", "cannot be checked"),
        (false, true) => (403, "Forbidden", "is not allowed"),
        (false, false) => (422, "Invalid", "is invalid"),
    };
    let subject = match (kind, name) {
        ("", "") => "the object".to_owned(),
        ("", name) => format!("\"{name}\""),
        (kind, "") => kind.to_owned(),
        (kind, name) => format!("{kind} \"{name}\""),
    };
    let only_invalid_policy = denials.iter().all(|diagnostic| diagnostic.finding.rule == INVALID_POLICY);
    let message = if only_policy || only_invalid_policy {
        format!("{subject} {verdict}: {}", joined_reasons(denials))
    } else {
        let rest = match count_with_omitted(denials) {
            0 | 1 => String::new(),
            count => format!(" (and {} more)", count - 1),
        };
        format!(
            "{subject} {verdict}: {}{rest}",
            shortened_to_chars(&first.to_string(), MAX_FIRST_FINDING_CHARS)
        )
    };
    let causes = causes(engine, denials);
    let details = StatusDetails { name: name.into(), group: group.into(), kind: kind.into(), causes };
    Status::failure(code, reason, message, Some(details))
}

/// Returns the denials as text: the first follows the subject, each other one is on its own line. Those beyond
/// [`MAX_REASONS_BYTES`] are only counted.
fn joined_reasons(denials: &[&Diagnostic]) -> String {
    let mut text = String::new();
    let mut said = 0;
    for diagnostic in denials {
        let reason = replace_control_characters(&diagnostic.to_string());
        // Whole reasons or none; but one is always there.
        if !text.is_empty() && text.len() + reason.len() > MAX_REASONS_BYTES {
            break;
        }
        let separator = if text.is_empty() { "" } else { "\n- " };
        text.push_str(separator);
        text.push_str(&reason);
        said += diagnostic.finding.omitted_finding_count().max(1);
    }
    match count_with_omitted(denials).saturating_sub(said) {
        0 => text,
        more => format!("{text}\n- and {more} more"),
    }
}

/// Returns the number of findings, including those that were omitted from the verdict.
fn count_with_omitted(denials: &[&Diagnostic]) -> usize {
    denials.iter().map(|diagnostic| diagnostic.finding.omitted_finding_count().max(1)).sum()
}

/// Returns the denials as causes, as many as fit into a response. If some are omitted, the last cause states how many.
fn causes(engine: &Engine, denials: &[&Diagnostic]) -> Vec<StatusCause> {
    let mut bytes_left = if engine.exact { usize::MAX } else { MAX_RESPONSE_BYTES - BYTES_BESIDES_CAUSES };
    let mut causes = Vec::new();
    let mut left_out = 0;
    for diagnostic in denials {
        let counts = diagnostic.finding.omitted_finding_count();
        if counts > 0 || bytes_left == 0 {
            left_out += counts.max(1);
            continue;
        }
        let cause = cause(engine, diagnostic);
        bytes_left = bytes_left.saturating_sub(cause.approximate_json_bytes());
        if bytes_left == 0 {
            left_out += 1;
        } else {
            causes.push(cause);
        }
    }
    if left_out > 0 {
        let finding = Finding::for_omitted(FINDINGS_LEFT_OUT, left_out);
        causes.push(StatusCause {
            reason: finding.kind.cause_reason(),
            message: finding.server_message_without_path(),
            field: String::new(),
        });
    }
    causes
}

/// Returns the name of the object: from the request, else `metadata.name`, else `metadata.generateName`; empty if there
/// is none.
fn object_name<'d>(request: &Request<'d>) -> &'d str {
    let metadata = request.object.get("metadata");
    [request.name, metadata.get("name").str(), metadata.get("generateName").str()]
        .into_iter()
        .find(|name| !name.is_empty())
        .unwrap_or_default()
}

/// Returns a finding as a cause of a denial. The message names the profiles if the finding does not apply to all, and
/// the rule if it is not one of the API server.
fn cause(engine: &Engine, diagnostic: &Diagnostic) -> StatusCause {
    let finding = &diagnostic.finding;
    let mut message = diagnostic.message_without_path();
    if diagnostic.profiles.len() < engine.profiles.len() {
        message = format!("{message} ({})", diagnostic.profiles.join(", "));
    }
    // kubectl prints nothing else of a 422: without the rule, nobody knows that it is not the API server that says so.
    if !matches!(diagnostic.origin, RuleOrigin::Upstream | RuleOrigin::Decoding) {
        message = format!("{message} [{}]", finding.rule);
    }
    StatusCause { reason: finding.kind.cause_reason(), message, field: finding.user_path() }
}

/// Returns the findings as warnings for kubectl, each text once and at most [`MAX_WARNINGS`], followed by the advice of
/// policies as far as there is room.
fn warnings<'f>(findings: impl Iterator<Item = &'f Diagnostic> + Clone, is_admitted: bool) -> Vec<String> {
    let mut seen: HashSet<String> = HashSet::new();
    let mut all: Vec<String> = Vec::new();
    for diagnostic in findings.clone() {
        let (text, omits_time) = warning_and_omits_denial_time(diagnostic, is_admitted);
        let time = diagnostic.finding.denied_from.as_deref().filter(|_| omits_time);
        let when = time.zip(diagnostic.policy.as_deref()).map(|(time, policy)| {
            shortened_to_chars(
                &format!("will be denied from {time}: violations of {policy}"),
                MAX_WARNING_CHARS,
            )
        });
        for text in iter::once(text).chain(when) {
            if seen.insert(text.clone()) && all.len() < MAX_WARNINGS {
                all.push(text);
            }
        }
    }
    if seen.len() > MAX_WARNINGS {
        let rest = seen.len() - (MAX_WARNINGS - 1);
        all.truncate(MAX_WARNINGS - 1);
        all.push(format!("{rest} more warnings; run `tollgate validate` to see all of them"));
    }
    // Why a policy says so and whom to ask, once for each policy and reason, as far as there is room.
    for advice in findings.filter_map(|diagnostic| diagnostic.finding.advice.as_deref()) {
        let text = shortened_to_chars(&replace_control_characters(advice), MAX_WARNING_CHARS);
        if all.len() < MAX_WARNINGS && seen.insert(text.clone()) {
            all.push(text);
        }
    }
    all
}

/// Returns a finding as one warning, `…tolerations[1].effect: what is wrong [rule]`. If it is too long, the start of
/// the path is cut, then the short text is used, then the end of the text is cut. `is_admitted` is true if nothing
/// denies the request. Also returns true if the finding will deny from some time on, and the text does not say so.
fn warning_and_omits_denial_time(diagnostic: &Diagnostic, is_admitted: bool) -> (String, bool) {
    let finding = &diagnostic.finding;
    let is_policy = diagnostic.policy.is_some();
    // Who reads that a policy does not allow the object must not think that it was refused. The name of the policy
    // stands for the rule.
    let mut tail = if is_policy && is_admitted {
        ", admitted for now".to_owned()
    } else {
        format!(" [{}]", finding.rule)
    };
    let field = replace_control_characters(&finding.user_path());
    let with_field = |detail: &str, max_chars: usize| {
        let detail = replace_control_characters(detail);
        let field = last_segments_within_chars(&field, max_chars.saturating_sub(detail.chars().count() + 2));
        if field.is_empty() { detail } else { format!("{field}: {detail}") }
    };
    // When the same object is denied says more, but takes more room.
    let mut omits_time = finding.denied_from.is_some();
    if let (Some(time), Some(short), true) = (&finding.denied_from, &finding.short, is_admitted) {
        let later = format!(", will be denied from {time}");
        let max_chars = MAX_WARNING_CHARS.saturating_sub(later.chars().count());
        if with_field(short, max_chars).chars().count() <= max_chars {
            (tail, omits_time) = (later, false);
        }
    }
    let max_chars = MAX_WARNING_CHARS.saturating_sub(tail.chars().count());
    // The type of error says little beside the words of the server.
    let is_upstream = diagnostic.origin.message_style() == MessageStyle::ApiServer;
    let detail = if is_upstream && !finding.detail.is_empty() {
        finding.detail.to_string()
    } else {
        diagnostic.message_without_path()
    };
    // `tolerations[1].effect` says which one, `effect` does not.
    let least =
        field.rmatch_indices('.').nth(1).map_or(field.chars().count(), |(at, _)| field.len() - at + 2);
    let fits = detail.chars().count() + least + 2 <= max_chars;
    let short = finding.short.as_deref().filter(|_| is_policy || !fits);
    let text = shortened_to_chars(&with_field(short.unwrap_or(&detail), max_chars), max_chars);
    (format!("{text}{tail}"), omits_time)
}

/// Returns the last segments of a path that fit into `limit` characters, at least one, preceded by `...` if
/// segments are omitted.
fn last_segments_within_chars(field: &str, limit: usize) -> String {
    if field.chars().count() <= limit {
        return field.to_owned();
    }
    let mut starts = field.match_indices('.').map(|(at, _)| field.get(at + 1..).unwrap_or_default());
    let fits = |part: &&str| part.chars().count() + 3 <= limit;
    let last = field.rsplit('.').next().unwrap_or_default();
    format!("...{}", starts.find(fits).unwrap_or(last))
}

/// Replaces control characters with blanks, because the API server drops a warning that contains one.
fn replace_control_characters(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

/// Cuts a text to at most `limit` characters, between words where possible, and ends it with `...` if it was cut.
fn shortened_to_chars(text: &str, limit: usize) -> String {
    if text.chars().count() <= limit {
        return text.to_owned();
    }
    let mut kept: String = text.chars().take(limit.saturating_sub(3)).collect();
    // A text without blanks is a value: it is cut anywhere.
    let is_between = text.chars().nth(limit.saturating_sub(3)).is_some_and(|next| next == ' ');
    if let Some(end) = kept.rfind(' ').filter(|end| !is_between && *end > kept.len() / 2) {
        kept.truncate(end);
    }
    format!("{}...", kept.trim_end_matches([' ', ',', ';', ':']))
}

/// Returns the audit annotations of a response: the rules by level, the impact of a DeviceTaintRule, the policies that
/// reported something, and the digest of all policies.
fn audit_annotations(engine: &Engine, findings: &[Diagnostic]) -> BTreeMap<&'static str, String> {
    let mut annotations = BTreeMap::new();
    let keys = [
        (FindingLevel::Deny, "denied-by"),
        (FindingLevel::Warn, "warned-by"),
        (FindingLevel::Audit, "audited-by"),
    ];
    for (level, key) in keys {
        let rules: BTreeSet<&str> = findings
            .iter()
            .filter(|diagnostic| diagnostic.level == level)
            .map(|diagnostic| diagnostic.finding.rule.id)
            .collect();
        if !rules.is_empty() {
            annotations.insert(key, rules.into_iter().collect::<Vec<_>>().join(","));
        }
    }
    let impact = findings.iter().find(|diagnostic| diagnostic.finding.rule == TAINT_RULE_IMPACT);
    if let Some(diagnostic) = impact {
        annotations.insert("impact", shortened_to_chars(&diagnostic.finding.detail, MAX_ANNOTATION_CHARS));
    }
    let policies: BTreeSet<&str> =
        findings.iter().filter_map(|diagnostic| diagnostic.policy.as_deref()).collect();
    if !policies.is_empty() {
        let all = policies.into_iter().collect::<Vec<_>>().join(", ");
        annotations.insert("policies", shortened_to_chars(&all, MAX_ANNOTATION_CHARS));
    }
    if !engine.policies.is_empty() {
        annotations.insert("policy-digest", engine.policies.digest().to_owned());
    }
    annotations
}

#[cfg(test)]
mod tests {
    use super::{last_segments_within_chars, replace_control_characters, shortened_to_chars};

    #[test]
    fn warnings_are_short_and_plain() {
        assert_eq!(replace_control_characters("a\tb\nc"), "a b c");
        assert_eq!(shortened_to_chars("äöü", 3), "äöü");
        assert_eq!(shortened_to_chars("äöüäöü", 5), "äö...");
        assert_eq!(shortened_to_chars("only whole words, please", 20), "only whole words...");
        assert_eq!(shortened_to_chars("only whole words are kept", 19), "only whole words...");
        assert_eq!(last_segments_within_chars("spec.taints[0].effect", 19), "...taints[0].effect");
        assert_eq!(last_segments_within_chars("spec.taint", 40), "spec.taint");
    }
}
