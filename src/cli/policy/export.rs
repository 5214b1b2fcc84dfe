//! `tollgate policy export --to vap`: the policies as ValidatingAdmissionPolicies with their bindings.
//!
//! The engine writes the expressions; here they become manifests. What is left out is in comments, in `-o json` and in
//! the exit code.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::iter;

use clap::ValueEnum;

use super::super::clock;
use super::super::console::Console;
use super::super::manifests::parse_namespace;
use super::super::mutate::print;
use super::super::outcome::{ExitCounts, Failure};
#[cfg(feature = "cluster")]
use super::super::policies;
use super::super::shared::{PolicyArgs, ReleaseArgs};
use crate::report::record::{Json, collect_records, record};
use tollgate_api::profile::{self, Profile};
use tollgate_document::doc;
use tollgate_engine::policy::{
    AdmissionPolicy, AdmissionPolicyExport as Exported, ExportedValidation, NamedExpression, Omission,
    PolicyResource, PolicySet,
};
use tollgate_engine::rules::FindingLevel;
use tollgate_formats::gotime;

/// The annotation with the digest of the exported policies.
pub(in crate::cli) const DIGEST_ANNOTATION: &str = "tollgate.dev/policy-digest";
/// The annotation with the version of Tollgate.
const VERSION_ANNOTATION: &str = "tollgate.dev/version";
/// The annotation with the releases that the export is for.
const RELEASES_ANNOTATION: &str = "tollgate.dev/kubernetes";
/// Maximum number of characters of a CEL expression that API servers accept.
const MAX_EXPRESSION_CHARS: usize = 100_000;

/// Print the policies in a form that the API server evaluates without Tollgate
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Export {
    /// What to print: `vap` for ValidatingAdmissionPolicies with their bindings
    #[arg(long, value_name = "FORM")]
    to: ExportForm,

    #[command(flatten)]
    policies: PolicyArgs,

    /// Namespace that Tollgate runs in, to exempt it as the webhook does (default: exempt only kube-system)
    #[arg(long, value_name = "NAME", value_parser = parse_namespace)]
    namespace: Option<String>,

    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "yaml")]
    output: Output,

    #[command(flatten)]
    clock: clock::ClockArgs,

    #[command(flatten)]
    release: ReleaseArgs,
}

const AFTER_HELP: &str = "\
Without --kubernetes, the policies are exported for the newest release, or with --context for that of the cluster.
With --context and without --policy, the policies that are custom resources of the cluster are exported.

Exit codes:
  0  everything was exported
  1  parts of the policies were left out; the output lists them
  2  usage error
  3  the policies could not be loaded, or are too large
  4  internal error";

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ExportForm {
    /// ValidatingAdmissionPolicies with their bindings
    Vap,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Output {
    /// Manifests for `kubectl apply`; comments list what is left out
    Yaml,
    /// JSON, for programs
    Json,
}

impl Export {
    pub(super) fn run(&self, console: &mut Console) -> Result<ExitCounts, Failure> {
        let ExportForm::Vap = self.to;
        #[cfg(feature = "cluster")]
        let resources = self.policies_of_context()?;
        #[cfg(not(feature = "cluster"))]
        let resources: Vec<PolicyResource> = Vec::new();
        if self.policies.paths.is_empty() && resources.is_empty() {
            let hint = "set --policy PATH, or --context NAME for the policies of a cluster";
            return Err(Failure::Usage(format!("there are no policies; {hint}")));
        }
        let profiles = self.releases()?;
        let set = self.policies.load(&resources)?;
        let now = gotime::parse_rfc3339(&self.clock.now())
            .map_err(|reason| Failure::Usage(format!("--now: {reason}")))?;
        let export = set.export_as_admission_policies(&profiles, now);
        check_expression_lengths(&export)?;
        let releases: Vec<&str> = profiles.iter().map(|profile| profile.name).collect();
        let manifests: Vec<Json> = export
            .policies
            .iter()
            .flat_map(|policy| self.policy_and_binding(policy, &set, &releases.join(",")))
            .collect();
        match self.output {
            Output::Json => {
                let report = record! {
                    "complete": export.omissions.is_empty(),
                    "policyDigest": set.digest(),
                    "kubernetes": releases,
                    "omitted": collect_records(export.omissions.iter().map(omission_record)),
                    "items": manifests,
                };
                writeln!(console, "{}", super::super::to_safe_json(&report)?)?;
            }
            Output::Yaml => {
                console.write_all(comment_header(&export, &releases).as_bytes())?;
                for manifest in &manifests {
                    let parsed = doc::parse(manifest.get()).map_err(|error| anyhow::anyhow!("{error}"))?;
                    write!(console, "---\n{}", print::to_block_yaml(parsed.root()))?;
                }
            }
        }
        Ok(ExitCounts { denied: export.omissions.len(), ..ExitCounts::default() })
    }

    /// Reads the policies that are custom resources of the cluster of `--context` or `--kubeconfig`, unless `--policy` is
    /// given.
    #[cfg(feature = "cluster")]
    fn policies_of_context(&self) -> Result<Vec<PolicyResource>, Failure> {
        if self.policies.paths.is_empty() && self.release.server.context.names_cluster_of_policies(false) {
            let asked = self.release.live_server()?;
            return Ok(policies::read_resources(&asked.cluster)?);
        }
        Ok(Vec::new())
    }

    /// Returns the releases of `--kubernetes`, or the newest; an error for drafts, which no API server
    /// implements.
    fn releases(&self) -> Result<Vec<&'static Profile>, Failure> {
        if self.release.has_no_kubernetes_or_context_flag() {
            let newest = profile::ALL.iter().rfind(|profile| profile.is_release);
            return Ok(newest.into_iter().copied().collect());
        }
        let profiles = self.release.profiles()?;
        match profiles.iter().find(|profile| !profile.is_release) {
            Some(draft) => Err(Failure::Usage(format!(
                "--kubernetes {}: no API server implements this draft; use a release, such as 1.37",
                draft.name
            ))),
            None => Ok(profiles),
        }
    }

    /// Returns the manifests of a ValidatingAdmissionPolicy and its binding.
    fn policy_and_binding(&self, policy: &AdmissionPolicy, set: &PolicySet, releases: &str) -> [Json; 2] {
        let name = policy.name();
        let annotations = BTreeMap::from([
            (DIGEST_ANNOTATION, set.digest()),
            (VERSION_ANNOTATION, env!("CARGO_PKG_VERSION")),
            (RELEASES_ANNOTATION, releases),
        ]);
        let metadata = record! {
            "name": name,
            "labels": record! { "app.kubernetes.io/name": "tollgate" },
            "annotations": annotations,
        };
        let exempt: Vec<&str> = ["kube-system"].into_iter().chain(self.namespace.as_deref()).collect();
        let selector = record! {
            "matchExpressions": [record! {
                "key": "kubernetes.io/metadata.name",
                "operator": "NotIn",
                "values": exempt,
            }],
        };
        let constraints = record! {
            "matchPolicy": "Equivalent",
            "namespaceSelector" if given: policy.kind.is_namespaced().then_some(selector),
            "resourceRules": [record! {
                "apiGroups": [policy.kind.group()],
                "apiVersions": ["*"],
                "operations": ["CREATE", "UPDATE"],
                "resources": [policy.kind.resource()],
            }],
        };
        let validation = |validation: &ExportedValidation| {
            record! {
                "expression": validation.expression,
                "message": validation.message,
                "messageExpression" if given: validation.message_expression,
                "reason": "Forbidden",
            }
        };
        let spec = record! {
            "failurePolicy": if policy.ignores_failures { "Ignore" } else { "Fail" },
            "matchConstraints": constraints,
            "matchConditions": collect_records(policy.match_conditions.iter().map(expression_record)),
            "variables" if given: collect_records(policy.variables.iter().map(expression_record)),
            "validations": collect_records(policy.validations.iter().map(validation)),
        };
        let actions: &[&str] = match policy.action {
            FindingLevel::Deny => &["Deny", "Audit"],
            FindingLevel::Warn => &["Warn", "Audit"],
            FindingLevel::Audit => &["Audit"],
        };
        let binding = record! { "policyName": name, "validationActions": actions };
        [("ValidatingAdmissionPolicy", spec), ("ValidatingAdmissionPolicyBinding", binding)].map(
            |(kind, spec)| {
                record! {
                    "apiVersion": "admissionregistration.k8s.io/v1",
                    "kind": kind,
                    "metadata": metadata,
                    "spec": spec,
                }
            },
        )
    }
}

/// An item of `matchConditions` or `variables`.
fn expression_record(item: &NamedExpression) -> Json {
    record! { "name": item.name, "expression": item.expression }
}

/// Returns an error if an expression is longer than API servers accept.
fn check_expression_lengths(export: &Exported) -> Result<(), Failure> {
    for policy in &export.policies {
        let validations = policy.validations.iter();
        let validations = validations
            .flat_map(|one: &ExportedValidation| iter::once(&one.expression).chain(&one.message_expression));
        let texts = policy.variables.iter().map(|variable| &variable.expression).chain(validations);
        if let Some(long) =
            texts.map(|text| text.chars().count()).max().filter(|long| *long > MAX_EXPRESSION_CHARS)
        {
            return Err(Failure::Input(format!(
                "the policies for {} are too large: an expression has {long} characters, and API servers accept at most \
                 {MAX_EXPRESSION_CHARS}",
                policy.kind.resource()
            )));
        }
    }
    Ok(())
}

/// Returns a part of a policy that the export leaves out, for `-o json`.
fn omission_record(omission: &Omission) -> Json {
    record! {
        "policy": omission.policy,
        "source": omission.source,
        "field": omission.field,
        "reason": omission.reason.name(),
        "message": omission.message,
    }
}

/// Returns the comments at the start of the YAML, which list what is left out.
fn comment_header(export: &Exported, releases: &[&str]) -> String {
    let mut lines = vec![format!(
        "ValidatingAdmissionPolicies for Kubernetes {}, exported by Tollgate {}.",
        releases.join(", "),
        env!("CARGO_PKG_VERSION")
    )];
    if export.omissions.is_empty() {
        lines.push("All policies are exported completely.".to_owned());
    } else {
        lines.push("The following parts of policies are not exported:".to_owned());
    }
    for Omission { policy, source, field, message, .. } in &export.omissions {
        lines.push(format!("- {policy} ({source}), {field}: {message}"));
    }
    let line = |line: String| format!("# {}\n", super::printable_line(&line));
    lines.into_iter().map(line).collect()
}
