//! What every operator and function charges, held against what it reads: with ten times as much to read, ten times the
//! steps, and no bytes that were not charged for. Counted, not timed.

use super::super::functions::REPLACED_OPERATORS;
use super::super::{Variables, meter};
use super::compiled;
use crate::rules::FindingLevel;
use tollgate_document::doc::{self, Value};

/// How the cost of a call grows with the size of its lists, maps and strings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Work {
    /// The cost does not depend on the size.
    Fixed,
    /// The cost is linear: one step for each item, or for eight bytes of a string.
    Linear,
}

use Work::{Fixed, Linear};

/// `l`, `t` and `m` are a list of numbers, a list of texts and a map with `n` entries, `s` a text of `8 n` letters, `b`
/// one that begins like it, `d` a map in maps in lists. `oldObject` has the same in another order. `i` is a number.
const TABLE: &[(Work, &str)] = &[
    // Equality and order.
    (Linear, "object.l == oldObject.l"),
    (Linear, "object.m == oldObject.m"),
    (Linear, "!(object.m != oldObject.m)"),
    (Linear, "object.d == oldObject.d"),
    (Linear, "[object.m, 1] == [oldObject.m, 1]"),
    (Linear, "{'a': object.m} == {'a': oldObject.m}"),
    (Linear, "optional.of(object.m) == optional.of(oldObject.m)"),
    (Linear, "optional.of(object.s) == optional.of(oldObject.s)"),
    (Linear, "object.s == oldObject.s"),
    (Linear, "bytes(object.s) == bytes(oldObject.s)"),
    (Linear, "object.s <= oldObject.s && object.s >= oldObject.s"),
    (Linear, "!(object.s < oldObject.s) && !(object.s > oldObject.s)"),
    (Fixed, "i != object.s && object.s != i"),
    (Linear, "optional.of(i) != optional.of(object.s)"),
    (Fixed, "object.m != i && i != object.l"),
    // An error has a copy of both operands.
    (Linear, "1 < object.s || true"),
    (Linear, "1 + object.s == 1 || true"),
    (Linear, "object.s - 1 == 1 || true"),
    (Linear, "object.s * object.s == 1 || true"),
    (Linear, "i / object.s == 1 || true"),
    (Linear, "i % object.s == 1 || true"),
    (Fixed, "-object.s == '' || true"),
    (Fixed, "!object.s || true"),
    // Lookups.
    (Linear, "!(-1 in object.l)"),
    (Linear, "!('none' in object.t)"),
    (Linear, "!(object.m in [1, {}, oldObject.t])"),
    (Fixed, "'k1' in object.m && !('none' in object.m)"),
    (Fixed, "object.m.k1 == 'v' && object.m['k2'] == 'v' && has(object.m.k3) && !has(object.m.none)"),
    (Fixed, "object.m.?k1.hasValue() && object.m[?'k2'].hasValue() && !object.m.?none.hasValue()"),
    (Fixed, "object.l[1] == 1 && object.l[?7].hasValue() && !object.l[?-1].hasValue()"),
    (Linear, "!(object.s in object.m)"),
    (Linear, "object.m[object.s] == 'v' || true"),
    (Linear, "!object.m[?object.s].hasValue()"),
    (Linear, "{'a': 1}[object.s] == 1 || true"),
    (Linear, "{object.s: 1}.size() == 1"),
    // What is made, and copied.
    (Linear, "(object.l + object.l).size() > 0"),
    (Linear, "(['a'] + object.t).size() > 0"),
    (Linear, "object.s + object.s != ''"),
    (Linear, "[object.s + 'x'].all(big, [big, big].size() == 2)"),
    (Linear, "[object.s + 'x'].all(big, {'a': big}.size() == 1)"),
    (Linear, "[[object.s + 'x']].all(list, list.all(big, true))"),
    (Linear, "[[object.s + 'x', object]].all(list, has(list[?0].x) || true)"),
    (Linear, "[{'a': object.s + 'x', 'b': object}].all(map, has(map.?a.x) || true)"),
    (Linear, "[{object.s + 'x': 1}].all(map, map.all(key, true))"),
    (Linear, "[optional.of(object.s + 'x')].all(big, [big].size() == 1)"),
    (Linear, "[optional.of(object.s + 'x')].all(big, big.optMap(v, v).hasValue())"),
    (Linear, "[optional.of(object.s + 'x')].all(big, optional.of(1).optFlatMap(v, big).hasValue())"),
    (Linear, "[bytes(object.s + 'x')].all(big, [big].size() == 1)"),
    (Fixed, "[object.s, object.s].all(text, [text, text].size() == 2)"),
    (Fixed, "[object.l, object.m, object].all(it, [it, {'a': it}, [it]].size() == 3)"),
    // Loops.
    (Linear, "object.l.all(a, true)"),
    (Linear, "!object.l.exists(a, false)"),
    (Linear, "object.l.exists_one(a, a == 1)"),
    (Linear, "object.l.map(a, a).size() > 0"),
    (Linear, "object.l.map(a, a > 1, a).size() > 0"),
    (Linear, "object.t.filter(a, true).size() > 0"),
    (Linear, "object.m.all(key, object.m[key] == 'v')"),
    (Linear, "object.m.filter(key, key in oldObject.m).size() > 0"),
    (Linear, "object.l.filter(a, false).size() == 0"),
    // The standard library.
    (Linear, "object.s.size() > 0 && size(object.l) > 0 && object.m.size() > 0"),
    (Linear, "!object.s.contains(object.b)"),
    (Linear, "!object.s.startsWith(object.b) && !object.s.endsWith(object.b)"),
    (Linear, "!object.s.matches('^[a-z]*x$')"),
    (Linear, "!object.s.matches('[ab]*a[ab]{9}c') && !matches(object.s, 'x')"),
    (Linear, "int(object.s) == 1 || true"),
    (Linear, "uint(object.s) == 1u || true"),
    (Linear, "double(object.s) == 1.0 || true"),
    (Linear, "bool(object.s) || true"),
    (Linear, "string(bytes(object.s)) != ''"),
    (Linear, "string(object.s) != ''"),
    (Linear, "dyn(object.s) != '' && type(object.s) == string"),
    (
        Fixed,
        "string(i) + string(1.5) + string(true) != '' && int(1.0) == 1 && uint(1) == 1u && double(1) == 1.0",
    ),
    (Linear, "optional.of(object.s).value() != ''"),
    (Linear, "optional.ofNonZeroValue(object.s).or(optional.none()).orValue('') != ''"),
    (Linear, "optional.none().orValue(object.s) != ''"),
    // Texts.
    (Linear, "object.s.charAt(3) == 'a'"),
    (Linear, "object.s.indexOf(object.b) == -1 && object.s.indexOf(object.b, 1) == -1"),
    (Linear, "object.s.lastIndexOf('b' + object.s) == -1 && object.s.lastIndexOf('b', 1) == -1"),
    (Linear, "object.t.join('-') != '' && object.t.join() != ''"),
    (Linear, "object.s.lowerAscii() != object.s.upperAscii() && object.s.trim() != ''"),
    (Linear, "object.s.replace('a', 'bb') != '' && object.s.replace('b', object.s) != ''"),
    (Linear, "object.s.split('').size() > 0"),
    (Linear, "object.s.split('a', 3).size() > 0 && object.s.split('x').size() == 1"),
    (Linear, "object.s.substring(2) != '' && object.s.substring(2, 5) != ''"),
    (Linear, "object.s.reverse() != ''"),
    (Linear, "'%s'.format([object.s]) != ''"),
    (Linear, "'%s %x'.format([object.t, object.s]) != ''"),
    (Linear, "strings.quote(object.s) != ''"),
    (
        Linear,
        "object.s.find('x') == '' && object.s.findAll('x').size() == 0 && object.s.findAll('a', 2).size() == 2",
    ),
    // Lists and sets.
    (Linear, "object.l.sum() > 0 && object.l.min() == 0 && object.l.max() > 0 && object.l.isSorted()"),
    (Linear, "object.l.indexOf(-1) == -1 && object.l.lastIndexOf(-1) == -1"),
    (Linear, "sets.contains(object.l, [1, 2]) && !sets.intersects(object.l, [-1])"),
    (Linear, "!sets.equivalent(object.l, [-1])"),
    // Types that read a text.
    (Linear, "isQuantity(object.s) || isSemver(object.s) || isIP(object.s) || isCIDR(object.s) || true"),
    (Linear, "quantity(object.s).sign() == 1 || true"),
    (Linear, "semver(object.s).major() == 1 || true"),
    (Linear, "ip(object.s).family() == 4 || true"),
    (Linear, "cidr(object.s).prefixLength() == 4 || true"),
    (Linear, "timestamp(object.s) == timestamp(0) || true"),
    (Linear, "duration(object.s) == duration('1s') || true"),
    (Linear, "ip.isCanonical(object.s) || true"),
    (Linear, "cidr('10.0.0.0/8').containsIP(object.s) || true"),
    (Linear, "cidr('10.0.0.0/8').containsCIDR(object.s) || true"),
    (Linear, "timestamp(0).getHours(object.s) == 0 || true"),
    // Those whose values are small.
    (
        Fixed,
        "quantity('1').add(quantity('2')).sub(1).isGreaterThan(quantity('1')) && quantity('1').isInteger()",
    ),
    (Fixed, "quantity('1').isLessThan(quantity('2')) && quantity('1').compareTo(quantity('1')) == 0"),
    (Fixed, "quantity('1').asInteger() == 1 && quantity('1').asApproximateFloat() == 1.0"),
    (Fixed, "semver('1.2.3').minor() == 2 && semver('1.2.3').patch() == 3"),
    (Fixed, "!ip('::1').isUnspecified() && ip('::1').isLoopback() && !ip('::1').isLinkLocalMulticast()"),
    (
        Fixed,
        "!ip('::1').isLinkLocalUnicast() && !ip('::1').isGlobalUnicast() && cidr('10.1.0.0/8').masked().ip() != ip('::1')",
    ),
    (
        Fixed,
        "timestamp(0).getFullYear() == 1970 && timestamp(0).getMonth() == 0 && timestamp(0).getDate() == 1",
    ),
    (
        Fixed,
        "timestamp(0).getDayOfMonth() == 0 && timestamp(0).getDayOfWeek() == 4 && timestamp(0).getDayOfYear() == 0",
    ),
    (
        Fixed,
        "timestamp(0).getMinutes() == 0 && timestamp(0).getSeconds() == 0 && timestamp(0).getMilliseconds() == 0",
    ),
];

/// An object with `n` of everything; the members of the other are in another order.
fn document(n: usize, is_old: bool) -> String {
    let mut members: Vec<String> = (0..n).map(|index| format!(r#""k{index}":"v""#)).collect();
    if is_old {
        members.reverse();
    }
    let list = |item: &dyn Fn(usize) -> String| (0..n).map(item).collect::<Vec<_>>().join(",");
    let (numbers, texts) = (list(&|index| index.to_string()), list(&|index| format!(r#""t{index}""#)));
    let nested = list(&|index| format!(r#"{{"a":{{"b":[{index}]}}}}"#));
    format!(
        r#"{{"l":[{numbers}],"t":[{texts}],"m":{{{}}},"s":"{}","b":"{}b","d":{{"x":[{nested}]}}}}"#,
        members.join(","),
        "a".repeat(8 * n),
        "a".repeat(4 * n),
    )
}

struct Cost {
    steps: u64,
    /// Bytes allocated at once.
    peak: u64,
    /// Bytes allocated in all.
    total: u64,
}

/// The cost of `calls` calls with an object of size `n`.
fn cost(expression: &str, n: usize, calls: usize) -> Cost {
    let numbers: Vec<String> = (1..=calls).map(|number| number.to_string()).collect();
    let program = compiled(&format!("[{}].all(i, {expression})", numbers.join(",")))
        .unwrap_or_else(|refused| panic!("{expression}: {refused}"));
    let (new, old) = (document(n, false), document(n, true));
    let (new, old) = (doc::parse(&new).unwrap(), doc::parse(&old).unwrap());
    let evaluate = || {
        let variables = Variables::new(new.root(), old.root(), Value::absent(), Value::absent());
        assert_eq!(program.evaluate_bool(&variables), Ok(true), "{expression}, {n}");
        meter::MAX_REQUEST_STEPS - *variables.steps_left.get().of_mut(FindingLevel::Deny)
    };
    // Patterns are compiled the first time.
    evaluate();
    let mut steps = 0;
    let counted = allocation_counter::measure(|| steps = evaluate());
    Cost { steps, peak: counted.bytes_max, total: counted.bytes_total }
}

#[test]
fn every_function_charges_for_what_it_reads() {
    let mut wrong = Vec::new();
    for (work, expression) in TABLE {
        let [first, second] = [20, 200].map(|n| cost(expression, n, 1));
        let [first_more, second_more] = [20, 200].map(|n| cost(expression, n, 3));
        let [call, large_call] = [(&first, &first_more), (&second, &second_more)]
            .map(|(one, three)| (three.steps - one.steps) / 2);
        let is_charged = match work {
            Fixed => large_call <= call + 4,
            // A step for each item or eight bytes; and no more than ten times as many for ten times as much.
            Linear => large_call >= call + 175 && large_call <= 11 * call,
        };
        // The first call may have to read the object.
        let is_linear = second.steps <= 11 * first.steps;
        let steps = second_more.steps - first_more.steps;
        let total = second_more.total.saturating_sub(first_more.total);
        let peak = second_more.peak.saturating_sub(first_more.peak);
        if !is_charged || !is_linear || total > 64 * steps + 2048 || peak > 20 * steps + 512 {
            wrong.push(format!(
                "{work:?} {expression}: first call {} then {} steps, one more {call} then {large_call}; {steps} more \
                 steps for {total} more bytes, {peak} at once",
                first.steps, second.steps
            ));
        }
    }
    assert!(wrong.is_empty(), "{} of {}\n{}", wrong.len(), TABLE.len(), wrong.join("\n"));
}

/// The steps of one call for each of the `n` that an object has.
fn steps_for_each(expression: &str) -> u64 {
    let call = |n| (cost(expression, n, 3).steps - cost(expression, n, 1).steps) / 2;
    (call(200) - call(20)) / 180
}

/// An iteration costs three steps and its nodes, a loop in it one step and its own iterations.
#[test]
fn an_iteration_costs_its_nodes() {
    for (expression, steps) in [
        ("object.l.all(a, true)", 5),
        ("object.l.all(a, a >= 0)", 7),
        ("object.l.all(a, [].all(b, true))", 8),
        ("object.l.all(a, [].all(b, true) && a >= 0)", 12),
    ] {
        assert_eq!(steps_for_each(expression), steps, "{expression}");
    }
}

/// A text in a list costs three times its length to be formatted, and one time more for each list around that.
#[test]
fn deeper_values_cost_more_to_format() {
    let steps = |list: &str| steps_for_each(&format!("'%s'.format({list}) != ''"));
    let [one, two, three] = ["[object.s]", "[[object.s]]", "[[[object.s]]]"].map(steps);
    assert!(one >= 3, "{one}");
    assert_eq!((two, three), (one + 1, one + 2));
    assert_eq!(steps("[{'a': object.s}]"), two);
}

#[test]
fn the_table_has_every_function() {
    let has = |name: &str| {
        let called = [format!(".{name}("), format!("({name}("), format!("!{name}("), format!(" {name}(")];
        TABLE.iter().any(|(_, expression)| {
            expression.starts_with(&format!("{name}(")) || called.iter().any(|call| expression.contains(call))
        })
    };
    let is_named = |name: &&str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.');
    for name in tollgate_cel::function_names_per_overload(tollgate_cel::POLICY_ENV).filter(is_named) {
        let name = name.rsplit('.').next().unwrap_or(name);
        assert!(has(name), "{name} has no row");
    }
    for (operator, _, _) in REPLACED_OPERATORS {
        let sign = operator.trim_matches(['_', '@']);
        assert!(TABLE.iter().any(|(_, text)| text.contains(&format!(" {sign} "))), "{operator} has no row");
    }
}

/// Values that an expression nests in each other grow with its length, not with two to the power of it.
#[test]
fn doubling_is_charged() {
    let object = document(200, false);
    for start in ["[object.s + 'x']", "[object.l]", "['x']", "[[1]]"] {
        for step in
            [".map(x, [x, x])", ".map(x, {'a': x, 'b': x})", ".map(x, [[x, x], [x, x]])", ".map(x, x + x)"]
        {
            let expression = format!("{start}{}.size() == 1", step.repeat(40));
            let Ok(program) = compiled(&expression) else { continue };
            let document = doc::parse(&object).unwrap();
            let absent = Value::absent();
            let variables = Variables::new(document.root(), absent, absent, absent);
            let counted = allocation_counter::measure(|| drop(program.evaluate_bool(&variables)));
            let steps = meter::MAX_REQUEST_STEPS - *variables.steps_left.get().of_mut(FindingLevel::Deny);
            assert!(counted.bytes_max <= 20 * steps + (64 << 10), "{start}{step}: {counted:?} {steps}");
        }
    }
}
