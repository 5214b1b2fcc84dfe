//! Taints, tolerations and DeviceTaintRule: the same in every version.

use super::{ObjectMeta, RuleStatus, Selector, view};
use crate::doc::Name;

view! {
    /// DeviceTaint.
    Taint {
        /// `key`
        key: str = "key",
        /// `value`
        value: str = "value",
        /// `effect`
        effect: str = "effect",
        /// `timeAdded`
        time_added: time = "timeAdded",
        /// `timeAdded`, as it was written
        written_time: raw = "timeAdded",
        /// `description` (draft r2)
        description: str = "description",
        /// `data` (draft r2)
        data: raw = "data",
        /// `evictionsPerSecond` (draft r2)
        evictions_per_second: opt_int = "evictionsPerSecond",
    }
}

impl<'d> Taint<'d> {
    /// True if the key is written as that of `like`.
    pub fn has_key_of(self, like: Taint<'_>) -> bool {
        let key = const { Name::of("key") };
        self.0.field(key).is_written_as(like.0.field(key))
    }

    /// Key, value and effect: what makes it the taint it is.
    pub fn identity(self) -> [&'d [u8]; 3] {
        let [key, value, effect] = const { [Name::of("key"), Name::of("value"), Name::of("effect")] };
        [self.0.field(key).bytes(), self.0.field(value).bytes(), self.0.field(effect).bytes()]
    }
}

view! {
    /// DeviceToleration.
    Toleration {
        /// `key`
        key: str = "key",
        /// `operator`
        operator: str = "operator",
        /// `value`
        value: str = "value",
        /// `effect`
        effect: str = "effect",
        /// `tolerationSeconds`
        toleration_seconds: opt_int = "tolerationSeconds",
    }
}

view! {
    /// DeviceTaintRule.
    TaintRule {
        /// `metadata`
        metadata: one<ObjectMeta> = "metadata",
        /// `spec`
        spec: one<TaintRuleSpec> = "spec",
        /// `status`
        status: one<RuleStatus> = "status",
    }
}

view! {
    /// DeviceTaintRuleSpec.
    TaintRuleSpec {
        /// `deviceSelector`
        device_selector: opt<TaintSelector> = "deviceSelector",
        /// `taint`
        taint: one<Taint> = "taint",
    }
}

view! {
    /// DeviceTaintSelector.
    TaintSelector {
        /// `deviceClassName` (1.33, 1.34, draft r2)
        device_class_name: opt_str = "deviceClassName",
        /// `driver`
        driver: opt_str = "driver",
        /// `pool`
        pool: opt_str = "pool",
        /// `device`
        device: opt_str = "device",
        /// `selectors` (1.33, 1.34, draft r2)
        selectors: list<Selector> = "selectors",
    }
}

impl<'d> TaintRule<'d> {
    /// The driver whose devices the rule selects; empty if it names none.
    pub fn selected_driver(self) -> &'d str {
        self.spec().device_selector().and_then(TaintSelector::driver).unwrap_or_default()
    }
}
