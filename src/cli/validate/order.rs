//! Runs work on all cores and delivers the results in order.
//!
//! Workers take the next item and queue its result; the caller's thread delivers the results in the order of the items.
//! A worker never runs further ahead than [`MAX_UNDELIVERED_RESULTS`] items, so memory is bounded however slow one item
//! is.
//!
//! Invariant: an item that panics is reported as such, and all other items are still delivered.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::super::outcome::Failure;

/// Maximum number of results that wait for an earlier one.
const MAX_UNDELIVERED_RESULTS: usize = 256;
/// Number of waiting results at which the delivering thread is woken; with fewer, it looks again after [`WAIT_INTERVAL`].
/// Waking it is a system call, and one for each small file would be expensive.
const RESULTS_TO_WAKE: usize = 32;
/// Stack size of a worker; large, because the CEL parser is recursive.
const WORKER_STACK_BYTES: usize = 16 << 20;
/// Interval at which the caller gets [`DeliveryEvent::Waiting`] while no result is ready.
const WAIT_INTERVAL: Duration = Duration::from_millis(100);

/// The next result in the order of the inputs, a crash, or the news that the next result is not ready yet.
pub(super) enum DeliveryEvent<'w, W, O> {
    /// The next result.
    Done(O),
    /// The processing of this item panicked.
    Crashed(&'w W),
    /// No result is available yet.
    Waiting,
}

struct ResultQueue<O> {
    taken: usize,
    delivered: usize,
    done: BTreeMap<usize, Option<O>>,
    /// Number of workers that wait until results are delivered.
    waiting: usize,
    stopped: bool,
}

struct SharedQueue<O> {
    queue: Mutex<ResultQueue<O>>,
    ready: Condvar,
    space: Condvar,
}

impl<O> SharedQueue<O> {
    fn lock(&self) -> MutexGuard<'_, ResultQueue<O>> {
        // No code under the lock can panic with an inconsistent queue.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Performs all work on several threads and delivers the results in the order of `work`, until `deliver` fails.
pub(super) fn run_in_order<W: Sync, O: Send>(
    work: &[W],
    perform: impl Fn(&W) -> O + Sync,
    mut deliver: impl FnMut(DeliveryEvent<'_, W, O>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let queue = ResultQueue { taken: 0, delivered: 0, done: BTreeMap::new(), waiting: 0, stopped: false };
    let shared = SharedQueue { queue: Mutex::new(queue), ready: Condvar::new(), space: Condvar::new() };
    let cores = std::thread::available_parallelism().map_or(1, usize::from).min(work.len());
    std::thread::scope(|scope| {
        for started in 0..cores {
            let worker = std::thread::Builder::new().stack_size(WORKER_STACK_BYTES);
            match worker.spawn_scoped(scope, || run_worker(work, &perform, &shared)) {
                Ok(_) => {}
                // One worker is enough.
                Err(_) if started > 0 => break,
                Err(error) => return Err(Failure::Internal(error.into())),
            }
        }
        let result = deliver_all(work, &shared, &mut deliver);
        shared.lock().stopped = true;
        shared.space.notify_all();
        result
    })
}

fn run_worker<W, O>(work: &[W], perform: &impl Fn(&W) -> O, shared: &SharedQueue<O>) {
    let mut queue = shared.lock();
    loop {
        while queue.taken >= queue.delivered + MAX_UNDELIVERED_RESULTS && !queue.stopped {
            queue.waiting += 1;
            queue = shared.space.wait(queue).unwrap_or_else(PoisonError::into_inner);
            queue.waiting -= 1;
        }
        let index = queue.taken;
        let Some(item) = work.get(index).filter(|_| !queue.stopped) else { return };
        queue.taken += 1;
        drop(queue);
        let output = catch_unwind(AssertUnwindSafe(|| perform(item))).ok();
        queue = shared.lock();
        queue.done.insert(index, output);
        let is_enough = queue.done.len() >= RESULTS_TO_WAKE || queue.taken == work.len();
        if is_enough && queue.done.contains_key(&queue.delivered) {
            shared.ready.notify_one();
        }
    }
}

fn deliver_all<W, O>(
    work: &[W],
    shared: &SharedQueue<O>,
    deliver: &mut impl FnMut(DeliveryEvent<'_, W, O>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    for (index, item) in work.iter().enumerate() {
        let mut queue = shared.lock();
        let mut has_waited = false;
        let output = loop {
            if let Some(output) = queue.done.remove(&index) {
                break output;
            }
            if has_waited {
                drop(queue);
                deliver(DeliveryEvent::Waiting)?;
                queue = shared.lock();
                has_waited = false;
                continue;
            }
            let (guard, waited) =
                shared.ready.wait_timeout(queue, WAIT_INTERVAL).unwrap_or_else(PoisonError::into_inner);
            queue = guard;
            has_waited = waited.timed_out();
        };
        queue.delivered = index + 1;
        if queue.waiting > 0 {
            shared.space.notify_all();
        }
        drop(queue);
        deliver(output.map_or(DeliveryEvent::Crashed(item), DeliveryEvent::Done))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{DeliveryEvent, Failure, run_in_order};

    #[test]
    fn results_come_in_order_and_a_crash_costs_one() {
        let work: Vec<usize> = (0..2000).collect();
        let mut seen = Vec::new();
        let perform = |item: &usize| {
            assert_ne!(*item, 7, "a bug");
            *item
        };
        let result = run_in_order(&work, perform, |event| {
            match event {
                DeliveryEvent::Done(item) => seen.push(item),
                DeliveryEvent::Crashed(item) => seen.push(*item + 10_000),
                DeliveryEvent::Waiting => {}
            }
            if seen.len() < 1500 { Ok(()) } else { Err(Failure::Usage(String::new())) }
        });
        assert!(result.is_err());
        let expected: Vec<usize> = (0..1500).map(|n| if n == 7 { 10_007 } else { n }).collect();
        assert_eq!(seen, expected);
    }
}
