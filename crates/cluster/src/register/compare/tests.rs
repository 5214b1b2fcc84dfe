//! What counts as a difference, and what a patch keeps.

use super::{
    Desired, NarrowingPermission, OwnerClusterRole, any_tollgate_entry_lacks_ca_bundle,
    merge_patch_to_desired, merged_ca_bundle_pem, undesired_tollgate_entries,
};
use tollgate_document::doc::{self, Value};

/// The desired configuration with this manifest; all its entries have the clientConfig of the first one.
fn desired(manifest: Value<'_>) -> Desired<'_> {
    Desired { manifest, client_config: manifest.get("webhooks").item(0).get("clientConfig") }
}

fn merge_patch(
    stored: Value<'_>,
    manifest: Value<'_>,
    owner: Option<&OwnerClusterRole>,
    keep_leftovers: bool,
    narrowing: NarrowingPermission,
) -> String {
    merge_patch_to_desired(stored, desired(manifest), owner, keep_leftovers, narrowing)
}

fn has_undesired_tollgate_entries(stored: Value<'_>, manifest: Value<'_>) -> bool {
    undesired_tollgate_entries(stored, manifest).next().is_some()
}

fn differences(
    stored: Value<'_>,
    manifest: Value<'_>,
    owner: Option<&OwnerClusterRole>,
    narrowing: NarrowingPermission,
) -> Vec<String> {
    let found = super::differences(stored, desired(manifest), owner, narrowing);
    found.iter().map(ToString::to_string).collect()
}

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
    let more = r#""matchConditions":[{"name":"c","expression":"true"},{"name":"d","expression":"false"}]"#;
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
    let written =
        merge_patch(stored.root(), desired.root(), Some(&owner), false, NarrowingPermission::Allowed);
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
    let kept = merge_patch(stored.root(), desired.root(), None, true, NarrowingPermission::Allowed);
    let kept = doc::parse(&kept).unwrap();
    let old = kept.root().get("webhooks").item(2);
    assert_eq!((old.get("name").str(), old.get("clientConfig").get("url").str()), ("old.tollgate.dev", "u"));
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
        let written = merge_patch(stored, open, None, true, narrowing);
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
    let written = merge_patch(stored.root(), desired.root(), None, true, NarrowingPermission::Allowed);
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

/// A server that needs no entry at all is called for the entries of other replicas, too.
#[test]
fn entries_that_only_others_need_have_the_ca_of_this_server() {
    let stored = r#"{"webhooks":[{"name":"a.tollgate.dev","failurePolicy":"Fail","clientConfig":{"url":"u","caBundle":"QQ=="}}]}"#;
    let (manifest, config) = (r#"{"webhooks":[]}"#, r#"{"url":"u","caBundle":"Qg=="}"#);
    let (stored, manifest, config) =
        (doc::parse(stored).unwrap(), doc::parse(manifest).unwrap(), doc::parse(config).unwrap());
    let desired = Desired { manifest: manifest.root(), client_config: config.root() };
    let wrong = super::differences(stored.root(), desired, None, NarrowingPermission::Allowed);
    assert_eq!(super::joined(&wrong), "a.tollgate.dev: clientConfig.caBundle");
    let written = merge_patch_to_desired(stored.root(), desired, None, true, NarrowingPermission::Allowed);
    let after = doc::parse(&written).unwrap();
    let entry = after.root().get("webhooks").item(0);
    assert_eq!(entry.get("clientConfig").get("caBundle").str(), "Qg==");
    assert_eq!(entry.get("failurePolicy").str(), "Fail");
}
