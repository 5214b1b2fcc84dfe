//! Compares verdicts and messages with those of the `jsonschema` crate without limits, for random schemas and values.
#![expect(clippy::disallowed_types, reason = "the other side of the comparison")]

use super::super::Schema;
use super::violations_and_steps;

/// A small generator, the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn pick<'t>(&mut self, from: &[&'t str]) -> &'t str {
        from[usize::try_from(self.roll(from.len() as u64)).unwrap()]
    }

    fn value(&mut self, depth: u64) -> String {
        match self.roll(if depth == 0 { 6 } else { 10 }) {
            0 => "null".to_owned(),
            1 => self.pick(&["true", "false"]).to_owned(),
            2 => self.pick(&["0", "1", "1.0", "2", "-3", "2.5", "10"]).to_owned(),
            3..6 => self.pick(&["\"\"", "\"a\"", "\"ab\"", "\"2020-01-01\"", "\"a.b\""]).to_owned(),
            6..8 => {
                let items: Vec<String> = (0..self.roll(4)).map(|_| self.value(depth - 1)).collect();
                format!("[{}]", items.join(","))
            }
            _ => {
                let names = ["a", "ab", "b", "c"];
                let mut members = Vec::new();
                for name in names {
                    if self.roll(2) == 0 {
                        members.push(format!("\"{name}\":{}", self.value(depth - 1)));
                    }
                }
                format!("{{{}}}", members.join(","))
            }
        }
    }

    fn schema(&mut self, depth: u64, draft: &str) -> String {
        if depth == 0 || self.roll(8) == 0 {
            return match self.roll(10) {
                0 if draft != "4" => self.pick(&["true", "false"]).to_owned(),
                1 => "{}".to_owned(),
                2 | 3 => format!("{{\"$ref\":\"#/definitions/{}\"}}", self.pick(&["x", "y"])),
                _ => format!("{{{}}}", self.assertion(draft)),
            };
        }
        let mut keywords: Vec<String> = Vec::new();
        let new = draft == "2020" || draft == "2019";
        for _ in 0..=self.roll(3) {
            let sub = |dice: &mut Dice| dice.schema(depth - 1, draft);
            let list = |dice: &mut Dice| {
                let all: Vec<String> = (0..=dice.roll(2)).map(|_| dice.schema(depth - 1, draft)).collect();
                format!("[{}]", all.join(","))
            };
            let keyword = match self.roll(20) {
                0 => format!("\"allOf\":{}", list(self)),
                1 => format!("\"anyOf\":{}", list(self)),
                2 => format!("\"oneOf\":{}", list(self)),
                3 => format!("\"not\":{}", sub(self)),
                4 => format!("\"if\":{},\"then\":{},\"else\":{}", sub(self), sub(self), sub(self)),
                5 | 6 => format!("\"properties\":{{\"a\":{},\"b\":{}}}", sub(self), sub(self)),
                7 => format!("\"patternProperties\":{{\"^a\":{}}}", sub(self)),
                8 => format!("\"additionalProperties\":{}", sub(self)),
                9 if draft != "4" => format!("\"propertyNames\":{}", sub(self)),
                10 if draft == "2020" => format!("\"prefixItems\":{}", list(self)),
                10 => format!("\"items\":{},\"additionalItems\":{}", list(self), sub(self)),
                11 => format!("\"items\":{}", sub(self)),
                12 if draft != "4" => format!("\"contains\":{}", sub(self)),
                13 if new => {
                    format!("\"contains\":{},\"minContains\":{},\"maxContains\":2", sub(self), self.roll(3))
                }
                14 if new => format!("\"dependentSchemas\":{{\"a\":{}}}", sub(self)),
                14 => format!("\"dependencies\":{{\"a\":{},\"b\":[\"c\"]}}", sub(self)),
                15 if new => format!("\"unevaluatedProperties\":{}", sub(self)),
                16 if new => format!("\"unevaluatedItems\":{}", sub(self)),
                17 => format!("\"$ref\":\"#/definitions/{}\"", self.pick(&["x", "y"])),
                _ => self.assertion(draft),
            };
            let name = keyword.split(':').next().unwrap().to_owned();
            if !keywords.iter().any(|other| other.contains(&name)) {
                keywords.push(keyword);
            }
        }
        format!("{{{}}}", keywords.join(","))
    }

    fn assertion(&mut self, draft: &str) -> String {
        let all = [
            r#""type":"string""#,
            r#""type":"object""#,
            r#""type":["array","null"]"#,
            r#""type":"integer""#,
            r#""enum":[1,"a",null,[],{"a":1}]"#,
            r#""minimum":1"#,
            r#""maximum":2"#,
            r#""multipleOf":0.5"#,
            r#""minLength":1"#,
            r#""maxLength":1"#,
            r#""pattern":"^a""#,
            r#""minItems":1"#,
            r#""maxItems":2"#,
            r#""uniqueItems":true"#,
            r#""required":["a"]"#,
            r#""maxProperties":1"#,
            r#""format":"date""#,
            r#""const":1"#,
            r#""exclusiveMinimum":1"#,
        ];
        let most = if draft == "4" { all.len() - 2 } else { all.len() };
        self.pick(&all[..most]).to_owned()
    }
}

#[test]
fn verdicts_and_texts_are_those_of_the_crate() {
    let mut dice = Dice(7);
    let (mut checked, mut invalid) = (0, 0);
    for round in 0..1_200 {
        let (draft, uri) = [
            ("4", "http://json-schema.org/draft-04/schema#"),
            ("7", "http://json-schema.org/draft-07/schema#"),
            ("2019", "https://json-schema.org/draft/2019-09/schema"),
            ("2020", "https://json-schema.org/draft/2020-12/schema"),
        ][round % 4];
        let (x, y, root) = (dice.schema(1, draft), dice.schema(2, draft), dice.schema(3, draft));
        let Some(rest) = root.strip_prefix('{').filter(|rest| *rest != "}") else { continue };
        let text = format!("{{\"$schema\":\"{uri}\",\"definitions\":{{\"x\":{x},\"y\":{y}}},{rest}");
        let Ok(ours) = Schema::compile(&text) else { continue };
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        let theirs = jsonschema::options()
            .with_pattern_options(jsonschema::PatternOptions::regex())
            .build(&json)
            .unwrap();
        for _ in 0..8 {
            let value = dice.value(3);
            let instance: serde_json::Value = serde_json::from_str(&value).unwrap();
            let (found, _) = violations_and_steps(&ours, &value);
            checked += 1;
            assert_eq!(found.is_empty(), theirs.is_valid(&instance), "{text}\n{value}\n{found:?}");
            if found.is_empty() {
                continue;
            }
            invalid += 1;
            let known = theirs.iter_errors(&instance).map(|error| error.to_string());
            // `oneOf` has one text, unless branches matter to `unevaluated…`.
            let exactly = "is not valid under exactly one of the schemas listed in the 'oneOf'";
            let known: Vec<String> = known
                .flat_map(|text| {
                    let ours = text.replace(
                        "is valid under more than one of the schemas listed in the 'oneOf'",
                        exactly,
                    );
                    let ours =
                        ours.replace("is not valid under any of the schemas listed in the 'oneOf'", exactly);
                    [text, ours]
                })
                .collect();
            // Where there are no `properties`, the crate tells of the first member only, as of any `false`.
            let is_false = |known: &String| known.starts_with("False schema does not allow");
            let is_known = |found: &String| {
                known.iter().any(|known| found.ends_with(known.as_str()))
                    || (found.contains(": Additional properties are") && known.iter().any(is_false))
            };
            assert!(found.iter().all(is_known), "{text}\n{value}\n{found:?}\n{known:?}");
        }
    }
    assert!(checked > 5_000 && invalid > 1_500, "{checked} {invalid}");
}
