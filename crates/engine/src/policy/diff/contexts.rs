//! Sample namespaces, labels and users, for the scopes and exemptions of policies.
//!
//! A [`RequestGroup`] represents all requests to which the same policies of both sets apply. A [`SampleUser`]
//! represents all users that the same policies exempt.
//!
//! Invariant: additional groups never cause a denial. So for each policy it is sufficient to check users who have all
//! groups except those that the policy exempts, besides users with few groups, who are better examples.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::expressions;
use super::names::{Alphabet, NamePattern, SampleNames, sample_names, sample_names_for_globs};
use crate::admission::{LabelsIfKnown, Operation};
use crate::engine::{LoadedNamespaces, NamespaceLabelLookup as _};
use crate::policy::conditions::labels_json;
use crate::policy::matching::ScopeMatch;
use crate::policy::taint_rule::TaintRulePolicy;
use crate::policy::{Policy, PolicyKind, glob};
use tollgate_api::profile::ApiKind;
use tollgate_document::doc;
use tollgate_formats::gofmt;

/// Maximum number of combinations of labels that are compared.
const MAX_LABEL_COMBINATIONS: usize = 512;
/// Maximum number of combinations of namespaces and labels that are compared.
const MAX_SAMPLE_NAMESPACES: usize = 20_000;
/// Sample label value that no selector names.
const UNLISTED_LABEL_VALUE: &str = "any-other";
const SERVICE_ACCOUNT_PREFIX: &str = "system:serviceaccount:";

/// All requests for one kind of object and one operation to which the same policies apply, with the sample namespaces
/// that they are in.
pub(super) struct RequestGroup {
    pub(super) kind: ApiKind,
    pub(super) operation: Operation,
    /// Indices of the policies that apply, with the old set first.
    pub(super) applying: Vec<usize>,
    /// The namespaces of these requests; empty if the objects are cluster-scoped.
    pub(super) namespaces: BTreeSet<String>,
}

/// A sample user that represents all users whom the policies treat equally.
pub(super) struct SampleUser {
    /// `userInfo` of the user, as JSON.
    pub(super) json: String,
    /// Description of the user; `None` for a user whom no policy names.
    pub(super) title: Option<String>,
    /// The policies that exempt the user, as indexes into both sets.
    pub(super) exempt: BTreeSet<usize>,
    /// For each policy with groups that may exceed its limits, whether the user is in such a group.
    pub(super) acknowledges: Vec<bool>,
}

/// Sample requests for every distinction that the scopes, exemptions and match conditions of two policy sets make.
pub(super) struct SampleRequests {
    pub(super) groups: Vec<RequestGroup>,
    pub(super) users: BTreeMap<ApiKind, Vec<SampleUser>>,
    /// The match conditions of each policy, as canonical texts.
    pub(super) conditions: Vec<BTreeSet<String>>,
    /// The titles of all sample namespaces.
    pub(super) namespaces: BTreeSet<String>,
    /// Reasons why the combinations are incomplete; empty if they are complete.
    pub(super) incomplete: Vec<String>,
}

/// A sample namespace that represents all namespaces that the policies treat equally.
struct SampleNamespace {
    name: String,
    labels: String,
    title: String,
}

impl SampleRequests {
    /// Creates the sample requests for these policies. If `namespaces` is given, only these namespaces exist.
    pub(super) fn from_policies(
        old: &[Arc<Policy>],
        new: &[Arc<Policy>],
        namespaces: Option<&LoadedNamespaces>,
    ) -> SampleRequests {
        let policies: Vec<&Policy> = old.iter().chain(new).map(Arc::as_ref).collect();
        let mut contexts = SampleRequests {
            groups: Vec::new(),
            users: BTreeMap::new(),
            conditions: policies.iter().map(|policy| expressions::condition_conjuncts(policy)).collect(),
            namespaces: BTreeSet::new(),
            incomplete: Vec::new(),
        };
        let samples = match namespaces {
            Some(namespaces) => given_namespaces(namespaces),
            None => contexts.sample_namespaces(&policies),
        };
        contexts.namespaces = samples.iter().map(|sample| sample.title.clone()).collect();
        let mut kinds: Vec<ApiKind> = Vec::new();
        for kind in PolicyKind::ALL.into_iter().flat_map(PolicyKind::applicable_kinds) {
            let is_used = policies.iter().any(|policy| policy.scope.includes_kind(*kind));
            if is_used && !kinds.contains(kind) {
                kinds.push(*kind);
            }
        }
        for kind in kinds {
            contexts.add_request_groups(kind, &policies, &samples);
            let users = contexts.sample_users(kind, &policies);
            contexts.users.insert(kind, users);
        }
        contexts
    }

    /// Returns the sample names, and records it if they do not cover all combinations.
    fn record_if_incomplete(&mut self, names: SampleNames, what: &str) -> Vec<String> {
        if !names.complete {
            self.incomplete.push(format!("the patterns of {what} have too many combinations"));
        }
        names.names
    }

    /// Returns one namespace for each combination of patterns and labels.
    fn sample_namespaces(&mut self, policies: &[&Policy]) -> Vec<SampleNamespace> {
        let globs = policies.iter().flat_map(|policy| policy.scope.namespace_names_and_patterns());
        let names = sample_names_for_globs(globs, Alphabet::Namespace);
        let names = self.record_if_incomplete(names, "namespaces");
        let mut values: BTreeMap<&str, BTreeSet<Option<&str>>> = BTreeMap::new();
        for (key, value) in
            policies.iter().flat_map(|policy| policy.scope.selector_labels_with_and_without_value())
        {
            let known = values.entry(key).or_insert_with(|| [None, Some(UNLISTED_LABEL_VALUE)].into());
            known.extend(value.map(Some));
        }
        let mut sets: Vec<Vec<(&str, &str)>> = vec![Vec::new()];
        for (key, values) in &values {
            let mut longer = Vec::new();
            for set in &sets {
                for value in values {
                    let mut set = set.clone();
                    set.extend(value.map(|value| (*key, value)));
                    longer.push(set);
                }
            }
            if longer.len() > MAX_LABEL_COMBINATIONS || longer.len() * names.len() > MAX_SAMPLE_NAMESPACES {
                self.incomplete.push("the labels of namespaces have too many combinations".to_owned());
                break;
            }
            sets = longer;
        }
        let mut samples = Vec::new();
        for name in names {
            for set in &sets {
                let members = set
                    .iter()
                    .map(|(key, value)| format!("{}:{}", gofmt::json_string(key), gofmt::json_string(value)));
                let labels = format!("{{{}}}", members.collect::<Vec<_>>().join(","));
                let texts: Vec<String> = set.iter().map(|(key, value)| format!("{key}={value}")).collect();
                let title = match (values.is_empty(), texts.is_empty()) {
                    (true, _) => name.clone(),
                    (false, true) => format!("{name} (without labels)"),
                    (false, false) => format!("{name} ({})", texts.join(", ")),
                };
                samples.push(SampleNamespace { name: name.clone(), labels, title });
            }
        }
        samples
    }

    /// Adds the groups of requests for objects of a kind.
    fn add_request_groups(&mut self, kind: ApiKind, policies: &[&Policy], samples: &[SampleNamespace]) {
        let all = policies.iter().copied().enumerate();
        let ours: Vec<(usize, &Policy)> =
            all.filter(|(_, policy)| policy.scope.includes_kind(kind)).collect();
        for operation in [Operation::Create, Operation::Update] {
            let applying = |namespace: Option<&str>, labels: LabelsIfKnown<'_>| -> Vec<usize> {
                let applies = |policy: &Policy| {
                    policy.scope.match_request(operation, namespace, labels) == ScopeMatch::Yes
                };
                ours.iter().filter(|(_, policy)| applies(policy)).map(|(index, _)| *index).collect()
            };
            if !kind.is_namespaced() {
                let applying = applying(None, LabelsIfKnown::Unknown);
                self.groups.push(RequestGroup { kind, operation, applying, namespaces: BTreeSet::new() });
                continue;
            }
            let mut groups: BTreeMap<Vec<usize>, BTreeSet<String>> = BTreeMap::new();
            for sample in samples {
                let Ok(labels) = doc::parse(&sample.labels) else { continue };
                let applying = applying(Some(&sample.name), LabelsIfKnown::Known(labels.root()));
                groups.entry(applying).or_default().insert(sample.title.clone());
            }
            self.groups.extend(groups.into_iter().map(|(applying, namespaces)| RequestGroup {
                kind,
                operation,
                applying,
                namespaces,
            }));
        }
    }

    /// Returns one user for each combination of policies that exempt a user, simplest first.
    fn sample_users(&mut self, kind: ApiKind, policies: &[&Policy]) -> Vec<SampleUser> {
        let all = policies.iter().copied().enumerate();
        let ours: Vec<(usize, &Policy)> =
            all.filter(|(_, policy)| policy.scope.includes_kind(kind)).collect();
        let all = |list: fn(&Policy) -> Vec<&str>| -> BTreeSet<&str> {
            ours.iter().flat_map(|(_, policy)| list(policy)).collect()
        };
        let users = all(|policy| policy.exempt.users.patterns().collect());
        let accounts = all(|policy| policy.exempt.service_accounts.patterns().collect());
        let groups =
            all(|policy| policy.exempt.groups.patterns().chain(acknowledging_group_globs(policy)).collect());
        let plain = |globs: &BTreeSet<&str>| sample_names_for_globs(globs.iter().copied(), Alphabet::Any);
        let mut names = self.record_if_incomplete(plain(&users), "users");
        let group_names = self.record_if_incomplete(plain(&groups), "groups");
        let as_users =
            users.iter().map(|glob| NamePattern { glob, before: SERVICE_ACCOUNT_PREFIX, slash: ':' });
        let account_patterns: Vec<NamePattern<'_>> =
            as_users.chain(accounts.iter().copied().map(NamePattern::from_glob)).collect();
        let account_names = sample_names(&account_patterns, Alphabet::ServiceAccount);
        let account_names = self.record_if_incomplete(account_names, "service accounts").into_iter();
        names.extend(
            account_names.map(|name| format!("{SERVICE_ACCOUNT_PREFIX}{}", name.replacen('/', ":", 1))),
        );
        let mut sets: BTreeSet<(usize, Vec<&str>)> = BTreeSet::from([(0, Vec::new())]);
        sets.extend(group_names.iter().map(|group| (1, vec![group.as_str()])));
        let without = |globs: &[&str]| -> (usize, Vec<&str>) {
            let is_left = |name: &&String| !globs.iter().any(|pattern| glob::matches(pattern, name));
            let left: Vec<&str> = group_names.iter().filter(is_left).map(String::as_str).collect();
            (left.len(), left)
        };
        for (_, policy) in &ours {
            let exempt: Vec<&str> = policy.exempt.groups.patterns().collect();
            let either: Vec<&str> =
                policy.exempt.groups.patterns().chain(acknowledging_group_globs(policy)).collect();
            sets.extend([without(&exempt), without(&either)]);
        }
        let mut known: BTreeSet<(BTreeSet<usize>, Vec<bool>)> = BTreeSet::new();
        let mut found = Vec::new();
        for (_, groups) in &sets {
            for name in &names {
                let json = user_json(name, groups);
                let Ok(user) = doc::parse(&json) else { continue };
                let exempts = |(_, policy): &&(usize, &Policy)| policy.exempt.exempts_user(user.root());
                let exempt: BTreeSet<usize> = ours.iter().filter(exempts).map(|(index, _)| *index).collect();
                let limiting = ours
                    .iter()
                    .map(|(_, policy)| acknowledging_group_globs(policy))
                    .filter(|all| !all.is_empty());
                let acknowledges: Vec<bool> = limiting
                    .map(|all| all.iter().any(|one| groups.iter().any(|group| glob::matches(one, group))))
                    .collect();
                if known.insert((exempt.clone(), acknowledges.clone())) {
                    let is_named = |globs: &BTreeSet<&str>, name: &str| {
                        globs.iter().any(|pattern| *pattern != "*" && glob::matches(pattern, name))
                    };
                    let account =
                        name.strip_prefix(SERVICE_ACCOUNT_PREFIX).map(|name| name.replacen(':', "/", 1));
                    let title = match (account, groups.as_slice()) {
                        (Some(account), []) => Some(format!("service account {account}")),
                        (None, []) if !is_named(&users, name) => None,
                        (None, []) => Some(format!("user {name}")),
                        (_, groups) => Some(format!("user {name} in the groups {}", groups.join(", "))),
                    };
                    found.push(SampleUser { json, title, exempt, acknowledges });
                }
            }
        }
        found
    }
}

/// Returns the globs for groups that may exceed the limits of a policy by acknowledging the impact.
fn acknowledging_group_globs(policy: &Policy) -> Vec<&str> {
    let limits = policy.spec.taint_rule().and_then(TaintRulePolicy::acknowledging_group_globs);
    limits.unwrap_or_default()
}

/// Returns the namespaces that the caller named, with their labels, as samples.
fn given_namespaces(namespaces: &LoadedNamespaces) -> Vec<SampleNamespace> {
    let sample = |name: &str| {
        let labels = labels_json(namespaces.labels(name));
        SampleNamespace { name: name.to_owned(), labels, title: name.to_owned() }
    };
    namespaces.names().map(sample).collect()
}

/// Returns the `userInfo` of a user as JSON.
fn user_json(name: &str, groups: &[&str]) -> String {
    let groups: Vec<String> = groups.iter().map(|group| gofmt::json_string(group)).collect();
    format!(r#"{{"username":{},"groups":[{}]}}"#, gofmt::json_string(name), groups.join(","))
}
