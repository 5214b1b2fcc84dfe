//! Finds the comments of a YAML text with the YAML parser, so that a `#` in a string or a block scalar is not taken for
//! a comment.
//!
//! This parses the text a second time, so it is only for callers who know that the text has a comment they look for. In
//! a part with a syntax error, only the comments before the error are found.

use std::ops::Range;

use granit_parser::Event;

use super::yaml;

/// The comments of a text in order, as ranges of its bytes, from the `#` to the end of the line.
pub fn comment_ranges(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let (mut part, mut at) = (0, 0);
    for line in text.split_inclusive('\n') {
        let next = at + line.len();
        if let Some(after) = line.strip_prefix("---") {
            collect_part_comments(text, part..at, &mut found);
            let comment = after.trim();
            if comment.starts_with('#') {
                let start = at + line.find('#').unwrap_or_default();
                found.push(start..start + comment.len());
            }
            part = next;
        }
        at = next;
    }
    collect_part_comments(text, part..text.len(), &mut found);
    found
}

/// Adds the comments of a part of the text between two `---` lines.
fn collect_part_comments(text: &str, part: Range<usize>, found: &mut Vec<Range<usize>>) {
    let source = text.get(part.clone()).unwrap_or_default();
    if !source.contains('#') {
        return;
    }
    let before = found.len();
    if !collect_parsed_comments(source, part.start, found)
        && let Some(parsable) =
            yaml::copy_with_rejected_scalars_masked(source, &mut { yaml::MAX_REPARSED_BYTES })
    {
        found.truncate(before);
        collect_parsed_comments(&parsable, part.start, found);
    }
}

/// Adds the comments of `text`, which starts at the byte `start` of the whole text. Returns false if it cannot be
/// parsed to its end.
fn collect_parsed_comments(text: &str, start: usize, found: &mut Vec<Range<usize>>) -> bool {
    let mut parser = yaml::new_parser_with_nesting_limit(text, true);
    while let Some(event) = yaml::next_event(&mut parser) {
        let Ok((event, span)) = event else { return false };
        if let (Event::Comment(..), Some(bytes)) = (event, span.byte_range()) {
            let whole = text.get(bytes.clone()).unwrap_or_default();
            let start = start + bytes.start;
            found.push(start..start + whole.trim_end().len());
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::comment_ranges;

    #[test]
    fn only_comments_are_comments() {
        let text = "# head\na: 'x # no' # one\nb: |  # two\n  # no\n  text\nc: \"# no\" \n# three\nd: [1, # four\n 2]\n\
                    e: a#no\n--- # five\nf: >-\n  folded # no\n\n# six\n---\n{\"a\": \"# no\"}\n# last\n";
        let found: Vec<&str> = comment_ranges(text).into_iter().map(|range| &text[range]).collect();
        assert_eq!(found, ["# head", "# one", "# two", "# three", "# four", "# five", "# six", "# last"]);
    }

    #[test]
    fn a_fault_hides_only_what_follows_it_in_its_part() {
        let text = "a: 1 # one\r\nb: [ # two\n---\nc: 1 # three\r\n";
        let found: Vec<&str> = comment_ranges(text).into_iter().map(|range| &text[range]).collect();
        assert_eq!(found, ["# one", "# two", "# three"]);
        assert!(comment_ranges("{\"a\": \"# b\"} {\"c\": 1}").is_empty());
    }
}
