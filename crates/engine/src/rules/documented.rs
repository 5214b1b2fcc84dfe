//! Limits that the API documentation or the KEP states but no server enforces.
//!
//! Messages are those that upstream uses for the same error elsewhere. Numbers come from `profile.documented`; a
//! profile whose documentation states none has none.

super::table::documented_files!();
