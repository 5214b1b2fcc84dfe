//! An AdmissionReview in, a response out: the response is JSON of bounded size that repeats the UID, the answer to the
//! same review is the same, and a patched object is decoded like the original and needs no further patch.

use std::sync::{Arc, LazyLock};

use tollgate_api::profile::{self, Profile};
use tollgate_document::doc;
use tollgate_engine::engine::{
    Review, decode_review_text_like_go, json_patch, parse_review_unless_too_dense,
};
use tollgate_engine::{Attributes, Endpoint, Engine, LabelsIfKnown, PolicyFile, PolicySet, RuleSet, admit};

const NOW: &str = "2026-11-15T03:04:05Z";

/// Engines as `serve` has them: with the shipped policies, and without.
static ENGINES: LazyLock<Vec<Engine>> = LazyLock::new(|| {
    let policies = Arc::new(PolicySet::load(&shipped_policies(), &|_| Err(String::new())).expect("valid"));
    let with_policies = |profile: &'static Profile| engine(profile).with_policies(Arc::clone(&policies));
    profile::ALL.iter().flat_map(|profile| [engine(profile), with_policies(profile)]).collect()
});

/// Engines that only decode, one for each profile.
static DECODERS: LazyLock<Vec<Engine>> = LazyLock::new(|| {
    let decoder = |profile: &'static Profile| {
        Engine::new(vec![profile], RuleSet::parse("decoding").expect("an origin")).for_server_requests()
    };
    profile::ALL.iter().map(|profile| decoder(profile)).collect()
});

fn engine(profile: &'static Profile) -> Engine {
    let rules = RuleSet::parse("upstream,documented,lint,decoding,policy").expect("origins");
    Engine::new(vec![profile], rules).for_server_requests()
}

/// The policies of `policies/`.
#[expect(clippy::disallowed_methods, reason = "reads the shipped policies")]
pub(crate) fn shipped_policies() -> Vec<PolicyFile> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../policies");
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with(".yaml") {
            let text = std::fs::read_to_string(entry.path()).expect("UTF-8");
            files.push(PolicyFile { name, text });
        }
    }
    files.sort_by(|one, other| one.name.cmp(&other.name));
    files
}

/// The first byte selects the engine; the rest is the review.
pub(crate) fn run(data: &[u8]) {
    let Some((&choice, review)) = data.split_first() else { return };
    let choice = usize::from(choice) % ENGINES.len();
    let engine = &ENGINES[choice];
    for endpoint in [Endpoint::Validate, Endpoint::Mutate] {
        let Ok(response) = admit(engine, review, endpoint, NOW, &LabelsIfKnown::Unknown) else {
            return;
        };
        assert!(response.len() <= 1 << 20, "a response of {} bytes", response.len());
        let again = admit(engine, review, endpoint, NOW, &LabelsIfKnown::Unknown).expect("read once");
        assert!(response == again, "two answers to one review");
        let text = std::str::from_utf8(&response).expect("UTF-8");
        let response = doc::parse(text).expect("JSON");
        let text = decode_review_text_like_go(review);
        let request = parse_review_unless_too_dense(&text).expect("read before");
        let uid = last_member(last_member(request.root(), "request"), "uid");
        if uid.kind() == doc::ValueKind::String {
            let answered = response.root().get("response").get("uid");
            assert_eq!(answered.text(), uid.text(), "another UID");
        }
    }
    patched_object_needs_no_patch(engine, &DECODERS[choice / 2], review);
}

/// The last member with that name: the one that counts in Go if there are several.
fn last_member<'d>(object: doc::Value<'d>, name: &str) -> doc::Value<'d> {
    let named = object.members().filter(|(key, _)| key.text_is(name));
    named.last().map_or(doc::Value::absent(), |(_, value)| value)
}

fn patched_object_needs_no_patch(engine: &Engine, decoder: &Engine, review: &[u8]) {
    let text = decode_review_text_like_go(review);
    let Ok(document) = parse_review_unless_too_dense(&text) else { return };
    let Ok(review) = Review::read(engine, document.root()) else { return };
    let request = &review.request;
    let attributes = Attributes::for_create(request.object, "", NOW);
    let edits = engine.mutate(&attributes, LabelsIfKnown::Unknown).edits;
    if edits.is_empty() {
        return;
    }
    let Some(patched) = patched(request.object, &json_patch(&edits)) else { return };
    let patched = doc::parse(&patched).expect("a patched object is JSON");
    let errors = |object| {
        decoder.validate(&Attributes::for_create(object, "", NOW), LabelsIfKnown::Unknown).findings().len()
    };
    assert!(errors(patched.root()) <= errors(request.object), "the patched object is not decoded");
    let attributes = Attributes::for_create(patched.root(), "", "2030-01-01T00:00:00Z");
    let edits = engine.mutate(&attributes, LabelsIfKnown::Unknown).edits;
    assert!(edits.is_empty(), "the patched object is patched again: {edits:?}");
}

/// Applies a JSON patch as the API server does, which knows nothing of tapes. `None` for an object with duplicate keys
/// or with numbers that do not fit, which an API server never sends.
#[expect(clippy::disallowed_types, reason = "a second implementation, to compare with")]
fn patched(object: doc::Value<'_>, patch: &str) -> Option<String> {
    use serde_json::Value;
    let mut tree: Value = serde_json::from_str(&object.to_json()).ok()?;
    if doc::parse(&tree.to_string()).ok()?.root().node_count() != object.node_count() {
        return None;
    }
    let operations: Vec<Value> = serde_json::from_str(patch).expect("a list of operations");
    for operation in operations {
        let path = operation["path"].as_str().expect("a path");
        let (parent, last) = path.rsplit_once('/').expect("a pointer");
        let last = last.replace("~1", "/").replace("~0", "~");
        let value = operation["value"].clone();
        match tree.pointer_mut(parent).unwrap_or_else(|| panic!("nothing at {parent}: {patch}")) {
            Value::Object(members) => {
                let replaced = members.insert(last, value).is_some();
                assert!(replaced || operation["op"] == "add", "nothing to replace: {patch}");
            }
            Value::Array(items) if operation["op"] == "add" => {
                let at = if last == "-" { items.len() } else { last.parse().expect("an index") };
                items.insert(at, value);
            }
            Value::Array(items) => items[last.parse::<usize>().expect("an index")] = value,
            other => panic!("{parent} is {other}: {patch}"),
        }
    }
    Some(tree.to_string())
}
