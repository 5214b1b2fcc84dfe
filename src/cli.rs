//! The command line: arguments in, reports on stdout, everything else on stderr, an exit code out.
//!
//! One file per command below; here are the parser, the flags all commands share, and the way from whatever a
//! command returns to an exit code. Commands make no decisions: they read, call the engine and write.
//!
//! Invariant: nothing here panics on input, a closed pipe changes no exit code, and a bug is exit code 4.

mod audit;
mod capacity;
#[cfg(feature = "serve")]
mod certs;
mod check;
mod classes;
mod clock;
mod completed;
mod completions;
mod config;
#[cfg(feature = "cluster")]
mod conformance;
mod console;
mod devices;
mod diff;
mod drain;
mod expiry;
mod explain;
mod fix;
mod forecast;
mod given;
mod impact;
mod init;
mod levels;
mod limit_list;
#[cfg(feature = "cluster")]
mod live;
mod lsp;
mod manifests;
#[cfg(feature = "mcp")]
mod mcp;
mod mutate;
mod namespaces;
mod outcome;
mod picture;
mod placement;
mod plugin;
mod policies;
mod policy;
mod profiles;
mod progress;
mod review;
mod schema;
#[cfg(feature = "serve")]
mod serve;
mod shared;
#[cfg(feature = "cluster")]
mod snapshot;
mod state;
mod stream;
mod table;
mod taint;
mod test;
#[cfg(test)]
mod tests;
#[cfg(feature = "ui")]
mod ui;
#[cfg_attr(not(feature = "serve"), expect(dead_code, reason = "most units belong to flags of the server"))]
mod units;
mod validate;
mod version;

use std::borrow::Cow;
use std::ffi::OsString;
use std::io::Write as _;
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use console::Console;
use outcome::{ExitCounts, Failure};
use shared::OutputArgs;
use tollgate_formats::sanitize;

const EXIT_CODES: &str = "\
Exit codes:
  0  nothing was denied
  1  something was denied (or reported as a warning, with --fail-on warn)
  2  usage error; nothing was checked
  3  some input could not be read or parsed
  4  internal error
If several codes apply, 4 takes precedence over 1, and 1 over 3.
--exit-zero changes 1 to 0 and does not affect the other codes.";

/// The exit codes in one line, for `-h`; `--help` prints [`EXIT_CODES`].
const SHORT_EXIT_CODES: &str = "\
Exit codes: 0 nothing denied, 1 denied, 2 usage error, 3 unreadable input, 4 internal error";

/// Admission control for Kubernetes device taints and tolerations.
///
/// Checks ResourceSlices, ResourceClaims, ResourceClaimTemplates, DeviceClasses and DeviceTaintRules as the API server
/// does, and reports likely mistakes that the API server accepts. Does not need a cluster.
#[derive(Debug, Parser)]
#[command(name = "tollgate", version, arg_required_else_help = true)]
#[command(after_help = SHORT_EXIT_CODES, after_long_help = EXIT_CODES)]
#[command(max_term_width = 100)]
struct Arguments {
    #[command(flatten)]
    output: OutputArgs,
    #[command(subcommand)]
    command: Command,
}

/// Declares the enum of subcommands, in the order of the help, and its `run`, which runs the chosen one.
macro_rules! commands {
    ($($(#[$when:meta])* $name:ident($arguments:ty);)*) => {
        #[derive(Debug, Subcommand)]
        enum Command {
            $($(#[$when])* $name($arguments),)*
        }

        impl Command {
            fn run(&self, console: &mut Console) -> Result<ExitCounts, Failure> {
                match self {
                    $($(#[$when])* Command::$name(command) => command.run(console),)*
                }
            }
        }
    };
}

commands! {
    #[cfg(feature = "serve")]
    Serve(Box<serve::Arguments>);
    Validate(validate::Arguments);
    Mutate(mutate::Arguments);
    Review(review::Arguments);
    #[cfg(feature = "serve")]
    Certs(certs::Arguments);
    Manifests(manifests::Arguments);
    Test(test::Arguments);
    Impact(impact::Arguments);
    Forecast(Box<forecast::Arguments>);
    Devices(devices::Arguments);
    Drain(Box<drain::Drain>);
    #[cfg(feature = "cluster")]
    Undrain(drain::Undrain);
    #[cfg(feature = "ui")]
    Ui(ui::Arguments);
    Audit(audit::Arguments);
    #[cfg(feature = "cluster")]
    Snapshot(snapshot::Arguments);
    Taint(taint::PrintTaintRuleArgs);
    Untaint(taint::PrintRuleDeletionArgs);
    Policy(policy::Arguments);
    Init(init::Arguments);
    Lsp(lsp::Arguments);
    #[cfg(feature = "mcp")]
    Mcp(mcp::Arguments);
    Schema(schema::Arguments);
    Config(config::Arguments);
    Explain(explain::Arguments);
    Profiles(profiles::Arguments);
    #[cfg(feature = "cluster")]
    Conformance(conformance::Arguments);
    Completions(completions::Arguments);
    Version(version::Arguments);
}

/// Fuzz targets for private modules. Built only for fuzzing and for the test that replays the stored inputs.
#[cfg(any(test, fuzzing))]
#[cfg_attr(not(fuzzing), allow(unreachable_pub, reason = "public in builds for fuzzing"))]
pub mod fuzzing {
    /// Fixes a manifest like `tollgate validate --fix`.
    pub fn fuzz_fix(data: &[u8]) {
        if let Ok(text) = std::str::from_utf8(data) {
            super::fix::fuzzing::fuzz_fix(text);
        }
    }

    /// Plays messages of an editor to `tollgate lsp`.
    pub fn fuzz_lsp(data: &[u8]) {
        super::lsp::fuzzing::fuzz_session(data);
    }

    /// Plays messages of a client to `tollgate mcp`.
    #[cfg(feature = "mcp")]
    pub fn fuzz_mcp(data: &[u8]) {
        super::mcp::fuzzing::fuzz_messages(data);
    }
}

/// Parses the arguments of the process, runs the command, and returns the exit code.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if let Some(candidates) = plugin::kubectl_completions(&arguments, Arguments::command) {
        _ = std::io::stdout().write_all(candidates.as_bytes());
        return ExitCode::SUCCESS;
    }
    plugin::store_program_name(&arguments);
    picture::store_typed_command(&arguments);
    let arguments = match parse_arguments(&arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are not errors and go to stdout; a closed pipe is ignored.
            let plain = error.to_string();
            _ = match (error.use_stderr(), sanitize::sanitize_multiline_text(&plain)) {
                // What was typed may come from a file name: it is shown, and does nothing else.
                (true, Cow::Owned(shown)) => write!(std::io::stderr(), "{shown}"),
                _ => error.print(),
            };
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    // The panic itself has been reported by the hook; what is left is the promise about the exit code.
    // Nothing of the run is used after it, so nothing that a panic left half done is seen.
    let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| dispatch(&arguments)));
    outcome.unwrap_or_else(|_| {
        Console::open().error("internal error; please report it and attach the input");
        ExitCode::from(4)
    })
}

/// Parses the arguments. Help and errors show the program as `kubectl tollgate` if it was started as a plugin of
/// kubectl.
fn parse_arguments(arguments: &[OsString]) -> Result<Arguments, clap::Error> {
    let mut command = Arguments::command();
    if let Some(name) = plugin::kubectl_plugin_name(arguments) {
        command = command.bin_name(name);
    }
    let arguments = placement::move_shared_flags_behind_command(arguments, &command);
    let mut matches = command
        .try_get_matches_from_mut(arguments)
        .map_err(|error| placement::suggest_commands_with_flag(error, &command))
        .map_err(placement::suggest_command_of_other_name)?;
    Arguments::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

fn dispatch(arguments: &Arguments) -> ExitCode {
    _ = console::OUTPUT_FLAGS.set(arguments.output);
    let mut console = Console::open();
    let outcome = arguments.command.run(&mut console);
    let outcome = outcome.and_then(|tally| console.flush_stdout().map(|()| tally).map_err(Failure::from));
    match outcome {
        Ok(tally) => tally.exit_code(),
        Err(failure) => {
            match &failure {
                Failure::Inputs(messages) => messages.iter().for_each(|message| console.error(message)),
                one => console.error(&one.message()),
            }
            failure.exit_code()
        }
    }
}

/// Parses the arguments of a command that another command runs in this process; `words` do not include the name
/// of the program.
#[cfg(feature = "ui")]
fn parse_nested_command_args<A: clap::Args>(words: &[String]) -> Result<A, Failure> {
    let command = A::augment_args(clap::Command::new("tollgate")).no_binary_name(true);
    let usage = |error: clap::Error| Failure::Usage(error.to_string());
    let mut matches = command.try_get_matches_from(words).map_err(usage)?;
    A::from_arg_matches_mut(&mut matches).map_err(usage)
}

/// Serializes a value as one line of JSON, with escapes for characters that a terminal would act on.
fn to_safe_json(value: &impl serde::Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string(value).map_err(|error| Failure::Internal(error.into()))?;
    Ok(sanitize::escape_unsafe_chars_in_json(&text).into_owned())
}
