//! Lists all objects of a kind once, page by page, for commands that read a cluster and end.
//!
//! Only GET requests are sent. Objects are read and handed on one by one, without the fields that nobody asks for. A
//! page is dropped before the next one is requested, so memory is bounded by the largest page, and its size follows
//! that of the objects (`page`). An object that is too large is reported by name and skipped. A list that expires
//! halfway is continued where it was, at a newer version; no object is passed on twice.
//!
//! Invariant: a list that is incomplete is an error, however many objects were passed on before. Only objects that were
//! reported by name may be missing.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use super::Cluster;
use super::api_error::{ApiError, status_error};
use super::client::ApiClient;
use super::listed_kind::ListedKind;
use super::page::{PageSize, TooLargeObject};
use super::retry::{Backoff, Timing};
use super::watch::{namespace_and_name, percent_encode};
use tollgate_document::doc::{self, KeptFields, ObjectWithDeferredMember, Value, ValueKind};
use tollgate_engine::impact::{DetailsToStore, SnapshotKind};

/// An object, an omitted object or the end of a page, in the order in which a list is read.
#[derive(Clone, Copy, Debug)]
pub enum ListEvent<'p> {
    /// An object.
    Object {
        /// `apiVersion` of the object, such as `resource.k8s.io/v1`. Items of a list do not repeat it.
        api_version: &'p str,
        object: Value<'p>,
    },
    /// An object that is too large to be read.
    LeftOut {
        namespace: &'p str,
        name: &'p str,
        /// Why the object is omitted, such as `has more than 8 MiB`.
        why: &'p str,
    },
    /// The end of a page.
    Page {
        /// Number of objects of the page.
        count: usize,
        /// Number of objects after this page, if the API server says so.
        remaining: Option<usize>,
    },
}

/// Which fields of each object are kept, and how large an object may be.
#[derive(Clone, Copy, Debug)]
pub struct KeptFieldsAndSizeLimit {
    pub keep: &'static KeptFields,
    /// Maximum number of keys and values of an object.
    pub max_nodes: usize,
}

impl KeptFieldsAndSizeLimit {
    /// All fields of objects except `managedFields`.
    pub const WHOLE_OBJECTS: KeptFieldsAndSizeLimit = KeptFieldsAndSizeLimit {
        keep: &KeptFields::AllBut(&[(
            "metadata",
            KeptFields::AllBut(&[("managedFields", KeptFields::Nothing)]),
        )]),
        max_nodes: 1_000_000,
    };

    /// The fields and the size that impact needs of an object of this kind.
    pub fn for_impact(kind: SnapshotKind) -> KeptFieldsAndSizeLimit {
        KeptFieldsAndSizeLimit::for_impact_with_details(kind, DetailsToStore::default())
    }

    /// The fields and the size that impact needs of an object of this kind, with these details of devices.
    pub fn for_impact_with_details(kind: SnapshotKind, details: DetailsToStore) -> KeptFieldsAndSizeLimit {
        KeptFieldsAndSizeLimit { keep: kind.fields_with(details), max_nodes: kind.max_kept_keys_and_values() }
    }
}

/// The result of a list that succeeded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ListOutcome {
    /// All objects were listed.
    All {
        /// The `apiVersion` of the objects, such as `resource.k8s.io/v1`.
        api_version: String,
        /// Why the objects are not all of one moment; `None` if they are.
        caveat: Option<String>,
    },
    /// The API server does not serve the kind.
    NotServed,
}

/// The error of a list that failed, before or after objects were passed on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListError {
    /// Number of objects that were passed on before the error; can be 0.
    pub after: usize,
    pub error: ApiError,
}

impl std::fmt::Display for ListError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.after {
            0 => self.error.fmt(f),
            after => write!(f, "{} (after {after} objects)", self.error),
        }
    }
}

/// Maximum number of times that a list is continued after its continue token has expired.
const MAX_RESTARTS: usize = 3;
/// Number of attempts for a request if the API server is busy or unreachable.
const MAX_PAGE_ATTEMPTS: usize = 3;

impl Cluster {
    /// Lists all objects of a kind, in one namespace or in all, and calls `each` with every object. `versions` are the
    /// API versions to try, the newest first. Must not be called on the cluster's own thread, because it waits for
    /// requests that run there.
    pub fn list(
        &self,
        kind: &ListedKind,
        versions: &[&str],
        namespace: Option<&str>,
        limits: KeptFieldsAndSizeLimit,
        each: &mut dyn FnMut(ListEvent<'_>),
    ) -> Result<ListOutcome, ListError> {
        for version in versions {
            let path = kind.list_path(version, namespace);
            let api_version = kind.api_version(version);
            match self.list_in_version_with_caveat(&path, &api_version, kind, limits, each) {
                Ok(caveat) => return Ok(ListOutcome::All { api_version, caveat }),
                Err(failed)
                    if failed.error.http_status_or_zero() == 404
                        && failed.after == 0
                        && !kind.is_always_served() => {}
                Err(failed) => return Err(failed),
            }
        }
        Ok(ListOutcome::NotServed)
    }

    /// Returns those of the kind's versions that the API server serves, according to discovery, which every client
    /// may read.
    pub fn served_versions(&self, kind: &ListedKind) -> Result<Vec<&'static str>, ApiError> {
        let path = format!("/apis/{}", kind.group);
        let found = self.block_on_request(|client| async move { client.get_if_exists(&path).await })?;
        let Some(text) = found else { return Ok(Vec::new()) };
        let group = doc::parse(&text).map_err(|_error| ApiError::not_json())?;
        let served = group.root().get("versions");
        let is_served = |version: &&str| served.items().any(|item| item.get("version").text_is(version));
        // A group that does not list its versions is asked for all of them.
        Ok(kind.versions.iter().copied().filter(|version| served.is_empty() || is_served(version)).collect())
    }

    /// Gets one object of a kind without namespaces, as JSON.
    pub fn get_cluster_scoped_object(&self, kind: &ListedKind, name: &str) -> Result<String, ApiError> {
        let version = kind.versions.first().copied().unwrap_or_default();
        let path = format!("{}/{}", kind.list_path(version, None), percent_encode(name));
        self.block_on_request(|client| async move { client.get(&path).await })
    }

    /// Lists the objects at a path of one API version. Returns a caveat if they are not all of one moment.
    fn list_in_version_with_caveat(
        &self,
        path: &str,
        api_version: &str,
        kind: &ListedKind,
        limits: KeptFieldsAndSizeLimit,
        each: &mut dyn FnMut(ListEvent<'_>),
    ) -> Result<Option<String>, ListError> {
        let mut seen = SeenObjects::default();
        let mut page = PageSize::new(kind.page);
        let (mut token, mut restarts, mut caveat) = (String::new(), 0, None);
        loop {
            let query = page.path(path, &token);
            let limit = page.max_bytes();
            let answer =
                self.block_on_request(|client| async move { fetch_page(&client, &query, limit).await });
            let failed = |error| ListError { after: seen.count, error };
            let (next, count, remaining) = match answer {
                Err(error) if page.shrink_after_error(&error) => continue,
                Err(error) => {
                    let Some(skipped) = TooLargeObject::from_page_error(&error) else {
                        return Err(failed(error));
                    };
                    let TooLargeObject { namespace, name, token: next, .. } = skipped;
                    if seen.insert(namespace, name) {
                        each(ListEvent::LeftOut { namespace, name, why: TOO_LARGE });
                    }
                    (next.to_owned(), 1, None)
                }
                Ok(PageResponse::Expired { message, .. }) if restarts >= MAX_RESTARTS => {
                    return Err(failed(ApiError::Status { code: 410, message }));
                }
                // With a token of its own the server continues behind the last object; without one, all is listed
                // again, and what was handed on already is skipped.
                Ok(PageResponse::Expired { token: other, .. }) => {
                    restarts += 1;
                    caveat = Some("the list expired while it was read".to_owned());
                    token = other;
                    continue;
                }
                Ok(PageResponse::Page(text)) => {
                    let list = ObjectWithDeferredMember::parse_deferring(&text, "items")
                        .map_err(|_error| failed(ApiError::not_json()))?;
                    check_is_list_of_kind(&list, &format!("{}List", kind.kind))
                        .map_err(|what| failed(ApiError::Unexpected(what)))?;
                    let count = pass_on_new_and_count_all_items(&list, api_version, limits, &mut seen, each)
                        .map_err(|error| ListError { after: seen.count, error })?;
                    page.adapt_to_page(count, text.len());
                    let metadata = list.without_deferred_member().get("metadata");
                    let remaining = metadata.get("remainingItemCount").int();
                    let remaining = remaining.and_then(|count| usize::try_from(count).ok());
                    (metadata.get("continue").str().to_owned(), count, remaining)
                }
            };
            each(ListEvent::Page { count, remaining });
            if next.is_empty() {
                return Ok(caveat);
            }
            // The server would answer with the same page for ever.
            if next == token {
                let what = "the API server returned the same continue token again".to_owned();
                return Err(ListError { after: seen.count, error: ApiError::Unexpected(what) });
            }
            token = next;
        }
    }
}

/// Passes on the items of a page that are new. Returns the number of items of the page.
fn pass_on_new_and_count_all_items(
    list: &ObjectWithDeferredMember<'_>,
    api_version: &str,
    limits: KeptFieldsAndSizeLimit,
    seen: &mut SeenObjects,
    each: &mut dyn FnMut(ListEvent<'_>),
) -> Result<usize, ApiError> {
    let mut count = 0;
    for part in list.read_deferred_items(limits.keep, limits.max_nodes) {
        let part = part.map_err(|_error| ApiError::not_json())?;
        count += 1;
        let object = part.doc.root();
        let (namespace, name) = namespace_and_name(object);
        if !seen.insert(namespace, name) {
            continue;
        }
        if part.is_whole {
            each(ListEvent::Object { api_version, object });
        } else {
            let why = format!("has more than {} keys and values", limits.max_nodes);
            each(ListEvent::LeftOut { namespace, name, why: &why });
        }
    }
    Ok(count)
}

/// Message for an object that is too large to be read.
const TOO_LARGE: &str = "has more than 8 MiB";

/// Checks that a successful response is a list of the expected kind, and not a `Status` or the page of a proxy.
pub(super) fn check_is_list_of_kind(
    list: &ObjectWithDeferredMember<'_>,
    expected: &str,
) -> Result<(), String> {
    let found =
        match (list.without_deferred_member().kind(), list.without_deferred_member().get("kind").str()) {
            (ValueKind::Object, "") => "an object without a kind",
            (ValueKind::Object, found) => found,
            (ValueKind::Array, _) => "an array",
            _ => "a single value",
        };
    if found != expected {
        return Err(format!("expected a {expected}, got {}", found.chars().take(100).collect::<String>()));
    }
    if list.deferred_member_is_list_null_or_absent() {
        Ok(())
    } else {
        Err(format!("`items` of the {expected} is not a list"))
    }
}

/// Fingerprints of the objects that were passed on, so that none is passed on twice.
#[derive(Default)]
struct SeenObjects {
    hasher: RandomState,
    known: HashSet<u64>,
    count: usize,
}

impl SeenObjects {
    /// Remembers an object. Returns false if it was seen before, as after a list was restarted.
    fn insert(&mut self, namespace: &str, name: &str) -> bool {
        let is_new = self.known.insert(self.hasher.hash_one((namespace, name)));
        self.count += usize::from(is_new);
        is_new
    }
}

/// The response to a request for a page.
enum PageResponse {
    Page(String),
    /// The list has expired; the token continues it at a newer version.
    Expired {
        token: String,
        message: String,
    },
}

/// Requests one page. Repeats the request a few times if the API server is busy or unreachable.
async fn fetch_page(client: &ApiClient, query: &str, limit: usize) -> Result<PageResponse, ApiError> {
    let max_backoff = client.timing.max_backoff.min(Duration::from_secs(2));
    let mut backoff = Backoff::new(Timing { max_backoff, ..client.timing });
    let mut tries = 0;
    loop {
        tries += 1;
        let error = match client.get_with_any_status(query, limit).await {
            Ok(response) if response.status().is_success() => {
                return Ok(PageResponse::Page(response.into_body()));
            }
            Ok(response) => {
                let (code, text) = (response.status().as_u16(), response.into_body());
                let error = status_error(code, &text);
                if let (410, ApiError::Status { message, .. }) = (code, &error) {
                    let status = doc::parse(&text).ok();
                    let token =
                        status.as_ref().map(|status| status.root().get("metadata").get("continue").str());
                    let token = token.unwrap_or_default().to_owned();
                    return Ok(PageResponse::Expired { token, message: message.clone() });
                }
                error
            }
            Err(error) => error,
        };
        let is_large = matches!(error, ApiError::TooLarge { .. });
        let may_pass = matches!(error.http_status_or_zero(), 0 | 429 | 500..=599) && !is_large;
        if !may_pass || tries >= MAX_PAGE_ATTEMPTS {
            return Err(error);
        }
        backoff.wait().await;
    }
}

#[cfg(test)]
mod tests {
    use super::SeenObjects;

    #[test]
    fn an_object_is_known_by_namespace_and_name() {
        let mut seen = SeenObjects::default();
        for (namespace, name, is_new) in
            [("", "a", true), ("x", "a", true), ("x", "a", false), ("", "xa", true)]
        {
            assert_eq!(seen.insert(namespace, name), is_new, "{namespace}/{name}");
        }
        assert_eq!(seen.count, 3);
    }
}
