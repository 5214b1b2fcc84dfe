//! Checks whether a drain can be confirmed, and prints the commands that continue and undo it.
//!
//! Invariant: a printed command names the cluster, so that it does the same wherever it is pasted.

use super::reporter::ContinueAndUndoCommands;
use crate::cli::console::{Console, quote_for_shell};
use crate::cli::given::{GivenFlags, flag_or_variable_name};
use crate::cli::live::ConnectedServer;
use crate::cli::outcome::Failure;
use crate::cli::plugin;
use crate::cli::shared::ReleaseArgs;

/// Returns an error if `--yes` is not set and stdin is no terminal on which a person could confirm.
pub(in crate::cli::drain) fn require_yes_or_terminal(is_confirmed: bool) -> Result<(), Failure> {
    if is_confirmed || Console::is_stdin_terminal() {
        return Ok(());
    }
    Err(Failure::Usage(
        "stdin is not a terminal, so nobody can confirm; add --yes and --context NAME, or --dry-run"
            .to_owned(),
    ))
}

/// Returns an error for `--yes` without `--context`, so that no other cluster is changed by mistake. In a pod,
/// there is only one cluster.
pub(in crate::cli::drain) fn require_context_with_yes(
    is_confirmed: bool,
    release: &ReleaseArgs,
    asked: &ConnectedServer,
) -> Result<(), Failure> {
    match &asked.endpoint().context {
        Some(context) if is_confirmed && !release.server.context.has_context_flag() => {
            Err(Failure::Usage(format!(
                "--yes requires --context, so that no other cluster is changed; add --context {}",
                quote_for_shell(context)
            )))
        }
        _ => Ok(()),
    }
}

/// Returns the cluster for messages: `context prod`.
pub(in crate::cli::drain) fn cluster_name_for_messages(asked: &ConnectedServer) -> String {
    match &asked.endpoint().context {
        Some(context) => format!("context {context}"),
        None => "the cluster of this pod".to_owned(),
    }
}

/// Flags that are left out of annotations and of commands to be pasted: the targets, which are written separately,
/// and flags that only affect planning.
pub(in crate::cli::drain) const FLAGS_NOT_REPEATED: [&str; 7] =
    ["targets", "state", "dry_run", "check", "now", "quiet", "color"];

/// Flags that the page of a plan leaves out of its commands as well: its format, and what is assumed of its dump.
const FLAGS_LEFT_OUT_ON_PAGES: [&str; 2] = ["output", "assume_complete"];

/// Flags that describe the cluster of a dump. A running cluster is asked for its release.
const FLAGS_LEFT_OUT_FOR_DUMPS: [&str; 2] = ["kubernetes", "feature_gates"];

/// Flags of `tollgate drain` that the matching `tollgate undrain` command repeats.
const REPEATED_BY_UNDRAIN: [&str; 5] = ["key", "context", "kubeconfig", "lock_namespace", "yes"];

/// Flags without a value, which are printed by name only.
const FLAGS_WITHOUT_VALUE: [&str; 8] = [
    "yes",
    "move_unknown",
    "force",
    "delete_emptydir_data",
    "evict_daemonset_pods",
    "ignore_do_not_disrupt",
    "no_lock",
    "ignore_preflight_errors",
];

/// Returns the flags of the command line except those in `left_out`, quoted so that they can be pasted into a
/// shell.
pub(in crate::cli::drain) fn flags_to_paste(given: &GivenFlags, left_out: &[&str]) -> String {
    let flags = given.flags().filter(|(name, _)| !left_out.contains(name));
    let words = flags.map(|(name, value)| {
        let flag = flag_or_variable_name(name, false);
        if FLAGS_WITHOUT_VALUE.contains(&name) { flag } else { format!("{flag} {}", quote_for_shell(value)) }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Returns the commands that continue and undo the drain of these targets. They name `context`, which this run
/// uses, because the current context may change; it is `None` in a pod.
pub(in crate::cli::drain) fn continue_and_undo_commands(
    typed: &[String],
    given: &GivenFlags,
    context: Option<&str>,
) -> ContinueAndUndoCommands {
    commands_leaving_out(typed, given, context, &FLAGS_NOT_REPEATED)
}

/// Returns the flags with which another command, also of kubectl, uses the same cluster, such as `--context prod`. They
/// name `context`, which this run uses; it is `None` in a pod.
pub(in crate::cli::drain) fn same_cluster_flags(given: &GivenFlags, context: Option<&str>) -> String {
    let others: Vec<&str> =
        given.flags().map(|(name, _)| name).filter(|name| *name != "kubeconfig").collect();
    let context = context.map(|context| format!("--context {}", quote_for_shell(context)));
    let words = context.into_iter().chain([flags_to_paste(given, &others)]);
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Returns the commands that carry out and undo the plan on a page. `context` is the one that the plan was made for;
/// `None` in a pod and for a dump.
pub(in crate::cli::drain) fn plan_page_commands(
    typed: &[String],
    given: &GivenFlags,
    context: Option<&str>,
    is_for_dump: bool,
) -> ContinueAndUndoCommands {
    let mut left_out = [&FLAGS_NOT_REPEATED[..], &FLAGS_LEFT_OUT_ON_PAGES].concat();
    if is_for_dump {
        left_out.extend(FLAGS_LEFT_OUT_FOR_DUMPS);
    }
    commands_leaving_out(typed, given, context, &left_out)
}

fn commands_leaving_out(
    typed: &[String],
    given: &GivenFlags,
    context: Option<&str>,
    left_out: &[&str],
) -> ContinueAndUndoCommands {
    let targets: Vec<String> = typed.iter().map(|target| quote_for_shell(target)).collect();
    // The current context may be another one by then.
    let context = context.filter(|_| given.get("context").is_none());
    let context = context.map(|context| format!("--context {}", quote_for_shell(context)));
    let command = |verb: &str, flags: String| {
        let words = [plugin::program_name().to_owned(), verb.to_owned(), targets.join(" ")];
        let words = words.into_iter().chain(context.clone()).chain([flags]);
        words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    };
    let others: Vec<&str> =
        given.flags().map(|(name, _)| name).filter(|name| !REPEATED_BY_UNDRAIN.contains(name)).collect();
    ContinueAndUndoCommands {
        go_on: command("drain", flags_to_paste(given, left_out)),
        go_back: command("undrain", flags_to_paste(given, &others)),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::{
        FLAGS_NOT_REPEATED, continue_and_undo_commands, flags_to_paste, plan_page_commands,
        same_cluster_flags,
    };
    use crate::cli::{Arguments, Command};

    fn given(line: &[&str]) -> crate::cli::given::GivenFlags {
        let words = ["tollgate", "drain"].iter().chain(line);
        match Arguments::try_parse_from(words).expect("it parses").command {
            Command::Drain(drain) => drain.given,
            _ => panic!("another command"),
        }
    }

    #[test]
    fn commands_are_repeated_as_they_were_typed() {
        let flags =
            given(&["node/a", "--move-unknown", "--reason", "it's new", "--timeout", "1h30m", "--quiet"]);
        assert_eq!(
            flags_to_paste(&flags, &FLAGS_NOT_REPEATED),
            r"--move-unknown --reason 'it'\''s new' --timeout 1h30m"
        );
        let next =
            continue_and_undo_commands(&["node/a".to_owned(), "b/*".to_owned()], &flags, Some("my prod"));
        assert_eq!(
            (next.go_on.as_str(), next.go_back.as_str()),
            (
                r"tollgate drain node/a 'b/*' --context 'my prod' --move-unknown --reason 'it'\''s new' --timeout 1h30m",
                "tollgate undrain node/a 'b/*' --context 'my prod'"
            )
        );
        let flags = given(&["node/a", "--context", "prod", "--key", "example.com/a", "--yes"]);
        let next = continue_and_undo_commands(&["node/a".to_owned()], &flags, Some("prod"));
        assert_eq!(
            (next.go_on.as_str(), next.go_back.as_str()),
            (
                "tollgate drain node/a --context prod --key example.com/a --yes",
                "tollgate undrain node/a --context prod --key example.com/a --yes"
            )
        );
    }

    #[test]
    fn the_commands_of_other_drains_name_the_cluster() {
        let flags = given(&["node/a", "--key", "example.com/a", "--force"]);
        assert_eq!(same_cluster_flags(&flags, Some("my prod")), "--context 'my prod'");
        assert_eq!(same_cluster_flags(&flags, None), "");
        let flags = given(&["node/a", "--context", "prod", "--kubeconfig", "a.yaml", "--yes"]);
        assert_eq!(same_cluster_flags(&flags, Some("prod")), "--context prod --kubeconfig a.yaml");
    }

    #[test]
    fn commands_of_a_page_leave_out_what_made_the_page() {
        let typed = ["node/a".to_owned()];
        let flags = given(&["node/a", "--dry-run", "-o", "html", "--now", "2026-11-16T09:30:00Z", "--force"]);
        let page = plan_page_commands(&typed, &flags, Some("prod"), false);
        assert_eq!(
            (page.go_on.as_str(), page.go_back.as_str()),
            ("tollgate drain node/a --context prod --force", "tollgate undrain node/a --context prod")
        );
        let flags = given(&[
            "node/a",
            "--state",
            "a.yaml",
            "--kubernetes",
            "1.37",
            "--key",
            "example.com/a",
            "-o",
            "html",
        ]);
        let page = plan_page_commands(&typed, &flags, None, true);
        assert_eq!(
            (page.go_on.as_str(), page.go_back.as_str()),
            ("tollgate drain node/a --key example.com/a", "tollgate undrain node/a --key example.com/a")
        );
    }
}
