//! Numbers as bars: the devices of each class by state, and the same before and after a change.
//!
//! A bar is a drawing without text; the numbers are written beside it.

use maud::{Markup, html};
use serde::Deserialize;

use crate::frame::group_thousands;
use crate::text::SafeText;

/// The devices of a class, as `devices -o json` counts them.
#[derive(Clone, Default, Debug, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DeviceClassCounts {
    pub name: SafeText,
    pub total: usize,
    pub allocated: usize,
    pub tainted: usize,
    pub allocated_and_tainted: usize,
    pub free: usize,
    /// Why a selector of the class does not compile; `None` if all do.
    pub error: Option<SafeText>,
}

/// The devices of a class before and after a change.
#[derive(Clone, Default, Debug, Deserialize)]
#[serde(default)]
pub struct DeviceClassBeforeAndAfter {
    pub before: DeviceClassCounts,
    pub after: DeviceClassCounts,
}

/// A part of a bar: its CSS class, its name and its size.
pub(crate) type BarPart = (&'static str, &'static str, usize);

impl DeviceClassCounts {
    /// The parts of the bar of a class, which do not overlap.
    fn bar_parts(&self) -> [BarPart; 5] {
        let both = self.allocated_and_tainted;
        let tainted = self.tainted.saturating_sub(both);
        let shown = self.allocated + self.free + tainted;
        [
            ("allocated", "allocated", self.allocated.saturating_sub(both)),
            ("both", "allocated and tainted", both),
            ("free", "free", self.free),
            ("tainted", "tainted and not allocated", tainted),
            ("blocked", "blocked, neither allocated nor tainted", self.total.saturating_sub(shown)),
        ]
    }
}

/// Bars with the devices of each class by state.
pub fn class_bars(classes: &[DeviceClassCounts]) -> Markup {
    html! {
        ul.bars {
            @for class in classes {
                li {
                    h3 { (class.name) }
                    @if let Some(error) = &class.error { p.warn { "The selector does not compile: " (error) } }
                    (state_bar(class))
                    (bar_numbers(&class.bar_parts()))
                }
            }
        }
    }
}

/// The bar of one group of devices, without numbers.
pub(crate) fn state_bar(class: &DeviceClassCounts) -> Markup {
    bar(&class.bar_parts(), class.total)
}

/// Bars with the devices of each class before and after a change.
pub fn class_change_bars(changes: &[DeviceClassBeforeAndAfter]) -> Markup {
    html! {
        ul.bars {
            @for DeviceClassBeforeAndAfter { before, after } in changes {
                @let total = before.total.max(after.total);
                li {
                    h3 {
                        (before.name) " "
                        span.delta { (group_thousands(before.free)) " → " (group_thousands(after.free)) " free" }
                    }
                    div.pair {
                        span { "before" } (bar(&before.bar_parts(), total)) (bar_numbers(&before.bar_parts()))
                        span { "after" } (bar(&after.bar_parts(), total)) (bar_numbers(&after.bar_parts()))
                    }
                }
            }
        }
    }
}

/// A bar with parts side by side; `total` is the whole width.
pub(crate) fn bar(parts: &[BarPart], total: usize) -> Markup {
    let mut start = 0;
    html! {
        svg.bar width="100%" height="18" aria-hidden="true" focusable="false" {
            rect.rest width="100%" height="18" {}
            @for (class, _, size) in parts.iter().filter(|part| part.2 > 0) {
                rect class=(class) x=(percent(start, total)) width=(percent(*size, total)) height="18" {}
                @let () = start += size;
            }
        }
    }
}

/// The numbers of the parts of a bar, each with a square in the fill of its part.
pub(crate) fn bar_numbers(parts: &[BarPart]) -> Markup {
    html! {
        p.numbers {
            @for (class, name, size) in parts.iter().filter(|part| part.2 > 0) {
                span { (fill_swatch(class)) (group_thousands(*size)) " " (name) } " "
            }
        }
    }
}

/// A small square with the fill of a part, which links a number to the bar.
pub(crate) fn fill_swatch(class: &str) -> Markup {
    html! {
        svg.key width="12" height="12" aria-hidden="true" focusable="false" {
            rect class=(class) width="12" height="12" rx="2" {}
        }
    }
}

/// A share of a whole, such as `12.50%`.
#[expect(clippy::cast_precision_loss, reason = "a position in a drawing")]
pub(crate) fn percent(part: usize, whole: usize) -> String {
    let share = part as f64 * 100.0 / whole.max(1) as f64;
    format!("{:.2}%", share.min(100.0))
}
