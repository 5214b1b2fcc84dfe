//! TolerationPolicies: the tolerations of claims and templates.
//!
//! A toleration stands for keys, values, effects and a duration. As in `tolerance::coverage`, for each effect one allow
//! entry has to include every key and value; entries add up over effects. The specs of claims and templates do not
//! change, so there are no stored violations.

use super::super::entries::TolerationEntry;
use super::super::kind::PolicySpec;
use super::draft::{BoundPolicy, PolicyDraft};
use super::taints::{live_allowed, live_denied};
use super::text::{Test, literal};
use crate::tolerance::coverage::{Effects, KeyPattern};
use tollgate_api::profile::ApiKind;

/// The tolerations of each request and of each of its alternatives. `any` is true for every value; a toleration without
/// `tolerationSeconds` has -1.
const TOLERATIONS: &str = "\
variables.requests.map(r,
  (has(r.tolerations) ? [r.tolerations] : [])
  + (has(r.exactly) && has(r.exactly.tolerations) ? [r.exactly.tolerations] : [])
  + (has(r.firstAvailable) ? r.firstAvailable.filter(s, has(s.tolerations)).map(s, s.tolerations) : [])
).map(r, r.map(l, l.map(t, {
  'key': dyn(has(t.key) ? t.key : ''),
  'value': dyn(has(t.value) ? t.value : ''),
  'any': dyn(has(t.operator) && !(t.operator in ['', 'Equal'])),
  'effect': dyn(has(t.effect) ? t.effect : ''),
  'seconds': dyn(!has(t.tolerationSeconds) ? -1 : t.tolerationSeconds < 0 ? 0 : t.tolerationSeconds)
})))";

/// Adds the checks of the TolerationPolicies.
pub(super) fn export_tolerations(draft: &mut PolicyDraft<'_>) {
    let spec = if draft.kind == ApiKind::ResourceClaimTemplate { "object.spec.spec" } else { "object.spec" };
    // A server writes null for an empty list of requests.
    let requests = format!(
        "has({spec}.devices) && has({spec}.devices.requests) && {spec}.devices.requests != null ? \
         {spec}.devices.requests : []"
    );
    draft.variable("requests", requests);
    draft.variable("tolerations", TOLERATIONS);
    let policies: Vec<BoundPolicy<'_>> =
        draft.policies.iter().filter(|bound| toleration_policy(bound).is_some()).cloned().collect();
    check_allowed(draft, &policies);
    for bound in &policies {
        let Some(policy) = toleration_policy(bound) else { continue };
        let entries = live_denied(draft, bound.source, policy.denied_entries(), |entry| &entry.terms);
        let denied = Test::any(entries.into_iter().map(|entry| is_denied(&entry)));
        require_for_tolerations(
            draft,
            bound.binds.clone(),
            denied.not(),
            bound.source.message("a toleration is denied"),
        );
    }
    let keyed = |bound: &&BoundPolicy<'_>| bound.source.spec.get("requireKey").bool() == Some(true);
    for bound in policies.iter().filter(keyed) {
        let message = bound.source.message("a toleration must set `key`");
        require_for_tolerations(draft, bound.binds.clone(), Test::relation("t.key != ''"), message);
    }
}

fn toleration_policy<'s>(bound: &BoundPolicy<'s>) -> Option<&'s super::super::toleration::TolerationPolicy> {
    if let PolicySpec::Toleration(policy) = &bound.source.policy.spec { Some(policy) } else { None }
}

/// Requires that a test is true for every toleration `t`, if the policies bind.
fn require_for_tolerations(draft: &mut PolicyDraft<'_>, binds: Test, test: Test, message: String) {
    let every = match test {
        Test::Always => Test::Always,
        test => Test::call(format!("variables.tolerations.all(r, r.all(l, l.all(t,\n{}\n)))", test.text())),
    };
    draft.validate(&binds.not().or(every), message);
}

/// Requires that the allow entries cover every toleration, if a policy with an allow list binds.
fn check_allowed(draft: &mut PolicyDraft<'_>, policies: &[BoundPolicy<'_>]) {
    let mut grants: Vec<(Test, TolerationEntry)> = Vec::new();
    let mut restricting = Vec::new();
    for bound in policies {
        let Some(policy) = toleration_policy(bound) else { continue };
        let entries: Vec<TolerationEntry> = policy.allowed_entries().cloned().collect();
        for entry in live_allowed(draft, bound.source, &entries, |entry| &entry.terms) {
            grants.push((bound.matches.clone(), entry));
        }
        if policy.has_allow_list() {
            restricting.push(bound);
        }
    }
    let binds = Test::any(restricting.iter().map(|bound| bound.binds.clone()));
    if binds == Test::Never {
        return;
    }
    let covering = |effect: Effects| {
        let entries = grants.iter().filter(|(_, entry)| entry.entry.effects.contains(effect));
        let limited = effect == Effects::NO_EXECUTE;
        Test::any(group_keys(entries, limited))
    };
    let effects = [Effects::NO_SCHEDULE, Effects::NO_EXECUTE, Effects::OTHER].map(covering);
    let none = Test::equals("t.effect", "None");
    let covered = match effects {
        [scheduled, executed, other] if scheduled == executed && executed == other => none.or(scheduled),
        [scheduled, executed, other] => Test::all([
            Test::is_in("t.effect", &["None", "NoExecute"]).or(scheduled),
            Test::is_in("t.effect", &["None", "NoSchedule"]).or(executed),
            Test::is_in("t.effect", &["", "None", "NoSchedule", "NoExecute"]).or(other),
        ]),
    };
    let names: Vec<&str> = restricting.iter().map(|bound| &*bound.source.policy.name).collect();
    let message = super::taints::not_allowed("a toleration is not allowed", &names);
    require_for_tolerations(draft, binds, covered, message);
}

/// Returns one test for all entries of the same policy with the same terms, so that these are compared only once.
fn group_keys<'e>(entries: impl Iterator<Item = &'e (Test, TolerationEntry)>, limited: bool) -> Vec<Test> {
    let mut groups: Vec<(Test, Vec<&KeyPattern>)> = Vec::new();
    for (matches, TolerationEntry { entry, .. }) in entries {
        let values = match &entry.values {
            None => Test::Always,
            Some(values) => {
                let values: Vec<&str> = values.iter().map(|value| &**value).collect();
                Test::call("!t.any").and(Test::is_in("t.value", &values))
            }
        };
        let seconds = match entry.seconds.filter(|_| limited) {
            None => Test::Always,
            Some(most) => {
                Test::relation("t.seconds >= 0").and(Test::relation(format!("t.seconds <= {most}")))
            }
        };
        let terms = Test::all([matches.clone(), values, seconds]);
        match groups.iter_mut().find(|(known, _)| *known == terms) {
            Some((_, keys)) => keys.push(&entry.keys),
            None => groups.push((terms, vec![&entry.keys])),
        }
    }
    let in_group = |(terms, keys): (Test, Vec<&KeyPattern>)| {
        let exact = |keys: &&KeyPattern| matches!(keys, KeyPattern::Exact(_));
        let (exact, open): (Vec<&KeyPattern>, Vec<&KeyPattern>) = keys.into_iter().partition(exact);
        let exact: Vec<&str> = exact
            .into_iter()
            .filter_map(|keys| if let KeyPattern::Exact(key) = keys { Some(&**key) } else { None })
            .collect();
        terms.and(Test::is_in("t.key", &exact).or(Test::any(open.into_iter().map(has_key))))
    };
    groups.into_iter().map(in_group).collect()
}

/// True if the pattern includes the key of the toleration.
fn has_key(keys: &KeyPattern) -> Test {
    match keys {
        KeyPattern::Any => Test::Always,
        KeyPattern::Prefix(prefix) => Test::call(format!("t.key.startsWith({})", literal(prefix))),
        KeyPattern::Exact(key) => Test::equals("t.key", key),
    }
}

/// True if a deny entry includes a taint that the toleration matches.
fn is_denied(entry: &TolerationEntry) -> Test {
    let entry = &entry.entry;
    let effects = if entry.effects.contains(Effects::ALL) {
        Test::Always
    } else {
        let names: Vec<&str> = std::iter::once("").chain(entry.effects.names()).collect();
        Test::is_in("t.effect", &names)
    };
    let keys = match has_key(&entry.keys) {
        Test::Always => Test::Always,
        test => Test::equals("t.key", "").or(test),
    };
    let values = match &entry.values {
        None => Test::Always,
        Some(values) => {
            let values: Vec<&str> = values.iter().map(|value| &**value).collect();
            Test::call("t.any").or(Test::is_in("t.value", &values))
        }
    };
    Test::all([keys, values, effects])
}
