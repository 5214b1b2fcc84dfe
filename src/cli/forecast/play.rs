//! Plays the courses of a plan on the available cores.
//!
//! Invariant: the forecast does not depend on the number of cores, nor on which of them was faster.

use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::mpsc;
use std::thread;

use tollgate_forecast::{Forecast, Plan};

/// Plays that many courses and puts them together, each as soon as it is played: only what is the same in several of
/// them is kept.
pub(in crate::cli) fn play(plan: &Plan<'_>, samples: NonZeroU32) -> Forecast {
    let samples = samples.get();
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let threads = u32::try_from(cores).unwrap_or(u32::MAX).min(samples);
    let (played, courses) = mpsc::sync_channel(1);
    thread::scope(|scope| {
        let play_every = |first: u32| {
            let numbers = (first..samples).step_by(threads as usize);
            let played = played.clone();
            scope.spawn(move || {
                let mut player = plan.player();
                // Nobody listens any more after another thread has failed.
                numbers.map(|number| player.play(number)).all(|course| played.send(course).is_ok())
            })
        };
        let running: Vec<_> = (0..threads).map(play_every).collect();
        drop(played);
        let forecast = Forecast::from_courses(plan, courses);
        for thread in running {
            // A bug is reported as one, whichever thread has it.
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
        forecast
    })
}
