//! Plans a drain: the rules that close devices, the pods that move in each wave, and the pods that stay and why.
//!
//! The crate is pure: its input is the objects of a cluster, the user's request, and a function that runs a forecast.
//! It sends nothing to a cluster and reads no clock.
//!
//! Invariant: a pod moves only if its replacement fits in all simulated runs of a forecast, or if the user explicitly
//! allows it. Every pod that stays has a reason and a remedy.

mod budgets;
mod fit;
mod movable;
mod name;
mod notes;
mod outcome;
mod plan;
mod request;
mod rule;
mod selection;
mod stay;
mod targets;
mod units;
mod users;
mod waves;

pub use name::readable_rule_name_with_hash;
pub use outcome::{
    Budget, ClaimHoldingSelectedDevices, DeviceId, DrainPlan, PlannedPod, PlannedRule, PodDecision,
    StayReason, Wave,
};
pub use plan::{PlanInput, plan, rules_for_targets_and_closed_devices};
pub use request::{DEFAULT_KEY, DrainRequest, MoveOptions};
pub use rule::{
    FLAGS_ANNOTATION, ID_LABEL, STARTED_ANNOTATION, TARGET_ANNOTATION, drain_id_from_targets_and_key,
};
pub use targets::MAX_RULES;
pub use users::holding_claims;
