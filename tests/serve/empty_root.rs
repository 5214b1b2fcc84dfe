//! The program of the image: static, small, and a server for a stranger in a read-only empty root.
//!
//! `cargo test` builds the dynamic program, which cannot be that. These tests take the static one from
//! `TOLLGATE_STATIC_BINARY` and are ignored without it: `make static-test` builds it and runs them. What reads the file
//! is tested here with the dynamic program, which must be refused.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::process::Process;
use crate::running::Folder;

/// The image may have 25 MB; it has little else than this file.
const MAX_BYTES: usize = 24_500_000;

/// Properties of a 64-bit little-endian ELF file.
#[derive(Debug, PartialEq)]
struct Elf {
    /// True if it needs a dynamic linker (`PT_INTERP`).
    has_interpreter: bool,
    /// Number of libraries that it needs (`DT_NEEDED`).
    libraries: usize,
    /// Names of its sections.
    sections: Vec<String>,
}

fn number(file: &[u8], at: usize, bytes: usize) -> usize {
    file[at..at + bytes].iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte))
}

fn read_elf(file: &[u8]) -> Elf {
    assert_eq!(&file[..6], b"\x7fELF\x02\x01", "not a 64-bit little-endian ELF file");
    let table = |offset: usize, entry_size: usize, count: usize| {
        let (start, size, count) =
            (number(file, offset, 8), number(file, entry_size, 2), number(file, count, 2));
        (0..count).map(move |index| start + index * size)
    };
    let (mut has_interpreter, mut libraries) = (false, 0);
    for segment in table(32, 54, 56) {
        let (offset, size) = (number(file, segment + 8, 8), number(file, segment + 32, 8));
        match number(file, segment, 4) {
            3 => has_interpreter = true,
            2 => {
                libraries +=
                    (offset..offset + size).step_by(16).filter(|at| number(file, *at, 8) == 1).count()
            }
            _ => {}
        }
    }
    let headers: Vec<usize> = table(40, 58, 60).collect();
    let names = number(file, headers[number(file, 62, 2)] + 24, 8);
    let name = |header: &usize| {
        let start = names + number(file, *header, 4);
        let end = start + file[start..].iter().position(|byte| *byte == 0).expect("a terminated name");
        String::from_utf8_lossy(&file[start..end]).into_owned()
    };
    Elf { has_interpreter, libraries, sections: headers.iter().map(name).collect() }
}

fn static_binary() -> PathBuf {
    std::env::var_os("TOLLGATE_STATIC_BINARY")
        .expect("set TOLLGATE_STATIC_BINARY, or run `make static-test`")
        .into()
}

#[test]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn a_dynamic_program_is_told_apart() {
    let elf = read_elf(&std::fs::read(env!("CARGO_BIN_EXE_tollgate")).expect("the program"));
    assert!(elf.has_interpreter && elf.libraries > 0, "{elf:?}");
    assert!(elf.sections.iter().any(|name| name == ".text"), "{elf:?}");
}

#[test]
#[ignore = "needs the static binary: make static-test"]
fn the_program_is_static_and_small() {
    let file = std::fs::read(static_binary()).expect("the static binary");
    let elf = read_elf(&file);
    assert!(!elf.has_interpreter && elf.libraries == 0, "{elf:?}");
    assert!(file.len() <= MAX_BYTES, "{} bytes", file.len());
    // What cargo-auditable leaves: which versions of which crates are inside. Those who use it say so.
    if std::env::var_os("TOLLGATE_AUDITABLE").is_some_and(|value| !value.is_empty()) {
        assert!(elf.sections.iter().any(|name| name == ".dep-v0"), "{:?}", elf.sections);
    }
}

/// Starts the program as uid and gid 65532, with nothing but itself and certificates in a root that cannot be written.
fn in_empty_root(binary: &Path, root: &Path) -> Command {
    const SETUP: &str = r#"
        mount -t tmpfs -o mode=0755 none "$ROOT"
        mkdir "$ROOT/probe" && chmod 0777 "$ROOT/probe"
        cp "$BINARY" "$ROOT/tollgate"
        mount -o remount,ro "$ROOT"
        if touch "$ROOT/probe/x" 2>/dev/null; then echo "the root can be written" >&2; exit 1; fi
        exec unshare --user --map-user=65532 --map-group=65532 --root="$ROOT" --wd=/ /tollgate "$@"
    "#;
    let mut command = Command::new("unshare");
    command
        .args(["--user", "--map-root-user", "--mount", "sh", "-euc", SETUP, "sh", "serve"])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("BINARY", binary)
        .env("ROOT", root);
    command
}

#[test]
#[ignore = "needs the static binary: make static-test"]
fn a_stranger_serves_from_a_read_only_empty_root() {
    let folder = Folder::new("empty-root");
    let process = Process::of(&mut in_empty_root(&static_binary(), &folder.0));
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).expect("/proc");
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).expect("a field").trim();
    assert_eq!(field("CapEff:"), "0000000000000000", "it has no privileges");
    let map = std::fs::read_to_string(format!("/proc/{}/uid_map", process.id())).expect("/proc");
    assert_eq!(map.split_whitespace().next(), Some("65532"));
    // Only a policy would deny it, and there is none.
    let recorded = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/recorded/bad.json");
    let recorded = std::fs::read_to_string(recorded).expect("a recording");
    for (review, allowed) in [(recorded.clone(), true), (recorded.replace("NoExecute", "NoExec"), false)] {
        let reply = process.client().post("/validate", review.as_bytes()).expect("an answer");
        let answer: Value = serde_json::from_str(&reply.text()).expect("JSON");
        assert_eq!((reply.status, &answer["response"]["allowed"]), (200, &Value::from(allowed)), "{answer}");
    }
    process.terminate();
    let (code, log) = process.end();
    assert_eq!(code, Some(0), "{log}");
}
