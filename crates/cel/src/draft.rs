//! A tree that is being made, and what was found wrong on the way.

use super::issue::Issues;
use super::outcome::CelEnv;
use super::tree::Tree;

/// The tree that a parser builds, the issues it has found, and the environment it builds it for.
pub(super) struct Draft<'t> {
    pub(super) tree: Tree,
    pub(super) issues: Issues<'t>,
    pub(super) env: CelEnv,
}
