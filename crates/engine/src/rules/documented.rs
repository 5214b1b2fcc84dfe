//! Limits that the API documentation or the KEP states and no server enforces.
//!
//! Texts are those that upstream uses for the same fault elsewhere. Numbers come from `profile.documented`: a
//! profile whose document is silent has none.

super::table::documented_files!();
