//! Counters that devices share: the sets of a slice, and what each device takes from them.
//!
//! Older releases keep sets and devices in one slice, check the references and limit totals; newer ones keep them
//! apart and limit each list.

use super::lists::{self, at_most_message};
use super::naming::path_of_bad_key;
use crate::rules::RuleContext;
use crate::rules::table::{
    COMPATIBILITY_GROUPS, CONSUMED_COUNTERS, SHARED_COUNTERS, TOO_MANY_COUNTERS, UNKNOWN_COUNTER,
};
use tollgate_api::equal;
use tollgate_api::fields::{COUNTER_CONSUMPTION, COUNTER_SET};
use tollgate_api::profile::CounterRules;
use tollgate_api::view::{Consumption, Counter, CounterSet, List, Map, SliceSpec, View as _};
use tollgate_document::doc::Value;
use tollgate_document::field::Path;
use tollgate_document::finding::{BadValue, RuleId};
use tollgate_formats::names::{self, LengthUnitWord};

/// Maximum length in bytes of a counter name; longer ones are shortened to this in paths.
const MAX_COUNTER_NAME_BYTES: usize = 63;
/// Maximum number of counters in all sets of a slice, in 1.33 and 1.34.
const MAX_SHARED_COUNTERS: usize = 32;
/// Maximum number of counters that a device consumes, in 1.33 and 1.34.
const MAX_DEVICE_COUNTERS: usize = 32;
/// Maximum number of counters that all devices of a slice consume together, in 1.33 and 1.34.
const MAX_CONSUMED_COUNTERS: usize = 1024;
/// Maximum number of compatibility groups of one consumption.
const MAX_COMPATIBILITY_GROUPS: usize = 2;

/// Checks the counter sets of a slice. Declarative validation compares each with the stored set of the same name.
// upstream v1.36 validateResourceSliceSpec, validateCounterSet
pub fn check_counter_sets(
    cx: &mut RuleContext<'_, '_>,
    at: &Path<'_>,
    new: List<'_, CounterSet<'_>>,
    old: Option<List<'_, CounterSet<'_>>>,
) {
    let unchanged = old.is_some_and(|old| equal::same_struct_list(new.value(), old.value(), &COUNTER_SET));
    cx.check_with_declarative_if_changed(unchanged, |cx| {
        if !lists::report_too_many_and_should_continue(
            cx,
            SHARED_COUNTERS,
            at,
            new.len(),
            cx.profile.limits.counter_sets,
        ) {
            return;
        }
        let asked = old.filter(|_| cx.is_declarative).unwrap_or(List::absent());
        let asked = lists::ItemsByKey::from_items(asked.iter(), CounterSet::name);
        for (index, set) in new.iter().enumerate() {
            let (at, stored) = (at.index(index), asked.get(&set.name()));
            cx.check_with_declarative_if_changed(stored.is_some(), |cx| {
                check_counter_name(cx, SHARED_COUNTERS, &at.field("name"), set.name())
            });
            let same =
                stored.is_some_and(|stored| equal::same_struct(set.json(), stored.json(), &COUNTER_SET));
            let stored = stored.map_or(Map::from_json(Value::absent()), CounterSet::counters);
            cx.check_with_declarative_if_changed(same, |cx| {
                check_counters(cx, SHARED_COUNTERS, &at.field("counters"), set.counters(), stored)
            });
        }
        lists::check_unique_key(cx, SHARED_COUNTERS, at, new.value(), &COUNTER_SET, "name", BadValue::str);
    });
}

/// Checks the counters that a device consumes.
// upstream v1.36 validateDevice, validateDeviceCounterConsumption
pub fn check_consumed_counters(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, list: List<'_, Consumption<'_>>) {
    if !lists::report_too_many_and_should_continue(
        cx,
        CONSUMED_COUNTERS,
        at,
        list.len(),
        cx.profile.limits.consumed_sets,
    ) {
        return;
    }
    for (index, consumption) in list.iter().enumerate() {
        let at = at.index(index);
        let set_at = at.field("counterSet");
        match cx.profile.counters {
            CounterRules::PerSet => {
                check_counter_name(cx, CONSUMED_COUNTERS, &set_at, consumption.counter_set())
            }
            CounterRules::Totals if consumption.counter_set().is_empty() => {
                cx.report(CONSUMED_COUNTERS, &set_at).required("");
            }
            CounterRules::Totals => {}
        }
        // The stored device is never looked up.
        check_counters(
            cx,
            CONSUMED_COUNTERS,
            &at.field("counters"),
            consumption.counters(),
            Map::from_json(Value::absent()),
        );
        check_compatibility_groups(cx, &at.field("compatibilityGroups"), consumption);
    }
    lists::check_unique_key(
        cx,
        CONSUMED_COUNTERS,
        at,
        list.value(),
        &COUNTER_CONSUMPTION,
        "counterSet",
        BadValue::str,
    );
}

fn check_counter_name(cx: &mut RuleContext<'_, '_>, rule: RuleId, at: &Path<'_>, name: &str) {
    if name.is_empty() {
        cx.report(rule, at).covered_by_declarative().required("");
        return;
    }
    names::check_dns_label(name, name_length_unit(cx), &mut |detail| {
        cx.report(rule, at).covered_by_declarative().invalid(name, detail);
    });
}

/// Returns the unit in which the current validator states the maximum length of a name.
fn name_length_unit(cx: &RuleContext<'_, '_>) -> LengthUnitWord {
    if cx.is_declarative { LengthUnitWord::Bytes } else { LengthUnitWord::Characters }
}

/// Checks counters by name. Declarative validation checks only names that are not stored, and has no limit on their
/// number.
fn check_counters<'d>(
    cx: &mut RuleContext<'_, '_>,
    rule: RuleId,
    at: &Path<'_>,
    counters: Map<'d, Counter<'d>>,
    stored: Map<'d, Counter<'d>>,
) {
    if counters.is_empty() {
        cx.report(rule, at).covered_by_declarative().required("");
        return;
    }
    let limit = cx.profile.limits.counters_per_set;
    let over = counters.len() > limit;
    if over {
        cx.report(rule, at).too_many(BadValue::count(counters.len()), at_most_message(limit));
    }
    let is_declarative = cx.is_declarative;
    let judge = |cx: &mut RuleContext<'_, '_>| {
        let has_stored = is_declarative && !stored.is_empty();
        let stored = lists::index_names(stored.iter().map(|(name, _)| name));
        let is_stored = |name: &'d str| has_stored && stored.get(&name).is_some();
        // Hand-written errors give way to declarative ones of the same path, whichever name those are about.
        let gives_way =
            has_stored && counters.iter().any(|(name, _)| !is_stored(name) && !names::is_dns_label(name));
        for (name, _) in counters.iter().filter(|(name, _)| !(gives_way && is_stored(name))) {
            let name_at = path_of_bad_key(cx.profile, at, name, MAX_COUNTER_NAME_BYTES);
            cx.check_with_declarative_if_changed(is_stored(name), |cx| {
                names::check_dns_label(name, name_length_unit(cx), &mut |detail| {
                    let value = BadValue::str(name);
                    cx.report(rule, &name_at).covered_by_declarative().invalid(value, detail).on_key();
                });
            });
        }
    };
    if over && cx.profile.stops_at_list_limit { cx.check_declaratively_only(judge) } else { judge(cx) }
}

/// Checks the compatibility groups of a consumption.
// upstream v1.37: declarative only
fn check_compatibility_groups(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, consumption: Consumption<'_>) {
    let groups = consumption.compatibility_groups();
    if groups.len() > MAX_COMPATIBILITY_GROUPS {
        let (count, detail) = (BadValue::count(groups.len()), at_most_message(MAX_COMPATIBILITY_GROUPS));
        cx.report(COMPATIBILITY_GROUPS, at).declarative_only().too_many(count, detail);
        return;
    }
    for (index, group) in groups.iter().enumerate() {
        names::check_dns_label(group, LengthUnitWord::Bytes, &mut |detail| {
            cx.report(COMPATIBILITY_GROUPS, &at.index(index)).declarative_only().invalid(group, detail);
        });
    }
    lists::for_each_duplicate(groups.iter(), |index, group| {
        cx.report(COMPATIBILITY_GROUPS, &at.index(index)).declarative_only().duplicate(group, "");
    });
}

/// Checks the total numbers of counters that older releases limit, for the slice at `at`.
// upstream v1.34 validateResourceSliceSpec
pub fn check_counter_totals(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, spec: SliceSpec<'_>) {
    let version = cx.version;
    let consumed: usize =
        spec.devices().iter().map(|device| counter_count(device.body(version).consumes_counters())).sum();
    if consumed > MAX_CONSUMED_COUNTERS {
        let detail =
            format_args!("the total number of counters in devices must not exceed {MAX_CONSUMED_COUNTERS}");
        cx.report(TOO_MANY_COUNTERS, &at.field("devices")).invalid(BadValue::count(consumed), detail);
    }
    let shared: usize = spec.shared_counters().iter().map(|set| set.counters().len()).sum();
    if shared > MAX_SHARED_COUNTERS {
        let detail =
            format_args!("the total number of shared counters must not exceed {MAX_SHARED_COUNTERS}");
        cx.report(TOO_MANY_COUNTERS, &at.field("sharedCounters")).invalid(BadValue::count(shared), detail);
    }
}

/// Returns the number of counters in all consumptions of the list.
fn counter_count(list: List<'_, Consumption<'_>>) -> usize {
    list.iter().map(|consumption| consumption.counters().len()).sum()
}

/// The counter sets of a slice, for looking up the references of its devices.
pub type CounterSetIndex<'d> = lists::NestedNames<'d, CounterSet<'d>>;

impl<'d> lists::NamedGroup<'d> for CounterSet<'d> {
    fn group_name(self) -> &'d str {
        self.name()
    }

    fn inner_names(self) -> impl Iterator<Item = &'d str> {
        self.counters().iter().map(|(name, _)| name)
    }
}

/// Checks the number of consumed counters, and that they exist, as older releases do. `at` is the list of consumptions
/// of the device at `device_at`.
// upstream v1.34 validateDevice
pub fn check_counter_references_and_count(
    cx: &mut RuleContext<'_, '_>,
    device_at: &Path<'_>,
    at: &Path<'_>,
    list: List<'_, Consumption<'_>>,
    shared: &CounterSetIndex<'_>,
) {
    let consumed = counter_count(list);
    if consumed > MAX_DEVICE_COUNTERS {
        let detail = format_args!("the total number of counters must not exceed {MAX_DEVICE_COUNTERS}");
        cx.report(TOO_MANY_COUNTERS, device_at).invalid(BadValue::count(consumed), detail);
    }
    for (index, consumption) in list.iter().enumerate() {
        let (at, set) = (at.index(index), consumption.counter_set());
        if !shared.has(set, None) {
            cx.report(UNKNOWN_COUNTER, &at.field("counterSet"))
                .invalid(set, "must reference a counterSet defined in the ResourceSlice sharedCounters");
            continue;
        }
        let counters_at = at.field("counters");
        for (counter, _) in consumption.counters().iter() {
            if !shared.has(set, Some(counter)) {
                let detail = "must reference a counter defined in the ResourceSlice sharedCounters";
                cx.report(UNKNOWN_COUNTER, &counters_at.user_only_key(counter))
                    .invalid(counter, detail)
                    .on_key();
            }
        }
    }
}
