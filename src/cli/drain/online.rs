//! Drains that act in a running cluster: the run itself, what it shows, and its settings.

pub(super) mod commands;
mod differences;
mod event;
mod halt;
mod live_server;
mod lock;
mod preflight;
mod prove;
mod recording;
pub(super) mod reporter;
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
mod wave_record;
mod waves;
mod workloads;
