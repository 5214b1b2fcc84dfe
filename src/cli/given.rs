//! Which flags were given, and where: on the command line or by environment variables. For `tollgate config`,
//! and for commands that print how they are continued.

use std::collections::BTreeMap;

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, FromArgMatches};

/// The flags that the user set on the command line or by environment variables, by their names in the code.
#[derive(Clone, Default, Debug)]
pub(super) struct GivenFlags(BTreeMap<String, GivenFlag>);

/// A flag that the user set: its value, and the name of the flag or environment variable.
#[derive(Clone, Debug)]
pub(super) struct GivenFlag {
    pub(super) value: String,
    pub(super) source: String,
}

/// The name under which a flag was given: `--kubernetes`, or `TOLLGATE_KUBERNETES` if `is_variable`.
pub(super) fn flag_or_variable_name(name: &str, is_variable: bool) -> String {
    if is_variable {
        format!("TOLLGATE_{}", name.to_uppercase())
    } else {
        format!("--{}", name.replace('_', "-"))
    }
}

/// Reads which flags of the command were given, if it is flattened into its arguments. It must be their first
/// field, because the other fields remove their flags from the matches.
impl FromArgMatches for GivenFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<GivenFlags, clap::Error> {
        let given = matches.ids().filter_map(|id| {
            let is_variable = match matches.value_source(id.as_str())? {
                ValueSource::CommandLine => false,
                ValueSource::EnvVariable => true,
                _ => return None,
            };
            let values = matches.try_get_raw(id.as_str()).ok()??;
            let values: Vec<_> = values.map(|value| value.to_string_lossy()).collect();
            let source = flag_or_variable_name(id.as_str(), is_variable);
            Some((id.as_str().to_owned(), GivenFlag { value: values.join(","), source }))
        });
        Ok(GivenFlags(given.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = GivenFlags::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Adds no flags: the struct only observes those of the other fields.
impl Args for GivenFlags {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}

impl GivenFlags {
    /// Returns the flag with that name in the code; `None` if the user did not set it.
    pub(super) fn get(&self, name: &str) -> Option<&GivenFlag> {
        self.0.get(name)
    }

    /// Returns name and value of each flag that the user set. A switch has the value `true`.
    #[cfg(feature = "cluster")]
    pub(super) fn flags(&self) -> impl Iterator<Item = (&str, &str)> {
        let flags = self.0.iter().map(|(name, flag)| (name.as_str(), flag.value.as_str()));
        // Groups of flags have the names of their structs.
        flags.filter(|(name, _)| name.starts_with(|first: char| first.is_ascii_lowercase()))
    }
}
