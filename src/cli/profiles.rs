//! `tollgate profiles`: what `--kubernetes` can be, and how the profiles differ. With names: the feature gates,
//! versions and limits of those, side by side.

use std::io::Write as _;

use super::completed::{self, with_completions};
use super::console::Console;
use super::outcome::{ExitCounts, Failure};
use super::shared::{ApiServerArgs, ProfileArg, parse_profile};
use super::table;
use super::version::Output;
use crate::report::record::{Json, collect_records, record};
use tollgate_api::profile::{self, ApiKind, Gate, Profile, Version};

/// List the supported releases and drafts
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Profiles to compare side by side, separated by spaces or commas, with their feature gates, served versions and
    /// limits; `cluster` selects the running API server
    #[arg(value_name = "PROFILE", value_delimiter = ',', hide_possible_values = true)]
    #[arg(value_parser = with_completions(parse_profile, completed::profile_values))]
    profiles: Vec<ProfileArg>,

    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: Output,

    #[command(flatten)]
    server: ApiServerArgs,
}

impl Arguments {
    pub(super) fn run(&self, console: &mut Console) -> Result<ExitCounts, Failure> {
        let named = self.server.resolve_profiles_asking_server(&self.profiles)?;
        let all: Vec<&'static Profile> = Profile::all_with_patches().collect();
        let wanted = if self.profiles.is_empty() { &all } else { &named };
        match self.output {
            Output::Json => {
                let records = collect_records(wanted.iter().map(|profile| profile_record(profile)));
                writeln!(console, "{}", super::to_safe_json(&records)?)?;
            }
            Output::Text if self.profiles.is_empty() => {
                console.write_all(profile_table(wanted).as_bytes())?
            }
            Output::Text => console.write_all(comparison_table(wanted).as_bytes())?,
        }
        Ok(ExitCounts::default())
    }
}

fn profile_record(profile: &Profile) -> Json {
    let serves = profile.serves.iter().map(|(kind, versions)| {
        let is_default = |version: &&Version| profile.serves_by_default(*kind, **version);
        let discovered =
            profile.discovered.map(|served| served.versions_of(*kind).map(Version::name).collect::<Vec<_>>());
        let is_discovered = discovered.is_some();
        record! {
            "kind": kind.name(),
            "versions": version_names(*versions),
            "byDefault": version_names(versions.iter().filter(is_default)),
            "served" if is_discovered: discovered,
        }
    });
    let gates = profile.known_gates().map(|gate| {
        let is_known = !profile.gates.are_assumed;
        record! {
            "name": gate.name(),
            "default": profile.is_gate_on_by_default(gate),
            "locked": profile.locks_gate_on(gate),
            "enabled" if is_known: profile.gates.on.has(gate),
        }
    });
    record! {
        "name": profile.name,
        "about": profile.about,
        "default": profile.name == profile::DEFAULT.name,
        "serves": collect_records(serves),
        "effects": profile.effects,
        "limits": record! {
            "taintsPerDevice": max_taints_per_device(profile),
            "taintsPerSlice": profile.documented.slice_taints,
            "taintsPerPatch": profile.documented.patch_taints,
            "devicesPerSlice": profile.limits.devices,
            "devicesPerTaintedSlice": max_devices_per_tainted_slice(profile),
            "tolerationsPerRequest": profile.documented.tolerations,
        },
        "featureGates": collect_records(gates),
    }
}

fn version_names<'v>(versions: impl IntoIterator<Item = &'v Version>) -> Vec<&'static str> {
    versions.into_iter().map(|version| version.name()).collect()
}

/// Returns how many taints a device can have; `None` if devices have no taints in this profile.
fn max_taints_per_device(profile: &Profile) -> Option<usize> {
    Some(profile.limits.taints_per_device).filter(|limit| *limit > 0)
}

/// Returns how many devices a slice with taints can have; `None` if such a slice cannot have devices.
fn max_devices_per_tainted_slice(profile: &Profile) -> Option<usize> {
    Some(profile.limits.tainted_devices).filter(|limit| *limit > 0)
}

fn profile_table(profiles: &[&Profile]) -> String {
    let rows: Vec<Vec<String>> = profiles
        .iter()
        .map(|profile| {
            vec![
                profile.name.to_owned(),
                version_names(profile.versions(ApiKind::ResourceClaim)).join(", "),
                version_names(profile.versions(ApiKind::DeviceTaintRule)).join(", "),
                describe_taint_limit(profile),
                describe_limit(max_devices_per_tainted_slice(profile)),
                profile.effects.join(", "),
                profile.about.to_owned(),
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
    table::format_table(&header, &rows)
}

/// Returns a table with a row for each gate, kind and limit, and a column for each profile, to show what an
/// upgrade changes.
fn comparison_table(profiles: &[&Profile]) -> String {
    let header: Vec<&str> = std::iter::once("").chain(profiles.iter().map(|profile| profile.name)).collect();
    table::format_table(&header, &comparison_rows(profiles))
}

/// Returns the rows of [`comparison_table`]: the name of a gate, kind or limit, and its value in each profile.
pub(super) fn comparison_rows(profiles: &[&Profile]) -> Vec<Vec<String>> {
    let row = |name: &str, cell: &dyn Fn(&Profile) -> String| -> Vec<String> {
        std::iter::once(name.to_owned()).chain(profiles.iter().map(|profile| cell(profile))).collect()
    };
    let mut rows = Vec::new();
    for gate in Gate::ALL.iter().copied() {
        let is_known = |profile: &Profile| profile.known_gates().any(|known| known == gate);
        if profiles.iter().any(|profile| is_known(profile)) {
            rows.push(row(gate.name(), &|profile| {
                if is_known(profile) { describe_gate(profile, gate) } else { "-".to_owned() }
            }));
        }
    }
    let mut kinds: Vec<ApiKind> = Vec::new();
    for (kind, _) in profiles.iter().flat_map(|profile| profile.serves) {
        if !kinds.contains(kind) {
            kinds.push(*kind);
        }
    }
    rows.extend(kinds.into_iter().map(|kind| row(kind.name(), &|profile| describe_versions(profile, kind))));
    let mut limit = |name: &str, of: fn(&Profile) -> Option<usize>| {
        // Only drafts have taints in slices or patches.
        if profiles.iter().any(|profile| of(profile).is_some()) {
            rows.push(row(name, &|profile| describe_limit(of(profile))));
        }
    };
    limit("taints per device", max_taints_per_device);
    limit("taints per slice", |profile| profile.documented.slice_taints);
    limit("taints per ResourceSlicePatch", |profile| profile.documented.patch_taints);
    limit("devices per slice", |profile| Some(profile.limits.devices));
    limit("devices per tainted slice", max_devices_per_tainted_slice);
    rows.push(row("taint effects", &|profile| profile.effects.join(", ")));
    rows
}

fn describe_limit(limit: Option<usize>) -> String {
    limit.map_or_else(|| "-".to_owned(), |limit| limit.to_string())
}

/// Returns the limit on taints per device, such as `16`, or `32 per slice` where only slices have taints.
fn describe_taint_limit(profile: &Profile) -> String {
    match (max_taints_per_device(profile), profile.documented.slice_taints) {
        (None, Some(limit)) => format!("{limit} per slice"),
        (limit, _) => describe_limit(limit),
    }
}

/// Returns the state of a feature gate: `on by default`, or `off (on by default)` where a running server or
/// `--feature-gates` differs.
fn describe_gate(profile: &Profile, gate: Gate) -> String {
    let is_default = profile.is_gate_on_by_default(gate);
    let usual = match (is_default, profile.locks_gate_on(gate)) {
        (true, true) => "locked on",
        (true, false) => "on by default",
        (false, _) => "off by default",
    };
    match profile.gates.on.has(gate) {
        is_on if is_on != is_default && !profile.gates.are_assumed => {
            format!("{} ({usual})", if is_on { "on" } else { "off" })
        }
        _ => usual.to_owned(),
    }
}

/// Returns the versions of a kind: `v1; off by default: v1beta1, v1beta2`; of a running server `v1; not served:
/// v1beta1`; `-` if no version exists.
fn describe_versions(profile: &Profile, kind: ApiKind) -> String {
    let Some((_, versions)) = profile.serves.iter().find(|(served, _)| *served == kind) else {
        return "-".to_owned();
    };
    let (on, otherwise) = if let Some(live) = profile.discovered {
        (live.versions_of(kind).map(Version::name).collect(), "not served")
    } else {
        let is_default = |version: &&Version| profile.serves_by_default(kind, **version);
        (version_names(versions.iter().filter(is_default)), "off by default")
    };
    let off: Vec<&str> =
        version_names(*versions).into_iter().filter(|version| !on.contains(version)).collect();
    match (on.is_empty(), off.is_empty()) {
        (_, true) => on.join(", "),
        (true, false) => format!("{otherwise}: {}", off.join(", ")),
        (false, false) => format!("{}; {otherwise}: {}", on.join(", "), off.join(", ")),
    }
}
