//! Text output: totals, classes, and a row for each device or group.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clap::ValueEnum as _;

use super::Grouping;
use crate::cli::table;
use tollgate_forecast::{DeviceCounts, DeviceReport, DeviceState, Holder, ReportedDevice, ReportedTaint};
use tollgate_formats::count::count_with_noun;
use tollgate_formats::sanitize;

/// Maximum number of items in a cell, except with `-o wide`.
const MAX_CELL_ITEMS: usize = 2;

/// Returns the report as text: with all columns if `is_wide`, and with the classes of the indexes `shown`. `header`
/// contains the release and the time.
pub(super) fn render(
    report: &DeviceReport<'_>,
    header: &str,
    (by, is_wide): (Option<Grouping>, bool),
    shown: &[usize],
) -> String {
    let totals: DeviceCounts = report.devices.iter().collect();
    let DeviceCounts { total, allocated, tainted, blocked, free, .. } = totals;
    let devices = count_with_noun(total, "device");
    let mut out = format!(
        "{devices}: {allocated} allocated, {tainted} tainted, {blocked} blocked, {free} free ({header})\n"
    );
    let classes = report.classes.iter().zip(report.class_counts()).enumerate();
    let classes = classes.filter(|(place, _)| shown.contains(place));
    let rows: Vec<Vec<String>> =
        classes.map(|(_, (class, counts))| count_row(class.name.to_owned(), counts)).collect();
    if !rows.is_empty() && by != Some(Grouping::Class) {
        _ = write!(out, "\n{}", count_table("CLASS", &rows));
    }
    for problem in class_selector_errors(report, shown) {
        _ = writeln!(out, "{}", sanitize::sanitize_as_line(&problem));
    }
    if report.devices.is_empty() {
        return out;
    }
    out.push('\n');
    match by {
        None => out.push_str(&device_table(report, is_wide)),
        Some(by) => out.push_str(&group_table(report, by, shown)),
    }
    out
}

/// Returns the errors in the CEL selectors of the listed classes, as sentences.
fn class_selector_errors(report: &DeviceReport<'_>, shown: &[usize]) -> Vec<String> {
    let mut problems = Vec::new();
    for (place, class) in report.classes.iter().enumerate().filter(|(place, _)| shown.contains(place)) {
        if let Some(error) = &class.error {
            // The other lines show the expression with a mark under the mistake.
            let error = error.lines().next().unwrap_or_default();
            problems.push(format!("class {}: the selector does not compile: {error}", class.name));
        }
        let fails = |device: &&ReportedDevice<'_>| device.class_errors.iter().any(|(at, _)| *at == place);
        let mut failing = report.devices.iter().filter(fails);
        let Some(first) = failing.next() else { continue };
        let message = first.class_errors.iter().find(|(at, _)| *at == place).map_or("", |(_, text)| text);
        let more = match failing.count() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        problems.push(format!(
            "class {}: the selector fails for {}{more}: {message}",
            class.name,
            device_name(first)
        ));
    }
    problems
}

fn device_table(report: &DeviceReport<'_>, is_wide: bool) -> String {
    let limit = if is_wide { usize::MAX } else { MAX_CELL_ITEMS };
    let class_name = |place: &usize| report.classes.get(*place).map_or("", |class| class.name).to_owned();
    let row = |device: &ReportedDevice<'_>| {
        let mut row = vec![
            device_name(device),
            device.node.unwrap_or("-").to_owned(),
            states_text(device),
            join_first(device.classes.iter().map(class_name), limit),
            join_first(device.taints.iter().map(taint_text), limit),
            join_first(device.holders.iter().map(holder_text), limit),
        ];
        if is_wide {
            let claim = |holder: &Holder<'_>| format!("{}/{}", holder.namespace, holder.claim);
            let mut claims: Vec<String> = device.holders.iter().map(claim).collect();
            claims.dedup();
            row.push(join_first(claims.into_iter(), limit));
            row.push(device.slice.unwrap_or("-").to_owned());
        }
        row
    };
    let rows: Vec<Vec<String>> = report.devices.iter().map(row).collect();
    let header = ["DEVICE", "NODE", "STATE", "CLASSES", "TAINTS", "HELD BY", "CLAIMS", "SLICE"];
    let columns = if is_wide { header.len() } else { header.len() - 2 };
    table::format_table(header.get(..columns).unwrap_or(&header), &rows)
}

fn group_table(report: &DeviceReport<'_>, by: Grouping, shown: &[usize]) -> String {
    let mut groups: BTreeMap<String, DeviceCounts> = BTreeMap::new();
    for device in &report.devices {
        let mut names: Vec<String> = match by {
            Grouping::Node => device.node.map(str::to_owned).into_iter().collect(),
            Grouping::Pool => vec![format!("{}/{}", device.driver, device.pool)],
            Grouping::Driver => vec![device.driver.to_owned()],
            Grouping::Class => {
                let classes = device.classes.iter().filter(|place| shown.contains(place));
                let classes = classes.filter_map(|place| report.classes.get(*place));
                classes.map(|class| class.name.to_owned()).collect()
            }
            Grouping::Namespace => device.holders.iter().map(|holder| holder.namespace.to_owned()).collect(),
        };
        names.sort_unstable();
        names.dedup();
        if names.is_empty() {
            names.push("-".to_owned());
        }
        for name in names {
            groups.entry(name).or_default().add_device(device);
        }
    }
    let header = by.to_possible_value().map_or(String::new(), |value| value.get_name().to_uppercase());
    let rows: Vec<Vec<String>> = groups.into_iter().map(|(name, counts)| count_row(name, counts)).collect();
    count_table(&header, &rows)
}

fn count_table(first: &str, rows: &[Vec<String>]) -> String {
    table::format_table(&[first, "TOTAL", "ALLOCATED", "TAINTED", "BLOCKED", "FREE"], rows)
}

fn count_row(name: String, counts: DeviceCounts) -> Vec<String> {
    let DeviceCounts { total, allocated, tainted, blocked, free, .. } = counts;
    let numbers = [total, allocated, tainted, blocked, free].map(|number| number.to_string());
    std::iter::once(name).chain(numbers).collect()
}

/// Returns the name of a device as `driver/pool/device`.
fn device_name(device: &ReportedDevice<'_>) -> String {
    format!("{}/{}/{}", device.driver, device.pool, device.device)
}

/// Returns the states of a device: `allocated, blocked (the pool is incomplete)`.
fn states_text(device: &ReportedDevice<'_>) -> String {
    let state = |state: &DeviceState| match (state, &device.blocked_by) {
        (DeviceState::Blocked, Some(why)) => format!("blocked ({why})"),
        (DeviceState::Shared, _) if !device.capacity_left.is_empty() => {
            let left = device.capacity_left.iter().map(|(name, amount)| format!("{name} {}", amount.text()));
            format!("shared ({} left)", left.collect::<Vec<_>>().join(", "))
        }
        _ => state.name().to_owned(),
    };
    device.states.iter().map(state).collect::<Vec<_>>().join(", ")
}

/// Returns a taint and its source: `example.com/broken=yes:NoExecute (rule drain)`.
fn taint_text(taint: &ReportedTaint<'_>) -> String {
    let equals = if taint.value.is_empty() { "" } else { "=" };
    let source = taint.rule.map_or_else(|| "slice".to_owned(), |rule| format!("rule {rule}"));
    format!("{}{equals}{}:{} ({source})", taint.key, taint.value, taint.effect)
}

/// Returns the pod that holds a device, and its workload: `ml/chat-0 (Deployment/chat)`.
fn holder_text(holder: &Holder<'_>) -> String {
    let who = match holder.pod {
        Some(pod) => format!("{}/{pod}", holder.namespace),
        None => format!("claim {}/{}", holder.namespace, holder.claim),
    };
    let workload = holder.workload.map(|workload| workload.to_string());
    let admin_access = holder.admin_access.then(|| "adminAccess".to_owned());
    let notes: Vec<String> = workload.into_iter().chain(admin_access).collect();
    if notes.is_empty() { who } else { format!("{who} ({})", notes.join(", ")) }
}

/// Joins the first items with commas and adds how many more there are, as in `a, b, +3`; `-` for none.
fn join_first(items: impl ExactSizeIterator<Item = String>, limit: usize) -> String {
    let more = items.len().saturating_sub(limit);
    let shown: Vec<String> = items.take(limit).collect();
    match (shown.is_empty(), more) {
        (true, _) => "-".to_owned(),
        (_, 0) => shown.join(", "),
        _ => format!("{}, +{more}", shown.join(", ")),
    }
}
