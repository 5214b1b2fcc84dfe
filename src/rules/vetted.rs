//! Parts of objects that were judged before and had no fault, and need not be judged again: the devices of a slice, of
//! which a driver that republishes it changes few, and the spec of a claim, which is the same in all that are made from
//! one template.
//!
//! Exact: a part is known by all of its bytes, and by what else its verdict depends on (profile, version, who says
//! where devices are). It spares the schema and our rules, never a policy: those depend on who asks, and when.
//! Bounded: past its size everything is forgotten, and a part must come twice to be kept, so that those that never
//! come again cost a number each. Not for files: only what was [offered](Doc::offer) is remembered.

use std::sync::{PoisonError, RwLock};

use crate::api::view::{Body, Object, Slice, View as _};
use crate::doc::{Doc, Kind, Name, Value};
use crate::profile::{ApiKind, Profile};

/// Bytes remembered: a few thousand devices of the usual size.
const MOST_BYTES: usize = 4 << 20;
/// Places for parts; two that meet in one push each other out.
const PLACES: usize = 8192;
/// Blocks of 32 bytes that are looked at to find a device.
const BLOCKS: usize = 24;
/// A larger part is no usual one.
const LARGEST: usize = 64 << 10;

/// The parts remembered.
#[derive(Default, Debug)]
pub struct Vetted(RwLock<Shelf>);

#[derive(Default, Debug)]
struct Shelf {
    places: Vec<Option<Entry>>,
    bytes: usize,
    /// Prints of parts that came once.
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
    /// Marks `parts` that are known, and asks for the others to be remembered.
    pub(crate) fn mark(&self, doc: &mut Doc<'_>, parts: &Parts) {
        doc.offer(0);
        let shelf = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if shelf.bytes == 0 {
            return;
        }
        let mut at = parts.first;
        while at < parts.end {
            let part = doc.value(at);
            let next = at + size(part).max(1);
            let print = parts.print(part);
            if shelf.has(parts.seed, print, part.written()) {
                doc.vet(at);
            } else if at == parts.first && next >= parts.end {
                // To learn it later takes this number again.
                doc.offer(print);
            }
            at = next;
        }
    }

    /// Remembers the parts of a new object without fault, if it was offered. Not of an update: what it left unchanged
    /// was not judged.
    pub fn learn(&self, object: Object<'_>, profile: &Profile) {
        // What was filled in or left out is not what the bytes say.
        let is_as_written = std::ptr::eq(object.value().doc(), object.written.doc());
        let Some(offered) = object.written.doc().offered().filter(|_| is_as_written) else { return };
        let kind = match object.body {
            Body::Slice(_) => ApiKind::ResourceSlice,
            Body::Claim(_) => ApiKind::ResourceClaim,
            Body::Template(_) => ApiKind::ResourceClaimTemplate,
            // Kinds of other groups have names of ours.
            _ => return,
        };
        let api_version = object.written.field(API_VERSION).str();
        let Some(parts) = Parts::of(object.written, kind.name(), api_version, profile) else { return };
        if parts.values(object.written).all(Value::is_vetted) {
            return;
        }
        let mut shelf = self.0.write().unwrap_or_else(PoisonError::into_inner);
        for part in parts.values(object.written).filter(|part| !part.is_vetted()) {
            let print = if offered == 0 { parts.print(part) } else { offered };
            shelf.meet(parts.seed, print, part.written());
        }
    }
}

/// The parts of an object: neighbours on the tape.
#[derive(Debug)]
pub(crate) struct Parts {
    first: u32,
    /// One past the last node of the last of them.
    end: u32,
    /// What their verdict depends on besides their bytes.
    seed: u64,
    /// What else they are looked for by.
    salt: u64,
    /// Most blocks of a part to look at.
    blocks: usize,
}

const API_VERSION: Name = Name::of("apiVersion");
const SPEC: Name = Name::of("spec");

impl Parts {
    /// `None` if nothing of it is remembered. The object need not fit its schema yet; kind and version are those that it
    /// is judged as, which are not always what its first `kind` says.
    pub(crate) fn of(object: Value<'_>, kind: &str, api_version: &str, profile: &Profile) -> Option<Parts> {
        let seed = |what: &str| seed(profile.name, api_version, what);
        if kind == ApiKind::ResourceClaim.name() {
            Parts::whole(object.field(SPEC), seed("claim"))
        } else if kind == ApiKind::ResourceSlice.name() {
            Parts::devices(Slice::of(object), seed)
        } else if kind == ApiKind::ResourceClaimTemplate.name() {
            Parts::whole(object.field(SPEC).field(SPEC), seed("template"))
        } else {
            None
        }
    }

    fn whole(spec: Value<'_>, seed: u64) -> Option<Parts> {
        let first = spec.index();
        let end = first + size(spec);
        (spec.kind() == Kind::Object).then_some(Parts { first, end, seed, salt: seed, blocks: usize::MAX })
    }

    fn devices(slice: Slice<'_>, seed: impl Fn(&str) -> u64) -> Option<Parts> {
        let spec = slice.spec();
        // Counters of the slice are what a device's counters refer to: that is more than can be told in a number.
        if spec.shared_counters().is_given() {
            return None;
        }
        let per_device = spec.per_device_node_selection() == Some(true);
        let devices = spec.devices().value();
        let (first, end) = (devices.index() + 1, devices.index() + size(devices));
        let seed = seed(if per_device { "+" } else { "-" });
        // Devices of many nodes have the same names: their pool, and some of their bytes, tell them apart.
        let salt = print(seed, spec.pool().name().as_bytes(), usize::MAX);
        Some(Parts { first, end, seed, salt, blocks: BLOCKS })
    }

    /// A number to find a part by.
    fn print(&self, part: Value<'_>) -> u64 {
        print(self.salt, part.written(), self.blocks)
    }

    fn values<'d>(&self, of: Value<'d>) -> impl Iterator<Item = Value<'d>> + use<'d> {
        let (mut at, end) = (self.first, self.end);
        std::iter::from_fn(move || {
            let part = (at < end).then(|| of.doc().value(at))?;
            at += size(part).max(1);
            Some(part)
        })
    }
}

fn size(value: Value<'_>) -> u32 {
    u32::try_from(value.size()).unwrap_or_default()
}

impl Shelf {
    fn has(&self, seed: u64, print: u64, bytes: &[u8]) -> bool {
        let known = self.places.get(place(print)).and_then(Option::as_ref);
        known.is_some_and(|known| known.print == print && known.seed == seed && *known.bytes == *bytes)
    }

    /// Keeps a part that comes for the second time.
    fn meet(&mut self, seed: u64, print: u64, bytes: &[u8]) {
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

/// What a verdict depends on besides the bytes, in a number.
fn seed(profile: &str, api_version: &str, what: &str) -> u64 {
    // Short names of few kinds: told apart by their bytes, and joined by what none of them contains.
    let texts = [profile, "\n", api_version, "\n", what];
    texts.iter().flat_map(|text| text.bytes()).fold(0xcbf2_9ce4_8422_2325, |seed: u64, byte| {
        (seed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// A number to find bytes by. Whether it is those, they say themselves: only so many blocks are looked at, less than
/// twice as many, and the first always, where the name is.
fn print(seed: u64, bytes: &[u8], most: usize) -> u64 {
    const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix =
        |print: u64, word: &[u8; 8]| (print.rotate_left(23) ^ u64::from_le_bytes(*word)).wrapping_mul(MIX);
    // Four numbers at a time: each need not wait for the others.
    let mut lanes = [seed, seed ^ 1, seed ^ 2, seed ^ 3];
    let (blocks, rest) = bytes.as_chunks::<32>();
    for block in blocks.iter().step_by((blocks.len() / most).max(1)) {
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
    use super::{BLOCKS, MOST_BYTES, PLACES, Shelf, place, print};

    fn has(shelf: &Shelf, seed: u64, bytes: &[u8]) -> bool {
        shelf.has(seed, print(seed, bytes, usize::MAX), bytes)
    }

    fn meet(shelf: &mut Shelf, seed: u64, bytes: &[u8]) {
        shelf.meet(seed, print(seed, bytes, usize::MAX), bytes);
    }

    #[test]
    fn only_the_same_bytes_in_the_same_place_are_known() {
        let mut shelf = Shelf::default();
        let device: Vec<u8> = (0..200).collect();
        meet(&mut shelf, 7, &device);
        assert!(!has(&shelf, 7, &device), "it came once");
        meet(&mut shelf, 7, &device);
        assert!(has(&shelf, 7, &device));
        assert!(!has(&shelf, 8, &device), "another profile");
        for at in 0..device.len() {
            let mut other = device.clone();
            other[at] ^= 1;
            assert!(!has(&shelf, 7, &other), "byte {at}");
            assert!(!has(&shelf, 7, &device[..at]), "the first {at} bytes");
        }
    }

    #[test]
    fn devices_of_the_same_name_have_a_place_in_each_pool() {
        // As large as to be looked at in part, and different where nobody looks.
        let device = |uuid: u8| [vec![b'n'; 3_000], vec![uuid; 1], vec![b'n'; 999]].concat();
        let find = |pool: u64, uuid: u8| print(pool, &device(uuid), BLOCKS);
        assert_eq!(find(1, 1), find(1, 2), "else this shows nothing");
        assert_ne!(place(find(1, 1)), place(find(2, 2)));
        // The spec of a claim has no pool: all of it is looked at.
        assert_ne!(print(1, &device(1), usize::MAX), print(1, &device(2), usize::MAX));
    }

    #[test]
    fn it_forgets_before_it_grows() {
        let mut shelf = Shelf::default();
        for number in 0_u64..5_000 {
            let device: Vec<u8> = number.to_le_bytes().repeat(400);
            meet(&mut shelf, 1, &device);
            meet(&mut shelf, 1, &device);
            assert!(has(&shelf, 1, &device), "{number}");
            assert!(shelf.bytes <= MOST_BYTES + device.len() && shelf.places.len() == PLACES);
        }
        let held: usize = shelf.places.iter().flatten().map(|entry| entry.bytes.len()).sum();
        assert_eq!(held, shelf.bytes);
        assert!(place(u64::MAX) < PLACES);
    }
}
