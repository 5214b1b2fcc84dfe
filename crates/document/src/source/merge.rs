//! Replaces merge keys, `<<: *base` and `<<: [*a, *b]`, by the members of the mappings that they refer to.
//!
//! As in go-yaml v2, members and merge keys take effect in document order, and later members override earlier ones; in
//! a list of mappings, the first mapping wins. Keys that the user wrote twice stay duplicates, because rules report
//! them.

use std::collections::HashMap;

use crate::doc::{Builder, Span, Syntax, Value, ValueKind};

/// Error for a merge key whose value is neither a mapping nor a list of mappings, with its position.
pub(super) struct NotAMapping(pub(super) Span);

/// A member of a YAML mapping. `merged` is true if a merge key (`<<`) adds it.
struct MemberAfterMerge<'t> {
    key: Value<'t>,
    value: Value<'t>,
    merged: bool,
}

/// Replaces the merge keys of the object at node `object`, the last value of `out`, by their members; `merges` are the
/// nodes of these keys.
// upstream go-yaml v2 decoder.merge
pub(super) fn expand_merge_keys<'a>(
    out: &mut Builder<'a>,
    object: usize,
    merges: &[usize],
    source: &'a str,
) -> Result<(), NotAMapping> {
    let mut scratch = Builder::with_capacity(source, Syntax::Yaml, out.len() - object);
    let whole = out.value(object);
    let members = members_after_merge(whole, merges)?;
    let mut last: HashMap<&str, (usize, bool)> = HashMap::with_capacity(members.len());
    for (position, member) in members.iter().enumerate() {
        last.insert(member.key.text(), (position, member.merged));
    }
    scratch.open(ValueKind::Object, whole.span());
    for (position, member) in members.iter().enumerate() {
        let kept = match last.get(member.key.text()) {
            // What a merged member overwrites is gone, and so is a merged member that is overwritten.
            Some(&(winner, true)) => position == winner,
            _ => !member.merged,
        };
        if kept {
            scratch.copy(member.key);
            scratch.copy(member.value);
        }
    }
    scratch.close(whole.span().end);
    out.truncate(object);
    out.copy(scratch.value(0));
    Ok(())
}

/// The members of the object in the order in which go-yaml writes them, with merge keys replaced by their members.
fn members_after_merge<'t>(
    object: Value<'t>,
    merges: &[usize],
) -> Result<Vec<MemberAfterMerge<'t>>, NotAMapping> {
    let mut members = Vec::new();
    for (key, value) in object.members() {
        // The nodes come in order, so looking one up is cheap even among many.
        if merges.binary_search(&(key.index() as usize)).is_err() {
            members.push(MemberAfterMerge { key, value, merged: false });
            continue;
        }
        match value.kind() {
            ValueKind::Object => add_merged(&mut members, value),
            ValueKind::Array => {
                let maps: Vec<Value<'t>> = value.items().collect();
                // Earlier maps take precedence, so they are written last.
                for map in maps.into_iter().rev() {
                    if map.kind() != ValueKind::Object {
                        return Err(NotAMapping(map.span()));
                    }
                    add_merged(&mut members, map);
                }
            }
            _ if value.span().end <= value.span().start => return Err(NotAMapping(key.span())),
            _ => return Err(NotAMapping(value.span())),
        }
    }
    Ok(members)
}

/// Adds the members of a mapping that a merge key refers to, marked as merged.
fn add_merged<'t>(members: &mut Vec<MemberAfterMerge<'t>>, map: Value<'t>) {
    members.extend(map.members().map(|(key, value)| MemberAfterMerge { key, value, merged: true }));
}
