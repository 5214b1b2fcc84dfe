//! Keys that Go decoders take for others.

use super::super::Schema;
use super::{EXPRESSIONS, faults, violations_and_steps};

#[test]
fn a_key_that_comes_twice_is_a_fault_wherever_it_is() {
    for (value, place) in [
        (r#"{"a":1,"a":1}"#, "data.a"),
        (r#"{"a":1,"\u0061":1}"#, "data.a"),
        (r#"{"x":[{"y":{"a":1,"b":2,"a":3}}]}"#, "data.x[0].y.a"),
    ] {
        let violations_and_steps = faults("{}", value).unwrap();
        assert_eq!(
            violations_and_steps,
            [format!("{place}: key \"a\" is set twice, and decoders differ in which value they use")],
            "{value}"
        );
    }
    // Every other object of a list is another object.
    assert_eq!(faults("{}", r#"[{"a":1},{"a":1}]"#).unwrap(), [""; 0]);
}

#[test]
fn a_key_in_another_case_than_a_known_one_is_a_fault_in_every_branch() {
    let known = r#"{"properties":{"sharing":{},"mode":{}}}"#;
    for schema in [
        known.to_owned(),
        format!(r##"{{"$ref":"#/$defs/a","$defs":{{"a":{known}}}}}"##),
        format!(r#"{{"allOf":[{{}},{known}]}}"#),
        format!(r#"{{"anyOf":[{{}},{known}]}}"#),
        format!(r#"{{"oneOf":[{{"required":["x"]}},{known}]}}"#),
        format!(r#"{{"not":{{"allOf":[{known},{{"required":["x"]}}]}}}}"#),
        format!(r#"{{"if":{known}}}"#),
        format!(r#"{{"if":{{"required":["x"]}},"then":{known}}}"#),
        format!(r#"{{"if":{{}},"else":{known}}}"#),
        format!(r#"{{"dependentSchemas":{{"x":{known}}}}}"#),
    ] {
        for (key, name) in [("Sharing", "sharing"), ("\\u017fharing", "sharing"), ("MODE", "mode")] {
            let violations_and_steps = faults(&schema, &format!(r#"{{"{key}":1}}"#)).unwrap();
            assert_eq!(violations_and_steps.len(), 1, "{schema} {key}: {violations_and_steps:?}");
            assert!(
                violations_and_steps[0]
                    .ends_with(&format!("Go decoders read it as \"{name}\": write \"{name}\""))
            );
        }
        assert_eq!(faults(&schema, r#"{"sharing":1,"mode":1,"other":2}"#).unwrap(), [""; 0], "{schema}");
    }
}

#[test]
fn known_names_count_where_they_apply() {
    for below in [
        r#"{"properties":{"a":IT}}"#,
        r#"{"patternProperties":{"^a":IT}}"#,
        r#"{"additionalProperties":IT}"#,
        r#"{"unevaluatedProperties":IT}"#,
        r#"{"properties":{"a":{"items":IT}}}"#,
        r#"{"properties":{"a":{"prefixItems":[IT]}}}"#,
        r#"{"properties":{"a":{"contains":IT,"minContains":0}}}"#,
        r#"{"properties":{"a":{"unevaluatedItems":IT}}}"#,
    ] {
        let schema = below.replace("IT", r#"{"properties":{"mode":{}}}"#);
        let (open, close) =
            if below.contains("tems") || below.contains("ontains") { ("[", "]") } else { ("", "") };
        let violations_and_steps = faults(&schema, &format!(r#"{{"a":{open}{{"Mode":1}}{close}}}"#)).unwrap();
        assert_eq!(violations_and_steps.len(), 1, "{schema}: {violations_and_steps:?}");
        // One level up it is the key of a map.
        assert_eq!(faults(&schema, r#"{"Mode":1}"#).unwrap(), [""; 0], "{schema}");
    }
    // A name that is known as it is needs no other.
    let both = r#"{"properties":{"sharing":{},"Sharing":{}}}"#;
    assert_eq!(faults(both, r#"{"sharing":1,"Sharing":2}"#).unwrap(), [""; 0]);
    assert_eq!(faults(both, r#"{"sharing":1,"SHARING":2}"#).unwrap().len(), 1);
    // Keys that only patterns and `additionalProperties` speak about are those of a map.
    let map = r#"{"additionalProperties":{"type":"integer"},"patternProperties":{"^x":{}}}"#;
    assert_eq!(faults(map, r#"{"a":1,"A":2,"xa":3,"Xa":4}"#).unwrap(), [""; 0]);
    // What says which type it is, is known everywhere at the top.
    assert_eq!(faults("{}", r#"{"KIND":1,"\u212aind":2,"apiversion":3,"x":{"Kind":1}}"#).unwrap().len(), 3);
}

#[test]
fn looking_at_keys_costs_linear_steps() {
    let schema = Schema::compile(EXPRESSIONS).unwrap();
    let wide = |count: usize| {
        let keys: Vec<String> = (0..count).map(|i| format!(r#""k{i}":{{"op":"has","key":"x"}}"#)).collect();
        format!(r#"{{"filter":{{"op":"has","key":"a"}},{}}}"#, keys.join(","))
    };
    let (small, large) =
        (violations_and_steps(&schema, &wide(100)).1, violations_and_steps(&schema, &wide(1_000)).1);
    assert!(large <= small * 12, "{small} → {large}");
}
