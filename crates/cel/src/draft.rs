//! The state that building the syntax tree and expanding macros share.

use super::issue::Issues;
use super::outcome::CelEnv;
use super::tree::Tree;

/// The state of a parse: the tree that is built, the issues that were found, and the environment of the expression.
pub(super) struct ParseState<'t> {
    pub(super) tree: Tree,
    pub(super) issues: Issues<'t>,
    pub(super) env: CelEnv,
}
