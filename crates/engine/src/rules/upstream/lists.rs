//! Checks of lists: their length, and duplicate elements.
//!
//! It has no rules of its own: the caller passes the rule to report. A valid short list needs no allocation.

use std::borrow::Borrow;
use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use crate::rules::{RuleContext, duplicates};
use tollgate_api::schema::StructSchema;
use tollgate_api::view::{List, View};
use tollgate_document::doc::Value;
use tollgate_document::field::Path;
use tollgate_document::finding::{BadValue, RuleId};

/// Lists of up to this many items are searched one by one; longer ones are put into a set.
pub const MAX_SEARCHED_ITEMS: usize = 64;

/// Reports a list with more than `limit` items. Returns true if the items are to be checked: always within the limit,
/// and beyond it in releases that do not stop there.
// upstream v1.36 validateSlice, validateSet
pub fn report_too_many_and_should_continue(
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

/// A list item that has a name and contains further names, such as a request with its sub-requests.
pub trait NamedGroup<'d>: View<'d> {
    /// Returns the name of the group.
    fn group_name(self) -> &'d str;

    /// Returns the names inside of the group.
    fn inner_names(self) -> impl Iterator<Item = &'d str>;
}

/// The names of groups, and the names inside of each group; of several groups with one name, the last counts. Short
/// lists are searched, long ones are indexed.
#[derive(Debug)]
pub struct NestedNames<'d, T> {
    groups: List<'d, T>,
    index: Option<NestedNamesIndex<'d>>,
}

/// The index of each group, and the names inside of groups, each with the index of its group.
type NestedNamesIndex<'d> = (HashMap<&'d str, usize>, HashSet<(usize, &'d str)>);

impl<'d, T: NamedGroup<'d>> NestedNames<'d, T> {
    /// Collects the names of these groups.
    pub fn new(groups: List<'d, T>) -> NestedNames<'d, T> {
        let count: usize = groups.iter().map(|group| 1 + group.inner_names().count()).sum();
        let index = (count > MAX_SEARCHED_ITEMS).then(|| {
            let all = || groups.iter().enumerate();
            let inner = all().flat_map(|(index, group)| group.inner_names().map(move |name| (index, name)));
            (all().map(|(index, group)| (group.group_name(), index)).collect(), inner.collect())
        });
        NestedNames { groups, index }
    }

    /// True if the group exists and, if `inner` is given, has this name inside.
    pub fn has(&self, group: &str, inner: Option<&str>) -> bool {
        if let Some((last, names)) = &self.index {
            let last = last.get(group);
            return last.is_some_and(|last| inner.is_none_or(|inner| names.contains(&(*last, inner))));
        }
        self.groups
            .iter()
            .filter(|known| known.group_name() == group)
            .last()
            .is_some_and(|known| inner.is_none_or(|inner| known.inner_names().any(|name| name == inner)))
    }
}

/// Reports items of a list with the same value of the field `key`, which is printed with `print`. Declarative validation
/// shows the whole item, in its own version.
// upstream v1.36 validateSet; v1.37 validate.Unique
pub fn check_unique_key(
    cx: &mut RuleContext<'_, '_>,
    rule: RuleId,
    at: &Path<'_>,
    list: Value<'_>,
    ty: &'static StructSchema,
    key: &'static str,
    print: fn(&str) -> BadValue,
) {
    for_each_duplicate(list.items().map(|item| item.get(key).str()), |index, name| {
        let at = at.index(index);
        if cx.is_declarative {
            let value = BadValue::Json(cx.struct_json(list.item(index), ty).into());
            cx.report(rule, &at).declarative_only().duplicate(value, "");
        } else if cx.profile.duplicates_at_key_field {
            cx.report(rule, &at.field(key)).duplicate(print(name), "");
        } else {
            cx.report(rule, &at).duplicate(print(name), "");
        }
    });
}

/// Returns a value of a named Go string type, such as `DeviceAllocationMode`, as the release prints it.
pub fn named_go_string(cx: &RuleContext<'_, '_>, text: &str) -> BadValue {
    // Before 1.34 everything that is not a plain string went through `%#v`.
    if cx.profile.quotes_null { BadValue::str(text) } else { BadValue::json_quoted_string(text) }
}

/// Returns Go's nil as the release prints it.
pub fn nil_value(cx: &RuleContext<'_, '_>) -> BadValue {
    if cx.profile.quotes_null { BadValue::str("null") } else { BadValue::Null }
}
