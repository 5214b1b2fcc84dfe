//! The claims and claim templates among the objects that are checked together, by name.
//!
//! Pure data; the caller that reads the objects adds them. The namespace of a claim is unknown if the file does not
//! state it, or if the claim is applied to another namespace. Nothing is reported for a name that has a claim in an
//! unknown namespace.

use std::collections::BTreeMap;

use tollgate_api::profile::ApiKind;
use tollgate_document::doc::Value;
use tollgate_formats::names;

/// Claims and claim templates by kind and name, with their namespaces and positions.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ClaimLocations(BTreeMap<(Box<str>, Box<str>), Vec<ClaimLocation>>);

/// The namespace and source position of a claim or claim template.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClaimLocation {
    /// Namespace of the claim; empty if unknown.
    pub namespace: Box<str>,
    pub file: Box<str>,
    pub line: usize,
}

/// The claims and claim templates of all files that are checked in one run, and the file that contains the checked
/// object. They tell whether a pod names a claim that exists only in another namespace.
#[derive(Clone, Copy, Debug)]
pub struct ClaimsInFiles<'c> {
    /// All claims and claim templates of the run.
    pub known: &'c ClaimLocations,
    /// The file with the checked object. Of several claims, the one in the nearest folder is named.
    pub file: &'c str,
}

impl ClaimLocations {
    /// Adds an object if it is a claim or a claim template; does nothing otherwise. `is_moved` is true if it is applied
    /// to another namespace than it states, so that its namespace counts as unknown.
    pub fn add_if_claim(&mut self, object: Value<'_>, file: &str, line: usize, is_moved: bool) {
        let metadata = object.get("metadata");
        let (kind, name) = (object.get("kind").str(), metadata.get("name").str());
        let kinds = [ApiKind::ResourceClaim, ApiKind::ResourceClaimTemplate];
        let is_claim = kinds.iter().any(|known| known.name() == kind)
            && object.get("apiVersion").str().starts_with("resource.k8s.io/");
        if is_claim && !name.is_empty() {
            let namespace = metadata.get("namespace").str();
            // What is no name is filled in later.
            let namespace = if is_moved || !names::is_dns_label(namespace) { "" } else { namespace };
            let claim = ClaimLocation { namespace: namespace.into(), file: file.into(), line };
            self.0.entry((kind.into(), name.into())).or_default().push(claim);
        }
    }

    /// True if there are no claims or templates.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'c> ClaimsInFiles<'c> {
    /// Returns the claim or template of that kind and name that is in another namespace; of several, the one whose file
    /// is in the nearest folder. `None` if there is none, or if one of that name is or may be in `namespace`.
    pub fn nearest_if_only_in_other_namespaces(
        self,
        kind: ApiKind,
        name: &str,
        namespace: &str,
    ) -> Option<&'c ClaimLocation> {
        let claims = self.known.0.get(&(kind.name().into(), name.into()))?;
        let is_here = |claim: &ClaimLocation| claim.namespace.is_empty() || *claim.namespace == *namespace;
        if claims.iter().any(is_here) {
            return None;
        }
        let folders = |file: &'c str| file.split('/');
        let shared = |claim: &&ClaimLocation| {
            let pairs = folders(self.file).zip(claim.file.split('/'));
            pairs.take_while(|(one, other)| one == other).count()
        };
        // Of several that are as near, the first one.
        claims.iter().rev().max_by_key(shared)
    }
}

#[cfg(test)]
mod tests {
    use super::{ClaimLocations, ClaimsInFiles};
    use tollgate_api::profile::ApiKind;
    use tollgate_document::doc;

    #[test]
    fn the_nearest_claim_is_named() {
        let mut known = ClaimLocations::default();
        for (name, namespace, file, is_moved) in [
            ("gpu", "a", "apps/a/claim.yaml", false),
            ("gpu", "b", "apps/b/claim.yaml", false),
            ("moved", "a", "apps/a/claim.yaml", true),
            ("anywhere", "", "apps/a/claim.yaml", false),
        ] {
            let text = format!(
                r#"{{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{{"name":"{name}","namespace":"{namespace}"}}}}"#
            );
            known.add_if_claim(doc::parse(&text).expect("JSON").root(), file, 1, is_moved);
        }
        let around = ClaimsInFiles { known: &known, file: "apps/b/pod.yaml" };
        let found = |kind, name, namespace| {
            around.nearest_if_only_in_other_namespaces(kind, name, namespace).map(|claim| &*claim.namespace)
        };
        let kind = ApiKind::ResourceClaim;
        assert_eq!(found(kind, "gpu", "c"), Some("b"));
        assert_eq!(found(kind, "gpu", "a"), None);
        assert_eq!(found(kind, "moved", "c"), None);
        assert_eq!(found(kind, "anywhere", "c"), None);
        assert_eq!(found(kind, "unknown", "c"), None);
        assert_eq!(found(ApiKind::ResourceClaimTemplate, "gpu", "c"), None);
    }
}
