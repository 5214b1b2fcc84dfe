//! The function `cel.@mapInsert`, to which the macros `transformMap` and `transformMapEntry` expand.

use std::sync::Arc;

use crate::evaluate::collections::{Key, Map, MapLookup};
use crate::evaluate::value::{Evaluated, Value, eval_error, no_such_overload};

pub(super) fn try_call(name: &str, args: &[Value]) -> Option<Evaluated> {
    match (name, args) {
        ("cel.@mapInsert", [Value::Map(map), key, value]) => Some(insert_new_key(map, key, value)),
        ("cel.@mapInsert", [Value::Map(map), Value::Map(more)]) => Some(insert_all_new_keys(map, more)),
        _ => None,
    }
}

fn insert_all_new_keys(map: &Arc<Map>, more: &Map) -> Evaluated {
    let mut map = Arc::clone(map);
    for (key, value) in more.entries() {
        let Value::Map(next) = insert_new_key(&map, &key, &value)? else { return no_such_overload() };
        map = next;
    }
    Ok(Value::Map(map))
}

fn insert_new_key(map: &Arc<Map>, key: &Value, value: &Value) -> Evaluated {
    if map.existing_value(key)?.is_some() {
        return eval_error(format!("insert failed: key {} already exists", super::go_value_text(key)));
    }
    if map.insert_if_growing(key, value)? {
        return Ok(Value::Map(Arc::clone(map)));
    }
    let mut pairs = map.entries();
    pairs.push((key.clone(), value.clone()));
    let pairs: Result<_, _> =
        pairs.into_iter().map(|(key, value)| Ok((Key::from_value(&key)?, (key, value)))).collect();
    Ok(Value::Map(Arc::new(Map::from_pairs(pairs?, MapLookup::Values))))
}
