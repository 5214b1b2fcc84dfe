//! The samples of a soak run as CSV, and as a picture: memory, descriptors and latencies, one below the other.
#![expect(clippy::cast_precision_loss, reason = "numbers for a chart")]

use std::fmt::Write as _;

/// What was seen in one interval.
pub(crate) struct Sample {
    pub(crate) seconds: f64,
    pub(crate) memory_mib: f64,
    pub(crate) descriptors: usize,
    pub(crate) threads: usize,
    /// Processors in use, on average.
    pub(crate) processors: f64,
    /// Of requests below 10 KB.
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    /// Of slices with 64 devices.
    pub(crate) large_p99_ms: f64,
    pub(crate) max_ms: f64,
    pub(crate) requests: usize,
    /// Since the start.
    pub(crate) failed: usize,
    pub(crate) wrong: usize,
}

pub(crate) fn csv(samples: &[Sample]) -> String {
    let mut out = "seconds,memory_mib,descriptors,threads,processors,p50_ms,p99_ms,large_p99_ms,max_ms,requests,failed,wrong\n"
        .to_owned();
    for sample in samples {
        _ = writeln!(
            out,
            "{:.0},{:.2},{},{},{:.3},{:.3},{:.3},{:.3},{:.3},{},{},{}",
            sample.seconds,
            sample.memory_mib,
            sample.descriptors,
            sample.threads,
            sample.processors,
            sample.p50_ms,
            sample.p99_ms,
            sample.large_p99_ms,
            sample.max_ms,
            sample.requests,
            sample.failed,
            sample.wrong
        );
    }
    out
}

/// Slope of a least-squares line, in units an hour.
pub(crate) fn slope(samples: &[Sample], value: impl Fn(&Sample) -> f64) -> f64 {
    let count = samples.len() as f64;
    let mean = |value: &dyn Fn(&Sample) -> f64| samples.iter().map(value).sum::<f64>() / count;
    let (middle, level) = (mean(&|sample| sample.seconds), mean(&value));
    let above: f64 = samples.iter().map(|sample| (sample.seconds - middle) * (value(sample) - level)).sum();
    let below: f64 = samples.iter().map(|sample| (sample.seconds - middle).powi(2)).sum();
    3_600.0 * above / below.max(1.0)
}

const WIDTH: f64 = 660.0;
const HEIGHT: f64 = 96.0;
const GAP: f64 = 44.0;
const LEFT: f64 = 44.0;
/// Points of a line.
const POINTS: usize = 180;

/// A line: its name, its class in the style, and its value in a sample.
type Line = (&'static str, &'static str, fn(&Sample) -> f64);

/// A chart: its title and its lines.
type Chart = (&'static str, &'static [Line]);

const CHARTS: [Chart; 3] = [
    ("resident memory, MiB", &[("", "a", |sample| sample.memory_mib)]),
    ("open file descriptors", &[("", "a", |sample| sample.descriptors as f64)]),
    (
        "response time, ms:",
        &[
            ("p50", "a", |sample| sample.p50_ms),
            ("p99", "b", |sample| sample.p99_ms),
            ("p99 of slices", "c", |sample| sample.large_p99_ms),
        ],
    ),
];

pub(crate) fn picture(samples: &[Sample]) -> String {
    let end = samples.last().map_or(1.0, |last| last.seconds);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0} {:.0}\" role=\"img\" aria-labelledby=\"title\" font-family=\"ui-sans-serif, system-ui, sans-serif\" font-size=\"12\">\n\
         <title id=\"title\">Memory, file descriptors and response times in a run of {:.0} minutes</title>\n\
         <style>\n\
         text {{ fill: #334155 }} polyline {{ fill: none; stroke-width: 1.2 }} .g {{ stroke: #cbd5e1 }}\n\
         .a {{ stroke: #0369a1 }} .b {{ stroke: #c2410c }} .c {{ stroke: #7e22ce }}\n\
         tspan.a {{ fill: #0369a1 }} tspan.b {{ fill: #c2410c }} tspan.c {{ fill: #7e22ce }} tspan {{ stroke: none }}\n\
         @media (prefers-color-scheme: dark) {{ text {{ fill: #cbd5e1 }} .g {{ stroke: #334155 }}\n\
         .a {{ stroke: #38bdf8 }} .b {{ stroke: #fb923c }} .c {{ stroke: #c084fc }}\n\
         tspan.a {{ fill: #38bdf8 }} tspan.b {{ fill: #fb923c }} tspan.c {{ fill: #c084fc }} }}\n\
         </style>\n",
        LEFT + WIDTH + 10.0,
        3.0 * (HEIGHT + GAP),
        end / 60.0
    );
    // Each point is the median of a few samples.
    let step = samples.len().div_ceil(POINTS).max(1);
    let groups: Vec<&[Sample]> = samples.chunks(step).collect();
    let median = |group: &[Sample], value: fn(&Sample) -> f64| {
        let mut values: Vec<f64> = group.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    for (index, (title, lines)) in CHARTS.iter().enumerate() {
        let top = index as f64 * (HEIGHT + GAP) + 24.0;
        let values =
            groups.iter().flat_map(|group| lines.iter().map(move |(_, _, value)| median(group, *value)));
        let highest = values.fold(0.0_f64, f64::max).max(0.001) * 1.1;
        let names: Vec<String> = lines
            .iter()
            .map(|(name, class, _)| format!(" <tspan class=\"{class}\">{name}</tspan>"))
            .collect();
        let names = names.concat();
        _ = writeln!(out, "<text x=\"{LEFT}\" y=\"{:.0}\">{title}{names}</text>", top - 8.0);
        for part in 0..=2 {
            let (y, value) = (top + HEIGHT * f64::from(part) / 2.0, highest * f64::from(2 - part) / 2.0);
            _ = writeln!(
                out,
                "<path class=\"g\" d=\"M{LEFT} {y:.0}h{WIDTH}\"/><text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"end\">{value:.1}</text>",
                LEFT - 6.0,
                y + 4.0
            );
        }
        for (_, class, value) in *lines {
            let point = |group: &&[Sample]| {
                let seconds = group.last().map_or(0.0, |last| last.seconds);
                let y = top + HEIGHT * (1.0 - median(group, *value) / highest);
                format!("{:.0},{y:.1}", LEFT + WIDTH * seconds / end)
            };
            let points: Vec<String> = groups.iter().map(point).collect();
            _ = writeln!(out, "<polyline class=\"{class}\" points=\"{}\"/>", points.join(" "));
        }
        _ = writeln!(
            out,
            "<text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"end\">{:.0} min</text>",
            LEFT + WIDTH,
            top + HEIGHT + 14.0,
            end / 60.0
        );
    }
    out + "</svg>\n"
}
