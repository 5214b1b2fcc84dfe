//! The page of `tollgate impact`.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::{
    PodCountsByOutcome, ReportJson, TABLE_BYTE_BUDGET, namespace_and_bold_name, notes,
    tile_class_bad_unless_zero, tiles, titled_class_changes_section, workload,
};
use crate::bars::{BarPart, DeviceClassBeforeAndAfter};
use crate::frame::{HtmlPage, ReportProvenance, counted, group_thousands};
use crate::map::NamespaceAndName;
use crate::record::Record;
use crate::table::{COMBINED_CHANGES, IMPACT_PODS, RESTARTED_GROUPS, Table};
use crate::text::SafeText;
use crate::timeline::EvictionTimeline;

/// An impact that is drawn: its record, what becomes of the evicted pods, and the devices of each class before and after.
struct DrawnImpact<'r> {
    record: Record<'r>,
    replacements: Option<PodCountsByOutcome>,
    class_changes: &'r [DeviceClassBeforeAndAfter],
}

/// The page for the records of `impact -o json`: those of rules and slices, and those of their sums.
pub fn impact(records: &[ReportJson<'_>], page: &ReportProvenance) -> serde_json::Result<String> {
    let parsed = records.iter().map(ReportJson::parse).collect::<Result<Vec<_>, _>>()?;
    let impacts = parsed.iter().map(|(record, class_changes)| {
        let record = Record(record.root());
        let outcomes = record.get("replacements");
        DrawnImpact {
            record,
            replacements: outcomes.exists().then(|| PodCountsByOutcome::of_record(outcomes)),
            class_changes,
        }
    });
    // A page of many rules has as much room as the page of one.
    let budget = TABLE_BYTE_BUDGET / parsed.len().max(1);
    let (sums, rules): (Vec<DrawnImpact<'_>>, Vec<DrawnImpact<'_>>) =
        impacts.partition(|impact| impact.record.list("together").len() > 0);
    let first = rules.first();
    let title = match rules.as_slice() {
        [only] => format!("Impact of {}", &*only.record.text("rule")),
        _ => format!("Impact of {}", counted(rules.len(), "change")),
    };
    let lead = sums.first().map(combined_impact_lead).or(first.map(lead)).unwrap_or_default();
    let frame = HtmlPage {
        page,
        title: &title,
        lead,
        profile: &first.map(|first| first.record.text("profile")).unwrap_or_default(),
        at: &first.map(|first| first.record.text("at")).unwrap_or_default(),
        body: html! {
            @for sum in &sums {
                section {
                    h2 { "All changes together (Kubernetes " (sum.record.text("profile")) ")" }
                    p.hint { "A pod that several changes evict counts once here, and once for each of them below." }
                    p { (combined_impact_lead(sum)) }
                    (changes_table(sum.record))
                    (earliest_eviction_of_each_pod(sum.record, &rules).render())
                    @if let Some(outcomes) = sum.replacements {
                        (outcomes_of_replacements(outcomes, sum.record.get("sum")))
                    }
                }
                (titled_class_changes_section("Devices by class, before and after all changes", sum.class_changes, DEVICES_AFTER_CHANGES_NOTE))
            }
            @for (index, rule) in rules.iter().enumerate() {
                (one_impact(rule, (rules.len() > 1).then_some((index + 1, rules.len())), budget))
            }
        },
        read_more: &[
            ("understand/impact.md", "How the impact is predicted"),
            ("guides/drain-a-node.md", "Drain a node"),
            ("reference/json.md", "The same report as JSON"),
        ],
    };
    Ok(frame.render_page_or_part())
}

const DEVICES_AFTER_CHANGES_NOTE: &str = "After: the taints are in force, evicted pods are gone, and their replacements have devices where they fit. \
    Where replacements start depends on chance, so the numbers are averages.";

/// Added to the titles of sections about one of several changes.
const ALONE: &str = " (this change alone)";

/// A sentence that says for how many of the evicted pods the replacements, if they fit, can be evicted again; nothing if
/// there are none. It is shown below the outcomes of the replacements.
fn evicted_again_note(again: usize, evicted: usize) -> Markup {
    html! {
        @if again > 0 {
            p.omitted {
                strong { "Replacements of " (group_thousands(again)) " of the " (counted(evicted, "evicted pod")) " can be evicted again" }
                ": they tolerate the taint for a limited time, so the scheduler can place them on tainted devices. To prevent this, "
                "also create a rule with effect " code { "NoSchedule" } " and a key that these pods do not tolerate."
            }
        }
    }
}

/// The evicted pods whose replacements fit, by whether these can be evicted again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FittingReplacements {
    /// How many stay where they fit, and how many can be evicted again.
    Apart { stay: usize, again: usize },
    /// How many fit. Some of them can be evicted again, and the counts do not tell how many.
    Mixed { fits: usize },
}

impl FittingReplacements {
    /// Computes how many of the replacements that fit can be evicted again. The report only has the number of all pods
    /// whose replacements can be evicted again, so the result is `Apart` only if the counts leave a single possibility,
    /// such as when all replacements fit.
    fn split_by_second_eviction_if_certain(
        outcomes: PodCountsByOutcome,
        again: usize,
        evicted: usize,
    ) -> FittingReplacements {
        let PodCountsByOutcome { fits, sometimes, pending, unknown, not_recreated } = outcomes;
        let others = sometimes + pending + unknown + not_recreated;
        let (least, most) = (again.saturating_sub(others), again.min(fits));
        if again == 0 || (fits + others == evicted && least == most) {
            FittingReplacements::Apart { stay: fits - most, again: most }
        } else {
            FittingReplacements::Mixed { fits }
        }
    }

    /// The parts of a bar for these pods. Only those that stay where they fit are green.
    fn bar_parts(self) -> Vec<BarPart> {
        match self {
            FittingReplacements::Apart { stay, again } => {
                vec![("free", "fit elsewhere", stay), ("both", "can be evicted again", again)]
            }
            FittingReplacements::Mixed { fits } => {
                vec![("both", "fit at first; some can be evicted again", fits)]
            }
        }
    }
}

/// What becomes of the replacements of evicted pods, whose number `totals` has.
fn outcomes_of_replacements(outcomes: PodCountsByOutcome, totals: Record<'_>) -> Markup {
    let (again, evicted) = (totals.count("evictedAgain"), totals.count("evicted"));
    let fitting = FittingReplacements::split_by_second_eviction_if_certain(outcomes, again, evicted);
    html! {
        (outcomes.render_outcome_bar_and_numbers(&fitting.bar_parts()))
        (evicted_again_note(again, evicted))
    }
}

/// The second sentence about an impact: how many evicted pods fit elsewhere, and how many can be evicted again.
fn replacements_sentence(replacements: Option<PodCountsByOutcome>, again: usize, evicted: usize) -> Markup {
    let Some(outcomes) = replacements else { return html! {} };
    let (fits, phrase, joined) =
        match FittingReplacements::split_by_second_eviction_if_certain(outcomes, again, evicted) {
            FittingReplacements::Apart { stay, .. } => (stay, " elsewhere", ", and "),
            FittingReplacements::Mixed { fits } => (fits, " elsewhere at first", ", but "),
        };
    html! {
        " " (group_thousands(fits)) @if fits == 1 { " fits" } @else { " fit" } (phrase)
        @if again > 0 { (joined) strong.warn { "replacements of " (group_thousands(again)) " can be evicted again" } }
        "."
    }
}

/// The first sentences about a combined impact: `12 pods are evicted in 3 namespaces. 9 fit elsewhere.`
fn combined_impact_lead(sum: &DrawnImpact<'_>) -> Markup {
    let totals = sum.record.get("sum");
    let [evicted, namespaces, evicted_again] =
        ["evicted", "namespaces", "evictedAgain"].map(|key| totals.count(key));
    html! {
        strong { (counted(evicted, "pod")) @if evicted == 1 { " is" } @else { " are" } " evicted" }
        " in " (counted(namespaces, "namespace")) "."
        @if evicted > 0 { (replacements_sentence(sum.replacements, evicted_again, evicted)) }
    }
}

/// A table of the changes, each with its part of a combined impact.
fn changes_table(sum: Record<'_>) -> Markup {
    let mut table = Table::new(&COMBINED_CHANGES, TABLE_BYTE_BUDGET / 16);
    for part in sum.list("parts") {
        let [devices, evicted, only] =
            ["devices", "evicted", "evictedOnlyByIt"].map(|key| html! { (group_thousands(part.count(key))) });
        table.add_row_or_count_omitted([html! { (part.text("rule")) }, devices, evicted, only]);
    }
    table.finish("The changes, each alone", "None")
}

/// The evictions by all rules of a combined impact: each pod once, at the earliest time.
fn earliest_eviction_of_each_pod(sum: Record<'_>, rules: &[DrawnImpact<'_>]) -> EvictionTimeline {
    let mut first: BTreeMap<NamespaceAndName, SafeText> = BTreeMap::new();
    let (profile, rules) = (sum.text("profile"), rules.iter().map(|rule| rule.record));
    let pods = rules.filter(|rule| rule.text("profile") == profile).flat_map(|rule| rule.list("pods"));
    for (at, pod) in pods.filter_map(eviction_time_and_name) {
        let known = first.entry(pod).or_insert_with(|| at.clone());
        *known = at.min(known.clone());
    }
    EvictionTimeline::new(&sum.text("at"), first.into_iter().map(|(pod, at)| (at, pod)))
}

/// When a pod is evicted, and its name; `None` if it is not evicted.
fn eviction_time_and_name(pod: Record<'_>) -> Option<(SafeText, NamespaceAndName)> {
    Some((pod.text_if_any("at")?, pod.namespace_and_name()))
}

/// The first sentence about the impact of one rule.
fn lead(impact: &DrawnImpact<'_>) -> Markup {
    let (record, totals, devices) =
        (impact.record, impact.record.get("totals"), impact.record.get("devices"));
    let [evicted, now, later, namespaces, again] =
        ["evicted", "evictedNow", "evictedLater", "namespaces", "evictedAgain"].map(|key| totals.count(key));
    html! {
        @if let Some(why) = record.text_if_any("noEffect") { strong.warn { "No effect on this cluster: " } (why) ". If it had one: " }
        @if record.is("upperBound") { "At most " }
        strong { (counted(evicted, "pod")) @if evicted == 1 { " is" } @else { " are" } " evicted" }
        @if evicted > 0 {
            " in " (counted(namespaces, "namespace")) ": "
            @if now > 0 { (group_thousands(now)) " immediately" @if later > 0 { ", " } }
            @if later > 0 { (group_thousands(later)) " later" }
            @if let Some(last) = totals.text_if_any("lastEviction") { ", the last at " time { (last) } }
        }
        ". " (counted(devices.count("published"), "published device")) " selected, "
        (group_thousands(devices.count("allocated"))) " allocated."
        @if evicted > 0 { (replacements_sentence(impact.replacements, again, evicted)) }
    }
}

/// The sections about one change. `place` is its number and the number of all changes, if there are several.
fn one_impact(impact: &DrawnImpact<'_>, place: Option<(usize, usize)>, budget: usize) -> Markup {
    let (record, totals) = (impact.record, impact.record.get("totals"));
    let alone = if place.is_some() { ALONE } else { "" };
    let is_complete = record.list("incomplete").len() == 0;
    let budgets_label = if is_complete { "PDBs violated" } else { "PDBs violated, as far as is known" };
    let [now, later, again] = ["evictedNow", "evictedLater", "evictedAgain"].map(|key| totals.count(key));
    let budgets = record.list("budgets");
    let mut numbers = vec![
        ("calm", record.get("devices").count("published"), "devices selected"),
        (tile_class_bad_unless_zero(now), now, "pods evicted now"),
        (tile_class_bad_unless_zero(later), later, "pods evicted later"),
        ("good", totals.count("tolerated"), "pods tolerate the taint"),
        ("good", totals.count("unaffected"), "pods not affected"),
        (tile_class_bad_unless_zero(budgets.len()), budgets.len(), budgets_label),
    ];
    if again > 0 {
        numbers.insert(3, ("bad", again, "pods can be evicted again"));
    }
    let evicted = record.list("pods").filter_map(eviction_time_and_name);
    let timeline = EvictionTimeline::new(&record.text("at"), evicted);
    html! {
        @if let Some((number, count)) = place {
            section.change {
                h2 { "Change " (group_thousands(number)) " of " (group_thousands(count)) ": " (record.text("rule")) " (Kubernetes " (record.text("profile")) ")" }
                p { (lead(impact)) }
            }
        }
        (tiles(&numbers))
        section {
            h2 { "When pods are evicted" (alone) }
            @if timeline.is_empty() { p.none { "No pod is evicted." } } @else { (timeline.render()) }
        }
        @if let Some(outcomes) = impact.replacements {
            section { h2 { "Where evicted pods go" (alone) } (outcomes_of_replacements(outcomes, totals)) }
        }
        (titled_class_changes_section(&format!("Devices by class, before and after{alone}"), impact.class_changes, DEVICES_AFTER_CHANGES_NOTE))
        @if budgets.len() > 0 {
            section {
                h2 { "PodDisruptionBudgets" (alone) }
                p.hint { "Device-taint evictions ignore PDBs." }
                ul.notes {
                    @for budget in budgets {
                        li { (namespace_and_bold_name(budget)) " is violated by " (counted(budget.count("violatedBy"), "eviction")) }
                    }
                }
            }
        }
        @if record.list("restarts").len() > 0 {
            section { h2 { "Groups that restart" (alone) } (restarts(record)) }
        }
        section { h2 { "Pods" (alone) } (pods(record, budget)) }
        (notes(&format!("Notes{alone}"), &all_notes(record)))
    }
}

fn pods(impact: Record<'_>, budget: usize) -> Markup {
    let mut table = Table::new(&IMPACT_PODS, budget);
    for pod in impact.list("pods") {
        let (at, outcome) = (pod.text_if_any("at"), pod.text("outcome"));
        table.add_row_or_count_omitted([
            namespace_and_bold_name(pod),
            workload(pod.get("owner")),
            html! { span.tag.(if at.is_some() { "bad" } else { "good" }) { (outcome_in_words(&outcome)) } },
            html! { @if let Some(at) = &at { time { (at) } } @else { "–" } },
            html! { @for because in pod.texts("because") { p { (because) } } },
        ]);
    }
    let omitted = impact.count("podsOmitted");
    html! {
        (table.finish("Pods that use a selected device, in the order of their evictions", "No pod uses a selected device."))
        @if omitted > 0 { p.omitted { "--limit leaves out " (counted(omitted, "more pod")) "." } }
    }
}

/// The outcome of a pod in words, such as `evicted now`.
fn outcome_in_words(name: &str) -> &str {
    match name {
        "evicted-now" => "evicted now",
        "evicted-at" => "evicted later",
        other => other,
    }
}

fn restarts(impact: Record<'_>) -> Markup {
    let mut table = Table::new(&RESTARTED_GROUPS, TABLE_BYTE_BUDGET / 8);
    for group in impact.list("restarts") {
        let (lost, restarted) = (group.count("lost"), group.count("restarted"));
        table.add_row_or_count_omitted([
            html! { (group.text("kind")) " " (namespace_and_bold_name(group)) },
            html! { (group_thousands(lost + restarted)) },
            html! { (group_thousands(lost)) },
            html! { (group_thousands(restarted)) },
            html! { (group.text("effect")) },
        ]);
    }
    table.finish("Groups whose other pods restart", "None")
}

fn all_notes(impact: Record<'_>) -> Vec<SafeText> {
    let mut notes = impact.texts("differences");
    notes.extend(impact.text_if_any("dependsOn"));
    let partitions = impact.get("partitions").count("count");
    if partitions > 0 {
        let partitions = counted(partitions, "partition");
        notes.push(SafeText::from(format!("{partitions} of the selected devices can still be allocated")));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::{FittingReplacements, PodCountsByOutcome};

    /// Pods are told apart only if the counts leave one possibility.
    #[test]
    fn pods_that_can_be_evicted_again_do_not_count_as_fitting() {
        let outcomes = |fits, pending| PodCountsByOutcome { fits, pending, ..PodCountsByOutcome::default() };
        for (outcomes, again, evicted, expected) in [
            (outcomes(15, 0), 8, 15, FittingReplacements::Apart { stay: 7, again: 8 }),
            (outcomes(8, 0), 8, 8, FittingReplacements::Apart { stay: 0, again: 8 }),
            (outcomes(5, 2), 0, 7, FittingReplacements::Apart { stay: 5, again: 0 }),
            (outcomes(0, 4), 2, 4, FittingReplacements::Apart { stay: 0, again: 0 }),
            (outcomes(5, 2), 7, 7, FittingReplacements::Apart { stay: 0, again: 5 }),
            (outcomes(5, 2), 3, 7, FittingReplacements::Mixed { fits: 5 }),
            (outcomes(5, 0), 3, 7, FittingReplacements::Mixed { fits: 5 }),
        ] {
            assert_eq!(
                FittingReplacements::split_by_second_eviction_if_certain(outcomes, again, evicted),
                expected,
                "{outcomes:?}, {again} of {evicted}"
            );
        }
    }
}
