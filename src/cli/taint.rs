//! `tollgate taint` and `tollgate untaint`: a correct, well-named DeviceTaintRule and the commands around it, printed.
//!
//! Nothing is ever applied. The rule goes to stdout with what to do next in comments, so the output can be read, kept
//! or piped to `kubectl apply -f -`. The name is made of driver, pool, device and key, so that the same taint is the
//! same rule for every user, and `untaint` finds it without connecting to the cluster.
//!
//! Invariant: the API server of the profile accepts the printed rule; a selector that selects everything is printed
//! only with an explicit flag.

mod name;
mod target;

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;

use super::console::Console;
use super::outcome::{Failure, Tally};
use super::shared::ReleaseArgs;
use super::{clock, impact, state};
use crate::api::conform::suggest::and_list;
use crate::doc;
use crate::gotime;
use crate::impact::{ImpactQuery, ProposedChange, count};
use crate::profile::{ApiKind, Profile, Version};
use crate::rules::server_defaults::version_off_by_default;
use target::{TaintArg, Target};

/// Print a DeviceTaintRule for a device, a pool or a driver, without applying it
#[derive(Debug, clap::Args)]
pub(super) struct Taint {
    #[command(flatten)]
    selection: Selection,

    /// Taint, as KEY[=VALUE][:EFFECT]; with the default effect None, Kubernetes only counts the affected
    /// pods
    #[arg(value_name = "TAINT", value_parser = target::parse_taint)]
    mark: TaintArg,

    /// File or folder with the cluster state, to show the impact of the rule in a comment; can be repeated
    #[arg(long, value_name = "DUMP", env = "TOLLGATE_STATE")]
    state: Vec<PathBuf>,

    #[command(flatten)]
    clock: clock::ClockArgs,

    #[command(flatten)]
    release: ReleaseArgs,
}

/// Print the command that deletes a rule created by `tollgate taint`, without running it
#[derive(Debug, clap::Args)]
pub(super) struct Untaint {
    #[command(flatten)]
    selection: Selection,

    /// Key of the taint; a value and an effect are ignored
    #[arg(value_name = "TAINT", value_parser = target::parse_taint)]
    mark: TaintArg,

    #[command(flatten)]
    release: ReleaseArgs,
}

/// Which devices.
#[derive(Debug, clap::Args)]
struct Selection {
    /// Devices that the rule selects, as DRIVER[/POOL[/DEVICE]]; `*` matches any name, and `*` alone matches all
    /// devices of all drivers
    #[arg(value_name = "DEVICES", value_parser = target::parse)]
    target: Target,

    /// Allow a rule for all devices of all drivers
    #[arg(long)]
    all_devices: bool,
}

impl Selection {
    fn target(&self) -> Result<&Target, Failure> {
        if self.target.is_everything() && !self.all_devices {
            return Err(Failure::Usage(
                "this selects all devices of all drivers; specify a driver, or add --all-devices".to_owned(),
            ));
        }
        Ok(&self.target)
    }
}

impl Taint {
    pub(super) fn run(&self, console: &mut Console) -> Result<Tally, Failure> {
        let target = self.selection.target()?;
        let state = (!self.state.is_empty()).then(|| state::read_with_inventory(&self.state)).transpose()?;
        let profiles = match &state {
            Some((_, inventory)) => self.release.dump_profiles(inventory, console)?,
            None => self.release.profiles()?,
        };
        let Some(profile) = profiles.first().copied() else { return Ok(Tally::default()) };
        let effect = self.mark.effect.as_deref().unwrap_or("None");
        if self.mark.effect.is_none() && !profile.effects.contains(&"None") {
            let effects = profile.effects.join(", ");
            return Err(Failure::Usage(format!(
                "{} does not support effect None; use KEY:EFFECT with one of {effects}",
                profile.name
            )));
        }
        let name = name::rule_name(target, &self.mark.key);
        let version = version(&profiles)?;
        let rule = self.manifest(target, &name, effect, version.name());
        let now = self.clock.now();
        let json = json(target, &self.mark, effect, version.name());
        let document = doc::parse(&json).map_err(|error| Failure::Internal(anyhow::anyhow!(error.detail)))?;
        for profile in &profiles {
            if let Some(refusal) = impact::first_denial(document.root(), profile, &now) {
                return Err(Failure::Usage(format!("{} rejects this rule: {refusal}", profile.name)));
            }
        }
        let mut comments = String::new();
        if let Some((snapshot, inventory)) = state {
            state::note_omissions(&inventory.omissions(false), console);
            let at = gotime::parse(&now).map_err(Failure::Usage)?;
            let change = ProposedChange::applied(document.root(), None, &snapshot, profile, at)
                .map_err(|unreadable| Failure::Input(unreadable.to_string()))?;
            let query = ImpactQuery { snapshot: &snapshot, change: &change, profile, at };
            _ = writeln!(comments, "# In this cluster state, the rule {}.", query.describe(count(query)));
        }
        comments.push_str(&follow_up(&self.release.kubectl(), &name, effect, profile));
        for profile in &profiles {
            let unserved = version_off_by_default(ApiKind::DeviceTaintRule, version, profile);
            let gates = profile.why_rule_gates_are_off();
            let why = if unserved.is_some() { gates } else { profile.why_rules_do_nothing() };
            let inert = why.map(|why| format!("{why}, so the rule has no effect"));
            let inert = inert.or_else(|| profile.rules_depend_on());
            let unserved = unserved.map(|finding| {
                finding.detail.replacen("Kubernetes does", &format!("Kubernetes {} does", profile.name), 1)
            });
            for problem in unserved.iter().chain(&inert) {
                console.warning(problem);
            }
        }
        console.write_all(format!("{rule}{comments}").as_bytes())?;
        Ok(Tally::default())
    }

    fn manifest(&self, target: &Target, name: &str, effect: &str, version: &str) -> String {
        let mut out = String::new();
        _ = write!(
            out,
            "apiVersion: resource.k8s.io/{version}\nkind: DeviceTaintRule\nmetadata:\n  name: {name}\nspec:\n"
        );
        if target.is_everything() {
            out.push_str("  deviceSelector: {}   # all devices of all drivers\n");
        } else {
            out.push_str("  deviceSelector:\n");
            for (field, value) in target.criteria() {
                _ = writeln!(out, "    {field}: {}", scalar(value));
            }
        }
        _ = write!(out, "  taint:\n    key: {}\n", scalar(&self.mark.key));
        if let Some(value) = &self.mark.value {
            _ = writeln!(out, "    value: {}", scalar(value));
        }
        _ = writeln!(out, "    effect: {effect}");
        out
    }
}

/// The same object for the engine.
fn json(target: &Target, mark: &TaintArg, effect: &str, version: &str) -> String {
    let text = |text: &str| serde_json::to_string(text).unwrap_or_default();
    let criteria: Vec<String> =
        target.criteria().map(|(field, value)| format!("{}:{}", text(field), text(value))).collect();
    let value = mark.value.as_deref().map(|value| format!("\"value\":{},", text(value)));
    format!(
        r#"{{"apiVersion":"resource.k8s.io/{}","kind":"DeviceTaintRule","metadata":{{"name":{}}},"spec":{{"deviceSelector":{{{}}},"taint":{{"key":{},{}"effect":{}}}}}}}"#,
        version,
        text(&name::rule_name(target, &mark.key)),
        criteria.join(","),
        text(&mark.key),
        value.unwrap_or_default(),
        text(effect),
    )
}

impl Untaint {
    pub(super) fn run(&self, console: &mut Console) -> Result<Tally, Failure> {
        let target = self.selection.target()?;
        // Rejects names that no rule can have, which kubectl would not report.
        let mark = TaintArg { value: None, ..self.mark.clone() };
        for profile in self.release.profiles()? {
            let effect = profile.effects.first().copied().unwrap_or_default();
            let json = json(target, &mark, effect, version(&[profile])?.name());
            let document =
                doc::parse(&json).map_err(|error| Failure::Internal(anyhow::anyhow!(error.detail)))?;
            if let Some(refusal) = impact::first_denial(document.root(), profile, &clock::now()) {
                return Err(Failure::Usage(format!(
                    "{} rejects a rule with these values: {refusal}",
                    profile.name
                )));
            }
        }
        let name = name::rule_name(target, &mark.key);
        writeln!(console, "{} delete devicetaintrule {name} --ignore-not-found", self.release.kubectl())?;
        Ok(Tally::default())
    }
}

/// The newest version in which all the profiles have rules, if possible one that their API servers serve unasked.
fn version(profiles: &[&'static Profile]) -> Result<Version, Failure> {
    let kind = ApiKind::DeviceTaintRule;
    let (first, others) = profiles.split_first().ok_or_else(|| Failure::Usage("no profile".to_owned()))?;
    let in_all = |version: &&Version| others.iter().all(|other| other.versions(kind).contains(version));
    let common: Vec<Version> = first.versions(kind).iter().filter(in_all).copied().collect();
    let is_served = |version: &&Version| profiles.iter().all(|profile| profile.is_served(kind, **version));
    let newest = common.iter().rfind(is_served).or(common.last());
    newest.copied().ok_or_else(|| {
        let names: Vec<&str> = profiles.iter().map(|profile| profile.name).collect();
        Failure::Usage(match names.as_slice() {
            [only] => format!("{only} does not support DeviceTaintRules"),
            _ => format!("{} have no version of DeviceTaintRule in common", and_list(&names)),
        })
    })
}

/// What to do next, as comments.
fn follow_up(kubectl: &str, name: &str, effect: &str, profile: &Profile) -> String {
    let mut out = String::new();
    let patch = |effect: &str| {
        format!(
            r#"{kubectl} patch devicetaintrule {name} --type=merge -p '{{"spec":{{"taint":{{"effect":"{effect}"}}}}}}'"#
        )
    };
    if effect == "None" && profile.rule_status {
        _ = writeln!(
            out,
            "# The rule has no effect yet. To see how many pods it would evict:\n#   {kubectl} get devicetaintrule {name} \
             -o jsonpath='{{.status.conditions[?(@.type==\"EvictionInProgress\")].message}}{{\"\\n\"}}'"
        );
    }
    if effect == "None" {
        _ = writeln!(out, "# To keep new pods off these devices:\n#   {}", patch("NoSchedule"));
        _ = writeln!(
            out,
            "# To evict the pods that use these devices (this ignores PodDisruptionBudgets):\n#   {}",
            patch("NoExecute")
        );
    } else if profile.effects.contains(&"None") {
        _ = writeln!(out, "# To remove the effect:\n#   {}", patch("None"));
    }
    _ = writeln!(out, "# To delete the rule:\n#   {kubectl} delete devicetaintrule {name}");
    out
}

/// A text as YAML that reads as a string.
fn scalar(text: &str) -> String {
    let words = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];
    let plain = text.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "._/-".contains(letter))
        && !words.contains(&text.to_ascii_lowercase().as_str());
    if plain { text.to_owned() } else { serde_json::to_string(text).unwrap_or_default() }
}

#[cfg(test)]
mod tests {
    use super::scalar;

    #[test]
    fn texts_stay_texts() {
        for (text, expected) in [
            ("gpu-0", "gpu-0"),
            ("0", "\"0\""),
            ("on", "\"on\""),
            ("No", "\"No\""),
            ("", "\"\""),
            ("a/b.c", "a/b.c"),
        ] {
            assert_eq!(scalar(text), expected);
        }
    }
}
