//! What the recordings do not show: expressions that are made to be expensive, and what sharing does.

use super::{AttributeValue, BEHAVIOUR_V1_36, BEHAVIOUR_V1_37, Device, Program, ReleaseBehaviour};

const TOO_DEAR: &str = "operation cancelled: actual cost limit exceeded";

fn device() -> Device {
    let attributes = [("name", AttributeValue::String("a")), ("d/version", AttributeValue::Version("1.2.3"))];
    Device::new("d", false, attributes, [("whole", "40Gi"), ("large", "7Ei")]).unwrap()
}

fn answer(expression: &str, behaviour: &ReleaseBehaviour) -> Result<bool, String> {
    let program = Program::compile(expression, behaviour).unwrap_or_else(|error| panic!("{}", error.0));
    program.evaluate(&device()).map_err(|error| error.to_string())
}

/// Builds nested bindings: `cel.bind(x1, …x0…, cel.bind(x2, …x1…, …))`.
fn nested_doubling_binds(first: &str, twice: fn(&str) -> String, last: fn(&str) -> String) -> String {
    let bind = |index: usize| format!("cel.bind(x{index}, {}, ", twice(&format!("x{}", index - 1)));
    let binds: String = (1..40).map(bind).collect();
    format!("cel.bind(x0, {first}, {binds}{}{}", last("x39"), ")".repeat(40))
}

#[test]
fn what_is_too_large_ends() {
    let sum = |x: &str| format!("{x} + {x}");
    let pair = |x: &str| format!("[{x}, {x}]");
    let lazy = nested_doubling_binds("[1, 2]", sum, |x| format!("{x}.size() > 1000000"));
    assert_eq!(answer(&lazy, &BEHAVIOUR_V1_37), Ok(true));
    for expression in [
        nested_doubling_binds("[1, 2]", sum, |x| format!("{x}.all(y, y > 0)")),
        nested_doubling_binds("[1, 2]", sum, |x| format!("{x}.reverse().size() > 0")),
        nested_doubling_binds("[1, 2]", sum, |x| format!("{x} == {x}")),
        nested_doubling_binds("dyn([1, 2])", pair, |x| format!("dyn({x}) == dyn({x})")),
        nested_doubling_binds("dyn([[1], [2]])", |x| format!("dyn([{x}, {x}])"), |x| format!("{x}.flatten(99).size() > 0")),
        "lists.range(1000000).map(x, x).size() > 0".to_owned(),
        "lists.range(20000).map(x, string(x)).join(\"\").replace(\"\", lists.range(20000).map(x, string(x)).join(\"\")).size() > 0"
            .to_owned(),
        "\"%.999999999f\".format([1.5]) == \"\"".to_owned(),
        "quantity(\"1e2000000000\").add(quantity(\"1\")).isInteger()".to_owned(),
    ] {
        assert_eq!(answer(&expression, &BEHAVIOUR_V1_37), Err(TOO_DEAR.to_owned()), "{expression}");
    }
    assert_eq!(
        answer("lists.range(9223372036854775807).size() > 0", &BEHAVIOUR_V1_36),
        Err(TOO_DEAR.to_owned())
    );
}

#[test]
fn what_is_bound_is_evaluated_when_it_is_needed() {
    assert_eq!(answer("cel.bind(x, 1 / 0, true)", &BEHAVIOUR_V1_37), Ok(true));
    assert_eq!(answer("cel.bind(x, 1 / 0, x == 1)", &BEHAVIOUR_V1_37), Err("division by zero".to_owned()));
}

#[test]
fn quantities_are_shared() {
    let whole = "device.capacity[\"d\"].whole";
    // Comparing with a decimal makes a decimal of the left side.
    let compared = format!("{whole}.isLessThan(quantity(\"7Ei\")) && {whole}.isInteger()");
    let integer = format!("{whole}.isInteger()");
    for behaviour in [&BEHAVIOUR_V1_36, &BEHAVIOUR_V1_37] {
        assert_eq!(answer(&compared, behaviour), Ok(false));
        assert_eq!(answer(&integer, behaviour), Ok(true));
    }
    let large = "device.capacity[\"d\"].large";
    let grown = format!("{large}.add(1).isGreaterThan({large})");
    assert_eq!(answer(&grown, &BEHAVIOUR_V1_36), Ok(false));
    assert_eq!(answer(&grown, &BEHAVIOUR_V1_37), Ok(true));
    // A sum is a pointer, which only the left side of `==` knows.
    assert_eq!(answer(&format!("{whole}.add(0) == {whole}"), &BEHAVIOUR_V1_37), Ok(true));
    let right = format!("{whole} == {whole}.add(0)");
    assert_eq!(answer(&right, &BEHAVIOUR_V1_37), Err("no such overload".to_owned()));
}

#[test]
fn what_go_cannot_hash_ends_the_evaluation() {
    let expression = "device.attributes[\"d\"].version in [\"1.2.3\"] || true";
    let text = "internal error: runtime error: hash of unhashable type cel.Semver";
    assert_eq!(answer(expression, &BEHAVIOUR_V1_37), Err(text.to_owned()));
}

#[test]
fn programs_and_devices_are_shared_by_threads() {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<Program>();
    is_shared::<Device>();
}
