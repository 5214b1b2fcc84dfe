//! The shapes behind upstream's expressions, as byte loops.
//!
//! Yes or no only: which text a failure prints is decided by the checks. Every loop reads the value once, and
//! none of them allocates. No shape admits a non-ASCII byte except the caseless subdomain.

/// `[a-z0-9]([-a-z0-9]*[a-z0-9])?`
pub(super) fn is_label(value: &str) -> bool {
    framed(value, |byte| byte.is_ascii_lowercase() || byte.is_ascii_digit(), |byte| byte == b'-')
}

/// Labels joined by single dots. The labels have no length limit of their own.
pub(super) fn is_subdomain(value: &str) -> bool {
    // The empty value and a leading dot fail like a dot after a dot.
    let mut last = b'.';
    for &byte in value.as_bytes() {
        let fits = match byte {
            b'a'..=b'z' | b'0'..=b'9' => true,
            b'-' => last != b'.',
            b'.' => last != b'.' && last != b'-',
            _ => false,
        };
        if !fits {
            return false;
        }
        last = byte;
    }
    last != b'.' && last != b'-'
}

/// The subdomain expression under `(?i)`. Go folds U+212A (Kelvin sign) onto `k` and U+017F (long s) onto `s`;
/// no other non-ASCII character folds onto a letter of the class.
pub(super) fn is_subdomain_caseless(value: &str) -> bool {
    let alphanumeric =
        |letter: char| letter.is_ascii_alphanumeric() || letter == '\u{212a}' || letter == '\u{17f}';
    value.split('.').all(|label| {
        label.starts_with(alphanumeric)
            && label.ends_with(alphanumeric)
            && label.chars().all(|letter| alphanumeric(letter) || letter == '-')
    })
}

/// `([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]`
pub(super) fn is_qualified(value: &str) -> bool {
    framed(value, |byte| byte.is_ascii_alphanumeric(), |byte| matches!(byte, b'-' | b'_' | b'.'))
}

/// Whether `value` is a C identifier, `[A-Za-z_][A-Za-z0-9_]*`; the refusal is [`CIDENT`](super::CIDENT).
pub fn is_c_identifier(value: &str) -> bool {
    let bytes = value.as_bytes();
    bytes.first().is_some_and(|byte| !byte.is_ascii_digit())
        && bytes.iter().all(|&byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Whether `value` is a condition reason; the refusal is [`CONDITION_REASON`](super::CONDITION_REASON).
pub fn is_condition_reason(value: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let bytes = value.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && bytes.last().is_some_and(|&byte| word(byte))
        && bytes.iter().all(|&byte| word(byte) || byte == b',' || byte == b':')
}

/// Whether `value` begins and ends with an `edge` byte and holds nothing but `edge` and `inner` bytes.
fn framed(value: &str, edge: impl Fn(u8) -> bool, inner: impl Fn(u8) -> bool) -> bool {
    let bytes = value.as_bytes();
    bytes.first().is_some_and(|&byte| edge(byte))
        && bytes.last().is_some_and(|&byte| edge(byte))
        && bytes.iter().all(|&byte| edge(byte) || inner(byte))
}
