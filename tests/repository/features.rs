//! The features of the program: what each build has, and that only the webhook needs Linux.
//!
//! The builds for macOS and Windows are made by the workflows; here is what can be known without those systems.
#![expect(clippy::disallowed_methods, reason = "reads files")]
#![allow(clippy::expect_used, reason = "a test that cannot read its data has failed")]

use std::path::{Path, PathBuf};

use regex::Regex;

use crate::promql::documents;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The line of a feature in Cargo.toml.
fn feature(manifest: &str, name: &str) -> String {
    let start = format!("{name} = [");
    let table = manifest.split_once("[features]").expect("features").1;
    let line = table.lines().find(|line| line.starts_with(&start));
    line.unwrap_or_else(|| panic!("there is no feature {name}")).to_owned()
}

#[test]
fn each_build_has_its_features() {
    let manifest = read(&root().join("Cargo.toml"));
    assert_eq!(feature(&manifest, "default"), r#"default = ["online", "ui", "mcp"]"#);
    assert_eq!(feature(&manifest, "online"), r#"online = ["cluster", "serve"]"#);
    for name in ["cluster", "ui", "mcp"] {
        let line = feature(&manifest, name);
        assert!(!line.contains("server") && !line.contains("\"serve\""), "{line}");
    }
    // The image has neither pages nor a protocol for desks.
    let makefile = read(&root().join("Makefile"));
    assert!(makefile.contains("\nIMAGE_FEATURES = --no-default-features --features online\n"));
    let uses = makefile.lines().filter(|line| line.contains("$(STATIC_TARGET) $(IMAGE_FEATURES)"));
    assert_eq!(uses.count(), 2, "the program of the image and its bill of materials");
    let release = documents(".github/workflows/release.yml").remove(0);
    let targets = release.pointer("/jobs/binaries/strategy/matrix/include").expect("targets").clone();
    for target in targets.as_array().expect("a list") {
        let expected = if target.to_string().contains("linux") { "online,ui,mcp" } else { "cluster,ui,mcp" };
        assert_eq!(target["features"], expected, "{target}");
    }
    let workflow = read(&root().join(".github/workflows/release.yml"));
    assert!(workflow.contains("--no-default-features --features online\n"), "the image of a release");
    assert!(workflow.contains("{pattern: image-*, path: dist"), "the image of a release");
}

/// Lines that use what only Unix has, outside of items that are compiled for Unix only.
fn unix_only(text: &str) -> Vec<String> {
    let api = Regex::new(
        r"\bstd::os::(unix|linux|fd)\b|\brustix::|\blibc::|\bnix::|signal::unix|net::(tokio_)?unix|UnixStream",
    )
    .expect("a pattern");
    let lines: Vec<&str> = text.lines().collect();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        if line.trim_start().starts_with("//") || !api.is_match(line) {
            continue;
        }
        // The item that contains the line, the one that contains that item, and so on: one of them must be for Unix.
        let (mut depth, mut is_unix) = (indent(line) + 1, false);
        for (above, outer) in lines.iter().enumerate().take(at + 1).rev() {
            if outer.trim().is_empty() || indent(outer) >= depth {
                continue;
            }
            depth = indent(outer);
            let attributes = lines.iter().take(above).rev();
            let mut attributes = attributes.take_while(|line| line.trim_start().starts_with(['#', '/']));
            is_unix |= attributes.any(|line| line.trim() == "#[cfg(unix)]");
        }
        if !is_unix {
            found.push(line.trim().to_owned());
        }
    }
    found
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn only_the_webhook_needs_linux() {
    let is_webhook = |path: &Path| {
        let path = path.strip_prefix(root()).expect("a path of the repository");
        ["crates/server", "src/cli/serve", "src/cli/serve.rs", "src/cli/certs.rs"]
            .iter()
            .any(|part| path.starts_with(part))
    };
    let mut all = Vec::new();
    for folder in ["src", "crates"] {
        sources(&root().join(folder), &mut all);
    }
    all.retain(|path| !is_webhook(path));
    assert!(all.len() > 300, "{}", all.len());
    for path in &all {
        assert_eq!(unix_only(&read(path)), Vec::<String>::new(), "{}", path.display());
    }
    for entry in std::fs::read_dir(root().join("crates")).expect("crates") {
        let manifest = entry.expect("an entry").path().join("Cargo.toml");
        let text = read(&manifest);
        let is_server = text.contains("name = \"tollgate-server\"");
        for name in ["rustix", "libc", "nix"] {
            let uses = text.lines().any(|line| line.starts_with(&format!("{name}.")));
            assert!(!uses || is_server, "{}: {name}", manifest.display());
        }
    }

    // Planted faults are noticed.
    let inside = "#[cfg(unix)]\nfn a() {\n    use std::os::unix::fs::symlink;\n}\n";
    assert_eq!(unix_only(inside), Vec::<String>::new());
    assert_eq!(unix_only(&inside.replace("#[cfg(unix)]\n", "")).len(), 1);
    assert_eq!(unix_only(&format!("{inside}\nfn b() {{\n    rustix::process::getpid();\n}}\n")).len(), 1);
    let nested = "#[cfg(unix)]\nmod a {\n    fn b() {\n        tokio::signal::unix::signal();\n    }\n}\n";
    assert_eq!(unix_only(nested), Vec::<String>::new());
}
