//! Compares the stored webhook configuration with the desired one, and makes the patch between them.
//!
//! Every field that decides what is sent to the webhook is compared as a whole. A `matchConditions` entry, a selector
//! or a rule that another program added narrows the registration, so it is not enough that all desired values are
//! present. Entries of others, and fields that this version does not know, are kept.

use std::fmt::{self, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use tollgate_document::doc::{Value, ValueKind};

/// Suffix by which entries of Tollgate in a webhook configuration are recognized.
const WEBHOOK_NAME_SUFFIX: &str = ".tollgate.dev";

/// The last line of a certificate in PEM.
const CERTIFICATE_END: &str = "-----END CERTIFICATE-----";

/// The ClusterRole that owns the webhook configurations, so that they are garbage-collected with it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct OwnerClusterRole {
    pub(super) name: String,
    pub(super) uid: String,
}

/// Whether a stored webhook configuration may be narrowed: entries removed, or made to fail open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NarrowingPermission {
    Allowed,
    Forbidden,
}

impl NarrowingPermission {
    pub(super) fn allowed_if(is_allowed: bool) -> NarrowingPermission {
        if is_allowed { NarrowingPermission::Allowed } else { NarrowingPermission::Forbidden }
    }

    /// True if the stored entry fails closed and the desired one fails open, and the registration must not be narrowed.
    fn must_stay_fail_closed(self, stored: Value<'_>, desired: Value<'_>) -> bool {
        let fails_closed = |webhook: Value<'_>| webhook.get("failurePolicy").str() == "Fail";
        self == NarrowingPermission::Forbidden && fails_closed(stored) && !fails_closed(desired)
    }
}

/// The compared fields of an entry. An absent selector or list equals an empty one.
const COMPARED_FIELDS: [&str; 10] = [
    "rules",
    "failurePolicy",
    "matchPolicy",
    "namespaceSelector",
    "objectSelector",
    "sideEffects",
    "timeoutSeconds",
    "admissionReviewVersions",
    "reinvocationPolicy",
    "matchConditions",
];

/// A configuration as it should be.
#[derive(Clone, Copy)]
pub(super) struct Desired<'d> {
    pub(super) manifest: Value<'d>,
    /// The `clientConfig` of this server. Entries that only other replicas need have it as well: the API server must be
    /// able to call every replica for them.
    pub(super) client_config: Value<'d>,
}

/// A field in which the stored configuration is not as desired.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Difference {
    /// Name of the entry; empty for a field of the configuration itself.
    pub(super) entry: String,
    pub(super) field: DifferentField,
}

/// What differs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum DifferentField {
    /// The whole entry: it is not stored.
    Entry,
    /// The CAs that the API server trusts.
    CaBundle,
    /// Any other field, by its path.
    Other(&'static str),
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = match self.field {
            DifferentField::Entry => "missing",
            DifferentField::CaBundle => "clientConfig.caBundle",
            DifferentField::Other(path) => path,
        };
        if self.entry.is_empty() { f.write_str(field) } else { write!(f, "{}: {field}", self.entry) }
    }
}

/// The differences as one text.
pub(super) fn joined(differences: &[Difference]) -> String {
    differences.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// The differences between the stored and the desired configuration.
pub(super) fn differences(
    stored: Value<'_>,
    desired: Desired<'_>,
    owner: Option<&OwnerClusterRole>,
    narrowing: NarrowingPermission,
) -> Vec<Difference> {
    let Desired { manifest, client_config } = desired;
    let mut found = Vec::new();
    let difference = |entry: &str, field| Difference { entry: entry.to_owned(), field };
    for webhook in manifest.get("webhooks").items() {
        let name = webhook.get("name").str();
        let Some(stored) = find_entry(stored, name) else {
            found.push(difference(name, DifferentField::Entry));
            continue;
        };
        found.extend(address_differences(name, stored, webhook.get("clientConfig")));
        let must_stay_fail_closed = narrowing.must_stay_fail_closed(stored, webhook);
        let is_kept = |field: &str| field == "failurePolicy" && must_stay_fail_closed;
        let is_different = |field: &&str| {
            !are_equal_with_absent_as_empty(webhook.get(field), stored.get(field)) && !is_kept(field)
        };
        let fields = COMPARED_FIELDS.into_iter().filter(is_different);
        found.extend(fields.map(|field| difference(name, DifferentField::Other(field))));
    }
    // An entry of Tollgate that is not desired may belong to another replica; the API server must still be able to call
    // it.
    for stored in undesired_tollgate_entries(stored, manifest) {
        found.extend(address_differences(stored.get("name").str(), stored, client_config));
    }
    // The command that removes all configurations in an emergency selects them by label.
    let labels = stored.get("metadata").get("labels");
    let is_missing = |(name, value): (Value<'_>, Value<'_>)| labels.get(name.text()).str() != value.str();
    if manifest.get("metadata").get("labels").members().any(is_missing) {
        found.push(difference("", DifferentField::Other("metadata.labels")));
    }
    if let Some(owner) = owner
        && !owner_references(stored).any(|reference| {
            refers_to_owner_by_name(reference, owner) && reference.get("uid").str() == owner.uid
        })
    {
        found.push(difference("", DifferentField::Other("metadata.ownerReferences")));
    }
    found
}

/// The differences of an entry in the address that the API server calls and in the CA that it trusts there.
fn address_differences(name: &str, stored: Value<'_>, client_config: Value<'_>) -> Vec<Difference> {
    let stored = stored.get("clientConfig");
    let is_equal = |field| are_equal_with_absent_as_empty(client_config.get(field), stored.get(field));
    let addresses = [("url", "clientConfig.url"), ("service", "clientConfig.service")].into_iter();
    let mut different: Vec<DifferentField> = addresses
        .filter(|(field, _)| !is_equal(field))
        .map(|(_, path)| DifferentField::Other(path))
        .collect();
    if client_config.get("caBundle").exists() && !is_equal("caBundle") {
        different.push(DifferentField::CaBundle);
    }
    different.into_iter().map(|field| Difference { entry: name.to_owned(), field }).collect()
}

/// The fields in which the stored configuration is not the one that this process wrote last, because something changed
/// them since. Entries and CAs that other replicas added are no such change; `own_bundle` has the CAs of this process.
pub(super) fn changes_since(
    stored: Value<'_>,
    applied: Desired<'_>,
    own_bundle: &str,
    owner: Option<&OwnerClusterRole>,
    narrowing: NarrowingPermission,
) -> Vec<Difference> {
    let mut changed = differences(stored, applied, owner, narrowing);
    changed.retain(|Difference { entry, field }| {
        let is_known = entry.is_empty() || find_entry(applied.manifest, entry).is_some();
        let lacks_own_ca = || !has_all_certificates(find_entry(stored, entry), own_bundle);
        is_known && (*field != DifferentField::CaBundle || lacks_own_ca())
    });
    changed
}

/// The address of an entry of Tollgate that is not the desired one; `None` if there is none. Another server uses the
/// name.
pub(super) fn undesired_address(stored: Value<'_>, client_config: Value<'_>) -> Option<String> {
    let mut addresses = tollgate_entries(stored).map(|webhook| webhook_address(webhook.get("clientConfig")));
    let other = addresses.find(|address| *address != webhook_address(client_config))?;
    // It gets into a log and a response: whoever wrote it decides about its characters.
    Some(other.chars().filter(char::is_ascii_graphic).take(300).collect())
}

/// The address in a clientConfig: its URL, or the Service as `service/name.namespace`.
fn webhook_address(config: Value<'_>) -> String {
    let (url, service) = (config.get("url").str(), config.get("service"));
    if url.is_empty() {
        return format!("service/{}.{}", service.get("name").str(), service.get("namespace").str());
    }
    let end = url.strip_prefix("https://").and_then(|rest| rest.find('/')).map(|at| at + "https://".len());
    url.get(..end.unwrap_or(url.len())).unwrap_or(url).to_owned()
}

/// The stored entries of Tollgate that are not desired.
pub(super) fn undesired_tollgate_entries<'d>(
    stored: Value<'d>,
    desired: Value<'d>,
) -> impl Iterator<Item = Value<'d>> {
    tollgate_entries(stored).filter(move |webhook| find_entry(desired, webhook.get("name").str()).is_none())
}

/// True if no other manager than `manager` has written entries, as far as is known.
pub(super) fn is_written_only_by(stored: Value<'_>, manager: &str) -> bool {
    let managers = stored.get("metadata").get("managedFields").items();
    let mut writers = managers.filter(|entry| entry.get("fieldsV1").get("f:webhooks").exists());
    writers.all(|entry| entry.get("manager").text_is(manager))
}

/// The entries of Tollgate.
pub(super) fn tollgate_entries(configuration: Value<'_>) -> impl Iterator<Item = Value<'_>> {
    let entries = configuration.get("webhooks").items();
    entries.filter(|webhook| webhook.get("name").str().ends_with(WEBHOOK_NAME_SUFFIX))
}

/// True if an entry of Tollgate has no caBundle, so that the API server trusts only its own roots there.
pub(super) fn any_tollgate_entry_lacks_ca_bundle(stored: Value<'_>) -> bool {
    let mut bundles =
        tollgate_entries(stored).map(|webhook| webhook.get("clientConfig").get("caBundle").str());
    bundles.any(str::is_empty)
}

/// Returns the desired configuration, with its owner, as JSON for a create request.
pub(super) fn manifest_to_create(desired: Value<'_>, owner: Option<&OwnerClusterRole>) -> String {
    let Some(owner) = owner else { return desired.to_json() };
    let metadata =
        with_member(desired.get("metadata"), "ownerReferences", &format!("[{}]", owner_reference(owner)));
    with_member(desired, "metadata", &metadata)
}

/// A JSON merge patch from the stored to the desired configuration: entries of Tollgate are replaced as a whole, those
/// of others keep their position. It applies only to the resourceVersion that was compared.
pub(super) fn merge_patch_to_desired(
    stored: Value<'_>,
    desired: Desired<'_>,
    owner: Option<&OwnerClusterRole>,
    keep_leftovers: bool,
    narrowing: NarrowingPermission,
) -> String {
    let Desired { manifest: desired, client_config } = desired;
    let mut webhooks: Vec<String> = Vec::new();
    let has_bundle = |webhook: &Value<'_>| !webhook.get("clientConfig").get("caBundle").str().is_empty();
    let sibling = tollgate_entries(stored).find(has_bundle).unwrap_or(Value::absent());
    for stored in stored.get("webhooks").items() {
        let name = stored.get("name").str();
        match find_entry(desired, name) {
            Some(webhook) if narrowing.must_stay_fail_closed(stored, webhook) => {
                let config = client_config_keeping_stored_bundle(webhook.get("clientConfig"), stored);
                let fields = [("clientConfig", &*config), ("failurePolicy", "\"Fail\"")];
                webhooks.push(with_members(webhook, &fields));
            }
            Some(webhook) => webhooks.push(entry_with_stored_bundle_if_missing(webhook, stored)),
            None if name.ends_with(WEBHOOK_NAME_SUFFIX) && !keep_leftovers => {}
            None if name.ends_with(WEBHOOK_NAME_SUFFIX) => {
                let config = client_config_keeping_stored_bundle(client_config, stored);
                webhooks.push(with_member(stored, "clientConfig", &config));
            }
            None => webhooks.push(stored.to_json()),
        }
    }
    // If another controller injects the caBundle, a new entry starts with that of its siblings.
    let missing = desired.get("webhooks").items();
    let missing = missing.filter(|webhook| find_entry(stored, webhook.get("name").str()).is_none());
    webhooks.extend(missing.map(|webhook| entry_with_stored_bundle_if_missing(webhook, sibling)));
    let version = stored.get("metadata").get("resourceVersion").to_json();
    let mut metadata = format!(r#"{{"resourceVersion":{version}"#);
    // Writing to a `String` cannot fail.
    if let Some(owner) = owner {
        let others = owner_references(stored)
            .filter(|reference| !refers_to_owner_by_name(*reference, owner))
            .map(Value::to_json);
        let all: Vec<String> = others.chain([owner_reference(owner)]).collect();
        _ = write!(metadata, r#","ownerReferences":[{}]"#, all.join(","));
    }
    let labels = desired.get("metadata").get("labels");
    if labels.exists() {
        _ = write!(metadata, r#","labels":{}"#, labels.to_json());
    }
    format!(r#"{{"metadata":{metadata}}},"webhooks":[{}]}}"#, webhooks.join(","))
}

/// The CA certificates of all webhooks, PEM, without duplicates.
pub(super) fn merged_ca_bundle_pem(configuration: Value<'_>) -> String {
    let mut texts: Vec<&str> = Vec::new();
    for webhook in configuration.get("webhooks").items() {
        let bundle = webhook.get("clientConfig").get("caBundle").str();
        if !texts.contains(&bundle) {
            texts.push(bundle);
        }
    }
    texts.into_iter().map(decode_bundle).collect()
}

/// A `caBundle` as PEM; empty if it is none.
fn decode_bundle(text: &str) -> String {
    STANDARD.decode(text).ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
}

/// The CA certificates of a clientConfig, PEM.
pub(super) fn bundle_pem(client_config: Value<'_>) -> String {
    decode_bundle(client_config.get("caBundle").str())
}

/// True if an entry trusts all these certificates, PEM.
fn has_all_certificates(webhook: Option<Value<'_>>, certificates: &str) -> bool {
    let bundle = webhook.map(|webhook| bundle_pem(webhook.get("clientConfig"))).unwrap_or_default();
    certificates.split_inclusive(CERTIFICATE_END).all(|certificate| bundle.contains(certificate.trim()))
}

/// The entry of that name in a webhook configuration.
fn find_entry<'d>(configuration: Value<'d>, name: &str) -> Option<Value<'d>> {
    configuration.get("webhooks").items().find(|webhook| webhook.get("name").str() == name)
}

/// The items of `metadata.ownerReferences`.
fn owner_references(stored: Value<'_>) -> impl Iterator<Item = Value<'_>> {
    stored.get("metadata").get("ownerReferences").items()
}

/// True if a reference names the owner, whatever its uid.
fn refers_to_owner_by_name(reference: Value<'_>, owner: &OwnerClusterRole) -> bool {
    reference.get("kind").str() == "ClusterRole" && reference.get("name").str() == owner.name
}

/// An item of `ownerReferences` for the owner, as JSON.
fn owner_reference(owner: &OwnerClusterRole) -> String {
    let OwnerClusterRole { name, uid } = owner;
    format!(
        r#"{{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","name":"{name}","uid":"{uid}"}}"#
    )
}

/// A desired entry as JSON, with the stored caBundle if it has none itself: another controller injects it.
fn entry_with_stored_bundle_if_missing(desired: Value<'_>, stored: Value<'_>) -> String {
    let config = client_config_keeping_stored_bundle(desired.get("clientConfig"), stored);
    with_member(desired, "clientConfig", &config)
}

/// The desired clientConfig as JSON, with the stored caBundle if it has none itself.
fn client_config_keeping_stored_bundle(client: Value<'_>, stored: Value<'_>) -> String {
    let bundle = stored.get("clientConfig").get("caBundle");
    if client.get("caBundle").exists() || !bundle.exists() {
        return client.to_json();
    }
    with_member(client, "caBundle", &bundle.to_json())
}

/// The object as JSON, with one member added or replaced; `value` is JSON.
pub(crate) fn with_member(object: Value<'_>, name: &str, value: &str) -> String {
    with_members(object, &[(name, value)])
}

/// The object as JSON, with these members added or replaced; their values are JSON.
fn with_members(object: Value<'_>, changed: &[(&str, &str)]) -> String {
    let is_kept = |member: &Value<'_>| changed.iter().all(|(name, _)| member.text() != *name);
    let others = object.members().filter(|(member, _)| is_kept(member));
    let others = others.map(|(member, value)| format!("{}:{}", member.to_json(), value.to_json()));
    let changed = changed.iter().map(|(name, value)| format!("\"{name}\":{value}"));
    format!("{{{}}}", others.chain(changed).collect::<Vec<_>>().join(","))
}

/// True if both values mean the same to the API server: the order of members does not matter, and an absent or null
/// value equals an empty list or object, but not an empty string. Decides whether a webhook configuration must be
/// written again.
fn are_equal_with_absent_as_empty(one: Value<'_>, other: Value<'_>) -> bool {
    let is_nothing = |value: Value<'_>| {
        !value.exists()
            || match value.kind() {
                ValueKind::Null => true,
                ValueKind::Object => value.members().next().is_none(),
                ValueKind::Array => value.is_empty(),
                _ => false,
            }
    };
    if is_nothing(one) || is_nothing(other) {
        return is_nothing(one) && is_nothing(other);
    }
    match one.kind() {
        ValueKind::Object => {
            let covers = |one: Value<'_>, other: Value<'_>| {
                one.members()
                    .all(|(name, value)| are_equal_with_absent_as_empty(value, other.get(name.text())))
            };
            other.kind() == ValueKind::Object && covers(one, other) && covers(other, one)
        }
        ValueKind::Array => {
            other.kind() == ValueKind::Array
                && one.len() == other.len()
                && one
                    .items()
                    .zip(other.items())
                    .all(|(one, other)| are_equal_with_absent_as_empty(one, other))
        }
        kind => kind == other.kind() && one.text() == other.text(),
    }
}

#[cfg(test)]
mod tests;
