//! `--max pending=0`: limits on the totals of a forecast.
//!
//! Invariant: a limit that could not be checked does not pass. Pods whose outcome is unknown may stay Pending.

use crate::cli::limit_list::LimitList;
use tollgate_forecast::Forecast;

/// The names that `--max` accepts in a forecast.
const LIMIT_NAMES: [&str; 5] = ["pending", "sometimes", "unknown", "not-recreated", "evicted"];

/// Parses the value of `--max`.
pub(super) fn parse(text: &str) -> Result<LimitList, String> {
    LimitList::parse(text, &LIMIT_NAMES)
}

/// The result of comparing a forecast with `--max`: messages about limits that are or may be exceeded.
#[derive(Default, Debug)]
pub(in crate::cli) struct ExceededOrUndecidedLimitMessages {
    /// A message for each limit that is exceeded.
    pub(in crate::cli) excesses: Vec<String>,
    /// A message for each limit that may be exceeded, depending on pods whose outcome is unknown.
    pub(in crate::cli) undecided: Vec<String>,
}

/// Compares the forecast with all limits of `--max`.
pub(super) fn check_limits(limits: &LimitList, forecast: &Forecast) -> ExceededOrUndecidedLimitMessages {
    let totals = forecast.totals;
    let mut checked = check_pending_pod_limit_in_worst_run(limits, forecast);
    for (name, count, one, several) in [
        ("sometimes", totals.sometimes, "pod fits in only some courses", "pods fit in only some courses"),
        ("unknown", totals.unknown, "pod has an unknown outcome", "pods have an unknown outcome"),
        ("not-recreated", totals.not_recreated, "pod is not recreated", "pods are not recreated"),
        ("evicted", forecast.evicted.len(), "pod is evicted", "pods are evicted"),
    ] {
        if let Some(limit) = limits.get(name).filter(|limit| count > *limit) {
            let what = if count == 1 { one } else { several };
            checked.excesses.push(format!("{count} {what}; --max allows {limit}"));
        }
    }
    checked
}

/// Checks the limit for pods that stay Pending, in the simulated course in which most of them do.
pub(in crate::cli) fn check_pending_pod_limit_in_worst_run(
    limits: &LimitList,
    forecast: &Forecast,
) -> ExceededOrUndecidedLimitMessages {
    let mut checked = ExceededOrUndecidedLimitMessages::default();
    let Some(limit) = limits.get("pending") else { return checked };
    let (pending, unknown) = (forecast.most_pending, forecast.totals.unknown);
    if pending > limit {
        let what = if pending == 1 { "pod stays" } else { "pods stay" };
        let course = if forecast.totals.sometimes > 0 { " in the worst course" } else { "" };
        checked.excesses.push(format!("{pending} {what} Pending{course}; --max allows {limit}"));
    } else if pending + unknown > limit {
        let pods = if unknown == 1 { "pod" } else { "pods" };
        let message =
            format!("cannot check --max pending={limit}: the outcome of {unknown} {pods} is unknown");
        checked.undecided.push(message);
    }
    checked
}
