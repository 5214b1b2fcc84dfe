//! Tollgate: admission control for Kubernetes device taints and tolerations.
//!
//! One engine, met in three places: `tollgate serve`, `tollgate validate`, and the admin's policy files.
//! Modules are listed in reading order; ARCHITECTURE.md is the map.

// — pure core: no I/O, no clock, no async —
pub mod field;
pub mod finding;
pub mod gofmt;
pub mod gotime;
pub mod names;
pub mod netaddr;
pub mod quantity;
pub mod sanitize;

pub mod cel;
pub mod doc;
pub mod profile;

pub mod admission;
pub mod api;
pub mod site;
pub mod tolerance;

pub mod impact;

pub mod rules;

pub mod defaults;
pub mod source;

pub mod policy;

pub mod engine;
pub mod registration;

pub mod report;

// — shells —
#[cfg(feature = "cli")]
pub mod files;

#[cfg(feature = "cluster")]
pub mod cluster;

#[cfg(feature = "serve")]
pub mod server;

#[cfg(feature = "cli")]
pub mod cli;
