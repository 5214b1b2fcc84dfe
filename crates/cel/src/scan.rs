//! Reads the text of an expression once, without recursion, and says how it may be parsed.
//!
//! The parser's stack grows with nesting and with the length of operator chains, and running out of
//! stack ends the process. The server has limits of its own for the same reason, and a text that
//! surely breaks them is refused here, whether or not it would have parsed.
//!
//! Not a lexer: it knows just enough of strings and comments not to count what is inside them.

/// The server's limit for nesting and for chains. cel-go `NewParser`, `maxRecursionDepth`
const MAX_DEPTH: u32 = 250;
/// Maximum length of an expression in bytes; longer texts never reach the compiler. upstream v1.34
/// `CELSelectorExpressionMaxLength`
const MAX_EXPRESSION_BYTES: usize = 10_240;
/// Maximum weight for parsing on any thread: sufficient for the two megabytes of a test thread in a debug
/// build.
const MAX_WEIGHT_FOR_SMALL_STACK: u32 = 48;
const MAX_BYTES_FOR_SMALL_STACK: usize = 4_096;

/// Whether an expression can be parsed on any thread, requires a large stack, or is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ParseNeeds {
    /// The expression is shallow enough to be parsed on any thread.
    Flat,
    /// The expression is within the server's limits, but requires a large stack.
    Deep,
    /// The expression exceeds the server's limits; with the server's message.
    Refused(&'static str),
    /// The expression is longer than any that the server accepts.
    TooLong,
}

/// Lengths of the operator chains inside one pair of brackets.
#[derive(Default, Clone, Copy)]
struct ChainLengths {
    additive: u32,
    multiplicative: u32,
    relation: u32,
    postfix: u32,
    ternary: u32,
}

impl ChainLengths {
    /// The length of the longest chain, without conditionals.
    fn longest(self) -> u32 {
        self.additive.max(self.multiplicative).max(self.relation).max(self.postfix)
    }

    /// Approximate number of stack frames that the parser needs at this level.
    fn weight(self) -> u32 {
        1 + self.additive + self.multiplicative + self.relation + self.postfix + self.ternary
    }

    /// Starts all chains anew, except conditionals: a relation ended before `&&`, `||`, `?` or `:`.
    fn reset_chains(&mut self) {
        *self = ChainLengths { ternary: self.ternary, ..ChainLengths::default() };
    }
}

/// Counts the nesting and the chains of an expression.
struct Scanner {
    outer: Vec<ChainLengths>,
    outer_weight: u32,
    level: ChainLengths,
    heaviest: u32,
    after_operand: bool,
    refused: Option<&'static str>,
}

/// Determines how an expression can be parsed, from its length, nesting and operator chains.
pub(super) fn find_parse_needs(text: &str) -> ParseNeeds {
    if text.len() > MAX_EXPRESSION_BYTES {
        return ParseNeeds::TooLong;
    }
    let mut scanner = Scanner {
        outer: Vec::new(),
        outer_weight: 0,
        level: ChainLengths::default(),
        heaviest: 0,
        after_operand: false,
        refused: None,
    };
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        rest = scanner.count_token(first, tail, rest);
        scanner.record_weight();
        if let Some(reason) = scanner.refused {
            return ParseNeeds::Refused(reason);
        }
    }
    if scanner.heaviest <= MAX_WEIGHT_FOR_SMALL_STACK && text.len() <= MAX_BYTES_FOR_SMALL_STACK {
        ParseNeeds::Flat
    } else {
        ParseNeeds::Deep
    }
}

impl Scanner {
    /// Reads one token, counts it, and returns the text that follows it.
    fn count_token<'t>(&mut self, first: u8, tail: &'t [u8], rest: &'t [u8]) -> &'t [u8] {
        match first {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => return self.take_word(rest),
            b'0'..=b'9' => {
                self.count_operand();
                return skip_number(rest);
            }
            b'"' | b'\'' => {
                self.count_operand();
                return skip_string(rest, Escapes::Read);
            }
            b'/' if tail.first() == Some(&b'/') => return skip_while(rest, |byte| byte != b'\n'),
            b'(' | b'[' | b'{' => self.open(first),
            b')' | b']' | b'}' => self.close(),
            b',' => {
                self.level = ChainLengths::default();
                self.after_operand = false;
            }
            b'.' => {
                if self.after_operand {
                    self.level.postfix += 1;
                }
                self.after_operand = false;
                // The name after a dot continues the chain; skip it here so that it does not start
                // a new one. A number after a dot (`.5`) is an operand of its own.
                let name = skip_while(tail, |byte| byte.is_ascii_whitespace() || byte == b'?');
                if name.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_') {
                    self.after_operand = true;
                    return skip_while(name, |byte| byte.is_ascii_alphanumeric() || byte == b'_');
                }
            }
            b'+' | b'-' if self.after_operand => {
                self.level.additive += 1;
                self.level.multiplicative = 0;
                self.after_operand = false;
            }
            b'*' | b'/' | b'%' if self.after_operand => {
                self.level.multiplicative += 1;
                self.after_operand = false;
            }
            b'<' | b'>' | b'=' | b'!' if self.after_operand => {
                self.count_relation();
                return tail.strip_prefix(b"=").unwrap_or(tail);
            }
            b'?' if self.after_operand => {
                self.level.reset_chains();
                self.level.ternary += 1;
                self.after_operand = false;
            }
            b'&' | b'|' | b':' => {
                self.level.reset_chains();
                self.after_operand = false;
            }
            _ => {}
        }
        tail
    }

    /// Reads a word, or a string with a prefix, and returns what follows it.
    fn take_word<'t>(&mut self, rest: &'t [u8]) -> &'t [u8] {
        let after = skip_while(rest, |byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let word = rest.get(..rest.len() - after.len()).unwrap_or(rest);
        if matches!(after.first(), Some(b'"' | b'\'')) {
            self.count_operand();
            return match word {
                b"r" | b"R" | b"br" | b"bR" | b"Br" | b"BR" => skip_string(after, Escapes::Ignore),
                b"b" | b"B" => skip_string(after, Escapes::Read),
                _ => after,
            };
        }
        if word == b"in" {
            self.count_relation();
        } else {
            self.count_operand();
        }
        after
    }

    /// Counts an operand. An operand that does not follow another one starts a new chain.
    fn count_operand(&mut self) {
        if !self.after_operand {
            self.level.postfix = 0;
        }
        self.after_operand = true;
    }

    /// Counts a relational operator, which starts a new chain of `+` and `*`.
    fn count_relation(&mut self) {
        let ChainLengths { relation, ternary, .. } = self.level;
        self.level = ChainLengths { relation: relation + 1, ternary, ..ChainLengths::default() };
        self.after_operand = false;
    }

    /// Enters brackets; refuses the text if they are nested too deeply.
    fn open(&mut self, bracket: u8) {
        if self.after_operand && bracket == b'[' {
            self.level.postfix += 1;
        } else if !self.after_operand {
            self.level.postfix = 0;
        }
        self.outer_weight += self.level.weight();
        self.outer.push(self.level);
        self.level = ChainLengths::default();
        self.after_operand = false;
        if self.outer.len() > MAX_DEPTH as usize {
            self.refused = Some("expression recursion limit exceeded: 250");
        }
    }

    /// Leaves brackets, which are then an operand.
    fn close(&mut self) {
        self.level = self.outer.pop().unwrap_or_default();
        self.outer_weight = self.outer_weight.saturating_sub(self.level.weight());
        self.after_operand = true;
    }

    /// Records the largest weight, and rejects chains beyond the server's limits.
    fn record_weight(&mut self) {
        self.heaviest = self.heaviest.max(self.outer_weight + self.level.weight());
        if self.level.longest() > MAX_DEPTH {
            self.refused = Some("max recursion depth exceeded");
        }
        if self.level.ternary > MAX_DEPTH {
            self.refused = Some("expression recursion limit exceeded: 250");
        }
    }
}

/// Whether a backslash in a string starts an escape sequence.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Escapes {
    Read,
    Ignore,
}

/// The text after the bytes at its start that `keep` accepts.
fn skip_while(text: &[u8], keep: impl Fn(u8) -> bool) -> &[u8] {
    let end = text.iter().position(|byte| !keep(*byte)).unwrap_or(text.len());
    text.get(end..).unwrap_or(&[])
}

/// Skips the number at the start of the text. The sign of an exponent (`1e-5`) is not an operator. For
/// `0xE-5`, the count is too low, which is safe.
fn skip_number(text: &[u8]) -> &[u8] {
    let after = skip_while(text, |byte| byte.is_ascii_alphanumeric());
    let number = text.get(..text.len() - after.len()).unwrap_or(text);
    match (number.last(), after.split_first()) {
        (Some(b'e' | b'E'), Some((b'+' | b'-', exponent))) => {
            skip_while(exponent, |byte| byte.is_ascii_digit())
        }
        _ => after,
    }
}

/// Skips the string literal at the start of the text, which begins with its quote. An unterminated string is
/// always an error.
fn skip_string(text: &[u8], escapes: Escapes) -> &[u8] {
    let quote = text.first().copied().unwrap_or(b'"');
    let triple = [quote; 3];
    let long = text.starts_with(&triple);
    let mut rest = text.get(if long { 3 } else { 1 }..).unwrap_or(&[]);
    while let Some((&first, tail)) = rest.split_first() {
        if long && rest.starts_with(&triple) {
            return rest.get(3..).unwrap_or(&[]);
        }
        if !long && first == quote {
            return tail;
        }
        if !long && first == b'\n' {
            return rest;
        }
        rest = match first {
            b'\\' if escapes == Escapes::Read => tail.get(1..).unwrap_or(&[]),
            _ => tail,
        };
    }
    rest
}
