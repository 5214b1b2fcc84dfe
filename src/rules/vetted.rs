//! Devices that were judged before and had no fault: a driver that republishes its slice changes few of them, and the
//! others need not be judged again.
//!
//! Exact: a device is known by all of its bytes, and by what else its verdict depends on (profile, version, who says
//! where devices are). It spares the schema and our rules, never a policy: those depend on who asks, and when.
//! Bounded: past its size everything is forgotten, and a device must come twice to be kept, so that devices that never
//! come again cost a number each. Not for files: only what was [offered](Doc::offer) is remembered.

use std::sync::{PoisonError, RwLock};

use crate::api::view::{Body, Device, Object, Slice, SliceSpec, View as _};
use crate::doc::{Doc, Value};
use crate::profile::Profile;

/// Bytes of devices remembered: a few thousand of the usual size.
const MOST_BYTES: usize = 4 << 20;
/// Places for them; two devices that meet in one push each other out.
const PLACES: usize = 8192;
/// A larger device is no usual one.
const LARGEST: usize = 64 << 10;

/// The devices remembered.
#[derive(Default, Debug)]
pub struct Vetted(RwLock<Shelf>);

#[derive(Default, Debug)]
struct Shelf {
    places: Vec<Option<Entry>>,
    bytes: usize,
    /// Prints of devices that came once.
    once: Vec<u64>,
}

#[derive(Debug)]
struct Entry {
    /// What the verdict depended on besides the bytes.
    seed: u64,
    print: u64,
    bytes: Box<[u8]>,
}

impl Vetted {
    /// Marks the devices of the slice at that node that are known, and asks for the others to be remembered.
    pub fn mark(&self, doc: &mut Doc<'_>, slice: u32, profile: &Profile) {
        doc.offer();
        let written = doc.value(slice);
        let Some(seed) = seed(Slice::of(written).spec(), written, profile) else { return };
        let shelf = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if shelf.bytes == 0 {
            return;
        }
        let devices = Slice::of(written).spec().devices().value();
        let (mut at, end) =
            (devices.index() + 1, devices.index() + u32::try_from(devices.size()).unwrap_or_default());
        while at < end {
            let device = doc.value(at);
            let next = at + u32::try_from(device.size()).unwrap_or_default().max(1);
            if shelf.has(seed, device.written()) {
                doc.vet(at);
            }
            at = next;
        }
    }

    /// Remembers the devices of a new object without fault, if it is a slice that was offered. Not of an update: what it
    /// left unchanged was not judged.
    pub fn learn(&self, object: Object<'_>, profile: &Profile) {
        let Body::Slice(slice) = object.body else { return };
        // What was filled in or left out is not what the bytes say.
        let is_as_written = std::ptr::eq(object.value().doc(), object.written.doc());
        if !is_as_written || !object.written.doc().is_offered() {
            return;
        }
        let Some(seed) = seed(slice.spec(), object.written, profile) else { return };
        let new = |device: &Device<'_>| !device.value().is_vetted();
        if !slice.spec().devices().iter().any(|device| new(&device)) {
            return;
        }
        let mut shelf = self.0.write().unwrap_or_else(PoisonError::into_inner);
        for device in slice.spec().devices().iter().filter(new) {
            shelf.meet(seed, device.value().written());
        }
    }
}

impl Shelf {
    fn has(&self, seed: u64, bytes: &[u8]) -> bool {
        let print = print(seed, bytes);
        let known = self.places.get(place(print)).and_then(Option::as_ref);
        known.is_some_and(|known| known.print == print && known.seed == seed && *known.bytes == *bytes)
    }

    /// Keeps a device that comes for the second time.
    fn meet(&mut self, seed: u64, bytes: &[u8]) {
        let print = print(seed, bytes);
        self.once.resize(PLACES, 0);
        if let Some(once) = self.once.get_mut(place(print))
            && std::mem::replace(once, print) == print
        {
            self.put(seed, print, bytes);
        }
    }

    fn put(&mut self, seed: u64, print: u64, bytes: &[u8]) {
        if bytes.is_empty() || bytes.len() > LARGEST {
            return;
        }
        if self.bytes + bytes.len() > MOST_BYTES {
            *self = Shelf::default();
        }
        if self.places.is_empty() {
            self.places.resize_with(PLACES, || None);
        }
        if let Some(place) = self.places.get_mut(place(print)) {
            self.bytes += bytes.len();
            let before = place.replace(Entry { seed, print, bytes: bytes.into() });
            self.bytes -= before.map_or(0, |before| before.bytes.len());
        }
    }
}

/// What the verdict on a device depends on besides its bytes; `None` if there is more than can be told in a number.
fn seed(spec: SliceSpec<'_>, written: Value<'_>, profile: &Profile) -> Option<u64> {
    // Counters of the slice are what a device's counters refer to.
    if spec.shared_counters().is_given() || !written.exists() {
        return None;
    }
    let per_device = spec.per_device_node_selection() == Some(true);
    // Short names of few kinds: told apart by their bytes, and joined by what none of them contains.
    let texts = [profile.name, "\n", written.get("apiVersion").str(), if per_device { "\n+" } else { "\n-" }];
    Some(texts.iter().flat_map(|text| text.bytes()).fold(0xcbf2_9ce4_8422_2325, |seed: u64, byte| {
        (seed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    }))
}

/// A number to find a device by. Whether it is that device, its bytes say.
fn print(seed: u64, bytes: &[u8]) -> u64 {
    const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix =
        |print: u64, word: &[u8; 8]| (print.rotate_left(23) ^ u64::from_le_bytes(*word)).wrapping_mul(MIX);
    // Four numbers at a time: each need not wait for the others.
    let mut lanes = [seed, seed ^ 1, seed ^ 2, seed ^ 3];
    let (blocks, rest) = bytes.as_chunks::<32>();
    for block in blocks {
        for (lane, word) in lanes.iter_mut().zip(block.as_chunks::<8>().0) {
            *lane = mix(*lane, word);
        }
    }
    let rest = rest.iter().fold(bytes.len() as u64, |print, byte| mix(print, &[*byte; 8]));
    lanes.iter().fold(rest, |print, lane| mix(print, &lane.to_le_bytes()))
}

fn place(print: u64) -> usize {
    usize::try_from(print >> 51).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{MOST_BYTES, PLACES, Shelf, place};

    #[test]
    fn only_the_same_bytes_in_the_same_place_are_known() {
        let mut shelf = Shelf::default();
        let device: Vec<u8> = (0..200).collect();
        shelf.meet(7, &device);
        assert!(!shelf.has(7, &device), "it came once");
        shelf.meet(7, &device);
        assert!(shelf.has(7, &device));
        assert!(!shelf.has(8, &device), "another profile");
        for at in 0..device.len() {
            let mut other = device.clone();
            other[at] ^= 1;
            assert!(!shelf.has(7, &other), "byte {at}");
            assert!(!shelf.has(7, &device[..at]), "the first {at} bytes");
        }
    }

    #[test]
    fn it_forgets_before_it_grows() {
        let mut shelf = Shelf::default();
        for number in 0_u64..5_000 {
            let device: Vec<u8> = number.to_le_bytes().repeat(400);
            shelf.meet(1, &device);
            shelf.meet(1, &device);
            assert!(shelf.has(1, &device), "{number}");
            assert!(shelf.bytes <= MOST_BYTES + device.len() && shelf.places.len() == PLACES);
        }
        let held: usize = shelf.places.iter().flatten().map(|entry| entry.bytes.len()).sum();
        assert_eq!(held, shelf.bytes);
        assert!(place(u64::MAX) < PLACES);
    }
}
