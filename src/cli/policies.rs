//! `--policy PATH`: policy files and folders, read and compiled. A set that does not load stops the run.

use std::path::PathBuf;

use super::outcome::Failure;
use crate::policy::{PolicySet, Text};
use crate::source::files::{self, Input, MAX_FILE};

/// The policies that the paths name.
pub(super) fn load(paths: &[PathBuf]) -> Result<PolicySet, Failure> {
    if paths.is_empty() {
        return Ok(PolicySet::default());
    }
    compile(&read(paths)?)
}

/// The policies of these texts.
pub(super) fn compile(texts: &[Text]) -> Result<PolicySet, Failure> {
    PolicySet::load(texts, &|path| {
        let text = files::read(&Input::File(PathBuf::from(path)), MAX_FILE);
        text.map_err(|trouble| trouble.message)
    })
    .map_err(|errors| {
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        Failure::Input(lines.join("\n"))
    })
}

/// The texts of the files that the paths name.
pub(super) fn read(paths: &[PathBuf]) -> Result<Vec<Text>, Failure> {
    let found = files::collect(paths);
    if let Some(trouble) = found.troubles.first() {
        return Err(Failure::Input(trouble.to_string()));
    }
    let mut texts = Vec::new();
    for input in &found.inputs {
        let text = files::read(input, MAX_FILE).map_err(|trouble| Failure::Input(trouble.to_string()))?;
        texts.push(Text { name: input.name(), text });
    }
    Ok(texts)
}
