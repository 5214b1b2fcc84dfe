//! What was already wrong in the stored object and did not change is no reason to refuse.
//!
//! Upstream's rules ratchet as each release does, inside their own files. Everything of ours goes through here: the
//! same checks are run on the stored object, and each of its findings excuses one equal finding of the new one.
//! Equal means the same rule saying the same of the same value at the same path, where items
//! of a list go by their name (devices, requests) or, if they have none (taints, tolerations), by any index.
//!
//! A taint acts on others, so more is asked of it ([`extent`]): a finding inside of a taint is excused only by one of
//! the same key and value, on the same device, that reaches as far. There a policy need not say the same words, because
//! they name the effect and the rate. Of too many items fewer are excused, as long as the limit is not lowered: whoever
//! removes one of three users must not have to remove the second at once.
//!
//! Invariant: one stored mistake excuses one new one, and none of an update that could reach more.

mod extent;

use extent::Strength;
pub(super) use extent::is_narrowed;
pub use extent::{Extent, extent, is_same_taint};

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hash as _, Hasher as _};

use foldhash::quality::RandomState;

use tollgate_api::view::{Object, SliceTaint, Taint, View as _};
use tollgate_document::doc::{self, Index, Value};
use tollgate_document::field::{FieldPath, Path, StepName};
use tollgate_document::finding::{BadValue, ErrorType, Finding, RuleId};
use tollgate_formats::gofmt::head;

/// Bytes of a text that are compared. Of what is longer, the value in the object is.
pub const TEXT: usize = 256;

/// No valid list has more taints. A hostile one must not cost its square.
const SEARCHED: usize = 128;

/// What an object is found to have wrong.
#[derive(Debug)]
pub struct KnownFaults {
    /// How often each finding was made, by a keyed hash instead of its message: there can be a million long ones. The keys
    /// are random, so that collisions cannot be forced.
    said: HashMap<u64, Said>,
    extent: Extent,
    keys: RandomState,
    stored: SearchedObject,
    new: SearchedObject,
}

/// One thing that was said of the stored object.
#[derive(Debug, Default)]
struct Said {
    /// How often, where it was said neither of a taint nor of a count.
    count: usize,
    /// The counts that it was said of, with their limits.
    excesses: Vec<(usize, usize)>,
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
    pub fn new(extent: Extent) -> KnownFaults {
        KnownFaults {
            said: HashMap::new(),
            extent,
            keys: RandomState::default(),
            stored: SearchedObject::default(),
            new: SearchedObject::default(),
        }
    }

    /// The stored object has this.
    fn learn(&mut self, statement: &Statement<'_>, stored: Object<'_>) {
        let (said, taint) = statement.digest(stored, self.extent, &self.keys, &mut self.stored);
        let said = self.said.entry(said).or_default();
        match (statement.value, taint) {
            (BadValue::Excess { count, limit }, _) => said.excesses.push((*count, *limit)),
            (_, Some(taint)) => said.taints.push(Strength::of(taint)),
            (_, None) => said.count += 1,
        }
    }

    /// True if the stored object had this too. One old mistake excuses one new one: a second blanket toleration is
    /// a new mistake.
    pub fn excuses(&mut self, statement: &Statement<'_>, object: Object<'_>) -> bool {
        if self.extent == Extent::Wider {
            return false;
        }
        let (said, taint) = statement.digest(object, self.extent, &self.keys, &mut self.new);
        let Some(stored) = self.said.get_mut(&said) else { return false };
        if let BadValue::Excess { count, limit } = statement.value {
            let is_less = |(old, of): &(usize, usize)| count <= old && limit >= of;
            let found = stored.excesses.iter().take(SEARCHED).position(is_less);
            return found.map(|index| stored.excesses.swap_remove(index)).is_some();
        }
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
pub enum Ratchet<'c> {
    /// It is learned, as one of the stored object.
    Learn(&'c RefCell<KnownFaults>, Object<'c>),
    /// It is dropped, if the stored object had it too.
    Ask(&'c RefCell<KnownFaults>, Object<'c>),
    /// It is dropped if its rule is ratcheted ([`Rule::is_ratcheted`]) and the stored object had it too.
    AskOurs(&'c RefCell<KnownFaults>, Object<'c>),
}

impl Ratchet<'_> {
    /// True if the stored object has a say in what that rule finds.
    pub fn applies_to(self, rule: RuleId) -> bool {
        match self {
            Ratchet::Learn(..) | Ratchet::Ask(..) => true,
            Ratchet::AskOurs(..) => rule.is_ratcheted(),
        }
    }

    /// True if what is said by such a rule is not to be kept.
    pub fn takes(self, statement: &Statement<'_>) -> bool {
        match self {
            Ratchet::Learn(known, object) => {
                known.borrow_mut().learn(statement, object);
                true
            }
            Ratchet::Ask(known, object) | Ratchet::AskOurs(known, object) => {
                known.borrow_mut().excuses(statement, object)
            }
        }
    }
}

/// What a rule or a policy says of an object. Nothing is copied: of a million statements a few thousand are kept.
#[derive(Clone, Copy, Debug)]
pub struct Statement<'a> {
    pub rule: RuleId,
    pub at: At<'a>,
    pub kind: ErrorType,
    pub value: &'a BadValue,
    pub detail: &'a str,
    /// The policy that says so, if one does.
    pub policy: Option<&'a str>,
}

/// The path it is about.
#[derive(Clone, Copy, Debug)]
pub enum At<'a> {
    Walked(&'a Path<'a>),
    Kept(&'a FieldPath),
}

impl<'a> Statement<'a> {
    /// What a finding says.
    pub fn of(finding: &'a Finding, policy: Option<&'a str>) -> Statement<'a> {
        let Finding { rule, kind, value, detail, at, .. } = finding;
        Statement { rule: *rule, at: At::Kept(at), kind: *kind, value, detail, policy }
    }

    /// A number for what is said, whatever the order of lists; and the taint that it is said of.
    fn digest<'d>(
        &self,
        object: Object<'d>,
        extent: Extent,
        keys: &RandomState,
        searched: &mut SearchedObject,
    ) -> (u64, Option<Taint<'d>>) {
        let mut out = keys.build_hasher();
        (self.rule, self.policy).hash(&mut out);
        let (mut value, mut in_taints) = (object.value(), false);
        // The taint, and whether it is its key, value, effect or rate that is spoken of, not what it carries.
        let (mut taint, mut is_of_taint) = (None, false);
        let mut step = |step: StepName<'_>| {
            let field = match step {
                StepName::Index(index) => {
                    value = searched.index.item(value, index);
                    ("item", name_of(value)).hash(&mut out);
                    ""
                }
                StepName::Field(name) | StepName::Key(name) => {
                    value = searched.index.member(value, name).map_or(Value::absent(), |(_, value)| value);
                    ("member", name).hash(&mut out);
                    if matches!(step, StepName::Field(_)) { name } else { "" }
                }
            };
            if taint.is_some() {
                is_of_taint &= matches!(field, "taint" | "key" | "value" | "effect" | "evictionsPerSecond");
            } else if in_taints && matches!(step, StepName::Index(_)) || field == "taint" {
                taint = Some(SliceTaint::of(value).taint());
                is_of_taint = true;
            }
            in_taints = field == "taints";
        };
        match self.at {
            At::Walked(path) => path.visit_user_steps(&mut step),
            At::Kept(path) => path.visit_user_steps(&mut step),
        }
        ("end", taint.map(|taint| (taint.key(), taint.value()))).hash(&mut out);
        let is_weighed = self.policy.is_some() && is_of_taint || extent == Extent::Within;
        if let BadValue::Excess { .. } = self.value {
            // The detail names the limit, and the value is compared by its size.
            self.kind.hash(&mut out);
        } else if !is_weighed {
            self.kind.hash(&mut out);
            let is_whole = match self.value {
                BadValue::Str(text) | BadValue::Json(text) => {
                    head(text, TEXT).hash(&mut out);
                    text.len() <= TEXT
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
                head(self.detail, TEXT).hash(&mut out);
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

/// What an item of a list goes by: its own name, or the device or driver it speaks of.
fn name_of(item: Value<'_>) -> &str {
    const DRIVER: doc::Name = doc::Name::of("driver");
    const NAME: doc::Name = doc::Name::of("name");
    const DEVICE: doc::Name = doc::Name::of("device");
    const OPAQUE: doc::Name = doc::Name::of("opaque");
    let names = [item.field(NAME), item.field(DEVICE), item.field(OPAQUE).field(DRIVER)];
    names.into_iter().map(Value::str).find(|name| !name.is_empty()).unwrap_or_default()
}
