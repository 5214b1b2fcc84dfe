//! A picture of many evictions: one bar per moment, or per span of time if the moments are many.

use std::fmt::Write as _;

use super::moment;
use crate::gotime::Timestamp;
use crate::impact::{Impact, PodOutcome};

/// Fewer evictions are seen in the table.
const MANY: usize = 20;
/// Bars at most.
const BARS: usize = 12;
/// Characters of the longest bar.
const WIDTH: usize = 40;

/// The picture; empty where the table says it all.
pub(super) fn of(impact: &Impact<'_>, at: Timestamp) -> String {
    let times: Vec<i64> = impact
        .pods
        .iter()
        .filter_map(|pod| match pod.outcome {
            PodOutcome::EvictedNow => Some(at.seconds),
            // A part of a second is not now any more.
            PodOutcome::EvictedAt(time) => Some(time.seconds + i64::from(time.nanos > 0)),
            PodOutcome::Tolerated | PodOutcome::Unaffected => None,
        })
        .collect();
    if times.len() < MANY {
        return String::new();
    }
    let bars = grouped(&times);
    let most = bars.iter().map(|(_, count)| *count).max().unwrap_or(1);
    let mut out = String::new();
    for (from, count) in bars {
        let when =
            if from <= at.seconds { "now".to_owned() } else { moment(Timestamp { seconds: from, nanos: 0 }) };
        // A bar that stands for something is never empty.
        let length = (count * WIDTH).div_ceil(most);
        _ = writeln!(out, "{when:<20}  {:<WIDTH$}  {count}", "#".repeat(length));
    }
    out
}

/// Moments in order and how many pods go then; if there are too many moments, equal spans of time by their beginning.
fn grouped(times: &[i64]) -> Vec<(i64, usize)> {
    let each = |times: &mut dyn Iterator<Item = i64>| {
        let mut groups: Vec<(i64, usize)> = Vec::new();
        for time in times {
            match groups.last_mut() {
                Some((last, count)) if *last == time => *count += 1,
                _ => groups.push((time, 1)),
            }
        }
        groups
    };
    let groups = each(&mut times.iter().copied());
    let (Some((first, _)), Some((last, _))) = (groups.first(), groups.last()) else { return groups };
    if groups.len() <= BARS {
        return groups;
    }
    let span = i64::try_from(BARS).unwrap_or(1);
    let step = ((last - first) / span + 1).max(1);
    each(&mut times.iter().map(|time| first + (time - first) / step * step))
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn few_moments_stay_many_are_joined() {
        assert_eq!(grouped(&[0, 0, 5]), [(0, 2), (5, 1)]);
        let many: Vec<i64> = (0..240).collect();
        let bars = grouped(&many);
        assert!(bars.len() <= super::BARS, "{bars:?}");
        assert_eq!(bars.iter().map(|(_, count)| count).sum::<usize>(), 240);
        assert_eq!(bars[0], (0, 20));
    }
}
