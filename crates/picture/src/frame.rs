//! What every page has: the head with its Content-Security-Policy, where the data come from, and where to read more.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest as _, Sha256};
pub(crate) use tollgate_formats::count::group_thousands;
use tollgate_formats::count::plural_suffix;
use tollgate_formats::gotime;

use crate::table;
use crate::text::SafeText;

/// The script of every page: it sorts tables, filters tables and maps, and shows the device that is chosen.
pub const SCRIPT: &str = include_str!("script.js");

/// The CSS of every page.
pub fn style() -> String {
    format!("{}{}", include_str!("style.css"), table::style())
}

/// Where a report comes from. It is the same for all pages of a run.
#[derive(Clone, Default, Debug)]
pub struct ReportProvenance {
    /// Where the state comes from: `context prod (https://…)`, or the files of the dump.
    pub source: SafeText,
    /// When the state was read, in RFC 3339; `None` if the dump does not say so.
    pub taken: Option<SafeText>,
    /// What is missing from the state; empty if it is complete.
    pub incomplete: Vec<SafeText>,
    /// The command that made the page.
    pub command: SafeText,
    /// The version of Tollgate.
    pub version: SafeText,
    /// The folder of the documentation, as an address without a slash at the end.
    pub docs: SafeText,
    /// True if only the lead and the body are drawn, as a part of another page.
    pub is_part: bool,
}

/// A page before it is written.
#[derive(Debug)]
pub struct HtmlPage<'a> {
    pub page: &'a ReportProvenance,
    /// What the page is about, such as `Devices`.
    pub title: &'a str,
    /// The sentence at the top of the page with its most important result.
    pub lead: Markup,
    /// The Kubernetes release that the report is about.
    pub profile: &'a str,
    /// The time that the report is about.
    pub at: &'a str,
    pub body: Markup,
    /// Links to the documentation: its file below the folder of the documentation, and what it is about.
    pub read_more: &'a [(&'a str, &'a str)],
}

impl HtmlPage<'_> {
    /// The HTML text of the whole page; only its lead and body if it is a part of another page.
    pub fn render_page_or_part(self) -> String {
        if self.page.is_part {
            return html! { p.lead { (self.lead) } (self.body) }.into_string();
        }
        let style = style();
        let policy = content_security_policy(&style);
        let ReportProvenance { source, taken, incomplete, command, version, docs, .. } = self.page;
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta http-equiv="Content-Security-Policy" content=(policy);
                    meta name="viewport" content="width=device-width,initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    meta name="referrer" content="no-referrer";
                    title { (self.title) " – Tollgate" }
                    style { (PreEscaped(&style)) }
                }
                body {
                    (svg_fill_patterns())
                    header {
                        p.brand { span aria-hidden="true" {} "Tollgate" }
                        h1 { (self.title) }
                        p.lead { (self.lead) }
                        dl.facts {
                            div { dt { "Cluster state" } dd { (source) } }
                            div { dt { "Read" } dd { (state_read_time_and_age(taken.as_ref(), self.at)) } }
                            div { dt { "Completeness" } dd { (completeness(incomplete)) } }
                            div { dt { "Kubernetes" } dd { (self.profile) } }
                            div.wide { dt { "Command" } dd { code { (command) } } }
                        }
                    }
                    main id="main" { (self.body) }
                    footer {
                        p {
                            "Made by tollgate " (version) " for " time { (self.at) } "."
                            " Nothing in this file is loaded from elsewhere."
                        }
                        nav aria-label="Documentation" {
                            ul {
                                @for (path, label) in self.read_more {
                                    li { a href={ (docs) "/" (path) } rel="noreferrer" { (label) } }
                                }
                            }
                        }
                    }
                    script { (PreEscaped(SCRIPT)) }
                }
            }
        };
        page.into_string()
    }
}

/// The Content-Security-Policy of a page: only its own style and script, no frames, no forms and no requests.
fn content_security_policy(style: &str) -> String {
    let hash = |text: &str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)));
    format!(
        "default-src 'none'; style-src {}; script-src {}; base-uri 'none'; form-action 'none'",
        hash(style),
        hash(SCRIPT)
    )
}

/// SVG patterns by which the parts of drawings differ without color.
pub fn svg_fill_patterns() -> Markup {
    let stripes = |id: &str, turn: &str| {
        html! {
            pattern id=(id) width="6" height="6" patternUnits="userSpaceOnUse" patternTransform=(turn) {
                rect.ground width="6" height="6" {}
                rect.stripe width="2" height="6" {}
            }
        }
    };
    html! {
        svg.defs width="0" height="0" aria-hidden="true" focusable="false" {
            defs {
                g.tainted { (stripes("tainted", "rotate(45)")) }
                g.both { (stripes("both", "rotate(45)")) }
                g.blocked { (stripes("blocked", "rotate(-45)")) }
            }
        }
    }
}

/// A sentence about how long before the time of the report the state was read.
fn state_read_time_and_age(taken: Option<&SafeText>, at: &str) -> Markup {
    let Some(taken) = taken else {
        return html! { "at a time that the dump does not record" };
    };
    let (Ok(read), Ok(now)) = (gotime::parse_rfc3339(taken), gotime::parse_rfc3339(at)) else {
        return html! { (taken) };
    };
    let seconds = now.seconds.saturating_sub(read.seconds);
    let distance = match seconds.unsigned_abs() {
        0..60 => html! { "at the time of this report" },
        distance => {
            html! { (rough_duration(distance)) @if seconds > 0 { " before" } @else { " after" } " this report" }
        }
    };
    html! {
        time { (taken) } ", "
        @if seconds < OLD_AFTER_SECONDS {
            (distance)
        } @else {
            strong.warn { (distance) } "; the cluster may have changed since"
        }
    }
}

/// Seconds after which a page says that the state of the cluster may have changed.
const OLD_AFTER_SECONDS: i64 = 3600;

/// A duration in its largest unit: `3 min`, `5 h` or `12 days`.
fn rough_duration(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// A sentence that the state is complete, or a list of what is missing from it.
pub(crate) fn completeness(incomplete: &[SafeText]) -> Markup {
    if incomplete.is_empty() {
        return html! { "complete" };
    }
    html! {
        strong.warn { "incomplete" } ": "
        @for (index, what) in incomplete.iter().enumerate() {
            @if index > 0 { "; " }
            (what)
        }
    }
}

/// A number and its noun, with the digits of large numbers in groups: `20,000 pods`.
pub fn counted(count: usize, noun: &str) -> String {
    format!("{} {noun}{}", group_thousands(count), plural_suffix(count))
}
