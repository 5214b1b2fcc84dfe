//! Computes the taints of a device after ResourceSlicePatches (draft r1 of KEP-5055), step by step. Pure.
//!
//! "Taints are cumulative as long as the key and effect pairs are different", and those with the same key and effect
//! get overwritten "using the same precedence as for attributes": a patch overrides the slice, a patch of higher
//! priority overrides others, and at the same priority the older one wins (KEP-5027, `DevicePatch.priority`). So
//! patches are applied to the slice one after the other, in ascending precedence.
//!
//! Classes and CEL selectors of a filter are evaluated like those of a DeviceTaintRule (`selection`). If the state
//! has no classes, a patch with a class is applied to every device that the names in its filter select, and its steps
//! are marked as conditional. What it overwrites remains possible.

use std::cmp::Ordering;
use std::fmt;

use crate::impact::read::cel_expressions;
use crate::impact::record::{ClassCriteria, TaintingPatch};
use crate::impact::selection::{CompiledCriteria, DeviceSelectionResult};
use crate::impact::snapshot::Snapshot;
use tollgate_api::profile::{Profile, Version};
use tollgate_api::view::{Device, SlicePatch, SliceSpec, Taint, TaintSelector};
use tollgate_formats::gotime::{self, Timestamp};

/// The object that contains a taint: the slice or a patch.
#[derive(Clone, Copy, Debug)]
pub enum TaintOrigin<'d> {
    /// Published by the driver in the slice.
    Driver,
    /// Added by this ResourceSlicePatch.
    Patch(PatchPrecedence<'d>),
}

/// The fields that determine the precedence of a patch.
#[derive(Clone, Copy, Debug)]
pub struct PatchPrecedence<'d> {
    /// `metadata.name` of the patch.
    pub name: &'d str,
    /// `spec.devices.priority`; 0 if there is none.
    pub priority: i64,
    /// `metadata.creationTimestamp`; a patch that is not created yet is younger than all others.
    pub created: Option<Timestamp>,
    /// True if its filter has a class, and the state has no classes.
    pub is_conditional: bool,
}

/// A taint of a device, and whether the driver or a patch sets it.
#[derive(Clone, Copy, Debug)]
pub struct SourcedTaint<'d> {
    pub taint: Taint<'d>,
    /// The object that contains the taint.
    pub source: TaintOrigin<'d>,
}

/// One step of computing the taints of a device: a taint that the driver or a patch sets, and the taint that it
/// replaces.
#[derive(Clone, Copy, Debug)]
pub struct AppliedTaintStep<'d> {
    /// The taint that is applied.
    pub applied: SourcedTaint<'d>,
    /// The taint with the same key and effect that it replaces.
    pub overwritten: Option<SourcedTaint<'d>>,
}

/// A device and its taints after all patches.
#[derive(Clone, Debug)]
pub struct PatchedDevice<'d> {
    pub driver: &'d str,
    pub pool: &'d str,
    /// Name of the device.
    pub device: &'d str,
    /// The taints it has in the end: each pair of key and effect once, in the order in which they came.
    pub taints: Vec<SourcedTaint<'d>>,
    /// The taints that the device has if the class or the selectors of a patch do not match.
    overwritten_if_selected: Vec<SourcedTaint<'d>>,
    /// The steps that lead to the final taints, starting with those of the driver.
    pub steps: Vec<AppliedTaintStep<'d>>,
}

/// ResourceSlicePatches sorted so that each overrides the ones before it, ready to be applied to slices.
#[derive(Debug)]
pub struct PatchesByPrecedence<'d>(Vec<CompiledPatch<'d>>);

/// One ResourceSlicePatch, with the class and expressions of its filter compiled, if it has any.
#[derive(Debug)]
struct CompiledPatch<'d> {
    precedence: PatchPrecedence<'d>,
    patch: SlicePatch<'d>,
    criteria: Option<CompiledCriteria>,
}

impl<'d> PatchesByPrecedence<'d> {
    /// Prepares patches. Classes are looked up in the snapshot.
    pub fn new(
        patches: &[SlicePatch<'d>],
        snapshot: &Snapshot,
        profile: &Profile,
    ) -> PatchesByPrecedence<'d> {
        let layer = |patch: &SlicePatch<'d>| {
            let criteria = class_criteria(*patch)
                .map(|criteria| CompiledCriteria::new(&criteria, snapshot, &profile.selectors));
            let is_conditional = matches!(criteria, Some(CompiledCriteria::Unknown));
            CompiledPatch {
                precedence: PatchPrecedence::from_patch(*patch, is_conditional),
                patch: *patch,
                criteria,
            }
        };
        let mut layers: Vec<CompiledPatch<'d>> = patches.iter().map(layer).collect();
        layers.sort_by(|one, other| one.precedence.cmp_precedence(&other.precedence));
        PatchesByPrecedence(layers)
    }

    /// True if the patch of that name has a class, and the state has no classes.
    pub fn is_patch_with_unknown_classes(&self, patch: &str) -> bool {
        self.0.iter().any(|layer| layer.precedence.name == patch && layer.precedence.is_conditional)
    }

    /// Applies the patches to the devices of a slice, in ascending precedence. Devices that no patch selects
    /// are omitted.
    pub fn patched_devices_of_slice(&self, slice: SliceSpec<'d>, version: Version) -> Vec<PatchedDevice<'d>> {
        let devices = slice.devices().iter().filter_map(|device| {
            let selecting: Vec<&CompiledPatch<'d>> =
                self.0.iter().filter(|layer| layer.may_select(slice, device, version)).collect();
            if selecting.is_empty() {
                return None;
            }
            let mut patched = PatchedDevice {
                driver: slice.driver(),
                pool: slice.pool().name(),
                device: device.name(),
                taints: Vec::new(),
                overwritten_if_selected: Vec::new(),
                steps: Vec::new(),
            };
            for taint in device.body(version).taints().iter() {
                patched.apply_taint(SourcedTaint { taint, source: TaintOrigin::Driver });
            }
            for layer in selecting {
                for taint in layer.patch.spec().devices().taints().iter() {
                    patched.apply_taint(SourcedTaint { taint, source: TaintOrigin::Patch(layer.precedence) });
                }
            }
            Some(patched)
        });
        devices.collect()
    }
}

/// Returns the class and the expressions in the filter of a patch; `None` if it has neither.
fn class_criteria(patch: SlicePatch<'_>) -> Option<ClassCriteria> {
    let asks =
        |filter: &TaintSelector<'_>| filter.device_class_name().is_some() || !filter.selectors().is_empty();
    let filter = patch.spec().devices().filter().filter(asks)?;
    let class = filter.device_class_name().map(Into::into);
    Some(ClassCriteria { class, expressions: cel_expressions(filter.selectors()) })
}

impl CompiledPatch<'_> {
    /// True if the patch selects the device: by driver, pool and name, and by class and expressions as far as these
    /// are known.
    fn may_select(&self, slice: SliceSpec<'_>, device: Device<'_>, version: Version) -> bool {
        let Some(filter) = self.patch.spec().devices().filter() else { return true };
        let fits = |wanted: Option<&str>, found: &str| wanted.is_none_or(|wanted| wanted == found);
        let matches = |criteria: &CompiledCriteria| {
            let attributes = device.body(version).device_for_taint_rules(slice.driver());
            matches!(
                criteria.evaluate_device(attributes.as_ref()),
                DeviceSelectionResult::Selected | DeviceSelectionResult::Unknown
            )
        };
        fits(filter.driver(), slice.driver())
            && fits(filter.pool(), slice.pool().name())
            && fits(filter.device(), device.name())
            && self.criteria.as_ref().is_none_or(matches)
    }
}

impl<'d> PatchedDevice<'d> {
    /// Adds a taint, or replaces the one with the same key and effect, and records the step.
    fn apply_taint(&mut self, applied: SourcedTaint<'d>) {
        let is_same = |known: &SourcedTaint<'d>| {
            known.taint.key() == applied.taint.key() && known.taint.effect() == applied.taint.effect()
        };
        let known = self.taints.iter_mut().find(|known| is_same(known));
        let overwritten = known.map(|known| std::mem::replace(known, applied));
        if overwritten.is_none() {
            self.taints.push(applied);
        }
        if applied.source.has_unevaluated_criteria() {
            self.overwritten_if_selected.extend(overwritten);
        } else {
            self.overwritten_if_selected.retain(|known| !is_same(known));
        }
        self.steps.push(AppliedTaintStep { applied, overwritten });
    }

    /// Returns every taint that the device may have: those it has if the classes and selectors of all patches match,
    /// and those it has if they do not.
    pub fn possible_taints(&self) -> impl Iterator<Item = &SourcedTaint<'d>> {
        self.taints.iter().chain(&self.overwritten_if_selected)
    }

    /// True if the patch of that name adds or overwrites one of its taints.
    pub fn is_patched_by(&self, patch: &str) -> bool {
        self.steps
            .iter()
            .any(|step| matches!(step.applied.source, TaintOrigin::Patch(layer) if layer.name == patch))
    }

    /// True if its taints depend on classes, and the state has no classes.
    pub fn has_uncertain_taints(&self) -> bool {
        self.steps.iter().any(|step| step.applied.source.has_unevaluated_criteria())
    }
}

impl TaintOrigin<'_> {
    /// True if the taint comes from a patch whose filter has a class, and the state has no classes.
    fn has_unevaluated_criteria(self) -> bool {
        matches!(self, TaintOrigin::Patch(layer) if layer.is_conditional)
    }
}

impl SourcedTaint<'_> {
    /// Returns the ResourceSlicePatch that adds the taint; `None` if the driver does.
    pub(in crate::impact) fn patch(&self) -> Option<TaintingPatch> {
        match self.source {
            TaintOrigin::Driver => None,
            TaintOrigin::Patch(PatchPrecedence { name, is_conditional, .. }) => {
                Some(TaintingPatch { name: name.into(), is_conditional })
            }
        }
    }
}

impl<'d> PatchPrecedence<'d> {
    /// Reads the fields that determine the precedence of a patch.
    fn from_patch(patch: SlicePatch<'d>, is_conditional: bool) -> PatchPrecedence<'d> {
        PatchPrecedence {
            name: patch.metadata().name(),
            priority: patch.spec().devices().priority(),
            created: patch.metadata().creation_timestamp(),
            is_conditional,
        }
    }

    /// Compares two patches: the greater one is applied later and wins. Where the KEP does not decide, the first name
    /// in alphabetical order wins, so that the result is deterministic.
    fn cmp_precedence(&self, other: &PatchPrecedence<'_>) -> Ordering {
        let age = match (self.created, other.created) {
            (Some(one), Some(other)) => other.cmp(&one),
            (Some(_), None) => Ordering::Greater,
            (None, Some(_)) => Ordering::Less,
            (None, None) => Ordering::Equal,
        };
        self.priority.cmp(&other.priority).then(age).then_with(|| other.name.cmp(self.name))
    }

    /// Returns why this patch wins over the other, in a few words.
    fn why_wins_over(&self, other: &PatchPrecedence<'_>) -> String {
        let time = |created: Option<Timestamp>| created.map_or("not created yet".to_owned(), gotime::rfc3339);
        if self.name == other.name && self.created == other.created {
            "later in the same patch".to_owned()
        } else if self.priority != other.priority {
            format!("priority {} over {}", self.priority, other.priority)
        } else if self.created == other.created {
            format!("same priority {} and age, so the first name in alphabetical order wins", self.priority)
        } else {
            let (created, than) = (time(self.created), time(other.created));
            format!("same priority {}, so the older patch wins: {created} before {than}", self.priority)
        }
    }
}

impl fmt::Display for TaintOrigin<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TaintOrigin::Driver => f.write_str("the driver"),
            TaintOrigin::Patch(layer) if layer.is_conditional => {
                write!(f, "patch {} (if its class and selectors match)", layer.name)
            }
            TaintOrigin::Patch(layer) => write!(f, "patch {}", layer.name),
        }
    }
}

/// Writes `gpu.example.com/broken=fan:NoExecute`.
impl fmt::Display for SourcedTaint<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let equals = if self.taint.value().is_empty() { "" } else { "=" };
        write!(f, "{}{equals}{}:{}", self.taint.key(), self.taint.value(), self.taint.effect())
    }
}

/// Writes `patch b adds …`, or `patch c overwrites … of patch b with …: priority 10 over 0`.
impl fmt::Display for AppliedTaintStep<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = self.applied.source;
        let Some(before) = self.overwritten else {
            let verb = if matches!(source, TaintOrigin::Driver) { "publishes" } else { "adds" };
            return write!(f, "{source} {verb} {}", self.applied);
        };
        let why = match (source, before.source) {
            (TaintOrigin::Patch(new), TaintOrigin::Patch(old)) => new.why_wins_over(&old),
            (TaintOrigin::Patch(_), TaintOrigin::Driver) => "a patch overrides the slice".to_owned(),
            (TaintOrigin::Driver, _) => "later in the same list".to_owned(),
        };
        write!(f, "{source} overwrites {before} of {} with {}: {why}", before.source, self.applied)
    }
}
