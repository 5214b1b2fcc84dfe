//! Tests the results of schemas, and their cost.

mod comparison;
mod keys;

use super::{JsonCheck, Schema, SchemaBudget};
use tollgate_document::doc;
use tollgate_document::field::{Path, PathAudience};

fn violations_and_steps(schema: &Schema, value: &str) -> (Vec<String>, u64) {
    let document = doc::parse(value).unwrap();
    let mut found = Vec::new();
    let budget = SchemaBudget::default();
    JsonCheck::Contents(Some(schema)).check_value(
        document.root(),
        &Path::ROOT.field("data"),
        &budget,
        &mut |at, fault| {
            found.push(format!("{}: {}", at.owned().print(PathAudience::User), fault.text));
        },
    );
    (found, budget.steps_taken())
}

fn faults(schema: &str, value: &str) -> Result<Vec<String>, String> {
    Schema::compile(schema).map(|schema| violations_and_steps(&schema, value).0)
}

#[test]
fn faults_point_into_the_value() {
    let schema = r#"{"properties":{"a/b":{"items":{"type":"string"}},"n":{"maximum":3}},"required":["n"]}"#;
    assert_eq!(faults(schema, r#"{"n":2}"#).unwrap(), [""; 0]);
    assert_eq!(
        faults(schema, r#"{"a/b":["x",7]}"#).unwrap(),
        ["data: \"n\" is a required property", "data.a/b[1]: 7 is not of type \"string\""]
    );
}

#[test]
fn references_to_elsewhere_and_bad_schemas_are_refused() {
    for schema in [
        r#"{"$ref":"http://example.com/s.json"}"#,
        r#"{"$ref":"file:///etc/passwd"}"#,
        r#"{"type":"strin"}"#,
        r#"{"pattern":"(?=a)b"}"#,
        r#"{"$ref":"other.json"}"#,
    ] {
        assert!(Schema::compile(schema).is_err(), "{schema}");
    }
}

#[test]
fn a_schema_that_never_ends_is_refused() {
    for schema in [
        r##"{"$ref":"#"}"##,
        r##"{"allOf":[{"$ref":"#"}]}"##,
        r##"{"anyOf":[{"$ref":"#"},{"type":"string"}]}"##,
        r##"{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"}"##,
        r##"{"$defs":{"a":{"not":{"$ref":"#/$defs/a"}}},"items":{"$ref":"#/$defs/a"}}"##,
    ] {
        let told = Schema::compile(schema).unwrap_err();
        assert!(told.contains("refers to itself"), "{schema}: {told}");
    }
}

#[test]
fn what_nests_too_deep_is_a_fault_and_not_a_crash() {
    let schema = r##"{"items":{"$ref":"#"}}"##;
    for depth in [128, 3_000, 9_000] {
        let deep = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        let told = faults(schema, &deep).unwrap();
        assert_eq!(told, ["data: cannot be checked: it is nested deeper than 127 levels"], "{depth}");
    }
    let deep = format!("{}1{}", "[".repeat(127), "]".repeat(127));
    assert_eq!(faults(schema, &deep).unwrap(), [""; 0]);
    // A long way through the schema at each level.
    let chain: Vec<String> =
        (0..40).map(|i| format!(r##""c{i}":{{"allOf":[{{"$ref":"#/$defs/c{}"}}]}}"##, i + 1)).collect();
    let schema = format!(
        r##"{{"$ref":"#/$defs/c0","$defs":{{{},"c40":{{"items":{{"$ref":"#/$defs/c0"}}}}}}}}"##,
        chain.join(",")
    );
    let told = faults(&schema, &deep).unwrap();
    assert!(told[0].contains("cannot be checked"), "{told:?}");
    let shallow = format!("{}1{}", "[".repeat(5), "]".repeat(5));
    assert_eq!(faults(&schema, &shallow).unwrap(), [""; 0]);
    let schema = schema.replace(r#""c40":{"#, r#""c40":{"not":{"const":1},"#);
    assert_eq!(
        faults(&schema, &shallow).unwrap(),
        ["data[0][0][0][0][0]: {\"const\":1} is not allowed for 1"]
    );
}

#[test]
fn the_stack_suffices_for_what_is_evaluated() {
    for (length, levels) in [(2, 24), (4, 14), (11, 126), (4, 126)] {
        let chain: Vec<String> = (0..length)
            .map(|i| format!(r##""c{i}":{{"anyOf":[{{"$ref":"#/$defs/c{}"}},{{"not":{{}}}}]}}"##, i + 1))
            .collect();
        let schema = format!(
            r##"{{"$ref":"#/$defs/c0","$defs":{{{},"c{length}":{{"items":{{"$ref":"#/$defs/c0"}},"type":"array"}}}}}}"##,
            chain.join(",")
        );
        for leaf in ["1", "[]"] {
            let value = format!("{}{leaf}{}", "[".repeat(levels), "]".repeat(levels));
            let schema = schema.clone();
            // Half of what threads usually have.
            let run = std::thread::Builder::new()
                .stack_size(1 << 20)
                .spawn(move || faults(&schema, &value).unwrap());
            let told = run.unwrap().join().unwrap();
            assert_eq!(told.is_empty(), leaf == "[]" && length < 11, "{length} {levels} {told:?}");
        }
    }
}

#[test]
fn references_by_id_and_anchor_are_followed() {
    let schema = r##"{
      "$id": "https://example.com/s.json",
      "$defs": {"p": {"$id": "p.json", "$defs": {"q": {"maxLength": 1}}, "type": "string", "$ref": "#/$defs/q"},
                "q": {"$anchor": "q", "type": "integer"}},
      "properties": {"a": {"$ref": "p.json"}, "b": {"$ref": "#q"}, "c": {"$ref": "https://example.com/s.json#/$defs/q"}}
    }"##;
    assert_eq!(faults(schema, r#"{"a":"x","b":1,"c":2}"#).unwrap(), [""; 0]);
    assert_eq!(
        faults(schema, r#"{"a":"xy","b":"x","c":"y"}"#).unwrap(),
        [
            "data.a: \"xy\" is longer than 1 character",
            "data.b: \"x\" is not of type \"integer\"",
            "data.c: \"y\" is not of type \"integer\""
        ]
    );
    let dynamic = r##"{"$dynamicAnchor":"n","type":"object","properties":{"a":{"$dynamicRef":"#n"}}}"##;
    assert_eq!(faults(dynamic, r#"{"a":{"a":1}}"#).unwrap(), ["data.a.a: 1 is not of type \"object\""]);
    let several = schema.replace(r##""$ref": "#q""##, r##""$dynamicRef": "#q""##);
    assert!(Schema::compile(&several).unwrap_err().contains("$dynamicRef"));
    let seven = r##"{"$schema":"http://json-schema.org/draft-07/schema#","$id":"https://example.com/s.json",
        "definitions":{"p":{"$id":"p.json","type":"string"}},"properties":{"a":{"$ref":"p.json"}}}"##;
    assert_eq!(faults(seven, r#"{"a":1}"#).unwrap(), ["data.a: 1 is not of type \"string\""]);
    let four = r##"{"$schema":"http://json-schema.org/draft-04/schema#","id":"http://example.com/a","type":"object",
        "properties":{"a":{"$ref":"#/definitions/d","type":"string"}},"definitions":{"d":{"minimum":1,"exclusiveMinimum":true}}}"##;
    assert_eq!(faults(four, r#"{"a":1}"#).unwrap(), ["data.a: 1 is less than or equal to the minimum of 1"]);
}

#[test]
fn what_an_alternative_evaluates_is_no_fault() {
    let schema = r#"{"anyOf":[{"properties":{"a":true}}],"properties":{"b":{"type":"string"}},"unevaluatedProperties":false}"#;
    assert_eq!(faults(schema, r#"{"a":1,"b":"x"}"#).unwrap(), [""; 0]);
    assert_eq!(faults(schema, r#"{"a":1,"b":2}"#).unwrap(), ["data.b: 2 is not of type \"string\""]);
    assert_eq!(faults(schema, r#"{"c":1}"#).unwrap().len(), 1);
}

/// The nearest float64 of some of these numbers is the maximum.
#[test]
fn numbers_are_compared_exactly() {
    for (maximum, greater) in [
        ("9007199254740992", "9007199254740993"),
        ("-9007199254740993", "-9007199254740992"),
        ("18446744073709551614", "18446744073709551615"),
        ("-1", "-0.5"),
        ("2.5", "2.75"),
        ("1e300", "1.5e300"),
    ] {
        let schema = format!(r#"{{"maximum":{maximum}}}"#);
        assert_eq!(faults(&schema, maximum).unwrap(), [""; 0]);
        assert_eq!(faults(&schema, greater).unwrap().len(), 1, "{greater} is greater than {maximum}");
    }
}

#[test]
fn items_are_compared_by_value() {
    for (items, is_unique) in [
        ("1,1.0", false),
        ("0,-0.0", false),
        ("[1],[1.0]", false),
        (r#"{"a":1},{"a":1.0}"#, false),
        (r#"{"a":1,"b":2},{"b":2,"a":1}"#, false),
        (r#"{"a":[1.0,2],"b":2.0},{"b":2,"a":[1,2.0]}"#, false),
        ("1,1.5", true),
        ("[1],[1.5]", true),
        ("[1,2],[2.0,1]", true),
        (r#"{"a":1},{"b":1.0}"#, true),
        (r#"1,"1",true,[1],{"1":1}"#, true),
        // A number with an exponent beside one without, in items with a fraction elsewhere.
        (r#"{"n":123456789012345678901234,"y":0.5},{"n":1.23456789012345678901234e23,"y":0.5}"#, false),
    ] {
        let found = faults(r#"{"uniqueItems":true}"#, &format!("[{items}]")).unwrap();
        assert_eq!(found.is_empty(), is_unique, "{items}: {found:?}");
    }
}

#[test]
fn a_hostile_text_is_matched_in_linear_time() {
    let hostile = format!("\"{}\"", "a".repeat(50_000));
    assert_eq!(faults(r#"{"pattern":"^(a+)+$"}"#, &hostile).unwrap(), [""; 0]);
    let old = |rest: &str| format!(r#"{{"$schema":"http://json-schema.org/draft-07/schema#",{rest}}}"#);
    let regex = old(r#""format":"regex""#);
    for (text, is_regex) in [("^(?=a)b", true), ("(", false)] {
        assert_eq!(faults(&regex, &format!("\"{text}\"")).unwrap().is_empty(), is_regex, "{text}");
    }
    let groups = (0..60_000).map(|i| format!("(?<n{i}>a)")).collect::<Vec<_>>().concat();
    assert_eq!(faults(&regex, &format!("\"{groups}\"")).unwrap()[0], "data: value is not a \"regex\"");
}

#[test]
fn memory_does_not_depend_on_the_schema() {
    let json = format!("\"[{}1]\"", "1,".repeat(200_000));
    let media =
        r#"{"$schema":"http://json-schema.org/draft-07/schema#","contentMediaType":"application/json"}"#;
    let deep = |leaf: &str| format!("{}{leaf}{}", r#"{"a":"#.repeat(120), "}".repeat(120));
    let branch = r##"{"properties":{"a":{"$ref":"#"},"b":{"$ref":"#"}}}"##;
    let any = format!(r#"{{"type":"object","anyOf":[{branch},{branch},{branch}]}}"#);
    let many: Vec<String> = (0..3_000).map(|i| format!(r#""k{i}":1"#)).collect();
    let never = [r#"{"additionalProperties":false,"properties":{"a":{}}}"#; 20].join(",");
    for (schema, value, most) in [
        (media, json, 1 << 16),
        (&*any, deep("1"), 3 << 19),
        (&*any.replace("anyOf", "allOf"), deep("1"), 3 << 19),
        (&*format!(r#"{{"anyOf":[{never}]}}"#), format!("{{{}}}", many.join(",")), 1 << 20),
        (r#"{"unevaluatedItems":false}"#, format!("[{}1]", "1,".repeat(9_000)), 1 << 20),
    ] {
        let schema = Schema::compile(schema).unwrap();
        let document = doc::parse(&value).unwrap();
        let taken = allocation_counter::measure(|| {
            JsonCheck::Contents(Some(&schema)).check_value(
                document.root(),
                &Path::ROOT,
                &SchemaBudget::default(),
                &mut |_, _| {},
            );
        });
        assert!(taken.bytes_max < most, "{value:.40}: {} bytes", taken.bytes_max);
    }
}

/// Maximum number of steps for collecting errors.
const STEPS_OF_ERRORS: u64 = 10_000;

/// The schema of the report: and/or/not expressions.
const EXPRESSIONS: &str = r##"{
  "properties": {"filter": {"$ref": "#/$defs/expr"}},
  "$defs": {"expr": {"oneOf": [
    {"required": ["op", "args"], "properties": {"op": {"const": "and"}, "args": {"type": "array", "items": {"$ref": "#/$defs/expr"}}}},
    {"required": ["op", "args"], "properties": {"op": {"const": "or"}, "args": {"type": "array", "items": {"$ref": "#/$defs/expr"}}}},
    {"required": ["op", "args"], "properties": {"op": {"const": "not"}, "args": {"type": "array", "items": {"$ref": "#/$defs/expr"}}}},
    {"required": ["op", "key"], "properties": {"op": {"const": "has"}, "key": {"type": "string"}}}
  ]}}
}"##;

fn nested_and_expression_json(depth: usize, leaf: &str) -> String {
    let open = r#"{"op":"and","args":["#.repeat(depth);
    format!(r#"{{"filter":{open}{leaf}{}}}"#, "]}".repeat(depth))
}

#[test]
fn recursive_one_of_costs_few_steps_even_for_an_invalid_leaf() {
    let schema = Schema::compile(EXPRESSIONS).unwrap();
    for leaf in [r#"{"op":"has","key":1}"#, r#"{"op":"has","key":"a"}"#] {
        let cost = |depth| violations_and_steps(&schema, &nested_and_expression_json(depth, leaf)).1;
        for depth in [10, 14, 20, 30, 60] {
            assert!(
                cost(depth) <= STEPS_OF_ERRORS + 60 * (depth as u64 + 1),
                "{depth}: {} steps",
                cost(depth)
            );
        }
    }
    let (found, _) =
        violations_and_steps(&schema, &nested_and_expression_json(14, r#"{"op":"has","key":1}"#));
    assert_eq!(found.len(), 1, "one fault, not a tree of them");
    assert!(found[0].starts_with("data.filter: "), "{found:?}");
    assert!(
        found[0].ends_with("is not valid under exactly one of the schemas listed in the 'oneOf' keyword")
    );
    assert_eq!(
        violations_and_steps(&schema, &nested_and_expression_json(14, r#"{"op":"has","key":"a"}"#)).0,
        [""; 0]
    );
}

#[test]
fn ambiguous_alternatives_cost_few_steps() {
    let branch = r##"{"properties":{"a":{"$ref":"#"},"b":{"$ref":"#"}}}"##;
    for (what, end) in [("anyOf", "{}"), ("oneOf", "{}"), ("allOf", "{}")] {
        let schema = format!(r#"{{"type":"object","{what}":[{branch},{branch},{branch}]}}"#);
        let schema = Schema::compile(&schema).unwrap();
        for leaf in ["1", end] {
            let value = |depth: usize| format!("{}{leaf}{}", r#"{"a":"#.repeat(depth), "}".repeat(depth));
            for depth in [10, 20, 60] {
                let steps = violations_and_steps(&schema, &value(depth)).1;
                assert!(steps <= STEPS_OF_ERRORS + 60 * (depth as u64 + 1), "{what} {depth}: {steps} steps");
            }
        }
    }
}

#[test]
fn conditions_and_negations_cost_few_steps() {
    for schema in [
        r##"{"type":"object","if":{"properties":{"a":{"$ref":"#"}}},"then":{"properties":{"a":{"$ref":"#"}}},"else":{"properties":{"a":{"$ref":"#"}}}}"##,
        r##"{"type":"object","not":{"not":{"properties":{"a":{"$ref":"#"}}}},"properties":{"a":{"$ref":"#"}}}"##,
        r##"{"type":"object","dependentSchemas":{"a":{"properties":{"a":{"$ref":"#"}}}},"allOf":[{"properties":{"a":{"$ref":"#"}}}]}"##,
        r##"{"type":"object","unevaluatedProperties":false,"anyOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"a":{"$ref":"#"}}}]}"##,
        r##"{"type":"object","patternProperties":{"^a":{"$ref":"#"},"a$":{"$ref":"#"}},"properties":{"a":{"$ref":"#"}}}"##,
    ] {
        let compiled = Schema::compile(schema).unwrap();
        for leaf in ["1", "{}"] {
            for depth in [10, 20, 60] {
                let value = format!("{}{leaf}{}", r#"{"a":"#.repeat(depth), "}".repeat(depth));
                let steps = violations_and_steps(&compiled, &value).1;
                assert!(
                    steps <= STEPS_OF_ERRORS + 80 * (depth as u64 + 1),
                    "{schema} {depth}: {steps} steps"
                );
            }
        }
    }
}

#[test]
fn references_that_double_are_refused() {
    let doubling = |what: &str, levels: usize| {
        let defs: Vec<String> = (0..levels)
            .map(|i| {
                let next = format!(r##"{{"$ref":"#/$defs/a{}"}}"##, i + 1);
                format!(r##""a{i}":{{"{what}":[{next},{next}]}}"##)
            })
            .collect();
        let end = format!(r##""a{levels}":{{"type":"string"}}"##);
        Schema::compile(&format!(r##"{{"$ref":"#/$defs/a0","$defs":{{{},{end}}}}}"##, defs.join(",")))
    };
    for what in ["anyOf", "allOf", "oneOf"] {
        let refused = doubling(what, 60).unwrap_err();
        assert!(refused.ends_with("apply more than 10000 subschemas to one value"), "{refused}");
        let allowed = doubling(what, 10).unwrap();
        for value in ["1", "\"a\"", "[1]"] {
            let steps = violations_and_steps(&allowed, value).1;
            assert!(steps < 10_000, "{what} {value}: {steps} steps");
        }
    }
}

#[test]
fn what_takes_too_many_steps_is_a_fault() {
    // Nothing is shared here, so nothing can be remembered: 200 alternatives for each of many items.
    let branches: Vec<String> = (0..200).map(|i| format!(r#"{{"const":{i}}}"#)).collect();
    let schema = format!(r#"{{"items":{{"anyOf":[{}]}}}}"#, branches.join(","));
    let compiled = Schema::compile(&schema).unwrap();
    let list = |count: usize| format!("[{}999]", "199,".repeat(count));
    assert_eq!(violations_and_steps(&compiled, &list(10)).0.len(), 1);
    let (found, steps) = violations_and_steps(&compiled, &list(100_000));
    assert_eq!(found, ["data: cannot be checked: evaluating its schema exceeds the step limit"]);
    assert!(steps < 5_000_000, "{steps}");
}

#[test]
fn cost_grows_with_the_data_and_no_faster() {
    for (schema, item) in [
        (
            r#"{"items":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}}"#,
            r#"{"a":"x"}"#,
        ),
        (r#"{"uniqueItems":true}"#, r#"{"a":"x"}"#),
        (r#"{"contains":{"const":1}}"#, "2"),
        (r#"{"items":{"pattern":"^a*$"}}"#, "\"aaaa\""),
        (r#"{"items":{"enum":["a","b"]}}"#, "\"c\""),
        (r#"{"items":{"multipleOf":0.5}}"#, "2.5"),
    ] {
        let compiled = Schema::compile(schema).unwrap();
        let cost = |count: usize| {
            violations_and_steps(&compiled, &format!("[{item}{}]", format!(",{item}").repeat(count))).1
        };
        let (small, large) = (cost(100), cost(1_000));
        assert!(large <= small * 12, "{schema}: {small} → {large}");
    }
}

#[test]
fn a_budget_is_for_all_values_of_an_object() {
    let schema = Schema::compile(r#"{"items":{"type":"string"}}"#).unwrap();
    let value = format!("[{}\"\"]", "\"\",".repeat(50_000));
    let document = doc::parse(&value).unwrap();
    let budget = SchemaBudget::default();
    let mut texts = Vec::new();
    for _ in 0..200 {
        JsonCheck::Contents(Some(&schema)).check_value(
            document.root(),
            &Path::ROOT,
            &budget,
            &mut |_, fault| texts.push(fault.text),
        );
    }
    assert!(texts.last().unwrap().contains("exceeds the step limit"), "{:?}", texts.last());
    assert!(budget.steps_taken() < 5_000_000);
}

#[test]
fn faults_of_large_values_stay_small() {
    let large = format!(r#"{{"x":"{}"}}"#, "y".repeat(200_000));
    let required: Vec<String> = (0..50).map(|i| format!("\"r{i}\"")).collect();
    let schema = Schema::compile(&format!(r#"{{"required":[{}]}}"#, required.join(","))).unwrap();
    let document = doc::parse(&large).unwrap();
    let mut bytes = 0;
    JsonCheck::Contents(Some(&schema)).check_value(
        document.root(),
        &Path::ROOT,
        &SchemaBudget::default(),
        &mut |_, fault| {
            bytes += fault.value.map_or(0, |value| value.len()) + fault.text.len();
        },
    );
    assert!(bytes < 2 * large.len(), "{bytes}");
    let many: Vec<String> = (0..1_000).map(|i| format!(r#""k{i}":1"#)).collect();
    let told = faults(r#"{"additionalProperties":false}"#, &format!("{{{}}}", many.join(","))).unwrap();
    assert_eq!(told.len(), 1);
    assert!(told[0].len() < 400 && told[0].ends_with("and more were unexpected)"), "{told:?}");
}
