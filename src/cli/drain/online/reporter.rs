//! What a drain shows while it runs: one line for each change, as text or JSON, and on a terminal a summary below them
//! that is drawn anew.
//!
//! Lines go to stdout, the summary goes to stderr, and only if both are terminals. Nothing is decided here.
//!
//! Invariant: output that cannot be written does not stop a drain, and no line is lost because of the summary.

mod sentence;
mod view;

use std::fmt::Write as _;
use std::io::{self, Write};
use std::time::Duration;

use super::event::{Event, TimedEvent};
use super::run::{DrainUserInterface, RunSettings};
use crate::cli::console::{Console, IgnoreBrokenPipe};
use crate::cli::drain::PlanReport;
use crate::cli::drain::plan_json::plan_record;
use crate::cli::drain::plan_text::{self};
use crate::cli::to_safe_json;
use crate::cli::version::Output;
use tollgate_drain::{DrainPlan, PodDecision};
use tollgate_formats::count::count_with_noun;
use tollgate_formats::gotime::{self, Timestamp};
use tollgate_formats::sanitize;
use view::TerminalSummary;

/// The commands that a user can run next, to be pasted.
#[derive(Clone, Debug)]
pub(in crate::cli::drain) struct ContinueAndUndoCommands {
    /// Continues the drain: the same command again.
    pub(in crate::cli::drain) go_on: String,
    /// Undoes the drain: deletes its rules.
    pub(in crate::cli::drain) go_back: String,
}

/// Prints the plan and the events of a drain as text or JSON, and asks for confirmation.
pub(in crate::cli::drain) struct Reporter {
    output: Output,
    next: ContinueAndUndoCommands,
    /// The cluster for messages: `context prod`.
    cluster: String,
    /// True with `--yes`: the plan counts as confirmed, and no question is asked.
    is_confirmed: bool,
    out: Box<dyn Write + Send>,
    /// The summary on the terminal; `None` for JSON, with `--quiet`, or if stdout or stderr is no terminal.
    view: Option<TerminalSummary>,
}

impl Reporter {
    /// A reporter that writes events to stdout, and the summary to stderr.
    pub(in crate::cli::drain) fn new(
        output: Output,
        next: ContinueAndUndoCommands,
        cluster: String,
        is_confirmed: bool,
    ) -> Reporter {
        let is_watched = Console::is_stdout_terminal() && Console::is_stderr_terminal();
        let view = (output == Output::Text && is_watched && !Console::is_quiet()).then(TerminalSummary::new);
        let out = Box::new(IgnoreBrokenPipe::new(io::stdout()));
        Reporter { output, next, cluster, is_confirmed, out, view }
    }

    /// Prints a warning to stderr.
    pub(in crate::cli::drain) fn warning(&mut self, message: &str) {
        self.hide_summary();
        Console::open().warning(message);
    }

    /// Prints a note to stderr.
    pub(in crate::cli::drain) fn note(&mut self, message: &str) {
        self.hide_summary();
        Console::open().note(message);
    }

    /// Removes the summary before others write to the terminal, and at the end of a run.
    pub(in crate::cli::drain) fn hide_summary(&mut self) {
        if let Some(view) = &mut self.view {
            view.hide();
        }
    }

    fn write_json(&mut self, record: &impl serde::Serialize) {
        match to_safe_json(record) {
            Ok(json) => self.write_lines(&format!("{json}\n")),
            Err(failure) => self.warning(&failure.message()),
        }
    }

    /// Writes lines to stdout. If they cannot be written, one warning is printed, and the drain continues.
    fn write_lines(&mut self, text: &str) {
        self.hide_summary();
        let written = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
        if let Err(error) = written {
            self.out = Box::new(io::sink());
            let why = crate::files::io_reason(&error);
            self.warning(&format!("cannot write to stdout: {why}; the drain goes on without output"));
        }
    }
}

impl DrainUserInterface for Reporter {
    /// Prints the plan before anything is changed, and asks whether to start.
    fn show_plan_and_confirm(&mut self, at: Timestamp, settings: &RunSettings, plan: &DrainPlan) -> bool {
        if let Some(view) = &mut self.view {
            view.set_planned_counts(plan);
        }
        let question = confirmation_question(&self.cluster, settings.force_after, plan);
        let report = PlanReport {
            profile: settings.release.profile,
            at,
            samples: settings.samples.get(),
            request: settings.request.clone(),
            plan: plan.clone(),
            incomplete: Vec::new(),
        };
        match self.output {
            Output::Text => {
                self.write_lines(&sanitize::sanitize_multiline_text(&plan_text::plan_text(&report)))
            }
            Output::Json => self.write_json(&plan_record(&report)),
        }
        self.is_confirmed || Console::open().confirm(&question)
    }

    /// Prints an event, and updates the summary.
    fn report_event(&mut self, at: Timestamp, event: &Event) {
        let at = gotime::rfc3339(at);
        match self.output {
            Output::Json => self.write_json(&TimedEvent { at, event }),
            Output::Text => {
                // Of `2026-11-16T09:00:00Z`, the time; the plan has the date.
                let time = at.split_once('T').map_or(at.as_str(), |(_, time)| time);
                let lines = sentence::event_lines(event, &self.next);
                let mut text = String::new();
                for words in &lines {
                    _ = writeln!(text, "{time} {}", sanitize::sanitize_as_line(words));
                }
                self.write_lines(&text);
            }
        }
        if let Some(view) = &mut self.view {
            view.update_for_event(event);
        }
        self.redraw_summary();
    }

    /// Draws the summary anew. The run calls it every second or so, because the time in it changes.
    fn redraw_summary(&mut self) {
        if let Some(view) = &mut self.view {
            view.draw();
        }
    }
}

/// Returns the question before the start: `Drain 40 devices in context prod? 31 pods will be evicted in 5 waves`.
fn confirmation_question(cluster: &str, force_after: Option<Duration>, plan: &DrainPlan) -> String {
    let moving = plan.pods.iter().filter(|pod| matches!(pod.fate, PodDecision::Moves { .. })).count();
    let mut out = format!("Drain {} in {}? ", count_with_noun(plan.devices.len(), "device"), cluster);
    if moving == 0 {
        out.push_str("No pod will be evicted");
    } else {
        let waves = count_with_noun(plan.waves.len(), "wave");
        _ = write!(out, "{} will be evicted in {waves}", count_with_noun(moving, "pod"));
    }
    let forceable = plan.pods.iter().filter(|pod| pod.is_forceable).count();
    if let Some(after) = force_after.filter(|_| forceable > 0) {
        let after = sentence::kubectl_duration(after.as_secs());
        _ = write!(
            out,
            ", and {} will be deleted if still there after {after}",
            count_with_noun(forceable, "pod")
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};

    use super::{ContinueAndUndoCommands, DrainUserInterface as _, Reporter};
    use crate::cli::drain::online::event::{Event, HoldingClaim, PodRef};
    use crate::cli::version::Output;
    use tollgate_formats::gotime;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("not poisoned").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn shown(output: Output, events: &[Event]) -> String {
        let written = Written::default();
        let next = ContinueAndUndoCommands {
            go_on: "tollgate drain node/n-1 --context prod".to_owned(),
            go_back: "tollgate undrain node/n-1 --context prod".to_owned(),
        };
        let at = gotime::parse_rfc3339("2026-11-16T09:00:00Z").expect("a time");
        let out = Box::new(written.clone());
        let mut reporter =
            Reporter { output, next, cluster: String::new(), is_confirmed: false, out, view: None };
        for event in events {
            reporter.report_event(at, event);
        }
        let bytes = written.0.lock().expect("not poisoned").clone();
        String::from_utf8(bytes).expect("UTF-8")
    }

    fn pod(name: &str) -> PodRef {
        PodRef { namespace: "ml".to_owned(), name: name.to_owned() }
    }

    fn holding() -> Vec<HoldingClaim> {
        vec![HoldingClaim {
            namespace: "ml".to_owned(),
            claim: "train".to_owned(),
            devices: vec!["d/p/gpu-0".to_owned()],
            users: vec!["pod train-0".to_owned()],
        }]
    }

    /// The end of a drain that stopped, with so many rules left.
    fn stopped(rules: usize) -> Event {
        Event::Stopped {
            why: "rule x was changed by bob".to_owned(),
            evicted: 3,
            deleted: 2,
            left: 1,
            rules,
            go_on: "tollgate drain a".to_owned(),
            go_back: (rules > 0).then(|| "tollgate undrain a".to_owned()),
        }
    }

    /// One event of each kind.
    fn all_events() -> Vec<Event> {
        let text = || "text".to_owned();
        vec![
            Event::Preflight { check: text(), problem: None },
            Event::Preflight { check: text(), problem: Some(text()) },
            Event::LockWaits { holder: text(), seconds: 30 },
            Event::Locked { lease: text(), holder: text() },
            Event::RuleCreated { rule: text(), devices: 2 },
            Event::RuleFound { rule: text(), effect: text() },
            Event::RuleConfirmed { rule: text(), message: text() },
            Event::RuleClosed { rule: text() },
            Event::RuleWouldBeDeleted { rule: text(), effect: text() },
            Event::RuleDeleted { rule: text() },
            Event::PlanChanged { differences: vec![text()] },
            Event::PodJoined { pod: pod("a") },
            Event::WaveStarted { wave: 1, pods: vec![pod("a")] },
            Event::PodEvicted { wave: 1, pod: pod("a") },
            Event::PodWaits { wave: 1, pod: pod("a"), why: text() },
            Event::PodGone { wave: 1, pod: pod("a") },
            Event::DeletionWaits { pods: vec![pod("a")], seconds: 60 },
            Event::PodDeleted { pod: pod("a") },
            Event::PodReleased { wave: 1, pod: pod("a") },
            Event::ReplacementBound { wave: 1, pod: pod("b"), node: text() },
            Event::ReplacementReady { wave: 1, pod: pod("b"), node: text() },
            Event::WaveFinished { wave: 1, seconds: 60 },
            Event::Proof { look: 1, holding: holding() },
            stopped(1),
            stopped(0),
            Event::Checked { devices: 8, closed: true, holding: Vec::new() },
            Event::Finished { devices: 8, evicted: 7, deleted: 0, seconds: 60, holding: Vec::new() },
        ]
    }

    #[test]
    #[expect(clippy::disallowed_types, reason = "the validator takes a generic JSON tree")]
    fn the_schema_describes_every_event() {
        let schema: serde_json::Value =
            serde_json::from_str(include_str!("../../schema/drain.json")).expect("JSON");
        let validator = jsonschema::validator_for(&schema).expect("a schema");
        let text = shown(Output::Json, &all_events());
        assert_eq!(text.lines().count(), all_events().len());
        for line in text.lines() {
            let mut event: serde_json::Value = serde_json::from_str(line).expect("JSON");
            assert!(validator.is_valid(&event), "{line}");
            event["surprise"] = true.into();
            assert!(!validator.is_valid(&event), "{line}");
        }
    }

    #[test]
    fn a_change_is_a_line() {
        let events = [
            Event::WaveStarted { wave: 2, pods: vec![pod("a"), pod("b")] },
            Event::PodWaits { wave: 2, pod: pod("a"), why: "PDB ml/a\u{1b}[2J allows none".to_owned() },
            Event::PlanChanged { differences: vec!["one".to_owned(), "two".to_owned()] },
        ];
        assert_eq!(
            shown(Output::Text, &events),
            "09:00:00Z wave 2 starts: ml/a, ml/b\n\
             09:00:00Z wave 2: pod ml/a is not evicted yet: PDB ml/a\u{fffd}[2J allows none\n\
             09:00:00Z plan changed: one\n\
             09:00:00Z plan changed: two\n"
        );
        assert_eq!(
            shown(Output::Json, &events[..1]),
            "{\"at\":\"2026-11-16T09:00:00Z\",\"event\":\"wave-started\",\"wave\":2,\"pods\":[{\"namespace\":\"ml\",\"name\":\"a\"},{\"namespace\":\"ml\",\"name\":\"b\"}]}\n"
        );
    }

    #[test]
    fn the_end_says_what_is_left_and_how_to_go_on_and_back() {
        assert_eq!(
            shown(Output::Text, &[stopped(2)]),
            "09:00:00Z stopped: rule x was changed by bob\n\
             09:00:00Z done: 3 pods evicted, 2 pods deleted; left: 1 pod; 2 rules stay as they are\n\
             09:00:00Z to go on: tollgate drain a\n\
             09:00:00Z to go back: tollgate undrain a\n"
        );
        assert_eq!(
            shown(Output::Text, &[stopped(0)]),
            "09:00:00Z stopped: rule x was changed by bob\n\
             09:00:00Z done: 3 pods evicted, 2 pods deleted; left: 1 pod; no rule of this drain is left, so new pods can get the devices\n\
             09:00:00Z to go on: tollgate drain a\n"
        );
        let finished =
            |holding| Event::Finished { devices: 8, evicted: 7, deleted: 0, seconds: 754, holding };
        assert_eq!(
            shown(Output::Text, &[finished(Vec::new())]),
            "09:00:00Z no claim holds these 8 devices; 7 pods evicted in 12m34s\n\
             09:00:00Z the rules still keep new pods off the devices; to open them again: tollgate undrain node/n-1 --context prod\n"
        );
        let text = shown(Output::Text, &[finished(holding())]);
        assert!(text.contains("1 claim still holds devices; 7 pods evicted in 12m34s\n"), "{text}");
        assert!(text.contains("claim ml/train holds d/p/gpu-0 (pod train-0)\n"), "{text}");
        assert!(text.contains("then run: tollgate drain node/n-1 --context prod\n"), "{text}");
        let deleted =
            Event::Finished { devices: 8, evicted: 0, deleted: 4, seconds: 17, holding: Vec::new() };
        let text = shown(Output::Text, &[deleted]);
        assert!(text.contains("these 8 devices; 0 pods evicted, 4 pods deleted in 17s\n"), "{text}");
    }

    /// Rules of other drains and of other people may close the devices, too.
    #[test]
    fn a_check_speaks_only_of_the_rules_of_its_drain() {
        let checked = |closed| Event::Checked { devices: 8, closed, holding: Vec::new() };
        assert_eq!(
            shown(Output::Text, &[checked(false), checked(true)]),
            "09:00:00Z no claim holds these 8 devices\n\
             09:00:00Z the rules of this drain do not close these devices; new pods can get them unless other taints keep them off\n\
             09:00:00Z no claim holds these 8 devices\n\
             09:00:00Z the rules of this drain keep new pods off these devices\n"
        );
    }
}
