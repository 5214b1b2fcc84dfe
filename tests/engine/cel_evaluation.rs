//! Compares evaluations of selectors with recorded ones (`tests/cel-eval`): expressions, each for every device, in the
//! releases 1.36 and 1.37, as the library of that release's scheduler answered.

#![allow(clippy::disallowed_macros, reason = "the agreement of each feature is printed, for people")]

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Deserialize;
use tollgate_cel::evaluate::{
    AttributeValue, BEHAVIOUR_V1_36, BEHAVIOUR_V1_37, Device, Program, ReleaseBehaviour,
};

#[derive(Deserialize)]
struct Slices {
    items: Vec<Slice>,
}

#[derive(Deserialize)]
struct Slice {
    spec: Spec,
}

#[derive(Deserialize)]
struct Spec {
    driver: String,
    devices: Vec<RecordedDevice>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RecordedDevice {
    #[serde(default)]
    attributes: BTreeMap<String, Attribute>,
    #[serde(default)]
    capacity: BTreeMap<String, Capacity>,
    #[serde(default)]
    allow_multiple_allocations: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Attribute {
    Int(i64),
    Bool(bool),
    String(String),
    Version(String),
    Ints(Vec<i64>),
    Bools(Vec<bool>),
    Strings(Vec<String>),
    Versions(Vec<String>),
}

#[derive(Deserialize)]
struct Capacity {
    value: String,
}

#[derive(Deserialize)]
struct Case {
    id: String,
    feature: String,
    expression: String,
    #[serde(default)]
    gates: Vec<String>,
    #[serde(rename = "1.36")]
    v1_36: Recorded,
    #[serde(rename = "1.37")]
    v1_37: Recorded,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Recorded {
    Results(Vec<Answer>),
    NotCompiled {
        #[serde(rename = "compileError")]
        error: String,
    },
    Same(String),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Answer {
    Of(bool),
    Failed { error: String },
}

fn devices() -> Vec<Device> {
    let slices: Slices = serde_json::from_str(include_str!("../cel-eval/devices.json")).unwrap();
    let mut devices = Vec::new();
    for Slice { spec } in &slices.items {
        for device in &spec.devices {
            let texts: Vec<Vec<&str>> = device
                .attributes
                .values()
                .map(|attribute| match attribute {
                    Attribute::Strings(texts) | Attribute::Versions(texts) => {
                        texts.iter().map(String::as_str).collect()
                    }
                    _ => Vec::new(),
                })
                .collect();
            let attributes = device.attributes.iter().zip(&texts).map(|((name, attribute), texts)| {
                let value = match attribute {
                    Attribute::Int(value) => AttributeValue::Int(*value),
                    Attribute::Bool(value) => AttributeValue::Bool(*value),
                    Attribute::String(text) => AttributeValue::String(text),
                    Attribute::Version(text) => AttributeValue::Version(text),
                    Attribute::Ints(values) => AttributeValue::Ints(values),
                    Attribute::Bools(values) => AttributeValue::Bools(values),
                    Attribute::Strings(_) => AttributeValue::Strings(texts),
                    Attribute::Versions(_) => AttributeValue::Versions(texts),
                };
                (name.as_str(), value)
            });
            let capacity =
                device.capacity.iter().map(|(name, capacity)| (name.as_str(), capacity.value.as_str()));
            let device = Device::new(&spec.driver, device.allow_multiple_allocations, attributes, capacity);
            devices.push(device.unwrap());
        }
    }
    devices
}

/// Number of evaluations with the same result (true, false or error), and of errors with the same text.
#[derive(Clone, Copy, Default)]
struct Agreement {
    answers: usize,
    agreed: usize,
    errors: usize,
    same_texts: usize,
}

impl Agreement {
    fn add(&mut self, other: Agreement) {
        self.answers += other.answers;
        self.agreed += other.agreed;
        self.errors += other.errors;
        self.same_texts += other.same_texts;
    }
}

fn compare(
    case: &Case,
    behaviour: &ReleaseBehaviour,
    recorded: &Recorded,
    devices: &[Device],
    differences: &mut String,
) -> Agreement {
    let mut agreement = Agreement::default();
    let mut differ = |at: &str, expected: &str, found: &str| {
        let _ = writeln!(
            differences,
            "{} {} {at}\n  {}\n  - {expected}\n  + {found}",
            case.id, case.feature, case.expression
        );
    };
    let program = Program::compile(&case.expression, behaviour);
    let results = match recorded {
        Recorded::NotCompiled { error } => {
            agreement.answers += 1;
            agreement.errors += 1;
            match &program {
                Ok(_) => differ("compile", error, "compiles"),
                Err(found) => {
                    agreement.agreed += 1;
                    if found.0 == *error {
                        agreement.same_texts += 1;
                    } else {
                        differ("compile", error, &found.0);
                    }
                }
            }
            return agreement;
        }
        Recorded::Results(results) => results,
        Recorded::Same(word) => panic!("{}: {word}", case.id),
    };
    for (index, (recorded, device)) in results.iter().zip(devices).enumerate() {
        agreement.answers += 1;
        let found = match &program {
            Ok(program) => program.evaluate(device).map_err(|error| error.to_string()),
            Err(error) => {
                differ(&index.to_string(), "compiles", &error.0);
                break;
            }
        };
        match (recorded, &found) {
            (Answer::Of(expected), Ok(found)) if expected == found => agreement.agreed += 1,
            (Answer::Failed { error }, Err(found)) => {
                agreement.agreed += 1;
                agreement.errors += 1;
                if error == found {
                    agreement.same_texts += 1;
                } else {
                    differ(&index.to_string(), error, found);
                }
            }
            (Answer::Of(expected), found) => {
                differ(&index.to_string(), &expected.to_string(), &format!("{found:?}"))
            }
            (Answer::Failed { error }, Ok(found)) => {
                agreement.errors += 1;
                differ(&index.to_string(), error, &found.to_string());
            }
        }
    }
    agreement
}

#[test]
fn evaluations_agree_with_the_recorded_ones() {
    let devices = devices();
    let mut features: BTreeMap<String, [Agreement; 2]> = BTreeMap::new();
    let mut differences = String::new();
    for line in include_str!("../cel-eval/cases.jsonl").lines() {
        let case: Case = serde_json::from_str(line).unwrap();
        let v1_36 = BEHAVIOUR_V1_36.with_list_attributes_feature_gate(!case.gates.is_empty());
        let recorded = if let Recorded::Same(_) = case.v1_37 { &case.v1_36 } else { &case.v1_37 };
        let [old, new] = features.entry(case.feature.clone()).or_default();
        old.add(compare(&case, &v1_36, &case.v1_36, &devices, &mut differences));
        new.add(compare(&case, &BEHAVIOUR_V1_37, recorded, &devices, &mut differences));
    }
    let mut total = Agreement::default();
    println!("{:<20} {:>14} {:>14} {:>14} {:>14}", "feature", "1.36", "texts", "1.37", "texts");
    for (feature, [old, new]) in &features {
        let of = |part: usize, whole: usize| format!("{part}/{whole}");
        println!(
            "{feature:<20} {:>14} {:>14} {:>14} {:>14}",
            of(old.agreed, old.answers),
            of(old.same_texts, old.errors),
            of(new.agreed, new.answers),
            of(new.same_texts, new.errors)
        );
        total.add(*old);
        total.add(*new);
    }
    println!("{differences}");
    assert!(total.answers > 60_000, "{} answers", total.answers);
    assert_eq!(total.agreed, total.answers);
    assert_eq!(total.same_texts, total.errors);
}
