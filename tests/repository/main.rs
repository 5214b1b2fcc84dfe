//! The repository itself: file sizes, documents, every way to install, image and workflows.

mod chart;
mod commands;
mod community;
mod features;
mod image;
mod install_checks;
mod installs;
mod integrations;
mod kustomize;
mod links;
mod logs;
mod manifests;
mod monitoring;
#[path = "../support/promql.rs"]
mod promql;
mod real_tools;
mod tidy;
mod workflows;
mod yaml;
