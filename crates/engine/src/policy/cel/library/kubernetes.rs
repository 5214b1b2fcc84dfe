//! Quantities, versions, addresses, networks and times: `tollgate_cel` has their functions, and this module declares
//! them to the interpreter of policies.
//!
//! Time zones are UTC and offsets (`+02:00`). Named zones are not supported: they need the time zone database, and
//! replicas with different versions of it would give different results. There is no `now`: the result of an expression
//! depends only on the request.

use std::cmp::Ordering;

use ::cel::common::ast::operators;
use ::cel::common::functions::Function;
use ::cel::common::traits::{Adder, Comparer, Subtractor};
use ::cel::common::types::{
    CelBool, CelBytes, CelDouble, CelInt, CelNull, CelString, CelUInt, DYN_TYPE, Kind, Type,
};
use ::cel::common::value::{CowVal, StaticVal, Val};
use ::cel::{DeclarationError, Env, ExecutionError};

use super::super::functions::{no_such_overload, read_cost};
use super::strings::REPLACED_FUNCTIONS;
use super::{CelResult, VALUE_COST, boolean, charge_steps, function_error, integer, string};
use tollgate_cel::evaluate::{CallError, LibraryValue, PlainValue};
use tollgate_formats::gotime;

/// Maximum number of bytes of a quantity, version, time or address, so that comparing two of them costs next to nothing
/// and error messages stay short.
const MAX_VALUE_BYTES: usize = 256;
/// Maximum width and precision that `format` accepts.
const MAX_FORMAT_WIDTH: u64 = 100_000;
/// Steps for adding two quantities, which have at most a thousand digits.
const QUANTITY_SUM_COST: u64 = 128;

static KUBERNETES_TYPES: [Type; 6] = [
    Type::new_unspecified_type("kubernetes.Quantity"),
    Type::new_unspecified_type("kubernetes.Semver"),
    Type::new_unspecified_type("net.IP"),
    Type::new_unspecified_type("net.CIDR"),
    Type::new_unspecified_type("google.protobuf.Timestamp"),
    Type::new_unspecified_type("google.protobuf.Duration"),
];

/// A value of one of [`KUBERNETES_TYPES`].
#[derive(Clone, Debug)]
struct KubernetesValue(LibraryValue);

impl Val for KubernetesValue {
    fn get_type(&self) -> &Type {
        let name = self.0.type_name();
        KUBERNETES_TYPES.iter().find(|known| known.name() == name).unwrap_or(Self::cel_type())
    }

    fn cel_type() -> &'static Type {
        static ANY: Type = DYN_TYPE;
        &ANY
    }

    fn equals(&self, other: &dyn Val) -> bool {
        other.downcast_ref::<KubernetesValue>().is_some_and(|other| self.0.is_equal(&other.0))
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v>
    where
        Self: 'v,
    {
        Box::new(self.clone())
    }

    fn as_any(&self) -> Option<&dyn std::any::Any> {
        Some(self)
    }

    fn as_adder<'b, 'v>(&'b self) -> Option<&'b (dyn Adder + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn as_subtractor<'b, 'v>(&'b self) -> Option<&'b (dyn Subtractor + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn as_comparer(&self) -> Option<&dyn Comparer> {
        Some(self)
    }
}

impl StaticVal for KubernetesValue {}

impl Adder for KubernetesValue {
    fn add<'b, 'v>(&'b self, other: &(dyn Val + 'v)) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        self.add_or_subtract_times(operators::ADD, other)
    }
}

impl Subtractor for KubernetesValue {
    fn sub<'b, 'v>(&'b self, other: &(dyn Val + 'v)) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        self.add_or_subtract_times(operators::SUBSTRACT, other)
    }
}

impl Comparer for KubernetesValue {
    fn compare(&self, other: &dyn Val) -> Result<Ordering, ExecutionError> {
        let other_value = other.downcast_ref::<KubernetesValue>();
        let order = other_value.and_then(|other| self.0.order(&other.0));
        order.ok_or_else(|| no_such_overload("compare", [self, other]))
    }
}

impl KubernetesValue {
    /// Returns the sum or difference of two times or durations.
    fn add_or_subtract_times<'b, 'v>(&self, operator: &str, other: &(dyn Val + 'v)) -> CelResult<'b, 'v> {
        let unsupported = || no_such_overload(operator, [self, other]);
        let other_value = to_library_value(other).ok_or_else(unsupported)?;
        match LibraryValue::call_function(operator, &[self.0.clone(), other_value]) {
            Ok(value) => Ok(from_library_value(value)),
            Err(CallError::NoSuchOverload) => Err(unsupported()),
            Err(CallError::Failed(_)) => Err(function_error("duration", "the result is out of range")),
        }
    }
}

/// Builds a table of functions for the interpreter: each line has a number of arguments and the names of the functions
/// that take so many. The entries are `(name, number of arguments, function)`.
macro_rules! functions {
    ($($count:literal: $($name:literal)*;)*) => {
        &[$($(($name, $count, |arguments| call_library_function($name, &arguments))),*),*]
    };
}

const LIBRARY_FUNCTIONS: &[(&str, usize, Function)] = functions! {
    1: "quantity" "isQuantity" "sign" "isInteger" "asInteger" "asApproximateFloat";
    1: "semver" "isSemver" "major" "minor" "patch";
    1: "ip" "isIP" "ip.isCanonical" "family" "isUnspecified" "isLoopback";
    1: "isLinkLocalMulticast" "isLinkLocalUnicast" "isGlobalUnicast";
    1: "cidr" "isCIDR" "masked" "prefixLength";
    1: "timestamp" "duration" "bool" "bytes" "double" "int" "string" "uint";
    1: "getFullYear" "getMonth" "getDate" "getDayOfMonth" "getDayOfWeek" "getDayOfYear";
    1: "getHours" "getMinutes" "getSeconds" "getMilliseconds";
    2: "isGreaterThan" "isLessThan" "compareTo" "add" "sub" "containsIP" "containsCIDR";
    2: "getFullYear" "getMonth" "getDate" "getDayOfMonth" "getDayOfWeek" "getDayOfYear";
    2: "getHours" "getMinutes" "getSeconds" "getMilliseconds";
    2: "format";
};

/// Declares each function both as a global function and as a method, for arguments of any type. `tollgate_cel` checks
/// the form and the types, when the policy is loaded or when the function is called.
pub(super) fn declare_functions(env: &mut Env) -> Result<(), DeclarationError> {
    for (name, count, function) in LIBRARY_FUNCTIONS {
        let name = REPLACED_FUNCTIONS.iter().find(|(old, _)| old == name).map_or(*name, |(_, new)| *new);
        let any = |count: usize| (0..count).map(|_| DYN_TYPE).collect::<Vec<Type>>();
        env.add_overload(name, &format!("{name}.{count}"), any(*count), *function)?;
        let id = format!("member.{name}.{count}");
        env.add_member_overload(name, &id, DYN_TYPE, any(count - 1), *function)?;
    }
    Ok(())
}

/// Checks a string literal that a policy passes to `quantity`, `semver`, `ip` or `cidr`, or as time zone to a method of
/// timestamps such as `getHours`, so that an invalid one is reported when the policy is loaded.
pub(super) fn check_literal(function: &str, text: &str) -> Result<(), String> {
    if let Some((_, reason)) = length_error(function, text) {
        return Err(reason);
    }
    let time = LibraryValue::call_function("timestamp", &["1970-01-01T00:00:00Z".into()]).ok();
    let target = time.filter(|_| function.starts_with("get"));
    let arguments: Vec<LibraryValue> = target.into_iter().chain([text.into()]).collect();
    match LibraryValue::call_function(function, &arguments) {
        Err(CallError::Failed(problem)) => Err(parse_error(function, Some(text), problem).1),
        _ => Ok(()),
    }
}

pub(super) fn call_library_function<'b, 'v>(
    function: &str,
    arguments: &[CowVal<'b, 'v>],
) -> CelResult<'b, 'v> {
    // The arguments are copied.
    let copied: u64 = arguments.iter().map(|argument| read_cost(argument.as_ref())).sum();
    charge_steps(copied + if matches!(function, "add" | "sub") { QUANTITY_SUM_COST } else { VALUE_COST })?;
    let unsupported = || no_such_overload(function, arguments.iter().map(AsRef::as_ref));
    let text = arguments.iter().find_map(|argument| argument.downcast_ref::<CelString<'_>>());
    let text = text.map(CelString::inner);
    if let Some(format) = text.filter(|_| function == "format") {
        let widths =
            format.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse::<u64>().ok());
        charge_steps(widths.map(|width| width.min(MAX_FORMAT_WIDTH) / 8).sum())?;
    }
    if let Some((function, reason)) = text.and_then(|text| length_error(function, text)) {
        let is_question = function.starts_with("is");
        return if is_question { Ok(boolean(false)) } else { Err(function_error(function, reason)) };
    }
    // Only for `format` has `rewrite` charged for everything in a list or map.
    if function != "format" && arguments.iter().any(|argument| argument.as_ref().as_iterable().is_some()) {
        return Err(unsupported());
    }
    let given: Option<Vec<LibraryValue>> =
        arguments.iter().map(|argument| to_library_value(argument.as_ref())).collect();
    match LibraryValue::call_function(function, &given.ok_or_else(unsupported)?) {
        Ok(value) => Ok(from_library_value(value)),
        Err(CallError::NoSuchOverload) => Err(unsupported()),
        Err(CallError::Failed(problem)) => {
            let (function, reason) = parse_error(function, text, problem);
            Err(function_error(function, reason))
        }
    }
}

/// Converts a value of the interpreter for a call of `tollgate_cel`; `None` if no library function takes values of its
/// type. `rewrite` has charged for everything in it.
fn to_library_value(value: &(dyn Val + '_)) -> Option<LibraryValue> {
    if let Some(value) = value.downcast_ref::<KubernetesValue>() {
        return Some(value.0.clone());
    }
    let Some(mut items) = value.as_iterable().map(|items| items.iter()) else {
        return to_plain_value(value).map(LibraryValue::from);
    };
    let map = value.as_indexer().filter(|_| value.get_type().kind() == Kind::Map);
    let (mut list, mut entries) = (Vec::new(), Vec::new());
    while let Some(item) = items.next() {
        match map {
            Some(map) => {
                entries.push((to_library_value(item)?, to_library_value(map.get(item).ok()?.as_ref())?));
            }
            None => list.push(to_library_value(item)?),
        }
    }
    if map.is_some() { LibraryValue::map(entries) } else { Some(LibraryValue::list(list)) }
}

fn to_plain_value<'a>(value: &'a (dyn Val + '_)) -> Option<PlainValue<'a>> {
    Some(match value.get_type().kind() {
        Kind::NullType => PlainValue::Null,
        Kind::Boolean => PlainValue::Bool(*value.downcast_ref::<CelBool>()?.inner()),
        Kind::Int => PlainValue::Int(*value.downcast_ref::<CelInt>()?.inner()),
        Kind::UInt => PlainValue::Uint(*value.downcast_ref::<CelUInt>()?.inner()),
        Kind::Double => PlainValue::Double(*value.downcast_ref::<CelDouble>()?.inner()),
        Kind::String => PlainValue::Text(value.downcast_ref::<CelString<'_>>()?.inner()),
        Kind::Bytes => PlainValue::Bytes(value.downcast_ref::<CelBytes<'_>>()?.inner()),
        _ => return None,
    })
}

/// Converts a value that `tollgate_cel` returned to a value of the interpreter.
fn from_library_value<'b, 'v>(value: LibraryValue) -> CowVal<'b, 'v> {
    match value.plain_value_if_basic_type() {
        Some(PlainValue::Null) => CowVal::owned(CelNull),
        Some(PlainValue::Bool(value)) => boolean(value),
        Some(PlainValue::Int(value)) => integer(value),
        Some(PlainValue::Uint(value)) => CowVal::owned(CelUInt::from(value)),
        Some(PlainValue::Double(value)) => CowVal::owned(CelDouble::from(value)),
        Some(PlainValue::Text(text)) => string(text),
        Some(PlainValue::Bytes(bytes)) => CowVal::owned(CelBytes::from(bytes.to_vec())),
        None => CowVal::owned(KubernetesValue(value)),
    }
}

/// Returns why a text is too long for a function that parses texts, with the name of the function that parses such
/// texts; `None` if it is not too long.
fn length_error<'f>(function: &'f str, text: &str) -> Option<(&'f str, String)> {
    let length = text.len();
    if length <= MAX_VALUE_BYTES {
        return None;
    }
    let noun = match function {
        "quantity" | "isQuantity" => "quantity",
        "semver" | "isSemver" => "version",
        "timestamp" => "time",
        "ip" | "isIP" | "ip.isCanonical" | "containsIP" | "cidr" | "isCIDR" | "containsCIDR" => {
            return Some(parse_error(function, Some(text), String::new()));
        }
        _ => return None,
    };
    Some((function, format!("a {noun} of {length} bytes is too long; the maximum is {MAX_VALUE_BYTES}")))
}

/// Returns why a function does not accept a text, and the name of the function that parses such texts.
fn parse_error<'f>(function: &'f str, text: Option<&str>, problem: String) -> (&'f str, String) {
    let given = text.unwrap_or_default();
    match function {
        "quantity" => (function, format!("{given:?} is not a quantity: {problem}")),
        "semver" => (function, format!("{given:?} is not a semantic version, such as 1.2.3 or 1.2.3-rc.1")),
        "ip" | "ip.isCanonical" | "containsIP" => ("ip", format!("{given:?} is not an IP address")),
        "cidr" | "containsCIDR" => ("cidr", format!("{given:?} is not a network such as 10.0.0.0/8")),
        "timestamp" => match text.map(gotime::parse_rfc3339) {
            Some(Err(reason)) => (function, reason),
            Some(Ok(_)) => (function, format!("{given:?} is outside the years 1 to 9999")),
            None => (function, "is outside the years 1 to 9999".to_owned()),
        },
        "duration" => match gotime::parse_duration(given) {
            Err(error) => (function, format!("{given:?} is {error}")),
            Ok(_) => (function, problem),
        },
        "add" | "sub" => ("quantity", "the sum has too many digits".to_owned()),
        _ if function.starts_with("get") => {
            let reason = "is not supported; use UTC or an offset such as +02:00";
            ("timestamp", format!("time zone {given:?} {reason}"))
        }
        _ => (function, problem),
    }
}
