//! Evaluates the class and the CEL expressions of rules (1.33, 1.34, drafts), as the slice tracker of these releases
//! does.
//!
//! - A rule whose class does not exist selects nothing.
//! - An expression that fails for a device does not select the device.
//! - An expression that does not compile makes the tracker give up on the whole slice, if it gets as far as that
//!   expression for one of its devices: the rule then taints none of them.
//!
//! Invariant: a rule is evaluated only if the snapshot stores all that it needs; otherwise it counts as selecting all
//! devices that its names select, and the numbers are upper bounds.
// upstream v1.34 Tracker.applyPatches

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;

use super::interner::InternedStr;
use super::record::{ClassCriteria, Rule, RuleSelector, Slice};
use super::slots::Slot;
use super::snapshot::{Pool, Snapshot};
use tollgate_api::profile::Profile;
use tollgate_api::view::{DeviceBody, View as _};
use tollgate_cel::evaluate::{CompileError, Device, EvaluationError, Program, ReleaseBehaviour};
use tollgate_document::doc;

/// The class and the expressions of a rule or patch, compiled.
#[derive(Debug)]
pub(super) enum CompiledCriteria {
    /// The snapshot contains no DeviceClasses, so the class is unknown.
    Unknown,
    /// The class does not exist.
    MissingClass,
    /// All of these programs must match: first those of the class, then those of the rule.
    Programs(Vec<Result<Program, CompileError>>),
}

/// The result of evaluating compiled criteria for one device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum DeviceSelectionResult {
    Selected,
    NotSelected,
    /// An expression fails for this device, which is then not selected. With the text of the error.
    Failed(String),
    /// An expression does not compile, so the tracker skips the slice. With the error message.
    Stuck(String),
    /// An expression uses an unsupported feature, so it is unknown whether the device is selected.
    Unknown,
}

impl CompiledCriteria {
    /// Compiles the class and the expressions of a rule or patch.
    pub(super) fn new(
        criteria: &ClassCriteria,
        snapshot: &Snapshot,
        behaviour: &ReleaseBehaviour,
    ) -> CompiledCriteria {
        let of_class = match &criteria.class {
            None => &[][..],
            Some(_) if snapshot.classes.is_empty() => return CompiledCriteria::Unknown,
            Some(name) => match snapshot.classes.get(name) {
                Some(class) => &*class.expressions,
                None => return CompiledCriteria::MissingClass,
            },
        };
        let expressions = of_class.iter().chain(&criteria.expressions);
        CompiledCriteria::Programs(expressions.map(|text| Program::compile(text, behaviour)).collect())
    }

    /// Returns whether a device matches. A device that no API server accepts fails; unknown criteria match.
    pub(super) fn evaluate_device(&self, device: Option<&Device>) -> DeviceSelectionResult {
        let programs = match self {
            CompiledCriteria::Unknown => return DeviceSelectionResult::Selected,
            CompiledCriteria::MissingClass => return DeviceSelectionResult::NotSelected,
            CompiledCriteria::Programs(programs) => programs,
        };
        for program in programs {
            let program = match program {
                Ok(program) => program,
                Err(error) => return DeviceSelectionResult::Stuck(error.0.clone()),
            };
            match device.map(|device| program.evaluate(device)) {
                Some(Ok(true)) => {}
                Some(Ok(false)) => return DeviceSelectionResult::NotSelected,
                Some(Err(EvaluationError::Failed(text))) => return DeviceSelectionResult::Failed(text),
                Some(Err(EvaluationError::Unsupported(_))) => return DeviceSelectionResult::Unknown,
                None => return DeviceSelectionResult::Failed("unsupported attribute value".to_owned()),
            }
        }
        DeviceSelectionResult::Selected
    }
}

/// The devices that match the class and the expressions of one DeviceTaintRule.
#[derive(Debug)]
struct EvaluatedRule<'s> {
    /// The selected devices, by pool and name.
    devices: HashSet<(Slot, &'s str), RandomState>,
    /// Notes about the evaluation, as sentences.
    notes: Vec<String>,
}

/// The devices that each DeviceTaintRule with a class or expressions selects, by the name of the rule.
#[derive(Debug, Default)]
pub(super) struct DevicesByRule<'s> {
    /// `None` if the snapshot does not store the data that the evaluation needs.
    rules: HashMap<&'s str, Option<EvaluatedRule<'s>>, RandomState>,
}

impl<'s> DevicesByRule<'s> {
    /// Evaluates the rules that have a class or expressions, if the release supports these fields.
    pub(super) fn new(snapshot: &'s Snapshot, rules: &[&'s Rule], profile: &Profile) -> DevicesByRule<'s> {
        let mut selections = DevicesByRule::default();
        if profile.rule_class_selectors {
            for rule in rules {
                if let (Some(selector), Some(criteria)) = (&rule.selector, rule.class_criteria()) {
                    let evaluated = can_evaluate(criteria, snapshot)
                        .then(|| evaluate_rule(selector, criteria, snapshot, &profile.selectors))
                        .flatten();
                    selections.rules.insert(&rule.name, evaluated);
                }
            }
        }
        selections
    }

    /// True if the class and the expressions of the rule select that device, or if the rule has none, or if they are
    /// not known. Names in the selector are not checked.
    pub(super) fn criteria_may_select_device(&self, rule: &Rule, pool: Slot, device: &str) -> bool {
        match self.rules.get(&*rule.name) {
            Some(Some(evaluated)) => evaluated.devices.contains(&(pool, device)),
            Some(None) | None => true,
        }
    }

    /// True if the rule has a class or expressions that cannot be evaluated, so that it may select fewer devices than
    /// assumed.
    pub(super) fn has_unevaluated_criteria(&self, rule: &Rule) -> bool {
        matches!(self.rules.get(&*rule.name), Some(None))
    }

    /// True if the class and the expressions of the rule were evaluated.
    pub(super) fn has_evaluated_criteria(&self, rule: &Rule) -> bool {
        matches!(self.rules.get(&*rule.name), Some(Some(_)))
    }

    /// Returns sentences about problems with the evaluation of the rule's class and expressions.
    pub(super) fn evaluation_notes(&self, rule: &Rule) -> &[String] {
        self.rules.get(&*rule.name).and_then(Option::as_ref).map_or(&[], |evaluated| &evaluated.notes)
    }
}

/// True if the snapshot stores what the criteria need. A snapshot without any class was probably made without them.
pub(super) fn can_evaluate(criteria: &ClassCriteria, snapshot: &Snapshot) -> bool {
    snapshot.details.attributes && (criteria.class.is_none() || !snapshot.classes.is_empty())
}

/// Evaluates the class and expressions of a rule for each device that its names select. Returns `None` if the
/// attributes of such a device are not stored, or if an expression uses an unsupported feature.
fn evaluate_rule<'s>(
    selector: &RuleSelector,
    criteria: &ClassCriteria,
    snapshot: &'s Snapshot,
    behaviour: &ReleaseBehaviour,
) -> Option<EvaluatedRule<'s>> {
    let compiled = CompiledCriteria::new(criteria, snapshot, behaviour);
    let mut evaluated = EvaluatedRule { devices: HashSet::default(), notes: Vec::new() };
    if let (CompiledCriteria::MissingClass, Some(class)) = (&compiled, &criteria.class) {
        evaluated.notes.push(format!("DeviceClass `{class}` does not exist, so the rule selects no devices"));
        return Some(evaluated);
    }
    let mut problems = EvaluationProblems::default();
    for (driver, pools) in &snapshot.drivers {
        for slot in pools.values() {
            let slices = snapshot.pools.get_even_if_free(*slot).into_iter().flat_map(Pool::current_slices);
            for slice in slices {
                let wanted = |device: &str| selector.matches_driver_pool_device(driver, &slice.pool, device);
                let selected = selected_in_slice(&compiled, slice, wanted, &mut problems)?;
                evaluated.devices.extend(selected.into_iter().map(|device| (*slot, device)));
            }
        }
    }
    evaluated.notes.extend(problems.problem_sentences());
    Some(evaluated)
}

/// Returns the devices of a slice that `wanted` accepts and that match the criteria; none if the tracker gives up on
/// the slice. `None` if the attributes of its devices are not stored, or if it is unknown whether a device matches.
fn selected_in_slice<'s>(
    compiled: &CompiledCriteria,
    slice: &'s Slice,
    wanted: impl Fn(&str) -> bool,
    problems: &mut EvaluationProblems,
) -> Option<Vec<&'s str>> {
    let mut selected = Vec::new();
    if !slice.devices.iter().any(|device| wanted(&device.name)) {
        return Some(selected);
    }
    // Written by `details`, so it is JSON.
    let bodies = doc::parse(slice.bodies.as_deref()?).ok()?;
    for (device, body) in slice.devices.iter().zip(bodies.root().items()) {
        if !wanted(&device.name) {
            continue;
        }
        let name: &InternedStr = &device.name;
        let attributes = DeviceBody::of(body).device_for_taint_rules(&slice.driver);
        match compiled.evaluate_device(attributes.as_ref()) {
            DeviceSelectionResult::Selected => selected.push(&**name),
            DeviceSelectionResult::NotSelected => {}
            DeviceSelectionResult::Unknown => return None,
            DeviceSelectionResult::Failed(error) => {
                problems.failed.count_and_describe_first(|| format!("{}/{name}: {error}", slice.pool))
            }
            DeviceSelectionResult::Stuck(error) => {
                problems.stuck.count_and_describe_first(|| format!("{}: {error}", slice.name));
                return Some(Vec::new());
            }
        }
    }
    Some(selected)
}

/// What goes wrong while the class and expressions of a rule are evaluated, device by device.
#[derive(Default)]
struct EvaluationProblems {
    /// Devices for which an expression fails.
    failed: ProblemCountWithExample,
    /// Slices with a device for which an expression does not compile.
    stuck: ProblemCountWithExample,
}

/// How often a problem occurs, and a text about its first occurrence.
#[derive(Default)]
struct ProblemCountWithExample {
    count: usize,
    first: String,
}

impl ProblemCountWithExample {
    fn count_and_describe_first(&mut self, describe: impl FnOnce() -> String) {
        if self.count == 0 {
            self.first = describe();
        }
        self.count += 1;
    }
}

impl EvaluationProblems {
    /// Returns one sentence for each kind of problem that occurs.
    fn problem_sentences(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        // Errors of compilers have several lines.
        let first =
            |tally: &ProblemCountWithExample| tally.first.lines().next().unwrap_or_default().to_owned();
        match self.failed.count {
            0 => {}
            1 => sentences.push(format!(
                "an expression fails for 1 device, so the rule does not select it ({})",
                first(&self.failed)
            )),
            count => sentences.push(format!(
                "an expression fails for {count} devices, so the rule does not select them (the first is {})",
                first(&self.failed)
            )),
        }
        if self.stuck.count > 0 {
            let slices = if self.stuck.count == 1 { "ResourceSlice" } else { "ResourceSlices" };
            sentences.push(format!(
                "an expression does not compile, so Kubernetes applies no DeviceTaintRule to {} {slices} (the first is {})",
                self.stuck.count,
                first(&self.stuck)
            ));
        }
        sentences
    }
}
