//! From one end to the other: an API server that calls us by what we registered.
//!
//! `cargo test` plays it with the double. `make e2e` plays the same with the cluster of `KUBECONFIG`; its API server
//! must reach this machine at `TOLLGATE_E2E_URL` (https://host:port, a port of this machine). Everything made there
//! has a name that begins with `tollgate-e2e-` and is deleted at the end, come what may; only objects that carry a
//! label of this run are sent to us, and the one DeviceTaintRule is a dry run.

use std::process::{Child, Command, Stdio};

use http::Request;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};

use crate::double::{Double, listen};
use crate::running::{Folder, until};

pub(crate) const LABEL: &str = "tollgate-e2e";
pub(crate) const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
pub(crate) const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";

/// A client for a real API server.
pub(crate) struct Api {
    runtime: tokio::runtime::Runtime,
    client: kube::Client,
}

/// Status code, body and warnings.
pub(crate) type Reply = (u16, Value, Vec<String>);

impl Api {
    fn open(kubeconfig: Option<&std::path::Path>) -> Api {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let client = runtime.block_on(async {
            let config = match kubeconfig {
                Some(file) => {
                    let text = Kubeconfig::read_from(file).expect("a kubeconfig");
                    kube::Config::from_custom_kubeconfig(text, &KubeConfigOptions::default())
                        .await
                        .expect("usable")
                }
                None => kube::Config::infer().await.expect("a kubeconfig"),
            };
            kube::Client::try_from(config).expect("credentials")
        });
        Api { runtime, client }
    }

    pub(crate) fn send_review(
        &self,
        method: &str,
        path: &str,
        media_type: &str,
        body: Option<&Value>,
    ) -> Reply {
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string().into_bytes()));
        let request = Request::builder().method(method).uri(path).header("content-type", media_type);
        let request = request.body(body).expect("a request");
        self.runtime.block_on(async {
            let response = self.client.send(request).await.expect("an answer");
            let code = response.status().as_u16();
            let warnings = response.headers().get_all("warning").iter();
            let warnings = warnings.filter_map(|value| value.to_str().ok()).map(str::to_owned).collect();
            let bytes = response.into_body().collect_bytes().await.expect("a body");
            (code, serde_json::from_slice(&bytes).unwrap_or_default(), warnings)
        })
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        self.send_review("GET", path, "application/json", None)
    }

    pub(crate) fn create(&self, path: &str, object: &Value) -> Reply {
        self.send_review("POST", path, "application/json", Some(object))
    }

    pub(crate) fn change(&self, path: &str, change: &Value) -> Reply {
        self.send_review("PATCH", path, "application/merge-patch+json", Some(change))
    }

    pub(crate) fn delete(&self, path: &str) -> Reply {
        self.send_review("DELETE", path, "application/json", None)
    }

    pub(crate) fn is_there(&self, path: &str) -> bool {
        self.get(path).0 == 200
    }
}

/// The objects that a test created, which are deleted when the value is dropped.
pub(crate) struct CreatedObjects<'a> {
    pub(crate) api: &'a Api,
    pub(crate) paths: Vec<String>,
    pub(crate) child: Child,
}

impl Drop for CreatedObjects<'_> {
    fn drop(&mut self) {
        // The server first: it would put right what is taken from it.
        let _ = self.child.kill();
        let _ = self.child.wait();
        for path in &self.paths {
            if self.api.is_there(path) {
                println!("delete {path}: {}", self.api.delete(path).0);
            }
        }
    }
}

/// An address that the API server can call.
pub(crate) struct Callable {
    pub(crate) url: String,
    pub(crate) port: String,
}

impl Callable {
    fn of(url: &str) -> Callable {
        let authority = url.trim_start_matches("https://").trim_end_matches('/');
        let (_, port) = authority.rsplit_once(':').expect("TOLLGATE_E2E_URL is https://host:port");
        Callable { url: url.to_owned(), port: port.to_owned() }
    }
}

#[test]
fn an_api_server_calls_us_by_what_we_registered() {
    if let Ok(url) = std::env::var("TOLLGATE_E2E_URL") {
        let (api, here) = (Api::open(None), Callable::of(&url));
        play(&api, None, &here);
        crate::definitions::play(&api);
        return crate::real::play(&api, &here);
    }
    let double = Double::start("e2e");
    for collection in [
        VALIDATING,
        MUTATING,
        "/api/v1/namespaces",
        "/api/v1/pods",
        "/apis/policy/v1/poddisruptionbudgets",
        "/apis/resource.k8s.io/v1/resourceslices",
        "/apis/resource.k8s.io/v1/resourceclaims",
        "/apis/resource.k8s.io/v1/devicetaintrules",
    ] {
        double.serves(collection);
    }
    let port = listen().local_addr().expect("an address").port();
    let kubeconfig = double.kubeconfig();
    play(
        &Api::open(Some(&kubeconfig)),
        Some(&kubeconfig),
        &Callable::of(&format!("https://localhost:{port}")),
    );
    // Nothing is left.
    for collection in [VALIDATING, MUTATING] {
        assert_eq!(double.count(&format!("DELETE {collection}")), 1);
    }
    assert_eq!(double.count("DELETE /api/v1/namespaces"), 1);
}

fn play(api: &Api, kubeconfig: Option<&std::path::Path>, here: &Callable) {
    let name = format!("tollgate-e2e-{}", std::process::id());
    let (_, version, _) = api.get("/version");
    println!("API server {}, called at {}, objects named {name}", version["gitVersion"], here.url);
    let claims = served(api, &name, "resourceclaims").expect("the API server serves resourceclaims");
    let folder = Folder::new("e2e");
    let policy = folder.0.join("policy.yaml");
    std::fs::write(&policy, policies(&name)).expect("written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    command
        .args([
            "serve",
            "--listen",
            &format!("0.0.0.0:{}", here.port),
            "--ops-listen",
            "127.0.0.1:0",
            "--cluster",
        ])
        .args([
            "--register",
            &here.url,
            "--register-name",
            &name,
            "--register-only",
            &format!("{LABEL}={name}"),
        ])
        .args(["--cluster-retry", "1s", "--log-format", "text"])
        .arg("--policy")
        .arg(&policy)
        .stdout(Stdio::null());
    if let Some(kubeconfig) = kubeconfig {
        command.arg("--kubeconfig").arg(kubeconfig).args(["--log-level", "off"]);
    }
    let (validating, mutating) = (format!("{VALIDATING}/{name}"), format!("{MUTATING}/{name}"));
    let namespace = format!("/api/v1/namespaces/{name}");
    let mut made = CreatedObjects {
        api,
        paths: vec![validating.clone(), mutating.clone(), namespace.clone()],
        child: command.spawn().expect("started"),
    };
    let labels = json!({LABEL: name, "team": "ml"});
    let created = api.create(
        "/api/v1/namespaces",
        &json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels},
        }),
    );
    assert_eq!(created.0, 201, "{}", created.1);
    until("both configurations are registered", || {
        let ended = made.child.try_wait().expect("our child");
        assert!(ended.is_none(), "the server ended before it was registered: {ended:?}");
        api.is_there(&validating) && api.is_there(&mutating)
    });

    // What may be tolerated is, what may not is not, and who is not labelled is not asked about.
    let claim = |object: &str, label: &str, key: &str| {
        let request = json!({"deviceClassName": "none.example.com", "tolerations": [
            {"key": key, "operator": "Exists", "effect": "NoSchedule"},
        ]});
        let shaped = if claims.contains("/v1beta1/") {
            let mut flat = request;
            flat["name"] = json!("r");
            flat
        } else {
            json!({"name": "r", "exactly": request})
        };
        let group = claims.trim_start_matches("/apis/").trim_end_matches("/resourceclaims");
        let group = group.split("/namespaces/").next().unwrap_or_default();
        let metadata = json!({"name": object, "labels": {LABEL: label}});
        let spec = json!({"devices": {"requests": [shaped]}});
        let object =
            json!({"apiVersion": group, "kind": "ResourceClaim", "metadata": metadata, "spec": spec});
        api.create(&claims, &object)
    };
    let good = claim("good", &name, "example.com/slow");
    assert_eq!(good.0, 201, "{}", good.1);
    let bad = claim("bad", &name, "example.com/broken");
    assert_eq!(bad.0, 403, "{}", bad.1);
    assert!(bad.1["message"].to_string().contains("is not allowed"), "{}", bad.1);
    assert_eq!(
        claim("elsewhere", "of-another-run", "example.com/broken").0,
        201,
        "only labelled objects are sent"
    );

    // The labels of the namespace decide, as they are now.
    assert_eq!(api.change(&namespace, &json!({"metadata": {"labels": {"team": "web"}}})).0, 200);
    let mut tries = 0;
    until("the namespace is another team's", || {
        tries += 1;
        claim(&format!("later-{tries}"), &name, "example.com/broken").0 == 201
    });

    // A rule is told with what it will do; nobody's devices are selected, and nothing is kept.
    if let Some(rules) = served(api, "", "devicetaintrules") {
        let group = rules.trim_start_matches("/apis/").trim_end_matches("/devicetaintrules");
        let rule = json!({
            "apiVersion": group, "kind": "DeviceTaintRule", "metadata": {"name": name, "labels": {LABEL: name}},
            "spec": {
                "deviceSelector": {"driver": "none.example.com", "pool": name},
                "taint": {"key": "example.com/broken", "effect": "NoExecute"},
            },
        });
        let (code, answer, warnings) = api.create(&format!("{rules}?dryRun=All"), &rule);
        assert_eq!(code, 201, "{answer}");
        assert!(warnings.join("\n").contains("selects 0 devices and evicts 0 pods"), "{warnings:?}");
    } else {
        println!("no DeviceTaintRule is served: its impact is not looked at");
    }

    // Somebody empties the registration.
    let count = |path: &str| {
        let (_, object, _) = api.get(path);
        object["webhooks"].as_array().map_or(0, Vec::len)
    };
    let (validates, mutates) = (count(&validating), count(&mutating));
    assert!(validates > 2 && mutates > 0, "{validates} {mutates}");
    assert_eq!(api.change(&validating, &json!({"webhooks": []})).0, 200);
    until("it is put right", || count(&validating) == validates);
    // Somebody deletes it: it stays away. The other one, which is put right, shows that we are still at it.
    assert_eq!(api.delete(&validating).0, 200);
    assert_eq!(api.change(&mutating, &json!({"webhooks": []})).0, 200);
    until("the other is put right", || count(&mutating) == mutates);
    assert!(!api.is_there(&validating), "what was deleted stays deleted");
    drop(made);
}

/// The path of the newest version of a resource that is served; in a namespace, if one is given.
pub(crate) fn served(api: &Api, namespace: &str, resource: &str) -> Option<String> {
    let versions = ["v1", "v1beta2", "v1beta1", "v1alpha3"].into_iter();
    let mut groups = versions.map(|version| format!("/apis/resource.k8s.io/{version}"));
    let group = groups.find(|group| api.is_there(&format!("{group}/{resource}")))?;
    let place = if namespace.is_empty() { String::new() } else { format!("/namespaces/{namespace}") };
    Some(format!("{group}{place}/{resource}"))
}

fn policies(name: &str) -> String {
    format!(
        "apiVersion: tollgate.dev/v1alpha1\nkind: TolerationPolicy\nmetadata: {{name: {name}}}\nspec:\n  \
         match: {{namespaces: [{name}], namespaceSelector: {{matchLabels: {{team: ml}}}}}}\n  action: Deny\n  \
         allow:\n  - {{key: example.com/slow}}\n  \
         defaults:\n  - {{key: example.com/slow, operator: Exists, effect: NoSchedule}}\n"
    )
}
