//! cel-go's extension libraries: strings (version 2), sets, lists (version 3).

use crate::overload::DeclaredType::{
    self, A, Bool, Bytes, Double, Duration, Dyn, Int, List, Str, Timestamp, Uint,
};
use crate::overload::{Overload, RequiredLibrary, global, member};

const LIST_A: DeclaredType = List(&A);

macro_rules! sort_of {
    ($($element:ident),*) => {
        [$(member("sort", &[List(&$element)], List(&$element)).requiring(RequiredLibrary::ExtLists)),*]
    };
}

macro_rules! sort_by_keys_of {
    ($($element:ident),*) => {
        [$(member("@sortByAssociatedKeys", &[LIST_A, List(&$element)], LIST_A).requiring(RequiredLibrary::ExtLists)),*]
    };
}

const SORT: [Overload; 8] = sort_of!(Int, Uint, Double, Bool, Duration, Timestamp, Str, Bytes);
const SORT_BY_KEYS: [Overload; 8] =
    sort_by_keys_of!(Int, Uint, Double, Bool, Duration, Timestamp, Str, Bytes);

pub(super) const OVERLOADS: &[&[Overload]] = &[STRINGS, SETS, LISTS, &SORT, &SORT_BY_KEYS];

const STRINGS: &[Overload] = &[
    member("charAt", &[Str, Int], Str),
    member("indexOf", &[Str, Str], Int),
    member("indexOf", &[Str, Str, Int], Int),
    member("lastIndexOf", &[Str, Str], Int),
    member("lastIndexOf", &[Str, Str, Int], Int),
    member("lowerAscii", &[Str], Str),
    member("upperAscii", &[Str], Str),
    member("trim", &[Str], Str),
    member("replace", &[Str, Str, Str], Str),
    member("replace", &[Str, Str, Str, Int], Str),
    member("split", &[Str, Str], List(&Str)),
    member("split", &[Str, Str, Int], List(&Str)),
    member("substring", &[Str, Int], Str),
    member("substring", &[Str, Int, Int], Str),
    member("join", &[List(&Str)], Str),
    member("join", &[List(&Str), Str], Str),
    member("format", &[Str, List(&Dyn)], Str),
    global("strings.quote", &[Str], Str),
    member("reverse", &[Str], Str).requiring(RequiredLibrary::Policies),
];

const SETS: &[Overload] = &[
    global("sets.contains", &[LIST_A, LIST_A], Bool),
    global("sets.equivalent", &[LIST_A, LIST_A], Bool),
    global("sets.intersects", &[LIST_A, LIST_A], Bool),
];

const LISTS: &[Overload] = &[
    member("slice", &[LIST_A, Int, Int], LIST_A).requiring(RequiredLibrary::ExtLists),
    member("flatten", &[List(&LIST_A)], LIST_A).requiring(RequiredLibrary::ExtLists),
    member("flatten", &[List(&Dyn), Int], List(&Dyn)).requiring(RequiredLibrary::ExtLists),
    member("distinct", &[LIST_A], LIST_A).requiring(RequiredLibrary::ExtLists),
    member("reverse", &[LIST_A], LIST_A).requiring(RequiredLibrary::ExtLists),
    global("lists.range", &[Int], List(&Int)).requiring(RequiredLibrary::ExtLists),
];
