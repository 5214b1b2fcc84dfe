//! CEL expressions and what each release says of them (`tests/cel`).
//!
//! `selectors.jsonl` has the answers of running API servers, to the word: a release's value is the detail of its error,
//! empty if it accepted the expression, absent if it was not asked. `syntax.jsonl` has what the compilers of
//! [`COMPILERS`] say of expressions with errors of syntax. `expressions.jsonl` has our own, by subject: an outcome for
//! every release, or by release. `recorded.jsonl` has what the servers' compiler says of generated expressions: the
//! estimated cost, or the detail of the error. `literals.jsonl` has what Go reads as a pattern, a duration or a time,
//! and its error.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use tollgate_api::profile::Profile;
use tollgate_cel::regex;
use tollgate_cel::{CheckOutcome, ExpressionPurpose, check};

const RELEASES: [&str; 5] = ["1.33", "1.34", "1.35", "1.36", "1.37"];
/// The releases whose compilers produced the results in `syntax.jsonl`.
const COMPILERS: [&str; 2] = ["1.36", "1.37"];

fn rows<T: DeserializeOwned>(text: &str) -> Vec<T> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}")))
        .collect()
}

fn check_expression(expression: &str, target: &str, release: &str) -> CheckOutcome {
    let target =
        if target == "derived" { ExpressionPurpose::DerivedAttribute } else { ExpressionPurpose::Selector };
    check(expression, target, &Profile::named(release).unwrap().cel)
}

#[derive(Deserialize)]
struct Selector {
    target: String,
    expression: String,
    #[serde(flatten)]
    details: BTreeMap<String, String>,
}

#[test]
fn answers_are_those_of_the_servers() {
    let mut asked = 0;
    for row in rows::<Selector>(include_str!("../cel/selectors.jsonl")) {
        for (release, expected) in row.details {
            let detail = match check_expression(&row.expression, &row.target, &release) {
                CheckOutcome::Accepted { .. } => String::new(),
                CheckOutcome::CompileError(detail) | CheckOutcome::WrongType(detail) => detail,
                CheckOutcome::ProgramError(detail) => format!("Internal error: {detail}"),
                CheckOutcome::TooComplex { .. } => "too complex, exceeds cost limit".to_owned(),
                CheckOutcome::Unchecked(reason) => format!("unchecked: {reason}"),
            };
            assert_eq!(detail, expected, "{:?} {release}", row.expression);
            asked += 1;
        }
    }
    assert!(asked > 200, "{asked}");
}

#[derive(Deserialize)]
struct Expression {
    about: String,
    #[serde(default)]
    target: String,
    expression: String,
    outcome: Expected,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Expected {
    Everywhere(String),
    ByRelease(BTreeMap<String, String>),
}

impl Expected {
    fn by_release<'e>(&'e self, releases: &[&'e str]) -> Vec<(&'e str, &'e str)> {
        match self {
            Expected::Everywhere(outcome) => releases.iter().map(|release| (*release, &**outcome)).collect(),
            Expected::ByRelease(outcomes) => {
                outcomes.iter().map(|(release, outcome)| (&**release, &**outcome)).collect()
            }
        }
    }
}

#[test]
fn expressions_have_the_outcome_beside_them() {
    let mut asked = 0;
    let mut wrong = Vec::new();
    for row in rows::<Expression>(include_str!("../cel/expressions.jsonl")) {
        for (release, expected) in row.outcome.by_release(&RELEASES) {
            let outcome = match check_expression(&row.expression, &row.target, release) {
                CheckOutcome::Accepted { cost } if expected.starts_with("cost ") => format!("cost {cost}"),
                CheckOutcome::Accepted { .. } => "accepted".to_owned(),
                CheckOutcome::CompileError(_) | CheckOutcome::ProgramError(_) if expected == "refused" => {
                    "refused".to_owned()
                }
                CheckOutcome::CompileError(detail) => detail,
                CheckOutcome::WrongType(detail) => type_of(&detail, &row.target),
                CheckOutcome::ProgramError(detail) => format!("Internal error: {detail}"),
                CheckOutcome::TooComplex { cost } if expected.starts_with("cost ") => format!("cost {cost}"),
                CheckOutcome::TooComplex { .. } => "too complex".to_owned(),
                CheckOutcome::Unchecked(reason) => format!("unchecked: {reason}"),
            };
            if outcome != expected {
                wrong.push(format!(
                    "{}: {:?} {release}: {outcome}, not {expected}",
                    row.about, row.expression
                ));
            }
            asked += 1;
        }
    }
    assert!(asked > 2_000, "{asked}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[derive(Deserialize)]
struct Broken {
    expression: String,
    detail: Expected,
}

#[test]
fn syntax_errors_are_worded_as_by_the_servers() {
    let mut asked = 0;
    let mut wrong = Vec::new();
    for row in rows::<Broken>(include_str!("../cel/syntax.jsonl")) {
        for (release, expected) in row.detail.by_release(&COMPILERS) {
            let outcome = check_expression(&row.expression, "selector", release);
            if outcome != CheckOutcome::CompileError(expected.to_owned()) {
                wrong.push(format!("{:?} {release}: {outcome:?}, not {expected:?}", row.expression));
            }
            asked += 1;
        }
    }
    assert!(asked > 1_000, "{asked}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// `type int`, if the sentence is the server's.
fn type_of(detail: &str, target: &str) -> String {
    let wanted = match target {
        "derived" => "a primitive scalar (string, integer, boolean, semver) or a list of these scalars",
        _ => "bool or the unknown type",
    };
    match detail.strip_prefix(&format!("must evaluate to {wanted}, not ")) {
        Some(name) => format!("type {name}"),
        None => detail.to_owned(),
    }
}

#[derive(Deserialize)]
struct Recorded {
    #[serde(default)]
    target: String,
    expression: String,
    #[serde(flatten)]
    answers: BTreeMap<String, String>,
}

#[test]
fn costs_and_errors_are_those_that_were_recorded() {
    let mut asked = 0;
    let mut wrong = Vec::new();
    for row in rows::<Recorded>(include_str!("../cel/recorded.jsonl")) {
        for (release, expected) in &row.answers {
            let answer = match check_expression(&row.expression, &row.target, release) {
                CheckOutcome::Accepted { cost } | CheckOutcome::TooComplex { cost } => format!("cost {cost}"),
                CheckOutcome::CompileError(detail) | CheckOutcome::WrongType(detail) => detail,
                CheckOutcome::ProgramError(detail) => format!("Internal error: {detail}"),
                CheckOutcome::Unchecked(reason) => format!("unchecked: {reason}"),
            };
            if answer != *expected {
                wrong.push(format!("{:?} {release}: {answer}, not {expected}", row.expression));
            }
            asked += 1;
        }
    }
    assert!(asked > 1_000, "{asked}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Literal {
    Pattern(String),
    Duration(String),
    Timestamp(String),
}

#[derive(Deserialize)]
struct LiteralRow {
    #[serde(flatten)]
    literal: Literal,
    valid: bool,
    error: Option<String>,
}

#[test]
fn literals_are_read_as_go_reads_them() {
    // Quoted for JSON is quoted for CEL.
    let is_accepted = |expression: String| {
        !matches!(
            check_expression(&expression, "selector", "1.36"),
            CheckOutcome::CompileError(_) | CheckOutcome::ProgramError(_)
        )
    };
    for row in rows::<LiteralRow>(include_str!("../cel/literals.jsonl")) {
        let (text, valid) = match &row.literal {
            Literal::Pattern(text) => {
                let error = regex::go_program_size(text).err().map(|error| error.to_string());
                assert_eq!(error, row.error, "{text:?}");
                (text, error.is_none())
            }
            Literal::Duration(text) => (
                text,
                is_accepted(format!("duration({}) > duration(\"1s\")", tollgate_formats::gofmt::quote(text))),
            ),
            Literal::Timestamp(text) => (
                text,
                is_accepted(format!("timestamp({}) > timestamp(0)", tollgate_formats::gofmt::quote(text))),
            ),
        };
        assert_eq!(valid, row.valid, "{text:?}");
    }
}
