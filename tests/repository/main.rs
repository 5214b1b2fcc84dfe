//! The repository itself: module edges, file sizes, documents and manifests.

mod manifests;
mod tidy;
