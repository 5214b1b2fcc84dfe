//! The state of the parser, and the functions with which `operators` and `operands` parse the rules of the grammar.
//!
//! Invariant: nesting and recoveries are limited to the server's numbers, and lookahead is two tokens or a chain of
//! names that is then consumed, so time is linear in the text.

use super::lexer::Lexer;
use super::token::{Token, TokenKind, TokenSet};
use super::tree::{Node, NodeIndex};
use crate::issue::Issues;

/// Maximum number of reported errors, cel-go's `errorReportingLimit`.
const MAX_REPORTS: usize = 100;
/// Maximum recursion depth of each rule, cel-go's `maxRecursionDepth`.
const MAX_RULE_DEPTH: u32 = 250;

/// The rules of the CEL grammar, as cel-go's messages depend on them.
#[derive(Clone, Copy, Debug)]
pub(super) enum GrammarRule {
    Start,
    Expr,
    Or,
    And,
    Relation,
    Calc,
    Unary,
    Member,
    Primary,
    ExprList,
    ListInit,
    FieldList,
    OptField,
    MapList,
    EscapeIdent,
    OptExpr,
    Literal,
}

/// Positions in the grammar at which an error can be detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GrammarPosition {
    EndOfText,
    ConditionalColon,
    Unary,
    AfterMinus,
    MemberOperator,
    MemberArguments,
    MemberClose,
    IndexStart,
    IndexClose,
    Primary,
    Arguments,
    ArgumentsClose,
    NestedClose,
    ListStart,
    ListEnd,
    ListClose,
    MapStart,
    MapEnd,
    MapClose,
    MessageStart,
    MessageEnd,
    MessageClose,
    FirstFieldColon,
    FieldColon,
    FirstKeyColon,
    KeyColon,
    FieldName,
    Literal,
}

/// The parser stops because a server limit is exceeded, which has been reported.
#[derive(Debug)]
pub(super) struct LimitExceeded;

/// What was parsed, unless a limit ended the parse.
pub(super) type Parsed<T> = Result<T, LimitExceeded>;

/// The kind of error at the current token.
#[derive(Debug)]
pub(super) enum RuleErrorKind {
    /// The current token is not in this set.
    Mismatch(TokenSet),
    /// No alternative begins with the tokens from the current one up to `further` tokens ahead.
    NoAlternative { further: usize },
}

/// Why the parsing of a rule ends early.
#[derive(Debug)]
pub(super) enum EarlyRuleEnd {
    Failed { place: GrammarPosition, kind: RuleErrorKind },
    LimitExceeded,
}

/// The result of the body of a rule.
pub(super) type RuleResult = Result<(), EarlyRuleEnd>;

impl From<LimitExceeded> for EarlyRuleEnd {
    fn from(_: LimitExceeded) -> Self {
        EarlyRuleEnd::LimitExceeded
    }
}

/// The state of the parser: tokens, open rules and reported errors.
pub(super) struct Parser<'t> {
    pub(super) text: &'t str,
    lexer: Lexer<'t>,
    /// All tokens read so far that are not white space or comments.
    pub(super) tokens: Vec<Token>,
    /// The current token, as a position in `tokens`.
    pub(super) cursor: usize,
    /// For each rule being parsed, the tokens that can follow it; the innermost is last.
    pub(super) follows: Vec<TokenSet>,
    depths: [u32; 17],
    pub(super) recovering: bool,
    /// The position at which the last error recovery began, and the parser positions since then at which a
    /// token matched.
    pub(super) last_fault: Option<(usize, Vec<GrammarPosition>)>,
    pub(super) recoveries: usize,
    reports: usize,
    pub(super) issues: Issues<'t>,
    pub(super) nodes: Vec<Node>,
}

impl<'t> Parser<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Parser {
            text,
            lexer: Lexer::new(text, 0),
            tokens: Vec::with_capacity(text.len() / 2),
            cursor: 0,
            follows: Vec::with_capacity(32),
            depths: [0; 17],
            recovering: false,
            last_fault: None,
            recoveries: 0,
            reports: 0,
            issues: Issues::new(text),
            nodes: Vec::with_capacity(text.len() / 4),
        }
    }

    /// Adds a node to the arena.
    pub(super) fn add(&mut self, node: Node) -> NodeIndex {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    // — tokens —

    /// The token `distance` after the current one; the end of the text past the last one.
    pub(super) fn peek(&mut self, distance: usize) -> Parsed<Token> {
        loop {
            let last = || self.tokens.last().filter(|last| last.kind == TokenKind::Eof);
            if let Some(token) = self.tokens.get(self.cursor + distance).or_else(last) {
                return Ok(*token);
            }
            self.read_token()?;
        }
    }

    /// Reads the next token, and reports what is no token.
    fn read_token(&mut self) -> Parsed<()> {
        let token = self.lexer.next_token();
        match token.kind {
            TokenKind::Hidden => {}
            TokenKind::Unknown => {
                let message = format!("token recognition error at: '{}'", self.text_of(token));
                self.report_syntax_error(token.start, &message)?;
            }
            _ => self.tokens.push(token),
        }
        Ok(())
    }

    /// The kind of the current token.
    pub(super) fn current_kind(&mut self) -> Parsed<TokenKind> {
        Ok(self.peek(0)?.kind)
    }

    /// The byte at which the current token starts.
    pub(super) fn token_start(&mut self) -> Parsed<usize> {
        Ok(self.peek(0)?.start)
    }

    /// Ends error recovery, and consumes the current token, which is known to match.
    pub(super) fn take_and_end_recovery(&mut self) -> Parsed<Token> {
        self.end_recovery();
        self.advance_past_current_token()
    }

    /// Moves past the current token and returns it; stays at the end of the text.
    pub(super) fn advance_past_current_token(&mut self) -> Parsed<Token> {
        let token = self.peek(0)?;
        if token.kind != TokenKind::Eof {
            self.cursor += 1;
            self.peek(0)?;
        }
        Ok(token)
    }

    /// Consumes the current token if it has this kind; otherwise returns `None`.
    pub(super) fn take_if(&mut self, kind: TokenKind) -> Parsed<Option<Token>> {
        if self.current_kind()? == kind { self.take_and_end_recovery().map(Some) } else { Ok(None) }
    }

    // — rules —

    /// Parses a rule into `found` by calling `body`. `follow` are the tokens that can follow it. After an
    /// error, recovers and returns the result so far.
    pub(super) fn parse_rule_with_recovery<T>(
        &mut self,
        rule: GrammarRule,
        follow: TokenSet,
        mut found: T,
        body: impl FnOnce(&mut Self, &mut T) -> RuleResult,
    ) -> Parsed<T> {
        self.peek(0)?;
        self.follows.push(follow);
        self.count_rule_entry(rule)?;
        match body(self, &mut found) {
            Ok(()) => {}
            Err(EarlyRuleEnd::LimitExceeded) => return Err(LimitExceeded),
            Err(EarlyRuleEnd::Failed { place, kind }) => {
                self.report_rule_error_unless_recovering(&kind)?;
                self.skip_to_recovery_token(place)?;
            }
        }
        self.count_rule_exit(rule);
        self.follows.pop();
        Ok(found)
    }

    /// Parses a rule that is one node; `Broken` if nothing was found.
    pub(super) fn parse_node_rule(
        &mut self,
        rule: GrammarRule,
        follow: TokenSet,
        body: impl FnOnce(&mut Self, &mut Option<NodeIndex>) -> RuleResult,
    ) -> Parsed<NodeIndex> {
        let found = self.parse_rule_with_recovery(rule, follow, None, body)?;
        Ok(found.unwrap_or_else(|| self.add(Node::Broken { at: None })))
    }

    /// Counts entering a rule, or another iteration of it. Fails beyond the depth limit.
    pub(super) fn count_rule_entry(&mut self, rule: GrammarRule) -> Parsed<()> {
        let Some(depth) = self.depths.get_mut(rule as usize) else { return Ok(()) };
        *depth += 1;
        if *depth > MAX_RULE_DEPTH {
            self.issues.report_unpositioned(format!("expression recursion limit exceeded: {MAX_RULE_DEPTH}"));
            return Err(LimitExceeded);
        }
        Ok(())
    }

    /// Counts that a rule is left.
    pub(super) fn count_rule_exit(&mut self, rule: GrammarRule) {
        if let Some(depth) = self.depths.get_mut(rule as usize) {
            *depth = depth.saturating_sub(1);
        }
    }

    /// The error that no alternative matches the tokens up to `further` ahead.
    pub(super) fn no_alternative_error(place: GrammarPosition, further: usize) -> EarlyRuleEnd {
        EarlyRuleEnd::Failed { place, kind: RuleErrorKind::NoAlternative { further } }
    }

    /// Consumes a token of this kind, which `then` can follow. Reports and skips a single extra or missing
    /// token; otherwise fails.
    pub(super) fn expect_or_recover_one_token(
        &mut self,
        place: GrammarPosition,
        kind: TokenKind,
        then: TokenSet,
    ) -> RuleResult {
        if self.current_kind()? == kind {
            self.take_and_end_recovery()?;
            return Ok(());
        }
        self.count_recovery()?;
        let expected = TokenSet::from_kinds(&[kind]);
        if self.report_and_skip_if_next_is_expected(expected)? {
            self.advance_past_current_token()?;
            return Ok(());
        }
        let current = self.current_kind()?;
        if self.with_follow_of_rules_that_may_end(then).has(current) {
            self.report_missing(expected)?;
            return Ok(());
        }
        Err(EarlyRuleEnd::Failed { place, kind: RuleErrorKind::Mismatch(expected) })
    }

    /// Checks that the current token is one of `expected` before a choice. Skips it if the next one is;
    /// otherwise fails.
    pub(super) fn check_expected_or_skip_one_token(
        &mut self,
        place: GrammarPosition,
        expected: TokenSet,
    ) -> RuleResult {
        if self.recovering
            || expected.has(self.current_kind()?)
            || self.report_and_skip_if_next_is_expected(expected)?
        {
            return Ok(());
        }
        Err(EarlyRuleEnd::Failed { place, kind: RuleErrorKind::Mismatch(expected) })
    }

    /// Before another iteration of a loop: reports and skips tokens that neither continue nor follow it.
    pub(super) fn report_and_skip_unexpected(&mut self, expected: TokenSet) -> Parsed<()> {
        if self.recovering || expected.has(self.current_kind()?) {
            return Ok(());
        }
        self.report_unwanted(expected)?;
        let wanted = expected.or(self.recovery_set());
        loop {
            let current = self.current_kind()?;
            if current == TokenKind::Eof || wanted.has(current) {
                return Ok(());
            }
            self.advance_past_current_token()?;
        }
    }

    // — texts —

    /// Reports a syntax error; stops the parser if there are too many.
    pub(super) fn report_syntax_error(&mut self, at: usize, message: &str) -> Parsed<()> {
        if self.reports == MAX_REPORTS {
            self.issues.report(at, format!("Syntax error: More than {MAX_REPORTS} syntax errors"));
            return Err(LimitExceeded);
        }
        self.reports += 1;
        self.issues.report(at, format!("Syntax error: {message}"));
        Ok(())
    }

    /// The text of a token.
    pub(super) fn text_of(&self, token: Token) -> &'t str {
        self.text.get(token.start..token.end).unwrap_or("")
    }
}
