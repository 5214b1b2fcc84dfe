//! What was already wrong in the stored object and did not change is no reason to refuse.
//!
//! Upstream's rules ratchet as each release does, inside their own files. Everything of ours goes through here: the
//! same checks are run on the stored object, and each of its findings excuses one equal finding of the new one.
//! Equal means the same rule saying the same of the same value in the same place. A place is its path, where items
//! of a list go by their name (devices, requests) or, if they have none (taints, tolerations), by any index.

use crate::api::view::Object;
use crate::doc::Value;
use crate::field::Name;
use crate::finding::Finding;

/// A finding and the object it is about.
#[derive(Clone, Copy)]
struct About<'f, 'd> {
    finding: &'f Finding,
    object: Value<'d>,
}

/// Drops from `findings`, from `first` on, those that `is_ours` and that `stored` excuses.
pub(crate) fn excuse(
    findings: &mut Vec<Finding>,
    first: usize,
    is_ours: impl Fn(&Finding) -> bool,
    new: Object<'_>,
    mut stored: Vec<Finding>,
    old: Object<'_>,
) {
    let mut index = 0;
    findings.retain(|finding| {
        index += 1;
        if index <= first || !is_ours(finding) {
            return true;
        }
        let about = About { finding, object: new.value() };
        let excuse =
            stored.iter().position(|finding| is_unchanged(about, About { finding, object: old.value() }));
        // One old mistake excuses one new one: a second blanket toleration is a new mistake.
        excuse.map(|index| stored.swap_remove(index)).is_none()
    });
}

fn is_unchanged(new: About<'_, '_>, old: About<'_, '_>) -> bool {
    let (one, other) = (new.finding, old.finding);
    if one.rule != other.rule
        || one.kind != other.kind
        || one.value != other.value
        || one.detail != other.detail
    {
        return false;
    }
    let mut steps = one.at.user_steps().zip(other.at.user_steps());
    if one.at.user_steps().count() != other.at.user_steps().count() {
        return false;
    }
    let (mut new_value, mut old_value) = (new.object, old.object);
    let same_place = steps.all(|(step, stored_step)| {
        (new_value, old_value) = (follow(new_value, step), follow(old_value, stored_step));
        match (step, stored_step) {
            (Name::Index(_), Name::Index(_)) => name_of(new_value) == name_of(old_value),
            (step, stored_step) => step == stored_step,
        }
    });
    // Where the finding does not show the value, it cannot tell one value from another.
    same_place && (one.kind.shows_value() || new_value.to_json() == old_value.to_json())
}

fn follow<'d>(value: Value<'d>, step: &Name) -> Value<'d> {
    match step {
        Name::Index(index) => value.at(*index),
        Name::Field(name) | Name::Key(name) => value.get(name),
    }
}

/// What an item of a list goes by: its own name, or the device it speaks of.
fn name_of(item: Value<'_>) -> &str {
    let name = item.get("name").str();
    if name.is_empty() { item.get("device").str() } else { name }
}
