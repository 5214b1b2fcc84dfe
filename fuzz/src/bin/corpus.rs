//! Moves inputs between `fuzz/corpus/` and the folders that libFuzzer works in.
//!
//! `corpus list`: the targets, each with the length of its longest input. `corpus unpack TARGET FOLDER`: the stored inputs
//! and the seeds, one file each. `corpus pack TARGET FOLDER`: stores the files of a folder.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::print_stdout,
    reason = "a tool for files"
)]

use std::path::Path;
use std::process::ExitCode;

use tollgate_fuzz::{TARGETS, Target, corpus, target};

fn unpack(target: Target, folder: &Path) -> std::io::Result<usize> {
    std::fs::create_dir_all(folder)?;
    let stored = if corpus::path(target.name).exists() { corpus::read(target.name) } else { Vec::new() };
    let inputs: Vec<Vec<u8>> = stored.into_iter().chain((target.seeds)()).collect();
    for (number, input) in inputs.iter().enumerate() {
        std::fs::write(folder.join(format!("seed-{number:05}")), input)?;
    }
    Ok(inputs.len())
}

fn pack(target: Target, folder: &Path) -> std::io::Result<usize> {
    let mut inputs = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        inputs.push(std::fs::read(entry?.path())?);
    }
    let count = inputs.len();
    corpus::write(target.name, inputs)?;
    Ok(count)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments.as_slice() {
        ["list"] => {
            for target in TARGETS {
                println!("{} {}", target.name, target.max_len);
            }
            return ExitCode::SUCCESS;
        }
        ["unpack", name, folder] => target(name).map(|target| unpack(target, Path::new(folder))),
        ["pack", name, folder] => target(name).map(|target| pack(target, Path::new(folder))),
        _ => None,
    };
    match done {
        Some(Ok(count)) => {
            println!("{count} inputs");
            ExitCode::SUCCESS
        }
        Some(Err(error)) => {
            println!("{error}");
            ExitCode::FAILURE
        }
        None => {
            println!("usage: corpus list | corpus unpack TARGET FOLDER | corpus pack TARGET FOLDER");
            ExitCode::from(2)
        }
    }
}
