//! The rules of the grammar for operands: members, names, calls, brackets, literals.

use super::operators::{EXPR, LITERAL, MEMBER};
use super::parser::{Parser, Place, Rule, RuleEnd, Stop};
use super::token::{Kind, Token, TokenSet};
use super::tree::{Element, Field, MapEntry, MessageField, Name, Node, NodeIndex};

use Kind::{
    Colon, Comma, Dot, EscapedIdentifier, Float, Identifier, Int, LeftBrace, LeftBracket, LeftParen, Minus,
    Question, RightBrace, RightBracket, RightParen,
};

const MEMBER_OPERATOR: TokenSet = TokenSet::of(&[Dot, LeftBracket]);
const AFTER_MEMBER: TokenSet = TokenSet::END.or(MEMBER_OPERATOR);
const OPTIONAL_EXPR: TokenSet = EXPR.or(TokenSet::of(&[Question]));
const FIELD_NAME: TokenSet = TokenSet::of(&[Identifier, EscapedIdentifier]);
const OPTIONAL_FIELD: TokenSet = FIELD_NAME.or(TokenSet::of(&[Question]));
const ARGUMENTS: TokenSet = EXPR.or(TokenSet::of(&[RightParen]));
const AFTER_ELEMENT: TokenSet = TokenSet::END.or(TokenSet::of(&[Comma]));

impl Parser<'_> {
    /// Parses an operand with the selections, calls and indexes after it.
    pub(super) fn member(&mut self) -> Result<NodeIndex, Stop> {
        self.node(Rule::Member, TokenSet::END, |parser, found| {
            let mut operand = parser.primary()?;
            *found = Some(operand);
            while MEMBER_OPERATOR.has(parser.current()?) {
                parser.count_out(Rule::Member);
                if parser.current()? == LeftBracket {
                    parser.member_index(operand, found)?;
                } else {
                    match parser.peek(1)?.kind {
                        Identifier if parser.peek(2)?.kind == LeftParen => {
                            parser.member_call(operand, found)?
                        }
                        Identifier | EscapedIdentifier | Question => parser.member_field(operand, found)?,
                        _ => return Err(Self::no_alternative(Place::MemberOperator, 1)),
                    }
                }
                operand = found.unwrap_or(operand);
            }
            Ok(())
        })
    }

    /// Parses `[index]` or `[?index]` after an operand.
    fn member_index(&mut self, operand: NodeIndex, found: &mut Option<NodeIndex>) -> Result<(), RuleEnd> {
        self.count_in(Rule::Member)?;
        let op = self.take()?.start;
        *found = Some(self.add(Node::Index { op, operand, optional: false, index: None }));
        self.sync(Place::IndexStart, OPTIONAL_EXPR)?;
        let optional = self.take_if(Question)?.is_some();
        let index = Some(self.expr(TokenSet::of(&[RightBracket]))?);
        *found = Some(self.add(Node::Index { op, operand, optional, index }));
        self.expect(Place::IndexClose, RightBracket, AFTER_MEMBER)
    }

    /// Parses `.field` or `.?field` after an operand.
    fn member_field(&mut self, operand: NodeIndex, found: &mut Option<NodeIndex>) -> Result<(), RuleEnd> {
        self.count_in(Rule::Member)?;
        let op = self.take()?.start;
        let optional = self.take_if(Question)?.is_some();
        let field = self.field_name(AFTER_MEMBER)?;
        *found = Some(self.add(Node::Select { op, operand, optional, field }));
        Ok(())
    }

    /// Parses `.name(args)` after an operand.
    fn member_call(&mut self, target: NodeIndex, found: &mut Option<NodeIndex>) -> Result<(), RuleEnd> {
        self.count_in(Rule::Member)?;
        self.take()?;
        let name = self.take()?;
        let open = self.take()?.start;
        *found = Some(self.add(Node::MemberCall { open, target, name, args: Vec::new() }));
        self.sync(Place::MemberArguments, ARGUMENTS)?;
        let args = self.arguments()?;
        *found = Some(self.add(Node::MemberCall { open, target, name, args }));
        self.expect(Place::MemberClose, RightParen, AFTER_MEMBER)
    }

    /// Parses the arguments of a call, which may be none, up to the parenthesis.
    fn arguments(&mut self) -> Result<Vec<NodeIndex>, Stop> {
        if !EXPR.has(self.current()?) {
            return Ok(Vec::new());
        }
        self.rule(Rule::ExprList, TokenSet::of(&[RightParen]), Vec::new(), |parser, args| {
            args.push(parser.expr(AFTER_ELEMENT)?);
            while parser.take_if(Comma)?.is_some() {
                args.push(parser.expr(AFTER_ELEMENT)?);
            }
            Ok(())
        })
    }

    /// Parses the name of a field; `follow` is what may come after it.
    fn field_name(&mut self, follow: TokenSet) -> Result<Field, Stop> {
        let found = Field { start: self.start()?, token: None };
        self.rule(Rule::EscapeIdent, follow, found, |parser, found| {
            parser.sync(Place::FieldName, FIELD_NAME)?;
            if !FIELD_NAME.has(parser.current()?) {
                return Err(Self::no_alternative(Place::FieldName, 0));
            }
            found.token = Some(parser.take()?);
            Ok(())
        })
    }

    /// Parses an operand without what is after it.
    fn primary(&mut self) -> Result<NodeIndex, Stop> {
        self.node(Rule::Primary, AFTER_MEMBER, |parser, found| {
            parser.sync(Place::Primary, MEMBER)?;
            match parser.current()? {
                LeftParen => parser.nested(found),
                LeftBracket => parser.list(found),
                LeftBrace => parser.map(found),
                Dot if parser.peek(1)?.kind != Identifier => Err(Self::no_alternative(Place::Primary, 1)),
                Dot | Identifier => parser.named(found),
                kind if LITERAL.has(kind) => {
                    *found = Some(parser.literal()?);
                    Ok(())
                }
                _ => Err(Self::no_alternative(Place::Primary, 0)),
            }
        })
    }

    /// Parses a variable, a call, or a message, whose name may have dots.
    fn named(&mut self, found: &mut Option<NodeIndex>) -> Result<(), RuleEnd> {
        let mut end = usize::from(self.current()? == Dot) + 1;
        let is_call = self.peek(end)?.kind == LeftParen;
        while self.peek(end)?.kind == Dot && self.peek(end + 1)?.kind == Identifier {
            end += 2;
        }
        if self.peek(end)?.kind == LeftBrace {
            let mut name = Vec::new();
            while self.current()? != LeftBrace {
                name.push(self.take()?);
            }
            return self.message(name, found);
        }
        let start = self.start()?;
        self.take_if(Dot)?;
        let name = Name { start, token: self.take()? };
        if !is_call {
            *found = Some(self.add(Node::Ident(name)));
            return Ok(());
        }
        let open = self.take()?.start;
        *found = Some(self.add(Node::Call { open, name, args: Vec::new() }));
        self.sync(Place::Arguments, ARGUMENTS)?;
        let args = self.arguments()?;
        *found = Some(self.add(Node::Call { open, name, args }));
        self.expect(Place::ArgumentsClose, RightParen, TokenSet::END)
    }

    /// Parses an expression in parentheses.
    fn nested(&mut self, found: &mut Option<NodeIndex>) -> Result<(), RuleEnd> {
        self.take()?;
        *found = Some(self.expr(TokenSet::of(&[RightParen]))?);
        self.expect(Place::NestedClose, RightParen, TokenSet::END)
    }

    /// Parses a list that is written out.
    fn list(&mut self, found: &mut Option<NodeIndex>) -> Result<(), RuleEnd> {
        let open = self.take()?.start;
        let last = TokenSet::of(&[Comma, RightBracket]);
        *found = Some(self.add(Node::List { open, elements: Vec::new() }));
        self.sync(Place::ListStart, OPTIONAL_EXPR.or(last))?;
        if OPTIONAL_EXPR.has(self.current()?) {
            let elements = self.rule(Rule::ListInit, last, Vec::new(), |parser, elements| {
                elements.push(parser.optional_expr(AFTER_ELEMENT)?);
                while parser.another_element_follows(OPTIONAL_EXPR)? {
                    elements.push(parser.optional_expr(AFTER_ELEMENT)?);
                }
                Ok(())
            })?;
            *found = Some(self.add(Node::List { open, elements }));
        }
        self.sync(Place::ListEnd, last)?;
        self.take_if(Comma)?;
        self.expect(Place::ListClose, RightBracket, TokenSet::END)
    }

    /// Consumes a comma. Returns true if another element follows; a trailing comma is allowed.
    fn another_element_follows(&mut self, element: TokenSet) -> Result<bool, Stop> {
        if self.current()? != Comma || !element.has(self.peek(1)?.kind) {
            return Ok(false);
        }
        self.take().map(|_| true)
    }

    /// Parses an element, with or without `?` before it.
    fn optional_expr(&mut self, follow: TokenSet) -> Result<Element, Stop> {
        let optional = self.current()? == Question;
        let value = self.node(Rule::OptExpr, follow, |parser, found| {
            parser.take_if(Question)?;
            *found = Some(parser.expr(TokenSet::END)?);
            Ok(())
        })?;
        Ok(Element { value, optional })
    }

    /// Parses a map that is written out.
    fn map(&mut self, found: &mut Option<NodeIndex>) -> Result<(), RuleEnd> {
        let open = self.take()?.start;
        let last = TokenSet::of(&[Comma, RightBrace]);
        *found = Some(self.add(Node::Map { open, entries: Vec::new() }));
        self.sync(Place::MapStart, OPTIONAL_EXPR.or(last))?;
        if OPTIONAL_EXPR.has(self.current()?) {
            let entries = self.rule(Rule::MapList, last, Vec::new(), |parser, entries| {
                let mut colon = Place::FirstKeyColon;
                loop {
                    let key = parser.optional_expr(TokenSet::of(&[Colon]))?;
                    parser.expect(colon, Colon, EXPR)?;
                    entries.push(MapEntry { key, value: parser.expr(AFTER_ELEMENT)? });
                    if !parser.another_element_follows(OPTIONAL_EXPR)? {
                        return Ok(());
                    }
                    colon = Place::KeyColon;
                }
            })?;
            *found = Some(self.add(Node::Map { open, entries }));
        }
        self.sync(Place::MapEnd, last)?;
        self.take_if(Comma)?;
        self.expect(Place::MapClose, RightBrace, TokenSet::END)
    }

    /// Parses the fields of a message in braces.
    fn message(&mut self, name: Vec<Token>, found: &mut Option<NodeIndex>) -> Result<(), RuleEnd> {
        let open = self.take()?.start;
        let last = TokenSet::of(&[Comma, RightBrace]);
        *found = Some(self.add(Node::Message { name: name.clone(), open, start: open, fields: Vec::new() }));
        self.sync(Place::MessageStart, OPTIONAL_FIELD.or(last))?;
        if OPTIONAL_FIELD.has(self.current()?) {
            let start = self.start()?;
            let fields = self.rule(Rule::FieldList, last, Vec::new(), |parser, fields| {
                let mut colon = Place::FirstFieldColon;
                loop {
                    let optional = parser.current()? == Question;
                    let name = parser.optional_field()?;
                    let at = parser.start()?;
                    parser.expect(colon, Colon, EXPR)?;
                    let value = parser.expr(AFTER_ELEMENT)?;
                    fields.push(MessageField { name, optional, colon: at, value });
                    if !parser.another_element_follows(OPTIONAL_FIELD)? {
                        return Ok(());
                    }
                    colon = Place::FieldColon;
                }
            })?;
            *found = Some(self.add(Node::Message { name, open, start, fields }));
        }
        self.sync(Place::MessageEnd, last)?;
        self.take_if(Comma)?;
        self.expect(Place::MessageClose, RightBrace, TokenSet::END)
    }

    /// Parses the name of a field of a message, with or without `?` before it.
    fn optional_field(&mut self) -> Result<Field, Stop> {
        let found = Field { start: self.start()?, token: None };
        self.rule(Rule::OptField, TokenSet::of(&[Colon]), found, |parser, found| {
            parser.take_if(Question)?;
            *found = parser.field_name(TokenSet::END)?;
            Ok(())
        })
    }

    /// Parses a literal, with the minus of a number.
    fn literal(&mut self) -> Result<NodeIndex, Stop> {
        let start = self.start()?;
        self.node(Rule::Literal, TokenSet::END, |parser, found| {
            if parser.current()? == Minus && !matches!(parser.peek(1)?.kind, Int | Float) {
                return Err(Self::no_alternative(Place::Literal, 1));
            }
            parser.take_if(Minus)?;
            let token = parser.take()?;
            *found = Some(parser.add(Node::Literal { start, token }));
            Ok(())
        })
    }
}
