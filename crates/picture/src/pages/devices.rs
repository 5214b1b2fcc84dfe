//! The page of `tollgate devices`.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};

use crate::MAX_PAGE_BYTES;
use crate::bars;
use crate::frame::{HtmlPage, ReportProvenance, completeness, counted, group_thousands};
use crate::map::{
    Device, DevicesReport, ShownDeviceState, devices_map_within_bytes, summarize_devices_by_main_state,
};
use crate::table::{NAMESPACES, TAINTS, Table};
use crate::text::{SafeText, unbroken};

/// Bytes reserved for the parts of the page beside the map.
const BYTES_BESIDE_MAP: usize = 1_500_000;

/// The page for the record of `devices -o json`.
pub fn devices(json: &str, page: &ReportProvenance) -> serde_json::Result<String> {
    let report: DevicesReport = serde_json::from_str(json)?;
    let frame = HtmlPage {
        page,
        title: "Devices",
        lead: lead(&report),
        profile: &report.profile,
        at: &report.at,
        body: html! {
            @if !report.classes.is_empty() {
                section {
                    h2 { "Devices by class" }
                    (bars::class_bars(&report.classes))
                }
            }
            section { h2 { "Devices by node" } (devices_map_within_bytes(&report, MAX_PAGE_BYTES - BYTES_BESIDE_MAP)) }
            section { h2 { "Taints" } (taints(&report.devices)) }
            section { h2 { "Devices by namespace" } (held_devices_by_namespace_table(&report.devices)) }
            section { h2 { "Next steps" } (next_steps()) }
        },
        read_more: &[
            ("understand/devices.md", "States of a device"),
            ("reference/json.md", "The same report as JSON"),
        ],
    };
    Ok(frame.render_page_or_part())
}

/// Commands that answer the questions which a map of devices raises, for the same cluster or dump.
fn next_steps() -> Markup {
    html! {
        ul.notes {
            li { "Which pods a taint would evict: " code { "tollgate impact --target DRIVER/POOL/DEVICE" } }
            li { "How to free the devices of a node, wave by wave: " code { "tollgate drain node/NAME --dry-run" } }
        }
        p.hint { "Add the same " code { "--context" } " or " code { "--state" } " flags as in the command above." }
    }
}

/// The sections of the page of devices beside the map, which a live page replaces one by one, each with its id.
pub fn device_page_sections_beside_map(report: &DevicesReport) -> [(&'static str, Markup); 5] {
    [
        ("lead", lead(report)),
        ("complete", completeness(&report.incomplete)),
        ("classes", bars::class_bars(&report.classes)),
        ("taints", taints(&report.devices)),
        ("namespaces", held_devices_by_namespace_table(&report.devices)),
    ]
}

/// The first sentence of the page: `48 devices: 30 allocated (2 of them tainted), 4 tainted, 14 free.`
fn lead(report: &DevicesReport) -> Markup {
    html! {
        strong { (counted(report.devices.len(), "device")) }
        @if !report.devices.is_empty() { ": " (summarize_devices_by_main_state(report.devices.iter())) }
        "."
    }
}

/// Maximum number of devices of a taint that are named; more are counted.
const MAX_NAMED_TAINTED_DEVICES: usize = 3;

/// The devices that have a taint.
#[derive(Default)]
struct TaintedDevices<'d> {
    count: usize,
    allocated: usize,
    /// The first devices with the taint, which are named.
    named: Vec<&'d Device>,
}

/// A table of all taints, each with its source and the number of devices that have it.
fn taints(devices: &[Device]) -> Markup {
    let mut taints: BTreeMap<(String, &SafeText, &SafeText), TaintedDevices<'_>> = BTreeMap::new();
    for device in devices {
        let is_allocated = device.is(ShownDeviceState::Allocated);
        for taint in &device.taints {
            let key = (taint.taint_in_kubectl_notation(), &taint.source.kind, &taint.source.name);
            let on = taints.entry(key).or_default();
            on.count += 1;
            on.allocated += usize::from(is_allocated);
            if on.named.len() < MAX_NAMED_TAINTED_DEVICES {
                on.named.push(device);
            }
        }
    }
    let mut table = Table::new(&TAINTS, BYTES_BESIDE_MAP / 3);
    for ((label, kind, name), on) in taints {
        table.add_row_or_count_omitted([
            html! { (SafeText::from(label)) },
            html! { (kind) " " (unbroken(name)) },
            html! { (group_thousands(on.count)) },
            html! { (group_thousands(on.allocated)) },
            html! {
                @for (index, device) in on.named.iter().enumerate() {
                    @if index > 0 { ", " }
                    span.w { (device.pool) "/" (device.device) }
                }
                @if on.count > on.named.len() { " and " (group_thousands(on.count - on.named.len())) " more" }
            },
        ]);
    }
    table.finish("Taints, where they come from, and the devices that have them", "No device has a taint.")
}

/// A table of namespaces, each with the number of devices that its claims hold.
fn held_devices_by_namespace_table(devices: &[Device]) -> Markup {
    let mut held: BTreeMap<&SafeText, (usize, BTreeSet<&SafeText>)> = BTreeMap::new();
    for device in devices {
        let namespaces: BTreeSet<&SafeText> =
            device.holders.iter().map(|holder| &holder.claim.namespace).collect();
        for namespace in namespaces {
            held.entry(namespace).or_default().0 += 1;
        }
        for holder in &device.holders {
            held.entry(&holder.claim.namespace).or_default().1.insert(&holder.claim.name);
        }
    }
    let mut table = Table::new(&NAMESPACES, BYTES_BESIDE_MAP / 3);
    for (namespace, (devices, claims)) in held {
        table.add_row_or_count_omitted([
            html! { (namespace) },
            html! { (group_thousands(devices)) },
            html! { (group_thousands(claims.len())) },
        ]);
    }
    table.finish("Devices that the claims of each namespace hold", "No claim holds a device.")
}
