//! Checks of lists: their length, and duplicate elements.
//!
//! It has no rules of its own: the caller passes the rule to report. A valid short list needs no allocation.

use std::borrow::Borrow;
use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use crate::rules::{RuleContext, duplicates};
use tollgate_document::field::Path;
use tollgate_document::finding::{BadValue, RuleId};

/// Lists of up to this many items are searched one by one; longer ones are put into a set.
pub const MAX_SEARCHED_ITEMS: usize = 64;

/// Reports a list that is too long. True if its items are to be checked all the same, which depends on the release.
// upstream v1.36 validateSlice, validateSet
pub fn check_max_items(
    cx: &mut RuleContext<'_, '_>,
    rule: RuleId,
    at: &Path<'_>,
    len: usize,
    limit: usize,
) -> bool {
    if len <= limit {
        return true;
    }
    cx.report(rule, at).covered_by_declarative().too_many(BadValue::count(len), at_most_message(limit));
    !cx.profile.stops_at_list_limit
}

/// Returns the server's message `must have at most N items`.
pub fn at_most_message(limit: usize) -> String {
    format!("must have at most {limit} item{}", if limit == 1 { "" } else { "s" })
}

/// Calls `found(index, item)` for every item that equals an earlier one.
pub fn for_each_duplicate<'d>(
    items: impl Iterator<Item = &'d str> + Clone,
    mut found: impl FnMut(usize, &'d str),
) {
    let identity = |item: &'d str| [item.as_bytes(), b"", b"", b""];
    duplicates::for_each_repeat(items, identity, |_, (index, item)| found(index, item));
}

/// Calls `found` with every item whose key equals that of an earlier one.
pub fn for_each_duplicate_by<T: Copy, K: Eq + Hash>(
    items: impl Iterator<Item = T> + Clone,
    key: impl Fn(T) -> K,
    mut found: impl FnMut(T),
) {
    let mut seen = items.clone().nth(MAX_SEARCHED_ITEMS).map(|_| HashSet::new());
    let others = items.clone();
    for (index, item) in items.enumerate() {
        let again = match &mut seen {
            Some(seen) => !seen.insert(key(item)),
            None => others.clone().take(index).any(|other| key(other) == key(item)),
        };
        if again {
            found(item);
        }
    }
}

/// Looks up the items of another list by key: by linear search if short, by hash map if long.
pub struct ItemsByKey<I: Iterator, N, K> {
    items: I,
    key: N,
    remembered: Option<HashMap<K, I::Item>>,
}

/// Indexes the names of another list, so that [`ItemsByKey::get`] tells whether it has a name.
pub fn index_names<'d, I: Iterator<Item = &'d str> + Clone>(
    names: I,
) -> ItemsByKey<I, impl Fn(&'d str) -> &'d str, &'d str> {
    ItemsByKey::from_items(names, |name| name)
}

impl<I, N, K> ItemsByKey<I, N, K>
where
    I: Iterator<Item: Copy> + Clone,
    N: Fn(I::Item) -> K,
    K: Eq + Hash,
{
    /// Collects the items; `key` returns the key of an item.
    pub fn from_items(items: I, key: N) -> ItemsByKey<I, N, K> {
        let remembered = items.clone().nth(MAX_SEARCHED_ITEMS).map(|_| {
            let mut known = HashMap::new();
            for item in items.clone() {
                known.entry(key(item)).or_insert(item);
            }
            known
        });
        ItemsByKey { items, key, remembered }
    }

    /// Returns the first item with that key.
    pub fn get<Q: Eq + Hash + ?Sized>(&self, wanted: &Q) -> Option<I::Item>
    where
        K: Borrow<Q>,
    {
        match &self.remembered {
            Some(remembered) => remembered.get(wanted).copied(),
            None => self.items.clone().find(|item| (self.key)(*item).borrow() == wanted),
        }
    }
}

/// Reports an item of a keyed list that repeats the key `name` of another. `whole(max_bytes)` returns the
/// item as JSON in its own version, truncated after `max_bytes` bytes.
// upstream v1.36 validateSet; v1.37 validate.Unique
pub fn report_duplicate(
    cx: &mut RuleContext<'_, '_>,
    rule: RuleId,
    at: &Path<'_>,
    key: &'static str,
    name: &str,
    whole: impl FnOnce(usize) -> String,
) {
    if cx.is_declarative {
        let value = BadValue::Json(whole(cx.max_text_bytes()).into());
        cx.report(rule, at).declarative_only().duplicate(value, "");
    } else if cx.profile.duplicates_at_key_field {
        cx.report(rule, &at.field(key)).duplicate(name, "");
    } else {
        cx.report(rule, at).duplicate(name, "");
    }
}

/// Returns a value of a named Go string type, such as `DeviceAllocationMode`, as the release prints it.
pub fn named_string(cx: &RuleContext<'_, '_>, text: &str) -> BadValue {
    // Before 1.34 everything that is not a plain string went through `%#v`.
    if cx.profile.quotes_null { BadValue::str(text) } else { BadValue::named(text) }
}

/// Returns Go's nil as the release prints it.
pub fn nil_value(cx: &RuleContext<'_, '_>) -> BadValue {
    if cx.profile.quotes_null { BadValue::str("null") } else { BadValue::Null }
}
