//! The metrics of the server. Every label has a fixed set of values, or the names of loaded policies, up to a limit;
//! namespaces, names of objects and users are never labels.
//!
//! Handles are looked up once and kept: a request costs a few atomic additions and no allocation.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Metric, Registry};

use tollgate_api::review::Operation;
use tollgate_engine::engine::{Decision, Diagnostic, Endpoint, Engine};
use tollgate_engine::policy::ExpiringTolerationAllowEntry;
use tollgate_engine::rules::FindingLevel;

/// Label names with their values.
type Labels<const N: usize> = [(&'static str, &'static str); N];

/// Bucket bounds in seconds: a decision takes tens of microseconds, and the API server times out after seconds.
const LATENCY_BUCKETS: [f64; 10] = [25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 10e-3, 50e-3, 250e-3];

/// The checked resources, as label values; the last stands for all others.
const RESOURCE_LABELS: [&str; 23] = [
    "resourceclaims",
    "resourceclaims/status",
    "resourceclaimtemplates",
    "resourceslices",
    "resourceslicepatches",
    "devicetaintrules",
    "devicetaintrules/status",
    "deviceclasses",
    "resourceclasses",
    "pods",
    "pods/ephemeralcontainers",
    "deployments",
    "statefulsets",
    "daemonsets",
    "replicasets",
    "jobs",
    "cronjobs",
    "foundationdbclusters",
    "tolerationpolicies",
    "taintpolicies",
    "taintrulepolicies",
    "parameterpolicies",
    "other",
];

/// Status codes of requests without a decision, as label values; the last stands for all others.
const ERROR_CODES: [&str; 9] = ["400", "404", "405", "408", "413", "415", "500", "503", "other"];

/// Maximum number of policies, or entries of policies, that are labels of one metric.
const MAX_POLICY_LABELS: usize = 200;

/// The result of a checked request, as the value of a metric label.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RequestOutcome {
    Allowed,
    Denied,
    Patched,
}

impl RequestOutcome {
    const ALL: [RequestOutcome; 3] =
        [RequestOutcome::Allowed, RequestOutcome::Denied, RequestOutcome::Patched];

    /// `Denied` if the decision denies, `Patched` if it has edits, else `Allowed`.
    pub(super) fn from_decision(decision: &Decision) -> RequestOutcome {
        match decision {
            decision if !decision.verdict.is_allowed() => RequestOutcome::Denied,
            decision if !decision.edits.is_empty() => RequestOutcome::Patched,
            _ => RequestOutcome::Allowed,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            RequestOutcome::Allowed => "allowed",
            RequestOutcome::Denied => "denied",
            RequestOutcome::Patched => "patched",
        }
    }
}

/// The label value of a resource: its name, or `other` for one that is not among [`RESOURCE_LABELS`].
pub(super) fn resource_label(resource: &str, sub_resource: &str) -> &'static str {
    let same = |label: &&&str| match label.split_once('/') {
        Some((name, sub)) => name == resource && sub == sub_resource,
        None => **label == resource && sub_resource.is_empty(),
    };
    RESOURCE_LABELS.iter().find(same).copied().unwrap_or("other")
}

/// The name of an endpoint, as label value and in logs.
pub(super) fn endpoint_name(endpoint: Endpoint) -> &'static str {
    match endpoint {
        Endpoint::Validate => "validate",
        Endpoint::Mutate => "mutate",
    }
}

/// The index of a combination of labels in [`Metrics::request_cells`]; `None` for a resource that is not among
/// [`RESOURCE_LABELS`].
fn counter_index(
    endpoint: Endpoint,
    resource: &str,
    operation: Operation,
    outcome: RequestOutcome,
) -> Option<usize> {
    let resource = RESOURCE_LABELS.iter().position(|known| *known == resource)?;
    let operation_index = Operation::ALL.iter().position(|known| *known == operation)?;
    let outcome_index = RequestOutcome::ALL.iter().position(|known| *known == outcome)?;
    let cell =
        (resource * Operation::ALL.len() + operation_index) * RequestOutcome::ALL.len() + outcome_index;
    Some(cell * 2 + usize::from(endpoint == Endpoint::Mutate))
}

/// Findings by policy. The names of policies are labels, so their number is limited.
#[derive(Debug)]
struct PolicyFindingCounters {
    counters: Family<[(&'static str, String); 2], Counter>,
    named: Mutex<BTreeSet<String>>,
}

impl PolicyFindingCounters {
    fn new(counters: Family<[(&'static str, String); 2], Counter>) -> PolicyFindingCounters {
        PolicyFindingCounters { counters, named: Mutex::default() }
    }

    /// The label for a policy: its kind and name, or `other` if there are too many.
    fn policy_label_or_other(&self, policy: &str) -> String {
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        if !named.contains(policy) && named.len() >= MAX_POLICY_LABELS {
            return "other".to_owned();
        }
        named.insert(policy.to_owned());
        policy.to_owned()
    }

    /// The counter of findings of a policy at this level.
    fn counter(&self, policy: &str, level: FindingLevel) -> Counter {
        let labels = [("policy", self.policy_label_or_other(policy)), ("level", level.name().to_owned())];
        self.counters.get_or_create_owned(&labels)
    }

    fn count(&self, policy: &str, level: FindingLevel) {
        self.counter(policy, level).inc();
    }

    /// Exports the counters of these policies with the value 0, because the PromQL function `increase` would miss
    /// the first finding otherwise.
    fn export_zero_counters(&self, policies: impl Iterator<Item = (String, FindingLevel)>) {
        for (policy, action) in policies.take(MAX_POLICY_LABELS) {
            self.counter(&policy, action);
        }
    }
}

/// Every metric of the process.
#[derive(Debug)]
pub(super) struct Metrics {
    registry: Registry,
    requests: Family<Labels<4>, Counter>,
    /// Counters of requests by combination of labels, each created when first used.
    request_cells: Vec<OnceLock<Counter>>,
    durations: [Histogram; 2],
    errors: Family<Labels<1>, Counter>,
    findings: Family<Labels<2>, Counter>,
    policy_findings: PolicyFindingCounters,
    reloads: Family<Labels<2>, Counter>,
    reload_ok: Family<Labels<1>, Gauge>,
    expiry: Family<Labels<1>, Gauge>,
    policy_digest: Family<[(&'static str, String); 1], Gauge>,
    policy_reloads: Family<Labels<1>, Counter>,
    policy_reload_ok: Gauge,
    policy_loaded: Gauge,
    policies: Gauge,
    entry_expiry: Family<[(&'static str, String); 2], Gauge>,
    enforce_from: Family<[(&'static str, String); 2], Gauge>,
    pub(super) in_flight: Gauge,
    pub(super) connections: Gauge,
    pub(super) evicted: Counter,
    pub(super) shed: Counter,
    pub(super) panics: Counter,
    pub(super) dropped_lines: Counter,
}

/// Creates a metric and adds it to the registry.
fn register_metric<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

impl Metrics {
    pub(super) fn new() -> Metrics {
        let mut registry = Registry::with_prefix("tollgate");
        let build = Info::new([
            ("version", env!("CARGO_PKG_VERSION")),
            ("rust_version", env!("CARGO_PKG_RUST_VERSION")),
        ]);
        registry.register("build", "Version of the running program", build);
        let requests = register_metric(&mut registry, "requests", "Admission decisions");
        let durations =
            Family::<Labels<1>, Histogram>::new_with_constructor(|| Histogram::new(LATENCY_BUCKETS));
        let duration = |endpoint| durations.get_or_create_owned(&[("webhook", endpoint_name(endpoint))]);
        let cells = 2 * RESOURCE_LABELS.len() * Operation::ALL.len() * RequestOutcome::ALL.len();
        let help = "Time between receiving the headers of a request and sending its response";
        registry.register("request_duration_seconds", help, durations.clone());
        let metrics = Metrics {
            requests,
            request_cells: std::iter::repeat_with(OnceLock::new).take(cells).collect(),
            durations: [duration(Endpoint::Validate), duration(Endpoint::Mutate)],
            errors: register_metric(
                &mut registry,
                "http_errors",
                "Requests without a decision, by HTTP status code",
            ),
            findings: register_metric(&mut registry, "findings", "Findings by rule and level"),
            policy_findings: PolicyFindingCounters::new(register_metric(
                &mut registry,
                "policy_findings",
                "Findings of policies, by policy and level",
            )),
            in_flight: register_metric(
                &mut registry,
                "in_flight",
                "Requests that were received completely and are being processed",
            ),
            connections: register_metric(&mut registry, "connections", "Open TLS connections"),
            evicted: register_metric(
                &mut registry,
                "connections_evicted",
                "Connections that were closed because there were too many",
            ),
            shed: register_metric(
                &mut registry,
                "shed",
                "Requests that were rejected because too many requests were in flight or the memory limit was reached",
            ),
            panics: register_metric(&mut registry, "panics", "Requests that caused a panic"),
            dropped_lines: register_metric(&mut registry, "log_lines_dropped", "Log lines that were dropped"),
            reloads: register_metric(&mut registry, "certificate_reloads", "Certificate reloads, by result"),
            reload_ok: register_metric(
                &mut registry,
                "certificate_reload_ok",
                "1 if the certificate in use matches the files on disk",
            ),
            expiry: register_metric(
                &mut registry,
                "certificate_expiry_timestamp_seconds",
                "Expiry time of the certificate in use",
            ),
            policies: register_metric(&mut registry, "policies", "Number of policies in use"),
            entry_expiry: register_metric(
                &mut registry,
                "policy_entry_expiry_timestamp_seconds",
                "Time at which an allow entry of a TolerationPolicy expires, for the first 200 that expire",
            ),
            enforce_from: register_metric(
                &mut registry,
                "policy_enforce_from_timestamp_seconds",
                "Time from which a policy with enforceFrom denies, for the first 200 such policies",
            ),
            policy_digest: register_metric(
                &mut registry,
                "policy_info",
                "Digest of the policies in use; replicas with the same digest use the same policies",
            ),
            policy_reloads: register_metric(&mut registry, "policy_reloads", "Policy reloads, by result"),
            policy_reload_ok: register_metric(
                &mut registry,
                "policy_reload_ok",
                "1 if the policies in use match the files on disk",
            ),
            policy_loaded: register_metric(
                &mut registry,
                "policy_last_success_timestamp_seconds",
                "Time at which policies were last loaded successfully",
            ),
            registry,
        };
        // A counter that appears with its first event hides that event from `increase`: errors are there from the
        // start.
        for code in ERROR_CODES {
            let _ = metrics.errors.get_or_create(&[("code", code)]);
        }
        metrics
    }

    /// Counts a request with its decision, and its findings by rule.
    pub(super) fn count_decision(
        &self,
        endpoint: Endpoint,
        resource: &'static str,
        operation: Operation,
        outcome: RequestOutcome,
        findings: &[Diagnostic],
    ) {
        let cell = counter_index(endpoint, resource, operation, outcome)
            .and_then(|cell| self.request_cells.get(cell));
        debug_assert!(cell.is_some(), "{resource} is not a label of resource_label");
        if let Some(cell) = cell {
            let labels = || {
                [
                    ("webhook", endpoint_name(endpoint)),
                    ("resource", resource),
                    ("operation", operation.name()),
                    ("decision", outcome.name()),
                ]
            };
            cell.get_or_init(|| self.requests.get_or_create_owned(&labels())).inc();
        }
        for diagnostic in findings {
            let labels = [("rule", diagnostic.finding.rule.id), ("level", diagnostic.level.name())];
            self.findings.get_or_create(&labels).inc();
            if let Some(policy) = &diagnostic.policy {
                self.policy_findings.count(policy.kind_and_name(), diagnostic.level);
            }
        }
    }

    /// Records the duration of a request.
    pub(super) fn observe_duration(&self, endpoint: Endpoint, time: Duration) {
        let [validate, mutate] = &self.durations;
        match endpoint {
            Endpoint::Validate => validate.observe(time.as_secs_f64()),
            Endpoint::Mutate => mutate.observe(time.as_secs_f64()),
        }
    }

    /// Counts a request that got no decision.
    pub(super) fn count_error(&self, code: u16) {
        let same = |known: &&&str| known.parse() == Ok(code);
        let code = ERROR_CODES.iter().find(same).copied().unwrap_or("other");
        self.errors.get_or_create(&[("code", code)]).inc();
    }

    /// Records the result of reading a certificate. `expires` is the expiry of the one in use.
    pub(super) fn record_certificate_reload(&self, which: &'static str, ok: bool, expires: i64) {
        let result = if ok { "success" } else { "failure" };
        self.reloads.get_or_create(&[("certificate", which), ("result", result)]).inc();
        self.reload_ok.get_or_create(&[("certificate", which)]).set(i64::from(ok));
        self.expiry.get_or_create(&[("certificate", which)]).set(expires);
    }

    /// Records the policies in use. `at` is when they were read; `None` if they do not come from files.
    pub(super) fn record_policies_loaded(&self, engine: &Engine, at: Option<i64>) {
        let set = &engine.policies;
        self.policies.set(i64::try_from(set.len()).unwrap_or(i64::MAX));
        self.policy_findings.export_zero_counters(set.policies_with_action_levels());
        self.policy_digest.clear();
        if !set.is_empty() {
            self.policy_digest.get_or_create(&[("digest", set.digest().to_owned())]).set(1);
        }
        self.entry_expiry.clear();
        let expired =
            |entry: &ExpiringTolerationAllowEntry<'_>| at.is_some_and(|at| entry.expires.seconds <= at);
        for entry in set
            .toleration_allow_entries_by_expiry()
            .into_iter()
            .filter(|entry| !expired(entry))
            .take(MAX_POLICY_LABELS)
        {
            let labels = [("policy", entry.policy.to_owned()), ("entry", entry.entry.to_owned())];
            self.entry_expiry.get_or_create(&labels).set(entry.expires.seconds);
        }
        self.enforce_from.clear();
        for later in set.deny_policies_with_enforce_from().take(MAX_POLICY_LABELS) {
            let labels = [("kind", later.kind.name().to_owned()), ("policy", later.policy.to_owned())];
            self.enforce_from.get_or_create(&labels).set(later.from.seconds);
        }
        if let Some(at) = at {
            self.policy_reloads.get_or_create(&[("result", "success")]).inc();
            self.policy_loaded.set(at);
        }
        self.policy_reload_ok.set(1);
    }

    /// Sets the reload metric to 0 while new policies are loaded but not in use yet.
    pub(super) fn record_policy_reload_pending(&self) {
        self.policy_reload_ok.set(0);
    }

    /// Counts a failed reload of the policies, and sets the reload metric to 0.
    pub(super) fn count_failed_policy_reload(&self) {
        self.policy_reloads.get_or_create(&[("result", "failure")]).inc();
        self.policy_reload_ok.set(0);
    }

    /// Returns all metrics as OpenMetrics text.
    pub(super) fn render(&self) -> String {
        let mut text = String::new();
        if encode(&mut text, &self.registry).is_err() {
            // Writing to a `String` cannot fail; should the encoder fail, the scraper sees why.
            text.clear();
            let _ = writeln!(text, "# cannot encode the metrics\n# EOF");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::{Metrics, RequestOutcome, resource_label};
    use tollgate_api::review::Operation;
    use tollgate_engine::engine::Endpoint;
    use tollgate_engine::rules::FindingLevel;

    #[test]
    fn what_users_send_never_becomes_a_label() {
        assert_eq!(resource_label("resourceclaims", ""), "resourceclaims");
        assert_eq!(resource_label("resourceclaims", "status"), "resourceclaims/status");
        assert_eq!(resource_label("resourceslices", "status"), "other");
        assert_eq!(resource_label("configmaps", ""), "other");
        for kind in tollgate_engine::policy::PolicyKind::ALL {
            assert_eq!(resource_label(kind.plural(), ""), kind.plural());
        }
    }

    #[test]
    fn policies_beyond_the_limit_are_counted_together() {
        let metrics = Metrics::new();
        metrics.policy_findings.export_zero_counters(
            (0..150).map(|number| (format!("TaintPolicy/p{number}"), FindingLevel::Deny)),
        );
        for number in 140..260 {
            metrics.policy_findings.count(&format!("TaintPolicy/p{number}"), FindingLevel::Deny);
        }
        let text = metrics.render();
        for (policy, count) in
            [("TaintPolicy/p0", 0), ("TaintPolicy/p145", 1), ("TaintPolicy/p199", 1), ("other", 60)]
        {
            let line =
                format!("tollgate_policy_findings_total{{policy=\"{policy}\",level=\"deny\"}} {count}\n");
            assert!(text.contains(&line), "{line}");
        }
        assert!(!text.contains("TaintPolicy/p200\""));
    }

    #[test]
    fn each_combination_has_its_own_cell() {
        let metrics = Metrics::new();
        for _ in 0..3 {
            metrics.count_decision(
                Endpoint::Mutate,
                "resourceslices",
                Operation::Update,
                RequestOutcome::Patched,
                &[],
            );
        }
        metrics.count_decision(Endpoint::Validate, "other", Operation::Connect, RequestOutcome::Denied, &[]);
        metrics.count_decision(
            Endpoint::Validate,
            "resourceclaims",
            Operation::Create,
            RequestOutcome::Allowed,
            &[],
        );
        let text = metrics.render();
        for (labels, count) in [
            (r#"webhook="mutate",resource="resourceslices",operation="UPDATE",decision="patched""#, 3),
            (r#"webhook="validate",resource="other",operation="CONNECT",decision="denied""#, 1),
            (r#"webhook="validate",resource="resourceclaims",operation="CREATE",decision="allowed""#, 1),
        ] {
            assert!(
                text.contains(&format!("tollgate_requests_total{{{labels}}} {count}\n")),
                "{labels}:\n{text}"
            );
        }
    }
}
