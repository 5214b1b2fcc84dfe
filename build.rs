//! Lists the pages of `docs/rules`, so that a new page needs no other line.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a build that cannot read its pages must fail"
)]

use std::fmt::Write as _;
use std::path::Path;

fn main() {
    let folder = Path::new(&std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("docs/rules");
    println!("cargo::rerun-if-changed={}", folder.display());
    let entries = std::fs::read_dir(&folder).expect("docs/rules");
    let mut pages: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    pages.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    pages.sort_by(|one, other| one.file_stem().cmp(&other.file_stem()));
    let mut table = "&[".to_owned();
    for path in pages {
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a name in UTF-8");
        writeln!(table, "({name:?}, include_str!({:?})),", path.display().to_string()).expect("memory");
    }
    table.push(']');
    let target = Path::new(&std::env::var("OUT_DIR").expect("cargo sets it")).join("pages.rs");
    std::fs::write(target, table).expect("OUT_DIR can be written");
}
