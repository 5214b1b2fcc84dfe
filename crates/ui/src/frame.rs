//! What both live pages have: the head, the links between them, whether the state is current, and the scripts.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest as _, Sha256};
use tollgate_picture::{SCRIPT, SafeText, style, svg_fill_patterns};

use crate::board::LivePageContent;
use crate::server::Answer;

/// The script of the live pages, added after the script that all pages have.
const LIVE_SCRIPT: &str = include_str!("live.js");
/// The CSS of the live pages, added after the CSS that all pages have.
const LIVE_STYLE: &str = include_str!("live.css");

/// Facts about the origin of the state that every live page shows and that do not change.
#[derive(Clone, Default, Debug)]
pub struct PageFacts {
    /// Where the state comes from: `context dev (https://…)`, or the files of the dump.
    pub source: String,
    pub is_dump: bool,
    /// The command that serves the pages, as a user would type it.
    pub command: String,
    /// The version of Tollgate.
    pub version: &'static str,
    /// The folder of the documentation, as an address without a slash at the end.
    pub docs: &'static str,
}

/// One of the live pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LivePage {
    Devices,
    WhatIf,
}

impl LivePage {
    const ALL: [LivePage; 2] = [LivePage::Devices, LivePage::WhatIf];

    pub(crate) fn path(self) -> &'static str {
        match self {
            LivePage::Devices => "/",
            LivePage::WhatIf => "/what-if",
        }
    }

    fn title(self) -> &'static str {
        match self {
            LivePage::Devices => "Devices",
            LivePage::WhatIf => "What if",
        }
    }
}

/// The whole live page with this body.
pub(crate) fn render(page: LivePage, facts: &PageFacts, shown: &LivePageContent, body: &Markup) -> Answer {
    let style = style() + LIVE_STYLE;
    let hash = |text: &str| STANDARD.encode(Sha256::digest(text));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}' 'sha256-{}'; connect-src 'self'; img-src data:; base-uri \
         'none'; form-action 'none'",
        hash(&style),
        hash(SCRIPT),
        hash(LIVE_SCRIPT)
    );
    let LivePageContent { revision, taken, trouble, report, .. } = shown;
    let title = page.title();
    let text = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width,initial-scale=1";
                meta name="color-scheme" content="light dark";
                link rel="icon" href="data:,";
                title { (title) " – Tollgate" }
                style { (PreEscaped(&style)) }
            }
            body data-revision=(revision) data-taken=(taken) data-page=(page.path()) data-dump[facts.is_dump] {
                a.skip href="#main" { "Skip to the content" }
                (svg_fill_patterns())
                header {
                    p.brand { span aria-hidden="true" {} "Tollgate" }
                    nav.pages aria-label="Pages" {
                        ul {
                            @for other in LivePage::ALL {
                                li {
                                    a href=(other.path()) aria-current=[(other == page).then_some("page")] { (other.title()) }
                                }
                            }
                        }
                    }
                    h1 { (title) }
                    p.lead id="lead" { (shown.section_html("lead")) }
                    p.live id="live" data-trouble=[trouble.as_deref()] {
                        span id="live-state" role="status" { "The page needs JavaScript to stay current." }
                        " " span id="live-age" {}
                    }
                    dl.facts {
                        div { dt { "Cluster state" } dd { (SafeText::from(facts.source.as_str())) } }
                        div { dt { "Completeness" } dd id="complete" { (shown.section_html("complete")) } }
                        div { dt { "Kubernetes" } dd { (report.profile) } }
                        div.wide { dt { "Command" } dd { code { (SafeText::from(facts.command.as_str())) } } }
                    }
                }
                main id="main" tabindex="-1" { (body) }
                footer {
                    p { "Tollgate " (facts.version) " serves this page on this machine only, and changes nothing." }
                    nav aria-label="Documentation" {
                        ul {
                            @for (path, label) in READ_MORE {
                                li { a href={ (facts.docs) "/" (path) } rel="noreferrer noopener" target="_blank" { (label) } }
                            }
                        }
                    }
                }
                script { (PreEscaped(SCRIPT)) }
                script { (PreEscaped(LIVE_SCRIPT)) }
            }
        }
    };
    Answer::page(text.into_string(), &policy)
}

const READ_MORE: [(&str, &str); 4] = [
    ("guides/ui.md", "These pages"),
    ("understand/devices.md", "States of a device"),
    ("understand/forecast.md", "How a forecast is made"),
    ("understand/drain.md", "How a drain works"),
];
