//! The text of syntax errors, as the server's parser words them.
//!
//! The grammar is that of the `cel` crate, but its runtime goes on after an error in another way than the server's, and
//! so finds other errors after the first and expects other tokens. This parser follows the server's runtime. It decides
//! nothing but the words: whether a text is refused is the crate's answer.
//!
//! It also says beforehand whether there are errors, because then the depth to which the crate recurses cannot be told
//! from the brackets.

mod lexer;
mod operands;
mod operators;
mod parser;
mod recovery;
mod token;
mod tree;
mod unescape;
mod visit;

use super::issue::Issues;
use super::lower::Draft;
use super::outcome::CelEnv;
use super::tree::Tree;
use parser::Parser;
use tree::{Node, NodeIndex};
use visit::Visitor;

/// An expression as far as it was recognised.
pub(super) struct Recognised<'t> {
    text: &'t str,
    /// Absent if a limit ended the parse.
    root: Option<NodeIndex>,
    nodes: Vec<Node>,
    issues: Issues<'t>,
}

pub(super) fn recognise(text: &str) -> Recognised<'_> {
    let mut parser = Parser::new(text);
    let root = parser.text().ok();
    Recognised { text, root, nodes: parser.nodes, issues: parser.issues }
}

impl<'t> Recognised<'t> {
    /// Whether the grammar has it.
    pub(super) fn is_correct(&self) -> bool {
        self.issues.is_empty()
    }

    /// What the server's parser finds wrong with it.
    pub(super) fn errors(self, env: CelEnv) -> Issues<'t> {
        let Some(root) = self.root else { return self.issues };
        let draft = Draft { tree: Tree::default(), issues: self.issues, env };
        let mut visitor = Visitor { text: self.text, nodes: &self.nodes, draft, depth: 0 };
        // What ends the visit early has been reported.
        let _ = visitor.visit(Some(root));
        visitor.draft.issues
    }
}
