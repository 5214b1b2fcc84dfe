//! The manifests in Markdown: fenced code blocks whose language is YAML or JSON.
//!
//! A block is not copied: the fence's indentation stays, since YAML may be indented as a whole. So positions in a
//! block are positions in the file.
//!
//! Invariant: linear in the text; the ranges are in order, do not overlap, and contain whole lines.

use std::ops::Range;

/// Languages of the code blocks that are read.
const MANIFEST_LANGUAGES: [&str; 3] = ["yaml", "yml", "json"];

/// An open code fence of a Markdown text.
struct Fence {
    mark: char,
    length: usize,
    /// Width of its indentation in columns, including the marker of a list item.
    indent: usize,
    is_read: bool,
}

/// The byte ranges of the YAML and JSON code blocks of a Markdown text. An indented block is split at its `---` lines.
pub fn manifest_block_ranges(text: &str) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut open: Option<Fence> = None;
    let (mut start, mut at) = (0, 0);
    // No reader sees what is in a comment.
    let mut is_comment = false;
    for line in text.split_inclusive('\n') {
        let end = at + line.len();
        match &open {
            None => {
                is_comment |= opens_comment(line);
                open = if is_comment { None } else { opened_fence(line) };
                is_comment &= !line.contains("-->");
                start = end;
            }
            Some(fence) => {
                let is_end = is_closing(line, fence);
                if fence.is_read && (is_end || is_indented_separator(line, fence)) {
                    parts.push(start..at);
                    start = end;
                }
                if is_end {
                    open = None;
                }
            }
        }
        at = end;
    }
    // A block without an end goes on to the end of the text.
    if open.is_some_and(|fence| fence.is_read) {
        parts.push(start..at);
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// The fence that a line opens; `None` if it opens none.
fn opened_fence(line: &str) -> Option<Fence> {
    let mut rest = line.trim_start_matches([' ', '\t']);
    while let Some(item) = after_list_marker(rest) {
        rest = item;
    }
    let indent = line.len() - rest.len();
    let mark = rest.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let info = rest.trim_start_matches(mark);
    let length = rest.len() - info.len();
    if length < 3 || mark == '`' && info.contains('`') {
        return None;
    }
    let word = |letter: char| !letter.is_ascii_alphanumeric();
    let language = info.trim_start().split(word).next().unwrap_or_default().to_ascii_lowercase();
    Some(Fence { mark, length, indent, is_read: MANIFEST_LANGUAGES.contains(&language.as_str()) })
}

/// True if an HTML comment begins in the line. One that is indented by four spaces is code.
fn opens_comment(line: &str) -> bool {
    let mut rest = line.trim_start_matches(' ');
    let is_code = line.len() - rest.len() >= 4;
    while let Some(item) = after_list_marker(rest) {
        rest = item;
    }
    !is_code && rest.starts_with("<!--")
}

/// The text after the marker of a list item, `- ` or `1. `; `None` if there is no marker.
fn after_list_marker(text: &str) -> Option<&str> {
    let digits = text.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let rest = if digits.len() < text.len() {
        digits.strip_prefix(['.', ')'])?
    } else {
        text.strip_prefix(['-', '*', '+'])?
    };
    let item = rest.trim_start_matches(' ');
    (item.len() < rest.len()).then_some(item)
}

/// True if the line ends the code block of that fence.
fn is_closing(line: &str, fence: &Fence) -> bool {
    let line = line.trim();
    line.len() >= fence.length && line.chars().all(|letter| letter == fence.mark)
}

/// True if the line is a `---` that is indented at most as far as the code block. A `---` without indentation does not
/// count, because the YAML reader splits there.
fn is_indented_separator(line: &str, fence: &Fence) -> bool {
    let rest = line.trim_start_matches(' ');
    let indent = line.len() - rest.len();
    indent > 0 && indent <= fence.indent && rest.starts_with("---")
}

#[cfg(test)]
mod tests {
    use super::manifest_block_ranges;

    #[test]
    fn blocks_of_yaml_and_json_are_found() {
        let text = "# Title\n\
            ```yaml\na: 1\n---\nb: 2\n```\n\
            ```sh\n~~~yaml\nno: 1\n```\n\
            ~~~~ YML {linenos=true}\nc: 3\n~~~\n```\n~~~~\n\
            ``` yaml `no`\n\
            1. An item:\n\n   ```json {hl_lines=[1]}\n   {\"d\": 4}\n   ```\n\
            * ```yaml\n  e: 5\n  ---\n  f: 6\n  ```\n\
            ```yaml\n```\n\
            ```yamllint\nno: 2\n```\n\
            - <!-- old:\n```yaml\nno: 3\n```\n-->\n<!-- here: -->\n    <!-- code\n```yaml\nh: 8\n```\n\
            ```yaml\ng: 7\n";
        let found: Vec<&str> = manifest_block_ranges(text).into_iter().map(|part| &text[part]).collect();
        let expected = [
            "a: 1\n---\nb: 2\n",
            "c: 3\n~~~\n```\n",
            "   {\"d\": 4}\n",
            "  e: 5\n",
            "  f: 6\n",
            "h: 8\n",
            "g: 7\n",
        ];
        assert_eq!(found, expected);
        assert!(manifest_block_ranges("").is_empty());
    }
}
