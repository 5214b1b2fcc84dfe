//! Paths in an object as data. A step can lead to all items of a list or all values of a map, so one path can lead to
//! many values.
//!
//! Where a version has the fields of a device or of an exact request (in `basic`, in `exactly` or directly) is known to
//! `visit`.

use crate::profile::Version;
use tollgate_document::doc::{FieldName, Value};
use tollgate_document::field::Path;

/// One step of a path through an object, such as a field or all items of a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PathStep {
    /// The member with this name. A [`FieldName`] is found quickly, because it is looked up in every device of a slice.
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
        PathStep::Body if version.is_v1alpha3_or_v1beta1() => {
            visit(value.get("basic"), rest, version, &at.field("basic"), found)
        }
        PathStep::Exactly if !version.is_v1alpha3_or_v1beta1() => {
            visit(value.get("exactly"), rest, version, &at.field("exactly"), found);
        }
        PathStep::Body | PathStep::Exactly => visit(value, rest, version, at, found),
    }
}
