//! Pods and workloads with pod templates: only the fields about ResourceClaims.

use super::{ClassicTemplate, View, view};
use crate::profile::ApiKind;
use tollgate_document::doc::{Value, ValueKind};

/// A Pod, or a kind with a template of pods.
#[derive(Clone, Copy, Debug)]
pub struct PodOrWorkload<'d> {
    /// Kind of the object.
    pub kind: ApiKind,
    /// The root value of the object.
    pub value: Value<'d>,
}

impl<'d> PodOrWorkload<'d> {
    /// The fields that lead to the PodSpec.
    pub fn pod_spec_path(self) -> &'static [&'static str] {
        match self.kind {
            ApiKind::Pod => &["spec"],
            ApiKind::CronJob => &["spec", "jobTemplate", "spec", "template", "spec"],
            _ => &["spec", "template", "spec"],
        }
    }

    /// The PodSpec of the pod or pod template.
    pub fn pod_spec(self) -> PodClaims<'d> {
        PodClaims(self.pod_spec_path().iter().fold(self.value, |value, step| value.get(step)))
    }
}

view! {
    /// The fields of a PodSpec that are about claims.
    PodClaims {
        resource_claims: list<PodClaim> = "resourceClaims",
        init_containers: list<Container> = "initContainers",
        containers: list<Container> = "containers",
        ephemeral_containers: list<Container> = "ephemeralContainers",
    }

    /// PodResourceClaim.
    PodClaim {
        name: str = "name",
        resource_claim_name: opt_str = "resourceClaimName",
        resource_claim_template_name: opt_str = "resourceClaimTemplateName",
        /// `template` (KEP-3063)
        template: opt<ClassicTemplate> = "template",
    }

    /// Container, of any sort.
    Container {
        resources: one<Resources> = "resources",
    }

    /// ResourceRequirements.
    Resources {
        claims: list<ContainerClaim> = "claims",
    }

    /// A claim that a container uses: an object, or (KEP-3063) only its name.
    ContainerClaim {
        request: str = "request",
    }
}

impl<'d> ContainerClaim<'d> {
    /// The name in `resourceClaims` of the pod.
    pub fn name(self) -> &'d str {
        if self.is_name_only() { self.0.str() } else { self.0.get("name").str() }
    }

    /// True if it is written as a name only, as in KEP-3063.
    pub fn is_name_only(self) -> bool {
        self.json().kind() == ValueKind::String
    }
}
