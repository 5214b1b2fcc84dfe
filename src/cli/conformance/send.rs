//! Sends the cases, a few at a time and no faster than asked for, and counts the answers.
#![expect(clippy::disallowed_methods, reason = "a rate needs a clock")]

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::report::DifferenceFile;
use crate::cli::live::ConnectedServer;
use crate::cli::outcome::Failure;
use crate::cli::progress::ProgressBar;
use crate::cluster::{CreateResponse, DryRunCreate};
use crate::conformance::{Agreement, Answer, Case, CaseChecker, Comparison, TollgateVerdict};
use tollgate_api::profile::ApiKind;

/// Maximum number of requests in flight. Several, so that a distant API server does not make the run long.
const MAX_IN_FLIGHT: usize = 8;
/// Number of consecutive failures after which the run ends.
const MAX_CONSECUTIVE_FAILURES: usize = 20;
/// Interval for checking whether Ctrl-C was pressed.
const INTERRUPT_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// How the run over all cases ended: complete, interrupted or given up.
#[derive(Default, Debug)]
pub(super) enum Ending {
    #[default]
    Complete,
    Interrupted,
    /// The reason for giving up.
    GivenUp(String),
}

/// The agreement, the ending and examples of a run.
#[derive(Default, Debug)]
pub(super) struct RunResult {
    pub(super) agreement: Agreement,
    pub(super) ending: Ending,
    /// One example message for each class of responses without a verdict.
    pub(super) examples: BTreeMap<&'static str, String>,
}

/// Sends cases to an API server as dry-run creates, and compares the responses with the verdicts of `judge`.
pub(super) struct CaseSender<'s> {
    asked: &'s ConnectedServer,
    judge: &'s CaseChecker,
    namespace: &'s str,
    differences: Option<DifferenceFile>,
    result: RunResult,
    /// Kinds that the user may not create: nothing more of them is sent.
    not_allowed: BTreeMap<ApiKind, String>,
    failures_in_a_row: usize,
    progress: ProgressBar,
}

impl<'s> CaseSender<'s> {
    /// Prepares a run. Cases for which Tollgate and the API server differ are written to `differences`.
    pub(super) fn new(
        asked: &'s ConnectedServer,
        judge: &'s CaseChecker,
        namespace: &'s str,
        differences: Option<DifferenceFile>,
    ) -> CaseSender<'s> {
        CaseSender {
            asked,
            judge,
            namespace,
            differences,
            result: RunResult::default(),
            not_allowed: BTreeMap::new(),
            failures_in_a_row: 0,
            progress: ProgressBar::with_total(0),
        }
    }

    /// Sends all cases, at most `rate` per second, and counts the answers.
    pub(super) fn send_all(mut self, cases: &[Case], rate: u32) -> Result<RunResult, Failure> {
        self.progress = ProgressBar::with_total(cases.len());
        let outcome = self.send_until_end(cases, rate);
        self.progress.erase_bar();
        self.result.ending = outcome?;
        self.differences.map_or(Ok(()), DifferenceFile::finish)?;
        Ok(self.result)
    }

    /// True if the profile knows the version of a case and, as far as is known, the API server serves it.
    fn is_served(&self, case: &Case) -> bool {
        let profile = self.asked.profile;
        let is_off = profile.discovered.is_some() && !profile.is_served(case.kind, case.version);
        profile.versions(case.kind).contains(&case.version) && !is_off
    }

    fn send_until_end(&mut self, cases: &[Case], rate: u32) -> Result<Ending, Failure> {
        let interrupted = self.asked.cluster.install_interrupt_flag();
        let pause = Duration::from_secs(1) / rate;
        let (done, responses) = mpsc::channel();
        let mut waiting = 0;
        let mut next_at = Instant::now();
        let mut rest = cases.iter().enumerate().peekable();
        loop {
            while waiting < MAX_IN_FLIGHT
                && Instant::now() >= next_at
                && let Some((number, case)) = rest.next()
            {
                if let Some(answer) = self.answer_without_sending(case) {
                    self.compare_and_count(case, &answer)?;
                    continue;
                }
                let dry_run = DryRunCreate {
                    kind: case.kind,
                    version: case.version,
                    namespace: self.namespace.to_owned(),
                    object: case.object.clone(),
                };
                self.asked.cluster.start_dry_run(number, dry_run, done.clone());
                waiting += 1;
                // A server that was slow is not made to pay for it by a burst.
                next_at = (next_at + pause).max(Instant::now());
            }
            if waiting == 0 && rest.peek().is_none() {
                return Ok(Ending::Complete);
            }
            let until_next = next_at.saturating_duration_since(Instant::now());
            let wait = if waiting < MAX_IN_FLIGHT && rest.peek().is_some() {
                until_next
            } else {
                INTERRUPT_CHECK_INTERVAL
            };
            if let Ok((number, response)) = responses.recv_timeout(wait.min(INTERRUPT_CHECK_INTERVAL))
                && let Some(case) = cases.get(number)
            {
                waiting -= 1;
                let answer = to_answer(response);
                self.compare_and_count(case, &answer)?;
                if let Some(why) = self.reason_to_stop(case, &answer) {
                    return Ok(Ending::GivenUp(why));
                }
            }
            if interrupted.load(Ordering::Acquire) {
                return Ok(Ending::Interrupted);
            }
            let differing = self.result.agreement.total.differing;
            self.progress.draw_bar_if_due(format_args!("responses, {differing} differ"));
        }
    }

    /// Returns the answer to a case if it is known without sending the case; `None` if the case must be sent.
    fn answer_without_sending(&self, case: &Case) -> Option<Answer> {
        if !self.is_served(case) {
            return Some(Answer::NotServed);
        }
        self.not_allowed.get(&case.kind).map(|message| Answer::NotAllowed(message.clone()))
    }

    fn compare_and_count(&mut self, case: &Case, answer: &Answer) -> Result<(), Failure> {
        self.progress.count_item();
        let own = if answer.is_verdict() { self.judge.check_case(case) } else { TollgateVerdict::default() };
        let comparison = Comparison::from_verdicts(answer, &own);
        self.result.agreement.add_case(case.kind, case.version, answer, comparison);
        if let (Comparison::Compared(same), Some(file)) = (comparison, self.differences.as_mut())
            && !same.all_agree()
        {
            file.write_difference(case, answer, &own, same)?;
        }
        let example = match answer {
            Answer::NotAllowed(message) => {
                self.not_allowed.entry(case.kind).or_insert_with(|| message.clone());
                Some(("not allowed", message))
            }
            Answer::OtherAdmission(message) => Some(("rejected by another webhook or policy", message)),
            Answer::Failed(message) => Some(("failed", message)),
            _ => None,
        };
        if let Some((class, message)) = example {
            self.result.examples.entry(class).or_insert_with(|| message.clone());
        }
        Ok(())
    }

    /// The reason to end the run after this response; `None` to continue.
    fn reason_to_stop(&mut self, case: &Case, answer: &Answer) -> Option<String> {
        if *answer == Answer::Persisted {
            let (kind, id) = (case.kind.name(), &case.id);
            return Some(format!(
                "the API server stored the {kind} of case {id} despite dryRun=All; delete it. No further requests were \
                 sent"
            ));
        }
        let Answer::Failed(message) = answer else {
            self.failures_in_a_row = 0;
            return None;
        };
        self.failures_in_a_row += 1;
        (self.failures_in_a_row >= MAX_CONSECUTIVE_FAILURES).then(|| {
            format!(
                "stopped after {MAX_CONSECUTIVE_FAILURES} consecutive failures; the last failure: {message}"
            )
        })
    }
}

/// Converts a response, or the error of a request, to an answer.
fn to_answer(response: CreateResponse) -> Answer {
    match response {
        Ok((code, body)) => Answer::from_create_response(code, &body),
        Err(error) => Answer::Failed(error.to_string()),
    }
}
