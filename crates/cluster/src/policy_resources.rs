//! The requests for policies that are custom resources: a watch of them, whether their kinds are installed, and the
//! status that one replica writes.
//!
//! Deleting a CustomResourceDefinition deletes its objects first, so a watch alone cannot tell whether policies were
//! deleted on purpose. The discovery can: while a definition is being deleted, its objects cannot be created.

use std::sync::Arc;
use std::time::Duration;

use super::Cluster;
use super::api_error::ApiError;
use super::listed_kind::{ListedKind, POLICY_GROUP, POLICY_KINDS, POLICY_VERSION};
use super::object_watch::{ObjectWatch, ProjectFn};
use super::register::FIELD_MANAGER;
use super::retry::Timing;
use super::watch::percent_encode;
use tollgate_document::doc::{self, Builder, Syntax};

/// The name of the Lease of the replica that writes the status of policies.
pub const POLICY_LEASE: &str = "tollgate-policies";

/// Folder of the manifests with the permissions that the watches need, for messages.
const ROLE_FOLDER: &str = "manifests/components/policy-resources";

impl Cluster {
    /// Starts to watch all policies, for the life of the process.
    ///
    /// A change must be in force within two seconds, so an API server that returns is noticed sooner than by the other
    /// watches, and so is one that vanished without closing the connection. Policies are few, and one that is missed
    /// admits what it should deny, so they are listed again when a watch ends.
    pub fn watch_policies(&self) -> ObjectWatch {
        let usual = self.client.timing;
        let max_backoff = usual.max_backoff.min(Duration::from_secs(1));
        let timing = Timing {
            min_backoff: usual.min_backoff.min(Duration::from_millis(200)),
            max_backoff,
            stable_after: usual.stable_after.min(Duration::from_secs(2)),
            not_served_delay: max_backoff,
            watch_timeout: usual.watch_timeout.min(Duration::from_secs(20)),
            silence_timeout: usual.silence_timeout.min(Duration::from_secs(25)),
            request_timeout: usual.request_timeout.min(Duration::from_secs(5)),
            list_after_watch: true,
            ..usual
        };
        let whole: ProjectFn = Arc::new(|_, _, object| {
            let mut copy = Builder::with_capacity("", Syntax::Json, object.node_count());
            copy.copy(object);
            Ok(copy.finish())
        });
        ObjectWatch::start(&self.with_timing(timing), &POLICY_KINDS, &[], &whole, ROLE_FOLDER)
    }

    /// The kinds of policies whose objects can be created: installed and not being deleted. Must not be called on the
    /// cluster's thread.
    pub fn creatable_policy_kinds(&self) -> Result<Vec<ListedKind>, ApiError> {
        let path = format!("/apis/{POLICY_GROUP}/{POLICY_VERSION}");
        self.block_on_request(|client| async move {
            let Some(text) = client.get_if_exists(&path).await? else { return Ok(Vec::new()) };
            parse_creatable_policy_kinds(&text).ok_or_else(ApiError::not_json)
        })
    }

    /// Changes the status of a policy by a JSON merge patch. Must not be called on the cluster's thread.
    pub fn patch_policy_status(&self, kind: &ListedKind, name: &str, patch: String) -> Result<(), ApiError> {
        let path = format!("{}/{}/status", kind.list_path(POLICY_VERSION, None), percent_encode(name));
        self.block_on_request(|client| async move {
            client.merge_patch(&path, FIELD_MANAGER, patch).await.map(drop)
        })
    }
}

/// The kinds of policies in an APIResourceList (JSON) whose objects can be created; `None` if the text is something
/// else.
fn parse_creatable_policy_kinds(text: &str) -> Option<Vec<ListedKind>> {
    let list = doc::parse(text).ok()?;
    let list = list.root();
    (list.get("kind").str() == "APIResourceList").then_some(())?;
    let can_create = |kind: &&ListedKind| {
        let mut resources = list.get("resources").items();
        resources.any(|resource| {
            resource.get("name").str() == kind.resource
                && resource.get("verbs").items().any(|verb| verb.str() == "create")
        })
    };
    Some(POLICY_KINDS.iter().filter(can_create).copied().collect())
}

#[cfg(test)]
mod tests {
    use super::{POLICY_KINDS, parse_creatable_policy_kinds};

    #[test]
    fn a_definition_that_is_being_deleted_does_not_count() {
        let list = r#"{"kind":"APIResourceList","resources":[
            {"name":"tolerationpolicies","verbs":["delete","get","list","create","watch"]},
            {"name":"tolerationpolicies/status","verbs":["get","patch","update"]},
            {"name":"taintpolicies","verbs":["delete","deletecollection","get","list","watch"]}]}"#;
        assert_eq!(parse_creatable_policy_kinds(list), Some(vec![POLICY_KINDS[0]]));
        for other in ["", "{}", r#"{"kind":"Status"}"#, "<html>"] {
            assert_eq!(parse_creatable_policy_kinds(other), None, "{other}");
        }
    }
}
