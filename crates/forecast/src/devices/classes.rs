//! Determines the DeviceClasses of a device: all selectors of a class must match.
//!
//! The expressions are compiled once, and evaluated device by device. As in the scheduler, the first selector that does
//! not match or fails ends the evaluation of a class.

use crate::selectors::MALFORMED_DEVICE;
use crate::state::{ObjectKind, State};
use tollgate_allocator::Candidate;
use tollgate_api::view::Class;
use tollgate_cel::evaluate::{Behaviour, Device, Program};

/// A DeviceClass as the device report lists it.
#[derive(Clone, Debug)]
pub struct ReportedClass<'d> {
    pub name: &'d str,
    /// The compile error of a selector, if any. Such a class matches no devices.
    pub error: Option<String>,
}

/// A DeviceClass with compiled selectors.
pub(super) struct CompiledClass<'d> {
    pub(super) name: &'d str,
    pub(super) selectors: Result<Vec<Program>, String>,
}

impl<'d> CompiledClass<'d> {
    /// Compiles the DeviceClasses of a state, by name.
    pub(super) fn compile_all(state: &State<'d>, behaviour: &Behaviour) -> Vec<CompiledClass<'d>> {
        let classes = state.of_kind(ObjectKind::DeviceClass).iter();
        let compile = |expression: &str| Program::compile(expression, behaviour).map_err(|error| error.0);
        let mut classes: Vec<CompiledClass<'d>> = classes
            .map(|object| {
                let selectors = Class(object.value).spec().selectors().iter();
                let expressions = selectors.map(|by| by.cel().map_or("", |cel| cel.expression()));
                CompiledClass { name: object.name(), selectors: expressions.map(compile).collect() }
            })
            .collect();
        classes.sort_by_key(|class| class.name);
        classes
    }
}

/// Indices of the classes that the device belongs to, and of those whose selectors fail for it, with the
/// error.
pub(super) fn classes_of(
    classes: &[CompiledClass<'_>],
    candidate: Candidate<'_>,
) -> (Vec<usize>, Vec<(usize, String)>) {
    let device = candidate.body.selector_device(candidate.driver);
    let (mut matching, mut failed) = (Vec::new(), Vec::new());
    for (place, class) in classes.iter().enumerate() {
        let Ok(selectors) = &class.selectors else { continue };
        match matches(selectors, device.as_ref()) {
            Ok(true) => matching.push(place),
            Ok(false) => {}
            Err(error) => failed.push((place, error)),
        }
    }
    (matching, failed)
}

/// True if all selectors match the device. The error is that of the first selector that fails.
fn matches(selectors: &[Program], device: Option<&Device>) -> Result<bool, String> {
    for selector in selectors {
        let device = device.ok_or_else(|| MALFORMED_DEVICE.to_owned())?;
        if !selector.evaluate(device).map_err(|error| error.to_string())? {
            return Ok(false);
        }
    }
    Ok(true)
}
