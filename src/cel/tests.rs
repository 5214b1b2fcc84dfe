//! Tables of expressions and what the server of each release says about them.

mod hostile;
mod invalid;
mod patterns;
mod releases;
mod valid;
mod vendors;

use super::{CelEnv, Outcome, Target, V1_33, V1_34, V1_35, V1_36, V1_37, check};

const ALL: [CelEnv; 5] = [V1_33, V1_34, V1_35, V1_36, V1_37];

fn answer(expression: &str, target: Target, env: CelEnv) -> Outcome {
    check(expression, target, &env)
}
