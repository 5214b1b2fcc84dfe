//! Text output: selected devices, evicted pods with times, totals and notes; and a histogram of evictions, with one bar
//! per time, or per interval if there are many times.

use std::fmt::Write as _;

use super::by::OutcomeCounts;
use super::elsewhere::EvictedPodsForecast;
use super::{Assessment, DEFAULT_MAX_LISTED_PODS, eviction_time, format_time, listed_count};
use crate::cli::table;
use tollgate_engine::impact::{Impact, OutcomeReason, PodOutcome, ProposedChange, ShortReason};
use tollgate_formats::count::count_with_noun;
use tollgate_formats::gotime::Timestamp;
use tollgate_formats::sanitize::sanitize_as_line;

/// Returns the impact of a rule or slice as text; lists at most `limit` pods, or all for 0. If the state is not
/// complete, the numbers are lower bounds, and what the controller will write is not known.
pub(super) fn impact_text(assessment: &Assessment<'_>, limit: Option<usize>, is_complete: bool) -> String {
    let Assessment { query, impact, no_effect, depends_on, .. } = assessment;
    let mut out = String::new();
    if let Some(depends_on) = depends_on {
        _ = writeln!(out, "{depends_on}; this forecast assumes that all feature gates are on");
    }
    if let Some(why) = no_effect {
        let what = match query.change {
            ProposedChange::Rule(_) => "the rule has",
            ProposedChange::Slice(_) => "taints have",
        };
        _ = writeln!(out, "{why}, so {what} no effect");
    }
    let (kind, taint) = match query.change {
        ProposedChange::Rule(rule) => {
            ("DeviceTaintRule", format!(": {}", sanitize_as_line(&rule.taint.to_string())))
        }
        ProposedChange::Slice(_) => ("ResourceSlice", String::new()),
    };
    let (name, profile, at) =
        (sanitize_as_line(query.change.name()), query.profile.name, format_time(query.at));
    _ = writeln!(out, "{kind} {name}{taint} ({profile}, at {at})");
    let hedge = NumberQualifier::from_impact(impact, is_complete);
    let (published, allocated) = (impact.counts.published, impact.counts.allocated);
    let NumberQualifier { first, each } = hedge;
    _ = writeln!(
        out,
        "{first}{published} published and {each}{} selected, {each}{}, {each}{}",
        count_with_noun(allocated, "allocated device"),
        count_with_noun(impact.claims, "claim"),
        count_with_noun(impact.pods.len(), "pod"),
    );
    let shown = listed_count(impact.pods.len(), limit.unwrap_or(DEFAULT_MAX_LISTED_PODS));
    if let (Some(groups), false) = (&assessment.groups, impact.pods.is_empty()) {
        _ = write!(out, "\n{}", groups.table(limit.unwrap_or(DEFAULT_MAX_LISTED_PODS)));
    } else if !impact.pods.is_empty() {
        let rows: Vec<Vec<String>> = impact
            .pods
            .iter()
            .take(shown)
            .map(|pod| {
                let names_claim = pod.claim_count() != 1;
                let short =
                    |reason: &OutcomeReason<'_>| ShortReason { reason: *reason, names_claim }.to_string();
                let because: Vec<String> = pod.reasons.iter().take(2).map(short).collect();
                let more = pod.reasons.len().saturating_sub(2);
                let more = if more > 0 { format!("; and {more} more") } else { String::new() };
                vec![
                    eviction_time(pod.outcome),
                    format!("{}/{}", pod.namespace, pod.name),
                    pod.owner.unwrap_or("-").to_owned(),
                    pod.outcome.name().to_owned(),
                    format!("{}{more}", because.join("; ")),
                ]
            })
            .collect();
        out.push('\n');
        out.push_str(&table::format_table(&["WHEN", "POD", "OWNER", "OUTCOME", "BECAUSE"], &rows));
        if impact.pods.len() > shown {
            _ = writeln!(out, "… and {} more; --limit 0 lists them all", impact.pods.len() - shown);
        }
    }
    let picture = eviction_histogram(impact, query.at, each);
    if !picture.is_empty() {
        _ = write!(out, "\n{picture}");
    }
    _ = writeln!(out, "\n{}", totals_line(assessment, is_complete, hedge));
    if let Some(sentence) = assessment.elsewhere.as_ref().and_then(EvictedPodsForecast::outcome_sentence) {
        _ = writeln!(out, "{}", sanitize_as_line(&sentence));
    }
    for budget in &assessment.budgets {
        _ = writeln!(
            out,
            "{each}{} would violate PDB {}/{}; device-taint evictions ignore PDBs",
            count_with_noun(budget.violated_by, "eviction"),
            sanitize_as_line(budget.namespace),
            sanitize_as_line(budget.name),
        );
    }
    for group in &assessment.restarts {
        let verb = if no_effect.is_none() && depends_on.is_none() { "loses" } else { "would lose" };
        _ = writeln!(
            out,
            "{} {}/{} ({}) {verb} {each}{}: {}",
            group.kind,
            sanitize_as_line(group.namespace),
            sanitize_as_line(group.name),
            sanitize_as_line(&group.policy),
            count_with_noun(group.lost, "pod"),
            sanitize_as_line(&group.effect),
        );
    }
    for difference in &assessment.differences {
        _ = writeln!(out, "note: {}", sanitize_as_line(difference));
    }
    if no_effect.is_some() || !is_complete {
        return out;
    }
    match (&impact.condition, query.change) {
        (Some(condition), _) => {
            let colon = if condition.message.is_empty() { "" } else { ": " };
            _ = writeln!(
                out,
                "status: EvictionInProgress {} {}{colon}{}",
                condition.status, condition.reason, condition.message
            );
        }
        (None, ProposedChange::Rule(_)) => _ = writeln!(out, "status: not set in {profile}"),
        (None, ProposedChange::Slice(_)) => {}
    }
    out
}

/// The words before numbers that are bounds or estimates, such as `at most `.
#[derive(Clone, Copy)]
struct NumberQualifier {
    /// Before the first number of a line.
    first: &'static str,
    /// Before each of the others.
    each: &'static str,
}

impl NumberQualifier {
    fn from_impact(impact: &Impact<'_>, is_complete: bool) -> NumberQualifier {
        match (impact.is_upper_bound, is_complete) {
            (true, true) => NumberQualifier { first: impact.at_most_prefix(), each: impact.at_most_prefix() },
            (true, false) => NumberQualifier { first: "about ", each: "about " },
            (false, true) => NumberQualifier { first: "", each: "" },
            (false, false) => NumberQualifier { first: "at least ", each: "" },
        }
    }
}

/// Returns the totals: `total: 3 of 7 pods evicted in 2 namespaces: 1 now, 2 later (the last at …); 2 tolerate the
/// taint, 2 are not affected`.
fn totals_line(
    assessment: &Assessment<'_>,
    is_complete: bool,
    NumberQualifier { first, each }: NumberQualifier,
) -> String {
    let impact = &assessment.impact;
    let evicted = impact.evicted_pod_count();
    let OutcomeCounts { now, later, tolerated, unaffected, last } = OutcomeCounts::from_impact(impact);
    let is_certain = assessment.no_effect.is_none() && assessment.depends_on.is_none();
    let verb = if is_certain { "evicted" } else { "would be evicted" };
    let mut out = if is_complete {
        format!("total: {first}{evicted} of {each}{} {verb}", count_with_noun(impact.pods.len(), "pod"))
    } else {
        format!("total: {first}{} {verb}", count_with_noun(evicted, "pod"))
    };
    if evicted > 0 {
        let namespaces = count_with_noun(impact.namespaces.len(), "namespace");
        _ = write!(out, " in {each}{namespaces}: {each}{now} now");
        if let Some(last) = last {
            _ = write!(out, ", {each}{later} later (the last at {})", format_time(last));
        }
        let others = impact.pods.iter().filter(|pod| pod.outcome.is_evicted() && !pod.is_evicted_by_change());
        let others = others.count();
        if others > 0 {
            _ = write!(out, ", {each}{others} of them by other taints");
        }
    }
    let mut rest = Vec::new();
    if tolerated > 0 {
        let taint = match assessment.query.change {
            ProposedChange::Rule(_) => "the taint",
            ProposedChange::Slice(_) => "the taints",
        };
        rest.push(format!("{each}{tolerated} tolerate{} {taint}", if tolerated == 1 { "s" } else { "" }));
    }
    if unaffected > 0 {
        rest.push(format!("{each}{unaffected} {} not affected", if unaffected == 1 { "is" } else { "are" }));
    }
    if !rest.is_empty() {
        _ = write!(out, "; {}", rest.join(", "));
    }
    let would = impact.counts.pods;
    if evicted == 0 && would > 0 {
        let pods = count_with_noun(would, "pod");
        _ = write!(out, "; --effect NoExecute shows the {each}{pods} that would be evicted");
    }
    out
}

/// With fewer evictions, no histogram is drawn, because the table of pods is enough.
const MIN_EVICTIONS_TO_DRAW: usize = 20;
/// Maximum number of bars of a histogram.
const MAX_BARS: usize = 12;
/// Maximum length of a bar in characters.
const MAX_BAR_LENGTH: usize = 40;

/// Returns the histogram of evictions over time; empty if there are so few that the table is enough. `hedge`,
/// such as `at most `, precedes each number.
fn eviction_histogram(impact: &Impact<'_>, at: Timestamp, hedge: &str) -> String {
    let times: Vec<i64> = impact
        .pods
        .iter()
        .filter_map(|pod| match pod.outcome {
            PodOutcome::EvictedNow => Some(at.seconds),
            // Round up: a fraction of a second later is not now.
            PodOutcome::EvictedAt(time) => Some(time.seconds + i64::from(time.nanos > 0)),
            PodOutcome::Tolerated | PodOutcome::Unaffected => None,
        })
        .collect();
    if times.len() < MIN_EVICTIONS_TO_DRAW {
        return String::new();
    }
    let bars = count_evictions_by_time(&times);
    let most = bars.iter().map(|(_, count)| *count).max().unwrap_or(1);
    let mut out = String::new();
    for (from, count) in bars {
        let when = if from <= at.seconds {
            "now".to_owned()
        } else {
            format_time(Timestamp { seconds: from, nanos: 0 })
        };
        // At least one character.
        let length = (count * MAX_BAR_LENGTH).div_ceil(most);
        _ = writeln!(out, "{when:<20}  {:<MAX_BAR_LENGTH$}  {hedge}{count}", "#".repeat(length));
    }
    out
}

/// The number of evictions at each time, in order. If there are more than [`MAX_BARS`] times, they are grouped into
/// equal intervals, each with its start. `times` is sorted.
fn count_evictions_by_time(times: &[i64]) -> Vec<(i64, usize)> {
    let counted = |times: &[i64]| -> Vec<(i64, usize)> {
        let groups = times.chunk_by(|one, other| one == other);
        groups.filter_map(|group| Some((*group.first()?, group.len()))).collect()
    };
    let groups = counted(times);
    let (Some((first, _)), Some((last, _))) = (groups.first(), groups.last()) else { return groups };
    if groups.len() <= MAX_BARS {
        return groups;
    }
    let span = i64::try_from(MAX_BARS).unwrap_or(1);
    let step = ((last - first) / span + 1).max(1);
    let starts: Vec<i64> = times.iter().map(|time| first + (time - first) / step * step).collect();
    counted(&starts)
}

#[cfg(test)]
mod tests {
    use super::count_evictions_by_time;

    #[test]
    fn few_moments_stay_many_are_joined() {
        assert_eq!(count_evictions_by_time(&[0, 0, 5]), [(0, 2), (5, 1)]);
        let many: Vec<i64> = (0..240).collect();
        let bars = count_evictions_by_time(&many);
        assert!(bars.len() <= super::MAX_BARS, "{bars:?}");
        assert_eq!(bars.iter().map(|(_, count)| count).sum::<usize>(), 240);
        assert_eq!(bars[0], (0, 20));
    }
}
