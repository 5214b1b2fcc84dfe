//! `maxImpact`: how many devices, pods and namespaces a DeviceTaintRule may touch, and who may go past that.
//!
//! The numbers are the eviction controller's, from the state of the cluster. Where that is not known, or the rule
//! selects by class or expression, `onUnknown` decides, and it denies unless told otherwise.
//!
//! Invariant: an update that touches nothing but what the stored rule touches is let through, however much that is.
//! What could touch other devices or pods, or the same ones harder or sooner, is judged like a new rule, even if they are
//! fewer.

use std::cell::OnceCell;

use super::{Kind, Matched, Selection};
use crate::admission::{Attributes, Context};
use crate::api::view;
use crate::doc::Value;
use crate::field::Path;
use crate::impact::{ClusterState, ImpactCounts, ImpactQuery, ProposedChange, count};
use crate::policy::Report;
use crate::policy::glob::Glob;
use crate::policy::matching::globs;
use crate::rules::Level;
use crate::rules::policy::POLICY_TAINT_RULE;
use crate::rules::ratchet::{Extent, extent};

/// What a policy allows.
#[derive(Debug)]
pub(super) struct Limits {
    most: Numbers<Option<usize>>,
    /// `None`: what is not known is allowed.
    on_unknown: Option<Level>,
    acknowledge: Option<Acknowledge>,
}

/// Who may go past the limits, and how.
#[derive(Debug)]
struct Acknowledge {
    annotation: Box<str>,
    /// `None`: everyone.
    groups: Option<Vec<Glob>>,
}

/// One value for each thing that is limited.
#[derive(Clone, Copy, Debug)]
struct Numbers<T> {
    devices: T,
    pods: T,
    namespaces: T,
}

impl Limits {
    /// Reads `spec`.
    pub(super) fn read(spec: Value<'_>) -> Limits {
        let number = |name: &str| {
            let given = spec.get("maxImpact").get(name).int();
            given.map(|number| usize::try_from(number).unwrap_or_default())
        };
        let acknowledge = spec.get("acknowledge");
        Limits {
            most: Numbers {
                devices: number("devices"),
                pods: number("pods"),
                namespaces: number("namespaces"),
            },
            on_unknown: match spec.get("onUnknown").str() {
                "Allow" => None,
                "Warn" => Some(Level::Warn),
                _ => Some(Level::Deny),
            },
            acknowledge: acknowledge.exists().then(|| Acknowledge {
                annotation: acknowledge.get("annotation").str().into(),
                groups: globs(acknowledge.get("groups")),
            }),
        }
    }

    /// Judges what a rule touches.
    pub(super) fn check(
        &self,
        one: Matched<'_>,
        admission: &Attributes<'_>,
        context: &Context<'_>,
        selection: &Selection<'_>,
        counted: &Counted,
        report: &mut Report<'_>,
    ) {
        let evicts = selection.taint.effect() == "NoExecute";
        let limits_pods = self.most.pods.is_some() || self.most.namespaces.is_some();
        if !(evicts && limits_pods || selection.is_felt() && self.most.devices.is_some()) {
            return;
        }
        let view::Body::Rule(rule) = admission.object.body else { return };
        let told = one.policy.told();
        let numbers = |known| counted.new.get_or_init(|| touched(rule, known, admission, context)).as_ref();
        let Some((known, numbers)) = context.cluster.and_then(|known| Some((known, numbers(known)?))) else {
            let detail = format!(
                "how many devices and pods this rule touches is not known here, and {told} limits it"
            );
            return self.say_unknown(one, report, detail);
        };
        let before = match admission.old_object.map(|old| old.body) {
            Some(view::Body::Rule(old)) if extent(admission) != Extent::Wider => {
                let before = counted.old.get_or_init(|| touched(old, known, admission, context));
                before.as_ref().map(|touched| touched.numbers)
            }
            _ => None,
        };
        let before = before.unwrap_or(Numbers { devices: 0, pods: 0, namespaces: 0 });
        let excess = self.excess(numbers.numbers, before);
        if excess.is_empty() {
            return;
        }
        let what = &numbers.told;
        if numbers.at_most {
            let detail = format!(
                "{what}: which of them its class and expressions select is not known here, and {told} allows {excess}"
            );
            return self.say_unknown(one, report, detail);
        }
        let Err(hint) = self.acknowledged(admission, numbers.numbers.pods) else { return };
        let detail = format!("{what}, and {told} allows {excess}{hint}{}", known.caveat());
        let spec = Path::ROOT.field("spec");
        report.say(one.policy, POLICY_TAINT_RULE, &spec, Kind::Forbidden, detail);
    }

    fn say_unknown(&self, one: Matched<'_>, report: &mut Report<'_>, detail: String) {
        let Some(level) = self.on_unknown else { return };
        let before = report.said;
        let spec = Path::ROOT.field("spec");
        report.say(one.policy, POLICY_TAINT_RULE, &spec, Kind::Forbidden, detail);
        if report.said > before {
            report.at_most(level);
        }
    }

    /// The limits that are passed, and were not passed as far before: `20 pods, 3 namespaces`.
    fn excess(&self, found: Numbers<usize>, before: Numbers<usize>) -> String {
        let all = [
            (found.devices, before.devices, self.most.devices, "device"),
            (found.pods, before.pods, self.most.pods, "pod"),
            (found.namespaces, before.namespaces, self.most.namespaces, "namespace"),
        ];
        let passed = all.into_iter().filter_map(|(found, before, limit, what)| {
            let limit = limit.filter(|limit| found > *limit && found > before)?;
            Some(format!("{limit} {what}{}", if limit == 1 { "" } else { "s" }))
        });
        passed.collect::<Vec<_>>().join(", ")
    }

    /// Whether somebody who may has said how many pods go; else what is missing.
    fn acknowledged(&self, admission: &Attributes<'_>, pods: usize) -> Result<(), String> {
        let Some(Acknowledge { annotation, groups }) = &self.acknowledge else { return Err(String::new()) };
        let may = groups.as_ref().is_none_or(|groups| {
            let mut own = admission.user.get("groups").items();
            own.any(|group| groups.iter().any(|glob| glob.matches(group.str())))
        });
        let given = admission.object.metadata().annotations().get(annotation);
        if !may {
            let void = format!("; annotation {annotation} does not count, because this user may not set it");
            return Err(if given.exists() { void } else { String::new() });
        }
        if given.str() == pods.to_string() {
            return Ok(());
        }
        Err(if given.exists() {
            format!("; annotation {annotation} says {:?}, it must say \"{pods}\"", given.str())
        } else {
            format!("; annotation {annotation}: \"{pods}\" would acknowledge it")
        })
    }
}

/// What the new and the old rule touch, counted once for all policies that ask.
#[derive(Debug, Default)]
pub(super) struct Counted {
    new: OnceCell<Option<Touched>>,
    old: OnceCell<Option<Touched>>,
}

/// What a rule touches.
#[derive(Debug)]
struct Touched {
    numbers: Numbers<usize>,
    /// The same in words.
    told: String,
    /// Not all of it may be selected.
    at_most: bool,
}

/// What a rule does, in words, and how old that is.
pub(super) fn told(
    rule: view::TaintRule<'_>,
    known: &ClusterState,
    admission: &Attributes<'_>,
    context: &Context<'_>,
) -> Option<String> {
    let touched = touched(rule, known, admission, context)?;
    Some(format!("{}{}", touched.told, known.caveat()))
}

/// Counts what a rule touches. A rule without an effect touches nothing, one that does not evict touches no pod.
fn touched(
    rule: view::TaintRule<'_>,
    known: &ClusterState,
    admission: &Attributes<'_>,
    context: &Context<'_>,
) -> Option<Touched> {
    let change = ProposedChange::rule(rule);
    let query = ImpactQuery {
        snapshot: &known.snapshot,
        change: &change,
        profile: context.profile,
        at: admission.now.time?,
    };
    let counts: ImpactCounts = count(query);
    let (felt, evicts) = match rule.spec().taint().effect() {
        "NoExecute" => (true, true),
        "NoSchedule" => (true, false),
        _ => (false, false),
    };
    let numbers = Numbers {
        devices: if felt { query.tainted_devices(counts) } else { 0 },
        pods: if evicts { counts.pods } else { 0 },
        namespaces: if evicts { counts.namespaces } else { 0 },
    };
    Some(Touched { numbers, told: query.describe(counts), at_most: change.is_upper_bound() })
}
