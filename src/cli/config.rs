//! `tollgate config`: shows the settings for a file or folder and their sources. Also the flags about configuration.
//!
//! Commands that check files flatten [`ConfigArgs`], find the configuration file of each input with [`ConfigLookup`],
//! and merge it with their flags, which take precedence ([`MergedSettings`]).

mod lookup;
mod settings;
mod show;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::console::Console;
use super::given::GivenFlags;
use super::levels::LevelArgs;
use super::outcome::{ExitCounts, Failure};
use super::shared::{EngineArgs, FailOnArgs};
use super::table;
use super::version::Output;
use crate::report::record::record;
pub(super) use lookup::{
    CONFIG_NAME, ConfigLookup, FoundConfig, normalized_absolute_path, path_with_folder_links_resolved,
};
pub(super) use settings::{ConfiguredEngine, MergedSettings, config_file_errors};

/// Flags about configuration.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct ConfigArgs {
    #[command(flatten)]
    given: GivenFlags,

    /// Configuration file (default: for each file, the nearest .tollgate.yaml in its folder or a parent folder)
    #[arg(long, value_name = "FILE", env = "TOLLGATE_CONFIG", help_heading = "Configuration")]
    pub(super) config: Option<PathBuf>,

    /// Ignore all .tollgate.yaml files
    #[arg(long, env = "TOLLGATE_NO_CONFIG", help_heading = "Configuration")]
    #[arg(value_parser = clap::builder::FalseyValueParser::new())]
    #[arg(hide_short_help = true)]
    pub(super) no_config: bool,

    #[command(flatten)]
    pub(super) levels: LevelArgs,
}

impl ConfigArgs {
    /// Finds configuration files. A flag wins over the environment variable of the other one.
    pub(super) fn lookup(&self) -> Result<ConfigLookup, Failure> {
        let is_flag = |name| self.given.get(name).is_some_and(|given| given.source.starts_with("--"));
        if is_flag("config") && is_flag("no_config") {
            return Err(Failure::Usage("--config and --no-config cannot be used together".to_owned()));
        }
        let no_config = self.no_config && !is_flag("config");
        ConfigLookup::new(self.config.as_deref().filter(|_| !no_config), no_config)
    }
}

/// Show the configuration for a file or folder, and the source of each value
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    given: GivenFlags,

    /// File or folder for which to show the configuration
    #[arg(value_name = "PATH", default_value = ".")]
    path: PathBuf,

    #[command(flatten)]
    config: ConfigArgs,

    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: Output,

    #[command(flatten)]
    engine: EngineArgs,

    #[command(flatten)]
    fail_on: FailOnArgs,
}

impl Arguments {
    pub(super) fn run(&self, console: &mut Console) -> Result<ExitCounts, Failure> {
        let path = self.path.display().to_string();
        if self.path.as_os_str() != "-" && std::fs::metadata(&self.path).is_err() {
            return Err(Failure::Input(format!("{path}: no such file or folder")));
        }
        let folder = match self.path.parent() {
            _ if self.path.as_os_str() == "-" => Path::new("."),
            _ if self.path.is_dir() => &self.path,
            Some(folder) => folder,
            None => Path::new("."),
        };
        let config = self.config.lookup()?.find_for_folder(folder)?;
        let config = config.as_deref();
        let settings =
            MergedSettings::new(&self.engine, self.fail_on.fail_on, &self.config.levels, None, config)?;
        // `validate` alone uses the baseline, but a wrong path is an error here as well, like that of any other key.
        config.map(FoundConfig::baseline_path).transpose()?;
        let rows = show::setting_rows(&self.given, &self.config.levels, &settings, config);
        let name = config.map(|config| config.file.name.as_str());
        match self.output {
            Output::Json => {
                let shown = record! { "path": path, "config": name, "settings": rows };
                writeln!(console, "{}", super::to_safe_json(&shown)?)?;
            }
            Output::Text => {
                let found = match name {
                    Some(name) => format!("{path}: configured by {name}\n\n"),
                    None => format!("{path}: no configuration file\n\n"),
                };
                let cells =
                    rows.into_iter().map(|row| vec![row.key, row.value, row.from]).collect::<Vec<_>>();
                console.write_sanitized_text(&found)?;
                console.write_sanitized_text(&table::format_table(&["KEY", "VALUE", "FROM"], &cells))?;
            }
        }
        Ok(ExitCounts::default())
    }
}
