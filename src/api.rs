//! Objects as the rules see them: schema, decoding and views. Knows the wire; knows no rule.
//!
//! A document is first made to *conform* to the schema of its kind, version and release: wrong types are reported,
//! unknown fields dropped and duplicate keys merged as the API server's decoder does. Views are cursors into the
//! result. Decoding never converts between versions, so a path can never be lost.

pub(crate) mod conform;
pub(crate) mod convert;
pub(crate) mod drafts;
pub(crate) mod equal;
pub mod fields;
pub(crate) mod gated;
pub(crate) mod print;
pub(crate) mod review;
pub mod schema;
pub(crate) mod view;
