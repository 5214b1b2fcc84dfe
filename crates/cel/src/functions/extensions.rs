//! cel-go's extension libraries: strings (version 2), sets, lists (version 3).

use super::ORDERED_TYPES;
use crate::overload::{A, Overload, global, in_policies, member};
use crate::types::Type::{self, Bool, Dyn, Int, String as Str};

pub(super) fn overloads() -> Vec<Overload> {
    let mut all = vec![
        member("charAt", [Str, Int], Str),
        member("indexOf", [Str, Str], Int),
        member("indexOf", [Str, Str, Int], Int),
        member("lastIndexOf", [Str, Str], Int),
        member("lastIndexOf", [Str, Str, Int], Int),
        member("lowerAscii", [Str], Str),
        member("upperAscii", [Str], Str),
        member("trim", [Str], Str),
        member("replace", [Str, Str, Str], Str),
        member("replace", [Str, Str, Str, Int], Str),
        member("split", [Str, Str], Type::list(Str)),
        member("split", [Str, Str, Int], Type::list(Str)),
        member("substring", [Str, Int], Str),
        member("substring", [Str, Int, Int], Str),
        member("join", [Type::list(Str)], Str),
        member("join", [Type::list(Str), Str], Str),
        member("format", [Str, Type::list(Dyn)], Str),
        global("strings.quote", [Str], Str),
        member("reverse", [Str], Str).requiring(in_policies),
        global("sets.contains", [Type::list(A), Type::list(A)], Bool),
        global("sets.equivalent", [Type::list(A), Type::list(A)], Bool),
        global("sets.intersects", [Type::list(A), Type::list(A)], Bool),
        member("slice", [Type::list(A), Int, Int], Type::list(A)).requiring(|env| env.ext_lists),
        member("flatten", [Type::list(Type::list(A))], Type::list(A)).requiring(|env| env.ext_lists),
        member("flatten", [Type::list(Dyn), Int], Type::list(Dyn)).requiring(|env| env.ext_lists),
        member("distinct", [Type::list(A)], Type::list(A)).requiring(|env| env.ext_lists),
        member("reverse", [Type::list(A)], Type::list(A)).requiring(|env| env.ext_lists),
        global("lists.range", [Int], Type::list(Int)).requiring(|env| env.ext_lists),
    ];
    for element in ORDERED_TYPES {
        let of_element = Type::list(element);
        all.push(member("sort", [of_element.clone()], of_element.clone()).requiring(|env| env.ext_lists));
        let by_keys = member("@sortByAssociatedKeys", [Type::list(A), of_element], Type::list(A));
        all.push(by_keys.requiring(|env| env.ext_lists));
    }
    all
}
