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

pub(crate) use extent::{Extent, extent, is_same_taint};

use std::collections::HashMap;
use std::fmt::Write as _;

use crate::api::view::{Object, SliceTaint, Taint, View as _};
use crate::doc::Value;
use crate::field::Name;
use crate::finding::Finding;

/// Something that was found, and who says so.
pub(crate) trait Said {
    /// What is wrong.
    fn finding(&self) -> &Finding;
    /// The policy that says so, if one does.
    fn by(&self) -> Option<&str>;
}

impl Said for Finding {
    fn finding(&self) -> &Finding {
        self
    }

    fn by(&self) -> Option<&str> {
        None
    }
}

/// No valid list has more taints. A hostile one must not cost its square.
const SEARCHED: usize = 128;

/// What an object is found to have wrong.
pub(crate) struct Known<'d> {
    /// Each thing that was said, as often as it was, with the taint that it was said of.
    said: HashMap<String, Vec<Option<Taint<'d>>>>,
    extent: Extent,
}

impl<'d> Known<'d> {
    /// The findings about a stored object, to excuse an update that does so much.
    pub(crate) fn of<S: Said>(said: &[S], object: Object<'d>, extent: Extent) -> Known<'d> {
        let mut known = Known { said: HashMap::new(), extent };
        for one in said {
            let (statement, taint) = statement(one, object, extent);
            known.said.entry(statement).or_default().push(taint);
        }
        known
    }

    /// True if the stored object had this too. One old mistake excuses one new one: a second blanket toleration is
    /// a new mistake.
    pub(crate) fn excuses<S: Said>(&mut self, said: &S, object: Object<'_>) -> bool {
        if self.extent == Extent::Wider {
            return false;
        }
        let (statement, taint) = statement(said, object, self.extent);
        let Some(stored) = self.said.get_mut(&statement) else { return false };
        let Some(taint) = taint else { return stored.pop().is_some() };
        // Of several the weakest: a stronger one may be needed for another.
        let candidates = stored.iter().enumerate().take(SEARCHED);
        let fitting = candidates.filter_map(|(index, old)| {
            old.filter(|old| extent::is_within(*old, taint)).map(|old| (extent::strength(old), index))
        });
        let weakest = fitting.min().map(|(_, index)| index);
        weakest.map(|index| stored.swap_remove(index)).is_some()
    }
}

/// What is said, in words that do not depend on the order of lists, and the taint that it is said of.
fn statement<'d, S: Said>(said: &S, object: Object<'d>, extent: Extent) -> (String, Option<Taint<'d>>) {
    let finding = said.finding();
    let mut out = format!("{}\n{:?}\n", finding.rule, said.by());
    let (mut value, mut field) = (object.value(), "");
    // The taint, and whether it is its key, value, effect or rate that is spoken of, not what it carries.
    let (mut taint, mut is_of_taint) = (None, false);
    for step in finding.at.user_steps() {
        value = match step {
            Name::Index(index) => value.at(*index),
            Name::Field(name) | Name::Key(name) => value.get(name),
        };
        _ = match step {
            Name::Index(_) => write!(out, "\n[{:?}]", name_of(value)),
            Name::Field(name) | Name::Key(name) => write!(out, "\n{name:?}"),
        };
        let is_item = field == "taints" && matches!(step, Name::Index(_));
        field = if let Name::Field(name) = step { name } else { "" };
        if taint.is_some() {
            is_of_taint &= matches!(field, "taint" | "key" | "value" | "effect" | "evictionsPerSecond");
        } else if is_item || field == "taint" {
            taint = Some(SliceTaint::of(value).taint());
            is_of_taint = true;
        }
    }
    if let Some(taint) = taint {
        _ = write!(out, "\n{:?}={:?}", taint.key(), taint.value());
    }
    let is_weighed = said.by().is_some() && is_of_taint || extent == Extent::Within;
    if !is_weighed {
        _ = write!(out, "\n{:?}\n{}\n{}", finding.kind, finding.value, finding.detail);
        // Where the finding does not show the value, it cannot tell one value from another.
        if !finding.kind.shows_value() {
            _ = write!(out, "\n={}", value.to_json());
        }
    }
    (out, taint)
}

/// What an item of a list goes by: its own name, or the device it speaks of.
fn name_of(item: Value<'_>) -> &str {
    let name = item.get("name").str();
    if name.is_empty() { item.get("device").str() } else { name }
}
