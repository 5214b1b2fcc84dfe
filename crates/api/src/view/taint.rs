//! Taints, tolerations and DeviceTaintRule: the same in every version.

use super::{ObjectMeta, RuleStatus, Selector, View, view};
use tollgate_document::doc::{FieldSlots, Name, Value, ValueKind};
use tollgate_formats::gotime;

/// A DeviceTaint. Its fields are found in one pass, because every rule reads most of them and a slice can
/// contain a thousand taints.
#[derive(Clone, Copy, Debug)]
pub struct Taint<'d> {
    value: Value<'d>,
    fields: FieldSlots<4>,
}

const FIELDS: [Name; 4] = [Name::of("key"), Name::of("value"), Name::of("effect"), Name::of("timeAdded")];

impl<'d> View<'d> for Taint<'d> {
    fn of(value: Value<'d>) -> Self {
        Taint { value, fields: value.find_fields(FIELDS) }
    }

    fn json(self) -> Value<'d> {
        self.value
    }
}

impl<'d> Taint<'d> {
    /// The value of the field with that index in [`FIELDS`]; absent if there is none.
    fn field(self, index: usize) -> Value<'d> {
        self.value.field_at(self.fields, index)
    }

    pub fn key(self) -> &'d str {
        self.field(0).str()
    }

    pub fn value(self) -> &'d str {
        self.field(1).str()
    }

    pub fn effect(self) -> &'d str {
        self.field(2).str()
    }

    pub fn time_added(self) -> Option<gotime::Timestamp> {
        let time = self.written_time();
        (time.kind() == ValueKind::String).then(|| gotime::parse(time.text()).ok()).flatten()
    }

    /// Returns `timeAdded` as it was written.
    pub fn written_time(self) -> Value<'d> {
        self.field(3)
    }

    /// True if it has fields other than key, value, effect and timeAdded, such as the three of draft r2 below.
    pub fn has_more(self) -> bool {
        self.fields.others
    }

    /// Returns `description`, a field of the second draft of KEP-5055.
    pub fn description(self) -> &'d str {
        self.value.field(const { Name::of("description") }).str()
    }

    /// Returns `data`, a field of the second draft of KEP-5055.
    pub fn data(self) -> Value<'d> {
        self.value.field(const { Name::of("data") })
    }

    /// Returns `evictionsPerSecond`, a field of the second draft of KEP-5055.
    pub fn evictions_per_second(self) -> Option<i64> {
        self.value.field(const { Name::of("evictionsPerSecond") }).int()
    }

    /// Key, value and effect as written, which identify the taint.
    pub fn written(self) -> [Value<'d>; 3] {
        [self.field(0), self.field(1), self.field(2)]
    }
}

view! {
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

impl<'d> TaintRule<'d> {
    /// The driver whose devices the rule selects; empty if it names none.
    pub fn selected_driver(self) -> &'d str {
        self.spec().device_selector().and_then(TaintSelector::driver).unwrap_or_default()
    }
}
