//! The panel with all that is known about one device.

use maud::{Markup, html};
use tollgate_picture::SafeText;
use tollgate_picture::map::{Device, DevicesReport, device_cell_id};

/// Maximum number of related devices that are named one by one.
const MAX_LISTED_RELATED_DEVICES: usize = 40;

/// Devices that share counters with a device, by their names in its pool.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct DevicesSharingCounters {
    /// Names of the partitions of the device.
    pub partitions: Vec<String>,
    /// Names of the devices that the device is a partition of.
    pub wholes: Vec<String>,
}

/// The panel with all that is known about a device.
pub(crate) fn draw_details(
    id: &str,
    device: &Device,
    related: &DevicesSharingCounters,
    report: &DevicesReport,
) -> Markup {
    html! {
        h3 { (device.device) }
        p.hint { (device.driver) "/" (device.pool) @if let Some(node) = &device.node { ", node " (node) } }
        p { a.button href={ "/what-if#" (id) } {
            @if device.taints.is_empty() { "What if this device is tainted?" } @else { "What if this device gets another taint?" }
        } }
        dl {
            dt { "State" }
            dd {
                @for (index, state) in device.states.iter().enumerate() {
                    @if index > 0 { ", " }
                    strong { (state.name()) } " (" (state.meaning()) ")"
                }
                @if let Some(why) = &device.blocked_by { p { "Blocked because " (why) "." } }
            }
            @if !device.capacity_left.is_empty() {
                dt { "Capacity left" }
                dd { ul { @for (name, amount) in &device.capacity_left { li { (name) ": " (amount) } } } }
            }
            dt { "Taints" }
            dd {
                @if device.taints.is_empty() { "none" }
                ul {
                    @for taint in &device.taints {
                        li { b { (SafeText::from(taint.taint_in_kubectl_notation())) } " from " (taint.source.kind) " " (taint.source.name) }
                    }
                }
            }
            dt { "Held by" }
            dd {
                @if device.holders.is_empty() { "nobody" }
                ul {
                    @for holder in &device.holders {
                        li {
                            "claim " (holder.claim.namespace) "/" b { (holder.claim.name) }
                            @if let Some(pod) = &holder.pod { ", pod " (pod.namespace) "/" b { (pod.name) } }
                            @else { ", no pod" }
                            @if let Some(workload) = &holder.workload { ", of " (workload.kind) " " (workload.name) }
                            @if holder.admin_access { ", with admin access" }
                        }
                    }
                }
            }
            dt { "Classes" }
            dd { @if device.classes.is_empty() { "none" } (comma_separated_texts(device.classes.iter().cloned())) }
            @if let Some(slice) = &device.slice { dt { "ResourceSlice" } dd { (slice) } }
            (related_devices_list("Partitions of it", &related.partitions, device, report))
            (related_devices_list("It is a partition of", &related.wholes, device, report))
        }
    }
}

fn comma_separated_texts(texts: impl Iterator<Item = SafeText>) -> Markup {
    html! { @for (index, text) in texts.enumerate() { @if index > 0 { ", " } (text) } }
}

/// A list of related devices with their states, as links to their map cells.
fn related_devices_list(title: &str, names: &[String], device: &Device, report: &DevicesReport) -> Markup {
    if names.is_empty() {
        return html! {};
    }
    let more = names.len().saturating_sub(MAX_LISTED_RELATED_DEVICES);
    html! {
        dt { (title) }
        dd {
            ul.related {
                @for name in names.iter().take(MAX_LISTED_RELATED_DEVICES) {
                    @let is_it = |other: &&Device| {
                        *other.device == **name && other.driver == device.driver && other.pool == device.pool
                    };
                    @if let Some(other) = report.devices.iter().find(is_it) {
                        li {
                            a href={ "#" (device_cell_id(other)) } { (other.device) }
                            " " span.hint { (comma_separated_texts(other.states.iter().map(|state| SafeText::from(state.name())))) }
                        }
                    }
                }
                @if more > 0 { li { "and " (more) " more" } }
            }
        }
    }
}
