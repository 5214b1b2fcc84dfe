//! The string functions of cel-go's extension library, version 2, and of the standard library. Positions count
//! characters.

use tollgate_formats::gofmt;

use super::{CallContext, MAX_CREATED_TEXT_BYTES, formatting};
use crate::evaluate::collections::List;
use crate::evaluate::value::{EvalFailure, Evaluated, Value, cost_limit_exceeded, eval_error};

pub(super) fn try_call(name: &str, args: &[Value], context: &CallContext<'_>) -> Option<Evaluated> {
    // The last argument of most functions is a number, or left out.
    let (args, number) = match args {
        [front @ .., Value::Int(number)] => (front, Some(*number)),
        all => (all, None),
    };
    Some(match (name, args, number) {
        ("contains", [Value::String(text), Value::String(part)], None) => {
            Ok(Value::Bool(text.contains(&**part)))
        }
        ("startsWith", [Value::String(text), Value::String(part)], None) => {
            Ok(Value::Bool(text.starts_with(&**part)))
        }
        ("endsWith", [Value::String(text), Value::String(part)], None) => {
            Ok(Value::Bool(text.ends_with(&**part)))
        }
        ("charAt", [Value::String(text)], Some(index)) => char_at(text, index),
        ("lowerAscii", [Value::String(text)], None) => Ok(Value::string(text.to_ascii_lowercase())),
        ("upperAscii", [Value::String(text)], None) => Ok(Value::string(text.to_ascii_uppercase())),
        ("trim", [Value::String(text)], None) => Ok(Value::string(text.trim())),
        ("replace", [Value::String(text), Value::String(old), Value::String(new)], count) => {
            replace(text, old, new, count)
        }
        ("split", [Value::String(text), Value::String(separator)], count) => {
            Ok(split(text, separator, count))
        }
        ("substring", [Value::String(text)], Some(start)) => substring(text, start, None),
        ("substring", [Value::String(text), Value::Int(start)], end) => substring(text, *start, end),
        ("join", [Value::List(list)], None) => join(list, ""),
        ("join", [Value::List(list), Value::String(separator)], None) => join(list, separator),
        ("indexOf", [Value::String(text), Value::String(part)], offset) => {
            index_of(text, part, offset, context)
        }
        ("lastIndexOf", [Value::String(text), Value::String(part)], offset) => {
            last_index_of(text, part, offset, context)
        }
        ("format", [Value::String(format), Value::List(list)], None) => {
            formatting::format_string(format, list).map(Value::string)
        }
        ("strings.quote", [Value::String(text)], None) => Ok(Value::string(quote(text))),
        _ => return None,
    })
}

fn out_of_range<T>(index: i64) -> Result<T, EvalFailure> {
    eval_error(format!("index out of range: {index}"))
}

/// The byte offset of a character, or the end of the text; `None` beyond it.
fn byte_offset_of_char(text: &str, index: i64) -> Option<usize> {
    let index = usize::try_from(index).ok()?;
    let mut starts = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    starts.nth(index)
}

fn char_at(text: &str, index: i64) -> Evaluated {
    let Some(at) = byte_offset_of_char(text, index) else { return out_of_range(index) };
    let rest = text.get(at..).unwrap_or_default();
    Ok(Value::string(rest.chars().next().map(String::from).unwrap_or_default()))
}

fn substring(text: &str, start: i64, end: Option<i64>) -> Evaluated {
    if let Some(end) = end
        && start > end
    {
        return eval_error(format!("invalid substring range. start: {start}, end: {end}"));
    }
    let Some(from) = byte_offset_of_char(text, start) else { return out_of_range(start) };
    let to = match end {
        Some(end) => byte_offset_of_char(text, end).map_or_else(|| out_of_range(end), Ok)?,
        None => text.len(),
    };
    Ok(Value::string(text.get(from..to).unwrap_or_default()))
}

/// The first position of `part` in `text`, in characters, from an offset on; -1 if it is not found.
fn index_of(text: &str, part: &str, offset: Option<i64>, context: &CallContext<'_>) -> Evaluated {
    let offset = match (part.is_empty(), offset) {
        (true, Some(offset)) => return index_of_empty_text(text, offset, context),
        (true, None) => return Ok(Value::Int(0)),
        (false, offset) => offset.unwrap_or(0),
    };
    if offset < 0 {
        return out_of_range(offset);
    }
    let found = byte_offset_of_char(text, offset).and_then(|from| {
        let at = text.get(from..)?.find(part)?;
        text.get(..from + at)
    });
    Ok(char_index_or_minus_one(found))
}

/// The last position of `part` in `text`, in characters, at or before an offset; -1 if it is not found.
fn last_index_of(text: &str, part: &str, offset: Option<i64>, context: &CallContext<'_>) -> Evaluated {
    let offset = match (part.is_empty(), offset) {
        (true, Some(offset)) => return index_of_empty_text(text, offset, context),
        (true, None) => return Ok(Value::Int(char_count(text))),
        (false, offset) => offset,
    };
    let last = char_count(text) - 1;
    // A text is as long in bytes as its longest characters make it.
    let offset = match offset {
        None if text.len() < part.len() => return Ok(Value::Int(-1)),
        None => last,
        Some(offset) => offset,
    };
    if offset < 0 {
        return out_of_range(offset);
    }
    if offset > last {
        return Ok(Value::Int(-1));
    }
    let end = byte_offset_of_char(text, offset).map_or(text.len(), |at| at + part.len());
    // Where that is inside of a character, nothing begins at the offset itself.
    let found = gofmt::byte_prefix(text, end).rfind(part).and_then(|at| text.get(..at));
    Ok(char_index_or_minus_one(found))
}

fn char_index_or_minus_one(before: Option<&str>) -> Value {
    Value::Int(before.map_or(-1, char_count))
}

fn char_count(text: &str) -> i64 {
    i64::try_from(text.chars().count()).unwrap_or(i64::MAX)
}

/// The result of searching for an empty text, which is found at every position.
fn index_of_empty_text(text: &str, offset: i64, context: &CallContext<'_>) -> Evaluated {
    if !context.behaviour.empty_part_checks_range {
        return Ok(Value::Int(offset));
    }
    if offset < 0 { out_of_range(offset) } else { Ok(Value::Int(offset.min(char_count(text)))) }
}

/// Replaces the first `count` places; all of them if it is negative or left out.
fn replace(text: &str, old: &str, new: &str, count: Option<i64>) -> Evaluated {
    let count = count.and_then(|count| usize::try_from(count).ok()).unwrap_or(usize::MAX);
    let places = if old.is_empty() { text.chars().count() + 1 } else { text.len() / old.len() };
    if text.len().saturating_add(places.min(count).saturating_mul(new.len())) > MAX_CREATED_TEXT_BYTES {
        return Err(cost_limit_exceeded());
    }
    Ok(Value::string(text.replacen(old, new, count)))
}

/// Splits a text into at most `count` parts; into all of them if it is negative or left out.
fn split(text: &str, separator: &str, count: Option<i64>) -> Value {
    let count = count.and_then(|count| usize::try_from(count).ok()).unwrap_or(usize::MAX);
    if count == 0 || !separator.is_empty() {
        return Value::strings(text.splitn(count, separator));
    }
    // Into characters; the last part is the rest.
    let mut rest = text;
    let mut parts = Vec::new();
    while let Some(first) = rest.chars().next() {
        if parts.len() + 1 == count {
            parts.push(rest);
            break;
        }
        let (head, tail) = rest.split_at_checked(first.len_utf8()).unwrap_or((rest, ""));
        parts.push(head);
        rest = tail;
    }
    Value::strings(parts)
}

fn join(list: &List, separator: &str) -> Evaluated {
    let mut joined = String::new();
    for (index, item) in list.items()?.iter().enumerate() {
        if index > 0 {
            joined.push_str(separator);
        }
        let Value::String(text) = item else {
            return eval_error(format!("join: invalid input: {}", super::go_value_text(item)));
        };
        if joined.len() + text.len() > MAX_CREATED_TEXT_BYTES {
            return Err(cost_limit_exceeded());
        }
        joined.push_str(text);
    }
    Ok(Value::string(joined))
}

fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match gofmt::short_escape(c) {
            Some(escape) => quoted.push_str(escape),
            None => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
