//! A watch whose stream comes from a fuzzer instead of an API server.
#![allow(clippy::expect_used, reason = "a fuzz target fails by a panic")]

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock, Mutex};

use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;

use super::{ObjectKeys, ObjectSink, Reflector, StoreOutcome, WatchEnd, WatchPosition, WatchedResource};
use crate::api_error::ApiError;
use crate::client::{ApiClient, ClusterTarget, FULL_OBJECTS};
use crate::listed_kind::PODS;
use crate::retry::Timing;
use crate::watch_health::WatchHealth;
use crate::watch_lines::WatchLines;
use tollgate_document::doc::{KeptFields, Value};

/// A sink that stores only the namespaces and names of objects.
#[derive(Default)]
struct KeySink(Mutex<BTreeSet<(String, String)>>);

impl ObjectSink for KeySink {
    fn put(&self, _: &str, object: Value<'_>) -> Result<StoreOutcome, String> {
        let metadata = object.get("metadata");
        let key = (metadata.get("namespace").str().to_owned(), metadata.get("name").str().to_owned());
        self.0.lock().expect("one thread").insert(key);
        Ok(StoreOutcome::Yes)
    }

    fn remove(&self, namespace: &str, name: &str) {
        self.0.lock().expect("one thread").remove(&(namespace.to_owned(), name.to_owned()));
    }

    fn retain(&self, keys: &ObjectKeys) {
        self.0.lock().expect("one thread").retain(|(namespace, name)| keys.contains(namespace, name));
    }
}

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_current_thread().enable_all().build().expect("a runtime"));

/// A client that sends nothing, because the stream of the watch comes from the fuzzer.
static CLIENT: LazyLock<ApiClient> = LazyLock::new(|| {
    let file = std::env::temp_dir().join(format!("tollgate-fuzz-{}.kubeconfig", std::process::id()));
    let kubeconfig = "clusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}]\ncontexts: [{name: a, context: {cluster: a, user: a}}]\ncurrent-context: a\n";
    #[allow(clippy::disallowed_methods, reason = "a client is opened from a file")]
    std::fs::write(&file, kubeconfig).expect("a temporary file");
    let _inside = RUNTIME.enter();
    let target = ClusterTarget { kubeconfig: Some(&file), context: None };
    let client = ApiClient::from_target_without_connecting(target, Timing::default()).expect("a client");
    _ = std::fs::remove_file(&file);
    client
});

/// Fuzz target: reads the stream of a watch to its end.
pub(crate) fn read_stream(stream: &[u8]) {
    let (keys, _) = read_from("1", stream);
    let (stored, lines) = (keys.len(), stream.split(|byte| *byte == b'\n').count());
    assert!(stored <= lines, "{stored} objects from {lines} events");
}

/// Reads the stream of a watch from a resourceVersion on. Returns the namespaces and names of the stored objects, and
/// why it ended.
pub(super) fn read_from(
    version: &str,
    stream: &[u8],
) -> (BTreeSet<(String, String)>, Result<WatchEnd, ApiError>) {
    let reflector = Reflector {
        client: CLIENT.clone(),
        resource: WatchedResource {
            kind: PODS,
            accept: FULL_OBJECTS,
            accept_watch: FULL_OBJECTS,
            page: 10,
            keep: &KeptFields::All,
            max_nodes: 1_000,
        },
        sink: Arc::new(KeySink::default()),
        health: Arc::new(WatchHealth::new("pods")),
    };
    let lines = WatchLines::new(stream.to_vec().into(), Arc::new(Semaphore::new(1)));
    let mut position = WatchPosition {
        path: "/api/v1/pods".to_owned(),
        api_version: "v1".to_owned(),
        version: version.to_owned(),
    };
    let ended = RUNTIME.block_on(reflector.read_events(lines, &mut position));
    let keys = std::mem::take(&mut *reflector.sink.0.lock().expect("one thread"));
    (keys, ended)
}
