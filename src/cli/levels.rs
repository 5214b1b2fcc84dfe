//! `--deny`, `--warn` and `--allow RULE|ORIGIN`: levels of rules, for commands that report findings about files.
//!
//! The webhook has no such flags: what it denies is what the API server, the documents and the policies deny.
//!
//! Invariant: the order of the flags counts across all three, so that the last one for a name wins. What comes from the
//! environment counts as given before them.

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

use super::completed::with_completions;
use super::shared::unknown_rule_message;
use crate::config::{LevelSetting, LevelTarget, Levels, rule_and_origin_names};

/// The flags `--deny`, `--warn` and `--allow` of a command.
#[derive(Clone, Default, Debug)]
pub(super) struct LevelArgs {
    /// In the order of precedence, lowest first: environment variables, then flags as typed.
    pub(super) given: Vec<GivenLevel>,
}

/// A level that the user set for a rule or origin, by a flag or an environment variable.
#[derive(Clone, Copy, Debug)]
pub(super) struct GivenLevel {
    pub(super) target: LevelTarget,
    pub(super) setting: LevelSetting,
    /// True if an environment variable set it, not a flag.
    pub(super) is_from_environment: bool,
}

impl LevelArgs {
    /// Returns the levels that the flags and their environment variables set; later flags win.
    pub(super) fn levels(&self) -> Levels {
        let mut levels = Levels::default();
        for given in &self.given {
            levels.set(given.target, given.setting);
        }
        levels
    }
}

/// The flag that sets rules to this level, with its environment variable and help.
fn level_flag(setting: LevelSetting) -> Arg {
    let (variable, help) = match setting {
        LevelSetting::Deny => (
            "TOLLGATE_DENY",
            "Report findings from these rules or origins as errors; the level of a rule takes precedence over \
             the level of its origin",
        ),
        LevelSetting::Warn => ("TOLLGATE_WARN", "Report findings from these rules or origins as warnings"),
        LevelSetting::Allow => {
            ("TOLLGATE_ALLOW", "Count findings from these rules or origins without reporting them")
        }
    };
    Arg::new(setting.name())
        .long(setting.name())
        .value_name("RULE|ORIGIN")
        .env(variable)
        .value_delimiter(',')
        .action(ArgAction::Append)
        .value_parser(with_completions(parse_target, rule_and_origin_names))
        .hide_possible_values(true)
        .help(help)
        .help_heading("Levels")
        .hide_short_help(true)
}

fn parse_target(name: &str) -> Result<LevelTarget, String> {
    let name = name.trim();
    LevelTarget::from_name(name).ok_or_else(|| unknown_rule_message(name))
}

impl Args for LevelArgs {
    fn augment_args(command: Command) -> Command {
        let [allow, warn, deny] = LevelSetting::ALL.map(level_flag);
        command.arg(deny).arg(warn).arg(allow)
    }

    fn augment_args_for_update(command: Command) -> Command {
        LevelArgs::augment_args(command)
    }
}

impl FromArgMatches for LevelArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<LevelArgs, clap::Error> {
        let mut given: Vec<(bool, usize, GivenLevel)> = Vec::new();
        for setting in LevelSetting::ALL {
            let is_from_environment = matches.value_source(setting.name()) == Some(ValueSource::EnvVariable);
            let targets = matches.get_many::<LevelTarget>(setting.name()).into_iter().flatten();
            let indices = matches.indices_of(setting.name()).into_iter().flatten();
            given.extend(targets.zip(indices).map(|(target, index)| {
                // Variables have no order: the strictest one comes last.
                let index = if is_from_environment { setting as usize } else { index };
                (!is_from_environment, index, GivenLevel { target: *target, setting, is_from_environment })
            }));
        }
        given.sort_by_key(|(is_flag, index, _)| (*is_flag, *index));
        Ok(LevelArgs { given: given.into_iter().map(|(.., given)| given).collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = LevelArgs::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::LevelArgs;

    #[derive(Debug, Parser)]
    struct Program {
        #[command(flatten)]
        levels: LevelArgs,
    }

    fn given(arguments: &[&str]) -> Result<String, String> {
        let arguments = std::iter::once("program").chain(arguments.iter().copied());
        let program = Program::try_parse_from(arguments).map_err(|error| error.to_string())?;
        let words = program.levels.given.iter();
        let words: Vec<String> = words
            .map(|given| format!("{} {}", given.setting.name(), given.target.rule_or_origin_name()))
            .collect();
        Ok(words.join(", "))
    }

    #[test]
    fn the_order_counts_across_flags() {
        let arguments = ["--allow", "lint,taint-effect", "--deny", "duplicate-taint", "--allow=documented"];
        let expected = "allow lint, allow taint-effect, deny duplicate-taint, allow documented";
        assert_eq!(given(&arguments).unwrap(), expected);
        assert_eq!(
            given(&["--warn", "upstream", "--allow", "upstream"]).unwrap(),
            "warn upstream, allow upstream"
        );
        assert_eq!(
            given(&["--allow", "upstream", "--warn", "upstream"]).unwrap(),
            "allow upstream, warn upstream"
        );
    }

    #[test]
    fn an_unknown_name_suggests_the_nearest() {
        let error = given(&["--allow", "blanket-tolerations"]).unwrap_err();
        assert!(
            error.contains(
                "unknown rule or origin `blanket-tolerations` (did you mean `blanket-toleration`?)"
            )
        );
    }
}
