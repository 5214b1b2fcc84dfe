//! The feature gates of dynamic resource allocation: the releases that have them, and their defaults. Data.
//!
//! The fields that a gate guards are in `api::gated`. Gates never change the served versions. Unless the user
//! specifies the gates, a profile assumes that all are enabled, because a user who writes a toleration has the gate
//! enabled or wants it. Drafts have no gates.
//!
//! Invariant: a gate that a release locks is always enabled there.

use super::{ApiKind, Availability, Profile, Version};

/// The releases from 1.`minor` on.
const fn since(minor: u32) -> Availability {
    Availability::since(minor)
}
const NEVER: Availability = Availability(0);

macro_rules! gates {
    ($($(#[$doc:meta])* $gate:ident: since $known:expr, on $on:expr, locked $locked:expr;)*) => {
        /// A feature gate, by its name in Kubernetes.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Gate { $($(#[$doc])* $gate,)* }

        impl Gate {
            /// All feature gates, by name.
            pub const ALL: &'static [Gate] = &[$(Gate::$gate),*];

            /// The name in Kubernetes, such as `DRADeviceTaints`.
            pub const fn name(self) -> &'static str {
                match self { $(Gate::$gate => stringify!($gate),)* }
            }

            /// The releases that have the feature gate, those that enable it by default, and those that lock
            /// it to enabled.
            const fn releases(self) -> [Availability; 3] {
                match self { $(Gate::$gate => [since($known), $on, $locked],)* }
            }
        }
    };
}

gates! {
    /// `adminAccess` of requests and results.
    DRAAdminAccess: since 32, on since(34), locked since(36);
    /// `capacity` of requests, `requestPolicy`, `allowMultipleAllocations`, `distinctAttribute`, `shareID`.
    DRAConsumableCapacity: since 34, on since(36), locked NEVER;
    /// `derivedAttributes` of requests.
    DRADerivedAttributes: since 37, on NEVER, locked NEVER;
    /// `bindingConditions`, `bindingFailureConditions`, `bindsToNode`.
    DRADeviceBindingConditions: since 34, on since(36), locked NEVER;
    /// `compatibilityGroups` of consumed counters.
    DRADeviceCompatibilityGroups: since 37, on NEVER, locked NEVER;
    /// The scheduler and the eviction controller act on DeviceTaintRules. The API server stores them in any
    /// case.
    DRADeviceTaintRules: since 35, on since(37), locked NEVER;
    /// `taints` of devices, `tolerations` of requests.
    DRADeviceTaints: since 33, on since(36), locked NEVER;
    /// `extendedResourceName` of classes.
    DRAExtendedResource: since 34, on since(36), locked since(37);
    /// Request policies are exact to the thousandth.
    DRAFractionalCapacityRange: since 37, on NEVER, locked NEVER;
    /// `ints`, `bools`, `strings`, `versions` of attributes.
    DRAListTypeAttributes: since 36, on NEVER, locked NEVER;
    /// `nodeAllocatableResources`, in 1.36 `nodeAllocatableResourceMappings`.
    DRANodeAllocatableResources: since 36, on NEVER, locked NEVER;
    /// Allows `skipNodeOperations`.
    DRAOptionalNodeOperations: since 37, on NEVER, locked NEVER;
    /// `sharedCounters`, `consumesCounters`, `perDeviceNodeSelection`.
    DRAPartitionableDevices: since 33, on since(36), locked NEVER;
    /// Allows `partitionTypeAttribute`.
    DRAPartitionableDevicesType: since 37, on NEVER, locked NEVER;
    /// Allows `firstAvailable`.
    DRAPrioritizedList: since 33, on since(34), locked since(37);
    /// `status.devices` of claims.
    DRAResourceClaimDeviceStatus: since 32, on since(33), locked since(37);
}

/// The gates without which nothing acts on DeviceTaintRules.
const RULE_GATES: [Gate; 2] = [Gate::DRADeviceTaints, Gate::DRADeviceTaintRules];

/// The feature gate of dynamic resource allocation itself. It is assumed to be enabled.
const DRA_GATE: &str = "DynamicResourceAllocation";

impl Gate {
    /// The gate with that name; `None` if there is none.
    pub fn named(name: &str) -> Option<Gate> {
        Gate::ALL.iter().copied().find(|gate| gate.name() == name)
    }
}

/// A set of feature gates.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct GateSet(u32);

impl GateSet {
    /// All feature gates, including those of future releases.
    pub const ALL: GateSet = GateSet(u32::MAX);

    /// True if the set contains the feature gate.
    pub const fn has(self, gate: Gate) -> bool {
        self.0 & 1 << gate as u32 != 0
    }

    /// The set with the gate added if `on`, removed if not.
    #[must_use]
    pub const fn with(self, gate: Gate, on: bool) -> GateSet {
        GateSet(if on { self.0 | 1 << gate as u32 } else { self.0 & !(1 << gate as u32) })
    }
}

/// The feature gates of a profile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gates {
    /// The feature gates that are on.
    pub on: GateSet,
    /// True if the user did not specify feature gates. All are then treated as enabled, with warnings about
    /// fields that default gates would drop.
    pub are_assumed: bool,
    /// True if a running API server reported them.
    pub are_live: bool,
    /// True if a running API server did not report them: these are the defaults of its release, and others may be on.
    pub are_guessed: bool,
}

impl Gates {
    pub(super) const ALL_ASSUMED_ON: Gates = Gates { are_assumed: true, ..Gates::chosen(GateSet::ALL) };

    /// Feature gates that were specified explicitly.
    pub(super) const fn chosen(on: GateSet) -> Gates {
        Gates { on, are_assumed: false, are_live: false, are_guessed: false }
    }
}

/// The feature gates that the user specified with `--feature-gates`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum GateChoice {
    /// The feature gates that a server enables by default.
    Default,
    /// All feature gates are enabled.
    All,
    /// The defaults, except for these gates. Gates that do not affect Tollgate are omitted.
    Changed(Vec<(Gate, bool)>),
}

impl GateChoice {
    /// Parses `default`, `all`, or a list `DRADeviceTaints=true,…`, as programs of Kubernetes take it: gates that have
    /// nothing to do with devices are accepted.
    pub fn parse(text: &str) -> Result<GateChoice, String> {
        match text.trim() {
            "default" => return Ok(GateChoice::Default),
            "all" => return Ok(GateChoice::All),
            _ => {}
        }
        let mut changed = Vec::new();
        let mut is_empty = true;
        for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            let (name, value) = entry.split_once('=').unwrap_or((entry, ""));
            let name = name.trim();
            let gate = Gate::named(name);
            let mut irrelevant = include_str!("other_gates.txt").lines().chain([DRA_GATE]);
            if gate.is_none() && !irrelevant.any(|known| known == name) {
                let names: Vec<&str> = Gate::ALL.iter().map(|gate| gate.name()).collect();
                return Err(format!(
                    "unknown feature gate {name:?}; known feature gates: {}",
                    names.join(", ")
                ));
            }
            let is_on = match value.trim() {
                "true" => true,
                "false" => false,
                _ => return Err(format!("write {name}=true or {name}=false")),
            };
            if name == DRA_GATE && !is_on {
                return Err(format!(
                    "the feature gate {name} cannot be turned off: without it, Kubernetes has no device claims"
                ));
            }
            changed.extend(gate.map(|gate| (gate, is_on)));
            is_empty = false;
        }
        if is_empty {
            return Err("use `default`, `all`, or a list such as DRADeviceTaints=true".to_owned());
        }
        Ok(GateChoice::Changed(changed))
    }
}

impl Profile {
    /// The gates that the release has; none for a draft.
    pub fn known_gates(&self) -> impl Iterator<Item = Gate> {
        let (fields, is_release) = (self.fields, self.is_release);
        let is_known = move |gate: &Gate| is_release && gate.releases()[0].overlaps(fields);
        Gate::ALL.iter().copied().filter(is_known)
    }

    /// True if the release enables the feature gate by default.
    pub fn is_gate_on_by_default(&self, gate: Gate) -> bool {
        gate.releases()[1].overlaps(self.fields)
    }

    /// True if the release locks the feature gate to enabled.
    pub fn locks_gate_on(&self, gate: Gate) -> bool {
        gate.releases()[2].overlaps(self.fields)
    }

    /// The disabled feature gates of the release; if the user specified none, those disabled by default.
    pub fn gates_off_by_setting_or_default(&self) -> impl Iterator<Item = Gate> {
        let gates = self.gates;
        let is_off = move |gate: &Gate| {
            !(if gates.are_assumed { self.is_gate_on_by_default(*gate) } else { gates.on.has(*gate) })
        };
        self.known_gates().filter(is_off)
    }

    /// True if the release has the feature gate and it is enabled; by default if the user specified none.
    pub fn is_gate_on_by_setting_or_default(&self, gate: Gate) -> bool {
        self.known_gates().any(|known| known == gate)
            && self.gates_off_by_setting_or_default().all(|off| off != gate)
    }

    /// A sentence about why DeviceTaintRules have no effect on the API server; `None` if they have, or if that is not
    /// known.
    pub fn why_device_taint_rules_do_nothing(&self) -> Option<String> {
        let kind = ApiKind::DeviceTaintRule;
        if self.discovered.is_some()
            && !self.versions(kind).iter().any(|version| self.is_served(kind, *version))
        {
            return Some(format!("this API server does not serve {}", kind.name()));
        }
        self.why_gates_disable_device_taint_rules()
    }

    /// A sentence about the feature gate because of which DeviceTaintRules have no effect; `None` if there is none, or
    /// if that is not known.
    pub fn why_gates_disable_device_taint_rules(&self) -> Option<String> {
        self.why_off(&RULE_GATES)
    }

    /// True if the scheduler and the eviction controller act on DeviceTaintRules; by default if the user
    /// specified no feature gates.
    pub fn acts_on_device_taint_rules(&self) -> bool {
        let kind = ApiKind::DeviceTaintRule;
        let is_served = || self.versions(kind).iter().any(|version| self.is_served(kind, *version));
        self.gates_off_by_setting_or_default().all(|gate| !RULE_GATES.contains(&gate)) && is_served()
    }

    /// The first release among `profiles` in which DeviceTaintRules have an effect, and why they have none in the last
    /// earlier release that can store this version. `None` if there is no such earlier release, or if they have an effect
    /// in none. Each profile counts with the feature gates that were chosen for it, or else with its defaults.
    pub fn first_release_acting_on_taint_rules(
        profiles: &[&'static Profile],
        version: Version,
    ) -> Option<(&'static Profile, String)> {
        let mut before = None;
        // In the order of the releases, in whichever order they were asked for.
        for known in super::ALL.iter().filter(|known| known.is_release) {
            let Some(profile) = profiles.iter().find(|profile| profile.is_same_minor_release(known)) else {
                continue;
            };
            if profile.acts_on_device_taint_rules() {
                return before.map(|why| (*profile, why));
            }
            let gate = profile.gates_off_by_setting_or_default().find(|gate| RULE_GATES.contains(gate));
            let can_store = profile.versions(ApiKind::DeviceTaintRule).contains(&version);
            before = gate.filter(|_| can_store).map(|gate| profile.describe_off(gate)).or(before);
        }
        None
    }

    /// A sentence about the feature gate because of which taints in ResourceSlices have no effect; `None` if there is
    /// none, or if that is not known.
    pub fn why_taints_do_nothing(&self) -> Option<String> {
        self.why_off(&[Gate::DRADeviceTaints])
    }

    /// A sentence about the feature gates on which the effect of DeviceTaintRules depends; `None` if it is known which
    /// gates are on, or if the defaults suffice.
    pub fn describe_gates_rules_may_lack(&self) -> Option<String> {
        self.describe_possibly_disabled_gates(&RULE_GATES, "the rule has")
            .filter(|_| self.why_device_taint_rules_do_nothing().is_none())
    }

    /// A sentence about the feature gate on which the effect of taints in ResourceSlices depends; `None` if it is known
    /// which gates are on, or if the defaults suffice.
    pub fn describe_gates_taints_may_lack(&self) -> Option<String> {
        self.describe_possibly_disabled_gates(&[Gate::DRADeviceTaints], "taints have")
    }

    /// A sentence about those of `gates` that are disabled by default, if the user did not specify feature
    /// gates. `what` is its subject and verb.
    fn describe_possibly_disabled_gates(&self, gates: &[Gate], what: &str) -> Option<String> {
        let Gates { are_guessed, are_assumed, .. } = self.gates;
        let off = self
            .gates_off_by_setting_or_default()
            .filter(|gate| (are_guessed || are_assumed) && gates.contains(gate));
        let off: Vec<&str> = off.map(Gate::name).collect();
        let (gates, verb) = if off.len() == 1 { ("gate", "is") } else { ("gates", "are") };
        let names = off.join(" and ");
        let silent = if are_guessed { "the API server does not report its feature gates; " } else { "" };
        (!off.is_empty()).then(|| {
            format!(
                "{silent}{what} no effect unless the feature {gates} {names} {verb} on (off by default in Kubernetes {})",
                self.name
            )
        })
    }

    /// A sentence about the first of these gates that is off; `None` if there is none, or if the gates are assumed or
    /// guessed.
    fn why_off(&self, gates: &[Gate]) -> Option<String> {
        let is_known = !self.gates.are_assumed && !self.gates.are_guessed;
        let is_off = |gate: &Gate| is_known && gates.contains(gate);
        self.gates_off_by_setting_or_default().find(is_off).map(|gate| self.describe_off(gate))
    }

    /// A sentence that states that a feature gate is disabled, and in which release.
    fn describe_off(&self, gate: Gate) -> String {
        match (self.gates.are_live, self.is_gate_on_by_default(gate)) {
            (true, _) => format!("the feature gate {} is off on this API server", gate.name()),
            (false, true) => format!("the feature gate {} is off", gate.name()),
            (false, false) => {
                format!("the feature gate {} is off by default in Kubernetes {}", gate.name(), self.name)
            }
        }
    }

    /// Returns the profile with the chosen feature gates, and the behaviors that depend on them.
    pub fn with_gates(&self, choice: &GateChoice) -> Result<&'static Profile, String> {
        let mut on =
            if *choice == GateChoice::All { GateSet::ALL } else { self.default_on_and_unknown_gates() };
        if let GateChoice::Changed(changed) = choice {
            for &(gate, is_on) in changed {
                if !is_on && self.locks_gate_on(gate) {
                    return Err(format!(
                        "the feature gate {} is always on in Kubernetes {} and cannot be turned off",
                        gate.name(),
                        self.name
                    ));
                }
                on = self.set_gate_if_known(on, gate, is_on);
            }
        }
        Ok(self.apply_gates(Gates::chosen(on)).interned())
    }

    /// The gates that are on by default, together with all gates that the release does not have.
    pub(super) fn default_on_and_unknown_gates(&self) -> GateSet {
        self.known_gates().fold(GateSet::ALL, |set, gate| set.with(gate, self.is_gate_on_by_default(gate)))
    }

    /// The set with the gate on or off; unchanged if the release does not have that gate.
    pub(super) fn set_gate_if_known(&self, on: GateSet, gate: Gate, is_on: bool) -> GateSet {
        if self.known_gates().any(|known| known == gate) { on.with(gate, is_on) } else { on }
    }

    /// The profile with these gates, and the behaviours that they switch.
    pub(super) fn apply_gates(&self, gates: Gates) -> Profile {
        let on = gates.on;
        let mut profile = Profile { gates, ..*self };
        profile.consumable_capacity &= on.has(Gate::DRAConsumableCapacity);
        profile.fractional_capacity &= on.has(Gate::DRAFractionalCapacityRange);
        profile.allocation = profile.allocation.with_gates(on);
        profile.selectors =
            profile.selectors.with_list_attributes_feature_gate(on.has(Gate::DRAListTypeAttributes));
        for env in [&mut profile.cel, &mut profile.stored_cel] {
            env.list_attributes &= on.has(Gate::DRAListTypeAttributes);
            env.includes &= on.has(Gate::DRAListTypeAttributes);
            env.allow_multiple_allocations &= on.has(Gate::DRAConsumableCapacity);
        }
        profile
    }
}

#[cfg(test)]
mod tests {
    use super::{Gate, GateChoice};
    use crate::profile::Profile;

    fn off(release: &str, choice: &str) -> Vec<&'static str> {
        let profile = Profile::named(release).expect("a release");
        let profile = profile.with_gates(&GateChoice::parse(choice).expect("a choice")).expect("gates");
        profile.gates_off_by_setting_or_default().map(Gate::name).collect()
    }

    #[test]
    fn defaults_are_those_of_the_release() {
        assert_eq!(
            off("1.36", "default"),
            ["DRADeviceTaintRules", "DRAListTypeAttributes", "DRANodeAllocatableResources"]
        );
        assert!(off("1.34", "default").contains(&"DRADeviceTaints"));
        assert_eq!(off("1.34", "all"), [""; 0]);
        assert!(!off("1.34", "DRADeviceTaints=true").contains(&"DRADeviceTaints"));
        assert_eq!(off("kep-5055", "default"), [""; 0]);
    }

    #[test]
    fn rules_act_where_their_gates_are_on() {
        let acts = |release: &str, choice: Option<&str>| {
            let profile = Profile::named(release).expect("a release");
            let choice = choice.map(|choice| GateChoice::parse(choice).expect("a choice"));
            choice
                .map_or(profile, |choice| profile.with_gates(&choice).expect("gates"))
                .acts_on_device_taint_rules()
        };
        assert!(acts("1.37", None) && acts("1.37", Some("default")), "on by default, and v1 is served");
        assert!(
            !acts("1.37", Some("DRADeviceTaintRules=false")) && !acts("1.37", Some("DRADeviceTaints=false"))
        );
        assert!(!acts("1.36", None) && !acts("1.34", None), "defaults if nothing is said");
    }

    #[test]
    fn the_scheduler_follows_the_gates() {
        let with = |release: &str, choice: &str| {
            let choice = GateChoice::parse(choice).expect("a choice");
            *Profile::named(release).expect("a release").with_gates(&choice).expect("gates")
        };
        let rules =
            |release: &str, choice: &str| with(release, choice).allocation.features.device_taint_rules;
        assert!(rules("1.37", "default") && !rules("1.36", "default"));
        assert!(rules("1.36", "DRADeviceTaintRules=true"));
        assert!(!rules("1.36", "DRADeviceTaintRules=true,DRADeviceTaints=false"), "rules need taints");
        assert!(rules("1.34", "DRADeviceTaints=true"), "one gate for both");

        let binding = |choice: &str| with("1.36", choice).allocation.features.binding_conditions;
        assert!(binding("default") && !binding("DRAResourceClaimDeviceStatus=false"));
        let capacity = |release: &str| with(release, "all").allocation.features.consumable_capacity;
        assert!(capacity("1.34") && !capacity("1.33"), "a release has no features of later ones");
        assert!(with("1.37", "all").allocation.fractional_ranges);
        assert!(!with("1.37", "default").allocation.fractional_ranges);

        let lists = |profile: &Profile| !profile.selectors.refuses_list_attributes;
        assert!(!lists(Profile::named("1.36").expect("a release")), "off by default");
        assert!(!lists(&with("1.36", "default")) && lists(&with("1.36", "DRAListTypeAttributes=true")));
        assert!(lists(&with("1.37", "default")), "1.37 needs no gate to evaluate lists");
        assert!(!lists(&with("1.35", "all")));
    }

    #[test]
    fn a_locked_gate_stays_on() {
        let choice = GateChoice::parse("DRAPrioritizedList=false").expect("a choice");
        let error = Profile::named("1.37").expect("a release").with_gates(&choice).expect_err("locked");
        assert_eq!(
            error,
            "the feature gate DRAPrioritizedList is always on in Kubernetes 1.37 and cannot be turned off"
        );
        assert!(off("1.36", "DRAPrioritizedList=false").contains(&"DRAPrioritizedList"));
    }

    #[test]
    fn gates_of_other_features_are_accepted() {
        let choice =
            GateChoice::parse("DynamicResourceAllocation=true,DRADeviceTaints=true, SidecarContainers=false");
        assert_eq!(choice, Ok(GateChoice::Changed(vec![(Gate::DRADeviceTaints, true)])));
        assert_eq!(GateChoice::parse("DynamicResourceAllocation=true"), Ok(GateChoice::Changed(Vec::new())));
        let names = include_str!("other_gates.txt");
        assert!(names.lines().is_sorted_by(|one, next| one < next), "sorted, each once");
        assert_eq!(names.lines().find(|name| Gate::named(name).is_some()), None, "a gate that matters");
    }

    #[test]
    fn what_cannot_be_read_says_what_can() {
        for (text, expected) in [
            (
                "DRADeviceTaint=true",
                "unknown feature gate \"DRADeviceTaint\"; known feature gates: DRAAdminAccess, ",
            ),
            ("DynamicResourceAllocation", "write DynamicResourceAllocation=true"),
            (
                "DynamicResourceAllocation=false",
                "the feature gate DynamicResourceAllocation cannot be turned off: ",
            ),
            ("AllBeta=true", "unknown feature gate \"AllBeta\"; known feature gates: DRAAdminAccess, "),
            ("DRADeviceTaints", "write DRADeviceTaints=true or DRADeviceTaints=false"),
            ("", "use `default`, `all`, or a list such as DRADeviceTaints=true"),
        ] {
            let error = GateChoice::parse(text).expect_err(text);
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
