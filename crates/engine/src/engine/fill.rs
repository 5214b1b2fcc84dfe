//! The changes of the mutating webhook: the server's defaults and the tolerations of policies, as edits and as a JSON
//! Patch.
//!
//! An object that cannot be decoded, or that the profile does not serve, is not changed; the validating webhook
//! reports it. If there are several profiles, the first one determines the defaults, because an object can be changed
//! only once.
//!
//! Tolerations that a policy added to a claim are not in the user's file, and specs are immutable. So an update that
//! only lacks these tolerations gets them back, and applying the same file again succeeds.
//!
//! Invariant: the patch is minimal, its pointers match the object's version, and mutating a mutated object changes
//! nothing.

use super::{Attributes, DecodedObject, Engine, LabelsIfKnown, Operation, identify, prepare};
use crate::defaults::{DefaultsPurpose, Edit, default_edits};
use crate::policy;
use tollgate_api::equal;
use tollgate_api::profile::Profile;
use tollgate_api::view::Object;
use tollgate_document::doc::{DocChange, apply_changes};
use tollgate_document::field::SegmentName;
use tollgate_document::finding::Finding;
use tollgate_formats::gofmt;

/// The changes that the mutating webhook makes to an object.
#[derive(Clone, Debug, Default)]
pub struct Mutation {
    /// The edits to apply.
    pub edits: Vec<Edit>,
    /// Number of tolerations of the stored object that the edits restore because the submitted object lacks
    /// them.
    pub put_back: usize,
}

impl Engine {
    /// Returns the edits that the mutating webhook makes: the server's defaults, the default tolerations of policies
    /// and, on an update, stored tolerations that the request lacks. There are no edits for an object that cannot be
    /// decoded or that the first profile does not serve.
    pub fn mutate(&self, admission: &Attributes<'_>, labels: LabelsIfKnown<'_>) -> Mutation {
        if !admission.operation.writes_object() {
            return Mutation::default();
        }
        let Some((profile, new)) = self.decode_for_first_profile(admission) else {
            return Mutation::default();
        };
        let (now, Object { kind, version, .. }) = (admission.now.text, new.without_defaults());
        let old = admission.old_object.map(|old| DecodedObject::decode_stored(old, kind, version, profile));
        let old = old.filter(|old| !old.has_fatal_errors());
        let is_update = admission.operation == Operation::Update && admission.subresource.is_empty();
        let (mut edits, put_back) =
            prepare::with_prepared_stored_object(old.as_ref(), version, profile, now, |old| {
                let mut edits =
                    default_edits(new.without_defaults(), old, profile, now, DefaultsPurpose::Mutation);
                let missing = old
                    .filter(|_| is_update)
                    .and_then(|old| missing_tolerations_if_only_difference(&new, old, &edits));
                let missing = missing.unwrap_or_default();
                // A list that is written anew has everything that was to be filled in.
                edits.retain(|edit| !missing.iter().any(|list| list.replaces_list_of_edit(edit)));
                let put_back = missing.iter().map(|list| list.count).sum();
                edits.extend(missing.into_iter().flat_map(|list| list.edits));
                (edits, put_back)
            });
        if !self.policies.is_empty() && admission.operation == Operation::Create {
            let decoded = admission.with_objects(new.without_defaults(), None);
            edits.extend(
                self.policies
                    .default_toleration_edits(&decoded, &self.context_without_cluster(profile, labels)),
            );
        }
        edits.retain(|edit| {
            let in_status =
                matches!(edit.at.user_steps().next(), Some(SegmentName::Field(name)) if &**name == "status");
            // `status` writes only the status, every other request everything but the status.
            let is_written = in_status == (admission.subresource == "status");
            let is_change = match &edit.change {
                DocChange::Replace { node, value } => {
                    new.decoded_value().doc().value_at_node_index(*node).to_json() != value.to_json()
                }
                _ => true,
            };
            is_written && is_change
        });
        Mutation { edits, put_back }
    }

    /// Returns a finding for each policy for which it cannot be decided whether it adds tolerations to a new
    /// object. [`Engine::mutate`] adds none for these policies. Returns none for operations other than
    /// CREATE.
    pub fn undecided_toleration_defaults(
        &self,
        admission: &Attributes<'_>,
        labels: LabelsIfKnown<'_>,
    ) -> Vec<Finding> {
        if self.policies.is_empty() || admission.operation != Operation::Create {
            return Vec::new();
        }
        let Some((profile, new)) = self.decode_for_first_profile(admission) else { return Vec::new() };
        let decoded = admission.with_objects(new.without_defaults(), None);
        self.policies.undecided_toleration_defaults(&decoded, &self.context_without_cluster(profile, labels))
    }

    /// Decodes the new object for the first profile; `None` if it has errors, or if the profile does not serve it.
    fn decode_for_first_profile<'d>(
        &self,
        admission: &Attributes<'d>,
    ) -> Option<(&'static Profile, DecodedObject<'d>)> {
        let profile = self.profiles.first()?;
        let (kind, version) =
            identify::served_kind(&identify::classify_type(admission.object), profile, admission).ok()?;
        let new = DecodedObject::decode(admission.object, kind, version, profile);
        (!new.has_fatal_errors()).then_some((*profile, new))
    }
}

/// Returns the stored tolerations that an update lacks; `None` if its spec differs from the stored one in anything
/// else. `edits` are the server's defaults, which are not counted as differences.
fn missing_tolerations_if_only_difference(
    new: &DecodedObject<'_>,
    old: Object<'_>,
    edits: &[Edit],
) -> Option<Vec<policy::TolerationsMissingInUpdate>> {
    let object = Object::from_value(old.kind(), old.version, new.decoded_value());
    let missing = policy::tolerations_missing_in_update(object, old)?;
    let kept = edits.iter().filter(|edit| !missing.iter().any(|list| list.replaces_list_of_edit(edit)));
    let all = kept.chain(missing.iter().flat_map(|list| &list.edits));
    let changes: Vec<DocChange> = all.map(|edit| edit.change.clone()).collect();
    let whole = apply_changes(new.decoded_value(), &changes);
    let whole = Object::from_value(old.kind(), old.version, whole.root());
    equal::is_top_level_field_equal(whole, old, "spec").then_some(missing)
}

/// Returns the edits as the text of an RFC 6902 JSON Patch; `[]` if there are none.
pub fn json_patch(edits: &[Edit]) -> String {
    let operation = |edit: &Edit| {
        let (op, value) = match &edit.change {
            DocChange::Add { value, .. } | DocChange::Append { value, .. } => ("add", value),
            DocChange::Replace { value, .. } => ("replace", value),
        };
        let path = gofmt::json_string(&edit.at.user_json_pointer());
        format!(r#"{{"op":"{op}","path":{path},"value":{}}}"#, value.to_json())
    };
    format!("[{}]", edits.iter().map(operation).collect::<Vec<_>>().join(","))
}
