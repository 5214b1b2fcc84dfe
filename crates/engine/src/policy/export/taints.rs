//! TaintPolicies: which taints slices and rules may have. What an update excuses is in `slices` and `rules`.

use super::super::entries::{CommonEntryFields, TaintEntry};
use super::super::kind::PolicySpec;
use super::draft::{PolicyDraft, PolicyInDraft};
use super::omission::OmissionReason;
use super::source::{PolicyToExport, one_line};
use super::text::{BoolExpr, matches_driver_glob};
use crate::tolerance::coverage::EffectSet;
use tollgate_formats::gotime;

/// CEL expression for the driver of a slice, or of the selector of a rule.
#[derive(Clone, Copy, Debug)]
pub(super) struct DriverExpr {
    /// The expression for the name of the driver, which is empty for a rule without a driver.
    pub(super) name: &'static str,
    pub(super) can_be_empty: bool,
}

impl DriverExpr {
    /// Regular expression for `${driver}` in an allow entry.
    const DRIVER_REGEX_VARIABLE: &'static str = "variables.driverRegex";
    /// Regular expression for `${driver}` in a deny entry. A rule without a driver affects all drivers.
    const DENIED_REGEX_VARIABLE: &'static str = "variables.deniedDriverRegex";

    fn declare_driver_regex_variables(self, draft: &mut PolicyDraft<'_>) {
        let name = self.name;
        draft.declare_variable("driverRegex", format!("{name}.replace('.', '[.]')"));
        draft.declare_variable(
            "deniedDriverRegex",
            format!("{name} == '' ? '.*' : {name}.replace('.', '[.]')"),
        );
    }
}

/// A TaintPolicy while it is exported, with the expressions for whether it applies.
#[derive(Debug)]
pub(super) struct TaintPolicyToExport<'d> {
    pub(super) source: &'d PolicyToExport<'d>,
    /// Whether its allow entries count for the request.
    applies: BoolExpr,
    /// Whether it restricts the request.
    binds: BoolExpr,
    allow: Option<Vec<TaintEntry>>,
    deny: Vec<TaintEntry>,
    /// The keys of taints that must have data.
    data: Vec<&'d str>,
    driver: DriverExpr,
}

/// Reads the TaintPolicies among the policies that the ValidatingAdmissionPolicy under construction (`draft`) is made
/// of. Adds what cannot be exported of them to its omissions.
pub(super) fn read_taint_policies<'d>(
    draft: &mut PolicyDraft<'d>,
    driver: DriverExpr,
) -> Vec<TaintPolicyToExport<'d>> {
    driver.declare_driver_regex_variables(draft);
    let mut policies = Vec::new();
    for (PolicyInDraft { source, matches, binds }, _) in draft.policies_of_kind(PolicySpec::taint) {
        let spec = source.spec;
        let scope = source.matches_driver(driver.name, driver.can_be_empty);
        let entries = |list: &str| TaintEntry::read_all(spec.get(list), list);
        let mut allow = spec.get("allow").exists().then(|| entries("allow"));
        if let Some(allow) = &mut allow {
            allow.retain(|entry| is_unexpired_allow_entry(draft, source, &entry.terms));
        }
        let mut deny = entries("deny");
        deny.retain(|entry| is_permanent_deny_entry(draft, source, &entry.terms));
        for (index, item) in spec.get("data").items().enumerate() {
            if item.get("schema").exists() || item.get("schemaFile").exists() {
                let field = format!("spec.data[{index}].schema");
                let message = "left out: a ValidatingAdmissionPolicy cannot check data against a JSON Schema";
                draft.omit(source, field, OmissionReason::JsonSchema, message);
            }
        }
        let required = spec.get("data").items().filter(|item| item.get("required").bool() == Some(true));
        let data = required.map(|item| item.get("key").str()).collect();
        let (applies, binds) = (matches.and(scope.clone()), binds.and(scope));
        policies.push(TaintPolicyToExport { source, applies, binds, allow, deny, data, driver });
    }
    policies
}

/// Returns the test whether the taint `t` violates the allow lists: a policy with an allow list binds, and no allow
/// entry includes the taint.
pub(super) fn is_not_allowed(policies: &[TaintPolicyToExport<'_>]) -> BoolExpr {
    let restricting = policies.iter().filter(|policy| policy.allow.is_some());
    let binds = BoolExpr::any(restricting.map(|policy| policy.binds.clone()));
    let allowed = policies.iter().flat_map(|policy| {
        let entries = policy.allow.iter().flatten();
        entries.map(|entry| {
            policy
                .applies
                .clone()
                .and(policy.taint_key_matches_glob(&entry.key))
                .and(includes_value_and_effect(entry))
        })
    });
    binds.and(BoolExpr::any(allowed).not())
}

/// Returns the message about a taint that no allow entry includes.
pub(super) fn not_allowed_message(policies: &[TaintPolicyToExport<'_>]) -> String {
    let restricting = policies.iter().filter(|policy| policy.allow.is_some());
    missing_allow_message(
        "a taint is not allowed",
        &restricting.map(|policy| &*policy.source.policy.name).collect::<Vec<_>>(),
    )
}

/// Returns the test whether Tollgate names the policy with this index if the taint `t` violates the allow lists. If only
/// one policy has an allow list, it is that one.
pub(super) fn is_blamed(policies: &[TaintPolicyToExport<'_>], blamed: usize) -> BoolExpr {
    let lists: Vec<(usize, &TaintPolicyToExport<'_>)> =
        policies.iter().enumerate().filter(|(_, policy)| policy.allow.is_some()).collect();
    if let [(only, _)] = lists.as_slice() {
        return if *only == blamed { BoolExpr::Always } else { BoolExpr::Never };
    }
    let with_key = lists.iter().map(|(index, policy)| {
        let keys = policy.allow.iter().flatten().map(|entry| policy.taint_key_matches_glob(&entry.key));
        (*index, policy.applies.clone().and(BoolExpr::any(keys)))
    });
    let with_entries = lists.iter().map(|(index, policy)| {
        let is_empty = policy.allow.iter().flatten().next().is_none();
        (*index, if is_empty { BoolExpr::Never } else { policy.applies.clone() })
    });
    let binding = lists.iter().map(|(index, policy)| (*index, policy.binds.clone()));
    let choices = with_key.chain(with_entries).chain(binding);
    // An expression for the index.
    let mut expression = String::new();
    let mut last = "-1".to_owned();
    for (index, test) in choices.filter(|(_, test)| *test != BoolExpr::Never) {
        if test == BoolExpr::Always {
            last = index.to_string();
            break;
        }
        expression.extend(["(", test.text(), ") ? ", &index.to_string(), " : "]);
    }
    BoolExpr::from_comparison(format!("({expression}{last}) == {blamed}"))
}

impl TaintPolicyToExport<'_> {
    /// Returns the test whether the policy binds and a deny entry of it includes the taint `t`.
    pub(super) fn denies(&self) -> BoolExpr {
        let driver = (!self.driver.can_be_empty).then_some(self.driver.name);
        let key = |key: &str| matches_driver_glob(key, "t.key", driver, DriverExpr::DENIED_REGEX_VARIABLE);
        let denied = BoolExpr::any(
            self.deny.iter().map(|entry| key(&entry.key).and(includes_value_and_effect(entry))),
        );
        self.binds.clone().and(denied)
    }

    /// Returns the test whether the policy binds and requires data that the taint `t` does not have.
    pub(super) fn lacks_required_data(&self) -> BoolExpr {
        let keys = BoolExpr::any(self.data.iter().map(|key| self.taint_key_matches_glob(key)));
        BoolExpr::all([self.binds.clone(), keys, BoolExpr::from_call("!t.data")])
    }

    /// Returns the test whether the key of the taint `t` matches a glob, of an allow entry or of a data requirement.
    fn taint_key_matches_glob(&self, key: &str) -> BoolExpr {
        matches_driver_glob(key, "t.key", Some(self.driver.name), DriverExpr::DRIVER_REGEX_VARIABLE)
    }
}

/// Returns the test whether the entry includes the value and the effect of the taint `t`.
fn includes_value_and_effect(entry: &TaintEntry) -> BoolExpr {
    let values = match &entry.terms.values {
        None => BoolExpr::Always,
        Some(values) => BoolExpr::is_in("t.value", values),
    };
    let effects = if entry.terms.effects.contains(EffectSet::ALL) {
        BoolExpr::Always
    } else {
        BoolExpr::is_in("t.effect", &entry.terms.effects.names().collect::<Vec<_>>())
    };
    values.and(effects)
}

/// True if an allow entry has not expired. One that will expire is exported as if it did not, and listed as an omission.
pub(super) fn is_unexpired_allow_entry(
    draft: &mut PolicyDraft<'_>,
    source: &PolicyToExport<'_>,
    terms: &CommonEntryFields,
) -> bool {
    let is_live = !terms.is_expired(Some(draft.now));
    if let Some(end) = terms.expires.filter(|_| is_live) {
        let message = format!(
            "the entry does not expire, because expressions cannot read the time; export the policies again on {}",
            gotime::rfc3339(end)
        );
        draft.omit(source, format!("spec.{}.expires", terms.location), OmissionReason::Time, message);
    }
    is_live
}

/// True if a deny entry never expires. One that will expire is left out, and listed as an omission.
pub(super) fn is_permanent_deny_entry(
    draft: &mut PolicyDraft<'_>,
    source: &PolicyToExport<'_>,
    terms: &CommonEntryFields,
) -> bool {
    if terms.expires.is_some() && !terms.is_expired(Some(draft.now)) {
        let message = "the entry is left out, because expressions cannot read the time";
        draft.omit(source, format!("spec.{}.expires", terms.location), OmissionReason::Time, message);
    }
    terms.expires.is_none()
}

/// Returns the message about something that no allow entry includes. `policies` are the policies with an allow list.
pub(super) fn missing_allow_message(what: &str, policies: &[&str]) -> String {
    /// Maximum number of policies that a message names.
    const MAX_NAMED_POLICIES: usize = 5;
    let named: Vec<&str> = policies.iter().take(MAX_NAMED_POLICIES).copied().collect();
    let more = policies.len().saturating_sub(MAX_NAMED_POLICIES);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    let several = if policies.len() == 1 { "policy" } else { "policies" };
    one_line(&format!("{what} by the `allow` entries of {several} {}{more}", named.join(", ")))
}

/// Returns a CEL map of the fields of a taint that expressions compare; `taint` is an expression for the taint. Times
/// compare as texts, because the server writes all of them in UTC and without fractions.
pub(super) fn taint_map_expression(taint: &str) -> String {
    let optional = |field: &str| format!("dyn(has({taint}.{field}) ? {taint}.{field} : '')");
    let effect = format!("{taint}.effect");
    format!(
        "{{'key': dyn({taint}.key), 'value': {}, 'effect': dyn({effect}), 'time': {}, 'data': dyn(has({taint}.data)), \
         'rank': dyn({effect} == 'NoExecute' ? 2 : {effect} == 'NoSchedule' ? 1 : {effect} == 'None' ? 0 : -1)}}",
        optional("value"),
        optional("timeAdded"),
    )
}

/// Returns the test whether the taint `new` is not stronger than the taint `old`; both are maps of
/// [`taint_map_expression`].
pub(super) fn is_not_stronger(old: &str, new: &str) -> BoolExpr {
    let weaker = BoolExpr::from_comparison(format!("{new}.rank >= 0"))
        .and(BoolExpr::from_comparison(format!("{new}.rank < {old}.rank")));
    let same = BoolExpr::from_comparison(format!("{old}.effect == {new}.effect"));
    let earlier = BoolExpr::from_comparison(format!("{old}.time != ''")).and(
        BoolExpr::equals_literal(&format!("{new}.time"), "")
            .or(BoolExpr::from_comparison(format!("{new}.time < {old}.time"))),
    );
    weaker.or(same.and(earlier.not()))
}

/// Returns the test whether two taints, which are maps of [`taint_map_expression`], have the same key and value.
pub(super) fn has_same_key_and_value(old: &str, new: &str) -> BoolExpr {
    BoolExpr::from_comparison(format!("{old}.key == {new}.key"))
        .and(BoolExpr::from_comparison(format!("{old}.value == {new}.value")))
}
