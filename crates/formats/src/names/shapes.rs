//! The shapes behind upstream's expressions, as byte loops.
//!
//! Yes or no only: which text a failure prints is decided by the checks. Every loop reads the value once, and
//! none of them allocates. No shape admits a non-ASCII byte except the caseless subdomain.

/// The class of each byte, as one of the constants below; 0 if no name has it. One look-up per byte: names are most of
/// what a slice consists of.
static BYTE_CLASSES: [u8; 256] = classes();
const LOWER_OR_DIGIT: u8 = 1;
const UPPER: u8 = 2;
const DASH: u8 = 4;
const DOT: u8 = 8;
const UNDERSCORE: u8 = 16;

/// Computes [`BYTE_CLASSES`].
const fn classes() -> [u8; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        #[expect(clippy::cast_possible_truncation, reason = "below 256")]
        let letter = byte as u8;
        #[expect(clippy::indexing_slicing, reason = "below 256, and at compile time")]
        let slot = &mut table[byte];
        *slot = match letter {
            b'a'..=b'z' | b'0'..=b'9' => LOWER_OR_DIGIT,
            b'A'..=b'Z' => UPPER,
            b'-' => DASH,
            b'.' => DOT,
            b'_' => UNDERSCORE,
            _ => 0,
        };
        byte += 1;
    }
    table
}

/// Returns the class of a byte, such as [`LOWER_OR_DIGIT`]; 0 if names cannot contain it.
#[expect(clippy::indexing_slicing, reason = "a byte is below 256")]
fn byte_class(byte: u8) -> u8 {
    BYTE_CLASSES[usize::from(byte)]
}

/// True if the value matches `[a-z0-9]([-a-z0-9]*[a-z0-9])?`, of any length.
pub(super) fn has_dns_label_shape(value: &str) -> bool {
    has_valid_edges(value, LOWER_OR_DIGIT, LOWER_OR_DIGIT | DASH)
}

/// True if `value` is a DNS-1123 subdomain: labels joined by single dots. Neither they nor the value have a length
/// limit here.
pub fn is_subdomain(value: &str) -> bool {
    // The empty value and a leading dot fail like a dot after a dot. Branches, not a table of states: they are
    // predicted, while a look-up would wait for the one before it.
    let mut last = DOT;
    for &byte in value.as_bytes() {
        let class = byte_class(byte);
        let fits = match class {
            LOWER_OR_DIGIT => true,
            DASH => last != DOT,
            DOT => last == LOWER_OR_DIGIT,
            _ => false,
        };
        if !fits {
            return false;
        }
        last = class;
    }
    last == LOWER_OR_DIGIT
}

/// True if the value matches the expression of subdomains under `(?i)`. Go folds U+212A (Kelvin sign) onto `k` and
/// U+017F (long s) onto `s`; no other non-ASCII character folds onto a letter of the class.
pub(super) fn is_subdomain_caseless(value: &str) -> bool {
    let alphanumeric =
        |letter: char| letter.is_ascii_alphanumeric() || letter == '\u{212a}' || letter == '\u{17f}';
    value.split('.').all(|label| {
        label.starts_with(alphanumeric)
            && label.ends_with(alphanumeric)
            && label.chars().all(|letter| alphanumeric(letter) || letter == '-')
    })
}

/// True if the value matches `([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]`, of any length.
pub(super) fn is_qualified_name_part(value: &str) -> bool {
    has_valid_edges(value, LOWER_OR_DIGIT | UPPER, LOWER_OR_DIGIT | UPPER | DASH | DOT | UNDERSCORE)
}

/// True if `value` is a C identifier, `[A-Za-z_][A-Za-z0-9_]*`. The error text is
/// [`INVALID_C_IDENTIFIER`](super::INVALID_C_IDENTIFIER).
pub fn is_c_identifier(value: &str) -> bool {
    let bytes = value.as_bytes();
    bytes.first().is_some_and(|byte| !byte.is_ascii_digit())
        && bytes.iter().all(|&byte| byte_class(byte) & (LOWER_OR_DIGIT | UPPER | UNDERSCORE) != 0)
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

/// True if `value` is not empty, begins and ends with a byte of the `edge` classes, and has only bytes of the `inner`
/// classes.
fn has_valid_edges(value: &str, edge: u8, inner: u8) -> bool {
    let bytes = value.as_bytes();
    bytes.first().is_some_and(|&byte| byte_class(byte) & edge != 0)
        && bytes.last().is_some_and(|&byte| byte_class(byte) & edge != 0)
        && bytes.iter().all(|&byte| byte_class(byte) & inner != 0)
}
