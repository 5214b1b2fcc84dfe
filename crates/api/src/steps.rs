//! Paths in an object as text, such as `spec.devices[].<body>.taints`. A step can lead to all items of a list (`[]`) or
//! all values of a map (`{}`), so one path can lead to many values.
//!
//! `<body>` and `<exactly>` stand for the object in which a version has the fields of a device or of an exact request:
//! `basic`, `exactly`, or the device or request itself.

use crate::profile::Version;
use tollgate_document::doc::Value;
use tollgate_document::field::Path;

/// Calls `found` with each value that the path leads to, and where it is.
pub(super) fn visit<'d>(
    value: Value<'d>,
    path: &str,
    version: Version,
    at: &Path<'_>,
    found: &mut dyn FnMut(Value<'d>, &Path<'_>),
) {
    if path.is_empty() {
        return found(value, at);
    }
    let (step, rest) = path.split_once('.').unwrap_or((path, ""));
    let is_flat = version.is_v1alpha3_or_v1beta1();
    let step = match step {
        "<body>" if is_flat => "basic",
        "<exactly>" if !is_flat => "exactly",
        "<body>" | "<exactly>" => return visit(value, rest, version, at, found),
        _ => step,
    };
    let name = step.trim_end_matches(['[', ']', '{', '}']);
    let (member, at) = (value.get(name), at.field(name));
    match step.as_bytes().last() {
        Some(b']') => {
            for (index, item) in member.items().enumerate() {
                visit(item, rest, version, &at.index(index), found);
            }
        }
        Some(b'}') => {
            for (key, value) in member.members() {
                visit(value, rest, version, &at.key(key.text()), found);
            }
        }
        _ => visit(member, rest, version, &at, found),
    }
}
