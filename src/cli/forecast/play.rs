//! Plays the courses of a plan on the available cores.
//!
//! Invariant: the forecast does not depend on the number of cores, nor on which of them was faster.

use std::num::{NonZeroU32, NonZeroUsize};
use std::thread;

use tollgate_forecast::{Course, Forecast, Plan};

/// Plays that many courses and puts them together.
pub(in crate::cli) fn play(plan: &Plan<'_>, samples: NonZeroU32) -> Forecast {
    let samples = samples.get();
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let threads = u32::try_from(cores).unwrap_or(u32::MAX).min(samples);
    let mut courses: Vec<(u32, Course)> = thread::scope(|scope| {
        let play_every = |first: u32| {
            let numbers = (first..samples).step_by(threads as usize);
            scope.spawn(move || {
                let mut player = plan.player();
                numbers.map(|number| (number, player.play(number))).collect::<Vec<_>>()
            })
        };
        let running: Vec<_> = (0..threads).map(play_every).collect();
        let finished = running.into_iter().map(|thread| match thread.join() {
            Ok(courses) => courses,
            // A bug is reported as one, whichever thread has it.
            Err(panic) => std::panic::resume_unwind(panic),
        });
        finished.flatten().collect()
    });
    courses.sort_by_key(|(number, _)| *number);
    Forecast::from_courses(plan, courses.into_iter().map(|(_, course)| course))
}
