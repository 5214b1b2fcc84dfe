//! Answers to "what if": the impact, the forecast and the drain plan for devices or for a rule.
//!
//! The answers are the reports of the commands, computed by the commands on the state that the pages show.
//!
//! Invariant: for a rule with an error, only the findings are returned. A question that a newer one replaces gets no
//! answer.

use serde::Deserialize;

use super::KnownState;
use crate::cli::check::{TextChecker, TextSource};
use crate::cli::console::Console;
use crate::cli::outcome::Failure;
use crate::cli::picture::StateSource;
use crate::cli::{
    clock, console::quote_for_shell, drain, forecast, impact, parse_nested_command_args, taint,
};
use crate::config::{Levels, LevelsAndOverrides};
use crate::report::{self, DocumentResult};
use tollgate_document::source::{documents, list};
use tollgate_drain::DEFAULT_KEY;
use tollgate_engine::engine::Engine;
use tollgate_engine::impact::target::{DeviceNameSelector, DeviceTarget};
use tollgate_engine::rules::{FindingLevel, RuleSet};
use tollgate_ui::{Finding, WhatIfAnswer};

/// File name of the rule in messages and commands.
const RULE_FILE: &str = "rule.yaml";
/// Maximum number of devices that can be picked at once; each becomes a rule.
const MAX_PICKED_DEVICES: usize = 500;
/// Maximum number of targets that an answer names.
const MAX_NAMED_TARGETS: usize = 20;
/// Maximum number of findings that a page shows.
const MAX_SHOWN_FINDINGS: usize = 100;

/// Parts of commands that use the same state as the pages.
#[derive(Clone, Debug)]
pub(super) struct CommandParts {
    /// `kubectl`, with the flags that select the cluster.
    pub(super) kubectl: String,
    /// The flags that select the state, for a shell.
    pub(super) flags: String,
    /// The same flags as arguments, for commands that run in this process.
    pub(super) words: Vec<String>,
}

/// A question of a page: what happens if these devices are tainted, or this rule is created.
#[derive(Default, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct WhatIfQuestion {
    /// Identifies the window that asks; empty if the question does not say.
    pub(super) page: String,
    /// YAML or JSON of DeviceTaintRules and ResourceSlices.
    rule: String,
    /// Targets as on the command line, which take the place of a rule.
    pub(super) targets: Vec<String>,
    /// Devices by the ids of their cells, which become targets.
    pub(super) devices: Vec<String>,
    /// The effect of the rules for `targets`.
    effect: String,
}

impl WhatIfQuestion {
    /// Parses a question from the JSON of a page.
    pub(super) fn parse(json: &[u8]) -> Result<WhatIfQuestion, Failure> {
        serde_json::from_slice(json)
            .map_err(|error| Failure::Usage(format!("cannot read the question: {error}")))
    }

    /// Answers the question for a state.
    pub(super) fn answer(&self, known: &KnownState, commands: &CommandParts) -> WhatIfAnswer {
        let mut answer =
            WhatIfAnswer { taken: known.taken.clone(), is_dump: known.is_dump, ..WhatIfAnswer::default() };
        if let Err(failure) = self.fill_answer(&mut answer, known, commands) {
            answer.errors.push(failure.message());
        }
        answer
    }

    fn fill_answer(
        &self,
        answer: &mut WhatIfAnswer,
        known: &KnownState,
        commands: &CommandParts,
    ) -> Result<(), Failure> {
        answer.rule = self.given_or_generated_rule_text(known)?;
        answer.asked = self.describe_targets();
        answer.may_evict = may_evict(&answer.rule);
        answer.findings = validate_rule(&answer.rule, known);
        if answer.findings.iter().any(|finding| finding.is_error) {
            return Ok(());
        }
        let mut targets = if self.targets.is_empty() {
            drain_targets_of_rules_selecting_by_name(&answer.rule)
        } else {
            self.targets.clone()
        };
        let selects_everything = |target: &String| matches!(DeviceTarget::parse(target), Ok(DeviceTarget::Devices(names)) if names.selects_everything());
        if targets.iter().any(selects_everything) {
            answer.notes.push("no plan for a drain: a drain needs the name of a driver".to_owned());
            targets.clear();
        }
        let rule = vec![(RULE_FILE.to_owned(), answer.rule.clone())];
        for what in &known.incomplete_for_impact {
            answer.notes.push(format!("more pods and PodDisruptionBudgets may be affected: {what}"));
        }
        // One time for all reports, so that "now" means the same in all of them.
        answer.asked_at = clock::now_rfc3339();
        let now = answer.asked_at.clone();
        let words = |own: &[&str]| -> Vec<String> {
            let mut words = commands.words.clone();
            words
                .extend(["-o", "html", "--now", &now, "--"].iter().chain(own).map(|word| (*word).to_owned()));
            words
        };
        let mut run = |work: &mut dyn FnMut(&mut Console) -> Result<(), Failure>| -> Result<String, Failure> {
            let mut console = Console::captured();
            let done = work(&mut console);
            let (text, messages) = console.into_captured();
            // The commands say some things alike.
            for (said, list) in [(messages.errors, &mut answer.errors), (messages.notes, &mut answer.notes)] {
                for message in said {
                    if !list.contains(&message) {
                        list.push(message);
                    }
                }
            }
            done.map(|()| text)
        };
        let (snapshot, state) = (known.snapshot()?, known.objects.state());
        let command: impact::Arguments = parse_nested_command_args(&words(&[RULE_FILE]))?;
        let impact = run(&mut |console| {
            let lacking = (known.incomplete_for_impact.clone(), known.missing.clone());
            command.report_texts(&rule, (&snapshot, &state), known.profile, lacking, console).map(drop)
        })?;
        let command: forecast::Arguments = parse_nested_command_args(&words(&[RULE_FILE]))?;
        let forecast = run(&mut |console| {
            let missing = &known.missing;
            command.forecast_texts(&rule, &state, known.profile, missing, console).map(drop)
        })?;
        let plan = if targets.is_empty() {
            String::new()
        } else {
            let targets: Vec<&str> = targets.iter().map(String::as_str).collect();
            let command: drain::Drain = parse_nested_command_args(&words(&targets))?;
            run(&mut |console| {
                let tally = crate::cli::outcome::ExitCounts::default();
                command
                    .print_plan(
                        (&state, &StateSource::for_page_part()),
                        known.profile,
                        &known.missing,
                        tally,
                        console,
                    )
                    .map(drop)
            })?
        };
        (answer.impact, answer.forecast, answer.plan) = (impact, forecast, plan);
        answer.commands = commands.commands_for_rule(&targets, answer.may_evict);
        Ok(())
    }

    /// Returns the picked targets and their taint in words; empty if the question contains a rule instead.
    fn describe_targets(&self) -> String {
        if self.targets.is_empty() {
            return String::new();
        }
        let named: Vec<&str> = self.targets.iter().take(MAX_NAMED_TARGETS).map(String::as_str).collect();
        let more = match self.targets.len().saturating_sub(MAX_NAMED_TARGETS) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let effect = if self.effect.is_empty() { "NoExecute" } else { &self.effect };
        let is = if self.targets.len() == 1 { "is" } else { "are" };
        format!("{}{more} {is} tainted with {DEFAULT_KEY} and effect {effect}", named.join(", "))
    }

    /// Returns the rule as it was written, or rules made of the targets.
    fn given_or_generated_rule_text(&self, known: &KnownState) -> Result<String, Failure> {
        if self.targets.is_empty() {
            if self.rule.trim().is_empty() {
                return Err(Failure::Usage("the question has neither devices nor a rule".to_owned()));
            }
            return Ok(self.rule.clone());
        }
        if self.targets.len() > MAX_PICKED_DEVICES {
            return Err(Failure::Usage(format!(
                "{} devices are selected; select at most {MAX_PICKED_DEVICES}, or whole nodes, pools or drivers",
                self.targets.len()
            )));
        }
        let effect = match self.effect.as_str() {
            "" => "NoExecute",
            effect @ ("None" | "NoSchedule" | "NoExecute") => effect,
            other => return Err(Failure::Usage(format!("unknown effect `{other}`"))),
        };
        let snapshot = known.snapshot()?;
        let mut rules: Vec<String> = Vec::new();
        for target in &self.targets {
            let target = DeviceTarget::parse(target).map_err(Failure::Usage)?;
            for names in target.resolve(&snapshot).map_err(Failure::Usage)?.devices {
                let rule =
                    taint::rule_manifest_in_common_version(&names, DEFAULT_KEY, effect, &[known.profile])?;
                if !rules.contains(&rule) {
                    rules.push(rule);
                }
            }
        }
        Ok(rules.join("---\n"))
    }
}

/// Returns what `tollgate validate` reports about the rule.
fn validate_rule(text: &str, known: &KnownState) -> Vec<Finding> {
    let levels = Levels::default();
    let now = clock::now_rfc3339();
    let engine = Engine::new(vec![known.profile], RuleSet::compile(|_| true));
    let checker = TextChecker {
        engine: &engine,
        namespaces: None,
        claims: None,
        profiles: &[known.profile.name],
        acceptance: LevelsAndOverrides { file_levels: &levels, flag_levels: &levels, overrides: &[] },
        now: &now,
    };
    let mut found = Vec::new();
    checker.check_text(RULE_FILE, text, TextSource::Named, &mut |result| add_findings(result, &mut found));
    found.truncate(MAX_SHOWN_FINDINGS);
    found
}

fn add_findings(result: &DocumentResult<'_>, found: &mut Vec<Finding>) {
    if let Some(error) = result.error {
        found.push(Finding {
            line: error.line,
            column: error.column,
            is_error: true,
            message: report::replace_control_chars(&error.message),
            rule: None,
        });
    }
    for located in result.findings {
        let diagnostic = &located.diagnostic;
        if diagnostic.level == FindingLevel::Audit {
            continue;
        }
        found.push(Finding {
            line: located.location.line,
            column: located.location.column,
            is_error: diagnostic.level == FindingLevel::Deny,
            message: report::replace_control_chars(&report::message_with_help(diagnostic, "; ")),
            rule: Some((diagnostic.finding.rule.id, report::docs_url(diagnostic.finding.rule.id))),
        });
    }
}

/// Returns drain targets for the devices that rules select by name; empty if a rule selects devices in another
/// way.
fn drain_targets_of_rules_selecting_by_name(manifests: &str) -> Vec<String> {
    let mut targets = Vec::new();
    for document in documents(manifests).flatten() {
        for item in list::objects(document.doc.root()) {
            let selector = item.typed_value().get("spec").get("deviceSelector");
            let name =
                |field: &str| Some(selector.get(field).str().to_owned()).filter(|name| !name.is_empty());
            let names =
                DeviceNameSelector { driver: name("driver"), pool: name("pool"), device: name("device") };
            let is_by_name =
                selector.members().all(|(field, _)| ["driver", "pool", "device"].contains(&field.str()));
            if names.driver.is_none() || !is_by_name {
                return Vec::new();
            }
            targets.push(names.to_string());
        }
    }
    targets
}

/// Returns whether the objects can evict pods: all but rules with another effect than NoExecute.
fn may_evict(text: &str) -> bool {
    documents(text).flatten().any(|document| {
        list::objects(document.doc.root()).any(|item| {
            let object = item.typed_value();
            object.get("kind").str() != "DeviceTaintRule"
                || object.get("spec").get("taint").get("effect").str() == "NoExecute"
        })
    })
}

impl CommandParts {
    /// Returns the commands that a page offers to copy, each with its purpose. The drain comes before the rule,
    /// because it is the safer way, and its dry run comes before the drain.
    fn commands_for_rule(&self, targets: &[String], may_evict: bool) -> Vec<(&'static str, String)> {
        let (kubectl, flags) = (&self.kubectl, &self.flags);
        let mut commands = Vec::new();
        if !targets.is_empty() {
            let targets: Vec<String> = targets.iter().map(|target| quote_for_shell(target)).collect();
            let targets = targets.join(" ");
            let cluster = kubectl.strip_prefix("kubectl").unwrap_or_default();
            let drain = if may_evict {
                "Drain instead, the safer way: pods move in waves, and PodDisruptionBudgets are respected"
            } else {
                "Drain the devices: pods move in waves, and PodDisruptionBudgets are respected"
            };
            commands.extend([
                ("See the plan of a drain again", format!("tollgate drain {targets} --dry-run{flags}")),
                (drain, format!("tollgate drain {targets}{cluster}")),
            ]);
        }
        let create = if may_evict {
            "Create the rule: pods that do not tolerate its NoExecute taints are evicted at once, and \
             PodDisruptionBudgets are not respected"
        } else {
            "Create the rule"
        };
        commands.extend([
            ("Check the rule", format!("tollgate validate {RULE_FILE}")),
            ("See the impact again", format!("tollgate impact {RULE_FILE}{flags}")),
            ("See where pods go again", format!("tollgate forecast {RULE_FILE}{flags}")),
            (create, format!("{kubectl} apply -f {RULE_FILE}")),
        ]);
        commands
    }
}
