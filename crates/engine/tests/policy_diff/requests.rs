//! Random pairs of policy sets, held against requests: if a comparison finds nothing wider, no request may be allowed
//! that was refused before; and if it finds nothing stricter, none may be refused that was allowed.
//!
//! Requests are judged by the engine itself, which knows nothing of comparisons. Their namespaces, labels, users,
//! times, tolerations and taints are drawn from what policies name, and from what none of them names.

use std::fmt::Write as _;

use super::{NOW, diff, load};
use tollgate_document::doc;
use tollgate_engine::engine::Verdict;
use tollgate_engine::policy::{ChangeEffect, PolicySet};
use tollgate_engine::{Attributes, Engine, FindingLevel, LabelsIfKnown, Operation, Profile, RuleSet};

/// SplitMix64: the same cases on every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % sides as u64).unwrap()
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.roll(of.len())]
    }

    /// A random selection of the texts, as a YAML list.
    fn some(&mut self, of: &[&str]) -> String {
        let count = 1 + self.roll(2);
        let all: Vec<String> = (0..count).map(|_| format!("{:?}", self.pick(of))).collect();
        format!("[{}]", all.join(", "))
    }

    fn chance(&mut self, one_in: usize) -> bool {
        self.roll(one_in) == 0
    }
}

const NAMESPACE_GLOBS: &[&str] = &["*", "ml-*", "ml-a", "*-a", "m?-*", "web"];
const NAMESPACES: &[&str] = &["ml-a", "ml-b", "mx-a", "web", "other-a", "other"];
const DRIVER_GLOBS: &[&str] = &["*", "*.example.com", "gpu.example.com", "gpu.*"];
const DRIVERS: &[&str] = &["gpu.example.com", "nic.example.com", "gpu.example.org", "other.invalid"];
const USER_GLOBS: &[&str] = &["*", "ann", "a*", "system:serviceaccount:ml-a:*"];
const GROUP_GLOBS: &[&str] = &["dev", "gpu-*", "system:authenticated"];
const ACCOUNT_GLOBS: &[&str] = &["*/deployer", "ml-a/*"];
const USERS: &[&str] =
    &["ann", "amy", "bob", "system:serviceaccount:ml-a:deployer", "system:serviceaccount:web:x"];
const KEYS: &[&str] = &["gpu.example.com/hot", "gpu.example.com/lost", "example.org/x", "other.io/y"];
const KEY_PATTERNS: &[&str] =
    &["*", "gpu.example.com/*", "gpu.example.com/hot", "gpu.example.com/lost", "example.org/x"];
const EFFECTS: &[&str] = &["None", "NoSchedule", "NoExecute"];
const TIMES: &[&str] = &["2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z", "2028-01-01T00:00:00Z"];
const CONDITIONS: &[&str] = &["object.metadata.name == 'n0'", "request.operation == 'CREATE'", "true"];

/// The fields that all kinds of policies have in common.
fn common(dice: &mut Dice, has_drivers: bool) -> String {
    let mut out = String::new();
    let mut criteria = Vec::new();
    if dice.chance(2) {
        criteria.push(format!("namespaces: {}", dice.some(NAMESPACE_GLOBS)));
    }
    if dice.chance(4) {
        criteria.push(format!("excludeNamespaces: {}", dice.some(NAMESPACE_GLOBS)));
    }
    if dice.chance(5) {
        let (operator, values) = match dice.roll(4) {
            0 => ("In", format!(", values: {}", dice.some(&["a", "b"]))),
            1 => ("NotIn", format!(", values: {}", dice.some(&["a", "b"]))),
            2 => ("Exists", String::new()),
            _ => ("DoesNotExist", String::new()),
        };
        criteria.push(format!(
            "namespaceSelector: {{matchExpressions: [{{key: tier, operator: {operator}{values}}}]}}"
        ));
    }
    if dice.chance(5) {
        criteria.push(format!("operations: {}", dice.some(&["CREATE", "UPDATE", "*"])));
    }
    if has_drivers && dice.chance(2) {
        criteria.push(format!("drivers: {}", dice.some(DRIVER_GLOBS)));
    }
    _ = writeln!(out, "  match: {{{}}}", criteria.join(", "));
    if dice.chance(3) {
        let exempt = match dice.roll(3) {
            0 => format!("users: {}", dice.some(USER_GLOBS)),
            1 => format!("groups: {}", dice.some(GROUP_GLOBS)),
            _ => format!("serviceAccounts: {}", dice.some(ACCOUNT_GLOBS)),
        };
        _ = writeln!(out, "  exempt: {{{exempt}}}");
    }
    if dice.chance(3) {
        _ = writeln!(out, "  action: {}", dice.pick(&["Deny", "Warn", "Audit"]));
    }
    if dice.chance(6) {
        _ = writeln!(out, "  enforceFrom: {}", dice.pick(TIMES));
    }
    if dice.chance(6) {
        _ = writeln!(out, "  matchConditions: [{{expression: {:?}}}]", dice.pick(CONDITIONS));
    }
    if dice.chance(8) {
        _ = writeln!(out, "  validations: [{{expression: {:?}}}]", dice.pick(CONDITIONS));
    }
    out
}

/// An entry of `allow` or `deny`.
fn entry(dice: &mut Dice, seconds: bool) -> String {
    let mut fields = vec![format!("key: {:?}", dice.pick(KEY_PATTERNS))];
    if dice.chance(3) {
        fields.push(format!("values: {}", dice.some(&["a", "b"])));
    }
    if dice.chance(3) {
        fields.push(format!("effects: {}", dice.some(EFFECTS)));
    }
    if seconds && dice.chance(3) {
        fields.push(format!("maxTolerationSeconds: {}", dice.pick(&["0", "60", "600"])));
    }
    if dice.chance(6) {
        fields.push(format!("expires: {}", dice.pick(TIMES)));
    }
    format!("  - {{{}}}\n", fields.join(", "))
}

/// A random policy as YAML.
fn policy(dice: &mut Dice, name: &str) -> String {
    let (kind, spec) = match dice.roll(4) {
        0 | 1 => {
            let mut spec = common(dice, false);
            for (list, seconds) in [("allow", true), ("deny", false)] {
                if dice.chance(2) {
                    let entries: String = (0..=dice.roll(2)).map(|_| entry(dice, seconds)).collect();
                    _ = write!(spec, "  {list}:\n{entries}");
                }
            }
            if dice.chance(8) {
                spec.push_str("  requireKey: true\n");
            }
            ("TolerationPolicy", spec)
        }
        2 => {
            let mut spec = common(dice, true);
            for list in ["allow", "deny"] {
                if dice.chance(2) {
                    let entries: String = (0..=dice.roll(2)).map(|_| entry(dice, false)).collect();
                    _ = write!(
                        spec,
                        "  {list}:\n{}",
                        entries.replace("\"gpu.example.com/*", "\"${driver}/*")
                    );
                }
            }
            ("TaintPolicy", spec)
        }
        _ => {
            let mut spec = common(dice, true);
            if dice.chance(2) {
                _ = writeln!(spec, "  requireSelector: {}", dice.some(&["driver", "pool", "device", "any"]));
            }
            _ = writeln!(spec, "  twoSteps: {}", dice.chance(2));
            ("TaintRulePolicy", spec)
        }
    };
    format!("apiVersion: tollgate.dev/v1alpha1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec:\n{spec}---\n")
}

/// A random object, as JSON.
fn object(dice: &mut Dice, namespace: &str) -> String {
    let name = dice.pick(&["n0", "n1"]);
    if dice.chance(3) {
        let mut taint = format!(r#""key":"{}","effect":"{}""#, dice.pick(KEYS), dice.pick(EFFECTS));
        if dice.chance(2) {
            _ = write!(taint, r#","value":"{}""#, dice.pick(&["a", "b", "c"]));
        }
        let mut criteria = Vec::new();
        for (criterion, values) in [("driver", DRIVERS), ("pool", &["p"]), ("device", &["d"])] {
            if dice.chance(2) {
                criteria.push(format!(r#""{criterion}":"{}""#, dice.pick(values)));
            }
        }
        return format!(
            r#"{{"apiVersion":"resource.k8s.io/v1beta2","kind":"DeviceTaintRule","metadata":{{"name":"{name}"}},"spec":{{"deviceSelector":{{{}}},"taint":{{{taint}}}}}}}"#,
            criteria.join(",")
        );
    }
    let mut fields = Vec::new();
    if !dice.chance(6) {
        fields.push(format!(r#""key":"{}""#, dice.pick(KEYS)));
    }
    if fields.is_empty() || dice.chance(2) {
        fields.push(r#""operator":"Exists""#.to_owned());
    } else {
        fields.push(format!(r#""operator":"Equal","value":"{}""#, dice.pick(&["", "a", "b", "c"])));
    }
    if dice.chance(2) {
        fields.push(format!(r#""effect":"{}""#, dice.pick(EFFECTS)));
    }
    let is_limited = fields.last().is_some_and(|last| last.contains("NoExecute"));
    if is_limited && dice.chance(2) {
        fields.push(format!(r#""tolerationSeconds":{}"#, dice.pick(&["0", "60", "61", "600", "6000"])));
    }
    format!(
        r#"{{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{{"name":"{name}","namespace":"{namespace}"}},"spec":{{"devices":{{"requests":[{{"name":"r","exactly":{{"deviceClassName":"c","tolerations":[{{{}}}]}}}}]}}}}}}"#,
        fields.join(",")
    )
}

/// The highest level of what policies report about a request.
fn level(engine: &Engine, request: &Request) -> Option<FindingLevel> {
    let [object, user, labels] =
        [&request.object, &request.user, &request.labels].map(|text| doc::parse(text).unwrap());
    let attributes = Attributes {
        operation: Operation::Create,
        subresource: "",
        object: object.root(),
        old_object: None,
        namespace: "",
        user: user.root(),
        now: request.now.as_str().into(),
    };
    let Verdict::Checked(found) = engine.validate(&attributes, LabelsIfKnown::Known(labels.root())) else {
        panic!("not checked: {}", request.object)
    };
    found.iter().map(|diagnostic| diagnostic.level).max()
}

#[derive(Debug)]
struct Request {
    object: String,
    user: String,
    labels: String,
    now: String,
}

fn request(dice: &mut Dice) -> Request {
    let namespace = dice.pick(NAMESPACES);
    let object = object(dice, namespace);
    let groups: Vec<String> = ["dev", "gpu-oncall", "system:authenticated", "none"]
        .into_iter()
        .filter(|_| dice.chance(3))
        .map(|group| format!("{group:?}"))
        .collect();
    Request {
        object,
        user: format!(r#"{{"username":{:?},"groups":[{}]}}"#, dice.pick(USERS), groups.join(",")),
        labels: dice.pick(&["{}", r#"{"tier":"a"}"#, r#"{"tier":"b"}"#, r#"{"tier":"c"}"#]).to_owned(),
        now: dice.pick(&[NOW, NOW, "2027-06-01T00:00:00Z", "2029-01-01T00:00:00Z"]).to_owned(),
    }
}

fn engine(policies: PolicySet) -> Engine {
    let profile = Profile::named("1.37").unwrap();
    let mut engine = Engine::new(vec![profile], RuleSet::parse("policy").unwrap());
    engine.policies = policies.into();
    engine
}

#[test]
fn what_is_not_found_does_not_exist() {
    let mut dice = Dice(30);
    let (mut effects, mut witnessed, mut requests) = ([0; 5], [0; 2], 0);
    for round in 0..300 {
        let before: Vec<String> =
            (0..=dice.roll(3)).map(|index| policy(&mut dice, &format!("p{index}"))).collect();
        let mut after = before.clone();
        // A small change, so that many pairs have one effect only.
        let place = dice.roll(after.len());
        match dice.roll(3) {
            0 => _ = after.remove(place),
            1 => after.push(policy(&mut dice, "added")),
            _ => after[place] = policy(&mut dice, &format!("p{place}")),
        }
        let (old, new) = (before.concat(), after.concat());
        let found = diff(&load(&old), &load(&new));
        assert!(found.incomplete.is_empty(), "{:?}", found.incomplete);
        effects[found.effect as usize] += 1;
        let (old_engine, new_engine) = (engine(load(&old)), engine(load(&new)));
        let (mut wider, mut stricter) = (false, false);
        for _ in 0..120 {
            let request = request(&mut dice);
            let (was, is) = (level(&old_engine, &request), level(&new_engine, &request));
            requests += 1;
            wider |= is < was;
            stricter |= is > was;
            assert!(
                (is >= was || found.effect.may_widen()) && (is <= was || found.effect.may_tighten()),
                "round {round}: {was:?} -> {is:?}, but {}\n{request:?}\n{old}# new\n{new}",
                found.effect.name()
            );
        }
        witnessed[0] += usize::from(wider);
        witnessed[1] += usize::from(stricter);
    }
    // Otherwise the requests would not tell anything.
    let by_name = [
        ChangeEffect::None,
        ChangeEffect::Stricter,
        ChangeEffect::Unknown,
        ChangeEffect::Wider,
        ChangeEffect::Both,
    ];
    let counts: Vec<String> =
        by_name.map(|effect| format!("{} {}", effects[effect as usize], effect.name())).into();
    println!(
        "300 pairs, {requests} requests: {}; wider {}, stricter {} by requests",
        counts.join(", "),
        witnessed[0],
        witnessed[1]
    );
    assert!(
        effects[ChangeEffect::None as usize] >= 5 && witnessed.iter().all(|count| *count >= 50),
        "{counts:?} {witnessed:?}"
    );
}
