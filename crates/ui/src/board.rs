//! What the pages show now, and what changed since a page was drawn.
//!
//! The report about devices is drawn as parts with ids: a card for each node, and the sections around the map. A part
//! that is the same as before keeps its revision, so a page that asks gets only what changed.
//!
//! Invariant: a page that applies all changes after its revision shows the same as a page that is drawn now.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use maud::{Markup, PreEscaped, html};
use serde::Serialize;
use tokio::sync::watch;
use tollgate_picture::map::{
    Device, DevicesReport, NodeOrPoolCard, device_cell_id, live_map_with_full_legend,
    node_and_pool_card_drafts,
};
use tollgate_picture::{MAX_PAGE_BYTES, SafeText, pages};

use crate::details::{DevicesSharingCounters, draw_details};
use crate::frame::{LivePage, PageFacts, render};
use crate::server::Answer;
use crate::what_if;

/// Bytes reserved for everything on a page but the map.
const BYTES_BESIDE_MAP: usize = 1_500_000;
/// Maximum number of removed cards that are remembered, so that open pages can remove them.
const MAX_REMEMBERED_REMOVED_CARDS: usize = 10_000;

/// Identifies a device by driver, pool and name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceName {
    pub driver: String,
    pub pool: String,
    pub device: String,
}

impl DeviceName {
    /// Driver, pool and name, separated by slashes, as commands accept a device: `DRIVER/POOL/DEVICE`.
    pub fn driver_pool_device(&self) -> String {
        format!("{}/{}/{}", self.driver, self.pool, self.device)
    }
}

/// The content of the live pages, shared by the thread that publishes reports and those that serve pages.
#[derive(Debug)]
pub struct LivePageStore {
    facts: PageFacts,
    /// The current content, replaced as a whole, so that nobody waits while a page is drawn.
    shown: Mutex<Arc<LivePageContent>>,
    revision: watch::Sender<u64>,
}

/// The content of the live pages at one revision.
#[derive(Clone, Default, Debug)]
pub(crate) struct LivePageContent {
    pub(crate) revision: u64,
    /// When the state was read from the cluster; with `trouble`, until when it was current. Empty if it is not known.
    pub(crate) taken: String,
    /// Why the state may be out of date; `None` if it is current.
    pub(crate) trouble: Option<SafeText>,
    pub(crate) report: Arc<DevicesReport>,
    /// The HTML of the map, drawn when a report is published, so that the first page does not wait for it.
    map: Arc<Markup>,
    /// The cards in the order of the map, each with the revision at which it last changed.
    cards: Vec<(Arc<NodeOrPoolCard>, u64)>,
    /// The sections of the page by their ids, each with the revision at which it last changed.
    parts: BTreeMap<&'static str, (Markup, u64)>,
    /// The ids of removed cards, each with the revision at which it was removed, in this order.
    gone: Vec<(String, u64)>,
    /// Revision up to which removed cards may be forgotten, so that an older page must be drawn anew.
    forgotten: u64,
}

impl LivePageContent {
    /// The HTML of the section with this id; empty if there is none.
    pub(crate) fn section_html(&self, id: &str) -> &Markup {
        const NOTHING: &Markup = &PreEscaped(String::new());
        self.parts.get(id).map_or(NOTHING, |(part, _)| part)
    }
}

/// The changes after a revision, as JSON for the script of the live pages.
#[derive(Serialize)]
struct PageChangesJson<'a> {
    revision: u64,
    taken: &'a str,
    trouble: Option<&'a str>,
    /// True if changes were forgotten, so that the page must be drawn anew.
    #[serde(rename = "isForgotten")]
    is_forgotten: bool,
    parts: BTreeMap<&'a str, &'a str>,
    cards: Vec<ChangedCard<'a>>,
    gone: Vec<&'a str>,
}

#[derive(Serialize)]
struct ChangedCard<'a> {
    id: &'a str,
    html: &'a str,
    /// The id of the card before this one; `None` for the first card.
    after: Option<&'a str>,
}

impl LivePageStore {
    /// A store without content.
    pub fn new(facts: PageFacts) -> LivePageStore {
        LivePageStore { facts, shown: Mutex::default(), revision: watch::Sender::new(0) }
    }

    fn current_content(&self) -> Arc<LivePageContent> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn replace_content(&self, shown: LivePageContent) {
        let revision = shown.revision;
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(shown);
        self.revision.send_replace(revision);
    }

    /// Shows the report about the devices of a state. `trouble` is why that state may be old.
    pub fn publish(&self, report: DevicesReport, taken: &str, trouble: Option<String>) {
        let before = self.current_content();
        let revision = before.revision + 1;
        let mut old: HashMap<&str, &(Arc<NodeOrPoolCard>, u64)> =
            before.cards.iter().map(|entry| (entry.0.id.as_str(), entry)).collect();
        let trouble = trouble.map(SafeText::from);
        let mut shown =
            LivePageContent { revision, taken: taken.to_owned(), trouble, ..LivePageContent::default() };
        for card in node_and_pool_card_drafts(&report) {
            let same = old.remove(card.id.as_str()).filter(|(before, _)| before.digest == card.digest);
            shown.cards.push(same.cloned().unwrap_or_else(|| (Arc::new(card.draw()), revision)));
        }
        shown.gone.clone_from(&before.gone);
        shown.gone.extend(old.into_keys().map(|id| (id.to_owned(), revision)));
        shown.forgotten = before.forgotten;
        shown.forget_oldest_removed_cards();
        for (id, part) in pages::device_page_sections_beside_map(&report) {
            let same = before.parts.get(id).filter(|(before, _)| before.0 == part.0);
            shown.parts.insert(id, same.cloned().unwrap_or((part, revision)));
        }
        let cards: Vec<&NodeOrPoolCard> = shown.cards.iter().map(|(card, _)| &**card).collect();
        shown.map = Arc::new(live_map_with_full_legend(
            &cards,
            report.devices.len(),
            MAX_PAGE_BYTES - BYTES_BESIDE_MAP,
        ));
        shown.report = Arc::new(report);
        self.replace_content(shown);
    }

    /// Shows from now on that the state may be out of date, with this reason, and until when it was current if that is
    /// known.
    pub fn mark_out_of_date(&self, trouble: String, current_until: Option<String>) {
        let before = self.current_content();
        self.replace_content(LivePageContent {
            revision: before.revision + 1,
            taken: current_until.unwrap_or_else(|| before.taken.clone()),
            trouble: Some(SafeText::from(trouble)),
            ..LivePageContent::clone(&before)
        });
    }

    /// Watches the revision of the content, which grows with each change.
    pub fn revision(&self) -> watch::Receiver<u64> {
        self.revision.subscribe()
    }

    /// The page at a path; `None` if there is none.
    pub fn get(&self, path: &str) -> Option<Answer> {
        let page = [LivePage::Devices, LivePage::WhatIf].into_iter().find(|page| page.path() == path)?;
        let shown = self.current_content();
        let body = match page {
            LivePage::Devices => devices_body(&shown),
            LivePage::WhatIf => what_if::body(&shown.map),
        };
        Some(render(page, &self.facts, &shown, &body))
    }

    /// The cards and sections that changed after a revision, as JSON.
    pub fn changes_since(&self, revision: u64) -> Answer {
        let shown = self.current_content();
        let is_forgotten = revision < shown.forgotten || revision > shown.revision;
        let mut changes = PageChangesJson {
            revision: shown.revision,
            taken: &shown.taken,
            trouble: shown.trouble.as_deref(),
            is_forgotten,
            parts: BTreeMap::new(),
            cards: Vec::new(),
            gone: Vec::new(),
        };
        if !is_forgotten {
            let parts = shown.parts.iter().filter(|(_, (_, since))| *since > revision);
            changes.parts = parts.map(|(id, (part, _))| (*id, part.0.as_str())).collect();
            let mut after = None;
            for (card, since) in &shown.cards {
                if *since > revision {
                    changes.cards.push(ChangedCard { id: &card.id, html: &card.html.0, after });
                }
                after = Some(card.id.as_str());
            }
            let gone = shown.gone.iter().filter(|(_, since)| *since > revision);
            changes.gone = gone.map(|(id, _)| id.as_str()).collect();
        }
        Answer::json(serde_json::to_string(&changes).unwrap_or_default())
    }

    /// The device of the map cell with this id.
    pub fn device_of_cell(&self, id: &str) -> Option<DeviceName> {
        let shown = self.current_content();
        let Device { driver, pool, device, .. } = find_device_of_cell(&shown.report, id)?;
        let [driver, pool, device] = [driver, pool, device].map(|text| String::from(&**text));
        Some(DeviceName { driver, pool, device })
    }

    /// The panel about the device of a map cell, and about devices that share counters with it.
    pub fn device_details(&self, id: &str, related: &DevicesSharingCounters) -> Option<Answer> {
        let shown = self.current_content();
        let device = find_device_of_cell(&shown.report, id)?;
        Some(Answer::html_fragment(draw_details(id, device, related, &shown.report).into_string()))
    }
}

impl LivePageContent {
    /// Drops the removed cards that were remembered for longest, if there are too many.
    fn forget_oldest_removed_cards(&mut self) {
        let too_many = self.gone.len().saturating_sub(MAX_REMEMBERED_REMOVED_CARDS);
        if let Some((_, last)) = self.gone.drain(..too_many).next_back() {
            self.forgotten = last;
        }
    }
}

fn find_device_of_cell<'r>(report: &'r DevicesReport, id: &str) -> Option<&'r Device> {
    let plain = id.trim_end_matches('x');
    report.devices.iter().find(|device| device_cell_id(device) == plain)
}

fn devices_body(shown: &LivePageContent) -> Markup {
    html! {
        section {
            h2 { "Devices by node" }
            p.hint {
                "Choose a device to see its taints, its holder and its partitions: click it, or move with the arrow keys."
            }
            div.with-details {
                (*shown.map)
                aside.details id="details" aria-label="Chosen device" aria-live="polite" {
                    p.none { "No device is chosen." }
                }
            }
        }
        section { h2 { "Devices by class" } div id="classes" { (shown.section_html("classes")) } }
        section { h2 { "Taints" } div id="taints" { (shown.section_html("taints")) } }
        section { h2 { "Devices by namespace" } div id="namespaces" { (shown.section_html("namespaces")) } }
    }
}

#[cfg(test)]
mod tests;
