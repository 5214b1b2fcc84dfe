//! A stand-in for the evaluation of CEL selectors: just the expressions of the recorded cases.
//!
//! An expression is a conjunction of comparisons; each reads one attribute or capacity. Anything else is a panic,
//! because then the cases have changed.

use std::cmp::Ordering;
use tollgate_allocator::Candidate;
use tollgate_api::view::View as _;
use tollgate_formats::quantity::Quantity;

#[derive(Clone, PartialEq, Debug)]
enum Value {
    String(String),
    Int(i64),
    Bool(bool),
    Version(String),
    Quantity(Quantity<'static>),
}

const NO_OVERLOAD: &str = "no such overload";

/// True if the expression selects the device. A conjunction is false if any part is false, even if another
/// part fails.
pub(crate) fn matches(expression: &str, device: Candidate<'_>) -> Result<bool, String> {
    let flat = expression.replace("&& (", "&& ");
    let flat =
        if flat == expression { flat } else { flat.trim_end_matches(')').to_owned() + &closing(&flat) };
    let parts: Vec<Result<bool, String>> =
        flat.split(" && ").map(|part| part_matches(part, device)).collect();
    if parts.contains(&Ok(false)) {
        return Ok(false);
    }
    parts.into_iter().find(Result::is_err).unwrap_or(Ok(true))
}

/// The parentheses that close calls, without the one that closes the group.
fn closing(flat: &str) -> String {
    let (opened, closed) = (flat.matches('(').count(), flat.matches(')').count());
    let trailing = flat.len() - flat.trim_end_matches(')').len();
    ")".repeat(trailing + opened - closed)
}

fn part_matches(part: &str, device: Candidate<'_>) -> Result<bool, String> {
    if let Some((key, map)) = part.strip_prefix('"').and_then(|rest| rest.split_once("\" in ")) {
        let (map, domain) = map_and_domain(map);
        return Ok(lookup(map, domain, key, device).is_some());
    }
    let (negated, part) = part.strip_prefix('!').map_or((false, part), |rest| (true, rest));
    let value = match [" == ", " != ", " >= ", " <= ", " > ", " < ", " in "]
        .into_iter()
        .find_map(|operator| part.split_once(operator).map(|(left, right)| (left, operator.trim(), right)))
    {
        None => term(part, device)?,
        Some((left, "in", list)) => {
            let items = list.trim_start_matches('[').trim_end_matches(']').split(',');
            let left = term(left, device)?;
            Value::Bool(items.map(literal).any(|item| item == left))
        }
        Some((left, operator, right)) => compare(&term(left, device)?, operator, &literal(right))?,
    };
    match value {
        Value::Bool(value) => Ok(value != negated),
        _ => Err(NO_OVERLOAD.to_owned()),
    }
}

fn compare(left: &Value, operator: &str, right: &Value) -> Result<Value, String> {
    let order = match (left, right) {
        (Value::Int(left), Value::Int(right)) => Some(left.cmp(right)),
        _ => None,
    };
    let order = || order.ok_or_else(|| NO_OVERLOAD.to_owned());
    Ok(Value::Bool(match operator {
        "==" => left == right,
        "!=" => left != right,
        ">=" => order()?.is_ge(),
        "<=" => order()?.is_le(),
        ">" => order()?.is_gt(),
        _ => order()?.is_lt(),
    }))
}

/// Evaluates `device.…` with at most one call.
fn term(text: &str, device: Candidate<'_>) -> Result<Value, String> {
    match text {
        "device.driver" => return Ok(Value::String(device.driver.to_owned())),
        "device.allowMultipleAllocations" => {
            return Ok(Value::Bool(device.body.allow_multiple_allocations() == Some(true)));
        }
        _ => {}
    }
    let (map, rest) = text.split_once("\"].").expect("a map, a domain and a key");
    let (map, domain) = map_and_domain(map);
    let (optional, rest) = rest.strip_prefix('?').map_or((false, rest), |rest| (true, rest));
    let (key, call) = rest.split_once('.').map_or((rest, None), |(key, call)| (key, Some(call)));
    let value = lookup(map, domain, key, device);
    let Some(call) = call else { return value.ok_or_else(|| format!("no such key: {key}")) };
    let (method, argument) = call.split_once('(').expect("a call");
    let argument = argument.strip_suffix(')').expect("the end of a call");
    if optional {
        assert_eq!(method, "orValue");
        return Ok(value.unwrap_or_else(|| literal(argument)));
    }
    let value = value.ok_or_else(|| format!("no such key: {key}"))?;
    let overload = || NO_OVERLOAD.to_owned();
    match (method, &value) {
        ("startsWith", Value::String(value)) => {
            Ok(Value::Bool(value.starts_with(argument.trim_matches('"'))))
        }
        ("matches", Value::String(value)) => {
            let set = argument.strip_prefix("\"^[").and_then(|rest| rest.strip_suffix("]\"")).expect("a set");
            Ok(Value::Bool(value.starts_with(|first| set.contains(first))))
        }
        ("major", Value::Version(value)) => Ok(Value::Int(release(value)[0])),
        ("compareTo" | "isLessThan" | "isGreaterThan", value) => {
            let order = match (value, literal(argument)) {
                (Value::Version(value), Value::Version(other)) => semver_order(value, &other),
                (Value::Quantity(value), Value::Quantity(other)) => value.cmp(&other),
                _ => return Err(overload()),
            };
            Ok(match method {
                "compareTo" => Value::Int(order as i64),
                "isLessThan" => Value::Bool(order.is_lt()),
                _ => Value::Bool(order.is_gt()),
            })
        }
        _ => Err(overload()),
    }
}

/// Splits `device.attributes["gpu.example.com"]` into `attributes` and `gpu.example.com`.
fn map_and_domain(text: &str) -> (&str, &str) {
    let (map, domain) = text.split_once("[\"").expect("a domain");
    (map.strip_prefix("device.").expect("a field of device"), domain.trim_end_matches("\"]"))
}

fn lookup(map: &str, domain: &str, key: &str, device: Candidate<'_>) -> Option<Value> {
    let json = device.body.json().get(map);
    let own = json.get(key);
    let value =
        if domain == device.driver && own.exists() { own } else { json.get(&format!("{domain}/{key}")) };
    if !value.exists() {
        return None;
    }
    if map == "capacity" {
        let amount = Quantity::parse(value.get("value").text()).expect("a quantity");
        return Some(Value::Quantity(amount.into_owned_without_text()));
    }
    let text = |kind: &str| {
        let text = value.get(kind);
        text.exists().then(|| text.text().to_owned())
    };
    (text("string").map(Value::String))
        .or_else(|| text("version").map(Value::Version))
        .or_else(|| value.get("int").int().map(Value::Int))
        .or_else(|| value.get("bool").bool().map(Value::Bool))
}

fn literal(text: &str) -> Value {
    let quoted = |text: &str| text.trim_matches('"').to_owned();
    let call = |name: &str| text.strip_prefix(name).and_then(|rest| rest.strip_suffix(')')).map(quoted);
    if let Some(version) = call("semver(") {
        return Value::Version(version);
    }
    if let Some(amount) = call("quantity(") {
        return Value::Quantity(Quantity::parse(&amount).expect("a quantity").into_owned_without_text());
    }
    match text {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        _ if text.starts_with('"') => Value::String(quoted(text)),
        _ => Value::Int(text.parse().expect("a number")),
    }
}

fn release(version: &str) -> [i64; 3] {
    let release = version.split(['-', '+']).next().unwrap_or_default();
    let mut numbers = release.split('.').map(|number| number.parse().expect("a number"));
    std::array::from_fn(|_| numbers.next().expect("three numbers"))
}

/// Compares two prerelease versions. Those in the recorded cases differ only in their text.
fn semver_order(one: &str, other: &str) -> Ordering {
    let pre = |version: &str| version.split_once('-').map(|(_, pre)| pre.to_owned());
    let by_pre = match (pre(one), pre(other)) {
        (None, None) => Ordering::Equal,
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (Some(one), Some(other)) => one.cmp(&other),
    };
    release(one).cmp(&release(other)).then(by_pre)
}
