//! The image (`Dockerfile`) and the manifests that run it agree. `make static-test` and `make image` build it for real.
#![expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "reads files, builds JSON")]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that cannot read its data has failed"
)]

use serde_json::Value;

use crate::promql::documents;

fn dockerfile() -> String {
    std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/Dockerfile")).expect("the Dockerfile")
}

/// The instructions of a Dockerfile: continued lines joined, comments left out.
fn instructions(text: &str) -> Vec<(String, String)> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let joined = lines.join("\n").replace("\\\n", " ");
    let words = joined.lines().filter_map(|line| line.trim().split_once(' '));
    words.map(|(name, rest)| (name.to_owned(), rest.trim().to_owned())).collect()
}

/// The differences between the image and the workload.
fn image_problems(dockerfile: &str, deployment: &Value, kustomization: &Value) -> Vec<String> {
    let all = instructions(dockerfile);
    let of = |name: &str| -> Vec<&str> {
        all.iter().filter(|(known, _)| known == name).map(|(_, rest)| rest.as_str()).collect()
    };
    let pod = &deployment["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    let mut faults = Vec::new();
    let mut expect = |what: &str, is: String, should: String| {
        if is != should {
            faults.push(format!("{what}: {is}, not {should}"));
        }
    };
    // An empty root: nothing to run during the build, nothing to update afterwards.
    expect("FROM", of("FROM").join(" "), "scratch".to_owned());
    expect("RUN and ADD", (of("RUN").len() + of("ADD").len()).to_string(), "0".to_owned());
    let context = &pod["securityContext"];
    expect("USER", of("USER").join(" "), format!("{}:{}", context["runAsUser"], context["runAsGroup"]));
    let ports = container["ports"].as_array().map(Vec::as_slice).unwrap_or_default();
    let ports: Vec<String> = ports.iter().map(|port| port["containerPort"].to_string()).collect();
    expect("EXPOSE", of("EXPOSE").join(" "), ports.join(" "));
    // The arguments of the container follow the entry point: no command in between.
    expect("ENTRYPOINT", of("ENTRYPOINT").join(" "), r#"["/tollgate"]"#.to_owned());
    expect("command", container["command"].to_string(), "null".to_owned());
    expect("first argument", container["args"][0].to_string(), "\"serve\"".to_owned());
    expect(
        "read-only root",
        container["securityContext"]["readOnlyRootFilesystem"].to_string(),
        "true".to_owned(),
    );
    let version = env!("CARGO_PKG_VERSION");
    expect("image", container["image"].to_string(), format!("\"tollgate:{version}\""));
    expect("newTag", kustomization["images"][0]["newTag"].to_string(), format!("\"{version}\""));
    for label in ["title", "description", "licenses", "version", "revision", "created", "source"] {
        let is_there =
            of("LABEL").iter().any(|labels| labels.contains(&format!("org.opencontainers.image.{label}=")));
        expect(label, is_there.to_string(), "true".to_owned());
    }
    faults
}

#[test]
fn the_image_is_what_the_manifests_run() {
    let dockerfile = dockerfile();
    let deployment = documents("manifests/base/deployment.yaml").remove(0);
    let kustomization = documents("manifests/base/kustomization.yaml").remove(0);
    assert_eq!(image_problems(&dockerfile, &deployment, &kustomization), Vec::<String>::new());

    // A planted fault is noticed.
    for (from, to) in [
        ("FROM scratch", "FROM debian"),
        ("USER 65532:65532", "USER 0:0"),
        ("EXPOSE 8443 8081", "EXPOSE 8443"),
        (r#"ENTRYPOINT ["/tollgate"]"#, r#"ENTRYPOINT ["/bin/sh"]"#),
        ("COPY tollgate", "RUN true\nCOPY tollgate"),
        ("org.opencontainers.image.revision", "revision"),
    ] {
        let changed = dockerfile.replace(from, to);
        assert_ne!(changed, dockerfile, "{from}");
        assert_eq!(image_problems(&changed, &deployment, &kustomization).len(), 1, "{from}");
    }
    for (pointer, value) in [
        ("/spec/template/spec/securityContext/runAsUser", Value::from(1)),
        ("/spec/template/spec/containers/0/image", "tollgate:latest".into()),
        ("/spec/template/spec/containers/0/args/0", "version".into()),
    ] {
        let mut changed = deployment.clone();
        *changed.pointer_mut(pointer).expect("a field") = value;
        assert_eq!(image_problems(&dockerfile, &changed, &kustomization).len(), 1, "{pointer}");
    }
}
