//! The page of `tollgate impact`.

use std::collections::BTreeMap;

use maud::{Markup, html};
use serde::Deserialize;

use super::{
    PodCountsByOutcome, ReportJson, TABLE_BYTE_BUDGET, namespace_and_bold_name, notes,
    tile_class_bad_unless_zero, tiles, titled_class_changes_section, workload,
};
use crate::bars::{BarPart, DeviceClassBeforeAndAfter};
use crate::frame::{HtmlPage, ReportProvenance, counted, group_thousands};
use crate::map::{KindAndName, NamespaceAndName};
use crate::table::{COMBINED_CHANGES, IMPACT_PODS, RESTARTED_GROUPS, Table};
use crate::text::SafeText;
use crate::timeline::EvictionTimeline;

#[derive(Default, Debug, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Impact {
    /// Name of the rule, for the impact of one rule.
    rule: SafeText,
    /// Names of the rules, for the combined impact of several.
    together: Vec<SafeText>,
    profile: SafeText,
    at: SafeText,
    devices: SelectedDeviceCounts,
    totals: Totals,
    no_effect: Option<SafeText>,
    depends_on: Option<SafeText>,
    upper_bound: bool,
    partitions: StillAllocatablePartitions,
    pods: Vec<Pod>,
    pods_omitted: usize,
    budgets: Vec<ViolatedDisruptionBudget>,
    /// What the state lacks.
    incomplete: Vec<SafeText>,
    restarts: Vec<RestartedGroup>,
    replacements: Option<PodCountsByOutcome>,
    differences: Vec<SafeText>,
    sum: CombinedTotals,
    parts: Vec<SingleChangeImpact>,
    #[serde(skip)]
    capacity: Vec<DeviceClassBeforeAndAfter>,
}

#[derive(Default, Debug, Deserialize)]
#[serde(default)]
struct SelectedDeviceCounts {
    published: usize,
    allocated: usize,
}

#[derive(Default, Debug, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Totals {
    evicted: usize,
    evicted_now: usize,
    evicted_later: usize,
    tolerated: usize,
    unaffected: usize,
    evicted_again: usize,
    namespaces: usize,
    last_eviction: Option<SafeText>,
}

#[derive(Default, Debug, Deserialize)]
#[serde(default)]
struct StillAllocatablePartitions {
    count: usize,
}

#[derive(Default, Debug, Deserialize)]
#[serde(default)]
struct Pod {
    #[serde(flatten)]
    name: NamespaceAndName,
    owner: Option<KindAndName>,
    outcome: SafeText,
    at: Option<SafeText>,
    because: Vec<SafeText>,
}

#[derive(Default, Debug, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ViolatedDisruptionBudget {
    #[serde(flatten)]
    name: NamespaceAndName,
    violated_by: usize,
}

#[derive(Default, Debug, Deserialize)]
#[serde(default)]
struct RestartedGroup {
    kind: SafeText,
    #[serde(flatten)]
    name: NamespaceAndName,
    lost: usize,
    restarted: usize,
    effect: SafeText,
}

#[derive(Clone, Copy, Default, Debug, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct CombinedTotals {
    evicted: usize,
    namespaces: usize,
    evicted_again: usize,
}

/// The part of one change in a combined impact.
#[derive(Default, Debug, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SingleChangeImpact {
    rule: SafeText,
    devices: usize,
    evicted: usize,
    evicted_only_by_it: usize,
}

/// The page for the records of `impact -o json`: those of rules and slices, and those of their sums.
pub fn impact(records: &[ReportJson<'_>], page: &ReportProvenance) -> serde_json::Result<String> {
    let mut impacts = Vec::new();
    for record in records {
        let mut impact: Impact = serde_json::from_str(record.json)?;
        impact.capacity = record.parse_class_changes()?;
        impacts.push(impact);
    }
    // A page of many rules has as much room as the page of one.
    let budget = TABLE_BYTE_BUDGET / impacts.len().max(1);
    let (sums, rules): (Vec<Impact>, Vec<Impact>) =
        impacts.into_iter().partition(|impact| !impact.together.is_empty());
    let first = rules.first();
    let title = match rules.as_slice() {
        [only] => format!("Impact of {}", &*only.rule),
        _ => format!("Impact of {}", counted(rules.len(), "change")),
    };
    let lead = sums.first().map(combined_impact_lead).or(first.map(lead)).unwrap_or_default();
    let frame = HtmlPage {
        page,
        title: &title,
        lead,
        profile: first.map_or("", |first| &first.profile),
        at: first.map_or("", |first| &first.at),
        body: html! {
            @for sum in &sums {
                section {
                    h2 { "All changes together (Kubernetes " (sum.profile) ")" }
                    p.hint { "A pod that several changes evict counts once here, and once for each of them below." }
                    p { (combined_impact_lead(sum)) }
                    (changes_table(&sum.parts))
                    (earliest_eviction_of_each_pod(sum, &rules).render())
                    @if let Some(outcomes) = sum.replacements {
                        (outcomes.render_outcome_bar_and_numbers(&FittingReplacements::split_by_second_eviction_if_certain(outcomes, sum.sum.evicted_again, sum.sum.evicted).bar_parts()))
                        (evicted_again_note(sum.sum.evicted_again, sum.sum.evicted))
                    }
                }
                (titled_class_changes_section("Devices by class, before and after all changes", &sum.capacity, DEVICES_AFTER_CHANGES_NOTE))
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
fn combined_impact_lead(sum: &Impact) -> Markup {
    let CombinedTotals { evicted, namespaces, evicted_again } = sum.sum;
    html! {
        strong { (counted(evicted, "pod")) @if evicted == 1 { " is" } @else { " are" } " evicted" }
        " in " (counted(namespaces, "namespace")) "."
        @if evicted > 0 { (replacements_sentence(sum.replacements, evicted_again, evicted)) }
    }
}

/// A table of the changes, each with its part of a combined impact.
fn changes_table(parts: &[SingleChangeImpact]) -> Markup {
    let mut table = Table::new(&COMBINED_CHANGES, TABLE_BYTE_BUDGET / 16);
    for part in parts {
        let [devices, evicted, only] = [part.devices, part.evicted, part.evicted_only_by_it]
            .map(|number| html! { (group_thousands(number)) });
        table.add_row_or_count_omitted([html! { (part.rule) }, devices, evicted, only]);
    }
    table.finish("The changes, each alone", "None")
}

/// The evictions by all rules of a combined impact: each pod once, at the earliest time.
fn earliest_eviction_of_each_pod<'a>(sum: &Impact, rules: &'a [Impact]) -> EvictionTimeline<'a> {
    let mut first: BTreeMap<&NamespaceAndName, &SafeText> = BTreeMap::new();
    for pod in rules.iter().filter(|rule| rule.profile == sum.profile).flat_map(|rule| &rule.pods) {
        if let Some(at) = &pod.at {
            let known = first.entry(&pod.name).or_insert(at);
            *known = at.min(known);
        }
    }
    EvictionTimeline::new(&sum.at, first.into_iter().map(|(pod, at)| (at, pod)))
}

/// The first sentence about the impact of one rule.
fn lead(impact: &Impact) -> Markup {
    let Totals { evicted, evicted_now, evicted_later, namespaces, last_eviction, .. } = &impact.totals;
    html! {
        @if let Some(why) = &impact.no_effect { strong.warn { "No effect on this cluster: " } (why) ". If it had one: " }
        @if impact.upper_bound { "At most " }
        strong { (counted(*evicted, "pod")) @if *evicted == 1 { " is" } @else { " are" } " evicted" }
        @if *evicted > 0 {
            " in " (counted(*namespaces, "namespace")) ": "
            @if *evicted_now > 0 { (group_thousands(*evicted_now)) " immediately" @if *evicted_later > 0 { ", " } }
            @if *evicted_later > 0 { (group_thousands(*evicted_later)) " later" }
            @if let Some(last) = last_eviction { ", the last at " time { (last) } }
        }
        ". " (counted(impact.devices.published, "published device")) " selected, "
        (group_thousands(impact.devices.allocated)) " allocated."
        @if *evicted > 0 { (replacements_sentence(impact.replacements, impact.totals.evicted_again, *evicted)) }
    }
}

/// The sections about one change. `place` is its number and the number of all changes, if there are several.
fn one_impact(impact: &Impact, place: Option<(usize, usize)>, budget: usize) -> Markup {
    let totals = &impact.totals;
    let alone = if place.is_some() { ALONE } else { "" };
    let is_complete = impact.incomplete.is_empty();
    let budgets_label = if is_complete { "PDBs violated" } else { "PDBs violated, as far as is known" };
    let mut numbers = vec![
        ("calm", impact.devices.published, "devices selected"),
        (tile_class_bad_unless_zero(totals.evicted_now), totals.evicted_now, "pods evicted now"),
        (tile_class_bad_unless_zero(totals.evicted_later), totals.evicted_later, "pods evicted later"),
        ("good", totals.tolerated, "pods tolerate the taint"),
        ("good", totals.unaffected, "pods not affected"),
        (tile_class_bad_unless_zero(impact.budgets.len()), impact.budgets.len(), budgets_label),
    ];
    if totals.evicted_again > 0 {
        numbers.insert(3, ("bad", totals.evicted_again, "pods can be evicted again"));
    }
    let evicted = impact.pods.iter().filter_map(|pod| Some((pod.at.as_ref()?, &pod.name)));
    let timeline = EvictionTimeline::new(&impact.at, evicted);
    html! {
        @if let Some((number, count)) = place {
            section.change {
                h2 { "Change " (group_thousands(number)) " of " (group_thousands(count)) ": " (impact.rule) " (Kubernetes " (impact.profile) ")" }
                p { (lead(impact)) }
            }
        }
        (tiles(&numbers))
        section {
            h2 { "When pods are evicted" (alone) }
            @if timeline.is_empty() { p.none { "No pod is evicted." } } @else { (timeline.render()) }
        }
        @if let Some(outcomes) = impact.replacements {
            section {
                h2 { "Where evicted pods go" (alone) }
                (outcomes.render_outcome_bar_and_numbers(&FittingReplacements::split_by_second_eviction_if_certain(outcomes, totals.evicted_again, totals.evicted).bar_parts()))
                (evicted_again_note(totals.evicted_again, totals.evicted))
            }
        }
        (titled_class_changes_section(&format!("Devices by class, before and after{alone}"), &impact.capacity, DEVICES_AFTER_CHANGES_NOTE))
        @if !impact.budgets.is_empty() {
            section {
                h2 { "PodDisruptionBudgets" (alone) }
                p.hint { "Device-taint evictions ignore PDBs." }
                ul.notes {
                    @for budget in &impact.budgets {
                        li { (namespace_and_bold_name(&budget.name)) " is violated by " (counted(budget.violated_by, "eviction")) }
                    }
                }
            }
        }
        @if !impact.restarts.is_empty() {
            section { h2 { "Groups that restart" (alone) } (restarts(&impact.restarts)) }
        }
        section {
            h2 { "Pods" (alone) }
            (pods(impact, budget))
        }
        (notes(&format!("Notes{alone}"), &all_notes(impact)))
    }
}

fn pods(impact: &Impact, budget: usize) -> Markup {
    let mut table = Table::new(&IMPACT_PODS, budget);
    for pod in &impact.pods {
        let is_evicted = pod.at.is_some();
        table.add_row_or_count_omitted([
            namespace_and_bold_name(&pod.name),
            workload(pod.owner.as_ref()),
            html! { span.tag.(if is_evicted { "bad" } else { "good" }) { (outcome_in_words(&pod.outcome)) } },
            html! { @if let Some(at) = &pod.at { time { (at) } } @else { "–" } },
            html! { @for because in &pod.because { p { (because) } } },
        ]);
    }
    html! {
        (table.finish("Pods that use a selected device, in the order of their evictions", "No pod uses a selected device."))
        @if impact.pods_omitted > 0 {
            p.omitted { "--limit leaves out " (counted(impact.pods_omitted, "more pod")) "." }
        }
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

fn restarts(groups: &[RestartedGroup]) -> Markup {
    let mut table = Table::new(&RESTARTED_GROUPS, TABLE_BYTE_BUDGET / 8);
    for group in groups {
        table.add_row_or_count_omitted([
            html! { (group.kind) " " (namespace_and_bold_name(&group.name)) },
            html! { (group_thousands(group.lost + group.restarted)) },
            html! { (group_thousands(group.lost)) },
            html! { (group_thousands(group.restarted)) },
            html! { (group.effect) },
        ]);
    }
    table.finish("Groups whose other pods restart", "None")
}

fn all_notes(impact: &Impact) -> Vec<SafeText> {
    let mut notes = impact.differences.clone();
    notes.extend(impact.depends_on.clone());
    if impact.partitions.count > 0 {
        let partitions = counted(impact.partitions.count, "partition");
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
