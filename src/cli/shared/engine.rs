//! Flags for what objects are checked with: releases, rules, policies and classes.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;

use super::super::completed::with_completions;
use super::super::outcome::Failure;
use super::super::{classes, policies};
use super::{ReleaseArgs, unknown_rule_message};
use crate::config::rule_and_origin_names;
use tollgate_api::profile::Profile;
use tollgate_engine::engine::Engine;
use tollgate_engine::policy::{PolicyResource, PolicySet};
use tollgate_engine::rules::table::TAINT_RULE_IMPACT;
use tollgate_engine::rules::{self, Rule, RuleOrigin, RuleSet};

/// Everything that an engine is built from.
#[derive(Clone, Debug, Args)]
pub(in super::super) struct EngineArgs {
    #[command(flatten)]
    pub(in super::super) release: ReleaseArgs,

    /// Run only these rules and origins, separated by commas
    ///
    /// The origins are upstream, documented, lint, policy, decoding and strict. `tollgate explain` lists all rules.
    #[arg(long, value_name = "RULES", env = "TOLLGATE_RULES", help_heading = "Rules")]
    #[arg(value_parser = with_completions(parse_rule_list, rule_and_origin_names), hide_possible_values = true)]
    #[arg(hide_short_help = true)]
    rules: Option<RuleSet>,

    #[command(flatten)]
    pub(in super::super) policies: PolicyArgs,

    /// File or folder with all ResourceClasses (KEP-3063) of the cluster; can be repeated
    ///
    /// Claims that refer to any other class are reported.
    #[arg(
        long,
        value_name = "PATH",
        env = "TOLLGATE_CLASSES",
        value_delimiter = ',',
        help_heading = "Rules"
    )]
    #[arg(hide_short_help = true)]
    pub(in super::super) classes: Vec<PathBuf>,
}

/// The policies of an administrator.
#[derive(Clone, Debug, Args)]
pub(in super::super) struct PolicyArgs {
    /// Policy file or folder; can be repeated
    #[arg(long = "policy", value_name = "PATH", env = "TOLLGATE_POLICY", value_delimiter = ',')]
    #[arg(id = "policy", help_heading = "Rules")]
    pub(in super::super) paths: Vec<PathBuf>,

    /// If a configuration file names the policies: the top of its repository, outside of which policies can read
    /// no files.
    #[arg(skip)]
    pub(in super::super) root: Option<PathBuf>,
}

/// The rules that run if `--rules` is not given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) enum DefaultRules {
    /// All rules, for manifests as their authors wrote them.
    Offline,
    /// All but `strict`, because a webhook never sees the fields that the API server dropped.
    Webhook,
    /// All but the impact of taint rules, because a stored rule has already taken effect.
    Stored,
}

impl PolicyArgs {
    /// Loads the policies of `--policy` together with policies that are custom resources.
    pub(in super::super) fn load(&self, resources: &[PolicyResource]) -> Result<Arc<PolicySet>, Failure> {
        Ok(Arc::new(policies::load_policy_set(&self.paths, self.root.as_deref(), resources)?))
    }
}

impl EngineArgs {
    /// Builds the engine for these flags and the profiles that they select. `standard` are the rules that run
    /// without `--rules`.
    pub(in super::super) fn engine(&self, standard: DefaultRules) -> Result<Engine, Failure> {
        self.engine_for(standard, self.release.profiles()?, &[])
    }

    /// Builds the engine for these flags, but for the given profiles, and with these policies of a cluster.
    pub(in super::super) fn engine_for(
        &self,
        standard: DefaultRules,
        profiles: Vec<&'static Profile>,
        resources: &[PolicyResource],
    ) -> Result<Engine, Failure> {
        Ok(self.engine_without_policies(standard, profiles)?.with_policies(self.policies.load(resources)?))
    }

    /// Builds the engine of `serve`, without policies, which it loads separately.
    #[cfg(feature = "serve")]
    pub(in super::super) fn serving_engine_without_policies(&self) -> Result<Engine, Failure> {
        Ok(self
            .engine_without_policies(DefaultRules::Webhook, self.release.initial_serve_profiles()?)?
            .for_server_requests())
    }

    /// Builds the engine for these flags and profiles, without policies.
    fn engine_without_policies(
        &self,
        standard: DefaultRules,
        profiles: Vec<&'static Profile>,
    ) -> Result<Engine, Failure> {
        let usual = |rule: &Rule| match standard {
            DefaultRules::Offline => true,
            DefaultRules::Webhook => rule.origin != RuleOrigin::Strict,
            DefaultRules::Stored => *rule != *TAINT_RULE_IMPACT,
        };
        let rules = self.rules.clone().unwrap_or_else(|| RuleSet::compile(usual));
        Ok(Engine::new(profiles, rules).with_classes(classes::load_resource_classes(&self.classes)?))
    }
}

fn parse_rule_list(list: &str) -> Result<RuleSet, String> {
    let words: Vec<&str> = list.split(',').map(str::trim).filter(|word| !word.is_empty()).collect();
    if words.is_empty() {
        return Err("the list is empty; specify at least one rule or origin".to_owned());
    }
    let known = |word: &str| {
        rules::find(word).is_some() || RuleOrigin::ALL.iter().any(|origin| origin.name() == word)
    };
    if let Some(unknown) = words.iter().find(|word| !known(word)) {
        return Err(unknown_rule_message(unknown));
    }
    RuleSet::parse(list)
}
