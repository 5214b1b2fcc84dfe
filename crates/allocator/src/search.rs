//! The search for devices: depth first, with backtracking. The first complete solution is the result.
//!
//! Claims are processed in the order of the pod, requests in the order of the claim, and devices in the order of the
//! pools. Within a request, devices are taken only in ascending order; each request starts again at the first device.
//! The search keeps its choices in a list instead of recursing, so a large claim cannot overflow the call stack. Each
//! device that is tried is a step, and the number of steps is limited.

use crate::claim::{AllocationMode, ClaimsToAllocate, PreparedClaim, RequestAlternative};
use crate::constraint::ConstraintState;
use crate::inventory::{DeviceKey, Inventory};
use crate::needs::DeviceNeed;
use crate::outcome::{AllocationError, AllocationOutcome, MAX_DEVICES_PER_CLAIM, UnschedulableReason};
use crate::placing::{AllocatedShares, SharedCountersDuringSearch, TakenDevice};
use crate::pools::{NodePools, PoolState};
use crate::selector::{SelectorError, SelectorEvaluator};
use crate::usage::DeviceUsage;
use foldhash::fast::RandomState;
use std::collections::{BTreeSet, HashMap};

/// Allocates published devices that no claim holds.
#[derive(Debug)]
pub struct Allocator<'a, 'd, S: ?Sized> {
    pub inventory: &'a Inventory<'d>,
    pub usage: &'a DeviceUsage<'d>,
    pub selectors: &'a S,
    /// Maximum number of steps of one search.
    pub max_steps: u64,
}

/// Default step limit for one pod on one node. Real pods need far fewer, and the search takes less than a
/// second.
pub const DEFAULT_MAX_STEPS: u64 = 1_000_000;

/// Why the search for devices stops without a result.
#[derive(Debug)]
pub(crate) enum StopReason {
    Failed(AllocationError),
    GaveUp,
}

/// The reason why a search stopped, boxed to keep `Result` small.
pub(crate) type Stopped = Box<StopReason>;

impl From<AllocationError> for Stopped {
    fn from(error: AllocationError) -> Stopped {
        Box::new(StopReason::Failed(error))
    }
}

impl<'d, S: SelectorEvaluator + ?Sized> Allocator<'_, 'd, S> {
    /// Allocates all claims of a pod on a node, or none of them.
    // upstream v1.37 DynamicResources.Filter
    pub fn allocate(&self, pools: &NodePools<'d>, claims: &ClaimsToAllocate<'d>) -> AllocationOutcome<'d> {
        let mut search = PodSearch::new(self, pools, &claims.claims);
        let found = search.compute_needs_and_check_device_limit().and_then(|()| search.find_solution());
        match found.map_err(|stop| *stop) {
            Ok(true) if !claims.allocated.iter().all(|nodes| nodes.includes(pools.node)) => {
                AllocationOutcome::Unschedulable(UnschedulableReason::ClaimElsewhere)
            }
            Ok(true) => AllocationOutcome::Allocated(search.allocations()),
            Ok(false) if pools.pools.iter().any(|pool| pool.state == PoolState::Invalid) => {
                AllocationOutcome::Unschedulable(UnschedulableReason::InvalidPools)
            }
            Ok(false) => AllocationOutcome::Unschedulable(UnschedulableReason::CannotAllocate),
            Err(StopReason::Failed(AllocationError::Selector {
                error: SelectorError::Unsupported(what),
                ..
            })) => AllocationOutcome::Unsupported(what),
            Err(StopReason::Failed(error)) => AllocationOutcome::Failed(error),
            Err(StopReason::GaveUp) => AllocationOutcome::GaveUp { steps: self.max_steps },
        }
    }
}

/// A search for the devices of the claims of one pod on one node, with backtracking.
pub(crate) struct PodSearch<'a, 'd, S: ?Sized> {
    pub(crate) allocator: &'a Allocator<'a, 'd, S>,
    pub(crate) pools: &'a NodePools<'d>,
    pub(crate) claims: &'a [PreparedClaim<'d>],
    /// The number of devices that each request or alternative needs on this node, by [`RequestAlternative::number`].
    pub(crate) needs: Vec<DeviceNeed>,
    pub(crate) constraints: Vec<Vec<ConstraintState<'d>>>,
    /// Devices allocated exclusively by this search, with the index of the claim.
    pub(crate) taking: BTreeSet<(DeviceKey, usize)>,
    /// Devices of which this search has allocated shares.
    pub(crate) shares: HashMap<DeviceKey, AllocatedShares<'d>, RandomState>,
    /// The counters of each pool, computed on first use.
    pub(crate) counters: Vec<Option<SharedCountersDuringSearch>>,
    /// Number of devices allocated so far, for each claim.
    devices: Vec<usize>,
    stack: Vec<Frame<'a, 'd>>,
    steps: u64,
}

/// A request or alternative, with the index of its claim.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClaimRequest<'a, 'd> {
    pub(crate) claim: usize,
    pub(crate) details: &'a RequestAlternative<'d>,
}

/// The position of the search: the request that gets its next device.
#[derive(Clone, Copy, Debug)]
struct Position {
    claim: usize,
    request: usize,
    /// Index of the alternative that is being tried; `None` before the first.
    alternative: Option<usize>,
    /// Number of devices that the request already has.
    device: usize,
    /// Index of the first device to try.
    start: usize,
}

impl Position {
    fn start_of_request(claim: usize, request: usize) -> Position {
        Position { claim, request, alternative: None, device: 0, start: 0 }
    }
}

/// A choice on the search stack, to which the search can return.
#[derive(Debug)]
enum Frame<'a, 'd> {
    /// A claim is complete.
    Claim,
    /// An alternative is being tried.
    Alternatives {
        at: Position,
        index: usize,
        /// True if all earlier alternatives would exceed the device limit.
        all_over: bool,
    },
    /// A device was allocated. `next` is the index of the device to try after it; `None` if the request is
    /// for all devices.
    Device { at: Position, next: Option<usize>, taken: TakenDevice<'a, 'd> },
}

/// What the search does next: continue at a position, return to an earlier choice, or end.
enum NextAction {
    Enter(Position),
    Back(BranchFailure),
    Done,
}

/// Returns to an earlier choice, because no device is suitable.
const NO_DEVICE: NextAction = NextAction::Back(BranchFailure::NoDevice);

/// Why the current branch of the search has no solution, which decides where the search continues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum BranchFailure {
    NoDevice,
    /// The claim would exceed the device limit, so trying other devices does not help.
    OverLimit,
}

impl<'a, 'd, S: SelectorEvaluator + ?Sized> PodSearch<'a, 'd, S> {
    fn new(
        allocator: &'a Allocator<'a, 'd, S>,
        pools: &'a NodePools<'d>,
        claims: &'a [PreparedClaim<'d>],
    ) -> PodSearch<'a, 'd, S> {
        PodSearch {
            allocator,
            pools,
            claims,
            needs: Vec::with_capacity(claims.len()),
            constraints: Vec::with_capacity(claims.len()),
            taking: BTreeSet::new(),
            shares: HashMap::default(),
            counters: Vec::new(),
            devices: vec![0; claims.len()],
            stack: Vec::new(),
            steps: 0,
        }
    }

    /// Counts one step of the search, and fails if the step limit is exceeded.
    pub(crate) fn count_step(&mut self) -> Result<(), Stopped> {
        self.steps += 1;
        if self.steps > self.allocator.max_steps { Err(Box::new(StopReason::GaveUp)) } else { Ok(()) }
    }

    /// The devices that the search has allocated, in order.
    pub(crate) fn taken_devices(&self) -> impl Iterator<Item = &TakenDevice<'a, 'd>> {
        self.stack.iter().filter_map(|frame| match frame {
            Frame::Device { taken, .. } => Some(taken),
            Frame::Claim | Frame::Alternatives { .. } => None,
        })
    }

    fn claim_request(&self, at: Position) -> Option<ClaimRequest<'a, 'd>> {
        let request = self.claims.get(at.claim)?.requests.get(at.request)?;
        Some(ClaimRequest {
            claim: at.claim,
            details: request.alternatives.get(at.alternative.unwrap_or(0))?,
        })
    }

    /// Returns true if the search finds a solution. Its devices are then on the stack.
    fn find_solution(&mut self) -> Result<bool, Stopped> {
        let mut step = NextAction::Enter(Position::start_of_request(0, 0));
        loop {
            step = match step {
                NextAction::Done => return Ok(true),
                NextAction::Enter(at) => self.enter_position(at)?,
                NextAction::Back(failure) => match self.stack.pop() {
                    None => return Ok(false),
                    Some(frame) => self.backtrack_to(frame, failure)?,
                },
            }
        }
    }

    // upstream v1.37 allocateOne
    fn enter_position(&mut self, at: Position) -> Result<NextAction, Stopped> {
        self.count_step()?;
        let Some(claim) = self.claims.get(at.claim) else { return Ok(NextAction::Done) };
        let Some(request) = claim.requests.get(at.request) else {
            self.stack.push(Frame::Claim);
            return Ok(NextAction::Enter(Position::start_of_request(at.claim + 1, 0)));
        };
        if request.has_alternatives && at.alternative.is_none() {
            return Ok(self.try_alternative(at, 0, true));
        }
        let Some(claim_request) = self.claim_request(at) else { return Ok(NO_DEVICE) };
        let Some(need) = self.needs.get(claim_request.details.number) else { return Ok(NO_DEVICE) };
        let is_all = claim_request.details.mode == AllocationMode::All;
        if is_all && need.devices == 0 {
            return Ok(NO_DEVICE);
        }
        if at.device >= need.devices {
            return Ok(NextAction::Enter(Position::start_of_request(at.claim, at.request + 1)));
        }
        let devices = self.devices.get(at.claim).copied().unwrap_or(0);
        if devices + need.devices - at.device > MAX_DEVICES_PER_CLAIM {
            return Ok(NextAction::Back(BranchFailure::OverLimit));
        }
        if !is_all {
            return self.try_devices(at, claim_request, at.start);
        }
        let Some(&node_device) = need.all.get(at.device) else { return Ok(NO_DEVICE) };
        let Some(taken) = self.allocate_device(claim_request, node_device, true)? else {
            return Ok(NO_DEVICE);
        };
        Ok(self.push_device(at, None, taken))
    }

    fn try_alternative(&mut self, at: Position, index: usize, all_over: bool) -> NextAction {
        self.stack.push(Frame::Alternatives { at, index, all_over });
        NextAction::Enter(Position { alternative: Some(index), ..at })
    }

    /// Allocates the first suitable device, starting at the index `from`.
    fn try_devices(
        &mut self,
        at: Position,
        claim_request: ClaimRequest<'a, 'd>,
        from: usize,
    ) -> Result<NextAction, Stopped> {
        for node_device in from..self.pools.node_devices.len() {
            self.count_step()?;
            let is_free = self.device_at(node_device).is_some_and(|(_, device)| {
                self.has_no_conflicting_exclusive_holder(claim_request, device.key)
            });
            if !is_free
                || !self.is_selectable(claim_request, node_device)?
                || self.capacity_to_consume(claim_request, node_device)?.is_none()
            {
                continue;
            }
            if let Some(taken) = self.allocate_device(claim_request, node_device, false)? {
                return Ok(self.push_device(at, Some(node_device + 1), taken));
            }
        }
        Ok(NO_DEVICE)
    }

    /// Continues with the next device of the request.
    fn push_device(&mut self, at: Position, next: Option<usize>, taken: TakenDevice<'a, 'd>) -> NextAction {
        if let Some(devices) = self.devices.get_mut(at.claim) {
            *devices += 1;
        }
        self.stack.push(Frame::Device { at, next, taken });
        NextAction::Enter(Position { device: at.device + 1, start: next.unwrap_or(0), ..at })
    }

    /// Continues at an earlier choice after a branch failed.
    fn backtrack_to(&mut self, frame: Frame<'a, 'd>, failure: BranchFailure) -> Result<NextAction, Stopped> {
        match frame {
            // Another device of an earlier claim can make a smaller alternative of the later one possible.
            Frame::Claim => Ok(NO_DEVICE),
            Frame::Alternatives { at, index, all_over } => {
                let all_over = all_over && failure == BranchFailure::OverLimit;
                let request = self.claims.get(at.claim).and_then(|claim| claim.requests.get(at.request));
                if request.is_some_and(|request| index + 1 < request.alternatives.len()) {
                    return Ok(self.try_alternative(at, index + 1, all_over));
                }
                Ok(NextAction::Back(if all_over {
                    BranchFailure::OverLimit
                } else {
                    BranchFailure::NoDevice
                }))
            }
            Frame::Device { at, next, taken } => {
                self.undo_allocation(&taken);
                if let Some(devices) = self.devices.get_mut(at.claim) {
                    *devices -= 1;
                }
                match next {
                    Some(next) if failure == BranchFailure::NoDevice => {
                        self.try_devices(at, taken.claim_request, next)
                    }
                    _ => Ok(NextAction::Back(failure)),
                }
            }
        }
    }
}
