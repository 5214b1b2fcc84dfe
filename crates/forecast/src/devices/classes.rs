//! Determines the DeviceClasses of a device: all selectors of a class must match.
//!
//! The expressions are compiled once, and evaluated once for devices that are equal. As in the scheduler, the first
//! selector that does not match or fails ends the evaluation of a class.

use crate::selectors::MALFORMED_DEVICE;
use crate::state::{ObjectKind, State};
use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hash as _, Hasher as _, RandomState};
use tollgate_allocator::Candidate;
use tollgate_api::view::Class;
use tollgate_cel::evaluate::{Device, Program, ReleaseBehaviour};

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
    expressions: Vec<&'d str>,
    pub(super) selectors: Result<Vec<Program>, String>,
}

impl<'d> CompiledClass<'d> {
    /// Compiles the DeviceClasses of a state, by name.
    pub(super) fn compile_all(state: &State<'d>, behaviour: &ReleaseBehaviour) -> Vec<CompiledClass<'d>> {
        let classes = state.objects_of_kind(ObjectKind::DeviceClass).iter();
        let compile = |expression: &str| Program::compile(expression, behaviour).map_err(|error| error.0);
        let mut classes: Vec<CompiledClass<'d>> = classes
            .map(|object| {
                let selectors = Class(object.value).spec().selectors().iter();
                let expressions: Vec<&str> =
                    selectors.map(|by| by.cel().map_or("", |cel| cel.expression())).collect();
                let selectors = expressions.iter().map(|expression| compile(expression)).collect();
                CompiledClass { name: object.name(), expressions, selectors }
            })
            .collect();
        classes.sort_by_key(|class| class.name);
        classes
    }
}

/// Indices of the classes that a device belongs to, and of those whose selectors fail for it, with the error.
type ClassesOfDevice = (Vec<usize>, Vec<(usize, String)>);

/// Caches the classes of devices from one report to the next, because devices change rarely and selectors are slow.
#[derive(Default, Debug)]
pub struct ClassMatchCache {
    hasher: RandomState,
    /// Hash of the classes and the CEL behaviour for which the answers are valid. Feature gates can change the
    /// behaviour within a release.
    classes: u64,
    /// The classes of each device, by a hash of driver and device. The hash has a secret key, so that nobody can write
    /// a slice with two devices of equal hashes.
    answers: HashMap<u64, ClassesOfDevice>,
}

impl ClassMatchCache {
    /// The classes of each of these devices, in the same order. Evaluates only devices that are not cached, and drops
    /// all others from the cache.
    pub(super) fn classes_of_devices_dropping_other_entries<'d>(
        &mut self,
        classes: &[CompiledClass<'d>],
        behaviour: &ReleaseBehaviour,
        devices: impl Iterator<Item = Candidate<'d>>,
    ) -> Vec<ClassesOfDevice> {
        let names: Vec<(&str, &[&str])> =
            classes.iter().map(|class| (class.name, &*class.expressions)).collect();
        let digest = self.hasher.hash_one((behaviour, names));
        let mut before = std::mem::take(&mut self.answers);
        if std::mem::replace(&mut self.classes, digest) != digest {
            before.clear();
        }
        let answer = |candidate: Candidate<'d>| {
            let mut hasher = self.hasher.build_hasher();
            candidate.driver.hash(&mut hasher);
            for part in candidate.body.0.self_and_descendants() {
                (part.kind() as u8, part.node_count(), part.text()).hash(&mut hasher);
            }
            let key = hasher.finish();
            let evaluate = || before.remove(&key).unwrap_or_else(|| evaluate_classes(classes, candidate));
            self.answers.entry(key).or_insert_with(evaluate).clone()
        };
        devices.map(answer).collect()
    }
}

fn evaluate_classes(classes: &[CompiledClass<'_>], candidate: Candidate<'_>) -> ClassesOfDevice {
    let device = candidate.body.device_for_selectors(candidate.driver);
    let (mut matching, mut failed) = (Vec::new(), Vec::new());
    for (place, class) in classes.iter().enumerate() {
        let Ok(selectors) = &class.selectors else { continue };
        match all_selectors_match(selectors, device.as_ref()) {
            Ok(true) => matching.push(place),
            Ok(false) => {}
            Err(error) => failed.push((place, error)),
        }
    }
    (matching, failed)
}

/// True if all selectors match the device. The error is that of the first selector that fails.
fn all_selectors_match(selectors: &[Program], device: Option<&Device>) -> Result<bool, String> {
    for selector in selectors {
        let device = device.ok_or_else(|| MALFORMED_DEVICE.to_owned())?;
        if !selector.evaluate(device).map_err(|error| error.to_string())? {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::ClassMatchCache;
    use crate::{State, report_devices_cached};
    use tollgate_api::profile::Profile;
    use tollgate_document::doc::parse;

    /// The model of a device, a feature gate and the expression of a class change one after the other.
    #[test]
    fn classes_are_remembered_as_long_as_nothing_changes() {
        let mut memory = ClassMatchCache::default();
        for (lists, model, wanted, answers) in [
            (true, r#""string":"a""#, "device.attributes['d'].model == 'a'", 1),
            (true, r#""string":"a""#, "device.attributes['d'].model == 'a'", 1),
            (true, r#""string":"b""#, "device.attributes['d'].model == 'a'", 0),
            (true, r#""strings":["b"]"#, "device.driver == 'd'", 1),
            (false, r#""strings":["b"]"#, "device.driver == 'd'", 0),
        ] {
            let class = format!(
                r#"{{"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass","metadata":{{"name":"c"}},"spec":{{"selectors":[{{"cel":{{"expression":"{wanted}"}}}}]}}}}"#
            );
            let slice = format!(
                r#"{{"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{{"name":"s"}},"spec":{{"driver":"d","nodeName":"n","pool":{{"name":"p","generation":1,"resourceSliceCount":1}},"devices":[{{"name":"0","attributes":{{"model":{{{model}}}}}}}]}}}}"#
            );
            let (class, slice) = (parse(&class).expect("JSON"), parse(&slice).expect("JSON"));
            let mut state = State::default();
            for object in [class.root(), slice.root()] {
                state.add(object);
            }
            let mut profile = *Profile::named("1.36").expect("a release");
            profile.selectors = profile.selectors.with_list_attributes_feature_gate(lists);
            let report = report_devices_cached(&state, &profile, &mut memory);
            let found: Vec<usize> = report.devices.iter().map(|device| device.classes.len()).collect();
            assert_eq!(found, [answers], "{lists} {model} {wanted}");
            assert_eq!(memory.answers.len(), 1, "what is gone is forgotten");
        }
    }
}
