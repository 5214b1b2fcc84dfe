//! Rules: what is checked, by whom, and under which name.
//!
//! A rule is an id with an origin, a default level and a page. A [`Group`] is one function that speaks for the rules
//! of one Kubernetes type (upstream) or for one lint of ours. Groups are listed once, below; a run is one walk and a
//! few function-pointer calls, and a group none of whose rules is wanted is never called.
//!
//! Invariant: [`Cx::report`] is the only way out, and it allocates only when there is something to say.

mod cx;
pub mod documented;
mod duplicates;
pub mod impact_rule;
pub mod input;
pub mod lint;
pub mod policy;
pub mod ratchet;
pub mod server_defaults;
pub mod suppression;
pub mod upstream;
pub mod widening;

pub use cx::Cx;
use ratchet::{Ratchet, Statement};

use std::cell::RefCell;

use crate::admission::{Context, DecodedAttributes};
use crate::site::{DeviceSelection, LocatedTaint, Site, TaintList, walk};
use tollgate_api::view::{List, Toleration};
use tollgate_document::field::Path;
use tollgate_document::finding::{Finding, FindingBudget, Findings, MessageStyle, RuleId};
use tollgate_formats::gotime;

/// Who says that something is wrong.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Origin {
    /// The API server of the profile refuses this.
    Upstream,
    /// The documentation forbids this; no server enforces it.
    Documented,
    /// Legal, and almost surely a mistake.
    Lint,
    /// The admin's policy refuses this.
    Policy,
    /// The object does not decode.
    Decoding,
    /// Only strict decoding refuses this.
    Strict,
}

impl Origin {
    /// Every origin.
    pub const ALL: [Origin; 6] = [
        Origin::Upstream,
        Origin::Documented,
        Origin::Lint,
        Origin::Policy,
        Origin::Decoding,
        Origin::Strict,
    ];

    /// `upstream`
    pub fn name(self) -> &'static str {
        match self {
            Origin::Upstream => "upstream",
            Origin::Documented => "documented",
            Origin::Lint => "lint",
            Origin::Policy => "policy",
            Origin::Decoding => "decoding",
            Origin::Strict => "strict",
        }
    }

    /// Whose words its messages are in.
    pub fn message_style(self) -> MessageStyle {
        match self {
            Origin::Upstream | Origin::Decoding | Origin::Strict => MessageStyle::ApiServer,
            Origin::Documented => MessageStyle::Documented,
            Origin::Lint | Origin::Policy => MessageStyle::Plain,
        }
    }
}

/// What a finding does to the verdict.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Level {
    /// Written down, not told.
    Audit,
    /// Told, not refused.
    Warn,
    /// Refused.
    Deny,
}

impl Level {
    /// `deny`
    pub fn name(self) -> &'static str {
        match self {
            Level::Audit => "audit",
            Level::Warn => "warn",
            Level::Deny => "deny",
        }
    }
}

/// A rule as people know it.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Its name.
    pub id: RuleId,
    /// Who says so.
    pub origin: Origin,
    /// What it does unless policy says otherwise.
    pub level: Level,
}

impl Rule {
    /// Every rule, by origin.
    pub fn all() -> impl Iterator<Item = &'static Rule> {
        all()
    }

    /// The rule of that id.
    pub fn named(id: &str) -> Option<&'static Rule> {
        find(id)
    }
}

/// One function and the rules it speaks for.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    pub rules: &'static [Rule],
    /// The function, by what it looks at.
    pub check: Check,
}

impl Group {
    /// True if an update is only judged by what it makes wrong; upstream's own rules know for themselves.
    fn is_ratcheted(&self) -> bool {
        self.rules.iter().any(|rule| matches!(rule.origin, Origin::Documented | Origin::Lint))
    }
}

impl Check {
    /// Kinds of check, [`Check::Engine`] included.
    const KINDS: usize = 7;
    /// The whole object.
    const OBJECT: usize = 1;

    fn kind(&self) -> usize {
        match self {
            Check::Engine => 0,
            Check::Object(_) => Check::OBJECT,
            Check::Taints(_) => 2,
            Check::Taint(_) => 3,
            Check::Tolerations(_) => 4,
            Check::Toleration(_) => 5,
            Check::Selector(_) => 6,
        }
    }

    /// The kind of check that looks at a site.
    fn kind_of(site: &Site<'_, '_>) -> usize {
        match site {
            Site::Taints { .. } => 2,
            Site::Taint { .. } => 3,
            Site::Tolerations { .. } => 4,
            Site::Toleration { .. } => 5,
            Site::Selector { .. } => 6,
        }
    }
}

/// What a check looks at.
#[derive(Clone, Copy, Debug)]
pub enum Check {
    /// Reported by decoding or by the engine itself; nothing to call.
    Engine,
    /// The whole object.
    Object(fn(&mut Cx<'_, '_>, &DecodedAttributes<'_>)),
    /// A list of taints.
    Taints(fn(&mut Cx<'_, '_>, &Path<'_>, TaintList<'_>)),
    /// A single taint.
    Taint(fn(&mut Cx<'_, '_>, &Path<'_>, &LocatedTaint<'_>)),
    /// A list of tolerations.
    Tolerations(fn(&mut Cx<'_, '_>, &Path<'_>, List<'_, Toleration<'_>>)),
    /// A single toleration.
    Toleration(fn(&mut Cx<'_, '_>, &Path<'_>, Toleration<'_>)),
    /// The selector of a DeviceTaintRule, or its absence.
    Selector(fn(&mut Cx<'_, '_>, &Path<'_>, &DeviceSelection<'_>)),
}

/// The rules of a run.
#[derive(Clone, Debug)]
pub struct RuleSet {
    /// Sorted.
    wanted: Vec<RuleId>,
    /// Sorted: the rules of ours, by which an update is judged only for what it makes wrong.
    ratcheted: Vec<RuleId>,
    /// The groups to call, by what they look at: a slice has a thousand taints, and each is shown only to those who
    /// look at taints.
    groups: [Vec<Group>; Check::KINDS],
}

impl RuleSet {
    /// What `--rules` says: origins and rule ids, separated by commas.
    pub fn parse(list: &str) -> Result<RuleSet, String> {
        let mut origins = Vec::new();
        let mut ids = Vec::new();
        for word in list.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            if let Some(origin) = Origin::ALL.into_iter().find(|origin| origin.name() == word) {
                origins.push(origin);
            } else if let Some(rule) = find(word) {
                ids.push(rule.id);
            } else {
                return Err(unknown_word(word));
            }
        }
        Ok(RuleSet::compile(|rule| origins.contains(&rule.origin) || ids.contains(&rule.id)))
    }

    /// The rules that `wanted` accepts.
    pub fn compile(wanted: impl Fn(&Rule) -> bool) -> RuleSet {
        let mut set = RuleSet { wanted: Vec::new(), ratcheted: Vec::new(), groups: Default::default() };
        // Upstream's functions call each other across files: one wanted rule needs all of them.
        let upstream = all().any(|rule| rule.origin == Origin::Upstream && wanted(rule));
        for group in all_groups() {
            let ids: Vec<RuleId> =
                group.rules.iter().filter(|rule| wanted(rule)).map(|rule| rule.id).collect();
            let called = upstream && group.rules.iter().any(|rule| rule.origin == Origin::Upstream);
            if (!ids.is_empty() || called)
                && let Some(groups) = set.groups.get_mut(group.check.kind())
            {
                groups.push(*group);
                if group.is_ratcheted() {
                    set.ratcheted.extend(group.rules.iter().map(|rule| rule.id));
                }
            }
            set.wanted.extend(ids);
        }
        set.wanted.sort_unstable();
        set.ratcheted.sort_unstable();
        set
    }

    /// True if the rule is part of the run.
    pub fn has(&self, rule: RuleId) -> bool {
        self.wanted.binary_search(&rule).is_ok()
    }

    /// Judges one case; findings are appended. Of ours, only what the stored object did not already have.
    pub fn run(&self, admission: &DecodedAttributes<'_>, context: &Context<'_>, findings: &mut Findings) {
        let first = findings.kept().len();
        let before = admission.old_object.map(|_| findings.mark());
        self.check(context, admission, |_| true, None, findings);
        let Some(stored) = admission.for_stored_object() else { return };
        // Where there is no server, the rules that are checked in its words are ours too.
        let is_of_drafts = admission.object.kind().is_of_drafts();
        let is_ours = |finding: &Finding| is_of_drafts || self.is_ratcheted(finding.rule);
        let has_lost = findings.has_left_out(|rule| is_of_drafts || self.is_ratcheted(rule));
        if !has_lost && !findings.kept().iter().skip(first).any(is_ours) {
            return;
        }
        let extent = ratchet::extent(admission);
        let known = RefCell::new(ratchet::KnownFaults::new(extent));
        if extent != ratchet::Extent::Wider {
            let learn = Ratchet::Learn(&known, stored.object);
            let mut forgotten = Findings::within(FindingBudget::endless(ratchet::TEXT));
            let is_learned = |group: &Group| is_of_drafts || group.is_ratcheted();
            self.check(context, &stored, is_learned, Some(learn), &mut forgotten);
        }
        match before {
            // What was left out may be all that is new: it is judged again, and only what is new counts against the budget.
            Some(before) if has_lost => {
                findings.reset(before);
                let ask = if is_of_drafts {
                    Ratchet::Ask(&known, admission.object)
                } else {
                    Ratchet::AskOurs(&known, admission.object, self)
                };
                self.check(context, admission, |_| true, Some(ask), findings);
            }
            _ => {
                let known = &mut *known.borrow_mut();
                findings.excuse(first, |finding| {
                    is_ours(finding) && known.excuses(&Statement::of(finding, None), admission.object)
                });
            }
        }
    }

    /// Runs only the lints: for an update that cannot be refused.
    pub fn run_lints(
        &self,
        admission: &DecodedAttributes<'_>,
        context: &Context<'_>,
        findings: &mut Findings,
    ) {
        RuleSet::compile(|rule| rule.origin == Origin::Lint && self.has(rule.id))
            .run(admission, context, findings);
    }

    /// True if what the stored object has wrong excuses the same of the new one.
    pub fn is_ratcheted(&self, id: RuleId) -> bool {
        self.ratcheted.binary_search(&id).is_ok()
    }

    fn check(
        &self,
        context: &Context<'_>,
        admission: &DecodedAttributes<'_>,
        which: impl Fn(&Group) -> bool,
        ratchet: Option<Ratchet<'_>>,
        findings: &mut Findings,
    ) {
        let mut cx = Cx {
            profile: context.profile,
            context,
            version: admission.object.version,
            operation: admission.operation,
            hand_written: true,
            declarative: context.profile.declarative,
            now: admission.now.time,
            latest: admission.now.time.and_then(gotime::written),
            on_key: false,
            rules: self,
            ratchet,
            findings,
            decisions: [cx::RuleDecision::NONE; 8],
            expressions: cx::EXPRESSIONS,
            is_last_kept: false,
        };
        for group in self.groups_for(Check::OBJECT).filter(|group| which(group)) {
            if let Check::Object(check) = group.check {
                check(&mut cx, admission);
            }
        }
        walk(admission, &mut |site| {
            let groups = self.groups_for(Check::kind_of(&site));
            groups.filter(|group| which(group)).for_each(|group| visit(group, &mut cx, site));
        });
    }

    fn groups_for(&self, kind: usize) -> impl Iterator<Item = &Group> {
        self.groups.get(kind).into_iter().flatten()
    }
}

fn visit(group: &Group, cx: &mut Cx<'_, '_>, site: Site<'_, '_>) {
    match (group.check, site) {
        (Check::Taints(check), Site::Taints { at, taints }) => check(cx, at, taints),
        (Check::Taint(check), Site::Taint { at, taint }) => check(cx, at, taint),
        (Check::Tolerations(check), Site::Tolerations { at, list }) => check(cx, at, list),
        (Check::Toleration(check), Site::Toleration { at, toleration }) => check(cx, at, toleration),
        (Check::Selector(check), Site::Selector { at, selection }) => check(cx, at, &selection),
        _ => {}
    }
}

/// Every group, in table order.
pub fn all_groups() -> impl Iterator<Item = &'static Group> {
    [
        input::GROUPS,
        upstream::GROUPS,
        documented::GROUPS,
        lint::GROUPS,
        server_defaults::GROUPS,
        impact_rule::GROUPS,
        suppression::GROUPS,
        policy::GROUPS,
    ]
    .into_iter()
    .flatten()
}

/// Every rule, in table order.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    all_groups().flat_map(|group| group.rules)
}

/// The rule of that name.
pub fn find(id: &str) -> Option<&'static Rule> {
    all().find(|rule| rule.id.0 == id)
}

/// Declares the rules of a group: `CONST = "id"`.
macro_rules! rules {
    ($origin:ident, $level:ident; $($(#[$doc:meta])* $name:ident = $id:literal,)*) => {
        $($(#[$doc])*
        #[allow(unreachable_pub, reason = "most are used in this crate only")]
        pub const $name: tollgate_document::finding::RuleId = tollgate_document::finding::RuleId($id);)*
        /// The rules of this file.
        #[allow(unreachable_pub, reason = "most are used in this crate only")]
        pub static RULES: &[$crate::rules::Rule] = &[$($crate::rules::Rule {
            id: $name,
            origin: $crate::rules::Origin::$origin,
            level: $crate::rules::Level::$level,
        },)*];
    };
}
pub(crate) use rules;

/// Declares files of rules and lists them as `GROUPS`: one line each, so that `mod` and table cannot drift.
macro_rules! groups {
    ($($file:ident: $check:ident,)*) => {
        $(mod $file;)*
        /// The groups of this origin.
        pub(crate) static GROUPS: &[$crate::rules::Group] = &[$($crate::rules::Group {
            rules: $file::RULES,
            check: $crate::rules::Check::$check($file::check),
        },)*];
    };
}
pub(crate) use groups;

fn unknown_word(word: &str) -> String {
    let origins: Vec<&str> = Origin::ALL.iter().map(|origin| origin.name()).collect();
    format!(
        "`{word}` is neither an origin ({}) nor a rule; `tollgate explain` lists the rules",
        origins.join(", ")
    )
}
