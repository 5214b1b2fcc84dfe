//! Handles flags before the command, and suggests what to use instead of an unknown flag, or of a command name that
//! other tools have.
//!
//! `tollgate --kubernetes 1.36 validate` means `tollgate validate --kubernetes 1.36`: shared flags may stand in front
//! of the command, which then reads them as its own.
//!
//! Invariant: a flag that a command does not use is wrong usage, wherever it stands.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args as _, Command};

use super::plugin::{find_flag, requires_value};
use super::shared::{EngineArgs, ExitArgs};
use tollgate_api::conform::suggest::join_with_and;

/// Returns a command that has all flags which several commands share.
pub(super) fn shared_flags() -> Command {
    ExitArgs::augment_args(EngineArgs::augment_args(Command::new("shared")))
}

/// Moves shared flags that stand before the command behind it, where the parser accepts them.
pub(super) fn move_shared_flags_behind_command(words: &[OsString], root: &Command) -> Vec<OsString> {
    let shared = shared_flags();
    let mut rest = words.iter();
    let mut kept: Vec<OsString> = rest.next().cloned().into_iter().collect();
    let mut moved = Vec::new();
    let mut command = root;
    while let Some(word) = rest.next() {
        let text = word.to_string_lossy();
        if let Some(found) = command.find_subcommand(&*text) {
            kept.push(word.clone());
            command = found;
            if command.has_subcommands() {
                continue;
            }
            break;
        }
        let (found, list) = match (find_flag(root, &text), find_flag(&shared, &text)) {
            (None, Some(found)) => (found, &mut moved),
            (Some(found), _) => (found, &mut kept),
            (None, None) => {
                kept.push(word.clone());
                break;
            }
        };
        list.push(word.clone());
        if requires_value(found) && !text.contains('=') {
            list.extend(rest.next().cloned());
        }
    }
    kept.append(&mut moved);
    kept.extend(rest.cloned());
    kept
}

/// Flags of kubectl before the name of a file.
const FILE_FLAGS: [&str; 2] = ["-f", "--filename"];

/// Adds to the error about an unknown flag which commands have that flag, or that files need none. Other errors stay as
/// they are.
pub(super) fn suggest_commands_with_flag(mut error: clap::Error, root: &Command) -> clap::Error {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else { return error };
    let word = word.clone();
    let having = root.get_subcommands().filter(|command| find_flag(command, &word).is_some());
    let names: Vec<&str> = having.map(Command::get_name).collect();
    let tip = if !names.is_empty() {
        format!("'{word}' is an option of {}", join_with_and(&names))
    } else if FILE_FLAGS.contains(&word.as_str()) {
        format!("name files without '{word}'")
    } else {
        return error;
    };
    if error.kind() == ErrorKind::UnknownArgument && word.starts_with('-') {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
        // It is no typo: another flag, and a usage line with it, would mislead.
        if error.remove(ContextKind::SuggestedArg).is_some() {
            error.remove(ContextKind::Usage);
        }
    }
    error
}

/// Names of commands in other tools, and Tollgate's command that does the same.
const OTHER_NAMES: [(&str, &str); 14] = [
    ("check", "validate"),
    ("lint", "validate"),
    ("fix", "validate --fix"),
    ("scan", "audit"),
    ("plan", "impact"),
    ("simulate", "impact"),
    ("cordon", "drain"),
    ("uncordon", "undrain"),
    ("get", "devices"),
    ("list", "devices"),
    ("run", "serve"),
    ("start", "serve"),
    ("install", "manifests"),
    ("rules", "explain"),
];

/// Adds to the error about an unknown command which command does what other tools call by that name. Other errors stay
/// as they are.
pub(super) fn suggest_command_of_other_name(mut error: clap::Error) -> clap::Error {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return error };
    if let Some((_, command)) = OTHER_NAMES.iter().find(|(name, _)| name == word) {
        let tip = format!("use '{command}'");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
        error.remove(ContextKind::SuggestedSubcommand);
    }
    error
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use clap::CommandFactory as _;
    use clap::error::ErrorKind;

    use super::{OTHER_NAMES, move_shared_flags_behind_command};
    use crate::cli::{Arguments, parse_arguments};

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn shared_flags_may_stand_before_the_command() {
        for (line, expected) in [
            ("tollgate --kubernetes 1.36 validate x --fix", "tollgate validate --kubernetes 1.36 x --fix"),
            (
                "tollgate -q --policy=a --exit-zero --color never audit --state validate",
                "tollgate -q --color never audit --policy=a --exit-zero --state validate",
            ),
            ("tollgate policy --rules lint diff a b", "tollgate policy diff --rules lint a b"),
            ("tollgate validate --kubernetes 1.36 x", "tollgate validate --kubernetes 1.36 x"),
            ("tollgate --context validate impact x", "tollgate impact --context validate x"),
            ("tollgate --help --kubernetes", "tollgate --help --kubernetes"),
            ("tollgate --kubernetes 1.36", "tollgate --kubernetes 1.36"),
            ("tollgate --no-such validate", "tollgate --no-such validate"),
        ] {
            assert_eq!(
                move_shared_flags_behind_command(&words(line), &Arguments::command()),
                words(expected),
                "{line}"
            );
        }
    }

    #[test]
    fn flags_and_commands_that_do_not_exist_get_a_tip() {
        for (line, tip) in [
            ("tollgate certs --policy /nonexistent", "'--policy' is an option of serve, validate"),
            ("tollgate --policy /nonexistent certs", "'--policy' is an option of serve, validate"),
            ("tollgate policy --rules lint diff a b", "'--rules' is an option of"),
            ("tollgate impact --policy p rule.yaml", "'--policy' is an option of"),
            ("tollgate version --kubernetes 1.36", "'--kubernetes' is an option of"),
            ("tollgate mutate --fail-on warn x", "'--fail-on' is an option of"),
            ("tollgate --kubernetes 1.36", "'--kubernetes' is an option of"),
            ("tollgate impact -f rule.yaml", "name files without '-f'"),
            ("tollgate validate --filename=rule.yaml", "name files without '--filename'"),
        ] {
            let error = parse_arguments(&words(line)).expect_err(line);
            assert!(error.to_string().contains(tip), "{line}: {error}");
            assert_eq!(error.exit_code(), 2);
        }
        for (name, command) in OTHER_NAMES {
            let error = parse_arguments(&words(&format!("tollgate {name}"))).expect_err(name).to_string();
            let tips: Vec<&str> = error.lines().filter(|line| line.contains("tip:")).collect();
            assert_eq!(tips, [format!("  tip: use '{command}'")], "{name}");
            let needs_more = parse_arguments(&words(&format!("tollgate {command}")));
            let kind = needs_more.err().map(|error| error.kind());
            assert_ne!(kind, Some(ErrorKind::InvalidSubcommand), "{command}");
        }
        let typo =
            parse_arguments(&words("tollgate validate --kubernets 1.36")).expect_err("a typo").to_string();
        assert!(typo.contains("--kubernetes"), "{typo}");
    }
}
