//! How the API server double handles updates, deletions and evictions: it compares versions and UIDs, as a real one
//! does.

use serde_json::{Value, json};

use super::{Double, located, status};
use crate::http::Request;

fn body(request: &Request) -> Value {
    serde_json::from_slice(&request.body).unwrap_or(Value::Null)
}

impl Double {
    /// Replaces an object, if it is still of the version that is given.
    pub(super) fn update(&self, request: &Request) -> (u16, Value) {
        let (collection, name) = located(&request.path);
        let Some(stored) = self.object(&collection, &name) else {
            return (404, status(404, &format!("{} not found", request.path)));
        };
        let mut object = body(request);
        let version = &object["metadata"]["resourceVersion"];
        if !version.is_null() && *version != stored["metadata"]["resourceVersion"] {
            return (409, status(409, "the object has been modified"));
        }
        object["metadata"]["uid"] = stored["metadata"]["uid"].clone();
        if request.query("dryRun") != "All" {
            self.put(&collection, object);
            object = self.object(&collection, &name).expect("it was put");
        }
        (200, object)
    }

    /// Deletes the object at a path, if its preconditions hold, which are in a part of the body.
    pub(super) fn delete_if_same(&self, request: &Request, path: &str, part: &str) -> (u16, Value) {
        let (collection, name) = located(path);
        let Some(stored) = self.object(&collection, &name) else {
            return (404, status(404, &format!("{path} not found")));
        };
        let options = if part.is_empty() { body(request) } else { body(request)[part].clone() };
        for field in ["uid", "resourceVersion"] {
            let expected = &options["preconditions"][field];
            if !expected.is_null() && *expected != stored["metadata"][field] {
                return (409, status(409, &format!("Precondition failed: {field}")));
            }
        }
        if request.query("dryRun") != "All" {
            self.delete(&collection, &name);
        }
        (200, json!({"kind": "Status", "status": "Success"}))
    }

    /// Evicts a pod, unless the answer is planned: that of a PodDisruptionBudget.
    pub(super) fn evict(&self, request: &Request) -> (u16, Value) {
        let eviction = body(request);
        let name = eviction["metadata"]["name"].as_str().unwrap_or_default();
        if let Some(planned) = self.state().answers.get(name) {
            return planned.clone();
        }
        let pod = request.path.trim_end_matches("/eviction");
        match self.delete_if_same(request, pod, "deleteOptions") {
            (200, answer) => (201, answer),
            refused => refused,
        }
    }
}
