//! Tables that the script sorts and filters.
//!
//! Rows are in groups, so that a browser lays out only those in sight. On narrow screens a row is a block, and each cell
//! has its label from the style, which costs no bytes per row. On paper they are tables of the browser, which repeats the
//! headings on each page.

use std::fmt::Write as _;

use maud::{Markup, PreEscaped, html};

use crate::frame::{counted, group_thousands};

/// The columns of one kind of table, which share CSS rules.
#[derive(Clone, Copy, Debug)]
pub struct TableKind {
    /// The CSS class of the table.
    pub class: &'static str,
    /// The noun for a row of the table, such as `pod`.
    pub noun: &'static str,
    /// The labels of the columns, each with its share of the width.
    pub columns: &'static [(&'static str, u8)],
}

/// All kinds of tables, for which [`style`] writes CSS rules.
const KINDS: [&TableKind; 12] = [
    &COMBINED_CHANGES,
    &TAINTS,
    &NAMESPACES,
    &IMPACT_PODS,
    &RESTARTED_GROUPS,
    &FORECAST_PODS,
    &FORECAST_PODS_THAT_FIT,
    &REFUSED_OBJECTS,
    &DRAIN_PODS,
    &FINDINGS,
    &FINDING_COUNTS,
    &DUE_OR_OVERDUE,
];

pub(crate) const COMBINED_CHANGES: TableKind = TableKind {
    class: "t-parts",
    noun: "change",
    columns: &[("Change", 6), ("Devices", 1), ("Evicted pods", 2), ("Only by it", 2)],
};
pub(crate) const TAINTS: TableKind = TableKind {
    class: "t-taints",
    noun: "taint",
    columns: &[("Taint", 10), ("Source", 8), ("Devices", 3), ("Allocated", 3), ("Which devices", 7)],
};
pub(crate) const NAMESPACES: TableKind = TableKind {
    class: "t-namespaces",
    noun: "namespace",
    columns: &[("Namespace", 3), ("Devices held", 1), ("Claims", 1)],
};
pub(crate) const IMPACT_PODS: TableKind = TableKind {
    class: "t-impact",
    noun: "pod",
    columns: &[("Pod", 4), ("Workload", 3), ("Outcome", 2), ("Evicted at", 4), ("Why", 6)],
};
pub(crate) const RESTARTED_GROUPS: TableKind = TableKind {
    class: "t-groups",
    noun: "group",
    columns: &[("Group", 4), ("Pods", 1), ("Lost", 1), ("Restarted", 1), ("Effect", 4)],
};
pub(crate) const FORECAST_PODS: TableKind = TableKind {
    class: "t-forecast",
    noun: "pod",
    columns: &[("Pod", 4), ("Workload", 3), ("Outcome", 2), ("Goes to one of", 6), ("Why", 5)],
};
/// The table of pods in a forecast in which all of them fit, so that no column explains why they do not.
pub(crate) const FORECAST_PODS_THAT_FIT: TableKind = TableKind {
    class: "t-fits",
    noun: "pod",
    columns: &[("Pod", 4), ("Workload", 3), ("Outcome", 2), ("Goes to one of", 6)],
};
pub(crate) const REFUSED_OBJECTS: TableKind =
    TableKind { class: "t-refused", noun: "object", columns: &[("Object", 3), ("File", 2), ("Why", 5)] };
pub(crate) const DRAIN_PODS: TableKind = TableKind {
    class: "t-drain",
    noun: "pod",
    columns: &[
        ("Pod", 4),
        ("Workload", 3),
        ("From", 2),
        ("From devices", 3),
        ("Wave", 1),
        ("Goes to one of", 5),
    ],
};
pub(crate) const FINDINGS: TableKind = TableKind {
    class: "t-findings",
    noun: "finding",
    columns: &[("Object", 4), ("Level", 1), ("Rule", 3), ("Message", 7)],
};
pub(crate) const FINDING_COUNTS: TableKind = TableKind {
    class: "t-rules",
    noun: "row",
    columns: &[("Name", 4), ("Denied", 1), ("Warned", 1), ("Audited", 1), ("Objects", 1)],
};
pub(crate) const DUE_OR_OVERDUE: TableKind =
    TableKind { class: "t-due", noun: "row", columns: &[("What", 4), ("When", 2), ("Details", 5)] };

/// Number of rows that a browser lays out together.
const ROWS_PER_GROUP: usize = 40;

/// Minimum number of rows of a table that gets a filter.
const MIN_ROWS_TO_FILTER: usize = 6;

/// Minimum number of rows of a table of which a browser lays out only the rows in sight.
const MIN_ROWS_TO_DEFER: usize = 500;

/// A table of HTML rows, to which rows are added.
#[derive(Debug)]
pub struct Table {
    kind: &'static TableKind,
    rows: String,
    count: usize,
    omitted: usize,
    /// Number of bytes that further rows may have.
    budget: usize,
}

impl Table {
    /// A table that gets no more rows once they have more than `budget` bytes.
    pub fn new(kind: &'static TableKind, budget: usize) -> Table {
        Table { kind, rows: String::new(), count: 0, omitted: 0, budget }
    }

    /// Adds a row with a cell for each column, or counts it if the table is full.
    pub fn add_row_or_count_omitted<const CELLS: usize>(&mut self, cells: [Markup; CELLS]) {
        if self.omitted > 0 || self.rows.len() > self.budget {
            self.omitted += 1;
            return;
        }
        if self.count.is_multiple_of(ROWS_PER_GROUP) {
            self.rows.push_str(if self.count == 0 { "<tbody>" } else { "</tbody><tbody>" });
        }
        self.count += 1;
        self.rows.push_str("<tr>");
        for PreEscaped(cell) in cells {
            self.rows.extend(["<td>", &cell, "</td>"]);
        }
        self.rows.push_str("</tr>");
    }

    /// The HTML of the table with its caption, or the sentence `if_empty` if it has no rows.
    pub fn finish(self, caption: &str, if_empty: &str) -> Markup {
        let Table { kind, rows, count, omitted, .. } = self;
        if count == 0 {
            return html! { p.none { (if_empty) } };
        }
        html! {
            div.data {
                @if count >= MIN_ROWS_TO_FILTER {
                    div.tools hidden {
                        label { "Filter " input.filter type="search" autocomplete="off" spellcheck="false"; }
                        output data-noun=(kind.noun) { (counted(count, kind.noun)) }
                    }
                }
                @if omitted > 0 {
                    p.omitted {
                        "The table has the first " (group_thousands(count)) " rows. "
                        (group_thousands(omitted)) " more are left out to keep this file small; use "
                        code { "-o json" } " for all of them."
                    }
                }
                table.(kind.class).many[count > MIN_ROWS_TO_DEFER] {
                    caption { (caption) }
                    thead { tr { @for (label, _) in kind.columns { th scope="col" { (label) } } } }
                    (PreEscaped(rows)) (PreEscaped("</tbody>"))
                }
            }
        }
    }
}

/// The CSS rules for all kinds of tables.
pub(crate) fn style() -> String {
    let (mut wide, mut narrow, mut print) = (String::new(), String::new(), String::new());
    for TableKind { class, columns, .. } in KINDS {
        _ = write!(wide, ".{class} tr{{grid-template-columns:");
        for (_, share) in *columns {
            _ = write!(wide, "minmax(0,{share}fr) ");
        }
        wide.push('}');
        let total: u32 = columns.iter().map(|(_, share)| u32::from(*share)).sum();
        for (index, (label, share)) in columns.iter().enumerate() {
            _ = write!(narrow, ".{class} td:nth-child({})::before{{content:\"{label}\"}}", index + 1);
            let percent = u32::from(*share) * 100 / total.max(1);
            _ = write!(print, ".{class} th:nth-child({}){{width:{percent}%}}", index + 1);
        }
    }
    format!("{wide}@media screen and (max-width:46rem){{{narrow}}}@media print{{{print}}}")
}
