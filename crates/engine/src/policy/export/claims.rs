//! TolerationPolicies: the tolerations of claims and templates.
//!
//! A toleration stands for keys, values, effects and a duration. As in `tolerance::coverage`, for each effect one allow
//! entry has to include every key and value; entries add up over effects. The specs of claims and templates do not
//! change, so there are no stored violations.

use super::super::entries::TolerationEntry;
use super::draft::{PolicyDraft, PolicyInDraft};
use super::taints::{is_permanent_deny_entry, is_unexpired_allow_entry};
use super::text::{BoolExpr, cel_string_literal};
use crate::policy::kind::PolicySpec;
use crate::policy::toleration::TolerationPolicy;
use crate::tolerance::coverage::{EffectSet, KeyPattern};
use tollgate_api::profile::ApiKind;

/// CEL expression for the tolerations of each request and of each of its alternatives, as maps. `any` is true if the
/// toleration matches every value; a toleration without `tolerationSeconds` has -1.
const TOLERATIONS_EXPRESSION: &str = "\
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

/// Adds what TolerationPolicies say about the tolerations of a claim or template, as validations.
pub(super) fn export_tolerations(draft: &mut PolicyDraft<'_>) {
    let spec = if draft.kind == ApiKind::ResourceClaimTemplate { "object.spec.spec" } else { "object.spec" };
    // A server writes null for an empty list of requests.
    let requests = format!(
        "has({spec}.devices) && has({spec}.devices.requests) && {spec}.devices.requests != null ? \
         {spec}.devices.requests : []"
    );
    draft.declare_variable("requests", requests);
    draft.declare_variable("tolerations", TOLERATIONS_EXPRESSION);
    let policies = draft.policies_of_kind(PolicySpec::toleration);
    require_tolerations_covered_by_allow(draft, &policies);
    for (bound, policy) in &policies {
        let entries = policy.deny.iter();
        let entries = entries.filter(|entry| is_permanent_deny_entry(draft, bound.source, &entry.terms));
        let denied = BoolExpr::any(entries.map(is_denied));
        require_for_every_toleration(
            draft,
            bound.binds.clone(),
            denied.not(),
            bound.source.violation_message("a toleration is denied"),
        );
    }
    let keyed = |bound: &&PolicyInDraft<'_>| bound.source.spec.get("requireKey").bool() == Some(true);
    for bound in policies.iter().map(|(bound, _)| bound).filter(keyed) {
        let message = bound.source.violation_message("a toleration must set `key`");
        require_for_every_toleration(
            draft,
            bound.binds.clone(),
            BoolExpr::from_comparison("t.key != ''"),
            message,
        );
    }
}

/// Requires that a test is true for every toleration `t`, if the policies bind.
fn require_for_every_toleration(
    draft: &mut PolicyDraft<'_>,
    binds: BoolExpr,
    test: BoolExpr,
    message: String,
) {
    let every = match test {
        BoolExpr::Always => BoolExpr::Always,
        test => BoolExpr::from_call(format!(
            "variables.tolerations.all(r, r.all(l, l.all(t,\n{}\n)))",
            test.text()
        )),
    };
    draft.add_validation(&binds.not().or(every), message);
}

/// Requires that the allow entries cover every toleration, if a policy with an allow list binds.
fn require_tolerations_covered_by_allow<'d>(
    draft: &mut PolicyDraft<'d>,
    policies: &[(PolicyInDraft<'d>, &'d TolerationPolicy)],
) {
    let mut grants: Vec<(BoolExpr, &TolerationEntry)> = Vec::new();
    let mut restricting = Vec::new();
    for (bound, policy) in policies {
        for entry in policy.allow_and_default_entries() {
            if is_unexpired_allow_entry(draft, bound.source, &entry.terms) {
                grants.push((bound.matches.clone(), entry));
            }
        }
        if policy.has_allow_list() {
            restricting.push(bound);
        }
    }
    let binds = BoolExpr::any(restricting.iter().map(|bound| bound.binds.clone()));
    if binds == BoolExpr::Never {
        return;
    }
    let covering = |effect: EffectSet| {
        let entries = grants.iter().filter(|(_, entry)| entry.entry.effects.contains(effect));
        let limited = effect == EffectSet::NO_EXECUTE;
        BoolExpr::any(entry_coverage_tests(entries, limited))
    };
    let effects = [EffectSet::NO_SCHEDULE, EffectSet::NO_EXECUTE, EffectSet::OTHER_EFFECTS].map(covering);
    let none = BoolExpr::equals_literal("t.effect", "None");
    let covered = match effects {
        [scheduled, executed, other] if scheduled == executed && executed == other => none.or(scheduled),
        [scheduled, executed, other] => BoolExpr::all([
            BoolExpr::is_in("t.effect", &["None", "NoExecute"]).or(scheduled),
            BoolExpr::is_in("t.effect", &["None", "NoSchedule"]).or(executed),
            BoolExpr::is_in("t.effect", &["", "None", "NoSchedule", "NoExecute"]).or(other),
        ]),
    };
    let names: Vec<&str> = restricting.iter().map(|bound| &*bound.source.policy.name).collect();
    let message = super::taints::missing_allow_message("a toleration is not allowed", &names);
    require_for_every_toleration(draft, binds, covered, message);
}

/// Returns tests of which one is true if an entry covers the key, value and seconds of the toleration `t`. Entries that
/// differ only in their keys share a test. Without `limited`, `maxTolerationSeconds` is not tested.
fn entry_coverage_tests<'e>(
    entries: impl Iterator<Item = &'e (BoolExpr, &'e TolerationEntry)>,
    limited: bool,
) -> Vec<BoolExpr> {
    let mut groups: Vec<(BoolExpr, Vec<&KeyPattern>)> = Vec::new();
    for (matches, TolerationEntry { entry, .. }) in entries {
        let values = match &entry.values {
            None => BoolExpr::Always,
            Some(values) => BoolExpr::from_call("!t.any").and(BoolExpr::is_in("t.value", values)),
        };
        let seconds = match entry.seconds.filter(|_| limited) {
            None => BoolExpr::Always,
            Some(most) => BoolExpr::from_comparison("t.seconds >= 0")
                .and(BoolExpr::from_comparison(format!("t.seconds <= {most}"))),
        };
        let terms = BoolExpr::all([matches.clone(), values, seconds]);
        match groups.iter_mut().find(|(known, _)| *known == terms) {
            Some((_, keys)) => keys.push(&entry.keys),
            None => groups.push((terms, vec![&entry.keys])),
        }
    }
    let in_group = |(terms, keys): (BoolExpr, Vec<&KeyPattern>)| {
        let (mut exact, mut open) = (Vec::new(), Vec::new());
        for keys in keys {
            match keys {
                KeyPattern::Exact(key) => exact.push(key),
                KeyPattern::Any | KeyPattern::Prefix(_) => open.push(matches_key(keys)),
            }
        }
        terms.and(BoolExpr::is_in("t.key", &exact).or(BoolExpr::any(open)))
    };
    groups.into_iter().map(in_group).collect()
}

/// Returns the test whether the key of the toleration `t` is one of these keys.
fn matches_key(keys: &KeyPattern) -> BoolExpr {
    match keys {
        KeyPattern::Any => BoolExpr::Always,
        KeyPattern::Prefix(prefix) => {
            BoolExpr::from_call(format!("t.key.startsWith({})", cel_string_literal(prefix)))
        }
        KeyPattern::Exact(key) => BoolExpr::equals_literal("t.key", key),
    }
}

/// Returns the test whether the toleration `t` matches a taint that the deny entry includes.
fn is_denied(entry: &TolerationEntry) -> BoolExpr {
    let entry = &entry.entry;
    let effects = if entry.effects.contains(EffectSet::ALL) {
        BoolExpr::Always
    } else {
        let names: Vec<&str> = std::iter::once("").chain(entry.effects.names()).collect();
        BoolExpr::is_in("t.effect", &names)
    };
    let keys = match matches_key(&entry.keys) {
        BoolExpr::Always => BoolExpr::Always,
        test => BoolExpr::equals_literal("t.key", "").or(test),
    };
    let values = match &entry.values {
        None => BoolExpr::Always,
        Some(values) => BoolExpr::from_call("t.any").or(BoolExpr::is_in("t.value", values)),
    };
    BoolExpr::all([keys, values, effects])
}
