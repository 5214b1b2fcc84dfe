//! A plan over objects that were read: the forecasts that it needs are played on all cores.

use std::num::NonZeroU32;

use super::PlanReport;
use crate::cli::forecast::{play, release_of};
use crate::cli::outcome::Failure;
use tollgate_api::profile::Profile;
use tollgate_drain::{DrainRequest, PlanInput};
use tollgate_forecast::{Settings, State};

/// Settings for the forecasts that a plan is based on.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlanOptions {
    pub(super) profile: &'static Profile,
    pub(super) settings: Settings,
    pub(super) samples: NonZeroU32,
}

/// Makes the plan for a request. `incomplete` names the kinds of objects that the state lacks; if there are any,
/// every outcome is unknown.
pub(super) fn plan_for(
    request: &DrainRequest,
    state: &State<'_>,
    options: PlanOptions,
    incomplete: &[String],
) -> Result<PlanReport, Failure> {
    let PlanOptions { profile, settings, samples } = options;
    let plan = tollgate_drain::plan(&PlanInput {
        state,
        request,
        release: release_of(profile),
        settings,
        play: &|plan| play(plan, samples),
        missing: incomplete,
        closed: &[],
        is_first_wave: true,
    });
    Ok(PlanReport {
        profile,
        at: settings.now,
        samples: samples.get(),
        request: request.clone(),
        // A target that is not found in a part of the state may be in the rest.
        plan: plan
            .map_err(|why| if incomplete.is_empty() { Failure::Usage(why) } else { Failure::Input(why) })?,
        incomplete: incomplete.to_vec(),
    })
}
