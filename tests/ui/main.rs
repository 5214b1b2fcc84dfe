//! `tollgate ui` as a user runs it: the program with a dump, over sockets and in a real browser.
//!
//! Who is refused in general is tested in `crates/ui/tests`; here is the program behind the pages.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::format_push_string,
    clippy::format_collect,
    clippy::disallowed_macros,
    clippy::print_stderr,
    reason = "a test program: it reads files and the clock, and JSON of a browser"
)]

#[path = "../support/browser.rs"]
mod browser;
#[path = "../support/hostile.rs"]
mod hostile;
mod pages;
#[path = "../support/program.rs"]
mod program;
mod questions;
mod running;
