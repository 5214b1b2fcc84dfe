//! What ResourceSlicePatches (draft r1 of KEP-5055) make of the taints of a device, step by step. Pure.
//!
//! "Taints are cumulative as long as the key and effect pairs are different", and those with the same key and effect
//! get overwritten "using the same precedence as for attributes": a patch goes before the slice, a patch of higher
//! priority before others, and of the same priority the older one (KEP-5027, `DevicePatch.priority`). So patches are
//! laid over the slice one after the other, the strongest last.
//!
//! Classes and CEL selectors of a filter are not evaluated: such a patch is laid over every device that the rest of
//! its filter selects, and its steps say so.

use std::cmp::Ordering;
use std::fmt;

use crate::api::view::{Device, SlicePatch, SliceSpec, Taint, TaintSelector};
use crate::gotime::{self, Timestamp};
use crate::profile::Version;

/// Whose taint it is.
#[derive(Clone, Copy, Debug)]
pub enum Source<'d> {
    /// The driver published it in the slice.
    Driver,
    /// An admin laid it over.
    Patch(Layer<'d>),
}

/// A patch, as far as precedence goes.
#[derive(Clone, Copy, Debug)]
pub struct Layer<'d> {
    /// `metadata.name`
    pub name: &'d str,
    /// `spec.devices.priority`; 0 if there is none.
    pub priority: i64,
    /// `metadata.creationTimestamp`; a patch that is not created yet is younger than all others.
    pub created: Option<Timestamp>,
    /// Its filter asks for a class or for CEL, which nobody evaluated.
    pub perhaps: bool,
}

/// A taint that a device has in the end.
#[derive(Clone, Copy, Debug)]
pub struct Laid<'d> {
    /// The taint.
    pub taint: Taint<'d>,
    /// Whose it is.
    pub source: Source<'d>,
}

/// One step on the way to the taints of a device.
#[derive(Clone, Copy, Debug)]
pub struct Step<'d> {
    /// What is laid over.
    pub laid: Laid<'d>,
    /// What had its key and effect before.
    pub overwritten: Option<Laid<'d>>,
}

/// A device and what became of its taints.
#[derive(Clone, Debug)]
pub struct Patched<'d> {
    /// Its driver.
    pub driver: &'d str,
    /// Its pool.
    pub pool: &'d str,
    /// Its name.
    pub device: &'d str,
    /// The taints it has in the end: each pair of key and effect once, in the order in which they came.
    pub taints: Vec<Laid<'d>>,
    /// How they came, in order; the driver's own first.
    pub steps: Vec<Step<'d>>,
}

/// Lays the patches over the devices of a slice. Devices that no patch selects are left out.
pub fn lay<'d>(slice: SliceSpec<'d>, version: Version, patches: &[SlicePatch<'d>]) -> Vec<Patched<'d>> {
    let mut layers: Vec<(Layer<'d>, SlicePatch<'d>)> =
        patches.iter().map(|patch| (Layer::of(*patch), *patch)).collect();
    layers.sort_by(|(one, _), (other, _)| one.strength(other));
    let devices = slice.devices().iter().filter_map(|device| {
        let selecting = || layers.iter().filter(|(_, patch)| selects(*patch, slice, device));
        selecting().next()?;
        let mut patched = Patched {
            driver: slice.driver(),
            pool: slice.pool().name(),
            device: device.name(),
            taints: Vec::new(),
            steps: Vec::new(),
        };
        for taint in device.body(version).taints().iter() {
            patched.lay(Laid { taint, source: Source::Driver });
        }
        for (layer, patch) in selecting() {
            for taint in patch.spec().devices().taints().iter() {
                patched.lay(Laid { taint, source: Source::Patch(*layer) });
            }
        }
        Some(patched)
    });
    devices.collect()
}

/// True if the patch is for the device, as far as names tell.
fn selects(patch: SlicePatch<'_>, slice: SliceSpec<'_>, device: Device<'_>) -> bool {
    let Some(filter) = patch.spec().devices().filter() else { return true };
    let fits = |wanted: Option<&str>, found: &str| wanted.is_none_or(|wanted| wanted == found);
    fits(filter.driver(), slice.driver())
        && fits(filter.pool(), slice.pool().name())
        && fits(filter.device(), device.name())
}

impl<'d> Patched<'d> {
    fn lay(&mut self, laid: Laid<'d>) {
        let is_same = |known: &&mut Laid<'d>| {
            known.taint.key() == laid.taint.key() && known.taint.effect() == laid.taint.effect()
        };
        let overwritten = self.taints.iter_mut().find(is_same).map(|known| std::mem::replace(known, laid));
        if overwritten.is_none() {
            self.taints.push(laid);
        }
        self.steps.push(Step { laid, overwritten });
    }
}

impl<'d> Layer<'d> {
    fn of(patch: SlicePatch<'d>) -> Layer<'d> {
        let asks = |filter: TaintSelector<'_>| {
            filter.device_class_name().is_some() || !filter.selectors().is_empty()
        };
        Layer {
            name: patch.metadata().name(),
            priority: patch.spec().devices().priority(),
            created: patch.metadata().creation_timestamp(),
            perhaps: patch.spec().devices().filter().is_some_and(asks),
        }
    }

    /// Greater is laid later and wins. Of two that cannot be told apart by the KEP the first by name wins, so that
    /// the answer is always the same.
    fn strength(&self, other: &Layer<'_>) -> Ordering {
        let age = match (self.created, other.created) {
            (Some(one), Some(other)) => other.cmp(&one),
            (Some(_), None) => Ordering::Greater,
            (None, Some(_)) => Ordering::Less,
            (None, None) => Ordering::Equal,
        };
        self.priority.cmp(&other.priority).then(age).then_with(|| other.name.cmp(self.name))
    }

    /// Why this one goes before that one.
    fn why(&self, other: &Layer<'_>) -> String {
        let time = |created: Option<Timestamp>| created.map_or("not created yet".to_owned(), gotime::rfc3339);
        if self.name == other.name && self.created == other.created {
            "later in the same patch".to_owned()
        } else if self.priority != other.priority {
            format!("priority {} over {}", self.priority, other.priority)
        } else if self.created == other.created {
            format!("priority {} and age are the same, the first name wins", self.priority)
        } else {
            let (created, than) = (time(self.created), time(other.created));
            format!("priority {} as well, and older: {created} before {than}", self.priority)
        }
    }
}

impl fmt::Display for Source<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Driver => f.write_str("the driver"),
            Source::Patch(layer) if layer.perhaps => {
                write!(f, "patch {} (if its class and selectors fit)", layer.name)
            }
            Source::Patch(layer) => write!(f, "patch {}", layer.name),
        }
    }
}

/// `gpu.example.com/broken=fan:NoExecute`
impl fmt::Display for Laid<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let equals = if self.taint.value().is_empty() { "" } else { "=" };
        write!(f, "{}{equals}{}:{}", self.taint.key(), self.taint.value(), self.taint.effect())
    }
}

/// `patch b adds …`, `patch c overwrites … of patch b with …: priority 10 over 0`
impl fmt::Display for Step<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = self.laid.source;
        let Some(before) = self.overwritten else {
            let verb = if matches!(source, Source::Driver) { "publishes" } else { "adds" };
            return write!(f, "{source} {verb} {}", self.laid);
        };
        let why = match (source, before.source) {
            (Source::Patch(new), Source::Patch(old)) => new.why(&old),
            (Source::Patch(_), Source::Driver) => "a patch goes before the slice".to_owned(),
            (Source::Driver, _) => "later in the same list".to_owned(),
        };
        write!(f, "{source} overwrites {before} of {} with {}: {why}", before.source, self.laid)
    }
}
