//! The string functions of cel-go's extension library, version 2, and of the standard library. Positions count
//! characters.

use super::{CallContext, MAX_CREATED_TEXT_BYTES, formatting};
use crate::evaluate::value::{
    EvalFailure, Evaluated, Value, cost_limit_exceeded, eval_error, no_such_overload,
};

pub(super) fn try_call(name: &str, args: &[Value], context: &CallContext<'_>) -> Option<Evaluated> {
    Some(match (name, args) {
        ("contains", [Value::String(text), Value::String(part)]) => Ok(Value::Bool(text.contains(&**part))),
        ("startsWith", [Value::String(text), Value::String(part)]) => {
            Ok(Value::Bool(text.starts_with(&**part)))
        }
        ("endsWith", [Value::String(text), Value::String(part)]) => Ok(Value::Bool(text.ends_with(&**part))),
        ("charAt", [Value::String(text), Value::Int(index)]) => char_at(text, *index),
        ("lowerAscii", [Value::String(text)]) => Ok(Value::string(text.to_ascii_lowercase())),
        ("upperAscii", [Value::String(text)]) => Ok(Value::string(text.to_ascii_uppercase())),
        ("trim", [Value::String(text)]) => Ok(Value::string(text.trim())),
        ("replace", _) => replace(args),
        ("split", _) => split(args),
        ("substring", _) => substring(args),
        ("join", _) => join(args),
        ("indexOf", [Value::String(text), Value::String(part)]) => index_of(text, part, None, context),
        ("indexOf", [Value::String(text), Value::String(part), Value::Int(offset)]) => {
            index_of(text, part, Some(*offset), context)
        }
        ("lastIndexOf", [Value::String(text), Value::String(part)]) => {
            last_index_of(text, part, None, context)
        }
        ("lastIndexOf", [Value::String(text), Value::String(part), Value::Int(offset)]) => {
            last_index_of(text, part, Some(*offset), context)
        }
        ("format", [Value::String(format), Value::List(list)]) => {
            formatting::format_string(format, list).map(Value::string)
        }
        ("strings.quote", [Value::String(text)]) => Ok(Value::string(quote(text))),
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

fn substring(args: &[Value]) -> Evaluated {
    let (text, start, end) = match args {
        [Value::String(text), Value::Int(start)] => (text, start, None),
        [Value::String(text), Value::Int(start), Value::Int(end)] => (text, start, Some(end)),
        _ => return no_such_overload(),
    };
    if let Some(end) = end
        && start > end
    {
        return eval_error(format!("invalid substring range. start: {start}, end: {end}"));
    }
    let Some(from) = byte_offset_of_char(text, *start) else { return out_of_range(*start) };
    let to = match end {
        Some(end) => match byte_offset_of_char(text, *end) {
            Some(to) => to,
            None => return out_of_range(*end),
        },
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
    Ok(char_index_value(found))
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
    let end = byte_offset_of_char(text, offset).map_or(text.len(), |at| text.len().min(at + part.len()));
    // Where that is inside of a character, nothing begins at the offset itself.
    let end = (0..=end).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    let found = text.get(..end).and_then(|head| text.get(..head.rfind(part)?));
    Ok(char_index_value(found))
}

fn char_index_value(before: Option<&str>) -> Value {
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

fn replace(args: &[Value]) -> Evaluated {
    let (text, old, new, count) = match args {
        [Value::String(text), Value::String(old), Value::String(new)] => (text, old, new, -1),
        [Value::String(text), Value::String(old), Value::String(new), Value::Int(count)] => {
            (text, old, new, *count)
        }
        _ => return no_such_overload(),
    };
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let places = if old.is_empty() { text.chars().count() + 1 } else { text.len() / old.len() };
    if text.len().saturating_add(places.min(count).saturating_mul(new.len())) > MAX_CREATED_TEXT_BYTES {
        return Err(cost_limit_exceeded());
    }
    Ok(Value::string(text.replacen(&**old, new, count)))
}

fn split(args: &[Value]) -> Evaluated {
    let (text, separator, count) = match args {
        [Value::String(text), Value::String(separator)] => (text, separator, -1),
        [Value::String(text), Value::String(separator), Value::Int(count)] => (text, separator, *count),
        _ => return no_such_overload(),
    };
    let count = match usize::try_from(count) {
        Ok(0) => return Ok(Value::list(Vec::new())),
        Ok(count) => count,
        Err(_) => usize::MAX,
    };
    if !separator.is_empty() {
        return Ok(Value::strings(text.splitn(count, &**separator)));
    }
    // Into characters; the last part is the rest.
    let mut rest = &**text;
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
    Ok(Value::strings(parts))
}

fn join(args: &[Value]) -> Evaluated {
    let (list, separator) = match args {
        [Value::List(list)] => (list, ""),
        [Value::List(list), Value::String(separator)] => (list, &**separator),
        _ => return no_such_overload(),
    };
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
        match c {
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            '\\' => quoted.push_str("\\\\"),
            '"' => quoted.push_str("\\\""),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}
