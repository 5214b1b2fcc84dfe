//! How many objects to ask for at once, so that a page of a list stays small whatever its objects are.
//!
//! Tenants decide how large their objects are: two hundred claims may have 300 KB together or 300 MB. A page that is
//! larger than [`PAGE_BYTES`] is not read to its end but asked for again with fewer objects.
//!
//! Invariant: the text of a page that is in memory has at most [`PAGE_BYTES`], or one object.

use super::client::ApiError;

/// Bytes of a page with more than one object.
const PAGE_BYTES: usize = 2 << 20;
/// Bytes of a page with one object: several times what an API server stores of one.
const OBJECT_BYTES: usize = 16 << 20;

/// The number of objects of the next page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PageSize {
    count: usize,
    most: usize,
}

impl PageSize {
    /// At most so many.
    pub(super) fn new(most: usize) -> PageSize {
        PageSize { count: most.max(1), most: most.max(1) }
    }

    /// Objects to ask for.
    pub(super) fn count(self) -> usize {
        self.count
    }

    /// Bytes to read of the response.
    pub(super) fn max_bytes(self) -> usize {
        if self.count == 1 { OBJECT_BYTES } else { PAGE_BYTES }
    }

    /// After an error: true if the page was too large, and fewer objects are worth asking for.
    pub(super) fn shrink(&mut self, error: &ApiError) -> bool {
        let shrinks = matches!(error, ApiError::TooLarge(_)) && self.count > 1;
        if shrinks {
            self.count = (self.count / 4).max(1);
        }
        shrinks
    }

    /// After a page of so many objects and bytes: the next ones may be as large.
    pub(super) fn adapt(&mut self, objects: usize, bytes: usize) {
        let fitting = PAGE_BYTES / 2 / (bytes / objects.max(1)).max(1);
        self.count = fitting.min(2 * self.count).clamp(1, self.most);
    }
}

#[cfg(test)]
mod tests {
    use super::{ApiError, PAGE_BYTES, PageSize};

    #[test]
    fn pages_follow_the_size_of_objects() {
        let mut page = PageSize::new(200);
        let too_large = ApiError::TooLarge(page.max_bytes());
        let mut counts = Vec::new();
        while page.shrink(&too_large) {
            counts.push(page.count());
        }
        assert_eq!(counts, [50, 12, 3, 1]);
        assert!(page.max_bytes() > PAGE_BYTES, "one object is read whole");
        assert!(!page.shrink(&too_large), "no fewer than one");
        for expected in [2, 4, 8, 16, 32, 64, 128, 200, 200] {
            page.adapt(page.count(), page.count() * 1_000);
            assert_eq!(page.count(), expected);
        }
        page.adapt(100, PAGE_BYTES);
        assert_eq!(page.count(), 50, "half of what may be read");
        assert!(!page.shrink(&ApiError::Unreachable("gone".to_owned())));
    }
}
