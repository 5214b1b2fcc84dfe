//! What the functions of the library answer. The expected answers are those of Kubernetes' own library; where it
//! refuses, so do we, at load if the text is written out.

use super::super::Variables;
use super::super::tests::compiled;
use tollgate_document::doc::{self, Value};

const OBJECT: &str = r#"{"numbers":[3,1,2],"sorted":["a","b"],"none":[],"name":"gpu-17.rack-4","at":"2026-03-04T05:06:07.25Z",
"memory":"40Gi","seconds":90,"address":"10.1.2.3","bad":"?(","digits":"^INC-\\d$","version":"1.4.0-rc.1","mixed":[1,"a"],
"nested":[1,"a",null,1.5,true,{"a":1}],"share":1.5}"#;

fn holds(expression: &str) -> Result<bool, String> {
    let program = compiled(expression).map_err(|refused| format!("refused: {refused}"))?;
    let document = doc::parse(OBJECT).unwrap();
    let absent = Value::absent();
    program.evaluate_bool(&Variables::new(document.root(), absent, absent, absent))
}

#[test]
fn the_library_answers() {
    let table = [
        // Lists.
        "object.numbers.sum() == 6 && object.none.sum() == 0 && [1.5, 2.5].sum() == 4.0",
        "object.numbers.min() == 1 && object.numbers.max() == 3 && ['b', 'a'].min() == 'a'",
        "!object.numbers.isSorted() && object.sorted.isSorted() && object.none.isSorted() && [1, 1, 2].isSorted()",
        "object.numbers.indexOf(2) == 2 && object.numbers.indexOf(9) == -1 && [1, 2, 1].lastIndexOf(1) == 2",
        "'banana'.indexOf('a') == 1 && 'banana'.lastIndexOf('a') == 5",
        "[duration('1s'), duration('2s')].sum() == duration('3s') && [timestamp(5), timestamp(4)].max() == timestamp(5)",
        // Sets.
        "sets.contains(object.numbers, [1, 3]) && sets.contains([1], []) && !sets.contains([1], [2])",
        "sets.equivalent(object.numbers, [1, 2, 3, 3]) && !sets.equivalent([1], [1, 2]) && sets.equivalent([], [])",
        "sets.intersects(object.sorted, ['b', 'c']) && !sets.intersects([1], []) && sets.intersects([1], [1u, 1.0])",
        // Patterns.
        "object.name.find('[0-9]+') == '17' && object.name.find('x+') == ''",
        "object.name.findAll('[0-9]+') == ['17', '4'] && object.name.findAll('[0-9]+', 1) == ['17']",
        "object.name.findAll('[0-9]', 0) == [] && 'aXbX'.findAll('X', -1) == ['X', 'X'] && 'ab'.findAll('') == ['', '', '']",
        // The syntax is RE2's, in which `\d`, `\w`, `\s` and `\b` know only ASCII.
        "!'INC-٣'.matches('^INC-\\\\d$') && 'INC-3'.matches(object.digits) && !'INC-٣'.matches(object.digits)",
        "!'é'.matches('\\\\w') && 'aé'.matches('a\\\\b') && 'é٣3'.find('\\\\d') == '3' && '٣3'.findAll('\\\\d', 1) == ['3']",
        "'b]'.matches('^[a-z&&[^b]]+$') && '&'.matches('[a&&b]') && '[]'.matches('^[[a]]$') && 'a.b'.matches('^\\\\Qa.b\\\\E$')",
        "'-'.matches('^[\\\\w-a]$') && 'ab'.matches('^(?P<n>a)(?)(?P<n>b)$') && 'A'.matches('^\\\\101$')",
        "'x'.matches('^.{1,253}$') && 'x'.matches('^\\\\w{1,63}$') && 'x'.matches('^\\\\S{1,253}$') && 'é'.matches('^\\\\pL{1,30}$')",
        // Quantities.
        "quantity(object.memory).isGreaterThan(quantity('32Gi')) && quantity('1').compareTo(quantity('1000m')) == 0",
        "quantity('1Ki').asInteger() == 1024 && quantity('1Ki').isInteger() && !quantity('500m').isInteger()",
        "quantity('50k').add(quantity('20k')) == quantity('70k') && quantity('50k').sub(20000) == quantity('30k')",
        "quantity('1').sub(quantity('3')).sign() == -1 && quantity('0').sign() == 0 && quantity('5').add(-5).sign() == 0",
        "quantity('1.5').asApproximateFloat() == 1.5 && isQuantity('1.3Gi') && !isQuantity('1.3GiB') && !isQuantity(' 1')",
        "sign(quantity('-1')) == -1 && quantity('1').isLessThan(quantity('2')) && quantity('200M').compareTo(quantity('0.2G')) == 0",
        // Times.
        "timestamp(object.at) < timestamp('2027-01-01T00:00:00Z') && timestamp(object.at) == timestamp(object.at)",
        "timestamp(object.at).getFullYear() == 2026 && timestamp(object.at).getMonth() == 2 && timestamp(object.at).getDate() == 4",
        "timestamp(object.at).getDayOfMonth() == 3 && timestamp(object.at).getDayOfWeek() == 3 && timestamp(object.at).getDayOfYear() == 62",
        "timestamp(object.at).getHours() == 5 && timestamp(object.at).getMinutes() == 6 && timestamp(object.at).getSeconds() == 7",
        "timestamp(object.at).getMilliseconds() == 250 && timestamp(object.at).getHours('+02:00') == 7",
        "timestamp('2026-01-01T01:00:00Z').getFullYear('-02:00') == 2025 && timestamp(0).getHours('UTC') == 0",
        "timestamp('2026-01-01T00:00:00Z') + duration('24h') == timestamp('2026-01-02T00:00:00Z')",
        "timestamp('2026-01-02T00:00:00Z') - timestamp('2026-01-01T00:00:00Z') == duration('24h')",
        "duration('90m') - duration('1h') == duration('30m') && duration('1h') + timestamp(0) == timestamp(3600)",
        "duration('1h30m').getHours() == 1 && duration('1h30m').getMinutes() == 90 && duration('1.5s').getMilliseconds() == 1500",
        "duration('-1.5h') < duration('0') && duration('1us') > duration('999ns') && duration('+1m') == duration('60s')",
        "duration(string(object.seconds) + 's') > duration('1m')",
        "string(timestamp('2026-01-01T02:00:00.100+02:00')) == '2026-01-01T02:00:00.1+02:00' && string(duration('90m')) == '5400s'",
        "string(duration('-1.5s')) == '-1.5s' && string(duration('-500ms')) == '-0.5s' && int(timestamp('1970-01-01T00:01:00Z')) == 60",
        // Addresses.
        "ip(object.address).family() == 4 && isIP('::1') && !isIP('1.2.3') && !isIP('01.2.3.4') && !isIP('::ffff:1.2.3.4')",
        "ip('::1').isLoopback() && ip('0.0.0.0').isUnspecified() && ip('fe80::1').isLinkLocalUnicast()",
        "ip('224.0.0.1').isLinkLocalMulticast() && ip('ff02::1').isLinkLocalMulticast() && !ip('ff05::1').isLinkLocalMulticast()",
        "ip('10.0.0.1').isGlobalUnicast() && !ip('127.0.0.1').isGlobalUnicast() && string(ip('2001:DB8::1')) == '2001:db8::1'",
        "ip.isCanonical('2001:db8::1') && !ip.isCanonical('2001:DB8::1') && ip('::1') == ip('0::1')",
        "cidr('10.0.0.0/8').containsIP(object.address) && cidr('10.0.0.0/8').containsIP(ip('10.1.1.1'))",
        "!cidr('10.0.0.0/8').containsIP('11.0.0.1') && !cidr('::/0').containsIP('10.0.0.1') && cidr('0.0.0.0/0').containsIP('1.1.1.1')",
        "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && !cidr('10.1.0.0/16').containsCIDR(cidr('10.0.0.0/8'))",
        "cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8') && string(cidr('2001:db8:1::/32').masked()) == '2001:db8::/32'",
        "cidr('10.1.2.3/8').ip() == ip('10.1.2.3') && cidr('10.0.0.0/8').prefixLength() == 8 && !isCIDR('10.0.0.0/33') && isCIDR('::/128')",
        // Versions.
        "semver(object.version).isLessThan(semver('1.4.0')) && semver('1.10.0').compareTo(semver('1.9.9')) == 1",
        "semver('1.2.3').major() == 1 && semver('1.2.3').minor() == 2 && semver('1.2.3').patch() == 3",
        "semver('1.0.0-alpha.1').isLessThan(semver('1.0.0-alpha.beta')) && semver('1.0.0-2').isLessThan(semver('1.0.0-11'))",
        "semver('1.0.0+a') == semver('1.0.0+b') && isSemver('1.0.0-rc.1') && !isSemver('v1.0.0')",
        // Texts.
        "'%s of %d, %.2f, %s'.format(['3', 4, 0.5, object.numbers]) == '3 of 4, 0.50, [3, 1, 2]'",
        "'%s'.format([object.nested]) == '[1, \"a\", null, 1.500000, true, {\"a\":1}]' && '%d%%'.format([7u]) == '7%'",
        "'%e'.format([1.5]) == '1.500000×10⁰⁰' && '%f'.format([1.0 / 0.0]) == '∞' && '%s'.format([1e30]) == '1e+30'",
        "'%s %s'.format([timestamp(0), duration('90s')]) == '1970-01-01T00:00:00Z 90s' && '%x'.format([b'az']) == '617a'",
        "'%s'.format([{1: 'a', true: b'b'}]) == '{1:\"a\", true:b\"b\"}'",
        // Conversions.
        "string(0.000001) == '1e-06' && string(1e21) == '1e+21' && string(123456789.0) == '1.23456789e+08'",
        "string(double('inf')) == '+Inf' && double('0x1p4') == 16.0 && bool('T') && string(object.seconds) == '90'",
        "string(b'a') == 'a' && bytes('a') == b'a' && int(1.9) == 1 && uint('7') == 7u && int('-3') == -3 && string(7u) == '7'",
        "'hello'.lastIndexOf('l', 99) == -1 && 'abc'.indexOf('c', 9223372036854775807) == -1 && 'é-é'.lastIndexOf('é') == 2",
        "strings.quote('a\"b') == '\"a\\\\\"b\"'",
    ];
    for expression in table {
        assert_eq!(holds(expression), Ok(true), "{expression}");
    }
}

#[test]
fn what_it_refuses_is_told() {
    let folded = format!("'a'.matches('(?i){}')", "[α-ω]".repeat(17));
    let long = format!("'a'.matches(object.name.replace('', '{}'))", "a".repeat(400));
    let table = [
        ("object.name.find('(') == ''", "refused: \"(\" is not a valid regular expression"),
        ("'a'.matches('[a--b]')", "refused: \"[a--b]\" is not a valid regular expression"),
        ("'a'.matches('x{1001}')", "invalid repeat count: `{1001}`"),
        ("'a'.matches('(?x) a b') || 'a'.matches('(?u)a')", "invalid or unsupported perl syntax: `(?x`"),
        ("'a'.findAll('(?P<é>a)') == []", "invalid named capture: `(?P<é>`"),
        (
            "'a'.matches('\\\\pL{1000}')",
            "refused: regular expressions are larger than 4194304 bytes when compiled",
        ),
        ("'a'.matches(object.digits + '\\\\pL{1000}')", "regular expressions are larger than 1048576 bytes"),
        (&*folded, "refused: regular expressions have more than 16 classes"),
        (
            "'a'.matches(object.digits + '(?i)[α-ω][\\\\W][[:^alpha:]][\\\\x{80}-ω]')",
            "exceeds the step limit",
        ),
        (&*long, "a pattern that is not a literal is longer than 4096 bytes"),
        ("timestamp('2026-13-01T00:00:00Z') == timestamp(0)", "refused: invalid timestamp argument"),
        ("duration('1 hour') == duration('1h')", "refused: invalid duration argument"),
        ("duration('') == duration('1h')", "refused: invalid duration argument"),
        ("duration('1') == duration('1h')", "refused: invalid duration argument"),
        ("duration('3000000h') == duration('1h')", "refused: invalid duration argument"),
        ("quantity('4 GB').sign() == 1", "refused: \"4 GB\" is not a quantity"),
        ("ip('1.2.3').family() == 4", "refused: \"1.2.3\" is not an IP address"),
        ("cidr('1.2.3.4').prefixLength() == 4", "refused: \"1.2.3.4\" is not a network"),
        ("semver('v1').major() == 1", "refused: \"v1\" is not a semantic version"),
        ("sets.union([1], [2]) == [1, 2]", "refused: undeclared reference to 'sets' (in container '')"),
        ("sets == 1", "refused: undeclared reference to 'sets' (in container '')"),
        ("url('https://a').getHost() == 'a'", "refused: undeclared reference to 'url' (in container '')"),
        ("object.name.find(object.bad) == ''", "is not a valid regular expression"),
        ("quantity(object.name).sign() == 1", "is not a quantity"),
        ("object.none.min() == 1", "called on an empty list"),
        ("object.mixed.max() == 1", "no matching overload"),
        ("object.mixed.sum() == 1", "no such overload"),
        ("object.numbers.sum('a') == 1", "no matching overload"),
        ("timestamp(object.at).getHours('Europe/Berlin') == 7", "is not supported; use UTC or an offset"),
        ("timestamp('9999-12-31T23:59:59Z') + duration('1s') == timestamp(0)", "out of range"),
        (
            "timestamp(0) + 1 == timestamp(1)",
            "refused: found no matching overload for '_+_' applied to '(timestamp, int)'",
        ),
        ("timestamp(0) < duration('1s')", "no matching overload"),
        ("'%d'.format([object.share]) == ''", "decimal clause can only be used on integers"),
        ("'%s'.format([quantity('1')]) == ''", "was given kubernetes.Quantity"),
        ("string(object.numbers) == ''", "no matching overload"),
        ("int(object.name) == 1", "type conversion error from 'string' to 'int'"),
        ("quantity('1.5').asInteger() == 1", "cannot convert value to integer"),
        ("quantity('1e30').asInteger() == 1", "cannot convert value to integer"),
    ];
    for (expression, reason) in table {
        let error = holds(expression).expect_err(expression);
        assert!(error.to_lowercase().contains(&reason.to_lowercase()), "{expression}: {error}");
    }
}
