//! What was registered last, and the state of what is stored now.

use super::compare::{
    self, Desired, Difference, NarrowingPermission, OwnerClusterRole, any_tollgate_entry_lacks_ca_bundle,
    tollgate_entries, undesired_tollgate_entries,
};
use super::{ApiError, DesiredConfig};
use tollgate_document::doc::Value;

/// The webhook configuration that this process registered last.
pub(super) struct LastApplied {
    pub(super) revision: u64,
    pub(super) desired: DesiredConfig,
    /// The CAs of this process, PEM.
    pub(super) own_bundle: String,
    pub(super) owner: Option<OwnerClusterRole>,
    pub(super) state: StoredConfigState,
    /// True if there is an object; without entries to register, there may be none.
    pub(super) exists: bool,
    /// True if entries could be made to fail open.
    pub(super) narrowed: bool,
}

impl LastApplied {
    /// Returns the fields in which the stored configuration is not what was registered. If it could not be narrowed,
    /// stored entries that failed closed stayed so although they should fail open.
    pub(super) fn fields_changed_in(&self, stored: Value<'_>) -> Result<Vec<Difference>, ApiError> {
        let narrowing = NarrowingPermission::allowed_if(self.narrowed);
        self.desired.with_parsed(|applied| {
            compare::changes_since(stored, applied, &self.own_bundle, self.owner.as_ref(), narrowing)
        })
    }
}

/// The state of a stored webhook configuration that has no wrong fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum StoredConfigState {
    /// The stored configuration is as desired.
    UpToDate,
    /// The stored configuration also has entries that only other replicas need.
    WithUnneededEntries,
    /// The stored configuration is as desired, but without a caBundle, which another controller injects.
    NoCaBundle,
    /// No entries are stored, and none are desired.
    NotNeeded,
}

impl StoredConfigState {
    pub(super) fn of(stored: Value<'_>, desired: Desired<'_>) -> StoredConfigState {
        if tollgate_entries(stored).next().is_none() {
            StoredConfigState::NotNeeded
        } else if any_tollgate_entry_lacks_ca_bundle(stored) {
            StoredConfigState::NoCaBundle
        } else if undesired_tollgate_entries(stored, desired.manifest).next().is_some() {
            StoredConfigState::WithUnneededEntries
        } else {
            StoredConfigState::UpToDate
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LastApplied, StoredConfigState};
    use crate::register::DesiredConfig;
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use tollgate_document::doc;

    /// A certificate as far as the comparison looks at it.
    fn certificate(text: &str) -> String {
        format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n")
    }

    fn client_config(bundle: &str) -> String {
        format!(r#"{{"url":"https://a","caBundle":"{}"}}"#, STANDARD.encode(bundle))
    }

    fn entry(name: &str, policy: &str, bundle: &str) -> String {
        let client_config = client_config(bundle);
        format!(
            r#"{{"name":"{name}.tollgate.dev","failurePolicy":"{policy}","clientConfig":{client_config}}}"#
        )
    }

    fn manifest(entries: &[String]) -> String {
        format!(r#"{{"webhooks":[{}]}}"#, entries.join(","))
    }

    fn changed(narrowed: bool, desired: &str, own_bundle: &str, stored: &str) -> Vec<String> {
        let applied = LastApplied {
            revision: 1,
            desired: DesiredConfig { manifest: desired.to_owned(), client_config: client_config(own_bundle) },
            own_bundle: own_bundle.to_owned(),
            owner: None,
            state: StoredConfigState::UpToDate,
            exists: true,
            narrowed,
        };
        let changed = applied.fields_changed_in(doc::parse(stored).expect("JSON").root()).expect("JSON");
        changed.iter().map(ToString::to_string).collect()
    }

    /// Only another program's change may be reported as one: the own change from Fail to Ignore after the delay is none.
    #[test]
    fn an_entry_that_still_fails_closed_was_changed_by_nobody() {
        let one = |policy: &str| manifest(&[entry("a", policy, "")]);
        let changed = |narrowed, desired, stored| changed(narrowed, &one(desired), "", &one(stored));
        assert_eq!(changed(false, "Ignore", "Fail"), [""; 0]);
        assert_eq!(changed(true, "Ignore", "Fail"), ["a.tollgate.dev: failurePolicy"]);
        assert_eq!(changed(false, "Fail", "Ignore"), ["a.tollgate.dev: failurePolicy"]);
    }

    /// Replicas add their CAs, and the entries that they need, before this one does.
    #[test]
    fn what_a_replica_added_was_changed_by_nobody() {
        let (own, other) = (certificate("AAAA"), certificate("BBBB"));
        let both = format!("{other}{own}");
        let before = manifest(&[entry("a", "Fail", &own)]);
        let changed = |stored: &[String]| changed(true, &before, &own, &manifest(stored));
        assert_eq!(changed(&[entry("a", "Fail", &both)]), [""; 0]);
        assert_eq!(changed(&[entry("a", "Fail", &both), entry("b", "Fail", &other)]), [""; 0]);
        assert_eq!(changed(&[entry("a", "Fail", &other)]), ["a.tollgate.dev: clientConfig.caBundle"]);
        assert_eq!(changed(&[entry("b", "Fail", &other)]), ["a.tollgate.dev: missing"]);
    }
}
