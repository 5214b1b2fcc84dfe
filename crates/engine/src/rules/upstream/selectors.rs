//! CEL: the device selectors of requests, classes and (1.33, 1.34, draft r2) taint rules, and any single expression.
//!
//! The `cel` crate checks the expressions; this module turns its result into findings. An expression that `cel` could
//! not check is accepted with a warning of Tollgate.

mod hints;

use super::lists;
use crate::rules::RuleContext;
use crate::rules::table::{
    CEL_COST, CEL_EXPRESSION, CEL_LENGTH, CEL_UNCHECKED, EMPTY_SELECTOR, TOO_MANY_SELECTORS,
};
use tollgate_api::view::{List, Selector};
use tollgate_cel::{self, CheckOutcome, ExpressionPurpose};
use tollgate_document::field::Path;

/// Maximum number of selectors of one request, class or taint rule.
const SELECTORS_LIMIT: usize = 32;
/// Maximum length in bytes of an expression.
const MAX_EXPRESSION_BYTES: usize = 10 * 1024;

/// Checks a list of selectors. `stored` is true if an update left them unchanged.
// upstream v1.36 validateSelectorSlice, validateSelector
pub fn check_selectors(
    cx: &mut RuleContext<'_, '_>,
    at: &Path<'_>,
    list: List<'_, Selector<'_>>,
    stored: bool,
) {
    if !lists::report_too_many_and_should_continue(cx, TOO_MANY_SELECTORS, at, list.len(), SELECTORS_LIMIT)
        || !cx.is_hand_written
    {
        return;
    }
    for (index, selector) in list.iter().enumerate() {
        let at = at.index(index);
        let cel_at = at.field("cel");
        match selector.cel() {
            None => {
                cx.report(EMPTY_SELECTOR, &cel_at).required("");
            }
            Some(_) if stored && cx.profile.trusts_stored_cel => {}
            Some(cel) => {
                check_expression_and_estimate_cost(
                    cx,
                    &cel_at.field("expression"),
                    cel.expression(),
                    ExpressionPurpose::Selector,
                    stored,
                );
            }
        }
    }
}

/// Checks one CEL expression and returns its estimated cost, also if it costs too much; `None` if it does not compile
/// or could not be checked.
// upstream v1.37 validateCELExpression
pub fn check_expression_and_estimate_cost(
    cx: &mut RuleContext<'_, '_>,
    at: &Path<'_>,
    text: &str,
    target: ExpressionPurpose,
    stored: bool,
) -> Option<u64> {
    if text.len() > MAX_EXPRESSION_BYTES {
        cx.report(CEL_LENGTH, at).too_long(MAX_EXPRESSION_BYTES);
        return None;
    }
    let env = if stored { &cx.profile.stored_cel } else { &cx.profile.cel };
    let outcome = if cx.take_expression_budget(tollgate_cel::estimated_size_after_macro_copies(text)) {
        cx.context.cel.check(text, target, env, cx.max_value_bytes())
    } else {
        CheckOutcome::Unchecked("the object has more than 1 MiB of expressions")
    };
    match outcome {
        CheckOutcome::Accepted { cost } => Some(cost),
        CheckOutcome::CompileError(detail) | CheckOutcome::WrongType(detail) => {
            let hint = hints::hint_for_error(text, &detail);
            cx.report(CEL_EXPRESSION, at).invalid(text, detail).help_if(hint);
            None
        }
        CheckOutcome::ProgramError(detail) => {
            cx.report(CEL_EXPRESSION, at).internal_error(detail);
            None
        }
        CheckOutcome::TooComplex { cost } => {
            cx.report(CEL_COST, at).forbidden("too complex, exceeds cost limit");
            Some(cost)
        }
        CheckOutcome::Unchecked(reason) => {
            cx.report(CEL_UNCHECKED, at)
                .internal_error(format_args!("the expression was not checked: {reason}"));
            None
        }
    }
}
