//! TaintPolicies: which taints slices and rules may have. What an update excuses is in `slices` and `rules`.

use super::super::entries::{EntryTerms, TaintEntry};
use super::super::kind::PolicySpec;
use super::draft::{BoundPolicy, PolicyDraft};
use super::omission::OmissionReason;
use super::source::{Source, one_line};
use super::text::{Test, driver_glob};
use crate::tolerance::coverage::Effects;
use tollgate_document::doc::Value;
use tollgate_formats::gotime;

/// Expressions for the driver of a slice, or of the selector of a rule.
#[derive(Clone, Copy, Debug)]
pub(super) struct Driver {
    /// Driver name; empty for a rule without a driver.
    pub(super) name: &'static str,
    pub(super) can_be_empty: bool,
}

impl Driver {
    /// Regular expression for `${driver}` in an allow entry.
    const REGEX: &'static str = "variables.driverRegex";
    /// Regular expression for `${driver}` in a deny entry. A rule without a driver affects all drivers.
    const DENIED_REGEX: &'static str = "variables.deniedDriverRegex";

    fn declare(self, draft: &mut PolicyDraft<'_>) {
        let name = self.name;
        draft.variable("driverRegex", format!("{name}.replace('.', '[.]')"));
        draft.variable("deniedDriverRegex", format!("{name} == '' ? '.*' : {name}.replace('.', '[.]')"));
    }
}

/// A TaintPolicy in a ValidatingAdmissionPolicy.
#[derive(Debug)]
pub(super) struct TaintPolicy<'d> {
    pub(super) source: &'d Source<'d>,
    /// True if its allow entries count.
    applies: Test,
    /// True if it restricts the request.
    binds: Test,
    allow: Option<Vec<TaintEntry>>,
    deny: Vec<TaintEntry>,
    /// The keys of taints that must have data.
    data: Vec<&'d str>,
    driver: Driver,
}

/// Reads the TaintPolicies that apply to the exported kind, with their tests.
pub(super) fn read<'d>(draft: &mut PolicyDraft<'d>, driver: Driver) -> Vec<TaintPolicy<'d>> {
    driver.declare(draft);
    let is_ours = |bound: &&BoundPolicy<'_>| matches!(bound.source.policy.spec, PolicySpec::Taint(_));
    let ours: Vec<BoundPolicy<'d>> = draft.policies.iter().filter(is_ours).cloned().collect();
    let mut policies = Vec::new();
    for BoundPolicy { source, matches, binds } in ours {
        let spec = source.spec;
        let scope = source.matches_driver(driver.name, driver.can_be_empty);
        let entries = |list: &str| TaintEntry::read_all(spec.get(list), list);
        let allow = spec.get("allow").exists().then(|| entries("allow"));
        let allow = allow.map(|entries| live_allowed(draft, source, &entries, |entry| &entry.terms));
        let deny = live_denied(draft, source, &entries("deny"), |entry| &entry.terms);
        for (index, item) in spec.get("data").items().enumerate() {
            if item.get("schema").exists() || item.get("schemaFile").exists() {
                let field = format!("spec.data[{index}].schema");
                let message = "left out: a ValidatingAdmissionPolicy cannot check data against a JSON Schema";
                draft.omissions.insert(source.omission(field, OmissionReason::JsonSchema, message));
            }
        }
        let required = spec.get("data").items().filter(|item| item.get("required").bool() == Some(true));
        let data = required.map(|item| item.get("key").str()).collect();
        let (applies, binds) = (matches.and(scope.clone()), binds.and(scope));
        policies.push(TaintPolicy { source, applies, binds, allow, deny, data, driver });
    }
    policies
}

/// True if a policy with an allow list binds, and no allow entry includes the taint `t`.
pub(super) fn is_not_allowed(policies: &[TaintPolicy<'_>]) -> Test {
    let restricting = policies.iter().filter(|policy| policy.allow.is_some());
    let binds = Test::any(restricting.map(|policy| policy.binds.clone()));
    let allowed = policies.iter().flat_map(|policy| {
        let entries = policy.allow.iter().flatten();
        entries.map(|entry| policy.applies.clone().and(policy.allow_key(&entry.key)).and(includes(entry)))
    });
    match binds {
        Test::Never => Test::Never,
        binds => binds.and(Test::any(allowed).not()),
    }
}

/// The message about a taint that is not allowed.
pub(super) fn not_allowed_message(policies: &[TaintPolicy<'_>]) -> String {
    let restricting = policies.iter().filter(|policy| policy.allow.is_some());
    not_allowed(
        "a taint is not allowed",
        &restricting.map(|policy| &*policy.source.policy.name).collect::<Vec<_>>(),
    )
}

/// Returns an expression for the index of the policy that Tollgate names in a violation of the allow lists, which
/// depends on the key of the taint `t`; `None` if it is always that policy.
pub(super) fn named_policy(policies: &[TaintPolicy<'_>]) -> NamedPolicy {
    let lists: Vec<(usize, &TaintPolicy<'_>)> =
        policies.iter().enumerate().filter(|(_, policy)| policy.allow.is_some()).collect();
    if let [(only, _)] = lists.as_slice() {
        return NamedPolicy::Always(*only);
    }
    let with_key = lists.iter().map(|(index, policy)| {
        let keys = policy.allow.iter().flatten().map(|entry| policy.allow_key(&entry.key));
        (*index, policy.applies.clone().and(Test::any(keys)))
    });
    let with_entries = lists.iter().map(|(index, policy)| {
        let is_empty = policy.allow.iter().flatten().next().is_none();
        (*index, if is_empty { Test::Never } else { policy.applies.clone() })
    });
    let binding = lists.iter().map(|(index, policy)| (*index, policy.binds.clone()));
    let choices = with_key.chain(with_entries).chain(binding);
    let mut expression = String::new();
    for (index, test) in choices.filter(|(_, test)| *test != Test::Never) {
        if test == Test::Always {
            return NamedPolicy::By(format!("{expression}{index}"));
        }
        expression.extend(["(", test.text(), ") ? ", &index.to_string(), " : "]);
    }
    NamedPolicy::By(format!("{expression}-1"))
}

/// The policy that Tollgate names in a violation of allow lists.
#[derive(Debug)]
pub(super) enum NamedPolicy {
    /// The policy with this index.
    Always(usize),
    /// An expression for the index.
    By(String),
}

impl NamedPolicy {
    /// True if it is the policy with this index.
    pub(super) fn is_policy(&self, index: usize) -> Test {
        match self {
            NamedPolicy::Always(only) if *only == index => Test::Always,
            NamedPolicy::Always(_) => Test::Never,
            NamedPolicy::By(expression) => Test::relation(format!("({expression}) == {index}")),
        }
    }
}

impl TaintPolicy<'_> {
    /// True if a deny entry includes the taint `t`.
    pub(super) fn denies(&self) -> Test {
        let driver = (!self.driver.can_be_empty).then_some(self.driver.name);
        let key = |key: &str| driver_glob(key, "t.key", driver, Driver::DENIED_REGEX);
        let denied = Test::any(self.deny.iter().map(|entry| key(&entry.key).and(includes(entry))));
        self.binds.clone().and(denied)
    }

    /// True if the taint `t` must have data and has none.
    pub(super) fn lacks_data(&self) -> Test {
        let keys = Test::any(self.data.iter().map(|key| self.allow_key(key)));
        Test::all([self.binds.clone(), keys, Test::call("!t.data")])
    }

    /// True if the key of the taint `t` matches the glob.
    fn allow_key(&self, key: &str) -> Test {
        driver_glob(key, "t.key", Some(self.driver.name), Driver::REGEX)
    }
}

/// True if the entry includes the value and the effect of the taint `t`.
fn includes(entry: &TaintEntry) -> Test {
    let values = match &entry.terms.values {
        None => Test::Always,
        Some(values) => Test::is_in("t.value", &values.iter().map(|value| &**value).collect::<Vec<_>>()),
    };
    let effects = if entry.terms.effects.contains(Effects::ALL) {
        Test::Always
    } else {
        Test::is_in("t.effect", &entry.terms.effects.names().collect::<Vec<_>>())
    };
    values.and(effects)
}

/// Returns the allow entries that have not expired. Those that expire later are listed as omissions.
pub(super) fn live_allowed<T: Clone>(
    draft: &mut PolicyDraft<'_>,
    source: &Source<'_>,
    entries: &[T],
    terms: impl Fn(&T) -> &EntryTerms,
) -> Vec<T> {
    let now = Some(draft.now);
    let live: Vec<T> = entries.iter().filter(|entry| !terms(entry).is_expired(now)).cloned().collect();
    for entry in &live {
        if let Some(end) = terms(entry).expires {
            let message = format!(
                "the entry does not expire, because expressions cannot read the time; export the policies again on {}",
                gotime::rfc3339(end)
            );
            let field = format!("spec.{}.expires", terms(entry).location);
            draft.omissions.insert(source.omission(field, OmissionReason::Time, message));
        }
    }
    live
}

/// Returns the deny entries that never expire. Those that expire are listed as omissions.
pub(super) fn live_denied<T: Clone>(
    draft: &mut PolicyDraft<'_>,
    source: &Source<'_>,
    entries: &[T],
    terms: impl Fn(&T) -> &EntryTerms,
) -> Vec<T> {
    let now = Some(draft.now);
    for entry in entries.iter().filter(|entry| !terms(entry).is_expired(now)) {
        if terms(entry).expires.is_some() {
            let message = "the entry is left out, because expressions cannot read the time";
            let field = format!("spec.{}.expires", terms(entry).location);
            draft.omissions.insert(source.omission(field, OmissionReason::Time, message));
        }
    }
    entries.iter().filter(|entry| terms(entry).expires.is_none()).cloned().collect()
}

/// The message for a value that no allow entry contains. `policies` are the policies with an allow list.
pub(super) fn not_allowed(what: &str, policies: &[&str]) -> String {
    /// Maximum number of policies that a message names.
    const MAX_NAMED_POLICIES: usize = 5;
    let named: Vec<&str> = policies.iter().take(MAX_NAMED_POLICIES).copied().collect();
    let more = policies.len().saturating_sub(MAX_NAMED_POLICIES);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    let several = if policies.len() == 1 { "policy" } else { "policies" };
    one_line(&format!("{what} by the `allow` entries of {several} {}{more}", named.join(", ")))
}

/// The fields of a taint that expressions compare, as a map; `taint` is an expression for the taint. The server writes
/// all times in UTC and without fractions, so that they compare as texts.
pub(super) fn taint_map(taint: &str) -> String {
    let optional = |field: &str| format!("dyn(has({taint}.{field}) ? {taint}.{field} : '')");
    let effect = format!("{taint}.effect");
    format!(
        "{{'key': dyn({taint}.key), 'value': {}, 'effect': dyn({effect}), 'time': {}, 'data': dyn(has({taint}.data)), \
         'rank': dyn({effect} == 'NoExecute' ? 2 : {effect} == 'NoSchedule' ? 1 : {effect} == 'None' ? 0 : -1)}}",
        optional("value"),
        optional("timeAdded"),
    )
}

/// True if the taint `new` is not stronger than the taint `old`, both of the form of [`taint_map`].
pub(super) fn covers(old: &str, new: &str) -> Test {
    let weaker =
        Test::relation(format!("{new}.rank >= 0")).and(Test::relation(format!("{new}.rank < {old}.rank")));
    let same = Test::relation(format!("{old}.effect == {new}.effect"));
    let earlier = Test::relation(format!("{old}.time != ''"))
        .and(Test::equals(&format!("{new}.time"), "").or(Test::relation(format!("{new}.time < {old}.time"))));
    weaker.or(same.and(earlier.not()))
}

/// True if two taints of the form of [`taint_map`] have the same key and value.
pub(super) fn is_same(old: &str, new: &str) -> Test {
    Test::relation(format!("{old}.key == {new}.key"))
        .and(Test::relation(format!("{old}.value == {new}.value")))
}

/// The items of a list that a policy names.
pub(super) fn texts(list: Value<'_>) -> impl Iterator<Item = &str> {
    list.items().map(Value::str)
}
