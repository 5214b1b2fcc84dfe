//! `tollgate profiles`: what `--kubernetes` can be, and how the profiles differ. With names: the feature gates, versions
//! and limits of those, side by side.

use std::io::Write as _;

use serde::Serialize;

use super::completed::{self, completed};
use super::console::Console;
use super::outcome::{Failure, Tally};
use super::shared::{ProfileArg, ServerArgs, parse_profile};
use super::table;
use super::version::Output;
use tollgate_api::profile::{self, ApiKind, Gate, Profile, Version};

/// List the supported releases and drafts
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Profiles to compare side by side, separated by spaces or commas, with their feature gates, served versions and
    /// limits; `cluster` selects the running API server
    #[arg(value_name = "PROFILE", value_delimiter = ',', hide_possible_values = true)]
    #[arg(value_parser = completed(parse_profile, completed::profiles))]
    profiles: Vec<ProfileArg>,

    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: Output,

    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ProfileInfo {
    name: &'static str,
    about: &'static str,
    default: bool,
    serves: Vec<ServedKind>,
    effects: &'static [&'static str],
    limits: ProfileLimits,
    feature_gates: Vec<GateInfo>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GateInfo {
    name: &'static str,
    default: bool,
    locked: bool,
    /// Whether it is on: in a running API server, or as `--feature-gates` says.
    #[serde(skip_serializing_if = "Option::is_none")]
    enabled: Option<bool>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ServedKind {
    kind: &'static str,
    versions: Vec<&'static str>,
    /// The versions that are served by default.
    by_default: Vec<&'static str>,
    /// The versions that a running API server serves.
    #[serde(skip_serializing_if = "Option::is_none")]
    served: Option<Vec<&'static str>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ProfileLimits {
    /// `None`: devices have no taints.
    taints_per_device: Option<usize>,
    /// `None`: slices have no taints of their own.
    taints_per_slice: Option<usize>,
    taints_per_patch: Option<usize>,
    devices_per_slice: usize,
    /// `None`: a slice with taints has no devices.
    devices_per_tainted_slice: Option<usize>,
    tolerations_per_request: Option<usize>,
}

impl Arguments {
    pub(super) fn run(&self, console: &mut Console) -> Result<Tally, Failure> {
        let named = self.server.profiles(&self.profiles)?;
        let all: Vec<&'static Profile> = Profile::all_with_patches().collect();
        let wanted = if self.profiles.is_empty() { &all } else { &named };
        let infos: Vec<ProfileInfo> = wanted.iter().map(|profile| profile_info(profile)).collect();
        match self.output {
            Output::Json => writeln!(console, "{}", super::to_json(&infos)?)?,
            Output::Text if self.profiles.is_empty() => console.write_all(text(&infos).as_bytes())?,
            Output::Text => console.write_all(side_by_side(&infos).as_bytes())?,
        }
        Ok(Tally::default())
    }
}

pub(super) fn profile_info(profile: &Profile) -> ProfileInfo {
    let serves = profile.serves.iter().map(|(kind, versions)| ServedKind {
        kind: kind.name(),
        versions: versions.iter().map(|version| version.name()).collect(),
        by_default: versions
            .iter()
            .filter(|version| profile.serves_by_default(*kind, **version))
            .map(|version| version.name())
            .collect(),
        served: profile.discovered.map(|served| served.of(*kind).map(Version::name).collect()),
    });
    let feature_gates = profile.known_gates().map(|gate| GateInfo {
        name: gate.name(),
        default: profile.has_on_by_default(gate),
        locked: profile.locks(gate),
        enabled: (!profile.gates.are_assumed).then(|| profile.gates.on.has(gate)),
    });
    ProfileInfo {
        name: profile.name,
        about: profile.about,
        default: profile.name == profile::DEFAULT.name,
        serves: serves.collect(),
        effects: profile.effects,
        limits: ProfileLimits {
            taints_per_device: Some(profile.limits.taints_per_device).filter(|limit| *limit > 0),
            taints_per_slice: profile.documented.slice_taints,
            taints_per_patch: profile.documented.patch_taints,
            devices_per_slice: profile.limits.devices,
            devices_per_tainted_slice: Some(profile.limits.tainted_devices).filter(|limit| *limit > 0),
            tolerations_per_request: profile.documented.tolerations,
        },
        feature_gates: feature_gates.collect(),
    }
}

fn text(infos: &[ProfileInfo]) -> String {
    let versions = |info: &ProfileInfo, kind: ApiKind| {
        let served = info.serves.iter().find(|served| served.kind == kind.name());
        served.map(|served| served.versions.join(", ")).unwrap_or_default()
    };
    let rows: Vec<Vec<String>> = infos
        .iter()
        .map(|info| {
            vec![
                info.name.to_owned(),
                versions(info, ApiKind::ResourceClaim),
                versions(info, ApiKind::DeviceTaintRule),
                describe_taint_limit(&info.limits),
                describe_limit(info.limits.devices_per_tainted_slice),
                info.effects.join(", "),
                info.about.to_owned(),
            ]
        })
        .collect();
    let header = [
        "PROFILE",
        "CLAIMS, SLICES",
        "DEVICETAINTRULES",
        "TAINTS",
        "DEVICES PER TAINTED SLICE",
        "EFFECTS",
        "ABOUT",
    ];
    table::aligned(&header, &rows)
}

/// A table with a row for each gate, kind and limit, and a column for each profile, to show what an upgrade changes.
fn side_by_side(infos: &[ProfileInfo]) -> String {
    let header: Vec<&str> = std::iter::once("").chain(infos.iter().map(|info| info.name)).collect();
    table::aligned(&header, &side_by_side_rows(infos))
}

/// The rows of [`side_by_side`], each with its name first.
pub(super) fn side_by_side_rows(infos: &[ProfileInfo]) -> Vec<Vec<String>> {
    let row = |name: &str, cell: &dyn Fn(&ProfileInfo) -> String| -> Vec<String> {
        std::iter::once(name.to_owned()).chain(infos.iter().map(cell)).collect()
    };
    let mut rows = Vec::new();
    for gate in Gate::ALL {
        let cells = row(gate.name(), &|info| {
            let known = info.feature_gates.iter().find(|known| known.name == gate.name());
            known.map_or_else(|| "-".to_owned(), describe_gate)
        });
        if cells.iter().skip(1).any(|cell| cell != "-") {
            rows.push(cells);
        }
    }
    let mut kinds: Vec<&str> = Vec::new();
    for served in infos.iter().flat_map(|info| &info.serves) {
        if !kinds.contains(&served.kind) {
            kinds.push(served.kind);
        }
    }
    for kind in kinds {
        rows.push(row(kind, &|info| {
            let served = info.serves.iter().find(|served| served.kind == kind);
            served.map_or_else(|| "-".to_owned(), describe_versions)
        }));
    }
    let mut limit = |name: &str, of: fn(&ProfileLimits) -> Option<usize>| {
        // Only drafts have taints in slices or patches.
        if infos.iter().any(|info| of(&info.limits).is_some()) {
            rows.push(row(name, &|info| describe_limit(of(&info.limits))));
        }
    };
    limit("taints per device", |limits| limits.taints_per_device);
    limit("taints per slice", |limits| limits.taints_per_slice);
    limit("taints per ResourceSlicePatch", |limits| limits.taints_per_patch);
    limit("devices per slice", |limits| Some(limits.devices_per_slice));
    limit("devices per tainted slice", |limits| limits.devices_per_tainted_slice);
    rows.push(row("taint effects", &|info| info.effects.join(", ")));
    rows
}

fn describe_limit(limit: Option<usize>) -> String {
    limit.map_or_else(|| "-".to_owned(), |limit| limit.to_string())
}

/// The limit on taints per device, such as `16`, or `32 per slice` where devices have none.
fn describe_taint_limit(limits: &ProfileLimits) -> String {
    match (limits.taints_per_device, limits.taints_per_slice) {
        (None, Some(limit)) => format!("{limit} per slice"),
        (limit, _) => describe_limit(limit),
    }
}

/// `on by default`, or `off (on by default)` where a running server or `--feature-gates` differs.
fn describe_gate(gate: &GateInfo) -> String {
    let usual = match (gate.default, gate.locked) {
        (true, true) => "locked on",
        (true, false) => "on by default",
        (false, _) => "off by default",
    };
    match gate.enabled {
        Some(enabled) if enabled != gate.default => {
            format!("{} ({usual})", if enabled { "on" } else { "off" })
        }
        _ => usual.to_owned(),
    }
}

/// Returns the served versions of a kind: `v1; off by default: v1beta1, v1beta2`, or of a running server `v1; not
/// served: v1beta1`.
fn describe_versions(served: &ServedKind) -> String {
    let (on, otherwise) = match &served.served {
        Some(live) => (live, "not served"),
        None => (&served.by_default, "off by default"),
    };
    let off: Vec<&str> = served.versions.iter().copied().filter(|version| !on.contains(version)).collect();
    match (on.is_empty(), off.is_empty()) {
        (_, true) => on.join(", "),
        (true, false) => format!("{otherwise}: {}", off.join(", ")),
        (false, false) => format!("{}; {otherwise}: {}", on.join(", "), off.join(", ")),
    }
}
