//! `tollgate completions SHELL`: completions made from the parser itself.

use std::io::Write as _;

use clap::CommandFactory as _;

use super::console::Console;
use super::outcome::{Failure, Tally};

/// Print completions for a shell
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The shell
    shell: clap_complete::Shell,
}

impl Arguments {
    pub(super) fn run(&self, console: &mut Console) -> Result<Tally, Failure> {
        // The generator panics if it cannot write, so it writes to memory.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut super::Arguments::command(), "tollgate", &mut script);
        console.write_all(&script)?;
        Ok(Tally::default())
    }
}
