//! The repository itself: module edges, file sizes, documents, and every way to install.
//! The repository itself: module edges, file sizes, documents, manifests, image and workflows.

mod chart;
mod commands;
mod install_checks;
mod installs;
mod kustomize;
mod community;
mod image;
mod manifests;
mod real_tools;
mod monitoring;
#[path = "../support/promql.rs"]
mod promql;
mod tidy;
mod yaml;
mod workflows;
