//! The Helm chart: rendered with an implementation of Go's template language, its values checked against their
//! schema, its README compared with the values.
//!
//! Of Helm's functions those that the chart uses are here; any other one is an error, because a template that names
//! it does not parse. Helm itself renders the same objects.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "reads files, builds JSON")]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that cannot read its data has failed"
)]

use std::fmt::Write as _;

use gtmpl_ng::{Context, FuncError, Number, NumberKind, Template, Value as Input};
use serde_json::{Value, json};

use crate::kustomize::Files;
use crate::yaml::documents;

/// The objects of the chart with these values (YAML) over the defaults, hooks included, in the order of the files.
pub(crate) fn render(files: &Files, values: Option<&str>, namespace: &str) -> Result<Vec<Value>, String> {
    let mut all = one(&files.0["chart/values.yaml"]);
    for given in values.into_iter().flat_map(documents) {
        coalesce(&mut all, given);
    }
    let fault = schema(files, &all);
    if !fault.is_empty() {
        return Err(fault.join("\n"));
    }
    let chart = one(&files.0["chart/Chart.yaml"]);
    let root = json!({
        "Values": all,
        "Release": {"Name": "tollgate", "Namespace": namespace},
        "Chart": {"Name": chart["name"], "AppVersion": chart["appVersion"]},
    });
    let mut objects = Vec::new();
    for (path, text) in files.0.iter().filter(|(path, _)| path.starts_with("chart/templates/")) {
        let mut template = Template::default();
        for (name, function) in FUNCTIONS {
            template.add_func(name, *function);
        }
        template
            .parse(files.0["chart/templates/_helpers.tpl"].as_str())
            .map_err(|error| format!("helpers: {error}"))?;
        template.parse(text.as_str()).map_err(|error| format!("{path}: {error}"))?;
        let rendered =
            template.render(&Context::from(input(&root))).map_err(|error| format!("{path}: {error}"))?;
        // Go prints this for a value that is not there.
        if rendered.contains("<no value>") {
            return Err(format!("{path} uses a value that is not there"));
        }
        if std::path::Path::new(path).extension().is_some_and(|extension| extension == "yaml") {
            objects.extend(documents(&rendered).into_iter().filter(|object| !object.is_null()));
        }
    }
    Ok(objects)
}

/// True for an object that only `helm test` creates.
pub(crate) fn is_hook(object: &Value) -> bool {
    object["metadata"]["annotations"].get("helm.sh/hook").is_some()
}

fn one(text: &str) -> Value {
    documents(text).into_iter().next().expect("a document")
}

/// Merges values like Helm: maps are merged, other values are replaced, and null removes.
fn coalesce(into: &mut Value, given: Value) {
    match (into, given) {
        (Value::Object(fields), Value::Object(given)) => {
            for (name, value) in given {
                if value.is_null() {
                    fields.remove(&name);
                } else {
                    coalesce(fields.entry(name).or_insert(Value::Null), value);
                }
            }
        }
        (into, given) => *into = given,
    }
}

/// The violations of the values against the chart's schema.
fn schema(files: &Files, values: &Value) -> Vec<String> {
    let schema: Value = serde_json::from_str(&files.0["chart/values.schema.json"]).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    validator.iter_errors(values).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

/// Converts values to Helm's representation, in which numbers are floats.
fn input(value: &Value) -> Input {
    match value {
        Value::Null => Input::Nil,
        Value::Bool(flag) => Input::from(*flag),
        Value::Number(number) => Input::from(number.as_f64().expect("a number")),
        Value::String(text) => Input::from(text.as_str()),
        Value::Array(items) => Input::Array(items.iter().map(input).collect()),
        Value::Object(fields) => {
            Input::Map(fields.iter().map(|(name, value)| (name.clone(), input(value))).collect())
        }
    }
}

/// Converts values back; whole numbers become integers.
fn output(value: &Input) -> Value {
    match value {
        Input::Bool(flag) => json!(flag),
        Input::String(text) => json!(text),
        Input::Number(found) => number(found),
        Input::Array(items) => items.iter().map(output).collect(),
        Input::Map(fields) | Input::Object(fields) => {
            Value::Object(fields.iter().map(|(name, value)| (name.clone(), output(value))).collect())
        }
        _ => Value::Null,
    }
}

fn number(found: &Number) -> Value {
    match found.kind() {
        NumberKind::Float(number) if number.fract() == 0.0 => {
            format!("{number}").parse().map_or(Value::Null, Value::Number)
        }
        NumberKind::Float(number) => json!(number),
        NumberKind::Signed(number) => json!(number),
        NumberKind::Unsigned(number) => json!(number),
    }
}

type Function = fn(&[Input]) -> Result<Input, FuncError>;

const FUNCTIONS: &[(&str, Function)] =
    &[("toYaml", to_yaml), ("nindent", nindent), ("quote", quote), ("join", join)];

fn wrong(function: &str, count: usize) -> FuncError {
    FuncError::ExactlyXArgs(function.to_owned(), count)
}

/// Implements `toYaml`: a block of lines, with JSON below the first level.
fn to_yaml(arguments: &[Input]) -> Result<Input, FuncError> {
    let [value] = arguments else { return Err(wrong("toYaml", 1)) };
    let lines: Vec<String> = match output(value) {
        Value::Object(fields) if !fields.is_empty() => {
            fields.iter().map(|(name, value)| format!("{}: {value}", json!(name))).collect()
        }
        Value::Array(items) if !items.is_empty() => items.iter().map(|item| format!("- {item}")).collect(),
        other => vec![other.to_string()],
    };
    Ok(Input::from(lines.join("\n")))
}

/// Implements `nindent`: a line break, followed by the indented lines.
fn nindent(arguments: &[Input]) -> Result<Input, FuncError> {
    let [Input::Number(spaces), Input::String(text)] = arguments else { return Err(wrong("nindent", 2)) };
    let spaces =
        " ".repeat(number(spaces).as_u64().and_then(|spaces| spaces.try_into().ok()).unwrap_or_default());
    let mut indented = String::new();
    for line in text.lines() {
        write!(indented, "\n{spaces}{line}").expect("a String");
    }
    Ok(Input::from(indented))
}

fn quote(arguments: &[Input]) -> Result<Input, FuncError> {
    let [Input::String(text)] = arguments else { return Err(wrong("quote", 1)) };
    Ok(Input::from(json!(text).to_string()))
}

fn join(arguments: &[Input]) -> Result<Input, FuncError> {
    let [Input::String(between), Input::Array(items)] = arguments else { return Err(wrong("join", 2)) };
    let items: Vec<String> =
        items.iter().filter_map(|item| output(item).as_str().map(str::to_owned)).collect();
    Ok(Input::from(items.join(between)))
}

#[test]
fn every_setting_reaches_an_object() {
    let files = Files::of_repository();
    let plain = render(&files, None, "guards").expect("it renders");
    assert!(
        !json!(plain).to_string().contains("tollgate-system"),
        "everything is in the release's namespace"
    );
    let digest = format!("sha256:{}", "a".repeat(64));
    for (values, part) in [
        ("image: {repository: example.com/t, tag: v2}".to_owned(), "\"example.com/t:v2\""),
        (format!("image: {{digest: '{digest}'}}"), "\"tollgate@sha256:aaaa"),
        ("image: {pullPolicy: Always}".to_owned(), "\"imagePullPolicy\":\"Always\""),
        (
            "imagePullSecrets: [{name: credentials}]".to_owned(),
            "\"imagePullSecrets\":[{\"name\":\"credentials\"}]",
        ),
        ("replicas: 5".to_owned(), "\"replicas\":5"),
        ("certificate: {source: existing-secret, secretName: mine}".to_owned(), "\"secretName\":\"mine\""),
        (
            "certificate: {source: cert-manager, issuerRef: {kind: ClusterIssuer, name: corp}}".to_owned(),
            "\"issuerRef\":{\"kind\":\"ClusterIssuer\",\"name\":\"corp\"}",
        ),
        ("register: {with: [pods, foundationdb]}".to_owned(), "\"pods,foundationdb\""),
        ("register: {failClosed: true}".to_owned(), "TOLLGATE_REGISTER_FAIL_CLOSED"),
        ("kubernetes: '1.36,1.37'".to_owned(), "\"--kubernetes=1.36,1.37\""),
        ("podMonitor: {enabled: true, labels: {release: prom}}".to_owned(), "\"release\":\"prom\""),
        ("cluster: labels".to_owned(), "\"TOLLGATE_CLUSTER\",\"value\":\"labels\""),
        ("policies: {files: {a.yaml: \"kind: x\\n\"}}".to_owned(), "\"data\":{\"a.yaml\":\"kind: x\\n\"}"),
        ("policies: {configMap: mine}".to_owned(), "\"configMap\":{\"name\":\"mine\"}"),
        ("drain: 5s".to_owned(), "--drain=5s"),
        ("extraArgs: ['--max-body=1MiB']".to_owned(), "\"--max-body=1MiB\""),
        ("extraEnv: [{name: TOLLGATE_LOG_LEVEL, value: warn}]".to_owned(), "TOLLGATE_LOG_LEVEL"),
        ("resources: {limits: {memory: 1Gi}}".to_owned(), "\"limits\":{\"memory\":\"1Gi\"}"),
        ("priorityClassName: high".to_owned(), "\"priorityClassName\":\"high\""),
        ("nodeSelector: {a: b}".to_owned(), "\"nodeSelector\":{\"a\":\"b\"}"),
        ("tolerations: [{operator: Exists}]".to_owned(), "\"tolerations\":[{\"operator\":\"Exists\"}]"),
        ("affinity: {nodeAffinity: {}}".to_owned(), "\"affinity\":{\"nodeAffinity\":{}}"),
        ("podDisruptionBudget: {minAvailable: 0}".to_owned(), "\"minAvailable\":0"),
        ("networkPolicy: {apiServerPorts: [8443]}".to_owned(), "\"egress\":[{\"ports\":[{\"port\":8443"),
        (
            "networkPolicy: {monitoring: [{namespaceSelector: {matchLabels: {team: sre}}}]}".to_owned(),
            "\"from\":[{\"namespaceSelector\":{\"matchLabels\":{\"team\":\"sre\"}}}]",
        ),
        ("test: {image: example.com/kubectl}".to_owned(), "\"example.com/kubectl\""),
        ("test: {namespace: team-a}".to_owned(), "namespace: team-a"),
        ("test: {toleration: {key: a/b}}".to_owned(), "\\\"key\\\": \\\"a/b\\\""),
    ] {
        let objects =
            render(&files, Some(&values), "guards").unwrap_or_else(|fault| panic!("{values}: {fault}"));
        let (before, after) = (json!(plain).to_string(), json!(objects).to_string());
        assert!(after.contains(part) && !before.contains(part), "{values}: {after}");
    }
    let without = render(&files, Some("networkPolicy: {enabled: false}"), "guards").expect("it renders");
    assert!(!without.iter().any(|object| object["kind"] == "NetworkPolicy"));
    let closed = render(&files, Some("networkPolicy: {monitoring: []}"), "guards").expect("it renders");
    assert!(
        !json!(closed).to_string().contains("\"port\":\"ops\",\"protocol\""),
        "to nobody but the kubelet"
    );
    let spread = render(&files, Some("topologySpreadConstraints: []"), "guards").expect("it renders");
    assert!(!json!(spread).to_string().contains("topologySpreadConstraints"));
}

/// The chart monitors as the shipped monitoring does.
#[test]
fn the_pod_monitor_is_the_shipped_one() {
    let files = Files::of_repository();
    let objects = render(&files, Some("podMonitor: {enabled: true}"), "tollgate-system").expect("it renders");
    let found = objects.iter().find(|object| object["kind"] == "PodMonitor").expect("a PodMonitor");
    assert_eq!(*found, one(&files.0["monitoring/podmonitor.yaml"]));
}

#[test]
fn the_audit_checks_the_policies_of_the_webhook() {
    let files = Files::of_repository();
    for (policies, config_map) in [
        ("", None),
        ("policies: {files: {a.yaml: \"kind: x\\n\"}}", Some("tollgate-policies")),
        ("policies: {configMap: mine}", Some("mine")),
    ] {
        let values = format!("audit: {{enabled: true}}\n{policies}");
        let objects = render(&files, Some(&values), "guards").expect("it renders");
        let pods =
            [("Deployment", "/spec/template/spec"), ("CronJob", "/spec/jobTemplate/spec/template/spec")];
        for (kind, at) in pods {
            let object = objects.iter().find(|object| object["kind"] == kind).expect(kind);
            let pod = object.pointer(at).expect("a pod");
            let container = &pod["containers"][0];
            let has = |list: &Value, item: Value| list.as_array().is_some_and(|list| list.contains(&item));
            let volume = config_map.map(|name| json!({"name": "policies", "configMap": {"name": name}}));
            let mount = json!({"name": "policies", "mountPath": "/policies", "readOnly": true});
            let variable = json!({"name": "TOLLGATE_POLICY", "value": "/policies"});
            assert_eq!(
                volume.is_some_and(|volume| has(&pod["volumes"], volume)),
                config_map.is_some(),
                "{pod}"
            );
            assert_eq!(has(&container["volumeMounts"], mount), config_map.is_some(), "{pod}");
            assert_eq!(has(&container["env"], variable), config_map.is_some(), "{pod}");
        }
    }
}

/// Checks that every value in the schema has a default.
fn compare(schema: &Value, values: &Value, at: &str) {
    let Some(properties) = schema["properties"].as_object() else { return };
    let Some(values) = values.as_object() else { return };
    for name in properties.keys().filter(|name| *name != "global") {
        // What an issuer or a toleration is made of has no defaults.
        let is_free = values.is_empty();
        assert!(is_free || values.contains_key(name), "{at}.{name} has no default");
    }
    for (name, value) in values {
        compare(&properties[name], value, &format!("{at}.{name}"));
    }
}

#[test]
fn the_schema_refuses_what_the_chart_does_not_know() {
    let files = Files::of_repository();
    for values in [
        "replica: 3",
        "replicas: 0",
        "replicas: '3'",
        "image: {name: x}",
        "image: {digest: sha256:1}",
        "certificate: {source: helm}",
        "certificate: {issuerRef: {kind: Issuer}}",
        "register: {with: [nodes]}",
        "cluster: everything",
        "drain: 30s",
        "policies: {files: {a.txt: ''}}",
        "test: {namespace: kube-system}",
    ] {
        assert!(render(&files, Some(values), "guards").is_err(), "{values}");
    }
    // Every default has a place in the schema, and the schema names nothing that has no default.
    let schema: Value = serde_json::from_str(&files.0["chart/values.schema.json"]).expect("JSON");
    compare(&schema, &one(&files.0["chart/values.yaml"]), "");
}

/// A template that Helm would not render, and one that makes a certificate, which would change with every upgrade.
#[test]
fn faults_of_templates_are_noticed() {
    for (from, to, expected) in [
        ("{{ quote . }}", "{{ squote . }}", "squote"),
        (".Values.drain", ".Values.drains", "drains"),
        ("{{- if $fromSecret }}", "{{- if $fromSecret }", "deployment.yaml"),
        (".Values.drain ", "genCA \"a\" 1 ", "genCA"),
    ] {
        let mut files = Files::of_repository();
        files.edit("chart/templates/deployment.yaml", from, to);
        let rendered = render(&files, None, "guards");
        let fault = rendered.err().unwrap_or_else(|| panic!("{to} is not noticed"));
        assert!(fault.contains(expected) || fault.contains("a value that is not there"), "{to}: {fault}");
    }
}

/// `helm test`: what the test pod may do, and what it does.
#[test]
fn the_test_pod_sends_a_claim_that_is_checked() {
    let files = Files::of_repository();
    let rendered = render(&files, None, "guards").expect("it renders");
    let hooks: Vec<&Value> = rendered.iter().filter(|object| is_hook(object)).collect();
    let kinds: Vec<&str> = hooks.iter().filter_map(|hook| hook["kind"].as_str()).collect();
    assert_eq!(kinds, ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "ConfigMap", "Pod"]);
    for hook in &hooks {
        assert_eq!(crate::yaml::type_fault(hook), None);
        assert_eq!(hook["metadata"]["annotations"]["helm.sh/hook"], "test");
    }
    let pod = &hooks[4]["spec"];
    assert_eq!(pod["serviceAccountName"], hooks[0]["metadata"]["name"]);
    assert_eq!(hooks[2]["subjects"][0]["name"], hooks[0]["metadata"]["name"]);
    assert_eq!(hooks[2]["roleRef"]["name"], hooks[1]["metadata"]["name"]);
    assert_eq!(pod["volumes"][1]["configMap"]["name"], hooks[3]["metadata"]["name"]);
    let claim = one(hooks[3]["data"]["claim.yaml"].as_str().expect("a claim"));
    let toleration = &claim["spec"]["devices"]["requests"][0]["exactly"]["tolerations"][0];
    assert_eq!(toleration, &json!({"key": "tollgate.dev/helm-test", "operator": "Exists"}));
    // Claims of the release's namespace are not checked.
    assert_eq!(claim["metadata"]["namespace"], "default");
}

/// The rows of the README: one for each text in values.yaml.
fn rows(files: &Files) -> String {
    let defaults = one(&files.0["chart/values.yaml"]);
    let mut rows = String::from("| value | default | what it does |\n|---|---|---|\n");
    let (mut section, mut text) = (String::new(), String::new());
    for line in files.0["chart/values.yaml"].lines() {
        let (indent, rest) = (line.len() - line.trim_start().len(), line.trim_start());
        if let Some(first) = rest.strip_prefix("# -- ") {
            first.clone_into(&mut text);
        } else if let (Some(more), false) = (rest.strip_prefix("# "), text.is_empty()) {
            write!(text, " {more}").expect("a String");
        } else if let (Some((name, _)), false) = (rest.split_once(':'), rest.starts_with(['#', '-'])) {
            let path = if indent == 0 { name.to_owned() } else { format!("{section}.{name}") };
            if text.is_empty() && indent == 0 {
                name.clone_into(&mut section);
            } else if !text.is_empty() {
                let value = defaults.pointer(&format!("/{}", path.replace('.', "/"))).expect("a default");
                let value = if *value == json!("") { String::new() } else { format!("`{value}`") };
                let value = value.replace("`\"", "`").replace("\"`", "`");
                writeln!(rows, "| `{path}` | {value} | {text} |").expect("a String");
                text.clear();
            }
        }
    }
    rows
}

#[test]
fn the_readme_of_the_chart_has_every_value() {
    let files = Files::of_repository();
    let rows = rows(&files);
    let readme = &files.0["chart/README.md"];
    let (before, rest) = readme.split_once("<!-- values -->\n").expect("where the values begin");
    let (table, after) = rest.split_once("<!-- end of values -->").expect("where they end");
    if std::env::var_os("SNAPSHOTS").is_some_and(|action| action == "overwrite") {
        let text = format!("{before}<!-- values -->\n{rows}<!-- end of values -->{after}");
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/manifests/chart/README.md");
        return std::fs::write(path, text).expect("written");
    }
    assert_eq!(table, rows, "SNAPSHOTS=overwrite cargo test --test repository chart writes it");
    // No value without a text.
    let defaults = one(&files.0["chart/values.yaml"]);
    for (name, value) in defaults.as_object().expect("values") {
        let has = |path: &str| rows.contains(&format!("| `{path}` |"));
        let inner = value.as_object().into_iter().flat_map(serde_json::Map::keys);
        let mut missing = inner.filter(|key| !has(&format!("{name}.{key}")));
        assert!(has(name) || missing.next().is_none(), "{name} has no text");
    }
    // The chart is the program's, in the same version.
    let chart = one(&files.0["chart/Chart.yaml"]);
    assert_eq!(
        (&chart["version"], &chart["appVersion"]),
        (&json!(env!("CARGO_PKG_VERSION")), &json!(env!("CARGO_PKG_VERSION")))
    );
}
