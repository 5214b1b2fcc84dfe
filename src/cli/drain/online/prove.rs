//! The proof of a drain: no claim holds the devices that its rules select, in two lists of all claims, some seconds
//! apart.
//!
//! The proof reads claims and not slices, because a driver that restarts has no slices for a while. It reads them anew
//! and not from a watch.

use std::time::Duration;

use super::event::Event;
use super::halt::StopReason;
use super::run::{Ending, Run, holding_claim};
use super::time::seconds_between;
use tollgate_drain::{ClaimHoldingSelectedDevices, holding_claims};
use tollgate_engine::impact::target::DeviceNameSelector;
use tollgate_formats::gotime::Timestamp;

/// How many times the claims are listed before the devices count as free.
const CLAIM_CHECK_COUNT: usize = 2;
/// Time between two lists of the claims: a pod that was being scheduled at the first has its claim at the second.
const CLAIM_CHECK_INTERVAL: Duration = Duration::from_secs(10);

impl Run<'_> {
    /// Lists the claims twice, reports those that still hold the devices, and ends the drain. It started at
    /// `began`.
    pub(super) fn prove_devices_free(&mut self, began: Timestamp) -> Result<Ending, StopReason> {
        let selectors = self.rule_selectors();
        let holders = self.find_holding_claims_twice_if_none(&selectors)?;
        self.refresh_objects_with_retries()?;
        self.check_interrupt_and_rules_and_renew_lock()?;
        let needed = tollgate_drain::rules_for_targets_and_closed_devices(
            &self.server.objects().state(),
            &self.settings.request,
            &selectors,
        );
        let needed = needed.map_err(StopReason::Stopped)?;
        if let Some(new) = needed.iter().find(|rule| self.rules.iter().all(|known| known.name != rule.name)) {
            return Err(StopReason::Stopped(format!(
                "devices of the target appeared during the proof: rule {} is needed for them; run the same command again",
                new.name
            )));
        }
        let devices = self.devices.len();
        let seconds = seconds_between(began, self.server.time_of_last_exchange()).unsigned_abs();
        let holding: Vec<_> = holders.iter().map(holding_claim).collect();
        let is_proven = holding.is_empty();
        let (evicted, deleted) = (self.evicted.len(), self.deleted.len());
        self.notify_observer(&Event::Finished { devices, evicted, deleted, seconds, holding });
        Ok(if is_proven { Ending::Proven } else { Ending::Holding })
    }

    /// Returns the claims that hold selected devices. If there are none, looks again ten seconds later, because a pod
    /// that was being scheduled has its claim by then.
    pub(super) fn find_holding_claims_twice_if_none(
        &mut self,
        selectors: &[DeviceNameSelector],
    ) -> Result<Vec<ClaimHoldingSelectedDevices>, StopReason> {
        if selectors.is_empty() {
            return Err(StopReason::Stopped(
                "no rule selects the devices, so there is nothing to prove".to_owned(),
            ));
        }
        for look in 1..=CLAIM_CHECK_COUNT {
            if look > 1 {
                self.wait_and_refresh_objects(CLAIM_CHECK_INTERVAL)?;
            }
            let claims = self.server.list_claims();
            let claims =
                claims.map_err(|why| StopReason::Stopped(format!("the devices may not be free: {why}")))?;
            let holders = holding_claims(&claims.state(), selectors);
            self.notify_observer(&Event::Proof {
                look,
                holding: holders.iter().map(holding_claim).collect(),
            });
            if !holders.is_empty() {
                return Ok(holders);
            }
        }
        Ok(Vec::new())
    }
}
