//! Every function a device expression can call, as data: the standard library, cel-go's extensions
//! and the Kubernetes libraries.
//!
//! Sources: cel-go `common/stdlib`, `ext`, `cel/library.go`; Kubernetes `apiserver/pkg/cel/library`.
//! Absent on purpose, because the server has no such library: `math.*`, `base64.*`, `jsonpatch.*`.

mod extensions;
mod kubernetes;
mod standard;

use std::sync::LazyLock;

use super::outcome::CelEnv;
use super::overload::Overload;
use super::types::Type;

/// Every overload, in declaration order.
static OVERLOADS: LazyLock<Vec<Overload>> =
    LazyLock::new(|| [standard::overloads(), extensions::overloads(), kubernetes::overloads()].concat());

/// The types whose values can be sorted.
const ORDERED_TYPES: [Type; 8] = [
    Type::Int,
    Type::Uint,
    Type::Double,
    Type::Bool,
    Type::Duration,
    Type::Timestamp,
    Type::String,
    Type::Bytes,
];

/// The names of the functions and operators that the environment declares, once for each overload.
pub fn function_names_per_overload(env: CelEnv) -> impl Iterator<Item = &'static str> {
    declared_overloads(env).map(|overload| overload.name)
}

/// The overloads of a function that the environment declares, in declaration order.
pub(super) fn overloads(name: &str, env: CelEnv) -> impl Iterator<Item = &'static Overload> {
    // Names may be written with a leading dot, which means the root of the namespace.
    let name = name.strip_prefix('.').unwrap_or(name);
    declared_overloads(env).filter(move |overload| overload.name == name)
}

fn declared_overloads(env: CelEnv) -> impl Iterator<Item = &'static Overload> {
    OVERLOADS.iter().filter(move |overload| (overload.is_declared)(env))
}
