//! Tests the results of expressions, and that no expression can stall.
#![expect(clippy::disallowed_methods, reason = "measures how soon a hostile expression is stopped")]
#![expect(clippy::disallowed_macros, reason = "numbers for people, with --nocapture")]

mod costs;

use std::time::{Duration, Instant};

use super::{Program, Variables};
use tollgate_cel::ExpressionPurpose;
use tollgate_document::doc::{self, Value};

const OBJECT: &str = r#"{"metadata":{"name":"c","labels":{"a":"b"}},"spec":{"count":3,"share":0.5,"on":true,"none":null,
"requests":[{"name":"x","tolerations":[{"key":"k/1"},{"key":"k/2"}]},{"name":"y"}],"names":["x","y"],"numbers":[1,2]}}"#;

/// Compiles a condition. Returns the first error if it is invalid.
pub(super) fn compiled(expression: &str) -> Result<Program, String> {
    let compiled = Program::compile(expression, ExpressionPurpose::Condition);
    compiled.map(|(program, _)| program).map_err(|faults| faults[0].message.clone())
}

fn holds(expression: &str, object: &str) -> Result<bool, String> {
    let program = compiled(expression)?;
    let document = doc::parse(object).unwrap();
    let absent = Value::absent();
    program.evaluate_bool(&Variables::new(document.root(), absent, absent, absent))
}

#[test]
fn json_is_what_it_looks_like() {
    let table = [
        "object.spec.count + 1 == 4",
        "type(object.spec.count) == int && type(object.spec.share) == double",
        "object.spec.count == 3.0 && object.spec.share < object.spec.count",
        "object.spec.on && object.spec.none == null && oldObject == null",
        "has(object.spec.count) && !has(object.spec.nothing)",
        // As in an API server: whatever has no fields does not have this one.
        "!has(oldObject.spec) && !has(object.spec.none.a) && !has(object.spec.count.a) && !has(object.metadata.name.a)",
        "object.metadata.labels['a'] == 'b' && 'a' in object.metadata.labels && !('b' in object.metadata.labels)",
        "object.spec.names == ['x', 'y'] && ['x', 'y'] == object.spec.names",
        "object.spec.numbers == [1, 2] && [1, 2] == object.spec.numbers && object.spec.numbers != [2, 1]",
        "object.metadata.labels == {'a': 'b'} && {'a': 'b'} == object.metadata.labels",
        "object.spec == object.spec && object.spec != object.metadata",
        // A list or a map beside another type: once an endless recursion that ended the process.
        "object.spec != null && null != object.spec && object.spec.names != null && object.spec != 'x'",
        "object.spec.names != object.spec && object.spec != object.spec.names && !(object.spec in [1, null])",
        "[object.spec] != [null] && {'a': object.spec} != {'a': 1} && object.spec.requests[0] != 1",
        "object.spec.requests == object.spec.requests.filter(r, true)",
        "'x' in object.spec.names && !('z' in object.spec.names) && 'x' in ['x', 'z']",
        "object.spec.requests.all(r, r.name in object.spec.names)",
        "object.spec.requests.exists(r, has(r.tolerations) && r.tolerations.exists(t, t.key.startsWith('k/')))",
        "object.spec.requests.exists_one(r, has(r.tolerations))",
        "object.spec.requests.map(r, r.name) == object.spec.names",
        "object.spec.requests.filter(r, r.name == 'x').map(r, size(r.tolerations)) == [2]",
        "object.spec.requests.map(r, r.name == 'y', r.name) == ['y']",
        "object.metadata.labels.all(key, key == 'a')",
        "(object.spec.names + ['z']).size() == 3 && (['z'] + object.spec.names).size() == 3",
        "object.spec.names.join('-') == 'x-y' && object.spec.names.join() == 'xy'",
        "'a.b.c'.replace('.', '/') == 'a/b/c' && 'a,b'.split(',') == ['a', 'b']",
        "'a.b.c'.replace('.', '/', 1) == 'a/b.c' && 'a'.replace('a', 'b', 0) == 'a' && 'aa'.replace('a', 'b', -1) == 'bb'",
        "object.metadata.name.matches('^[a-c]$') && matches('abc', 'b') && !'abc'.matches('^b')",
        "object.spec.?nothing.orValue(7) == 7 && object.?spec.count.orValue(7) == 3",
        "object.spec.requests[1].name == 'y' && size('héllo') == 5",
        "object.spec.nothing == 1 || true",
        "object.spec.names[1.0] == 'y' && ['a', 'b'][dyn(1.0)] == 'b' && object.spec.names[?7].orValue('z') == 'z'",
        "object.spec.?none.a.orValue('x') == 'x' && object.?spec.count.a.orValue('x') == 'x'",
        "[optional.of(object.spec)].all(o, o.requests[1].name.value() == 'y' && !o['nothing'].hasValue())",
        "object.?spec.requests[0].tolerations[1].key.value() == 'k/2' && object[?'spec'].names[0] == optional.of('x')",
        "object.spec.requests.all(net, net.name != '') && .object.spec.count == 3",
        "'ABC'.lowerAscii() == 'abc' && ' a '.trim() == 'a' && 'abc'.substring(1) == 'bc'",
    ];
    for expression in table {
        assert_eq!(holds(expression, OBJECT), Ok(true), "{expression}");
    }
}

#[test]
fn what_cannot_be_evaluated_says_why() {
    let table = [
        ("object.spec.nothing == 1", "no such key: nothing"),
        ("1 / (object.spec.count - 3) == 1", "division by zero"),
        ("1 % (object.spec.count - 3) == 1", "modulus by zero"),
        ("9223372036854775807 + object.spec.count == 1", "integer overflow"),
        ("object.spec.count", "returns int, not true or false"),
        ("object.spec.names[7] == 'x'", "index out of bounds: 7"),
        ("object.spec.count + 'a' == 'a'", "no such overload"),
        ("'a'.matches(object.metadata.name + '(')", "is not a valid regular expression"),
        ("has(object.spec.names.a)", "a list has no fields"),
        ("has(object.?spec.names.a)", "a list has no fields"),
        ("object.spec.names[0.5] == 'x'", "no matching overload"),
        ("object.spec.names[?'a'].orValue(9) == 9", "want 'int'"),
        ("['x'][?dyn('a')].orValue('y') == 'y'", "want 'int'"),
        ("object.spec.names.?a.orValue(9) == 9", "want 'int'"),
        ("object.?spec.names.a.orValue(9) == 9", "want 'int'"),
        ("object.?spec.names['a'].orValue(9) == 9", "want 'int'"),
        ("[optional.of(object.spec.names)].all(o, o.a.orValue(9) == 9)", "want 'int'"),
        ("object.metadata.labels[?object.spec.names].orValue(9) == 9", "no matching overload"),
        ("object.metadata.name.a == 'x' || object.spec.?count.a == 'x'", "no matching overload"),
        ("object.spec.names.sum() == 'xy'", "no such overload"),
        // These are refused when the policy is loaded, so that they do not deny every request.
        ("object.metadata.labels.all(k, v, v == 'b')", "`all` with two variables is not supported"),
        ("object.metadata.labels.transformList(k, v, k + v) == []", "`transformList` with two variables"),
        (
            "type(duration('1s')) == google.protobuf.Duration",
            "the type name `google.protobuf.Duration` is not supported",
        ),
        ("type(object) == net.IP", "the type name `net.IP` is not supported"),
        ("cel.bind(x, 1, x == 1)", "`cel.bind` is not supported"),
        (
            "timestamp('2026-01-01T00:00:00Z').getHours('Europe/Berlin') == 1",
            "time zone \"Europe/Berlin\" is not supported",
        ),
    ];
    for (expression, reason) in table {
        let error = holds(expression, OBJECT).unwrap_err();
        assert!(error.contains(reason), "{expression}: {error}");
    }
}

/// However many patterns a policy has, each is compiled once.
#[test]
fn literal_patterns_are_compiled_with_their_expression() {
    let pattern = |number| format!("'a'.matches('^[b-y]{{1,99}}{number}$')");
    let conditions = |first: u32| (first..first + 60).map(pattern).collect::<Vec<_>>().join(" || ");
    let programs: Vec<Program> = (0..25).map(|number| compiled(&conditions(60 * number)).unwrap()).collect();
    let absent = Value::absent();
    let evaluate_all = || {
        for program in &programs {
            let variables = Variables::new(absent, absent, absent, absent);
            assert_eq!(program.evaluate_bool(&variables), Ok(false));
        }
    };
    // What a search needs is allocated the first time.
    evaluate_all();
    let bytes = allocation_counter::measure(evaluate_all).bytes_total;
    assert!(bytes < 4 << 20, "{bytes}");
}

/// 10,000 numbers, 40,000 labels and long texts, as a hostile object may have.
fn large_object_json() -> String {
    let numbers: Vec<String> = (0..10_000).map(|number: u32| number.to_string()).collect();
    let labels: Vec<String> = (0..40_000).rev().map(|number: u32| format!(r#""{number}":"""#)).collect();
    let letters: String = (0..200_000_u64).map(|at| if at * at % 7 < 3 { 'a' } else { 'b' }).collect();
    format!(
        r#"{{"l":[{}],"m":{{{}}},"s":"{}","r":"{letters}"}}"#,
        numbers.join(","),
        labels.join(","),
        "a".repeat(200_000)
    )
}

#[test]
fn no_expression_can_stall() {
    let object = large_object_json();
    let doubling = format!("['aaaaaaaa']{}.size() == 1", ".map(x, x + x)".repeat(40));
    let lists = format!("[object.l]{}.size() == 1", ".map(x, x + x)".repeat(40));
    let literal = vec!["1"; 100].join(",");
    let nested =
        format!("[{literal}].all(a, [{literal}].all(b, [{literal}].all(c, [{literal}].all(d, d == 1))))");
    let table = [
        "object.l.all(a, object.l.all(b, object.l.all(c, a + b + c >= 0)))",
        "object.l.all(a, object.l.all(b, true))",
        "object.l.all(a, object.l.exists(b, b > a || true)) || object.l.map(a, object.l.map(b, b)).size() > 0",
        "object.l.map(a, object.l.map(b, object.l.map(c, c))).size() > 0",
        "object.l.filter(a, object.l.filter(b, object.l.filter(c, false).size() > 0).size() > 0).size() == 0",
        "object.l.exists_one(a, object.l.exists_one(b, b == a))",
        "object.l.all(a, object.l == object.l) || true",
        "object.l.all(a, object == object)",
        "object.l.all(a, a in object.l)",
        "object.l.all(a, object.s.contains('b') || true)",
        "object.l.all(a, object.s.split('').size() > 0)",
        "object.l.all(a, object.s.matches('(a+)+$'))",
        "object.s.matches('((a{0,50}){0,50})b') || object.s.matches('(a|aa)+$')",
        "object.s.replace('a', object.s).size() > 0",
        "object.l.map(a, object.s).join(object.s).size() > 0",
        "object.l.map(a, object.s + object.s).size() > 0",
        "object.l.all(a, object.l.sum() > 0)",
        "object.l.all(a, object.l.isSorted() && object.l.max() > object.l.min())",
        "object.l.all(a, object.l.indexOf(-1) == object.l.lastIndexOf(-1))",
        "object.l.map(a, object.s).sum().size() > 0",
        "object.l.map(a, object.l).sum().size() > 0",
        "sets.equivalent(object.l, object.l) && sets.intersects(object.l, object.l.map(a, a + 20000))",
        "object.l.all(a, sets.contains(object.l, [a, -1]))",
        "object.s.findAll('.*[^a]|a').size() > 0",
        "object.s.findAll('').size() > 0",
        "object.l.all(a, object.s.find('(a+)+b') == '')",
        "object.l.all(a, 'x'.find('(y{50}){50}' + string(a)) == '')",
        "object.l.all(a, '%s %s'.format([object.l, object]).size() > 0)",
        "object.l.all(a, '%.100f'.format([1e300]).size() > 0)",
        "object.l.all(a, object.l.all(b, quantity('1e-1000').add(quantity('1e1000')).sub(1).sign() == 1))",
        "object.l.all(a, object.l.all(b, quantity('1e1000000000').asApproximateFloat() > 1.0))",
        "object.l.all(a, object.l.all(b, timestamp('2026-01-01T00:00:00Z') + duration('1h') > timestamp(a)))",
        "object.l.all(a, object.l.all(b, ip('::1') == ip('::2') || semver('1.2.3').isLessThan(semver('1.2.4'))))",
        "object.l.all(a, isQuantity(object.s) || isSemver(object.s) || isIP(object.s) || isCIDR(object.s))",
        "object.l.all(a, strings.quote(object.s).size() > 0)",
        "object.m == oldObject.m && oldObject.m != object",
        "object.m.all(a, a in oldObject.m && oldObject.m[a] == object.m[a])",
        "object.l.all(a, has(object.m.x) || 'x' in object.m || object.m.?x.hasValue() || true)",
        "object.l.all(a, object.m.size() > 0)",
        "object.l.all(a, 1 == object.s || true)",
        "object.s.indexOf(object.s.substring(100000) + 'b') == -1",
        "object.s.lastIndexOf('b' + object.s.substring(100000)) == -1",
        "object.r.matches('[ab]*a[ab]{200}c')",
        "object.r.matches('(\\\\pL{1,5}){1,4}c') || object.l.all(a, 'a'.matches('(?i)\\\\pL{9}' + string(a)))",
        "object.r.matches('(.{0,100}a){5}c') || object.r.matches('((a{0,50}){0,50})c')",
        "[object.s + 'x'].map(big, object.l.map(a, big)).size() > 0",
        doubling.as_str(),
        lists.as_str(),
        nested.as_str(),
    ];
    for expression in table {
        let program = match compiled(expression) {
            Ok(program) => program,
            Err(refused) => {
                assert!(!refused.is_empty());
                continue;
            }
        };
        let document = doc::parse(&object).unwrap();
        let absent = Value::absent();
        let variables = Variables::new(document.root(), document.root(), absent, absent);
        let before = Instant::now();
        let outcome = program.evaluate_bool(&variables);
        let took = before.elapsed();
        println!("{took:?} {outcome:?} {expression:.80}");
        // Some ten milliseconds on an idle machine; unlimited, most of these would take minutes.
        assert!(took < Duration::from_secs(3), "{expression} took {took:?}");
    }
}

#[test]
fn an_exhausted_budget_is_never_a_verdict() {
    let object = large_object_json();
    for expression in [
        "object.l.all(a, object.l.all(b, object.l.all(c, true))) || true",
        "true || object.l.all(a, object.l.all(b, object.l.all(c, true)))",
        "!object.l.exists(a, object.l.exists(b, object.l.exists(c, false)))",
    ] {
        let outcome = holds(expression, &object);
        let short_circuits = expression.starts_with("true");
        assert_eq!(outcome.is_ok(), short_circuits, "{expression}: {outcome:?}");
    }
    assert_eq!(holds("object.l.all(a, a >= 0)", &object), Ok(true), "10,000 turns of a plain loop are fine");
}

#[test]
fn deep_objects_are_refused_and_not_walked() {
    let deep = format!("{}1{}", "[".repeat(5_000), "]".repeat(5_000));
    assert!(holds("object == object", &deep).unwrap_err().contains("nested deeper"));
}

/// Damaged expressions are refused or evaluated, never more than that.
#[test]
fn damaged_expressions_never_panic() {
    let seeds = [
        "object.spec.requests.exists(r, has(r.tolerations) && r.tolerations.exists(t, t.key.startsWith('k/')))",
        "object.spec.requests.map(r, r.name == 'y', r.name) == ['y'] ? {'a': 1}['a'] > 0 : object.spec.?n.orValue(7) == 7",
        "-object.spec.count + 2 * 3 % 4 - 1u == 0 || 'a\\n'.matches(r'a.*') && !(b'x' == b'y')",
    ];
    let bits = [
        "",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ".",
        ",",
        "?",
        ":",
        "'",
        "\"",
        "\\",
        "!",
        "-",
        "+",
        "&&",
        "1e9",
        "null",
        "é",
        "optional.none()",
        "x",
        "[0]",
        ".all(q, q)",
        "9223372036854775807",
        "0x",
        "\n",
    ];
    let mut seed = 7u64;
    let mut roll = |sides: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).unwrap() % sides
    };
    let (mut refused, mut evaluated) = (0, 0);
    for round in 0..3_000 {
        let letters: Vec<char> = seeds[round % seeds.len()].chars().collect();
        let (at, gone) = (roll(letters.len()), roll(6));
        let mut damaged: String = letters[..at].iter().collect();
        damaged.push_str(bits[roll(bits.len())]);
        damaged.extend(&letters[(at + gone).min(letters.len())..]);
        if let Err(faults) = Program::compile(&damaged, ExpressionPurpose::Condition) {
            assert!(faults.iter().all(|fault| fault.at <= damaged.len()));
            refused += 1;
        } else {
            _ = holds(&damaged, OBJECT);
            evaluated += 1;
        }
    }
    assert!(refused > 100 && evaluated > 100, "{refused} {evaluated}");
}
