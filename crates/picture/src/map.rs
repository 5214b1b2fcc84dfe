//! Devices as a map: a card for each node, and on it a cell for each device with its state, taints and holder.
//!
//! State is shown by color, by a mark and by words. A cell has all its text in any case; with many devices the style
//! shows only the marks until the reader asks for names, so a page of fifty thousand devices stays small and quick.
//!
//! Invariant: the ids of cards and cells depend only on the names of node and device, and the digest of a card changes
//! with everything that is shown on it, so a live page can draw and replace just the cards that changed.

mod card;

use std::borrow::{Borrow, Cow};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use maud::{Markup, PreEscaped, html};
use serde::Deserialize;

use crate::bars::DeviceClassCounts;
use crate::frame::{counted, group_thousands};
use crate::text::SafeText;
use card::COMPACT_CARD_BYTES;
pub use card::{NodeOrPoolCard, NodeOrPoolCardDraft, device_cell_id};

/// The report of `devices -o json`.
#[derive(Clone, Default, Debug, Deserialize)]
#[serde(default)]
pub struct DevicesReport {
    pub profile: SafeText,
    pub at: SafeText,
    pub devices: Vec<Device>,
    pub classes: Vec<DeviceClassCounts>,
    pub incomplete: Vec<SafeText>,
}

/// A device of the report.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Device {
    pub driver: SafeText,
    pub pool: SafeText,
    pub device: SafeText,
    pub slice: Option<SafeText>,
    pub node: Option<SafeText>,
    pub states: Vec<ShownDeviceState>,
    pub blocked_by: Option<SafeText>,
    pub capacity_left: BTreeMap<SafeText, SafeText>,
    pub classes: Vec<SafeText>,
    pub taints: Vec<Taint>,
    pub holders: Vec<Holder>,
}

/// A state of a device; several can apply.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ShownDeviceState {
    Allocated,
    Tainted,
    Blocked,
    Shared,
    Unpublished,
    Free,
}

/// A taint and the object that it comes from.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug, Deserialize)]
#[serde(default)]
pub struct Taint {
    pub key: SafeText,
    pub value: SafeText,
    pub effect: SafeText,
    pub source: KindAndName,
}

/// A claim that holds a device, and its pod.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Holder {
    pub claim: NamespaceAndName,
    pub pod: Option<NamespaceAndName>,
    pub workload: Option<KindAndName>,
    pub admin_access: bool,
}

/// An object by kind and name.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Deserialize)]
#[serde(default)]
pub struct KindAndName {
    pub kind: SafeText,
    pub name: SafeText,
}

/// An object by namespace and name.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Deserialize)]
#[serde(default)]
pub struct NamespaceAndName {
    pub namespace: SafeText,
    pub name: SafeText,
}

impl ShownDeviceState {
    /// All states, in the order of the legend, each with its CSS class, its name and its meaning.
    pub const ALL: [(ShownDeviceState, &'static str, &'static str, &'static str); 6] = [
        (ShownDeviceState::Free, "f", "free", "the scheduler would give it to a pod"),
        (ShownDeviceState::Allocated, "a", "allocated", "a claim holds it"),
        (ShownDeviceState::Shared, "s", "shared", "claims hold shares of it"),
        (
            ShownDeviceState::Tainted,
            "t",
            "tainted",
            "a taint keeps new pods off it, unless they tolerate the taint",
        ),
        (ShownDeviceState::Blocked, "b", "blocked", "no pod can get it, whatever it tolerates"),
        (
            ShownDeviceState::Unpublished,
            "u",
            "unpublished",
            "a claim holds it, but no ResourceSlice lists it",
        ),
    ];

    fn css_class(self) -> &'static str {
        ShownDeviceState::ALL.iter().find(|row| row.0 == self).map_or("", |row| row.1)
    }

    /// Name of the state, such as `allocated`.
    pub fn name(self) -> &'static str {
        ShownDeviceState::ALL.iter().find(|row| row.0 == self).map_or("", |row| row.2)
    }

    /// Meaning of the state for the legend, such as `a claim holds it`.
    pub fn meaning(self) -> &'static str {
        ShownDeviceState::ALL.iter().find(|row| row.0 == self).map_or("", |row| row.3)
    }
}

impl Device {
    pub(crate) fn is(&self, state: ShownDeviceState) -> bool {
        self.states.contains(&state)
    }
}

/// How many devices are in which state, each counted once: `64 allocated (1 of them tainted), 16 free`. A device that
/// is held and tainted counts as held, so the numbers add up.
pub(crate) fn summarize_devices_by_main_state<'d>(devices: impl Iterator<Item = &'d Device>) -> String {
    const ORDER: [ShownDeviceState; 6] = [
        ShownDeviceState::Allocated,
        ShownDeviceState::Shared,
        ShownDeviceState::Tainted,
        ShownDeviceState::Blocked,
        ShownDeviceState::Unpublished,
        ShownDeviceState::Free,
    ];
    let mut counts = [(0, 0); ORDER.len()];
    for device in devices {
        let main = ORDER.iter().position(|state| device.is(*state));
        if let Some((all, tainted)) = main.and_then(|place| counts.get_mut(place)) {
            *all += 1;
            *tainted += usize::from(device.is(ShownDeviceState::Tainted));
        }
    }
    let mut words = Vec::new();
    for (state, (all, tainted)) in ORDER.into_iter().zip(counts) {
        if all == 0 {
            continue;
        }
        let also = match tainted {
            0 => String::new(),
            _ if state == ShownDeviceState::Tainted => String::new(),
            _ if tainted == all => " (also tainted)".to_owned(),
            _ => format!(" ({} of them tainted)", group_thousands(tainted)),
        };
        words.push(format!("{} {}{also}", group_thousands(all), state.name()));
    }
    words.join(", ")
}

impl Taint {
    /// The taint as kubectl writes it: `key=value:NoExecute`.
    pub fn taint_in_kubectl_notation(&self) -> String {
        let value = if self.value.is_empty() { String::new() } else { format!("={}", &*self.value) };
        format!("{}{value}:{}", &*self.key, &*self.effect)
    }
}

/// Cards that a browser lays out together. Fewer cost less when a filter shows them again.
const CARDS_PER_GROUP: usize = 12;
/// Cards that a filter hides together if none of them fits.
const CARDS_PER_LARGE_GROUP: usize = 16 * CARDS_PER_GROUP;

/// Maximum number of devices for which their names are shown at first.
const MAX_DEVICES_WITH_NAMES: usize = 1000;

/// The map: its tools, the legend and the cards. The cards have at most `budget` bytes; then nodes have only their
/// numbers, those without taints and obstacles first, and the page says so.
pub fn devices_map_within_bytes(report: &DevicesReport, budget: usize) -> Markup {
    let present = report.devices.iter().flat_map(|device| device.states.iter().copied()).collect();
    let cards: Vec<NodeOrPoolCard> =
        node_and_pool_card_drafts(report).iter().map(NodeOrPoolCardDraft::draw).collect();
    draw_map(&cards, report.devices.len(), budget, &present)
}

/// The map of a live page, from its cards. The legend has all states, because a state that no device has now may appear
/// later.
pub fn live_map_with_full_legend(
    cards: &[impl Borrow<NodeOrPoolCard>],
    devices: usize,
    budget: usize,
) -> Markup {
    draw_map(cards, devices, budget, &ShownDeviceState::ALL.iter().map(|row| row.0).collect())
}

fn draw_map(
    cards: &[impl Borrow<NodeOrPoolCard>],
    devices: usize,
    budget: usize,
    present: &BTreeSet<ShownDeviceState>,
) -> Markup {
    let shown = full_or_compact_cards_within_bytes(cards, budget);
    let is_named = devices <= MAX_DEVICES_WITH_NAMES;
    html! {
        div.map {
            div.tools hidden {
                label { "Filter " input.filter type="search" autocomplete="off" spellcheck="false"
                    placeholder="node, device, pod, taint"; }
                fieldset.states {
                    legend { "State" }
                    @for (state, class, name, _) in ShownDeviceState::ALL {
                        @if present.contains(&state) {
                            label { input type="checkbox" value=(class) checked; (name) }
                        }
                    }
                }
                output data-noun="device" { (counted(devices, "device")) }
            }
            (legend(present))
            @if shown.reduced + shown.omitted > 0 {
                p.omitted {
                    "To keep this file below 10 MB, " (counted(shown.reduced, "node"))
                    " without taints and obstacles " @if shown.reduced == 1 { "is" } @else { "are" }
                    " shown as numbers"
                    @if shown.omitted > 0 { ", and " (counted(shown.omitted, "more node")) " not at all" }
                    ". For their devices, add " code { "--node NAME" } " to the command, or use " code { "-o json" } "."
                }
            }
            input.names type="checkbox" id="names" checked[is_named];
            label for="names" { "Show names, holders and taints" }
            div.nodes.many[!is_named] {
                @for large in shown.cards.chunks(CARDS_PER_LARGE_GROUP) {
                    div {
                        @for group in large.chunks(CARDS_PER_GROUP) { div { @for card in group { (PreEscaped(card)) } } }
                    }
                }
            }
            p.choice role="status" hidden {}
        }
    }
}

/// What a taint does to pods that use the device already, which the state does not tell.
const TAINTED_PODS_NOTE: &str = "; with NoSchedule, pods that use it keep running; with NoExecute, they are evicted unless they tolerate the taint";

fn legend(present: &BTreeSet<ShownDeviceState>) -> Markup {
    html! {
        ul.legend aria-label="Legend" {
            @for (state, class, name, meaning) in ShownDeviceState::ALL {
                @if present.contains(&state) {
                    li {
                        span.cell.(class) aria-hidden="true" {} strong { (name) } " " (meaning)
                        @if state == ShownDeviceState::Tainted { (TAINTED_PODS_NOTE) }
                    }
                }
            }
        }
    }
}

/// The cards that fit into the budget of a page, and how many nodes are shown only as numbers or not at all.
struct FittingCards<'c> {
    cards: Vec<Cow<'c, str>>,
    reduced: usize,
    omitted: usize,
}

fn full_or_compact_cards_within_bytes(
    cards: &[impl Borrow<NodeOrPoolCard>],
    budget: usize,
) -> FittingCards<'_> {
    let cards: Vec<&NodeOrPoolCard> = cards.iter().map(Borrow::borrow).collect();
    let mut order: Vec<usize> = (0..cards.len()).collect();
    order.sort_by_key(|index| cards.get(*index).is_none_or(|card| !card.is_unusual));
    let whole: usize = cards.iter().map(|card| card.html.0.len()).sum();
    // Unless all cards fit, a part of the room is for numbers.
    let reserve = if whole <= budget { 0 } else { (cards.len() * COMPACT_CARD_BYTES).min(budget / 2) };
    let mut left = budget - reserve;
    let mut is_full = vec![false; cards.len()];
    for index in order {
        let (Some(card), Some(is_full)) = (cards.get(index), is_full.get_mut(index)) else { continue };
        let size = card.html.0.len();
        if size <= left {
            left -= size;
            *is_full = true;
        }
    }
    left += reserve;
    let mut fitting = FittingCards { cards: Vec::with_capacity(cards.len()), reduced: 0, omitted: 0 };
    for (card, is_full) in cards.into_iter().zip(is_full) {
        if is_full {
            fitting.cards.push(Cow::Borrowed(&card.html.0));
            continue;
        }
        let compact = card.compact();
        if compact.0.len() <= left {
            left -= compact.0.len();
            fitting.cards.push(Cow::Owned(compact.0));
            fitting.reduced += 1;
        } else {
            fitting.omitted += 1;
        }
    }
    fitting
}

/// The cards of all nodes, by name, before they are drawn. Devices that several nodes can use have a card for their
/// pool.
pub fn node_and_pool_card_drafts(report: &DevicesReport) -> Vec<NodeOrPoolCardDraft<'_>> {
    let mut nodes: HashMap<CardNodeOrPool<'_>, Vec<&Device>> = HashMap::new();
    for device in &report.devices {
        let place = match &device.node {
            Some(node) => CardNodeOrPool { is_pool: false, name: NaturallyOrderedName(node), driver: "" },
            None => CardNodeOrPool {
                is_pool: true,
                name: NaturallyOrderedName(&device.pool),
                driver: &device.driver,
            },
        };
        nodes.entry(place).or_default().push(device);
    }
    // Comparing names in the order of people takes long, so nodes are sorted, and not devices.
    let mut nodes: Vec<(CardNodeOrPool<'_>, Vec<&Device>)> = nodes.into_iter().collect();
    nodes.sort_unstable_by_key(|(place, _)| *place);
    let mut seen = HashMap::with_capacity(report.devices.len());
    nodes.into_iter().map(|(place, devices)| NodeOrPoolCardDraft::new(place, devices, &mut seen)).collect()
}

/// The node that a card shows, or the pool whose devices do not belong to one node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
struct CardNodeOrPool<'a> {
    is_pool: bool,
    name: NaturallyOrderedName<'a>,
    driver: &'a str,
}

/// A name that is ordered by its numbers as people expect: `node-2` before `node-10`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct NaturallyOrderedName<'a>(&'a str);

impl Ord for NaturallyOrderedName<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let (mut one, mut two) = (self.0, other.0);
        loop {
            let ((text, number, rest), (other_text, other_number, other_rest)) =
                (split_after_first_number(one), split_after_first_number(two));
            let order = text.cmp(other_text).then(number.cmp(&other_number));
            if order != Ordering::Equal || (rest.is_empty() && other_rest.is_empty()) {
                return order.then_with(|| self.0.cmp(other.0));
            }
            (one, two) = (rest, other_rest);
        }
    }
}

impl PartialOrd for NaturallyOrderedName<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Splits a name after its first number, into the text before the number, the number, and the rest.
fn split_after_first_number(text: &str) -> (&str, Option<u64>, &str) {
    let split = |text: &'_ str, at: Option<usize>| at.unwrap_or(text.len());
    let (letters, rest) = text.split_at(split(text, text.find(|letter: char| letter.is_ascii_digit())));
    let (digits, rest) = rest.split_at(split(rest, rest.find(|letter: char| !letter.is_ascii_digit())));
    (letters, digits.parse().ok(), rest)
}

#[cfg(test)]
mod tests;
