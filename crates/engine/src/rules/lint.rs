//! Legal, and almost surely a mistake: one file per lint of ours.
//!
//! A lint says what will happen, not what is bad style. Taints, tolerations and selectors come from sites.

mod reserved;

pub use allocated_without_finalizer::loses_last_finalizer;

super::table::lint_files!();
