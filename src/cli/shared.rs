//! Flags that several commands share, and what they mean.
//!
//! Invariant: an unknown name is wrong usage; the message suggests the nearest known name.

#[cfg(feature = "cluster")]
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};

use super::completed::{self, completed};
use super::console::Console;
#[cfg(feature = "cluster")]
use super::console::shell_word;
use super::given::{GivenFlag, GivenFlags};
#[cfg(feature = "cluster")]
use super::live;
use super::outcome::Failure;
use super::state::Inventory;
use super::{classes, policies};
use crate::api::conform::suggest::distance;
#[cfg(feature = "cluster")]
use crate::cluster::Target;
use crate::engine::Engine;
use crate::profile::{self, GateChoice, Profile, ProfileMatch};
use crate::rules::impact_rule::TAINT_RULE_IMPACT;
use crate::rules::{self, Origin, Rule, RuleSet};

/// Flags of every command.
#[derive(Clone, Debug, Args)]
pub(super) struct GlobalArgs {
    /// Kubernetes releases or KEP drafts to check against, separated by commas, such as 1.37, v1.37.1 or kep-5055;
    /// `cluster` selects the release of the running API server, and `tollgate profiles` lists all names (default: the
    /// release of the cluster or dump if the command uses one; otherwise kep-5055)
    #[arg(long, global = true, value_name = "PROFILE", env = "TOLLGATE_KUBERNETES", value_delimiter = ',')]
    #[arg(value_parser = completed(parse_profile, completed::profiles), hide_possible_values = true)]
    #[arg(help_heading = "Validation")]
    kubernetes: Vec<ProfileArg>,

    /// Feature gates of the API server: `default`, `all`, or a list of those that differ from the defaults, such as
    /// DRADeviceTaints=true (default: the feature gates of the cluster if the command uses one; otherwise all, with a
    /// warning for each field that an API server with the default feature gates drops)
    #[arg(long, global = true, value_name = "GATES", env = "TOLLGATE_FEATURE_GATES")]
    #[arg(value_parser = completed(GateChoice::parse, completed::feature_gates), hide_possible_values = true)]
    #[arg(help_heading = "Validation")]
    feature_gates: Option<GateChoice>,

    /// Kubeconfig context of the cluster to use (default: the current context). Without --kubernetes, Tollgate checks
    /// against the release of this cluster
    #[cfg(feature = "cluster")]
    #[arg(long, global = true, value_name = "NAME", env = "TOLLGATE_CONTEXT", help_heading = "Cluster")]
    context: Option<String>,

    /// Kubeconfig file (default: KUBECONFIG, ~/.kube/config, or the service account of the pod)
    #[cfg(feature = "cluster")]
    #[arg(long, global = true, value_name = "FILE", env = "TOLLGATE_KUBECONFIG", help_heading = "Cluster")]
    kubeconfig: Option<PathBuf>,

    /// The API server, asked once.
    #[cfg(feature = "cluster")]
    #[arg(skip)]
    live: live::LiveServerCell,

    /// Run only these rules: a list of rule IDs and origins (upstream, documented, lint, policy, decoding and strict),
    /// separated by commas
    #[arg(long, global = true, value_name = "RULES", env = "TOLLGATE_RULES", help_heading = "Validation")]
    #[arg(value_parser = completed(parse_rule_list, completed::rules_and_origins), hide_possible_values = true)]
    rules: Option<RuleSet>,

    /// Policy file or folder; can be repeated
    #[arg(long, global = true, value_name = "PATH", env = "TOLLGATE_POLICY", value_delimiter = ',')]
    #[arg(help_heading = "Validation")]
    pub(super) policy: Vec<PathBuf>,

    /// File or folder with all ResourceClasses (KEP-3063) of the cluster; can be repeated. Claims that refer to any
    /// other class are reported
    #[arg(long, global = true, value_name = "PATH", env = "TOLLGATE_CLASSES", value_delimiter = ',')]
    #[arg(help_heading = "Validation")]
    classes: Vec<PathBuf>,

    /// Lowest level that causes exit code 1 (default: deny)
    #[arg(long, global = true, value_name = "LEVEL", env = "TOLLGATE_FAIL_ON", help_heading = "Exit code")]
    pub(super) fail_on: Option<FailOn>,

    /// Exit 0 instead of 1 if problems are found; input that cannot be read still causes exit code 3
    #[arg(long, global = true, env = "TOLLGATE_EXIT_ZERO", help_heading = "Exit code")]
    #[arg(value_parser = clap::builder::FalseyValueParser::new())]
    pub(super) exit_zero: bool,

    /// The flags that were given, and how.
    #[arg(skip)]
    given: GivenFlags,

    /// The policies are read from a repository: nothing outside of this folder is.
    #[arg(skip)]
    policy_root: Option<PathBuf>,

    /// Print only findings; omit the summary and notes
    #[arg(short, long, global = true)]
    pub(super) quiet: bool,

    /// When to use colors
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(super) color: Color,
}

/// A profile of `--kubernetes`.
#[derive(Clone, Copy, Debug)]
pub(super) enum ProfileArg {
    /// A release or draft.
    Named(&'static Profile),
    /// The release of a running API server, with its feature gates.
    Cluster,
}

/// The least level that fails a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum FailOn {
    /// Denials
    Deny,
    /// Denials and warnings
    Warn,
}

/// When to colour.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum Color {
    /// On a terminal, unless `NO_COLOR` is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Which rules run when `--rules` is not given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum DefaultRules {
    /// All: a file says what its author meant.
    Offline,
    /// All but `strict`: a webhook never sees what the API server dropped.
    Webhook,
    /// All but what a rule will do: a stored one has done it.
    Stored,
}

impl FailOn {
    /// `warn`
    pub(super) fn name(self) -> &'static str {
        match self {
            FailOn::Deny => "deny",
            FailOn::Warn => "warn",
        }
    }
}

/// What a configuration file says where the command line says nothing.
#[derive(Default, Debug)]
pub(super) struct FileDefaults {
    pub(super) kubernetes: Vec<ProfileArg>,
    pub(super) feature_gates: Option<GateChoice>,
    pub(super) policies: Vec<PathBuf>,
    pub(super) classes: Vec<PathBuf>,
    /// The policies of the file may read nothing outside of this folder.
    pub(super) root: Option<PathBuf>,
}

impl GlobalArgs {
    /// These flags over a configuration file: what is given wins, key by key.
    pub(super) fn over(&self, file: FileDefaults) -> GlobalArgs {
        let mut all = self.clone();
        if self.takes_profiles_from_file() {
            all.kubernetes = file.kubernetes;
        }
        all.feature_gates = all.feature_gates.or(file.feature_gates);
        if all.policy.is_empty() {
            (all.policy, all.policy_root) = (file.policies, file.root);
        }
        if all.classes.is_empty() {
            all.classes = file.classes;
        }
        all
    }

    /// Neither `--kubernetes` nor `--context` selects the profiles.
    pub(super) fn takes_profiles_from_file(&self) -> bool {
        #[cfg(feature = "cluster")]
        if self.context.is_some() {
            return false;
        }
        self.kubernetes.is_empty()
    }

    /// `--classes` is given.
    pub(super) fn has_classes(&self) -> bool {
        !self.classes.is_empty()
    }

    /// Remembers which flags were given.
    pub(super) fn remember(&mut self, given: GivenFlags) {
        self.given = given;
    }

    /// A flag, if it was given.
    pub(super) fn given(&self, name: &str) -> Option<&GivenFlag> {
        self.given.get(name)
    }

    /// The engine for these flags.
    pub(super) fn engine(&self, standard: DefaultRules) -> Result<Engine, Failure> {
        self.engine_for(standard, self.profiles()?)
    }

    /// The engine for these flags and some profiles.
    pub(super) fn engine_for(
        &self,
        standard: DefaultRules,
        profiles: Vec<&'static Profile>,
    ) -> Result<Engine, Failure> {
        let policies = policies::load_within(&self.policy, self.policy_root.as_deref())?;
        Ok(self.engine_of(standard, profiles)?.with_policies(Arc::new(policies)))
    }

    /// The engine of a server, without policies.
    #[cfg(feature = "serve")]
    pub(super) fn serving_engine(&self) -> Result<Engine, Failure> {
        Ok(self.engine_of(DefaultRules::Webhook, self.profiles_at_start()?)?.behind_server())
    }

    fn engine_of(&self, standard: DefaultRules, profiles: Vec<&'static Profile>) -> Result<Engine, Failure> {
        let usual = |rule: &Rule| match standard {
            DefaultRules::Offline => true,
            DefaultRules::Webhook => rule.origin != Origin::Strict,
            DefaultRules::Stored => rule.id != TAINT_RULE_IMPACT,
        };
        let rules = self.rules.clone().unwrap_or_else(|| RuleSet::compile(usual));
        Ok(Engine::new(profiles, rules).with_classes(classes::load(&self.classes)?))
    }

    /// The profile is a release or draft by name, and not that of a running API server.
    pub(super) fn has_explicit_profiles(&self) -> bool {
        !self.kubernetes.is_empty() && !self.asks_cluster()
    }

    /// `--kubernetes` names a cluster, or names nothing and `--context` does.
    pub(super) fn asks_cluster(&self) -> bool {
        self.profile_args().iter().any(|profile| matches!(profile, ProfileArg::Cluster))
    }

    pub(super) fn profile_args(&self) -> &[ProfileArg] {
        #[cfg(feature = "cluster")]
        if self.kubernetes.is_empty() && self.context.is_some() {
            return &[ProfileArg::Cluster];
        }
        if self.kubernetes.is_empty() { &[ProfileArg::Named(profile::DEFAULT)] } else { &self.kubernetes }
    }

    /// The gates of `--feature-gates`.
    pub(super) fn gate_choice(&self) -> Option<&GateChoice> {
        self.feature_gates.as_ref()
    }

    /// A profile with the gates of `--feature-gates`.
    fn with_gates(&self, profile: &'static Profile) -> Result<&'static Profile, Failure> {
        match &self.feature_gates {
            Some(choice) => profile.with_gates(choice).map_err(Failure::Usage),
            None => Ok(profile),
        }
    }

    /// The selected profiles, without duplicates. Asks the API server if one of them is its release.
    pub(super) fn profiles(&self) -> Result<Vec<&'static Profile>, Failure> {
        self.resolve(self.profile_args(), GlobalArgs::cluster_profile)
    }

    /// The profiles for a dump of a cluster: the release that the dump names, with the feature gates and versions that it
    /// records, unless a flag says otherwise. A named release that is the dump's own has them as well.
    pub(super) fn dump_profiles(
        &self,
        dump: &Inventory,
        console: &mut Console,
    ) -> Result<Vec<&'static Profile>, Failure> {
        let server = dump.server();
        let named = server.map(|server| server.release.as_str()).or(dump.release());
        let known = named.and_then(|release| {
            let (major, minor) = release.split_once('.')?;
            Profile::of_server(major, minor).map(|(profile, fit)| (release, profile, fit))
        });
        let Some((release, profile, fit)) = known else { return self.profiles() };
        let profile = match server {
            Some(server) => profile.on_server(&server.live, self.gate_choice()).map_err(Failure::Usage)?,
            None => self.with_gates(profile)?,
        };
        let is_chosen = self.takes_profiles_from_file();
        let profiles = if is_chosen { vec![profile] } else { prefer_own(self.profiles()?, profile, fit) };
        let name = profile.name;
        let from = match fit {
            ProfileMatch::Exact if is_chosen => format!("checking against {name}, the release of the dump"),
            ProfileMatch::Exact => format!("{name} is the release of the dump"),
            _ => format!(
                "checking against {name}, the supported release closest to that of the dump ({release})"
            ),
        };
        let gates = match (self.gate_choice(), server.map(|server| &server.live.gates)) {
            (None, Some(Ok(_))) => {
                format!("; feature gates recorded in the dump: {}", profile.describe_gates())
            }
            (None, Some(Err(why))) => {
                format!("; its feature gates are not known ({why}); assuming {}", profile.describe_gates())
            }
            _ => String::new(),
        };
        let is_used = profiles.iter().any(|used| std::ptr::eq(*used, profile));
        if is_used && (is_chosen || !gates.is_empty()) {
            console.note(&format!("{from}{gates}"));
        }
        Ok(profiles)
    }

    /// The profiles to start a server with: what a cluster says is followed while it runs.
    #[cfg(feature = "serve")]
    pub(super) fn profiles_at_start(&self) -> Result<Vec<&'static Profile>, Failure> {
        self.resolve(self.profile_args(), |shared| shared.with_gates(profile::DEFAULT))
    }

    /// The profiles of some arguments. Of two for the same release the running one is meant.
    pub(super) fn resolve(
        &self,
        asked: &[ProfileArg],
        cluster: impl Fn(&GlobalArgs) -> Result<&'static Profile, Failure>,
    ) -> Result<Vec<&'static Profile>, Failure> {
        let mut profiles: Vec<&'static Profile> = Vec::new();
        for profile in asked {
            let (profile, is_live) = match profile {
                ProfileArg::Named(profile) => (self.with_gates(profile)?, false),
                ProfileArg::Cluster => (cluster(self)?, true),
            };
            match profiles.iter_mut().find(|known| known.name == profile.name) {
                Some(known) if is_live => *known = profile,
                Some(_) => {}
                None => profiles.push(profile),
            }
        }
        Ok(profiles)
    }

    /// `kubectl`: a build without clusters has no flags to repeat.
    #[cfg(not(feature = "cluster"))]
    #[expect(clippy::unused_self, reason = "the same call with and without the feature")]
    pub(super) fn kubectl(&self) -> String {
        "kubectl".to_owned()
    }

    #[cfg(not(feature = "cluster"))]
    #[expect(clippy::unused_self, reason = "the same call with and without the feature")]
    pub(super) fn cluster_profile(&self) -> Result<&'static Profile, Failure> {
        Err(Failure::Usage("--kubernetes cluster: this build cannot connect to clusters".to_owned()))
    }
}

#[cfg(feature = "cluster")]
impl GlobalArgs {
    /// `kubectl`, with the flags that make it use the same cluster. A command that is printed to be pasted starts with it:
    /// the current context may be another one.
    pub(super) fn kubectl(&self) -> String {
        let mut command = "kubectl".to_owned();
        let file = self.kubeconfig.as_ref().map(|file| file.display().to_string());
        for (flag, value) in [("--kubeconfig", &file), ("--context", &self.context)] {
            if let Some(value) = value {
                _ = write!(command, " {flag} {}", shell_word(value));
            }
        }
        command
    }

    /// Which API server to connect to.
    pub(super) fn target(&self) -> Target<'_> {
        Target { kubeconfig: self.kubeconfig.as_deref(), context: self.context.as_deref() }
    }

    /// `--context` is given.
    pub(super) fn names_context(&self) -> bool {
        self.context.is_some()
    }

    /// The profile of the API server: its release, its feature gates, its versions. Asked once in a run; what it is and
    /// what had to be assumed is noted on stderr.
    pub(super) fn cluster_profile(&self) -> Result<&'static Profile, Failure> {
        Ok(self.live.get_or_ask(self)?.profile)
    }

    /// The API server that a command without `--state` reads. It is named on stderr before anything else happens. In CI
    /// the current context is whatever a runner has, so it must be named.
    pub(super) fn live_server(&self, has_state: bool) -> Result<&live::AskedServer, Failure> {
        if is_ci() && !self.names_context() {
            let dump = if has_state { ", or pass a dump with --state" } else { "" };
            return Err(Failure::Usage(format!("CI is set; choose the cluster with --context NAME{dump}")));
        }
        self.live.get_or_ask(self)
    }

    /// The profiles for a command that reads a cluster: the cluster's own unless `--kubernetes` names others. A named
    /// release that is the cluster's own has the cluster's feature gates and versions.
    pub(super) fn live_profiles(&self) -> Result<Vec<&'static Profile>, Failure> {
        let asked = self.live.get_or_ask(self)?;
        if self.kubernetes.is_empty() {
            return Ok(vec![asked.profile]);
        }
        Ok(prefer_own(self.profiles()?, asked.profile, asked.fit))
    }
}

/// The profiles, with that of a cluster in place of its release.
fn prefer_own(
    profiles: Vec<&'static Profile>,
    own: &'static Profile,
    fit: ProfileMatch,
) -> Vec<&'static Profile> {
    let is_own = |profile: &Profile| fit == ProfileMatch::Exact && profile.name == own.name;
    profiles.into_iter().map(|profile| if is_own(profile) { own } else { profile }).collect()
}

/// `CI` is set to anything but `false`, as CI systems do.
#[cfg(feature = "cluster")]
#[expect(clippy::disallowed_methods, reason = "not a setting of Tollgate, so not a flag")]
fn is_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| !value.is_empty() && !value.eq_ignore_ascii_case("false"))
}

pub(super) fn parse_profile(name: &str) -> Result<ProfileArg, String> {
    let name = name.trim();
    if name == "cluster" {
        return Ok(ProfileArg::Cluster);
    }
    Profile::meant_by(name).map(ProfileArg::Named).ok_or_else(|| {
        let names: Vec<&str> = profile::ALL.iter().map(|profile| profile.name).collect();
        // No other release is meant by a number: 1.20 is not a misspelt 1.37.
        let is_number = name.trim_start_matches('v').starts_with(|first: char| first.is_ascii_digit());
        let hint = if is_number { String::new() } else { did_you_mean(name, &names) };
        format!("unknown profile `{name}`{hint}; available: {}, cluster", names.join(", "))
    })
}

fn parse_rule_list(list: &str) -> Result<RuleSet, String> {
    let words: Vec<&str> = list.split(',').map(str::trim).filter(|word| !word.is_empty()).collect();
    if words.is_empty() {
        return Err("the list is empty; specify at least one rule or origin".to_owned());
    }
    let known =
        |word: &str| rules::find(word).is_some() || Origin::ALL.iter().any(|origin| origin.name() == word);
    if let Some(unknown) = words.iter().find(|word| !known(word)) {
        return Err(no_such_rule(unknown));
    }
    RuleSet::parse(list)
}

/// The message about an unknown rule or origin.
pub(super) fn no_such_rule(word: &str) -> String {
    let mut names: Vec<&str> = Origin::ALL.iter().map(|origin| origin.name()).collect();
    let origins = names.join(", ");
    names.extend(rules::all().map(|rule| rule.id.0));
    let hint = did_you_mean(word, &names);
    format!(
        "unknown rule or origin `{word}`{hint}; use a rule ID or one of the origins ({origins}); `tollgate explain` lists all rules"
    )
}

/// ` (did you mean …?)`, if something is near.
pub(super) fn did_you_mean(word: &str, names: &[&str]) -> String {
    let word = word.to_lowercase();
    // Of equally near names the last one: for releases that is the newest.
    let near = names
        .iter()
        .rev()
        .map(|name| (distance(name, &word), name))
        .filter(|(distance, name)| *distance <= 1 + name.len().min(word.len()) / 3)
        .min_by_key(|(distance, _)| *distance);
    let inside = || names.iter().find(|name| word.len() >= 4 && name.contains(word.as_str()));
    near.map(|(_, name)| name)
        .or_else(inside)
        .map(|name| format!(" (did you mean `{name}`?)"))
        .unwrap_or_default()
}
