//! The webhook configurations of `--register`: their entries and CA bundle, updated with every reload.
//!
//! Invariant: while policies are replaced, the registration covers both the old and the new set. If policies are custom
//! resources, replicas may know different ones for a while, so only the holder of a Lease removes entries, and late.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::cli::clock;
use crate::cli::manifests;
use crate::cluster::{DesiredConfig, DesiredConfigForCaBundleFn, LeaseHandle, SharedRegistrationStatus};
use crate::registration::{OptionalApi, WebhookDestination, WebhookEntries};
use crate::server::{RegisteredCa, ReloadHooks, SelfSignedCerts};
use tollgate_document::{doc, source};
use tollgate_engine::engine::Engine;

/// The source of the CA bundle in the webhook configurations.
#[derive(Clone, Debug)]
pub(super) enum CaSource {
    /// The self-signed CA.
    Own(Arc<SelfSignedCerts>),
    /// A file, and what is in use of it: a CA with which the API server trusts the certificate in use.
    File(PathBuf, RegisteredCa),
    /// Injected by another controller.
    External,
}

impl CaSource {
    /// Returns the CA bundle to register, as PEM; `None` if another controller injects it. `in_use` is the
    /// registered one, from which the CAs of other replicas are kept.
    fn ca_bundle_to_register(&self, in_use: &str) -> anyhow::Result<Option<String>> {
        Ok(match self {
            CaSource::Own(made) => Some(made.merged_bundle(in_use, clock::unix_seconds())),
            CaSource::File(file, ca) => {
                let bytes = ca.get().with_context(|| format!("{} is not in use", file.display()))?;
                manifests::refuse_private_key_in(file, &bytes)
                    .map_err(|failure| anyhow::anyhow!(failure.message()))?;
                let text = String::from_utf8(bytes.to_vec());
                Some(text.with_context(|| format!("{} is not PEM", file.display()))?)
            }
            CaSource::External => None,
        })
    }
}

/// Time for which webhook entries must not be needed before they are removed, if policies are custom resources. By
/// then all replicas have the same policies.
const ENTRY_REMOVAL_DELAY: Duration = Duration::from_mins(1);

/// The entries of the base configurations to register, with a revision that counts changes.
pub(super) struct DesiredWebhookEntries {
    state: Mutex<DesiredWebhookEntriesState>,
    revision: watch::Sender<u64>,
    /// Held by the replica that may remove entries; `None` if every replica may, because all read the same files.
    lease: Option<LeaseHandle>,
}

struct DesiredWebhookEntriesState {
    entries: WebhookEntries,
    /// When the entries changed last.
    since: Instant,
    /// True if this process has had policies. Before, it removes no entries, because it cannot know which are
    /// needed.
    has_had_policies: bool,
}

impl DesiredWebhookEntries {
    /// Starts with the entries that the engine needs. With a Lease, policies can also be custom resources.
    pub(super) fn new(engine: &Engine, lease: Option<LeaseHandle>) -> DesiredWebhookEntries {
        let entries = entries_to_register(engine, lease.is_some());
        let state = DesiredWebhookEntriesState { entries, since: Instant::now(), has_had_policies: false };
        DesiredWebhookEntries { state: Mutex::new(state), revision: watch::Sender::new(1), lease }
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.revision.subscribe()
    }

    /// Returns a function that is true while this replica may remove entries, or make entries fail open.
    pub(super) fn may_remove_entries_fn(
        self: &Arc<DesiredWebhookEntries>,
    ) -> Arc<dyn Fn() -> bool + Send + Sync> {
        let desired = self.clone();
        Arc::new(move || {
            let Some(lease) = &desired.lease else { return true };
            let state = desired.lock();
            state.has_had_policies && state.since.elapsed() >= ENTRY_REMOVAL_DELAY && lease.is_held()
        })
    }

    fn lock(&self) -> MutexGuard<'_, DesiredWebhookEntriesState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn needed_by(&self, engine: &Engine) -> WebhookEntries {
        entries_to_register(engine, self.lease.is_some())
    }

    /// Remembers that this process has had policies. From then on, webhook entries that no policy needs can be
    /// removed.
    fn mark_policies_seen_if_any(&self, engine: &Engine) {
        let mut state = self.lock();
        if !state.has_had_policies && !engine.policies.is_empty() {
            (state.has_had_policies, state.since) = (true, Instant::now());
        }
    }

    fn entries(&self) -> WebhookEntries {
        self.lock().entries.clone()
    }

    /// Sets the entries; returns the new revision if they changed.
    fn set_entries(&self, entries: WebhookEntries) -> Option<u64> {
        let mut state = self.lock();
        if state.entries == entries {
            return None;
        }
        (state.entries, state.since) = (entries, Instant::now());
        self.revision.send_modify(|revision| *revision += 1);
        Some(*self.revision.borrow())
    }
}

/// Returns the webhook entries that an engine needs, with those for policies if they can be custom resources.
fn entries_to_register(engine: &Engine, has_resources: bool) -> WebhookEntries {
    let entries = WebhookEntries::needed_by(engine);
    if has_resources { entries.with_policy_entry() } else { entries }
}

/// How many times, every 20 ms, new policies check for a registration that covers them before they are used anyway
/// (5 s).
const MAX_REGISTRATION_POLLS: usize = 250;
const REGISTRATION_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Returns hooks of a reload: they register the entries that new policies need before these are used, and remove
/// unneeded entries afterwards.
pub(super) fn reload_hooks(
    desired: Arc<DesiredWebhookEntries>,
    statuses: Vec<Arc<SharedRegistrationStatus>>,
) -> ReloadHooks {
    let after = desired.clone();
    ReloadHooks {
        before: Box::new(move |engine| {
            let needed = desired.needed_by(engine);
            let Some(revision) =
                desired.set_entries(desired.entries().union_without_covered_entries(&needed))
            else {
                return;
            };
            let is_late = |status: &Arc<SharedRegistrationStatus>| {
                let state = status.get();
                // One that fails is reported on its own; new policies do not wait for it.
                state.ok && state.revision < revision
            };
            for _ in 0..MAX_REGISTRATION_POLLS {
                if !statuses.iter().any(is_late) {
                    return;
                }
                std::thread::sleep(REGISTRATION_POLL_INTERVAL);
            }
            tracing::warn!(
                "the webhook configurations were not updated in time: the new policies are in use, but the API server \
                 does not yet send all objects that they apply to"
            );
        }),
        after: Box::new(move |engine| {
            after.mark_policies_seen_if_any(engine);
            after.set_entries(after.needed_by(engine));
        }),
    }
}

/// A webhook configuration that the server registers and keeps up to date.
#[derive(Clone, Copy, Debug)]
pub(super) struct WebhookConfigurationId {
    /// Its label in metrics.
    pub(super) label: &'static str,
    /// `None` for the base configurations.
    api: Option<OptionalApi>,
    /// Its place among the configurations of its API; those of the base are validating (0) and mutating (1).
    index: usize,
}

impl WebhookConfigurationId {
    /// Returns the base configurations, and those of these optional APIs.
    pub(super) fn base_and_optional(with: &[OptionalApi]) -> Vec<WebhookConfigurationId> {
        let base = ["validating", "mutating"].into_iter().enumerate();
        let base = base.map(|(index, label)| WebhookConfigurationId { label, api: None, index });
        base.chain(WebhookConfigurationId::optional_where(|api| with.contains(api))).collect()
    }

    /// Returns the configurations of the other optional APIs, which an earlier process may have registered.
    pub(super) fn optional_without(with: &[OptionalApi]) -> impl Iterator<Item = WebhookConfigurationId> {
        WebhookConfigurationId::optional_where(|api| !with.contains(api))
    }

    fn optional_where(
        is_wanted: impl Fn(&OptionalApi) -> bool,
    ) -> impl Iterator<Item = WebhookConfigurationId> {
        OptionalApi::ALL.into_iter().filter(is_wanted).flat_map(|api| {
            let manifests = api.metric_labels_and_manifests().iter().enumerate();
            manifests.map(move |(index, (label, _))| WebhookConfigurationId { label, api: Some(api), index })
        })
    }

    /// Returns the name of the configuration in `/readyz?verbose`.
    pub(super) fn task_name(self) -> &'static str {
        match (self.api, self.index) {
            (None, 0) => "validating-registration",
            (None, _) => "mutating-registration",
            (Some(_), _) => self.label,
        }
    }

    /// Returns a function that renders the desired configuration, given the registered CA bundle.
    pub(super) fn manifest_fn(
        self,
        here: WebhookDestination,
        ca_source: CaSource,
        desired: Arc<DesiredWebhookEntries>,
    ) -> DesiredConfigForCaBundleFn {
        Arc::new(move |in_use| {
            let bundle = ca_source.ca_bundle_to_register(in_use)?.map(|bundle| STANDARD.encode(bundle));
            let render = |entries: &WebhookEntries| self.manifest(&here, entries, bundle.as_deref());
            let some_entries = render(&WebhookEntries::of_static_manifests())?;
            Ok(DesiredConfig {
                manifest: render(&desired.entries())?,
                client_config: client_config(&some_entries)?,
            })
        })
    }

    /// Returns the configuration with these entries as JSON.
    fn manifest(
        self,
        here: &WebhookDestination,
        entries: &WebhookEntries,
        bundle: Option<&str>,
    ) -> anyhow::Result<String> {
        let texts = match self.api {
            None => here.base_configurations(entries, bundle).to_vec(),
            Some(api) => here.optional_configurations(api, entries, bundle),
        };
        let text = texts.get(self.index).with_context(|| format!("{} has no manifest", self.label))?;
        let mut documents = source::documents(text);
        let document = documents.next().and_then(Result::ok).context("the manifest is not valid YAML")?;
        Ok(document.doc.root().to_json())
    }
}

/// Returns the `clientConfig` of the entries of a configuration, which all have the same.
fn client_config(manifest: &str) -> anyhow::Result<String> {
    let manifest = doc::parse(manifest).map_err(|error| anyhow::anyhow!(error.detail))?;
    Ok(manifest.root().get("webhooks").item(0).get("clientConfig").to_json())
}
