//! Policies with more combinations than are compared: the comparison says that it is incomplete.

use super::{diff, load};

/// A policy for namespaces with this number of labels.
fn with_labels(count: usize, rest: &str) -> String {
    let labels: Vec<String> = (0..count).map(|label| format!("example.com/l{label}: v")).collect();
    format!(
        "apiVersion: tollgate.dev/v1alpha1\nkind: TolerationPolicy\nmetadata: {{name: guard}}\nspec:\n  match: \
         {{namespaceSelector: {{matchLabels: {{{}}}}}}}\n  allow: [{{key: example.com/a}}{rest}]\n",
        labels.join(", ")
    )
}

/// A label has the value, another value, or is missing.
#[test]
fn labels_of_namespaces() {
    for (count, expected) in
        [(1, &[][..]), (5, &[]), (6, &["the labels of namespaces have too many combinations"])]
    {
        let (old, new) = (with_labels(count, ""), with_labels(count, ", {key: example.com/b}"));
        assert_eq!(diff(&load(&old), &load(&new)).incomplete, expected, "{count} labels");
    }
}
