//! Keeps a webhook configuration registered: creates it once, and reverts changes for as long as the process serves.
//!
//! The desired configuration is a function of the registered CA bundle ([`DesiredConfigForCaBundleFn`]): a new CA is
//! added to the old one, and replicas with CAs of their own merge them instead of overwriting each other. Entries of
//! others are kept.
//!
//! Replicas may disagree for a while on which entries they need: a ConfigMap reaches them at different times, and a
//! rolling update runs two sets of flags. So entries that are no longer needed are removed when the desired
//! configuration changes. Those that are there without being needed, because another replica added them or an ended
//! process left them, are removed only after a while, and until then have the CA of this process: the API server also
//! calls it for them. A replica that may not narrow the registration ([`WebhookRegistration::may_narrow`]) only ever adds.
//!
//! Two servers that register different addresses or settings under one name never agree. Each reverts what the other
//! wrote less and less often, and names the other's address.
//!
//! Invariant: nothing is written before `ready`, a configuration that is up to date is not written again, and one that
//! was deleted stays deleted: that is the emergency stop. One that was garbage-collected with its owner is created
//! again as soon as there is a new owner.

mod applied;
mod compare;
mod reports;
mod rivals;
mod target;
mod unneeded;

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::api_error::{ApiError, event_error};
use super::client::{ApiClient, FULL_OBJECTS};
use super::retry::Backoff;
use super::watch::watch_query;
use super::watch_lines::WatchLines;
use super::{Cluster, SharedRegistrationStatus};
use applied::{LastApplied, StoredConfigState};
pub(super) use compare::with_member;
use compare::{
    Desired, Difference, NarrowingPermission, OwnerClusterRole, differences, merged_ca_bundle_pem,
    undesired_tollgate_entries,
};
use rivals::{ChangedBy, RevertBackoff};
use target::WebhookConfigRef;
use tollgate_document::doc::{self, Value};
use unneeded::UnneededEntries;

/// The field manager of all writes, in `managedFields`.
pub(super) const FIELD_MANAGER: &str = "tollgate";
const CLUSTER_ROLES_PATH: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
/// Interval at which it is checked whether the server is ready, before the first registration.
const READY_CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// Interval of owner lookups. Configurations that were garbage-collected with their owner are back within 10 s.
const OWNER_LOOKUP_INTERVAL: Duration = Duration::from_secs(3);

/// Computes the desired configuration from the registered CA certificates (PEM, empty if none).
pub type DesiredConfigForCaBundleFn = Arc<dyn Fn(&str) -> anyhow::Result<DesiredConfig> + Send + Sync>;

/// The desired state of a webhook configuration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DesiredConfig {
    /// The configuration, as JSON. It may have no entries.
    pub manifest: String,
    /// The `clientConfig` of its entries, as JSON. Entries that only other replicas need get it as well.
    pub client_config: String,
}

impl DesiredConfig {
    /// Calls `read` with the parsed configuration.
    fn with_parsed<T>(&self, read: impl FnOnce(Desired<'_>) -> T) -> Result<T, ApiError> {
        let (manifest, client_config) = (parse_json(&self.manifest)?, parse_json(&self.client_config)?);
        Ok(read(Desired { manifest: manifest.root(), client_config: client_config.root() }))
    }
}

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
        self.spawn_registrar(registration, Purpose::Register)
    }

    /// Removes the entries of a webhook configuration that an earlier process registered at the same address, also if
    /// another replica adds them again. Does nothing if there is none, or if it may not be read or changed.
    pub fn keep_webhook_unregistered(&self, registration: WebhookRegistration) -> anyhow::Result<()> {
        self.spawn_registrar(registration, Purpose::Unregister).map(|_status| ())
    }

    fn spawn_registrar(
        &self,
        registration: WebhookRegistration,
        purpose: Purpose,
    ) -> anyhow::Result<Arc<SharedRegistrationStatus>> {
        let target = WebhookConfigRef::from_manifest(&(registration.desired)("")?.manifest)?;
        let status = Arc::new(SharedRegistrationStatus::default());
        status.update(|state| "waiting until the server is ready".clone_into(&mut state.message));
        let mut timing = self.client.timing;
        if registration.owner.is_some() {
            timing.max_backoff = timing.max_backoff.min(OWNER_LOOKUP_INTERVAL);
            timing.check_interval = timing.check_interval.min(OWNER_LOOKUP_INTERVAL);
        }
        let registrar = Registrar {
            client: self.client.with_timing(timing),
            registration,
            purpose,
            target,
            status: status.clone(),
            known_bundle: String::new(),
            has_warned: false,
            unneeded: UnneededEntries::none(self.client.timing.max_backoff),
            is_registered: false,
            applied: None,
            waited: false,
        };
        self.spawn(registrar.run());
        Ok(status)
    }
}

/// What is done with a webhook configuration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Purpose {
    /// It is kept as desired.
    Register,
    /// All its entries are removed, whatever is desired.
    Unregister,
}

/// Why a reconciliation ended without an error.
enum ReconcileEnd {
    /// The stored configuration must be read again.
    Recheck,
    /// The desired configuration changed; reconcile without a delay.
    DesiredChanged,
    /// The stored configuration was changed and must be reverted.
    Drifted(ChangedBy),
    /// The owner does not exist; true if the configuration does.
    OwnerMissing(bool),
    /// The configuration was deleted.
    Deleted,
    /// There is nothing to unregister: no configuration, or that of another server.
    NotOurs,
}

/// Keeps one webhook configuration registered.
struct Registrar {
    client: ApiClient,
    registration: WebhookRegistration,
    purpose: Purpose,
    target: WebhookConfigRef,
    status: Arc<SharedRegistrationStatus>,
    /// The CA certificates that were stored last, PEM. Those of other replicas are kept when all entries are removed
    /// and one is added again.
    known_bundle: String,
    /// True if it was logged that entries cannot be removed.
    has_warned: bool,
    unneeded: UnneededEntries,
    /// True if the configuration was as desired when it was read last.
    is_registered: bool,
    applied: Option<LastApplied>,
    /// True after the delay before the configuration is created.
    waited: bool,
}

impl Registrar {
    async fn run(mut self) {
        while !(self.registration.ready)() {
            sleep(READY_CHECK_INTERVAL).await;
        }
        let mut backoff = Backoff::new(self.client.timing);
        let mut reverts = RevertBackoff::default();
        loop {
            let began = Instant::now();
            match self.reconcile_and_watch().await {
                Ok(ReconcileEnd::DesiredChanged) => continue,
                Ok(ReconcileEnd::Drifted(by)) => {
                    let delay = reverts.next_delay(Instant::now(), by != ChangedBy::AnotherProgram);
                    if let ChangedBy::OtherServer(rival) = &by
                        && !delay.is_zero()
                    {
                        self.report_other_server(rival, delay);
                    }
                    // New policies end the delay.
                    _ = run_until_revision_changes(&mut self.registration.revision, sleep(delay)).await;
                    continue;
                }
                Ok(ReconcileEnd::Recheck) => {}
                Ok(ReconcileEnd::OwnerMissing(is_stored)) => self.report_missing_owner(is_stored),
                Ok(ReconcileEnd::Deleted) => return self.report_deleted(),
                Ok(ReconcileEnd::NotOurs) => return,
                Err(error) if self.purpose == Purpose::Unregister => {
                    // Without the permission to read it, this process cannot have registered it.
                    if !self.unneeded.are_stored() && matches!(error.http_status_or_zero(), 403 | 404) {
                        return;
                    }
                    self.warn_once_of_remaining_entries(&error);
                }
                Err(error) => self.report_error(&error),
            }
            // A watch that ends at once must not cause a busy loop.
            if began.elapsed() >= self.client.timing.stable_after {
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
        let text = self.client.get(&self.target.single_object_list_path()).await?;
        let list = parse_json(&text)?;
        let version = list.root().get("metadata").get("resourceVersion").str();
        let stored = list.root().get("items").item(0);
        if self.registration.owner.is_some() && owner.is_none() {
            return Ok(ReconcileEnd::OwnerMissing(stored.exists()));
        }
        if self.purpose == Purpose::Unregister
            && !(compare::is_written_only_by(stored, FIELD_MANAGER) && self.is_at_own_address(stored)?)
        {
            return Ok(ReconcileEnd::NotOurs);
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
        let desired = self.desired_keeping_cas_of(stored)?;
        self.note_unneeded_entries(stored, &desired)?;
        let narrowing = self.narrowing_permission();
        let last = self.applied.as_ref();
        let is_changed = last.is_some_and(|applied| applied.revision != revision);
        let narrowed = last.is_some_and(|applied| !is_changed && applied.narrowed)
            || narrowing == NarrowingPermission::Allowed;
        let removes = narrowing == NarrowingPermission::Allowed
            && (is_changed || self.unneeded.is_removal_due(Instant::now()));
        let was_registered = std::mem::take(&mut self.is_registered);
        let state = match self.apply_desired(stored, &desired, owner.as_ref(), narrowing, removes).await {
            // A replica was faster.
            Err(error) if error.http_status_or_zero() == 409 => {
                self.is_registered = was_registered;
                return Ok(ReconcileEnd::Recheck);
            }
            written => written?,
        };
        self.is_registered = true;
        if removes {
            self.unneeded.note_removal(Instant::now());
        }
        self.applied = Some(LastApplied {
            revision,
            desired: desired.clone(),
            own_bundle: self.own_bundle()?,
            owner: owner.clone(),
            exists: stored.exists() || state != StoredConfigState::NotNeeded,
            state,
            narrowed,
        });
        self.report_state(state, revision);
        let query = watch_query(version, self.client.timing);
        let path = format!("{}&{query}", self.target.single_object_list_path());
        let lines = self.client.watch(&path, FULL_OBJECTS).await?;
        self.watch_for_drift(lines, desired, owner).await
    }

    /// Writes the desired webhook configuration unless it is stored already. Other entries of Tollgate are kept,
    /// unless `removes` is true.
    async fn apply_desired(
        &self,
        stored: Value<'_>,
        desired: &DesiredConfig,
        owner: Option<&OwnerClusterRole>,
        narrowing: NarrowingPermission,
        removes: bool,
    ) -> Result<StoredConfigState, ApiError> {
        let state_of = |stored| desired.with_parsed(|desired| StoredConfigState::of(stored, desired));
        if !stored.exists() {
            let object = desired.with_parsed(|desired| {
                let is_needed = !desired.manifest.get("webhooks").is_empty();
                is_needed.then(|| compare::manifest_to_create(desired.manifest, owner))
            })?;
            let Some(object) = object else { return Ok(StoredConfigState::NotNeeded) };
            let answer =
                self.client.force_server_side_apply(&self.target.path(), FIELD_MANAGER, object).await?;
            self.count_and_log_write("webhook configuration created", "");
            return state_of(parse_json(&answer)?.root());
        }
        if self.purpose == Purpose::Unregister && compare::tollgate_entries(stored).next().is_none() {
            return state_of(stored);
        }
        let wrong = desired.with_parsed(|desired| differences(stored, desired, owner, narrowing))?;
        let unneeded = desired.with_parsed(|desired| {
            let names = undesired_tollgate_entries(stored, desired.manifest).filter(|_| removes);
            names.map(|entry| format!("{}: not needed", entry.get("name").str())).collect::<Vec<_>>()
        })?;
        if wrong.is_empty() && unneeded.is_empty() {
            return state_of(stored);
        }
        self.report_change_by_others(stored)?;
        let patch = desired.with_parsed(|desired| {
            compare::merge_patch_to_desired(stored, desired, owner, !removes, narrowing)
        })?;
        let answer = self.client.merge_patch(&self.target.path(), FIELD_MANAGER, patch).await?;
        let answer = parse_json(&answer)?;
        // Another controller or an admission plugin may have changed it on the way.
        let still = desired.with_parsed(|desired| differences(answer.root(), desired, owner, narrowing))?;
        if !still.is_empty() {
            let fields = compare::joined(&still);
            let message = format!("the change was accepted, but these fields still differ: {fields}");
            return Err(ApiError::Status { code: 200, message });
        }
        let fields = wrong.iter().map(Difference::to_string).chain(unneeded).collect::<Vec<_>>().join(", ");
        self.count_and_log_write("webhook configuration updated", &fields);
        state_of(answer.root())
    }

    /// Watches the webhook configuration. Returns when the stored or the desired configuration has changed.
    async fn watch_for_drift(
        &mut self,
        mut lines: WatchLines,
        mut desired: DesiredConfig,
        owner: Option<OwnerClusterRole>,
    ) -> Result<ReconcileEnd, ApiError> {
        let mut last_event = Instant::now();
        loop {
            let next = timeout(self.client.timing.check_interval, lines.next_event_rejecting_too_long());
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
                            desired = self.desired_keeping_cas_of(object)?;
                            self.note_unneeded_entries(object, &desired)?;
                            let narrowing = self.narrowing_permission();
                            let (wrong, by, state) = desired.with_parsed(|desired| {
                                let wrong = differences(object, desired, owner.as_ref(), narrowing);
                                let by = rivals::changed_by(object, desired, &wrong);
                                (wrong, by, StoredConfigState::of(object, desired))
                            })?;
                            if !wrong.is_empty() {
                                self.is_registered = false;
                                self.status.update(|state| {
                                    (state.ok, state.reverts) = (false, state.reverts + 1);
                                    state.message = format!("changed: {}", compare::joined(&wrong));
                                });
                                return Ok(ReconcileEnd::Drifted(by));
                            }
                            if self.applied.as_ref().is_some_and(|applied| applied.state != state) {
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
                Err(_) if last_event.elapsed() > self.client.timing.silence_timeout => {
                    return Err(ApiError::Unreachable("the watch received no events".to_owned()));
                }
                Err(_) => {}
            }
            // Entries that are not needed can be removed now, or made to fail open.
            let is_narrowing_due = self.applied.as_ref().is_some_and(|applied| !applied.narrowed)
                || self.unneeded.is_removal_due(Instant::now());
            if is_narrowing_due && (self.registration.may_narrow)() {
                return Ok(ReconcileEnd::DesiredChanged);
            }
            // The certificates may have been renewed meanwhile, or the owner replaced.
            if self.desired_with_bundle(&self.known_bundle)? != desired || self.fetch_owner().await? != owner
            {
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
        NarrowingPermission::allowed_if((self.registration.may_narrow)())
    }

    /// The desired configuration with the CAs of other replicas that are stored, or were before all entries were
    /// removed.
    fn desired_keeping_cas_of(&mut self, stored: Value<'_>) -> Result<DesiredConfig, ApiError> {
        let bundle = merged_ca_bundle_pem(stored);
        if !bundle.is_empty() {
            self.known_bundle = bundle;
        }
        self.desired_with_bundle(&self.known_bundle)
    }

    /// The CAs of this process, PEM; empty if another controller injects them.
    fn own_bundle(&self) -> Result<String, ApiError> {
        self.desired_with_bundle("")?.with_parsed(|desired| compare::bundle_pem(desired.client_config))
    }

    /// Notes since when entries are stored that are not desired.
    fn note_unneeded_entries(&mut self, stored: Value<'_>, desired: &DesiredConfig) -> Result<(), ApiError> {
        let are_stored = desired
            .with_parsed(|desired| undesired_tollgate_entries(stored, desired.manifest).next().is_some())?;
        self.unneeded.note(are_stored, Instant::now());
        Ok(())
    }

    /// True if a configuration is stored and all entries of Tollgate in it have the address of this server.
    fn is_at_own_address(&self, stored: Value<'_>) -> Result<bool, ApiError> {
        let other = self
            .desired_with_bundle("")?
            .with_parsed(|desired| compare::undesired_address(stored, desired.client_config))?;
        Ok(stored.exists() && other.is_none())
    }

    fn desired_with_bundle(&self, bundle: &str) -> Result<DesiredConfig, ApiError> {
        let mut desired = (self.registration.desired)(bundle)
            .map_err(|error| ApiError::Unreachable(format!("{error:#}")))?;
        if self.purpose == Purpose::Unregister {
            desired.manifest = with_member(parse_json(&desired.manifest)?.root(), "webhooks", "[]");
        }
        Ok(desired)
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
