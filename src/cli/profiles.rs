//! `tollgate profiles`: what `--kubernetes` can be, and how the profiles differ.

use std::io::Write as _;

use serde::Serialize;

use super::console::Console;
use super::outcome::{Failure, Tally};
use super::table;
use super::version::Output;
use crate::profile::{self, ApiKind, Profile};

/// List the releases and drafts to judge by
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// How to print them
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: Output,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ProfileInfo {
    name: &'static str,
    about: &'static str,
    default: bool,
    serves: Vec<ServedKind>,
    effects: &'static [&'static str],
    limits: ProfileLimits,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ServedKind {
    kind: &'static str,
    versions: Vec<&'static str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ProfileLimits {
    taints_per_device: usize,
    devices_per_slice: usize,
    devices_per_tainted_slice: usize,
    tolerations_per_request: Option<usize>,
}

impl Arguments {
    pub(super) fn run(&self, console: &mut Console) -> Result<Tally, Failure> {
        let infos: Vec<ProfileInfo> = profile::ALL.iter().map(|profile| profile_info(profile)).collect();
        match self.output {
            Output::Json => writeln!(console, "{}", super::to_json(&infos)?)?,
            Output::Text => console.write_all(text(&infos).as_bytes())?,
        }
        Ok(Tally::default())
    }
}

fn profile_info(profile: &Profile) -> ProfileInfo {
    let serves = profile.serves.iter().map(|(kind, versions)| ServedKind {
        kind: kind.name(),
        versions: versions.iter().map(|version| version.name()).collect(),
    });
    ProfileInfo {
        name: profile.name,
        about: profile.about,
        default: profile.name == profile::DEFAULT.name,
        serves: serves.collect(),
        effects: profile.effects,
        limits: ProfileLimits {
            taints_per_device: profile.limits.taints_per_device,
            devices_per_slice: profile.limits.devices,
            devices_per_tainted_slice: profile.limits.advanced_devices,
            tolerations_per_request: profile.documented.tolerations,
        },
    }
}

fn text(infos: &[ProfileInfo]) -> String {
    let versions = |info: &ProfileInfo, kind: ApiKind| {
        let served = info.serves.iter().find(|served| served.kind == kind.name());
        served.map(|served| served.versions.join(" ")).unwrap_or_default()
    };
    let rows: Vec<Vec<String>> = infos
        .iter()
        .map(|info| {
            vec![
                info.name.to_owned(),
                versions(info, ApiKind::ResourceClaim),
                versions(info, ApiKind::DeviceTaintRule),
                info.limits.taints_per_device.to_string(),
                info.limits.devices_per_tainted_slice.to_string(),
                info.effects.join(" "),
                info.about.to_owned(),
            ]
        })
        .collect();
    let header =
        ["PROFILE", "CLAIMS, SLICES", "DEVICETAINTRULES", "TAINTS", "TAINTED DEVICES", "EFFECTS", "ABOUT"];
    table::aligned(&header, &rows)
}
