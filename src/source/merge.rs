//! Merge keys: `<<: *base` and `<<: [*a, *b]` become the members they stand for.
//!
//! As go-yaml v2 does it, members are written in the order they stand in, `<<` included, and the last one written
//! counts; in a list of maps the first map wins. Only what the user wrote twice stays twice, for the strict rules.

use std::collections::HashMap;

use crate::doc::{Builder, Kind, Span, Syntax, Value};

/// A merge key whose value is no map.
pub(super) struct NoMap(pub(super) Span);

/// One member about to be written.
struct Write<'t> {
    key: Value<'t>,
    value: Value<'t>,
    merged: bool,
}

/// Rewrites the object at node `object`, the last value of `out`; `merges` are the nodes of its merge keys.
// upstream go-yaml v2 decoder.merge
pub(super) fn expand<'a>(
    out: &mut Builder<'a>,
    object: usize,
    merges: &[usize],
    source: &'a str,
) -> Result<(), NoMap> {
    let mut scratch = Builder::with_room(source, Syntax::Yaml, out.len() - object);
    let whole = out.value(object);
    let writes = writes(whole, merges)?;
    let mut last: HashMap<&str, (usize, bool)> = HashMap::with_capacity(writes.len());
    for (position, write) in writes.iter().enumerate() {
        last.insert(write.key.text(), (position, write.merged));
    }
    scratch.open(Kind::Object, whole.span());
    for (position, write) in writes.iter().enumerate() {
        let kept = match last.get(write.key.text()) {
            // What a merged member overwrites is gone, and so is a merged member that is overwritten.
            Some(&(winner, true)) => position == winner,
            _ => !write.merged,
        };
        if kept {
            scratch.copy(write.key);
            scratch.copy(write.value);
        }
    }
    scratch.close(whole.span().end);
    out.truncate(object);
    out.copy(scratch.value(0));
    Ok(())
}

fn writes<'t>(object: Value<'t>, merges: &[usize]) -> Result<Vec<Write<'t>>, NoMap> {
    let mut writes = Vec::new();
    for (key, value) in object.members() {
        // The nodes come in order, so looking one up is cheap even among many.
        if merges.binary_search(&(key.index() as usize)).is_err() {
            writes.push(Write { key, value, merged: false });
            continue;
        }
        match value.kind() {
            Kind::Object => add(&mut writes, value),
            Kind::Array => {
                let maps: Vec<Value<'t>> = value.items().collect();
                // Earlier maps take precedence, so they are written last.
                for map in maps.into_iter().rev() {
                    if map.kind() != Kind::Object {
                        return Err(NoMap(map.span()));
                    }
                    add(&mut writes, map);
                }
            }
            _ if value.span().end <= value.span().start => return Err(NoMap(key.span())),
            _ => return Err(NoMap(value.span())),
        }
    }
    Ok(writes)
}

fn add<'t>(writes: &mut Vec<Write<'t>>, map: Value<'t>) {
    writes.extend(map.members().map(|(key, value)| Write { key, value, merged: true }));
}
