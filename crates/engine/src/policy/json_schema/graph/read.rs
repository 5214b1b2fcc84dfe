//! Reads the graph out of a schema: one subschema after another, references followed where they lead.
//!
//! Drafts differ in which keywords they have and in what stands beside `$ref`; that is decided here and nowhere else.
//! `$dynamicRef` and `$recursiveRef` mean `$ref` as long as there is one schema resource; with several, where they lead
//! depends on the way taken, and they are refused.
#![expect(clippy::disallowed_types, reason = "a schema is given to the validator as a generic JSON tree")]

use std::collections::HashMap;

use jsonschema::{Draft, Registry, Uri, uri};
use serde_json::{Map, Value};

use super::super::fold::folded;
use super::{Assertions, Condition, Contains, Graph, Subschema};

/// More subschemas than this are refused.
const MAX_SUBSCHEMAS: usize = 20_000;

/// What a schema without `$id` is resolved against.
const BASE_URI: &str = "json-schema:///";

/// Keywords that judge a value by itself.
const ASSERTION_KEYWORDS: &[&str] = &[
    "type",
    "enum",
    "const",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "contentEncoding",
    "contentMediaType",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "required",
    "dependentRequired",
];

/// A subschema, and what its references are resolved against.
#[derive(Clone)]
struct SchemaLocation<'s> {
    contents: &'s Value,
    base: Uri<String>,
    draft: Draft,
}

struct GraphReader<'r> {
    registry: &'r Registry<'r>,
    /// Numbers of subschemas, by address and base.
    numbers: HashMap<(usize, String, Draft), u32>,
    locations: Vec<SchemaLocation<'r>>,
    nodes: Vec<Subschema>,
    has_dynamic_references: bool,
}

/// Reads a schema into a graph.
pub(super) fn graph(schema: &Value) -> Result<Graph, String> {
    let draft = Draft::default().detect(schema);
    let root = uri::from_str(BASE_URI).map_err(|error| error.to_string())?;
    let id = id_of(schema, draft).unwrap_or_default();
    let base = uri::resolve_against(&root.borrow(), id).map_err(|error| error.to_string())?;
    let registry =
        Registry::new().draft(draft).add(base.as_str(), schema).map_err(|error| error.to_string())?;
    let registry = registry.prepare().map_err(|error| error.to_string())?;
    // The registry's own copy, so that a reference to the whole leads to the same subschema.
    let as_count = registry.resolver(base).lookup("#").map_err(|error| error.to_string())?;
    let base = (*as_count.resolver().base_uri()).clone();
    let mut reading = GraphReader {
        registry: &registry,
        numbers: HashMap::new(),
        locations: Vec::new(),
        nodes: Vec::new(),
        has_dynamic_references: false,
    };
    reading.number(SchemaLocation { contents: as_count.contents(), base, draft })?;
    let mut next = 0;
    while let Some(location) = reading.locations.get(next).cloned() {
        let node = reading.subschema(&location)?;
        let ways = reading.nodes.get(next).map_or(0, |node| node.ways);
        if let Some(slot) = reading.nodes.get_mut(next) {
            *slot = Subschema { ways: slot.ways.max(ways), ..node };
        }
        next += 1;
    }
    if reading.has_dynamic_references && reading.locations.windows(2).any(|two| !same_base(two)) {
        return Err("$dynamicRef and $recursiveRef are not supported across several $id".to_owned());
    }
    Ok(Graph { nodes: reading.nodes })
}

fn same_base(two: &[SchemaLocation<'_>]) -> bool {
    matches!(two, [one, other] if one.base == other.base)
}

/// The `$id` that changes what references are resolved against.
fn id_of(schema: &Value, draft: Draft) -> Option<&str> {
    let schema = schema.as_object()?;
    let is_overridden = !is_modern(draft) && schema.contains_key("$ref");
    let id = schema.get(draft.id_keyword())?.as_str()?.trim_end_matches('#');
    (!is_overridden && !id.starts_with('#')).then_some(id)
}

fn is_modern(draft: Draft) -> bool {
    draft >= Draft::Draft201909
}

impl<'r> GraphReader<'r> {
    /// The number of a subschema, a new one if it is visited first.
    fn number(&mut self, location: SchemaLocation<'r>) -> Result<u32, String> {
        let key = (
            std::ptr::from_ref(location.contents) as usize,
            location.base.as_str().to_owned(),
            location.draft,
        );
        let next = u32::try_from(self.locations.len()).unwrap_or(u32::MAX);
        let number = *self.numbers.entry(key).or_insert(next);
        if number == next {
            if self.locations.len() >= MAX_SUBSCHEMAS {
                return Err(format!("has more than {MAX_SUBSCHEMAS} subschemas"));
            }
            self.locations.push(location);
            self.nodes.push(Subschema::default());
        }
        if let Some(node) = self.nodes.get_mut(number as usize) {
            node.ways += 1;
        }
        Ok(number)
    }

    /// The number of a subschema inside another.
    fn inside(&mut self, location: &SchemaLocation<'r>, contents: &'r Value) -> Result<u32, String> {
        let draft = location.draft.detect(contents);
        let base = match id_of(contents, draft) {
            Some(id) => {
                let resolved = self.registry.resolve_uri(&location.base.borrow(), id);
                (*resolved.map_err(|error| error.to_string())?).clone()
            }
            None => location.base.clone(),
        };
        self.number(SchemaLocation { contents, base, draft })
    }

    fn list(&mut self, location: &SchemaLocation<'r>, list: Option<&'r Value>) -> Result<Vec<u32>, String> {
        let items = list.and_then(Value::as_array).into_iter().flatten();
        items.map(|item| self.inside(location, item)).collect()
    }

    fn optional(
        &mut self,
        location: &SchemaLocation<'r>,
        schema: Option<&'r Value>,
    ) -> Result<Option<u32>, String> {
        schema.filter(|it| it.is_object() || it.is_boolean()).map(|it| self.inside(location, it)).transpose()
    }

    fn reference(&mut self, location: &SchemaLocation<'r>, reference: &str) -> Result<u32, String> {
        let resolved = self.registry.resolver(location.base.clone()).lookup(reference);
        let (contents, resolver, draft) = resolved.map_err(|error| error.to_string())?.into_inner();
        let base = (*resolver.base_uri()).clone();
        self.number(SchemaLocation { contents, base, draft: draft.detect(contents) })
    }

    fn subschema(&mut self, location: &SchemaLocation<'r>) -> Result<Subschema, String> {
        let Some(schema) = location.contents.as_object() else {
            return Ok(Subschema { never: location.contents == false, ..Subschema::default() });
        };
        let mut node = Subschema::default();
        let draft = location.draft;
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            node.references.push(self.reference(location, reference)?);
            // Before 2019-09, what stands beside `$ref` is ignored.
            if !is_modern(draft) {
                return Ok(node);
            }
        }
        for keyword in ["$dynamicRef", "$recursiveRef"] {
            let is_known = is_modern(draft) && (keyword == "$recursiveRef") == (draft == Draft::Draft201909);
            if let Some(reference) = schema.get(keyword).and_then(Value::as_str).filter(|_| is_known) {
                self.has_dynamic_references = true;
                node.references.push(self.reference(location, reference)?);
            }
        }
        node.assertions = assertions(schema, draft)?;
        self.branches(location, schema, &mut node)?;
        self.members(location, schema, &mut node)?;
        self.items(location, schema, &mut node)?;
        Ok(node)
    }

    fn branches(
        &mut self,
        location: &SchemaLocation<'r>,
        schema: &'r Map<String, Value>,
        node: &mut Subschema,
    ) -> Result<(), String> {
        node.all_of = self.list(location, schema.get("allOf"))?;
        node.any_of = self.list(location, schema.get("anyOf"))?;
        node.one_of = self.list(location, schema.get("oneOf"))?;
        if let Some(not) = schema.get("not") {
            node.not = Some((self.inside(location, not)?, not.to_string().into()));
        }
        if let Some(test) = schema.get("if").filter(|_| location.draft >= Draft::Draft7) {
            node.condition = Some(Condition {
                test: self.inside(location, test)?,
                then: self.optional(location, schema.get("then"))?,
                otherwise: self.optional(location, schema.get("else"))?,
            });
        }
        let dependent = schema.get("dependentSchemas").filter(|_| is_modern(location.draft));
        for map in [schema.get("dependencies"), dependent].into_iter().flatten() {
            for (name, schema) in map.as_object().into_iter().flatten() {
                if let Some(schema) = self.optional(location, Some(schema))? {
                    node.dependents.push((name.as_str().into(), schema));
                }
            }
        }
        Ok(())
    }

    fn members(
        &mut self,
        location: &SchemaLocation<'r>,
        schema: &'r Map<String, Value>,
        node: &mut Subschema,
    ) -> Result<(), String> {
        let map = |keyword| schema.get(keyword).and_then(Value::as_object).into_iter().flatten();
        for (name, schema) in map("properties") {
            node.properties.insert(name.as_str().into(), self.inside(location, schema)?);
            node.folded.insert(folded(name).into(), name.as_str().into());
        }
        for (pattern, schema) in map("patternProperties") {
            let mut test = Map::new();
            test.insert("pattern".to_owned(), Value::from(pattern.as_str()));
            let test = Assertions::compile(&Value::Object(test), location.draft)?;
            node.patterns.push((test, self.inside(location, schema)?));
        }
        node.additional = self.optional(location, schema.get("additionalProperties"))?;
        let names = schema.get("propertyNames").filter(|_| location.draft >= Draft::Draft6);
        node.names = self.optional(location, names)?;
        let unevaluated = schema.get("unevaluatedProperties").filter(|_| is_modern(location.draft));
        node.unevaluated_properties = self.optional(location, unevaluated)?;
        Ok(())
    }

    fn items(
        &mut self,
        location: &SchemaLocation<'r>,
        schema: &'r Map<String, Value>,
        node: &mut Subschema,
    ) -> Result<(), String> {
        let has_prefix = location.draft >= Draft::Draft202012;
        match schema.get("items") {
            Some(list @ Value::Array(_)) if !has_prefix => {
                node.prefix = self.list(location, Some(list))?;
                node.items = self.optional(location, schema.get("additionalItems"))?;
                node.items_are_additional = true;
            }
            items => node.items = self.optional(location, items)?,
        }
        if has_prefix {
            node.prefix = self.list(location, schema.get("prefixItems"))?;
        }
        if let Some(contains) = schema.get("contains").filter(|_| location.draft >= Draft::Draft6) {
            let number =
                |keyword| schema.get(keyword).filter(|_| is_modern(location.draft)).and_then(as_count);
            node.contains = Some(Contains {
                schema: self.inside(location, contains)?,
                least: number("minContains").unwrap_or(1),
                most: number("maxContains").unwrap_or(u64::MAX),
            });
        }
        let unevaluated = schema.get("unevaluatedItems").filter(|_| is_modern(location.draft));
        node.unevaluated_items = self.optional(location, unevaluated)?;
        Ok(())
    }
}

/// A number such as `2` or `2.0`.
fn as_count(value: &Value) -> Option<u64> {
    let float = value.as_f64().filter(|float| float.fract() == 0.0 && *float >= 0.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole and not negative")]
    value.as_u64().or(float.map(|float| float as u64))
}

/// What a subschema says about a value by itself.
fn assertions(schema: &Map<String, Value>, draft: Draft) -> Result<Option<Assertions>, String> {
    let mut own = Map::new();
    for keyword in ASSERTION_KEYWORDS {
        if let Some(value) = schema.get(*keyword) {
            own.insert((*keyword).to_owned(), value.clone());
        }
    }
    let dependencies = schema.get("dependencies").and_then(Value::as_object).into_iter().flatten();
    let lists: Map<String, Value> = dependencies
        .filter(|(_, wanted)| wanted.is_array())
        .map(|(name, wanted)| (name.clone(), wanted.clone()))
        .collect();
    if !lists.is_empty() {
        own.insert("dependencies".to_owned(), Value::Object(lists));
    }
    if own.is_empty() {
        return Ok(None);
    }
    Assertions::compile(&Value::Object(own), draft).map(Some)
}
