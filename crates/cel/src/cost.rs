//! The worst-case cost of an expression, in the server's units, before it runs.
//!
//! A port of cel-go's `checker/cost.go` with the sizes Kubernetes declares for a device. The size of a value is known
//! for literals, for the fields of `device`, and for the results of some functions. Any other value may have any size,
//! so reading it costs more than any limit.
//!
//! Invariant: the estimate is the server's, to the unit.

mod call;
mod kubernetes;
mod lists;
mod path;

use super::check::TypeCheckResult;
use super::outcome::CelEnv;
use super::size::{CREATE_LIST_COST, CREATE_MAP_COST, CREATE_STRUCT_COST, SizeRange};
use super::tree::{Element, ExprKind, Literal, Loop, MapEntry, NodeId, Tree};
use super::types::Type;
use path::DevicePath;

/// Cost of reading a variable or selecting a field.
const IDENT_OR_SELECT_COST: u64 = 1;

/// The worst-case cost of the whole expression in the server's units.
pub(super) fn estimate(tree: &Tree, checked: &TypeCheckResult, env: CelEnv) -> u64 {
    let mut estimator = Estimator {
        tree,
        checked,
        env,
        costs: vec![None; tree.len()],
        paths: vec![None; tree.len()],
        sizes: vec![None; tree.len()],
        contents: vec![None; tree.len()],
        locals: Vec::new(),
    };
    estimator.node_cost(tree.root())
}

/// The sizes of the keys and values, or of the elements, of a map or list.
#[derive(Clone, Copy)]
struct ContentSizes {
    is_list: bool,
    key: SizeRange,
    value: SizeRange,
}

impl ContentSizes {
    /// Sizes that cover both `self` and `other`.
    fn union(self, other: ContentSizes) -> ContentSizes {
        ContentSizes {
            is_list: self.is_list,
            key: self.key.union(other.key),
            value: self.value.union(other.value),
        }
    }
}

/// A variable of a loop, or its accumulator, with the path and size of its value.
struct LoopVariable<'t> {
    name: &'t str,
    path: DevicePath<'t>,
    size: Option<SizeRange>,
    contents: Option<ContentSizes>,
}

/// Computes worst-case costs. Results are kept by node, so that each node is visited once.
struct Estimator<'t> {
    tree: &'t Tree,
    checked: &'t TypeCheckResult,
    env: CelEnv,
    costs: Vec<Option<u64>>,
    paths: Vec<Option<DevicePath<'t>>>,
    sizes: Vec<Option<SizeRange>>,
    contents: Vec<Option<ContentSizes>>,
    locals: Vec<LoopVariable<'t>>,
}

/// Stores a fact about a node. Keeps the earlier one if `value` is `None`.
fn set_if_some<T>(slots: &mut [Option<T>], id: NodeId, value: Option<T>) {
    if let Some(slot) = slots.get_mut(id.index())
        && value.is_some()
    {
        *slot = value;
    }
}

/// The known value for a node; `None` if unknown.
fn get_known<T: Copy>(slots: &[Option<T>], id: NodeId) -> Option<T> {
    slots.get(id.index()).copied().flatten()
}

impl<'t> Estimator<'t> {
    /// The cost of a node and everything below it. Computed once per node: a macro can use its target twice, so the
    /// work for nested macros would double at each level.
    fn node_cost(&mut self, id: NodeId) -> u64 {
        if let Some(known) = get_known(&self.costs, id) {
            return known;
        }
        let tree = self.tree;
        let cost = match tree.kind(id) {
            ExprKind::Missing | ExprKind::Literal(_) => 0,
            ExprKind::Ident(name) => self.cost_of_ident(id, name),
            // The name of a type, `google.protobuf.Duration`, is one identifier to the server.
            ExprKind::Select { .. } if self.checked.is_declared_name(id) => IDENT_OR_SELECT_COST,
            ExprKind::Select { operand, field, presence_test } => {
                self.cost_of_select(id, *operand, field, *presence_test)
            }
            ExprKind::Call { target, args, .. } => self.cost_of_call(id, *target, args),
            ExprKind::List { elements } => self.cost_of_list(id, elements),
            ExprKind::Map { entries } => self.cost_of_map(id, entries),
            ExprKind::Struct { fields, .. } => fields
                .iter()
                .fold(CREATE_STRUCT_COST, |sum, field| sum.saturating_add(self.node_cost(field.value))),
            ExprKind::Loop(body) if body.is_bind => self.cost_of_bind(id, body),
            ExprKind::Loop(body) => self.cost_of_loop(id, body),
        };
        set_if_some(&mut self.costs, id, Some(cost));
        cost
    }

    fn cost_of_ident(&mut self, id: NodeId, name: &'t str) -> u64 {
        let path = match (self.loop_variable(name), name.strip_prefix('.')) {
            (Some(local), _) => local.path.clone(),
            // Past a variable of the same name, which has no limits of its own.
            (None, Some(plain)) if self.loop_variable(plain).is_some() => DevicePath::of_variable(name),
            (None, Some(plain)) => DevicePath::of_variable(plain),
            (None, None) => DevicePath::of_variable(name),
        };
        set_if_some(&mut self.paths, id, Some(path));
        IDENT_OR_SELECT_COST
    }

    fn cost_of_select(&mut self, id: NodeId, operand: NodeId, field: &'t str, presence_test: bool) -> u64 {
        let cost = self.node_cost(operand);
        if presence_test {
            return cost;
        }
        let path = self.device_path(operand).append_with_go_slice_aliasing(field);
        set_if_some(&mut self.paths, id, Some(path));
        let is_lookup = matches!(self.checked.type_of(operand), Type::Map(..))
            || self.checked.type_of(operand).is_object();
        cost.saturating_add(if is_lookup { IDENT_OR_SELECT_COST } else { 0 })
    }

    fn cost_of_list(&mut self, id: NodeId, elements: &[Element]) -> u64 {
        let mut cost = CREATE_LIST_COST;
        let mut value: Option<SizeRange> = None;
        for element in elements {
            cost = cost.saturating_add(self.node_cost(element.value));
            let size = self.size_or_unknown(element.value);
            value = Some(value.map_or(size, |value| value.union(size)));
        }
        let value = value.unwrap_or(SizeRange::exactly(0));
        set_if_some(
            &mut self.contents,
            id,
            Some(ContentSizes { is_list: true, key: SizeRange::exactly(1), value }),
        );
        cost
    }

    fn cost_of_map(&mut self, id: NodeId, entries: &[MapEntry]) -> u64 {
        let mut cost = CREATE_MAP_COST;
        let mut inside: Option<ContentSizes> = None;
        for entry in entries {
            cost = cost.saturating_add(self.node_cost(entry.key)).saturating_add(self.node_cost(entry.value));
            let key = self.size_or_unknown(entry.key);
            let entry = ContentSizes { is_list: false, key, value: self.size_or_unknown(entry.value) };
            inside = Some(inside.map_or(entry, |inside| inside.union(entry)));
        }
        let empty = ContentSizes { is_list: false, key: SizeRange::exactly(0), value: SizeRange::exactly(0) };
        set_if_some(&mut self.contents, id, Some(inside.unwrap_or(empty)));
        cost
    }

    /// The cost of `cel.bind`, which evaluates its result once.
    fn cost_of_bind(&mut self, id: NodeId, body: &'t Loop) -> u64 {
        let cost = self.node_cost(body.range).saturating_add(self.node_cost(body.init));
        self.push_accumulator(body);
        let cost = cost.saturating_add(self.node_cost(body.result));
        self.locals.pop();
        self.copy_sizes(id, body.result);
        cost
    }

    fn cost_of_loop(&mut self, id: NodeId, body: &'t Loop) -> u64 {
        let mut cost = self.node_cost(body.range).saturating_add(self.node_cost(body.init));
        let depth = self.locals.len();
        self.push_accumulator(body);
        self.push_variables(body);
        let once = self.node_cost(body.condition).saturating_add(self.node_cost(body.step));
        self.locals.truncate(depth + 1);
        cost = cost.saturating_add(self.node_cost(body.result));
        self.locals.truncate(depth);

        let times = self.size_or_unknown(body.range);
        match self.tree.kind(body.init) {
            ExprKind::Literal(_) => {
                let size = self.node_size(body.init);
                set_if_some(&mut self.sizes, id, size);
            }
            ExprKind::List { .. } | ExprKind::Map { .. } => {
                set_if_some(&mut self.sizes, id, Some(times));
                let inside = self.content_sizes(body.step);
                set_if_some(&mut self.contents, id, inside);
            }
            _ => {}
        }
        cost.saturating_add(times.max.saturating_mul(once))
    }

    /// Adds the accumulator of a loop to the variables.
    fn push_accumulator(&mut self, body: &'t Loop) {
        let (path, contents) = (self.device_path(body.init), self.content_sizes(body.init));
        let size = self.node_size(body.init);
        self.locals.push(LoopVariable { name: &body.accumulator, path, size, contents });
    }

    /// Adds the one or two variables of a loop over a list or a map.
    fn push_variables(&mut self, body: &'t Loop) {
        let inside = self.content_sizes(body.range);
        let is_list = match inside {
            Some(inside) => inside.is_list,
            None => matches!(self.checked.type_of(body.range), Type::List(_)),
        };
        let path = self.device_path(body.range);
        let variable = |name: &'t str, step: &'t str, size: Option<SizeRange>| LoopVariable {
            name,
            path: path.append_with_go_slice_aliasing(step),
            size,
            contents: None,
        };
        let (key, value) = (inside.map(|inside| inside.key), inside.map(|inside| inside.value));
        match (&body.second_variable, is_list) {
            (None, true) => self.locals.push(variable(&body.variable, path::ITEMS, value)),
            (None, false) => self.locals.push(variable(&body.variable, path::KEYS, key)),
            (Some(second), true) => {
                self.locals.push(variable(&body.variable, path::INDICES, key));
                self.locals.push(variable(second, path::ITEMS, value));
            }
            (Some(second), false) => {
                self.locals.push(variable(&body.variable, path::KEYS, key));
                self.locals.push(variable(second, path::VALUES, value));
            }
        }
    }

    /// The innermost variable with that name; `None` if there is none.
    fn loop_variable(&self, name: &str) -> Option<&LoopVariable<'t>> {
        self.locals.iter().rev().find(|local| local.name == name)
    }

    /// The variable that a node names; `None` if it is not a variable.
    fn loop_variable_of(&self, id: NodeId) -> Option<&LoopVariable<'t>> {
        match self.tree.kind(id) {
            ExprKind::Ident(name) => self.loop_variable(name),
            _ => None,
        }
    }

    /// The path in the device from which the value of a node comes; empty if unknown.
    fn device_path(&self, id: NodeId) -> DevicePath<'t> {
        match self.loop_variable_of(id) {
            Some(local) => local.path.clone(),
            None => self.paths.get(id.index()).cloned().flatten().unwrap_or_default(),
        }
    }

    /// The size of a node's value; `None` if nothing is known about it.
    fn node_size(&mut self, id: NodeId) -> Option<SizeRange> {
        if let Some(known) = get_known(&self.sizes, id).or_else(|| self.literal_size(id)) {
            return Some(known);
        }
        if let Some(limit) = self.device_path(id).size() {
            set_if_some(&mut self.sizes, id, Some(limit));
            return Some(limit);
        }
        let of_type = is_scalar(self.checked.type_of(id)).then_some(SizeRange::exactly(1));
        of_type.or_else(|| self.loop_variable_of(id).and_then(|local| local.size))
    }

    fn size_or_unknown(&mut self, id: NodeId) -> SizeRange {
        self.node_size(id).unwrap_or(SizeRange::UNKNOWN)
    }

    /// The size of a literal, or of a list or map literal; `None` for other nodes.
    fn literal_size(&self, id: NodeId) -> Option<SizeRange> {
        let size = match self.tree.kind(id) {
            ExprKind::Literal(Literal::String(text)) => text.chars().count(),
            ExprKind::Literal(Literal::Bytes(bytes)) => bytes.len(),
            ExprKind::Literal(_) => 1,
            ExprKind::List { elements } => elements.len(),
            ExprKind::Map { entries } => entries.len(),
            _ => return None,
        };
        Some(SizeRange::exactly(size as u64))
    }

    /// Returns the sizes of the elements or entries of a node's list or map; `None` if they are not known.
    fn content_sizes(&self, id: NodeId) -> Option<ContentSizes> {
        get_known(&self.contents, id).or_else(|| self.loop_variable_of(id).and_then(|local| local.contents))
    }

    /// Copies what is known about the size of one node and of its contents to another node.
    fn copy_sizes(&mut self, to: NodeId, from: NodeId) {
        let (size, contents) = (self.node_size(from), self.content_sizes(from));
        set_if_some(&mut self.sizes, to, size);
        set_if_some(&mut self.contents, to, contents);
    }
}

/// True if values of the type have the size 1.
fn is_scalar(found: &Type) -> bool {
    match found.without_wrapper() {
        Type::Optional(inner) => is_scalar(inner),
        // Types are not among them, so that comparing two is as dear as can be.
        Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => true,
        _ => false,
    }
}
