//! The card of one node.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use maud::{Markup, PreEscaped, html};
use sha2::{Digest as _, Sha256};

use super::{CardNodeOrPool, Device, Holder, ShownDeviceState, summarize_devices_by_main_state};
use crate::bars::{self, DeviceClassCounts};
use crate::frame::{counted, group_thousands};
use crate::text::{SafeText, breakable_after_separators, namespaced};

/// The card of a node, or of a pool whose devices do not belong to one node.
#[derive(Clone, Debug)]
pub struct NodeOrPoolCard {
    /// The id of the card's HTML element.
    pub id: String,
    /// The digest of its draft.
    pub digest: u64,
    pub html: Markup,
    /// True if a device of the card is tainted, blocked or not published.
    pub(super) is_unusual: bool,
    title: SafeText,
    /// The number of devices in each state, in words.
    words: String,
    counts: DeviceClassCounts,
}

/// The data for a card. Its digest shows whether the card has changed, which is faster than drawing it again.
#[derive(Clone, Debug)]
pub struct NodeOrPoolCardDraft<'r> {
    pub id: String,
    /// The digest of the devices. It is only comparable within one process.
    pub digest: u64,
    place: CardNodeOrPool<'r>,
    devices: Vec<&'r Device>,
    /// For each device, the number of earlier cells of devices with the same driver, pool and name; usually 0.
    repeats: Vec<usize>,
}

/// Maximum number of holders, and of taints, that are written out in a cell; more are counted.
const MAX_LISTED_PER_CELL: usize = 3;

impl<'r> NodeOrPoolCardDraft<'r> {
    /// Creates the draft of the card of a node or pool. `seen` counts the cells so far by driver, pool and name of the
    /// device.
    pub(super) fn new(
        place: CardNodeOrPool<'r>,
        devices: Vec<&'r Device>,
        seen: &mut HashMap<[&'r str; 3], usize>,
    ) -> NodeOrPoolCardDraft<'r> {
        let kind = if place.is_pool { "pool" } else { "node" };
        let names = |device: &'r Device| -> [&'r str; 3] { [&device.driver, &device.pool, &device.device] };
        let repeats = devices.iter().map(|device| {
            let count = seen.entry(names(device)).or_default();
            *count += 1;
            *count - 1
        });
        let repeats = repeats.collect();
        let mut hasher = DefaultHasher::new();
        (&devices, &repeats).hash(&mut hasher);
        let id = format!("n{}", short_digest(&[kind, place.name.0, place.driver]));
        NodeOrPoolCardDraft { id, digest: hasher.finish(), place, devices, repeats }
    }

    /// Draws the card.
    pub fn draw(&self) -> NodeOrPoolCard {
        let NodeOrPoolCardDraft { id, place, devices, .. } = self;
        let title = match place.driver {
            "" => SafeText::from(place.name.0),
            driver => SafeText::from(format!("{driver}/{}", place.name.0)),
        };
        let words = summarize_devices_by_main_state(devices.iter().copied());
        let is_unusual = |state: &ShownDeviceState| {
            matches!(
                state,
                ShownDeviceState::Tainted | ShownDeviceState::Blocked | ShownDeviceState::Unpublished
            )
        };
        let is_tainted = devices.iter().any(|device| device.is(ShownDeviceState::Tainted));
        NodeOrPoolCard {
            html: html! {
                article.node.marked[is_tainted] id=(id) {
                    (heading(&title, place.is_pool, devices.len(), &words))
                    ul.cells {
                        @for (device, repeat) in devices.iter().zip(&self.repeats) { (device_cell_with_unique_id(device, *repeat)) }
                    }
                }
            },
            is_unusual: devices.iter().any(|device| device.states.iter().any(is_unusual)),
            id: id.clone(),
            digest: self.digest,
            title,
            words,
            counts: count_states(devices),
        }
    }
}

/// Approximate size in bytes of a card that shows only numbers.
pub(super) const COMPACT_CARD_BYTES: usize = 600;

impl NodeOrPoolCard {
    /// The card with only the numbers of devices by state.
    pub(super) fn compact(&self) -> Markup {
        html! {
            article.node.sum id=(self.id) {
                (heading(&self.title, false, self.counts.total, &self.words))
                (bars::state_bar(&self.counts))
            }
        }
    }
}

fn heading(title: &SafeText, is_pool: bool, devices: usize, words: &str) -> Markup {
    html! {
        h3 { @if is_pool { span.kind { "pool " } } (title) }
        p.sum { (counted(devices, "device")) ": " (words) }
    }
}

fn count_states(devices: &[&Device]) -> DeviceClassCounts {
    let is_held =
        |device: &Device| device.is(ShownDeviceState::Allocated) || device.is(ShownDeviceState::Shared);
    let is_tainted = |device: &Device| device.is(ShownDeviceState::Tainted);
    let count = |is: &dyn Fn(&Device) -> bool| devices.iter().filter(|device| is(device)).count();
    DeviceClassCounts {
        total: devices.len(),
        allocated: count(&is_held),
        tainted: count(&is_tainted),
        allocated_and_tainted: count(&|device| is_held(device) && is_tainted(device)),
        free: count(&|device| device.is(ShownDeviceState::Free)),
        ..DeviceClassCounts::default()
    }
}

/// The cell of a device. Two slices can list a device of the same name; `repeat` is how many cells have it already.
fn device_cell_with_unique_id(device: &Device, repeat: usize) -> Markup {
    let classes: Vec<&str> = device.states.iter().map(|state| state.css_class()).collect();
    let states: Vec<&str> = device.states.iter().map(|state| state.name()).collect();
    let left: Vec<String> =
        device.capacity_left.iter().map(|(name, amount)| format!("{} {}", &**amount, &**name)).collect();
    html! {
        li class=(classes.join(" ")) id={ (device_cell_id(device)) ("x".repeat(repeat)) } {
            b { (device.device) }
            i { (states.join(", ")) }
            @if !device.holders.is_empty() { span { (holders(&device.holders)) } }
            @if let Some(why) = &device.blocked_by { em { (why) } }
            @if !left.is_empty() { em { "left: " (SafeText::from(left.join(", "))) } }
            @for taint in device.taints.iter().take(MAX_LISTED_PER_CELL) {
                em { (breakable_after_separators(&taint.taint_in_kubectl_notation())) " from " (taint.source.name) }
            }
            @if device.taints.len() > MAX_LISTED_PER_CELL {
                em { "and " (counted(device.taints.len() - MAX_LISTED_PER_CELL, "more taint")) }
            }
        }
    }
}

/// The id of the cell of a device; a second device of the same name has an `x` after it.
pub fn device_cell_id(device: &Device) -> String {
    format!("d{}", short_digest(&[&device.driver, &device.pool, &device.device]))
}

/// The pods or claims that hold a device: `research/llm-train-0, batch/render-1 and 2 more`.
fn holders(holders: &[Holder]) -> Markup {
    let name = |holder: &Holder| {
        let (what, object) = match &holder.pod {
            Some(pod) => ("", pod),
            None => ("claim ", &holder.claim),
        };
        let access = if holder.admin_access { " (admin access)" } else { "" };
        html! { (what) (namespaced(object)) (access) }
    };
    let mut names: Vec<String> = holders.iter().map(|holder| name(holder).0).collect();
    names.dedup();
    let more = names.len().saturating_sub(MAX_LISTED_PER_CELL);
    names.truncate(MAX_LISTED_PER_CELL);
    html! {
        (PreEscaped(names.join(", ")))
        @if more > 0 { " and " (group_thousands(more)) " more" }
    }
}

/// The first twelve letters of a digest of the texts. It distinguishes names and is not meant for security.
fn short_digest(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let mut out = String::with_capacity(12);
    for byte in hash.finalize().iter().take(6) {
        _ = write!(out, "{byte:02x}");
    }
    out
}
