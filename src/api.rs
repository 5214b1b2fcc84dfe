//! Objects as the rules see them: schema, decoding and views. Knows the wire; knows no rule.
//!
//! A document is first made to *conform* to the schema of its kind, version and release: wrong types are reported,
//! unknown fields dropped and duplicate keys merged as the API server's decoder does. Views are cursors into the
//! result. Decoding never converts between versions, so a path can never be lost.

pub mod conform;
pub mod convert;
pub mod equal;
pub mod fields;
pub mod print;
pub mod review;
pub mod schema;
pub mod view;
