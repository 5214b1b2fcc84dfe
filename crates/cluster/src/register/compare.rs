//! Compares the stored webhook configuration with the desired one, and makes the patch between them.
//!
//! Every field that decides what is sent to the webhook is compared as a whole. A `matchConditions` entry, a selector
//! or a rule that another program added narrows the registration, so it is not enough that all desired values are
//! present. Entries of others, and fields that this version does not know, are kept.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use tollgate_document::doc::{Value, ValueKind};

/// Suffix by which entries of Tollgate in a webhook configuration are recognized.
const WEBHOOK_NAME_SUFFIX: &str = ".tollgate.dev";

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

/// The desired entries that are not stored. Each of them is also one of the [`differences`].
pub(super) fn missing_entries<'d>(stored: Value<'d>, desired: Value<'d>) -> impl Iterator<Item = Value<'d>> {
    let desired = desired.get("webhooks").items();
    desired.filter(move |webhook| find_entry(stored, webhook.get("name").str()).is_none())
}

/// The differences between the stored and the desired configuration, as `entry: field`.
pub(super) fn differences(
    stored: Value<'_>,
    desired: Value<'_>,
    owner: Option<&OwnerClusterRole>,
    narrowing: NarrowingPermission,
) -> Vec<String> {
    let mut found = Vec::new();
    for webhook in desired.get("webhooks").items() {
        let name = webhook.get("name").str();
        let Some(stored) = find_entry(stored, name) else {
            found.push(format!("{name}: missing"));
            continue;
        };
        found.extend(address_differences(name, stored, webhook));
        let must_stay_fail_closed = narrowing.must_stay_fail_closed(stored, webhook);
        let is_kept = |field: &str| field == "failurePolicy" && must_stay_fail_closed;
        let is_different = |field: &&str| {
            !are_equal_with_absent_as_empty(webhook.get(field), stored.get(field)) && !is_kept(field)
        };
        let fields = COMPARED_FIELDS.into_iter().filter(is_different);
        found.extend(fields.map(|field| format!("{name}: {field}")));
    }
    // An entry of Tollgate that is not desired may belong to another replica; the API server must still be able to call
    // it.
    let first = desired.get("webhooks").item(0);
    for stored in undesired_tollgate_entries(stored, desired).filter(|_| first.exists()) {
        found.extend(address_differences(stored.get("name").str(), stored, first));
    }
    // The command that removes all configurations in an emergency selects them by label.
    let labels = stored.get("metadata").get("labels");
    let is_missing = |(name, value): (Value<'_>, Value<'_>)| labels.get(name.text()).str() != value.str();
    if desired.get("metadata").get("labels").members().any(is_missing) {
        found.push("metadata.labels".to_owned());
    }
    if let Some(owner) = owner
        && !owner_references(stored).any(|reference| {
            refers_to_owner_by_name(reference, owner) && reference.get("uid").str() == owner.uid
        })
    {
        found.push("metadata.ownerReferences".to_owned());
    }
    found
}

/// The differences in the address that the API server calls and in the CA that it trusts there.
fn address_differences(name: &str, stored: Value<'_>, desired: Value<'_>) -> Vec<String> {
    let (stored, desired) = (stored.get("clientConfig"), desired.get("clientConfig"));
    let is_compared = |field: &&str| *field != "caBundle" || desired.get(field).exists();
    let fields = ["url", "service", "caBundle"].into_iter().filter(is_compared);
    let different =
        fields.filter(|field| !are_equal_with_absent_as_empty(desired.get(field), stored.get(field)));
    different.map(|field| format!("{name}: clientConfig.{field}")).collect()
}

/// The address of an entry of Tollgate that is not the desired one; `None` if there is none. Another server uses the
/// name.
pub(super) fn undesired_address(stored: Value<'_>, desired: Value<'_>) -> Option<String> {
    let own = desired.get("webhooks").item(0).get("clientConfig");
    let mut entries = stored.get("webhooks").items();
    entries.find_map(|webhook| {
        let config = webhook.get("clientConfig");
        let is_other = webhook.get("name").str().ends_with(WEBHOOK_NAME_SUFFIX)
            && own.exists()
            && webhook_address(config) != webhook_address(own);
        // It gets into a log and a response: whoever wrote it decides about its characters.
        is_other.then(|| webhook_address(config).chars().filter(char::is_ascii_graphic).take(300).collect())
    })
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

/// True if a stored entry of Tollgate is not desired.
pub(super) fn has_undesired_tollgate_entries(stored: Value<'_>, desired: Value<'_>) -> bool {
    undesired_tollgate_entries(stored, desired).next().is_some()
}

/// The stored entries of Tollgate that are not desired.
fn undesired_tollgate_entries<'d>(stored: Value<'d>, desired: Value<'d>) -> impl Iterator<Item = Value<'d>> {
    stored.get("webhooks").items().filter(move |webhook| {
        let name = webhook.get("name").str();
        name.ends_with(WEBHOOK_NAME_SUFFIX) && find_entry(desired, name).is_none()
    })
}

/// True if an entry of Tollgate has no caBundle, so that the API server trusts only its own roots there.
pub(super) fn any_tollgate_entry_lacks_ca_bundle(stored: Value<'_>) -> bool {
    let ours = stored
        .get("webhooks")
        .items()
        .filter(|webhook| webhook.get("name").str().ends_with(WEBHOOK_NAME_SUFFIX));
    let mut bundles = ours.map(|webhook| webhook.get("clientConfig").get("caBundle").str());
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
    desired: Value<'_>,
    owner: Option<&OwnerClusterRole>,
    keep_leftovers: bool,
    narrowing: NarrowingPermission,
) -> String {
    let mut webhooks: Vec<String> = Vec::new();
    let first = desired.get("webhooks").item(0);
    let sibling = tollgate_entry_with_bundle(stored).unwrap_or(Value::absent());
    for stored in stored.get("webhooks").items() {
        let name = stored.get("name").str();
        match find_entry(desired, name) {
            Some(webhook) if narrowing.must_stay_fail_closed(stored, webhook) => {
                let fields = [
                    ("clientConfig", &*client_config_keeping_stored_bundle(webhook, stored)),
                    ("failurePolicy", "\"Fail\""),
                ];
                webhooks.push(with_members(webhook, &fields));
            }
            Some(webhook) => webhooks.push(entry_with_stored_bundle_if_missing(webhook, stored)),
            None if name.ends_with(WEBHOOK_NAME_SUFFIX) && !keep_leftovers => {}
            None if name.ends_with(WEBHOOK_NAME_SUFFIX) && first.exists() => {
                webhooks.push(with_member(
                    stored,
                    "clientConfig",
                    &client_config_keeping_stored_bundle(first, stored),
                ));
            }
            None => webhooks.push(stored.to_json()),
        }
    }
    // If another controller injects the caBundle, a new entry starts with that of its siblings.
    webhooks.extend(
        missing_entries(stored, desired).map(|webhook| entry_with_stored_bundle_if_missing(webhook, sibling)),
    );
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
    let decoded = texts.iter().filter_map(|text| STANDARD.decode(text).ok());
    decoded.filter_map(|bytes| String::from_utf8(bytes).ok()).collect()
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
    with_member(desired, "clientConfig", &client_config_keeping_stored_bundle(desired, stored))
}

/// The desired clientConfig as JSON, with the stored caBundle if it has none itself.
fn client_config_keeping_stored_bundle(desired: Value<'_>, stored: Value<'_>) -> String {
    let (client, bundle) = (desired.get("clientConfig"), stored.get("clientConfig").get("caBundle"));
    if client.get("caBundle").exists() || !bundle.exists() {
        return client.to_json();
    }
    with_member(client, "caBundle", &bundle.to_json())
}

/// The first stored entry that belongs to Tollgate and has a caBundle.
fn tollgate_entry_with_bundle(stored: Value<'_>) -> Option<Value<'_>> {
    stored.get("webhooks").items().find(|webhook| {
        let bundle = webhook.get("clientConfig").get("caBundle");
        webhook.get("name").str().ends_with(WEBHOOK_NAME_SUFFIX) && !bundle.str().is_empty()
    })
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
mod tests {
    use super::{
        NarrowingPermission, OwnerClusterRole, any_tollgate_entry_lacks_ca_bundle, differences,
        has_undesired_tollgate_entries, merge_patch_to_desired, merged_ca_bundle_pem,
    };
    use tollgate_document::doc;

    const WANTED: &str = r#"{"metadata":{"name":"t"},"webhooks":[{"name":"a.tollgate.dev","clientConfig":{"url":"u"},
        "rules":[{"resources":["x","y"]}],"matchConditions":[{"name":"c","expression":"true"}]}]}"#;

    fn told(stored: &str) -> Vec<String> {
        differences(
            doc::parse(stored).unwrap().root(),
            doc::parse(WANTED).unwrap().root(),
            None,
            NarrowingPermission::Allowed,
        )
    }

    /// A stored entry like the wanted one, with its last member given.
    fn stored(rest: &str) -> String {
        format!(
            r#"{{"webhooks":[{{"name":"b.example.com","clientConfig":{{}}}},{{"matchPolicy":null,"objectSelector":{{}},
               "rules":[{{"resources":["x","y"]}}],"clientConfig":{{"url":"u","caBundle":"QQ=="}},"name":"a.tollgate.dev",{rest}}}]}}"#
        )
    }

    #[test]
    fn whatever_narrows_an_entry_is_a_difference() {
        let conditions = r#""matchConditions":[{"expression":"true","name":"c"}]"#;
        assert_eq!(told(&stored(conditions)), [""; 0]);
        let more =
            r#""matchConditions":[{"name":"c","expression":"true"},{"name":"d","expression":"false"}]"#;
        assert_eq!(told(&stored(more)), ["a.tollgate.dev: matchConditions"]);
        for (field, value) in [
            ("objectSelector", r#"{"matchLabels":{"a":"b"}}"#),
            ("namespaceSelector", r#"{"matchLabels":{"a":"b"}}"#),
            ("failurePolicy", r#""Ignore""#),
            ("timeoutSeconds", "1"),
            ("matchPolicy", r#""Exact""#),
        ] {
            let stored = stored(conditions).replace(r#""matchPolicy":null,"objectSelector":{},"#, "");
            let narrowed = stored.replace(r#""rules":"#, &format!(r#""{field}":{value},"rules":"#));
            assert_eq!(told(&narrowed), [format!("a.tollgate.dev: {field}")]);
        }
        assert_eq!(told(&stored(conditions).replace(r#","y""#, "")), ["a.tollgate.dev: rules"]);
        assert_eq!(told(r#"{"webhooks":[]}"#), ["a.tollgate.dev: missing"]);
        let by_service = stored(conditions).replace(r#""url":"u""#, r#""url":"u","service":{"name":"s"}"#);
        assert_eq!(told(&by_service), ["a.tollgate.dev: clientConfig.service"]);
    }

    #[test]
    fn a_patch_replaces_our_entries_and_keeps_those_of_others() {
        let stored = r#"{"metadata":{"resourceVersion":"7","ownerReferences":[{"kind":"ClusterRole","name":"r","uid":"old"},
            {"kind":"X","name":"x","uid":"1"}]},"webhooks":[{"name":"b.example.com"},
            {"name":"a.tollgate.dev","clientConfig":{"service":{},"caBundle":"QQ=="}},{"name":"old.tollgate.dev"}]}"#;
        let (stored, desired) = (doc::parse(stored).unwrap(), doc::parse(WANTED).unwrap());
        let owner = OwnerClusterRole { name: "r".to_owned(), uid: "new".to_owned() };
        let written = merge_patch_to_desired(
            stored.root(),
            desired.root(),
            Some(&owner),
            false,
            NarrowingPermission::Allowed,
        );
        let after = doc::parse(&written).unwrap();
        let names: Vec<&str> =
            after.root().get("webhooks").items().map(|webhook| webhook.get("name").str()).collect();
        assert_eq!(names, ["b.example.com", "a.tollgate.dev"]);
        assert_eq!(
            differences(after.root(), desired.root(), Some(&owner), NarrowingPermission::Allowed),
            [""; 0]
        );
        let client = after.root().get("webhooks").item(1).get("clientConfig");
        assert_eq!((client.get("caBundle").str(), client.get("service").exists()), ("QQ==", false));
        assert_eq!(after.root().get("metadata").get("resourceVersion").str(), "7");
        assert_eq!(after.root().get("metadata").get("ownerReferences").len(), 2);
        assert!(
            has_undesired_tollgate_entries(stored.root(), desired.root())
                && !has_undesired_tollgate_entries(after.root(), desired.root())
        );
        // What another replica needs stays, and can be called.
        let kept =
            merge_patch_to_desired(stored.root(), desired.root(), None, true, NarrowingPermission::Allowed);
        let kept = doc::parse(&kept).unwrap();
        let old = kept.root().get("webhooks").item(2);
        assert_eq!(
            (old.get("name").str(), old.get("clientConfig").get("url").str()),
            ("old.tollgate.dev", "u")
        );
        assert!(
            differences(stored.root(), desired.root(), None, NarrowingPermission::Allowed)
                .contains(&"old.tollgate.dev: clientConfig.url".to_owned())
        );
    }

    #[test]
    fn an_entry_that_fails_closed_stays_so_unless_narrowing_is_allowed() {
        let stored = WANTED.replace("\"rules\"", "\"failurePolicy\":\"Fail\",\"rules\"");
        let open = WANTED.replace("\"rules\"", "\"failurePolicy\":\"Ignore\",\"rules\"");
        let (stored, open) = (doc::parse(&stored).unwrap(), doc::parse(&open).unwrap());
        let (stored, open) = (stored.root(), open.root());
        assert_eq!(
            differences(stored, open, None, NarrowingPermission::Allowed),
            ["a.tollgate.dev: failurePolicy"]
        );
        assert_eq!(differences(stored, open, None, NarrowingPermission::Forbidden), [""; 0]);
        assert_eq!(
            differences(open, stored, None, NarrowingPermission::Forbidden),
            ["a.tollgate.dev: failurePolicy"]
        );
        for (narrowing, expected) in
            [(NarrowingPermission::Allowed, "Ignore"), (NarrowingPermission::Forbidden, "Fail")]
        {
            let written = merge_patch_to_desired(stored, open, None, true, narrowing);
            let after = doc::parse(&written).unwrap();
            let webhook = after.root().get("webhooks").item(0);
            assert_eq!(webhook.get("failurePolicy").str(), expected);
            assert_eq!(webhook.get("clientConfig").get("url").str(), "u");
        }
    }

    #[test]
    fn a_new_entry_gets_the_bundle_that_somebody_injected() {
        let stored = r#"{"metadata":{"resourceVersion":"7"},"webhooks":[{"name":"b.tollgate.dev","clientConfig":{"url":"u","caBundle":"QQ=="}}]}"#;
        let (stored, desired) = (doc::parse(stored).unwrap(), doc::parse(WANTED).unwrap());
        let written =
            merge_patch_to_desired(stored.root(), desired.root(), None, true, NarrowingPermission::Allowed);
        let after = doc::parse(&written).unwrap();
        assert_eq!(after.root().get("webhooks").item(1).get("clientConfig").get("caBundle").str(), "QQ==");
        assert!(
            any_tollgate_entry_lacks_ca_bundle(desired.root())
                && !any_tollgate_entry_lacks_ca_bundle(after.root())
        );
    }

    #[test]
    fn the_bundles_of_all_webhooks_are_read() {
        let stored = doc::parse(
            r#"{"webhooks":[{"clientConfig":{"caBundle":"QQ=="}},{"clientConfig":{"caBundle":"QQ=="}},
                {"clientConfig":{"caBundle":"Qg=="}},{"clientConfig":{}},{"clientConfig":{"caBundle":"?"}}]}"#,
        )
        .unwrap();
        assert_eq!(merged_ca_bundle_pem(stored.root()), "AB");
    }
}
