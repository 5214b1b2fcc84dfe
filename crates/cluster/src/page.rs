//! How many objects to ask for at once, so that a page of a list stays small whatever its objects are.
//!
//! Tenants decide how large their objects are: two hundred claims may have 300 KB together or 300 MB. A page that is
//! larger than [`PAGE_BYTES`] is not read to its end but asked for again with fewer objects.
//!
//! One object that is larger than [`MAX_OBJECT_BYTES`] is not read either. The beginning of the text says which it is,
//! and how the list goes on behind it.
//!
//! Invariant: the text of a page that is in memory has at most [`PAGE_BYTES`], or one object of [`MAX_OBJECT_BYTES`].

use super::api_error::ApiError;
use super::watch::percent_encode;

/// Maximum size in bytes of a page with more than one object.
const PAGE_BYTES: usize = 2 << 20;
/// Maximum number of bytes of a page with one object, and of one watch event: several times the maximum size of a
/// stored object.
pub(super) const MAX_OBJECT_BYTES: usize = 8 << 20;

/// The number of objects to request for the next page of a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PageSize {
    count: usize,
    most: usize,
}

impl PageSize {
    /// Starts with pages of `most` objects; later pages have no more than that.
    pub(super) fn new(most: usize) -> PageSize {
        PageSize { count: most.max(1), most: most.max(1) }
    }

    /// The path of the next request, behind the page that ended with this token.
    pub(super) fn path(self, list: &str, token: &str) -> String {
        let next = if token.is_empty() { "" } else { "&continue=" };
        format!("{list}?limit={}{next}{}", self.count, percent_encode(token))
    }

    /// Maximum number of bytes to read of the next response.
    pub(super) fn max_bytes(self) -> usize {
        if self.count == 1 { MAX_OBJECT_BYTES } else { PAGE_BYTES }
    }

    /// Reduces the number of objects of the next page if the error is that a page was too large. Returns false if it is
    /// another error, or if a single object is too large.
    pub(super) fn shrink_after_error(&mut self, error: &ApiError) -> bool {
        let shrinks = matches!(error, ApiError::TooLarge { .. }) && self.count > 1;
        if shrinks {
            self.count = (self.count / 4).max(1);
        }
        shrinks
    }

    /// Chooses the next count after a page of so many objects and bytes, so that a page of similar objects is not too
    /// large.
    pub(super) fn adapt_to_page(&mut self, objects: usize, bytes: usize) {
        let fitting = PAGE_BYTES / 2 / (bytes / objects.max(1)).max(1);
        self.count = fitting.min(2 * self.count).clamp(1, self.most);
    }
}

/// An object that is too large to be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct TooLargeObject<'t> {
    pub(super) namespace: &'t str,
    pub(super) name: &'t str,
    /// `resourceVersion` of the list that contains the object, or of the object in a watch event.
    pub(super) version: &'t str,
    /// Continue token of the list after the object; empty at the end of the list, and in a watch event.
    pub(super) token: &'t str,
    /// Type of the watch event, such as `ADDED`; empty in a list.
    pub(super) event: &'t str,
}

impl<'t> TooLargeObject<'t> {
    /// The object of a page that was too large and has one object; `None` if the error is another one.
    pub(super) fn from_page_error(error: &'t ApiError) -> Option<TooLargeObject<'t>> {
        let ApiError::TooLarge { head, .. } = error else { return None };
        let (list, item) = head.split_once(r#""items":["#)?;
        let (namespace, name, _) = leading_namespace_name_and_version(item)?;
        let (version, token) = (string_member(list, "resourceVersion"), string_member(list, "continue"));
        Some(TooLargeObject { namespace, name, version, token, event: "" })
    }

    /// The object of an event that was too long.
    pub(super) fn from_event_head(head: &'t str) -> Option<TooLargeObject<'t>> {
        let (event, object) = head.split_once(r#""object":"#)?;
        let (namespace, name, version) = leading_namespace_name_and_version(object)?;
        Some(TooLargeObject { namespace, name, version, token: "", event: string_member(event, "type") })
    }
}

/// Namespace, name and resourceVersion from the beginning of an object, where an API server writes them before anything
/// long. `None` if there is no name.
fn leading_namespace_name_and_version(object: &str) -> Option<(&str, &str, &str)> {
    let (_, metadata) = object.split_once(r#""metadata":{"#)?;
    let (names, rest) = metadata.split_once(r#""uid":"#).unwrap_or((metadata, ""));
    let name = string_member(names, "name");
    (!name.is_empty())
        .then(|| (string_member(names, "namespace"), name, string_member(rest, "resourceVersion")))
}

/// The value of the first `"key":"…"` in a text, if it has no escapes; empty if there is none.
fn string_member<'t>(text: &'t str, key: &str) -> &'t str {
    let value = text.split_once(&format!(r#""{key}":""#)).and_then(|(_, value)| value.split_once('"'));
    value.map_or("", |(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::{ApiError, PAGE_BYTES, PageSize, TooLargeObject};

    #[test]
    fn the_beginning_of_a_text_says_which_object_it_is() {
        let head = r#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7","continue":"abc"},"items":[{"metadata":{"name":"p","generateName":"q","namespace":"n","uid":"u","resourceVersion":"5","labels":{"namespace":"#;
        let error = ApiError::TooLarge { limit: 1, head: head.to_owned() };
        let expected = TooLargeObject { namespace: "n", name: "p", version: "7", token: "abc", event: "" };
        assert_eq!(TooLargeObject::from_page_error(&error), Some(expected));
        let head = r#"{"type":"ADDED","object":{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"n","uid":"u","resourceVersion":"5","labels":{"namespace":"x"#;
        let expected = TooLargeObject { namespace: "", name: "n", version: "5", token: "", event: "ADDED" };
        assert_eq!(TooLargeObject::from_event_head(head), Some(expected));
        assert_eq!(TooLargeObject::from_event_head("<html>"), None);
    }

    #[test]
    fn pages_follow_the_size_of_objects() {
        let mut page = PageSize::new(200);
        let too_large = ApiError::TooLarge { limit: page.max_bytes(), head: String::new() };
        let mut counts = Vec::new();
        while page.shrink_after_error(&too_large) {
            counts.push(page.count);
        }
        assert_eq!(counts, [50, 12, 3, 1]);
        assert!(page.max_bytes() > PAGE_BYTES, "one object is read whole");
        assert!(!page.shrink_after_error(&too_large), "no fewer than one");
        for expected in [2, 4, 8, 16, 32, 64, 128, 200, 200] {
            page.adapt_to_page(page.count, page.count * 1_000);
            assert_eq!(page.count, expected);
        }
        page.adapt_to_page(100, PAGE_BYTES);
        assert_eq!(page.count, 50, "half of what may be read");
        assert!(!page.shrink_after_error(&ApiError::Unreachable("gone".to_owned())));
    }
}
