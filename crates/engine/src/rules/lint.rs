//! Lints: valid objects that are almost certainly a mistake. One file per lint, or per group of lints that
//! exclude each other.
//!
//! A lint states the consequence, not a matter of style. The module `site` finds taints, tolerations and selectors.

mod reserved;

pub use allocated_without_finalizer::allocated_claim_loses_last_finalizer;

super::table::lint_files!();
