//! The claims of a pod, read once for all nodes: requests with their alternatives, classes and constraints.
//!
//! Reading finds the classes that do not exist, because the scheduler looks for them before it looks at any node. All
//! other problems of a request depend on the node, or come up in an order that does, and are left to the allocation.

use crate::capacity;
use crate::constraint::ConstraintState;
use crate::outcome::{AllocationNodes, ClaimName, UnschedulableReason};
use foldhash::fast::RandomState;
use std::collections::HashMap;
use tollgate_api::profile::AllocatorSemantics;
use tollgate_api::profile::Version;
use tollgate_api::view::{self, ClaimSpec, Class, RequestBody};
use tollgate_formats::quantity::Quantity;

/// The DeviceClasses of a cluster, by name.
pub type Classes<'d> = HashMap<&'d str, Class<'d>, RandomState>;

/// A ResourceClaim that needs an allocation.
#[derive(Clone, Copy, Debug)]
pub struct UnallocatedClaim<'d> {
    pub namespace: &'d str,
    pub name: &'d str,
    /// The API version of `spec`.
    pub version: Version,
    pub spec: ClaimSpec<'d>,
}

/// The ResourceClaims of one pod that the allocator must allocate, and the nodes of those that are allocated.
#[derive(Debug)]
pub struct ClaimsToAllocate<'d> {
    /// The claims that need an allocation, in the order of the pod's spec.
    pub(crate) claims: Vec<PreparedClaim<'d>>,
    /// For each claim that is already allocated, the nodes on which its devices are available.
    pub(crate) allocated: Vec<AllocationNodes<'d>>,
}

/// A claim that needs an allocation, with its requests and constraints prepared for the search on every node.
#[derive(Debug)]
pub(crate) struct PreparedClaim<'d> {
    pub(crate) id: ClaimName<'d>,
    pub(crate) requests: Vec<PreparedRequest<'d>>,
    /// `None` for a constraint type that Tollgate does not know.
    pub(crate) constraints: Vec<Option<ConstraintState<'d>>>,
}

/// A request of a claim with its alternatives, prepared for the search on every node.
#[derive(Debug)]
pub(crate) struct PreparedRequest<'d> {
    /// The single exact request, or the alternatives of `firstAvailable`.
    pub(crate) alternatives: Vec<RequestAlternative<'d>>,
    pub(crate) has_alternatives: bool,
}

/// An exact request, or one alternative of a `firstAvailable` request.
#[derive(Debug)]
pub(crate) struct RequestAlternative<'d> {
    /// Index among all requests and alternatives of the pod's claims.
    pub(crate) number: usize,
    /// Name of the request.
    pub(crate) request: &'d str,
    /// Name of the alternative, if the request has alternatives.
    pub(crate) alternative: Option<&'d str>,
    pub(crate) class_name: &'d str,
    pub(crate) class: Class<'d>,
    pub(crate) body: RequestBody<'d>,
    pub(crate) mode: AllocationMode,
    pub(crate) admin_access: bool,
    pub(crate) capacities: Vec<(&'d str, Quantity<'d>)>,
}

/// The number of devices of a request: `ExactCount` with its count, or `All` matching devices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AllocationMode {
    ExactCount(usize),
    All,
    Unknown,
}

impl<'d> ClaimsToAllocate<'d> {
    /// Reads the claims that need an allocation, and looks up their DeviceClasses. For claims that are
    /// already allocated, only the nodes matter.
    // upstream v1.37 DynamicResources.PreFilter
    pub fn new(
        claims: impl IntoIterator<Item = UnallocatedClaim<'d>>,
        allocated: impl IntoIterator<Item = AllocationNodes<'d>>,
        classes: &Classes<'d>,
        semantics: &AllocatorSemantics,
    ) -> Result<ClaimsToAllocate<'d>, UnschedulableReason> {
        let claims = claims.into_iter().map(|claim| PreparedClaim::new(claim, classes, semantics));
        let mut claims: Vec<PreparedClaim<'_>> = claims.collect::<Result<_, _>>()?;
        let requests = claims.iter_mut().flat_map(|claim| &mut claim.requests);
        for (number, details) in requests.flat_map(|request| &mut request.alternatives).enumerate() {
            details.number = number;
        }
        Ok(ClaimsToAllocate { claims, allocated: allocated.into_iter().collect() })
    }
}

impl<'d> PreparedClaim<'d> {
    fn new(
        claim: UnallocatedClaim<'d>,
        classes: &Classes<'d>,
        semantics: &AllocatorSemantics,
    ) -> Result<PreparedClaim<'d>, UnschedulableReason> {
        let id = ClaimName { namespace: claim.namespace, name: claim.name };
        let devices = claim.spec.devices();
        let mut requests = Vec::new();
        for request in devices.requests().iter() {
            let name = request.name();
            let alternatives = request.first_available();
            let exactly = request.exactly(claim.version);
            let alternatives = match exactly {
                Some(body) => vec![RequestAlternative::new(name, None, body, classes, semantics)?],
                None if alternatives.is_empty() || !semantics.features.prioritized_list => {
                    let (claim, request) = (id.to_string(), name.to_owned());
                    return Err(if alternatives.is_empty() {
                        UnschedulableReason::UnknownRequest { claim, request }
                    } else {
                        UnschedulableReason::NoPrioritizedList { claim, request }
                    });
                }
                None => {
                    let details = |sub: view::SubRequest<'d>| {
                        RequestAlternative::new(name, Some(sub.name()), sub.body(), classes, semantics)
                    };
                    alternatives.iter().map(details).collect::<Result<_, _>>()?
                }
            };
            requests.push(PreparedRequest { alternatives, has_alternatives: exactly.is_none() });
        }
        let constraints =
            devices.constraints().iter().map(|constraint| ConstraintState::new(constraint, semantics));
        Ok(PreparedClaim { id, requests, constraints: constraints.collect() })
    }
}

impl<'d> RequestAlternative<'d> {
    fn new(
        request: &'d str,
        alternative: Option<&'d str>,
        body: RequestBody<'d>,
        classes: &Classes<'d>,
        semantics: &AllocatorSemantics,
    ) -> Result<RequestAlternative<'d>, UnschedulableReason> {
        let class_name = body.device_class_name();
        let class = classes.get(class_name).ok_or_else(|| UnschedulableReason::NoClass {
            request: alternative.map_or(request.to_owned(), |alternative| format!("{request}/{alternative}")),
            class: class_name.to_owned(),
        })?;
        let mode = match body.allocation_mode() {
            "" | "ExactCount" => AllocationMode::ExactCount(match body.count() {
                0 => 1,
                count => usize::try_from(count).unwrap_or(0),
            }),
            "All" => AllocationMode::All,
            _ => AllocationMode::Unknown,
        };
        Ok(RequestAlternative {
            number: 0,
            request,
            alternative,
            class_name,
            class: *class,
            body,
            mode,
            admin_access: alternative.is_none() && body.admin_access() == Some(true),
            capacities: capacity::requested_amounts(body, semantics),
        })
    }

    /// Name of the alternative if there is one, otherwise of the request.
    pub(crate) fn alternative_or_request_name(&self) -> &'d str {
        self.alternative.unwrap_or(self.request)
    }

    /// Error text if the allocator cannot process this request on any node.
    // upstream v1.37 validateDeviceRequest
    pub(crate) fn unsupported_reason(&self, semantics: &AllocatorSemantics) -> Option<String> {
        if semantics.refuses_derived_attributes && !self.body.derived_attributes().is_empty() {
            return Some(
                ": cannot handle request with derived attributes, the feature is disabled".to_owned(),
            );
        }
        if let Some(index) = self.body.selectors().iter().position(|selector| selector.cel().is_none()) {
            return Some(format!(", selector #{index}: CEL expression empty (unsupported selector type?)"));
        }
        let has_admin_access = self.alternative.is_none() && self.body.admin_access().is_some();
        if has_admin_access && !semantics.features.admin_access {
            return Some(": admin access is requested, but the feature is disabled".to_owned());
        }
        let mode = self.body.allocation_mode();
        (self.mode == AllocationMode::Unknown).then(|| format!(": unsupported count mode {mode}"))
    }
}
