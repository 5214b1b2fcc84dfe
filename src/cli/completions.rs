//! `tollgate completions SHELL`: completions made from the parser itself.

use std::fmt::Write as _;
use std::io::Write as _;

use clap::{Command, CommandFactory as _};
use clap_complete::Shell;

use super::console::Console;
use super::outcome::{ExitCounts, Failure};

/// Print shell completions
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Shell to print completions for
    shell: Shell,
}

impl Arguments {
    pub(super) fn run(&self, console: &mut Console) -> Result<ExitCounts, Failure> {
        // The generator panics if it cannot write, so it writes to memory.
        let mut script = Vec::new();
        let mut command = super::Arguments::command();
        clap_complete::generate(self.shell, &mut command, "tollgate", &mut script);
        console.write_all(&script)?;
        if self.shell == Shell::Fish {
            console.write_all(fish_completions_of_positionals(&command).as_bytes())?;
        }
        Ok(ExitCounts::default())
    }
}

/// Returns completions of positional arguments for fish, which the generator of clap omits.
fn fish_completions_of_positionals(command: &Command) -> String {
    let mut out = String::new();
    for command in command.get_subcommands() {
        for argument in command.get_positionals() {
            let names: Vec<String> =
                argument.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
            if !names.is_empty() {
                _ = writeln!(
                    out,
                    "complete -c tollgate -n \"__fish_seen_subcommand_from {}\" -f -a \"{}\"",
                    command.get_name(),
                    names.join(" ")
                );
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;
    use clap_complete::Shell;

    use crate::report::Format;
    use tollgate_api::profile::{self, Gate};
    use tollgate_engine::rules::{self, RuleOrigin};

    fn script(shell: Shell) -> String {
        let mut command = super::super::Arguments::command();
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut command, "tollgate", &mut script);
        let mut script = String::from_utf8(script).expect("UTF-8");
        if shell == Shell::Fish {
            script.push_str(&super::fish_completions_of_positionals(&command));
        }
        script
    }

    #[test]
    fn shells_complete_rules_profiles_formats_origins_and_gates() {
        let mut names: Vec<String> = rules::all().map(|rule| rule.id.to_owned()).collect();
        names.extend(profile::ALL.iter().map(|profile| profile.name.to_owned()));
        names.extend(Format::ALL.map(|format| format.name().to_owned()));
        names.extend(RuleOrigin::ALL.map(|origin| origin.name().to_owned()));
        names.extend(Gate::ALL.iter().map(|gate| format!("{}=true", gate.name())));
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            // zsh and fish escape some letters; fish writes blanks as escapes.
            let script = script(shell).replace("\\t", " ").replace("\\n", " ").replace('\\', "");
            let words: std::collections::HashSet<&str> =
                script.split(|letter: char| letter.is_whitespace() || "\"'()".contains(letter)).collect();
            for name in &names {
                assert!(words.contains(name.as_str()), "{shell}: {name}");
            }
        }
    }

    #[test]
    fn fish_completes_the_rule_to_explain() {
        let script = script(Shell::Fish);
        let line = script.lines().find(|line| line.contains("from explain\" -f -a \""));
        assert!(line.is_some_and(|line| line.contains(" taint-effect ")), "{line:?}");
    }
}
