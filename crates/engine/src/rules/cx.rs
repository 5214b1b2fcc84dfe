//! The context of a check: the request, the profile, and the destination of findings.
//!
//! It determines which of the server's two validators reports a finding and which path is printed; it checks nothing
//! itself. Invariant: nothing is allocated unless there is a finding.

use super::ratchet::{BorrowedFinding, RatchetMode};
use super::report::{FindingBuilder, FindingSink, LazyText, ReportedFinding};
use super::{RuleOrigin, RuleSet};
use crate::admission::{Context, Operation};
use tollgate_api::print;
use tollgate_api::profile::{Profile, Version};
use tollgate_api::schema::StructSchema;
use tollgate_document::doc::Value;
use tollgate_document::field::{Path, PathAudience};
use tollgate_document::finding::{BadValue, ErrorType, Finding, Findings, RuleId};
use tollgate_formats::gotime::Timestamp;

/// Budget for the expressions of one object, in bytes; each also counts [`EXPRESSION_OVERHEAD_BYTES`] bytes. A byte
/// takes about a microsecond to compile, and a body has millions.
pub(super) const EXPRESSION_BUDGET_BYTES: usize = 1 << 20;
/// Number of bytes that each expression counts for, in addition to its length.
const EXPRESSION_OVERHEAD_BYTES: usize = 100;

/// What a check function gets: the release, the context of the request, and the list that receives its findings.
#[derive(Debug)]
pub struct RuleContext<'c, 'p> {
    /// The Kubernetes release or draft.
    pub profile: &'static Profile,
    /// The labels, classes and claims around the request, and the state of the cluster.
    pub context: &'c Context<'c>,
    /// The version of the object.
    pub version: Version,
    /// The operation: create or update.
    pub operation: Operation,
    /// True if the API server's hand-written validation checks the current part of the object.
    pub(super) is_hand_written: bool,
    /// True if the API server's declarative validation checks the current part of the object: the release has it, and
    /// the part is new or changed. Its messages then replace the hand-written ones.
    pub(super) is_declarative: bool,
    /// The current time, if it is known.
    pub now: Option<Timestamp>,
    /// The current time in RFC 3339 format with whole seconds.
    pub now_text: &'c str,
    /// True if findings are about the key of a map entry and not about its value.
    pub(super) on_key: bool,
    pub(super) rules: &'c RuleSet,
    /// How findings are compared with those of the stored object; `None` to keep all findings.
    pub(super) ratchet: Option<RatchetMode<'c>>,
    pub(super) findings: &'p mut Findings,
    /// Remaining budget for checking expressions, see [`EXPRESSION_BUDGET_BYTES`].
    pub(super) expressions: usize,
}

impl<'c, 'p> RuleContext<'c, 'p> {
    /// Calls `check` for a part of the object; `unchanged` is true if an update leaves the part as it is stored.
    /// Declarative validation does not check unchanged parts, hand-written validation does.
    pub fn check_with_declarative_if_changed(&mut self, unchanged: bool, check: impl FnOnce(&mut Self)) {
        let before = self.is_declarative;
        self.is_declarative &= !unchanged;
        check(self);
        self.is_declarative = before;
    }

    /// Calls `check` for a part of the object that hand-written validation skips. Does nothing if declarative
    /// validation does not check it either.
    pub fn check_declaratively_only(&mut self, check: impl FnOnce(&mut Self)) {
        if self.is_declarative {
            let before = std::mem::replace(&mut self.is_hand_written, false);
            check(self);
            self.is_hand_written = before;
        }
    }

    /// Returns the number of bytes after which a value in a finding may be cut, because reports shorten longer values.
    pub fn max_value_bytes(&self) -> usize {
        self.findings.remaining_budget().next_finding_max_text_bytes()
    }

    /// Returns a struct as the server's encoder prints it, cut after [`Self::max_value_bytes`].
    pub fn struct_json(&self, value: Value<'_>, ty: &'static StructSchema) -> String {
        print::struct_json_cut_after(value, ty, self.profile.fields, self.max_value_bytes())
    }

    /// True if the API server receives more than `limit` bytes of raw JSON. A review does not show which characters the
    /// server has escaped, so there the least that the client can have sent is counted.
    pub fn is_oversized(&self, raw: Value<'_>, limit: usize) -> bool {
        if self.context.from_review {
            raw.min_received_bytes() > limit
        } else {
            raw.exceeds_bytes_when_sent_by_kubectl(limit)
        }
    }

    /// Deducts the cost of checking an expression of `bytes` bytes from the budget. Returns false if the
    /// budget is exhausted, so that the expression is not checked. Always true if the engine is exact.
    pub fn take_expression_budget(&mut self, bytes: usize) -> bool {
        let left = self.expressions.checked_sub(EXPRESSION_OVERHEAD_BYTES + bytes);
        self.expressions = left.unwrap_or_default();
        left.is_some() || self.findings.remaining_budget().never_shortens()
    }

    /// True if a rule of that origin has already reported a finding about the object, even if the finding was not kept.
    pub fn has_finding_from(&self, origin: RuleOrigin) -> bool {
        let is_of = |rule: RuleId| rule.origin == origin;
        self.findings.kept().iter().any(|finding| is_of(finding.rule))
            || self.findings.has_omitted_where(is_of)
    }

    /// Starts a finding. The next call in the chain adds the error type and message. The finding belongs to
    /// hand-written validation, which prints the path in the internal version, unless
    /// [`FindingBuilder::declarative_only`] or [`FindingBuilder::covered_by_declarative`] follows.
    pub fn report<'r>(
        &'r mut self,
        rule: RuleId,
        at: &'r Path<'r>,
    ) -> FindingBuilder<'r, RuleSink<'r, 'c, 'p>> {
        FindingBuilder { rule, at, sink: RuleSink { cx: self, validator: ServerValidator::HandWritten } }
    }

    /// Calls `check`, whose findings are shown at the key of a map entry instead of its value.
    pub fn with_findings_on_key(&mut self, check: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.on_key, true);
        check(self);
        self.on_key = outer;
    }
}

/// Which of the API server's two validators reports a finding.
#[derive(Clone, Copy, Debug)]
enum ServerValidator {
    HandWritten,
    Declarative,
    /// Declarative validation if it checks the current part, otherwise hand-written validation.
    Covered,
}

/// Receives one finding of a rule, and keeps, counts or drops it.
#[derive(Debug)]
pub struct RuleSink<'r, 'c, 'p> {
    cx: &'r mut RuleContext<'c, 'p>,
    validator: ServerValidator,
}

impl FindingBuilder<'_, RuleSink<'_, '_, '_>> {
    /// Marks the finding as one that only declarative validation reports, which prints the path in the version of the
    /// request.
    pub fn declarative_only(mut self) -> Self {
        self.sink.validator = ServerValidator::Declarative;
        self
    }

    /// Marks the finding as one that declarative validation reports if it checks the current part, and hand-written
    /// validation otherwise.
    pub fn covered_by_declarative(mut self) -> Self {
        self.sink.validator = ServerValidator::Covered;
        self
    }
}

impl<'r> FindingSink<'r> for RuleSink<'r, '_, '_> {
    #[cold]
    fn receive_finding(
        self,
        rule: RuleId,
        at: &Path<'_>,
        kind: ErrorType,
        value: impl Into<BadValue>,
        detail: impl LazyText,
    ) -> ReportedFinding<'r> {
        let RuleSink { cx, validator } = self;
        let style = match validator {
            ServerValidator::Declarative | ServerValidator::Covered if cx.is_declarative => {
                PathAudience::Native
            }
            ServerValidator::HandWritten | ServerValidator::Covered if cx.is_hand_written => {
                PathAudience::Hub
            }
            _ => return ReportedFinding::DROPPED,
        };
        if !cx.rules.has(rule) {
            return ReportedFinding::DROPPED;
        }
        let ratchet = cx.ratchet.filter(|ratchet| ratchet.applies_to(rule));
        let is_full = cx.findings.remaining_budget().is_used_up();
        if is_full && ratchet.is_none() {
            cx.findings.record_omitted(rule, 1);
            return ReportedFinding::DROPPED;
        }
        let (at, value, detail) = (at.owned(), value.into(), detail.compose());
        let said = BorrowedFinding { rule, at: &at, kind, value: &value, detail: &detail, policy: None };
        if ratchet.is_some_and(|ratchet| ratchet.should_drop_finding(&said)) {
            return ReportedFinding::DROPPED;
        }
        if is_full {
            cx.findings.record_omitted(rule, 1);
            return ReportedFinding::DROPPED;
        }
        let (user, server) = (at.print(PathAudience::User), at.print(style));
        let server_at = (user != server).then_some(server);
        let finding = Finding { server_at, on_key: cx.on_key, ..Finding::new(rule, at, kind, value, detail) };
        ReportedFinding::from_kept(cx.findings.push_within_budget(finding), !cx.context.from_review)
    }
}
