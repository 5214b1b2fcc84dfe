//! Converts an object to the shape of another version: a stored object, to compare it with the new one, and both for
//! policy expressions, which use one shape.
//!
//! There are two shapes: before v1beta2, the body of a device is in `basic` and a request is flat; since then it is
//! the other way round. Only these parts are moved. Rules never check a converted object.

use super::view::{Request, View};
use crate::profile::{ApiKind, Version};
use tollgate_document::doc::{Builder, Doc, Span, Value, ValueKind};

/// A copy of an object in the shape of the version `to`; `None` if the versions have the same shape for its kind.
pub fn convert_if_shape_differs(
    value: Value<'_>,
    kind: ApiKind,
    from: Version,
    to: Version,
) -> Option<Doc<'_>> {
    let way: &[&str] = match kind {
        ApiKind::ResourceSlice => &["spec", "devices"],
        ApiKind::ResourceClaim => &["spec", "devices", "requests"],
        ApiKind::ResourceClaimTemplate => &["spec", "spec", "devices", "requests"],
        _ => return None,
    };
    if from.is_v1alpha3_or_v1beta1() == to.is_v1alpha3_or_v1beta1() {
        return None;
    }
    let mut out = Builder::with_capacity(value.doc().source(), value.doc().syntax(), value.node_count());
    let is_slice = kind == ApiKind::ResourceSlice;
    copy_changing_list_items(&mut out, value, way, &|out, item| match (
        is_slice,
        from.is_v1alpha3_or_v1beta1(),
    ) {
        (true, true) => write_inlining_member(out, item, "basic"),
        (true, false) => write_nesting_members(out, item, "basic", &["name"]),
        (false, true) if Request::of(item).exactly(from).is_none() => out.copy(item),
        (false, true) => write_nesting_members(out, item, "exactly", &["name", "firstAvailable"]),
        (false, false) => write_inlining_member(out, item, "exactly"),
    });
    Some(out.finish())
}

/// Writes a copy of `value` in which `change` writes each object of the list that the fields `way` lead to.
fn copy_changing_list_items<'d>(
    out: &mut Builder<'d>,
    value: Value<'_>,
    way: &[&str],
    change: &dyn Fn(&mut Builder<'d>, Value<'_>),
) {
    match (way.split_first(), value.kind()) {
        (None, ValueKind::Array) => {
            out.open(ValueKind::Array, value.span());
            for item in value.items() {
                if item.kind() == ValueKind::Object { change(out, item) } else { out.copy(item) }
            }
            out.close(value.span().end);
        }
        (Some((step, rest)), ValueKind::Object) => {
            out.open(ValueKind::Object, value.span());
            for (key, member) in value.members() {
                out.copy(key);
                if key.text() == *step {
                    copy_changing_list_items(out, member, rest, change)
                } else {
                    out.copy(member)
                }
            }
            out.close(value.span().end);
        }
        _ => out.copy(value),
    }
}

/// Writes an object in which the member `inner` is replaced by its members.
fn write_inlining_member(out: &mut Builder<'_>, item: Value<'_>, inner: &str) {
    out.open(ValueKind::Object, item.span());
    for (key, member) in item.members() {
        if key.text() == inner {
            copy_members(out, member, |_| true);
        } else {
            out.copy(key);
            out.copy(member);
        }
    }
    out.close(item.span().end);
}

/// Writes an object with all members except `keep` in a new member `inner`.
fn write_nesting_members(out: &mut Builder<'_>, item: Value<'_>, inner: &'static str, keep: &[&str]) {
    out.open(ValueKind::Object, item.span());
    copy_members(out, item, |key| keep.contains(&key));
    out.write_constant(ValueKind::String, Span::default(), inner);
    out.open(ValueKind::Object, Span::default());
    copy_members(out, item, |key| !keep.contains(&key));
    out.close(0);
    out.close(item.span().end);
}

/// Writes copies of the members whose keys `wanted` accepts.
fn copy_members(out: &mut Builder<'_>, object: Value<'_>, wanted: impl Fn(&str) -> bool) {
    for (key, member) in object.members().filter(|(key, _)| wanted(key.text())) {
        out.copy(key);
        out.copy(member);
    }
}

#[cfg(test)]
mod tests {
    use super::convert_if_shape_differs;
    use crate::profile::{ApiKind, Version};
    use tollgate_document::doc::parse;

    #[test]
    fn shapes_go_both_ways() {
        for (kind, flat, nested) in [
            (
                ApiKind::ResourceClaim,
                r#"{"spec":{"devices":{"requests":[{"count":1,"name":"a"},{"firstAvailable":[],"name":"b"},null]}}}"#,
                r#"{"spec":{"devices":{"requests":[{"exactly":{"count":1},"name":"a"},{"firstAvailable":[],"name":"b"},null]}}}"#,
            ),
            (
                ApiKind::ResourceSlice,
                r#"{"spec":{"devices":[{"basic":{"taints":[]},"name":"a"}]}}"#,
                r#"{"spec":{"devices":[{"name":"a","taints":[]}]}}"#,
            ),
        ] {
            let (old, new) = (parse(flat).unwrap(), parse(nested).unwrap());
            let there = convert_if_shape_differs(old.root(), kind, Version::V1beta1, Version::V1).unwrap();
            assert_eq!(there.root().to_json(), nested);
            let back = convert_if_shape_differs(new.root(), kind, Version::V1, Version::V1beta1).unwrap();
            assert_eq!(back.root().to_json(), flat);
            assert!(convert_if_shape_differs(new.root(), kind, Version::V1, Version::V1beta2).is_none());
        }
    }
}
