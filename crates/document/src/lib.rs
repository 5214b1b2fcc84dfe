//! A document: its values ([`doc`]), where they are ([`field`]), what is said about them ([`finding`]), and the file
//! that they were written in ([`source`]).
//!
//! A [`doc::Doc`] is a tape of values with their positions. [`doc::parse`] reads JSON with Go's rules, and
//! [`source::documents`] reads YAML and JSON files as kubectl does. A [`finding::Finding`] names a field and can have a
//! fix, which [`source`] turns into an edit of the file. Nothing here knows Kubernetes' kinds or rules.
//!
//! ```
//! let document = tollgate_document::source::documents("a: {b: 1}").next().expect("one").expect("it can be read");
//! assert!(document.doc.root().get("a").get("b").exists());
//! ```

pub mod doc;
pub mod field;
pub mod finding;
pub mod source;
