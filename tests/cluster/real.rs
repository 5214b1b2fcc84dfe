//! What only a real API server shows: `make e2e` plays it after [`crate::e2e`].
//!
//! Match conditions, garbage collection and immutable fields are the API server's; a double would only show what its
//! author believes. Everything made here has a name and a label of this run and is deleted at the end.

use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use crate::e2e::{Api, Callable, CreatedObjects, LABEL, MUTATING, VALIDATING, served};
use crate::running::{Folder, until};

const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";

struct Run<'a> {
    api: &'a Api,
    name: String,
    claims: String,
    folder: Folder,
}

fn policy(name: &str, kind: &str, spec: &str) -> String {
    format!(
        "apiVersion: tollgate.dev/v1alpha1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec: {spec}\n---\n"
    )
}

impl Run<'_> {
    fn write(&self, more: &str) {
        let name = &self.name;
        let defaults = format!(
            "{{match: {{namespaces: [{name}]}}, defaults: [{{key: example.com/slow, operator: Exists, effect: NoSchedule}}]}}"
        );
        let text = policy("defaults", "TolerationPolicy", &defaults)
            + &policy("keys", "TaintPolicy", "{deny: [{key: example.com/denied}]}")
            + more;
        std::fs::write(self.folder.0.join("policy.yaml"), text).expect("written");
    }

    fn serve(&self, here: &Callable) -> Command {
        let (label, owner) = (format!("{LABEL}={}", self.name), self.name.as_str());
        let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
        command
            .args(["serve", "--listen", &format!("0.0.0.0:{}", here.port), "--ops-listen", "127.0.0.1:0"])
            .args(["--register", &here.url, "--register-name", &self.name, "--register-only", &label])
            .args([
                "--register-owner",
                owner,
                "--reload-interval",
                "200ms",
                "--log-format",
                "text",
                "--policy",
            ])
            .arg(&self.folder.0)
            .stdout(Stdio::null());
        command
    }

    /// A claim in the newest version, as [`served`] found it.
    fn claim(&self, object: &str, spec: &Value) -> Value {
        let version =
            self.claims.trim_start_matches("/apis/").split("/namespaces/").next().unwrap_or_default();
        let metadata = json!({"name": object, "labels": {LABEL: self.name}});
        json!({"apiVersion": version, "kind": "ResourceClaim", "metadata": metadata, "spec": spec})
    }

    /// Regression test: claims without requests were denied, because the server sends `"requests": null`.
    fn claims_without_requests(&self) {
        let shapes = [
            json!({}),
            json!({"devices": {}}),
            json!({"devices": {"requests": []}}),
            json!({"devices": {"requests": null}}),
        ];
        for (index, spec) in shapes.iter().enumerate() {
            let name = format!("empty-{index}");
            let created = self.api.create(&self.claims, &self.claim(&name, spec));
            assert_eq!(created.0, 201, "{spec}: {}", created.1);
            let label = json!({"metadata": {"labels": {"a": "b"}}});
            assert_eq!(self.api.change(&format!("{}/{name}", self.claims), &label).0, 200, "{spec}");
        }
    }

    /// Regression test: default tolerations of policies broke the second apply of the same file.
    fn second_apply(&self) {
        let request = if self.claims.contains("/v1beta1/") {
            json!({"name": "r", "deviceClassName": "a"})
        } else {
            json!({"name": "r", "exactly": {"deviceClassName": "a"}})
        };
        let spec = json!({"devices": {"requests": [request]}});
        let claim = self.claim("again", &spec);
        let path = format!("{}/again", self.claims);
        let created = self.api.create(&self.claims, &claim);
        assert_eq!(created.0, 201, "{}", created.1);
        assert!(created.1["spec"].to_string().contains("example.com/slow"), "{}", created.1);
        for _ in 0..2 {
            let apply = format!("{path}?fieldManager=e2e&force=true");
            let applied = self.api.send_review("PATCH", &apply, "application/apply-patch+yaml", Some(&claim));
            assert_eq!(applied.0, 200, "{}", applied.1);
            let replaced = self.api.send_review("PUT", &path, "application/json", Some(&claim));
            assert_eq!(replaced.0, 200, "{}", replaced.1);
            assert!(replaced.2.join("").contains("restored 1 toleration"), "{:?}", replaced.2);
            assert_eq!(replaced.1["spec"], created.1["spec"]);
        }
    }

    /// Regression test: an object being deleted could be changed without checks.
    fn being_deleted(&self, rules: &str) {
        let version = rules.trim_start_matches("/apis/").trim_end_matches("/devicetaintrules");
        let metadata =
            json!({"name": self.name, "labels": {LABEL: self.name}, "finalizers": ["example.com/e2e"]});
        let rule = json!({
            "apiVersion": version, "kind": "DeviceTaintRule", "metadata": metadata,
            "spec": {
                "deviceSelector": {"driver": "none.example.com", "pool": self.name},
                "taint": {"key": "example.com/fine", "effect": "None"},
            },
        });
        let path = format!("{rules}/{}", self.name);
        assert_eq!(self.api.create(rules, &rule).0, 201);
        assert_eq!(self.api.delete(&path).0, 200);
        let changed = self.api.change(&path, &json!({"spec": {"taint": {"key": "example.com/denied"}}}));
        assert_eq!(changed.0, 403, "{}", changed.1);
        assert_eq!(self.api.change(&path, &json!({"metadata": {"labels": {"a": "b"}}})).0, 200);
    }

    /// Regression test: an added match condition disabled enforcement.
    fn narrowing(&self, validating: &str) {
        let before = self.api.get(validating).1["webhooks"].clone();
        let added = json!([{"op": "add", "path": "/webhooks/0/matchConditions/-", "value": {"name": "off", "expression": "false"}}]);
        assert_eq!(
            self.api.send_review("PATCH", validating, "application/json-patch+json", Some(&added)).0,
            200
        );
        until("the condition is gone", || self.api.get(validating).1["webhooks"] == before);
    }

    /// Regression test: a claim without tolerations did not reach `validations`.
    fn reload(&self) {
        self.write(&policy(
            "names",
            "TolerationPolicy",
            "{validations: [{expression: \"object.metadata.name != 'no'\", message: not this one}]}",
        ));
        until("the new policy answers", || {
            let refused = self.api.create(&self.claims, &self.claim("no", &json!({})));
            if refused.0 == 201 {
                assert_eq!(self.api.delete(&format!("{}/no", self.claims)).0, 200);
            }
            refused.0 == 403
        });
    }

    /// Webhook configurations are deleted with their owner, and recreated within 10 s of a new one.
    fn owner(&self, validating: &str) {
        let role = json!({"metadata": {"name": self.name}, "rules": []});
        assert_eq!(self.api.delete(&format!("{ROLES}/{}", self.name)).0, 200);
        until("collected", || !self.api.is_there(validating));
        assert_eq!(self.api.create(ROLES, &role).0, 201);
        let began = Instant::now();
        until("registered again", || self.api.is_there(validating));
        println!("registered again {:?} after the owner was created", began.elapsed());
    }
}

pub(crate) fn play(api: &Api, here: &Callable) {
    let name = format!("tollgate-e2e-real-{}", std::process::id());
    let claims = served(api, &name, "resourceclaims").expect("the API server serves resourceclaims");
    let run = Run { api, name: name.clone(), claims, folder: Folder::new("e2e-real") };
    run.write("");
    assert_eq!(api.create(ROLES, &json!({"metadata": {"name": name}, "rules": []})).0, 201);
    let (validating, mutating) = (format!("{VALIDATING}/{name}"), format!("{MUTATING}/{name}"));
    let namespace = format!("/api/v1/namespaces/{name}");
    let rules = served(api, "", "devicetaintrules");
    let rule = rules.as_ref().map(|rules| format!("{rules}/{name}"));
    let paths = [validating.clone(), mutating.clone(), namespace, format!("{ROLES}/{name}")];
    let mut made = CreatedObjects {
        api,
        paths: rule.iter().cloned().chain(paths).collect(),
        child: run.serve(here).spawn().expect("started"),
    };
    let created = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    assert_eq!(api.create("/api/v1/namespaces", &created).0, 201);
    until("registered", || api.is_there(&validating) && api.is_there(&mutating));
    // The API server learns of a configuration a moment later.
    std::thread::sleep(std::time::Duration::from_secs(2));
    run.claims_without_requests();
    run.second_apply();
    if let Some(rules) = &rules {
        run.being_deleted(rules);
    }
    run.narrowing(&validating);
    run.reload();
    run.owner(&validating);
    // Nobody answers: labels and finalizers can still be changed, and nothing that fails closed gets past.
    until("calls again", || api.create(&run.claims, &run.claim("no", &json!({}))).0 == 403);
    made.child.kill().expect("ended");
    made.child.wait().expect("ended");
    assert_eq!(
        api.change(&format!("{}/again", run.claims), &json!({"metadata": {"labels": {"c": "d"}}})).0,
        200
    );
    if let Some(rule) = &rule {
        let refused = api.change(rule, &json!({"spec": {"taint": {"key": "example.com/other"}}}));
        assert_eq!(refused.0, 500, "{}", refused.1);
        assert_eq!(api.change(rule, &json!({"metadata": {"finalizers": null}})).0, 200);
        until("the rule is gone", || !api.is_there(rule));
    }
}
