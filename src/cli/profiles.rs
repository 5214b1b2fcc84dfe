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
struct Entry {
    name: &'static str,
    about: &'static str,
    default: bool,
    serves: Vec<Served>,
    effects: &'static [&'static str],
    limits: Limits,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Served {
    kind: &'static str,
    versions: Vec<&'static str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Limits {
    taints_per_device: usize,
    devices_per_slice: usize,
    devices_per_tainted_slice: usize,
    tolerations_per_request: Option<usize>,
}

impl Arguments {
    pub(super) fn run(&self, console: &mut Console) -> Result<Tally, Failure> {
        let entries: Vec<Entry> = profile::ALL.iter().map(|profile| entry(profile)).collect();
        match self.output {
            Output::Json => writeln!(console, "{}", super::to_json(&entries)?)?,
            Output::Text => console.write_all(text(&entries).as_bytes())?,
        }
        Ok(Tally::default())
    }
}

fn entry(profile: &Profile) -> Entry {
    let serves = profile.serves.iter().map(|(kind, versions)| Served {
        kind: kind.name(),
        versions: versions.iter().map(|version| version.name()).collect(),
    });
    Entry {
        name: profile.name,
        about: profile.about,
        default: profile.name == profile::DEFAULT.name,
        serves: serves.collect(),
        effects: profile.effects,
        limits: Limits {
            taints_per_device: profile.limits.taints_per_device,
            devices_per_slice: profile.limits.devices,
            devices_per_tainted_slice: profile.limits.advanced_devices,
            tolerations_per_request: profile.documented.tolerations,
        },
    }
}

fn text(entries: &[Entry]) -> String {
    let versions = |entry: &Entry, kind: ApiKind| {
        let served = entry.serves.iter().find(|served| served.kind == kind.name());
        served.map(|served| served.versions.join(" ")).unwrap_or_default()
    };
    let rows: Vec<Vec<String>> = entries
        .iter()
        .map(|entry| {
            vec![
                entry.name.to_owned(),
                versions(entry, ApiKind::ResourceClaim),
                versions(entry, ApiKind::DeviceTaintRule),
                entry.limits.taints_per_device.to_string(),
                entry.limits.devices_per_tainted_slice.to_string(),
                entry.effects.join(" "),
                entry.about.to_owned(),
            ]
        })
        .collect();
    let header =
        ["PROFILE", "CLAIMS, SLICES", "DEVICETAINTRULES", "TAINTS", "TAINTED DEVICES", "EFFECTS", "ABOUT"];
    table::aligned(&header, &rows)
}
