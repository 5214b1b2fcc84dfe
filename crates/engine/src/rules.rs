//! The rules: which checks exist, their origins and their IDs.
//!
//! A rule is an entry in the [`table`]: an ID with an origin, a default level and a page. A [`CheckFunctionWithRules`]
//! is one function that reports the rules of a Kubernetes type (upstream) or of a single file (lints). A run is one
//! walk over the object with a few function calls; groups without a selected rule are not called.
//!
//! Invariant: findings are reported only through [`RuleContext::report`], which allocates only if there is a
//! finding.

mod cx;
pub mod documented;
mod duplicates;
pub mod input;
pub mod lint;
pub mod ratchet;
pub(crate) mod report;
pub mod server_defaults;
pub mod table;
pub mod upstream;
pub mod widening;

pub use cx::RuleContext;
pub use tollgate_document::finding::{EditorTag, FindingLevel, Rule, RuleId, RuleInput, RuleOrigin};

use ratchet::{BorrowedFinding, RatchetMode};
use table::RULE_TABLE;

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::LazyLock;

use crate::admission::{Context, DecodedAttributes};
use crate::site::{
    DeviceSelection, LocatedTaint, TaintList, TaintTolerationOrSelector,
    visit_taints_tolerations_and_selectors,
};
use tollgate_api::view::{List, Toleration};
use tollgate_document::field::Path;
use tollgate_document::finding::{Finding, FindingBudget, Findings};

/// A check function and the rules that it reports; it is called if one of them is selected. The functions for the API
/// server's rules call each other across files, so they list no rules and can report any of them.
#[derive(Clone, Copy, Debug)]
pub struct CheckFunctionWithRules {
    pub rules: &'static [RuleId],
    /// The check function, by the part of an object that it checks.
    pub check: CheckFunction,
}

impl CheckFunctionWithRules {
    /// True if, on an update, only what the stored object did not already have is reported. False for the API server's
    /// rules, which handle this themselves.
    fn is_ratcheted(&self) -> bool {
        self.rules.iter().any(|rule| rule.is_ratcheted())
    }
}

impl CheckFunction {
    /// Number of variants of [`CheckFunction`].
    const VARIANTS: usize = 6;
    /// The index of [`CheckFunction::Object`] in the groups of a [`RuleSet`].
    const OBJECT_INDEX: usize = 0;

    /// Returns the index of this variant in the groups of a [`RuleSet`].
    fn index(&self) -> usize {
        match self {
            CheckFunction::Object(_) => CheckFunction::OBJECT_INDEX,
            CheckFunction::Taints(_) => 1,
            CheckFunction::Taint(_) => 2,
            CheckFunction::Tolerations(_) => 3,
            CheckFunction::Toleration(_) => 4,
            CheckFunction::Selector(_) => 5,
        }
    }

    /// Returns the index, in the groups of a [`RuleSet`], of the checks that are called for a part of an object.
    fn index_for_object_part(site: &TaintTolerationOrSelector<'_, '_>) -> usize {
        match site {
            TaintTolerationOrSelector::Taints { .. } => 1,
            TaintTolerationOrSelector::Taint { .. } => 2,
            TaintTolerationOrSelector::Tolerations { .. } => 3,
            TaintTolerationOrSelector::Toleration { .. } => 4,
            TaintTolerationOrSelector::Selector { .. } => 5,
        }
    }
}

/// A check function, by the part of an object that it checks.
#[derive(Clone, Copy, Debug)]
pub enum CheckFunction {
    /// Checks the whole object.
    Object(fn(&mut RuleContext<'_, '_>, &DecodedAttributes<'_>)),
    /// Checks a list of taints.
    Taints(fn(&mut RuleContext<'_, '_>, &Path<'_>, TaintList<'_>)),
    /// Checks a single taint.
    Taint(fn(&mut RuleContext<'_, '_>, &Path<'_>, &LocatedTaint<'_>)),
    /// Checks a list of tolerations.
    Tolerations(fn(&mut RuleContext<'_, '_>, &Path<'_>, List<'_, Toleration<'_>>)),
    /// Checks a single toleration.
    Toleration(fn(&mut RuleContext<'_, '_>, &Path<'_>, Toleration<'_>)),
    /// Checks the selector of a DeviceTaintRule, which may be absent, or the filter of a ResourceSlicePatch.
    Selector(fn(&mut RuleContext<'_, '_>, &Path<'_>, &DeviceSelection<'_>)),
}

/// A set of selected rules, prepared for running.
#[derive(Clone, Debug)]
pub struct RuleSet {
    /// For each rule, by index in the table, whether it is selected.
    wanted: [bool; RULE_TABLE.len()],
    /// The groups to call, by the part that they check: a slice has a thousand taints, and each is passed only to the
    /// groups that check taints.
    groups: [Vec<CheckFunctionWithRules>; CheckFunction::VARIANTS],
}

impl RuleSet {
    /// Parses the value of `--rules`: origins and rule ids, separated by commas. The error names the first unknown
    /// word.
    pub fn parse(list: &str) -> Result<RuleSet, String> {
        let mut origins = Vec::new();
        let mut ids = Vec::new();
        for word in list.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            if let Some(origin) = RuleOrigin::ALL.into_iter().find(|origin| origin.name() == word) {
                origins.push(origin);
            } else if let Some(rule) = find(word) {
                ids.push(rule.id);
            } else {
                let origins = RuleOrigin::ALL.map(RuleOrigin::name).join(", ");
                return Err(format!(
                    "`{word}` is neither an origin ({origins}) nor a rule; `tollgate explain` lists the rules"
                ));
            }
        }
        Ok(RuleSet::compile(|rule| origins.contains(&rule.origin) || ids.contains(&rule.id)))
    }

    /// Creates the set of all rules for which `wanted` returns true, with the check functions that report them.
    pub fn compile(wanted: impl Fn(&Rule) -> bool) -> RuleSet {
        let mut set = RuleSet { wanted: RULE_TABLE.each_ref().map(&wanted), groups: Default::default() };
        let ours = [documented::CHECK_GROUPS, lint::CHECK_GROUPS].into_iter().flatten();
        let ours = ours.filter(|group| group.rules.iter().any(|rule| wanted(rule)));
        let is_wanted = all().any(|rule| rule.origin == RuleOrigin::Upstream && wanted(rule));
        let upstream: &[CheckFunctionWithRules] = if is_wanted { upstream::CHECK_GROUPS } else { &[] };
        for group in upstream.iter().chain(ours) {
            if let Some(groups) = set.groups.get_mut(group.check.index()) {
                groups.push(*group);
            }
        }
        set
    }

    /// True if the rule is selected.
    pub fn has(&self, rule: &Rule) -> bool {
        self.wanted.get(rule.number).copied().unwrap_or_default()
    }

    /// Runs the rules on a request and adds to `findings`. On an update, findings of rules that are not the API
    /// server's are left out if the stored object already had them.
    pub fn run_with_ratcheting(
        &self,
        admission: &DecodedAttributes<'_>,
        context: &Context<'_>,
        findings: &mut Findings,
    ) {
        let first = findings.kept().len();
        let before = admission.old_object.map(|_| findings.clone());
        self.run_groups(context, admission, |_| true, None, findings);
        let Some(stored) = admission.with_old_as_object() else { return };
        // Where there is no server, the rules that are checked in its words are ours too.
        let is_of_drafts = admission.object.kind().is_of_drafts();
        let is_ours = |finding: &Finding| is_of_drafts || finding.rule.is_ratcheted();
        let has_lost = findings.has_omitted_where(|rule| is_of_drafts || rule.is_ratcheted());
        if !has_lost && !findings.kept().iter().skip(first).any(is_ours) {
            return;
        }
        let extent = ratchet::taint_reach_change(admission);
        let known = RefCell::new(ratchet::StoredObjectFindings::new(extent));
        if extent != ratchet::ReachChange::Wider {
            let learn = RatchetMode::Learn(&known, stored.object);
            let mut forgotten = Findings::with_budget(FindingBudget::with_unlimited_findings(
                ratchet::MAX_COMPARED_TEXT_BYTES,
            ));
            let is_learned = |group: &CheckFunctionWithRules| is_of_drafts || group.is_ratcheted();
            self.run_groups(context, &stored, is_learned, Some(learn), &mut forgotten);
        }
        match before {
            // What was left out may be all that is new: it is judged again, and only what is new counts against the
            // budget.
            Some(before) if has_lost => {
                *findings = before;
                let ask = if is_of_drafts {
                    RatchetMode::Ask(&known, admission.object)
                } else {
                    RatchetMode::AskOurs(&known, admission.object)
                };
                self.run_groups(context, admission, |_| true, Some(ask), findings);
            }
            _ => {
                let known = &mut *known.borrow_mut();
                findings.remove_excused_from(first, |finding| {
                    is_ours(finding)
                        && known.consume_matching_finding(
                            &BorrowedFinding::from_finding(finding),
                            admission.object,
                        )
                });
            }
        }
    }

    /// Runs only the selected lints on a request. For an update that leaves the spec unchanged and so cannot be
    /// refused.
    pub fn run_lints(
        &self,
        admission: &DecodedAttributes<'_>,
        context: &Context<'_>,
        findings: &mut Findings,
    ) {
        RuleSet::compile(|rule| rule.origin == RuleOrigin::Lint && self.has(rule))
            .run_with_ratcheting(admission, context, findings);
    }

    /// Calls the groups for which `which` returns true on every part of the object, and adds to `findings`. A
    /// ratchet records findings or omits those that the stored object already had.
    fn run_groups(
        &self,
        context: &Context<'_>,
        admission: &DecodedAttributes<'_>,
        which: impl Fn(&CheckFunctionWithRules) -> bool,
        ratchet: Option<RatchetMode<'_>>,
        findings: &mut Findings,
    ) {
        let mut cx = RuleContext {
            profile: context.profile,
            context,
            version: admission.object.version,
            operation: admission.operation,
            is_hand_written: true,
            is_declarative: context.profile.declarative,
            now: admission.now.time,
            now_text: admission.now.text,
            on_key: false,
            rules: self,
            ratchet,
            findings,
            expressions: cx::EXPRESSION_BUDGET_BYTES,
        };
        for group in self.groups_at_index(CheckFunction::OBJECT_INDEX).filter(|group| which(group)) {
            if let CheckFunction::Object(check) = group.check {
                check(&mut cx, admission);
            }
        }
        visit_taints_tolerations_and_selectors(admission, &mut |site| {
            let groups = self.groups_at_index(CheckFunction::index_for_object_part(&site));
            groups.filter(|group| which(group)).for_each(|group| call_check(group, &mut cx, site));
        });
    }

    /// Returns the groups at an index, see [`CheckFunction::index`].
    fn groups_at_index(&self, kind: usize) -> impl Iterator<Item = &CheckFunctionWithRules> {
        self.groups.get(kind).into_iter().flatten()
    }
}

/// Calls the check function of a group if it is for this kind of part.
fn call_check(
    group: &CheckFunctionWithRules,
    cx: &mut RuleContext<'_, '_>,
    site: TaintTolerationOrSelector<'_, '_>,
) {
    match (group.check, site) {
        (CheckFunction::Taints(check), TaintTolerationOrSelector::Taints { at, taints }) => {
            check(cx, at, taints)
        }
        (CheckFunction::Taint(check), TaintTolerationOrSelector::Taint { at, taint }) => check(cx, at, taint),
        (CheckFunction::Tolerations(check), TaintTolerationOrSelector::Tolerations { at, list }) => {
            check(cx, at, list)
        }
        (CheckFunction::Toleration(check), TaintTolerationOrSelector::Toleration { at, toleration }) => {
            check(cx, at, toleration)
        }
        (CheckFunction::Selector(check), TaintTolerationOrSelector::Selector { at, selection }) => {
            check(cx, at, &selection)
        }
        _ => {}
    }
}

/// Returns every rule, in the order of the table.
pub fn all() -> impl Iterator<Item = RuleId> {
    RULE_TABLE.iter()
}

/// Returns the rule with that id.
pub fn find(id: &str) -> Option<RuleId> {
    static RULES_BY_ID: LazyLock<HashMap<&str, RuleId>> =
        LazyLock::new(|| all().map(|rule| (rule.id, rule)).collect());
    RULES_BY_ID.get(id).copied()
}
