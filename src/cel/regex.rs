//! Says whether a pattern is a regular expression to Go's `regexp` package (RE2 syntax).
//!
//! Not an engine: nothing is matched or compiled. Names of Unicode classes and the combined size of
//! nested repetitions are not checked; where it is unsure, a pattern is valid.

/// The largest repetition count. Go `regexp/syntax`, `repeat`
const MAX_REPEAT: u32 = 1000;

pub(crate) fn is_valid(pattern: &str) -> bool {
    Reader { rest: pattern }.pattern().is_some()
}

struct Reader<'p> {
    rest: &'p str,
}

/// What the last element was, as far as a following `*` cares.
#[derive(Clone, Copy, PartialEq)]
enum Last {
    Nothing,
    Atom,
    Repetition,
}

/// Every function returns `None` where Go returns an error.
impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let next = chars.next();
        self.rest = chars.as_str();
        next
    }

    fn eat(&mut self, prefix: &str) -> bool {
        match self.rest.strip_prefix(prefix) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn pattern(&mut self) -> Option<()> {
        let mut open_groups = 0_u32;
        let mut last = Last::Nothing;
        let mut names = Vec::new();
        while let Some(c) = self.peek() {
            last = match c {
                '(' => {
                    self.next();
                    // A group that only sets flags opens nothing and is not an element itself.
                    match (self.group_head(&mut names)?, last) {
                        (true, _) => {
                            open_groups += 1;
                            Last::Nothing
                        }
                        (false, Last::Nothing) => Last::Nothing,
                        (false, _) => Last::Atom,
                    }
                }
                ')' => {
                    self.next();
                    open_groups = open_groups.checked_sub(1)?;
                    Last::Atom
                }
                '|' => {
                    self.next();
                    Last::Nothing
                }
                '[' => {
                    self.next();
                    self.class()?;
                    Last::Atom
                }
                '*' | '+' | '?' => {
                    self.next();
                    self.repeated(last)?
                }
                '{' if self.counts()? => self.repeated(last)?,
                '\\' => {
                    self.next();
                    self.escape_outside_class()?;
                    Last::Atom
                }
                _ => {
                    self.next();
                    Last::Atom
                }
            };
        }
        (open_groups == 0).then_some(())
    }

    /// After a repetition operator: there must be something to repeat, and `a**` is not allowed.
    fn repeated(&mut self, last: Last) -> Option<Last> {
        self.eat("?");
        (last == Last::Atom).then_some(Last::Repetition)
    }

    /// `{2}`, `{2,}`, `{2,5}`; anything else beginning with `{` is literal.
    fn counts(&mut self) -> Option<bool> {
        let Some((inside, after)) = self.rest.get(1..).and_then(|text| text.split_once('}')) else {
            return Some(false);
        };
        let (low, high) = inside.split_once(',').map_or((inside, None), |(low, high)| (low, Some(high)));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let leading_zero = |text: &str| text.len() > 1 && text.starts_with('0');
        let well_formed = digits(low)
            && !leading_zero(low)
            && high.is_none_or(|high| high.is_empty() || (digits(high) && !leading_zero(high)));
        if !well_formed {
            return Some(false);
        }
        self.rest = after;
        let low: u32 = low.parse().ok()?;
        let high: u32 = match high {
            Some("") | None => low,
            Some(high) => high.parse().ok()?,
        };
        (low <= MAX_REPEAT && high <= MAX_REPEAT && low <= high).then_some(true)
    }

    /// After `(`: a name, flags, or nothing. False if the whole group was flags, as in `(?i)`.
    fn group_head(&mut self, names: &mut Vec<String>) -> Option<bool> {
        if !self.eat("?") {
            return Some(true);
        }
        if self.eat("P<") || (!self.rest.starts_with("<=") && !self.rest.starts_with("<!") && self.eat("<")) {
            let (name, after) = self.rest.split_once('>')?;
            let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if name.is_empty() || !name.chars().all(is_word) || names.iter().any(|seen| seen == name) {
                return None;
            }
            names.push(name.to_owned());
            self.rest = after;
            return Some(true);
        }
        let (mut negated, mut flags_since_sign) = (false, 0);
        loop {
            match self.next()? {
                'i' | 'm' | 's' | 'U' => flags_since_sign += 1,
                '-' if !negated => (negated, flags_since_sign) = (true, 0),
                ':' | ')' if negated && flags_since_sign == 0 => return None,
                ':' => return Some(true),
                ')' => return Some(false),
                _ => return None,
            }
        }
    }

    fn escape_outside_class(&mut self) -> Option<()> {
        match self.peek()? {
            'A' | 'b' | 'B' | 'z' | 'd' | 'D' | 's' | 'S' | 'w' | 'W' => {
                self.next();
                Some(())
            }
            'p' | 'P' => self.unicode_class(),
            'Q' => {
                self.rest = self.rest.split_once("\\E").map_or("", |(_, after)| after);
                Some(())
            }
            _ => self.escaped_character().map(|_| ()),
        }
    }

    fn unicode_class(&mut self) -> Option<()> {
        self.next();
        match self.next()? {
            '{' => {
                let (_, after) = self.rest.split_once('}')?;
                self.rest = after;
                Some(())
            }
            c => c.is_ascii_alphabetic().then_some(()),
        }
    }

    /// After a backslash: an escape that stands for one character.
    fn escaped_character(&mut self) -> Option<char> {
        match self.next()? {
            // One digit alone would be a backreference, which RE2 has not.
            '1'..='7' if !self.peek().is_some_and(|c| c.is_digit(8)) => None,
            '0'..='7' => {
                for _ in 0..2 {
                    if self.peek().is_some_and(|c| c.is_digit(8)) {
                        self.next();
                    }
                }
                Some('\0')
            }
            'x' => self.hexadecimal(),
            'a' => Some('\u{7}'),
            'f' => Some('\u{c}'),
            'n' => Some('\n'),
            'r' => Some('\r'),
            't' => Some('\t'),
            'v' => Some('\u{b}'),
            c if c.is_ascii() && !c.is_ascii_alphanumeric() => Some(c),
            _ => None,
        }
    }

    fn hexadecimal(&mut self) -> Option<char> {
        let digits = if self.eat("{") {
            let (digits, after) = self.rest.split_once('}')?;
            self.rest = after;
            digits
        } else {
            let (digits, after) = self.rest.split_at_checked(2)?;
            self.rest = after;
            digits
        };
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let code = u32::from_str_radix(digits, 16).ok()?;
        // A surrogate is a rune to Go; what it is does not matter here.
        (code <= 0x0010_ffff).then(|| char::from_u32(code).unwrap_or('\0'))
    }

    /// After `[`: ranges, escapes and named classes up to `]`.
    fn class(&mut self) -> Option<()> {
        self.eat("^");
        let mut is_first = true;
        loop {
            match self.peek()? {
                ']' if !is_first => {
                    self.next();
                    return Some(());
                }
                '[' if self.rest.starts_with("[:") && self.rest.contains(":]") => self.named_class()?,
                _ => self.class_item()?,
            }
            is_first = false;
        }
    }

    fn named_class(&mut self) -> Option<()> {
        let (name, after) = self.rest.get(2..)?.split_once(":]")?;
        let name = name.strip_prefix('^').unwrap_or(name);
        self.rest = after;
        matches!(
            name,
            "alnum"
                | "alpha"
                | "ascii"
                | "blank"
                | "cntrl"
                | "digit"
                | "graph"
                | "lower"
                | "print"
                | "punct"
                | "space"
                | "upper"
                | "word"
                | "xdigit"
        )
        .then_some(())
    }

    fn class_item(&mut self) -> Option<()> {
        if self.rest.starts_with("\\p") || self.rest.starts_with("\\P") {
            self.next();
            return self.unicode_class();
        }
        if ["\\d", "\\D", "\\s", "\\S", "\\w", "\\W"].iter().any(|escape| self.eat(escape)) {
            return Some(());
        }
        let low = self.class_character()?;
        let is_range = self.rest.starts_with('-') && !self.rest.starts_with("-]") && self.rest.len() > 1;
        if !is_range {
            return Some(());
        }
        self.next();
        let high = self.class_character()?;
        // Octal escapes are not decoded, so a range with one is not compared.
        (low <= high || low == '\0' || high == '\0').then_some(())
    }

    fn class_character(&mut self) -> Option<char> {
        match self.next()? {
            '\\' => self.escaped_character(),
            c => Some(c),
        }
    }
}
