//! The impact of a ResourceSlicePatch (draft r1): the taints of each device it selects, with the steps that lead to
//! them, and the evicted pods.
//!
//! Each slice is assessed with all patches applied; the taints of this patch count as the change.

use std::fmt::Write as _;
use std::io::Write as _;

use super::limits::ImpactCounts;
use super::other_apis::OtherApiAssessment;
use super::{Assessment, assess_impact, json, text};
use crate::cli::console::Console;
use crate::cli::outcome::Failure;
use crate::cli::shared::ReportOutput;
use crate::cli::to_safe_json;
use crate::report::record::{collect_records, record};
use tollgate_api::profile::{Profile, Version};
use tollgate_api::view::{Slice, SlicePatch, View as _};
use tollgate_document::doc::{Doc, DocChange, OwnedJsonValue, Value, apply_changes};
use tollgate_engine::impact::other_apis::patches::{PatchedDevice, PatchesByPrecedence};
use tollgate_engine::impact::{DetailsToStore, ImpactQuery, ProposedChange, Snapshot, UnreadableObject};
use tollgate_formats::count::count_with_noun;
use tollgate_formats::gotime;
use tollgate_formats::sanitize::sanitize_as_line;

impl OtherApiAssessment<'_> {
    /// Reports the impact of a ResourceSlicePatch, and returns the number of limits that it exceeds.
    pub(super) fn report_patch_and_count_exceeded_limits(
        self,
        object: Value<'_>,
        profile: &'static Profile,
        console: &mut Console,
    ) -> Result<usize, Failure> {
        let OtherApiAssessment { arguments, state, omissions, now } = self;
        let subject = SlicePatch::of(object);
        let name = subject.metadata().name();
        let moment = gotime::parse_rfc3339(now).map_err(Failure::Usage)?;
        let is_patch = |value: &&Value<'_>| value.get("kind").str() == "ResourceSlicePatch";
        let stored: Vec<SlicePatch<'_>> =
            state.iter().filter(is_patch).map(|value| SlicePatch::of(*value)).collect();
        let before = stored.iter().find(|patch| patch.metadata().name() == name);
        let with_age = before.map(|stored| with_creation_time(object, *stored));
        let subject = with_age.as_ref().map_or(subject, |doc| SlicePatch::of(doc.root()));
        let others = stored.iter().filter(|patch| patch.metadata().name() != name).copied();
        let patches: Vec<SlicePatch<'_>> = others.chain([subject]).collect();

        let mut snapshot = Snapshot::with_details(DetailsToStore { attributes: true, counters: true });
        for value in state {
            snapshot.apply(*value).map_err(unreadable_failure)?;
        }
        let layers = PatchesByPrecedence::new(&patches, &snapshot, profile);
        let (mut devices, mut slices) = (Vec::new(), Vec::new());
        for value in state.iter().filter(|value| value.get("kind").str() == "ResourceSlice") {
            let patched = layers.patched_devices_of_slice(Slice::of(*value).spec(), slice_version(*value));
            let change = ProposedChange::from_patched_slice(*value, &patched, name, &mut snapshot, moment);
            slices.extend(change.map_err(unreadable_failure)?);
            devices.extend(patched.into_iter().filter(|device| device.is_patched_by(name)));
        }
        let query = |change| ImpactQuery { snapshot: &snapshot, change, profile, at: moment };
        let assessments: Vec<Assessment<'_>> =
            slices.iter().map(|change| assess_impact(query(change), omissions.is_empty())).collect();
        let is_upper_bound = layers.is_patch_with_unknown_classes(name);
        let extent = ImpactCounts::from_slice_assessments(&assessments, devices.len());
        let extent = ImpactCounts { is_upper_bound: is_upper_bound || extent.is_upper_bound, ..extent };
        match arguments.output {
            ReportOutput::Json => {
                let slice = |assessment| json::impact_record(assessment, omissions, arguments.limit);
                let slices = assessments.iter().map(slice);
                let tainted = devices.iter().map(|device| {
                    record! {
                        "device": qualified_device_name(device),
                        "taints": to_strings(&device.taints),
                        "steps": to_strings(&device.steps),
                    }
                });
                let record = record! {
                    "patch": name,
                    "profile": profile.name,
                    "at": now,
                    // Its class is not known, so it may select fewer devices.
                    "upperBound" if given: is_upper_bound,
                    "devices": collect_records(tainted),
                    "slices": collect_records(slices),
                };
                writeln!(console, "{}", to_safe_json(&record)?)?;
            }
            ReportOutput::Text | ReportOutput::Html => {
                let mut out = slice_patch_text(name, profile.name, now, &devices, is_upper_bound);
                for assessment in &assessments {
                    out.push('\n');
                    out.push_str(&text::impact_text(assessment, arguments.limit, omissions.is_empty()));
                }
                console.write_sanitized_text(&out)?;
            }
        }
        Ok(arguments.report_exceeded_limits(&sanitize_as_line(name), extent, console))
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
fn unreadable_failure(fault: UnreadableObject) -> Failure {
    Failure::Input(fault.to_string())
}

/// The version in the apiVersion of a slice; v1 if it is unknown.
fn slice_version(slice: Value<'_>) -> Version {
    let version = slice.get("apiVersion").str().rsplit('/').next().unwrap_or_default();
    Version::parse(version).unwrap_or(Version::V1)
}

/// Returns the patch with the creation time of the stored one, as it is after an update. The time decides the
/// order of patches.
fn with_creation_time<'d>(object: Value<'d>, stored: SlicePatch<'_>) -> Doc<'d> {
    let created = stored.metadata().creation_timestamp().map(gotime::rfc3339);
    let metadata = object.get("metadata");
    let given = metadata.get("creationTimestamp");
    let change = created.map(|created| {
        let value = OwnedJsonValue::str(created);
        if given.exists() {
            DocChange::Replace { node: given.index(), value }
        } else {
            DocChange::Add { object: metadata.index(), key: "creationTimestamp", value }
        }
    });
    apply_changes(object, change.as_slice())
}

fn qualified_device_name(device: &PatchedDevice<'_>) -> String {
    format!("{}/{}/{}", device.driver, device.pool, device.device)
}

fn to_strings(items: &[impl ToString]) -> Vec<String> {
    items.iter().map(ToString::to_string).collect()
}

fn slice_patch_text(
    name: &str,
    profile: &str,
    now: &str,
    devices: &[PatchedDevice<'_>],
    is_upper_bound: bool,
) -> String {
    let (name, hedge) = (sanitize_as_line(name), if is_upper_bound { "at most " } else { "" });
    let mut out = format!(
        "ResourceSlicePatch {name} ({profile}, at {now})\n{hedge}{} tainted\n",
        count_with_noun(devices.len(), "device")
    );
    for device in devices {
        _ = writeln!(out, "\n{}", sanitize_as_line(&qualified_device_name(device)));
        for step in &device.steps {
            _ = writeln!(out, "  {}", sanitize_as_line(&step.to_string()));
        }
        _ = writeln!(out, "  = {}", sanitize_as_line(&to_strings(&device.taints).join(" ")));
    }
    out
}
