//! How the API server double serves policies: with discovery, a status subresource, and definitions that can be
//! deleted.

use serde_json::{Value, json};
use tollgate::cluster::POLICY_KINDS;

use super::{Double, status};

/// The collection of TolerationPolicies.
pub(crate) const TOLERATION_POLICIES: &str = "/apis/tollgate.dev/v1alpha1/tolerationpolicies";
/// The collection of Leases.
pub(crate) const LEASES: &str = "/apis/coordination.k8s.io/v1/leases";
const GROUP: &str = "/apis/tollgate.dev/v1alpha1";

impl Double {
    /// The definitions of all kinds of policies are installed, and there is the Lease of the manifests.
    pub(crate) fn install_policies(&self) {
        for kind in POLICY_KINDS {
            self.serves(&format!("{GROUP}/{}", kind.resource));
        }
        self.change(|state| state.policy_verbs = &["get", "list", "create"]);
        let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": "tollgate-policies", "namespace": "tollgate-system"}});
        if self.object(LEASES, "tollgate-system/tollgate-policies").is_none() {
            self.put(LEASES, lease);
        }
    }

    /// Somebody deletes the definitions: first all objects go, and then the kinds.
    pub(crate) fn delete_definitions(&self) {
        self.change(|state| state.policy_verbs = &["get", "list"]);
        for kind in POLICY_KINDS {
            let collection = format!("{GROUP}/{}", kind.resource);
            for object in self.objects(&collection) {
                self.delete(&collection, object["metadata"]["name"].as_str().expect("a name"));
            }
        }
    }

    /// The definitions are gone.
    pub(crate) fn forget_definitions(&self) {
        self.change(|state| {
            for kind in POLICY_KINDS {
                state.objects.remove(&format!("{GROUP}/{}", kind.resource));
            }
            state.end_watches();
        });
    }

    /// The discovery documents of the installed CustomResourceDefinitions. Objects of those that are being
    /// deleted cannot be created.
    pub(super) fn discover_policies(&self, path: &str) -> Option<(u16, Value)> {
        (path == GROUP).then_some(())?;
        let state = self.state();
        let verbs = state.policy_verbs;
        let resources: Vec<Value> = POLICY_KINDS
            .iter()
            .filter(|kind| state.objects.contains_key(&format!("{GROUP}/{}", kind.resource)))
            .map(|kind| json!({"name": kind.resource, "kind": kind.kind, "verbs": verbs}))
            .collect();
        if resources.is_empty() {
            return Some((404, status(404, "the server could not find the requested resource")));
        }
        Some((200, json!({"kind": "APIResourceList", "resources": resources})))
    }
}
