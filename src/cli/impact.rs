//! `tollgate impact RULE… --state DUMP…`: what a DeviceTaintRule will do, before it does it.
//!
//! Reads rules (and changed ResourceSlices) and a dump, asks `impact`, prints. An object that the API server would
//! refuse, or would take without some of its fields, is denied and not asked about. With a limit, a dump that may be
//! incomplete is unreadable input: a limit that was not checked must not pass.

mod bars;
mod json;
mod limits;
mod patch;
mod relatives;
mod replacement;
mod text;

use std::io::Write as _;
use std::path::PathBuf;

use super::console::Console;
use super::outcome::{Failure, Tally};
use super::shared::Shared;
use super::version::Output;
use super::{clock, state};
use crate::doc::Value;
use crate::engine::{Attributes, Engine, Labels, parse_rules};
use crate::field::Path;
use crate::files::{self, Input, MAX_FILE};
use crate::gotime::{self, Timestamp};
use crate::impact::{
    self, Impact, ImpactQuery, ProposedChange, Snapshot, SnapshotKind, UnreadableObject, ViolatedBudget,
};
use crate::profile::Profile;
use crate::rules::Level;
use crate::sanitize;
use crate::source::{Lines, documents, list};
use limits::{Extent, Limits};

/// Say what a DeviceTaintRule will do: devices, pods, when they are evicted and why
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Arguments {
    /// DeviceTaintRules, or ResourceSlices as a driver is about to publish them: files, folders, or `-` for stdin
    #[arg(value_name = "RULE", required = true)]
    paths: Vec<PathBuf>,

    /// State of the cluster: a file, a folder, or `-` for stdin; may be given more than once
    #[arg(long, value_name = "DUMP", required = true, env = "TOLLGATE_STATE")]
    state: Vec<PathBuf>,

    /// How to report on stdout
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: Output,

    /// The moment of creation, RFC 3339; a rule without timeAdded gets it
    #[arg(long, value_name = "TIME", value_parser = clock::parse)]
    at: Option<String>,

    /// What if the rules had this effect
    #[arg(long, value_name = "EFFECT", value_parser = ["None", "NoSchedule", "NoExecute"])]
    effect: Option<String>,

    /// Exit with 1 if a rule does more than this: pods=10,namespaces=2,devices=64
    #[arg(long, value_name = "LIMITS", value_parser = limits::parse)]
    fail_over: Option<Limits>,

    /// Take the dump as complete: the cluster has no objects of a kind that the dump does not contain
    #[arg(long)]
    assume_complete: bool,

    /// Seconds that replacing a process group of FoundationDB is assumed to take
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    replacement_takes: i64,

    /// Pods to list, at most; 0 lists them all
    #[arg(long, value_name = "NUMBER", default_value_t = 100)]
    limit: usize,
}

const AFTER_HELP: &str = "\
The state is what this prints:
  kubectl get resourceslices,resourceclaims,pods,devicetaintrules,pdb -A -o yaml

Exit codes:
  0  told
  1  a rule does more than --fail-over allows, or the API server would refuse it
  2  wrong usage
  3  some input could not be read or parsed, or the dump is incomplete and --fail-over is given
  4  internal error";

/// One answer, and what it is about.
struct Answer<'s> {
    query: ImpactQuery<'s>,
    impact: Impact<'s>,
    budgets: Vec<ViolatedBudget<'s>>,
    differences: Vec<String>,
}

impl Arguments {
    pub(super) fn run(&self, shared: &Shared, console: &mut Console) -> Result<Tally, Failure> {
        let is_stdin = |path: &PathBuf| path.as_os_str() == "-";
        if self.paths.iter().any(is_stdin) && self.state.iter().any(is_stdin) {
            return Err(Failure::Usage("RULE and --state cannot both be read from stdin".to_owned()));
        }
        let relatives = relatives::tell(self, shared, console)?;
        if relatives.relatives > 0 && relatives.others == 0 {
            return Ok(relatives.tally);
        }
        let (snapshot, inventory) = state::read_whole(&self.state)?;
        let holes = inventory.holes(self.assume_complete);
        let mut tally = relatives.tally;
        self.doubt(&holes, &mut tally, console);
        let found = files::collect(&self.paths).whole();
        if let Some(error) = found.errors.first() {
            return Err(Failure::Input(error.to_string()));
        }
        let mut desk = Desk {
            arguments: self,
            profiles: shared.profiles(),
            snapshot,
            holes,
            now: clock::moment(self.at.as_ref()),
            console,
            tally,
            told: relatives.relatives,
            printed: relatives.relatives > 0,
        };
        for input in &found.inputs {
            desk.read(input)?;
        }
        if desk.told == 0 {
            let names: Vec<String> = found.inputs.iter().map(Input::name).collect();
            let message = format!("{}: no DeviceTaintRule and no ResourceSlice in there", names.join(", "));
            return Err(Failure::Input(message));
        }
        Ok(desk.tally)
    }

    /// Says what is missing from the dump; a limit cannot be checked then.
    fn doubt(&self, holes: &[String], tally: &mut Tally, console: &mut Console) {
        if holes.is_empty() || self.fail_over.is_none() {
            return state::note(holes, console);
        }
        tally.unreadable += 1;
        let holes = holes.join("; ");
        console.complain(&format!(
            "cannot check --fail-over: {holes}; it may be incomplete (--assume-complete: the cluster has none)"
        ));
    }
}

/// One run.
struct Desk<'r> {
    arguments: &'r Arguments,
    profiles: Vec<&'static Profile>,
    snapshot: Snapshot,
    /// What is missing from the state.
    holes: Vec<String>,
    now: String,
    console: &'r mut Console,
    tally: Tally,
    /// Objects that were asked about.
    told: usize,
    /// Something was printed already.
    printed: bool,
}

impl Desk<'_> {
    fn read(&mut self, input: &Input) -> Result<(), Failure> {
        let file = input.name();
        let text = files::read(input, MAX_FILE).map_err(|error| Failure::Input(error.to_string()))?;
        let lines = Lines::of(&text);
        for document in documents(&text) {
            let document =
                document.map_err(|fault| Failure::Input(fault.input_error(&file, &lines).to_string()))?;
            if let Some(error) = document.not_an_object(&file, &lines) {
                return Err(Failure::Input(error.to_string()));
            }
            for item in list::items(document.doc.root()) {
                let object = item.value();
                let (version, kind) = (object.get("apiVersion").str(), object.get("kind").str());
                let known = match SnapshotKind::of(version, kind) {
                    None if ["DeviceTaintRule", "ResourceSlice"].contains(&kind) => {
                        let at = Path::ROOT.field("apiVersion").owned();
                        let place = document.place(&lines, &item.within(at), false);
                        let message = format!("apiVersion {version:?} of {kind} is not supported");
                        return Err(Failure::Input(format!(
                            "{file}:{}:{}: {message}",
                            place.line, place.column
                        )));
                    }
                    known => known,
                };
                let Some(kind @ (SnapshotKind::Rule | SnapshotKind::Slice)) = known else { continue };
                self.told += 1;
                for profile in self.profiles.clone() {
                    let result = self.tell(object, kind, profile, &file);
                    let result = result.map_err(|error| match error {
                        ImpactError::Failure(failure) => failure,
                        ImpactError::Object(unreadable) => {
                            let place = document.place(&lines, &item.within(unreadable.at.clone()), false);
                            let file = sanitize::line(&file);
                            Failure::Input(format!("{file}:{}:{}: {unreadable}", place.line, place.column))
                        }
                    });
                    result?;
                }
            }
        }
        Ok(())
    }

    fn tell(
        &mut self,
        object: Value<'_>,
        kind: SnapshotKind,
        profile: &'static Profile,
        file: &str,
    ) -> Result<(), ImpactError> {
        let denials = denials("upstream,decoding,strict", object, profile, &self.now);
        if !denials.is_empty() {
            self.tally.denied += denials.len();
            let by = format!("{}: {}", sanitize::line(file), profile.name);
            complain(self.console, &by, object, &denials);
            return Ok(());
        }
        let at = gotime::parse(&self.now).map_err(Failure::Usage)?;
        let changed;
        let (change, snapshot) = if kind == SnapshotKind::Slice {
            let mut state = self.snapshot.clone();
            let change = ProposedChange::published(object, &mut state, at)?;
            changed = state;
            (change, &changed)
        } else {
            let effect = self.arguments.effect.as_deref();
            (ProposedChange::applied(object, effect, &self.snapshot, profile, at)?, &self.snapshot)
        };
        let answer = answer(ImpactQuery { snapshot, change: &change, profile, at });
        match self.arguments.output {
            Output::Json => {
                writeln!(self.console, "{}", super::to_json(&json::Line::of(&answer, &self.holes))?)
            }
            Output::Text => {
                let apart = if std::mem::replace(&mut self.printed, true) { "\n" } else { "" };
                self.console.show(&format!("{apart}{}", text::of(&answer, self.arguments.limit)))
            }
        }
        .map_err(Failure::from)?;
        for excess in self.arguments.fail_over.iter().flat_map(|limits| limits.excesses(Extent::of(&answer)))
        {
            self.tally.denied += 1;
            self.console.complain(&format!("{}: {excess}", sanitize::line(change.name())));
        }
        Ok(())
    }
}

fn answer(query: ImpactQuery<'_>) -> Answer<'_> {
    let impact = impact::assess(query);
    let budgets = impact::budgets(query.snapshot, &impact);
    let differences = impact::differences(query, &impact);
    Answer { query, impact, budgets, differences }
}

/// Why the API server would not take the object, if it would not.
pub(super) fn refusal(object: Value<'_>, profile: &'static Profile, now: &str) -> Option<String> {
    denials("upstream,decoding", object, profile, now).into_iter().next()
}

/// Refusals shown of one object; a slice may have thousands.
const SHOWN: usize = 10;

/// Says why an object is refused.
fn complain(console: &mut Console, by: &str, object: Value<'_>, denials: &[String]) {
    let name = sanitize::line(object.get("metadata").get("name").str());
    for denial in denials.iter().take(SHOWN) {
        console.complain(&format!("{by} refuses {name}: {denial}"));
    }
    if denials.len() > SHOWN {
        let more = denials.len() - SHOWN;
        console
            .complain(&format!("{by} refuses {name}: and {more} more; `tollgate validate` shows them all"));
    }
}

/// Why the object is wrong by these rules, if it is.
fn denials(rules: &str, object: Value<'_>, profile: &'static Profile, now: &str) -> Vec<String> {
    let Ok(rules) = parse_rules(rules) else { return Vec::new() };
    let engine = Engine::new(vec![profile], rules);
    let judgement = engine.validate(&Attributes::create(object, "", now), Labels::Unknown);
    let denials = judgement.findings().iter().filter(|judged| judged.level == Level::Deny);
    denials.map(|judged| judged.finding.to_string()).collect()
}

enum ImpactError {
    Failure(Failure),
    Object(UnreadableObject),
}

impl From<Failure> for ImpactError {
    fn from(failure: Failure) -> ImpactError {
        ImpactError::Failure(failure)
    }
}

impl From<UnreadableObject> for ImpactError {
    fn from(unreadable: UnreadableObject) -> ImpactError {
        ImpactError::Object(unreadable)
    }
}

/// When it happens, in words for people.
fn when(outcome: impact::PodOutcome) -> String {
    match outcome {
        impact::PodOutcome::EvictedNow => "now".to_owned(),
        impact::PodOutcome::EvictedAt(time) => moment(time),
        impact::PodOutcome::Tolerated | impact::PodOutcome::Unaffected => "-".to_owned(),
    }
}

fn moment(time: Timestamp) -> String {
    gotime::rfc3339(time)
}
