//! Keeps a webhook configuration registered: creates it once, and reverts changes for as long as the process serves.
//!
//! The desired configuration is a function of the registered CA bundle ([`DesiredConfigForCaBundleFn`]): a new CA is
//! added to the old one, and replicas with CAs of their own merge them instead of overwriting each other. Entries of
//! others are kept.
//!
//! Replicas may disagree for a while on which entries they need, because a ConfigMap reaches them at different times.
//! So entries that are no longer needed are removed once, when the desired configuration changes; after that a replica
//! only adds what is missing, and two replicas never overwrite each other in turn. A replica that may not narrow the
//! registration ([`WebhookRegistration::may_narrow`]) only ever adds.
//!
//! Two servers that register different addresses or settings under one name never agree. Each reverts what the other
//! wrote less and less often, and names the other's address.
//!
//! Invariant: nothing is written before `ready`, a configuration that is up to date is not written again, and one that
//! was deleted stays deleted: that is the emergency stop. One that was garbage-collected with its owner is created
//! again as soon as there is a new owner.

mod compare;
mod reports;
mod rivals;

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::api_error::{ApiError, event_error};
use super::client::{ApiClient, FULL_OBJECTS};
use super::retry::{Backoff, Timing};
use super::watch::watch_query;
use super::watch_lines::WatchLines;
use super::{Cluster, SharedRegistrationStatus};
pub(super) use compare::with_member;
use compare::{
    NarrowingPermission, OwnerClusterRole, any_tollgate_entry_lacks_ca_bundle, differences,
    has_undesired_tollgate_entries, merged_ca_bundle_pem,
};
use rivals::{RevertBackoff, last_manager_if_other};
use tollgate_document::doc::{self, Value};

/// The field manager of all writes, in `managedFields`.
pub(super) const FIELD_MANAGER: &str = "tollgate";
const API_PATH: &str = "/apis/admissionregistration.k8s.io/v1";
const CLUSTER_ROLES_PATH: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
/// Interval at which it is checked whether the server is ready, before the first registration.
const READY_CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// Interval of owner lookups. Configurations that were garbage-collected with their owner are back within 10 s.
const OWNER_LOOKUP_INTERVAL: Duration = Duration::from_secs(3);

/// Computes the desired configuration as JSON from the registered CA certificates (PEM, empty if none).
pub type DesiredConfigForCaBundleFn = Arc<dyn Fn(&str) -> anyhow::Result<String> + Send + Sync>;

/// A webhook configuration to register, and the conditions under which it is registered.
#[derive(Clone)]
pub struct WebhookRegistration {
    /// The desired configuration.
    pub desired: DesiredConfigForCaBundleFn,
    /// Counts changes of the desired configuration; `RegistrationStatus::revision` is the last one registered.
    pub revision: watch::Receiver<u64>,
    /// False if entries must not be removed now, nor made to fail open: what this process knows may not be all.
    pub may_narrow: Arc<dyn Fn() -> bool + Send + Sync>,
    /// Nothing is written before this is true.
    pub ready: Arc<dyn Fn() -> bool + Send + Sync>,
    /// Additional delay before the configuration is created: the Service must have endpoints first.
    pub delay: Duration,
    /// The ClusterRole that owns the configuration: it is garbage-collected with it.
    pub owner: Option<String>,
}

impl Cluster {
    /// Registers a webhook configuration and keeps it registered.
    pub fn keep_webhook_registered(
        &self,
        registration: WebhookRegistration,
    ) -> anyhow::Result<Arc<SharedRegistrationStatus>> {
        let target = WebhookConfigRef::from_manifest(&(registration.desired)("")?)?;
        let status = Arc::new(SharedRegistrationStatus::default());
        status.update(|state| "waiting until the server is ready".clone_into(&mut state.message));
        let mut timing = self.timing;
        if registration.owner.is_some() {
            timing.max_backoff = timing.max_backoff.min(OWNER_LOOKUP_INTERVAL);
            timing.check_interval = timing.check_interval.min(OWNER_LOOKUP_INTERVAL);
        }
        let registrar = Registrar {
            client: self.client.clone(),
            timing,
            registration,
            target,
            status: status.clone(),
            applied: None,
            waited: false,
        };
        self.spawn(registrar.run());
        Ok(status)
    }
}

/// Resource and name of the webhook configuration that is registered.
struct WebhookConfigRef {
    resource: &'static str,
    name: String,
}

impl WebhookConfigRef {
    /// The target that a manifest (JSON) names; an error if it is not a webhook configuration.
    fn from_manifest(manifest: &str) -> anyhow::Result<WebhookConfigRef> {
        let manifest = doc::parse(manifest).map_err(|error| anyhow::anyhow!(error.detail))?;
        let resource = match manifest.root().get("kind").str() {
            "ValidatingWebhookConfiguration" => "validatingwebhookconfigurations",
            "MutatingWebhookConfiguration" => "mutatingwebhookconfigurations",
            other => anyhow::bail!("{other} is not a webhook configuration"),
        };
        Ok(WebhookConfigRef { resource, name: manifest.root().get("metadata").get("name").str().to_owned() })
    }

    fn path(&self) -> String {
        format!("{API_PATH}/{}/{}", self.resource, self.name)
    }

    /// The path of a list with at most this object. A watch can start at the resourceVersion of a list, but not always
    /// at that of an old object.
    fn single_object_list_path(&self) -> String {
        format!("{API_PATH}/{}?fieldSelector=metadata.name%3D{}", self.resource, self.name)
    }
}

/// Why a reconciliation ended without an error.
enum ReconcileEnd {
    /// The stored configuration must be read again.
    Recheck,
    /// The desired configuration changed; reconcile without a delay.
    DesiredChanged,
    /// The stored configuration was changed and must be reverted. `Some` with an address if another Tollgate server
    /// changed it.
    Drifted(Option<String>),
    /// The owner does not exist; true if the configuration does.
    OwnerMissing(bool),
    /// The configuration was deleted.
    Deleted,
}

/// The webhook configuration that this process registered last.
struct LastApplied {
    revision: u64,
    /// The desired configuration, as JSON.
    desired: String,
    owner: Option<OwnerClusterRole>,
    /// True if there were entries to register; without any, there may be no object.
    exists: bool,
    /// True if entries that are not desired could be removed.
    narrowed: bool,
}

impl LastApplied {
    /// Returns the fields in which the stored configuration is not what was registered. If it could not be narrowed,
    /// stored entries that failed closed stayed so although they should fail open.
    fn fields_changed_in(&self, stored: Value<'_>) -> Result<Vec<String>, ApiError> {
        let narrowing =
            if self.narrowed { NarrowingPermission::Allowed } else { NarrowingPermission::Forbidden };
        Ok(differences(stored, parse_json(&self.desired)?.root(), self.owner.as_ref(), narrowing))
    }
}

/// The state of the stored webhook configuration after a reconciliation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum StoredConfigState {
    /// The stored configuration is as desired.
    UpToDate,
    /// The stored configuration is as desired, but without a caBundle, which another controller injects.
    NoCaBundle,
    /// No configuration is stored, and no entries are desired.
    NotNeeded,
}

impl StoredConfigState {
    /// `NoCaBundle` if an entry of Tollgate has no caBundle, else `UpToDate`.
    fn by_ca_bundle_presence(stored: Value<'_>) -> StoredConfigState {
        if any_tollgate_entry_lacks_ca_bundle(stored) {
            StoredConfigState::NoCaBundle
        } else {
            StoredConfigState::UpToDate
        }
    }
}

/// Keeps one webhook configuration registered.
struct Registrar {
    client: ApiClient,
    timing: Timing,
    registration: WebhookRegistration,
    target: WebhookConfigRef,
    status: Arc<SharedRegistrationStatus>,
    applied: Option<LastApplied>,
    /// True after the delay before the configuration is created.
    waited: bool,
}

impl Registrar {
    async fn run(mut self) {
        while !(self.registration.ready)() {
            sleep(READY_CHECK_INTERVAL).await;
        }
        let mut backoff = Backoff::new(self.timing);
        let mut reverts = RevertBackoff::default();
        loop {
            let began = Instant::now();
            match self.reconcile_and_watch().await {
                Ok(ReconcileEnd::DesiredChanged) => continue,
                Ok(ReconcileEnd::Drifted(rival)) => {
                    let delay = reverts.next_delay(Instant::now(), rival.is_some());
                    if let Some(rival) = rival.filter(|_| !delay.is_zero()) {
                        self.report_other_server(&rival, delay);
                    }
                    // New policies end the delay.
                    _ = run_until_revision_changes(&mut self.registration.revision, sleep(delay)).await;
                    continue;
                }
                Ok(ReconcileEnd::Recheck) => {}
                Ok(ReconcileEnd::OwnerMissing(is_stored)) => self.report_missing_owner(is_stored),
                Ok(ReconcileEnd::Deleted) => return self.report_deleted(),
                Err(error) => self.report_error(&error),
            }
            // A watch that ends at once must not cause a busy loop.
            if began.elapsed() >= self.timing.stable_after {
                backoff.reset();
            } else {
                // New policies end the delay.
                _ = run_until_revision_changes(&mut self.registration.revision, backoff.wait()).await;
            }
        }
    }

    /// Compares, writes if necessary, watches, and returns when there is a reason to compare again.
    async fn reconcile_and_watch(&mut self) -> Result<ReconcileEnd, ApiError> {
        let revision = *self.registration.revision.borrow_and_update();
        let owner = self.fetch_owner().await?;
        let text = self.client.get(&self.target.single_object_list_path(), FULL_OBJECTS).await?;
        let list = parse_json(&text)?;
        let version = list.root().get("metadata").get("resourceVersion").str();
        let stored = list.root().get("items").item(0);
        if self.registration.owner.is_some() && owner.is_none() {
            return Ok(ReconcileEnd::OwnerMissing(stored.exists()));
        }
        if !stored.exists() {
            if self.applied.as_ref().is_some_and(|applied| applied.exists && applied.owner == owner) {
                return Ok(ReconcileEnd::Deleted);
            }
            // The API server does not call the webhook before it is registered.
            self.status.update(|state| state.settled = true);
            if self.applied.is_none() && !std::mem::replace(&mut self.waited, true) {
                sleep(self.registration.delay).await;
                return Ok(ReconcileEnd::Recheck);
            }
        }
        let desired = self.desired_with_bundle(&merged_ca_bundle_pem(stored))?;
        let narrowing = self.narrowing_permission();
        let same = self.applied.as_ref().filter(|applied| applied.revision == revision);
        // What is not desired is removed once.
        let narrowed = same.is_some_and(|applied| applied.narrowed);
        let removes = narrowing == NarrowingPermission::Allowed && !narrowed;
        let manifest = parse_json(&desired)?;
        let applied = self.apply_desired(stored, manifest.root(), owner.as_ref(), narrowing, removes);
        let registered = match applied.await {
            // A replica was faster.
            Err(error) if error.http_status_or_zero() == 409 => return Ok(ReconcileEnd::Recheck),
            written => written?,
        };
        let exists = registered != StoredConfigState::NotNeeded;
        let narrowed = narrowed || removes;
        self.applied =
            Some(LastApplied { revision, desired: desired.clone(), owner: owner.clone(), exists, narrowed });
        self.status.update(|state| {
            (state.ok, state.settled, state.revision) =
                (registered != StoredConfigState::NoCaBundle, true, revision);
            let WebhookConfigRef { resource, name } = &self.target;
            state.message = match registered {
                StoredConfigState::UpToDate => format!("registered as {resource}/{name}"),
                StoredConfigState::NoCaBundle => {
                    format!(
                        "registered as {resource}/{name} without a caBundle; waiting for one to be injected"
                    )
                }
                StoredConfigState::NotNeeded => "not registered: no policy needs it".to_owned(),
            };
        });
        let path = format!("{}&{}", self.target.single_object_list_path(), watch_query(version, self.timing));
        let lines = self.client.watch(&path, FULL_OBJECTS).await?;
        self.watch_for_drift(lines, desired, owner).await
    }

    /// Writes the desired webhook configuration unless it is stored already. Other entries of Tollgate are kept,
    /// unless `removes` is true.
    async fn apply_desired(
        &self,
        stored: Value<'_>,
        desired: Value<'_>,
        owner: Option<&OwnerClusterRole>,
        narrowing: NarrowingPermission,
        removes: bool,
    ) -> Result<StoredConfigState, ApiError> {
        if !stored.exists() {
            if desired.get("webhooks").is_empty() {
                return Ok(StoredConfigState::NotNeeded);
            }
            let object = compare::manifest_to_create(desired, owner);
            let answer =
                self.client.force_server_side_apply(&self.target.path(), FIELD_MANAGER, object).await?;
            self.count_and_log_write("webhook configuration created", &[]);
            return Ok(StoredConfigState::by_ca_bundle_presence(parse_json(&answer)?.root()));
        }
        let wrong = differences(stored, desired, owner, narrowing);
        if wrong.is_empty() && !(removes && has_undesired_tollgate_entries(stored, desired)) {
            return Ok(StoredConfigState::by_ca_bundle_presence(stored));
        }
        // It was changed by another program if it is not what this process registered last.
        let changed =
            self.applied.as_ref().map_or(Ok(Vec::new()), |applied| applied.fields_changed_in(stored))?;
        if !changed.is_empty() {
            let (resource, name, fields) = (self.target.resource, &self.target.name, changed.join(", "));
            let manager = last_manager_if_other(stored);
            // A manager that only removed something is not listed, and another Tollgate has the same name.
            let by = if manager.is_empty() { "not known, or another Tollgate" } else { manager.as_str() };
            tracing::warn!(resource, name, by, fields, "webhook configuration changed; reverting");
            // It is normal that replicas reload their policies at different times.
            if !manager.is_empty() {
                self.status.update(|state| {
                    state.ok = false;
                    state.message = format!("changed by {by} ({fields}); reverting");
                });
            }
        }
        let patch = compare::merge_patch_to_desired(stored, desired, owner, !removes, narrowing);
        let answer = self.client.merge_patch(&self.target.path(), FIELD_MANAGER, patch).await?;
        // Another controller or an admission plugin may have changed it on the way.
        let still = differences(parse_json(&answer)?.root(), desired, owner, narrowing);
        if !still.is_empty() {
            let message =
                format!("the change was accepted, but these fields still differ: {}", still.join(", "));
            return Err(ApiError::Status { code: 200, message });
        }
        self.count_and_log_write("webhook configuration updated", &wrong);
        Ok(StoredConfigState::by_ca_bundle_presence(parse_json(&answer)?.root()))
    }

    /// Counts and logs a write.
    fn count_and_log_write(&self, what: &str, fields: &[String]) {
        let (resource, name, fields) = (self.target.resource, &self.target.name, fields.join(", "));
        self.status.update(|state| state.done += 1);
        tracing::info!(resource, name, fields, "{what}");
    }

    /// Watches the webhook configuration. Returns when the stored or the desired configuration has changed.
    async fn watch_for_drift(
        &mut self,
        mut lines: WatchLines,
        mut desired: String,
        owner: Option<OwnerClusterRole>,
    ) -> Result<ReconcileEnd, ApiError> {
        let mut last_event = Instant::now();
        let mut stored = merged_ca_bundle_pem(parse_json(&desired)?.root());
        loop {
            let next = timeout(self.timing.check_interval, lines.next_event_rejecting_too_long());
            let Some(next) = run_until_revision_changes(&mut self.registration.revision, next).await else {
                return Ok(ReconcileEnd::DesiredChanged);
            };
            match next {
                Ok(Ok(Some(line))) => {
                    last_event = Instant::now();
                    let event = parse_json(&line)?;
                    let object = event.root().get("object");
                    match event.root().get("type").str() {
                        "BOOKMARK" => {}
                        "ADDED" | "MODIFIED" => {
                            stored = merged_ca_bundle_pem(object);
                            desired = self.desired_with_bundle(&stored)?;
                            let wrong = differences(
                                object,
                                parse_json(&desired)?.root(),
                                owner.as_ref(),
                                self.narrowing_permission(),
                            );
                            if !wrong.is_empty() {
                                self.status.update(|state| {
                                    (state.ok, state.reverts) = (false, state.reverts + 1);
                                    state.message = format!("changed: {}", wrong.join(", "));
                                });
                                let rival = rivals::other_server_address(
                                    object,
                                    parse_json(&desired)?.root(),
                                    &wrong,
                                );
                                return Ok(ReconcileEnd::Drifted(rival));
                            }
                            if any_tollgate_entry_lacks_ca_bundle(object) == self.status.get().ok {
                                return Ok(ReconcileEnd::DesiredChanged);
                            }
                        }
                        // The next reconciliation finds out whether it was garbage-collected with its owner.
                        "DELETED" => return Ok(ReconcileEnd::Recheck),
                        "ERROR" if object.get("code").int() == Some(410) => {
                            return Ok(ReconcileEnd::Recheck);
                        }
                        _ => return Err(event_error(object)),
                    }
                }
                Ok(Ok(None)) => return Ok(ReconcileEnd::Recheck),
                Ok(Err(error)) => return Err(error),
                Err(_) if last_event.elapsed() > self.timing.silence_timeout => {
                    return Err(ApiError::Unreachable("the watch received no events".to_owned()));
                }
                Err(_) => {}
            }
            // Entries that are not needed can be removed now.
            if self.applied.as_ref().is_some_and(|applied| !applied.narrowed)
                && (self.registration.may_narrow)()
            {
                return Ok(ReconcileEnd::DesiredChanged);
            }
            // The certificates may have been renewed meanwhile, or the owner replaced.
            if self.desired_with_bundle(&stored)? != desired || self.fetch_owner().await? != owner {
                return Ok(ReconcileEnd::Recheck);
            }
        }
    }

    /// Gets the owner of the configuration from the API server; `None` if it does not exist or none is configured.
    async fn fetch_owner(&self) -> Result<Option<OwnerClusterRole>, ApiError> {
        let Some(name) = &self.registration.owner else { return Ok(None) };
        let found = self.client.get_if_exists(&format!("{CLUSTER_ROLES_PATH}/{name}")).await?;
        let Some(text) = found else { return Ok(None) };
        let uid = parse_json(&text)?.root().get("metadata").get("uid").str().to_owned();
        Ok(Some(OwnerClusterRole { name: name.clone(), uid }))
    }

    fn narrowing_permission(&self) -> NarrowingPermission {
        if (self.registration.may_narrow)() {
            NarrowingPermission::Allowed
        } else {
            NarrowingPermission::Forbidden
        }
    }

    fn desired_with_bundle(&self, bundle: &str) -> Result<String, ApiError> {
        (self.registration.desired)(bundle).map_err(|error| ApiError::Unreachable(format!("{error:#}")))
    }
}

/// Runs `work` and returns its output, or `None` if the revision changes before it is done. A dropped sender does not
/// count as a change.
async fn run_until_revision_changes<T>(
    revision: &mut watch::Receiver<u64>,
    work: impl Future<Output = T>,
) -> Option<T> {
    let mut changed = pin!(revision.changed());
    let mut work = pin!(work);
    let mut is_gone = false;
    poll_fn(|context| {
        if !is_gone {
            match changed.as_mut().poll(context) {
                Poll::Ready(Ok(())) => return Poll::Ready(None),
                Poll::Ready(Err(_)) => is_gone = true,
                Poll::Pending => {}
            }
        }
        work.as_mut().poll(context).map(Some)
    })
    .await
}

fn parse_json(text: &str) -> Result<doc::Doc<'_>, ApiError> {
    doc::parse(text).map_err(|_error| ApiError::not_json())
}

#[cfg(test)]
mod tests {
    use super::LastApplied;
    use tollgate_document::doc;

    /// Only another program's change may be reported as one: the own change from Fail to Ignore after the delay is none.
    #[test]
    fn an_entry_that_still_fails_closed_was_changed_by_nobody() {
        let manifest = |policy: &str| {
            format!(r#"{{"webhooks":[{{"name":"a.tollgate.dev","failurePolicy":"{policy}"}}]}}"#)
        };
        let changed = |narrowed: bool, desired: &str, stored: &str| {
            let applied =
                LastApplied { revision: 1, desired: manifest(desired), owner: None, exists: true, narrowed };
            let stored = manifest(stored);
            applied.fields_changed_in(doc::parse(&stored).expect("JSON").root()).expect("JSON")
        };
        assert_eq!(changed(false, "Ignore", "Fail"), [""; 0]);
        assert_eq!(changed(true, "Ignore", "Fail"), ["a.tollgate.dev: failurePolicy"]);
        assert_eq!(changed(false, "Fail", "Ignore"), ["a.tollgate.dev: failurePolicy"]);
    }
}
