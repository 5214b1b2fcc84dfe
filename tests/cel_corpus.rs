//! Expressions with the answers of running API servers, per release: the verdict and its text.
//!
//! `tests/cel/selectors.jsonl` has one expression per line; a release's value is the detail of its
//! error, empty if it accepted the expression, absent if it was not asked.

use serde::Deserialize;
use tollgate::cel::{CelEnv, Outcome, Target, V1_34, V1_35, V1_36, V1_37, check};

#[derive(Deserialize)]
struct Row {
    target: String,
    expression: String,
    #[serde(rename = "1.34")]
    v1_34: Option<String>,
    #[serde(rename = "1.35")]
    v1_35: Option<String>,
    #[serde(rename = "1.36")]
    v1_36: Option<String>,
    #[serde(rename = "1.37")]
    v1_37: Option<String>,
}

fn detail(expression: &str, target: Target, env: CelEnv) -> String {
    match check(expression, target, &env) {
        Outcome::Accepted { .. } => String::new(),
        Outcome::CompileError(detail) | Outcome::WrongType(detail) => detail,
        Outcome::TooComplex => "too complex, exceeds cost limit".to_owned(),
        Outcome::Unchecked(reason) => format!("unchecked: {reason}"),
    }
}

#[test]
fn answers_are_those_of_the_servers() {
    let mut asked = 0;
    for line in include_str!("cel/selectors.jsonl").lines() {
        let row: Row = serde_json::from_str(line).unwrap();
        let target = if row.target == "derived" { Target::DerivedAttribute } else { Target::Selector };
        for (env, expected) in
            [(V1_34, row.v1_34), (V1_35, row.v1_35), (V1_36, row.v1_36), (V1_37, row.v1_37)]
        {
            let Some(expected) = expected else { continue };
            assert_eq!(detail(&row.expression, target, env), expected, "{:?} {env:?}", row.expression);
            asked += 1;
        }
    }
    assert!(asked > 200, "{asked}");
}
