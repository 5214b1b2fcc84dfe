//! Taints, tolerations and DeviceTaintRule: the same in every version.

use super::{ObjectMeta, RuleStatus, Selector, view};
use tollgate_document::doc::{FieldName, Value};

view! {
    /// DeviceTaint.
    Taint {
        key: str = "key",
        value: str = "value",
        effect: str = "effect",
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

    /// DeviceToleration.
    Toleration {
        key: str = "key",
        operator: str = "operator",
        value: str = "value",
        effect: str = "effect",
        toleration_seconds: opt_int = "tolerationSeconds",
    }

    /// DeviceTaintRule.
    TaintRule {
        metadata: one<ObjectMeta> = "metadata",
        spec: one<TaintRuleSpec> = "spec",
        status: one<RuleStatus> = "status",
    }

    /// DeviceTaintRuleSpec.
    TaintRuleSpec {
        device_selector: opt<TaintSelector> = "deviceSelector",
        taint: one<Taint> = "taint",
    }

    /// DeviceTaintSelector.
    TaintSelector {
        /// `deviceClassName` (1.33, 1.34, draft r2)
        device_class_name: opt_str = "deviceClassName",
        driver: opt_str = "driver",
        pool: opt_str = "pool",
        device: opt_str = "device",
        /// `selectors` (1.33, 1.34, draft r2)
        selectors: list<Selector> = "selectors",
    }
}

/// The fields by which taints differ, in the order in which API servers write them.
const IDENTITY_FIELDS: [FieldName; 3] =
    [FieldName::from_text("key"), FieldName::from_text("value"), FieldName::from_text("effect")];

impl<'d> Taint<'d> {
    /// `key`, `value` and `effect`, found in one pass: a slice can have a thousand taints. The same as the three accessors
    /// in a document without duplicate keys.
    #[inline]
    pub fn key_value_effect(self) -> [&'d str; 3] {
        self.0.fields_last_duplicate_wins(IDENTITY_FIELDS).map(Value::str)
    }
}

impl<'d> TaintRule<'d> {
    /// The driver whose devices the rule selects; empty if it names none.
    pub fn selected_driver(self) -> &'d str {
        self.spec().device_selector().and_then(TaintSelector::driver).unwrap_or_default()
    }
}
