//! The annotations of a DeviceTaintRule that say until when it is needed, by whom and for what.
//!
//! Plain data. Policies require them, the command line writes them, and the state of a cluster remembers them. Nothing
//! deletes a rule because of them.

use tollgate_api::view::ObjectMeta;
use tollgate_formats::gotime::{self, Timestamp};

/// Annotation with the time, in RFC 3339 format, from which the rule is no longer needed.
pub const EXPIRES: &str = "tollgate.dev/expires";
/// Annotation with the person or team responsible for the rule.
pub const OWNER: &str = "tollgate.dev/owner";
/// Annotation with the purpose of the rule.
pub const REASON: &str = "tollgate.dev/reason";

/// All annotations, in the order in which they are listed.
pub const ALL: &[&str] = &[EXPIRES, OWNER, REASON];

/// Returns the value of an annotation; `None` if it is absent, blank or not a string.
pub fn non_blank_annotation<'d>(metadata: ObjectMeta<'d>, name: &str) -> Option<&'d str> {
    let value = metadata.annotations().get(name).str().trim();
    (!value.is_empty()).then_some(value)
}

/// Returns the time from which the rule is no longer needed; `None` if it has none, or none that can be read.
pub fn expiry_time(metadata: ObjectMeta<'_>) -> Option<Timestamp> {
    gotime::parse_rfc3339(non_blank_annotation(metadata, EXPIRES)?).ok()
}
