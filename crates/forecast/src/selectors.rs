//! Evaluates the CEL selectors of classes and requests for the allocator.
//!
//! Each expression is compiled once, and evaluated at most once for each device: results are cached by device index
//! for as long as the inventory stays the same.

#![allow(clippy::indexing_slicing, reason = "places come from the list itself")]

use foldhash::fast::RandomState;
use std::cell::RefCell;
use std::collections::HashMap;
use tollgate_allocator::{Candidate, SelectorError, SelectorEvaluator};
use tollgate_cel::evaluate::{Device, EvaluationError, Program, ReleaseBehaviour};

/// Error of every selector for a device with a malformed version or quantity, which API servers reject.
pub(crate) const MALFORMED_DEVICE: &str = "unsupported attribute value";

/// Evaluates device selectors, and caches the results.
#[derive(Debug)]
pub struct CelSelectorEvaluator {
    behaviour: ReleaseBehaviour,
    cache: RefCell<SelectorCache>,
}

/// The compiled expressions of an evaluator, and the device that was evaluated last.
#[derive(Default, Debug)]
struct SelectorCache {
    expressions: Vec<CompiledSelector>,
    /// Index of each expression, by its text.
    by_text: HashMap<Box<str>, usize, RandomState>,
    /// The last evaluated device, because classes are usually evaluated device by device.
    device: Option<(usize, Option<Device>)>,
}

/// A compiled selector with its cached results.
#[derive(Debug)]
struct CompiledSelector {
    program: Result<Program, SelectorError>,
    /// Cached results, by the device's index in the inventory.
    answers: HashMap<usize, Result<bool, SelectorError>, RandomState>,
}

impl CelSelectorEvaluator {
    /// Creates an evaluator for one inventory.
    pub fn new(behaviour: ReleaseBehaviour) -> CelSelectorEvaluator {
        CelSelectorEvaluator { behaviour, cache: RefCell::default() }
    }
}

impl SelectorEvaluator for CelSelectorEvaluator {
    fn matches(&self, expression: &str, candidate: Candidate<'_>) -> Result<bool, SelectorError> {
        let mut cache = self.cache.borrow_mut();
        let index = cache.index_or_compile(expression, &self.behaviour);
        let SelectorCache { expressions, device, .. } = &mut *cache;
        let expression = &mut expressions[index];
        if let Some(answer) = expression.answers.get(&candidate.index) {
            return answer.clone();
        }
        let answer = match &expression.program {
            Err(error) => Err(error.clone()),
            Ok(program) => match convert_with_cache(device, candidate) {
                None => Err(SelectorError::Runtime(MALFORMED_DEVICE.to_owned())),
                Some(device) => program.evaluate(device).map_err(|error| match error {
                    EvaluationError::Failed(text) => SelectorError::Runtime(text),
                    EvaluationError::Unsupported(what) => SelectorError::Unsupported(what),
                }),
            },
        };
        expression.answers.insert(candidate.index, answer.clone());
        answer
    }
}

impl SelectorCache {
    /// Index of an expression in the list. A new expression is compiled first.
    fn index_or_compile(&mut self, text: &str, behaviour: &ReleaseBehaviour) -> usize {
        if let Some(&index) = self.by_text.get(text) {
            return index;
        }
        let program = Program::compile(text, behaviour).map_err(|error| SelectorError::Compile(error.0));
        self.expressions.push(CompiledSelector { program, answers: HashMap::default() });
        let index = self.expressions.len() - 1;
        self.by_text.insert(text.into(), index);
        index
    }
}

/// Converts the device for evaluation; `last` caches the previous device.
fn convert_with_cache<'m>(
    last: &'m mut Option<(usize, Option<Device>)>,
    candidate: Candidate<'_>,
) -> Option<&'m Device> {
    if last.as_ref().is_none_or(|(index, _)| *index != candidate.index) {
        *last = Some((candidate.index, candidate.body.device_for_selectors(candidate.driver)));
    }
    last.as_ref().and_then(|(_, device)| device.as_ref())
}
