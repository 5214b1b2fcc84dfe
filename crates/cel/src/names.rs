//! What identifiers denote, and which messages have which fields.
//!
//! Variables are those of the environment; the rest are names of types, as in `type(x) == string`. The checker resolves
//! loop variables.

use super::outcome::{CelEnv, VariableScope};
use super::types::{self, Type};

/// The only value of the enum `google.protobuf.NullValue`.
pub(super) const NULL_VALUE: &str = "google.protobuf.NullValue.NULL_VALUE";

/// The type of a declared identifier; `None` if it is not declared. A leading dot refers to the root
/// namespace, in which everything is declared.
pub(super) fn declared_identifier_type(name: &str, env: CelEnv) -> Option<Type> {
    let name = name.strip_prefix('.').unwrap_or(name);
    match name {
        _ if env.scope.variables().contains(&name) => Some(match env.scope {
            VariableScope::Device => Type::Named(types::DEVICE),
            VariableScope::Request => Type::Dyn,
        }),
        NULL_VALUE => Some(Type::Int),
        _ => type_named(name, env).map(|of| Type::Meta(of.into())),
    }
}

/// The name by which the fields of a type with this name are looked up; `None` if the type has no fields to set.
pub(super) fn field_lookup_name<'n>(found: &Type, name: &'n str, env: CelEnv) -> Option<&'n str> {
    match found {
        Type::Null => Some("google.protobuf.NullValue"),
        Type::Duration => Some("google.protobuf.Duration"),
        Type::Timestamp => Some("google.protobuf.Timestamp"),
        Type::List(_) if env.scoped_names => Some("google.protobuf.ListValue"),
        _ => Some(name).filter(|name| found.is_object() || name.starts_with("google.protobuf.")),
    }
}

/// The type of a field of a message, by their names; the server's error if there is no such field or message.
pub(super) fn field_type(message: &str, field: &str, env: CelEnv) -> Result<Type, String> {
    let found = match message {
        types::DEVICE => device_field_type(field, env),
        "bool" | "int" | "uint" | "double" | "string" | "bytes" | "list" | "map" => {
            protobuf_field_type(message, field, env)
        }
        _ if message.starts_with("google.protobuf.") && type_named(message, env).is_some() => {
            protobuf_field_type(message, field, env)
        }
        _ => return Err(format!("unexpected failed resolution of '{message}'")),
    };
    found.ok_or_else(|| format!("undefined field '{field}'"))
}

/// The type of a field of a protobuf message or a map; `None` if there is none.
fn protobuf_field_type(message: &str, field: &str, env: CelEnv) -> Option<Type> {
    let name = message.strip_prefix("google.protobuf.").unwrap_or(message);
    Some(match (name, field) {
        ("Duration" | "Timestamp", "seconds" | "nanos") | ("Value", "null_value") => Type::Int,
        ("Any", "type_url") | ("Value", "string_value") | ("Struct.FieldsEntry", "key") => Type::String,
        ("Any", "value") => Type::Bytes,
        ("Value", "number_value") => Type::Double,
        ("Value", "bool_value") => Type::Bool,
        ("Value", "struct_value") | ("Struct", "fields") => Type::map(Type::String, Type::Dyn),
        ("Value", "list_value") | ("ListValue", "values") => Type::list(Type::Dyn),
        // Any field of a map is an entry.
        ("Struct.FieldsEntry", "value") | ("map", _) => Type::Dyn,
        (_, "value") => match type_named(message, env) {
            Some(Type::Wrapper(of)) => (*of).clone(),
            _ => return None,
        },
        _ => return None,
    })
}

/// The type of a field of the device; `None` if the release has no such field. upstream v1.34
/// `dynamic-resource-allocation/cel`, `newCompiler`
fn device_field_type(field: &str, env: CelEnv) -> Option<Type> {
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

/// The type that an identifier denotes, as in `type(x) == string`; `None` if it denotes none. Most types of the
/// Kubernetes libraries have no name that an expression can use.
pub(super) fn type_named(name: &str, env: CelEnv) -> Option<Type> {
    let wrapper = |of: Type| Type::Wrapper(of.into());
    Some(match name {
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "null_type" => Type::Null,
        "type" => Type::AnyMeta,
        "google.protobuf.ListValue" => Type::list(Type::Dyn),
        "list" if env.scoped_names => Type::list(Type::Dyn),
        "list" => Type::list(types::UNBOUND_PARAM_A),
        "map" if env.scoped_names => Type::map(Type::Dyn, Type::Dyn),
        "map" => Type::map(types::UNBOUND_PARAM_A, types::UNBOUND_PARAM_B),
        "optional_type" if env.scoped_names => Type::optional(Type::Dyn),
        "optional_type" => Type::Named(types::OPTIONAL),
        "duration" | "google.protobuf.Duration" => Type::Duration,
        "timestamp" | "google.protobuf.Timestamp" => Type::Timestamp,
        "google.protobuf.Any" => Type::Any,
        "google.protobuf.Value" => Type::Dyn,
        "google.protobuf.Struct" => Type::map(Type::String, Type::Dyn),
        "google.protobuf.Int64Value" | "google.protobuf.Int32Value" => wrapper(Type::Int),
        "google.protobuf.UInt64Value" | "google.protobuf.UInt32Value" => wrapper(Type::Uint),
        "google.protobuf.DoubleValue" | "google.protobuf.FloatValue" => wrapper(Type::Double),
        "google.protobuf.StringValue" => wrapper(Type::String),
        "google.protobuf.BoolValue" => wrapper(Type::Bool),
        "google.protobuf.BytesValue" => wrapper(Type::Bytes),
        "google.protobuf.Empty" => Type::Named("google.protobuf.Empty"),
        "google.protobuf.Struct.FieldsEntry" => Type::Named("google.protobuf.Struct.FieldsEntry"),
        types::DEVICE if env.scope == VariableScope::Device => Type::Named(types::DEVICE),
        types::IP => Type::Named(types::IP),
        types::CIDR => Type::Named(types::CIDR),
        _ => return None,
    })
}
