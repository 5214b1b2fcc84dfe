//! Holds a Lease that exists already, so that one of several replicas does what must be done only once.
//!
//! A Lease counts as held until nobody has renewed it for its duration, as seen here: the clocks of two machines need
//! not agree. It is renewed on the thread of the cluster; nobody waits for it.
//!
//! Invariant: [`LeaseHandle::is_held`] is false before another replica may take the Lease, even if the API server does
//! not respond.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::Method;
use tokio::time::Instant;

use super::Cluster;
use super::api_error::{ApiError, status_error};
use super::client::ApiClient;
use super::register::with_member;
use super::watch::percent_encode;
use tollgate_document::doc::{self, OwnedJsonValue};

/// Seconds without a renewal after which another replica may take the Lease.
const LEASE_DURATION_SECONDS: i64 = 15;
/// Time without a renewal after which this process no longer counts the Lease as held.
const RENEW_DEADLINE: Duration = Duration::from_secs(10);
/// Interval at which the Lease is renewed, or checked while another replica holds it.
const RENEW_INTERVAL: Duration = Duration::from_secs(3);

/// Interval of checks whether a held Lease must be released.
const RELEASE_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Namespace and name of the Lease, and the identity of this process as its holder.
#[derive(Clone)]
pub struct LeaseSettings {
    /// The namespace of the Lease.
    pub namespace: String,
    /// The name of the Lease.
    pub name: String,
    /// The name of this replica; no other process may have it.
    pub holder: String,
    /// Returns the current time as `metav1.MicroTime`.
    pub now: fn() -> String,
    /// While this is false, the Lease is not taken, and a held one is released.
    pub is_wanted: Arc<dyn Fn() -> bool + Send + Sync>,
}

/// A Lease that this process tries to hold.
#[derive(Clone, Debug, Default)]
pub struct LeaseHandle(Arc<Mutex<LeaseState>>);

#[derive(Debug, Default)]
struct LeaseState {
    /// When the last renewal that succeeded was sent; `None` if another replica holds the Lease.
    renewed: Option<Instant>,
    /// The result of the last request, in words.
    message: String,
    /// True if the last request for the Lease failed.
    is_failing: bool,
}

/// Whether this process holds the Lease, and a message about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeaseStatus {
    /// True if this process holds the Lease.
    pub is_held: bool,
    /// True if the last request failed, so that perhaps no replica can hold the Lease.
    pub is_failing: bool,
    /// The status in words.
    pub message: String,
}

impl LeaseHandle {
    fn lock(&self) -> MutexGuard<'_, LeaseState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if this process holds the Lease.
    pub fn is_held(&self) -> bool {
        self.lock().renewed.is_some_and(|renewed| renewed.elapsed() < RENEW_DEADLINE)
    }

    /// Returns whether this process holds the Lease, and why not.
    pub fn status(&self) -> LeaseStatus {
        let is_held = self.is_held();
        let state = self.lock();
        LeaseStatus { is_held, is_failing: state.is_failing, message: state.message.clone() }
    }
}

impl Cluster {
    /// Tries to hold a Lease, for the life of the process.
    pub fn start_holding_lease(&self, settings: LeaseSettings) -> LeaseHandle {
        let held = LeaseHandle::default();
        "not requested yet".clone_into(&mut held.lock().message);
        let elector = Elector { client: self.client.clone(), settings, held: held.clone() };
        self.spawn(elector.run());
        held
    }
}

/// The resourceVersion of the Lease when it was last read, and when that version was first read. If it does not
/// change for long, the Lease has expired.
type SeenVersion = (String, Instant);

/// Renews a Lease that this process holds, or takes it once nobody else does.
struct Elector {
    client: ApiClient,
    settings: LeaseSettings,
    held: LeaseHandle,
}

impl Elector {
    async fn run(self) {
        let mut seen = None;
        loop {
            if let Err(error) = self.renew_take_or_release(&mut seen).await {
                self.report_error(&error);
            }
            self.wait_until_renewal_or_release().await;
        }
    }

    /// Waits for the next renewal; shorter if the Lease is held and must be released, because the process ends soon.
    async fn wait_until_renewal_or_release(&self) {
        let end = Instant::now() + RENEW_INTERVAL;
        loop {
            tokio::time::sleep(RELEASE_CHECK_INTERVAL).await;
            let must_release = self.held.is_held() && !(self.settings.is_wanted)();
            if must_release || Instant::now() >= end {
                return;
            }
        }
    }

    /// Reads the Lease, and writes it: to renew it or, if it is no longer wanted, to release it; or to take it if nobody
    /// holds it or its holder has let it expire.
    async fn renew_take_or_release(&self, seen: &mut Option<SeenVersion>) -> Result<(), ApiError> {
        let LeaseSettings { namespace, name, holder, .. } = &self.settings;
        let (namespace, name) = (percent_encode(namespace), percent_encode(name));
        let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}");
        let text = self.client.get(&path).await?;
        let lease = doc::parse(&text).map_err(|_error| ApiError::not_json())?;
        let (version, spec) =
            (lease.root().get("metadata").get("resourceVersion").str(), lease.root().get("spec"));
        let current = spec.get("holderIdentity").str();
        let since = match seen.take().filter(|(known, _)| known == version) {
            Some((_, since)) => since,
            None => Instant::now(),
        };
        *seen = Some((version.to_owned(), since));
        let is_ours = current == holder;
        let is_wanted = (self.settings.is_wanted)();
        if !is_wanted && !is_ours {
            self.set_state(None, "not needed".to_owned());
            return Ok(());
        }
        let seconds = spec.get("leaseDurationSeconds").int().unwrap_or(LEASE_DURATION_SECONDS).clamp(1, 600);
        let duration = Duration::from_secs(seconds.unsigned_abs());
        if !is_ours && !current.is_empty() && since.elapsed() < duration {
            self.set_state(None, format!("held by {current}"));
            return Ok(());
        }
        // What the holder may do ends with the age of the request, not of the response.
        let began = Instant::now();
        let new = self.lease_spec(is_wanted, is_ours.then(|| spec.get("acquireTime").str()), spec);
        let object = with_member(lease.root(), "spec", &new.to_json());
        let response = self.client.send_with_any_status(Method::PUT, &path, Some(object)).await?;
        match response.status().as_u16() {
            // Another replica was faster.
            409 => self.set_state(None, "taken by another replica".to_owned()),
            _ if !is_wanted => self.set_state(None, "released".to_owned()),
            _ if response.status().is_success() => {
                if !is_ours {
                    tracing::info!(lease = name, "this replica holds the Lease");
                }
                self.set_state(Some(began), "held by this replica".to_owned());
            }
            code => return Err(status_error(code, response.body())),
        }
        Ok(())
    }

    /// The new spec of the Lease: held by this process, or by nobody. `acquired` is when this process took it.
    fn lease_spec(&self, is_held: bool, acquired: Option<&str>, stored: doc::Value<'_>) -> OwnedJsonValue {
        let now = (self.settings.now)();
        let transitions = stored.get("leaseTransitions").int().unwrap_or(0);
        let is_taken = acquired.is_none();
        let acquired = acquired.filter(|time| !time.is_empty()).map_or_else(|| now.clone(), str::to_owned);
        let holder = if is_held { self.settings.holder.as_str() } else { "" };
        OwnedJsonValue::Object(vec![
            ("holderIdentity", OwnedJsonValue::str(holder)),
            ("leaseDurationSeconds", OwnedJsonValue::Int(LEASE_DURATION_SECONDS)),
            ("acquireTime", OwnedJsonValue::str(acquired)),
            ("renewTime", OwnedJsonValue::str(now)),
            ("leaseTransitions", OwnedJsonValue::Int(transitions.saturating_add(i64::from(is_taken)))),
        ])
    }

    fn set_state(&self, renewed: Option<Instant>, message: String) {
        let mut state = self.held.lock();
        (state.renewed, state.is_failing, state.message) = (renewed, false, message);
    }

    fn report_error(&self, error: &ApiError) {
        let LeaseSettings { namespace, name, .. } = &self.settings;
        let hint = match error.http_status_or_zero() {
            403 | 404 => "; apply the Lease and the Role of manifests/components/policy-resources",
            _ => "",
        };
        let message = format!("cannot use the Lease {namespace}/{name}: {error}{hint}");
        let mut state = self.held.lock();
        if state.message != message {
            tracing::warn!(namespace, name, "cannot use the Lease; retrying: {error}{hint}");
        }
        (state.is_failing, state.message) = (true, message);
    }
}
