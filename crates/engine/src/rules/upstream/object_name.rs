//! Names and name prefixes of objects.
//!
//! The server generates the name of an object that has only `generateName`, and then checks both. The random end is
//! printed as `<rand>`. Valid names and prefixes cost no allocation.

use std::borrow::Cow;

use super::prepared::PreparedMeta;
use crate::admission::DecodedAttributes;
use crate::rules::table::OBJECT_NAME;
use crate::rules::{RuleContext, RuleOrigin};
use tollgate_api::profile::ApiKind;
use tollgate_document::field::Path;
use tollgate_document::finding::BadValue;
use tollgate_formats::gofmt;
use tollgate_formats::names::{self, LengthUnitWord};

/// Bytes of `generateName` that are kept before the random end.
const KEPT_PREFIX_BYTES: usize = 58;
/// Letters that stand for the random end while a name is checked.
const RANDOM_SUFFIX_PLACEHOLDER: &[u8; 5] = b"xxxxx";

/// Checks the name of a new object, or its `generateName` if it has no name.
pub fn check_name_on_create(
    cx: &mut RuleContext<'_, '_>,
    at: &Path<'_>,
    kind: ApiKind,
    meta: &PreparedMeta<'_>,
) {
    if !meta.name.is_empty() || meta.generate_name.is_empty() {
        return check_name(cx, at, kind, meta);
    }
    check_generate_name(cx, at, kind, meta.generate_name);
    check_generated_name(cx, at, kind, meta.generate_name);
}

/// Checks the name of an object as its kind requires. Unlike for a new object, a missing name is reported even if
/// there is a `generateName`.
// upstream v1.36 ValidateObjectMetaAccessor with NameIsDNSSubdomain
pub fn check_name(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, kind: ApiKind, meta: &PreparedMeta<'_>) {
    check_generate_name(cx, at, kind, meta.generate_name);
    if meta.name.is_empty() {
        report_if_class_name_not_generated(cx, at, kind, meta.generate_name);
        return report_missing_name(cx, at);
    }
    names::check_dns_subdomain(meta.name, name_length_unit(cx, kind), &mut |detail| {
        let meant = names::go_to_lower(meta.name).replace(['_', ' '], "-");
        let hint = names::has_subdomain_shape(&meant).then(|| format!("did you mean `{meant}`?"));
        cx.report(OBJECT_NAME, &at.field("name")).invalid(meta.name, detail).help_if(hint);
    });
}

/// Checks what every update requires: that the name can be part of a URL.
// upstream v1.36 rest.BeforeUpdate with ValidatePathSegmentName
pub fn check_path_segment(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, meta: &PreparedMeta<'_>) {
    check_generate_name_segment(cx, at, meta.generate_name);
    if meta.name.is_empty() {
        return report_missing_name(cx, at);
    }
    names::check_path_segment(meta.name, &mut |detail| {
        cx.report(OBJECT_NAME, &at.field("name")).invalid(meta.name, detail);
    });
}

/// Checks that the `generateName` of a new object can be part of a URL, which the server does only if it has found
/// nothing else.
// upstream v1.36 rest.BeforeCreate, after Validate of the strategy
pub fn check_generate_name_if_no_errors(cx: &mut RuleContext<'_, '_>, admission: &DecodedAttributes<'_>) {
    if admission.old_object.is_some() || !admission.object.kind().has_full_schema() {
        return;
    }
    let prefix = admission.object.metadata().generate_name();
    if prefix.contains(['/', '%']) && !cx.has_finding_from(RuleOrigin::Upstream) {
        check_generate_name_segment(cx, &Path::ROOT.field("metadata"), prefix);
    }
}

fn check_generate_name_segment(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, prefix: &str) {
    names::check_path_segment_prefix(prefix, &mut |detail| {
        cx.report(OBJECT_NAME, &at.field("generateName")).invalid(prefix, detail);
    });
}

fn report_missing_name(cx: &mut RuleContext<'_, '_>, at: &Path<'_>) {
    cx.report(OBJECT_NAME, &at.field("name"))
        .required("name or generateName is required")
        .help("set `metadata.name`, or `metadata.generateName` for a generated name");
}

/// Returns the unit in which the server states the maximum length of a name.
fn name_length_unit(cx: &RuleContext<'_, '_>, kind: ApiKind) -> LengthUnitWord {
    let bytes = cx.profile.class_names_in_bytes && kind == ApiKind::DeviceClass;
    if bytes { LengthUnitWord::Bytes } else { LengthUnitWord::Characters }
}

/// Checks `generateName` as the beginning of a name; nothing if it is empty.
fn check_generate_name(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, kind: ApiKind, prefix: &str) {
    let unchecked = cx.profile.class_names_in_bytes && kind == ApiKind::DeviceClass;
    if prefix.is_empty() || unchecked {
        return;
    }
    let mut buffer = [0; BUFFER_BYTES];
    let masked = mask_trailing_dash(prefix, &mut buffer);
    names::check_dns_subdomain(&masked, LengthUnitWord::Characters, &mut |detail| {
        cx.report(OBJECT_NAME, &at.field("generateName")).invalid(prefix, detail);
    });
}

/// Reports a DeviceClass with `generateName` and without a name, which newer releases report as an internal error.
// upstream v1.36 ValidateObjectMetaAccessorWithOpts
fn report_if_class_name_not_generated(
    cx: &mut RuleContext<'_, '_>,
    at: &Path<'_>,
    kind: ApiKind,
    prefix: &str,
) {
    if cx.profile.class_names_in_bytes && kind == ApiKind::DeviceClass && !prefix.is_empty() {
        let prefix = gofmt::quote(prefix);
        cx.report(OBJECT_NAME, &at.field("name"))
            .internal_error(format_args!("generateName was specified ({prefix}), but no name was generated"));
    }
}

/// Checks the name that the server would generate from `generateName`.
fn check_generated_name(cx: &mut RuleContext<'_, '_>, at: &Path<'_>, kind: ApiKind, prefix: &str) {
    let bytes = prefix.as_bytes();
    let kept = bytes.get(..KEPT_PREFIX_BYTES).unwrap_or(bytes);
    let mut buffer = [0; BUFFER_BYTES];
    let name = join_bytes(kept, RANDOM_SUFFIX_PLACEHOLDER, &mut buffer);
    names::check_dns_subdomain(&name, name_length_unit(cx, kind), &mut |detail| {
        let value = BadValue::Json(gofmt::quote_bytes(&[kept, b"<rand>"].concat()).into());
        cx.report(OBJECT_NAME, &at.field("generateName"))
            .invalid(value, detail)
            .with_server_path("metadata.name".to_owned());
    });
}

/// Replaces the last *two* bytes of a prefix that ends in a dash by one `a`, as upstream does; returns other prefixes
/// unchanged.
// upstream v1.36 maskTrailingDash
fn mask_trailing_dash<'r>(prefix: &'r str, buffer: &'r mut [u8; BUFFER_BYTES]) -> Cow<'r, str> {
    match prefix.as_bytes() {
        [start @ .., _, b'-'] => join_bytes(start, b"a", buffer),
        _ => Cow::Borrowed(prefix),
    }
}

/// Bytes for composing a name without allocating; more than any valid prefix needs.
const BUFFER_BYTES: usize = 256;

/// Returns both texts joined, in `buffer` if they fit. A character that is cut becomes one that names cannot
/// contain.
fn join_bytes<'r>(start: &[u8], end: &[u8], buffer: &'r mut [u8; BUFFER_BYTES]) -> Cow<'r, str> {
    let length = start.len() + end.len();
    if start.is_ascii()
        && let Some(text) = buffer.get_mut(..length)
    {
        let (left, right) = text.split_at_mut(start.len());
        left.copy_from_slice(start);
        right.copy_from_slice(end);
        return String::from_utf8_lossy(text);
    }
    let ascii = |byte: &u8| if byte.is_ascii() { char::from(*byte) } else { '?' };
    Cow::Owned(start.iter().chain(end).map(ascii).collect())
}

#[cfg(test)]
mod tests {
    use super::{BUFFER_BYTES, mask_trailing_dash};

    #[test]
    fn a_trailing_dash_takes_the_byte_before_with_it() {
        let mut buffer = [0; BUFFER_BYTES];
        for (prefix, expected) in
            [("", ""), ("-", "-"), ("A-", "a"), ("ab-", "aa"), ("ab", "ab"), ("é-", "?a"), ("éé-", "???a")]
        {
            assert_eq!(mask_trailing_dash(prefix, &mut buffer), expected, "{prefix}");
        }
        let long = format!("{}-", "x".repeat(300));
        assert_eq!(mask_trailing_dash(&long, &mut buffer).len(), 300);
    }
}
