//! Prints a document as YAML or indented JSON, where its source text cannot be kept.
//!
//! Invariant: parsing the output gives the same document, and a string that another parser might read as a different
//! type is quoted. Very deeply nested values are printed as compact JSON, which is valid YAML.

use tollgate_document::doc::{Value, ValueKind};
use tollgate_formats::gofmt;

/// Values that are indented by more columns are printed as compact JSON, because printing is recursive and
/// documents can be nested deeply.
const MAX_NESTED_INDENT: usize = 200;

/// Returns a value as block YAML, with a line break at its end.
pub(in crate::cli) fn to_block_yaml(value: Value<'_>) -> String {
    let mut out = String::new();
    write_yaml(&mut out, value, 0, true);
    out
}

/// Appends a value as block YAML. `fresh` is true if the first line is already indented.
fn write_yaml(out: &mut String, value: Value<'_>, indent: usize, fresh: bool) {
    let mut at_start = fresh;
    let mut begin = |out: &mut String| {
        if !std::mem::take(&mut at_start) {
            out.push_str(&" ".repeat(indent));
        }
    };
    match value.kind() {
        ValueKind::Object | ValueKind::Array if indent > MAX_NESTED_INDENT => {
            begin(out);
            out.push_str(&value.to_json());
            out.push('\n');
        }
        ValueKind::Object if !value.is_empty() => {
            for (key, member) in value.members() {
                begin(out);
                out.push_str(&yaml_string(key.text()));
                out.push(':');
                let nested =
                    !member.is_empty() && matches!(member.kind(), ValueKind::Object | ValueKind::Array);
                if nested {
                    out.push('\n');
                    let deeper = if member.kind() == ValueKind::Array { indent } else { indent + 2 };
                    write_yaml(out, member, deeper, false);
                } else {
                    out.push(' ');
                    write_yaml(out, member, indent + 2, true);
                }
            }
        }
        ValueKind::Array if !value.is_empty() => {
            for item in value.items() {
                begin(out);
                out.push_str("- ");
                write_yaml(out, item, indent + 2, true);
            }
        }
        ValueKind::Object => out.push_str("{}\n"),
        ValueKind::Array => out.push_str("[]\n"),
        ValueKind::String if is_written_as_block_scalar(value.text()) => {
            out.push_str("|-\n");
            for line in value.text().split('\n') {
                // An empty line has no indentation.
                out.push_str(&" ".repeat(if line.is_empty() { 0 } else { indent }));
                out.push_str(line);
                out.push('\n');
            }
        }
        ValueKind::String => {
            out.push_str(&yaml_string(value.text()));
            out.push('\n');
        }
        ValueKind::Null => out.push_str("null\n"),
        ValueKind::Bool | ValueKind::Number => {
            out.push_str(value.text());
            out.push('\n');
        }
    }
}

/// True if the text has several lines, or characters that quotes would hide behind escapes, and can be written as it
/// is.
fn is_written_as_block_scalar(text: &str) -> bool {
    text.contains(['\n', '&', '<', '>'])
        && !text.starts_with([' ', '\n'])
        && !text.ends_with([' ', '\n'])
        && text.chars().all(|c| c == '\n' || matches!(c, ' '..='~'))
}

/// Returns a text as a YAML scalar: plain, or in quotes if it would be read as another type.
pub(super) fn yaml_string(text: &str) -> String {
    let plain = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/'))
        && !text.starts_with("0x");
    let words = ["y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"];
    if plain && !words.iter().any(|word| text.eq_ignore_ascii_case(word)) {
        return text.to_owned();
    }
    gofmt::json_string(text)
}

/// Returns a value as indented JSON, without a line break at its end.
pub(super) fn to_indented_json(value: Value<'_>) -> String {
    let mut out = String::new();
    write_json(&mut out, value, 0);
    out
}

fn write_json(out: &mut String, value: Value<'_>, indent: usize) {
    let line = |out: &mut String, indent: usize| {
        out.push('\n');
        out.push_str(&" ".repeat(indent));
    };
    let is_compact = value.is_empty() || indent > MAX_NESTED_INDENT;
    let (open, close) = match value.kind() {
        ValueKind::Object if !is_compact => ('{', '}'),
        ValueKind::Array if !is_compact => ('[', ']'),
        _ => return out.push_str(&value.to_json()),
    };
    out.push(open);
    // One of the two is empty.
    let members = value.members().map(|(key, member)| (Some(key), member));
    let items = value.items().map(|item| (None, item));
    for (index, (key, inner)) in members.chain(items).enumerate() {
        out.push_str(if index > 0 { "," } else { "" });
        line(out, indent + 2);
        if let Some(key) = key {
            gofmt::push_json_string(out, key.text());
            out.push_str(": ");
        }
        write_json(out, inner, indent + 2);
    }
    line(out, indent);
    out.push(close);
}

#[cfg(test)]
mod tests {
    use super::{to_block_yaml, to_indented_json, yaml_string};
    use tollgate_document::doc;

    #[test]
    fn strings_that_could_be_something_else_are_quoted() {
        for plain in ["NoExecute", "example.com/a-b_c", "v1"] {
            assert_eq!(yaml_string(plain), plain);
        }
        for quoted in ["", "yes", "On", "null", "1.5", "-", "a: b", "a b", "#a", "NaN"] {
            assert_eq!(yaml_string(quoted), format!("\"{quoted}\""));
        }
    }

    #[test]
    fn what_is_printed_is_the_same_document() {
        let text = r#"{"a":{"b":[1,{"c":"yes","d":[]}],"e":{}},"f":null,"g":[["x"],true]}"#;
        let parsed = doc::parse(text).expect("JSON");
        let printed = to_block_yaml(parsed.root());
        assert_eq!(
            printed,
            "a:\n  b:\n  - 1\n  - c: \"yes\"\n    d: []\n  e: {}\nf: null\ng:\n- - x\n- true\n"
        );
        let Some(Ok(document)) = tollgate_document::source::documents(&printed).next() else {
            panic!("{printed}")
        };
        assert_eq!(document.doc.root().to_json(), text);
        let indented = to_indented_json(parsed.root());
        assert_eq!(doc::parse(&indented).expect("JSON").root().to_json(), text);
        let lines = doc::parse(r#"{"a":["b\n\n  c"]}"#).expect("JSON");
        assert_eq!(to_block_yaml(lines.root()), "a:\n- |-\n  b\n\n    c\n");
        let deep = format!("{}1{}", "[".repeat(150), "]".repeat(150));
        let deep = doc::parse(&deep).expect("JSON");
        assert!(to_block_yaml(deep.root()).contains("- [[["), "deep nesting is printed as JSON");
    }
}
