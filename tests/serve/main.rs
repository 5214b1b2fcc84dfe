//! The server on real sockets, asked by a real TLS client.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "tests read files and clocks, build JSON, and may fail"
)]

mod certificates;
mod client;
mod crowd;
mod empty_root;
mod limits;
mod memory;
#[path = "../support/parity.rs"]
mod parity;
mod patience;
mod policies;
mod process;
mod responses;
#[path = "../support/reviews.rs"]
mod reviews;
mod running;
