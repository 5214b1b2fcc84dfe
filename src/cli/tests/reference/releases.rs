//! Releases and drafts: what `tollgate profiles` prints, as tables.

use super::generated::{cell, table};
use crate::cli::profiles::comparison_rows;
use tollgate_api::profile::{self, ApiKind, Gate, Profile, Version};

pub(super) fn profiles() -> String {
    let rows: Vec<Vec<String>> = Profile::all_with_patches()
        .map(|profile| {
            let name = format!("`{}`", profile.name);
            vec![name, cell(profile.about)]
        })
        .collect();
    table(&["profile", "description"], &rows)
}

/// Feature gates, versions and limits of the releases.
pub(super) fn side_by_side() -> String {
    let has_number = |name: &str| name.starts_with("1.");
    let releases: Vec<&Profile> =
        profile::ALL.iter().copied().filter(|profile| has_number(profile.name)).collect();
    let rows: Vec<Vec<String>> =
        comparison_rows(&releases).iter().map(|row| row.iter().map(|text| cell(text)).collect()).collect();
    let header: Vec<&str> = std::iter::once("")
        .chain(profile::ALL.iter().map(|profile| profile.name).filter(|name| has_number(name)))
        .collect();
    table(&header, &rows)
}

/// What works in a cluster in which nobody changed a feature gate or enabled a version.
pub(super) fn defaults() -> String {
    let releases: Vec<&Profile> = profile::ALL.iter().copied().filter(|profile| profile.is_release).collect();
    let row = |name: &str, cell: &dyn Fn(&Profile) -> String| -> Vec<String> {
        std::iter::once(name.to_owned()).chain(releases.iter().map(|profile| cell(profile))).collect()
    };
    let on = |is_on: bool| if is_on { "on" } else { "off" }.to_owned();
    let rule = ApiKind::DeviceTaintRule;
    let rows = [
        row("ResourceClaims, ResourceSlices (`resource.k8s.io/v1`)", &|profile| {
            on(profile.serves_by_default(ApiKind::ResourceClaim, Version::V1))
        }),
        row("taints of devices, tolerations of claims (`DRADeviceTaints`)", &|profile| {
            on(profile.is_gate_on_by_default(Gate::DRADeviceTaints))
        }),
        row("DeviceTaintRules (`DRADeviceTaintRules`)", &|profile| {
            on(profile.is_gate_on_by_default(Gate::DRADeviceTaintRules))
        }),
        row("newest API version of DeviceTaintRule", &|profile| {
            let Some(version) = profile.versions(rule).last() else { return "-".to_owned() };
            let state = if profile.serves_by_default(rule, *version) { "" } else { " (off)" };
            format!("`{}`{state}", version.name())
        }),
    ];
    let header: Vec<&str> = std::iter::once("").chain(releases.iter().map(|profile| profile.name)).collect();
    table(&header, &rows)
}
