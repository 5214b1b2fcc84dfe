//! What the transformations into maps are made of.

use std::sync::Arc;

use crate::evaluate::collections::{Key, Kind, Map};
use crate::evaluate::value::{Evaluated, Value, error, no_such_overload};

pub(super) fn find(name: &str) -> Option<super::Function> {
    match name {
        "cel.@mapInsert" => Some(|args, _| match args {
            [Value::Map(map), key, value] => insert(map, key, value),
            [Value::Map(map), Value::Map(more)] => {
                let mut map = Arc::clone(map);
                for (key, value) in more.entries() {
                    let Value::Map(next) = insert(&map, &key, &value)? else { return no_such_overload() };
                    map = next;
                }
                Ok(Value::Map(map))
            }
            _ => no_such_overload(),
        }),
        _ => None,
    }
}

fn insert(map: &Arc<Map>, key: &Value, value: &Value) -> Evaluated {
    if map.own(key)?.is_some() {
        return error(format!("insert failed: key {} already exists", super::printed(key)));
    }
    if map.insert_if_growing(key, value)? {
        return Ok(Value::Map(Arc::clone(map)));
    }
    let mut pairs = map.entries();
    pairs.push((key.clone(), value.clone()));
    let pairs: Result<_, _> =
        pairs.into_iter().map(|(key, value)| Ok((Key::of(&key)?, (key, value)))).collect();
    Ok(Value::Map(Arc::new(Map::of(pairs?, Kind::Values))))
}
