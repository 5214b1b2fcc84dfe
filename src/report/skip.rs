//! The reasons why documents are skipped, and their counts.
//!
//! Invariant: the counts of all reasons add up to the number of skipped documents.

use std::fmt::Write as _;

use serde::ser::{Serialize, SerializeMap as _, Serializer};

/// Declares the reasons: variant, key in JSON, a sentence about one document, words after a count of one and of more.
macro_rules! reasons {
    ($($reason:ident: $key:literal, $text:literal, $one:literal, $more:literal;)*) => {
        /// The reason why a document is skipped.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum SkipReason {
            $(#[doc = $text] $reason,)*
        }

        impl SkipReason {
            /// All reasons.
            pub const ALL: [SkipReason; [$(SkipReason::$reason),*].len()] = [$(SkipReason::$reason),*];

            /// The key in JSON: `other-kind`.
            pub fn key(self) -> &'static str {
                match self { $(SkipReason::$reason => $key,)* }
            }

            /// The reason as a sentence about one document.
            pub fn text(self) -> &'static str {
                match self { $(SkipReason::$reason => $text,)* }
            }

            /// The words that follow a count of documents in a summary, in singular or plural.
            fn words_after_count(self, count: usize) -> &'static str {
                match self { $(SkipReason::$reason => if count == 1 { $one } else { $more },)* }
            }
        }
    };
}

reasons! {
    OtherKind: "other-kind", "a kind that Tollgate does not check",
        "with an unsupported kind", "with unsupported kinds";
    NotKubernetes: "not-kubernetes", "not a Kubernetes object: apiVersion or kind is missing",
        "not a Kubernetes object", "not Kubernetes objects";
    MissingApiVersion: "missing-api-version", "a document with kind but without apiVersion",
        "without apiVersion", "without apiVersion";
    Template: "template", "an unrendered template; render it to check it",
        "unrendered template", "unrendered templates";
    HelmChart: "helm-chart", "part of a Helm chart, not a manifest; render the chart to check it",
        "Helm chart file", "Helm chart files";
    KustomizePatch: "kustomize-patch", "a kustomize patch, not a complete object; build the kustomization to check it",
        "kustomize patch", "kustomize patches";
    JsonPatch: "json-patch", "a JSON Patch (RFC 6902), not an object",
        "JSON Patch", "JSON Patches";
    PolicyTest: "policy-test", "a policy test; run it with `tollgate test`",
        "policy test for `tollgate test`", "policy tests for `tollgate test`";
    Empty: "empty", "empty, or contains only comments",
        "empty", "empty";
    DanglingLink: "dangling-link", "a symbolic link whose target does not exist",
        "dangling link", "dangling links";
    NotParsable: "not-parsable", "cannot be parsed, and does not look like a manifest",
        "not parsable", "not parsable";
}

/// Number of skipped documents for each reason.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct SkipCounts([usize; SkipReason::ALL.len()]);

impl SkipCounts {
    /// Counts a document that was skipped for this reason.
    pub fn count_document(&mut self, reason: SkipReason) {
        self.0
            .iter_mut()
            .zip(SkipReason::ALL)
            .filter(|(_, of)| *of == reason)
            .for_each(|(count, _)| *count += 1);
    }

    /// Adds the counts of another part of the run.
    pub fn merge(&mut self, other: &SkipCounts) {
        self.0.iter_mut().zip(other.0).for_each(|(count, more)| *count += more);
    }

    /// The reasons that occurred, with their counts.
    pub fn nonzero_counts(&self) -> impl Iterator<Item = (SkipReason, usize)> {
        SkipReason::ALL.into_iter().zip(self.0).filter(|(_, count)| *count > 0)
    }

    /// Returns ` (2 with unsupported kinds, 1 empty)`; empty if all documents are of unsupported kinds, the usual
    /// meaning of "skipped".
    pub(super) fn parenthesized_counts_if_notable(&self) -> String {
        if self.nonzero_counts().all(|(reason, _)| reason == SkipReason::OtherKind) {
            return String::new();
        }
        let mut out = String::from(" (");
        for (number, (reason, count)) in self.nonzero_counts().enumerate() {
            _ = write!(
                out,
                "{}{count} {}",
                if number > 0 { ", " } else { "" },
                reason.words_after_count(count)
            );
        }
        out + ")"
    }
}

impl Serialize for SkipCounts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (reason, count) in self.nonzero_counts() {
            map.serialize_entry(reason.key(), &count)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::{SkipCounts, SkipReason};

    #[test]
    fn counts_are_shown_where_they_say_something() {
        let mut counts = SkipCounts::default();
        assert_eq!(counts.parenthesized_counts_if_notable(), "");
        counts.count_document(SkipReason::OtherKind);
        assert_eq!(counts.parenthesized_counts_if_notable(), "");
        counts.count_document(SkipReason::Empty);
        let mut all = counts;
        all.merge(&counts);
        assert_eq!(all.parenthesized_counts_if_notable(), " (2 with unsupported kinds, 2 empty)");
        assert_eq!(serde_json::to_string(&all).expect("JSON"), r#"{"other-kind":2,"empty":2}"#);
    }
}
