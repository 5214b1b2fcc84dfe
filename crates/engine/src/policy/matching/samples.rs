//! The patterns and values that a policy compares requests with, from which representative requests are made.
//!
//! Not here: whether a policy applies to a request.

use super::{Globs, NAMESPACE_NAME_LABEL, PolicyScope};

impl PolicyScope {
    /// Returns the labels that `namespaceSelector` compares: each once with every value that it names, and once without
    /// a value.
    pub(in crate::policy) fn selector_labels_with_and_without_value(
        &self,
    ) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.selector.iter().filter(|requirement| &*requirement.key != NAMESPACE_NAME_LABEL).flat_map(
            |requirement| {
                let values = requirement.values.iter().map(|value| Some(&**value));
                values.chain([None]).map(|value| (&*requirement.key, value))
            },
        )
    }

    /// Returns the names and patterns that the scope compares namespaces with, in its lists and by the label that has
    /// the name.
    pub(in crate::policy) fn namespace_names_and_patterns(&self) -> impl Iterator<Item = &str> {
        let by_label = self.selector.iter().filter(|requirement| &*requirement.key == NAMESPACE_NAME_LABEL);
        let by_label = by_label.flat_map(|requirement| requirement.values.iter().map(|value| &**value));
        let named = self.namespaces.iter().chain([&self.excluded]).flat_map(Globs::patterns);
        named.chain(by_label)
    }

    /// Returns the patterns of drivers in `spec.match`.
    pub(in crate::policy) fn driver_patterns(&self) -> impl Iterator<Item = &str> {
        self.drivers.iter().flat_map(Globs::patterns)
    }
}
