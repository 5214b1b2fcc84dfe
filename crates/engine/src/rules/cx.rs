//! The context of a check: what holds where a rule looks, and where its findings go.
//!
//! It decides which of the server's two validators is heard and whose path is printed; it judges nothing. Invariant:
//! nothing is allocated before something is wrong.

use std::borrow::Cow;

use super::Origin;
use super::RuleSet;
use super::ratchet::{At, Ratchet, Statement};
use crate::admission::{Context, Operation};
use tollgate_api::conform::suggest;
use tollgate_api::profile::{Profile, Version};
use tollgate_document::doc::Value;
use tollgate_document::field::{Path, PathStyle};
use tollgate_document::finding::{BadValue, ErrorType, Finding, Findings, Fix, RuleId};
use tollgate_formats::gotime::Timestamp;

/// Bytes of expressions that are checked in one object: compiling takes a microsecond for each, and a body has millions.
pub(super) const EXPRESSIONS: usize = 1 << 20;
/// What an expression costs beside its bytes.
const EXPRESSION: usize = 100;

/// The context of a check: what holds, and where findings go.
#[expect(clippy::struct_excessive_bools, reason = "each holds or does not, whatever the others do")]
#[derive(Debug)]
pub struct Cx<'c, 'p> {
    /// The profile.
    pub profile: &'static Profile,
    /// What is known around the request.
    pub context: &'c Context<'c>,
    /// The version of the object.
    pub version: Version,
    /// Create or update.
    pub operation: Operation,
    /// Hand-written validation looks at the part at hand.
    pub(super) hand_written: bool,
    /// Declarative validation looks at it: the release has it, and the part is new or changed.
    pub(super) declarative: bool,
    /// The present moment, if it is known.
    pub now: Option<Timestamp>,
    /// Times written up to this one are not in the future, give or take what clocks differ: most are told by their
    /// text alone.
    pub latest: Option<[u8; 20]>,
    /// What is reported speaks of a map's key and not of what it holds.
    pub(super) on_key: bool,
    pub(super) rules: &'c RuleSet,
    /// What the stored object has to do with what is found.
    pub(super) ratchet: Option<Ratchet<'c>>,
    pub(super) findings: &'p mut Findings,
    /// The rules that found something last, by their address: a hostile list breaks a few rules a million times.
    pub(super) decisions: [RuleDecision; 8],
    /// What may still be spent on expressions.
    pub(super) expressions: usize,
    /// The finding reported last is the last one kept.
    pub(super) is_last_kept: bool,
}

/// What is done with the findings of a rule.
#[derive(Clone, Copy, Debug)]
pub(super) struct RuleDecision {
    rule: RuleId,
    /// It is part of the run.
    in_run: bool,
    /// The stored object has a say.
    ratcheted: bool,
}

impl RuleDecision {
    pub(super) const NONE: RuleDecision = RuleDecision { rule: RuleId(""), in_run: false, ratcheted: false };
}

impl Cx<'_, '_> {
    /// True if hand-written validation looks at the part at hand.
    pub fn is_hand_written(&self) -> bool {
        self.hand_written
    }

    /// True if declarative validation looks at the part at hand: its texts replace the hand-written ones.
    pub fn is_declarative(&self) -> bool {
        self.declarative
    }

    /// Judges a part that an update may have left `unchanged`: declarative validation does not look at those again,
    /// hand-written validation does.
    pub fn part(&mut self, unchanged: bool, judge: impl FnOnce(&mut Self)) {
        let before = self.declarative;
        self.declarative &= !unchanged;
        judge(self);
        self.declarative = before;
    }

    /// Judges a part that hand-written validation does not look at.
    pub fn declaratively(&mut self, judge: impl FnOnce(&mut Self)) {
        if self.declarative {
            let before = std::mem::replace(&mut self.hand_written, false);
            judge(self);
            self.hand_written = before;
        }
    }

    /// Bytes of a value that are worth writing; one that is longer may end anywhere past them.
    pub fn max_text_bytes(&self) -> usize {
        self.findings.budget().for_text()
    }

    /// Whether the API server receives more than `limit` bytes of raw JSON. A review does not show what of it the server
    /// escaped, so there the least is counted that the client can have sent.
    pub fn is_oversized(&self, raw: Value<'_>, limit: usize) -> bool {
        if self.context.from_review {
            raw.least_received_len() > limit
        } else {
            raw.is_sent_longer_than(limit)
        }
    }

    /// Takes what checking an expression costs. False if the object has more of them than anybody needs.
    pub fn spend(&mut self, bytes: usize) -> bool {
        let left = self.expressions.checked_sub(EXPRESSION + bytes);
        self.expressions = left.unwrap_or_default();
        left.is_some() || self.findings.budget().is_exact()
    }

    /// True if a rule of that origin found something before.
    pub fn has_found(&self, origin: Origin) -> bool {
        let is_of = |rule: RuleId| super::find(rule.0).is_some_and(|rule| rule.origin == origin);
        self.findings.kept().iter().any(|finding| is_of(finding.rule)) || self.findings.has_left_out(is_of)
    }

    /// Says that something is wrong. The server prints the hub's path.
    pub fn report(
        &mut self,
        rule: RuleId,
        at: &Path<'_>,
        kind: ErrorType,
        value: BadValue,
        detail: impl Into<Cow<'static, str>>,
    ) {
        if self.hand_written {
            self.push(rule, at, PathStyle::Hub, kind, value, detail.into());
        }
    }

    /// [`Cx::report`] for what declarative validation prints: the path of the request's own version.
    pub fn report_native(
        &mut self,
        rule: RuleId,
        at: &Path<'_>,
        kind: ErrorType,
        value: BadValue,
        detail: impl Into<Cow<'static, str>>,
    ) {
        if self.declarative {
            self.push(rule, at, PathStyle::Native, kind, value, detail.into());
        }
    }

    /// [`Cx::report_native`] where declarative validation covers the check, else [`Cx::report`].
    pub fn report_covered(
        &mut self,
        rule: RuleId,
        at: &Path<'_>,
        kind: ErrorType,
        value: BadValue,
        detail: impl Into<Cow<'static, str>>,
    ) {
        if self.declarative {
            self.report_native(rule, at, kind, value, detail);
        } else {
            self.report(rule, at, kind, value, detail);
        }
    }

    /// A finding whose path the server prints in a way of its own.
    pub fn report_as(
        &mut self,
        rule: RuleId,
        at: &Path<'_>,
        server_at: String,
        kind: ErrorType,
        value: BadValue,
        detail: impl Into<Cow<'static, str>>,
    ) {
        self.is_last_kept = false;
        self.report(rule, at, kind, value, detail);
        if let Some(finding) = self.last() {
            finding.server_at = (server_at != finding.field()).then_some(server_at);
        }
    }

    /// What `check` reports speaks of a key: that is where the user is shown the fault.
    pub fn about_key(&mut self, check: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.on_key, true);
        check(self);
        self.on_key = outer;
    }

    /// Adds a hint to the finding reported last, if it is of that rule.
    pub fn help(&mut self, rule: RuleId, help: impl Into<Cow<'static, str>>) {
        if let Some(finding) = self.last().filter(|finding| finding.rule == rule) {
            finding.help = Some(help.into());
        }
    }

    /// [`Cx::help`] for a text that is made only if the finding is kept.
    pub fn help_with(&mut self, rule: RuleId, help: impl FnOnce() -> String) {
        if let Some(finding) = self.last().filter(|finding| finding.rule == rule) {
            finding.help = Some(help().into());
        }
    }

    /// Adds a shorter detail to the finding reported last, if it is of that rule.
    pub fn short(&mut self, rule: RuleId, short: impl Into<Cow<'static, str>>) {
        if let Some(finding) = self.last().filter(|finding| finding.rule == rule) {
            finding.short = Some(short.into());
        }
    }

    /// Adds a fix to the finding reported last, if it is of that rule. A review has no file that could be fixed.
    pub fn fix(&mut self, rule: RuleId, fix: impl FnOnce() -> Fix) {
        if self.context.from_review {
            return;
        }
        if let Some(finding) = self.last().filter(|finding| finding.rule == rule) {
            finding.fix = Some(Box::new(fix()));
        }
    }

    /// Says what was probably meant by a value that is none of the known ones, if the finding reported last is of that
    /// rule.
    pub fn did_you_mean(&mut self, rule: RuleId, at: &Path<'_>, written: &str, known: &[&str]) {
        let Some(finding) = self.last().filter(|finding| finding.rule == rule) else { return };
        let Some(meant) = suggest::nearest(written, known.iter().copied()) else {
            finding.help = (!known.is_empty()).then(|| suggest::one_of(known).into());
            return;
        };
        finding.help = Some(format!("did you mean `{meant}`?").into());
        self.fix(rule, || Fix::replace(at.owned(), written, meant));
    }

    /// Adds a related path to the finding reported last, if it is of that rule.
    pub fn also(&mut self, rule: RuleId, at: &Path<'_>) {
        if let Some(finding) = self.last().filter(|finding| finding.rule == rule) {
            finding.also.push(at.owned());
        }
    }

    /// The finding reported last, if it was kept.
    fn last(&mut self) -> Option<&mut Finding> {
        if self.is_last_kept { self.findings.last() } else { None }
    }

    fn decision_on(&mut self, rule: RuleId) -> RuleDecision {
        let slot = rule.0.as_ptr().addr() / 8 % self.decisions.len();
        if let Some(known) = self.decisions.get(slot).filter(|known| std::ptr::eq(known.rule.0, rule.0)) {
            return *known;
        }
        let ratcheted = self.ratchet.is_some_and(|ratchet| ratchet.is_about(rule));
        let decision = RuleDecision { rule, in_run: self.rules.has(rule), ratcheted };
        if let Some(slot) = self.decisions.get_mut(slot) {
            *slot = decision;
        }
        decision
    }

    fn push(
        &mut self,
        rule: RuleId,
        at: &Path<'_>,
        audience: PathStyle,
        kind: ErrorType,
        value: BadValue,
        detail: Cow<'static, str>,
    ) {
        let decision = self.decision_on(rule);
        if !decision.in_run {
            return;
        }
        self.is_last_kept = false;
        if decision.ratcheted
            && let Some(ratchet) = self.ratchet
            && ratchet.takes(&Statement {
                rule,
                at: At::Walked(at),
                kind,
                value: &value,
                detail: &detail,
                policy: None,
            })
        {
            return;
        }
        if self.findings.budget().is_full() {
            return self.findings.leave_out(rule, 1);
        }
        let at = at.owned();
        let (user, server) = (at.print(PathStyle::User), at.print(audience));
        let server_at = (user != server).then_some(server);
        let finding =
            Finding { server_at, on_key: self.on_key, ..Finding::new(rule, at, kind, value, detail) };
        self.is_last_kept = self.findings.push(finding);
    }
}
