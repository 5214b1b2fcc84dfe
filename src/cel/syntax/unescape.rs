//! What can still be wrong with a string that the lexer has read: escapes that name no character, or none in bytes.

/// Why the literal, without a prefix for bytes, cannot be unescaped.
pub(super) fn unescape(literal: &str, is_bytes: bool) -> Result<(), &'static str> {
    if literal.starts_with(['r', 'R']) {
        return Ok(());
    }
    let mut rest = literal;
    while let Some((_, escape)) = rest.split_once('\\') {
        let mut chars = escape.chars();
        let letter = chars.next();
        rest = chars.as_str();
        let digits = match letter {
            Some('u' | 'U') if is_bytes => return Err("unable to unescape string"),
            Some('u') => 4,
            Some('U') => 8,
            _ => continue,
        };
        let code = rest.get(..digits).and_then(|hex| u32::from_str_radix(hex, 16).ok());
        if code.and_then(char::from_u32).is_none() {
            return Err("invalid unicode code point");
        }
    }
    Ok(())
}
