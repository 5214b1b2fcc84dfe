//! The repository itself: module edges, file sizes, documents and manifests.

mod coverage_doc;
mod manifests;
mod tidy;
