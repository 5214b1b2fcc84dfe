//! A profile for one running API server: its feature gates and its served versions instead of the release's defaults.
//!
//! This module does no I/O: the caller queries the server, and this module combines the answers with `--feature-gates`
//! and describes the result. What a server does not report is assumed to be the default of its release, and the
//! description says so.
//!
//! Invariant: gates that a user names win over those that a server reports.

use std::sync::{Mutex, PoisonError};

use super::{ApiKind, Gate, GateChoice, GateSet, Gates, Profile, Version};

/// The versions of each kind that an API server serves, from its discovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ServedVersions(u128);

impl ServedVersions {
    /// The bit for a version of a kind.
    fn bit(kind: ApiKind, version: Version) -> u128 {
        1 << (kind as u32 * 5 + version as u32)
    }

    /// The set with one more version that is served.
    #[must_use]
    pub fn with(self, kind: ApiKind, version: Version) -> ServedVersions {
        ServedVersions(self.0 | ServedVersions::bit(kind, version))
    }

    /// True if the server serves the version of the kind.
    pub fn has(self, kind: ApiKind, version: Version) -> bool {
        self.0 & ServedVersions::bit(kind, version) != 0
    }

    /// The served versions of a kind, oldest first.
    pub fn versions_of(self, kind: ApiKind) -> impl Iterator<Item = Version> {
        Version::ALL.into_iter().filter(move |version| self.has(kind, *version))
    }
}

/// The information that a running API server reports about itself. An error explains why it is missing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LiveServer {
    /// The feature gates that it reports, on or off.
    pub gates: Result<Vec<(Gate, bool)>, String>,
    /// The versions of each kind that the server serves.
    pub served: Result<ServedVersions, String>,
}

impl Profile {
    /// Adapts this profile to a running server: with the feature gates in `choice`, else those that the
    /// server reports, else the release's defaults, and with the versions that it serves.
    pub fn for_server(
        &self,
        server: &LiveServer,
        choice: Option<&GateChoice>,
    ) -> Result<&'static Profile, String> {
        let profile = match (choice, &server.gates) {
            (Some(choice), _) => *self.with_gates(choice)?,
            (None, Ok(gates)) => {
                let set =
                    |on: GateSet, &(gate, is_on): &(Gate, bool)| self.set_gate_if_known(on, gate, is_on);
                let on = gates.iter().fold(self.default_on_and_unknown_gates(), set);
                self.apply_gates(Gates { are_live: true, ..Gates::chosen(on) })
            }
            (None, Err(_)) => self.apply_gates(Gates {
                are_guessed: true,
                ..Gates::chosen(self.default_on_and_unknown_gates())
            }),
        };
        Ok(profile.with_discovery(server).interned())
    }

    /// [`Profile::for_server`] for objects that the server sends to a webhook: a gate that it does not report is not
    /// known to be off, so nothing is denied because of it.
    pub fn for_webhook_assuming_unreported_gates(
        &self,
        server: &LiveServer,
        choice: Option<&GateChoice>,
    ) -> Result<&'static Profile, String> {
        match (choice, &server.gates) {
            (None, Err(_)) => Ok(self.with_discovery(server).interned()),
            _ => self.for_server(server, choice),
        }
    }

    /// This profile with the versions that the server serves, if it reports them.
    fn with_discovery(&self, server: &LiveServer) -> Profile {
        Profile { discovered: server.served.as_ref().ok().copied(), ..*self }
    }

    /// A copy of the profile that lives as long as the program. Few combinations of gates and versions ever occur, and
    /// each is kept once.
    pub(super) fn interned(self) -> &'static Profile {
        let key = |profile: &Profile| (profile.name, profile.gates, profile.discovered);
        let mut made = INTERNED_PROFILES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = made.iter().copied().find(|known| key(known) == key(&self)) {
            return known;
        }
        let profile: &'static Profile = Box::leak(Box::new(self));
        made.push(profile);
        profile
    }

    /// A sentence about the gates: which differ from the defaults, and which are off. Assumed gates count as the
    /// defaults.
    pub fn describe_gates(&self) -> String {
        let is_on = |gate: Gate| {
            if self.gates.are_assumed { self.is_gate_on_by_default(gate) } else { self.gates.on.has(gate) }
        };
        let changed = self.known_gates().filter(|gate| is_on(*gate) != self.is_gate_on_by_default(*gate));
        let changed: Vec<String> = changed.map(|gate| gate_setting(gate, is_on(gate))).collect();
        let off: Vec<&str> = self.known_gates().filter(|gate| !is_on(*gate)).map(Gate::name).collect();
        let changed = match changed.as_slice() {
            [] => format!("the defaults of {}", self.name),
            changed => format!("the defaults of {} except {}", self.name, changed.join(", ")),
        };
        if off.is_empty() {
            format!("{changed}; all are on")
        } else {
            format!("{changed}; off: {}", off.join(", "))
        }
    }

    /// The gates that differ between the server's report and this profile, each as the server has it:
    /// `DRADeviceTaints=true`.
    pub fn gates_differing_on_server(&self, server: &LiveServer) -> Vec<String> {
        let gates = server.gates.as_deref().unwrap_or_default();
        let is_known = |gate: Gate| self.known_gates().any(|known| known == gate);
        let differs = |(gate, is_on): &&(Gate, bool)| is_known(*gate) && self.gates.on.has(*gate) != *is_on;
        gates.iter().filter(differs).map(|(gate, is_on)| gate_setting(*gate, *is_on)).collect()
    }
}

/// A gate as the flag `--feature-gates` has it: `DRADeviceTaints=true`.
fn gate_setting(gate: Gate, is_on: bool) -> String {
    format!("{}={is_on}", gate.name())
}

/// The profiles that were made for running servers and feature gates, so that each exists only once.
static INTERNED_PROFILES: Mutex<Vec<&'static Profile>> = Mutex::new(Vec::new());

#[cfg(test)]
mod tests {
    use super::{ApiKind, Gate, GateChoice, LiveServer, Profile, ServedVersions, Version};

    fn release(name: &str) -> &'static Profile {
        Profile::named(name).expect("a release")
    }

    fn reports(gates: &[(Gate, bool)]) -> LiveServer {
        LiveServer { gates: Ok(gates.to_vec()), served: Err("not asked".to_owned()) }
    }

    fn silent() -> LiveServer {
        LiveServer { gates: Err("403".to_owned()), served: Err("403".to_owned()) }
    }

    #[test]
    fn a_server_is_judged_with_the_gates_it_reports() {
        let server = reports(&[(Gate::DRADeviceTaints, false), (Gate::DRADeviceTaintRules, true)]);
        let profile = release("1.36").for_server(&server, None).expect("gates");
        assert_eq!(
            profile.describe_gates(),
            "the defaults of 1.36 except DRADeviceTaintRules=true, DRADeviceTaints=false; \
             off: DRADeviceTaints, DRAListTypeAttributes, DRANodeAllocatableResources"
        );
        assert!(profile.gates.are_live && !profile.gates.are_assumed);
        let again = release("1.36").for_server(&server, None).expect("gates");
        assert!(std::ptr::eq(profile, again), "each combination is kept once");
        // A gate that the release does not have, as a newer server reports it, changes nothing.
        let newer = reports(&[(Gate::DRADerivedAttributes, false)]);
        let profile = release("1.36").for_server(&newer, None).expect("gates");
        assert!(profile.gates.on.has(Gate::DRADerivedAttributes));
        // A server knows best, also of a gate that its release should have on for good.
        let locked = reports(&[(Gate::DRAPrioritizedList, false)]);
        let profile = release("1.37").for_server(&locked, None).expect("gates");
        assert!(!profile.gates.on.has(Gate::DRAPrioritizedList));
    }

    #[test]
    fn a_server_that_does_not_tell_has_the_defaults() {
        let profile = release("1.35").for_server(&silent(), None).expect("gates");
        assert!(!profile.gates.on.has(Gate::DRADeviceTaints) && !profile.gates.are_live);
        // A gate that nobody reports may be on: that is no reason to say that a rule does nothing.
        assert_eq!(
            (profile.why_device_taint_rules_do_nothing(), profile.why_taints_do_nothing()),
            (None, None)
        );
        assert_eq!(
            profile.describe_gates_rules_may_lack().as_deref(),
            Some(
                "the API server does not report its feature gates; the rule has no effect unless the feature gates \
                 DRADeviceTaintRules and DRADeviceTaints are on (off by default in Kubernetes 1.35)"
            )
        );
        let newest = release("1.37").for_server(&silent(), None).expect("gates");
        assert_eq!(newest.describe_gates_rules_may_lack(), None, "on by default");
        let chosen = release("1.36").for_server(&silent(), Some(&GateChoice::Default)).expect("gates");
        assert!(
            chosen.describe_gates_rules_may_lack().is_none()
                && chosen.why_device_taint_rules_do_nothing().is_some()
        );
        assert!(profile.describe_gates().starts_with("the defaults of 1.35; off: DRAConsumableCapacity, "));
        // Behind it nothing is denied because a gate may be off, and the words are the same.
        let behind = release("1.35").for_webhook_assuming_unreported_gates(&silent(), None).expect("gates");
        assert!(behind.gates.on.has(Gate::DRADeviceTaints) && behind.gates.are_assumed);
        assert_eq!(behind.describe_gates(), profile.describe_gates());
        let all = release("1.34").with_gates(&GateChoice::All).expect("gates");
        assert!(all.describe_gates().ends_with("; all are on"));
    }

    #[test]
    fn a_choice_wins_and_is_compared() {
        let server = reports(&[(Gate::DRADeviceTaints, true), (Gate::DRADerivedAttributes, true)]);
        let choice = GateChoice::parse("DRADeviceTaints=false").expect("a choice");
        let profile = release("1.36").for_server(&server, Some(&choice)).expect("gates");
        assert!(!profile.gates.on.has(Gate::DRADeviceTaints) && !profile.gates.are_live);
        assert_eq!(profile.gates_differing_on_server(&server), ["DRADeviceTaints=true"]);
        let live = release("1.36").for_server(&server, None).expect("gates");
        assert_eq!(live.gates_differing_on_server(&server), [""; 0]);
        assert_eq!(profile.gates_differing_on_server(&silent()), [""; 0]);
    }

    #[test]
    fn discovery_decides_what_is_served() {
        let served = ServedVersions::default()
            .with(ApiKind::DeviceTaintRule, Version::V1alpha3)
            .with(ApiKind::ResourceSlice, Version::V1beta2);
        let server = LiveServer { served: Ok(served), ..silent() };
        let profile = release("1.36").for_server(&server, None).expect("gates");
        assert!(profile.is_served(ApiKind::DeviceTaintRule, Version::V1alpha3));
        assert!(!profile.is_served(ApiKind::ResourceSlice, Version::V1));
        assert!(profile.is_served(ApiKind::Pod, Version::V1), "not a matter of this group");
        assert!(release("1.36").is_served(ApiKind::ResourceSlice, Version::V1));
        assert_eq!(served.versions_of(ApiKind::ResourceSlice).collect::<Vec<_>>(), [Version::V1beta2]);
    }
}
