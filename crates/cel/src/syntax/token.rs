//! Kinds of tokens, in the order in which the server's parser numbers and lists them, and sets of them.

tollgate_formats::named_enum! {
    /// The kind of a token, with its name in the server's messages.
    pub(crate) enum TokenKind {
        Eof = "<EOF>",
        Equals = "'=='",
        NotEquals = "'!='",
        In = "'in'",
        Less = "'<'",
        LessEquals = "'<='",
        GreaterEquals = "'>='",
        Greater = "'>'",
        And = "'&&'",
        Or = "'||'",
        LeftBracket = "'['",
        RightBracket = "']'",
        LeftBrace = "'{'",
        RightBrace = "'}'",
        LeftParen = "'('",
        RightParen = "')'",
        Dot = "'.'",
        Comma = "','",
        Minus = "'-'",
        Not = "'!'",
        Question = "'?'",
        Colon = "':'",
        Plus = "'+'",
        Star = "'*'",
        Slash = "'/'",
        Percent = "'%'",
        True = "'true'",
        False = "'false'",
        Null = "'null'",
        /// White space or a comment, which the parser skips but messages quote.
        Hidden = "WHITESPACE",
        Float = "NUM_FLOAT",
        Int = "NUM_INT",
        Uint = "NUM_UINT",
        String = "STRING",
        Bytes = "BYTES",
        Identifier = "IDENTIFIER",
        EscapedIdentifier = "ESC_IDENTIFIER",
        /// Bytes that no token begins with, which are reported and skipped.
        Unknown = "",
    }
}

/// A token: the bytes `start..end` of the expression.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// A set of kinds, and perhaps the end of the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TokenSet(u64);

impl TokenSet {
    pub(super) const EMPTY: TokenSet = TokenSet(0);
    /// The rule may end here, so that the following tokens depend on the enclosing rule.
    pub(super) const RULE_END: TokenSet = TokenSet(1 << 63);

    /// The set of these kinds.
    pub(super) const fn from_kinds(kinds: &[TokenKind]) -> Self {
        let mut bits = 0;
        let mut rest = kinds;
        while let [first, tail @ ..] = rest {
            bits |= 1 << *first as u8;
            rest = tail;
        }
        TokenSet(bits)
    }

    /// The union of two sets.
    pub(super) const fn or(self, other: TokenSet) -> Self {
        TokenSet(self.0 | other.0)
    }

    pub(super) const fn has(self, kind: TokenKind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }

    /// True if the rule may end here.
    pub(super) const fn may_end_rule(self) -> bool {
        self.0 & TokenSet::RULE_END.0 != 0
    }

    /// The names of the kinds as messages list them: `':'`, or `{IDENTIFIER, ESC_IDENTIFIER}`.
    pub(super) fn describe(self) -> String {
        let kinds = TokenKind::ALL.into_iter().filter(|kind| self.has(*kind));
        let names: Vec<&str> = kinds.map(TokenKind::name).collect();
        let text = names.join(", ");
        if names.len() > 1 { format!("{{{text}}}") } else { text }
    }
}
