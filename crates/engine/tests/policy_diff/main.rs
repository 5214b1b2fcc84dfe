//! Comparisons of policy sets: pairs with a known effect, and random pairs held against requests.
#![allow(clippy::indexing_slicing, reason = "the dice know how many sides there are")]
#![allow(clippy::disallowed_macros, clippy::print_stdout, reason = "numbers for people, with --nocapture")]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot read its data has failed")]

mod limits;
mod pairs;
mod requests;

use tollgate_engine::policy::{PolicyDiff, PolicyFile, PolicySet};
use tollgate_formats::gotime;

/// The current time of all comparisons.
const NOW: &str = "2026-11-17T12:00:00Z";

/// Loads the policies of a text.
fn load(text: &str) -> PolicySet {
    let files = [PolicyFile { name: "p.yaml".to_owned(), text: text.to_owned() }];
    PolicySet::load(&files, &|_| Err("no files".to_owned())).unwrap_or_else(|errors| {
        panic!("{}\n{text}", errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
    })
}

/// Compares two sets in all namespaces.
fn diff(old: &PolicySet, new: &PolicySet) -> PolicyDiff {
    old.diff(new, None, gotime::parse_rfc3339(NOW).unwrap())
}

/// Expressions are compared by a form that no user knows, and shown as they were written.
#[test]
fn expressions_are_shown_as_they_were_written() {
    let policy = |validation: &str, failure: &str| {
        load(&format!(
            "apiVersion: tollgate.dev/v1alpha1\nkind: TolerationPolicy\nmetadata: {{name: few}}\nspec:\n  action: Deny\n  \
             failurePolicy: {failure}\n  validations:\n  - expression: >-\n      {validation}\n"
        ))
    };
    let few = "object.spec.devices.requests.all(r,\n        r.exactly.count < 5)";
    let more = "object.spec.devices.requests.all(r, r.exactly.count < 9)";
    let changed = diff(&policy(few, "Fail"), &policy(more, "Fail"));
    let what: Vec<&str> = changed.differences.iter().map(|difference| &*difference.what).collect();
    let shown = "object.spec.devices.requests.all(r, r.exactly.count < 5)";
    assert!(what.contains(&&*format!("requests that violate the validation `{shown}`")), "{what:?}");
    assert!(what.contains(&&*format!("requests that violate the validation `{more}`")), "{what:?}");
    let field = &changed.changes[0].fields[0];
    assert!(
        field.before.as_ref().is_some_and(|before| before.ends_with("r.exactly.count < 5)\"")),
        "{field:?}"
    );

    let object = |spec: &str| {
        let head = "apiVersion: tollgate.dev/v1alpha1\nkind: TolerationPolicy\nmetadata: {name: few}\nspec:\n  action: Deny\n";
        load(&format!("{head}  allow: [{{key: a.example.com/b}}]\n{spec}"))
    };
    let added = diff(&object(""), &object(&format!("  validations:\n  - expression: \"{more} && 2 > 1\"\n")));
    let after = added.changes[0].fields[0].after.as_deref();
    assert_eq!(after, Some(&*format!(r#"[{{"expression":"{more} && 2 > 1"}}]"#)));

    let both = format!("{more} && object.spec.devices.requests.size() < 4");
    let added = diff(&policy(more, "Fail"), &policy(&both, "Fail"));
    let what: Vec<&str> = added.differences.iter().map(|difference| &*difference.what).collect();
    assert_eq!(what, [format!("requests that violate a part of the validation `{both}`")]);

    let ignored = diff(&policy(few, "Fail"), &policy(few, "Ignore"));
    let what: Vec<&str> = ignored.differences.iter().map(|difference| &*difference.what).collect();
    assert_eq!(what, [format!("requests for which the expression `{shown}` cannot be evaluated")]);
}
