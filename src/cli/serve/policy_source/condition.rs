//! Computes the status of a policy, and the patch from the stored status to it.
//!
//! `Ready` means that the policy was accepted at `observedGeneration`. `Stalled` is there while it is not, because a
//! policy that is invalid does not become valid by waiting; GitOps tools (kstatus) then report a failure at once.
//!
//! Not here: requests. Invariant: conditions of others are kept, and a status that says the same is not written again.

use std::fmt::Display;

use tollgate_document::doc::{OwnedJsonValue, Value};
use tollgate_engine::policy::{Acceptance, PolicyResourceState};
use tollgate_formats::gotime::{self, Timestamp};

/// Condition type: whether the policy is in force as it was accepted.
const READY: &str = "Ready";
/// Condition type: whether the policy is rejected until its spec is changed.
const STALLED: &str = "Stalled";
/// Maximum number of errors, or of expired entries, in the message of a condition.
const MAX_LISTED_TEXTS: usize = 8;
/// Maximum size of such a list in bytes; the message of a condition can have 32 KiB.
const MAX_MESSAGE_BYTES: usize = 4 << 10;

/// A condition that Tollgate writes into the status of a policy.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Condition {
    status: bool,
    reason: String,
    message: String,
    generation: i64,
}

/// The stored status of a policy: the conditions and times that Tollgate writes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct StoredStatus {
    generation: Option<i64>,
    ready: Option<(Condition, String)>,
    stalled: Option<(Condition, String)>,
    /// `nextExpiry` and `expiring`; empty if there are none.
    expiry: (String, String),
    /// The conditions of others, as JSON.
    others: Vec<String>,
}

impl StoredStatus {
    /// Reads the `status` of a policy: Tollgate's conditions and expiry, and the conditions of others as they are.
    pub(super) fn read(status: Value<'_>) -> StoredStatus {
        let mut stored = StoredStatus {
            generation: status.get("observedGeneration").int(),
            expiry: (status.get("nextExpiry").str().to_owned(), status.get("expiring").str().to_owned()),
            ..StoredStatus::default()
        };
        for condition in status.get("conditions").items() {
            let text = |field: &str| condition.get(field).str().to_owned();
            let read = Condition {
                status: condition.get("status").str() == "True",
                reason: text("reason"),
                message: text("message"),
                generation: condition.get("observedGeneration").int().unwrap_or_default(),
            };
            let read = Some((read, text("lastTransitionTime")));
            match condition.get("type").str() {
                READY => stored.ready = read,
                STALLED => stored.stalled = read,
                _ => stored.others.push(condition.to_json()),
            }
        }
        stored
    }

    /// Returns a merge patch from the stored status to the one for the state of the policy; `None` if they are equal.
    /// The patch applies only to the resourceVersion `version`.
    pub(super) fn status_patch(
        &self,
        state: &PolicyResourceState,
        version: &str,
        now: Timestamp,
    ) -> Option<String> {
        let expiry = state.next_expiry(now).map(|next| (gotime::rfc3339(next.time), next.entry));
        let expiry = expiry.unwrap_or_default();
        let ready = ready_condition(state, now);
        let now = &*gotime::rfc3339(now);
        // In `Stalled`, `True` is what is bad. A policy that is accepted has no such condition.
        let stalled = (!ready.status).then(|| Condition { status: true, ..ready.clone() });
        let same = |stored: &Option<(Condition, String)>, wanted: Option<&Condition>| {
            stored.as_ref().map(|(condition, _)| condition) == wanted
        };
        if self.generation == Some(state.generation)
            && same(&self.ready, Some(&ready))
            && same(&self.stalled, stalled.as_ref())
            && self.expiry == expiry
        {
            return None;
        }
        let mut conditions = self.others.clone();
        conditions.push(ready.to_json(READY, self.ready.as_ref(), now));
        conditions.extend(stalled.map(|stalled| stalled.to_json(STALLED, self.stalled.as_ref(), now)));
        // In a merge patch, null removes the field.
        let text =
            |text: String| if text.is_empty() { OwnedJsonValue::Null } else { OwnedJsonValue::str(text) };
        let (next, entry) = (text(expiry.0).to_json(), text(expiry.1).to_json());
        let (version, generation) = (OwnedJsonValue::str(version).to_json(), state.generation);
        let conditions = conditions.join(",");
        let status = format!(
            r#""observedGeneration":{generation},"nextExpiry":{next},"expiring":{entry},"conditions":[{conditions}]"#
        );
        Some(format!(r#"{{"metadata":{{"resourceVersion":{version}}},"status":{{{status}}}}}"#))
    }
}

impl Condition {
    /// Returns the condition as JSON. The time of its last transition is kept while its status stays the same.
    fn to_json(&self, name: &'static str, stored: Option<&(Condition, String)>, now: &str) -> String {
        let unchanged = stored.filter(|(stored, time)| stored.status == self.status && !time.is_empty());
        let since = unchanged.map_or(now, |(_, time)| time.as_str());
        let status = if self.status { "True" } else { "False" };
        OwnedJsonValue::Object(vec![
            ("type", OwnedJsonValue::str(name)),
            ("status", OwnedJsonValue::str(status)),
            ("observedGeneration", OwnedJsonValue::Int(self.generation)),
            ("lastTransitionTime", OwnedJsonValue::str(since)),
            ("reason", OwnedJsonValue::str(self.reason.as_str())),
            ("message", OwnedJsonValue::str(self.message.as_str())),
        ])
        .to_json()
    }
}

/// Returns the condition `Ready` for the state of a policy.
fn ready_condition(state: &PolicyResourceState, now: Timestamp) -> Condition {
    let (status, reason, message) = match &state.acceptance {
        Acceptance::Accepted => {
            let expired = state.expired_entries(now);
            let expired: Vec<String> = expired
                .iter()
                .map(|(entry, time)| format!("{entry} expired at {}", gotime::rfc3339(*time)))
                .collect();
            let mut message = "in force".to_owned();
            if !state.warnings.is_empty() {
                message = format!("{message}, with a probable mistake: {}", join_texts(&state.warnings));
            }
            if !expired.is_empty() {
                message = format!("{message}; {}", join_texts(&expired));
            }
            (true, "Accepted", message)
        }
        Acceptance::Rejected(errors) => (
            false,
            "Invalid",
            format!("{} (requests that the policy matches get its failurePolicy)", join_texts(errors)),
        ),
        Acceptance::ReplacedByFile => (
            false,
            "ReplacedByFile",
            "not in force: a file of --policy defines a policy of the same kind and name".to_owned(),
        ),
    };
    Condition { status, reason: reason.to_owned(), message, generation: state.generation }
}

/// Returns errors or other texts as one. Those beyond the limits of number and length are only counted.
fn join_texts(all: &[impl Display]) -> String {
    let mut text = String::new();
    for (index, next) in all.iter().enumerate() {
        let next = next.to_string();
        if index > 0 && (index >= MAX_LISTED_TEXTS || text.len() + next.len() > MAX_MESSAGE_BYTES) {
            return format!("{text}; and {} more", all.len() - index);
        }
        let separator = if index == 0 { "" } else { "; " };
        text.push_str(separator);
        text.push_str(tollgate_formats::gofmt::byte_prefix(&next, MAX_MESSAGE_BYTES));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::StoredStatus;
    use tollgate_document::doc;
    use tollgate_engine::policy::{PolicyKind, PolicyResource, PolicySet};
    use tollgate_formats::gotime::Timestamp;

    const NOW: &str = "2026-01-02T00:00:00Z";

    fn states(spec: &str) -> PolicySet {
        let json = format!(r#"{{"metadata":{{"name":"a","uid":"u","generation":3}},"spec":{spec}}}"#);
        let resource = PolicyResource::new(PolicyKind::parse("TolerationPolicy").expect("a kind"), json);
        PolicySet::load_with_resources(&[], &|_| Err(String::new()), &[resource], None).expect("no files")
    }

    fn patched(status: &str, set: &PolicySet) -> Option<String> {
        let parsed = doc::parse(status).expect("JSON");
        let now = Timestamp::parse(NOW).expect("a time");
        StoredStatus::read(parsed.root()).status_patch(&set.policy_resource_states()[0], "7", now)
    }

    #[test]
    fn a_status_is_written_once_and_keeps_what_others_wrote() {
        let good = states(r#"{"allow":[]}"#);
        let first =
            patched(r#"{"conditions":[{"type":"Audited","status":"True"}]}"#, &good).expect("a patch");
        assert_eq!(
            first,
            r#"{"metadata":{"resourceVersion":"7"},"status":{"observedGeneration":3,"nextExpiry":null,"expiring":null,"conditions":[{"status":"True","type":"Audited"},{"type":"Ready","status":"True","observedGeneration":3,"lastTransitionTime":"2026-01-02T00:00:00Z","reason":"Accepted","message":"in force"}]}}"#
        );
        let parsed = doc::parse(&first).expect("JSON");
        let stored = parsed.root().get("status").to_json();
        assert_eq!(patched(&stored, &good), None);
        // The generation is another one, but since when it is ready does not change.
        let older = stored.replace(":3", ":2").replace("2026-01-02", "2026-01-01");
        let again = patched(&older, &good).expect("a patch");
        assert!(
            again.contains("2026-01-01T00:00:00Z") && again.contains(r#""observedGeneration":3"#),
            "{again}"
        );
    }

    #[test]
    fn the_next_entry_that_expires_is_named() {
        let spec = r#"{"allow":[{"key":"a","expires":"2026-03-01T00:00:00Z"},{"key":"b","expires":"2026-02-01T00:00:00Z"},
            {"key":"c","expires":"2026-01-01T00:00:00Z"},{"key":"d"}]}"#;
        let patch = patched("{}", &states(spec)).expect("a patch");
        assert!(patch.contains(r#""nextExpiry":"2026-02-01T00:00:00Z","expiring":"allow[1] b""#), "{patch}");
        assert!(patch.contains(r#""in force; allow[2] expired at 2026-01-01T00:00:00Z""#), "{patch}");
        let all = r#"{"allow":[{"key":"a","expires":"2025-12-01T00:00:00Z"},{"key":"b","expires":"2025-11-01T00:00:00Z"}]}"#;
        let patch = patched("{}", &states(all)).expect("a patch");
        let message =
            "in force; allow[0] expired at 2025-12-01T00:00:00Z; allow[1] expired at 2025-11-01T00:00:00Z";
        assert!(patch.contains(message) && patch.contains(r#""nextExpiry":null"#), "{patch}");
    }

    #[test]
    fn a_rejected_policy_is_stalled_with_the_path_of_the_field() {
        let bad = states(r#"{"allow":[{"kye":"a"}]}"#);
        let patch = patched("{}", &bad).expect("a patch");
        let parsed = doc::parse(&patch).expect("JSON");
        let conditions = parsed.root().get("status").get("conditions");
        let of = |index: usize| {
            let condition = conditions.item(index);
            (condition.get("type").str().to_owned(), condition.get("status").str().to_owned())
        };
        assert_eq!([of(0), of(1)], [("Ready".into(), "False".into()), ("Stalled".into(), "True".into())]);
        let message = conditions.item(0).get("message").str();
        assert!(message.starts_with("spec.allow[0].kye: "), "{message}");
        // Mended: the second condition goes.
        let status = parsed.root().get("status").to_json();
        let mended = patched(&status, &states(r#"{"allow":[]}"#)).expect("a patch");
        assert!(
            !mended.contains("Stalled") && mended.contains(r#""type":"Ready","status":"True""#),
            "{mended}"
        );
    }
}
