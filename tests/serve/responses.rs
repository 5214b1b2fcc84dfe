//! Tests the responses: recordings as `admit` answers them, and anything else with the right status code and a
//! reason.

use serde_json::{Value, json};
use tollgate::{Endpoint, LabelsIfKnown, admit};

use crate::client::{Client, request};
use crate::reviews::{faults, recordings};
use crate::running::{Running, engine};

fn now() -> String {
    chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
}

#[test]
fn recordings_get_the_bytes_of_admit() {
    let server = Running::start(|_| {});
    let mut link = server.client().connect().expect("connected");
    let (text, engine) = (recordings(), engine());
    let mut count = 0;
    for line in text.lines() {
        let recording = tollgate::parse_json(line).expect("JSON");
        let (name, review) = (recording.root().get("name").str(), recording.root().get("review"));
        // As recorded: compact JSON and one newline.
        let body = format!("{}\n", review.to_json());
        for (path, side) in
            [("/validate?timeout=10s", Endpoint::Validate), ("/mutate?timeout=10s", Endpoint::Mutate)]
        {
            let ask = |now: &str| {
                admit(&engine, body.as_bytes(), side, now, &LabelsIfKnown::Unknown).expect("a review")
            };
            let before = ask(&now());
            let reply = link.post(path, body.as_bytes()).expect("an answer");
            let after = ask(&now());
            assert_eq!(
                (reply.status, reply.header("content-type")),
                (200, Some("application/json")),
                "{name}"
            );
            assert!(reply.body == before || reply.body == after, "{name} {path}: {}", reply.text());
            let uid = review.get("request").get("uid").str();
            assert_eq!(faults(uid, side, &reply.text()), Vec::<String>::new(), "{name} {path}");
            count += 1;
        }
    }
    assert_eq!(count, 120);
    assert_eq!(server.metric("tollgate_connections"), 1, "one connection carried them all");
}

fn review() -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "4b5f5c2e-0000-4000-8000-000000000001",
            "kind": {"group": "resource.k8s.io", "version": "v1", "kind": "ResourceClaim"},
            "resource": {"group": "resource.k8s.io", "version": "v1", "resource": "resourceclaims"},
            "name": "training", "namespace": "ml", "operation": "CREATE", "dryRun": false,
            "object": {
                "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
                "metadata": {"name": "training", "namespace": "ml"},
                "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {
                    "deviceClassName": "gpu.example.com", "allocationMode": "ExactCount", "count": 1}}]}}
            },
            "oldObject": null,
            "userInfo": {"username": "a"}
        }
    })
}

/// The review with one value changed; `null` removes it.
fn with(pointer: &str, value: Value) -> Vec<u8> {
    let mut review = review();
    *review.pointer_mut(pointer).expect("a place") = value;
    review.to_string().into_bytes()
}

/// Bytes to send, the code to expect, and whether the answer to a 200 allows.
fn malformed() -> Vec<(String, Vec<u8>, u16, Option<bool>)> {
    let mut all: Vec<(String, Vec<u8>, u16, Option<bool>)> = Vec::new();
    let good = review().to_string();
    let mut post = |name: String, body: &[u8], code: u16| {
        all.push((name, request("POST", "/validate", "application/json", body), code, None));
    };
    // Not JSON: cut off anywhere, or something else.
    for cut in (0..good.len()).step_by(good.len() / 24) {
        post(format!("cut at {cut}"), &good.as_bytes()[..cut], 400);
    }
    for text in [
        "",
        " ",
        "nul",
        "hello",
        "{]",
        "{\"a\":}",
        "{\"a\":1,}",
        "[1,2",
        "{\"request\":{\"uid\":\"\\ud800\\x\"}}",
        "\u{feff}{}",
        "'{}'",
        "{} {}",
        "01",
        "{\"a\":1}}",
        "apiVersion: v1\nkind: AdmissionReview\n",
    ] {
        post(format!("not JSON: {text:?}"), text.as_bytes(), 400);
    }
    post("not UTF-8".to_owned(), b"{\"request\":\"\xff\xfe\"}", 400);
    // JSON, but no review.
    for text in [
        "null",
        "true",
        "7",
        "\"text\"",
        "[]",
        "{}",
        "{\"request\":null}",
        "{\"request\":[]}",
        "{\"request\":7}",
        "{\"kind\":\"Pod\",\"request\":{}}",
        "{\"kind\":7,\"request\":{}}",
        "{\"apiVersion\":\"v1\",\"request\":{}}",
    ] {
        post(format!("no review: {text}"), text.as_bytes(), 400);
    }
    for version in ["admission.k8s.io/v1beta1", "admission.k8s.io/v2", "admission.k8s.io", ""] {
        post(format!("version {version}"), &with("/apiVersion", json!(version)), 400);
    }
    // Wrong types where the envelope has strings.
    for place in [
        "/request/uid",
        "/request/name",
        "/request/namespace",
        "/request/operation",
        "/request/kind/group",
        "/request/resource/resource",
    ] {
        for value in [json!(7), json!(true), json!([]), json!({})] {
            post(format!("{place} = {value}"), &with(place, value), 400);
        }
    }
    for operation in ["PATCH", "create", "", "DELETECOLLECTION"] {
        post(format!("operation {operation:?}"), &with("/request/operation", json!(operation)), 400);
    }
    // Deep nesting, inside and outside of the object.
    for (depth, open, close) in [(200_000, "[", "]"), (200_000, "{\"a\":", "}"), (100_001, "[", "")] {
        let nested = format!("{}1{}", open.repeat(depth), close.repeat(depth));
        post(format!("{depth} deep {open}"), nested.as_bytes(), 400);
        let inside = good.replace("\"oldObject\":null", &format!("\"oldObject\":{nested}"));
        post(format!("{depth} deep {open} inside"), inside.as_bytes(), 400);
    }
    post("too large".to_owned(), &vec![b' '; (8 << 20) + 1], 413);
    let mut raw = |name: &str, method: &str, path: &str, media_type: &str, code: u16| {
        all.push((name.to_owned(), request(method, path, media_type, good.as_bytes()), code, None));
    };
    for media_type in
        ["text/plain", "application/yaml", "application/json-patch+json", "application/jsonx", "*/*", "json"]
    {
        raw(media_type, "POST", "/validate", media_type, 415);
    }
    for method in ["GET", "PUT", "DELETE", "PATCH", "OPTIONS"] {
        raw(method, method, "/mutate", "application/json", 405);
    }
    for path in ["/", "/validate/", "/Validate", "/metrics", "/livez", "/readyz", "/validate/x"] {
        raw(path, "POST", path, "application/json", 404);
    }
    let mut judged = |name: &str, body: Vec<u8>, allowed: bool| {
        all.push((
            name.to_owned(),
            request("POST", "/validate", "application/json", &body),
            200,
            Some(allowed),
        ));
    };
    // Reviews whose object is broken are answered like any other: refused.
    judged("null object", with("/request/object", json!(null)), false);
    judged("object is a list", with("/request/object", json!([])), false);
    judged("object is text", with("/request/object", json!("x")), false);
    judged("spec is text", with("/request/object/spec", json!("x")), false);
    judged("requests is a number", with("/request/object/spec/devices/requests", json!(7)), false);
    judged("metadata is a list", with("/request/object/metadata", json!([])), false);
    judged("no kind in the object", with("/request/object/kind", json!("")), false);
    judged("another kind's review", with("/request/kind/group", json!("apps")), false);
    judged("another kind's object", with("/request/object/apiVersion", json!("apps/v1")), false);
    judged("deletion", with("/request/operation", json!("DELETE")), true);
    judged("charset", with("/request/name", json!("other")), true);
    all
}

#[test]
fn malformed_requests_are_told_why_and_hurt_nobody() {
    let server = Running::start(|_| {});
    let client = server.client();
    let good = review().to_string();
    let mut link = client.connect().expect("connected");
    let cases = malformed();
    assert!(cases.len() >= 100, "{} cases", cases.len());
    for (name, bytes, code, allowed) in &cases {
        // The server may answer and close before it has read everything.
        let _ = link.send(bytes);
        let reply = link.receive().unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(reply.status, *code, "{name}: {}", reply.text());
        let text = reply.text();
        assert!(!text.contains('\n'), "{name}: {text}");
        let answer: Value = serde_json::from_str(&text).expect("JSON");
        if let Some(allowed) = allowed {
            assert_eq!(answer["response"]["allowed"], json!(allowed), "{name}: {text}");
        } else {
            assert_eq!((&answer["kind"], &answer["code"]), (&json!("Status"), &json!(code)), "{name}");
            assert!(!answer["message"].as_str().unwrap_or_default().is_empty(), "{name}: {text}");
        }
        match code {
            405 => assert_eq!(reply.header("allow"), Some("POST")),
            _ => assert_eq!(reply.header("allow"), None),
        }
        if reply.closes() {
            link = client.connect().expect("connected");
        }
        let next =
            link.post("/validate", good.as_bytes()).unwrap_or_else(|error| panic!("after {name}: {error}"));
        assert_eq!(next.status, 200, "after {name}");
        assert!(next.text().contains("\"allowed\":true"), "after {name}: {}", next.text());
    }
    assert_eq!(server.metric("tollgate_panics_total"), 0);
    let refused = |code: u16| cases.iter().map(|case| i64::from(case.2 == code)).sum::<i64>();
    for code in [400, 404, 405, 413, 415] {
        let name = format!("tollgate_http_errors_total{{code=\"{code}\"}}");
        assert_eq!(server.metric(&name), refused(code), "{name}");
    }
}

#[test]
fn what_is_counted_never_names_users_or_objects() {
    let server = Running::start(|_| {});
    let mut link = server.client().connect().expect("connected");
    let mut bad = review();
    bad["request"]["object"]["spec"]["devices"]["requests"][0]["exactly"]["tolerations"] = json!("training");
    for (path, review) in [("/validate", review()), ("/validate", bad), ("/mutate", review())] {
        assert_eq!(link.post(path, review.to_string().as_bytes()).expect("an answer").status, 200);
    }
    let text = server.get("/metrics").text();
    for line in [
        r#"tollgate_requests_total{webhook="validate",resource="resourceclaims",operation="CREATE",decision="allowed"} 1"#,
        r#"tollgate_requests_total{webhook="validate",resource="resourceclaims",operation="CREATE",decision="denied"} 1"#,
        r#"tollgate_requests_total{webhook="mutate",resource="resourceclaims",operation="CREATE",decision="allowed"} 1"#,
        r#"tollgate_request_duration_seconds_count{webhook="validate"} 2"#,
        "tollgate_in_flight 0",
    ] {
        assert!(text.lines().any(|known| known == line), "{line}\nin\n{text}");
    }
    for word in ["training", "\"ml\"", "username", "4b5f5c2e"] {
        assert!(!text.contains(word), "{word} in\n{text}");
    }
    assert!(text.contains("tollgate_build_info{version="), "{text}");
    assert!(text.ends_with("# EOF\n"));
}

#[test]
fn health_is_told_on_the_plain_port_only() {
    let server = Running::start(|_| {});
    assert_eq!(server.get("/livez").text(), "ok\n");
    assert_eq!((server.get("/readyz").status, server.get("/readyz").text().as_str()), (200, "ok\n"));
    let verbose = server.get("/readyz?verbose").text();
    for part in
        ["[+]serving ok\n", "[+]server ok (expires in ", "[+]engine ok (profiles kep-5055)\n", "\nok\n"]
    {
        assert!(verbose.contains(part), "{verbose}");
    }
    assert_eq!(server.get("/validate").status, 404);
}

#[test]
fn http2_is_not_offered() {
    let server = Running::start(|_| {});
    let both = server.client().offering(&["h2", "http/1.1"]);
    assert_eq!(both.connect().expect("connected").protocol().as_deref(), Some("http/1.1"));
    assert!(server.client().offering(&["h2"]).connect().is_err(), "there is nothing to agree on");
}

#[test]
fn tls_1_2_is_spoken_only_when_asked_for() {
    let old = |server: &Running| Client::only(server.address, &server.authorities, &rustls::version::TLS12);
    let server = Running::start(|_| {});
    assert!(old(&server).connect().is_err());
    let server =
        Running::start(|settings| settings.tls_versions = tollgate::server::TlsVersions::Tls12AndTls13);
    let body = review().to_string();
    assert_eq!(old(&server).post("/validate", body.as_bytes()).expect("an answer").status, 200);
    assert_eq!(server.client().post("/validate", body.as_bytes()).expect("an answer").status, 200);
}
