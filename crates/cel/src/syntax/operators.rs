//! The rules of the grammar from the whole expression down to its unary operators.

use super::parser::{GrammarPosition, GrammarRule, Parsed, Parser, RuleResult};
use super::token::{TokenKind, TokenSet};
use super::tree::{Node, NodeIndex};

use TokenKind::{
    And, Bytes, Colon, Dot, Eof, Equals, False, Float, Greater, GreaterEquals, Identifier, In, Int,
    LeftBrace, LeftBracket, LeftParen, Less, LessEquals, Minus, Not, NotEquals, Null, Or, Percent, Plus,
    Question, Slash, Star, String, True, Uint,
};

/// The tokens that can begin a literal.
pub(super) const LITERAL_START: TokenSet =
    TokenSet::from_kinds(&[Minus, True, False, Null, Float, Int, Uint, String, Bytes]);
/// The tokens that can begin an operand.
pub(super) const MEMBER_START: TokenSet =
    LITERAL_START.or(TokenSet::from_kinds(&[LeftBracket, LeftBrace, LeftParen, Dot, Identifier]));
/// The tokens that can begin an expression.
pub(super) const EXPR_START: TokenSet = MEMBER_START.or(TokenSet::from_kinds(&[Not]));

const RELATION_OPERATORS: TokenSet =
    TokenSet::from_kinds(&[Equals, NotEquals, In, Less, LessEquals, GreaterEquals, Greater]);
const PRODUCT_OPERATORS: TokenSet = TokenSet::from_kinds(&[Star, Slash, Percent]);
const SUM_OPERATORS: TokenSet = TokenSet::from_kinds(&[Minus, Plus]);

/// Minimum remaining stack size in bytes. The stack is grown if less is left.
const MIN_FREE_STACK_BYTES: usize = 256 << 10;
const EXTRA_STACK_BYTES: usize = 4 << 20;

impl Parser<'_> {
    /// Parses the whole text as one expression.
    pub(super) fn whole_text(&mut self) -> Parsed<NodeIndex> {
        // Nobody calls the first rule, so nothing follows it.
        self.parse_node_rule(GrammarRule::Start, TokenSet::EMPTY, |parser, root| {
            *root = Some(parser.expr(TokenSet::from_kinds(&[Eof]))?);
            parser.expect_or_recover_one_token(GrammarPosition::EndOfText, Eof, TokenSet::RULE_END)
        })
    }

    /// Parses an expression, on a new piece of stack if little is left; `follow` is what may come after it.
    pub(super) fn expr(&mut self, follow: TokenSet) -> Parsed<NodeIndex> {
        stacker::maybe_grow(MIN_FREE_STACK_BYTES, EXTRA_STACK_BYTES, || self.expr_on_current_stack(follow))
    }

    /// Parses an expression such as `a ? b : c`.
    fn expr_on_current_stack(&mut self, follow: TokenSet) -> Parsed<NodeIndex> {
        let (op, parts) = self.parse_rule_with_recovery(
            GrammarRule::Expr,
            follow,
            (None, [None; 3]),
            |parser, (op, parts)| {
                let [condition, then, otherwise] = parts;
                *condition = Some(parser.or(TokenSet::RULE_END.or(TokenSet::from_kinds(&[Question])))?);
                if let Some(question) = parser.take_if(Question)? {
                    *op = Some(question.start);
                    *then = Some(parser.or(TokenSet::from_kinds(&[Colon]))?);
                    parser.expect_or_recover_one_token(
                        GrammarPosition::ConditionalColon,
                        Colon,
                        EXPR_START,
                    )?;
                    *otherwise = Some(parser.expr(TokenSet::RULE_END)?);
                }
                Ok(())
            },
        )?;
        Ok(match (op, parts) {
            (Some(op), parts) => self.add(Node::Conditional { op, parts }),
            (None, [Some(only), ..]) => only,
            (None, _) => self.add(Node::Broken { at: None }),
        })
    }

    /// Parses a chain of `||`.
    fn or(&mut self, follow: TokenSet) -> Parsed<NodeIndex> {
        self.logical_chain(GrammarRule::Or, (Or, "_||_"), follow, Self::and)
    }

    /// Parses a chain of `&&`.
    fn and(&mut self, follow: TokenSet) -> Parsed<NodeIndex> {
        self.logical_chain(GrammarRule::And, (And, "_&&_"), follow, Self::relation)
    }

    /// Parses a chain of one logical operator, whose terms `term` parses.
    fn logical_chain(
        &mut self,
        rule: GrammarRule,
        (operator, function): (TokenKind, &'static str),
        follow: TokenSet,
        term: fn(&mut Self, TokenSet) -> Parsed<NodeIndex>,
    ) -> Parsed<NodeIndex> {
        // Nearly every operand is read through here and stands alone: one term needs no list.
        let none = (None, Vec::new(), Vec::new());
        let (first, more, ops) =
            self.parse_rule_with_recovery(rule, follow, none, |parser, (first, more, ops)| {
                let after = TokenSet::RULE_END.or(TokenSet::from_kinds(&[operator]));
                *first = Some(term(parser, after)?);
                while let Some(token) = parser.take_if(operator)? {
                    ops.push(token.start);
                    more.push(term(parser, after)?);
                }
                Ok(())
            })?;
        Ok(match first {
            Some(only) if more.is_empty() => only,
            first => self.add(Node::Logic { function, terms: first.into_iter().chain(more).collect(), ops }),
        })
    }

    /// Parses a chain of relations.
    fn relation(&mut self, follow: TokenSet) -> Parsed<NodeIndex> {
        self.binary_chain(GrammarRule::Relation, 0, follow, &[RELATION_OPERATORS], Self::arithmetic)
    }

    /// Parses a chain of sums and products.
    fn arithmetic(&mut self, follow: TokenSet) -> Parsed<NodeIndex> {
        let levels = &[SUM_OPERATORS, PRODUCT_OPERATORS];
        self.binary_chain(GrammarRule::Calc, 0, follow, levels, Self::unary)
    }

    /// Parses a chain of left-associative operators, whose operands `operand` parses. `levels` are the operators by
    /// precedence, the lowest first. Operators below `precedence` are left to the caller.
    fn binary_chain(
        &mut self,
        rule: GrammarRule,
        precedence: usize,
        follow: TokenSet,
        levels: &[TokenSet],
        operand: fn(&mut Self, TokenSet) -> Parsed<NodeIndex>,
    ) -> Parsed<NodeIndex> {
        let after = levels.iter().fold(TokenSet::RULE_END, |all, level| all.or(*level));
        self.parse_node_rule(rule, follow, |parser, found| {
            let mut left = operand(parser, after)?;
            loop {
                *found = Some(left);
                let kind = parser.current_kind()?;
                let level = levels.iter().position(|level| level.has(kind));
                let Some(level) = level.filter(|level| *level >= precedence) else { return Ok(()) };
                // The server leaves and enters a left-recursive rule again at each operator.
                parser.count_rule_exit(rule);
                parser.count_rule_entry(rule)?;
                let operator = parser.take_and_end_recovery()?;
                let right = parser.binary_chain(rule, level + 1, after, levels, operand)?;
                left = parser.add(Node::Binary { operator, sides: [left, right] });
            }
        })
    }

    /// Parses an operand with the `!` or `-` before it.
    fn unary(&mut self, follow: TokenSet) -> Parsed<NodeIndex> {
        let at = Some(self.token_start()?);
        let found = self.parse_rule_with_recovery(GrammarRule::Unary, follow, None, |parser, found| {
            parser.check_expected_or_skip_one_token(GrammarPosition::Unary, EXPR_START)?;
            match parser.current_kind()? {
                Not => parser.not(found),
                // The minus of a number belongs to it.
                Minus if !matches!(parser.peek(1)?.kind, Int | Float) => parser.negation(found),
                first if MEMBER_START.has(first) => {
                    *found = Some(parser.member()?);
                    Ok(())
                }
                _ => Err(Self::no_alternative_error(GrammarPosition::Unary, 0)),
            }
        })?;
        Ok(found.unwrap_or_else(|| self.add(Node::Broken { at })))
    }

    /// Parses any number of `!` and their operand.
    fn not(&mut self, found: &mut Option<NodeIndex>) -> RuleResult {
        let op = self.token_start()?;
        let mut count = 0;
        while self.take_if(Not)?.is_some() {
            count += 1;
            self.report_and_skip_unexpected(EXPR_START)?;
        }
        let operand = Some(self.member()?);
        *found = Some(self.add(Node::Prefix { op, function: "!_", count, operand }));
        Ok(())
    }

    /// Parses any number of `-` and their operand, which is not a number.
    fn negation(&mut self, found: &mut Option<NodeIndex>) -> RuleResult {
        let op = self.token_start()?;
        if !MEMBER_START.has(self.peek(1)?.kind) {
            return Err(Self::no_alternative_error(GrammarPosition::Unary, 1));
        }
        let mut count = 0;
        while self.take_if(Minus)?.is_some() {
            count += 1;
            *found = Some(self.add(Node::Prefix { op, function: "-_", count, operand: None }));
            self.report_and_skip_unexpected(MEMBER_START)?;
            match self.current_kind()? {
                Minus if MEMBER_START.has(self.peek(1)?.kind) => {}
                Minus => return Err(Self::no_alternative_error(GrammarPosition::AfterMinus, 1)),
                next if MEMBER_START.has(next) => {}
                _ => return Err(Self::no_alternative_error(GrammarPosition::AfterMinus, 0)),
            }
        }
        let operand = Some(self.member()?);
        *found = Some(self.add(Node::Prefix { op, function: "-_", count, operand }));
        Ok(())
    }
}
