//! Guesses the kind of a text that is not a manifest: a template, a JSON patch, or something else.
//!
//! Used for files found in folders, where the guess decides between an error and skipping. Pure, and linear in the
//! text.
//!
//! Invariant: a text with apiVersion and kind at its top level is always classified as a manifest or a template.

use crate::doc::{Value, ValueKind};

/// The document around the byte `at` of a text with several: the offset of its first byte, and its text, from the `---`
/// line before to the one after.
pub fn document_around(text: &str, at: usize) -> (usize, &str) {
    let at = text.floor_char_boundary(at);
    let (before, after) = text.split_at(at);
    let start = before.rfind("\n---").map_or(0, |start| start + 1);
    let end = after.find("\n---").map_or(text.len(), |end| at + end);
    (start, text.get(start..end).unwrap_or_default())
}

/// True if the text contains actions of a template language: Go's (Helm) or Jinja's.
pub fn has_template_actions(text: &str) -> bool {
    text.contains("{{") || text.contains("{%")
}

/// True if the text contains shortcodes of Hugo, which builds sites from Markdown: `{{< … >}}`, `{{% … %}}`.
pub fn has_shortcode(text: &str) -> bool {
    text.contains("{{<") || text.contains("{{%")
}

/// True if the source text of a value is a scalar that contains a placeholder: of documentation, such as
/// `<your-driver>` or `...`, or one of [`has_substitution_placeholder`].
pub fn is_scalar_with_documentation_placeholder(source: &str) -> bool {
    let is_scalar = !source.starts_with(['{', '[']) && !source.contains('\n');
    let is_named = source.find('<').is_some_and(|at| source.get(at..).is_some_and(|rest| rest.contains('>')));
    is_scalar
        && (is_named
            || source.contains("...")
            || source.contains('…')
            || has_substitution_placeholder(source))
}

/// True if the source text of a value is a scalar that contains a template action or a variable, such as `"{{
/// .Values.name }}"` or `${NAME}`. `${1}` is no variable but part of a regular expression.
pub fn is_scalar_with_template_or_variable(source: &str) -> bool {
    let is_scalar = !source.starts_with(['{', '[']) && !source.contains('\n');
    let mut after_openings = source.split("${").skip(1);
    is_scalar
        && (source.contains("{{")
            || after_openings.any(|rest| !rest.starts_with(|first: char| first.is_ascii_digit())))
}

/// True if the text contains a placeholder of a tool that replaces text: `${NAME}`, `{NAME}`, `__NAME__`, `@NAME@`,
/// `%NAME%`, `<% … %>`.
pub fn has_substitution_placeholder(text: &str) -> bool {
    text.match_indices(['$', '{', '_', '@', '%', '<']).any(|(at, mark)| {
        let rest = text.get(at + mark.len()..).unwrap_or_default();
        match mark {
            "$" => rest.strip_prefix('{').is_some_and(|rest| starts_with_name_then(rest, &["}", ":", "-"])),
            // In braces, any word could be a flow mapping; placeholders are in capitals.
            "{" => {
                rest.starts_with(|first: char| first.is_ascii_uppercase())
                    && starts_with_capitals_then(rest, '}')
            }
            "_" => rest.strip_prefix('_').is_some_and(|rest| starts_with_name_then(rest, &["__"])),
            "@" => starts_with_name_then(rest, &["@"]),
            "%" => starts_with_name_then(rest, &["%"]),
            _ => rest.starts_with('%'),
        }
    })
}

/// True if the text begins with a name (letters, digits, `_`, `-`, `.`) and one of `ends` after it.
fn starts_with_name_then(text: &str, ends: &[&str]) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let length = text.bytes().take_while(|byte| is_part(*byte)).count();
    let (name, after) = text.split_at(length);
    // The end may consist of characters that a name can have.
    let ends_with = |end: &&str| {
        after.starts_with(*end) && !name.is_empty()
            || name.find(*end).is_some_and(|at| at > 0 && !name.starts_with('_'))
    };
    ends.iter().any(ends_with)
}

/// True if the text begins with any number of capital letters, digits and underscores, and `end` after them.
fn starts_with_capitals_then(text: &str, end: char) -> bool {
    let is_part = |letter: char| letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_';
    text.trim_start_matches(is_part).starts_with(end)
}

/// False if none of the words (in lower case) occurs in the YAML text, ignoring case. True if one does, or if
/// escapes or tags may hide one.
pub fn may_contain_words(text: &str, words: &[&str]) -> bool {
    const ESCAPES_AND_TAGS: [&str; 6] = ["\\x", "\\u", "\\\n", "\\\r", "!!", "!<"];
    let lower = text.to_ascii_lowercase();
    ESCAPES_AND_TAGS.iter().chain(words).any(|word| lower.contains(word))
}

/// True if the text has apiVersion and kind at its top level, as far as can be seen without parsing it.
pub fn looks_like_manifest(text: &str) -> bool {
    if text.trim_start().starts_with('{') {
        json_has_api_version_and_kind(text)
    } else {
        yaml_has_api_version_and_kind(text)
    }
}

/// The indentation and the content of the first line of a YAML text that is not blank, a comment or a separator; `None`
/// if there is none.
pub(super) fn first_content_line(text: &str) -> Option<(usize, &str)> {
    let mut contents = text.lines().map(|line| {
        let content = line.trim_start_matches(' ');
        (line.len() - content.len(), content)
    });
    contents.find(|(_, content)| {
        !content.trim().is_empty() && !content.starts_with('#') && !content.starts_with("---")
    })
}

/// True if a text that cannot be parsed starts with a template action, after comments. kubectl rejects it, because
/// neither JSON nor YAML has an object that starts so.
pub fn starts_with_template_action(text: &str) -> bool {
    first_content_line(text).is_some_and(|(_, content)| is_template_action(content))
}

fn is_template_action(text: &str) -> bool {
    text.starts_with("{{") || text.starts_with("{%")
}

/// True if parsing stopped at the byte `at` because of a template action as a value in a block mapping, which kubectl
/// rejects as well.
pub fn stopped_at_template_action(text: &str, at: usize) -> bool {
    let Some((margin, content)) = first_content_line(text) else { return false };
    let Some((before, after)) = text.split_at_checked(at) else { return false };
    let line_start = before.rfind(['\n', '\r']).map_or(0, |line_break| line_break + 1);
    let line = text.get(line_start..).and_then(|rest| rest.lines().next()).unwrap_or_default();
    let indent = line.len() - line.trim_start_matches(' ').len();
    let is_inside = before.ends_with('{') && after.starts_with(['{', '%']);
    indent >= margin
        && !content.starts_with(['{', '[', '"', '\''])
        && (is_inside || is_template_action(after) || is_template_action(value_of_line(line)))
}

/// The part of a block line after list dashes and a plain key; the rest of the line if there is no key.
fn value_of_line(line: &str) -> &str {
    let mut rest = line.trim_start_matches(' ');
    while let Some(item) = rest.strip_prefix("- ") {
        rest = item.trim_start_matches(' ');
    }
    let is_key = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'/' | b'-');
    let key = rest.bytes().take_while(|byte| is_key(*byte)).count();
    let value = rest.get(key..).filter(|_| key > 0).and_then(|rest| rest.strip_prefix(": "));
    value.unwrap_or(rest).trim_start_matches(' ')
}

/// True if apiVersion and kind are keys of the top-level YAML mapping, at the indentation of its
/// first key. An extra blank may be the error in the file.
fn yaml_has_api_version_and_kind(text: &str) -> bool {
    let margin = first_content_line(text).map_or(0, |(margin, _)| margin);
    let has_key = |key: &str| {
        text.lines().any(|line| {
            let indent = line.bytes().take(margin).take_while(|byte| *byte == b' ').count();
            let line = line.get(indent..).unwrap_or_default();
            let line = line.strip_prefix([' ', '\t']).unwrap_or(line);
            let line = line.strip_prefix(['"', '\'']).unwrap_or(line);
            let rest = line.strip_prefix(key).unwrap_or_default();
            rest.strip_prefix(['"', '\'']).unwrap_or(rest).trim_start().starts_with(':')
        })
    };
    has_key("apiVersion") && has_key("kind")
}

/// True if apiVersion and kind are keys of the top-level object of a JSON text.
fn json_has_api_version_and_kind(text: &str) -> bool {
    let (mut depth, mut found) = (0_usize, (false, false));
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}', '[', ']', '"']) {
        let (mark, after) = rest.split_at(at).1.split_at(1);
        rest = after;
        match mark {
            "{" | "[" => depth += 1,
            "}" | "]" => depth = depth.saturating_sub(1),
            _ => {
                let end = closing_quote_offset(rest);
                let (string, after) = rest.split_at(end);
                rest = after.get(1..).unwrap_or_default();
                if depth == 1 && rest.trim_start().starts_with(':') {
                    // An escape can stand for any letter.
                    found.0 |= string == "apiVersion" || string.contains('\\');
                    found.1 |= string == "kind" || string.contains('\\');
                }
            }
        }
    }
    found == (true, true)
}

/// The number of bytes before the closing quote of a JSON string whose opening quote was read; all of them if there is
/// none.
fn closing_quote_offset(text: &str) -> usize {
    let mut escaped = false;
    let is_end = |byte: u8| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    };
    text.bytes().position(is_end).unwrap_or(text.len())
}

/// True if the document is a JSON patch: a list, not empty, whose items all have `op` and `path`.
pub fn is_json_patch(root: Value<'_>) -> bool {
    let is_operation = |item: Value<'_>| !item.get("op").str().is_empty() && item.get("path").exists();
    root.kind() == ValueKind::Array && !root.is_empty() && root.items().all(is_operation)
}

#[cfg(test)]
mod tests {
    use super::{
        document_around, has_substitution_placeholder, has_template_actions, is_json_patch,
        is_scalar_with_documentation_placeholder, is_scalar_with_template_or_variable, looks_like_manifest,
        may_contain_words, starts_with_template_action, stopped_at_template_action,
    };
    use crate::doc;

    #[test]
    fn manifests_are_recognised_without_parsing() {
        for text in [
            "apiVersion: v1\nkind: Pod\nspec: [\n",
            "# a comment\n\"kind\": Pod\n'apiVersion' : v1\n\tspec: x\n",
            " apiVersion: v1\nkind: Pod\n",
            "---\n# indented\n    apiVersion: v1\n    kind: Pod\n",
            "{\"ki\\u006ed\": \"Pod\", \"apiVersion\": [",
            "{\"kind\": \"Pod\", \"spec\": {\"a\": \"}\\\"\"}, \"apiVersion\": \"v1\",}",
            "{\"metadata\":{}, \"apiVersion\" : \"v1\", \"kind\":\"X\"",
        ] {
            assert!(looks_like_manifest(text), "{text}");
        }
        for text in [
            "name: x\nversion: [\n",
            "apiVersion: v2\nname: chart\n",
            "items:\n  - apiVersion: v1\n    kind: Pod\n",
            "text: |\n  apiVersion: v1\n  kind: Pod\n",
            "{\"definitions\": {\"apiVersion\": {}, \"kind\": {}}, // a comment\n}",
            "{\"a\": \"apiVersion\", \"b\": \"kind\"}",
            "{\"kind\": \"unfinished",
            "kindness: 1\napiVersions: 2\n",
        ] {
            assert!(!looks_like_manifest(text), "{text}");
        }
    }

    #[test]
    fn parts_end_at_separators() {
        let text = "---\na: 1\n---\nb: é{{ }}\n--- # x\nc: 3\n";
        for (marked, part) in [("a:", "---\na: 1"), ("b:", "---\nb: é{{ }}"), ("c:", "--- # x\nc: 3\n")] {
            assert_eq!(document_around(text, text.find(marked).expect("there")).1, part);
        }
        assert_eq!(document_around(text, text.find('é').expect("there") + 1), (9, "---\nb: é{{ }}"));
        assert_eq!((document_around("", 7).1, has_template_actions(document_around(text, 0).1)), ("", false));
    }

    #[test]
    fn placeholders_are_told_from_other_text() {
        for text in [
            "clusterIP: {SERVICE_IP_PREFIX}.16",
            "__EXTRA_VOL_MNTS__\n",
            "a: @NAME@",
            "a: %NAME%",
            "a: ${NAME}",
            "a: ${NAME:-x}",
            "<% if x %>",
            "__A_B__",
        ] {
            assert!(has_substitution_placeholder(text), "{text}");
        }
        for text in [
            "{a: b}",
            "{name}",
            "a@b.c",
            "50% of 100%",
            "__init",
            "$(NAME)",
            "$NAME",
            "____",
            "a: {}",
            "@@",
            "%%",
            "a < b",
        ] {
            assert!(!has_substitution_placeholder(text), "{text}");
        }
    }

    #[test]
    fn what_follows_a_complete_text_is_no_reason_to_refuse_it() {
        for (text, expected) in [
            ("a: {^{ x }}", true),
            ("# c\n---\n{{- if x }}\na: 1\n^b", true),
            ("a:\n  b: 1\n^{{- end }}", true),
            ("a: {^% x %}", true),
            ("a:\n- b\n{{^- range x }}\n- c", true),
            ("a:\n- b: {{ x [^} }}", true),
            (" a: 1\n{{^- x }}", false),
            ("a: x #{{ y ^} }}", false),
            ("{a: 1}\n^{{ x }}", false),
            (" a: 1\n{^{ x }}", false),
            ("a: |-^#{{ x }}", false),
        ] {
            let at = text.find('^').expect("a place");
            let text = text.replace('^', "");
            let is_template = starts_with_template_action(&text) || stopped_at_template_action(&text, at);
            assert_eq!(is_template, expected, "{text}");
        }
    }

    #[test]
    fn words_are_found_in_any_case_and_disguise() {
        for text in ["apiVersion: Resource.K8s.IO/v1", "kind: \"Resource\\x43laim\"", "!!binary a2luZA=="] {
            assert!(may_contain_words(text, &["resource.k8s.io"]), "{text}");
        }
        assert!(!may_contain_words("kind: Service # 100% \\n", &["resource.k8s.io"]));
    }

    #[test]
    fn documentation_leaves_values_open() {
        for source in ["<your-driver>", "\"<name>.example.com\"", "...", "gpu-…", "${NAME}", "__NAME__"] {
            assert!(is_scalar_with_documentation_placeholder(source), "{source}");
        }
        for source in ["a < b", "gpu.example.com", "{a: <b>}", "device.capacity[\"x\"].y > 1"] {
            assert!(!is_scalar_with_documentation_placeholder(source), "{source}");
        }
    }

    #[test]
    fn placeholders_are_scalars() {
        for source in ["\"{{ .Values.name }}\"", "${NAME}", "gpu-${ENV:=dev}", "'{{name}}'"] {
            assert!(is_scalar_with_template_or_variable(source), "{source}");
        }
        for source in
            ["{key: \"${A}\"}", "[\"{{ a }}\"]", "a: ${A}\nb: 1", "$(POD_NAME)", "^h100${1}", "{}", ""]
        {
            assert!(!is_scalar_with_template_or_variable(source), "{source}");
        }
    }

    #[test]
    fn a_patch_is_a_list_of_operations() {
        for (text, expected) in [
            (r#"[{"op":"add","path":"/a","value":1},{"op":"remove","path":""}]"#, true),
            (r#"[{"op":"add","path":"/a"},{"path":"/b"}]"#, false),
            (r#"[]"#, false),
            (r#"{"op":"add","path":"/a"}"#, false),
        ] {
            assert_eq!(is_json_patch(doc::parse(text).expect("JSON").root()), expected, "{text}");
        }
    }
}
