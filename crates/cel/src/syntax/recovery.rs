//! How the parser continues after an error, and the text of the error, as in the server's parser.
//!
//! A single extra token is skipped, and a single missing token is assumed. Otherwise the rule ends, and tokens are
//! skipped up to one with which a rule that is being parsed can continue. Until a token matches again, no further
//! errors are reported.

use super::lexer::Lexer;
use super::parser::{GrammarPosition, LimitExceeded, Parsed, Parser, RuleErrorKind};
use super::token::{Token, TokenKind, TokenSet};

/// Maximum number of recoveries, cel-go's `errorRecoveryLimit`.
const MAX_RECOVERIES: usize = 30;
/// Maximum number of skipped tokens, cel-go's `errorRecoveryTokenLookaheadLimit`.
const MAX_SKIPPED: usize = 256;

impl Parser<'_> {
    /// Ends error recovery after a token matched, so that errors are reported again.
    pub(super) fn end_recovery(&mut self) {
        self.recovering = false;
        self.last_fault = None;
    }

    /// Counts a recovery; stops the parser if there are too many.
    pub(super) fn count_recovery(&mut self) -> Parsed<()> {
        if self.recoveries == MAX_RECOVERIES {
            let at = self.token_start()?;
            self.report_syntax_error(
                at,
                &format!("error recovery attempt limit exceeded: {MAX_RECOVERIES}"),
            )?;
            return Err(LimitExceeded);
        }
        self.recoveries += 1;
        Ok(())
    }

    /// Reports and skips the current token if the next one is expected; otherwise returns false.
    pub(super) fn report_and_skip_if_next_is_expected(&mut self, expected: TokenSet) -> Parsed<bool> {
        if !expected.has(self.peek(1)?.kind) {
            return Ok(false);
        }
        self.report_unwanted(expected)?;
        self.advance_past_current_token()?;
        self.end_recovery();
        Ok(true)
    }

    /// The set, extended by the tokens that can follow the current rule and the enclosing rules that may end
    /// here.
    pub(super) fn with_follow_of_rules_that_may_end(&self, set: TokenSet) -> TokenSet {
        let mut all = set;
        let mut ends = set.may_end_rule();
        let mut outer = self.follows.iter().rev();
        while ends {
            let Some(follow) = outer.next() else { return all.or(TokenSet::from_kinds(&[TokenKind::Eof])) };
            all = all.or(*follow);
            ends = follow.may_end_rule();
        }
        all
    }

    /// The tokens with which any rule being parsed can continue.
    pub(super) fn recovery_set(&self) -> TokenSet {
        self.follows.iter().fold(TokenSet::EMPTY, |all, follow| all.or(*follow))
    }

    /// Skips to a token with which any rule being parsed can continue.
    pub(super) fn skip_to_recovery_token(&mut self, place: GrammarPosition) -> Parsed<()> {
        self.count_recovery()?;
        let mut skipped = 0;
        let mut places = match self.last_fault.take() {
            Some((cursor, places)) if cursor == self.cursor && places.contains(&place) => {
                self.skip_token(&mut skipped)?;
                places
            }
            Some((_, places)) => places,
            None => Vec::new(),
        };
        places.push(place);
        self.last_fault = Some((self.cursor, places));
        let wanted = self.recovery_set();
        loop {
            let current = self.current_kind()?;
            if current == TokenKind::Eof || wanted.has(current) {
                return Ok(());
            }
            self.skip_token(&mut skipped)?;
        }
    }

    /// Skips a token; stops the parser if there were too many.
    fn skip_token(&mut self, skipped: &mut usize) -> Parsed<()> {
        if *skipped >= MAX_SKIPPED {
            self.issues
                .report_unpositioned(format!("error recovery token lookahead limit exceeded: {MAX_SKIPPED}"));
            return Err(LimitExceeded);
        }
        *skipped += 1;
        self.advance_past_current_token().map(|_| ())
    }

    /// Reports an error, unless the parser is still recovering from another one.
    pub(super) fn report_rule_error_unless_recovering(&mut self, kind: &RuleErrorKind) -> Parsed<()> {
        match *kind {
            RuleErrorKind::Mismatch(expected) => self.report_at_token_unless_recovering(|token| {
                format!("mismatched input {token} expecting {}", expected.describe())
            }),
            RuleErrorKind::NoAlternative { .. } if self.recovering => Ok(()),
            RuleErrorKind::NoAlternative { further } => {
                self.recovering = true;
                let at = self.peek(further)?.start;
                let input = self.upcoming_text(further)?;
                let message = match input.get(1..).filter(|rest| matches!(*rest, "true" | "false" | "null")) {
                    // cel-go words this one itself
                    Some(keyword) => format!("mismatched input '{keyword}' expecting IDENTIFIER"),
                    None => format!("no viable alternative at input '{}'", escape_white_space(&input)),
                };
                self.report_syntax_error(at, &message)
            }
        }
    }

    /// Reports that the current token is one too many.
    pub(super) fn report_unwanted(&mut self, expected: TokenSet) -> Parsed<()> {
        self.report_at_token_unless_recovering(|token| {
            format!("extraneous input {token} expecting {}", expected.describe())
        })
    }

    /// Reports that a token is missing before the current one.
    pub(super) fn report_missing(&mut self, expected: TokenSet) -> Parsed<()> {
        self.report_at_token_unless_recovering(|token| format!("missing {} at {token}", expected.describe()))
    }

    /// Reports an error about the current token, unless the parser is still recovering from another one.
    fn report_at_token_unless_recovering(&mut self, message: impl FnOnce(&str) -> String) -> Parsed<()> {
        if self.recovering {
            return Ok(());
        }
        self.recovering = true;
        let token = self.peek(0)?;
        self.report_syntax_error(token.start, &message(&self.quote(token)))
    }

    /// The text of a token in quotes, for messages.
    fn quote(&self, token: Token) -> String {
        if token.kind == TokenKind::Eof {
            return "'<EOF>'".to_owned();
        }
        format!("'{}'", escape_white_space(self.text_of(token)))
    }

    /// The text of the tokens from the current one up to `further` after it, without parts that are no tokens.
    fn upcoming_text(&mut self, further: usize) -> Parsed<String> {
        if self.current_kind()? == TokenKind::Eof {
            return Ok("<EOF>".to_owned());
        }
        let (first, last) = (self.peek(0)?, self.peek(further)?);
        let (mut lexer, mut input) = (Lexer::new(self.text, first.start), String::new());
        loop {
            let token = lexer.next_token();
            if token.kind != TokenKind::Unknown {
                input.push_str(self.text_of(token));
            }
            if token.end >= last.end {
                return Ok(input);
            }
        }
    }
}

/// The text with tabs and line breaks written as escapes.
fn escape_white_space(text: &str) -> String {
    text.replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r")
}
