//! Which webhook configuration is meant: its resource, name and paths.

use tollgate_document::doc;

const API_PATH: &str = "/apis/admissionregistration.k8s.io/v1";

/// Resource and name of the webhook configuration that is registered.
pub(super) struct WebhookConfigRef {
    pub(super) resource: &'static str,
    pub(super) name: String,
}

impl WebhookConfigRef {
    /// The target that a manifest (JSON) names; an error if it is not a webhook configuration.
    pub(super) fn from_manifest(manifest: &str) -> anyhow::Result<WebhookConfigRef> {
        let manifest = doc::parse(manifest).map_err(|error| anyhow::anyhow!(error.detail))?;
        let resource = match manifest.root().get("kind").str() {
            "ValidatingWebhookConfiguration" => "validatingwebhookconfigurations",
            "MutatingWebhookConfiguration" => "mutatingwebhookconfigurations",
            other => anyhow::bail!("{other} is not a webhook configuration"),
        };
        Ok(WebhookConfigRef { resource, name: manifest.root().get("metadata").get("name").str().to_owned() })
    }

    pub(super) fn path(&self) -> String {
        format!("{API_PATH}/{}/{}", self.resource, self.name)
    }

    /// The path of a list with at most this object. A watch can start at the resourceVersion of a list, but not always
    /// at that of an old object.
    pub(super) fn single_object_list_path(&self) -> String {
        format!("{API_PATH}/{}?fieldSelector=metadata.name%3D{}", self.resource, self.name)
    }
}
