//! The rules of the grammar for operands: members, names, calls, brackets, literals.

use super::operators::{EXPR_START, LITERAL_START, MEMBER_START};
use super::parser::{GrammarPosition, GrammarRule, Parsed, Parser, RuleResult};
use super::token::{Token, TokenKind, TokenSet};
use super::tree::{FieldNameToken, MessageField, NameToken, Node, NodeIndex};
use crate::tree::{Element, MapEntry};

use TokenKind::{
    Colon, Comma, Dot, EscapedIdentifier, Float, Identifier, Int, LeftBrace, LeftBracket, LeftParen, Minus,
    Question, RightBrace, RightBracket, RightParen,
};

const MEMBER_OPERATOR: TokenSet = TokenSet::from_kinds(&[Dot, LeftBracket]);
const AFTER_MEMBER: TokenSet = TokenSet::RULE_END.or(MEMBER_OPERATOR);
const OPTIONAL_EXPR_START: TokenSet = EXPR_START.or(TokenSet::from_kinds(&[Question]));
const FIELD_NAME_START: TokenSet = TokenSet::from_kinds(&[Identifier, EscapedIdentifier]);
const OPTIONAL_FIELD_START: TokenSet = FIELD_NAME_START.or(TokenSet::from_kinds(&[Question]));
const ARGUMENTS_START: TokenSet = EXPR_START.or(TokenSet::from_kinds(&[RightParen]));
const AFTER_ELEMENT: TokenSet = TokenSet::RULE_END.or(TokenSet::from_kinds(&[Comma]));

impl Parser<'_> {
    /// Parses an operand with the selections, calls and indexes after it.
    pub(super) fn member(&mut self) -> Parsed<NodeIndex> {
        self.parse_node_rule(GrammarRule::Member, TokenSet::RULE_END, |parser, found| {
            let mut operand = parser.primary()?;
            *found = Some(operand);
            while MEMBER_OPERATOR.has(parser.current_kind()?) {
                parser.count_rule_exit(GrammarRule::Member);
                if parser.current_kind()? == LeftBracket {
                    parser.member_index(operand, found)?;
                } else {
                    match parser.peek(1)?.kind {
                        Identifier if parser.peek(2)?.kind == LeftParen => {
                            parser.member_call(operand, found)?
                        }
                        Identifier | EscapedIdentifier | Question => parser.member_field(operand, found)?,
                        _ => return Err(Self::no_alternative_error(GrammarPosition::MemberOperator, 1)),
                    }
                }
                operand = found.unwrap_or(operand);
            }
            Ok(())
        })
    }

    /// Parses `[index]` or `[?index]` after an operand.
    fn member_index(&mut self, operand: NodeIndex, found: &mut Option<NodeIndex>) -> RuleResult {
        self.count_rule_entry(GrammarRule::Member)?;
        let op = self.take_and_end_recovery()?.start;
        *found = Some(self.add(Node::Index { op, operand, optional: false, index: None }));
        self.check_expected_or_skip_one_token(GrammarPosition::IndexStart, OPTIONAL_EXPR_START)?;
        let optional = self.take_if(Question)?.is_some();
        let index = Some(self.expr(TokenSet::from_kinds(&[RightBracket]))?);
        *found = Some(self.add(Node::Index { op, operand, optional, index }));
        self.expect_or_recover_one_token(GrammarPosition::IndexClose, RightBracket, AFTER_MEMBER)
    }

    /// Parses `.field` or `.?field` after an operand.
    fn member_field(&mut self, operand: NodeIndex, found: &mut Option<NodeIndex>) -> RuleResult {
        self.count_rule_entry(GrammarRule::Member)?;
        let op = self.take_and_end_recovery()?.start;
        let optional = self.take_if(Question)?.is_some();
        let field = self.field_name(AFTER_MEMBER)?;
        *found = Some(self.add(Node::Select { op, operand, optional, field }));
        Ok(())
    }

    /// Parses `.name(args)` after an operand.
    fn member_call(&mut self, target: NodeIndex, found: &mut Option<NodeIndex>) -> RuleResult {
        self.count_rule_entry(GrammarRule::Member)?;
        self.take_and_end_recovery()?;
        let name = self.take_and_end_recovery()?;
        let open = self.take_and_end_recovery()?.start;
        *found = Some(self.add(Node::MemberCall { open, target, name, args: Vec::new() }));
        self.check_expected_or_skip_one_token(GrammarPosition::MemberArguments, ARGUMENTS_START)?;
        let args = self.arguments()?;
        *found = Some(self.add(Node::MemberCall { open, target, name, args }));
        self.expect_or_recover_one_token(GrammarPosition::MemberClose, RightParen, AFTER_MEMBER)
    }

    /// Parses the arguments of a call, which may be none, up to the parenthesis.
    fn arguments(&mut self) -> Parsed<Vec<NodeIndex>> {
        if !EXPR_START.has(self.current_kind()?) {
            return Ok(Vec::new());
        }
        self.parse_rule_with_recovery(
            GrammarRule::ExprList,
            TokenSet::from_kinds(&[RightParen]),
            Vec::new(),
            |parser, args| {
                args.push(parser.expr(AFTER_ELEMENT)?);
                while parser.take_if(Comma)?.is_some() {
                    args.push(parser.expr(AFTER_ELEMENT)?);
                }
                Ok(())
            },
        )
    }

    /// Parses the name of a field; `follow` is what may come after it.
    fn field_name(&mut self, follow: TokenSet) -> Parsed<FieldNameToken> {
        let found = FieldNameToken { start: self.token_start()?, token: None };
        self.parse_rule_with_recovery(GrammarRule::EscapeIdent, follow, found, |parser, found| {
            parser.check_expected_or_skip_one_token(GrammarPosition::FieldName, FIELD_NAME_START)?;
            if !FIELD_NAME_START.has(parser.current_kind()?) {
                return Err(Self::no_alternative_error(GrammarPosition::FieldName, 0));
            }
            found.token = Some(parser.take_and_end_recovery()?);
            Ok(())
        })
    }

    /// Parses an operand without what is after it.
    fn primary(&mut self) -> Parsed<NodeIndex> {
        self.parse_node_rule(GrammarRule::Primary, AFTER_MEMBER, |parser, found| {
            parser.check_expected_or_skip_one_token(GrammarPosition::Primary, MEMBER_START)?;
            match parser.current_kind()? {
                LeftParen => parser.parenthesized(found),
                LeftBracket => parser.list(found),
                LeftBrace => parser.map(found),
                Dot if parser.peek(1)?.kind != Identifier => {
                    Err(Self::no_alternative_error(GrammarPosition::Primary, 1))
                }
                Dot | Identifier => parser.variable_call_or_message(found),
                kind if LITERAL_START.has(kind) => {
                    *found = Some(parser.literal()?);
                    Ok(())
                }
                _ => Err(Self::no_alternative_error(GrammarPosition::Primary, 0)),
            }
        })
    }

    /// Parses a variable or a function call, whose name is one identifier, or a message literal, whose name can contain
    /// dots. Each may start with a dot.
    fn variable_call_or_message(&mut self, found: &mut Option<NodeIndex>) -> RuleResult {
        let mut end = usize::from(self.current_kind()? == Dot) + 1;
        let is_call = self.peek(end)?.kind == LeftParen;
        while self.peek(end)?.kind == Dot && self.peek(end + 1)?.kind == Identifier {
            end += 2;
        }
        if self.peek(end)?.kind == LeftBrace {
            let mut name = Vec::new();
            while self.current_kind()? != LeftBrace {
                name.push(self.take_and_end_recovery()?);
            }
            return self.message(name, found);
        }
        let start = self.token_start()?;
        self.take_if(Dot)?;
        let name = NameToken { start, token: self.take_and_end_recovery()? };
        if !is_call {
            *found = Some(self.add(Node::Ident(name)));
            return Ok(());
        }
        let open = self.take_and_end_recovery()?.start;
        *found = Some(self.add(Node::Call { open, name, args: Vec::new() }));
        self.check_expected_or_skip_one_token(GrammarPosition::Arguments, ARGUMENTS_START)?;
        let args = self.arguments()?;
        *found = Some(self.add(Node::Call { open, name, args }));
        self.expect_or_recover_one_token(GrammarPosition::ArgumentsClose, RightParen, TokenSet::RULE_END)
    }

    /// Parses an expression in parentheses.
    fn parenthesized(&mut self, found: &mut Option<NodeIndex>) -> RuleResult {
        self.take_and_end_recovery()?;
        *found = Some(self.expr(TokenSet::from_kinds(&[RightParen]))?);
        self.expect_or_recover_one_token(GrammarPosition::NestedClose, RightParen, TokenSet::RULE_END)
    }

    /// Parses a list literal.
    fn list(&mut self, found: &mut Option<NodeIndex>) -> RuleResult {
        let open = self.take_and_end_recovery()?.start;
        let last = TokenSet::from_kinds(&[Comma, RightBracket]);
        *found = Some(self.add(Node::List { open, elements: Vec::new() }));
        self.check_expected_or_skip_one_token(GrammarPosition::ListStart, OPTIONAL_EXPR_START.or(last))?;
        if OPTIONAL_EXPR_START.has(self.current_kind()?) {
            let elements = self.parse_rule_with_recovery(
                GrammarRule::ListInit,
                last,
                Vec::new(),
                |parser, elements| {
                    elements.push(parser.element_with_optional_question_mark(AFTER_ELEMENT)?);
                    while parser.take_comma_before_element(OPTIONAL_EXPR_START)? {
                        elements.push(parser.element_with_optional_question_mark(AFTER_ELEMENT)?);
                    }
                    Ok(())
                },
            )?;
            *found = Some(self.add(Node::List { open, elements }));
        }
        self.check_expected_or_skip_one_token(GrammarPosition::ListEnd, last)?;
        self.take_if(Comma)?;
        self.expect_or_recover_one_token(GrammarPosition::ListClose, RightBracket, TokenSet::RULE_END)
    }

    /// Consumes a comma. Returns true if another element follows; a trailing comma is allowed.
    fn take_comma_before_element(&mut self, element: TokenSet) -> Parsed<bool> {
        if self.current_kind()? != Comma || !element.has(self.peek(1)?.kind) {
            return Ok(false);
        }
        self.take_and_end_recovery().map(|_| true)
    }

    /// Parses an element, with or without `?` before it.
    fn element_with_optional_question_mark(&mut self, follow: TokenSet) -> Parsed<Element<NodeIndex>> {
        let optional = self.current_kind()? == Question;
        let value = self.parse_node_rule(GrammarRule::OptExpr, follow, |parser, found| {
            parser.take_if(Question)?;
            *found = Some(parser.expr(TokenSet::RULE_END)?);
            Ok(())
        })?;
        Ok(Element { value, optional })
    }

    /// Parses a map literal.
    fn map(&mut self, found: &mut Option<NodeIndex>) -> RuleResult {
        let open = self.take_and_end_recovery()?.start;
        let last = TokenSet::from_kinds(&[Comma, RightBrace]);
        *found = Some(self.add(Node::Map { open, entries: Vec::new() }));
        self.check_expected_or_skip_one_token(GrammarPosition::MapStart, OPTIONAL_EXPR_START.or(last))?;
        if OPTIONAL_EXPR_START.has(self.current_kind()?) {
            let entries =
                self.parse_rule_with_recovery(GrammarRule::MapList, last, Vec::new(), |parser, entries| {
                    let mut colon = GrammarPosition::FirstKeyColon;
                    loop {
                        let follow = TokenSet::from_kinds(&[Colon]);
                        let Element { value: key, optional } =
                            parser.element_with_optional_question_mark(follow)?;
                        parser.expect_or_recover_one_token(colon, Colon, EXPR_START)?;
                        entries.push(MapEntry { key, value: parser.expr(AFTER_ELEMENT)?, optional });
                        if !parser.take_comma_before_element(OPTIONAL_EXPR_START)? {
                            return Ok(());
                        }
                        colon = GrammarPosition::KeyColon;
                    }
                })?;
            *found = Some(self.add(Node::Map { open, entries }));
        }
        self.check_expected_or_skip_one_token(GrammarPosition::MapEnd, last)?;
        self.take_if(Comma)?;
        self.expect_or_recover_one_token(GrammarPosition::MapClose, RightBrace, TokenSet::RULE_END)
    }

    /// Parses the fields of a message in braces.
    fn message(&mut self, name: Vec<Token>, found: &mut Option<NodeIndex>) -> RuleResult {
        let open = self.take_and_end_recovery()?.start;
        let last = TokenSet::from_kinds(&[Comma, RightBrace]);
        *found = Some(self.add(Node::Message { name: name.clone(), open, start: open, fields: Vec::new() }));
        self.check_expected_or_skip_one_token(GrammarPosition::MessageStart, OPTIONAL_FIELD_START.or(last))?;
        if OPTIONAL_FIELD_START.has(self.current_kind()?) {
            let start = self.token_start()?;
            let fields =
                self.parse_rule_with_recovery(GrammarRule::FieldList, last, Vec::new(), |parser, fields| {
                    let mut colon = GrammarPosition::FirstFieldColon;
                    loop {
                        let optional = parser.current_kind()? == Question;
                        let name = parser.field_name_with_optional_question_mark()?;
                        let at = parser.token_start()?;
                        parser.expect_or_recover_one_token(colon, Colon, EXPR_START)?;
                        let value = parser.expr(AFTER_ELEMENT)?;
                        fields.push(MessageField { name, optional, colon: at, value });
                        if !parser.take_comma_before_element(OPTIONAL_FIELD_START)? {
                            return Ok(());
                        }
                        colon = GrammarPosition::FieldColon;
                    }
                })?;
            *found = Some(self.add(Node::Message { name, open, start, fields }));
        }
        self.check_expected_or_skip_one_token(GrammarPosition::MessageEnd, last)?;
        self.take_if(Comma)?;
        self.expect_or_recover_one_token(GrammarPosition::MessageClose, RightBrace, TokenSet::RULE_END)
    }

    /// Parses the name of a field of a message, with or without `?` before it.
    fn field_name_with_optional_question_mark(&mut self) -> Parsed<FieldNameToken> {
        let found = FieldNameToken { start: self.token_start()?, token: None };
        self.parse_rule_with_recovery(
            GrammarRule::OptField,
            TokenSet::from_kinds(&[Colon]),
            found,
            |parser, found| {
                parser.take_if(Question)?;
                *found = parser.field_name(TokenSet::RULE_END)?;
                Ok(())
            },
        )
    }

    /// Parses a literal, with the minus of a number.
    fn literal(&mut self) -> Parsed<NodeIndex> {
        let start = self.token_start()?;
        self.parse_node_rule(GrammarRule::Literal, TokenSet::RULE_END, |parser, found| {
            if parser.current_kind()? == Minus && !matches!(parser.peek(1)?.kind, Int | Float) {
                return Err(Self::no_alternative_error(GrammarPosition::Literal, 1));
            }
            parser.take_if(Minus)?;
            let token = parser.take_and_end_recovery()?;
            *found = Some(parser.add(Node::Literal { start, token }));
            Ok(())
        })
    }
}
