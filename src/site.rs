//! Where taints, tolerations and selectors live: one walk over every shape, each place with the user's path.
//!
//! Lints, documented limits and policies take their subjects from here and nowhere else, so a new shape is one arm
//! in this file and no change in any rule. It judges nothing.

use crate::api::view::{
    Body, ClaimSpec, Device, List, Request, SliceSpec, Taint, TaintSelector, Toleration, View,
};
use crate::case::Case;
use crate::field::Path;
use crate::profile::Version;

/// Who carries a list of taints.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// A device of a slice.
    Device,
    /// A slice itself (draft r2).
    Slice,
}

/// A place that rules look at.
#[derive(Clone, Copy, Debug)]
pub enum Site<'p, 'd> {
    /// A list of taints.
    Taints {
        /// Where.
        at: &'p Path<'p>,
        /// Whose.
        owner: Owner,
        /// The taints; for a slice's own list these are the entries, see `Taint` for each.
        list: List<'d, Taint<'d>>,
    },
    /// One taint, of a device, a slice or a rule.
    Taint {
        /// Where.
        at: &'p Path<'p>,
        /// The taint.
        taint: Taint<'d>,
    },
    /// The tolerations of one request or sub-request.
    Tolerations {
        /// Where.
        at: &'p Path<'p>,
        /// The tolerations.
        list: List<'d, Toleration<'d>>,
    },
    /// One toleration.
    Toleration {
        /// Where.
        at: &'p Path<'p>,
        /// The toleration.
        toleration: Toleration<'d>,
    },
    /// The selector of a DeviceTaintRule.
    Selector {
        /// Where it is, or would be.
        at: &'p Path<'p>,
        /// The selector, if there is one.
        selector: Option<TaintSelector<'d>>,
    },
}

/// Visits every site of the object. A status request has none: its spec is not what was sent.
pub fn walk(case: &Case<'_>, visit: &mut dyn FnMut(Site<'_, '_>)) {
    if case.status {
        return;
    }
    let spec_at = Path::ROOT.field("spec");
    let version = case.object.version;
    match case.object.body {
        Body::Slice(slice) => walk_slice(slice.spec(), &spec_at, version, visit),
        Body::Claim(claim) => walk_claim(claim.spec(), &spec_at, version, visit),
        Body::Template(template) => {
            walk_claim(template.spec().spec(), &spec_at.field("spec"), version, visit)
        }
        Body::Rule(rule) => {
            let spec = rule.spec();
            visit(Site::Selector { at: &spec_at.field("deviceSelector"), selector: spec.device_selector() });
            visit(Site::Taint { at: &spec_at.field("taint"), taint: spec.taint() });
        }
        Body::Class(_) => {}
    }
}

fn walk_slice(spec: SliceSpec<'_>, at: &Path<'_>, version: Version, visit: &mut dyn FnMut(Site<'_, '_>)) {
    let devices_at = at.field("devices");
    for (index, device) in spec.devices().iter().enumerate() {
        let device_at = devices_at.index(index);
        let body_at = Device::body_at(&device_at, version);
        let taints_at = body_at.field("taints");
        let list = device.body(version).taints();
        if !list.is_empty() {
            visit(Site::Taints { at: &taints_at, owner: Owner::Device, list });
        }
        for (index, taint) in list.iter().enumerate() {
            visit(Site::Taint { at: &taints_at.index(index), taint });
        }
    }
    let taints_at = at.field("taints");
    let entries = spec.taints();
    if !entries.is_empty() {
        visit(Site::Taints { at: &taints_at, owner: Owner::Slice, list: List::of(entries.value()) });
    }
    for (index, entry) in entries.iter().enumerate() {
        let entry_at = taints_at.index(index);
        visit(Site::Taint { at: &entry.taint_at(&entry_at), taint: Taint::of(entry.taint().0) });
    }
}

fn walk_claim(spec: ClaimSpec<'_>, at: &Path<'_>, version: Version, visit: &mut dyn FnMut(Site<'_, '_>)) {
    let devices_at = at.field("devices");
    let requests_at = devices_at.field("requests");
    for (index, request) in spec.devices().requests().iter().enumerate() {
        let request_at = requests_at.index(index);
        if let Some(exactly) = request.exactly(version) {
            let exactly_at = Request::exactly_at(&request_at, version);
            walk_tolerations(exactly.tolerations(), &exactly_at, visit);
        }
        let first_at = request_at.field("firstAvailable");
        for (index, sub) in request.first_available().iter().enumerate() {
            walk_tolerations(sub.body().tolerations(), &first_at.index(index), visit);
        }
    }
}

fn walk_tolerations(list: List<'_, Toleration<'_>>, at: &Path<'_>, visit: &mut dyn FnMut(Site<'_, '_>)) {
    let at = at.field("tolerations");
    if !list.is_empty() {
        visit(Site::Tolerations { at: &at, list });
    }
    for (index, toleration) in list.iter().enumerate() {
        visit(Site::Toleration { at: &at.index(index), toleration });
    }
}
