//! The lock of drains: the Lease `tollgate-drain`. Two drains at once would count on the same free devices.
//!
//! A Lease counts as held until nobody has renewed it for its duration, as seen here: the clocks of two machines need
//! not agree. So whoever finds a Lease of a drain that was killed waits for that long and takes it over.
//!
//! Invariant: nothing is evicted after the Lease was lost, because each renewal names the version that it replaces.

use std::time::Duration;

use serde_json::value::RawValue;

use super::event::Event;
use super::run::{Run, StopReason};
use super::time::{micro_time, seconds_between};
pub(super) use crate::cluster::DRAIN_LEASE as LEASE_NAME;
use crate::cluster::DrainApiRequest;
use crate::report::record::record;
use tollgate_document::doc::{self, Value};
use tollgate_formats::gotime::Timestamp;

/// Another drain may take the Lease if it was not renewed for this time.
const LEASE_DURATION_SECONDS: i64 = 60;
/// A Lease whose last renewal is older than this is renewed before the next eviction and while a drain waits.
const RENEW_AFTER_SECONDS: i64 = 10;
/// How often a drain checks whether the Lease of another one is free.
const LEASE_CHECK_INTERVAL: Duration = Duration::from_secs(3);

/// The namespace of the Lease, and the identity of this drain as its holder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::cli::drain) struct LockSettings {
    /// The namespace of the Lease.
    pub(super) namespace: String,
    /// Identity of this process in the Lease: user, host, and a part that no other process has.
    pub(super) holder: String,
}

impl LockSettings {
    /// Returns namespace and name of the Lease.
    fn lease(&self) -> String {
        format!("{}/{LEASE_NAME}", self.namespace)
    }
}

/// The fields of a Lease that a drain reads.
struct LeaseView {
    version: String,
    holder: String,
    renew_time: String,
    acquire_time: String,
    transitions: i64,
    duration: i64,
    labels: Option<Box<RawValue>>,
    annotations: Option<Box<RawValue>>,
}

impl LeaseView {
    fn parse(text: &str) -> Result<LeaseView, String> {
        let lease = doc::parse(text).map_err(|_error| "the Lease is not JSON".to_owned())?;
        let (metadata, spec) = (lease.root().get("metadata"), lease.root().get("spec"));
        let raw =
            |value: Value<'_>| value.exists().then(|| RawValue::from_string(value.to_json()).ok()).flatten();
        Ok(LeaseView {
            version: metadata.get("resourceVersion").str().to_owned(),
            holder: spec.get("holderIdentity").str().to_owned(),
            renew_time: spec.get("renewTime").str().to_owned(),
            acquire_time: spec.get("acquireTime").str().to_owned(),
            transitions: spec.get("leaseTransitions").int().unwrap_or(0),
            duration: spec.get("leaseDurationSeconds").int().unwrap_or(LEASE_DURATION_SECONDS).clamp(1, 600),
            labels: raw(metadata.get("labels")),
            annotations: raw(metadata.get("annotations")),
        })
    }
}

impl Run<'_> {
    /// Returns why the Lease cannot be read, such as a missing namespace, before the drain changes anything;
    /// `None` if it can.
    pub(super) fn lock_read_problem(&mut self) -> Result<Option<String>, StopReason> {
        let Some(lock) = self.settings.lock.clone() else { return Ok(None) };
        Ok(self.read_lease(&lock)?.err())
    }

    /// Takes the Lease. If another drain holds it, waits until that Lease has expired; refuses if it is renewed
    /// or released meanwhile, because the confirmed plan is then out of date.
    pub(super) fn take_lock_or_wait_for_expiry(&mut self) -> Result<(), StopReason> {
        let Some(lock) = self.settings.lock.clone() else { return Ok(()) };
        let mut seen: Option<(String, String, Timestamp)> = None;
        loop {
            let lease = self.read_lease(&lock)?.map_err(StopReason::Refused)?;
            let now = self.now();
            let is_held = !lease.holder.is_empty() && lease.holder != lock.holder;
            match &seen {
                // The plan that the user has seen is out of date.
                Some((holder, renewed, _)) if *holder != lease.holder || *renewed != lease.renew_time => {
                    let (what, when) = if is_held {
                        ("is running", "when the other one has ended")
                    } else {
                        ("has just ended", "to make a new plan")
                    };
                    return Err(StopReason::Refused(format!(
                        "another drain {what}: {holder} holds the Lease {} or held it; two drains would count on the same \
                         free devices, so run this command again {when}",
                        lock.lease()
                    )));
                }
                Some((_, _, since)) if seconds_between(*since, now) <= lease.duration => {}
                None if is_held => {
                    self.notify_observer(&Event::LockWaits {
                        holder: lease.holder.clone(),
                        seconds: lease.duration,
                    });
                    seen = Some((lease.holder, lease.renew_time, now));
                }
                _ => {
                    if self.write_lease(&lock, &lease, &lock.holder, now)? {
                        let (lease, holder) = (lock.lease(), lock.holder.clone());
                        self.notify_observer(&Event::Locked { lease, holder });
                        return Ok(());
                    }
                    // Somebody was faster; look again.
                    continue;
                }
            }
            self.wait_and_refresh_objects(LEASE_CHECK_INTERVAL)?;
        }
    }

    /// Renews the Lease if the last renewal is 10 seconds old. Returns an error if this drain no longer holds it.
    pub(super) fn renew_lock_if_due(&mut self) -> Result<(), StopReason> {
        let (Some(lock), Some(renewed)) = (self.settings.lock.clone(), self.lock_renewed) else {
            return Ok(());
        };
        // A clock that was set back must not keep the Lease from being renewed.
        if (0..RENEW_AFTER_SECONDS).contains(&seconds_between(renewed, self.now())) {
            return Ok(());
        }
        // A Lease that has expired, because the machine slept, may be someone else's by now.
        let lease = self.read_lease(&lock)?.map_err(StopReason::Stopped)?;
        let now = self.now();
        if lease.holder == lock.holder && self.write_lease(&lock, &lease, &lock.holder, now)? {
            return Ok(());
        }
        self.lock_renewed = None;
        let other = if lease.holder.is_empty() { "nobody" } else { lease.holder.as_str() };
        Err(StopReason::Stopped(format!(
            "the Lease {} is no longer held by this drain: it is held by {other}",
            lock.lease()
        )))
    }

    /// Gives the Lease back. Errors are ignored, because the Lease expires by itself.
    pub(super) fn release_lock(&mut self) {
        let (Some(lock), Some(_)) = (self.settings.lock.clone(), self.lock_renewed) else { return };
        let Ok(Ok(lease)) = self.read_lease(&lock) else { return };
        if lease.holder == lock.holder {
            let now = self.now();
            _ = self.write_lease(&lock, &lease, "", now);
        }
        self.lock_renewed = None;
    }

    /// Reads the Lease. The inner error says why it cannot be used: it does not exist or is not readable.
    fn read_lease(&mut self, lock: &LockSettings) -> Result<Result<LeaseView, String>, StopReason> {
        let request = DrainApiRequest::GetLease { namespace: lock.namespace.clone() };
        let answer = self.send_with_retries(&request)?;
        Ok(match answer.code {
            404 => Err(format!(
                "there is no Lease {}, which keeps two drains from running at once; apply \
                 manifests/components/drain/rbac.yaml (its namespace must exist), name the namespace of the Lease with \
                 --lock-namespace, or add --no-lock",
                lock.lease()
            )),
            _ if answer.is_success() => LeaseView::parse(&answer.body),
            _ => Err(format!("cannot read the Lease {}: {}", lock.lease(), answer.status_code_and_message())),
        })
    }

    /// Writes the Lease with this holder; the empty one releases it. Returns false if another client changed it
    /// since it was read.
    fn write_lease(
        &mut self,
        lock: &LockSettings,
        lease: &LeaseView,
        holder: &str,
        now: Timestamp,
    ) -> Result<bool, StopReason> {
        let is_ours = lease.holder == holder;
        let acquire_time = if is_ours && !lease.acquire_time.is_empty() {
            lease.acquire_time.clone()
        } else {
            micro_time(now)
        };
        let transitions = lease.transitions.saturating_add(i64::from(!is_ours && !holder.is_empty()));
        let object = record! {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": record! {
                "name": LEASE_NAME,
                "namespace": lock.namespace,
                "resourceVersion": lease.version,
                "labels" if given: lease.labels,
                "annotations" if given: lease.annotations,
            },
            "spec": record! {
                "holderIdentity": holder,
                "leaseDurationSeconds": LEASE_DURATION_SECONDS,
                "acquireTime": acquire_time,
                "renewTime": micro_time(now),
                "leaseTransitions": transitions,
            },
        };
        let object = object.get().to_owned();
        let request = DrainApiRequest::UpdateLease { namespace: lock.namespace.clone(), object };
        let answer = self.send_with_retries(&request)?;
        match answer.code {
            409 => Ok(false),
            _ if answer.is_success() => {
                self.lock_renewed = (!holder.is_empty()).then_some(now);
                Ok(true)
            }
            _ => Err(StopReason::answered(format!("cannot write the Lease {}", lock.lease()), &answer)),
        }
    }
}
