//! Inputs to begin with, from the data of the tests: AdmissionReviews, objects, policies and expressions that people
//! wrote or servers recorded.
#![expect(clippy::disallowed_methods, reason = "reads the data of the tests")]

use std::io::Read as _;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use tollgate_document::doc;
#[cfg(fuzzing)]
use tollgate_engine::documents;

/// Inputs of a kind that are used as seeds: more of the same do not reach more code.
const MOST: usize = 600;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn lines(path: &str) -> Vec<String> {
    let bytes = std::fs::read(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut text = String::new();
    if path.ends_with(".gz") {
        GzDecoder::new(bytes.as_slice()).read_to_string(&mut text).expect("gzip");
    } else {
        text = String::from_utf8(bytes).expect("UTF-8");
    }
    text.lines().map(str::to_owned).collect()
}

/// The YAML files below a folder.
fn yaml_files(folder: &str) -> Vec<String> {
    fn read(folder: &Path, found: &mut Vec<String>) {
        let mut entries: Vec<PathBuf> =
            std::fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path()).collect();
        entries.sort();
        for path in entries {
            if path.is_dir() {
                read(&path, found);
            } else if path.extension().is_some_and(|end| end == "yaml")
                && let Ok(text) = std::fs::read_to_string(&path)
            {
                found.push(text);
            }
        }
    }
    let mut found = Vec::new();
    read(&root().join(folder), &mut found);
    found
}

/// A part of many, spread over all of them.
fn some<T>(all: Vec<T>) -> Vec<T> {
    let step = all.len().div_ceil(MOST).max(1);
    all.into_iter().step_by(step).collect()
}

/// An input whose first byte is its number: it selects the profile or the engine.
fn numbered(texts: Vec<String>) -> Vec<Vec<u8>> {
    let number = |(index, text): (usize, String)| {
        let mut input = vec![u8::try_from(index % 256).expect("below 256")];
        input.extend_from_slice(text.as_bytes());
        input
    };
    some(texts).into_iter().enumerate().map(number).collect()
}

fn field(line: &str, name: &str) -> Option<String> {
    let document = doc::parse(line).ok()?;
    let value = document.root().get(name);
    value.exists().then(|| value.to_json())
}

pub(crate) fn none() -> Vec<Vec<u8>> {
    vec![Vec::new(), (0..=255).collect()]
}

pub(crate) fn reviews() -> Vec<Vec<u8>> {
    let recorded = lines("tests/recordings/reviews.jsonl.gz");
    numbered(recorded.iter().filter_map(|line| field(line, "review")).collect())
}

pub(crate) fn objects() -> Vec<Vec<u8>> {
    let cases = lines("tests/conformance/cases.jsonl.gz");
    numbered(cases.iter().filter_map(|line| field(line, "object")).collect())
}

#[cfg(fuzzing)]
pub(crate) fn manifests() -> Vec<Vec<u8>> {
    let mut texts = yaml_files("tests/rules");
    texts.extend(yaml_files("tests/mistakes"));
    some(texts).into_iter().map(String::into_bytes).collect()
}

pub(crate) fn policies() -> Vec<Vec<u8>> {
    let mut texts = yaml_files("policies");
    texts.extend(yaml_files("tests/policy-diff"));
    texts.extend(yaml_files("tests/rules/invalid-policy"));
    some(texts).into_iter().map(String::into_bytes).collect()
}

/// Schemas with every group of keywords, each with values that it is about; and the schemas of our own reports.
pub(crate) fn schemas() -> Vec<Vec<u8>> {
    let schemas = [
        r#"{"type":"object","required":["a"],"additionalProperties":false,"properties":{"a":{"type":"number","minimum":-1}}}"#,
        r##"{"$defs":{"n":{"type":"object","properties":{"next":{"$ref":"#/$defs/n"}}}},"$ref":"#/$defs/n"}"##,
        r##"{"$defs":{"t":{"anyOf":[{"type":"null"},{"type":"array","items":{"$ref":"#/$defs/t"}},{"type":"object","additionalProperties":{"$ref":"#/$defs/t"}}]}},"$ref":"#/$defs/t"}"##,
        r##"{"$id":"https://example.com/a","$anchor":"top","$defs":{"b":{"$anchor":"b","type":["integer","string"]}},"items":{"$ref":"#b"}}"##,
        r##"{"$dynamicAnchor":"node","properties":{"next":{"$dynamicRef":"#node"}},"unevaluatedProperties":{"type":"integer"}}"##,
        r#"{"anyOf":[{"type":"string","pattern":"^a+$"},{"type":"array","items":{"enum":[1,"x",null]},"uniqueItems":true}]}"#,
        r#"{"if":{"required":["kind"]},"then":{"properties":{"kind":{"const":"x"}}},"else":{"maxProperties":2},"not":{"type":"null"}}"#,
        r#"{"oneOf":[{"minLength":2,"format":"date-time"},{"contains":{"multipleOf":2},"minContains":1,"maxContains":2}],"unevaluatedProperties":false}"#,
        r#"{"allOf":[{"properties":{"a":{"exclusiveMinimum":0,"exclusiveMaximum":1e3}}},{"patternProperties":{"^[k-n]":{"type":"string","maxLength":3}}}],"unevaluatedProperties":false}"#,
        r#"{"prefixItems":[{"type":"integer"},{"type":"string"}],"items":{"type":["null","number"]},"minItems":1,"maxItems":4,"unevaluatedItems":false}"#,
        r#"{"dependentRequired":{"a":["b"]},"dependentSchemas":{"kind":{"required":["a"],"minProperties":2}},"propertyNames":{"pattern":"^[a-z]+$"}}"#,
        r#"{"properties":{"a":{"multipleOf":0.01,"maximum":18446744073709551615},"kind":{"format":"regex"},"list":{"items":{"format":"ipv4"}},"when":{"format":"duration"}}}"#,
        r##"{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"a":{"const":{"b":[1,2.0,"c"]}}},"additionalItems":false,"items":[{"$ref":"#/definitions/a"}],"dependencies":{"a":["b"],"c":{"type":"object"}}}"##,
        r##"{"$schema":"http://json-schema.org/draft-04/schema#","properties":{"a":{"minimum":0,"exclusiveMinimum":true},"b":{"type":"any"}}}"##,
        r#"{"enum":[{"a":1},[1,2],"x",1.0,1,true,null],"title":"t","default":0,"examples":[1],"$comment":"c","x-unknown":{}}"#,
        "true",
        "false",
    ];
    let values = [
        r#"{"kind":"x","a":1}"#,
        r#"{"next":{"next":{"next":1}},"A":2,"a":0.07}"#,
        r#"{"kind":"^(a|b)*$","list":["1.2.3.4","::1"],"when":"P1DT2H","b":{}}"#,
        r#"[1,"x",null,2]"#,
        r#"[[],[[],{"k":null}],{"a":[{}]}]"#,
        r#"{"a":1e400,"b":-0,"c":123456789012345678901234567890}"#,
        r#""aaa""#,
        r#""2026-01-02T03:04:05Z""#,
        "null",
    ];
    let pair = |schema: &str, value: &str| format!("{schema}\0{value}").into_bytes();
    let mut pairs: Vec<Vec<u8>> =
        schemas.iter().flat_map(|schema| values.iter().map(move |value| pair(schema, value))).collect();
    for name in ["policy-check", "policy-diff", "devices"] {
        let text = lines(&format!("src/cli/schema/{name}.json")).concat();
        let compact = doc::parse(&text).expect("JSON").root().to_json();
        pairs.push(pair(&compact, r#"{"namespace":"a","results":[{"file":"a","line":1}],"devices":[{}]}"#));
    }
    pairs
}

pub(crate) fn expressions() -> Vec<Vec<u8>> {
    let mut texts = Vec::new();
    for file in ["tests/cel/expressions.jsonl", "tests/cel/selectors.jsonl", "tests/cel-eval/cases.jsonl"] {
        for line in lines(file) {
            let document = doc::parse(&line).expect("JSON");
            texts.push(document.root().get("expression").text().to_owned());
        }
    }
    some(texts).into_iter().map(String::into_bytes).collect()
}

pub(crate) fn formats() -> Vec<Vec<u8>> {
    let texts = [
        "1Gi",
        "100m",
        "1e3",
        "-0.5",
        "1.5Ki",
        "9223372036854775807",
        "1E",
        "1e-9",
        "+1",
        ".5",
        "0x1",
        "2026-01-02T03:04:05Z",
        "2026-01-02T03:04:05.123456789+01:00",
        "0000-12-31T23:59:60Z",
        "example.com/key",
        "a.b-c_d",
        "-a",
        "UPPER",
        "10.0.0.0/8",
        "fd00::/8",
        "::ffff:1.2.3.4/120",
        "1.2.3",
        "1.0.0-rc.1+build",
        "1.0.0-alpha.1 1.0.0-alpha.beta",
        "18446744073709551616.0.0 1.0.0--",
        "2026-01-02T03:04:05.999999999-23:59",
        "123456789012345678901234567890.5Ti",
        "1n",
        "example.com/gpu-count",
        "requests.example.com/gpu",
        "\u{202e}text",
        "a\tb",
    ];
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

pub(crate) fn snapshots() -> Vec<Vec<u8>> {
    let recorded = lines("crates/forecast/tests/recorded/scenarios.jsonl.gz");
    let short = |text: &String| text.len() < 32 << 10;
    numbered(recorded.iter().filter_map(|line| field(line, "before")).filter(short).collect())
}

#[cfg(fuzzing)]
fn framed(messages: &[String]) -> Vec<u8> {
    messages
        .iter()
        .flat_map(|body| format!("Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes())
        .collect()
}

/// The messages of `tests/lsp`, session by session.
#[cfg(fuzzing)]
pub(crate) fn editor_sessions() -> Vec<Vec<u8>> {
    let mut sessions = Vec::new();
    for text in yaml_files("tests/lsp") {
        let Some(Ok(session)) = documents(&text).next() else { continue };
        let sent =
            session.doc.root().get("steps").items().map(|step| step.get("send")).filter(|send| send.exists());
        let message = |send: doc::Value<'_>| send.to_json().replacen('{', "{\"jsonrpc\":\"2.0\",", 1);
        sessions.push(framed(&sent.map(message).collect::<Vec<_>>()));
    }
    sessions
}

/// The messages of a program: a call of each tool, and what goes wrong.
#[cfg(fuzzing)]
pub(crate) fn program_sessions() -> Vec<Vec<u8>> {
    let manifest =
        r#""{\"apiVersion\":\"resource.k8s.io/v1\",\"kind\":\"DeviceTaintRule\",\"list\":[1,{\"a\":2}]}""#;
    let calls = [
        format!(r#"{{"name":"validate","arguments":{{"manifests":{manifest},"kubernetes":"1.37","now":"2026-01-02T03:04:05Z"}}}}"#),
        r#"{"name":"explain","arguments":{"rule":"blanket-toleration"}}"#.to_owned(),
        r#"{"name":"devices","arguments":{"targets":["gpu.example.com/pool/gpu-0","node/n1"],"tainted":true,"free":false,"nodes":["n"],"classes":["c"],"namespaces":["--fix","-"]}}"#.to_owned(),
        format!(r#"{{"name":"impact","arguments":{{"rules":{manifest},"targets":["d"],"effect":"NoExecute","by":"node","limit":10.0}}}}"#),
        format!(r#"{{"name":"forecast","arguments":{{"objects":{manifest},"samples":3,"seed":9007199254740992}}}}"#),
        r#"{"name":"drain_plan","arguments":{"targets":["gpu.example.com"],"key":"example.com/a","maxWave":2,"moveUnknown":true,"force":true,"deleteEmptyDirData":true,"evictDaemonSetPods":true,"ignoreDoNotDisrupt":true,"samples":1}}"#.to_owned(),
        r#"{"name":"policy_check","arguments":{"namespace":"ml","toleration":"a=b:NoExecute:60","user":"jane","groups":["g"]}}"#.to_owned(),
        r#"{"name":"unknown"}"#.to_owned(),
        r#"{"name":"explain","arguments":{"rule":7,"more":null},"_meta":{"progressToken":1}}"#.to_owned(),
    ];
    let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
"#;
    let call = |id: usize, params: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#) + "\n"
    };
    let mut sessions: Vec<String> = calls.iter().map(|params| hello.to_owned() + &call(1, params)).collect();
    sessions.extend(calls.iter().enumerate().map(|(id, params)| call(id, params)));
    sessions.push(
        r#"{"jsonrpc":"2.0","id":"a","method":"tools/list"}
{"jsonrpc":"2.0","id":"b","method":"ping"}
{"jsonrpc":"2.0","id":"b","method":"resources/read","params":{"uri":"file:///a"}}
{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"b","reason":"x"}}
{"jsonrpc":"2.0","id":1,"result":{}}
{"jsonrpc":"2.0","id":2,"error":{"code":1,"message":"x"}}
[{"jsonrpc":"2.0","id":3,"method":"ping"}]
{"id":{}}
{
"#
        .to_owned(),
    );
    sessions.push(calls.iter().enumerate().map(|(id, params)| call(id, params)).collect());
    sessions.into_iter().map(String::into_bytes).collect()
}

#[cfg(fuzzing)]
pub(crate) fn kubeconfigs() -> Vec<Vec<u8>> {
    let texts = [
        "apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters:\n- name: a\n  cluster: {server: https://127.0.0.1:6443, tls-server-name: x}\ncontexts:\n- name: a\n  context: {cluster: a, user: u, namespace: n}\nusers:\n- name: u\n  user: {token: SECRET}\n",
        "clusters: [{name: a, cluster: {server: 'http://user:SECRET@h', proxy-url: 'socks5://p', insecure-skip-tls-verify: true, certificate-authority-data: YQ==}}]\ncontexts: [{name: a, context: {cluster: a}}]\nusers: [{name: u, user: {username: a, password: SECRET, exec: {apiVersion: client.authentication.k8s.io/v1, command: x, interactiveMode: Never}}}]\n",
        "",
    ];
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

#[cfg(fuzzing)]
pub(crate) fn watches() -> Vec<Vec<u8>> {
    let pod = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"n","resourceVersion":"7"},"spec":{}}"#;
    let event = |kind: &str, object: &str| format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n");
    let bookmark = r#"{"kind":"Pod","metadata":{"resourceVersion":"9"}}"#;
    let gone = r#"{"kind":"Status","code":410,"message":"too old"}"#;
    let streams = [
        event("ADDED", pod) + &event("MODIFIED", pod) + &event("DELETED", pod) + &event("BOOKMARK", bookmark),
        event("ADDED", pod) + &event("ERROR", gone),
        event("ERROR", r#"{"kind":"Status","code":500}"#),
        "\n\n{\n".to_owned(),
    ];
    streams.into_iter().map(String::into_bytes).collect()
}
