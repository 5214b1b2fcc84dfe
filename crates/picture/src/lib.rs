//! Draws the JSON reports of Tollgate as HTML pages.
//!
//! A page is one file. It loads nothing, opens from a mail, and is complete without script; the script only sorts and
//! filters what is there. [`pages`] has one function per command, from the JSON that `-o json` prints to the text of a
//! page. A live page builds its own [`HtmlPage`] from the same parts: [`map`], [`bars`], [`table`].
//!
//! This crate reads no files and no clock, and does not access clusters. It draws the numbers of the reports and does
//! not compute results of its own.
//!
//! Invariant: text of a report is a [`SafeText`], so it is shown and does nothing else; a page has no style attributes
//! and no handlers, and its Content-Security-Policy allows only its own style and script, by their hashes.

pub mod bars;
mod frame;
pub mod map;
pub mod pages;
mod record;
pub mod table;
mod text;
mod timeline;

pub use frame::{HtmlPage, ReportProvenance, SCRIPT, counted, style, svg_fill_patterns};
pub use maud::{Markup, PreEscaped, html};
pub use text::SafeText;

/// Maximum size of a page in bytes. Parts that do not fit are counted, and the page says so.
pub const MAX_PAGE_BYTES: usize = 10_000_000;
