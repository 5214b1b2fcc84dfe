//! Ratcheting: findings that the stored object already had are not reported again for an update.
//!
//! The API server's rules ratchet as each release does, in their own files. This module does it for all other rules and
//! for policies: the same checks run on the stored object, and each of its findings excuses one equal finding of the
//! new object. Equal means that the same rule reports the same message about the same value at the same path. Items of
//! a list are identified by name (devices, requests); items without a name (taints, tolerations) match at any index.
//!
//! A taint affects pods of others, so the comparison is stricter ([`extent`]): a finding about a taint is excused only
//! by one about a taint with the same key and value, on the same device, that reaches at least as far. The messages of
//! a policy may differ there, because they contain the effect and the rate. A list with too many items is excused if
//! the stored list had at least as many and the limit is not lowered, so that users can remove the excess items one by
//! one.
//!
//! Invariant: one stored finding excuses one new finding, and none if the update could reach more.

mod extent;

use extent::TaintStrength;
pub use extent::{ReachChange, has_same_key_and_value, taint_reach_change};
pub(super) use extent::{filter_or_empty, is_new_selector_same_or_narrower};

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hash as _, Hasher as _};

use foldhash::quality::RandomState;

use tollgate_api::view::{Object, SliceTaint, Taint, View as _};
use tollgate_document::doc::{self, ContainerIndex, Value};
use tollgate_document::field::{FieldPath, SegmentName};
use tollgate_document::finding::{BadValue, ErrorType, Finding, RuleId};
use tollgate_formats::gofmt::byte_prefix;

/// Number of bytes of a text that are compared; if a text is longer, the value in the object is compared instead.
pub const MAX_COMPARED_TEXT_BYTES: usize = 256;

/// Maximum number of stored taints or counts that are compared. Valid lists are not longer, and this bounds
/// the time for hostile ones.
const MAX_COMPARED_ITEMS: usize = 128;

/// The findings of the stored object, each of which excuses one equal finding of the new object.
#[derive(Debug)]
pub struct StoredObjectFindings {
    /// The number of occurrences of each finding, keyed by a hash of its message, because there can be a
    /// million long messages. The hash keys are random, so that collisions cannot be forced.
    occurrences: HashMap<u64, StoredOccurrences>,
    extent: ReachChange,
    keys: RandomState,
    stored: ObjectLookupCache,
    new: ObjectLookupCache,
}

/// The occurrences of one finding about the stored object.
#[derive(Debug, Default)]
struct StoredOccurrences {
    /// Number of occurrences that are neither about a taint nor about a number.
    count: usize,
    /// Numbers that exceeded a limit, with the limit.
    excesses: Vec<(usize, usize)>,
    /// The strength of each taint that the finding is about. Key and value of the taint are part of the hash.
    taints: Vec<TaintStrength>,
}

/// Lookups in the stored or the new object that are kept, because there can be a million findings.
#[derive(Debug, Default)]
struct ObjectLookupCache {
    index: ContainerIndex,
    /// Hashes of whole values, by node.
    values: HashMap<Option<u32>, u64>,
}

impl StoredObjectFindings {
    /// Creates an empty collection for an update that changes the reach of taints by `extent`.
    pub fn new(extent: ReachChange) -> StoredObjectFindings {
        StoredObjectFindings {
            occurrences: HashMap::new(),
            extent,
            keys: RandomState::default(),
            stored: ObjectLookupCache::default(),
            new: ObjectLookupCache::default(),
        }
    }

    /// Records a finding of the stored object.
    fn record(&mut self, statement: &BorrowedFinding<'_>, stored: Object<'_>) {
        let (occurrences, taint) =
            statement.order_independent_digest_and_taint(stored, self.extent, &self.keys, &mut self.stored);
        let occurrences = self.occurrences.entry(occurrences).or_default();
        match (statement.value, taint) {
            (BadValue::Excess { count, limit }, _) => occurrences.excesses.push((*count, *limit)),
            (_, Some(taint)) => occurrences.taints.push(TaintStrength::from_taint(taint)),
            (_, None) => occurrences.count += 1,
        }
    }

    /// Removes an equal finding of the stored object; true if there was one. Each stored finding excuses only one new
    /// finding, so a second blanket toleration is reported. Never true if the update could widen the reach of taints.
    pub fn consume_matching_finding(&mut self, statement: &BorrowedFinding<'_>, object: Object<'_>) -> bool {
        if self.extent == ReachChange::Wider {
            return false;
        }
        let (occurrences, taint) =
            statement.order_independent_digest_and_taint(object, self.extent, &self.keys, &mut self.new);
        let Some(stored) = self.occurrences.get_mut(&occurrences) else { return false };
        if let BadValue::Excess { count, limit } = statement.value {
            let is_less = |(old, of): &(usize, usize)| count <= old && limit >= of;
            let found = stored.excesses.iter().take(MAX_COMPARED_ITEMS).position(is_less);
            return found.map(|index| stored.excesses.swap_remove(index)).is_some();
        }
        let Some(taint) = taint else {
            let left = stored.count.checked_sub(1);
            stored.count = left.unwrap_or_default();
            return left.is_some();
        };
        // Of several the weakest: a stronger one may be needed for another.
        let taint = TaintStrength::from_taint(taint);
        let candidates = stored.taints.iter().take(MAX_COMPARED_ITEMS).enumerate();
        let fitting =
            candidates.filter(|(_, old)| old.is_at_least_as_strong_as(&taint)).min_by_key(|(_, old)| *old);
        let weakest = fitting.map(|(index, _)| index);
        weakest.map(|index| stored.taints.swap_remove(index)).is_some()
    }
}

/// How findings are compared with those of the stored object: findings about the stored object are recorded, and
/// findings about the new object are dropped if the stored object had them.
#[derive(Clone, Copy, Debug)]
pub enum RatchetMode<'c> {
    /// Records findings about the stored object.
    Learn(&'c RefCell<StoredObjectFindings>, Object<'c>),
    /// Drops a finding about the new object if the stored object had it too.
    Ask(&'c RefCell<StoredObjectFindings>, Object<'c>),
    /// Like `Ask`, but only for rules that are ratcheted (`Rule::is_ratcheted`), not for those of the API
    /// server.
    AskOurs(&'c RefCell<StoredObjectFindings>, Object<'c>),
}

impl RatchetMode<'_> {
    /// True if findings of that rule are recorded or compared.
    pub fn applies_to(self, rule: RuleId) -> bool {
        match self {
            RatchetMode::Learn(..) | RatchetMode::Ask(..) => true,
            RatchetMode::AskOurs(..) => rule.is_ratcheted(),
        }
    }

    /// Records the finding, or compares it with those of the stored object. Returns true if it is to be
    /// dropped. Only for rules that the ratchet applies to.
    pub fn should_drop_finding(self, statement: &BorrowedFinding<'_>) -> bool {
        match self {
            RatchetMode::Learn(known, object) => {
                known.borrow_mut().record(statement, object);
                true
            }
            RatchetMode::Ask(known, object) | RatchetMode::AskOurs(known, object) => {
                known.borrow_mut().consume_matching_finding(statement, object)
            }
        }
    }
}

/// The content of a finding before it is kept: of a million findings only a few thousand are, so nothing is copied for
/// the comparison.
#[derive(Clone, Copy, Debug)]
pub struct BorrowedFinding<'a> {
    pub rule: RuleId,
    pub at: &'a FieldPath,
    pub kind: ErrorType,
    pub value: &'a BadValue,
    pub detail: &'a str,
    /// The policy that reports the finding, if any.
    pub policy: Option<&'a str>,
}

impl<'a> BorrowedFinding<'a> {
    /// Borrows the content of a finding that a rule reports.
    pub fn from_finding(finding: &'a Finding) -> BorrowedFinding<'a> {
        let Finding { rule, kind, value, detail, at, .. } = finding;
        BorrowedFinding { rule, at, kind: *kind, value, detail, policy: None }
    }

    /// Returns a hash of the finding that does not depend on the order of lists, and the taint that the finding is
    /// about, if any.
    fn order_independent_digest_and_taint<'d>(
        &self,
        object: Object<'d>,
        extent: ReachChange,
        keys: &RandomState,
        searched: &mut ObjectLookupCache,
    ) -> (u64, Option<Taint<'d>>) {
        let mut out = keys.build_hasher();
        (self.rule, self.policy).hash(&mut out);
        let (mut value, mut in_taints) = (object.value(), false);
        // The taint, and whether it is its key, value, effect or rate that is spoken of, not what it carries.
        let (mut taint, mut is_of_taint) = (None, false);
        for step in self.at.user_steps() {
            let field = match step {
                SegmentName::Index(index) => {
                    value = searched.index.item(value, *index);
                    ("item", identifying_name_of_item(value)).hash(&mut out);
                    ""
                }
                SegmentName::Field(name) | SegmentName::Key(name) => {
                    value = searched
                        .index
                        .last_key_and_value(value, name)
                        .map_or(Value::absent(), |(_, value)| value);
                    ("member", name).hash(&mut out);
                    if matches!(step, SegmentName::Field(_)) { &**name } else { "" }
                }
            };
            if taint.is_some() {
                is_of_taint &= matches!(field, "taint" | "key" | "value" | "effect" | "evictionsPerSecond");
            } else if in_taints && matches!(step, SegmentName::Index(_)) || field == "taint" {
                taint = Some(SliceTaint::of(value).nested_or_inlined_taint());
                is_of_taint = true;
            }
            in_taints = field == "taints";
        }
        ("end", taint.map(|taint| (taint.key(), taint.value()))).hash(&mut out);
        let is_weighed = self.policy.is_some() && is_of_taint || extent == ReachChange::Within;
        if let BadValue::Excess { .. } = self.value {
            // The detail names the limit, and the value is compared by its size.
            self.kind.hash(&mut out);
        } else if !is_weighed {
            self.kind.hash(&mut out);
            let is_whole = match self.value {
                BadValue::Str(text) | BadValue::Json(text) => {
                    byte_prefix(text, MAX_COMPARED_TEXT_BYTES).hash(&mut out);
                    text.len() <= MAX_COMPARED_TEXT_BYTES
                }
                other => {
                    other.hash(&mut out);
                    true
                }
            };
            // Where it does not show the value, or not all of it, it cannot tell one value from another.
            // A policy that does not know a type shows its name, not what is in it.
            let is_unknown = self.policy.is_some() && self.kind == ErrorType::NotSupported;
            let needs_value = !self.kind.shows_value() || !is_whole || is_unknown;
            // A policy says the same of the same value, in more or fewer words.
            if self.policy.is_none() || !needs_value {
                byte_prefix(self.detail, MAX_COMPARED_TEXT_BYTES).hash(&mut out);
            }
            if needs_value {
                let whole = || keys.hash_one(value.to_json());
                let node = value.exists().then(|| value.index());
                searched.values.entry(node).or_insert_with(whole).hash(&mut out);
            }
        }
        (out.finish(), taint)
    }
}

/// Returns what identifies an item of a list: its name, or the device or driver that it is about; empty if it has none.
fn identifying_name_of_item(item: Value<'_>) -> &str {
    const DRIVER: doc::FieldName = doc::FieldName::from_text("driver");
    const NAME: doc::FieldName = doc::FieldName::from_text("name");
    const DEVICE: doc::FieldName = doc::FieldName::from_text("device");
    const OPAQUE: doc::FieldName = doc::FieldName::from_text("opaque");
    let names = [item.field(NAME), item.field(DEVICE), item.field(OPAQUE).field(DRIVER)];
    names.into_iter().map(Value::str).find(|name| !name.is_empty()).unwrap_or_default()
}
