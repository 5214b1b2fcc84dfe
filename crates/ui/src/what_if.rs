//! The page "What if": what is asked, and how an answer is drawn.

use maud::{Markup, PreEscaped, Render, html};
use serde::Serialize;
use tollgate_picture::SafeText;

use crate::server::Answer;

/// A problem that the checks find in the rule of a question.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    pub line: usize,
    pub column: usize,
    /// True if the rule cannot be applied because of this problem.
    pub is_error: bool,
    pub message: String,
    /// The rule of Tollgate that reports the problem, and the URL of its documentation.
    pub rule: Option<(&'static str, String)>,
}

/// The answer to a question about a DeviceTaintRule, made from the reports of several commands.
#[derive(Clone, Default, Debug)]
pub struct WhatIfAnswer {
    /// When the state was read that the answer is about; empty if it is not known.
    pub taken: String,
    /// The time of the question, which the reports call `now`; empty if there are no reports.
    pub asked_at: String,
    /// The devices and the taint that were asked about; empty if a rule was written.
    pub asked: String,
    /// The rule that was asked about, as YAML.
    pub rule: String,
    /// True if the rule can evict pods.
    pub may_evict: bool,
    pub findings: Vec<Finding>,
    /// Reasons why there is no answer, or only a part of one.
    pub errors: Vec<String>,
    pub notes: Vec<String>,
    /// The report of `impact -o html`, as a part of a page.
    pub impact: String,
    /// The report of `forecast -o html`, as a part of a page.
    pub forecast: String,
    /// The report of `drain --dry-run -o html`, as a part of a page; empty if no drain does the same.
    pub plan: String,
    /// Commands to copy, each with what it does.
    pub commands: Vec<(&'static str, String)>,
    /// True if the answer is about a dump, so that the commands may act on another cluster.
    pub is_dump: bool,
}

/// The answer as JSON for the script of the page.
#[derive(Serialize)]
struct WhatIfAnswerJson<'a> {
    html: String,
    rule: &'a str,
    taken: &'a str,
    at: &'a str,
}

impl WhatIfAnswer {
    /// The response with the answer.
    pub fn to_json_answer(&self) -> Answer {
        let drawn = WhatIfAnswerJson {
            html: self.html().into_string(),
            rule: &self.rule,
            taken: &self.taken,
            at: &self.asked_at,
        };
        Answer::json(serde_json::to_string(&drawn).unwrap_or_default())
    }

    fn html(&self) -> Markup {
        html! {
            @if !self.asked.is_empty() { p.lead { "What if " (SafeText::from(self.asked.as_str())) "?" } }
            @if !self.asked_at.is_empty() { p.hint.asked { "“Now” is " (SafeText::from(self.asked_at.as_str())) ", the time of the question." } }
            @for error in &self.errors { p.error { strong { "Error: " } (SafeText::from(error.as_str())) } }
            (findings_section(&self.findings))
            (foldable_section("impact", "Who goes, and when", &self.impact))
            (foldable_section("forecast", "Where they go, and what is left", &self.forecast))
            (self.rule_section())
            (foldable_section("plan", "Or drain the devices: evictions in waves, as PodDisruptionBudgets and free devices allow", &self.plan))
            @if !self.notes.is_empty() {
                section { h2 { "Notes" } ul.notes { @for note in &self.notes { li { (SafeText::from(note.as_str())) } } } }
            }
            @if !self.commands.is_empty() {
                section {
                    h2 { "Commands" }
                    @if self.is_dump {
                        p.hint {
                            "This answer is about a dump. " code { "kubectl apply" } ", and " code { "tollgate drain" } " without "
                            code { "--dry-run" } ", act on a cluster: the one of " code { "--context" }
                            ", or of the current kubeconfig context without it."
                        }
                    }
                    dl.commands {
                        @for (index, (what, command)) in self.commands.iter().enumerate() {
                            dt { (what) }
                            dd {
                                code id={ "command-" (index) } { (SafeText::from(command.as_str())) }
                                " " button.copy type="button" data-copy={ "command-" (index) }
                                    aria-label={ "Copy the command: " (what) } { "Copy" }
                            }
                        }
                    }
                }
            }
        }
    }

    /// The rule, and what it belongs to. It comes before the plan of a drain, which has other rules of a similar name.
    fn rule_section(&self) -> Markup {
        // A rule with an error has no answer.
        let is_answered = !self.impact.is_empty();
        html! {
            @if !self.rule.is_empty() {
                section {
                    h2 { @if is_answered { "The rule of the answer above" } @else { "The rule" } }
                    @if is_answered && self.may_evict { p.hint { "If you create it, pods are evicted as shown above, without waves." } }
                    @if !self.plan.is_empty() {
                        p.hint { "It is not part of the drain below, which creates its own rules with effect NoSchedule." }
                    }
                    p { "To use it in commands, save it as " code { "rule.yaml" } ". "
                        button.copy type="button" data-copy="rule" { "Copy the rule" }
                        " " button type="button" id="edit" { "Edit the rule" } }
                    pre tabindex="0" role="region" aria-label="The rule as YAML" { code id="rule" { (MultilineText(&self.rule)) } }
                }
            }
        }
    }
}

/// A text of several lines whose line breaks are kept.
struct MultilineText<'a>(&'a str);

impl Render for MultilineText<'_> {
    fn render(&self) -> Markup {
        html! { @for line in self.0.split_inclusive('\n') { (SafeText::from(line.trim_end_matches('\n'))) "\n" } }
    }
}

/// A section of the answer that the reader can fold.
fn foldable_section(id: &str, title: &str, drawn: &str) -> Markup {
    html! {
        @if !drawn.is_empty() {
            details.part id=(id) open {
                summary { h2 { (title) } }
                (PreEscaped(drawn))
            }
        }
    }
}

fn findings_section(findings: &[Finding]) -> Markup {
    if findings.is_empty() {
        return html! {};
    }
    html! {
        section.findings {
            h2 { "Problems of the rule" }
            ul {
                @for finding in findings {
                    li {
                        button type="button" data-line=(finding.line) data-column=(finding.column) {
                            "line " (finding.line) ", column " (finding.column)
                        }
                        " " strong.(if finding.is_error { "warn" } else { "hint" }) { (if finding.is_error { "error" } else { "warning" }) } ": "
                        (SafeText::from(finding.message.as_str()))
                        @if let Some((rule, address)) = &finding.rule {
                            " (" a href=(address) rel="noreferrer noopener" target="_blank" { (rule) } ")"
                        }
                    }
                }
            }
        }
    }
}

/// The body of the page "What if": the form for the question, the answer, and the map to pick devices on.
pub(crate) fn body(map: &Markup) -> Markup {
    html! {
        section.ask {
            h2 { "What is tainted" }
            form id="ask" {
                fieldset {
                    legend { "Ask about" }
                    label { input type="radio" name="about" value="devices" checked; " devices that I pick on the map" }
                    label { input type="radio" name="about" value="rule"; " a rule that I write" }
                }
                div id="about-devices" {
                    p id="picked-hint" {
                        "Pick devices on the map: click them, or choose with the arrow keys and press Enter. Click the name "
                        "of a node to pick all of its devices."
                    }
                    ul.picked id="picked" aria-label="Picked devices" {}
                    p.row {
                        label for="target" { "Or type a target" }
                        input.filter id="target" autocomplete="off" spellcheck="false" placeholder="DRIVER/POOL/DEVICE or node/NAME";
                        button type="button" id="add" { "Add" }
                    }
                    p.row {
                        label for="effect" { "Effect" }
                        select id="effect" {
                            option value="NoExecute" { "NoExecute: evict pods" }
                            option value="NoSchedule" { "NoSchedule: keep new pods off" }
                            option value="None" { "None: only mark" }
                        }
                        button type="button" id="clear" { "Clear" }
                    }
                }
                div id="about-rule" hidden {
                    label for="yaml" { "DeviceTaintRules or ResourceSlices, as YAML" }
                    textarea id="yaml" rows="14" spellcheck="false" autocapitalize="off" autocomplete="off"
                        placeholder=(EXAMPLE_RULE) {}
                }
                p.row { button.primary type="submit" { "Show what happens" } " " span id="progress" role="status" {} }
            }
        }
        section id="pick" { h2 { "Pick devices" } (map) }
        div id="answer" {}
    }
}

const EXAMPLE_RULE: &str = "apiVersion: resource.k8s.io/v1beta2
kind: DeviceTaintRule
metadata:
  name: maintenance
spec:
  deviceSelector:
    driver: gpu.example.com
    pool: node-1
  taint:
    key: example.com/maintenance
    effect: NoExecute";
