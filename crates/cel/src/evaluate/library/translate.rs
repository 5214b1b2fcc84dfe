//! Writes a pattern of Go's `regexp` for the `regex` crate.
//!
//! Both engines find the leftmost match by the same preferences, and their syntax is nearly the same. What differs:
//! Go's `\d`, `\w`, `\s` and `\b` know only ASCII, it has `\Q…\E` and octal escapes, a `{` that counts nothing is a
//! brace, and a class has no operators. Call it only with patterns that Go accepts.

use std::fmt::Write as _;

pub(super) fn translate(pattern: &str) -> String {
    let mut translator = Translator { rest: pattern, out: String::with_capacity(pattern.len() + 16) };
    while let Some(c) = translator.rest.chars().next() {
        translator.step(c);
    }
    translator.out
}

struct Translator<'p> {
    rest: &'p str,
    out: String,
}

impl Translator<'_> {
    fn step(&mut self, c: char) {
        match c {
            '\\' => self.escape(),
            '[' => self.class(),
            '{' if !counts(self.rest) => self.literal(c),
            _ => {
                self.skip(c.len_utf8());
                self.out.push(c);
            }
        }
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }

    fn literal(&mut self, c: char) {
        self.skip(c.len_utf8());
        self.push_literal(c);
    }

    fn push_literal(&mut self, c: char) {
        // Writing to a string does not fail.
        let _ = write!(self.out, "\\x{{{:x}}}", u32::from(c));
    }

    fn escape(&mut self) {
        let Some(escaped) = self.rest.chars().nth(1) else { return self.skip(1) };
        if let Some(class) = ascii_class(escaped) {
            self.skip(2);
            let (open, class) = class.split_at_checked(1).unwrap_or(("", class));
            let negation = if open == "^" { "^" } else { "" };
            let class = if negation.is_empty() { format!("{open}{class}") } else { class.to_owned() };
            let _ = write!(self.out, "(?-i:[{negation}{class}])");
            return;
        }
        match escaped {
            'b' => {
                self.skip(2);
                self.out.push_str("(?-u:\\b)");
            }
            'A' | 'z' | 'B' => {
                self.skip(2);
                self.out.extend(['\\', escaped]);
            }
            'Q' => {
                let quoted = self.rest.get(2..).unwrap_or_default();
                let (literal, rest) = quoted.split_once("\\E").unwrap_or((quoted, ""));
                self.rest = rest;
                literal.chars().for_each(|c| self.push_literal(c));
            }
            'E' => self.skip(2),
            'p' | 'P' => self.unicode_class(),
            _ => {
                let c = self.character();
                self.push_literal(c);
            }
        }
    }

    /// `\pL`, `\p{Greek}`, `\p{^Greek}`
    fn unicode_class(&mut self) {
        let end = match self.rest.get(2..) {
            Some(name) if name.starts_with('{') => name.find('}').map_or(name.len(), |end| end + 1),
            Some(name) => name.chars().next().map_or(0, char::len_utf8),
            None => 0,
        };
        let class = self.rest.get(..2 + end).unwrap_or_default();
        let is_negated = class.starts_with("\\P") != class.contains('^');
        let name = class.get(2..).unwrap_or_default().replace('^', "");
        let _ = write!(self.out, "\\{}{name}", if is_negated { 'P' } else { 'p' });
        self.skip(2 + end);
    }

    /// A single character, escaped or not.
    fn character(&mut self) -> char {
        let Some(escape) = self.rest.strip_prefix('\\') else {
            let c = self.rest.chars().next().unwrap_or_default();
            self.skip(c.len_utf8());
            return c;
        };
        let Some(c) = escape.chars().next() else {
            self.rest = "";
            return '\\';
        };
        let octal = escape.bytes().take(3).take_while(|byte| (b'0'..=b'7').contains(byte)).count();
        let (digits, radix, length) = match c {
            '0'..='7' if octal > 0 => (escape.get(..octal).unwrap_or_default(), 8, octal),
            'x' => match escape.get(1..) {
                Some(braced) if braced.starts_with('{') => {
                    let digits = braced.get(1..).and_then(|rest| rest.split('}').next()).unwrap_or_default();
                    (digits, 16, digits.len() + 3)
                }
                _ => (escape.get(1..3).unwrap_or_default(), 16, 3),
            },
            _ => {
                self.rest = escape.get(c.len_utf8()..).unwrap_or_default();
                return match c {
                    'a' => '\u{7}',
                    'f' => '\u{c}',
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    'v' => '\u{b}',
                    other => other,
                };
            }
        };
        self.rest = escape.get(length..).unwrap_or_default();
        u32::from_str_radix(digits, radix).ok().and_then(char::from_u32).unwrap_or_default()
    }

    fn class(&mut self) {
        self.skip(1);
        self.out.push('[');
        if self.rest.starts_with('^') {
            self.skip(1);
            self.out.push('^');
        }
        let mut is_first = true;
        while !self.rest.is_empty() && (is_first || !self.rest.starts_with(']')) {
            is_first = false;
            self.class_item();
        }
        self.skip(1);
        self.out.push(']');
    }

    fn class_item(&mut self) {
        if self.rest.starts_with("[:")
            && let Some(end) = self.rest.find(":]")
        {
            self.out.push_str(self.rest.get(..end + 2).unwrap_or_default());
            return self.skip(end + 2);
        }
        if let Some(escape) = self.rest.strip_prefix('\\') {
            let escaped = escape.chars().next().unwrap_or_default();
            if let Some(class) = ascii_class(escaped) {
                self.skip(2);
                let _ = write!(self.out, "[{class}]");
                return;
            }
            if matches!(escaped, 'p' | 'P') {
                return self.unicode_class();
            }
        }
        let low = self.character();
        self.push_literal(low);
        if let Some(after) = self.rest.strip_prefix('-')
            && !after.is_empty()
            && !after.starts_with(']')
        {
            self.skip(1);
            let high = self.character();
            self.out.push('-');
            self.push_literal(high);
        }
    }
}

/// The inside of Go's Perl classes.
fn ascii_class(escaped: char) -> Option<&'static str> {
    Some(match escaped {
        'd' => "0-9",
        'D' => "^0-9",
        'w' => "0-9A-Za-z_",
        'W' => "^0-9A-Za-z_",
        's' => "\\t\\n\\f\\r ",
        'S' => "^\\t\\n\\f\\r ",
        _ => return None,
    })
}

/// Whether a brace begins a count, `{2}`, `{2,}` or `{2,5}`.
fn counts(text: &str) -> bool {
    let Some((inside, _)) = text.get(1..).and_then(|rest| rest.split_once('}')) else { return false };
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    match inside.split_once(',') {
        Some((low, high)) => is_number(low) && (high.is_empty() || is_number(high)),
        None => is_number(inside),
    }
}

#[cfg(test)]
mod tests {
    use super::super::patterns::compile;

    #[test]
    fn patterns_mean_what_they_mean_in_go() {
        for (pattern, text, is_match) in [
            (r"^\d+$", "12", true),
            (r"^\d+$", "١٢", false),
            (r"^\w$", "é", false),
            (r"^\W$", "é", true),
            (r"^[\W]$", "é", true),
            (r"^[^\w]$", "é", true),
            (r"\bé", "aé", true),
            (r"^a{,2}$", "a{,2}", true),
            (r"^a{2}$", "aa", true),
            (r"^[a&&b]+$", "&", true),
            (r"^[[a]$", "[", true),
            (r"^[]a]+$", "]a", true),
            (r"^\Qa.b\E$", "a.b", true),
            (r"^\Qa.b\E$", "axb", false),
            (r"^\101$", "A", true),
            (r"^\x41\x{1F600}$", "A😀", true),
            (r"^\<$", "<", true),
            (r"^[\x41-\x43]+$", "ABC", true),
            (r"(?i)^straße$", "STRAßE", true),
            (r"^\pN$", "٣", true),
            (r"^[[:alpha:]]$", "é", false),
            (r"^[a\-z]+$", "a-z", true),
            (r"^(?P<x>a)|b$", "b", true),
            (r"a.c", "a\nc", false),
            (r"(?s)a.c", "a\nc", true),
        ] {
            let compiled = compile(pattern).unwrap_or_else(|problem| panic!("{pattern}: {problem}"));
            assert_eq!(compiled.is_match(text), is_match, "{pattern} {text}");
        }
    }
}
