//! `tollgate taint` and `tollgate untaint`: a correct, well-named DeviceTaintRule and the commands around it, printed.
//!
//! Nothing is ever applied. The rule goes to stdout with what to do next in comments, so the output can be read, kept
//! or piped to `kubectl apply -f -`. The name is made of driver, pool, device, key and effect, so that the same taint
//! is the same rule for every user, and `untaint` finds it without connecting to the cluster.
//!
//! Invariant: the API server of the profile accepts the printed rule; a selector that selects everything is printed
//! only with an explicit flag.

mod mark;

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;

use super::console::Console;
use super::expiry::RuleExpiryArg;
use super::outcome::{ExitCounts, Failure};
use super::shared::ReleaseArgs;
use super::{clock, impact, state};
use mark::TaintArg;
use tollgate_api::conform::suggest::join_with_and;
use tollgate_api::profile::{ApiKind, Profile, Version};
use tollgate_document::source::{Document, documents};
use tollgate_drain::readable_rule_name_with_hash;
use tollgate_engine::impact::target::{self, DeviceNameSelector, DeviceTarget, ResolvedTarget};
use tollgate_engine::impact::{DetailsToStore, ImpactQuery, ProposedChange, Snapshot, impact_counts};
use tollgate_engine::rule_annotations;
use tollgate_engine::rules::server_defaults::why_version_is_off;
use tollgate_formats::gotime;

/// Print a DeviceTaintRule for a device, a pool or a driver, without applying it
#[derive(Debug, clap::Args)]
pub(super) struct PrintTaintRuleArgs {
    #[command(flatten)]
    selection: SelectionArgs,

    /// Taint, as KEY[=VALUE][:EFFECT]; with the default effect None, Kubernetes only counts the affected
    /// pods
    #[arg(value_name = "TAINT", value_parser = mark::parse_taint)]
    mark: TaintArg,

    /// Who is responsible for the rule, as the annotation tollgate.dev/owner
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,

    /// What the rule is for, as the annotation tollgate.dev/reason
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,

    /// When the rule is no longer needed, as the annotation tollgate.dev/expires: a duration or an RFC 3339 time.
    /// Nothing is deleted then
    #[arg(long, value_name = "TIME", value_parser = RuleExpiryArg::parse)]
    expires: Option<RuleExpiryArg>,

    /// Allow a driver name without a dot, although there is no cluster state in which to look it up
    #[arg(long)]
    driver_without_dot: bool,

    #[command(flatten)]
    clock: clock::ClockArgs,

    #[command(flatten)]
    release: ReleaseArgs,
}

/// Print the command that deletes a rule created by `tollgate taint`, without running it
#[derive(Debug, clap::Args)]
pub(super) struct PrintRuleDeletionArgs {
    #[command(flatten)]
    selection: SelectionArgs,

    /// Key of the taint, as KEY[:EFFECT]; without an effect, the command deletes the rules for all effects
    #[arg(value_name = "TAINT", value_parser = mark::parse_taint)]
    mark: TaintArg,

    #[command(flatten)]
    release: ReleaseArgs,
}

/// Which devices.
#[derive(Debug, clap::Args)]
struct SelectionArgs {
    /// Devices, as DRIVER[/POOL[/DEVICE]], or node/NAME for the devices of a node
    ///
    /// `*` matches any name, and `*` alone matches all devices of all drivers. node/NAME requires --state or a cluster
    /// and selects the pools of this node; if a pool spans several nodes, it selects the devices of this node one by
    /// one.
    #[arg(value_name = "DEVICES", value_parser = DeviceTarget::parse)]
    target: DeviceTarget,

    /// File or folder with the cluster state, to check the names; can be repeated
    ///
    /// `tollgate taint` also shows the impact of the rule in a comment. With --context or `--kubernetes cluster`, the
    /// state of that cluster is used.
    #[arg(long, value_name = "DUMP", env = "TOLLGATE_STATE")]
    state: Vec<PathBuf>,

    /// Allow a rule for all devices of all drivers
    #[arg(long)]
    all_devices: bool,

    /// Also include the partitions of the devices, with one rule each; requires --state or a cluster
    ///
    /// A taint on a device does not apply to devices that consume the same shared counters, such as the partitions of a
    /// GPU.
    #[arg(long)]
    with_partitions: bool,
}

/// The state of the cluster, if one was given, and the Kubernetes releases or drafts (profiles) to check rules
/// against.
struct StateAndProfiles {
    state: Option<Snapshot>,
    /// Messages about what is missing from the state.
    omissions: Vec<String>,
    profiles: Vec<&'static Profile>,
}

impl SelectionArgs {
    /// Returns which data of devices must be read besides their names and taints.
    fn needed_details(&self) -> DetailsToStore {
        DetailsToStore { counters: self.with_partitions, ..DetailsToStore::default() }
    }

    /// Reads the state from the dump, or from the cluster if one is named; without either there is none.
    fn read_state(&self, release: &ReleaseArgs, console: &mut Console) -> Result<StateAndProfiles, Failure> {
        if !self.state.is_empty() {
            let (snapshot, inventory) = state::read_with_inventory(&self.state, self.needed_details())?;
            let profiles = release.dump_profiles(&inventory, console)?;
            let omissions = inventory.impact_omissions(false).messages();
            return Ok(StateAndProfiles { state: Some(snapshot), omissions, profiles });
        }
        #[cfg(feature = "cluster")]
        if release.uses_cluster_release() {
            let (profiles, asked) = (release.profiles()?, release.live_server()?);
            let (snapshot, omissions) = super::live::read_state(asked, self.needed_details(), console);
            return Ok(StateAndProfiles { state: Some(snapshot), omissions: omissions.failures, profiles });
        }
        Ok(StateAndProfiles { state: None, omissions: Vec::new(), profiles: release.profiles()? })
    }

    /// Returns the selectors of the rules: those of the target, and with `--with-partitions` those of its
    /// partitions. With `must_exist`, a name that the state does not contain is an error.
    fn resolve_target_and_partitions(
        &self,
        known: &StateAndProfiles,
        must_exist: bool,
        console: &mut Console,
    ) -> Result<Vec<DeviceNameSelector>, Failure> {
        let devices = self.resolve_target_without_partitions(known, must_exist, console)?;
        if !self.with_partitions {
            return Ok(devices);
        }
        let Some(state) = &known.state else {
            return Err(Failure::Usage(
                "--with-partitions: the partitions of devices are looked up in the cluster state; add --state DUMP or \
                 --context NAME"
                    .to_owned(),
            ));
        };
        let count = devices.len();
        let all = target::with_partitions(devices, state);
        if all.len() == count {
            console
                .note("these devices have no partitions in the cluster state, or they include all of them");
        }
        Ok(all)
    }

    /// Returns the selectors for the devices of the target, without partitions.
    fn resolve_target_without_partitions(
        &self,
        known: &StateAndProfiles,
        must_exist: bool,
        console: &mut Console,
    ) -> Result<Vec<DeviceNameSelector>, Failure> {
        match (&self.target, &known.state) {
            (DeviceTarget::Devices(names), _) if names.selects_everything() && !self.all_devices => {
                Err(Failure::Usage(
                    "this selects all devices of all drivers; specify a driver, or add --all-devices"
                        .to_owned(),
                ))
            }
            (DeviceTarget::Node(node), None) => Err(Failure::Usage(format!(
                "node/{node}: the devices of a node are looked up in the cluster state; add --state DUMP or --context \
                 NAME"
            ))),
            // Without any slice, nothing is known about names.
            (DeviceTarget::Devices(names), Some(state)) if must_exist && state.device_count() > 0 => {
                resolve_in_state(&self.target, state, console).map(|_| vec![names.clone()])
            }
            (DeviceTarget::Devices(names), _) => Ok(vec![names.clone()]),
            (DeviceTarget::Node(_), Some(state)) => resolve_in_state(&self.target, state, console),
        }
    }
}

/// Returns the selectors for the devices of a target in a cluster state, and prints notes about devices that are not
/// included.
pub(super) fn resolve_in_state(
    target: &DeviceTarget,
    state: &Snapshot,
    console: &mut Console,
) -> Result<Vec<DeviceNameSelector>, Failure> {
    let ResolvedTarget { devices, notes } = target.resolve(state).map_err(Failure::Usage)?;
    for note in &notes {
        console.note(note);
    }
    Ok(devices)
}

impl PrintTaintRuleArgs {
    pub(super) fn run(&self, console: &mut Console) -> Result<ExitCounts, Failure> {
        let known = self.selection.read_state(&self.release, console)?;
        let targets = self.selection.resolve_target_and_partitions(&known, true, console)?;
        let StateAndProfiles { state, omissions, profiles } = known;
        let Some(profile) = profiles.first().copied() else { return Ok(ExitCounts::default()) };
        let effect = self.mark.effect.as_deref().unwrap_or("None");
        if self.mark.effect.is_none() && !profile.effects.contains(&"None") {
            let effects = profile.effects.join(", ");
            return Err(Failure::Usage(format!(
                "{} does not support effect None; use KEY:EFFECT with one of {effects}",
                profile.name
            )));
        }
        let version = common_rule_version(&profiles)?;
        let now = self.clock.now();
        if state.is_some() {
            state::print_omissions(&omissions, console);
        } else {
            self.refuse_driver_without_dot()?;
        }
        let expires = self.expires.map(|expires| expires.resolve_rfc3339(&now)).transpose()?;
        let given = [self.owner.clone(), self.reason.clone(), expires];
        let names = [rule_annotations::OWNER, rule_annotations::REASON, rule_annotations::EXPIRES];
        let annotations = names.into_iter().zip(given).filter_map(|(name, text)| Some((name, text?)));
        let annotations: Vec<(&str, String)> = annotations.collect();
        let mut rules = Vec::new();
        for target in &targets {
            let name = readable_rule_name_with_hash(target, &self.mark.key, effect);
            let rule = rule_manifest(target, &self.mark, effect, version.name(), &annotations);
            let document = parse_generated_manifest(&rule)?;
            for profile in &profiles {
                if let Some(refusal) = impact::first_denial(document.doc.root(), profile, &now) {
                    return Err(Failure::Usage(format!("{} rejects this rule: {refusal}", profile.name)));
                }
            }
            let mut comments = String::new();
            if let Some(snapshot) = &state {
                let at = gotime::parse_rfc3339(&now).map_err(Failure::Usage)?;
                let change =
                    ProposedChange::from_rule_manifest(document.doc.root(), None, snapshot, profile, at)
                        .map_err(|unreadable| Failure::Input(unreadable.to_string()))?;
                let query = ImpactQuery { snapshot, change: &change, profile, at };
                _ = writeln!(
                    comments,
                    "# In this cluster state, the rule {}.",
                    query.summary(impact_counts(query))
                );
            }
            comments.push_str(&follow_up_comments(
                &self.release.server.context.kubectl_with_context(),
                &name,
                effect,
                profile,
            ));
            rules.push(format!("{rule}{comments}"));
        }
        for profile in &profiles {
            let name = format!("Kubernetes {}", profile.name);
            let unserved = why_version_is_off(ApiKind::DeviceTaintRule, version, profile, &name);
            let gates = profile.why_gates_disable_device_taint_rules();
            let why = if unserved.is_some() { gates } else { profile.why_device_taint_rules_do_nothing() };
            let inert = why.map(|why| format!("{why}, so the rule has no effect"));
            let inert = inert.or_else(|| profile.describe_gates_rules_may_lack());
            for problem in unserved.iter().chain(&inert) {
                console.warning(problem);
            }
        }
        console.write_all(rules.join("---\n").as_bytes())?;
        Ok(ExitCounts::default())
    }

    /// Refuses a driver name without a dot if it cannot be looked up: it is legal, but nearly always the name of a node
    /// or pool.
    fn refuse_driver_without_dot(&self) -> Result<(), Failure> {
        match &self.selection.target {
            DeviceTarget::Devices(DeviceNameSelector { driver: Some(driver), .. })
                if !driver.contains('.') && !self.driver_without_dot =>
            {
                Err(Failure::Usage(format!(
                    "`{driver}` looks like a node or pool, not like a driver such as gpu.example.com; for the devices of a \
                     node, use node/{driver}; to look up the driver, add --state DUMP or --context NAME; if it is a driver, \
                     add --driver-without-dot"
                )))
            }
            _ => Ok(()),
        }
    }
}

/// Returns a DeviceTaintRule as YAML, which is printed and checked.
fn rule_manifest(
    target: &DeviceNameSelector,
    mark: &TaintArg,
    effect: &str,
    version: &str,
    annotations: &[(&str, String)],
) -> String {
    let name = readable_rule_name_with_hash(target, &mark.key, effect);
    let mut out =
        format!("apiVersion: resource.k8s.io/{version}\nkind: DeviceTaintRule\nmetadata:\n  name: {name}\n");
    if !annotations.is_empty() {
        out.push_str("  annotations:\n");
    }
    for (name, text) in annotations {
        _ = writeln!(out, "    {name}: {}", yaml_string(text));
    }
    out.push_str("spec:\n");
    if target.selects_everything() {
        out.push_str("  deviceSelector: {}   # all devices of all drivers\n");
    } else {
        out.push_str("  deviceSelector:\n");
        for (field, value) in target.specified_names() {
            _ = writeln!(out, "    {field}: {}", yaml_string(value));
        }
    }
    _ = write!(out, "  taint:\n    key: {}\n", yaml_string(&mark.key));
    if let Some(value) = &mark.value {
        _ = writeln!(out, "    value: {}", yaml_string(value));
    }
    _ = writeln!(out, "    effect: {effect}");
    out
}

/// Returns the manifest of a rule for these devices, in a version that all profiles have.
pub(super) fn rule_manifest_in_common_version(
    names: &DeviceNameSelector,
    key: &str,
    effect: &str,
    profiles: &[&'static Profile],
) -> Result<String, Failure> {
    let mark = TaintArg { key: key.to_owned(), value: None, effect: None };
    Ok(rule_manifest(names, &mark, effect, common_rule_version(profiles)?.name(), &[]))
}

/// Parses a manifest that this program wrote.
fn parse_generated_manifest(manifest: &str) -> Result<Document<'_>, Failure> {
    let document = documents(manifest).next().and_then(Result::ok);
    document.ok_or_else(|| Failure::Internal(anyhow::anyhow!("the manifest cannot be read")))
}

impl PrintRuleDeletionArgs {
    pub(super) fn run(&self, console: &mut Console) -> Result<ExitCounts, Failure> {
        let known = self.selection.read_state(&self.release, console)?;
        // Rules can outlive their devices, so devices need not exist.
        let targets = self.selection.resolve_target_and_partitions(&known, false, console)?;
        let mark = TaintArg { value: None, ..self.mark.clone() };
        let mut names = Vec::new();
        for target in &targets {
            // Rejects names that no rule can have, which kubectl would not report.
            for profile in &known.profiles {
                let effect = profile.effects.first().copied().unwrap_or_default();
                let rule = rule_manifest(target, &mark, effect, common_rule_version(&[profile])?.name(), &[]);
                let document = parse_generated_manifest(&rule)?;
                if let Some(refusal) =
                    impact::first_denial(document.doc.root(), profile, &clock::now_rfc3339())
                {
                    return Err(Failure::Usage(format!(
                        "{} rejects a rule with these values: {refusal}",
                        profile.name
                    )));
                }
            }
            // Without an effect, the rules of all effects: `taint` names a rule after the effect that it is created
            // with.
            let effects = mark.effect.as_deref().map_or(mark::EFFECTS.to_vec(), |effect| vec![effect]);
            names.extend(
                effects.into_iter().map(|effect| readable_rule_name_with_hash(target, &mark.key, effect)),
            );
        }
        let (kubectl, names) = (self.release.server.context.kubectl_with_context(), names.join(" "));
        writeln!(console, "{kubectl} delete devicetaintrule {names} --ignore-not-found")?;
        Ok(ExitCounts::default())
    }
}

/// Returns the newest version of DeviceTaintRule that all profiles have, if possible one that they serve by
/// default.
pub(super) fn common_rule_version(profiles: &[&'static Profile]) -> Result<Version, Failure> {
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
            _ => format!("{} have no version of DeviceTaintRule in common", join_with_and(&names)),
        })
    })
}

/// Returns YAML comments with the commands that show, change and delete the rule.
fn follow_up_comments(kubectl: &str, name: &str, effect: &str, profile: &Profile) -> String {
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

/// Returns a text as a YAML scalar that is read as a string, in quotes if needed.
fn yaml_string(text: &str) -> String {
    let words = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];
    let plain = text.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "._/-".contains(letter))
        && !words.contains(&text.to_ascii_lowercase().as_str());
    if plain { text.to_owned() } else { serde_json::to_string(text).unwrap_or_default() }
}

#[cfg(test)]
mod tests {
    use super::yaml_string;

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
            assert_eq!(yaml_string(text), expected);
        }
    }
}
