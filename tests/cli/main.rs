//! The program `tollgate` as a user runs it: arguments, files and streams in; exit code, stdout and stderr out.
//!
//! Sessions that are worth reading are transcripts (`tests/transcripts`, run by `tests/fixtures`); here is what no
//! transcript can hold.

mod completions;
mod config;
mod console;
mod devices_cel;
mod drain;
mod forecast;
mod inputs;
mod lsp;
#[cfg(feature = "mcp")]
mod mcp;
mod mistakes;
#[path = "../support/parity.rs"]
mod parity;
mod pictures;
mod policy_parity;
#[path = "../support/program.rs"]
mod program;
mod report;
mod schemas;
mod streams;
mod suppression;
#[cfg(unix)]
mod terminal;
