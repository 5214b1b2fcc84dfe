//! What identifiers and the fields of a device denote.
//!
//! One variable, `device`; the rest are names of types, as in `type(x) == string`. Loop variables are
//! the checker's.

use super::outcome::CelEnv;
use super::types::{self, Type};

/// The type of a declared identifier. A leading dot means the root of the namespace, which is
/// where everything is declared.
pub(super) fn declared(name: &str) -> Option<Type> {
    let name = name.strip_prefix('.').unwrap_or(name);
    if name == "device" {
        return Some(Type::Named(types::DEVICE));
    }
    type_named(name).map(|of| Type::Meta(of.into()))
}

/// upstream v1.34 `dynamic-resource-allocation/cel`, `newCompiler`
pub(super) fn device_field(field: &str, env: CelEnv) -> Option<Type> {
    let attribute = if env.list_attributes { Type::Dyn } else { Type::Any };
    let by_domain = |value| Type::map(Type::String, Type::map(Type::String, value));
    match field {
        "driver" => Some(Type::String),
        "attributes" => Some(by_domain(attribute)),
        "capacity" => Some(by_domain(Type::Named(types::QUANTITY))),
        "allowMultipleAllocations" if env.allow_multiple_allocations => Some(Type::Bool),
        _ => None,
    }
}

/// The type an identifier denotes, as in `type(x) == string`.
pub(super) fn type_named(name: &str) -> Option<Type> {
    Some(match name {
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "null_type" => Type::Null,
        "dyn" | "type" => Type::Dyn,
        "list" => Type::list(Type::Dyn),
        "map" => Type::map(Type::Dyn, Type::Dyn),
        "optional_type" => Type::optional(Type::Dyn),
        "google.protobuf.Duration" => Type::Duration,
        "google.protobuf.Timestamp" => Type::Timestamp,
        "google.protobuf.Any" => Type::Any,
        types::DEVICE => Type::Named(types::DEVICE),
        types::QUANTITY => Type::Named(types::QUANTITY),
        types::SEMVER => Type::Named(types::SEMVER),
        types::URL => Type::Named(types::URL),
        types::IP => Type::Named(types::IP),
        types::CIDR => Type::Named(types::CIDR),
        types::FORMAT => Type::Named(types::FORMAT),
        other if other.starts_with("google.protobuf.") => Type::Dyn,
        _ => return None,
    })
}
