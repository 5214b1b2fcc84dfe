//! Flags that select the API server to check against: a release by name, that of a running cluster, or that of a dump;
//! and its feature gates.

use clap::Args;

use super::super::completed::{self, with_completions};
use super::super::console::Console;
use super::super::outcome::Failure;
use super::super::state::DumpInventory;
use super::{ContextArgs, did_you_mean};
use tollgate_api::profile::{self, GateChoice, Profile, ProfileMatch};

/// The cluster, and the feature gates of its API server.
#[derive(Clone, Debug, Args)]
pub(in super::super) struct ApiServerArgs {
    /// Feature gates of the API server: `default`, `all`, or a list such as DRADeviceTaints=true
    ///
    /// A list contains the feature gates that differ from the defaults. Default: the feature gates of the cluster if
    /// the command uses one; otherwise all, with a warning for each field that an API server with the default feature
    /// gates drops.
    #[arg(long, value_name = "GATES", env = "TOLLGATE_FEATURE_GATES")]
    #[arg(value_parser = with_completions(GateChoice::parse, completed::feature_gate_values), hide_possible_values = true)]
    #[arg(help_heading = "Kubernetes")]
    feature_gates: Option<GateChoice>,

    #[command(flatten)]
    pub(in super::super) context: ContextArgs,
}

/// The releases to check against.
#[derive(Clone, Debug, Args)]
pub(in super::super) struct ReleaseArgs {
    /// Kubernetes releases or KEP drafts to check against, such as 1.36 or 1.36,1.37
    ///
    /// `cluster` selects the release of the running API server, and `tollgate profiles` lists all names. Default: the
    /// release of the cluster or dump if the command uses one; otherwise kep-5055.
    #[arg(long, value_name = "PROFILE", env = "TOLLGATE_KUBERNETES", value_delimiter = ',')]
    #[arg(value_parser = with_completions(parse_profile, completed::profile_values), hide_possible_values = true)]
    #[arg(help_heading = "Kubernetes")]
    kubernetes: Vec<ProfileArg>,

    #[command(flatten)]
    pub(in super::super) server: ApiServerArgs,
}

/// A profile of `--kubernetes`.
#[derive(Clone, Copy, Debug)]
pub(in super::super) enum ProfileArg {
    /// A release or draft.
    Named(&'static Profile),
    /// The release of a running API server, with its feature gates.
    Cluster,
}

impl ApiServerArgs {
    /// Returns the value of `--feature-gates`.
    pub(in super::super) fn gate_choice(&self) -> Option<&GateChoice> {
        self.feature_gates.as_ref()
    }

    /// Returns a profile with the gates of `--feature-gates`.
    pub(super) fn with_gates(&self, profile: &'static Profile) -> Result<&'static Profile, Failure> {
        match &self.feature_gates {
            Some(choice) => profile.with_gates(choice).map_err(Failure::Usage),
            None => Ok(profile),
        }
    }

    /// Returns the profiles of these arguments, without duplicates. For `cluster`, asks the API server once in a
    /// run, and prints its release and what had to be assumed.
    pub(in super::super) fn resolve_profiles_asking_server(
        &self,
        asked: &[ProfileArg],
    ) -> Result<Vec<&'static Profile>, Failure> {
        self.resolve_profiles(asked, |server| server.context.server_profile(server.gate_choice()))
    }

    /// Resolves arguments to profiles, without duplicates. `cluster` returns the profile of the API server, which
    /// replaces a named one of the same release.
    fn resolve_profiles(
        &self,
        asked: &[ProfileArg],
        cluster: impl Fn(&ApiServerArgs) -> Result<&'static Profile, Failure>,
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
}

impl ReleaseArgs {
    /// Sets the profiles and gates of a configuration file where no flag sets them.
    pub(in super::super) fn set_config_file_defaults(
        &mut self,
        kubernetes: Vec<ProfileArg>,
        feature_gates: Option<GateChoice>,
    ) {
        if self.has_no_kubernetes_or_context_flag() {
            self.kubernetes = kubernetes;
        }
        if self.server.feature_gates.is_none() {
            self.server.feature_gates = feature_gates;
        }
    }

    /// True if neither `--kubernetes` nor `--context` is given.
    pub(in super::super) fn has_no_kubernetes_or_context_flag(&self) -> bool {
        self.kubernetes.is_empty() && !self.server.context.has_context_flag()
    }

    /// True if `--kubernetes` names only releases or drafts, and not the running API server.
    #[cfg(feature = "serve")]
    pub(in super::super) fn kubernetes_flag_names_only_fixed_profiles(&self) -> bool {
        !self.kubernetes.is_empty() && !self.uses_cluster_release()
    }

    /// True if `--kubernetes` names `cluster`, or is not given and `--context` is.
    #[cfg(feature = "cluster")]
    pub(in super::super) fn uses_cluster_release(&self) -> bool {
        self.profile_args_or_default().iter().any(|profile| matches!(profile, ProfileArg::Cluster))
    }

    /// Returns the arguments of `--kubernetes`. Without the flag, returns `cluster` if `--context` is given, else the
    /// default release. Does not ask the API server for the release of the cluster.
    pub(in super::super) fn profile_args_or_default(&self) -> &[ProfileArg] {
        match self.kubernetes.as_slice() {
            [] if self.server.context.has_context_flag() => &[ProfileArg::Cluster],
            [] => &[ProfileArg::Named(profile::DEFAULT)],
            named => named,
        }
    }

    /// Returns the selected profiles, without duplicates. If one of them is `cluster`, asks the API server for its
    /// release.
    pub(in super::super) fn profiles(&self) -> Result<Vec<&'static Profile>, Failure> {
        self.server.resolve_profiles_asking_server(self.profile_args_or_default())
    }

    /// Returns the profiles to start `serve` with. Instead of `cluster`, whose release is read later, the default
    /// profile is used.
    #[cfg(feature = "serve")]
    pub(super) fn initial_serve_profiles(&self) -> Result<Vec<&'static Profile>, Failure> {
        self.server
            .resolve_profiles(self.profile_args_or_default(), |server| server.with_gates(profile::DEFAULT))
    }

    /// Connects to the API server that a command without `--state` reads.
    #[cfg(feature = "cluster")]
    pub(in super::super) fn live_server(&self) -> Result<&super::super::live::ConnectedServer, Failure> {
        self.server.context.connect_requiring_context_in_ci(true, self.server.gate_choice())
    }

    /// Returns the profiles for a command that reads a cluster: that of the cluster, unless `--kubernetes` names
    /// others. If it names the release of the cluster, the feature gates and versions of the cluster are used.
    #[cfg(feature = "cluster")]
    pub(in super::super) fn live_profiles(&self) -> Result<Vec<&'static Profile>, Failure> {
        let asked = self.live_server()?;
        if self.kubernetes.is_empty() {
            return Ok(vec![asked.profile]);
        }
        Ok(replace_same_release(self.profiles()?, asked.profile, asked.fit))
    }

    /// Returns the profiles for a dump: the release that the dump names, with the feature gates and versions that
    /// it records, unless a flag says otherwise. If `--kubernetes` names the release of the dump, they are used
    /// as well.
    pub(in super::super) fn dump_profiles(
        &self,
        dump: &DumpInventory,
        console: &mut Console,
    ) -> Result<Vec<&'static Profile>, Failure> {
        let server = dump.recorded_server_if_unique();
        let known = dump.release().and_then(|release| {
            Profile::nearest_for_server(release).map(|(profile, fit)| (release, profile, fit))
        });
        let Some((release, profile, fit)) = known else { return self.profiles() };
        let profile = match server {
            Some(server) => {
                profile.for_server(&server.live, self.server.gate_choice()).map_err(Failure::Usage)?
            }
            None => self.server.with_gates(profile)?,
        };
        let is_chosen = self.has_no_kubernetes_or_context_flag();
        let profiles =
            if is_chosen { vec![profile] } else { replace_same_release(self.profiles()?, profile, fit) };
        let name = profile.name;
        let from = match fit {
            ProfileMatch::Exact if is_chosen => format!("checking against {name}, the release of the dump"),
            ProfileMatch::Exact => format!("{name} is the release of the dump"),
            _ => format!(
                "checking against {name}, the supported release closest to that of the dump ({release})"
            ),
        };
        let gates = match (self.server.gate_choice(), server.map(|server| &server.live.gates)) {
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
}

/// Replaces the profile of the same release by `own`, which has the feature gates of the cluster. A profile that
/// was named with another patch release stays.
fn replace_same_release(
    profiles: Vec<&'static Profile>,
    own: &'static Profile,
    fit: ProfileMatch,
) -> Vec<&'static Profile> {
    let is_own = |profile: &Profile| {
        let has_same_patch =
            profile.name == own.name || profile::ALL.iter().any(|all| all.name == profile.name);
        fit == ProfileMatch::Exact && profile.is_same_minor_release(own) && has_same_patch
    };
    profiles.into_iter().map(|profile| if is_own(profile) { own } else { profile }).collect()
}

pub(in super::super) fn parse_profile(name: &str) -> Result<ProfileArg, String> {
    let name = name.trim();
    if name == "cluster" {
        return Ok(ProfileArg::Cluster);
    }
    Profile::from_name_or_version(name).map(ProfileArg::Named).ok_or_else(|| {
        let names: Vec<&str> = Profile::all_with_patches().map(|profile| profile.name).collect();
        // No other release is meant by a number: 1.20 is not a misspelt 1.37.
        let is_number = name.trim_start_matches('v').starts_with(|first: char| first.is_ascii_digit());
        let hint = if is_number { String::new() } else { did_you_mean(name, &names) };
        format!("unknown profile `{name}`{hint}; available: {}, cluster", names.join(", "))
    })
}
