//! Kubernetes' regular expressions for names, as loops over bytes.
//!
//! The functions only say whether a text matches; the checks in `names` choose the error text. None of them allocates.
//! Bytes are tested in blocks, because a ResourceSlice consists mostly of names. Only the caseless subdomain allows
//! characters that are not ASCII.

/// Number of bytes that are tested at once.
const BLOCK: usize = 16;
const HALF_BLOCK: usize = BLOCK / 2;

fn is_lower_or_digit(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

/// True for the letters, digits and separators of label values. Not `matches!`: compilers look it up in a table of bits,
/// one byte at a time.
fn is_label_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.' || byte == b'_'
}

/// True if all bytes pass the test, which only compares: compilers turn that into one test of a whole block.
#[inline]
fn all_bytes(bytes: &[u8], test: impl Fn(u8) -> bool + Copy) -> bool {
    // The last block overlaps the one before, so that no bytes are left to be tested one by one.
    if let Some(last) = bytes.last_chunk() {
        return bytes.as_chunks().0.iter().all(|block| is_good_block(block, test))
            && is_good_block(last, test);
    }
    if let (Some(first), Some(last)) = (bytes.first_chunk::<HALF_BLOCK>(), bytes.last_chunk::<HALF_BLOCK>()) {
        let mut block = [0; BLOCK];
        let (begin, end) = block.split_at_mut(HALF_BLOCK);
        begin.copy_from_slice(first);
        end.copy_from_slice(last);
        return is_good_block(&block, test);
    }
    bytes.iter().all(|&byte| test(byte))
}

/// True if all bytes of a block pass the test. Looks at all of them: an early end would need a branch for each byte.
#[inline]
fn is_good_block(block: &[u8; BLOCK], test: impl Fn(u8) -> bool) -> bool {
    let mut failed = 0;
    for &byte in block {
        failed |= u8::from(!test(byte));
    }
    failed == 0
}

/// True if the value matches `[a-z0-9]([-a-z0-9]*[a-z0-9])?`, of any length.
pub(super) fn has_dns_label_shape(value: &str) -> bool {
    has_valid_edge_and_inner_bytes(value, is_lower_or_digit, |byte| is_lower_or_digit(byte) || byte == b'-')
}

/// True if `value` is a DNS-1123 subdomain: labels joined by single dots. Neither they nor the value have a length
/// limit here.
pub fn has_subdomain_shape(value: &str) -> bool {
    // The empty value and a leading dot fail like a dot after a dot.
    let mut last = b'.';
    for &byte in value.as_bytes() {
        let fits = match byte {
            b'-' => last != b'.',
            b'.' => is_lower_or_digit(last),
            _ => is_lower_or_digit(byte),
        };
        if !fits {
            return false;
        }
        last = byte;
    }
    is_lower_or_digit(last)
}

/// True if the value matches the expression of subdomains under `(?i)`. Go folds U+212A (Kelvin sign) onto `k` and
/// U+017F (long s) onto `s`; no other non-ASCII character folds onto a letter of the class.
pub(super) fn has_caseless_subdomain_shape(value: &str) -> bool {
    let alphanumeric =
        |letter: char| letter.is_ascii_alphanumeric() || letter == '\u{212a}' || letter == '\u{17f}';
    value.split('.').all(|label| {
        label.starts_with(alphanumeric)
            && label.ends_with(alphanumeric)
            && label.chars().all(|letter| alphanumeric(letter) || letter == '-')
    })
}

/// True if the value matches `([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]`, of any length.
pub(super) fn has_qualified_name_part_shape(value: &str) -> bool {
    has_valid_edge_and_inner_bytes(value, |byte| byte.is_ascii_alphanumeric(), is_label_byte)
}

/// True if `value` is a C identifier, `[A-Za-z_][A-Za-z0-9_]*`. The error text is
/// [`INVALID_C_IDENTIFIER`](super::INVALID_C_IDENTIFIER).
pub fn is_c_identifier(value: &str) -> bool {
    let bytes = value.as_bytes();
    bytes.first().is_some_and(|byte| !byte.is_ascii_digit())
        && all_bytes(bytes, |byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// True if `value` is a condition reason. The error text is
/// [`INVALID_CONDITION_REASON`](super::INVALID_CONDITION_REASON).
pub fn is_condition_reason(value: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let bytes = value.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && bytes.last().is_some_and(|&byte| word(byte))
        && bytes.iter().all(|&byte| word(byte) || byte == b',' || byte == b':')
}

/// True if `value` is not empty, its first and last byte pass `edge`, and all of its bytes pass `inner`.
#[inline]
fn has_valid_edge_and_inner_bytes(
    value: &str,
    edge: impl Fn(u8) -> bool,
    inner: impl Fn(u8) -> bool + Copy,
) -> bool {
    let bytes = value.as_bytes();
    let (Some(&first), Some(&last)) = (bytes.first(), bytes.last()) else { return false };
    edge(first) && edge(last) && all_bytes(bytes, inner)
}
