//! Drains that act in a running cluster: the run itself, what it shows, and its settings.

mod commands;
mod differences;
mod event;
mod live_server;
mod lock;
mod preflight;
mod reporter;
mod rule_object;
mod rules;
mod run;
mod server;
pub(super) mod settings;
pub(super) mod start;
#[cfg(test)]
mod tests;
mod time;
mod undrain;
mod wave_end;
mod waves;
mod workloads;
