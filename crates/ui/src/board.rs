//! What the pages show now, and what changed since a page was drawn.
//!
//! The report about devices is drawn as parts with ids: a card for each node, and the sections around the map. A part that
//! is the same as before keeps its revision, so a page that asks gets only what changed.
//!
//! Invariant: a page that applies all changes after its revision shows the same as a page that is drawn now.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use maud::{Markup, PreEscaped, html};
use serde::Serialize;
use tokio::sync::watch;
use tollgate_picture::map::{Card, Device, DevicesReport, cards, device_id, live_map};
use tollgate_picture::{MAX_BYTES, pages};

use crate::details::{RelatedDevices, draw_details};
use crate::frame::{LivePage, PageFacts, render};
use crate::server::Answer;
use crate::what_if;

/// Bytes for everything on a page but the map.
const RESERVE: usize = 1_500_000;
/// Cards that are gone are remembered, so that pages can remove them.
const MAX_GONE: usize = 10_000;

/// A device by its names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceName {
    pub driver: String,
    pub pool: String,
    pub device: String,
}

impl DeviceName {
    /// The device as a target of a command: `DRIVER/POOL/DEVICE`.
    pub fn target(&self) -> String {
        format!("{}/{}/{}", self.driver, self.pool, self.device)
    }
}

/// What the pages show, shared by the thread that publishes and those that serve.
#[derive(Debug)]
pub struct Board {
    facts: PageFacts,
    /// Replaced whole, so that nobody waits while a page is drawn.
    shown: Mutex<Arc<Shown>>,
    revision: watch::Sender<u64>,
}

/// The state of the board.
#[derive(Clone, Default, Debug)]
pub(crate) struct Shown {
    pub(crate) revision: u64,
    /// When the state was read from the cluster; empty if it is not known.
    pub(crate) taken: String,
    /// Why the state may be old.
    pub(crate) trouble: Option<String>,
    pub(crate) report: Arc<DevicesReport>,
    /// The map, drawn when the report is published, so that the first page does not wait for it.
    map: Arc<Markup>,
    /// The cards in the order of the map, each with the revision since when it is so.
    cards: Vec<(Arc<Card>, u64)>,
    /// The sections by their ids.
    parts: BTreeMap<&'static str, (Markup, u64)>,
    /// The ids of cards that are gone, and since when. In the order in which they went.
    gone: Vec<(String, u64)>,
    /// Of changes up to this revision not everything is remembered.
    forgotten: u64,
}

impl Shown {
    /// A section.
    pub(crate) fn part(&self, id: &str) -> &Markup {
        const NOTHING: &Markup = &PreEscaped(String::new());
        self.parts.get(id).map_or(NOTHING, |(part, _)| part)
    }
}

/// Changes, as the script of the pages reads them.
#[derive(Serialize)]
struct Changes<'a> {
    revision: u64,
    taken: &'a str,
    trouble: Option<&'a str>,
    /// The page has to be drawn anew.
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
    /// The card before it, if there is one.
    after: Option<&'a str>,
}

impl Board {
    /// A board that shows nothing yet.
    pub fn new(facts: PageFacts) -> Board {
        Board { facts, shown: Mutex::default(), revision: watch::Sender::new(0) }
    }

    fn shown(&self) -> Arc<Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn show(&self, shown: Shown) {
        let revision = shown.revision;
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(shown);
        self.revision.send_replace(revision);
    }

    /// Shows the report about the devices of a state. `trouble` is why that state may be old.
    pub fn publish(&self, report: DevicesReport, taken: &str, trouble: Option<String>) {
        let before = self.shown();
        let revision = before.revision + 1;
        let mut old: HashMap<&str, &(Arc<Card>, u64)> =
            before.cards.iter().map(|entry| (entry.0.id.as_str(), entry)).collect();
        let mut shown = Shown { revision, taken: taken.to_owned(), trouble, ..Shown::default() };
        for card in cards(&report) {
            let same = old.remove(card.id.as_str()).filter(|(before, _)| before.digest == card.digest);
            shown.cards.push(same.cloned().unwrap_or_else(|| (Arc::new(card.draw()), revision)));
        }
        shown.gone.clone_from(&before.gone);
        shown.gone.extend(old.into_keys().map(|id| (id.to_owned(), revision)));
        shown.forgotten = before.forgotten;
        shown.forget();
        for (id, part) in parts(&report) {
            let same = before.parts.get(id).filter(|(before, _)| before.0 == part.0);
            shown.parts.insert(id, same.cloned().unwrap_or((part, revision)));
        }
        let cards: Vec<&Card> = shown.cards.iter().map(|(card, _)| &**card).collect();
        shown.map = Arc::new(live_map(&cards, report.devices.len(), MAX_BYTES - RESERVE));
        shown.report = Arc::new(report);
        self.show(shown);
    }

    /// Says why the state may be old from now on.
    pub fn set_trouble(&self, trouble: String) {
        let before = self.shown();
        self.show(Shown { revision: before.revision + 1, trouble: Some(trouble), ..Shown::clone(&before) });
    }

    /// The revision of what is shown.
    pub fn revision(&self) -> watch::Receiver<u64> {
        self.revision.subscribe()
    }

    /// A page; `None` if there is none of that path.
    pub fn get(&self, path: &str) -> Option<Answer> {
        let page = [LivePage::Devices, LivePage::WhatIf].into_iter().find(|page| page.path() == path)?;
        let shown = self.shown();
        let body = match page {
            LivePage::Devices => devices_body(&shown),
            LivePage::WhatIf => what_if::body(&shown.map),
        };
        Some(render(page, &self.facts, &shown, &body))
    }

    /// What changed after a revision.
    pub fn changes_since(&self, revision: u64) -> Answer {
        let shown = self.shown();
        let is_forgotten = revision < shown.forgotten || revision > shown.revision;
        let mut changes = Changes {
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

    /// The device of a cell of the map.
    pub fn device(&self, id: &str) -> Option<DeviceName> {
        let shown = self.shown();
        let device = find_device(&shown.report, id)?;
        let text = |text: &str| text.to_owned();
        Some(DeviceName {
            driver: text(&device.driver),
            pool: text(&device.pool),
            device: text(&device.device),
        })
    }

    /// What is known about the device of a cell, and about those that share counters with it.
    pub fn details(&self, id: &str, related: &RelatedDevices) -> Option<Answer> {
        let shown = self.shown();
        let device = find_device(&shown.report, id)?;
        Some(Answer::html(draw_details(id, device, related, &shown.report).into_string()))
    }
}

impl Shown {
    /// Forgets the oldest cards that are gone.
    fn forget(&mut self) {
        let too_many = self.gone.len().saturating_sub(MAX_GONE);
        if let Some((_, last)) = self.gone.drain(..too_many).next_back() {
            self.forgotten = last;
        }
    }
}

fn find_device<'r>(report: &'r DevicesReport, id: &str) -> Option<&'r Device> {
    let plain = id.trim_end_matches('x');
    report.devices.iter().find(|device| device_id(device) == plain)
}

/// The sections that change with the report.
fn parts(report: &DevicesReport) -> [(&'static str, Markup); 5] {
    let drawn = pages::device_parts(report);
    [
        ("lead", drawn.lead),
        ("complete", drawn.completeness),
        ("classes", drawn.classes),
        ("taints", drawn.taints),
        ("namespaces", drawn.namespaces),
    ]
}

fn devices_body(shown: &Shown) -> Markup {
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
        section { h2 { "Devices by class" } div id="classes" { (shown.part("classes")) } }
        section { h2 { "Taints" } div id="taints" { (shown.part("taints")) } }
        section { h2 { "Devices by namespace" } div id="namespaces" { (shown.part("namespaces")) } }
    }
}

#[cfg(test)]
mod tests;
