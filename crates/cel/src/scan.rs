//! Reads the text of an expression once, without recursion, and says how it may be parsed.
//!
//! The parser's stack grows with nesting and with the length of operator chains, and running out of
//! stack ends the process. The server has limits of its own for the same reason, and a text that
//! surely breaks them is refused here, whether or not it would have parsed.
//!
//! It counts the tokens of the parser's lexer, and leaves errors to the parser.

use super::syntax::{Lexer, TokenKind};

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
pub(super) enum ParseStackNeeds {
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
struct OperatorChainLengths {
    additive: u32,
    multiplicative: u32,
    relation: u32,
    postfix: u32,
    ternary: u32,
}

impl OperatorChainLengths {
    /// The length of the longest chain, without conditionals.
    fn longest_except_ternary(self) -> u32 {
        self.additive.max(self.multiplicative).max(self.relation).max(self.postfix)
    }

    /// Approximate number of stack frames that the parser needs at this level.
    fn estimated_stack_frames(self) -> u32 {
        1 + self.additive + self.multiplicative + self.relation + self.postfix + self.ternary
    }

    /// Starts all chains anew, except that of conditionals (`a ? b : c ? d : e`). Called at `&&`, `||`, `?` and `:`,
    /// which end the other chains.
    fn reset_all_but_ternary(&mut self) {
        *self = OperatorChainLengths { ternary: self.ternary, ..OperatorChainLengths::default() };
    }
}

/// Counts the nesting and the chains of an expression.
#[derive(Default)]
struct Scanner {
    outer: Vec<OperatorChainLengths>,
    outer_weight: u32,
    level: OperatorChainLengths,
    heaviest: u32,
    after_operand: bool,
    /// True after the dot of a selection, whose name continues the chain.
    after_dot: bool,
    refused: Option<&'static str>,
}

/// Determines how an expression can be parsed, from its length, nesting and operator chains.
pub(super) fn find_parse_stack_needs(text: &str) -> ParseStackNeeds {
    if text.len() > MAX_EXPRESSION_BYTES {
        return ParseStackNeeds::TooLong;
    }
    let mut scanner = Scanner::default();
    let mut lexer = Lexer::new(text, 0);
    loop {
        match lexer.next_token().kind {
            TokenKind::Eof => break,
            kind => scanner.count_token(kind),
        }
        scanner.record_weight_and_check_limits();
        if let Some(reason) = scanner.refused {
            return ParseStackNeeds::Refused(reason);
        }
    }
    if scanner.heaviest <= MAX_WEIGHT_FOR_SMALL_STACK && text.len() <= MAX_BYTES_FOR_SMALL_STACK {
        ParseStackNeeds::Flat
    } else {
        ParseStackNeeds::Deep
    }
}

impl Scanner {
    fn count_token(&mut self, kind: TokenKind) {
        use TokenKind::{
            And, Colon, Comma, Dot, Eof, Equals, Greater, GreaterEquals, Hidden, Identifier, In, LeftBrace,
            LeftBracket, LeftParen, Less, LessEquals, Minus, Not, NotEquals, Or, Percent, Plus, Question,
            RightBrace, RightBracket, RightParen, Slash, Star, Unknown,
        };
        match kind {
            Hidden | Unknown => return,
            // Of `.?name`, which continues the chain as well.
            Question if self.after_dot => return,
            Identifier if self.after_dot => self.after_operand = true,
            LeftParen | LeftBracket | LeftBrace => self.open_bracket(kind),
            RightParen | RightBracket | RightBrace => self.close_bracket(),
            Comma => {
                self.level = OperatorChainLengths::default();
                self.after_operand = false;
            }
            Dot => {
                if self.after_operand {
                    self.level.postfix += 1;
                }
                self.after_operand = false;
            }
            Plus | Minus if self.after_operand => {
                self.level.additive += 1;
                self.level.multiplicative = 0;
                self.after_operand = false;
            }
            Star | Slash | Percent if self.after_operand => {
                self.level.multiplicative += 1;
                self.after_operand = false;
            }
            In => self.count_relation(),
            Equals | NotEquals | Less | LessEquals | Greater | GreaterEquals if self.after_operand => {
                self.count_relation();
            }
            Question if self.after_operand => {
                self.level.reset_all_but_ternary();
                self.level.ternary += 1;
                self.after_operand = false;
            }
            And | Or | Colon => {
                self.level.reset_all_but_ternary();
                self.after_operand = false;
            }
            Not | Plus | Minus | Star | Slash | Percent | Question | Equals | NotEquals | Less
            | LessEquals | Greater | GreaterEquals | Eof => {}
            _ => self.record_operand(),
        }
        self.after_dot = kind == Dot;
    }

    /// Records that an operand was read. Unless it follows another operand, a new chain of selections starts.
    fn record_operand(&mut self) {
        if !self.after_operand {
            self.level.postfix = 0;
        }
        self.after_operand = true;
    }

    /// Counts a relational operator, which starts a new chain of `+` and `*`.
    fn count_relation(&mut self) {
        let OperatorChainLengths { relation, ternary, .. } = self.level;
        self.level =
            OperatorChainLengths { relation: relation + 1, ternary, ..OperatorChainLengths::default() };
        self.after_operand = false;
    }

    /// Enters brackets; refuses the text if they are nested too deeply.
    fn open_bracket(&mut self, bracket: TokenKind) {
        if self.after_operand && bracket == TokenKind::LeftBracket {
            self.level.postfix += 1;
        } else if !self.after_operand {
            self.level.postfix = 0;
        }
        self.outer_weight += self.level.estimated_stack_frames();
        self.outer.push(self.level);
        self.level = OperatorChainLengths::default();
        self.after_operand = false;
        if self.outer.len() > MAX_DEPTH as usize {
            self.refused = Some("expression recursion limit exceeded: 250");
        }
    }

    /// Leaves brackets, which are then an operand.
    fn close_bracket(&mut self) {
        self.level = self.outer.pop().unwrap_or_default();
        self.outer_weight = self.outer_weight.saturating_sub(self.level.estimated_stack_frames());
        self.after_operand = true;
    }

    /// Records the largest weight, and rejects chains beyond the server's limits.
    fn record_weight_and_check_limits(&mut self) {
        self.heaviest = self.heaviest.max(self.outer_weight + self.level.estimated_stack_frames());
        if self.level.longest_except_ternary() > MAX_DEPTH {
            self.refused = Some("max recursion depth exceeded");
        }
        if self.level.ternary > MAX_DEPTH {
            self.refused = Some("expression recursion limit exceeded: 250");
        }
    }
}
