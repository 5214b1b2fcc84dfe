//! The files that strangers look for: they exist, and what is a placeholder is marked, so that a release stops at it.
#![expect(clippy::disallowed_methods, reason = "reads files")]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that cannot read its data has failed"
)]

fn read(name: &str) -> String {
    let path = format!("{}/{name}", env!("CARGO_MANIFEST_DIR"));
    // A packaged crate has a Cargo.toml without comments, and the one that was written beside it.
    let original = std::fs::read_to_string(format!("{path}.orig"));
    original.or_else(|_| std::fs::read_to_string(&path)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Placeholder addresses and names outside of lines that are marked as such.
fn unmarked(text: &str) -> Vec<&str> {
    let is_made_up = |line: &&str| {
        line.contains("@example.com") || line.contains("@example/") || line.contains("github.com/example/")
    };
    let lines: Vec<&str> = text.lines().collect();
    let marked =
        |index: usize| lines[index.saturating_sub(1)..=index].iter().any(|line| line.contains("PLACEHOLDER"));
    // The rest of CODEOWNERS stands below its mark.
    let first = lines.iter().position(|line| line.contains("PLACEHOLDER"));
    let below =
        |index: usize| text.contains("@example/maintainers") && first.is_some_and(|first| first < index);
    lines
        .iter()
        .enumerate()
        .filter(|(index, line)| is_made_up(line) && !marked(*index) && !below(*index))
        .map(|(_, line)| *line)
        .collect()
}

#[test]
fn placeholders_are_marked_and_stop_a_release() {
    let release = read(".github/workflows/release.yml");
    for name in ["SECURITY.md", "CODE_OF_CONDUCT.md", ".github/CODEOWNERS", "Cargo.toml"] {
        assert_eq!(unmarked(&read(name)), Vec::<&str>::new(), "{name}");
        assert!(release.contains(name), "the release does not look into {name}");
    }
    assert_eq!(unmarked("write to a@example.com").len(), 1);
    assert_eq!(unmarked("write to a@example.com (PLACEHOLDER)").len(), 0);
    // Nobody publishes under a name that is written into a file: it comes from the variables of the repository.
    assert!(release.contains("vars.REGISTRY") && read("README.md").contains("$REGISTRY/tollgate"));
}

#[test]
fn templates_ask_for_what_is_needed() {
    for name in ["wrong-verdict", "bug", "idea"] {
        let form = crate::promql::documents(&format!(".github/ISSUE_TEMPLATE/{name}.yml")).remove(0);
        for field in ["name", "description", "body"] {
            assert!(!form[field].is_null(), "{name}: {field}");
        }
        let ids = form["body"].as_array().expect("a body").iter().filter_map(|part| part["id"].as_str());
        let ids: Vec<&str> = ids.collect();
        let unique: std::collections::BTreeSet<&&str> = ids.iter().collect();
        assert!(!ids.is_empty() && unique.len() == ids.len(), "{name}: {ids:?}");
    }
    assert!(read(".github/pull_request_template.md").contains("make check"));
    assert!(read("renovate.json").contains("pinGitHubActionDigestsToSemver"));
    for section in ["## Report a vulnerability", "## Supported versions", "## Threat model"] {
        assert!(read("SECURITY.md").contains(section), "{section}");
    }
}
