//! What a ResourceSlicePatch (draft r1) does: the taints of each device it selects, step by step, and who is evicted.
//!
//! A slice with the patches applied is assessed like a slice that a driver publishes.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;

use serde::Serialize;

use super::limits::Extent;
use super::{Arguments, Assessment, assess, json, text};
use crate::api::view::{Device, Slice, SlicePatch, View as _};
use crate::cli::console::Console;
use crate::cli::outcome::Failure;
use crate::cli::to_json;
use crate::cli::version::Output;
use crate::doc::{Change, Doc, New, Value, apply};
use crate::gotime::{self, Timestamp};
use crate::impact::patches::{PatchedDevice, SourcedTaint, TaintOrigin, apply_patches};
use crate::impact::{ImpactQuery, PodOutcome, ProposedChange, Snapshot, UnreadableObject};
use crate::profile::{Profile, Version};
use crate::sanitize::line;

#[derive(Serialize)]
struct PatchRecord<'a> {
    patch: &'a str,
    profile: &'static str,
    at: &'a str,
    devices: Vec<DeviceRecord>,
    slices: Vec<json::ImpactRecord<'a>>,
}

#[derive(Serialize)]
struct DeviceRecord {
    device: String,
    taints: Vec<String>,
    steps: Vec<String>,
}

/// What a patch is assessed with.
#[derive(Clone, Copy)]
pub(super) struct PatchContext<'a> {
    pub(super) state: &'a [Value<'a>],
    /// What is missing from the state.
    pub(super) omissions: &'a [String],
    pub(super) profile: &'static Profile,
    pub(super) now: &'a str,
}

/// Reports the impact of a patch; returns the number of exceeded limits.
pub(super) fn report(
    object: Value<'_>,
    context: PatchContext<'_>,
    arguments: &Arguments,
    console: &mut Console,
) -> Result<usize, Failure> {
    let PatchContext { state, omissions, profile, now } = context;
    let subject = SlicePatch::of(object);
    let name = subject.metadata().name();
    let moment = gotime::parse(now).map_err(Failure::Usage)?;
    let is_patch = |value: &&Value<'_>| value.get("kind").str() == "ResourceSlicePatch";
    let stored: Vec<SlicePatch<'_>> =
        state.iter().filter(is_patch).map(|value| SlicePatch::of(*value)).collect();
    let before = stored.iter().find(|patch| patch.metadata().name() == name);
    let with_age = before.map(|stored| with_creation_time(object, *stored));
    let subject = with_age.as_ref().map_or(subject, |doc| SlicePatch::of(doc.root()));
    let others = stored.iter().filter(|patch| patch.metadata().name() != name).copied();
    let patches: Vec<SlicePatch<'_>> = others.chain([subject]).collect();

    let mut snapshot = Snapshot::new();
    for value in state {
        snapshot.apply(*value).map_err(unreadable)?;
    }
    let (mut devices, mut slices) = (Vec::new(), Vec::new());
    for value in state.iter().filter(|value| value.get("kind").str() == "ResourceSlice") {
        let version = version_of(*value);
        let slice = Slice::of(*value);
        let patched = apply_patches(slice.spec(), version, &patches);
        let changed = with_taints(*value, version, &patched, moment);
        let published =
            ProposedChange::published(changed.root(), &mut snapshot, moment).map_err(unreadable)?;
        let touched: Vec<PatchedDevice<'_>> =
            patched.into_iter().filter(|device| is_patched_by(device, name)).collect();
        if !touched.is_empty() {
            slices.push(published);
        }
        devices.extend(touched.iter().map(device_record));
    }
    let query = |change| ImpactQuery { snapshot: &snapshot, change, profile, at: moment };
    let assessments: Vec<Assessment<'_>> =
        slices.iter().map(|change| assess(query(change), omissions.is_empty())).collect();
    let extent = extent(&devices, &assessments);
    match arguments.output {
        Output::Json => {
            let slices =
                assessments.iter().map(|assessment| json::ImpactRecord::of(assessment, omissions)).collect();
            let record = PatchRecord { patch: name, profile: profile.name, at: now, devices, slices };
            writeln!(console, "{}", to_json(&record)?)?;
        }
        Output::Text => {
            let mut out = steps(name, profile.name, now, &devices);
            for assessment in &assessments {
                out.push('\n');
                out.push_str(&text::of(assessment, arguments.limit, omissions.is_empty()));
            }
            console.write_text(&out)?;
        }
    }
    let excesses: Vec<String> = arguments.max.iter().flat_map(|limits| limits.excesses(extent)).collect();
    for excess in &excesses {
        console.error(&format!("{}: {excess}", line(name)));
    }
    Ok(excesses.len())
}

/// The impact of a patch on all slices together: a pod may lose devices of several.
fn extent(devices: &[DeviceRecord], assessments: &[Assessment<'_>]) -> Extent {
    let pods = assessments.iter().flat_map(|assessment| &assessment.impact.pods);
    let is_evicted = |outcome| matches!(outcome, PodOutcome::EvictedNow | PodOutcome::EvictedAt(_));
    let evicted: BTreeSet<(&str, &str)> =
        pods.filter(|pod| is_evicted(pod.outcome)).map(|pod| (pod.namespace, pod.name)).collect();
    let namespaces: BTreeSet<&str> = evicted.iter().map(|(namespace, _)| *namespace).collect();
    Extent { devices: devices.len(), pods: evicted.len(), namespaces: namespaces.len() }
}

#[expect(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
fn unreadable(fault: UnreadableObject) -> Failure {
    Failure::Input(fault.to_string())
}

fn version_of(slice: Value<'_>) -> Version {
    let version = slice.get("apiVersion").str().rsplit('/').next().unwrap_or_default();
    Version::parse(version).unwrap_or(Version::V1)
}

/// The object with the creation time of the stored one, as after an update.
fn with_creation_time<'d>(object: Value<'d>, stored: SlicePatch<'_>) -> Doc<'d> {
    let created = stored.metadata().creation_timestamp().map(gotime::rfc3339);
    let metadata = object.get("metadata");
    let given = metadata.get("creationTimestamp");
    let change = created.map(|created| {
        let value = New::str(created);
        if given.exists() {
            Change::Replace { node: given.index(), value }
        } else {
            Change::Add { object: metadata.index(), key: "creationTimestamp", value }
        }
    });
    apply(object, change.as_slice())
}

/// The patch changes the taints of the device.
fn is_patched_by(device: &PatchedDevice<'_>, patch: &str) -> bool {
    device
        .steps
        .iter()
        .any(|step| matches!(step.applied.source, TaintOrigin::Patch(layer) if layer.name == patch))
}

/// The slice with the resulting taints of its devices.
fn with_taints<'d>(
    slice: Value<'d>,
    version: Version,
    patched: &[PatchedDevice<'_>],
    now: Timestamp,
) -> Doc<'d> {
    let mut changes = Vec::new();
    for device in slice.get("spec").get("devices").items() {
        let Some(result) = patched.iter().find(|patched| patched.device == device.get("name").str()) else {
            continue;
        };
        let taints = New::List(result.taints.iter().map(|applied| taint(applied, now)).collect());
        let body = Device::of(device).body(version).json();
        changes.push(if !body.exists() {
            let basic = New::Object(vec![("taints", taints)]);
            Change::Add { object: device.index(), key: "basic", value: basic }
        } else if body.get("taints").exists() {
            Change::Replace { node: body.get("taints").index(), value: taints }
        } else {
            Change::Add { object: body.index(), key: "taints", value: taints }
        });
    }
    apply(slice, &changes)
}

/// A taint as it is stored: NoExecute taints have a time.
fn taint(applied: &SourcedTaint<'_>, now: Timestamp) -> New {
    let taint = applied.taint;
    let mut members = vec![("key", New::str(taint.key())), ("effect", New::str(taint.effect()))];
    if !taint.value().is_empty() {
        members.push(("value", New::str(taint.value())));
    }
    let time = taint.time_added().or((taint.effect() == "NoExecute").then_some(now));
    members.extend(time.map(|time| ("timeAdded", New::str(gotime::rfc3339(time)))));
    New::Object(members)
}

fn device_record(device: &PatchedDevice<'_>) -> DeviceRecord {
    DeviceRecord {
        device: format!("{}/{}/{}", device.driver, device.pool, device.device),
        taints: device.taints.iter().map(ToString::to_string).collect(),
        steps: device.steps.iter().map(ToString::to_string).collect(),
    }
}

fn steps(name: &str, profile: &str, now: &str, devices: &[DeviceRecord]) -> String {
    let plural = if devices.len() == 1 { "" } else { "s" };
    let name = line(name);
    let mut out = format!(
        "ResourceSlicePatch {name} ({profile}, at {now})\n{} device{plural} tainted\n",
        devices.len()
    );
    for device in devices {
        _ = writeln!(out, "\n{}", line(&device.device));
        for step in &device.steps {
            _ = writeln!(out, "  {}", line(step));
        }
        _ = writeln!(out, "  = {}", line(&device.taints.join(" ")));
    }
    out
}
