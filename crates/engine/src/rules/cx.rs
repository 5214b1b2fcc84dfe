//! The context of a check: what holds where a rule looks, and where its findings go.
//!
//! It decides which of the server's two validators is heard and whose path is printed; it judges nothing. Invariant:
//! nothing is allocated before something is wrong.

use super::Origin;
use super::RuleSet;
use super::ratchet::{At, Ratchet, Statement};
use super::report::{Report, Reported, Sink, Text};
use crate::admission::{Context, Operation};
use tollgate_api::profile::{Profile, Version};
use tollgate_document::doc::Value;
use tollgate_document::field::{Path, PathStyle};
use tollgate_document::finding::{BadValue, ErrorType, Finding, Findings, RuleId};
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
    /// What may still be spent on expressions.
    pub(super) expressions: usize,
}

impl<'c, 'p> Cx<'c, 'p> {
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
    pub fn spend_on_expression(&mut self, bytes: usize) -> bool {
        let left = self.expressions.checked_sub(EXPRESSION + bytes);
        self.expressions = left.unwrap_or_default();
        left.is_some() || self.findings.budget().is_exact()
    }

    /// True if a rule of that origin found something before.
    pub fn has_found(&self, origin: Origin) -> bool {
        let is_of = |rule: RuleId| rule.origin == origin;
        self.findings.kept().iter().any(|finding| is_of(finding.rule)) || self.findings.has_left_out(is_of)
    }

    /// Starts to report that something is wrong. Unless it says otherwise, hand-written validation does, which prints the
    /// hub's path.
    pub fn report<'r>(&'r mut self, rule: RuleId, at: &'r Path<'r>) -> Report<'r, RunSink<'r, 'c, 'p>> {
        Report { rule, at, sink: RunSink { cx: self, validator: Validator::HandWritten } }
    }

    /// What `check` reports speaks of a key: that is where the user is shown the fault.
    pub fn about_key(&mut self, check: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.on_key, true);
        check(self);
        self.on_key = outer;
    }
}

/// Which of the server's two validators says so.
#[derive(Clone, Copy, Debug)]
enum Validator {
    HandWritten,
    Declarative,
    /// Declarative validation where it looks at the part at hand, else hand-written validation.
    Covered,
}

/// The findings of a run.
#[derive(Debug)]
pub struct RunSink<'r, 'c, 'p> {
    cx: &'r mut Cx<'c, 'p>,
    validator: Validator,
}

impl Report<'_, RunSink<'_, '_, '_>> {
    /// Only declarative validation says so, and prints the path of the request's own version.
    pub fn native(mut self) -> Self {
        self.sink.validator = Validator::Declarative;
        self
    }

    /// Declarative validation says so where it covers the check, else hand-written validation.
    pub fn covered(mut self) -> Self {
        self.sink.validator = Validator::Covered;
        self
    }
}

impl<'r> Sink<'r> for RunSink<'r, '_, '_> {
    fn keep(
        self,
        rule: RuleId,
        at: &Path<'_>,
        kind: ErrorType,
        value: impl Into<BadValue>,
        detail: impl Text,
    ) -> Reported<'r> {
        let RunSink { cx, validator } = self;
        let style = match validator {
            Validator::Declarative | Validator::Covered if cx.declarative => PathStyle::Native,
            Validator::HandWritten | Validator::Covered if cx.hand_written => PathStyle::Hub,
            _ => return Reported::DROPPED,
        };
        if !cx.rules.has(rule) {
            return Reported::DROPPED;
        }
        let ratchet = cx.ratchet.filter(|ratchet| ratchet.applies_to(rule));
        let is_full = cx.findings.budget().is_full();
        if is_full && ratchet.is_none() {
            cx.findings.leave_out(rule, 1);
            return Reported::DROPPED;
        }
        let (value, detail) = (value.into(), detail.compose());
        let said = Statement { rule, at: At::Walked(at), kind, value: &value, detail: &detail, policy: None };
        if ratchet.is_some_and(|ratchet| ratchet.takes(&said)) {
            return Reported::DROPPED;
        }
        if is_full {
            cx.findings.leave_out(rule, 1);
            return Reported::DROPPED;
        }
        let at = at.owned();
        let (user, server) = (at.print(PathStyle::User), at.print(style));
        let server_at = (user != server).then_some(server);
        let finding = Finding { server_at, on_key: cx.on_key, ..Finding::new(rule, at, kind, value, detail) };
        Reported::kept(cx.findings.push(finding), !cx.context.from_review)
    }
}
