//! The pages of `tollgate ui` in a browser: HTTP on loopback, sessions, and the content that stays current.
//!
//! The crate does not know any rule of Kubernetes, and reads neither files nor clusters: the program hands the
//! commands' own reports to a [`LivePageStore`] and to [`WhatIfAnswer`], which draw them with `tollgate-picture`.
//!
//! Invariant: nothing here changes a cluster or writes a file, and nothing is served to other machines.

mod board;
mod details;
mod frame;
mod guard;
mod server;
mod session;
mod what_if;

pub use actix_web::web::Bytes;
pub use board::{DeviceName, LivePageStore};
pub use details::DevicesSharingCounters;
pub use frame::PageFacts;
pub use server::{Answer, Limits, LoopbackServer, Query, SessionUrlIssuer, Site};
pub use tokio::sync::{oneshot, watch};
pub use what_if::{Finding, WhatIfAnswer};
