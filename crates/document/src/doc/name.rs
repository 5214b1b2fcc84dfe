//! Known field names and their numbers. A key that is a known name gets the number of the name when the document is
//! read, so that looking up a field compares numbers instead of texts. Rules spend most of their time looking up
//! fields.
//!
//! This is not a schema: it does not say which object has which field. A field whose name is not in the table is found
//! by its text, which is slower but gives the same result.

#![expect(
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "while compiling, or below a power of two that is the table's length"
)]

/// The name of a field, with its number if it is in the table of known names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FieldName {
    /// The field name.
    pub text: &'static str,
    /// Number by which the name is compared quickly with keys; 0 if the name is not in the table.
    pub(super) number: u8,
}

impl FieldName {
    /// Number of possible name numbers, including 0.
    pub const NUMBER_COUNT: usize = 256;

    /// The name with that text; its number is 0 if it is not in the table of known names.
    pub const fn from_text(text: &'static str) -> FieldName {
        FieldName { text, number: constant_name_number(text) }
    }

    /// Returns the number of the name, by which names are compared without their text; 0 if the name has none.
    pub const fn number(self) -> usize {
        self.number as usize
    }
}

/// A set of names that have numbers.
#[derive(Debug)]
pub struct NameSet([bool; FieldName::NUMBER_COUNT]);

impl NameSet {
    /// The empty set.
    pub const NONE: &'static NameSet = &NameSet::from_texts(&[]);

    /// The set of these names.
    ///
    /// # Panics
    /// If a name has no number. Intended for tables that are computed at compile time.
    pub const fn from_texts(texts: &[&'static str]) -> NameSet {
        let mut set = [false; FieldName::NUMBER_COUNT];
        let mut at = 0;
        while at < texts.len() {
            let number = FieldName::from_text(texts[at]).number();
            assert!(number != 0, "a name without a number");
            set[number] = true;
            at += 1;
        }
        NameSet(set)
    }

    /// True if the set has that name.
    #[inline]
    pub fn has(&self, name: FieldName) -> bool {
        self.0.get(name.number()).copied().unwrap_or_default()
    }
}

const _: () = assert!(NAMES.len() < FieldName::NUMBER_COUNT, "a table of names is too small");

/// The number of a key; 0 if it is not in [`NAMES`].
pub(super) fn known_name_number(key: &[u8]) -> u8 {
    find_number(first_block(key), |name| name == key)
}

/// The number of the key that is the first `length` bytes of a block, none of which is zero.
#[inline]
pub(super) fn known_short_name_number(block: &[u8; 16], length: usize) -> u8 {
    // A name with the same first block is not longer than the key.
    find_number(u128::from_le_bytes(*block) & FIRST_BYTES[length % FIRST_BYTES.len()], |_| true)
}

/// The number of the name with that first block that `is_key` confirms; 0 if there is none.
#[inline]
fn find_number(block: u128, is_key: impl Fn(&[u8]) -> bool) -> u8 {
    let mut slot = first_slot(block);
    loop {
        let number = NAME_TABLE[slot % SLOTS];
        let index = number as usize;
        if number == 0 || (NAME_BLOCKS[index] == block && is_key(NAMES[index - 1].as_bytes())) {
            return number;
        }
        slot += 1;
    }
}

/// [`known_name_number`] for constants.
const fn constant_name_number(name: &str) -> u8 {
    let mut index = 0;
    while index < NAMES.len() {
        if is_same(NAMES[index].as_bytes(), name.as_bytes()) {
            return index as u8 + 1;
        }
        index += 1;
    }
    0
}

/// True if both texts are equal. Comparing slices is not possible while compiling.
const fn is_same(one: &[u8], other: &[u8]) -> bool {
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

/// Length of the table: a power of two, and so much larger than the number of names that most are found at once.
const SLOTS: usize = 1 << SLOT_BITS;
const SLOT_BITS: u32 = 10;
/// The numbers of the names, each in the slot of its first block or, if that is taken, in the next free one.
static NAME_TABLE: [u8; SLOTS] = name_table();
/// The first block of each name, by its number.
static NAME_BLOCKS: [u128; NAMES.len() + 1] = name_blocks();

/// Bit masks for blocks: the mask at index N keeps the first N bytes.
static FIRST_BYTES: [u128; 16] = prefix_masks();

const fn prefix_masks() -> [u128; 16] {
    let mut masks = [0; 16];
    let mut length = 0;
    while length < masks.len() {
        masks[length] = (1 << (8 * length)) - 1;
        length += 1;
    }
    masks
}

/// The first 16 bytes of a text, padded with zeros.
const fn first_block(text: &[u8]) -> u128 {
    let mut block = [0; size_of::<u128>()];
    let mut at = 0;
    while at < text.len() && at < block.len() {
        block[at] = text[at];
        at += 1;
    }
    u128::from_le_bytes(block)
}

/// The slot at which the search for a name with this first block begins. Not foldhash: the table is made while
/// compiling, where no hasher of a crate can run.
#[inline]
const fn first_slot(block: u128) -> usize {
    // Two odd numbers for which only two names share the slot of another.
    let first_half = (block as u64).wrapping_mul(6_874_006_459_850_296_781);
    let second_half = ((block >> 64) as u64).wrapping_mul(17_561_127_285_977_243_425);
    ((first_half ^ second_half) >> (u64::BITS - SLOT_BITS)) as usize
}

const fn name_table() -> [u8; SLOTS] {
    let mut table = [0; SLOTS];
    let mut index = 0;
    while index < NAMES.len() {
        let mut slot = first_slot(first_block(NAMES[index].as_bytes()));
        while table[slot % SLOTS] != 0 {
            slot += 1;
        }
        table[slot % SLOTS] = index as u8 + 1;
        index += 1;
    }
    table
}

const fn name_blocks() -> [u128; NAMES.len() + 1] {
    let mut blocks = [0; NAMES.len() + 1];
    let mut index = 0;
    while index < NAMES.len() {
        blocks[index + 1] = first_block(NAMES[index].as_bytes());
        index += 1;
    }
    blocks
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
    use super::{FieldName, NAMES, known_name_number};
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
            assert_eq!(FieldName::from_text(name).number, number, "{name}");
            for after in ["", long] {
                assert_eq!(read(name, after), number, "{name}");
            }
            assert_eq!(known_name_number(name.as_bytes()), number, "{name}");
            assert_eq!(known_name_number(format!("{name}\0").as_bytes()), 0, "{name}");
            let mut others =
                vec![format!("{name}s"), format!("{name}:"), format!(" {name}"), name[1..].to_owned()];
            for at in 0..name.len() {
                let mut other = name.as_bytes().to_vec();
                other[at] ^= 0x20;
                others.push(String::from_utf8(other).unwrap());
            }
            for other in others.into_iter().filter(|other| other.bytes().all(|byte| byte >= 0x20)) {
                let known = NAMES.contains(&other.as_str());
                for after in ["", long] {
                    assert_eq!(read(&other, after) != 0, known, "{other}");
                }
                assert_eq!(known_name_number(other.as_bytes()) != 0, known, "{other}");
            }
        }
        for name in ["apiVersion", "kind"] {
            let alike = NAMES.iter().filter(|other| other.eq_ignore_ascii_case(name));
            assert_eq!(alike.count(), 1, "who looks for {name} in any case relies on it");
        }
        assert_eq!(FieldName::from_text("").number, 0);
        assert_eq!(read("", long), 0);
    }
}
