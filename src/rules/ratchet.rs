//! What was already wrong in the stored object and did not change is no reason to refuse.
//!
//! Upstream's rules ratchet as each release does, inside their own files. Everything of ours goes through here: the
//! same checks are run on the stored object, and each of its findings excuses one equal finding of the new one.
//! Equal means the same rule saying the same of the same value in the same place. A place is its path, where items
//! of a list go by their name (devices, requests) or, if they have none (taints, tolerations), by any index.
//!
//! A taint acts on others, so more is asked of it ([`extent`]): a finding inside of a taint is excused only by one of
//! the same key and value, on the same device, that reaches as far. There a policy need not say the same words, because
//! they name the effect and the rate.
//!
//! Invariant: one stored mistake excuses one new one, and none of an update that could reach more.

mod extent;

use extent::Strength;
pub(crate) use extent::{Extent, extent, is_same_taint};

use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hash as _, Hasher as _};

use super::RuleSet;
use crate::api::view::{Object, SliceTaint, Taint, View as _};
use crate::doc::{self, Index, Value};
use crate::field::Name;
use crate::finding::{BadValue, ErrorType, Finding, RuleId};
use crate::gofmt::head;

/// Bytes of a text that are compared. Of what is longer, the value in the object is.
pub(crate) const TEXT: usize = 256;

/// No valid list has more taints. A hostile one must not cost its square.
const SEARCHED: usize = 128;

/// What an object is found to have wrong.
#[derive(Debug)]
pub(crate) struct KnownFaults {
    /// How often each thing was said. Numbers instead of words: an object can have a million faults, and the words of
    /// each can be as long as the object. Their keys are secret, so nobody makes two things the same number.
    said: HashMap<u64, Said>,
    extent: Extent,
    keys: RandomState,
    stored: SearchedObject,
    new: SearchedObject,
}

/// One thing that was said of the stored object.
#[derive(Debug, Default)]
struct Said {
    /// How often, where it was not said of a taint.
    count: usize,
    /// How hard the taints hit that it was said of; their key and value are part of what is said.
    taints: Vec<Strength>,
}

/// One of the two objects, with what was looked up in it.
#[derive(Debug, Default)]
struct SearchedObject {
    index: Index,
    /// The numbers of whole values.
    values: HashMap<Option<u32>, u64>,
}

impl KnownFaults {
    /// Nothing yet, to excuse an update that does so much.
    pub(crate) fn new(extent: Extent) -> KnownFaults {
        KnownFaults {
            said: HashMap::new(),
            extent,
            keys: RandomState::new(),
            stored: SearchedObject::default(),
            new: SearchedObject::default(),
        }
    }

    /// The stored object has this; `by` is the policy that says so, if one does.
    fn learn(&mut self, finding: &Finding, by: Option<&str>, stored: Object<'_>) {
        let (said, taint) = statement(finding, by, stored, self.extent, &self.keys, &mut self.stored);
        let said = self.said.entry(said).or_default();
        match taint {
            Some(taint) => said.taints.push(Strength::of(taint)),
            None => said.count += 1,
        }
    }

    /// True if the stored object had this too. One old mistake excuses one new one: a second blanket toleration is
    /// a new mistake.
    pub(crate) fn excuses(&mut self, finding: &Finding, by: Option<&str>, object: Object<'_>) -> bool {
        if self.extent == Extent::Wider {
            return false;
        }
        let (said, taint) = statement(finding, by, object, self.extent, &self.keys, &mut self.new);
        let Some(stored) = self.said.get_mut(&said) else { return false };
        let Some(taint) = taint else {
            let left = stored.count.checked_sub(1);
            stored.count = left.unwrap_or_default();
            return left.is_some();
        };
        // Of several the weakest: a stronger one may be needed for another.
        let taint = Strength::of(taint);
        let candidates = stored.taints.iter().take(SEARCHED).enumerate();
        let fitting = candidates.filter(|(_, old)| old.covers(&taint)).min_by_key(|(_, old)| *old);
        let weakest = fitting.map(|(index, _)| index);
        weakest.map(|index| stored.taints.swap_remove(index)).is_some()
    }
}

/// What is done with a finding instead of keeping it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ratchet<'c> {
    /// It is learned, as one of the stored object.
    Learn(&'c RefCell<KnownFaults>, Object<'c>),
    /// It is dropped, if the stored object had it too.
    Ask(&'c RefCell<KnownFaults>, Object<'c>),
    /// The same for what is ours.
    AskOurs(&'c RefCell<KnownFaults>, Object<'c>, &'c RuleSet),
}

impl Ratchet<'_> {
    /// True if the stored object has a say in what that rule finds.
    pub(crate) fn is_about(self, rule: RuleId) -> bool {
        match self {
            Ratchet::Learn(..) | Ratchet::Ask(..) => true,
            Ratchet::AskOurs(_, _, rules) => rules.is_ratcheted(rule),
        }
    }

    /// True if the finding, of such a rule, is not to be kept; `by` is the policy that says so, if one does.
    pub(crate) fn takes(self, finding: &Finding, by: Option<&str>) -> bool {
        match self {
            Ratchet::Learn(known, object) => {
                known.borrow_mut().learn(finding, by, object);
                true
            }
            Ratchet::Ask(known, object) | Ratchet::AskOurs(known, object, _) => {
                known.borrow_mut().excuses(finding, by, object)
            }
        }
    }
}

/// What is said, in words that do not depend on the order of lists, as a number; and the taint that it is said of.
fn statement<'d>(
    finding: &Finding,
    by: Option<&str>,
    object: Object<'d>,
    extent: Extent,
    keys: &RandomState,
    seen: &mut SearchedObject,
) -> (u64, Option<Taint<'d>>) {
    let mut out = keys.build_hasher();
    (finding.rule, by).hash(&mut out);
    let (mut value, mut field) = (object.value(), "");
    // The taint, and whether it is its key, value, effect or rate that is spoken of, not what it carries.
    let (mut taint, mut is_of_taint) = (None, false);
    for step in finding.at.user_steps() {
        value = match step {
            Name::Index(index) => seen.index.item(value, *index),
            Name::Field(name) | Name::Key(name) => {
                seen.index.member(value, name).map_or(Value::absent(), |(_, value)| value)
            }
        };
        match step {
            Name::Index(_) => ("item", name_of(value)).hash(&mut out),
            Name::Field(name) | Name::Key(name) => ("member", name).hash(&mut out),
        }
        let is_item = field == "taints" && matches!(step, Name::Index(_));
        field = if let Name::Field(name) = step { name } else { "" };
        if taint.is_some() {
            is_of_taint &= matches!(field, "taint" | "key" | "value" | "effect" | "evictionsPerSecond");
        } else if is_item || field == "taint" {
            taint = Some(SliceTaint::of(value).taint());
            is_of_taint = true;
        }
    }
    ("end", taint.map(|taint| (taint.key(), taint.value()))).hash(&mut out);
    let is_weighed = by.is_some() && is_of_taint || extent == Extent::Within;
    if !is_weighed {
        (finding.kind, head(&finding.detail, TEXT)).hash(&mut out);
        let is_whole = match &finding.value {
            BadValue::Str(text) | BadValue::Json(text) => {
                head(text, TEXT).hash(&mut out);
                text.len() <= TEXT
            }
            other => {
                other.hash(&mut out);
                true
            }
        };
        // Where the finding does not show the value, or not all of it, it cannot tell one value from another.
        // A policy that does not know a type shows its name, not what is in it.
        let is_unknown = by.is_some() && finding.kind == ErrorType::NotSupported;
        if !finding.kind.shows_value() || !is_whole || is_unknown {
            let whole = || keys.hash_one(value.to_json());
            let place = value.exists().then(|| value.index());
            seen.values.entry(place).or_insert_with(whole).hash(&mut out);
        }
    }
    (out.finish(), taint)
}

/// What an item of a list goes by: its own name, or the device or driver it speaks of.
fn name_of(item: Value<'_>) -> &str {
    const DRIVER: doc::Name = doc::Name::of("driver");
    const NAME: doc::Name = doc::Name::of("name");
    const DEVICE: doc::Name = doc::Name::of("device");
    const OPAQUE: doc::Name = doc::Name::of("opaque");
    let names = [item.field(NAME), item.field(DEVICE), item.field(OPAQUE).field(DRIVER)];
    names.into_iter().map(Value::str).find(|name| !name.is_empty()).unwrap_or_default()
}
