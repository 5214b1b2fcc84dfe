//! The commands of the programs, which move inputs between `fuzz/corpus/` and the folders that libFuzzer works in.
//!
//! `list`: the targets, each with the length of its longest input. `unpack TARGET FOLDER`: the stored inputs and the
//! seeds, one file each. `words TARGET`: the words of the seeds, as a dictionary of libFuzzer. `pack TARGET FOLDER`:
//! stores the files of a folder. `run TARGET`: replays the stored inputs and the seeds, to count what they reach.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::print_stdout,
    reason = "a tool for files"
)]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use crate::{TARGETS, Target, corpus, target};

/// Words in a dictionary.
const MAX_WORDS: usize = 300;

fn inputs(target: Target) -> Vec<Vec<u8>> {
    corpus::read(target.name).into_iter().chain((target.seeds)()).collect()
}

fn replay(target: Target) -> usize {
    let inputs = inputs(target);
    for input in &inputs {
        (target.run)(input);
    }
    inputs.len()
}

fn unpack(target: Target, folder: &Path) -> std::io::Result<usize> {
    std::fs::create_dir_all(folder)?;
    let inputs = inputs(target);
    for (number, input) in inputs.iter().enumerate() {
        std::fs::write(folder.join(format!("seed-{number:05}")), input)?;
    }
    Ok(inputs.len())
}

/// The words that are most frequent in the seeds: libFuzzer puts them into inputs, and would not find them by itself.
fn words(target: Target) -> Vec<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for seed in (target.seeds)() {
        let text = String::from_utf8_lossy(&seed).into_owned();
        let is_inside = |c: char| c.is_ascii_alphanumeric() || "$-_./".contains(c);
        for word in text.split(|c| !is_inside(c)).filter(|word| (3..=40).contains(&word.len())) {
            *counts.entry(word.to_owned()).or_default() += 1;
        }
    }
    let mut words: Vec<(String, usize)> = counts.into_iter().collect();
    words.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    words.truncate(MAX_WORDS);
    words.into_iter().map(|(word, _)| word).collect()
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

/// Runs a command; `None` if there is no such command.
pub fn run(arguments: &[&str]) -> Option<ExitCode> {
    let done = match arguments {
        ["list"] => {
            for target in TARGETS {
                println!("{} {}", target.name, target.max_len);
            }
            return Some(ExitCode::SUCCESS);
        }
        ["words", name] => {
            for word in words(target(name)?) {
                println!("\"{word}\"");
            }
            return Some(ExitCode::SUCCESS);
        }
        ["unpack", name, folder] => unpack(target(name)?, Path::new(folder)),
        ["pack", name, folder] => pack(target(name)?, Path::new(folder)),
        ["run", name] => Ok(replay(target(name)?)),
        _ => return None,
    };
    Some(match done {
        Ok(count) => {
            println!("{count} inputs");
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    })
}
