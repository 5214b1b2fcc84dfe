//! Simulates the courses (simulated runs) of a plan on all available cores.
//!
//! A caller that no longer needs the result can stop the work early ([`run_until_stopped`]): a drain plan of a large
//! cluster takes seconds, and requires many forecasts.
//!
//! Invariant: the forecast does not depend on the number of cores, nor on which of them was faster.

use std::cell::RefCell;
use std::num::{NonZeroU32, NonZeroUsize};
use std::panic::resume_unwind;
#[cfg(feature = "ui")]
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::thread;

use tollgate_forecast::{Forecast, Plan};

/// Returns true if the result is no longer wanted, so that the work can stop.
pub(in crate::cli) type StopFn = Arc<dyn Fn() -> bool + Send + Sync>;

/// The payload with which [`simulate_samples`] unwinds if it is stopped.
struct StoppedPanic;

thread_local! {
    static THREAD_STOP_FN: RefCell<Option<StopFn>> = const { RefCell::new(None) };
}

/// Runs `work` on this thread, and returns `None` if it was stopped: forecasts in it stop before their next
/// course when `stop` returns true. They stop by unwinding, so that the code in between need not handle it.
#[cfg(feature = "ui")]
pub(in crate::cli) fn run_until_stopped<T>(stop: StopFn, work: impl FnOnce() -> T) -> Option<T> {
    THREAD_STOP_FN.set(Some(stop));
    let done = catch_unwind(AssertUnwindSafe(work));
    THREAD_STOP_FN.set(None);
    match done {
        Ok(done) => Some(done),
        Err(panic) if panic.is::<StoppedPanic>() => None,
        Err(panic) => resume_unwind(panic),
    }
}

/// Simulates `samples` courses (runs) of a plan on all cores, and combines them into a forecast. Each result is dropped
/// once it is combined.
pub(in crate::cli) fn simulate_samples(plan: &Plan<'_>, samples: NonZeroU32) -> Forecast {
    let samples = samples.get();
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let threads = u32::try_from(cores).unwrap_or(u32::MAX).min(samples);
    let (played, courses) = mpsc::sync_channel(1);
    let stop = THREAD_STOP_FN.with_borrow(Clone::clone);
    let is_stopped = || stop.as_ref().is_some_and(|stop| stop());
    if is_stopped() {
        resume_unwind(Box::new(StoppedPanic));
    }
    thread::scope(|scope| {
        let play_every = |first: u32| {
            let numbers = (first..samples).step_by(threads as usize);
            let (played, is_stopped) = (played.clone(), &is_stopped);
            scope.spawn(move || {
                let mut player = plan.create_run_simulator();
                // Nobody listens any more after another thread has failed.
                numbers
                    .take_while(|_| !is_stopped())
                    .map(|number| player.simulate_run(number))
                    .all(|course| played.send(course).is_ok())
            })
        };
        let running: Vec<_> = (0..threads).map(play_every).collect();
        drop(played);
        let forecast = Forecast::from_runs(plan, courses);
        for thread in running {
            // A bug is reported as one, whichever thread has it.
            if let Err(panic) = thread.join() {
                resume_unwind(panic);
            }
        }
        if is_stopped() {
            resume_unwind(Box::new(StoppedPanic));
        }
        forecast
    })
}
