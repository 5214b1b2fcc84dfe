//! A CEL expression: parsed, type-checked and priced in every environment, and evaluated on a device if the scheduler
//! would. The same expression always has the same outcome.

use tollgate_cel::evaluate::{
    AttributeValue, BEHAVIOUR_V1_34, BEHAVIOUR_V1_36, BEHAVIOUR_V1_37, Device, Program,
};
use tollgate_cel::{
    ADMISSION_POLICY_ENV, CelEnv, CheckOutcome, ExpressionPurpose, POLICY_ENV, V1_33, V1_34, V1_35, V1_36,
    V1_37, check,
};

const ENVS: [CelEnv; 7] = [V1_33, V1_34, V1_35, V1_36, V1_37, POLICY_ENV, ADMISSION_POLICY_ENV];

/// Estimated cost of the expressions that are evaluated, at most.
const MAX_EVALUATED: u64 = 100_000;

/// The input is the expression.
pub(crate) fn run(data: &[u8]) {
    let Ok(expression) = std::str::from_utf8(data) else { return };
    let mut estimate = None;
    for (index, env) in ENVS.iter().enumerate() {
        let outcome = check(expression, ExpressionPurpose::Selector, env);
        // One of them twice: checks are what this target spends its time on.
        if index == data.len() % ENVS.len() {
            assert_eq!(outcome, check(expression, ExpressionPurpose::Selector, env));
        }
        if let CheckOutcome::Accepted { cost } | CheckOutcome::TooComplex { cost } = outcome {
            estimate = estimate.max(Some(cost));
        }
    }
    // An evaluation may cost a million, which takes a tenth of a second, and more in a build for fuzzing.
    if estimate.is_none_or(|cost| cost > MAX_EVALUATED) {
        return;
    }
    let attributes = [
        ("model", AttributeValue::String("a100")),
        ("cores", AttributeValue::Int(64)),
        ("ecc", AttributeValue::Bool(true)),
        ("sdk", AttributeValue::Version("1.2.3-rc.1")),
    ];
    let device = Device::new("gpu.example.com", false, attributes, [("memory", "80Gi")]).expect("a device");
    for behaviour in [BEHAVIOUR_V1_34, BEHAVIOUR_V1_36, BEHAVIOUR_V1_37] {
        if let Ok(program) = Program::compile(expression, &behaviour) {
            assert_eq!(program.evaluate(&device), program.evaluate(&device));
        }
    }
}
