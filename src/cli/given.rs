//! Which flags were given, and where: on the command line or by environment variables. For `tollgate config`.

use std::collections::BTreeMap;
use std::fmt;

use clap::ArgMatches;
use clap::parser::ValueSource;

/// The flags that were given, by their names in the code.
#[derive(Clone, Default, Debug)]
pub(super) struct GivenFlags(BTreeMap<String, GivenFlag>);

/// A flag that was given.
#[derive(Clone, Debug)]
pub(super) struct GivenFlag {
    pub(super) value: String,
    pub(super) source: String,
}

/// Where a flag was given: `--kubernetes`, `TOLLGATE_KUBERNETES`.
pub(super) struct FlagSource {
    name: String,
    is_variable: bool,
}

impl FlagSource {
    pub(super) fn of(name: &str, is_variable: bool) -> FlagSource {
        FlagSource { name: name.to_owned(), is_variable }
    }
}

impl fmt::Display for FlagSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_variable {
            write!(f, "TOLLGATE_{}", self.name.to_uppercase())
        } else {
            write!(f, "--{}", self.name.replace('_', "-"))
        }
    }
}

impl GivenFlags {
    /// Those of the subcommand that was named.
    pub(super) fn of(matches: &ArgMatches) -> GivenFlags {
        let mut innermost = matches;
        while let Some((_, inner)) = innermost.subcommand() {
            innermost = inner;
        }
        let given = innermost.ids().filter_map(|id| {
            let is_variable = match innermost.value_source(id.as_str())? {
                ValueSource::CommandLine => false,
                ValueSource::EnvVariable => true,
                _ => return None,
            };
            let values = innermost.try_get_raw(id.as_str()).ok()??;
            let values: Vec<_> = values.map(|value| value.to_string_lossy()).collect();
            let source = FlagSource::of(id.as_str(), is_variable).to_string();
            Some((id.as_str().to_owned(), GivenFlag { value: values.join(","), source }))
        });
        GivenFlags(given.collect())
    }

    /// The flag, if it was given.
    pub(super) fn get(&self, name: &str) -> Option<&GivenFlag> {
        self.0.get(name)
    }
}
