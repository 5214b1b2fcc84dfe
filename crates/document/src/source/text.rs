//! Decodes the bytes of a file as text: byte order marks, UTF-16, and binary files.
//!
//! As in kubectl, a byte order mark determines the encoding, including UTF-16. kubectl replaces invalid UTF-8 by
//! U+FFFD; here it is an error with its position, because the file was probably written in another encoding.

use super::{InputError, LineIndex};

/// Decodes a file as UTF-8, or as UTF-16 if it has such a byte order mark, and removes the mark. Fails for
/// binary, empty and wrongly encoded files.
pub fn decode_by_byte_order_mark(file: &str, bytes: Vec<u8>) -> Result<String, InputError> {
    let text = match bytes.as_slice() {
        [0xff, 0xfe, rest @ ..] => decode_utf16_lossy(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => decode_utf16_lossy(rest, u16::from_be_bytes),
        _ => decode_utf8(file, bytes)?,
    };
    if let Some(error) = nul_byte_error(file, &text) {
        return Err(error);
    }
    if text.trim().is_empty() {
        return Err(InputError::for_whole_file(file, "the file is empty"));
    }
    Ok(text)
}

/// Returns the error about a text with a NUL byte, which no manifest has; `None` if it has none.
pub fn nul_byte_error(file: &str, text: &str) -> Option<InputError> {
    let at = text.find('\0')?;
    let message = "the file contains a NUL byte: it is a binary file, not a manifest";
    Some(input_error(file, text, at, message))
}

/// Decodes UTF-8 and removes a byte order mark. The error states the position and the probable encoding.
fn decode_utf8(file: &str, mut bytes: Vec<u8>) -> Result<String, InputError> {
    if bytes.starts_with(b"\xef\xbb\xbf") {
        bytes.drain(..3);
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let byte = error.as_bytes().get(at).copied().unwrap_or_default();
        let valid = String::from_utf8_lossy(error.as_bytes().get(..at).unwrap_or_default());
        if valid.contains('\0') || byte == 0 {
            return input_error(file, &valid, at, "the file is a binary file, not a manifest");
        }
        input_error(file, &valid, at, &format!("the byte 0x{byte:02x} is not UTF-8; save the file as UTF-8"))
    })
}

/// The bytes as UTF-16, whose units `unit` reads; what is no text becomes U+FFFD.
fn decode_utf16_lossy(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let units = bytes.chunks(2).map(|pair| match *pair {
        [first, second] => unit([first, second]),
        // Half a unit at the end of the file.
        _ => 0xfffd,
    });
    char::decode_utf16(units).map(|letter| letter.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

fn input_error(file: &str, text: &str, at: usize, message: &str) -> InputError {
    InputError::at(file, &LineIndex::from_text(text), at, message)
}

#[cfg(test)]
mod tests {
    use super::decode_by_byte_order_mark;

    #[test]
    fn byte_order_marks_are_obeyed() {
        let table: [(&[u8], &str); 4] = [
            (b"\xef\xbb\xbfa: b", "a: b"),
            (b"\xff\xfea\0:\0", "a:"),
            (b"\xfe\xff\0a\0:", "a:"),
            (b"\xff\xfe\x3d\xd8\x00\xdex", "\u{1f600}\u{fffd}"),
        ];
        for (bytes, expected) in table {
            assert_eq!(decode_by_byte_order_mark("f", bytes.to_vec()).unwrap(), expected, "{bytes:?}");
        }
    }

    #[test]
    fn what_is_no_text_has_a_place() {
        let table: [(&[u8], usize, usize, &str); 5] = [
            (b"", 0, 0, "the file is empty"),
            (b" \n\t", 0, 0, "the file is empty"),
            (b"a: b\nc: \0", 2, 4, "the file contains a NUL byte: it is a binary file, not a manifest"),
            (b"a\n\xc3\xa9: caf\xe9\n", 2, 7, "the byte 0xe9 is not UTF-8; save the file as UTF-8"),
            (b"\x7fELF\0\xe9", 1, 6, "the file is a binary file, not a manifest"),
        ];
        for (bytes, line, column, message) in table {
            let error = decode_by_byte_order_mark("f", bytes.to_vec()).unwrap_err();
            assert_eq!(
                (error.line, error.column, error.message.as_str()),
                (line, column, message),
                "{bytes:?}"
            );
        }
    }
}
