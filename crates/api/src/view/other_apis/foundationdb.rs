//! FoundationDBCluster: only the fields about replacements because of node taints.

use crate::view::{ObjectMeta, View as _, view};
use tollgate_document::doc::Value;

view! {
    /// FoundationDBCluster.
    FoundationDbCluster {
        metadata: one<ObjectMeta> = "metadata",
    }

    /// AutomaticReplacementOptions.
    Replacements {
        enabled: opt_bool = "enabled",
        max_concurrent_replacements: opt_int = "maxConcurrentReplacements",
        taint_replacement_options: list<TaintOption> = "taintReplacementOptions",
        taint_replacement_time_seconds: opt_int = "taintReplacementTimeSeconds",
        /// `taints`, the name of the same options in the prose of the operator's design document
        taints_of_prose: list<TaintOption> = "taints",
    }

    /// TaintReplacementOption.
    TaintOption {
        key: opt_str = "key",
        duration_in_seconds: opt_int = "durationInSeconds",
    }
}

impl<'d> FoundationDbCluster<'d> {
    /// Paths at which users configure replacements. The operator reads only the first; the other two come from its
    /// design document, and rules report them.
    pub const REPLACEMENT_PATHS: [&'static [&'static str]; 3] = [
        &["spec", "automationOptions", "replacements"],
        &["spec", "automationOptions", "automaticReplacementOptions"],
        &["spec", "automaticReplacementOptions"],
    ];

    /// The replacements written in `way`, one of [`FoundationDbCluster::REPLACEMENT_PATHS`]; `None` if there are none.
    pub fn replacements_at_path(self, way: &[&str]) -> Option<Replacements<'d>> {
        let value: Value<'d> = way.iter().fold(self.0, |value, step| value.get(step));
        (!value.is_null_or_absent()).then(|| Replacements::of(value))
    }
}
