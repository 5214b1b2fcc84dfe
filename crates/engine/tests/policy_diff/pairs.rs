//! `tests/policy-diff/EFFECT/*.yaml`: two sets of policies in a file, and the effect of the change.
//!
//! `wider` has what disarms a policy, `harmless` what only writes it differently. The reverse of a change that makes
//! policies wider makes them stricter, and the reverse of a harmless one is harmless.
#![expect(clippy::disallowed_methods, reason = "reads the fixtures")]

use std::path::Path;

use super::{diff, load};
use tollgate_engine::policy::ChangeEffect;

/// The pairs of a folder: name, old and new text.
fn pairs(folder: &str) -> Vec<(String, String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/policy-diff").join(folder);
    let mut pairs = Vec::new();
    for entry in std::fs::read_dir(&folder).expect("a folder of pairs") {
        let path = entry.expect("an entry").path();
        let text = std::fs::read_to_string(&path).expect("a pair");
        let (_, sets) = text.split_once("# old\n").expect("`# old`");
        let (old, new) = sets.split_once("# new\n").expect("`# new`");
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        pairs.push((name, old.to_owned(), new.to_owned()));
    }
    pairs.sort();
    pairs
}

/// Checks the effect of all pairs in a folder, and of their reverses.
fn check(folder: &str, at_least: usize, expected: ChangeEffect, reversed: Option<ChangeEffect>) {
    let pairs = pairs(folder);
    assert!(pairs.len() >= at_least, "{} pairs in {folder}", pairs.len());
    let mut wrong = Vec::new();
    for (name, old, new) in pairs {
        let (old, new) = (load(&old), load(&new));
        let mut expect = |what: &str, old, new, expected: ChangeEffect| {
            let found = diff(old, new);
            assert_eq!(found.incomplete, Vec::<String>::new(), "{name}");
            // Which of the changes it is, is said of each.
            let by_change =
                found.changes.iter().fold(ChangeEffect::None, |all, change| all.combined_with(change.effect));
            if found.effect != expected || by_change != expected {
                let by_change = by_change.name();
                let all: Vec<String> = found
                    .differences
                    .iter()
                    .map(|one| format!("{one:?}").replace("Difference ", "\n    "))
                    .collect();
                wrong.push(format!("{name}{what}: {} ({by_change}) {}", found.effect.name(), all.join("")));
            }
        };
        expect("", &old, &new, expected);
        if let Some(reversed) = reversed {
            expect(" reversed", &new, &old, reversed);
        }
        expect(" with itself", &old, &old, ChangeEffect::None);
    }
    assert!(wrong.is_empty(), "{} of {folder} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn what_disarms_a_policy_is_wider() {
    check("wider", 40, ChangeEffect::Wider, Some(ChangeEffect::Stricter));
}

#[test]
fn what_only_writes_a_policy_differently_is_harmless() {
    check("harmless", 40, ChangeEffect::None, Some(ChangeEffect::None));
}

#[test]
fn what_refuses_more_is_stricter() {
    check("stricter", 5, ChangeEffect::Stricter, Some(ChangeEffect::Wider));
}

#[test]
fn what_allows_some_and_refuses_others_is_both() {
    check("both", 2, ChangeEffect::Both, Some(ChangeEffect::Both));
}

#[test]
fn what_cannot_be_decided_is_unknown() {
    check("unknown", 3, ChangeEffect::Unknown, Some(ChangeEffect::Unknown));
}
