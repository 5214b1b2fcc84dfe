//! The pages, one module per command: from the JSON of a report to the text of a page.
//!
//! The records are those that `tollgate schema` describes.

mod audit;
mod devices;
mod drain;
mod forecast;
mod impact;

use maud::{Markup, html};
use tollgate_document::doc::Doc;

use crate::bars::{self, BarPart, DeviceClassBeforeAndAfter};
use crate::frame::group_thousands;
use crate::record::{self, Record};
use crate::text::{SafeText, first_parts_and_number_of_others, unbroken};
pub use audit::audit;
pub use devices::{device_page_sections_beside_map, devices};
pub use drain::{DrainCommands, drain};
pub use forecast::forecast;
pub use impact::impact;

/// Size in bytes after which the large table of a page gets no more rows.
const TABLE_BYTE_BUDGET: usize = 8_000_000;

/// A JSON record of a command, and the data that a page shows beside it.
#[derive(Clone, Copy, Debug)]
pub struct ReportJson<'a> {
    /// The record as `-o json` prints it.
    pub json: &'a str,
    /// The devices of each class before and after, as a list of `{"before": …, "after": …}` with the class records of
    /// `devices -o json`; `None` if it is not known.
    pub capacity: Option<&'a str>,
}

impl ReportJson<'_> {
    /// The record, and the devices of each class before and after.
    fn parse(&self) -> serde_json::Result<(Doc<'_>, Vec<DeviceClassBeforeAndAfter>)> {
        let class_changes = self.capacity.map_or_else(|| Ok(Vec::new()), serde_json::from_str);
        Ok((record::parse(self.json)?, class_changes?))
    }
}

/// Number of pods by what happens to them, as `forecast` and `impact` count them.
#[derive(Clone, Copy, Default, Debug)]
struct PodCountsByOutcome {
    fits: usize,
    sometimes: usize,
    pending: usize,
    unknown: usize,
    not_recreated: usize,
}

impl PodCountsByOutcome {
    fn of_record(totals: Record<'_>) -> PodCountsByOutcome {
        let [fits, sometimes, pending, unknown, not_recreated] =
            ["fits", "sometimes", "pending", "unknown", "notRecreated"].map(|key| totals.count(key));
        PodCountsByOutcome { fits, sometimes, pending, unknown, not_recreated }
    }

    /// The parts of a bar for the pods that do not fit in every course.
    fn unfitting_parts(self) -> [BarPart; 4] {
        [
            ("allocated", "fit only sometimes", self.sometimes),
            ("tainted", "stay Pending", self.pending),
            ("blocked", "have an unknown outcome", self.unknown),
            ("blocked", "are not recreated", self.not_recreated),
        ]
    }

    /// A bar with the number of pods by outcome. `fits` are the parts of the bar for the pods that fit.
    fn render_outcome_bar_and_numbers(self, fits: &[BarPart]) -> Markup {
        let parts = [fits, &self.unfitting_parts()].concat();
        let total = parts.iter().map(|part| part.2).sum();
        html! { div.keep { (bars::bar(&parts, total)) (bars::bar_numbers(&parts)) } }
    }
}

/// A large number at the top of a page: its CSS class, the number and what it counts.
type Tile = (&'static str, usize, &'static str);

/// The large numbers at the top of a page.
fn tiles(tiles: &[Tile]) -> Markup {
    html! {
        ul.tiles {
            @for (class, count, what) in tiles {
                li class=(class) { strong { (group_thousands(*count)) } (what) }
            }
        }
    }
}

/// The CSS class of a tile: alarming if its count is not zero.
fn tile_class_bad_unless_zero(count: usize) -> &'static str {
    if count > 0 { "bad" } else { "good" }
}

/// Notes as a list; nothing if there are none.
fn notes(title: &str, notes: &[SafeText]) -> Markup {
    html! {
        @if !notes.is_empty() {
            section { h2 { (title) } ul.notes { @for note in notes { li { (note) } } } }
        }
    }
}

/// The devices that a rule selects, as `DRIVER/POOL/DEVICE`; a part that the rule does not name is `any`.
fn selector_as_driver_pool_device(selector: Record<'_>) -> Markup {
    html! {
        @for (index, key) in ["driver", "pool", "device"].into_iter().enumerate() {
            @if index > 0 { "/" }
            @if let Some(part) = selector.text_if_any(key) { (unbroken(&part)) } @else { "any" }
        }
    }
}

/// Maximum number of nodes that a table of `pods` pods lists for each pod: 20, or `few` if the table has many pods.
fn max_listed_nodes_per_pod(pods: usize, few: usize) -> usize {
    if pods > 2_000 { few } else { 20 }
}

/// The section with the devices of each class before and after.
fn class_changes_section(changes: &[DeviceClassBeforeAndAfter], after: &str) -> Markup {
    titled_class_changes_section("Devices by class, before and after", changes, after)
}

fn titled_class_changes_section(title: &str, changes: &[DeviceClassBeforeAndAfter], after: &str) -> Markup {
    html! {
        @if !changes.is_empty() {
            section {
                h2 { (title) }
                p.hint { (after) }
                (bars::class_change_bars(changes))
            }
        }
    }
}

/// Namespace and name of an object, such as `research/llm-train-0`.
fn namespace_and_bold_name(object: Record<'_>) -> Markup {
    html! { (object.text("namespace")) "/" b { (object.text("name")) } }
}

/// A note that explains that a forecast is played many times, and what a course is.
const COURSES_NOTE: &str = "Some events depend on chance, such as which of several nodes the scheduler chooses. Tollgate therefore \
    plays a forecast many times. One such run is called a course.";

/// Kind and name of a workload, such as `StatefulSet llm-train`.
fn workload(workload: Record<'_>) -> Markup {
    html! { @if workload.exists() { (workload.text("kind")) " " (unbroken(&workload.text("name"))) } @else { "none" } }
}

fn joined(texts: &[SafeText]) -> String {
    texts.iter().map(|text| &**text).collect::<Vec<_>>().join(", ")
}

/// The first `most` texts as a list, and the number of the others.
fn listed_up_to(texts: &[SafeText], most: usize) -> Markup {
    first_parts_and_number_of_others(texts.iter().map(|text| unbroken(text)), most, [", ", " and "])
}
