//! Operators, conversions and functions of the CEL standard library, and optional values.

use crate::overload::{A, B, Overload, global, in_selectors, member};
use crate::types::Type::{
    self, Bool, Bytes, Double, Duration, Dyn, Int, Meta, String as Str, Timestamp, Uint,
};

pub(super) fn overloads() -> Vec<Overload> {
    let mut all = vec![
        // Operators.
        global("_?_:_", [Bool, A, A], A),
        global("_&&_", [Bool, Bool], Bool),
        global("_||_", [Bool, Bool], Bool),
        global("!_", [Bool], Bool),
        global("@not_strictly_false", [Bool], Bool),
        global("_==_", [A, A], Bool),
        global("_!=_", [A, A], Bool),
        global("_+_", [Bytes, Bytes], Bytes),
        global("_+_", [Double, Double], Double),
        global("_+_", [Duration, Duration], Duration),
        global("_+_", [Duration, Timestamp], Timestamp),
        global("_+_", [Timestamp, Duration], Timestamp),
        global("_+_", [Int, Int], Int),
        global("_+_", [Type::list(A), Type::list(A)], Type::list(A)),
        global("_+_", [Str, Str], Str),
        global("_+_", [Uint, Uint], Uint),
        global("_-_", [Double, Double], Double),
        global("_-_", [Duration, Duration], Duration),
        global("_-_", [Int, Int], Int),
        global("_-_", [Timestamp, Duration], Timestamp),
        global("_-_", [Timestamp, Timestamp], Duration),
        global("_-_", [Uint, Uint], Uint),
        global("_*_", [Double, Double], Double),
        global("_*_", [Int, Int], Int),
        global("_*_", [Uint, Uint], Uint),
        global("_/_", [Double, Double], Double),
        global("_/_", [Int, Int], Int),
        global("_/_", [Uint, Uint], Uint),
        global("_%_", [Int, Int], Int),
        global("_%_", [Uint, Uint], Uint),
        global("-_", [Double], Double),
        global("-_", [Int], Int),
        global("_[_]", [Type::list(A), Int], A),
        global("_[_]", [Type::map(A, B), A], B),
        global("_[_]", [Type::optional(Type::list(A)), Int], Type::optional(A)),
        global("_[_]", [Type::optional(Type::map(A, B)), A], Type::optional(B)),
        global("_[?_]", [Type::list(A), Int], Type::optional(A)),
        global("_[?_]", [Type::optional(Type::list(A)), Int], Type::optional(A)),
        global("_[?_]", [Type::map(A, B), A], Type::optional(B)),
        global("_[?_]", [Type::optional(Type::map(A, B)), A], Type::optional(B)),
        // What `.?field` expands to; the checker does not look at these types.
        global("_?._", [Dyn, Str], Dyn),
        global("@in", [A, Type::list(A)], Bool),
        global("@in", [A, Type::map(A, B)], Bool),
        // What the two-variable transformations into maps expand to.
        global("cel.@mapInsert", [Type::map(A, B), A, B], Type::map(A, B)),
        global("cel.@mapInsert", [Type::map(A, B), Type::map(A, B)], Type::map(A, B)),
        // Functions of strings.
        member("contains", [Str, Str], Bool),
        member("endsWith", [Str, Str], Bool),
        member("startsWith", [Str, Str], Bool),
        member("matches", [Str, Str], Bool),
        global("matches", [Str, Str], Bool),
        // Conversions; see also `CONVERSIONS`.
        global("type", [A], Meta(A.into())),
        global("dyn", [A], Dyn),
        global("duration", [Duration], Duration),
        global("duration", [Int], Duration).requiring(|env| env.duration_of_int),
        global("duration", [Str], Duration),
        // Optional values.
        global("optional.of", [A], Type::optional(A)),
        global("optional.ofNonZeroValue", [A], Type::optional(A)),
        global("optional.none", [], Type::optional(A)),
        global("optional.unwrap", [Type::list(Type::optional(A))], Type::list(A)).requiring(in_selectors),
        member("unwrapOpt", [Type::list(Type::optional(A))], Type::list(A)).requiring(in_selectors),
        member("value", [Type::optional(A)], A),
        member("hasValue", [Type::optional(A)], Bool),
        member("or", [Type::optional(A), Type::optional(A)], Type::optional(A)),
        member("orValue", [Type::optional(A), A], A),
        member("first", [Type::list(A)], Type::optional(A)).requiring(in_selectors),
        member("last", [Type::list(A)], Type::optional(A)).requiring(in_selectors),
    ];
    for (name, result, from) in CONVERSIONS {
        all.extend(from.iter().map(|from| global(name, [from.clone()], result.clone())));
    }
    let sized = [Bytes, Type::list(A), Type::map(A, B), Str];
    all.extend(sized.clone().map(|sized| global("size", [sized], Int)));
    all.extend(sized.map(|sized| member("size", [sized], Int)));
    for name in ["_<_", "_<=_", "_>_", "_>=_"] {
        all.extend(COMPARED_TYPES.map(|[left, right]| global(name, [left, right], Bool)));
    }
    let parts = ["getFullYear", "getMonth", "getDayOfYear", "getDayOfMonth", "getDate", "getDayOfWeek"];
    let parts_of_durations = ["getHours", "getMinutes", "getSeconds", "getMilliseconds"];
    for name in parts.into_iter().chain(parts_of_durations) {
        all.extend([member(name, [Timestamp], Int), member(name, [Timestamp, Str], Int)]);
    }
    all.extend(parts_of_durations.map(|name| member(name, [Duration], Int)));
    all
}

/// The types of two values that have an order.
const COMPARED_TYPES: [[Type; 2]; 14] = [
    [Bool, Bool],
    [Int, Int],
    [Int, Double],
    [Int, Uint],
    [Uint, Uint],
    [Uint, Double],
    [Uint, Int],
    [Double, Double],
    [Double, Int],
    [Double, Uint],
    [Str, Str],
    [Bytes, Bytes],
    [Timestamp, Timestamp],
    [Duration, Duration],
];

/// The functions that convert to a type, with their results and the types that they convert from.
const CONVERSIONS: [(&str, Type, &[Type]); 7] = [
    ("bool", Bool, &[Bool, Str]),
    ("bytes", Bytes, &[Bytes, Str]),
    ("double", Double, &[Double, Int, Str, Uint]),
    ("int", Int, &[Int, Double, Duration, Str, Timestamp, Uint]),
    ("string", Str, &[Str, Bool, Bytes, Double, Duration, Int, Timestamp, Uint]),
    ("timestamp", Timestamp, &[Timestamp, Int, Str]),
    ("uint", Uint, &[Uint, Double, Int, Str]),
];
