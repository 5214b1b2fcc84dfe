//! Tollgate as a plugin of kubectl: `kubectl-tollgate` in the PATH is `kubectl tollgate`, and
//! `kubectl_complete-tollgate` completes it.
//!
//! Both names are links to the program. kubectl calls the second one with the words after `kubectl tollgate`, the last
//! of which is to be completed and may be empty; it prints one candidate per line, with its description after a tab,
//! and a last line with a directive for the shell.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::OnceLock;

use clap::{Arg, Command};

use tollgate_api::profile::Profile;

/// Directive for the shell: complete file names if there are no candidates.
const COMPLETE_FILES_DIRECTIVE: u8 = 0;
/// Directive for the shell: do not complete file names.
const NO_FILES_DIRECTIVE: u8 = 4;

/// Returns `kubectl tollgate` if the program was started as a plugin of kubectl; `None` if by its own name.
pub(super) fn kubectl_plugin_name(arguments: &[OsString]) -> Option<&'static str> {
    (program_file_stem(arguments) == "kubectl-tollgate").then_some("kubectl tollgate")
}

/// How the program was called (`tollgate` or `kubectl tollgate`), for commands that it prints.
static PROGRAM_NAME: OnceLock<&'static str> = OnceLock::new();

/// Stores by which name the program was started.
pub(super) fn store_program_name(arguments: &[OsString]) {
    _ = PROGRAM_NAME.set(kubectl_plugin_name(arguments).unwrap_or("tollgate"));
}

/// Returns the command that users type: `tollgate`, or `kubectl tollgate` for the plugin.
pub(super) fn program_name() -> &'static str {
    PROGRAM_NAME.get().copied().unwrap_or("tollgate")
}

/// Returns the completions for kubectl if the program was started as its completion plugin; `None` otherwise.
pub(super) fn kubectl_completions(arguments: &[OsString], command: impl Fn() -> Command) -> Option<String> {
    if program_file_stem(arguments) != "kubectl_complete-tollgate" {
        return None;
    }
    let words: Vec<String> =
        arguments.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let mut command = command();
    command.build();
    Some(complete_last_word(&command, &words))
}

/// The file name of the program, without extension.
fn program_file_stem(arguments: &[OsString]) -> String {
    let program = arguments.first().map(Path::new).and_then(Path::file_stem);
    program.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Returns the completions for the last of these words, in the format of kubectl.
fn complete_last_word(root: &Command, words: &[String]) -> String {
    let Some((current, before)) = words.split_last() else { return format!(":{COMPLETE_FILES_DIRECTIVE}\n") };
    let mut command = root;
    let mut pending: Option<&Arg> = None;
    for word in before {
        if pending.take().is_some() {
            continue;
        }
        if word.starts_with('-') {
            pending = (!word.contains('='))
                .then(|| find_flag(command, word))
                .flatten()
                .filter(|arg| requires_value(arg));
        } else if let Some(found) = command.find_subcommand(word) {
            command = found;
        }
    }
    let (candidates, directive) = match (pending, current.split_once('=')) {
        (Some(arg), _) => value_candidates(arg, current, ""),
        (None, Some((name, value))) if name.starts_with('-') => match find_flag(command, name) {
            Some(arg) => value_candidates(arg, value, &format!("{name}=")),
            None => (Vec::new(), NO_FILES_DIRECTIVE),
        },
        (None, _) if current.starts_with('-') => (flag_candidates(command), NO_FILES_DIRECTIVE),
        (None, _) if command.has_subcommands() => (subcommand_candidates(command), NO_FILES_DIRECTIVE),
        (None, _) => command
            .get_positionals()
            .next()
            .map_or((Vec::new(), NO_FILES_DIRECTIVE), |arg| value_candidates(arg, current, "")),
    };
    let mut out = String::new();
    for (candidate, about) in candidates.iter().filter(|(candidate, _)| candidate.starts_with(current)) {
        _ = writeln!(out, "{candidate}\t{about}");
    }
    _ = writeln!(out, ":{directive}");
    out
}

/// Completions, each with its description.
type Candidates = Vec<(String, String)>;

/// Returns the flag that a word such as `--kubernetes=1.36` or `-o` names; `None` if the command does not have
/// it.
pub(super) fn find_flag<'c>(command: &'c Command, word: &str) -> Option<&'c Arg> {
    let name = word.split('=').next().unwrap_or_default();
    command.get_arguments().find(|arg| {
        let is_long = name.strip_prefix("--").is_some_and(|name| arg.get_long() == Some(name));
        let short = name.strip_prefix('-').and_then(|name| name.chars().next());
        is_long || (!name.starts_with("--") && short.is_some() && arg.get_short() == short)
    })
}

/// True if the flag needs a value.
pub(super) fn requires_value(arg: &Arg) -> bool {
    arg.get_action().takes_values() && arg.get_num_args().is_none_or(|range| range.min_values() > 0)
}

fn flag_candidates(command: &Command) -> Candidates {
    let visible = command.get_arguments().filter(|arg| !arg.is_hide_set());
    visible
        .filter_map(|arg| Some((format!("--{}", arg.get_long()?), first_help_line(arg.get_help()))))
        .collect()
}

fn subcommand_candidates(command: &Command) -> Candidates {
    let visible = command.get_subcommands().filter(|command| !command.is_hide_set());
    visible.map(|command| (command.get_name().to_owned(), first_help_line(command.get_about()))).collect()
}

/// The first line of a help text; empty if there is none.
fn first_help_line(help: Option<&clap::builder::StyledStr>) -> String {
    let text = help.map(ToString::to_string).unwrap_or_default();
    text.lines().next().unwrap_or_default().to_owned()
}

/// Returns the candidates for the value of an argument, and the directive for the shell. After a comma, completes
/// the next value of a list. Arguments without known values are files.
fn value_candidates(arg: &Arg, current: &str, before: &str) -> (Candidates, u8) {
    let known: Candidates = match arg.get_id().as_str() {
        "kubernetes" | "profiles" => {
            let profiles = Profile::all_with_patches()
                .map(|profile| (profile.name.to_owned(), profile.about.to_owned()));
            profiles
                .chain([("cluster".to_owned(), "the release of the running cluster".to_owned())])
                .collect()
        }
        _ => {
            let values = arg.get_possible_values();
            values
                .iter()
                .map(|value| (value.get_name().to_owned(), first_help_line(value.get_help())))
                .collect()
        }
    };
    if known.is_empty() {
        return (Vec::new(), COMPLETE_FILES_DIRECTIVE);
    }
    let list = current.rsplit_once(',').map_or("", |(list, _)| list);
    let comma = if list.is_empty() { "" } else { "," };
    let whole = |(value, about): (String, String)| (format!("{before}{list}{comma}{value}"), about);
    (known.into_iter().map(whole).collect(), NO_FILES_DIRECTIVE)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::{kubectl_completions, kubectl_plugin_name};
    use crate::cli::Arguments;

    fn complete_last_word(words: &[&str]) -> Vec<String> {
        let arguments: Vec<_> = ["/usr/bin/kubectl_complete-tollgate"]
            .iter()
            .chain(words)
            .map(std::ffi::OsString::from)
            .collect();
        let text = kubectl_completions(&arguments, Arguments::command).expect("asked");
        text.lines().map(|line| line.split('\t').next().unwrap_or_default().to_owned()).collect()
    }

    #[test]
    fn only_its_name_makes_it_a_plugin() {
        let called = |program: &str| kubectl_plugin_name(&[program.into()]);
        assert_eq!(called("/usr/local/bin/kubectl-tollgate"), Some("kubectl tollgate"));
        assert_eq!((called("tollgate"), called("kubectl"), kubectl_plugin_name(&[])), (None, None, None));
        assert!(kubectl_completions(&["tollgate".into(), "impact".into()], Arguments::command).is_none());
    }

    #[test]
    fn words_are_completed() {
        assert_eq!(complete_last_word(&["impa"]), ["impact", ":4"]);
        assert_eq!(complete_last_word(&["audit", "--output", "sar"]), ["sarif", ":4"]);
        assert_eq!(complete_last_word(&["audit", "-o", "openr"]), ["openreports", ":4"]);
        assert_eq!(complete_last_word(&["audit", "--output=jun"]), ["--output=junit", ":4"]);
        assert_eq!(
            complete_last_word(&["audit", "--kubernetes", "1.36,1.3"]).first().map(String::as_str),
            Some("1.36,1.33")
        );
        assert!(complete_last_word(&["audit", "--rul"]).contains(&"--rules".to_owned()));
        assert_eq!(complete_last_word(&["impact", ""]), [":0"], "files");
        assert_eq!(complete_last_word(&["impact", "--context", ""]), [":0"]);
        assert!(complete_last_word(&[""]).len() > 10);
        assert!(complete_last_word(&["explain", "dropped-f"]).contains(&"dropped-field".to_owned()));
        assert_eq!(complete_last_word(&["--nothing=x"]), [":4"]);
        assert_eq!(complete_last_word(&[]), [":0"]);
    }
}
