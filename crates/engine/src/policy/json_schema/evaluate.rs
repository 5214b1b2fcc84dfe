//! Whether a value is valid, in a bounded number of steps.
//!
//! A subschema that several ways lead to is judged once for each value, so alternatives inside alternatives add up and
//! do not multiply. What is still too much is cut off by the [`Budget`] and by the depth.
//!
//! Invariant: once the budget is spent every answer is "invalid", and `is_spent` says that it means nothing.

use std::collections::HashMap;

use super::graph::{Contains, Graph, Subschema};
use tollgate_document::doc::{Value, ValueKind};

/// Steps that every object may take.
const BASE_STEPS: u64 = 50_000;
/// Steps for each key, item and scalar of the data.
const STEPS_PER_NODE: u64 = 256;
/// Steps that no object may exceed, whatever its size.
const MAX_STEPS: u64 = 4_000_000;
/// Steps for a value as such, whatever its schema.
const STEPS_PER_VALUE: u64 = 8;
/// Parts of a value that are looked at in one step, to see whether it can be checked.
const PARTS_PER_STEP: u64 = 8;
/// Answers that are remembered.
const MAX_REMEMBERED: usize = 1 << 18;
/// Subschemas inside each other, over all levels of a value.
const MAX_NESTING: u32 = 600;

/// How many steps the JSON Schemas of all policies may take for one object.
#[derive(Clone, Debug, Default)]
pub(in crate::policy) struct Budget {
    granted: u64,
    taken: u64,
}

impl Budget {
    /// Grants steps for one more value.
    pub(super) fn grant(&mut self, value: Value<'_>) {
        let steps = (value.size() as u64).saturating_mul(STEPS_PER_NODE);
        self.granted = self.granted.max(BASE_STEPS).saturating_add(steps).min(MAX_STEPS);
    }

    /// Takes steps; false if there are not enough.
    pub(super) fn take(&mut self, steps: u64) -> bool {
        let taken = self.taken.saturating_add(steps);
        let is_granted = taken <= self.granted;
        if is_granted {
            self.taken = taken;
        }
        is_granted
    }

    /// Takes steps for looking at a value once; false if there are not enough.
    pub(super) fn take_for(&mut self, value: Value<'_>) -> bool {
        self.take(STEPS_PER_VALUE + value.size() as u64 / PARTS_PER_STEP)
    }

    /// Takes steps that were needed, as far as there are any left.
    pub(in crate::policy) fn charge(&mut self, steps: u64) {
        self.taken = self.taken.saturating_add(steps).min(self.granted);
    }

    /// Steps that were taken.
    #[cfg(test)]
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }
}

/// The evaluation of one value of one document.
pub(super) struct Evaluation<'e> {
    graph: &'e Graph,
    budget: &'e mut Budget,
    nesting: u32,
    /// The budget or the depth did not suffice.
    pub(super) is_spent: bool,
    known: HashMap<(u32, u32), bool, foldhash::fast::RandomState>,
}

impl<'e> Evaluation<'e> {
    pub(super) fn new(graph: &'e Graph, budget: &'e mut Budget) -> Evaluation<'e> {
        Evaluation { graph, budget, nesting: 0, is_spent: false, known: HashMap::default() }
    }

    pub(super) fn graph(&self) -> &'e Graph {
        self.graph
    }

    /// Takes steps; false if it is over.
    pub(super) fn take(&mut self, steps: u64) -> bool {
        self.is_spent |= !self.budget.take(steps);
        !self.is_spent
    }

    /// One level deeper; false if that is too deep.
    pub(super) fn descend(&mut self) -> bool {
        self.is_spent |= self.nesting >= MAX_NESTING;
        self.nesting += u32::from(!self.is_spent);
        !self.is_spent
    }

    /// Back from there.
    pub(super) fn ascend(&mut self) {
        self.nesting = self.nesting.saturating_sub(1);
    }

    /// True if the value is valid under that subschema.
    pub(super) fn is_valid(&mut self, number: u32, value: Value<'_>) -> bool {
        let Some(schema) = self.graph.get(number) else { return false };
        if schema.never || !self.take(1) {
            return false;
        }
        let remembers = schema.ways > 1
            && (schema.has_branches() || (!value.is_empty() && (schema.has_members() || schema.has_items())));
        if remembers && let Some(known) = self.known.get(&(number, value.index())) {
            return *known;
        }
        if !self.descend() {
            return false;
        }
        let is_valid = self.asserted(schema, value)
            && self.branches_hold(schema, value)
            && self.parts_hold(schema, value)
            && self.rest_holds(schema, value);
        self.ascend();
        if remembers && !self.is_spent && self.known.len() < MAX_REMEMBERED {
            self.known.insert((number, value.index()), is_valid);
        }
        is_valid && !self.is_spent
    }

    /// True if the assertions hold.
    pub(super) fn asserted(&mut self, schema: &Subschema, value: Value<'_>) -> bool {
        let Some(assertions) = &schema.assertions else { return true };
        self.take(assertions.cost(value)) && assertions.hold(value)
    }

    fn branches_hold(&mut self, schema: &Subschema, value: Value<'_>) -> bool {
        schema.references.iter().chain(&schema.all_of).all(|next| self.is_valid(*next, value))
            && (schema.any_of.is_empty() || schema.any_of.iter().any(|next| self.is_valid(*next, value)))
            && (schema.one_of.is_empty() || self.count_up_to_two(&schema.one_of, value) == 1)
            && schema.not.as_ref().is_none_or(|(next, _)| !self.is_valid(*next, value))
            && self.chosen(schema, value).is_none_or(|next| self.is_valid(next, value))
            && schema
                .dependents
                .iter()
                .all(|(name, next)| !self.has_member(value, name) || self.is_valid(*next, value))
    }

    /// True if the object has a member of that name.
    pub(super) fn has_member(&mut self, value: Value<'_>, name: &str) -> bool {
        self.take(1 + value.len() as u64 / 8) && value.get(name).exists()
    }

    /// How many of the subschemas hold, as far as it matters.
    pub(super) fn count_up_to_two(&mut self, list: &[u32], value: Value<'_>) -> usize {
        let mut count = 0;
        for next in list {
            count += usize::from(self.is_valid(*next, value));
            if count > 1 {
                break;
            }
        }
        count
    }

    /// `then` or `else`, as `if` says.
    pub(super) fn chosen(&mut self, schema: &Subschema, value: Value<'_>) -> Option<u32> {
        let condition = schema.condition?;
        // Without both there is nothing to choose.
        condition.then.or(condition.otherwise)?;
        if self.is_valid(condition.test, value) { condition.then } else { condition.otherwise }
    }

    fn parts_hold(&mut self, schema: &Subschema, value: Value<'_>) -> bool {
        match value.kind() {
            ValueKind::Object if schema.has_members() => {
                value.members().all(|(key, member)| self.member_holds(schema, key, member))
            }
            ValueKind::Array if schema.has_items() => {
                let mut items = value.items().enumerate();
                items.all(|(index, item)| {
                    self.take(1) && schema.for_item(index).is_none_or(|next| self.is_valid(next, item))
                }) && schema.contains.is_none_or(|contains| self.is_contained(contains, value))
            }
            _ => true,
        }
    }

    fn member_holds(&mut self, schema: &Subschema, key: Value<'_>, member: Value<'_>) -> bool {
        let mut holds = self.take_for_key(schema, key);
        if holds {
            schema.for_member(key, &mut |next| holds = holds && self.is_valid(next, member));
        }
        holds && schema.names.is_none_or(|names| self.is_valid(names, key))
    }

    /// Takes what looking for the subschemas of a member costs.
    pub(super) fn take_for_key(&mut self, schema: &Subschema, key: Value<'_>) -> bool {
        self.take(1 + schema.patterns.len() as u64 * (1 + key.bytes().len() as u64 / 64))
    }

    /// True if the list has as many such items as it must.
    pub(super) fn is_contained(&mut self, contains: Contains, value: Value<'_>) -> bool {
        let mut count = 0;
        for item in value.items() {
            count += u64::from(self.is_valid(contains.schema, item));
            if count > contains.most || (count >= contains.least && contains.most == u64::MAX) {
                break;
            }
        }
        (contains.least..=contains.most).contains(&count)
    }

    fn rest_holds(&mut self, schema: &Subschema, value: Value<'_>) -> bool {
        let Some((next, parts)) = self.unevaluated(schema, value) else { return true };
        parts.into_iter().all(|(_, part)| self.is_valid(next, part))
    }

    /// The members or items that nothing else has looked at, with their index, and the subschema for them.
    pub(super) fn unevaluated<'d>(
        &mut self,
        schema: &Subschema,
        value: Value<'d>,
    ) -> Option<(u32, Vec<(usize, Value<'d>)>)> {
        let next = match value.kind() {
            ValueKind::Object => schema.unevaluated_properties,
            ValueKind::Array => schema.unevaluated_items,
            _ => None,
        }?;
        let parts: Vec<(Option<Value<'d>>, Value<'d>)> = match value.kind() {
            ValueKind::Object => value.members().map(|(key, member)| (Some(key), member)).collect(),
            _ => value.items().map(|item| (None, item)).collect(),
        };
        let mut evaluated = vec![false; parts.len()];
        self.mark_own(schema, value, &parts, &mut evaluated);
        self.mark_branches(schema, value, &parts, &mut evaluated);
        let all = parts.into_iter().zip(evaluated).enumerate();
        let left = all.filter(|(_, (_, is_evaluated))| !is_evaluated);
        Some((next, left.map(|(index, ((_, part), _))| (index, part)).collect()))
    }

    /// Marks what a subschema that holds evaluates.
    fn mark<'d>(
        &mut self,
        number: u32,
        value: Value<'d>,
        parts: &[(Option<Value<'d>>, Value<'d>)],
        evaluated: &mut [bool],
    ) {
        let Some(schema) = self.graph.get(number) else { return };
        if !self.is_valid(number, value) || !self.descend() {
            return;
        }
        let all = match value.kind() {
            ValueKind::Object => schema.unevaluated_properties,
            _ => schema.unevaluated_items,
        };
        if all.is_some() {
            evaluated.fill(true);
        } else {
            self.mark_own(schema, value, parts, evaluated);
            self.mark_branches(schema, value, parts, evaluated);
        }
        self.ascend();
    }

    fn mark_own<'d>(
        &mut self,
        schema: &Subschema,
        value: Value<'d>,
        parts: &[(Option<Value<'d>>, Value<'d>)],
        evaluated: &mut [bool],
    ) {
        let is_object = value.kind() == ValueKind::Object;
        if is_object && !schema.has_members() || !is_object && !schema.has_items() {
            return;
        }
        for (index, ((key, part), mark)) in parts.iter().zip(evaluated).enumerate() {
            match key {
                Some(key) if self.take_for_key(schema, *key) => {
                    schema.for_member(*key, &mut |_| *mark = true);
                }
                None if self.take(1) => {
                    *mark |= schema.for_item(index).is_some();
                    let contains = schema.contains.filter(|_| !*mark);
                    *mark |= contains.is_some_and(|contains| self.is_valid(contains.schema, *part));
                }
                _ => return,
            }
        }
    }

    fn mark_branches<'d>(
        &mut self,
        schema: &Subschema,
        value: Value<'d>,
        parts: &[(Option<Value<'d>>, Value<'d>)],
        evaluated: &mut [bool],
    ) {
        let lists = [&schema.references, &schema.all_of, &schema.any_of, &schema.one_of];
        for next in lists.into_iter().flatten() {
            self.mark(*next, value, parts, evaluated);
        }
        for (name, next) in &schema.dependents {
            if self.has_member(value, name) {
                self.mark(*next, value, parts, evaluated);
            }
        }
        if let Some(condition) = schema.condition {
            self.mark(condition.test, value, parts, evaluated);
            if let Some(next) = self.chosen(schema, value) {
                self.mark(next, value, parts, evaluated);
            }
        }
    }
}
