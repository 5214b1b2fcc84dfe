//! Ways from an object to parts of it, through lists and maps, as data.
//!
//! Where a version keeps the body of a device and an exact request is known to the walk.

use crate::profile::Version;
use tollgate_document::doc::{FieldName, Value};
use tollgate_document::field::Path;

/// One step of a path through an object, such as a field or all items of a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PathStep {
    /// The member with this name, which has a number because every device of a slice is asked for it.
    Field(FieldName),
    Items,
    Values,
    /// The object in which a version keeps everything of a device but its name: `basic`, or the device itself.
    Body,
    /// The object in which a version keeps an exact request: `exactly`, or the request itself.
    Exactly,
}

/// Calls `found` with each value that the steps lead to, and its path.
pub(super) fn visit<'d>(
    value: Value<'d>,
    steps: &[PathStep],
    version: Version,
    at: &Path<'_>,
    found: &mut dyn FnMut(Value<'d>, &Path<'_>),
) {
    let Some((step, rest)) = steps.split_first() else {
        return found(value, at);
    };
    match *step {
        PathStep::Field(name) => visit(value.field(name), rest, version, &at.field(name.text), found),
        PathStep::Items => {
            for (index, item) in value.items().enumerate() {
                visit(item, rest, version, &at.index(index), found);
            }
        }
        PathStep::Values => {
            for (key, member) in value.members() {
                visit(member, rest, version, &at.key(key.text()), found);
            }
        }
        PathStep::Body if version.is_before_v1beta2() => {
            visit(value.get("basic"), rest, version, &at.field("basic"), found)
        }
        PathStep::Exactly if !version.is_before_v1beta2() => {
            visit(value.get("exactly"), rest, version, &at.field("exactly"), found);
        }
        PathStep::Body | PathStep::Exactly => visit(value, rest, version, at, found),
    }
}
