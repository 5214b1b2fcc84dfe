//! The formats of Go and Kubernetes: quoting and numbers ([`gofmt`], [`gofloat`]), times ([`gotime`]), names ([`names`]), interface
//! addresses ([`netaddr`]), quantities ([`quantity`]), text that is safe to print ([`sanitize`]), counts in
//! sentences ([`count`]), and enums with names ([`named_enum`]).
//!
//! Each module reads one format exactly as Kubernetes does, and has the texts of its errors, byte for byte. Nothing
//! here knows objects, fields or releases.
//!
//! ```
//! use tollgate_formats::{gofmt, quantity::Quantity};
//!
//! assert_eq!(gofmt::quote("a\u{7}"), r#""a\a""#);
//! assert!(Quantity::parse("40Gi").is_ok());
//! ```

pub mod count;
pub mod gofloat;
pub mod gofmt;
pub mod gotime;
mod named;
pub mod names;
pub mod netaddr;
pub mod quantity;
pub mod sanitize;
