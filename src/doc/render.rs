//! Values as compact JSON text.
//!
//! For a JSON document the text is the source's own bytes: sizes are measured on what was received. For YAML it is
//! the JSON that kubectl would send: keys sorted, Go's escapes. No recursion, so nesting cannot exhaust the stack.

use std::borrow::Cow;

use super::{Kind, Syntax, Value};

impl<'d> Value<'d> {
    /// The JSON text of this value: as received, or as kubectl would send it.
    pub fn raw_json(self) -> Cow<'d, str> {
        if self.doc.syntax == Syntax::Json {
            let span = self.span();
            let whole = self.doc.source.get(span.start as usize..span.end as usize);
            if let Some(text) = whole
                && !text.is_empty()
            {
                return Cow::Borrowed(text);
            }
        }
        Cow::Owned(self.to_json())
    }

    /// Compact JSON with sorted keys and Go's string escapes (`<`, `>`, `&` too), the last of duplicate keys kept.
    pub fn to_json(self) -> String {
        let mut out = String::new();
        let mut todo = vec![Step::Value(self)];
        while let Some(step) = todo.pop() {
            match step {
                Step::Text(text) => out.push_str(text),
                Step::Key(key) => {
                    crate::gofmt::json_string(&mut out, key);
                    out.push(':');
                }
                Step::Value(value) => match value.kind() {
                    Kind::String => crate::gofmt::json_string(&mut out, value.text()),
                    Kind::Null => out.push_str("null"),
                    Kind::Bool | Kind::Number => out.push_str(value.text()),
                    Kind::Array => {
                        out.push('[');
                        let from = todo.len();
                        for item in value.items() {
                            if todo.len() > from {
                                todo.push(Step::Text(","));
                            }
                            todo.push(Step::Value(item));
                        }
                        todo.push(Step::Text("]"));
                        reverse_from(&mut todo, from);
                    }
                    Kind::Object => {
                        out.push('{');
                        let from = todo.len();
                        for (key, member) in sorted_members(value) {
                            if todo.len() > from {
                                todo.push(Step::Text(","));
                            }
                            todo.push(Step::Key(key));
                            todo.push(Step::Value(member));
                        }
                        todo.push(Step::Text("}"));
                        reverse_from(&mut todo, from);
                    }
                },
            }
        }
        out
    }
}

enum Step<'d> {
    Text(&'static str),
    Key(&'d str),
    Value(Value<'d>),
}

fn reverse_from(todo: &mut [Step<'_>], from: usize) {
    if let Some(added) = todo.get_mut(from..) {
        added.reverse();
    }
}

fn sorted_members<'d>(value: Value<'d>) -> Vec<(&'d str, Value<'d>)> {
    let mut members: Vec<(&'d str, Value<'d>)> =
        value.members().map(|(key, member)| (key.text(), member)).collect();
    members.sort_by_key(|(key, _)| *key);
    // The sort is stable: of equal keys the last one written comes last and is kept.
    let mut kept: Vec<(&'d str, Value<'d>)> = Vec::with_capacity(members.len());
    for member in members {
        match kept.last_mut() {
            Some(last) if last.0 == member.0 => *last = member,
            _ => kept.push(member),
        }
    }
    kept
}
