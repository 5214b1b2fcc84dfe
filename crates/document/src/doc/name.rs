//! Names of fields, recognised once: a key that is one of them gets its number when the document is read, and from
//! then on it is found by number. Most of what rules do is asking for fields.
//!
//! Not a schema: a name says nothing about where it may be. A name that is missing here is found by its text; it costs
//! time, never an answer.

#![expect(
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "while compiling, or below a power of two that is the table's length"
)]

/// The name of a field, with its number if it is in the table of known names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Name {
    /// The field name.
    pub text: &'static str,
    /// Number of the name for fast comparison; 0 if it has none.
    pub(super) number: u8,
}

impl Name {
    /// Number of possible name numbers, including 0.
    pub const NUMBERS: usize = 256;

    /// The name with that text; its number is 0 if it is not in the table of known names.
    pub const fn of(text: &'static str) -> Name {
        let number = match letters(text.as_bytes()) {
            Some(letters) => recognise(letters),
            None => search_long(text.as_bytes()),
        };
        Name { text, number }
    }

    /// Returns the number of the name, by which names are compared without their text; 0 if the name has none.
    pub const fn number(self) -> usize {
        self.number as usize
    }
}

/// A set of names that have numbers.
#[derive(Debug)]
pub struct NameSet([bool; Name::NUMBERS]);

impl NameSet {
    /// The empty set.
    pub const NONE: &'static NameSet = &NameSet::of(&[]);

    /// The set of these names.
    ///
    /// # Panics
    /// If a name has no number. Intended for tables that are computed at compile time.
    pub const fn of(texts: &[&'static str]) -> NameSet {
        let mut set = [false; Name::NUMBERS];
        let mut at = 0;
        while at < texts.len() {
            let number = Name::of(texts[at]).number();
            assert!(number != 0, "a name without a number");
            set[number] = true;
            at += 1;
        }
        NameSet(set)
    }

    /// The set of the names that have numbers. Other names are omitted.
    pub fn numbered(names: impl IntoIterator<Item = Name>) -> NameSet {
        let mut set = [false; Name::NUMBERS];
        for name in names.into_iter().filter(|name| name.number != 0) {
            set[name.number()] = true;
        }
        NameSet(set)
    }

    /// True if a key with this number can be one of the names. Always true for 0, because such a key was not
    /// recognized.
    #[inline]
    pub(super) fn may_contain(&self, number: u8) -> bool {
        number == 0 || self.0[number as usize]
    }

    /// True if the set has that name.
    #[inline]
    pub fn has(&self, name: Name) -> bool {
        self.0.get(name.number()).copied().unwrap_or_default()
    }
}

const _: () = assert!(NAMES.len() < Name::NUMBERS, "a table of names is too small");

/// The bytes of a key of at most [`LONGEST`] bytes, the first one lowest, and zeros after the last. No plain key has a
/// zero byte, so two keys are equal if their letters are.
pub(super) type Letters = [u64; 2];

/// The number of bytes that [`Letters`] can hold; longer keys are compared by their text.
pub(super) const LONGEST: usize = 16;

/// The number of the key with these letters; 0 if it is not in [`NAMES`].
#[inline]
pub(super) const fn recognise(letters: Letters) -> u8 {
    let mut slot = slot(letters);
    loop {
        let (known, number) = (&TABLE_KEYS[slot % SHORT_SLOTS], TABLE_IDS[slot % SHORT_SLOTS]);
        if number == 0 || known[0] == letters[0] && known[1] == letters[1] {
            return number;
        }
        slot += 1;
    }
}

/// The number of a key of any length and with any bytes; 0 if it is not in [`NAMES`].
pub(super) fn recognise_text(key: &str) -> u8 {
    let number = letters(key.as_bytes()).map_or_else(|| recognise_long(key.as_bytes()), recognise);
    let index = usize::from(number).checked_sub(1);
    // Zero bytes at the end are not told by letters.
    if index.is_some_and(|index| NAMES[index].len() == key.len()) { number } else { 0 }
}

/// The number of a key that is longer than [`LONGEST`]; 0 if it is not in [`NAMES`].
pub(super) fn recognise_long(key: &[u8]) -> u8 {
    let mut slot = long_slot(key);
    loop {
        let number = LONG_NAMES[slot % LONG_SLOTS];
        let Some(index) = usize::from(number).checked_sub(1) else { return 0 };
        if NAMES[index].as_bytes() == key {
            return number;
        }
        slot += 1;
    }
}

/// [`recognise_long`] for use while compiling: it compares with all names.
const fn search_long(key: &[u8]) -> u8 {
    let mut index = 0;
    while index < NAMES.len() {
        let name = NAMES[index].as_bytes();
        let mut at = 0;
        while at < name.len() && name.len() == key.len() && name[at] == key[at] {
            at += 1;
        }
        if at == key.len() && at > LONGEST {
            return index as u8 + 1;
        }
        index += 1;
    }
    0
}

/// The slot of [`LONG_NAMES`] at which the search for a key longer than [`LONGEST`] begins.
#[inline]
const fn long_slot(key: &[u8]) -> usize {
    if key.len() <= LONGEST {
        return 0;
    }
    key.len() + 3 * key[LONGEST] as usize + 7 * key[0] as usize
}

/// The length of [`LONG_NAMES`]: a power of two, and several times the number of long names.
const LONG_SLOTS: usize = 128;
/// A hash table of the numbers of the names longer than [`LONGEST`]; 0 in empty slots.
static LONG_NAMES: [u8; LONG_SLOTS] = long_table();

/// Computes the hash table [`LONG_NAMES`] at compile time.
const fn long_table() -> [u8; LONG_SLOTS] {
    let mut table = [0; LONG_SLOTS];
    let mut index = 0;
    while index < NAMES.len() {
        if NAMES[index].len() > LONGEST {
            let mut slot = long_slot(NAMES[index].as_bytes());
            while table[slot % LONG_SLOTS] != 0 {
                slot += 1;
            }
            table[slot % LONG_SLOTS] = index as u8 + 1;
        }
        index += 1;
    }
    table
}

/// The length of the hash table of short names: a power of two, and so much larger than their number that most are
/// found at once.
const SHORT_SLOTS: usize = 512;
static TABLE_KEYS: [Letters; SHORT_SLOTS] = FIELD_NAME_TABLE.0;
static TABLE_IDS: [u8; SHORT_SLOTS] = FIELD_NAME_TABLE.1;
const FIELD_NAME_TABLE: ([Letters; SHORT_SLOTS], [u8; SHORT_SLOTS]) = table();

/// The slot at which the search for these letters begins. Not foldhash: the table is made while compiling, where no
/// hasher of a crate can run.
#[inline]
const fn slot(letters: Letters) -> usize {
    let mixed = (letters[0] ^ letters[1].rotate_left(29)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 55) as usize
}

/// The letters of a text; `None` if it is empty or longer than [`LONGEST`].
const fn letters(text: &[u8]) -> Option<Letters> {
    if text.is_empty() || text.len() > LONGEST {
        return None;
    }
    let mut letters = [0; 2];
    let mut at = 0;
    while at < text.len() {
        letters[at / 8] |= (text[at] as u64) << (8 * (at % 8));
        at += 1;
    }
    Some(letters)
}

/// Computes the hash table of short names: the letters in each slot, and the number of the name, or 0.
const fn table() -> ([Letters; SHORT_SLOTS], [u8; SHORT_SLOTS]) {
    let (mut known, mut numbers) = ([[0; 2]; SHORT_SLOTS], [0; SHORT_SLOTS]);
    let mut index = 0;
    while index < NAMES.len() {
        if let Some(letters) = letters(NAMES[index].as_bytes()) {
            let mut slot = slot(letters);
            while numbers[slot % SHORT_SLOTS] != 0 {
                slot += 1;
            }
            known[slot % SHORT_SLOTS] = letters;
            numbers[slot % SHORT_SLOTS] = index as u8 + 1;
        }
        index += 1;
    }
    (known, numbers)
}

/// The names with numbers: fields of the kinds that Tollgate checks or stores, and of AdmissionReviews. The
/// number of a name is its position, counted from 1.
#[rustfmt::skip]
static NAMES: &[&str] = &[
    "adminAccess", "allNodes", "allocation", "allocationMode", "allocationTimestamp",
    "allowMultipleAllocations", "annotations", "apiGroup", "apiVersion", "attributes", "basic",
    "bindingConditions", "bindingFailureConditions", "bindsToNode", "blockOwnerDeletion", "bool", "bools",
    "capacity", "capacityKey", "cel", "conditions", "config", "constraints", "consumedCapacity",
    "consumesCounters", "containers", "controller", "count", "counterSet", "counters", "creationTimestamp",
    "data", "default", "deletionGracePeriodSeconds", "deletionTimestamp", "derivedAttributes", "description",
    "device", "deviceClassName", "deviceMultiplier", "deviceSelector", "devices", "disruptionsAllowed",
    "distinctAttribute", "driver", "dryRun", "durationInSeconds", "effect", "evictionsPerSecond", "exactly",
    "expression", "extendedResourceClaimStatus", "extendedResourceName", "fieldsType", "fieldsV1", "finalizers",
    "firstAvailable", "generateName", "generation", "group", "groups", "hardwareAddress", "int",
    "interfaceName", "ints", "ips", "key", "kind", "labels", "lastTransitionTime", "managedFields", "manager",
    "mapping", "matchAttribute", "matchExpressions", "matchFields", "matchLabels", "max", "message", "metadata",
    "min", "name", "namespace", "networkData", "nodeAllocatableResourceMappings", "nodeAllocatableResources",
    "nodeName", "nodeSelector", "nodeSelectorTerms", "object", "observedGeneration", "oldObject", "opaque",
    "operation", "operator", "options", "overhead", "ownerReferences", "parameters", "partitionTypeAttribute",
    "perContainer", "perDeviceNodeSelection", "perPod", "phase", "podGroupName", "pool", "reason", "request",
    "requestKind", "requestPolicy", "requestResource", "requests", "reservedFor", "resource",
    "resourceClaimName", "resourceClaimStatuses", "resourceClaimTemplateName", "resourceClaims",
    "resourceSliceCount", "resourceVersion", "results", "schedulingGroup", "selector", "selectors", "selfLink",
    "shareID", "sharedCounters", "skipNodeOperations", "source", "spec", "status", "step", "string", "strings",
    "subResource", "subresource", "taint", "taints", "time", "timeAdded", "tolerationSeconds", "tolerations",
    "type", "uid", "userInfo", "username", "validRange", "validValues", "value", "values", "version",
    "versions",
];

#[cfg(test)]
mod tests {
    use super::{NAMES, Name, recognise_text};
    use crate::doc::parse;

    /// The number that the reader gives to a key with much or little after it.
    fn read(key: &str, after: &str) -> u8 {
        let text = format!("{{\"{key}\":0{after}}}");
        parse(&text).unwrap().nodes[1].name
    }

    #[test]
    fn a_key_is_recognised_by_all_of_its_bytes() {
        let long = ",\"and\":\"a long enough rest\"";
        for (index, name) in NAMES.iter().enumerate() {
            let number = u8::try_from(index + 1).unwrap();
            assert_eq!(Name::of(name).number, number, "{name}");
            assert_eq!(read(name, long), number, "{name}");
            assert_eq!(recognise_text(name), number, "{name}");
            assert_eq!(recognise_text(&format!("{name}\0")), 0, "{name}");
            let mut others =
                vec![format!("{name}s"), format!("{name}:"), format!(" {name}"), name[1..].to_owned()];
            for at in 0..name.len() {
                let mut other = name.as_bytes().to_vec();
                other[at] ^= 0x20;
                others.push(String::from_utf8(other).unwrap());
            }
            for other in others.into_iter().filter(|other| other.bytes().all(|byte| byte >= 0x20)) {
                let known = NAMES.contains(&other.as_str());
                assert_eq!(read(&other, long) != 0, known, "{other}");
                assert_eq!(recognise_text(&other) != 0, known, "{other}");
            }
        }
        for name in ["apiVersion", "kind"] {
            let alike = NAMES.iter().filter(|other| other.eq_ignore_ascii_case(name));
            assert_eq!(alike.count(), 1, "who looks for {name} in any case relies on it");
        }
        assert_eq!(Name::of("").number, 0);
        assert_eq!(read("key", ""), 0, "too close to the end: found by its text");
        assert_eq!(read("", long), 0);
    }
}
