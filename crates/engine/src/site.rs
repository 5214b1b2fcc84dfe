//! Finds taints, tolerations and selectors in each kind of object, with the user's path to each.
//!
//! Lints, documented limits and policies find them only through this module, so supporting a new kind of object
//! requires one new match arm here and no change in any rule.

use crate::admission::DecodedAttributes;
use tollgate_api::view::{
    ClaimSpec, Device, DeviceBody, List, Object, ObjectBody, Request, RequestBody, SliceTaint, Taint,
    TaintSelector, Toleration, View,
};
use tollgate_document::doc::{FieldName, Value};
use tollgate_document::field::Path;

mod parameters;
mod pods;

pub use parameters::{DriverParameters, visit_parameters};
pub use pods::{visit_pod_claim_templates, visit_pod_spec};

/// The kind of object that a list of taints belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TaintOwner {
    /// A device of a ResourceSlice.
    Device,
    /// A slice itself (draft r2).
    Slice,
    /// A ResourceSlicePatch, for every device it selects (draft r1).
    Patch,
}

/// A list of taints, with the kind of object that it belongs to.
#[derive(Clone, Copy, Debug)]
pub struct TaintList<'d> {
    /// The kind of object that the taints belong to.
    pub owner: TaintOwner,
    /// The name of the device, if all taints are on one; otherwise empty.
    device: &'d str,
    entries: List<'d, SliceTaint<'d>>,
}

impl<'d> TaintList<'d> {
    /// True if there are no taints.
    pub fn is_empty(self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the entries of the list, to be [read](TaintList::device_and_taint) one by one, because there can be many
    /// and an entry takes only two words.
    pub fn entries(self) -> impl Iterator<Item = Value<'d>> + Clone {
        self.entries.value().items()
    }

    /// Returns the name of the device that the taint of an entry is on, and the taint; the name is empty for a patch.
    #[inline]
    pub fn device_and_taint(self, entry: Value<'d>) -> (&'d str, Taint<'d>) {
        match self.owner {
            TaintOwner::Device | TaintOwner::Patch => (self.device, Taint::of(entry)),
            TaintOwner::Slice => {
                (SliceTaint::of(entry).device(), SliceTaint::of(entry).nested_or_inlined_taint())
            }
        }
    }
}

/// A taint, with the name of its device. The fields that several rules ask for are found in one pass, because a slice can
/// have a thousand taints.
#[derive(Clone, Copy, Debug)]
pub struct LocatedTaint<'d> {
    pub taint: Taint<'d>,
    /// The key of the taint.
    pub key: &'d str,
    /// `timeAdded` as it was written; empty if it is absent.
    pub written_time: &'d str,
    /// False if the taint surely has no fields that only drafts define, such as `data`.
    pub may_have_draft_fields: bool,
    /// Name of the device; empty for a rule or a patch.
    pub device: &'d str,
    old: Option<Object<'d>>,
}

/// Maximum number of items that are searched: no valid slice has more devices, no valid list more taints.
/// Bounds the cost of hostile objects.
const MAX_SEARCHED_ITEMS: usize = 128;

/// The fields of a taint that all releases have.
const TAINT_FIELDS: [FieldName; 4] = [
    FieldName::from_text("key"),
    FieldName::from_text("value"),
    FieldName::from_text("effect"),
    FieldName::from_text("timeAdded"),
];

impl<'d> LocatedTaint<'d> {
    fn new(taint: Taint<'d>, device: &'d str, old: Option<Object<'d>>) -> LocatedTaint<'d> {
        let fields = taint.json().fields_last_duplicate_wins(TAINT_FIELDS);
        let [key, _, _, time] = fields;
        // A field is two nodes: its name and its value.
        let nodes_of_fields = 2 * fields.into_iter().filter(|field| field.exists()).count();
        let may_have_draft_fields = taint.json().node_count() > 1 + nodes_of_fields;
        LocatedTaint { taint, key: key.str(), written_time: time.str(), may_have_draft_fields, device, old }
    }

    /// Returns the taint with the same key, value and effect on the same device of the stored object; `None` if there
    /// is none.
    pub fn stored_counterpart(&self) -> Option<Taint<'d>> {
        let old = self.old?;
        let is_same = |stored: &Taint<'_>| {
            stored.key() == self.taint.key()
                && stored.value() == self.taint.value()
                && stored.effect() == self.taint.effect()
        };
        match old.body {
            ObjectBody::Rule(rule) => Some(rule.spec().taint()).filter(is_same),
            ObjectBody::Slice(slice) => {
                let mut devices = slice.spec().devices().iter().take(MAX_SEARCHED_ITEMS);
                let device = devices.find(|device| device.name() == self.device);
                let taints = device.map(|device| device.body(old.version).taints());
                let taints = taints.into_iter().flat_map(List::iter).take(MAX_SEARCHED_ITEMS);
                let entries = slice.spec().taints().iter().take(MAX_SEARCHED_ITEMS);
                let entries = entries.filter(|entry| entry.device() == self.device);
                taints.chain(entries.map(SliceTaint::nested_or_inlined_taint)).find(is_same)
            }
            ObjectBody::Patch(patch) => {
                patch.spec().devices().taints().iter().take(MAX_SEARCHED_ITEMS).find(is_same)
            }
            _ => None,
        }
    }
}

/// The kind of object that a device selector belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SelectorOwner {
    /// A DeviceTaintRule; without a selector it is documented to select nothing.
    Rule,
    /// A ResourceSlicePatch (draft r1); without a filter it selects everything.
    Patch,
}

/// The selector of a DeviceTaintRule, which may be absent, or the filter of a ResourceSlicePatch.
#[derive(Clone, Copy, Debug)]
pub struct DeviceSelection<'d> {
    /// The kind of object that contains the selector.
    pub by: SelectorOwner,
    /// The selector, if there is one; a patch always has one, if only an empty one.
    pub selector: Option<TaintSelector<'d>>,
    /// The selector as written, including fields that the profile does not have.
    pub written: TaintSelector<'d>,
    /// The taint that the selected devices get; of several, the one with the strongest effect.
    pub taint: Taint<'d>,
}

impl DeviceSelection<'_> {
    /// True if the taint of the selected devices has the effect NoSchedule or NoExecute.
    pub fn affects_pods(&self) -> bool {
        matches!(self.taint.effect(), "NoSchedule" | "NoExecute")
    }
}

/// A part of an object that rules check, with its path.
#[derive(Clone, Copy, Debug)]
pub enum TaintTolerationOrSelector<'p, 'd> {
    /// A list of taints.
    Taints {
        /// Path of the list.
        at: &'p Path<'p>,
        taints: TaintList<'d>,
    },
    /// A single taint of a device, slice or rule.
    Taint {
        /// Path of the taint.
        at: &'p Path<'p>,
        taint: &'p LocatedTaint<'d>,
    },
    /// The tolerations of one request or sub-request.
    Tolerations {
        /// Path of the list.
        at: &'p Path<'p>,
        /// The tolerations.
        list: List<'d, Toleration<'d>>,
    },
    Toleration {
        /// Path of the toleration.
        at: &'p Path<'p>,
        toleration: Toleration<'d>,
    },
    /// The selector of a DeviceTaintRule.
    Selector {
        /// Path of the selector, even if it is absent.
        at: &'p Path<'p>,
        /// The selector and what it is for.
        selection: DeviceSelection<'d>,
    },
}

/// Calls `visit` for every part of the object; for none if the request writes the status, which does not change the
/// spec.
pub fn visit_taints_tolerations_and_selectors(
    admission: &DecodedAttributes<'_>,
    visit: &mut dyn FnMut(TaintTolerationOrSelector<'_, '_>),
) {
    if admission.is_status() {
        return;
    }
    let spec_at = Path::ROOT.field("spec");
    match admission.object.body {
        ObjectBody::Slice(slice) => {
            let version = admission.object.version;
            let devices_at = spec_at.field("devices");
            for (index, device) in slice.spec().devices().iter().enumerate() {
                let device_at = devices_at.index(index);
                let body_at = Device::body_path(&device_at, version);
                let entries = List::from_json(device.body(version).taints().value());
                let taints = TaintList { owner: TaintOwner::Device, device: device.name(), entries };
                walk_taints(taints, admission.old_object, &body_at.field("taints"), visit);
            }
            let taints = TaintList { owner: TaintOwner::Slice, device: "", entries: slice.spec().taints() };
            walk_taints(taints, admission.old_object, &spec_at.field("taints"), visit);
        }
        ObjectBody::Claim(_) | ObjectBody::Template(_) => {
            visit_requests_and_subrequests(admission.object, &mut |at, request| {
                let (at, list) = (at.field("tolerations"), request.tolerations());
                if !list.is_empty() {
                    visit(TaintTolerationOrSelector::Tolerations { at: &at, list });
                }
                for (index, toleration) in list.iter().enumerate() {
                    visit(TaintTolerationOrSelector::Toleration { at: &at.index(index), toleration });
                }
            })
        }
        ObjectBody::Rule(rule) => {
            let written = TaintSelector::of(admission.object.written.get("spec").get("deviceSelector"));
            let (selector, taint) = (rule.spec().device_selector(), rule.spec().taint());
            let selection = DeviceSelection { by: SelectorOwner::Rule, selector, written, taint };
            visit(TaintTolerationOrSelector::Selector { at: &spec_at.field("deviceSelector"), selection });
            let taint = LocatedTaint::new(taint, "", admission.old_object);
            visit(TaintTolerationOrSelector::Taint { at: &spec_at.field("taint"), taint: &taint });
        }
        ObjectBody::Patch(patch) => {
            let (patch, at) = (patch.spec().devices(), spec_at.field("devices"));
            let (absent, list) = (TaintSelector::of(Value::absent()), patch.taints());
            let with = |effect: &str| list.iter().find(|taint| taint.effect() == effect);
            let strongest = with("NoExecute").or_else(|| with("NoSchedule"));
            // Nothing was removed from a patch: what was written in place of the filter is its own business.
            let selection = DeviceSelection {
                by: SelectorOwner::Patch,
                selector: Some(patch.filter().unwrap_or(absent)),
                written: absent,
                taint: strongest.unwrap_or(Taint::of(Value::absent())),
            };
            visit(TaintTolerationOrSelector::Selector { at: &at.field("filter"), selection });
            let entries = List::from_json(list.value());
            let taints = TaintList { owner: TaintOwner::Patch, device: "", entries };
            walk_taints(taints, admission.old_object, &at.field("taints"), visit);
        }
        _ => {}
    }
}

/// Visits a list of taints, unless it is empty, and then each taint.
fn walk_taints<'d>(
    taints: TaintList<'d>,
    old: Option<Object<'d>>,
    at: &Path<'_>,
    visit: &mut dyn FnMut(TaintTolerationOrSelector<'_, '_>),
) {
    if taints.is_empty() {
        return;
    }
    visit(TaintTolerationOrSelector::Taints { at, taints });
    for (index, entry) in taints.entries().enumerate() {
        let entry_at = at.index(index);
        let (device, taint) = taints.device_and_taint(entry);
        let at = match taints.owner {
            TaintOwner::Slice => SliceTaint::of(entry).nested_or_inlined_taint_path(&entry_at),
            TaintOwner::Device | TaintOwner::Patch => entry_at,
        };
        visit(TaintTolerationOrSelector::Taint { at: &at, taint: &LocatedTaint::new(taint, device, old) });
    }
}

/// Calls `visit` with the spec of a claim, or with the one that a template gives its claims, and with its path; not for
/// other objects.
pub fn visit_claim_or_template_spec<'d>(object: Object<'d>, visit: impl FnOnce(&Path<'_>, ClaimSpec<'d>)) {
    let spec_at = Path::ROOT.field("spec");
    match object.body {
        ObjectBody::Claim(claim) => visit(&spec_at, claim.spec()),
        ObjectBody::Template(template) => visit(&spec_at.field("spec"), template.spec().spec()),
        _ => {}
    }
}

/// Calls `visit` for every exact request and every sub-request of a claim or template, with or without tolerations.
pub fn visit_requests_and_subrequests<'d>(
    object: Object<'d>,
    visit: &mut dyn FnMut(&Path<'_>, RequestBody<'d>),
) {
    visit_claim_or_template_spec(object, |at, spec| {
        let devices_at = at.field("devices");
        let requests_at = devices_at.field("requests");
        for (index, request) in spec.devices().requests().iter().enumerate() {
            let request_at = requests_at.index(index);
            if let Some(exactly) = request.exactly(object.version) {
                visit(&Request::exactly_path(&request_at, object.version), exactly);
            }
            let first_at = request_at.field("firstAvailable");
            for (index, sub) in request.first_available().iter().enumerate() {
                visit(&first_at.index(index), sub.body());
            }
        }
    });
}

/// Returns the tolerations of a request. Rules and policies read them only through this module.
pub fn tolerations_of(request: RequestBody<'_>) -> List<'_, Toleration<'_>> {
    request.tolerations()
}

/// Returns the taints of a device. Rules and policies read them only through this module.
pub fn taints_of(device: DeviceBody<'_>) -> List<'_, Taint<'_>> {
    device.taints()
}
