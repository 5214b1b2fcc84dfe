//! Work done by all cores, delivered in order.
//!
//! Workers take the next item and leave its result; the caller's thread delivers results in the order of the items.
//! A worker never runs further ahead than [`AHEAD`] items, so memory is bounded however slow one item is.
//!
//! Invariant: an item that panics is told as such, and every other item is still delivered.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::super::outcome::Failure;

/// Items that may wait for one before them.
const AHEAD: usize = 256;
/// Selectors are parsed recursively by a library whose frames are large.
const STACK: usize = 16 << 20;
/// How often the caller hears that there is nothing to deliver.
const PATIENCE: Duration = Duration::from_millis(100);

/// What the caller is told.
pub(super) enum Event<'w, W, O> {
    /// The next result.
    Done(O),
    /// There is none, because of a bug.
    Crashed(&'w W),
    /// There is none yet.
    Waiting,
}

struct Queue<O> {
    taken: usize,
    delivered: usize,
    done: BTreeMap<usize, Option<O>>,
    stopped: bool,
}

struct Shared<O> {
    queue: Mutex<Queue<O>>,
    ready: Condvar,
    room: Condvar,
}

impl<O> Shared<O> {
    fn lock(&self) -> MutexGuard<'_, Queue<O>> {
        // Nothing is done under the lock that could leave the queue half changed.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Does all work and delivers each result in order, until `deliver` fails.
pub(super) fn in_order<W: Sync, O: Send>(
    work: &[W],
    perform: impl Fn(&W) -> O + Sync,
    mut deliver: impl FnMut(Event<'_, W, O>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let queue = Queue { taken: 0, delivered: 0, done: BTreeMap::new(), stopped: false };
    let shared = Shared { queue: Mutex::new(queue), ready: Condvar::new(), room: Condvar::new() };
    let cores = std::thread::available_parallelism().map_or(1, usize::from).min(work.len());
    std::thread::scope(|scope| {
        for started in 0..cores {
            let worker = std::thread::Builder::new().stack_size(STACK);
            match worker.spawn_scoped(scope, || run_worker(work, &perform, &shared)) {
                Ok(_) => {}
                // One is enough.
                Err(_) if started > 0 => break,
                Err(error) => return Err(Failure::Machine(error.into())),
            }
        }
        let result = deliver_all(work, &shared, &mut deliver);
        shared.lock().stopped = true;
        shared.room.notify_all();
        result
    })
}

fn run_worker<W, O>(work: &[W], perform: &impl Fn(&W) -> O, shared: &Shared<O>) {
    loop {
        let mut queue = shared.lock();
        while queue.taken >= queue.delivered + AHEAD && !queue.stopped {
            queue = shared.room.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        let index = queue.taken;
        let Some(item) = work.get(index).filter(|_| !queue.stopped) else { return };
        queue.taken += 1;
        drop(queue);
        let output = catch_unwind(AssertUnwindSafe(|| perform(item))).ok();
        shared.lock().done.insert(index, output);
        shared.ready.notify_one();
    }
}

fn deliver_all<W, O>(
    work: &[W],
    shared: &Shared<O>,
    deliver: &mut impl FnMut(Event<'_, W, O>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    for (index, item) in work.iter().enumerate() {
        let mut queue = shared.lock();
        let output = loop {
            if let Some(output) = queue.done.remove(&index) {
                break output;
            }
            let (guard, waited) =
                shared.ready.wait_timeout(queue, PATIENCE).unwrap_or_else(PoisonError::into_inner);
            queue = guard;
            if waited.timed_out() {
                drop(queue);
                deliver(Event::Waiting)?;
                queue = shared.lock();
            }
        };
        queue.delivered = index + 1;
        drop(queue);
        shared.room.notify_all();
        deliver(output.map_or(Event::Crashed(item), Event::Done))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Event, Failure, in_order};

    #[test]
    fn results_come_in_order_and_a_crash_costs_one() {
        let work: Vec<usize> = (0..2000).collect();
        let mut seen = Vec::new();
        let perform = |item: &usize| {
            assert_ne!(*item, 7, "a bug");
            *item
        };
        let result = in_order(&work, perform, |event| {
            match event {
                Event::Done(item) => seen.push(item),
                Event::Crashed(item) => seen.push(*item + 10_000),
                Event::Waiting => {}
            }
            if seen.len() < 1500 { Ok(()) } else { Err(Failure::Usage(String::new())) }
        });
        assert!(result.is_err());
        let expected: Vec<usize> = (0..1500).map(|n| if n == 7 { 10_007 } else { n }).collect();
        assert_eq!(seen, expected);
    }
}
