//! Creates that an API server checks and does not store: `dryRun=All`.
//!
//! Unknown fields are ignored, not reported: they are a matter of strict field validation, and a response has a header
//! for each. A server that is busy (429) is asked again after the pause it names.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use http::Method;

use super::Cluster;
use super::api_error::ApiError;
use super::client::ApiClient;
use tollgate_api::profile::{ApiKind, Version};
use tollgate_document::doc;

/// Maximum number of times that a request is repeated because the API server is busy.
const BUSY_RETRIES: usize = 3;
/// Maximum number of seconds before a request is repeated because the API server is busy.
const MAX_PAUSE_SECONDS: u64 = 10;

/// The response to a create: status code and body, or why there is none.
pub type CreateResponse = Result<(u16, String), ApiError>;

/// An object to create with `dryRun=All`.
#[derive(Clone, Debug)]
pub struct DryRunCreate {
    pub kind: ApiKind,
    pub version: Version,
    /// Namespace of the object, if its kind has namespaces.
    pub namespace: String,
    /// The object as JSON.
    pub object: String,
}

impl DryRunCreate {
    /// Returns the path of the request: `/apis/resource.k8s.io/v1/namespaces/default/resourceclaims?dryRun=All…`
    fn path(&self) -> String {
        let (group, version, resource) = (self.kind.group(), self.version.name(), self.kind.resource());
        let namespace =
            if self.kind.is_namespaced() { format!("namespaces/{}/", self.namespace) } else { String::new() };
        format!("/apis/{group}/{version}/{namespace}{resource}?dryRun=All&fieldValidation=Ignore")
    }
}

impl Cluster {
    /// Sends a create request with `dryRun=All`. The response goes to `done`, together with the given number.
    pub fn start_dry_run(&self, number: usize, dry_run: DryRunCreate, done: Sender<(usize, CreateResponse)>) {
        let client = self.client.clone();
        self.spawn(async move {
            // Nobody waits any more after an interrupt.
            let _ = done.send((number, send_with_busy_retries(&client, &dry_run).await));
        });
    }

    /// Returns the labels of a namespace as JSON; `None` if the namespace does not exist.
    pub fn namespace_labels_json(&self, name: &str) -> Result<Option<String>, ApiError> {
        let path = format!("/api/v1/namespaces/{name}");
        let found = self.block_on_request(|client| async move { client.get_if_exists(&path).await })?;
        let Some(text) = found else { return Ok(None) };
        let namespace = doc::parse(&text).map_err(|_error| ApiError::not_json())?;
        let labels = namespace.root().get("metadata").get("labels");
        Ok(Some(if labels.exists() { labels.to_json() } else { "{}".to_owned() }))
    }

    /// A flag that Ctrl-C, or SIGTERM on Unix, sets from now on, instead of ending the process.
    pub fn install_interrupt_flag(&self) -> Arc<AtomicBool> {
        let flag = Arc::new(AtomicBool::new(false));
        let set = flag.clone();
        self.spawn(async move {
            if tokio::signal::ctrl_c().await.is_ok() {
                set.store(true, Ordering::Release);
            }
        });
        #[cfg(unix)]
        self.spawn(set_at_sigterm(flag.clone()));
        flag
    }
}

/// Sets the flag when this process receives SIGTERM.
#[cfg(unix)]
async fn set_at_sigterm(flag: Arc<AtomicBool>) {
    let kind = tokio::signal::unix::SignalKind::terminate();
    let Ok(mut signals) = tokio::signal::unix::signal(kind) else { return };
    if signals.recv().await.is_some() {
        flag.store(true, Ordering::Release);
    }
}

/// Sends a dry run, and repeats it at most [`BUSY_RETRIES`] times while the API server is busy.
async fn send_with_busy_retries(client: &ApiClient, dry_run: &DryRunCreate) -> CreateResponse {
    let path = dry_run.path();
    let mut tries = 0;
    loop {
        let response = client.send_with_any_status(Method::POST, &path, Some(dry_run.object.clone())).await?;
        let code = response.status().as_u16();
        if code != 429 || tries == BUSY_RETRIES {
            return Ok((code, response.into_body()));
        }
        tries += 1;
        let named = response.headers().get(http::header::RETRY_AFTER).and_then(|value| value.to_str().ok());
        let seconds = named.and_then(|value| value.parse().ok()).unwrap_or(1);
        tokio::time::sleep(Duration::from_secs(MAX_PAUSE_SECONDS.min(seconds))).await;
    }
}

#[cfg(test)]
mod tests {
    use super::{ApiKind, DryRunCreate, Version};

    #[test]
    fn nothing_is_sent_that_could_be_stored() {
        for kind in
            ApiKind::ALL.into_iter().filter(|kind| kind.only_version_if_profile_independent().is_none())
        {
            let (namespace, object) = ("team".to_owned(), String::new());
            let path = DryRunCreate { kind, version: Version::V1, namespace, object }.path();
            assert!(path.ends_with("?dryRun=All&fieldValidation=Ignore"), "{path}");
            assert_eq!(path.contains("/namespaces/team/"), kind.is_namespaced(), "{path}");
        }
    }
}
