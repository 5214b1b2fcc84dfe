//! From text to tree: the parser. Its grammar, its recovery after an error and the words of its errors are those of the
//! server's parser, so its answer is the server's: the tree, or every syntax error.
//!
//! The parser of the `cel` crate, with which policies are evaluated, is not used: it continues differently after an
//! error, so it finds other errors after the first, and takes several times as long. Tests compare the trees of the two
//! (`lower`).

mod lexer;
mod literal;
mod operands;
mod operators;
mod parser;
mod recovery;
mod token;
mod tree;
mod visit;

use super::draft::ParseState;
use super::issue::Issues;
use super::outcome::CelEnv;
use super::tree::Tree;
pub(super) use lexer::Lexer;
use parser::Parser;
pub(super) use token::TokenKind;
use visit::TreeBuilder;

/// Parses an expression: the tree, or the errors that the server's parser finds.
pub(super) fn parse(text: &str, env: CelEnv) -> Result<Tree, Issues<'_>> {
    let mut parser = Parser::new(text);
    let root = parser.whole_text().ok();
    let Parser { nodes, issues, .. } = parser;
    // Without a root a limit ended the parse, and has been reported.
    let Some(root) = root else { return Err(issues) };
    let draft = ParseState { tree: Tree::default(), issues, env };
    let mut visitor = TreeBuilder { text, nodes: &nodes, draft, depth: 0 };
    // What ends the visit early has been reported.
    let _ = visitor.visit(Some(root));
    let ParseState { tree, issues, .. } = visitor.draft;
    if issues.is_empty() { Ok(tree) } else { Err(issues) }
}
