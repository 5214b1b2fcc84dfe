//! The requests with which `tollgate drain` changes a cluster, and those that it sends right before a change.
//!
//! The list is closed: [`Cluster::send`] takes nothing else, so a drain cannot change anything else. Each request is
//! data, so that it can be recorded and compared. Nothing is retried here, because only the caller knows whether a
//! request that got no response may be sent again.
//!
//! Invariant: no request deletes or evicts without the UID of what it deletes, and none has an empty name, by which the
//! path of an object becomes that of all objects.

use http::Method;

use super::Cluster;
use super::api_error::ApiError;
use super::listed_kind::{DEVICE_TAINT_RULES, ListedKind, PODS};
use super::watch::percent_encode;
use tollgate_api::profile::Version;
use tollgate_document::doc::OwnedJsonValue;

/// The name of the Lease that one drain at a time holds.
pub const DRAIN_LEASE: &str = "tollgate-drain";

/// A request of `tollgate drain`. Objects are JSON.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DrainApiRequest {
    /// Creates a DeviceTaintRule.
    CreateRule {
        /// The version of the object.
        version: Version,
        object: String,
        /// The API server checks the request and stores nothing.
        is_dry_run: bool,
    },
    /// Replaces a DeviceTaintRule. Without `metadata.resourceVersion` in the object, changes of others are overwritten.
    UpdateRule {
        /// The version of the object.
        version: Version,
        name: String,
        object: String,
        /// The API server checks the request and stores nothing.
        is_dry_run: bool,
    },
    /// Deletes a DeviceTaintRule, if it is still the one that was read.
    DeleteRule { version: Version, name: String, uid: String, resource_version: String },
    /// Gets a DeviceTaintRule.
    GetRule { version: Version, name: String },
    /// Evicts a pod, if its PodDisruptionBudgets allow it (otherwise 429) and it is still the one with that UID (409).
    EvictPod { namespace: String, name: String, uid: String },
    /// Deletes a pod with the grace period of the pod, if it is still the one with that UID.
    DeletePod { namespace: String, name: String, uid: String },
    /// Gets the Lease [`DRAIN_LEASE`].
    GetLease { namespace: String },
    /// Replaces the Lease [`DRAIN_LEASE`]. Without `metadata.resourceVersion` in the object, changes of others are
    /// overwritten.
    UpdateLease { namespace: String, object: String },
    /// Asks with a SelfSubjectAccessReview whether the user may do something.
    ReviewAccess(AccessAttributes),
}

/// The attributes of a SelfSubjectAccessReview: may the user do this? Empty fields are left out.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AccessAttributes {
    /// Verb, such as `create`.
    pub verb: String,
    /// Empty for the core group.
    pub group: String,
    /// Plural name of the resource, such as `pods`.
    pub resource: String,
    /// Subresource, such as `eviction`; empty for the object itself.
    pub subresource: String,
    /// Namespace; empty for all namespaces, and for resources without namespaces.
    pub namespace: String,
    /// Name of the object; empty for all objects.
    pub name: String,
}

impl DrainApiRequest {
    /// The method and the path with its query, such as `("GET", "/apis/resource.k8s.io/v1/devicetaintrules/drain")`.
    pub fn method_and_path(&self) -> (&'static str, String) {
        use DrainApiRequest as Request;
        let rules = |version: &Version| DEVICE_TAINT_RULES.list_path(version.name(), None);
        match self {
            Request::CreateRule { version, is_dry_run, .. } => {
                ("POST", format!("{}?{}", rules(version), strict_validation_query(*is_dry_run)))
            }
            Request::UpdateRule { version, name, is_dry_run, .. } => {
                let path = object_path(&DEVICE_TAINT_RULES, version.name(), None, name);
                ("PUT", format!("{path}?{}", strict_validation_query(*is_dry_run)))
            }
            Request::DeleteRule { version, name, .. } => {
                ("DELETE", object_path(&DEVICE_TAINT_RULES, version.name(), None, name))
            }
            Request::GetRule { version, name } => {
                ("GET", object_path(&DEVICE_TAINT_RULES, version.name(), None, name))
            }
            Request::EvictPod { namespace, name, .. } => {
                ("POST", object_path(&PODS, "v1", Some(namespace), name) + "/eviction")
            }
            Request::DeletePod { namespace, name, .. } => {
                ("DELETE", object_path(&PODS, "v1", Some(namespace), name))
            }
            Request::GetLease { namespace } => ("GET", drain_lease_path(namespace)),
            Request::UpdateLease { namespace, .. } => ("PUT", drain_lease_path(namespace)),
            Request::ReviewAccess(_) => {
                ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews".to_owned())
            }
        }
    }

    /// True if the request changes rules or pods.
    pub fn changes_rules_or_pods(&self) -> bool {
        use DrainApiRequest as Request;
        match self {
            Request::CreateRule { is_dry_run, .. } | Request::UpdateRule { is_dry_run, .. } => !is_dry_run,
            Request::DeleteRule { .. } | Request::EvictPod { .. } | Request::DeletePod { .. } => true,
            Request::GetRule { .. }
            | Request::GetLease { .. }
            | Request::UpdateLease { .. }
            | Request::ReviewAccess(_) => false,
        }
    }

    /// The JSON that is sent; `None` for a GET.
    pub fn body(&self) -> Option<String> {
        use DrainApiRequest as Request;
        match self {
            Request::GetRule { .. } | Request::GetLease { .. } => None,
            Request::CreateRule { object, .. }
            | Request::UpdateRule { object, .. }
            | Request::UpdateLease { object, .. } => Some(object.clone()),
            Request::DeleteRule { uid, resource_version, .. } => {
                Some(delete_options(&[("uid", uid), ("resourceVersion", resource_version)]).to_json())
            }
            Request::DeletePod { uid, .. } => Some(delete_options(&[("uid", uid)]).to_json()),
            Request::EvictPod { namespace, name, uid } => {
                let eviction = OwnedJsonValue::Object(vec![
                    ("apiVersion", OwnedJsonValue::str("policy/v1")),
                    ("kind", OwnedJsonValue::str("Eviction")),
                    ("metadata", json_of_nonempty_members(&[("name", name), ("namespace", namespace)])),
                    ("deleteOptions", delete_options(&[("uid", uid)])),
                ]);
                Some(eviction.to_json())
            }
            Request::ReviewAccess(asked) => {
                let attributes = json_of_nonempty_members(&[
                    ("namespace", &asked.namespace),
                    ("verb", &asked.verb),
                    ("group", &asked.group),
                    ("resource", &asked.resource),
                    ("subresource", &asked.subresource),
                    ("name", &asked.name),
                ]);
                let review = OwnedJsonValue::Object(vec![
                    ("apiVersion", OwnedJsonValue::str("authorization.k8s.io/v1")),
                    ("kind", OwnedJsonValue::str("SelfSubjectAccessReview")),
                    ("spec", OwnedJsonValue::Object(vec![("resourceAttributes", attributes)])),
                ]);
                Some(review.to_json())
            }
        }
    }

    /// The values in the request that must not be empty: names, namespaces, UIDs, versions and objects.
    fn values_that_must_not_be_empty(&self) -> Vec<&str> {
        use DrainApiRequest as Request;
        match self {
            Request::CreateRule { object, .. } => vec![object],
            Request::UpdateRule { name, object, .. } => vec![name, object],
            Request::DeleteRule { name, uid, resource_version, .. } => vec![name, uid, resource_version],
            Request::GetRule { name, .. } => vec![name],
            Request::EvictPod { namespace, name, uid } | Request::DeletePod { namespace, name, uid } => {
                vec![namespace, name, uid]
            }
            Request::GetLease { namespace } => vec![namespace],
            Request::UpdateLease { namespace, object } => vec![namespace, object],
            Request::ReviewAccess(asked) => vec![&asked.verb, &asked.resource],
        }
    }
}

impl Cluster {
    /// Sends a request once, and returns the status code and the body of the response even if the status is an error.
    /// An [`ApiError::Unreachable`] does not say whether the request was carried out. Must not be called on the
    /// cluster's thread.
    pub fn send(&self, request: DrainApiRequest) -> Result<(u16, String), ApiError> {
        let (method, path) = request.method_and_path();
        // In a path, `.` and `..` are not names.
        if request.values_that_must_not_be_empty().iter().any(|text| matches!(*text, "" | "." | "..")) {
            return Err(ApiError::Unexpected(format!(
                "{method} {path} is not sent: a name or UID is missing"
            )));
        }
        let method = Method::from_bytes(method.as_bytes())
            .map_err(|error| ApiError::Unexpected(format!("{method}: {error}")))?;
        self.block_on_request(|client| async move {
            let response = client.send_with_any_status(method, &path, request.body()).await?;
            Ok((response.status().as_u16(), response.into_body()))
        })
    }
}

/// The path of one object.
fn object_path(kind: &ListedKind, version: &str, namespace: Option<&str>, name: &str) -> String {
    format!("{}/{}", kind.list_path(version, namespace), percent_encode(name))
}

/// The path of the Lease [`DRAIN_LEASE`] in a namespace.
fn drain_lease_path(namespace: &str) -> String {
    let namespace = percent_encode(namespace);
    format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{DRAIN_LEASE}")
}

/// The parameters of a request that writes a rule. A rule with a field that this API server does not know could select
/// more devices than intended.
fn strict_validation_query(is_dry_run: bool) -> &'static str {
    if is_dry_run { "fieldValidation=Strict&dryRun=All" } else { "fieldValidation=Strict" }
}

/// Returns a JSON object of those members that are not empty.
fn json_of_nonempty_members(members: &[(&'static str, &String)]) -> OwnedJsonValue {
    let given = members.iter().filter(|(_, text)| !text.is_empty());
    OwnedJsonValue::Object(given.map(|(key, text)| (*key, OwnedJsonValue::str(text.as_str()))).collect())
}

/// Returns the body of a DELETE that fails unless the preconditions hold. The grace period is that of the object.
fn delete_options(preconditions: &[(&'static str, &String)]) -> OwnedJsonValue {
    OwnedJsonValue::Object(vec![
        ("apiVersion", OwnedJsonValue::str("v1")),
        ("kind", OwnedJsonValue::str("DeleteOptions")),
        ("preconditions", json_of_nonempty_members(preconditions)),
    ])
}

#[cfg(test)]
mod tests {
    use super::{AccessAttributes, DrainApiRequest, Version};

    /// Every request as it is sent. A dry run is a part of the path, where a reader of a log sees it.
    #[test]
    fn requests_are_those_of_the_api() {
        let text = |text: &str| text.to_owned();
        let object = || text("{}");
        let pod = DrainApiRequest::EvictPod { namespace: text("ml"), name: text("chat-0"), uid: text("u") };
        let review = AccessAttributes {
            verb: text("create"),
            resource: text("pods"),
            subresource: text("eviction"),
            ..AccessAttributes::default()
        };
        let rules = "/apis/resource.k8s.io/v1beta2/devicetaintrules";
        let options = r#""apiVersion":"v1","kind":"DeleteOptions""#;
        let eviction = format!(
            r#"{{"apiVersion":"policy/v1","kind":"Eviction","metadata":{{"name":"chat-0","namespace":"ml"}},"deleteOptions":{{{options},"preconditions":{{"uid":"u"}}}}}}"#
        );
        let version = Version::V1beta2;
        let lease = "/apis/coordination.k8s.io/v1/namespaces/tollgate-system/leases/tollgate-drain";
        for (request, line, body) in [
            (
                DrainApiRequest::CreateRule { version, object: object(), is_dry_run: false },
                format!("POST {rules}?fieldValidation=Strict"),
                object(),
            ),
            (
                DrainApiRequest::UpdateRule {
                    version,
                    name: text("a/b"),
                    object: object(),
                    is_dry_run: true,
                },
                format!("PUT {rules}/a%2Fb?fieldValidation=Strict&dryRun=All"),
                object(),
            ),
            (
                DrainApiRequest::DeleteRule {
                    version,
                    name: text("r"),
                    uid: text("u"),
                    resource_version: text("7"),
                },
                format!("DELETE {rules}/r"),
                format!(r#"{{{options},"preconditions":{{"uid":"u","resourceVersion":"7"}}}}"#),
            ),
            (DrainApiRequest::GetRule { version, name: text("r") }, format!("GET {rules}/r"), String::new()),
            (pod, text("POST /api/v1/namespaces/ml/pods/chat-0/eviction"), eviction),
            (
                DrainApiRequest::DeletePod { namespace: text("ml"), name: text("chat-0"), uid: text("u") },
                text("DELETE /api/v1/namespaces/ml/pods/chat-0"),
                format!(r#"{{{options},"preconditions":{{"uid":"u"}}}}"#),
            ),
            (
                DrainApiRequest::GetLease { namespace: text("tollgate-system") },
                format!("GET {lease}"),
                String::new(),
            ),
            (
                DrainApiRequest::UpdateLease { namespace: text("tollgate-system"), object: object() },
                format!("PUT {lease}"),
                object(),
            ),
            (
                DrainApiRequest::ReviewAccess(review),
                text("POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
                text(
                    r#"{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{"resourceAttributes":{"verb":"create","resource":"pods","subresource":"eviction"}}}"#,
                ),
            ),
        ] {
            let (method, path) = request.method_and_path();
            assert_eq!(format!("{method} {path}"), line);
            assert_eq!(request.body().unwrap_or_default(), body, "{line}");
        }
    }
}
