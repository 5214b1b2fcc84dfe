//! The times at which pods are evicted, as a bar chart and as a list.

use std::collections::BTreeMap;

use maud::{Markup, html};
use tollgate_formats::gotime::{self, Timestamp};

use crate::frame::{counted, group_thousands};
use crate::map::NamespaceAndName;
use crate::text::{SafeText, first_parts_and_number_of_others, namespaced};

/// Maximum number of bars in the drawing; evictions between two bars are drawn together.
const MAX_BARS: u8 = 40;
/// Maximum number of bars that all have their numbers; of more bars, only the tallest have.
const MAX_FULLY_LABELLED_BARS: usize = 12;
/// Maximum number of times in the list; more are counted.
const MAX_TIMES: usize = 30;
/// Maximum number of pods that are named at each time; more are counted.
const MAX_NAMES: usize = 8;
/// Height of the drawing.
const HEIGHT: usize = 112;
/// Vertical position of the ground on which the bars stand.
const BARS_BOTTOM: usize = 88;
/// Height of the tallest bar.
const MAX_BAR_HEIGHT: usize = 64;
/// Horizontal position of the time of the report, in percent of the width.
const START_X_PERCENT: f64 = 6.0;
/// Horizontal position of the last eviction, in percent of the width.
const END_X_PERCENT: f64 = 92.0;

/// The evictions of a report, by the time at which they happen.
#[derive(Debug)]
pub(crate) struct EvictionTimeline {
    start: i64,
    times: BTreeMap<i64, Vec<NamespaceAndName>>,
}

impl EvictionTimeline {
    /// The evictions of these pods; a time that cannot be read is left out.
    pub(crate) fn new(
        at: &str,
        pods: impl Iterator<Item = (SafeText, NamespaceAndName)>,
    ) -> EvictionTimeline {
        let seconds = |text: &str| gotime::parse_rfc3339(text).ok().map(|time| time.seconds);
        let mut times: BTreeMap<i64, Vec<NamespaceAndName>> = BTreeMap::new();
        for (time, pod) in pods {
            if let Some(time) = seconds(&time) {
                times.entry(time).or_default().push(pod);
            }
        }
        let start = seconds(at).into_iter().chain(times.keys().next().copied()).min().unwrap_or(0);
        EvictionTimeline { start, times }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// The drawing, if evictions happen at more than one time, and the list.
    pub(crate) fn render(&self) -> Markup {
        html! {
            @if self.times.len() > 1 { (self.drawing()) }
            ol.times {
                @for (time, pods) in self.times.iter().take(MAX_TIMES) {
                    li {
                        time { (self.label(*time)) }
                        strong { (counted(pods.len(), "pod")) }
                        span { (first_parts_and_number_of_others(pods.iter().map(namespaced), MAX_NAMES, [", ", " and "])) }
                    }
                }
            }
            @if self.times.len() > MAX_TIMES {
                p.hint { "and " (counted(self.times.len() - MAX_TIMES, "later time")) "; the table has all of them" }
            }
        }
    }

    /// The text for a time: `now`, or the time and how long it is until then.
    fn label(&self, time: i64) -> String {
        match time - self.start {
            0 => "now".to_owned(),
            after => {
                format!("{} (+{})", time_with_date_if_other_day(time, self.start), short_duration(after))
            }
        }
    }

    fn drawing(&self) -> Markup {
        let last = self.times.keys().next_back().copied().unwrap_or(self.start);
        let span = (last - self.start).max(1);
        let bars = self.evictions_per_bar(span);
        let most = bars.values().copied().max().unwrap_or(1).max(1);
        let ticks = [0, 1, 2, 3, 4].map(|quarter| self.start + span * quarter / 4);
        html! {
            svg.timeline width="100%" height=(HEIGHT) role="img" aria-label="Evictions over time; the list has the numbers" {
                @for tick in ticks {
                    @let x = x_position(tick - self.start, span);
                    line x1=(x) x2=(x) y1="8" y2=(BARS_BOTTOM) {}
                }
                line.axis x1="0" x2="100%" y1=(BARS_BOTTOM) y2=(BARS_BOTTOM) {}
                @for (index, tick) in ticks.iter().enumerate() {
                    // On narrow screens there is room for three labels.
                    text.soft.(if index % 2 == 1 { "odd" } else { "even" }) x=(x_position(tick - self.start, span))
                        y=(HEIGHT - 8) text-anchor="middle" {
                        @if index == 0 { "now" } @else { "+" (short_duration(tick - self.start)) }
                    }
                }
                @for (time, count) in &bars {
                    @let height = (count * MAX_BAR_HEIGHT / most).max(4);
                    svg x=(x_position(*time, span)) overflow="visible" {
                        rect x="-5" width="10" y=(BARS_BOTTOM - height) height=(height) {}
                        @if bars.len() <= MAX_FULLY_LABELLED_BARS || *count == most {
                            text x="0" y=(BARS_BOTTOM - height - 4) text-anchor="middle" { (group_thousands(*count)) }
                        }
                    }
                }
            }
        }
    }

    /// The number of evictions in each bar of the drawing, by the seconds from the start to the bar. `span` is the time
    /// that the drawing covers, in seconds. Evictions close to each other share a bar.
    fn evictions_per_bar(&self, span: i64) -> BTreeMap<i64, usize> {
        let step =
            if self.times.len() > usize::from(MAX_BARS) { (span / i64::from(MAX_BARS)).max(1) } else { 1 };
        let mut bars = BTreeMap::new();
        for (time, pods) in &self.times {
            *bars.entry((time - self.start) / step * step).or_default() += pods.len();
        }
        bars
    }
}

#[expect(clippy::cast_precision_loss, reason = "a position in a drawing")]
fn x_position(after: i64, span: i64) -> String {
    format!("{:.2}%", START_X_PERCENT + (END_X_PERCENT - START_X_PERCENT) * after as f64 / span as f64)
}

/// The time of day, with the date if it is not that of the start.
fn time_with_date_if_other_day(seconds: i64, start: i64) -> String {
    let text = gotime::rfc3339(Timestamp { seconds, nanos: 0 });
    match text.split_once('T') {
        Some((_, time)) if seconds.div_euclid(86_400) == start.div_euclid(86_400) => time.to_owned(),
        _ => text,
    }
}

/// A duration in two units: `45 s`, `5 min`, `1 h 30 min` or `3 d 4 h`.
fn short_duration(seconds: i64) -> String {
    let with_rest = |whole: i64, unit: &str, rest: i64, rest_unit: &str| match rest {
        0 => format!("{whole} {unit}"),
        _ => format!("{whole} {unit} {rest} {rest_unit}"),
    };
    match seconds {
        ..60 => format!("{seconds} s"),
        60..3600 => with_rest(seconds / 60, "min", seconds % 60, "s"),
        3600..86_400 => with_rest(seconds / 3600, "h", seconds % 3600 / 60, "min"),
        _ => with_rest(seconds / 86_400, "d", seconds % 86_400 / 3600, "h"),
    }
}
