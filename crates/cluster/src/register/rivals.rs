//! Who changed a registration, and how soon that is reverted: pure.
//!
//! What a person or a controller changes is reverted at once, at most twice a second. What another server of Tollgate
//! writes, or a replica that left out a CA, is reverted after a delay that doubles each time: servers that disagree must
//! not overload the API server.

use std::time::Duration;

use tokio::time::Instant;

use super::FIELD_MANAGER;
use super::compare::{Desired, Difference, DifferentField, undesired_address};
use tollgate_document::doc::Value;

/// Minimum time between two reverts of changes by others.
const MIN_REVERT_DELAY: Duration = Duration::from_millis(500);
/// Maximum delay between two reverts of a change that another server made.
const MAX_REVERT_DELAY: Duration = Duration::from_secs(30);
/// Time without a revert after which the delay between reverts starts again at its minimum.
const REVERT_DELAY_RESET: Duration = Duration::from_mins(5);

/// When changes of one webhook configuration by others were reverted, which delays further reverts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RevertBackoff {
    last: Option<Instant>,
    /// Minimum time from the last revert to the next one.
    period: Duration,
}

impl RevertBackoff {
    /// Returns how long to wait before a revert that is due at `now`; zero if there was none recently. With
    /// `is_rival`, because another Tollgate made the change, the delay doubles each time.
    pub(super) fn next_delay(&mut self, now: Instant, is_rival: bool) -> Duration {
        let since = self.last.map_or(REVERT_DELAY_RESET, |last| now.saturating_duration_since(last));
        self.period = match self.period {
            _ if since >= REVERT_DELAY_RESET => Duration::ZERO,
            Duration::ZERO => MIN_REVERT_DELAY,
            period if is_rival => (period * 2).min(MAX_REVERT_DELAY),
            _ => MIN_REVERT_DELAY,
        };
        let delay = self.period.saturating_sub(since);
        self.last = Some(now + delay);
        delay
    }
}

/// Who changed a stored configuration that this server then has to revert.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum ChangedBy {
    /// Another Tollgate server, at this address; a text if it has the same address.
    OtherServer(String),
    /// Another replica of this server, which left out the CA of this one: the bundle is full.
    Replica,
    /// A person or a controller, or a replica that reloads its policies earlier or later.
    AnotherProgram,
}

/// Who made these differences. Replicas of one server differ only in missing entries and in CAs.
pub(super) fn changed_by(stored: Value<'_>, desired: Desired<'_>, wrong: &[Difference]) -> ChangedBy {
    if let Some(address) = undesired_address(stored, desired.client_config) {
        return ChangedBy::OtherServer(address);
    }
    let is_by_tollgate = last_manager_if_other(stored).is_empty();
    if is_by_tollgate && wrong.iter().any(|wrong| matches!(wrong.field, DifferentField::Other(_))) {
        ChangedBy::OtherServer("the same address, with other settings".to_owned())
    } else if is_by_tollgate && wrong.iter().any(|wrong| wrong.field == DifferentField::CaBundle) {
        ChangedBy::Replica
    } else {
        ChangedBy::AnotherProgram
    }
}

/// The field manager that wrote to an object last; empty if that is this program or a replica, or is not known.
pub(super) fn last_manager_if_other(object: Value<'_>) -> String {
    let entries = object.get("metadata").get("managedFields").items();
    // Times have whole seconds: within the same second, the other manager counts.
    let last =
        entries.max_by_key(|entry| (entry.get("time").str(), entry.get("manager").str() != FIELD_MANAGER));
    let manager = last.map_or("", |entry| entry.get("manager").str());
    if manager == FIELD_MANAGER { String::new() } else { manager.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::{ChangedBy, Duration, Instant, REVERT_DELAY_RESET, RevertBackoff, changed_by};
    use crate::register::compare::{Desired, NarrowingPermission, differences};
    use tollgate_document::doc;

    /// Replicas of one server are never taken for another server.
    #[test]
    fn another_server_is_told_from_a_replica() {
        let object = |manager: &str, url: &str, bundle: &str, timeout: u8| {
            format!(
                r#"{{"metadata":{{"managedFields":[{{"manager":"{manager}","time":"2026-01-01T00:00:00Z"}}]}},
                "webhooks":[{{"name":"a.tollgate.dev","clientConfig":{{"url":"{url}","caBundle":"{bundle}"}},"timeoutSeconds":{timeout}}}]}}"#
            )
        };
        let here = object("tollgate", "https://a/validate", "QQ==", 3);
        let manifest = doc::parse(&here).unwrap();
        let client_config = manifest.root().get("webhooks").item(0).get("clientConfig");
        let desired = Desired { manifest: manifest.root(), client_config };
        let by = |stored: &str| {
            let stored = doc::parse(stored).unwrap();
            let wrong = differences(stored.root(), desired, None, NarrowingPermission::Allowed);
            changed_by(stored.root(), desired, &wrong)
        };
        let other = |address: &str| ChangedBy::OtherServer(address.to_owned());
        assert_eq!(by(&object("tollgate", "https://b/validate", "QQ==", 3)), other("https://b"));
        assert_eq!(
            by(&object("tollgate", "https://a/validate", "QQ==", 9)),
            other("the same address, with other settings")
        );
        assert_eq!(by(&object("tollgate", "https://a/validate", "Qg==", 3)), ChangedBy::Replica);
        assert_eq!(by(&object("kubectl-edit", "https://a/validate", "", 3)), ChangedBy::AnotherProgram);
        assert_eq!(by(r#"{"webhooks":[]}"#), ChangedBy::AnotherProgram);
    }

    #[test]
    fn two_servers_revert_each_other_less_and_less_often() {
        let (mut reverts, start) = (RevertBackoff::default(), Instant::now());
        let mut now = start;
        let mut delays = Vec::new();
        for _ in 0..10 {
            let delay = reverts.next_delay(now, true);
            delays.push(delay.as_millis());
            now += delay;
        }
        assert_eq!(delays, [0, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
        assert_eq!(reverts.next_delay(now + REVERT_DELAY_RESET, true), Duration::ZERO);
    }

    #[test]
    fn what_others_change_is_reverted_at_once_at_most_twice_a_second() {
        let (mut reverts, mut now) = (RevertBackoff::default(), Instant::now());
        for expected in [0, 500, 500, 500] {
            let delay = reverts.next_delay(now, false);
            assert_eq!(delay.as_millis(), expected);
            now += delay;
        }
        now += Duration::from_millis(400);
        assert_eq!(reverts.next_delay(now, false), Duration::from_millis(100));
    }
}
