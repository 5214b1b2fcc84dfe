//! The worst-case cost of an expression, in the server's units, before it runs.
//!
//! A port of cel-go's `checker/cost.go` with the sizes Kubernetes declares for a device. The size of
//! a value is known for literals, for what hangs below `device`, and for results of functions that say
//! so; everything else may be of any size, and reading it costs more than any limit.
//!
//! Invariant: where this differs from the server it is lower, never higher.

mod call;
mod device_value;

use super::check::Checked;
use super::size::Size;
use super::tree::{Element, ExprKind, Literal, Loop, MapEntry, NodeId, Tree};
use super::types::Type;
use device_value::DeviceValue;

const IDENT_OR_SELECT: u64 = 1;
const CREATE_LIST: u64 = 10;
const CREATE_MAP: u64 = 30;
const CREATE_STRUCT: u64 = 40;

pub(super) fn estimate(tree: &Tree, checked: &Checked) -> u64 {
    let mut estimator = Estimator {
        tree,
        checked,
        costs: vec![None; tree.len()],
        device_values: vec![None; tree.len()],
        sizes: vec![None; tree.len()],
        contents: vec![None; tree.len()],
        locals: Vec::new(),
    };
    estimator.cost(tree.root())
}

/// The sizes of what is inside a list or map.
#[derive(Clone, Copy)]
struct Contents {
    is_list: bool,
    key: Size,
    value: Size,
}

impl Contents {
    fn union(self, other: Contents) -> Contents {
        Contents {
            is_list: self.is_list,
            key: self.key.union(other.key),
            value: self.value.union(other.value),
        }
    }
}

#[derive(Clone)]
struct Local<'t> {
    name: &'t str,
    device_value: Option<DeviceValue>,
    size: Option<Size>,
    contents: Option<Contents>,
}

struct Estimator<'t> {
    tree: &'t Tree,
    checked: &'t Checked,
    costs: Vec<Option<u64>>,
    device_values: Vec<Option<DeviceValue>>,
    sizes: Vec<Option<Size>>,
    contents: Vec<Option<Contents>>,
    locals: Vec<Local<'t>>,
}

fn put<T>(slots: &mut [Option<T>], id: NodeId, value: Option<T>) {
    if let Some(slot) = slots.get_mut(id.index())
        && value.is_some()
    {
        *slot = value;
    }
}

fn get<T: Copy>(slots: &[Option<T>], id: NodeId) -> Option<T> {
    slots.get(id.index()).copied().flatten()
}

impl<'t> Estimator<'t> {
    /// Counted once per node: `optMap` uses its target twice, and nested ones would double each time.
    fn cost(&mut self, id: NodeId) -> u64 {
        if let Some(known) = get(&self.costs, id) {
            return known;
        }
        let tree = self.tree;
        let cost = match tree.kind(id) {
            ExprKind::Missing | ExprKind::Literal(_) => 0,
            ExprKind::Ident(name) => {
                let device_value = match self.local(name) {
                    Some(local) => local.device_value,
                    None => DeviceValue::of_variable(name),
                };
                put(&mut self.device_values, id, device_value);
                IDENT_OR_SELECT
            }
            ExprKind::Select { operand, field, presence_test } => {
                self.cost_of_select(id, *operand, field, *presence_test)
            }
            ExprKind::Call { function, target, args } => self.cost_of_call(id, function, *target, args),
            ExprKind::List { elements } => self.cost_of_list(id, elements),
            ExprKind::Map { entries } => self.cost_of_map(id, entries),
            ExprKind::Struct { fields, .. } => {
                fields.iter().fold(CREATE_STRUCT, |sum, field| sum.saturating_add(self.cost(*field)))
            }
            ExprKind::Loop(body) if body.is_bind => self.cost_of_bind(id, body),
            ExprKind::Loop(body) => self.cost_of_loop(id, body),
        };
        put(&mut self.costs, id, Some(cost));
        cost
    }

    fn cost_of_select(&mut self, id: NodeId, operand: NodeId, field: &str, presence_test: bool) -> u64 {
        let cost = self.cost(operand);
        if presence_test {
            return cost;
        }
        let device_value = self.device_value(operand).and_then(|value| value.field(field));
        put(&mut self.device_values, id, device_value);
        let is_lookup =
            matches!(self.checked.type_of(operand), Type::Map(..) | Type::Named(_) | Type::Param(_));
        cost.saturating_add(if is_lookup { IDENT_OR_SELECT } else { 0 })
    }

    fn cost_of_list(&mut self, id: NodeId, elements: &[Element]) -> u64 {
        let mut cost = CREATE_LIST;
        let mut value: Option<Size> = None;
        for element in elements {
            cost = cost.saturating_add(self.cost(element.value));
            let size = self.size_or_unknown(element.value);
            value = Some(value.map_or(size, |value| value.union(size)));
        }
        let value = value.unwrap_or(Size::exactly(0));
        put(&mut self.contents, id, Some(Contents { is_list: true, key: Size::exactly(1), value }));
        cost
    }

    fn cost_of_map(&mut self, id: NodeId, entries: &[MapEntry]) -> u64 {
        let mut cost = CREATE_MAP;
        let mut inside: Option<Contents> = None;
        for entry in entries {
            cost = cost.saturating_add(self.cost(entry.key)).saturating_add(self.cost(entry.value));
            let entry = Contents {
                is_list: false,
                key: self.size_or_unknown(entry.key),
                value: self.size_or_unknown(entry.value),
            };
            inside = Some(inside.map_or(entry, |inside| inside.union(entry)));
        }
        let empty = Contents { is_list: false, key: Size::exactly(0), value: Size::exactly(0) };
        put(&mut self.contents, id, Some(inside.unwrap_or(empty)));
        cost
    }

    fn cost_of_bind(&mut self, id: NodeId, body: &'t Loop) -> u64 {
        let cost = self.cost(body.range).saturating_add(self.cost(body.init));
        self.push_accumulator(body);
        let cost = cost.saturating_add(self.cost(body.result));
        let (size, contents) = (self.size(body.result), self.contents(body.result));
        self.locals.pop();
        put(&mut self.sizes, id, size);
        put(&mut self.contents, id, contents);
        cost
    }

    fn cost_of_loop(&mut self, id: NodeId, body: &'t Loop) -> u64 {
        let mut cost = self.cost(body.range).saturating_add(self.cost(body.init));
        let depth = self.locals.len();
        self.push_accumulator(body);
        self.push_variables(body);
        let once = self.cost(body.condition).saturating_add(self.cost(body.step));
        let step_contents = self.contents(body.step);
        self.locals.truncate(depth + 1);
        cost = cost.saturating_add(self.cost(body.result));
        self.locals.truncate(depth);

        let times = self.size_or_unknown(body.range);
        match self.tree.kind(body.init) {
            ExprKind::Literal(_) => {
                let size = self.size(body.init);
                put(&mut self.sizes, id, size);
            }
            ExprKind::List { .. } | ExprKind::Map { .. } => {
                put(&mut self.sizes, id, Some(times));
                put(&mut self.contents, id, step_contents);
            }
            _ => {}
        }
        cost.saturating_add(times.max.saturating_mul(once))
    }

    fn push_accumulator(&mut self, body: &'t Loop) {
        let local = Local {
            name: &body.accumulator,
            device_value: self.device_value(body.init),
            size: self.size(body.init),
            contents: self.contents(body.init),
        };
        self.locals.push(local);
    }

    fn push_variables(&mut self, body: &'t Loop) {
        let inside = self.contents(body.range);
        let device_value = self.device_value(body.range);
        let is_list = match inside {
            Some(inside) => inside.is_list,
            None => matches!(self.checked.type_of(body.range), Type::List(_)),
        };
        let value = Local {
            name: body.second_variable.as_deref().unwrap_or(&body.variable),
            device_value: device_value.and_then(DeviceValue::value),
            size: inside.map(|inside| inside.value),
            contents: None,
        };
        let key = Local {
            name: &body.variable,
            device_value: device_value.and_then(DeviceValue::key),
            size: inside.map(|inside| inside.key),
            contents: None,
        };
        match (&body.second_variable, is_list) {
            (None, true) => self.locals.push(value),
            (None, false) => self.locals.push(key),
            (Some(_), true) => {
                self.locals
                    .extend([Local { device_value: None, size: Some(Size::exactly(1)), ..key }, value]);
            }
            (Some(_), false) => self.locals.extend([key, value]),
        }
    }

    fn local(&self, name: &str) -> Option<&Local<'t>> {
        self.locals.iter().rev().find(|local| local.name == name)
    }

    fn local_of(&self, id: NodeId) -> Option<&Local<'t>> {
        match self.tree.kind(id) {
            ExprKind::Ident(name) => self.local(name),
            _ => None,
        }
    }

    fn device_value(&self, id: NodeId) -> Option<DeviceValue> {
        match self.local_of(id) {
            Some(local) => local.device_value,
            None => get(&self.device_values, id),
        }
    }

    fn size(&self, id: NodeId) -> Option<Size> {
        get(&self.sizes, id)
            .or_else(|| self.written_size(id))
            .or_else(|| self.device_value(id).map(DeviceValue::size))
            .or_else(|| is_scalar(self.checked.type_of(id)).then_some(Size::exactly(1)))
            .or_else(|| self.local_of(id).and_then(|local| local.size))
    }

    fn size_or_unknown(&self, id: NodeId) -> Size {
        self.size(id).unwrap_or(Size::UNKNOWN)
    }

    fn written_size(&self, id: NodeId) -> Option<Size> {
        let size = match self.tree.kind(id) {
            ExprKind::Literal(Literal::String(text)) => text.chars().count(),
            ExprKind::Literal(Literal::Bytes(bytes)) => bytes.len(),
            ExprKind::Literal(_) => 1,
            ExprKind::List { elements } => elements.len(),
            ExprKind::Map { entries } => entries.len(),
            _ => return None,
        };
        Some(Size::exactly(size as u64))
    }

    fn contents(&self, id: NodeId) -> Option<Contents> {
        get(&self.contents, id).or_else(|| self.local_of(id).and_then(|local| local.contents))
    }
}

fn is_scalar(found: &Type) -> bool {
    match found {
        Type::Optional(inner) => is_scalar(inner),
        // Types are not among them, so that comparing two is as dear as can be.
        Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => true,
        _ => false,
    }
}
