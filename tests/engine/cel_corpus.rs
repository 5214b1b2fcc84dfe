//! Expressions with the answers of running API servers, per release: the verdict and its text.
//!
//! `tests/cel/selectors.jsonl` has one expression per line; a release's value is the detail of its
//! error, empty if it accepted the expression, absent if it was not asked.

use std::collections::BTreeMap;

use serde::Deserialize;
use tollgate::cel::{CelEnv, Outcome, Target, check};
use tollgate::profile::Profile;

#[derive(Deserialize)]
struct Row {
    target: String,
    expression: String,
    #[serde(flatten)]
    details: BTreeMap<String, String>,
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
    for line in include_str!("../cel/selectors.jsonl").lines() {
        let row: Row = serde_json::from_str(line).unwrap();
        let target = if row.target == "derived" { Target::DerivedAttribute } else { Target::Selector };
        for (release, expected) in row.details {
            let env = *Profile::named(&release).unwrap().cel;
            assert_eq!(detail(&row.expression, target, env), expected, "{:?} {env:?}", row.expression);
            asked += 1;
        }
    }
    assert!(asked > 200, "{asked}");
}
