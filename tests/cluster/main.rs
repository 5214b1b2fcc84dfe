//! A live cluster, played by an API server double on a real socket: registration, watches, and everything that fails.
#![expect(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests read files and clocks, build JSON, and may fail"
)]

mod audit;
#[path = "../support/balancer.rs"]
mod balancer;
mod chaos;
#[allow(dead_code, reason = "each test binary uses its part")]
#[path = "../serve/client.rs"]
mod client;
mod conformance;
mod connect;
mod definitions;
mod devices;
mod double;
mod drain_client;
mod e2e;
mod gates;
#[allow(dead_code, reason = "each test program uses its part")]
#[path = "../support/generated.rs"]
mod generated;
mod http;
mod large;
mod live;
mod monitoring;
mod namespaces;
mod policy_check;
mod policy_source;
mod process;
#[allow(dead_code, reason = "each test binary uses its part")]
#[path = "../support/program.rs"]
mod program;
#[path = "../support/promql.rs"]
mod promql;
mod real;
mod register;
#[allow(dead_code, reason = "each test binary uses its part")]
#[path = "../serve/running.rs"]
mod running;
mod snapshot;
mod state;
mod ui;
mod webhook;
