//! The rules of the grammar from the whole expression down to its unary operators.

use super::parser::{Parser, Place, Rule, RuleEnd, Stop};
use super::token::{Kind, TokenSet};
use super::tree::{Node, NodeIndex};

use Kind::{
    And, Bytes, Colon, Dot, Eof, Equals, False, Float, Greater, GreaterEquals, Identifier, In, Int,
    LeftBrace, LeftBracket, LeftParen, Less, LessEquals, Minus, Not, NotEquals, Null, Or, Percent, Plus,
    Question, Slash, Star, String, True, Uint,
};

/// The tokens that can begin a literal.
pub(super) const LITERAL: TokenSet =
    TokenSet::of(&[Minus, True, False, Null, Float, Int, Uint, String, Bytes]);
/// The tokens that can begin an operand.
pub(super) const MEMBER: TokenSet =
    LITERAL.or(TokenSet::of(&[LeftBracket, LeftBrace, LeftParen, Dot, Identifier]));
/// The tokens that can begin an expression.
pub(super) const EXPR: TokenSet = MEMBER.or(TokenSet::of(&[Not]));

const RELATION: TokenSet = TokenSet::of(&[Equals, NotEquals, In, Less, LessEquals, GreaterEquals, Greater]);
const PRODUCT: TokenSet = TokenSet::of(&[Star, Slash, Percent]);
const SUM: TokenSet = TokenSet::of(&[Minus, Plus]);

/// Minimum remaining stack size in bytes. The stack is grown if less is left.
const RED_ZONE: usize = 256 << 10;
const MORE_STACK: usize = 4 << 20;

impl Parser<'_> {
    /// Parses the whole text as one expression.
    pub(super) fn text(&mut self) -> Result<NodeIndex, Stop> {
        // Nobody calls the first rule, so nothing follows it.
        self.node(Rule::Start, TokenSet::EMPTY, |parser, root| {
            *root = Some(parser.expr(TokenSet::of(&[Eof]))?);
            parser.expect(Place::EndOfText, Eof, TokenSet::END)
        })
    }

    /// Parses an expression, on a new piece of stack if little is left; `follow` is what may come after it.
    pub(super) fn expr(&mut self, follow: TokenSet) -> Result<NodeIndex, Stop> {
        stacker::maybe_grow(RED_ZONE, MORE_STACK, || self.expr_here(follow))
    }

    /// Parses an expression such as `a ? b : c`.
    fn expr_here(&mut self, follow: TokenSet) -> Result<NodeIndex, Stop> {
        let (op, parts) = self.rule(Rule::Expr, follow, (None, [None; 3]), |parser, (op, parts)| {
            let [condition, then, otherwise] = parts;
            *condition = Some(parser.or(TokenSet::END.or(TokenSet::of(&[Question])))?);
            if let Some(question) = parser.take_if(Question)? {
                *op = Some(question.start);
                *then = Some(parser.or(TokenSet::of(&[Colon]))?);
                parser.expect(Place::ConditionalColon, Colon, EXPR)?;
                *otherwise = Some(parser.expr(TokenSet::END)?);
            }
            Ok(())
        })?;
        Ok(match (op, parts) {
            (Some(op), parts) => self.add(Node::Conditional { op, parts }),
            (None, [Some(only), ..]) => only,
            (None, _) => self.add(Node::Broken { at: None }),
        })
    }

    /// Parses a chain of `||`.
    fn or(&mut self, follow: TokenSet) -> Result<NodeIndex, Stop> {
        self.logic(Rule::Or, Or, follow, Self::and)
    }

    /// Parses a chain of `&&`.
    fn and(&mut self, follow: TokenSet) -> Result<NodeIndex, Stop> {
        self.logic(Rule::And, And, follow, |parser, follow| parser.relation(0, follow))
    }

    /// Parses a chain of one logical operator, whose terms `term` parses.
    fn logic(
        &mut self,
        rule: Rule,
        operator: Kind,
        follow: TokenSet,
        term: fn(&mut Self, TokenSet) -> Result<NodeIndex, Stop>,
    ) -> Result<NodeIndex, Stop> {
        // Nearly every operand is read through here and stands alone: one term needs no list.
        let none = (None, Vec::new(), Vec::new());
        let (first, more, ops) = self.rule(rule, follow, none, |parser, (first, more, ops)| {
            let after = TokenSet::END.or(TokenSet::of(&[operator]));
            *first = Some(term(parser, after)?);
            while let Some(token) = parser.take_if(operator)? {
                ops.push(token.start);
                more.push(term(parser, after)?);
            }
            Ok(())
        })?;
        Ok(match first {
            Some(only) if more.is_empty() => only,
            first => self.add(Node::Logic { terms: first.into_iter().chain(more).collect(), ops }),
        })
    }

    /// Parses a chain of relations. Operators below `precedence` are left to the caller.
    fn relation(&mut self, precedence: u8, follow: TokenSet) -> Result<NodeIndex, Stop> {
        let after = TokenSet::END.or(RELATION);
        self.binary(Rule::Relation, follow, move |parser, left| {
            let Some(left) = *left else { return parser.calc(0, after).map(Some) };
            if precedence > 1 || !RELATION.has(parser.current()?) {
                return Ok(None);
            }
            parser.go_round(Rule::Relation)?;
            let op = parser.take()?.start;
            let right = parser.relation(2, after)?;
            Ok(Some(parser.add(Node::Binary { op, sides: [left, right] })))
        })
    }

    /// Parses a chain of sums and products. Operators below `precedence` are left to the caller.
    fn calc(&mut self, precedence: u8, follow: TokenSet) -> Result<NodeIndex, Stop> {
        let after = TokenSet::END.or(PRODUCT).or(SUM);
        self.binary(Rule::Calc, follow, move |parser, left| {
            let Some(left) = *left else { return parser.unary(after).map(Some) };
            let operator = parser.current()?;
            let right_precedence = if PRODUCT.has(operator) && precedence <= 2 {
                3
            } else if SUM.has(operator) && precedence <= 1 {
                2
            } else {
                return Ok(None);
            };
            parser.go_round(Rule::Calc)?;
            let op = parser.take()?.start;
            let right = parser.calc(right_precedence, after)?;
            Ok(Some(parser.add(Node::Binary { op, sides: [left, right] })))
        })
    }

    /// Parses a chain of left-associative operators: `next` parses the first operand, and then, with the left side so
    /// far, an operator and its right side; `None` ends the chain.
    fn binary(
        &mut self,
        rule: Rule,
        follow: TokenSet,
        next: impl Fn(&mut Self, &Option<NodeIndex>) -> Result<Option<NodeIndex>, Stop>,
    ) -> Result<NodeIndex, Stop> {
        self.node(rule, follow, |parser, found| {
            while let Some(more) = next(parser, found)? {
                *found = Some(more);
            }
            Ok(())
        })
    }

    /// Counts a rule as left and entered again, as the server does for each operator of a left-recursive
    /// rule.
    pub(super) fn go_round(&mut self, rule: Rule) -> Result<(), Stop> {
        self.count_out(rule);
        self.count_in(rule)
    }

    /// Parses an operand with the `!` or `-` before it.
    fn unary(&mut self, follow: TokenSet) -> Result<NodeIndex, Stop> {
        let at = Some(self.start()?);
        let found = self.rule(Rule::Unary, follow, None, |parser, found| {
            parser.sync(Place::Unary, EXPR)?;
            match parser.current()? {
                Not => parser.not(found),
                // The minus of a number belongs to it.
                Minus if !matches!(parser.peek(1)?.kind, Int | Float) => parser.negation(found),
                first if MEMBER.has(first) => {
                    *found = Some(parser.member()?);
                    Ok(())
                }
                _ => Err(Self::no_alternative(Place::Unary, 0)),
            }
        })?;
        Ok(found.unwrap_or_else(|| self.add(Node::Broken { at })))
    }

    /// Parses any number of `!` and their operand.
    fn not(&mut self, found: &mut Option<NodeIndex>) -> Result<(), RuleEnd> {
        let op = self.start()?;
        let mut count = 0;
        while self.take_if(Not)?.is_some() {
            count += 1;
            self.sync_loop(EXPR)?;
        }
        let operand = Some(self.member()?);
        *found = Some(self.add(Node::Prefix { op, count, operand }));
        Ok(())
    }

    /// Parses any number of `-` and their operand, which is not a number.
    fn negation(&mut self, found: &mut Option<NodeIndex>) -> Result<(), RuleEnd> {
        let op = self.start()?;
        if !MEMBER.has(self.peek(1)?.kind) {
            return Err(Self::no_alternative(Place::Unary, 1));
        }
        let mut count = 0;
        while self.take_if(Minus)?.is_some() {
            count += 1;
            *found = Some(self.add(Node::Prefix { op, count, operand: None }));
            self.sync_loop(MEMBER)?;
            match self.current()? {
                Minus if MEMBER.has(self.peek(1)?.kind) => {}
                Minus => return Err(Self::no_alternative(Place::AfterMinus, 1)),
                next if MEMBER.has(next) => {}
                _ => return Err(Self::no_alternative(Place::AfterMinus, 0)),
            }
        }
        let operand = Some(self.member()?);
        *found = Some(self.add(Node::Prefix { op, count, operand }));
        Ok(())
    }
}
