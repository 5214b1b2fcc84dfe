//! The defaults that the API server sets when it decodes an object, as edits with paths.
//!
//! The same edits are used twice: validation checks the object with the edits applied, and the mutating webhook sends
//! them as a patch. `now` comes from the caller. Invariant: a complete object needs no allocation, and applying the
//! edits twice changes nothing.

use tollgate_api::profile::{Profile, Version};
use tollgate_api::view::{
    ClaimSpec, Device, List, Object, ObjectBody, Request, RequestBody, Taint, TaintRule, Toleration, View,
};
use tollgate_document::doc::{DocChange, FieldName, OwnedJsonValue, Value, ValueKind};
use tollgate_document::field::{FieldPath, Path};

/// A change to one field of an object: a default of the API server, or a toleration that a policy adds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edit {
    /// The path of the field.
    pub at: FieldPath,
    /// What is set there.
    pub change: DocChange,
}

/// The purpose for which defaults are computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DefaultsPurpose {
    /// For validating the object: all defaults of the server, up to [`MAX_EDITS`], except in lists that are
    /// far too long.
    Validation,
    /// For the patch of the mutating webhook. Lists that are longer than any release or draft allows are left
    /// unchanged.
    Mutation,
}

/// Maximum number of edits of one object. No valid object needs as many, and each takes much more memory than
/// the `{}` that it fills.
pub const MAX_EDITS: usize = 5_000;
/// Maximum length of a list whose items get defaults for validation. Longer lists are rejected by every release, or
/// their defaults make no difference.
const MAX_DEFAULTED_ITEMS: usize = 1_000;

/// Maximum number of tolerations of a request in any release or draft. For a mutation, the items of longer lists get no
/// defaults. The same applies to the lists below.
const MAX_TOLERATIONS: usize = 16;
const MAX_TAINTS: usize = 32;
const MAX_REQUESTS: usize = 32;
const MAX_SUBREQUESTS: usize = 8;
const MAX_DEVICES: usize = 128;
const MAX_ALLOCATION_RESULTS: usize = 32;

/// Returns the edits that fill in the server's defaults. `old` is the stored object of an update; `now` is RFC 3339 in
/// whole seconds.
pub fn default_edits(
    object: Object<'_>,
    old: Option<Object<'_>>,
    profile: &Profile,
    now: &str,
    purpose: DefaultsPurpose,
) -> Vec<Edit> {
    // A ResourceSlicePatch belongs to draft r1, whatever else the profile has.
    let times_only_evictions = profile.times_only_evictions || matches!(object.body, ObjectBody::Patch(_));
    let mut edits =
        EditCollector { edits: Vec::new(), now, version: object.version, times_only_evictions, purpose };
    let spec = Path::ROOT.field("spec");
    match object.body {
        ObjectBody::Slice(slice) => {
            let devices_at = spec.field("devices");
            for (index, device) in edits.items_if_short(slice.spec().devices(), MAX_DEVICES) {
                let device_at = devices_at.index(index);
                let body_at = Device::body_path(&device_at, object.version);
                edits.default_taint_times(device.body(object.version).taints(), &body_at.field("taints"));
            }
            let taints_at = spec.field("taints");
            for (index, entry) in edits.items_if_short(slice.spec().taints(), MAX_TAINTS) {
                edits.default_time_added(
                    entry.nested_or_inlined_taint(),
                    &entry.nested_or_inlined_taint_path(&taints_at.index(index)),
                );
            }
        }
        ObjectBody::Rule(rule) => edits.default_or_reset_rule_time_added(rule, old, profile),
        ObjectBody::Claim(claim) => {
            edits.add_claim_defaults(claim.spec(), &spec);
            let status = Path::ROOT.field("status");
            let allocation = status.field("allocation");
            let devices = allocation.field("devices");
            let results_at = devices.field("results");
            let results = claim.status().allocation().map(|allocation| allocation.devices().results());
            for (index, result) in
                edits.items_if_short(results.unwrap_or(List::absent()), MAX_ALLOCATION_RESULTS)
            {
                let result_at = results_at.index(index);
                edits.default_toleration_operators(result.tolerations(), &result_at.field("tolerations"));
            }
        }
        ObjectBody::Template(template) => {
            edits.add_claim_defaults(template.spec().spec(), &spec.field("spec"))
        }
        ObjectBody::Patch(patch) => {
            let devices_at = spec.field("devices");
            edits.default_taint_times(patch.spec().devices().taints(), &devices_at.field("taints"));
        }
        ObjectBody::ClassicClaim(claim) => {
            // A claim without a spec is invalid.
            let given = claim.spec();
            if given.allocation_mode().is_empty() && !given.json().is_null_or_absent() {
                edits.push_member_edit(given.json(), "allocationMode", OwnedJsonValue::str("Delayed"), &spec);
            }
        }
        _ => {}
    }
    edits.edits
}

/// Collects the edits that set the defaults of one object.
struct EditCollector<'n> {
    edits: Vec<Edit>,
    now: &'n str,
    version: Version,
    /// True if only NoExecute taints get a default `timeAdded`.
    times_only_evictions: bool,
    purpose: DefaultsPurpose,
}

impl EditCollector<'_> {
    /// Returns the items of a list with their indexes; none if the list is too long, see
    /// [`EditCollector::is_short_enough`].
    fn items_if_short<'d, V: View<'d>>(
        &self,
        list: List<'d, V>,
        limit: usize,
    ) -> impl Iterator<Item = (usize, V)> + use<'d, V> {
        let is_within = self.is_short_enough(list.value(), limit);
        list.iter().enumerate().take(if is_within { usize::MAX } else { 0 })
    }

    /// True if a list is short enough to get defaults: at most `limit` items for a mutation, [`MAX_DEFAULTED_ITEMS`]
    /// for validation.
    fn is_short_enough(&self, list: Value<'_>, limit: usize) -> bool {
        let limit = if self.purpose == DefaultsPurpose::Mutation { limit } else { MAX_DEFAULTED_ITEMS };
        list.node_count() <= limit || list.items().nth(limit).is_none()
    }

    /// Adds `timeAdded` to taints of a list that lack it.
    fn default_taint_times(&mut self, taints: List<'_, Taint<'_>>, at: &Path<'_>) {
        if !self.is_short_enough(taints.value(), MAX_TAINTS) {
            return;
        }
        for (index, taint) in taints.value().items().enumerate() {
            // Slices have many taints, and nearly all have a time.
            if taint.field(const { FieldName::from_text("timeAdded") }).is_null_or_absent() {
                self.default_time_added(Taint::of(taint), &at.index(index));
            }
        }
    }

    /// Adds `timeAdded` to a taint that lacks it. If `times_only_evictions` is true, only NoExecute taints get one.
    fn default_time_added(&mut self, taint: Taint<'_>, at: &Path<'_>) {
        let is_timed = !self.times_only_evictions || taint.effect() == "NoExecute";
        if is_timed && taint.written_time().is_null_or_absent() {
            self.push_member_edit(taint.json(), "timeAdded", OwnedJsonValue::str(self.now), at);
        }
    }

    /// Adds `timeAdded` to the taint of a DeviceTaintRule or, if an update changes the effect but not the time, resets
    /// it where the release does so.
    fn default_or_reset_rule_time_added(
        &mut self,
        rule: TaintRule<'_>,
        old: Option<Object<'_>>,
        profile: &Profile,
    ) {
        let spec_at = Path::ROOT.field("spec");
        let taint_at = spec_at.field("taint");
        let (spec, taint) = (rule.spec(), rule.spec().taint());
        if taint.json().is_null_or_absent() && self.times_only_evictions {
            return;
        }
        if taint.json().is_null_or_absent() {
            let filled = OwnedJsonValue::Object(vec![("timeAdded", OwnedJsonValue::str(self.now))]);
            if spec.json().is_null_or_absent() {
                let filled = OwnedJsonValue::Object(vec![("taint", filled)]);
                return self.push_member_edit(rule.json(), "spec", filled, &Path::ROOT);
            }
            return self.push_member_edit(spec.json(), "taint", filled, &spec_at);
        }
        self.default_time_added(taint, &taint_at);
        // upstream v1.36 devicetaintrule strategy PrepareForUpdate
        let Some(ObjectBody::Rule(old)) = old.map(|old| old.body) else { return };
        let old = old.spec().taint();
        let restart = profile.restarts_rule_time
            && old.effect() != taint.effect()
            && taint.time_added().is_some()
            && old.time_added().map(|time| time.seconds) == taint.time_added().map(|time| time.seconds);
        if restart {
            self.push_member_edit(taint.json(), "timeAdded", OwnedJsonValue::str(self.now), &taint_at);
        }
    }

    /// Adds allocation mode, count and the operators of tolerations to the requests of a claim, with `at` as the path
    /// of its spec.
    fn add_claim_defaults(&mut self, spec: ClaimSpec<'_>, at: &Path<'_>) {
        let devices_at = at.field("devices");
        let requests_at = devices_at.field("requests");
        for (index, request) in self.items_if_short(spec.devices().requests(), MAX_REQUESTS) {
            let request_at = requests_at.index(index);
            if let Some(exactly) = request.exactly(self.version) {
                let exactly_at = Request::exactly_path(&request_at, self.version);
                // Before v1beta2 a request without a class may be a list of alternatives and gets no mode.
                if !self.version.is_v1alpha3_or_v1beta1() || !exactly.device_class_name().is_empty() {
                    self.default_allocation_mode_and_count(exactly, &exactly_at);
                }
                self.default_toleration_operators(exactly.tolerations(), &exactly_at.field("tolerations"));
            }
            let first_at = request_at.field("firstAvailable");
            for (index, sub) in self.items_if_short(request.first_available(), MAX_SUBREQUESTS) {
                let sub_at = first_at.index(index);
                self.default_allocation_mode_and_count(sub.body(), &sub_at);
                self.default_toleration_operators(sub.body().tolerations(), &sub_at.field("tolerations"));
            }
        }
    }

    /// Adds the allocation mode and the count of a request that lacks them.
    fn default_allocation_mode_and_count(&mut self, body: RequestBody<'_>, at: &Path<'_>) {
        let mode = body.allocation_mode();
        if mode.is_empty() {
            self.push_member_edit(body.json(), "allocationMode", OwnedJsonValue::str("ExactCount"), at);
        }
        if matches!(mode, "" | "ExactCount") && body.count() == 0 {
            self.push_member_edit(body.json(), "count", OwnedJsonValue::Int(1), at);
        }
    }

    /// Adds `operator: Equal` to tolerations that lack an operator.
    fn default_toleration_operators(&mut self, tolerations: List<'_, Toleration<'_>>, at: &Path<'_>) {
        for (index, toleration) in self.items_if_short(tolerations, MAX_TOLERATIONS) {
            if toleration.operator().is_empty() {
                self.push_member_edit(
                    toleration.json(),
                    "operator",
                    OwnedJsonValue::str("Equal"),
                    &at.index(index),
                );
            }
        }
    }

    /// Adds the edit that sets a member of `object`. If `object` is a `null` item of a list, the edit replaces it by an
    /// object with that member. Does nothing if there are [`MAX_EDITS`] already.
    fn push_member_edit(
        &mut self,
        object: Value<'_>,
        key: &'static str,
        value: OwnedJsonValue,
        at: &Path<'_>,
    ) {
        if self.edits.len() >= MAX_EDITS {
            return;
        }
        let member = object.get(key);
        let path = at.field(key).owned();
        let edit = if object.kind() != ValueKind::Object {
            // All fields of one object are filled in before those of the next one.
            if let Some(DocChange::Replace { node, value: OwnedJsonValue::Object(members) }) =
                self.edits.last_mut().map(|edit| &mut edit.change)
                && *node == object.index()
            {
                members.push((key, value));
                return;
            }
            let whole = OwnedJsonValue::Object(vec![(key, value)]);
            Edit { at: at.owned(), change: DocChange::Replace { node: object.index(), value: whole } }
        } else if member.exists() {
            Edit { at: path, change: DocChange::Replace { node: member.index(), value } }
        } else {
            Edit { at: path, change: DocChange::Add { object: object.index(), key, value } }
        };
        self.edits.push(edit);
    }
}
