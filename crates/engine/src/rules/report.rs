//! How a finding is reported, by rules and by policies: `cx.report(RULE, &at).invalid(value, detail).help("…")`.
//!
//! The call that names the error type, such as `invalid`, reports the finding. A [`FindingSink`] decides whether it is
//! kept; the calls that follow add to it only then. A hostile object can break a few rules a million times, so texts
//! are built only if needed: a text can be given as `format_args!` or as a closure, which is not evaluated for a
//! finding that is only counted.
//!
//! Invariant: nothing is allocated for a finding that is neither kept nor compared with the stored object.

use std::borrow::Cow;
use std::fmt;

use super::upstream::taint::supported_values;
use tollgate_api::conform::suggest;
use tollgate_document::field::Path;
use tollgate_document::finding::{BadValue, ErrorType, Finding, Fix, RuleId};

/// A text of a finding that is built only if the finding is kept: a string, `format_args!` or a closure.
pub trait LazyText {
    /// Builds the text of a message.
    fn compose(self) -> Cow<'static, str>;
}

impl LazyText for &'static str {
    fn compose(self) -> Cow<'static, str> {
        Cow::Borrowed(self)
    }
}

impl LazyText for String {
    fn compose(self) -> Cow<'static, str> {
        Cow::Owned(self)
    }
}

impl LazyText for Cow<'static, str> {
    fn compose(self) -> Cow<'static, str> {
        self
    }
}

impl LazyText for fmt::Arguments<'_> {
    fn compose(self) -> Cow<'static, str> {
        Cow::Owned(self.to_string())
    }
}

impl<F: FnOnce() -> String> LazyText for F {
    fn compose(self) -> Cow<'static, str> {
        Cow::Owned(self())
    }
}

/// Decides whether a finding is kept, counted or dropped: one for rules, one for policies.
pub trait FindingSink<'r> {
    /// Keeps, counts or drops a finding. Returns a handle for adding to it.
    fn receive_finding(
        self,
        rule: RuleId,
        at: &Path<'_>,
        kind: ErrorType,
        value: impl Into<BadValue>,
        detail: impl LazyText,
    ) -> ReportedFinding<'r>;
}

/// A finding whose rule and field are known. A method such as `invalid` adds the error type and the message and reports
/// it.
#[must_use = "the call that names the kind of fault reports the finding"]
#[derive(Debug)]
pub struct FindingBuilder<'r, S> {
    pub(crate) rule: RuleId,
    pub(crate) at: &'r Path<'r>,
    pub(crate) sink: S,
}

impl<'r, S: FindingSink<'r>> FindingBuilder<'r, S> {
    /// Reports that a field must be set (`Required value`).
    pub fn required(self, detail: impl LazyText) -> ReportedFinding<'r> {
        self.error_of_type(ErrorType::Required, BadValue::Omitted, detail)
    }

    /// Reports that a field must not be set (`Forbidden`).
    pub fn forbidden(self, detail: impl LazyText) -> ReportedFinding<'r> {
        self.error_of_type(ErrorType::Forbidden, BadValue::Omitted, detail)
    }

    /// Reports that something could not be checked (`Internal error`).
    pub fn internal_error(self, detail: impl LazyText) -> ReportedFinding<'r> {
        self.error_of_type(ErrorType::Internal, BadValue::Omitted, detail)
    }

    /// Reports a text with more than `limit` bytes (`Too long`).
    pub fn too_long(self, limit: usize) -> ReportedFinding<'r> {
        let bytes = if limit == 1 { "byte" } else { "bytes" };
        let detail = format_args!("may not be more than {limit} {bytes}");
        self.error_of_type(ErrorType::TooLong, BadValue::Omitted, detail)
    }

    /// Reports an invalid value (`Invalid value`).
    pub fn invalid(self, value: impl Into<BadValue>, detail: impl LazyText) -> ReportedFinding<'r> {
        self.error_of_type(ErrorType::Invalid, value, detail)
    }

    /// Reports a value that is not one of the known ones (`Unsupported value`).
    pub fn not_supported(self, value: impl Into<BadValue>, detail: impl LazyText) -> ReportedFinding<'r> {
        self.error_of_type(ErrorType::NotSupported, value, detail)
    }

    /// Reports a text that is none of the known ones, and which of them may be meant.
    pub fn not_supported_with_suggestion(
        self,
        value: impl Into<BadValue>,
        written: &str,
        known: &[&str],
    ) -> ReportedFinding<'r> {
        let at = self.at;
        self.not_supported(value, || supported_values(known)).did_you_mean(at, written, known)
    }

    /// Reports a value that an earlier item already has (`Duplicate value`).
    pub fn duplicate(self, value: impl Into<BadValue>, detail: impl LazyText) -> ReportedFinding<'r> {
        self.error_of_type(ErrorType::Duplicate, value, detail)
    }

    /// Reports a name of something that does not exist (`Not found`).
    pub fn not_found(self, value: impl Into<BadValue>, detail: impl LazyText) -> ReportedFinding<'r> {
        self.error_of_type(ErrorType::NotFound, value, detail)
    }

    /// Reports a list with too many items (`Too many`).
    pub fn too_many(self, value: impl Into<BadValue>, detail: impl LazyText) -> ReportedFinding<'r> {
        self.error_of_type(ErrorType::TooMany, value, detail)
    }

    /// Reports a finding with any error type.
    pub fn error_of_type(
        self,
        kind: ErrorType,
        value: impl Into<BadValue>,
        detail: impl LazyText,
    ) -> ReportedFinding<'r> {
        self.sink.receive_finding(self.rule, self.at, kind, value, detail)
    }
}

/// A finding that was reported, to which help, a fix or more paths can be added. If it was not kept, additions are
/// ignored and not built.
#[derive(Debug)]
pub struct ReportedFinding<'r> {
    finding: Option<&'r mut Finding>,
    /// True if the object comes from a file, which can be fixed.
    is_fixable: bool,
}

impl<'r> ReportedFinding<'r> {
    /// The handle for a finding that was not kept.
    pub(crate) const DROPPED: ReportedFinding<'static> = ReportedFinding { finding: None, is_fixable: false };

    /// Creates the handle for a finding; `finding` is `None` if it was not kept after all.
    pub(crate) fn from_kept(finding: Option<&'r mut Finding>, is_fixable: bool) -> ReportedFinding<'r> {
        ReportedFinding { finding, is_fixable }
    }

    /// Calls `add` on the finding, if it is kept.
    pub(crate) fn update_if_kept(mut self, add: impl FnOnce(&mut Finding)) -> ReportedFinding<'r> {
        if let Some(finding) = &mut self.finding {
            add(finding);
        }
        self
    }

    /// Adds advice on how to correct the object.
    pub fn help(self, help: impl LazyText) -> ReportedFinding<'r> {
        self.help_if(Some(help))
    }

    /// Adds advice on how to correct the object, if there is any.
    pub fn help_if(self, help: Option<impl LazyText>) -> ReportedFinding<'r> {
        self.update_if_kept(|finding| finding.help = help.map(LazyText::compose))
    }

    /// Adds a shorter form of the detail, for warnings of the webhook.
    pub fn short_detail(self, short: impl LazyText) -> ReportedFinding<'r> {
        self.update_if_kept(|finding| finding.short = Some(short.compose()))
    }

    /// Adds another path that the finding is about.
    pub fn also_at(self, at: &Path<'_>) -> ReportedFinding<'r> {
        self.update_if_kept(|finding| finding.also.push(at.owned()))
    }

    /// Adds a fix, unless the object comes from a review, where there is no file to fix.
    pub fn fix_if_fixable(self, fix: impl FnOnce() -> Fix) -> ReportedFinding<'r> {
        let is_fixable = self.is_fixable;
        self.update_if_kept(|finding| {
            if is_fixable {
                finding.fix = Some(Box::new(fix()));
            }
        })
    }

    /// Adds the most similar known value, with a fix; if none is similar, a list of the known values.
    pub fn did_you_mean(self, at: &Path<'_>, written: &str, known: &[&str]) -> ReportedFinding<'r> {
        if self.finding.is_none() {
            return self;
        }
        match suggest::nearest_if_unambiguous(written, known.iter().copied()) {
            Some(meant) => self
                .help(format_args!("did you mean `{meant}`?"))
                .fix_if_fixable(|| Fix::replace(at.owned(), written, meant)),
            None => self.help_if((!known.is_empty()).then(|| suggest::hint_use_one_of(known))),
        }
    }

    /// Marks the finding as one about the key of a field, where it is then shown, instead of its value.
    pub fn on_key(self) -> ReportedFinding<'r> {
        self.update_if_kept(|finding| finding.on_key = true)
    }

    /// Sets the path that the API server prints, if it differs from the user's path.
    pub fn with_server_path(self, server_at: String) -> ReportedFinding<'r> {
        self.update_if_kept(|finding| {
            finding.server_at = (server_at != finding.user_path()).then_some(server_at)
        })
    }
}
