//! An API server double: stores objects, lists them in pages, streams changes, applies patches; and it can be made to
//! refuse, to forget, to fall silent, to drop its connections and to be gone.
//!
//! It keeps to what a real one does where we depend on it: versions only grow, a watch from a forgotten version is
//! `410 Gone`, a watch tells what came after its version and nothing else, apply fills in defaults.

use std::collections::BTreeMap;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tollgate::cluster::{API_CALLS, CallTarget, DRAIN_LEASE, ObjectNames, POLICY_LEASE};

use crate::client::Client;
use crate::http::{Request, Stream, go_text};
use crate::running::{Authority, Folder};

// The paths are given for `make chaos` and `make soak`, which include this file from another folder.
#[path = "double/policies.rs"]
pub(crate) mod policies;
#[path = "double/writes.rs"]
mod writes;

/// True if the request is in the list of API calls, which the ClusterRoles of the manifests grant.
fn is_listed(request: &Request) -> bool {
    let parts: Vec<&str> = request.path.trim_start_matches('/').split('/').collect();
    let (group, rest) = match parts.as_slice() {
        // A list in one namespace needs the same right, granted there.
        ["api", _, "namespaces", _, rest @ ..] if !rest.is_empty() => ("", rest),
        ["apis", group, _, "namespaces", _, rest @ ..] if !rest.is_empty() => (*group, rest),
        ["api", _, rest @ ..] => ("", rest),
        ["apis", group, _, rest @ ..] => (*group, rest),
        _ => ("", &[][..]),
    };
    let verb = match (request.method.as_str(), rest) {
        // `conformance` creates all kinds in dry runs, with the rights of whoever runs it.
        ("POST", _) if request.query("fieldValidation") == "Ignore" && request.query("dryRun") == "All" => {
            return true;
        }
        ("POST", _) => "create",
        ("PUT", _) => "update",
        ("DELETE", [_, _, ..]) => "delete",
        ("GET", [_]) if request.query("watch") == "true" => "watch",
        ("GET", [_]) => "list",
        ("GET", _) => "get",
        ("PATCH", _) => "patch",
        _ => return false,
    };
    let requested = match rest {
        [resource, _, subresource] => format!("{resource}/{subresource}"),
        _ => rest.first().copied().unwrap_or_default().to_owned(),
    };
    API_CALLS.iter().filter(|call| call.verbs.contains(&verb)).any(|call| match call.target {
        CallTarget::Resource { group: of, resource, names } => {
            let is_named = match names {
                ObjectNames::DrainLease => rest.get(1) == Some(&DRAIN_LEASE),
                ObjectNames::PolicyLease => rest.get(1) == Some(&POLICY_LEASE),
                ObjectNames::All | ObjectNames::Configurations | ObjectNames::Owner => true,
            };
            of == group && requested == resource && is_named
        }
        CallTarget::Url(url) | CallTarget::PublicUrl(url) => match url.strip_suffix('*') {
            Some(prefix) => rest.is_empty() && request.path.starts_with(prefix),
            None => request.path == url,
        },
    })
}

#[test]
fn requests_that_no_cluster_role_grants_are_refused() {
    let request = |method: &str, path: &str, query: &[(&str, &str)]| Request {
        method: method.to_owned(),
        path: path.to_owned(),
        query: query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        headers: Vec::new(),
        body: Vec::new(),
    };
    for (method, path, granted) in [
        ("GET", "/version", true),
        ("GET", "/metrics", true),
        ("GET", "/apis/resource.k8s.io/v1", true),
        ("GET", "/api/v1/pods", true),
        ("GET", "/api/v1/namespaces/a", true),
        ("PATCH", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/tollgate", true),
        ("GET", "/api/v1/namespaces/a/pods", true),
        ("GET", "/api/v1/secrets", false),
        ("GET", "/api/v1/namespaces/a/secrets", false),
        ("GET", "/api/v1/pods/a", false),
        ("PATCH", "/api/v1/namespaces/a", false),
        ("DELETE", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/tollgate", false),
        ("GET", "/apis/apps/v1", false),
        ("POST", "/apis/resource.k8s.io/v1/devicetaintrules", true),
        ("PUT", "/apis/resource.k8s.io/v1/devicetaintrules/a", true),
        ("DELETE", "/apis/resource.k8s.io/v1/devicetaintrules/a", true),
        ("DELETE", "/apis/resource.k8s.io/v1/devicetaintrules", false),
        ("POST", "/apis/resource.k8s.io/v1/resourceslices", false),
        ("POST", "/api/v1/namespaces/a/pods/b/eviction", true),
        ("POST", "/api/v1/namespaces/a/pods", false),
        ("PUT", "/api/v1/namespaces/a/pods/b", false),
        ("DELETE", "/api/v1/namespaces/a/pods/b", true),
        ("DELETE", "/api/v1/namespaces/a", false),
        ("PUT", "/apis/coordination.k8s.io/v1/namespaces/a/leases/tollgate-drain", true),
        ("PUT", "/apis/coordination.k8s.io/v1/namespaces/a/leases/other", false),
        ("PUT", "/apis/coordination.k8s.io/v1/namespaces/a/leases/tollgate-policies", true),
        ("POST", "/apis/coordination.k8s.io/v1/namespaces/a/leases", false),
        ("PATCH", "/apis/tollgate.dev/v1alpha1/taintpolicies/a/status", true),
        ("PATCH", "/apis/tollgate.dev/v1alpha1/taintpolicies/a", false),
        ("DELETE", "/apis/tollgate.dev/v1alpha1/taintpolicies/a", false),
        ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", true),
    ] {
        assert_eq!(is_listed(&request(method, path, &[])), granted, "{method} {path}");
    }
    assert!(is_listed(&request("GET", "/api/v1/pods", &[("watch", "true")])));
}

/// Version, collection path, event type, object.
type Event = (u64, String, &'static str, Value);

/// What watches do that those of a working API server do not.
#[derive(Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each lie can be told beside the others")]
pub(crate) struct Lies {
    /// Every third event is not sent.
    pub(crate) gaps: bool,
    /// No event is sent.
    pub(crate) silence: bool,
    /// Every event is sent twice.
    pub(crate) duplicates: bool,
    /// After each event, the one before it about the same object is sent once more, with its old resourceVersion.
    pub(crate) stale: bool,
}

/// The state of the API server double.
#[derive(Default)]
struct State {
    version: u64,
    /// Watches from before this resourceVersion get 410 Gone.
    oldest: u64,
    /// Objects by collection path and name (with namespace).
    objects: BTreeMap<String, BTreeMap<String, Value>>,
    events: Vec<Event>,
    /// Parts of request lines (`PATCH`, a resource) with the status code for matching requests.
    refused: Vec<(&'static str, u16)>,
    /// `METHOD path?query` of every request.
    seen: Vec<String>,
    /// Incremented to end all open watches.
    broken: u64,
    /// The version at which the watches were last ended.
    ended_at: u64,
    connections: Vec<TcpStream>,
    /// Watches that are open now, by collection path.
    watching: Vec<String>,
    minor: String,
    /// The text of `/metrics`; `None` if it is not served.
    metrics: Option<String>,
    /// The discovery document: kinds and resources for each version of resource.k8s.io.
    discovery: BTreeMap<String, Vec<(String, String)>>,
    /// Responses to create requests, by object name. Other requests succeed.
    answers: BTreeMap<String, (u16, Value)>,
    /// Texts for GET requests, by path.
    texts: BTreeMap<String, String>,
    /// The verbs for policies in the discovery document.
    policy_verbs: &'static [&'static str],
    gone: bool,
    listening: bool,
    /// True if watches send no events.
    muted: bool,
    lies: Lies,
    page: Option<usize>,
    /// If set, the next request for a further page gets 410, with a continue token if true.
    expires: Option<bool>,
    /// Pages after this number of objects fail with this status code.
    broken_after: Option<(usize, u16)>,
}

/// The API server double, which ends with the process.
#[derive(Clone)]
pub(crate) struct Double {
    state: Arc<(Mutex<State>, Condvar)>,
    pub(crate) address: SocketAddr,
    tls: Option<Arc<ServerConfig>>,
    pub(crate) authority: Option<String>,
    folder: Arc<Folder>,
}

/// Listens on a port that stays reserved for this process after it is closed: outside the ephemeral range
/// (32768 and up by default), and not used twice.
pub(crate) fn listen() -> TcpListener {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let begin = std::process::id().wrapping_mul(97);
    let ports = std::iter::repeat_with(|| begin.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % 10_000);
    let mut tried = ports.take(10_000).map(|port| 20_000 + u16::try_from(port).expect("small"));
    tried.find_map(|port| TcpListener::bind(("127.0.0.1", port)).ok()).expect("a free port")
}

impl Double {
    /// Starts a server without TLS.
    pub(crate) fn start(name: &str) -> Double {
        Double::on(name, None, None)
    }

    /// Starts a server with TLS and its own CA.
    pub(crate) fn start_tls(name: &str) -> Double {
        let authority = Authority::new();
        let (chain, key) = authority.pair("an API server");
        let chain = CertificateDer::pem_slice_iter(chain.as_bytes()).map(|der| der.expect("PEM")).collect();
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("a key");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .expect("a pair");
        Double::on(name, Some(Arc::new(config)), Some(authority.pem))
    }

    fn on(name: &str, tls: Option<Arc<ServerConfig>>, authority: Option<String>) -> Double {
        let listener = listen();
        let address = listener.local_addr().expect("an address");
        let state = State { version: 100, minor: "37".to_owned(), ..State::default() };
        let folder = Arc::new(Folder::new(&format!("double-{name}")));
        let double =
            Double { state: Arc::new((Mutex::new(state), Condvar::new())), address, tls, authority, folder };
        double.serve(listener);
        double
    }

    /// Writes a kubeconfig for the double.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        let (scheme, host) = if self.tls.is_some() { ("https", "localhost") } else { ("http", "127.0.0.1") };
        let mut cluster = json!({"server": format!("{scheme}://{host}:{}", self.address.port())});
        if let Some(authority) = &self.authority {
            let file = self.folder.0.join("ca.crt");
            std::fs::write(&file, authority).expect("written");
            cluster["certificate-authority"] = json!(file);
        }
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "double",
            "clusters": [{"name": "double", "cluster": cluster}],
            "users": [{"name": "us", "user": {"token": "a token of ours"}}],
            "contexts": [{"name": "double", "context": {"cluster": "double", "user": "us"}}],
        });
        let file = self.folder.0.join("kubeconfig");
        std::fs::write(&file, config.to_string()).expect("written");
        file
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.0.lock().expect("no panic inside")
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let changed = change(&mut self.state());
        self.state.1.notify_all();
        changed
    }

    fn serve(&self, listener: TcpListener) {
        let double = self.clone();
        self.state().listening = true;
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                if double.state().gone {
                    drop(listener);
                    return double.change(|state| state.listening = false);
                }
                double.state().connections.push(socket.try_clone().expect("cloned"));
                let double = double.clone();
                std::thread::spawn(move || {
                    // A connection that breaks is what the tests are about.
                    let _ = double.talk(socket);
                });
            }
        });
    }

    fn talk(&self, socket: TcpStream) -> io::Result<()> {
        socket.set_nodelay(true)?;
        let mut stream = Stream::new(socket, self.tls.as_ref())?;
        let mut unread = Vec::new();
        while let Some(request) = Request::read(&mut stream, &mut unread)? {
            self.answer(&mut stream, &request)?;
        }
        Ok(())
    }

    fn answer(&self, stream: &mut Stream, request: &Request) -> io::Result<()> {
        let Request { method, path, .. } = request;
        let line = format!(
            "{method} {path}?{}",
            request.query.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&")
        );
        let refused = {
            let mut state = self.state();
            state.seen.push(format!("{line} {}", request.header("accept")));
            state.refused.iter().find(|(part, _)| line.contains(part)).map(|(_, code)| *code)
        };
        if request.header("authorization") != "Bearer a token of ours" {
            return stream.answer(401, &status(401, "Unauthorized"));
        }
        if let Some(code) = refused {
            let message = format!("{path} is forbidden: User \"us\" cannot do this at the cluster scope");
            return stream.answer(code, &status(code, &message));
        }
        // The audit log of an API server knows the requests of Tollgate by this.
        if !request.header("accept").is_empty() && !request.header("user-agent").starts_with("tollgate/") {
            return stream.answer(400, &status(400, "a request without a User-Agent"));
        }
        // Tollgate names a media type in every request; tests that look at the double themselves name none.
        if !request.header("accept").is_empty() && !is_listed(request) {
            let message =
                format!("{line} is forbidden: there is no such row in crates/cluster/src/api_calls.rs");
            return stream.answer(403, &status(403, &message));
        }
        let metadata_only = request.header("accept").contains("PartialObjectMetadata");
        let text = self.state().texts.get(path).filter(|_| method == "GET").cloned();
        if let Some(text) = text {
            return stream.answer_text(&text);
        }
        if path == "/version" {
            let minor = self.state().minor.clone();
            return stream
                .answer(200, &json!({"major": "1", "minor": minor, "gitVersion": format!("v1.{minor}.4")}));
        }
        if let (true, Some(text)) = (path == "/metrics", self.state().metrics.clone()) {
            return stream.answer_text(&text);
        }
        if let Some((code, found)) = self.discover_policies(path) {
            return stream.answer(code, &found);
        }
        if let Some(found) = self.discover(path) {
            return stream.answer(200, &found);
        }
        // A list in one namespace is a part of the list of all of them.
        if method == "GET"
            && let Some((group, rest)) = path.split_once("/namespaces/")
            && let Some((namespace, resource)) = rest.split_once('/')
            && self.state().objects.contains_key(&format!("{group}/{resource}"))
        {
            let (code, list) =
                self.list(&format!("{group}/{resource}"), Some(namespace), request, metadata_only);
            return stream.answer(code, &list);
        }
        let is_collection = self.state().objects.contains_key(path);
        match method.as_str() {
            "GET" if is_collection && request.query("watch") == "true" => {
                self.watch(stream, request, metadata_only)
            }
            "GET" if is_collection => {
                let (code, list) = self.list(path, None, request, metadata_only);
                stream.answer(code, &list)
            }
            "GET" => {
                let (collection, name) = located(path);
                let found =
                    self.state().objects.get(&collection).and_then(|objects| objects.get(&name)).cloned();
                match found {
                    Some(object) => stream.answer(200, &visible_part(&object, metadata_only)),
                    None => stream.answer(404, &status(404, &format!("{path} not found"))),
                }
            }
            "POST" if path.ends_with("/eviction") => {
                let (code, answer) = self.evict(request);
                stream.answer(code, &answer)
            }
            "POST" if path.ends_with("/selfsubjectaccessreviews") => {
                let mut review: Value = serde_json::from_slice(&request.body).expect("JSON");
                review["status"] = json!({"allowed": true});
                stream.answer(201, &review)
            }
            "POST" => self.create(stream, request),
            "PUT" => {
                let (code, answer) = self.update(request);
                stream.answer(code, &answer)
            }
            "DELETE" => {
                let (code, answer) = self.delete_if_same(request, path, "");
                stream.answer(code, &answer)
            }
            "PATCH" if request.header("content-type") == "application/merge-patch+json" => {
                let change: Value = serde_json::from_slice(&request.body).expect("JSON");
                let (collection, name) = split(path.strip_suffix("/status").unwrap_or(path));
                let Some(mut object) = self.object(&collection, &name) else {
                    return stream.answer(404, &status(404, &format!("{path} not found")));
                };
                let version = &change["metadata"]["resourceVersion"];
                if !version.is_null() && *version != object["metadata"]["resourceVersion"] {
                    return stream.answer(409, &status(409, "the object has been modified"));
                }
                merge_patch(&mut object, &change);
                fill_in(&mut object);
                self.put(&collection, object.clone());
                stream.answer(200, &object)
            }
            "PATCH" => {
                assert_eq!(request.header("content-type"), "application/apply-patch+yaml");
                assert_eq!((request.query("fieldManager"), request.query("force")), ("tollgate", "true"));
                let applied: Value = serde_json::from_slice(&request.body).expect("JSON");
                let (collection, name) = split(path);
                let object = self.apply(&collection, &name, &applied);
                stream.answer(200, &object)
            }
            _ => stream.answer(405, &status(405, "not here")),
        }
    }

    /// Discovery of resource.k8s.io.
    fn discover(&self, path: &str) -> Option<Value> {
        let rest = path.strip_prefix("/apis/resource.k8s.io")?;
        let state = self.state();
        if rest.is_empty() && !state.discovery.is_empty() {
            let versions: Vec<Value> =
                state.discovery.keys().map(|version| json!({"version": version})).collect();
            return Some(json!({"kind": "APIGroup", "versions": versions}));
        }
        let kinds = state.discovery.get(rest.strip_prefix('/')?)?;
        let resource = |(kind, name): &(String, String)| {
            [json!({"name": name, "kind": kind}), json!({"name": format!("{name}/status"), "kind": kind})]
        };
        let resources: Vec<Value> = kinds.iter().flat_map(resource).collect();
        Some(json!({"kind": "APIResourceList", "resources": resources}))
    }

    /// Creates an object, if the registered webhooks admit it.
    fn create(&self, stream: &mut Stream, request: &Request) -> io::Result<()> {
        // What this library cannot read, a real server may.
        let mut object: Value =
            serde_json::from_slice(&request.body).unwrap_or_else(|_| json!({"metadata": {}}));
        if !object["metadata"].is_object() {
            object["metadata"] = json!({});
        }
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let planned = self.state().answers.get(name).cloned();
        if let Some((code, answer)) = planned {
            return stream.answer(code, &answer);
        }
        let resource = request.path.rsplit('/').next().unwrap_or_default();
        let mut parts = request.path.trim_start_matches("/apis/").split('/');
        let (group, version) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        if let Some(namespace) =
            request.path.split("/namespaces/").nth(1).and_then(|rest| rest.split('/').next())
        {
            object["metadata"]["namespace"] = json!(namespace);
        }
        let registered = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
        let configurations = self.state().objects.get(registered).cloned().unwrap_or_default();
        let webhooks = configurations.values().filter_map(|found| found["webhooks"].as_array().cloned());
        let mut warnings = Vec::new();
        for webhook in webhooks.flatten() {
            let rule = &webhook["rules"][0];
            let has =
                |list: &Value, word: &str| list.as_array().is_some_and(|list| list.contains(&json!(word)));
            let selected = webhook["objectSelector"]["matchLabels"].as_object().is_none_or(|labels| {
                labels.iter().all(|(key, value)| object["metadata"]["labels"][key] == *value)
            });
            if !has(&rule["resources"], resource) || !has(&rule["apiVersions"], version) || !selected {
                continue;
            }
            let review = json!({
                "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
                "request": {
                    "uid": "u-1", "operation": "CREATE", "name": object["metadata"]["name"], "object": object,
                    "namespace": object["metadata"]["namespace"].as_str().unwrap_or_default(),
                    "kind": {"group": group, "version": version, "kind": object["kind"]},
                    "resource": {"group": group, "version": version, "resource": resource},
                    "dryRun": request.query("dryRun") == "All", "userInfo": {"username": "us"},
                },
            });
            let answer = call(&webhook["clientConfig"], &review);
            let told = answer["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str);
            warnings.extend(told.map(str::to_owned));
            if answer["allowed"] != true {
                let code = answer["status"]["code"].as_u64().and_then(|code| u16::try_from(code).ok());
                return stream.answer_warning(code.unwrap_or(400), &answer["status"], &warnings);
            }
        }
        // What lives in a namespace is listed across all of them.
        let collection = match request.path.split_once("/namespaces/") {
            Some((group, rest)) if rest.contains('/') => format!("{group}/{resource}"),
            _ => request.path.clone(),
        };
        if request.query("dryRun") != "All" {
            self.put(&collection, object.clone());
        }
        stream.answer_warning(201, &object, &warnings)
    }

    fn list(
        &self,
        collection: &str,
        namespace: Option<&str>,
        request: &Request,
        metadata_only: bool,
    ) -> (u16, Value) {
        let mut state = self.state();
        let token = request.query("continue");
        if !token.is_empty()
            && let Some(goes_on) = state.expires.take()
        {
            let mut gone = status(410, "The provided continue parameter is too old");
            if goes_on {
                gone["metadata"] = json!({"continue": token});
            }
            return (410, gone);
        }
        if let Some((after, code)) = state.broken_after
            && token.parse::<usize>().is_ok_and(|from| from >= after)
        {
            return (code, status(code, "etcdserver: request timed out"));
        }
        let selected: Vec<&Value> = state.objects[collection]
            .values()
            .filter(|object| namespace.is_none_or(|namespace| object["metadata"]["namespace"] == namespace))
            .filter(|object| is_selected(object, request.query("fieldSelector")))
            .collect();
        let limit = state.page.or(request.query("limit").parse().ok()).unwrap_or(usize::MAX).max(1);
        let from: usize = request.query("continue").parse().unwrap_or_default();
        let items: Vec<Value> = selected
            .iter()
            .skip(from)
            .take(limit)
            .map(|object| visible_part(object, metadata_only))
            .collect();
        let mut metadata = json!({"resourceVersion": state.version.to_string()});
        if from + items.len() < selected.len() {
            metadata["continue"] = json!((from + items.len()).to_string());
            metadata["remainingItemCount"] = json!(selected.len() - from - items.len());
        }
        let kind = if metadata_only { "PartialObjectMetadataList" } else { list_kind(collection) };
        (200, json!({"apiVersion": "v1", "kind": kind, "metadata": metadata, "items": items}))
    }

    fn watch(&self, stream: &mut Stream, request: &Request, metadata_only: bool) -> io::Result<()> {
        assert_eq!(request.query("allowWatchBookmarks"), "true");
        let mut version: u64 = request.query("resourceVersion").parse().expect("a version");
        let seconds = request.query("timeoutSeconds").parse().unwrap_or(300);
        let end = Instant::now() + Duration::from_secs(seconds);
        stream.begin()?;
        let mut state = self.state();
        if version < state.oldest {
            drop(state);
            let gone = json!({"type": "ERROR", "object": status(410, "too old resource version")});
            stream.chunk(format!("{gone}\n").as_bytes())?;
            return stream.chunk(b"");
        }
        let broken = state.broken;
        state.watching.push(request.path.clone());
        self.state.1.notify_all();
        let outcome = loop {
            let news: Vec<&Event> = state
                .events
                .iter()
                .filter(|(at, path, kind, object)| {
                    !state.muted
                        && *at > version
                        // An event after the end of the watch would hide events that were lost before it.
                        && (state.broken == broken || *at <= state.ended_at)
                        && *path == request.path
                        && (*kind == "BOOKMARK" || is_selected(object, request.query("fieldSelector")))
                })
                .collect();
            if let Some((last, ..)) = news.last() {
                version = *last;
                let told: Vec<Value> = news
                    .iter()
                    .flat_map(|event| state.told(event))
                    .map(|(_, _, kind, object)| {
                        json!({"type": kind, "object": visible_part(object, metadata_only)})
                    })
                    .collect();
                if told.is_empty() {
                    continue;
                }
                drop(state);
                let mut text = String::new();
                for event in &told {
                    text.push_str(&go_text(event));
                    text.push('\n');
                }
                // One event in two chunks: a line may arrive in pieces.
                let (first, second) = text.as_bytes().split_at(text.len() / 2);
                let sent = stream.chunk(first).and_then(|()| stream.chunk(second));
                state = self.state();
                if sent.is_err() {
                    break sent;
                }
                continue;
            }
            if state.broken > broken || Instant::now() >= end {
                drop(state);
                let ended = stream.chunk(b"");
                state = self.state();
                break ended;
            }
            if state.gone {
                break Err(io::ErrorKind::ConnectionAborted.into());
            }
            state = self.state.1.wait_timeout(state, Duration::from_millis(50)).expect("no panic inside").0;
        };
        if let Some(at) = state.watching.iter().position(|path| *path == request.path) {
            state.watching.remove(at);
        }
        outcome
    }

    /// Server-side apply, as far as webhook configurations need it.
    fn apply(&self, collection: &str, name: &str, applied: &Value) -> Value {
        self.change(|state| {
            let objects = state.objects.entry(collection.to_owned()).or_default();
            let before = objects.get(name).cloned();
            let mut object = before.clone().unwrap_or_else(|| json!({"metadata": {}}));
            merge(&mut object, applied);
            fill_in(&mut object);
            if before.as_ref() == Some(&object) {
                return object;
            }
            state.put(collection, name, object)
        })
    }

    // — what tests do to it —

    /// Serves a collection without objects.
    pub(crate) fn serves(&self, collection: &str) {
        self.change(|state| {
            state.objects.entry(collection.to_owned()).or_default();
        });
    }

    /// Writes an object like another client.
    pub(crate) fn put(&self, collection: &str, object: Value) {
        let metadata = &object["metadata"];
        let namespace = metadata["namespace"].as_str().map(|namespace| format!("{namespace}/"));
        let name = format!("{}{}", namespace.unwrap_or_default(), metadata["name"].as_str().expect("a name"));
        self.change(|state| drop(state.put(collection, &name, object)));
    }

    /// Deletes an object like another client.
    pub(crate) fn delete(&self, collection: &str, name: &str) {
        self.change(|state| {
            let objects = state.objects.get_mut(collection).expect("a collection");
            let mut object = objects.remove(name).expect("an object");
            state.version += 1;
            object["metadata"]["resourceVersion"] = json!(state.version.to_string());
            state.events.push((state.version, collection.to_owned(), "DELETED", object));
        });
    }

    /// The stored object, if any.
    pub(crate) fn object(&self, collection: &str, name: &str) -> Option<Value> {
        self.state().objects.get(collection).and_then(|objects| objects.get(name)).cloned()
    }

    /// All objects of a collection.
    pub(crate) fn objects(&self, collection: &str) -> Vec<Value> {
        self.state()
            .objects
            .get(collection)
            .map(|objects| objects.values().cloned().collect())
            .unwrap_or_default()
    }

    /// Fails requests whose line contains one of these texts, with its status code. An empty list restores
    /// normal operation.
    pub(crate) fn refuse(&self, refused: &[(&'static str, u16)]) {
        self.change(|state| state.refused = refused.to_vec());
    }

    /// Ends all open watches regularly.
    pub(crate) fn end_watches(&self) {
        self.change(State::end_watches);
    }

    /// Drops old versions, so that watches from them must list again.
    pub(crate) fn forget(&self) {
        self.change(|state| {
            state.version += 10;
            state.oldest = state.version;
            state.events.clear();
        });
    }

    /// Drops all but so many events, as etcd does every few minutes; open watches continue.
    #[allow(dead_code, reason = "only `make soak` runs for long enough")]
    pub(crate) fn compact(&self, kept: usize) {
        self.change(|state| {
            let dropped = state.events.len().saturating_sub(kept);
            if let Some((version, ..)) = state.events.drain(..dropped).next_back() {
                state.oldest = version;
            }
        });
    }

    /// Closes every connection abruptly.
    pub(crate) fn close_connections(&self) {
        let connections = self.change(|state| std::mem::take(&mut state.connections));
        for connection in connections {
            let _ = connection.shutdown(Shutdown::Both);
        }
    }

    /// Stops listening.
    pub(crate) fn stop_listening(&self) {
        self.change(|state| state.gone = true);
        // The listener wakes up, sees that it is to go, and closes the port.
        let _ = TcpStream::connect(self.address);
        self.until("nobody listens", |double| !double.state().listening);
        self.close_connections();
    }

    /// Listens again, on the same port.
    pub(crate) fn listen_again(&self) {
        self.change(|state| state.gone = false);
        let listener = TcpListener::bind(self.address).expect("the port is ours again");
        self.serve(listener);
    }

    /// Sends a bookmark event to every watch of a collection.
    pub(crate) fn bookmark(&self, collection: &str) {
        self.change(|state| {
            state.version += 1;
            let version = state.version.to_string();
            let object = json!({"apiVersion": "v1", "kind": "X", "metadata": {"resourceVersion": version}});
            state.events.push((state.version, collection.to_owned(), "BOOKMARK", object));
        });
    }

    /// Sets the page size of lists.
    pub(crate) fn page(&self, size: usize) {
        self.change(|state| state.page = Some(size));
    }

    /// Fails the next request for a further page with 410.
    pub(crate) fn expire_next_page(&self, goes_on: bool) {
        self.change(|state| state.expires = Some(goes_on));
    }

    /// Fails list requests for pages after this number of objects.
    pub(crate) fn break_lists_after(&self, objects: usize, code: u16) {
        self.change(|state| state.broken_after = Some((objects, code)));
    }

    /// `METHOD path?query` of every request so far.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.state().seen.clone()
    }

    /// Sets the reported release.
    pub(crate) fn release(&self, minor: &str) {
        self.change(|state| minor.clone_into(&mut state.minor));
    }

    /// Reports these feature gates in its metrics.
    pub(crate) fn report_gates(&self, gates: &[(&str, bool)]) {
        let other = |name: &str| {
            let line = |index: usize| format!("{name}{{le=\"{index}\"}} 1\n");
            format!("# TYPE {name} counter\n{}", (0..20_000).map(line).collect::<String>())
        };
        let line = |(name, on): &(&str, bool)| {
            format!("kubernetes_feature_enabled{{name=\"{name}\",stage=\"BETA\"}} {}\n", i32::from(*on))
        };
        // Many others, as in a real one: chunks end everywhere.
        let others = |letter: &str| -> String {
            (0..999).map(|index| line(&(&*format!("{letter}{index}"), true))).collect()
        };
        let gates: String = gates.iter().map(line).collect();
        let gates = [others("A"), gates, others("Z")].concat();
        let text = format!(
            "{}# TYPE kubernetes_feature_enabled gauge\n{gates}{}",
            other("a_total"),
            other("z_total")
        );
        self.change(|state| state.metrics = Some(text));
    }

    /// Replaces the metrics, or removes them.
    pub(crate) fn report_metrics(&self, text: Option<&str>) {
        self.change(|state| state.metrics = text.map(str::to_owned));
    }

    /// Serves these kinds in a version of resource.k8s.io.
    pub(crate) fn serve_kinds(&self, version: &str, kinds: &[&str]) {
        let resource = |kind: &&str| {
            let name = kind.to_lowercase();
            ((*kind).to_owned(), if name.ends_with("class") { name + "es" } else { name + "s" })
        };
        let kinds = kinds.iter().map(resource).collect();
        self.change(|state| state.discovery.insert(version.to_owned(), kinds));
    }

    /// Sets the response to the creation of the object with this name.
    pub(crate) fn plan(&self, name: &str, code: u16, answer: Value) {
        self.change(|state| state.answers.insert(name.to_owned(), (code, answer)));
    }

    /// Returns `text` for requests to this path.
    pub(crate) fn answer_with(&self, path: &str, text: &str) {
        self.change(|state| _ = state.texts.insert(path.to_owned(), text.to_owned()));
    }

    /// Stops the events of open watches, or resumes them.
    pub(crate) fn mute(&self, muted: bool) {
        self.change(|state| state.muted = muted);
    }

    /// Makes watches lie, or stops that.
    pub(crate) fn lie(&self, lies: Lies) {
        self.change(|state| state.lies = lies);
    }

    /// Number of requests so far that contain this text.
    pub(crate) fn count(&self, part: &str) -> usize {
        self.state().seen.iter().filter(|line| line.contains(part)).count()
    }

    /// Waits until something about the double is true.
    pub(crate) fn until(&self, what: &str, holds: impl Fn(&Double) -> bool) {
        crate::running::until(what, || holds(self));
    }

    /// Waits until a watch of the collection is open.
    pub(crate) fn until_watched(&self, collection: &str) {
        self.until(&format!("a watch of {collection}"), |double| {
            double.state().watching.iter().any(|path| path == collection)
        });
    }
}

impl State {
    /// What a watch sends for an event: it, and nothing else, unless watches lie.
    fn told<'s>(&'s self, event: &'s Event) -> Vec<&'s Event> {
        let (at, path, _, object) = event;
        let mut told = vec![event];
        if self.lies.duplicates {
            told.push(event);
        }
        if self.lies.stale {
            let is_same = |(other, of, _, earlier): &&Event| {
                other < at && of == path && earlier["metadata"]["name"] == object["metadata"]["name"]
            };
            told.extend(self.events.iter().rfind(is_same));
        }
        if self.lies.silence || self.lies.gaps && at.is_multiple_of(3) {
            told.clear();
        }
        told
    }

    fn end_watches(&mut self) {
        self.broken += 1;
        self.ended_at = self.version;
    }

    fn put(&mut self, collection: &str, name: &str, mut object: Value) -> Value {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        if object["metadata"]["uid"].is_null() {
            object["metadata"]["uid"] = json!(format!("u-{}", self.version));
        }
        let objects = self.objects.entry(collection.to_owned()).or_default();
        let kind =
            if objects.insert(name.to_owned(), object.clone()).is_some() { "MODIFIED" } else { "ADDED" };
        self.events.push((self.version, collection.to_owned(), kind, object.clone()));
        object
    }
}

/// Calls a webhook like an API server, trusting only the registered CA bundle.
fn call(config: &Value, review: &Value) -> Value {
    let url = config["url"].as_str().expect("a URL");
    let (authority, path) = url.trim_start_matches("https://").split_once('/').expect("a path");
    let port = authority.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
    let bundle = STANDARD.decode(config["caBundle"].as_str().expect("a bundle")).expect("base64");
    let client =
        Client::new(SocketAddr::from(([127, 0, 0, 1], port)), &String::from_utf8(bundle).expect("PEM"));
    let reply =
        client.post(&format!("/{path}?timeout=3s"), review.to_string().as_bytes()).expect("an answer");
    let answer: Value = serde_json::from_slice(&reply.body).expect("JSON");
    answer["response"].clone()
}

/// The object as sent to a client, reduced to its metadata if requested.
fn visible_part(object: &Value, metadata_only: bool) -> Value {
    if metadata_only {
        json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": object["metadata"]})
    } else {
        object.clone()
    }
}

/// The kind of a list of a collection.
fn list_kind(collection: &str) -> &'static str {
    match collection.rsplit('/').next().unwrap_or_default() {
        "pods" => "PodList",
        "namespaces" => "NamespaceList",
        "poddisruptionbudgets" => "PodDisruptionBudgetList",
        "resourceslices" => "ResourceSliceList",
        "resourceclaims" => "ResourceClaimList",
        "resourceclaimtemplates" => "ResourceClaimTemplateList",
        "resourceclasses" => "ResourceClassList",
        "deviceclasses" => "DeviceClassList",
        "devicetaintrules" => "DeviceTaintRuleList",
        "foundationdbclusters" => "FoundationDBClusterList",
        "nodes" => "NodeList",
        "replicasets" => "ReplicaSetList",
        "deployments" => "DeploymentList",
        "statefulsets" => "StatefulSetList",
        "daemonsets" => "DaemonSetList",
        "jobs" => "JobList",
        "cronjobs" => "CronJobList",
        "jobsets" => "JobSetList",
        "leaderworkersets" => "LeaderWorkerSetList",
        "podgroups" => "PodGroupList",
        "tolerationpolicies" => "TolerationPolicyList",
        "taintpolicies" => "TaintPolicyList",
        "taintrulepolicies" => "TaintRulePolicyList",
        "parameterpolicies" => "ParameterPolicyList",
        "clusterroles" => "ClusterRoleList",
        "validatingwebhookconfigurations" => "ValidatingWebhookConfigurationList",
        "mutatingwebhookconfigurations" => "MutatingWebhookConfigurationList",
        other => panic!("the kind of {other} is not known here"),
    }
}

fn is_selected(object: &Value, selector: &str) -> bool {
    let name = selector.strip_prefix("metadata.name=");
    name.is_none_or(|name| object["metadata"]["name"] == name)
}

/// `/apis/g/v1/namespaces/a/things/name` → the collection of all namespaces, and the name with its namespace.
fn located(path: &str) -> (String, String) {
    match path.split_once("/namespaces/").and_then(|(group, rest)| Some((group, rest.split_once('/')?))) {
        Some((group, (namespace, rest))) => {
            let (collection, name) = split(rest);
            (format!("{group}/{collection}"), format!("{namespace}/{name}"))
        }
        None => split(path),
    }
}

/// `/apis/g/v1/things/name` → the collection and the name.
fn split(path: &str) -> (String, String) {
    let (collection, name) = path.rsplit_once('/').unwrap_or(("", path));
    (collection.to_owned(), name.to_owned())
}

fn status(code: u16, message: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code})
}

/// Adds the fields that an API server sets on new objects.
fn fill_in(object: &mut Value) {
    // Not by index, which would add the field to objects without it.
    for webhook in object.get_mut("webhooks").and_then(Value::as_array_mut).into_iter().flatten() {
        if webhook.get("objectSelector").is_none() {
            webhook["objectSelector"] = json!({});
        }
    }
}

/// Applies a JSON merge patch (RFC 7386).
fn merge_patch(object: &mut Value, change: &Value) {
    let Value::Object(change) = change else {
        *object = change.clone();
        return;
    };
    if !object.is_object() {
        *object = json!({});
    }
    for (name, value) in change {
        if value.is_null() {
            object.as_object_mut().expect("an object").remove(name);
        } else {
            merge_patch(&mut object[name], value);
        }
    }
}

fn merge(object: &mut Value, applied: &Value) {
    match (object, applied) {
        (Value::Object(object), Value::Object(applied)) => {
            for (name, value) in applied {
                merge(object.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        // Lists of webhooks are merged by name, others are replaced.
        (Value::Array(object), Value::Array(applied))
            if applied.iter().all(|item| item.get("clientConfig").is_some()) =>
        {
            for item in applied {
                match object.iter_mut().find(|known| known["name"] == item["name"]) {
                    Some(known) => merge(known, item),
                    None => object.push(item.clone()),
                }
            }
        }
        (object, applied) => *object = applied.clone(),
    }
}
