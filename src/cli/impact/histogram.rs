//! A histogram of evictions: one bar per time, or per interval if there are many times.

use std::fmt::Write as _;

use super::format_time;
use tollgate_engine::impact::{Impact, PodOutcome};
use tollgate_formats::gotime::Timestamp;

/// With fewer evictions, no histogram is drawn, because the table of pods is enough.
const MIN_EVICTIONS_TO_DRAW: usize = 20;
/// Maximum number of bars of a histogram.
const MAX_BARS: usize = 12;
/// Maximum length of a bar in characters.
const MAX_BAR_LENGTH: usize = 40;

/// Returns the histogram of evictions over time; empty if there are so few that the table is enough. `hedge`,
/// such as `at most `, precedes each number.
pub(super) fn eviction_histogram(impact: &Impact<'_>, at: Timestamp, hedge: &str) -> String {
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
