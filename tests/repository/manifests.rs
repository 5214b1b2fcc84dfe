//! `tollgate manifests`: what it prints can be applied and works, and it refuses to print anything else.
#![cfg_attr(
    not(feature = "online"),
    allow(dead_code, unused_imports, reason = "certificates are made by `serve`")
)]
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "reads files, builds JSON")]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that cannot read its data has failed"
)]

#[cfg(feature = "online")]
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::install_checks::Installation;
use crate::kustomize::{Files, build};
use crate::yaml::documents;

/// Exit code, stdout, stderr.
fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    let output = command.args(arguments).env_remove("TOLLGATE_CERT_DIR").output().expect("run");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// The output of `tollgate manifests`.
fn printed(arguments: &[&str]) -> Vec<Value> {
    let (code, stdout, stderr) = run(&[&["manifests"], arguments].concat());
    assert_eq!(code, Some(0), "{arguments:?}: {stderr}");
    documents(&stdout)
}

/// A folder with the certificates of `tollgate certs`, removed in the end.
#[cfg(feature = "online")]
struct Certificates(PathBuf);

#[cfg(feature = "online")]
impl Certificates {
    fn new(name: &str, names: &[&str]) -> Certificates {
        let folder = std::env::temp_dir().join(format!("tollgate-manifests-{name}-{}", std::process::id()));
        let (path, names) = (folder.to_str().expect("UTF-8"), names.join(","));
        let named = ["--dns-name", names.as_str()];
        let arguments = [&["certs", path][..], if names.is_empty() { &[] } else { &named }].concat();
        let (code, _, stderr) = run(&arguments);
        assert_eq!(code, Some(0), "{stderr}");
        Certificates(folder)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("UTF-8")
    }

    fn encoded(&self, file: &str) -> String {
        use base64::Engine as _;
        let bytes = std::fs::read(self.0.join(file)).expect("a file");
        base64::engine::general_purpose::STANDARD.encode(bytes)
    }
}

#[cfg(feature = "online")]
impl Drop for Certificates {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The output of `tollgate manifests` with a new certificate directory.
#[cfg(feature = "online")]
pub(crate) fn printed_with_certificate(name: &str, arguments: &[&str]) -> Vec<Value> {
    let certificates = Certificates::new(name, &[]);
    printed(&[&["--cert-dir", certificates.path()], arguments].concat())
}

const APIS: [&str; 4] = ["classic-dra", "foundationdb", "kep-5055-r1", "pods"];

fn webhooks(objects: &[Value]) -> impl Iterator<Item = &Value> {
    objects.iter().flat_map(|object| object["webhooks"].as_array().into_iter().flatten())
}

#[cfg(feature = "online")]
#[test]
fn every_variant_is_a_sound_installation() {
    let all = APIS.join(",");
    let policy = concat!(env!("CARGO_MANIFEST_DIR"), "/policies");
    let elsewhere = Certificates::new("elsewhere", &["tollgate.guards.svc", "hook.example.com", "192.0.2.1"]);
    let ca = elsewhere.0.join("ca.crt");
    let ca = ca.to_str().expect("UTF-8");
    let bundle = elsewhere.encoded("ca.crt");
    let default = Certificates::new("default", &[]);
    for (arguments, from_user) in [
        (vec!["--cert-dir", default.path()], &[][..]),
        (vec!["--cert-dir", default.path(), "--with", &all], &[]),
        (vec!["--cert-dir", default.path(), "--policy", policy], &[]),
        (vec!["--cert-dir", default.path(), "--fail-closed", "--with", &all], &[]),
        (vec!["--cert-dir", default.path(), "--image", "example.com/tollgate:1"], &[]),
        (vec!["--cert-dir", elsewhere.path(), "--namespace", "guards", "--with", &all], &[]),
        (vec!["--ca-file", ca], &["tollgate-tls"]),
        (vec!["--ca-bundle", &bundle], &["tollgate-tls"]),
        (vec!["--cert-dir", elsewhere.path(), "--url", "https://hook.example.com:8443"], &[]),
        (vec!["--cert-dir", elsewhere.path(), "--url", "https://192.0.2.1", "--with", &all], &[]),
        (vec!["--ca-bundle", &bundle, "--url", "https://hook.example.com/", "--policy", policy], &[]),
    ] {
        let objects = printed(&arguments);
        let closed = webhooks(&objects).all(|webhook| webhook["failurePolicy"] == "Fail");
        assert_eq!(closed, arguments.contains(&"--fail-closed"), "{arguments:?}");
        let installation = Installation { objects, namespace_exists: false, from_user };
        assert_eq!(installation.faults(), [""; 0], "{arguments:?}");
    }
}

#[cfg(feature = "online")]
#[test]
fn the_workload_is_the_base_and_the_webhooks_are_the_files() {
    let certificates = Certificates::new("base", &[]);
    let all = APIS.join(",");
    let printed = printed(&["--cert-dir", certificates.path(), "--with", &all]);
    let files = Files::of_repository();
    let base = build(&files, "base").expect("it builds");
    for object in &base {
        assert!(printed.contains(object), "{object:#}");
    }
    let of_files = ["", "classic-dra-", "foundationdb-", "kep-5055-r1-", "pods-"].iter().flat_map(|api| {
        let file = |endpoint: &str| {
            files.0.get(&format!("webhooks/{api}{endpoint}.yaml")).map(|text| documents(text))
        };
        ["validating", "mutating"].into_iter().filter_map(file).flatten().collect::<Vec<_>>()
    });
    let bundle = json!(certificates.encoded("ca.crt"));
    let mut configurations = 0;
    for mut file in of_files {
        for webhook in file["webhooks"].as_array_mut().expect("webhooks") {
            webhook["clientConfig"]["caBundle"] = bundle.clone();
        }
        assert!(printed.contains(&file), "{file:#}");
        configurations += 1;
    }
    assert_eq!(printed.len(), base.len() + 1 + configurations, "a Secret, and nothing else");
    let secret = printed.iter().find(|object| object["kind"] == "Secret").expect("a Secret");
    for file in ["tls.crt", "tls.key"] {
        assert_eq!(secret["data"][file], certificates.encoded(file));
    }
}

/// A certificate that the API server would not trust under the name it uses is not printed.
#[cfg(feature = "online")]
#[test]
fn a_certificate_that_cannot_work_is_refused() {
    let certificates = Certificates::new("refused", &[]);
    let refused = |arguments: &[&str], expected: &str| {
        let (code, stdout, stderr) =
            run(&[&["manifests", "--cert-dir", certificates.path()], arguments].concat());
        assert!(
            code == Some(3) && stdout.is_empty() && stderr.contains(expected),
            "{arguments:?}: {code:?} {stderr}"
        );
    };
    refused(
        &["--url", "https://hook.example.com:8443"],
        "not valid for hook.example.com; it contains tollgate.tollgate-system.svc",
    );
    refused(&["--url", "https://hook.example.com:8443"], "--dns-name hook.example.com");
    refused(&["--url", "https://192.0.2.1"], "not valid for 192.0.2.1");
    refused(&["--namespace", "guards"], "not valid for tollgate.guards.svc");
    // The pair of another CA.
    let other = Certificates::new("refused-other", &[]);
    std::fs::copy(other.0.join("ca.crt"), certificates.0.join("ca.crt")).expect("copied");
    refused(&[], "not signed by this CA");
    std::fs::copy(other.0.join("tls.crt"), certificates.0.join("tls.crt")).expect("copied");
    refused(&[], "the key does not match the certificate");
    std::fs::write(certificates.0.join("ca.crt"), "no PEM").expect("written");
    refused(&[], "invalid CA bundle");
}

#[test]
fn arguments_that_cannot_work_are_refused() {
    let manifests = |arguments: &[&str]| run(&[&["manifests"], arguments].concat());
    let (code, stdout, stderr) = manifests(&[]);
    assert!(code == Some(2) && stdout.is_empty(), "{stderr}");
    assert!(stderr.contains("--cert-dir") && stderr.contains("--no-ca-bundle"), "{stderr}");
    // Somebody else injects it.
    let injected = printed(&["--no-ca-bundle"]);
    assert!(webhooks(&injected).all(|webhook| webhook["clientConfig"].get("caBundle").is_none()));
    // Nothing that goes into a manifest can end its line.
    for arguments in [
        ["--namespace", "a\nb: c"],
        ["--namespace", "A"],
        ["--image", "a\nb"],
        ["--url", "https://a\nb"],
        ["--url", "http://a"],
        ["--url", "https://a.example.com/hooks"],
        ["--url", "https://a.example.com/validate"],
        ["--ca-bundle", "?"],
    ] {
        let (code, _, stderr) = manifests(&[&["--no-ca-bundle"], &arguments[..]].concat());
        assert!(code == Some(2) && !stderr.is_empty(), "{arguments:?}: {code:?} {stderr}");
    }
    let (code, _, stderr) = manifests(&["--ca-file", "/dev/zero"]);
    assert!(code == Some(3) && stderr.contains("larger than 1048576 bytes"), "{code:?} {stderr}");
    #[cfg(feature = "online")]
    {
        let (code, _, stderr) = manifests(&["--ca-bundle", "Q0E="]);
        assert!(code == Some(3) && stderr.contains("invalid CA bundle"), "{code:?} {stderr}");
    }
}

#[test]
fn manifests_for_policies_register_only_what_these_need() {
    let folder = std::env::temp_dir().join(format!("tollgate-manifests-policy-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("made");
    let file = folder.join("policy.yaml");
    let names = |spec: &str| -> Vec<String> {
        let text = format!(
            "apiVersion: tollgate.dev/v1alpha1\nkind: TolerationPolicy\nmetadata: {{name: a}}\nspec: {spec}\n"
        );
        std::fs::write(&file, text).expect("written");
        let objects = printed(&["--no-ca-bundle", "--policy", file.to_str().expect("UTF-8")]);
        webhooks(&objects)
            .map(|webhook| webhook["name"].as_str().expect("a name").replace(".tollgate.dev", ""))
            .collect()
    };
    let narrow = names("{allow: []}");
    assert!(!narrow.contains(&"other-claims.validate".to_owned()), "{narrow:?}");
    assert!(!narrow.iter().any(|name| name.ends_with(".mutate")), "{narrow:?}");
    let wide = names("{defaults: [{key: a/b, operator: Exists}], validations: [{expression: 'true'}]}");
    assert!(wide.contains(&"other-claims.validate".to_owned()), "{wide:?}");
    assert!(wide.contains(&"claims.mutate".to_owned()), "{wide:?}");
    std::fs::remove_dir_all(folder).expect("removed");
}

/// The files of a ConfigMap volume, as a kubelet writes them.
fn mounted(objects: &[Value], volume: &str, folder: &std::path::Path) {
    let deployment = objects.iter().find(|object| object["kind"] == "Deployment").expect("a Deployment");
    let pod = &deployment["spec"]["template"]["spec"];
    let volumes = pod["volumes"].as_array().expect("volumes");
    let source = &volumes.iter().find(|found| found["name"] == volume).expect("a volume")["configMap"];
    let map = objects
        .iter()
        .find(|object| object["kind"] == "ConfigMap" && object["metadata"]["name"] == source["name"]);
    let data = map.expect("a ConfigMap")["data"].as_object().expect("data");
    let items = source["items"].as_array().map(|items| {
        let text = |item: &Value, field: &str| item[field].as_str().expect("a text").to_owned();
        items.iter().map(|item| (text(item, "key"), text(item, "path"))).collect::<Vec<_>>()
    });
    let items = items.unwrap_or_else(|| data.keys().map(|key| (key.clone(), key.clone())).collect());
    for (key, path) in items {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, data[&key].as_str().expect("a text")).expect("written");
    }
}

/// A cluster with these manifests denies what the policies deny: the server has the policies, their schemas, and every
/// other flag.
#[test]
fn the_server_gets_the_policies_and_the_flags() {
    let folder = std::env::temp_dir().join(format!("tollgate-manifests-carried-{}", std::process::id()));
    let write = |path: &str, text: &str| {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, text).expect("written");
    };
    let head = |kind: &str, name: &str| {
        format!("apiVersion: tollgate.dev/v1alpha1\nkind: {kind}\nmetadata: {{name: {name}}}\n")
    };
    write("policies/tolerations.yaml", &(head("TolerationPolicy", "none") + "spec: {allow: []}\n"));
    // A text that no block scalar can hold as it is, in a file without an ending that is searched for.
    let odd =
        head("TolerationPolicy", "odd") + "# \u{e9}\ttab \nspec: {deny: [{key: example.com/\u{65}vil}]}";
    write("odd", &odd);
    let schema = "spec:\n  schemas:\n  - {apiVersion: a/v1, kind: x, schemaFile: ../../schemas/gpu.json}\n";
    write("policies/team a/parameters.yaml", &(head("ParameterPolicy", "gpu") + schema));
    write("schemas/gpu.json", r#"{"type": "object", "required": ["sharing"]}"#);
    write("policies/tolerations.test.yaml", "not: [carried");
    let path = |name: &str| folder.join(name).to_str().expect("UTF-8").to_owned();
    let objects = printed(&[
        "--no-ca-bundle",
        "--policy",
        &path("policies"),
        "--policy",
        &path("odd"),
        "--kubernetes",
        "1.36,1.37",
        "--feature-gates",
        "DRADeviceTaints=true",
        "--rules",
        "policy,lint",
    ]);
    let deployment = objects.iter().find(|object| object["kind"] == "Deployment").expect("a Deployment");
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    let arguments: Vec<&str> =
        container["args"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    let given = ["--kubernetes=1.36,1.37", "--feature-gates=DRADeviceTaints=true", "--rules=policy,lint"];
    assert!(given.iter().all(|flag| arguments.contains(flag)), "{arguments:?}");
    assert!(arguments.contains(&"--policy=/policies"), "{arguments:?}");
    assert_eq!(
        container["volumeMounts"][1],
        json!({"name": "policies", "mountPath": "/policies", "readOnly": true})
    );
    let volume = folder.join("volume");
    mounted(&objects, "policies", &volume);
    assert_eq!(std::fs::read_to_string(volume.join("odd.yaml")).expect("a file"), odd);
    let claim = |request: &str, config: &str| {
        format!(
            "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {{name: c, namespace: d}}\nspec:\n  devices:\n    requests:\n    - {{name: r, exactly: {{deviceClassName: g{request}}}}}\n{config}"
        )
    };
    let config =
        "    config:\n    - opaque: {driver: gpu.example.com, parameters: {apiVersion: a/v1, kind: x}}\n";
    for (name, text, rule) in [
        ("toleration", claim(", tolerations: [{key: a/b, operator: Exists}]", ""), Some("policy-toleration")),
        ("parameters", claim("", config), Some("policy-parameters")),
        ("plain", claim("", ""), None),
    ] {
        let file = format!("{name}.yaml");
        write(&file, &text);
        let flags: Vec<&str> = arguments
            .iter()
            .skip(1)
            .copied()
            .filter(|flag| {
                ["--kubernetes", "--feature-gates", "--rules"].iter().any(|kept| flag.starts_with(kept))
            })
            .collect();
        let policy = format!("--policy={}", volume.display());
        let (code, stdout, stderr) = run(&[&["validate", &path(&file), &policy][..], &flags].concat());
        assert_eq!(code, Some(i32::from(rule.is_some())), "{stdout}{stderr}");
        assert!(rule.is_none_or(|rule| stdout.contains(rule)), "{stdout}");
    }
    // A server outside of the cluster is told which flags it needs.
    let (code, _, stderr) = run(&[
        "manifests",
        "--no-ca-bundle",
        "--url",
        "https://h:1",
        "--kubernetes",
        "1.36",
        "--policy",
        &path("odd"),
    ]);
    assert!(
        code == Some(0) && stderr.contains("--kubernetes=1.36") && stderr.contains("--policy="),
        "{stderr}"
    );
    // What cannot be carried is refused.
    write(
        "absolute.yaml",
        &(head("ParameterPolicy", "gpu")
            + &format!(
                "spec:\n  schemas:\n  - {{apiVersion: a/v1, kind: x, schemaFile: {}}}\n",
                path("schemas/gpu.json")
            )),
    );
    write(
        "large/a.yaml",
        &(head("TolerationPolicy", "large") + &format!("spec: {{allow: []}}\n{}", "# x\n".repeat(1 << 18))),
    );
    for (name, expected) in [
        ("absolute.yaml", "use a path that is relative to the policy"),
        ("large", "a ConfigMap holds at most 1048576"),
    ] {
        let (code, stdout, stderr) = run(&["manifests", "--no-ca-bundle", "--policy", &path(name)]);
        assert!(code == Some(3) && stdout.is_empty() && stderr.contains(expected), "{code:?} {stderr}");
    }
    std::fs::remove_dir_all(folder).expect("removed");
}

/// The commands that `certs` and `serve` print work as they are printed.
#[cfg(feature = "online")]
#[test]
fn printed_commands_work_as_printed() {
    use std::io::{BufRead as _, BufReader};
    use std::process::Stdio;

    // `tollgate …` becomes this build's program; what it prints goes to a pipe instead of kubectl.
    let play = |command: &str| {
        let command = command.strip_suffix(" | kubectl apply -f -").expect("it is applied");
        let words = command.strip_prefix("tollgate ").expect("a command");
        let script = format!("exec {} {words}", env!("CARGO_BIN_EXE_tollgate"));
        let output = Command::new("sh").args(["-c", &script]).output().expect("run");
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        documents(&String::from_utf8(output.stdout).expect("UTF-8"))
    };
    let command = |text: &str, word: &str| {
        text.lines().find_map(|line| line.strip_prefix(word)).map(|rest| rest.trim().to_owned())
    };

    let folder = std::env::temp_dir().join(format!("tollgate printed {}", std::process::id()));
    let (_, made, _) = run(&["certs", folder.to_str().expect("UTF-8")]);
    let objects = play(&command(&made, "install").expect("a command"));
    let whole = Installation { objects, namespace_exists: false, from_user: &[] };
    assert_eq!(whole.faults(), [""; 0]);

    let served = |arguments: &[&str]| {
        let mut server = Command::new(env!("CARGO_BIN_EXE_tollgate"))
            .args(["serve", "--ops-listen", "127.0.0.1:0", "--drain", "0s"])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("started");
        let lines = BufReader::new(server.stdout.take().expect("a pipe")).lines();
        let mut text = String::new();
        for line in lines.map_while(Result::ok) {
            text = text + &line + "\n";
            if line.starts_with("register") {
                break;
            }
        }
        let objects = play(&command(&text, "register").expect("a command"));
        server.kill().expect("stopped");
        server.wait().expect("gone");
        let installation = Installation { objects, namespace_exists: false, from_user: &[] };
        assert_eq!(installation.faults(), [""; 0], "{text}");
        webhooks(&installation.objects).next().expect("a webhook")["clientConfig"]["url"].to_string()
    };
    let directory = folder.to_str().expect("UTF-8").to_owned();
    let policy = concat!(env!("CARGO_MANIFEST_DIR"), "/policies");
    for (arguments, host) in [
        (vec!["--listen", "127.0.0.1:0"], "https://127.0.0.1:"),
        (vec!["--listen", "127.0.0.1:0", "--cert-dir", &directory, "--policy", policy], "https://127.0.0.1:"),
        (
            vec!["--listen", "0.0.0.0:0", "--dns-name", "hook.example.com,localhost"],
            "https://hook.example.com:",
        ),
        (vec!["--listen", "0.0.0.0:0", "--dns-name", "2001:db8::1"], "https://[2001:db8::1]:"),
    ] {
        let url = served(&arguments);
        assert!(url.contains(host), "{arguments:?}: {url}");
    }
    std::fs::remove_dir_all(folder).expect("removed");
}
