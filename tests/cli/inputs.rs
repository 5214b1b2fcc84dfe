//! Inputs and outputs that no transcript can hold: what cannot be read, pipes, colours, long lines, large folders.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot read its data has failed")]
#![expect(clippy::disallowed_methods, reason = "writes the files that it judges")]

use std::fmt::Write as _;
use std::process::{Command, Stdio};

use tollgate::Format;

use super::program::{folder, run, tollgate};

const RULE: &str = "apiVersion: resource.k8s.io/v1\nkind: DeviceTaintRule\nmetadata: {name: r}\nspec:\n  deviceSelector: {driver: d.example.com, pool: p}\n  taint: {key: example.com/a, effect: NoSchedule}\n";
const BAD_RULE: &str = "apiVersion: resource.k8s.io/v1\nkind: DeviceTaintRule\nmetadata: {name: r}\nspec:\n  deviceSelector: {driver: d.example.com, pool: p}\n  taint: {key: example.com/a, effect: X}\n";

/// Unreadable inputs: name, bytes, expected message, and `line:column` or an empty string.
fn bad_inputs() -> Vec<(&'static str, Vec<u8>, &'static str, &'static str)> {
    let deep_yaml = format!("a: {}{}\n", "[".repeat(10_100), "]".repeat(10_100));
    let deep_json = format!("{{\"a\": {}{}}}", "[".repeat(10_100), "]".repeat(10_100));
    let mut bomb = String::from("a: &a [x, x, x, x, x, x, x, x, x]\n");
    for letter in 'b'..='k' {
        let before = char::from_u32(letter as u32 - 1).expect("a letter");
        _ = writeln!(bomb, "{letter}: &{letter} [{}]", vec![format!("*{before}"); 9].join(", "));
    }
    let large = format!("# {}\n{RULE}", "x".repeat(9 << 20));
    vec![
        ("empty.yaml", Vec::new(), "empty", ""),
        ("blank.yaml", b" \n\n".to_vec(), "empty", ""),
        ("binary.yaml", b"\x7fELF\x02\x01\x00\x00\xff".to_vec(), "binary", "1:"),
        ("latin1.yaml", b"kind: caf\xe9\n".to_vec(), "UTF-8", "1:10"),
        ("deep.yaml", deep_yaml.into_bytes(), "recursion limit", "1:"),
        ("deep.json", deep_json.into_bytes(), "depth", "1:"),
        ("bomb.yaml", bomb.into_bytes(), "alias", ""),
        ("large.yaml", large.into_bytes(), "larger than 8 MiB", "1:1"),
        ("open.yaml", b"kind: {a: b\n".to_vec(), "", ""),
        ("quote.yaml", b"kind: \"abc\n".to_vec(), "", ""),
        ("tabs.yaml", b"a:\n\tb: c\n".to_vec(), "", "2:"),
        ("open.json", b"{\"kind\": \"Pod\"".to_vec(), "unexpected end", "1:15"),
        (
            "trailing.json",
            b"{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\"} xyz".to_vec(),
            "invalid character 'x' looking for beginning of value",
            "1:43",
        ),
    ]
}

#[test]
fn bad_input_is_told_with_its_place_and_stops_nothing() {
    let folder = folder("bad-input");
    std::fs::write(folder.join("good.yaml"), RULE).unwrap();
    std::fs::write(folder.join("bad.yaml"), BAD_RULE).unwrap();
    for (name, bytes, words, place) in bad_inputs() {
        std::fs::write(folder.join(name), bytes).unwrap();
        let (code, out, err) = run(&folder, &["validate", name, "good.yaml"]);
        assert_eq!(code, 3, "{name}: {out}{err}");
        assert_eq!(err, "", "{name}");
        assert!(out.contains("error[unreadable]"), "{name}: {out}");
        assert!(out.contains(words), "{name}: {out}");
        let place = if place.is_empty() { name.to_owned() } else { format!("{name}:{place}") };
        assert!(out.contains(&place), "{name}: {out}");
        assert!(out.contains("1 valid"), "{name}: the other file is judged: {out}");
        let (code, out, _) = run(&folder, &["validate", name, "bad.yaml"]);
        assert_eq!(code, 1, "{name}: a verdict wins: {out}");
        for format in Format::ALL.map(Format::name).into_iter().filter(|name| *name != "text") {
            let (code, out, err) = run(&folder, &["validate", "-o", format, name, "good.yaml"]);
            assert_eq!((code, err.as_str()), (3, ""), "{name} {format}: {out}");
        }
        let (code, _, err) = run(&folder, &["mutate", name]);
        assert_eq!(code, 3, "{name}: mutate: {err}");
        assert!(err.starts_with("error: "), "{name}: {err}");
    }
}

/// kubectl uses the last of two equal keys, and treats anything with `items` as a list; it sends the claim in
/// all of these files.
#[test]
fn no_object_hides_in_a_list() {
    const CLAIM: &str = r#"{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":"c","namespace":"n"},"spec":{"devices":{"requests":[{"name":"NOT VALID","exactly":{"deviceClassName":"g"}}]}}}"#;
    let folder = folder("hidden-in-lists");
    for (keys, is_duplicate) in [
        (r#""kind":"List","items":[],"items":[CLAIM]"#, true),
        (r#""kind":"List","items":null,"items":[CLAIM]"#, true),
        (r#""kind":"List","items":[],"it\u0065ms":[CLAIM]"#, true),
        (r#""kind":"ConfigMap","kind":"List","items":[CLAIM]"#, true),
        (r#""kind":"List","kind":"ConfigMap","items":[CLAIM]"#, true),
        (r#""kind":null,"kind":"List","items":[CLAIM]"#, true),
        (r#""apiVersion":"v9","kind":"List","items":[CLAIM]"#, true),
        (r#""kind":"ConfigMap","metadata":{"name":"x"},"items":[CLAIM]"#, false),
        (r#""kind":"Pod","metadata":{"name":"x"},"items":[CLAIM]"#, false),
        (r#""kind":"configmap","items":[CLAIM]"#, false),
    ] {
        let json = format!("{{\"apiVersion\":\"v1\",{}}}", keys.replace("CLAIM", CLAIM));
        for (name, text) in [("list.json", json.clone()), ("list.yaml", format!("# YAML\n{json}\n"))] {
            std::fs::write(folder.join(name), text).unwrap();
            for argument in [name, "."] {
                let (code, out, err) = run(&folder, &["validate", "-o", "concise", argument]);
                assert_eq!(code, 1, "{keys} {argument}: {out}{err}");
                assert!(out.contains("error[request-name]"), "{keys} {argument}: {out}");
                assert_eq!(out.contains("error[duplicate-key]"), is_duplicate, "{keys} {argument}: {out}");
            }
            std::fs::remove_file(folder.join(name)).unwrap();
        }
    }
}

/// kubectl ends a line at these characters, so text that looks like the rest of a comment is a field for it.
#[test]
fn no_field_hides_behind_a_line_break_that_only_kubectl_knows() {
    let folder = folder("line-breaks");
    for letter in ['\u{85}', '\u{2028}', '\u{2029}'] {
        let claim = format!(
            "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {{name: c, namespace: n}}\nspec:\n  devices:\n    \
             requests:\n    - name: r\n      exactly:\n        deviceClassName: g # comment{letter}        tolerations: \
             [{{operator: Exists}}]\n"
        );
        std::fs::write(folder.join("claim.yaml"), claim).unwrap();
        for arguments in [&["validate", "claim.yaml"][..], &["validate", "."], &["mutate", "claim.yaml"]] {
            let (code, out, err) = run(&folder, arguments);
            assert_eq!(code, 3, "{arguments:?}: {out}{err}");
            let place = format!("the character U+{:04X} ends a line for kubectl", u32::from(letter));
            assert!(format!("{out}{err}").contains(&place), "{arguments:?}: {out}{err}");
        }
    }
}

/// A document that kubectl reads is not skipped because it also looks like a template.
#[test]
fn no_object_hides_behind_a_placeholder() {
    let folder = folder("placeholders-hide");
    let claim =
        "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: c}\nspec: {} # \u{2028}x: 1\n";
    let indented = claim.lines().fold(String::new(), |text, line| text + "   " + line + "\n");
    let flow = "{\"x\": 1, apiVersion: resource.k8s.io/v1, kind: ResourceClaim, # \u{2028}\n}\n";
    let escaped = claim.replace("resource.k8s", "resource.\\x6b8s").replace("kind: Res", "\"k\\x69nd\": Res");
    let large = format!("{claim}# {}\n", "x".repeat(9 << 20)).replace('\u{2028}', "");
    // kubectl reads no further than to the end of the first object.
    let complete = "{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: c}}\n{{ x }}\n";
    let dedented = format!("{}{{{{ x }}}}\n", indented.replace('\u{2028}', ""));
    for text in [claim, &indented, flow, &escaped, &large, complete, &dedented] {
        for token in ["", "# {{ .Values.x }}\n", "# ${X} {X} __X__ @X@ %X%\n", "# {% if x %}\n"] {
            std::fs::write(folder.join("a.yaml"), format!("{token}{text}")).unwrap();
            let (code, out, err) = run(&folder, &["validate", "."]);
            assert_eq!(code, 3, "{token}{}: {out}{err}", &text[..60]);
        }
    }
}

/// A file that cannot be parsed because of placeholders is skipped as a template, unless it contains claims.
/// The location of a file does not matter: an object that an API server would create is checked.
#[test]
fn no_object_hides_behind_the_place_of_its_file() {
    let claim = "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: c}\nspec: {devices: {requests: [{name: r, \
        exactly: {deviceClassName: g, tolerations: [{operator: Exists}]}}]}}\n";
    let policy =
        "apiVersion: tollgate.dev/v1alpha1\nkind: TolerationPolicy\nmetadata: {name: p}\nspec: {allow: []}\n";
    let listed = format!(
        "kind: List\napiVersion: v1\n$patch: x\nitems:\n- {}",
        claim.trim_end().replace('\n', "\n  ")
    );
    let chart = "apiVersion: v2\nname: c\nversion: 1.0.0\n";
    let commented = format!("# {{{{ a comment }}}}\n{claim}");
    let patch = "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: c}\nspec: {devices: {requests: [{name: r, \
        exactly: {tolerations: [{operator: Exists}]}}]}}\n";
    let named = "patches: [{path: a/claim.yaml}]\n";
    for (name, place, text, expected) in [
        ("patch", ("kustomization.yaml", named), claim.to_owned(), 1),
        ("directive", ("kustomization.yaml", "{}\n"), format!("{claim}$patch: null\n"), 1),
        ("list", ("kustomization.yaml", "{}\n"), listed, 1),
        ("end", ("kustomization.yaml", "{}\n"), format!("kind: ConfigMap\napiVersion: v1\n...\n{claim}"), 3),
        (
            "ellipsis",
            ("kustomization.yaml", "{}\n"),
            "kind: X\napiVersion: v1\n...\nfailurePolicy: Ignore\n".to_owned(),
            0,
        ),
        ("real-patch", ("kustomization.yaml", named), patch.to_owned(), 0),
    ] {
        let folder = folder(&format!("place-{name}"));
        std::fs::create_dir_all(folder.join("repo/a")).unwrap();
        std::fs::write(folder.join("p.yaml"), policy).unwrap();
        std::fs::write(folder.join("repo").join(place.0), place.1).unwrap();
        std::fs::write(folder.join("repo/a/claim.yaml"), &text).unwrap();
        let (code, out, err) = run(&folder, &["validate", "repo/a", "--policy", "p.yaml"]);
        assert_eq!(code, expected, "{name}: {out}{err}");
    }
    let latin = [b"# caf\xe9\n{apiVersion: resource.k8s.io/v1, kind: ResourceClaim}\n".to_vec()];
    let wide = [claim, "---\n\0"].concat().encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>();
    for bytes in latin.into_iter().chain([[&[0xff, 0xfe][..], &wide].concat()]) {
        let folder = folder("place-encoding");
        std::fs::write(folder.join("a.yaml"), bytes).unwrap();
        assert_eq!(run(&folder, &["validate", "."]).0, 3);
    }
    let folder = folder("place-chart");
    std::fs::create_dir_all(folder.join("repo/templates")).unwrap();
    std::fs::write(folder.join("p.yaml"), policy).unwrap();
    std::fs::write(folder.join("repo/Chart.yaml"), chart).unwrap();
    std::fs::write(folder.join("repo/templates/claim.yaml"), commented).unwrap();
    let (code, out, err) = run(&folder, &["validate", "repo", "--policy", "p.yaml"]);
    assert_eq!(code, 1, "{out}{err}");
}

#[test]
fn unrendered_templates_of_other_kinds_are_skipped() {
    let folder = folder("placeholders");
    for token in [
        "{SERVICE_IP_PREFIX}.16",
        "%IP%",
        "@IP@",
        "a\n__EXTRA_VOL_MNTS__",
        "{{ .Values.ip }}",
        "{{- range .Values.ips }}",
        "'${IP}' x",
        "<% ip %>\n - x",
    ] {
        let service = format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{name: s}}\nspec:\n  clusterIP: {token}\n  ports: []\n"
        );
        let rule = "apiVersion: resource.k8s.io/v1beta2\nkind: DeviceTaintRule\nmetadata: {name: r}\n";
        for (text, expected) in [
            (service.clone(), 0),
            (service.replace("kind: Service", "kind: DaemonSet"), 0),
            (service.replace("ports: []", "resourceClaims: []"), if token.starts_with("{{") { 0 } else { 3 }),
            (
                service.replace("apiVersion: v1\n", "apiVersion: resource.k8s.io/v1\n"),
                if token.starts_with("{{") { 0 } else { 3 },
            ),
            (service.replace(token, "a: b"), 3),
            // The document beside it is checked.
            (format!("{service}---\n{rule}"), 1),
        ] {
            std::fs::write(folder.join("a.yaml"), &text).unwrap();
            let (code, out, err) = run(&folder, &["validate", "."]);
            assert_eq!(code, expected, "{text}: {out}{err}");
            assert_eq!(out.contains("1 unrendered template"), expected < 3, "{text}: {out}{err}");
        }
        // Named, it is an error: there is nothing else to check.
        std::fs::write(folder.join("a.yaml"), &service).unwrap();
        assert_eq!(run(&folder, &["validate", "a.yaml"]).0, 3);
    }
}

/// A claim whose operator has a safe fix; `name` and `request` are its name and the fields of its only request.
fn claim_to_fix(name: &str, request: &str) -> String {
    format!(
        "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {{name: '{name}'}}\nspec:\n  devices:\n    \
         requests:\n    - {request}\n    - name: gpu\n      exactly: {{deviceClassName: g, tolerations: [{{key: a/b, \
         operator: exists, effect: NoSchedule}}]}}\n---\n"
    )
}

/// In a folder, an object whose other findings are about placeholders is skipped once it is fixed.
#[test]
fn objects_with_placeholders_are_fixed_and_do_not_keep_others_from_being_fixed() {
    let folder = folder("placeholders-fixed");
    std::fs::create_dir_all(folder.join("many")).unwrap();
    let claim = |number: usize| {
        let name = if number.is_multiple_of(5) { "${N}".to_owned() } else { format!("c{number}") };
        claim_to_fix(&name, "{name: a, exactly: {deviceClassName: g}}")
    };
    for count in [1, 150] {
        std::fs::write(folder.join("many/a.yaml"), (0..count).map(claim).collect::<String>()).unwrap();
        let (code, out, err) = run(&folder, &["validate", "--fix", "many"]);
        let text = std::fs::read_to_string(folder.join("many/a.yaml")).unwrap();
        let fixed = text.matches("operator: Exists").count();
        assert_eq!((code, fixed, err.as_str()), (0, count, ""), "{out}");
    }
}

/// A finding about an object or a regular expression is not about the placeholder in it.
#[test]
fn only_findings_about_the_placeholders_themselves_are_dropped() {
    let folder = folder("placeholders-beside");
    std::fs::create_dir_all(folder.join("many")).unwrap();
    let regex = r#"{name: a, exactly: {deviceClassName: g, selectors: [{cel: {expression: 'device.driver.matches("^h100${1}") &'}}]}}"#;
    for (request, expected) in [
        ("name: ${NAME}", 1),
        (regex, 1),
        ("{name: a, exactly: {deviceClassName: '${CLASS}'}}", 0),
        ("{name: '${NAME}', exactly: {deviceClassName: g}}", 0),
    ] {
        let text = claim_to_fix("c", request).replace("exists", "Exists");
        std::fs::write(folder.join("many/a.yaml"), text).unwrap();
        let (code, out, err) = run(&folder, &["validate", "many"]);
        assert_eq!(code, expected, "{request}: {out}{err}");
    }
}

/// A help proposes only names that could be accepted.
#[test]
fn the_help_for_a_placeholder_as_driver_proposes_no_other_placeholder() {
    let folder = folder("placeholder-driver");
    for (driver, expected) in [("${DRIVER}", false), ("GPU.example.com", true)] {
        let slice = format!(
            "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {{name: s}}\nspec: {{driver: '{driver}', \
             nodeName: n1, pool: {{name: p, generation: 1, resourceSliceCount: 1}}}}\n"
        );
        std::fs::write(folder.join("a.yaml"), slice).unwrap();
        let (_, out, err) = run(&folder, &["validate", "a.yaml"]);
        assert!(out.contains("uppercase-driver"), "{out}{err}");
        assert_eq!(out.contains(&format!("use `{}`", driver.to_lowercase())), expected, "{out}{err}");
    }
}

/// A patch repeats the byte order mark of the file, and a tab ends a name with blanks.
#[test]
fn a_patch_fits_its_file_to_the_byte() {
    let folder = folder("patch-bytes");
    let text = "\u{feff}kind: ResourceClaim\napiVersion: resource.k8s.io/V1\nmetadata: {name: c}\nspec: {devices: {requests: [{name: \
        gpu, exactly: {deviceClassName: g}}]}}\n";
    std::fs::write(folder.join("a b.yaml"), text).unwrap();
    let (_, out, _) = run(&folder, &["validate", "--kubernetes", "1.37", "--diff", "a b.yaml"]);
    let expected =
        "--- a b.yaml\t\n+++ a b.yaml\t\n@@ -1,4 +1,4 @@\n \u{feff}kind: ResourceClaim\n-apiVersion";
    assert!(out.starts_with(expected), "{out}");
    std::fs::write(folder.join("a b.yaml"), text.replace("V1", "v1")).unwrap();
    let (_, out, _) = run(&folder, &["mutate", "--kubernetes", "1.37", "--diff", "a b.yaml"]);
    assert!(out.contains("@@\n \u{feff}kind: ResourceClaim\n"), "{out}");
}

const GUIDE: &str = "---\ntitle: {{< x >}}\n---\n# Guide\n\n```yaml\napiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nspec:\n  \
    devices:\n    requests:\n    - name: r\n      exactly:\n        tolerations:\n        - {efect: NoSchedule}\n        # ...\n\
    ```\n```yaml\nkind: ResourceClaim\nspec: {unknown: 1}\n```\n```yaml\napiVersion: resource.k8s.io/v1\n\
    kind: ResourceClaim\nspec:\n  {{< include >}}\n  unknown: 1\n```\n~~~ JSON\n\
    {\"apiVersion\": \"resource.k8s.io/v1\", \"kind\": \"DeviceClass\", \"spec\": {\"selector\": []}}\n~~~\n\
    1. Item:\n\n   ```yaml\n   apiVersion: resource.k8s.io/v1\n   kind: DeviceTaintRule\n   spec:\n     taint:\n       \
    effect: <effect>\n   ---\n   apiVersion: resource.k8s.io/v1\n   kind: DeviceTaintRule\n   metadata: {name: r}\n   \
    spec:\n     taint: {key: a, effect: noExecute}\n   ```\n\n```yaml\napiVersion: v1\nkind: Pod\nmetadata: {name: p}\n\
    spec: {containers: [{name: c, resources: {claims: [{name: v}]}}], resourceClaims: [{name: w}]}\n```\n\
    ```sh\napiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nspec: {unknown: 1}\n```\n";

#[test]
fn markdown_is_checked_on_request_as_excerpts() {
    let folder = folder("markdown");
    std::fs::create_dir_all(folder.join("docs")).unwrap();
    std::fs::write(folder.join("docs/guide.md"), GUIDE).unwrap();
    std::fs::write(folder.join("docs/other.md"), "# Nothing\n").unwrap();
    std::fs::write(folder.join("docs/.hidden.md"), GUIDE).unwrap();
    std::fs::write(folder.join("template.yaml"), "apiVersion: resource.k8s.io/v1\nkind: {{ .k }}\n").unwrap();
    let (code, out, _) = run(&folder, &["validate", "."]);
    let expected = "1 file, 1 document: 1 skipped (1 unrendered template); 0 objects checked; 1 Markdown file and 1 skipped \
                    template mention resource.k8s.io (use --markdown to check Markdown)\n";
    assert_eq!((code, out.as_str()), (0, expected));
    let (_, out, _) = run(&folder, &["validate", "-o", "json", "."]);
    assert!(out.ends_with(",\"mentions\":{\"markdown\":1,\"templates\":1}}}\n"), "{out}");
    for arguments in [
        &["validate", "-o", "concise", "--markdown", "."][..],
        &["validate", "-o", "concise", "docs/guide.md"],
    ] {
        let (code, out, err) = run(&folder, arguments);
        let found: Vec<&str> =
            out.lines().filter_map(|line| line.split_once(": error[").map(|(place, _)| place)).collect();
        let expected = ["docs/guide.md:15:12", "docs/guide.md:30:", "docs/guide.md:45:30"];
        assert_eq!((code, found.len()), (1, expected.len()), "{arguments:?}: {out}{err}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.trim_start_matches("./").starts_with(expected), "{arguments:?}: {out}{err}");
        }
    }
    // Nothing is fixed in Markdown, and nothing is said to be fixable.
    let (code, out, _) = run(&folder, &["validate", "--fix", "--unsafe-fixes", "--markdown", "."]);
    assert!(code == 1 && !out.contains("ixable") && !out.contains("Fixed"), "{out}");
    assert_eq!(std::fs::read_to_string(folder.join("docs/guide.md")).unwrap(), GUIDE);
    // Excludes hold for Markdown.
    let (code, out, _) = run(&folder, &["validate", "--markdown", "--exclude", "docs", "."]);
    assert!(code == 0 && out.contains("1 excluded"), "{out}");
    std::fs::write(folder.join("docs/guide.md"), "no blocks\n").unwrap();
    assert_eq!(run(&folder, &["validate", "docs/guide.md"]).0, 0);
    assert_eq!(run(&folder, &["validate", "--require-objects", "docs/guide.md"]).0, 3);
}

#[test]
fn what_cannot_be_opened_is_told() {
    let folder = folder("cannot-open");
    std::fs::create_dir_all(folder.join("nothing")).unwrap();
    std::fs::write(folder.join("nothing/readme.txt"), "x").unwrap();
    let file = std::fs::File::create(folder.join("huge.yaml")).unwrap();
    file.set_len(100 << 20).unwrap();
    for (name, words) in
        [("missing.yaml", "no such file or folder"), ("huge.yaml", "larger than 67108864 bytes")]
    {
        let (code, out, err) = run(&folder, &["validate", name]);
        assert_eq!((code, err.as_str()), (3, ""), "{name}: {out}");
        assert!(out.contains(words) && out.contains(name), "{name}: {out}");
    }
    // A repository may have no manifests yet, and says so; input that must be there is an error.
    let (code, out, err) = run(&folder, &["validate", "nothing"]);
    assert_eq!((code, out.as_str()), (0, "0 files, 0 documents: nothing to check\n"));
    assert_eq!(err, "note: nothing: contains no .yaml, .yml or .json files to check\n");
    let (code, _, err) = run(&folder, &["validate", "huge.yaml", "--policy", "nothing"]);
    assert_eq!((code, err.as_str()), (3, "error: nothing: no .yaml, .yml or .json files in this folder\n"));
    std::fs::write(folder.join("small.yaml"), RULE).unwrap();
    let (code, out, _) = run(&folder, &["validate", "--max-file", "20", "small.yaml"]);
    assert_eq!(code, 3, "{out}");
}

#[test]
fn one_broken_document_leaves_the_others_judged() {
    let folder = folder("broken-document");
    let text = format!("{RULE}---\na: [b\n---\n{BAD_RULE}---\nkind: ConfigMap\napiVersion: v1\n");
    std::fs::write(folder.join("all.yaml"), text).unwrap();
    let (code, out, _) = run(&folder, &["validate", "all.yaml"]);
    assert_eq!(code, 1);
    assert!(
        out.ends_with(
            "1 file, 4 documents: 1 invalid, 1 unreadable, 1 valid, 1 skipped (checked against kep-5055)\n"
        ),
        "{out}"
    );
}

#[test]
fn the_same_input_gives_the_same_bytes_in_order() {
    let folder = folder("order");
    std::fs::create_dir_all(folder.join("many")).unwrap();
    for number in 0..700 {
        let text = if number % 7 == 0 { BAD_RULE } else { RULE };
        let text = text.replace("{name: r}", &format!("{{name: r-{number}}}"));
        std::fs::write(folder.join(format!("many/{number:04}.yaml")), text).unwrap();
    }
    let (code, first, _) = run(&folder, &["validate", "many", "-o", "json"]);
    let (_, second, _) = run(&folder, &["validate", "many", "-o", "json"]);
    assert_eq!(code, 1);
    assert!(first == second, "two runs differ");
    let files: Vec<&str> =
        first.lines().filter_map(|line| line.get(9..23)).filter(|f| f.starts_with("many/")).collect();
    let mut sorted = files.clone();
    sorted.sort_unstable();
    assert_eq!(files.len(), 700);
    assert!(files == sorted, "not in order");
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let folder = folder("pipe");
    std::fs::create_dir_all(folder.join("many")).unwrap();
    for number in 0..600 {
        std::fs::write(folder.join(format!("many/{number}.yaml")), BAD_RULE).unwrap();
    }
    for arguments in [&["validate", "many"][..], &["explain"], &["completions", "bash"], &["mutate", "many"]]
    {
        let mut child = tollgate(&folder, arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it runs");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments:?}");
        assert!(output.status.code().is_some_and(|code| code <= 1), "{arguments:?}: {}", output.status);
    }
}

#[test]
fn colour_is_for_terminals_and_for_those_who_ask() {
    let folder = folder("colour");
    std::fs::write(folder.join("bad.yaml"), BAD_RULE).unwrap();
    let (_, plain, _) = run(&folder, &["validate", "bad.yaml"]);
    assert!(!plain.contains('\u{1b}'));
    let (_, coloured, _) = run(&folder, &["--color", "always", "validate", "bad.yaml"]);
    assert!(coloured.contains('\u{1b}'));
    let never = tollgate(&folder, &["validate", "bad.yaml"])
        .env("NO_COLOR", "1")
        .env("CLICOLOR_FORCE", "1")
        .output()
        .expect("it runs");
    assert!(!never.stdout.contains(&0x1b));
}

#[test]
fn reports_go_to_files_too() {
    let folder = folder("files");
    std::fs::write(folder.join("bad.yaml"), BAD_RULE).unwrap();
    let (code, text, _) = run(
        &folder,
        &["validate", "bad.yaml", "--output-file", "json=out.json", "--output-file", "sarif=out.sarif"],
    );
    assert_eq!(code, 1);
    assert!(text.contains("error[taint-effect]"));
    let (_, json, _) = run(&folder, &["validate", "bad.yaml", "-o", "json"]);
    assert_eq!(std::fs::read_to_string(folder.join("out.json")).unwrap(), json);
    assert!(std::fs::read_to_string(folder.join("out.sarif")).unwrap().contains("\"2.1.0\""));
    let (code, _, err) = run(&folder, &["validate", "bad.yaml", "--output-file", "json=no/such/folder.json"]);
    assert_eq!(code, 2, "{err}");
}

#[test]
fn completions_exist_for_every_shell() {
    let folder = folder("completions");
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let (code, out, _) = run(&folder, &["completions", shell]);
        assert_eq!(code, 0);
        assert!(out.contains("validate"), "{shell}");
    }
}

#[test]
fn nothing_in_a_file_or_its_name_writes_to_a_terminal() {
    let folder = folder("escapes");
    let name = "n\u{1b}[31m\u{202e}\n::error::,.yaml";
    std::fs::write(folder.join(name), "a: [\n").unwrap();
    let object = r#"{"apiVersion": "resource.k8s.io/v1", "kind": "DeviceTaintRule",
        "metadata": {"name": "r\u001b[31m", "labels": {"a\u001b[2J\u009b": "b\u202e"}},
        "spec": {"un\u001b]0;known": 1, "taint": {"key": "\u009b31m", "effect": "\u202eX\u2066\n::error::x"}}}"#;
    std::fs::write(folder.join("object.json"), object).unwrap();
    let active =
        |text: &str| text.chars().find(|c| *c != '\n' && (c.is_control() || "\u{202e}\u{2066}".contains(*c)));
    for format in Format::ALL.map(Format::name) {
        let (code, out, err) = run(&folder, &["validate", "-o", format, "object.json", name]);
        assert_eq!((code, err.as_str()), (1, ""), "{format}");
        assert_eq!(active(&out), None, "{format}: {out}");
        assert!(out.lines().all(|line| !line.starts_with("::error::")), "{format}: {out}");
    }
    for arguments in [["mutate", name], ["review", name], ["explain", name], ["mutate", "\u{1b}[31m"]] {
        let (_, _, err) = run(&folder, &arguments);
        assert_eq!(active(&err), None, "{err}");
    }
}

#[test]
fn a_long_line_is_shown_in_part_at_its_true_column() {
    let folder = folder("long-line");
    let rule = BAD_RULE.replace("taint: {", &format!("taint: {{{}", " ".repeat(5000)));
    std::fs::write(folder.join("long.yaml"), rule).unwrap();
    for colour in ["never", "always"] {
        let (_, out, _) = run(&folder, &["--color", colour, "validate", "long.yaml"]);
        assert!(out.contains("long.yaml:6:5039") && out.contains("..."), "{out}");
        assert!(!out.contains(":::"), "no second file: {out}");
    }
}

#[test]
fn a_report_never_overwrites_what_is_judged() {
    let folder = folder("overwrite");
    std::fs::create_dir_all(folder.join("many")).unwrap();
    std::fs::write(folder.join("many/rule.yaml"), RULE).unwrap();
    for (file, other) in [("json=many/rule.yaml", "sarif=x"), ("json=x", "sarif=./x")] {
        let named = ["validate", "many/rule.yaml", "--output-file", file, "--output-file", other];
        let (code, out, err) = run(&folder, &named);
        assert_eq!((code, out.as_str()), (2, ""), "{err}");
        assert!(err.contains("--output-file"), "{err}");
    }
    assert_eq!(std::fs::read_to_string(folder.join("many/rule.yaml")).unwrap(), RULE);
    // The report of the run before lies among the manifests and is none.
    for _ in 0..2 {
        let (code, out, err) = run(&folder, &["validate", "many", "--output-file", "json=many/report.json"]);
        assert_eq!((code, err.as_str()), (0, ""), "{out}");
        assert_eq!(out, "1 file, 1 document: 1 valid (checked against kep-5055)\n");
    }
}

#[test]
fn a_report_replaces_no_source_file() {
    let folder = folder("overwrite-sources");
    let broken = "apiVersion: v1\nkind: {\n";
    let files = [
        ("many/rule.yaml", RULE),
        ("many/broken.yaml", broken),
        ("many/rule.json", r#"{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}"#),
        (".tollgate.yaml", "levels: {}\n"),
        ("known.json", r#"{"version": "tollgate.dev/baseline/v1", "findings": []}"#),
        ("many/list.json", r#"[{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}]"#),
        ("many/kustomization.yaml", "resources: [rule.yaml]\n"),
    ];
    std::fs::create_dir_all(folder.join("many")).unwrap();
    for (name, text) in files {
        std::fs::write(folder.join(name), text).unwrap();
    }
    for (name, text) in files {
        let target = format!("json={name}");
        let (code, out, err) = run(&folder, &["validate", "many", "--output-file", &target]);
        assert_eq!((code, out.as_str()), (2, ""), "{err}");
        assert!(err.contains(&format!("--output-file {name}: this file is not a report")), "{err}");
        assert_eq!(std::fs::read_to_string(folder.join(name)).unwrap(), text);
    }
    let shared = ["validate", "many", "--output-file", "json=new.json", "--write-baseline", "new.json"];
    let (code, _, err) = run(&folder, &shared);
    assert!(code == 2 && err.contains("the baseline needs a file of its own"), "{err}");
}

/// A baseline that cannot be written leaves the old one, and is an output that could not be written.
#[cfg(unix)]
#[test]
fn a_baseline_is_replaced_whole_or_not_at_all() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = folder("whole-baseline");
    std::fs::create_dir_all(folder.join("known")).unwrap();
    std::fs::write(folder.join("rule.yaml"), RULE).unwrap();
    let arguments = ["validate", "rule.yaml", "--write-baseline", "known/b.json"];
    assert_eq!(run(&folder, &arguments).0, 0);
    let names = || std::fs::read_dir(folder.join("known")).unwrap().count();
    assert_eq!(names(), 1, "nothing is left behind");
    let (code, _, err) = run(&folder, &["validate", "rule.yaml", "--write-baseline", "/dev/full"]);
    assert_eq!(code, 4, "{err}");
    let file = folder.join("known/b.json");
    let before = std::fs::read(&file).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o400)).unwrap();
    let (code, _, err) = run(&folder, &arguments);
    assert!(code == 4 && err.contains("--write-baseline known/b.json"), "{code} {err}");
    assert_eq!((std::fs::read(&file).unwrap(), names()), (before, 1));
    // A link to a file that does not exist stays a link.
    std::os::unix::fs::symlink("later.json", folder.join("known/link.json")).unwrap();
    assert_eq!(run(&folder, &["validate", "rule.yaml", "--write-baseline", "known/link.json"]).0, 0);
    assert!(folder.join("known/link.json").is_symlink() && folder.join("known/later.json").is_file());
}

/// Overlapping arguments and links lead to one file by several paths.
#[cfg(unix)]
#[test]
fn a_file_that_is_found_twice_is_fixed_once() {
    let folder = folder("fixed-once");
    std::fs::create_dir_all(folder.join("many/base")).unwrap();
    std::os::unix::fs::symlink("base/rule.yaml", folder.join("many/link.yaml")).unwrap();
    let right = "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: c, namespace: ml}\nspec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu, tolerations: [{key: example.com/a, operator: Exists, effect: NoSchedule}]}}]}}\n";
    let wrong = right.replace("Exists", "exists");
    for arguments in [&["many"][..], &["many", "many/base"], &["many/base/rule.yaml", "many/link.yaml"]] {
        for _ in 0..5 {
            std::fs::write(folder.join("many/base/rule.yaml"), &wrong).unwrap();
            let (code, out, err) = run(&folder, &[&["validate", "--fix"][..], arguments].concat());
            assert_eq!((code, err.as_str()), (0, ""), "{out}");
            assert!(out.starts_with("1 file, 1 document"), "{out}");
            assert_eq!(std::fs::read_to_string(folder.join("many/base/rule.yaml")).unwrap(), right);
        }
    }
}

#[test]
fn a_file_that_several_arguments_lead_to_is_reported_once() {
    let folder = folder("reported-once");
    std::fs::create_dir_all(folder.join("many")).unwrap();
    std::fs::write(folder.join("many/rule.yaml"), RULE).unwrap();
    // Named, it is an error that this is not a manifest; in a folder, it is skipped.
    std::fs::write(folder.join("many/values.yaml"), "a: 1\n").unwrap();
    let absolute = folder.join("many").display().to_string();
    for (arguments, expected) in [
        (&["many/rule.yaml", "./many/rule.yaml"][..], "1 file, 1 document: 1 valid"),
        (&["many", &absolute, "../reported-once/many"], "2 files, 2 documents: 1 valid, 1 skipped"),
        (&["many", "many/rule.yaml", "many"], "2 files, 2 documents: 1 valid, 1 skipped"),
        (&["many", "many/values.yaml"], "2 files, 2 documents: 1 invalid, 1 valid"),
        (&["many/values.yaml", "many"], "2 files, 2 documents: 1 invalid, 1 valid"),
    ] {
        let (_, out, err) = run(&folder, &[&["validate"][..], arguments].concat());
        assert!(out.contains(expected) && err.is_empty(), "{arguments:?}: {out}{err}");
    }
}

#[cfg(unix)]
#[test]
fn a_pipe_in_a_folder_is_not_waited_for() {
    let folder = folder("fifo");
    std::fs::create_dir_all(folder.join("many")).unwrap();
    std::fs::write(folder.join("many/rule.yaml"), RULE).unwrap();
    let made = Command::new("mkfifo").arg(folder.join("many/pipe.yaml")).status();
    assert!(made.expect("mkfifo").success());
    let (code, out, _) = run(&folder, &["validate", "many"]);
    assert_eq!(code, 3, "{out}");
    assert!(out.contains("not a regular file") && out.contains("1 valid"), "{out}");
}

#[cfg(unix)]
#[test]
fn a_pipe_is_read_once_even_if_a_policy_asks_for_namespaces() {
    let folder = folder("pipe-policy");
    let policy = "apiVersion: tollgate.dev/v1alpha1\nkind: TolerationPolicy\nmetadata: {name: p}\nspec:\n  action: Deny\n  match: {namespaceSelector: {matchLabels: {a: b}}}\n  deny: [{key: a/b}]\n";
    std::fs::write(folder.join("policy.yaml"), policy).unwrap();
    std::fs::write(folder.join("rule.yaml"), RULE).unwrap();
    let mut cat =
        Command::new("cat").arg(folder.join("rule.yaml")).stdout(Stdio::piped()).spawn().expect("cat");
    let pipe = cat.stdout.take().expect("a pipe");
    let output =
        tollgate(&folder, &["validate", "--policy", "policy.yaml", "/dev/stdin"]).stdin(pipe).output();
    let output = output.expect("it runs");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "1 file, 1 document: 1 valid (checked against kep-5055)\n"
    );
    cat.wait().expect("it ends");
}

/// Inputs that once took minutes: each is large in a way that caused repeated searches.
#[test]
fn time_grows_with_the_input_and_not_with_its_square() {
    let folder = folder("large");
    let many = |count: usize, text: &dyn Fn(usize) -> String| (0..count).map(text).collect::<String>();
    let claim = "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: c}\nspec: {devices: {requests: [";
    let inputs = [
        (
            "labels.yaml",
            format!(
                "{RULE}---\n{}",
                RULE.replace(
                    "{name: r}",
                    &format!("{{name: r, labels: {{{}}}}}\nx: 1", many(40_000, &|n| format!("l{n}: a, ")))
                )
            ),
            "x: Forbidden",
        ),
        (
            "bad-labels.yaml",
            RULE.replace(
                "{name: r}",
                &format!("{{name: r, labels: {{{}}}}}", many(40_000, &|n| format!("-l{n}: a, "))),
            ),
            "metadata.labels[-l1]",
        ),
        (
            "nulls.yaml",
            format!(
                "{claim}{{name: r, exactly: {{deviceClassName: c, tolerations: [{}]}}}}]}}}}\n",
                "null, ".repeat(30_000)
            ),
            "tolerations",
        ),
        (
            "pod.yaml",
            format!(
                "apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec:\n  resourceClaims: [{}]\n  containers: \
                 [{{name: c, resources: {{claims: [{}]}}}}]\n",
                many(20_000, &|n| format!("{{name: c{n}, resourceClaimName: c}}, ")),
                many(20_000, &|n| format!("{{name: d{n}}}, "))
            ),
            "spec.containers[0].resources.claims[0]",
        ),
        (
            "patch.yaml",
            format!(
                "apiVersion: resource.k8s.io/v1alpha3\nkind: ResourceSlicePatch\nmetadata: {{name: p}}\nspec: {{devices: \
                 {{filter: {{driver: d}}, taints: [{}]}}}}\n",
                many(30_000, &|n| format!("{{key: k, value: v{n}, effect: NoSchedule}}, "))
            ),
            "spec.devices.taints: has 30000 items",
        ),
        (
            "fdb.yaml",
            format!(
                "apiVersion: apps.foundationdb.org/v1beta2\nkind: FoundationDBCluster\nmetadata: {{name: f}}\nspec: \
                 {{automationOptions: {{replacements: {{enabled: true, taintReplacementOptions: [{}]}}}}}}\n",
                "{key: k, durationInSeconds: 1}, ".repeat(30_000)
            ),
            "taintReplacementOptions[1].key: \\\"k\\\" is already listed",
        ),
        (
            "requests.yaml",
            format!(
                "{claim}{}]}}}}\n",
                many(20_000, &|n| format!("{{name: r{n}, exactly: {{deviceClassName: c}}}}, "))
            ),
            "requests",
        ),
        (
            "items.json",
            format!(
                "{{\"apiVersion\": \"resource.k8s.io/v1\", \"kind\": \"DeviceTaintRuleList\", \"items\": [{}null]}}",
                "{},".repeat(2_000)
            ),
            "items[1999]",
        ),
        ("broken.yaml", "---\na: [\n".repeat(10_000), "unclosed"),
        ("dots.yaml", format!("{}\t", "a: b\n...\n".repeat(10_000)), "missing"),
    ];
    for (name, text, words) in inputs {
        std::fs::write(folder.join(name), text).unwrap();
        let (code, out, err) = run(&folder, &["validate", "-o", "json", name]);
        assert!(matches!(code, 1 | 3) && err.is_empty(), "{name}: {code} {err}");
        assert!(out.contains(words), "{name}");
        let (code, _, _) = run(&folder, &["mutate", "--diff", name]);
        assert!(matches!(code, 0 | 3), "{name}: {code}");
    }
}
