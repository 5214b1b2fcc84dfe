//! A JSON Schema as a graph: which subschemas apply to a value itself, which to its members and items.
//!
//! The `jsonschema` crate has accepted the whole schema before, and it judges the assertions of each subschema
//! (`type`, `enum`, `pattern`, `required`…). What applies other subschemas is here, because that is what can cost more
//! than the data is long (`evaluate`).
//!
//! Invariant: no subschema applies to the same value again by way of itself, so that evaluation ends.
#![expect(clippy::disallowed_types, reason = "a schema is given to the validator as a generic JSON tree")]

mod read;

use std::collections::BTreeMap;

use jsonschema::{PatternOptions, Validator};

use super::instance::{Instance, Tape};
use tollgate_document::doc::Value;

/// Subschemas; the first is the whole schema.
#[derive(Debug, Default)]
pub(super) struct Graph {
    nodes: Vec<Subschema>,
}

/// One subschema.
#[derive(Debug, Default)]
pub(super) struct Subschema {
    /// `false`: nothing is valid.
    pub(super) never: bool,
    /// What it says about a value without looking into members and items.
    pub(super) assertions: Option<Assertions>,
    pub(super) all_of: Vec<u32>,
    pub(super) any_of: Vec<u32>,
    pub(super) one_of: Vec<u32>,
    /// With its text.
    pub(super) not: Option<(u32, Box<str>)>,
    pub(super) condition: Option<Condition>,
    /// For objects with a member of that name.
    pub(super) dependents: Vec<(Box<str>, u32)>,
    pub(super) references: Vec<u32>,
    pub(super) properties: BTreeMap<Box<str>, u32>,
    /// The names in `properties`, by what Go makes of them.
    pub(super) folded: BTreeMap<Box<str>, Box<str>>,
    pub(super) patterns: Vec<(Assertions, u32)>,
    pub(super) additional: Option<u32>,
    pub(super) names: Option<u32>,
    pub(super) prefix: Vec<u32>,
    pub(super) items: Option<u32>,
    /// `items` are those after a list of `items`: `additionalItems`.
    pub(super) items_are_additional: bool,
    pub(super) contains: Option<Contains>,
    pub(super) unevaluated_properties: Option<u32>,
    pub(super) unevaluated_items: Option<u32>,
    /// How many ways lead here.
    pub(super) ways: u32,
}

/// `if`, `then`, `else`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Condition {
    pub(super) test: u32,
    pub(super) then: Option<u32>,
    pub(super) otherwise: Option<u32>,
}

/// `contains`, and how often.
#[derive(Clone, Copy, Debug)]
pub(super) struct Contains {
    pub(super) schema: u32,
    pub(super) least: u64,
    pub(super) most: u64,
}

/// Assertions, judged by the crate.
#[derive(Debug)]
pub(super) struct Assertions {
    pub(super) validator: Validator<Tape>,
    /// Steps for each member or item, in eighths.
    per_item: u64,
    /// They look at everything below: `uniqueItems`.
    is_deep: bool,
    /// Steps for a text, whatever its length.
    per_text: u64,
}

impl Assertions {
    /// Compiles a schema that has nothing but assertions.
    fn compile(schema: &serde_json::Value, draft: jsonschema::Draft) -> Result<Assertions, String> {
        let options =
            jsonschema::options_for::<Tape>().with_pattern_options(PatternOptions::regex()).offline();
        let validator = options.with_draft(draft).build(schema).map_err(|error| error.to_string())?;
        let length = |keyword: &str| {
            let list = schema.get(keyword);
            let members = list.and_then(serde_json::Value::as_object).map(serde_json::Map::len);
            members.or_else(|| Some(list?.as_array()?.len())).unwrap_or_default() as u64
        };
        let names = length("required") + length("dependentRequired") + length("dependencies");
        Ok(Assertions {
            validator,
            per_item: 1 + names,
            is_deep: schema.get("uniqueItems").is_some_and(|unique| unique == true),
            // Whether a text is a regular expression is found by compiling it.
            per_text: if schema.get("format").is_some_and(|format| format == "regex") {
                20_000
            } else {
                1 + length("enum") / 64
            },
        })
    }

    /// What judging a value costs, in steps.
    pub(super) fn cost(&self, value: Value<'_>) -> u64 {
        use tollgate_document::doc::ValueKind;
        let nodes = if self.is_deep { value.size() } else { 0 };
        let texts = if self.is_deep { value.descendants().map(|part| part.bytes().len()).sum() } else { 0 };
        let deep = nodes as u64 + texts as u64 / 64;
        match value.kind() {
            ValueKind::Array | ValueKind::Object => {
                deep + (value.len() as u64).saturating_mul(self.per_item) / 8
            }
            _ => self.per_text + value.bytes().len() as u64 / 64,
        }
    }

    pub(super) fn hold(&self, value: Value<'_>) -> bool {
        self.validator.is_valid(Instance::Value(value))
    }
}

impl Graph {
    /// Reads a schema that the crate has accepted.
    pub(super) fn read(schema: &serde_json::Value) -> Result<Graph, String> {
        let graph = read::graph(schema)?;
        if graph.has_cycle() {
            return Err(
                "a subschema refers to itself for the same value, so checking it would never end".to_owned()
            );
        }
        Ok(graph)
    }

    /// The subschema of that number.
    pub(super) fn get(&self, number: u32) -> Option<&Subschema> {
        self.nodes.get(number as usize)
    }

    /// Some subschema applies to the value it was reached from.
    fn has_cycle(&self) -> bool {
        #[derive(Clone, Copy, PartialEq)]
        enum VisitState {
            New,
            Open,
            Done,
        }
        let mut marks = vec![VisitState::New; self.nodes.len()];
        let mut todo = Vec::new();
        for start in 0..self.nodes.len() {
            todo.push((start, false));
            while let Some((at, is_left)) = todo.pop() {
                let (Some(mark), Some(node)) = (marks.get_mut(at), self.nodes.get(at)) else { continue };
                match *mark {
                    _ if is_left => *mark = VisitState::Done,
                    VisitState::Done => {}
                    VisitState::Open => return true,
                    VisitState::New => {
                        *mark = VisitState::Open;
                        todo.push((at, true));
                        let mut is_circle = false;
                        node.in_place(&mut |next| {
                            is_circle |= marks.get(next as usize) == Some(&VisitState::Open);
                            todo.push((next as usize, false));
                        });
                        if is_circle {
                            return true;
                        }
                    }
                }
            }
        }
        false
    }
}

impl Subschema {
    /// Visits the subschemas that may apply to the same value, in any branch.
    pub(super) fn in_place(&self, visit: &mut dyn FnMut(u32)) {
        let lists = [&self.all_of, &self.any_of, &self.one_of, &self.references];
        lists.into_iter().flatten().for_each(|next| visit(*next));
        self.dependents.iter().for_each(|(_, next)| visit(*next));
        if let Some((next, _)) = &self.not {
            visit(*next);
        }
        if let Some(condition) = self.condition {
            [Some(condition.test), condition.then, condition.otherwise].into_iter().flatten().for_each(visit);
        }
    }

    /// It applies other subschemas to the same value.
    pub(super) fn has_branches(&self) -> bool {
        let lists = [&self.all_of, &self.any_of, &self.one_of, &self.references];
        lists.iter().any(|list| !list.is_empty())
            || !self.dependents.is_empty()
            || self.not.is_some()
            || self.condition.is_some()
    }

    /// It says something about members.
    pub(super) fn has_members(&self) -> bool {
        !self.properties.is_empty()
            || !self.patterns.is_empty()
            || self.additional.is_some()
            || self.names.is_some()
    }

    /// It says something about items.
    pub(super) fn has_items(&self) -> bool {
        !self.prefix.is_empty() || self.items.is_some() || self.contains.is_some()
    }

    /// Visits the subschemas for a member, apart from those for what is left over.
    pub(super) fn for_member(&self, key: Value<'_>, visit: &mut dyn FnMut(u32)) {
        let mut is_known = false;
        if let Some(schema) = self.properties.get(key.text()) {
            is_known = true;
            visit(*schema);
        }
        for (pattern, schema) in &self.patterns {
            if pattern.hold(key) {
                is_known = true;
                visit(*schema);
            }
        }
        if let Some(schema) = self.additional.filter(|_| !is_known) {
            visit(schema);
        }
    }

    /// The subschema for the item at an index, if any.
    pub(super) fn for_item(&self, index: usize) -> Option<u32> {
        self.prefix.get(index).copied().or(self.items)
    }
}
