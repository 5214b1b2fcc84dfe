//! `tollgate policy check NAMESPACE [TOLERATION]`: may a claim in this namespace tolerate this, and by which policy?
//!
//! The verdict is that of the engine on a claim with the toleration and nothing else, so it is what `validate` and the
//! webhook say. Without a toleration, the entries that apply are listed.
//!
//! Invariant: `no` is exit code 1; what cannot be decided is an error, never `yes`.

mod claim_dependent;
mod toleration_arg;

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use super::printable_line;
use crate::cli::console::Console;
use crate::cli::manifests::parse_namespace;
use crate::cli::outcome::{ExitCounts, Failure};
use crate::cli::shared::{PolicyArgs, ReleaseArgs};
use crate::cli::version::Output;
use crate::cli::{clock, namespaces, to_safe_json};
use crate::report::record::{Json, collect_records, record};
use toleration_arg::TolerationArg;
use tollgate_api::profile::Profile;
use tollgate_document::doc::{self, Doc, Value};
use tollgate_engine::engine::{
    Attributes, Diagnostic, Engine, LabelsIfKnown, LoadedNamespaces, NamespaceLabelLookup as _, Verdict,
};
use tollgate_engine::policy::{
    ListedEntry, ListedTolerationEntries, PolicyLocation, PolicyResource, PolicySet,
};
use tollgate_engine::rules::{FindingLevel, RuleSet};
use tollgate_engine::tolerance::coverage::{EffectSet, uncovered_effects};
use tollgate_formats::gotime;

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
With --context, the policies that are custom resources of that cluster count in addition to those of --policy.
If both have the same kind and name, the file counts. Without --policy, --kubeconfig is sufficient.

Policies that depend on the labels of namespaces require --namespaces or --context. With --context,
the labels come from that cluster.

Exit codes:
  0  the toleration is allowed, or TOLERATION is not specified
  1  the toleration is denied
  2  usage error
  3  a policy could not be read, the labels of the namespace are not known, the verdict depends on more of the
     claim, or the cluster could not be reached
  4  internal error";

/// The verdict of the policies on the toleration in the command line.
#[derive(Debug)]
struct TolerationVerdict<'p> {
    verdict: &'static str,
    /// The entries that allow it.
    allowed_by: Vec<&'p ListedEntry>,
    /// Why it is not allowed, or allowed with a warning.
    findings: Verdict,
}

impl TolerationVerdict<'_> {
    fn record(&self) -> Json {
        let finding = |diagnostic: &Diagnostic| {
            record! {
                "level": diagnostic.level.name(),
                "policy": diagnostic.policy.as_ref().map_or("", PolicyLocation::kind_and_name),
                "message": diagnostic.message_without_path(),
            }
        };
        record! {
            "verdict": self.verdict,
            "allowedBy": collect_records(self.allowed_by.iter().map(|entry| entry_record(entry))),
            "findings": collect_records(self.findings.findings().iter().map(finding)),
        }
    }
}

/// Returns the entries of the policies with one action as JSON.
fn listed_record(listed: &ListedTolerationEntries) -> Json {
    let entries = |entries: &[ListedEntry]| collect_records(entries.iter().map(entry_record));
    record! {
        "action": listed.action.name(),
        "restrictedBy": listed.restricted_by,
        "requiresKey": listed.requires_key,
        "exempt": listed.exempt,
        "claimDependent": collect_records(listed.claim_dependent.iter().map(claim_dependent::to_record)),
        "allow": entries(&listed.allow),
        "deny": entries(&listed.deny),
        "expired": entries(&listed.expired),
        "defaults": entries(&listed.defaults),
    }
}

fn entry_record(entry: &ListedEntry) -> Json {
    record! {
        "policy": entry.policy,
        "source": entry.source,
        "location": entry.location,
        "entry": entry.text,
        "reason": entry.reason,
        "expires": entry.expires,
        "conditional": entry.is_conditional,
    }
}

/// Returns an entry as a line: `{key: a/b}, allow[0] of TolerationPolicy/research (research.yaml:1), expires
/// 2027-01-01T00:00:00Z: the reason`
fn entry_line(entry: &ListedEntry) -> String {
    let ListedEntry { policy, source, location, text, .. } = entry;
    let place = if source == policy { String::new() } else { format!(" ({source})") };
    let mut line = format!("{text}, {location} of {policy}{place}");
    if let Some(expires) = &entry.expires {
        _ = write!(line, ", expires {expires}");
    }
    if entry.is_conditional {
        line.push_str(", if its match conditions hold");
    }
    if let Some(reason) = &entry.reason {
        _ = write!(line, ": {reason}");
    }
    printable_line(&line)
}

impl Check {
    pub(super) fn run(&self, console: &mut Console) -> Result<ExitCounts, Failure> {
        #[cfg(feature = "cluster")]
        let (resources, live_namespace) = self.read_policies_and_namespace_of_context()?;
        #[cfg(not(feature = "cluster"))]
        let (resources, live_namespace): (Vec<PolicyResource>, Option<LoadedNamespaces>) = Default::default();
        let policies = self.policies.load(&resources)?;
        if policies.is_empty() {
            let hint = "set --policy PATH, or --context NAME for the policies of a cluster";
            return Err(Failure::Usage(format!("there are no policies; {hint}")));
        }
        let namespaces = match &self.namespaces {
            Some(file) => Some(namespaces::read_file(file)?),
            None => live_namespace,
        };
        let labels = namespaces.labels(&self.namespace);
        let user = self.user_json();
        let user = user.as_ref().map(|user| doc::parse(user.get())).transpose();
        let user = user.map_err(|error| Failure::Usage(format!("--as: {}", error.detail)))?;
        let user = user.as_ref().map_or(Value::absent(), Doc::root);
        let now = self.clock.now();
        let Ok(time) = gotime::parse_rfc3339(&now) else {
            return Err(Failure::Usage(format!("{now:?} is not a time")));
        };
        let listed = policies.listed_tolerations(&self.namespace, labels, user, time).map_err(|policy| {
            let namespace = &self.namespace;
            Failure::Input(format!(
                "{policy} selects namespaces by label, but the labels of namespace {namespace} are not known; set \
                 --namespaces FILE or --context NAME"
            ))
        })?;
        let check = |toleration| self.check_toleration(toleration, &policies, &listed, labels, user, &now);
        let toleration = self.toleration.as_ref().map(check).transpose()?;
        let is_denied = toleration.as_ref().is_some_and(|toleration| toleration.verdict == "no");
        match (self.output, &toleration) {
            (Output::Text, Some(toleration)) => self.write_verdict(toleration, &listed, console)?,
            (Output::Text, None) => self.write_allow_and_deny_entries(&listed, console)?,
            (Output::Json, _) => {
                let answer = record! {
                    "version": env!("CARGO_PKG_VERSION"),
                    "namespace": self.namespace,
                    "user": self.user,
                    "groups": self.explicit_and_implicit_user_groups(),
                    "toleration" if given: toleration.as_ref().map(TolerationVerdict::record),
                    "policies": collect_records(listed.iter().map(listed_record)),
                };
                writeln!(console, "{}", to_safe_json(&answer)?)?;
            }
        }
        Ok(ExitCounts { denied: usize::from(is_denied), ..ExitCounts::default() })
    }

    /// Returns the groups of `--as-group`, and those that the API server adds for every user and service account.
    fn explicit_and_implicit_user_groups(&self) -> Vec<String> {
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

    /// Returns the `userInfo` of the request as JSON; `None` without `--as`.
    fn user_json(&self) -> Option<Json> {
        let user = self.user.as_ref()?;
        Some(record! { "username": user, "groups": self.explicit_and_implicit_user_groups() })
    }

    #[cfg(feature = "cluster")]
    fn reads_cluster(&self) -> bool {
        self.release.server.context.names_cluster_of_policies(!self.policies.paths.is_empty())
    }

    /// Reads the policies and the namespace from the cluster if it is asked for; no namespace if `--namespaces` has it.
    #[cfg(feature = "cluster")]
    fn read_policies_and_namespace_of_context(
        &self,
    ) -> Result<(Vec<PolicyResource>, Option<LoadedNamespaces>), Failure> {
        if !self.reads_cluster() {
            return Ok((Vec::new(), None));
        }
        let asked = self.release.live_server()?;
        let resources = crate::cli::policies::read_resources(&asked.cluster)?;
        if self.namespaces.is_some() {
            return Ok((resources, None));
        }
        let name = &self.namespace;
        let text =
            asked.cluster.get_cluster_scoped_object(&crate::cluster::NAMESPACES, name).map_err(|error| {
                Failure::Input(match error.http_status_or_zero() {
                    404 => format!("namespace {name} does not exist"),
                    _ => format!("cannot get namespace {name}: {error}"),
                })
            })?;
        let document = doc::parse(&text).map_err(|error| Failure::Input(error.detail.clone()))?;
        let mut namespaces = LoadedNamespaces::new(false);
        namespaces.add(document.root());
        Ok((resources, Some(namespaces)))
    }

    /// Returns the release to check the claim against: that of the cluster whose policies are read.
    fn profiles(&self) -> Result<Vec<&'static Profile>, Failure> {
        #[cfg(feature = "cluster")]
        if self.reads_cluster() {
            return self.release.live_profiles();
        }
        self.release.profiles()
    }

    /// Checks a new claim with this toleration against the policies.
    fn check_toleration<'p>(
        &self,
        toleration: &TolerationArg,
        policies: &Arc<PolicySet>,
        listed: &'p [ListedTolerationEntries],
        labels: LabelsIfKnown<'_>,
        user: Value<'_>,
        now: &str,
    ) -> Result<TolerationVerdict<'p>, Failure> {
        let rules = RuleSet::parse("policy-toleration,policy-lookup").map_err(Failure::Usage)?;
        let engine = Engine::new(self.profiles()?, rules).with_policies(Arc::clone(policies));
        let claim = format!(
            r#"{{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{{"name":"check","namespace":"{}"}},"spec":{{"devices":{{"requests":[{{"name":"check","exactly":{{"deviceClassName":"check","tolerations":[{}]}}}}]}}}}}}"#,
            self.namespace,
            toleration.to_json()
        );
        let claim = doc::parse(&claim).map_err(|error| Failure::Usage(error.detail.clone()))?;
        let request = Attributes { user, ..Attributes::for_create(claim.root(), &self.namespace, now) };
        let findings = engine.validate(&request, labels);
        let tolerated = toleration.tolerated_taints();
        let every = tolerated.effects.difference(EffectSet::EFFECT_NONE);
        let allows = |entry: &&ListedEntry| {
            let entry = entry.entry.as_ref();
            entry.is_some_and(|entry| uncovered_effects(&tolerated, [entry]) != every)
        };
        let is_allowed = findings.is_allowed();
        if let Some(policies) = claim_dependent::undecided_policies(toleration, listed, is_allowed) {
            return Err(Failure::Input(format!(
                "whether the toleration is allowed depends on more of the claim: {policies}; check a claim with \
                 `tollgate validate`"
            )));
        }
        let restricted = listed.iter().filter(|listed| is_allowed && !listed.restricted_by.is_empty());
        Ok(TolerationVerdict {
            verdict: match findings.findings().iter().map(|finding| finding.level).max() {
                Some(FindingLevel::Deny) => "no",
                Some(FindingLevel::Warn) => "warn",
                Some(FindingLevel::Audit) | None => "yes",
            },
            allowed_by: restricted.flat_map(|listed| listed.allow.iter().filter(allows)).collect(),
            findings,
        })
    }

    fn write_verdict(
        &self,
        toleration: &TolerationVerdict<'_>,
        listed: &[ListedTolerationEntries],
        console: &mut Console,
    ) -> Result<(), Failure> {
        let TolerationVerdict { verdict, allowed_by, findings } = toleration;
        writeln!(console, "{}", if *verdict == "warn" { "yes, with a warning" } else { verdict })?;
        for entry in allowed_by {
            writeln!(console, "  allowed by {}", entry_line(entry))?;
        }
        for finding in findings.findings() {
            writeln!(
                console,
                "  {}: {}",
                finding.level.name(),
                printable_line(&finding.message_without_path())
            )?;
        }
        let exempt: Vec<&String> = listed.iter().flat_map(|listed| &listed.exempt).collect();
        for policy in &exempt {
            writeln!(console, "  the user is exempt from {}", printable_line(policy))?;
        }
        if allowed_by.is_empty() && findings.findings().is_empty() && exempt.is_empty() {
            writeln!(console, "  no policy restricts this toleration in namespace {}", self.namespace)?;
        }
        Ok(())
    }

    /// Prints the allow and deny entries that apply in the namespace.
    fn write_allow_and_deny_entries(
        &self,
        all: &[ListedTolerationEntries],
        console: &mut Console,
    ) -> Result<(), Failure> {
        if all.is_empty() {
            writeln!(console, "no policy restricts tolerations in namespace {}", self.namespace)?;
        }
        for listed in all {
            let what = match listed.action {
                FindingLevel::Deny => "denied",
                FindingLevel::Warn => "warned about",
                FindingLevel::Audit => "audited",
            };
            let rest = if listed.restricted_by.is_empty() {
                format!("all tolerations are allowed, except those that are {what} below")
            } else {
                format!("tolerations that no entry allows are {what} by {}", listed.restricted_by.join(", "))
            };
            writeln!(console, "{}", printable_line(&format!("{}: {rest}", listed.action.name())))?;
            let lists = [
                ("allow", &listed.allow),
                ("deny", &listed.deny),
                ("expired", &listed.expired),
                ("added", &listed.defaults),
            ];
            for (word, entries) in lists {
                for entry in entries {
                    writeln!(console, "  {word} {}", entry_line(entry))?;
                }
            }
            for policy in &listed.requires_key {
                writeln!(console, "  deny tolerations without a key, {}", printable_line(policy))?;
            }
            for policy in &listed.exempt {
                writeln!(console, "  the user is exempt from {}", printable_line(policy))?;
            }
            for dependent in &listed.claim_dependent {
                let line = claim_dependent::describe(dependent);
                writeln!(console, "  {}", printable_line(&line))?;
            }
        }
        Ok(())
    }
}
