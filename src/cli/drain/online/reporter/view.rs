//! The summary of a drain on a terminal: how far it is, and the pods of the wave by state. It is drawn in place, below
//! the lines of the events.
#![expect(clippy::disallowed_methods, reason = "how long a drain takes is this file's business")]

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::time::Instant;

use super::sentence::kubectl_duration;
use crate::cli::drain::online::event::{Event, PodRef};
use tollgate_drain::{DrainPlan, PodDecision};
use tollgate_formats::sanitize;

/// The summary of a drain on a terminal: the progress of the run, and the number of drawn lines.
#[derive(Debug)]
pub(super) struct TerminalSummary {
    started: Instant,
    /// The pods and waves that the plan moves.
    planned_pods: usize,
    planned_waves: usize,
    /// Pods of all waves that have released their devices or were gone before their eviction.
    moved: usize,
    wave: usize,
    pods: Vec<(PodRef, PodState)>,
    bound: usize,
    ready: usize,
    is_over: bool,
    drawn_lines: usize,
}

/// The progress of a pod of the current wave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PodState {
    Planned,
    Waits,
    Ends,
    Gone,
}

impl TerminalSummary {
    pub(super) fn new() -> TerminalSummary {
        TerminalSummary {
            started: Instant::now(),
            planned_pods: 0,
            planned_waves: 0,
            moved: 0,
            wave: 0,
            pods: Vec::new(),
            bound: 0,
            ready: 0,
            is_over: false,
            drawn_lines: 0,
        }
    }

    /// Sets the numbers of pods and waves that the plan moves.
    pub(super) fn set_planned_counts(&mut self, plan: &DrainPlan) {
        let moves = plan.pods.iter().filter(|pod| matches!(pod.fate, PodDecision::Moves { .. }));
        (self.planned_pods, self.planned_waves) = (moves.count(), plan.waves.len());
    }

    /// Updates the summary for an event.
    pub(super) fn update_for_event(&mut self, event: &Event) {
        match event {
            Event::WaveStarted { wave, pods } => {
                self.wave = *wave;
                self.pods = pods.iter().map(|pod| (pod.clone(), PodState::Planned)).collect();
                (self.bound, self.ready) = (0, 0);
            }
            Event::PodJoined { .. } => self.planned_pods += 1,
            Event::PodWaits { pod, .. } => self.set_pod_state(pod, PodState::Waits),
            Event::PodEvicted { pod, .. } | Event::PodDeleted { pod } => {
                self.set_pod_state(pod, PodState::Ends)
            }
            Event::PodReleased { pod, .. } | Event::PodGone { pod, .. } => {
                self.set_pod_state(pod, PodState::Gone);
                self.moved += 1;
            }
            Event::ReplacementBound { .. } => self.bound += 1,
            Event::ReplacementReady { .. } => self.ready += 1,
            Event::Stopped { .. } | Event::Checked { .. } | Event::Finished { .. } => self.is_over = true,
            _ => {}
        }
    }

    fn set_pod_state(&mut self, pod: &PodRef, state: PodState) {
        if let Some((_, known)) = self.pods.iter_mut().find(|(known, _)| known == pod) {
            *known = state;
        }
    }

    /// Draws the summary in place of the previous one. Only removes it before the first wave and after the last
    /// event.
    pub(super) fn draw(&mut self) {
        self.hide();
        if self.is_over || self.wave == 0 {
            return;
        }
        let width = terminal_size::terminal_size().map_or(80, |(width, _)| usize::from(width.0));
        let lines = self.summary_lines(self.started.elapsed().as_secs());
        let mut out = String::new();
        for text in &lines {
            // A line that the terminal breaks would be two lines to remove.
            let shown: String =
                sanitize::sanitize_as_line(text).chars().take(width.saturating_sub(1)).collect();
            _ = writeln!(out, "{shown}");
        }
        _ = io::stderr().write_all(out.as_bytes());
        _ = io::stderr().flush();
        self.drawn_lines = lines.len();
    }

    /// Removes the summary from the terminal.
    pub(super) fn hide(&mut self) {
        let lines = std::mem::take(&mut self.drawn_lines);
        if lines > 0 {
            // Up to its first line, and everything below it is erased.
            _ = write!(io::stderr(), "\x1b[{lines}A\r\x1b[J");
            _ = io::stderr().flush();
        }
    }

    fn summary_lines(&self, seconds: u64) -> Vec<String> {
        let (wave, moved) = (self.wave, self.moved);
        let (waves, pods) = (self.planned_waves.max(wave), self.planned_pods.max(moved));
        let mut lines = vec![
            "─".repeat(40),
            format!("wave {wave} of {waves}, {moved} of {pods} pods evicted, {}", kubectl_duration(seconds)),
        ];
        for (state, words) in [
            (PodState::Planned, "next"),
            (PodState::Waits, "waiting"),
            (PodState::Ends, "ending"),
            (PodState::Gone, "gone"),
        ] {
            let pods: Vec<String> = self
                .pods
                .iter()
                .filter(|(_, known)| *known == state)
                .map(|(pod, _)| pod.to_string())
                .collect();
            if !pods.is_empty() {
                lines.push(format!("  {words:8} {:3}  {}", pods.len(), pods.join(", ")));
            }
        }
        if self.bound + self.ready > 0 {
            lines.push(format!("  new pods      {} bound, {} Ready", self.bound, self.ready));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::TerminalSummary;
    use crate::cli::drain::online::event::{Event, PodRef};

    #[test]
    fn pods_are_shown_by_state() {
        let pod = |name: &str| PodRef { namespace: "ml".to_owned(), name: name.to_owned() };
        let mut view = TerminalSummary::new();
        (view.planned_pods, view.planned_waves) = (3, 2);
        let events = [
            Event::WaveStarted { wave: 1, pods: vec![pod("a")] },
            Event::PodEvicted { wave: 1, pod: pod("a") },
            Event::PodReleased { wave: 1, pod: pod("a") },
            Event::WaveStarted { wave: 2, pods: vec![pod("b"), pod("c")] },
            Event::PodWaits { wave: 2, pod: pod("b"), why: String::new() },
            Event::PodEvicted { wave: 2, pod: pod("c") },
            Event::ReplacementBound { wave: 2, pod: pod("d"), node: "n".to_owned() },
        ];
        for event in &events {
            view.update_for_event(event);
        }
        assert_eq!(
            view.summary_lines(75)[1..],
            [
                "wave 2 of 2, 1 of 3 pods evicted, 1m15s",
                "  waiting    1  ml/b",
                "  ending     1  ml/c",
                "  new pods      1 bound, 0 Ready"
            ]
        );
    }
}
