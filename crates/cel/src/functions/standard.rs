//! Operators, conversions and functions of the CEL standard library, and optional values.

use crate::overload::DeclaredType::{
    A, B, Bool, Bytes, Double, Duration, Dyn, Int, List, Map, Meta, Opt, Str, Timestamp, Uint,
};
use crate::overload::{Overload, RequiredLibrary, global, member};

/// The overloads of an operator that compares two values by their order.
const fn comparisons(name: &'static str) -> [Overload; 14] {
    [
        global(name, &[Bool, Bool], Bool),
        global(name, &[Int, Int], Bool),
        global(name, &[Int, Double], Bool),
        global(name, &[Int, Uint], Bool),
        global(name, &[Uint, Uint], Bool),
        global(name, &[Uint, Double], Bool),
        global(name, &[Uint, Int], Bool),
        global(name, &[Double, Double], Bool),
        global(name, &[Double, Int], Bool),
        global(name, &[Double, Uint], Bool),
        global(name, &[Str, Str], Bool),
        global(name, &[Bytes, Bytes], Bool),
        global(name, &[Timestamp, Timestamp], Bool),
        global(name, &[Duration, Duration], Bool),
    ]
}

pub(super) const OVERLOADS: &[&[Overload]] = &[
    OPERATORS,
    &comparisons("_<_"),
    &comparisons("_<=_"),
    &comparisons("_>_"),
    &comparisons("_>=_"),
    STRINGS_AND_SIZES,
    CONVERSIONS,
    &time_part("getFullYear"),
    &time_part("getMonth"),
    &time_part("getDayOfYear"),
    &time_part("getDayOfMonth"),
    &time_part("getDate"),
    &time_part("getDayOfWeek"),
    &time_or_duration_part("getHours"),
    &time_or_duration_part("getMinutes"),
    &time_or_duration_part("getSeconds"),
    &time_or_duration_part("getMilliseconds"),
    OPTIONALS,
];

const LIST_A: crate::overload::DeclaredType = List(&A);
const MAP_AB: crate::overload::DeclaredType = Map(&A, &B);
const OPT_A: crate::overload::DeclaredType = Opt(&A);

const OPERATORS: &[Overload] = &[
    global("_?_:_", &[Bool, A, A], A),
    global("_&&_", &[Bool, Bool], Bool),
    global("_||_", &[Bool, Bool], Bool),
    global("!_", &[Bool], Bool),
    global("@not_strictly_false", &[Bool], Bool),
    global("_==_", &[A, A], Bool),
    global("_!=_", &[A, A], Bool),
    global("_+_", &[Bytes, Bytes], Bytes),
    global("_+_", &[Double, Double], Double),
    global("_+_", &[Duration, Duration], Duration),
    global("_+_", &[Duration, Timestamp], Timestamp),
    global("_+_", &[Timestamp, Duration], Timestamp),
    global("_+_", &[Int, Int], Int),
    global("_+_", &[LIST_A, LIST_A], LIST_A),
    global("_+_", &[Str, Str], Str),
    global("_+_", &[Uint, Uint], Uint),
    global("_-_", &[Double, Double], Double),
    global("_-_", &[Duration, Duration], Duration),
    global("_-_", &[Int, Int], Int),
    global("_-_", &[Timestamp, Duration], Timestamp),
    global("_-_", &[Timestamp, Timestamp], Duration),
    global("_-_", &[Uint, Uint], Uint),
    global("_*_", &[Double, Double], Double),
    global("_*_", &[Int, Int], Int),
    global("_*_", &[Uint, Uint], Uint),
    global("_/_", &[Double, Double], Double),
    global("_/_", &[Int, Int], Int),
    global("_/_", &[Uint, Uint], Uint),
    global("_%_", &[Int, Int], Int),
    global("_%_", &[Uint, Uint], Uint),
    global("-_", &[Double], Double),
    global("-_", &[Int], Int),
    global("_[_]", &[LIST_A, Int], A),
    global("_[_]", &[MAP_AB, A], B),
    global("_[_]", &[Opt(&LIST_A), Int], OPT_A),
    global("_[_]", &[Opt(&MAP_AB), A], Opt(&B)),
    global("_[?_]", &[LIST_A, Int], OPT_A),
    global("_[?_]", &[Opt(&LIST_A), Int], OPT_A),
    global("_[?_]", &[MAP_AB, A], Opt(&B)),
    global("_[?_]", &[Opt(&MAP_AB), A], Opt(&B)),
    // What `.?field` expands to; the checker does not look at these types.
    global("_?._", &[Dyn, Str], Dyn),
    global("@in", &[A, LIST_A], Bool),
    global("@in", &[A, MAP_AB], Bool),
    // What the two-variable transformations into maps expand to.
    global("cel.@mapInsert", &[MAP_AB, A, B], MAP_AB),
    global("cel.@mapInsert", &[MAP_AB, MAP_AB], MAP_AB),
];

const STRINGS_AND_SIZES: &[Overload] = &[
    global("size", &[Bytes], Int),
    global("size", &[LIST_A], Int),
    global("size", &[MAP_AB], Int),
    global("size", &[Str], Int),
    member("size", &[Bytes], Int),
    member("size", &[LIST_A], Int),
    member("size", &[MAP_AB], Int),
    member("size", &[Str], Int),
    member("contains", &[Str, Str], Bool),
    member("endsWith", &[Str, Str], Bool),
    member("startsWith", &[Str, Str], Bool),
    member("matches", &[Str, Str], Bool),
    global("matches", &[Str, Str], Bool),
];

const CONVERSIONS: &[Overload] = &[
    global("type", &[A], Meta(&A)),
    global("dyn", &[A], Dyn),
    global("bool", &[Bool], Bool),
    global("bool", &[Str], Bool),
    global("bytes", &[Bytes], Bytes),
    global("bytes", &[Str], Bytes),
    global("double", &[Double], Double),
    global("double", &[Int], Double),
    global("double", &[Str], Double),
    global("double", &[Uint], Double),
    global("duration", &[Duration], Duration),
    global("duration", &[Int], Duration).requiring(RequiredLibrary::DurationOfInt),
    global("duration", &[Str], Duration),
    global("int", &[Int], Int),
    global("int", &[Double], Int),
    global("int", &[Duration], Int),
    global("int", &[Str], Int),
    global("int", &[Timestamp], Int),
    global("int", &[Uint], Int),
    global("string", &[Str], Str),
    global("string", &[Bool], Str),
    global("string", &[Bytes], Str),
    global("string", &[Double], Str),
    global("string", &[Duration], Str),
    global("string", &[Int], Str),
    global("string", &[Timestamp], Str),
    global("string", &[Uint], Str),
    global("timestamp", &[Timestamp], Timestamp),
    global("timestamp", &[Int], Timestamp),
    global("timestamp", &[Str], Timestamp),
    global("uint", &[Uint], Uint),
    global("uint", &[Double], Uint),
    global("uint", &[Int], Uint),
    global("uint", &[Str], Uint),
];

/// The overloads of a method that reads a part of a time, in UTC or in a time zone.
const fn time_part(name: &'static str) -> [Overload; 2] {
    [member(name, &[Timestamp], Int), member(name, &[Timestamp, Str], Int)]
}

/// The overloads of a method that reads a part of a time, or a duration in whole units.
const fn time_or_duration_part(name: &'static str) -> [Overload; 3] {
    let [in_utc, in_zone] = time_part(name);
    [in_utc, in_zone, member(name, &[Duration], Int)]
}

const OPTIONALS: &[Overload] = &[
    global("optional.of", &[A], OPT_A),
    global("optional.ofNonZeroValue", &[A], OPT_A),
    global("optional.none", &[], OPT_A),
    global("optional.unwrap", &[List(&OPT_A)], LIST_A).requiring(RequiredLibrary::Selectors),
    member("unwrapOpt", &[List(&OPT_A)], LIST_A).requiring(RequiredLibrary::Selectors),
    member("value", &[OPT_A], A),
    member("hasValue", &[OPT_A], Bool),
    member("or", &[OPT_A, OPT_A], OPT_A),
    member("orValue", &[OPT_A, A], A),
    member("first", &[LIST_A], OPT_A).requiring(RequiredLibrary::Selectors),
    member("last", &[LIST_A], OPT_A).requiring(RequiredLibrary::Selectors),
];
