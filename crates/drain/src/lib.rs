//! The plan of a drain: which rules close the devices, which pods move and in which waves, and which stay and why.
//!
//! Everything is a function of its input: the objects of a cluster, what the user asked for, and a function that plays a
//! forecast. Nothing is sent to a cluster here, and no clock is read.
//!
//! Invariant: a pod is planned to move only if its replacement fits in all courses of a forecast, or if the user allows
//! otherwise by name. Whatever stays has a reason and a remedy.

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

pub use name::rule_name;
pub use outcome::{
    Budget, ClaimHolder, DeviceId, DrainPlan, Fate, PlannedPod, PlannedRule, StayReason, Wave,
};
pub use plan::{PlanInput, plan, rules_for};
pub use request::{DEFAULT_KEY, DrainRequest, MoveOptions};
pub use rule::{FLAGS_ANNOTATION, ID_LABEL, STARTED_ANNOTATION, TARGET_ANNOTATION, drain_id};
pub use targets::MAX_RULES;
pub use users::holding_claims;
