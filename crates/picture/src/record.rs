//! A record of a report, read where it is drawn: the key of a value stands beside the text around it.
//!
//! A key that a record lacks is an empty list, zero or nothing, so a record of an older version is drawn as well.

use tollgate_document::doc::{self, Doc, Value};

use crate::map::NamespaceAndName;
use crate::text::SafeText;

/// Parses the JSON of a report.
pub(crate) fn parse(json: &str) -> serde_json::Result<Doc<'_>> {
    doc::parse(json).map_err(|error| serde::de::Error::custom(error.detail))
}

/// A JSON object of a report, or a value in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'r>(pub(crate) Value<'r>);

impl<'r> Record<'r> {
    /// The value of a key.
    pub(crate) fn get(self, key: &str) -> Record<'r> {
        Record(self.0.get(key))
    }

    /// False for a key that is absent or null.
    pub(crate) fn exists(self) -> bool {
        !self.0.is_null_or_absent()
    }

    /// The text of a key.
    pub(crate) fn text(self, key: &str) -> SafeText {
        SafeText::from(self.0.get(key).str())
    }

    /// The text of a key; `None` if it is absent or null.
    pub(crate) fn text_if_any(self, key: &str) -> Option<SafeText> {
        self.get(key).exists().then(|| self.text(key))
    }

    /// The number of a key.
    pub(crate) fn int(self, key: &str) -> i64 {
        self.0.get(key).int().unwrap_or_default()
    }

    /// The number of things that a key counts.
    pub(crate) fn count(self, key: &str) -> usize {
        usize::try_from(self.int(key)).unwrap_or_default()
    }

    /// True if the value of a key is `true`.
    pub(crate) fn is(self, key: &str) -> bool {
        self.0.get(key).bool().unwrap_or_default()
    }

    /// The items of the list of a key.
    pub(crate) fn list(self, key: &str) -> impl ExactSizeIterator<Item = Record<'r>> + Clone + use<'r> {
        self.0.get(key).items().map(Record).collect::<Vec<_>>().into_iter()
    }

    /// The texts in the list of a key.
    pub(crate) fn texts(self, key: &str) -> Vec<SafeText> {
        self.0.get(key).items().map(|item| SafeText::from(item.str())).collect()
    }

    /// Namespace and name of the object that the record is about.
    pub(crate) fn namespace_and_name(self) -> NamespaceAndName {
        NamespaceAndName { namespace: self.text("namespace"), name: self.text("name") }
    }
}
