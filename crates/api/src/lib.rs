//! The Kubernetes API as data, and objects as the rules see them: releases ([`profile`]), types ([`schema`],
//! [`fields`]), decoding ([`conform`]) and views ([`view`]). Nothing here knows a rule.
//!
//! A document is first made to *conform* to the schema of its kind, version and release: wrong types are reported,
//! unknown fields dropped and duplicate keys merged as the API server's decoder does. Views are cursors into the
//! result. Decoding never converts between versions, so a path can never be lost.

pub mod conform;
pub mod convert;
pub mod drafts;
pub mod equal;
pub mod fields;
pub mod gated;
pub mod labels;
pub mod omit;
pub mod print;
pub mod profile;
pub mod review;
pub mod schema;
mod steps;
pub mod view;
