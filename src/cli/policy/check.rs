//! `tollgate policy check NAMESPACE [TOLERATION]`: may a claim in this namespace tolerate this, and by which policy?
//!
//! The verdict is that of the engine on a claim with the toleration and nothing else, so it is what `validate` and the
//! webhook say. Without a toleration, the entries that apply are listed.
//!
//! Invariant: `no` is exit code 1; what cannot be decided is an error, never `yes`.

mod toleration_arg;

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;

use super::printable_line;
use crate::cli::console::Console;
use crate::cli::manifests::parse_namespace;
use crate::cli::outcome::{Failure, Tally};
use crate::cli::shared::{PolicyArgs, ReleaseArgs};
use crate::cli::{clock, namespaces};
use toleration_arg::TolerationArg;
use tollgate_document::doc::{self, Doc, Value};
use tollgate_engine::engine::{Attributes, Engine, Labels, NamespaceLookup as _, Namespaces};
use tollgate_engine::policy::{ListedEntry, ListedTolerations, PolicyResource, PolicySet};
use tollgate_engine::rules::{Level, RuleSet};
use tollgate_engine::tolerance::coverage::{Effects, uncovered};
use tollgate_formats::{gofmt, gotime, sanitize};

/// Show what claims in a namespace may tolerate, or whether they may tolerate a taint
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Check {
    /// Namespace of the claim
    #[arg(value_name = "NAMESPACE", value_parser = parse_namespace)]
    namespace: String,
    /// Toleration, as KEY[=VALUE][:EFFECT[:SECONDS]]; `*` is every key
    ///
    /// Without a value, the operator is Exists. Without an effect, the toleration matches every effect. SECONDS is the
    /// value of tolerationSeconds. Without TOLERATION, all entries that apply to the namespace are listed.
    #[arg(value_name = "TOLERATION", value_parser = TolerationArg::parse)]
    toleration: Option<TolerationArg>,
    /// User who creates the claim (default: a user whom no policy exempts)
    #[arg(long = "as", value_name = "USER")]
    user: Option<String>,
    /// Group of the user; can be repeated
    #[arg(long = "as-group", value_name = "GROUP", requires = "user")]
    groups: Vec<String>,
    /// YAML or JSON file with the namespaces and their labels
    #[arg(long, value_name = "FILE", env = "TOLLGATE_NAMESPACES")]
    namespaces: Option<PathBuf>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: Output,
    #[command(flatten)]
    policies: PolicyArgs,
    #[command(flatten)]
    clock: clock::ClockArgs,
    #[command(flatten)]
    release: ReleaseArgs,
}

const AFTER_HELP: &str = "\
With --context, the policies that are custom resources of that cluster count in addition to those of --policy. If both
have the same kind and name, the file counts.

Policies that depend on the labels of namespaces require --namespaces or --context. With --context, the labels come from
that cluster.

Exit codes:
  0  the toleration is allowed, or TOLERATION is not specified
  1  the toleration is denied
  2  usage error
  3  a policy could not be read, the labels of the namespace are not known, or the cluster could not be reached
  4  internal error";

/// How the result is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Output {
    /// Human-readable text
    Text,
    /// JSON, for programs
    Json,
}

/// The result of `policy check` for `-o json`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    version: &'static str,
    namespace: String,
    user: Option<String>,
    groups: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    toleration: Option<Toleration>,
    policies: Vec<Listed>,
}

/// The verdict of the policies on the toleration that was asked for.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Toleration {
    verdict: &'static str,
    /// The entries that allow it.
    allowed_by: Vec<Entry>,
    /// Why it is not allowed, or allowed with a warning.
    findings: Vec<Finding>,
}

#[derive(Debug, Serialize)]
struct Finding {
    level: &'static str,
    policy: String,
    message: String,
}

/// The entries of the policies with one action.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    action: &'static str,
    restricted_by: Vec<String>,
    requires_key: Vec<String>,
    exempt: Vec<String>,
    allow: Vec<Entry>,
    deny: Vec<Entry>,
    expired: Vec<Entry>,
    defaults: Vec<Entry>,
}

#[derive(Clone, Debug, Serialize)]
struct Entry {
    policy: String,
    source: String,
    location: String,
    entry: String,
    reason: Option<String>,
    expires: Option<String>,
    conditional: bool,
}

impl From<&ListedEntry> for Entry {
    fn from(listed: &ListedEntry) -> Entry {
        Entry {
            policy: listed.policy.clone(),
            source: listed.source.clone(),
            location: listed.location.clone(),
            entry: listed.text.clone(),
            reason: listed.reason.clone(),
            expires: listed.expires.clone(),
            conditional: listed.is_conditional,
        }
    }
}

impl Entry {
    /// `{key: a/b}, allow[0] of TolerationPolicy/research (research.yaml:1), expires 2027-01-01T00:00:00Z: the reason`
    fn text(&self) -> String {
        let place = if self.source == self.policy { String::new() } else { format!(" ({})", self.source) };
        let mut text = format!("{}, {} of {}{place}", self.entry, self.location, self.policy);
        if let Some(expires) = &self.expires {
            _ = write!(text, ", expires {expires}");
        }
        if self.conditional {
            text.push_str(", if its match conditions hold");
        }
        if let Some(reason) = &self.reason {
            _ = write!(text, ": {reason}");
        }
        text
    }
}

impl From<&ListedTolerations> for Listed {
    fn from(listed: &ListedTolerations) -> Listed {
        let entries = |list: &[ListedEntry]| list.iter().map(Entry::from).collect();
        Listed {
            action: listed.action.name(),
            restricted_by: listed.restricted_by.clone(),
            requires_key: listed.requires_key.clone(),
            exempt: listed.exempt.clone(),
            allow: entries(&listed.allow),
            deny: entries(&listed.deny),
            expired: entries(&listed.expired),
            defaults: entries(&listed.defaults),
        }
    }
}

impl Check {
    pub(super) fn run(&self, console: &mut Console) -> Result<Tally, Failure> {
        let (resources, live_namespace) = self.read_cluster()?;
        let policies = self.policies.load_with(&resources)?;
        if policies.is_empty() {
            let hint = "set --policy PATH, or --context NAME for the policies of a cluster";
            return Err(Failure::Usage(format!("there are no policies; {hint}")));
        }
        let namespaces = match &self.namespaces {
            Some(file) => Some(namespaces::read(file)?),
            None => live_namespace,
        };
        let labels = namespaces.labels(&self.namespace);
        let user = self.user_json();
        let user = user.as_deref().map(doc::parse).transpose();
        let user = user.map_err(|error| Failure::Usage(format!("--as: {}", error.detail)))?;
        let user = user.as_ref().map_or(Value::absent(), Doc::root);
        let now = self.clock.now();
        let Ok(time) = gotime::parse(&now) else {
            return Err(Failure::Usage(format!("{now:?} is not a time")));
        };
        let listed = policies.tolerations(&self.namespace, labels, user, time).map_err(|policy| {
            let namespace = &self.namespace;
            Failure::Input(format!(
                "{policy} selects namespaces by label, but the labels of namespace {namespace} are not known; set \
                 --namespaces FILE or --context NAME"
            ))
        })?;
        let toleration = match &self.toleration {
            Some(toleration) => Some(self.verdict(toleration, &policies, &listed, labels, user, &now)?),
            None => None,
        };
        let is_denied = toleration.as_ref().is_some_and(|toleration| toleration.verdict == "no");
        let answer = Answer {
            version: env!("CARGO_PKG_VERSION"),
            namespace: self.namespace.clone(),
            user: self.user.clone(),
            groups: self.all_groups(),
            toleration,
            policies: listed.iter().map(Listed::from).collect(),
        };
        match self.output {
            Output::Text => self.write_text(&answer, console)?,
            Output::Json => {
                let text = serde_json::to_string(&answer).map_err(anyhow::Error::from)?;
                writeln!(console, "{}", sanitize::json(&text))?;
            }
        }
        Ok(Tally { denied: usize::from(is_denied), ..Tally::default() })
    }

    /// The groups of the user, with those that the API server adds.
    fn all_groups(&self) -> Vec<String> {
        let mut groups = self.groups.clone();
        let Some(user) = &self.user else { return groups };
        if let Some((namespace, _)) =
            user.strip_prefix("system:serviceaccount:").and_then(|account| account.split_once(':'))
        {
            groups
                .extend(["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")]);
        }
        groups.push("system:authenticated".to_owned());
        groups.dedup();
        groups
    }

    /// `userInfo` of the request; `None` if no user is given.
    fn user_json(&self) -> Option<String> {
        let mut json = String::from("{\"username\":");
        gofmt::json_string(&mut json, self.user.as_ref()?);
        json.push_str(",\"groups\":[");
        for (index, group) in self.all_groups().iter().enumerate() {
            json.push_str(if index > 0 { "," } else { "" });
            gofmt::json_string(&mut json, group);
        }
        json.push_str("]}");
        Some(json)
    }

    /// The policies and the labels of the namespace in the cluster of `--context`; nothing if it is not given, and no
    /// labels if `--namespaces` has them.
    #[cfg(feature = "cluster")]
    fn read_cluster(&self) -> Result<(Vec<PolicyResource>, Option<Namespaces>), Failure> {
        if !self.release.server.context.is_named() {
            return Ok((Vec::new(), None));
        }
        let asked = self.release.live_server()?;
        let resources = crate::cli::policies::read_resources(&asked.cluster)?;
        if self.namespaces.is_some() {
            return Ok((resources, None));
        }
        let name = &self.namespace;
        let text = asked.cluster.get_object(&crate::cluster::NAMESPACES, name).map_err(|error| {
            Failure::Input(match error.code() {
                404 => format!("namespace {name} does not exist"),
                _ => format!("cannot get namespace {name}: {error}"),
            })
        })?;
        let document = doc::parse(&text).map_err(|error| Failure::Input(error.detail.clone()))?;
        let mut namespaces = Namespaces::new(false);
        namespaces.add(document.root());
        Ok((resources, Some(namespaces)))
    }

    #[cfg(not(feature = "cluster"))]
    #[expect(
        clippy::unused_self,
        clippy::unnecessary_wraps,
        reason = "the same call with and without the feature"
    )]
    fn read_cluster(&self) -> Result<(Vec<PolicyResource>, Option<Namespaces>), Failure> {
        Ok((Vec::new(), None))
    }

    /// Checks a new claim with this toleration against the policies.
    fn verdict(
        &self,
        toleration: &TolerationArg,
        policies: &Arc<PolicySet>,
        listed: &[ListedTolerations],
        labels: Labels<'_>,
        user: Value<'_>,
        now: &str,
    ) -> Result<Toleration, Failure> {
        let rules = RuleSet::parse("policy-toleration,policy-lookup").map_err(Failure::Usage)?;
        let engine = Engine::new(self.release.profiles()?, rules).with_policies(Arc::clone(policies));
        let claim = format!(
            r#"{{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{{"name":"check","namespace":"{}"}},"spec":{{"devices":{{"requests":[{{"name":"check","exactly":{{"deviceClassName":"check","tolerations":[{}]}}}}]}}}}}}"#,
            self.namespace,
            toleration.json()
        );
        let claim = doc::parse(&claim).map_err(|error| Failure::Usage(error.detail.clone()))?;
        let request = Attributes { user, ..Attributes::create(claim.root(), &self.namespace, now) };
        let verdict = engine.validate(&request, labels);
        let findings = verdict.findings();
        let tolerated = toleration.tolerated();
        let every = tolerated.effects.without(Effects::NONE);
        let allows = |entry: &&ListedEntry| {
            let entry = entry.entry.as_ref();
            entry.is_some_and(|entry| uncovered(&tolerated, [entry]) != every)
        };
        let is_denied = !verdict.allowed();
        let restricted = listed.iter().filter(|listed| !listed.restricted_by.is_empty());
        let allowed_by: Vec<Entry> = if is_denied {
            Vec::new()
        } else {
            restricted.flat_map(|listed| listed.allow.iter().filter(allows)).map(Entry::from).collect()
        };
        Ok(Toleration {
            verdict: match findings.iter().map(|finding| finding.level).max() {
                Some(Level::Deny) => "no",
                Some(Level::Warn) => "warn",
                Some(Level::Audit) | None => "yes",
            },
            allowed_by,
            findings: findings
                .iter()
                .map(|diagnostic| Finding {
                    level: diagnostic.level.name(),
                    policy: diagnostic
                        .policy
                        .as_ref()
                        .map(|policy| policy.id().to_owned())
                        .unwrap_or_default(),
                    message: diagnostic.body(),
                })
                .collect(),
        })
    }

    fn write_text(&self, answer: &Answer, console: &mut Console) -> Result<(), Failure> {
        let Some(toleration) = &answer.toleration else { return self.write_list(answer, console) };
        let word = match toleration.verdict {
            "warn" => "yes, with a warning",
            word => word,
        };
        writeln!(console, "{word}")?;
        for entry in &toleration.allowed_by {
            writeln!(console, "  allowed by {}", printable_line(&entry.text()))?;
        }
        for finding in &toleration.findings {
            writeln!(console, "  {}: {}", finding.level, printable_line(&finding.message))?;
        }
        let exempt: Vec<&String> = answer.policies.iter().flat_map(|listed| &listed.exempt).collect();
        for policy in &exempt {
            writeln!(console, "  the user is exempt from {}", printable_line(policy))?;
        }
        if toleration.allowed_by.is_empty() && toleration.findings.is_empty() && exempt.is_empty() {
            writeln!(console, "  no policy restricts this toleration in namespace {}", answer.namespace)?;
        }
        Ok(())
    }

    /// Prints the allow and deny entries that apply in the namespace.
    fn write_list(&self, answer: &Answer, console: &mut Console) -> Result<(), Failure> {
        if answer.policies.is_empty() {
            writeln!(console, "no policy restricts tolerations in namespace {}", self.namespace)?;
        }
        for listed in &answer.policies {
            let what = match listed.action {
                "deny" => "denied",
                "warn" => "warned about",
                _ => "audited",
            };
            let rest = if listed.restricted_by.is_empty() {
                format!("all tolerations are allowed, except those that are {what} below")
            } else {
                format!("tolerations that no entry allows are {what} by {}", listed.restricted_by.join(", "))
            };
            writeln!(console, "{}", printable_line(&format!("{}: {rest}", listed.action)))?;
            let lists = [
                ("allow", &listed.allow),
                ("deny", &listed.deny),
                ("expired", &listed.expired),
                ("added", &listed.defaults),
            ];
            for (word, entries) in lists {
                for entry in entries {
                    writeln!(console, "  {word} {}", printable_line(&entry.text()))?;
                }
            }
            for policy in &listed.requires_key {
                writeln!(console, "  deny tolerations without a key, {}", printable_line(policy))?;
            }
            for policy in &listed.exempt {
                writeln!(console, "  the user is exempt from {}", printable_line(policy))?;
            }
        }
        Ok(())
    }
}
