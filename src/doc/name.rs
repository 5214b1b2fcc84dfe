//! Names of fields, recognised once: a key that is one of them gets its number when the document is read, and from
//! then on it is found by number. Most of what rules do is asking for fields.
//!
//! Not a schema: a name says nothing about where it may be. A name that is missing here, or longer than sixteen bytes,
//! is found by its text; it costs time, never an answer.

#![expect(
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "while compiling, or below a power of two that is the table's length"
)]

/// The name of a field.
#[derive(Clone, Copy, Debug)]
pub struct Name {
    /// As it is written.
    pub text: &'static str,
    /// Its number; zero if it has none.
    pub(super) number: u8,
}

impl Name {
    /// The name of that text.
    pub const fn of(text: &'static str) -> Name {
        let number = match print(text.as_bytes()) {
            Some(print) => number(print),
            None => 0,
        };
        Name { text, number }
    }
}

/// The number of the key that begins `rest` and is `length` bytes long; zero if it has none.
#[inline]
pub(super) fn recognise(rest: &[u8], length: usize) -> u8 {
    let Some(first) = rest.first_chunk::<8>() else { return 0 };
    let first = u64::from_le_bytes(*first);
    let print = match length {
        // What follows the key is cut off.
        1..8 => Print { first: first & (u64::MAX >> (64 - 8 * length)), last: 0, length },
        8..=LONGEST => {
            let last = rest.get(length - 8..length).and_then(|last| last.first_chunk::<8>());
            Print { first, last: last.map_or(0, |last| u64::from_le_bytes(*last)), length }
        }
        _ => return 0,
    };
    number(print)
}

/// Up to here the first and the last eight bytes are all of a name.
const LONGEST: usize = 16;

#[derive(Clone, Copy)]
struct Print {
    first: u64,
    last: u64,
    length: usize,
}

/// A place of the table: a name, or nothing.
#[derive(Clone, Copy)]
struct Slot {
    first: u64,
    last: u64,
    length: u8,
    number: u8,
}

/// A power of two, and so many times the names that most are found at once and the others soon.
const SLOTS: usize = 512;
static TABLE: [Slot; SLOTS] = table();

#[inline]
const fn place(print: Print) -> usize {
    let mixed = (print.first ^ print.last.rotate_left(29)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 55) as usize
}

#[inline]
const fn number(print: Print) -> u8 {
    let mut place = place(print);
    loop {
        let slot = &TABLE[place % SLOTS];
        if slot.number == 0
            || slot.first == print.first && slot.last == print.last && slot.length as usize == print.length
        {
            return slot.number;
        }
        place += 1;
    }
}

const fn print(text: &[u8]) -> Option<Print> {
    if text.is_empty() || text.len() > LONGEST {
        return None;
    }
    let mut print = Print { first: 0, last: 0, length: text.len() };
    let mut at = 0;
    while at < text.len() {
        if at < 8 {
            print.first |= (text[at] as u64) << (8 * at);
        }
        if text.len() >= 8 && at + 8 >= text.len() {
            print.last |= (text[at] as u64) << (8 * (at + 8 - text.len()));
        }
        at += 1;
    }
    Some(print)
}

const fn table() -> [Slot; SLOTS] {
    let mut table = [Slot { first: 0, last: 0, length: 0, number: 0 }; SLOTS];
    let mut index = 0;
    while index < NAMES.len() {
        if let Some(print) = print(NAMES[index].as_bytes()) {
            let mut place = place(print);
            while table[place % SLOTS].number != 0 {
                place += 1;
            }
            table[place % SLOTS] = Slot {
                first: print.first,
                last: print.last,
                length: print.length as u8,
                number: index as u8 + 1,
            };
        }
        index += 1;
    }
    table
}

/// Fields of the kinds we judge; at most 255.
#[rustfmt::skip]
static NAMES: &[&str] = &[
    "adminAccess", "allNodes", "allocation", "allocationMode", "annotations", "apiGroup", "apiVersion",
    "attributes", "basic", "bindsToNode", "bool", "bools", "capacity", "capacityKey", "cel", "conditions",
    "config", "constraints", "consumedCapacity", "consumesCounters", "controller", "count", "counterSet",
    "counters", "data", "default", "description", "device", "deviceClassName", "deviceMultiplier",
    "deviceSelector", "devices", "driver", "dryRun", "effect", "exactly", "expression", "fieldsType",
    "fieldsV1", "finalizers", "firstAvailable", "generateName", "generation", "group", "hardwareAddress", "int",
    "interfaceName", "ints", "ips", "key", "kind", "labels", "managedFields", "manager", "mapping",
    "matchAttribute", "matchExpressions", "matchFields", "max", "message", "metadata", "min", "name",
    "namespace", "networkData", "nodeName", "nodeSelector", "object", "oldObject", "opaque", "operation",
    "operator", "overhead", "ownerReferences", "parameters", "perContainer", "perPod", "pool", "reason",
    "request", "requestPolicy", "requests", "reservedFor", "resource", "resourceVersion", "results",
    "selectors", "selfLink", "shareID", "sharedCounters", "source", "spec", "status", "step", "string",
    "strings", "subResource", "subresource", "taint", "taints", "time", "timeAdded", "tolerations", "type",
    "uid", "userInfo", "validRange", "validValues", "value", "values", "version", "versions",
];

#[cfg(test)]
mod tests {
    use super::{NAMES, Name, recognise};

    #[test]
    fn a_key_is_recognised_by_all_of_its_bytes() {
        for (index, name) in NAMES.iter().enumerate() {
            let number = u8::try_from(index + 1).unwrap();
            assert_eq!(Name::of(name).number, number, "{name}");
            for after in ["\":\"a long enough rest", "XXXXXXXXXXXXXXXXXXXX"] {
                assert_eq!(recognise(format!("{name}{after}").as_bytes(), name.len()), number, "{name}");
            }
            for at in 0..name.len() {
                let mut other = name.as_bytes().to_vec();
                other[at] ^= 0x20;
                let other = String::from_utf8(other).unwrap();
                let known = NAMES.contains(&other.as_str());
                assert_eq!(
                    recognise(format!("{other}\":\"and more").as_bytes(), other.len()) != 0,
                    known,
                    "{other}"
                );
            }
        }
        assert_eq!(Name::of("").number, 0);
        assert_eq!(recognise(b"keyskeyskeyskeyskeys", 4), 0);
        assert_eq!(recognise(b"key", 3), 0, "too close to the end: found by its text");
    }
}
