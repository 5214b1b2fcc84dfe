//! The subschemas of a JSON Schema: which apply to a value itself, which to its members and items.
//!
//! The `jsonschema` crate evaluates schemas. This graph is for two questions that it does not answer: whether
//! evaluation can explode, and which names are known for the keys of an object (`keys`). Keywords that a draft does
//! not have are taken into account all the same; at worst, a name is known that need not be.
//!
//! Invariant: no subschema applies to the same value again by way of itself, and not too many apply to it, so that
//! evaluation without looking at the data ends soon.
#![expect(clippy::disallowed_types, reason = "a schema is given to the validator as a generic JSON tree")]

use std::collections::{BTreeMap, HashMap};

use jsonschema::{Draft, Registry, RegistryBuilder, Uri, Validator, uri};
use serde_json::{Map, Value as Json};

use super::budget::EvaluationMeter;
use super::fold::case_folded;
use super::instance::{Instance, TapeJsonRepresentation};
use super::{compile, single_member_object};
use tollgate_document::doc::Value;

/// Maximum number of subschemas of a schema.
const MAX_SUBSCHEMAS: usize = 20_000;
/// Maximum number of subschemas that may apply to the same value, counting each path to a subschema.
const MAX_APPLIED_SUBSCHEMAS: u32 = 10_000;

/// Base URI of a schema without `$id`.
const BASE_URI: &str = "json-schema:///";

/// Keywords with a subschema that applies to the same value, or with a list of them.
const IN_PLACE_KEYWORDS: [&str; 7] = ["allOf", "anyOf", "oneOf", "not", "if", "then", "else"];

/// The subschemas of a JSON Schema, and which of them apply to the same value or to its members and items. The first
/// one is the whole schema.
#[derive(Debug, Default)]
pub(super) struct SchemaGraph {
    nodes: Vec<Subschema>,
    /// Maximum nesting of subschemas that apply to the same value.
    pub(super) nesting: u32,
    /// True if all references are resolved against the same URI.
    pub(super) has_one_base: bool,
    /// Length in bytes of the longest schema inside `not`, which errors contain.
    pub(super) longest_not: usize,
}

/// One subschema, with the indices of the subschemas that its keywords contain.
#[derive(Debug, Default)]
pub(super) struct Subschema {
    /// Subschemas that may apply to the same value, in any branch.
    in_place: Vec<u32>,
    pub(super) properties: BTreeMap<Box<str>, u32>,
    /// The names in `properties`, by their case-folded form.
    pub(super) folded: BTreeMap<Box<str>, Box<str>>,
    patterns: Vec<(Validator<TapeJsonRepresentation>, u32)>,
    additional: Option<u32>,
    unevaluated_members: Option<u32>,
    prefix: Vec<u32>,
    items: Option<u32>,
    /// `contains` and `unevaluatedItems`.
    any_items: Vec<u32>,
}

impl SchemaGraph {
    /// Collects the subschemas of a schema that the crate has accepted; an error if evaluating it could take
    /// exponential time.
    pub(super) fn from_schema_if_evaluation_bounded(schema: &Json) -> Result<SchemaGraph, String> {
        let draft = Draft::default().detect(schema);
        let root = uri::from_str(BASE_URI).map_err(|error| error.to_string())?;
        let id = id_that_changes_base_uri(schema, draft).unwrap_or_default();
        let base = uri::resolve_against(&root.borrow(), id).map_err(|error| error.to_string())?;
        let registry = Registry::new().draft(draft).add(base.as_str(), schema);
        let registry = registry.and_then(RegistryBuilder::prepare).map_err(|error| error.to_string())?;
        // The registry's own copy, so that a reference to the whole leads to the same subschema.
        let whole = registry.resolver(base).lookup("#").map_err(|error| error.to_string())?;
        let base = (*whole.resolver().base_uri()).clone();
        let mut reader = GraphReader {
            registry: &registry,
            numbers: HashMap::new(),
            locations: Vec::new(),
            has_dynamic_references: false,
        };
        reader.get_or_assign_subschema_index(SchemaLocation { contents: whole.contents(), base, draft })?;
        let mut graph = SchemaGraph::default();
        while let Some(location) = reader.locations.get(graph.nodes.len()).cloned() {
            let not = location.contents.get("not").map_or(0, |not| not.to_string().len());
            graph.longest_not = graph.longest_not.max(not);
            graph.nodes.push(reader.read_subschema(&location)?);
        }
        let mut bases = reader.locations.iter().map(|location| &location.base);
        let first = bases.next();
        graph.has_one_base = bases.all(|base| Some(base) == first);
        if reader.has_dynamic_references && !graph.has_one_base {
            return Err("$dynamicRef and $recursiveRef are not supported across several $id".to_owned());
        }
        graph.nesting = graph.nesting_depth_if_evaluation_bounded()?;
        Ok(graph)
    }

    /// Returns the subschema with this index.
    pub(super) fn get(&self, number: u32) -> Option<&Subschema> {
        self.nodes.get(number as usize)
    }

    /// Returns these subschemas, and all subschemas that apply to the same value because of them.
    pub(super) fn with_in_place_subschemas(&self, schemas: &[u32], meter: &EvaluationMeter<'_>) -> Vec<u32> {
        let mut all = schemas.to_vec();
        all.sort_unstable();
        all.dedup();
        let mut seen: std::collections::HashSet<u32> = all.iter().copied().collect();
        let mut next = 0;
        while let Some(schema) = all.get(next).and_then(|number| self.get(*number)) {
            all.extend(schema.in_place.iter().filter(|number| seen.insert(**number)));
            next += 1;
            if !meter.take_steps(1) {
                break;
            }
        }
        all
    }

    /// Rejects schemas whose evaluation could take exponential time. Returns the nesting depth of subschemas
    /// for one value.
    fn nesting_depth_if_evaluation_bounded(&self) -> Result<u32, String> {
        let mut visits = vec![VisitState::New; self.nodes.len()];
        let mut todo: Vec<u32> = (0..).take(self.nodes.len()).collect();
        let mut deepest = 0;
        while let Some(number) = todo.last().copied() {
            let Some(node) = self.get(number) else { break };
            let next = match visits.get(number as usize) {
                Some(VisitState::New) => {
                    todo.extend(&node.in_place);
                    VisitState::Open
                }
                Some(VisitState::Open) => {
                    let (applied, nesting) = node.count_applied_subschemas_and_nesting(&visits)?;
                    deepest = deepest.max(nesting);
                    VisitState::Done { applied, nesting }
                }
                _ => {
                    todo.pop();
                    continue;
                }
            };
            if let Some(visit) = visits.get_mut(number as usize) {
                *visit = next;
            }
        }
        Ok(deepest)
    }
}

/// State of a subschema in a depth-first search: not visited, being visited, or visited, with the computed size.
#[derive(Clone, Copy)]
enum VisitState {
    New,
    Open,
    Done { applied: u32, nesting: u32 },
}

impl Subschema {
    /// Returns how many subschemas apply to a value because of this one, including itself, and their nesting depth; an
    /// error if there are too many, or if one applies again by way of itself.
    fn count_applied_subschemas_and_nesting(&self, visits: &[VisitState]) -> Result<(u32, u32), String> {
        let (mut all_applied, mut deepest) = (1u32, 0);
        for branch in self.in_place.iter().filter_map(|branch| visits.get(*branch as usize)) {
            let VisitState::Done { applied, nesting } = branch else {
                let problem =
                    "a subschema refers to itself for the same value, so checking it would never end";
                return Err(problem.to_owned());
            };
            all_applied = all_applied.saturating_add(*applied);
            deepest = deepest.max(*nesting);
        }
        if all_applied > MAX_APPLIED_SUBSCHEMAS {
            return Err(format!(
                "allOf, anyOf, oneOf, not, if and $ref apply more than {MAX_APPLIED_SUBSCHEMAS} subschemas to one value"
            ));
        }
        Ok((all_applied, deepest + 1))
    }

    /// Returns the subschemas that may apply to the member with this key.
    pub(super) fn subschemas_for_member(&self, key: Value<'_>, meter: &EvaluationMeter<'_>) -> Vec<u32> {
        let mut found: Vec<u32> = self.unevaluated_members.into_iter().collect();
        let before = found.len();
        found.extend(self.properties.get(key.text()));
        if meter.take_steps(self.patterns.len() as u64 * (1 + key.text_bytes().len() as u64 / 64)) {
            let matching =
                self.patterns.iter().filter(|(pattern, _)| pattern.is_valid(Instance::Name(key.text())));
            found.extend(matching.map(|(_, schema)| schema));
        }
        if found.len() == before {
            found.extend(self.additional);
        }
        found
    }

    /// Returns the subschemas that may apply to the item at an index.
    pub(super) fn subschemas_for_item(&self, index: usize) -> impl Iterator<Item = u32> {
        let own = self.prefix.get(index).copied().or(self.items);
        own.into_iter().chain(self.any_items.iter().copied())
    }
}

/// A subschema, and the base URI of its references.
#[derive(Clone)]
struct SchemaLocation<'s> {
    contents: &'s Json,
    base: Uri<String>,
    draft: Draft,
}

/// Finds and numbers the subschemas of a schema.
struct GraphReader<'r> {
    registry: &'r Registry<'r>,
    /// Indices of the subschemas, by address and base URI.
    numbers: HashMap<(usize, String, Draft), u32>,
    locations: Vec<SchemaLocation<'r>>,
    has_dynamic_references: bool,
}

/// Returns the `$id` of a schema, which changes the base of references.
fn id_that_changes_base_uri(schema: &Json, draft: Draft) -> Option<&str> {
    let schema = schema.as_object()?;
    let is_overridden = draft < Draft::Draft201909 && schema.contains_key("$ref");
    let id = schema.get(draft.id_keyword())?.as_str()?.trim_end_matches('#');
    (!is_overridden && !id.starts_with('#')).then_some(id)
}

impl<'r> GraphReader<'r> {
    /// Returns the index of a subschema, which is assigned on the first visit.
    fn get_or_assign_subschema_index(&mut self, location: SchemaLocation<'r>) -> Result<u32, String> {
        let address = std::ptr::from_ref(location.contents) as usize;
        let key = (address, location.base.as_str().to_owned(), location.draft);
        let next = u32::try_from(self.locations.len()).unwrap_or(u32::MAX);
        let number = *self.numbers.entry(key).or_insert(next);
        if number == next {
            if self.locations.len() >= MAX_SUBSCHEMAS {
                return Err(format!("has more than {MAX_SUBSCHEMAS} subschemas"));
            }
            self.locations.push(location);
        }
        Ok(number)
    }

    /// Returns the indices of the subschemas in the value of a keyword, which is a schema or a list of schemas.
    fn subschemas_in_keyword(
        &mut self,
        location: &SchemaLocation<'r>,
        value: Option<&'r Json>,
    ) -> Result<Vec<u32>, String> {
        let list = match value {
            Some(Json::Array(list)) => list.as_slice(),
            one => one.map(std::slice::from_ref).unwrap_or_default(),
        };
        let mut numbers = Vec::new();
        for contents in list.iter().filter(|it| it.is_object() || it.is_boolean()) {
            let draft = location.draft.detect(contents);
            let base = match id_that_changes_base_uri(contents, draft) {
                Some(id) => {
                    let resolved = self.registry.resolve_uri(&location.base.borrow(), id);
                    (*resolved.map_err(|error| error.to_string())?).clone()
                }
                None => location.base.clone(),
            };
            numbers.push(self.get_or_assign_subschema_index(SchemaLocation { contents, base, draft })?);
        }
        Ok(numbers)
    }

    fn resolve_reference(&mut self, location: &SchemaLocation<'r>, reference: &str) -> Result<u32, String> {
        let resolved = self.registry.resolver(location.base.clone()).lookup(reference);
        let (contents, resolver, draft) = resolved.map_err(|error| error.to_string())?.into_inner();
        let base = (*resolver.base_uri()).clone();
        self.get_or_assign_subschema_index(SchemaLocation { contents, base, draft: draft.detect(contents) })
    }

    fn read_subschema(&mut self, location: &SchemaLocation<'r>) -> Result<Subschema, String> {
        let mut node = Subschema::default();
        let (Some(schema), draft) = (location.contents.as_object(), location.draft) else { return Ok(node) };
        for (keyword, is_known) in [
            ("$ref", true),
            ("$dynamicRef", draft >= Draft::Draft202012),
            ("$recursiveRef", draft == Draft::Draft201909),
        ] {
            if let Some(reference) = schema.get(keyword).and_then(Json::as_str).filter(|_| is_known) {
                self.has_dynamic_references |= keyword != "$ref";
                node.in_place.push(self.resolve_reference(location, reference)?);
            }
        }
        // Before 2019-09, what stands beside `$ref` is ignored.
        if draft < Draft::Draft201909 && !node.in_place.is_empty() {
            return Ok(node);
        }
        let dependents =
            ["dependentSchemas", "dependencies"].map(|keyword| named_subschemas(schema.get(keyword)));
        let dependents = dependents.into_iter().flatten().map(|(_, value)| Some(value));
        for value in IN_PLACE_KEYWORDS.map(|keyword| schema.get(keyword)).into_iter().chain(dependents) {
            node.in_place.extend(self.subschemas_in_keyword(location, value)?);
        }
        self.read_property_keywords(location, schema, &mut node)?;
        let items = self.subschemas_in_keyword(location, schema.get("items"))?;
        if schema.get("items").is_some_and(Json::is_array) {
            node.prefix = items;
            node.items = self.subschemas_in_keyword(location, schema.get("additionalItems"))?.pop();
        } else {
            node.prefix = self.subschemas_in_keyword(location, schema.get("prefixItems"))?;
            node.items = items.first().copied();
        }
        node.any_items = self.subschemas_in_keyword(location, schema.get("contains"))?;
        node.any_items.extend(self.subschemas_in_keyword(location, schema.get("unevaluatedItems"))?);
        Ok(node)
    }

    fn read_property_keywords(
        &mut self,
        location: &SchemaLocation<'r>,
        schema: &'r Map<String, Json>,
        node: &mut Subschema,
    ) -> Result<(), String> {
        for (name, schema) in named_subschemas(schema.get("properties")) {
            let number = self.subschemas_in_keyword(location, Some(schema))?.pop();
            node.properties.extend(number.map(|number| (name.as_str().into(), number)));
            node.folded.insert(case_folded(name).into(), name.as_str().into());
        }
        for (pattern, schema) in named_subschemas(schema.get("patternProperties")) {
            let number = self.subschemas_in_keyword(location, Some(schema))?.pop();
            if let Some(number) = number {
                node.patterns
                    .push((compile(&single_member_object("pattern", pattern.as_str().into()))?, number));
            }
        }
        node.additional = self.subschemas_in_keyword(location, schema.get("additionalProperties"))?.pop();
        node.unevaluated_members =
            self.subschemas_in_keyword(location, schema.get("unevaluatedProperties"))?.pop();
        // Names have no members; it is read only to see how much applies to them.
        self.subschemas_in_keyword(location, schema.get("propertyNames"))?;
        Ok(())
    }
}

/// Returns the names and subschemas in the value of a keyword such as `properties`.
fn named_subschemas(value: Option<&Json>) -> impl Iterator<Item = (&String, &Json)> {
    value.and_then(Json::as_object).into_iter().flatten()
}
