//! ResourceSlice: structure, pool, nodes; devices are in `device`.

use crate::case::Case;
use crate::rules::{Cx, rules};

rules! { Upstream, Deny; }

/// Judges what this file speaks for.
pub(crate) fn check(_cx: &mut Cx<'_, '_>, _case: &Case<'_>) {}
