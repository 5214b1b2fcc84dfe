//! The types of CEL as the checker sees them, and their two spellings: the one in compilation
//! errors (`duration`) and the one in result-type errors (`google.protobuf.Duration`).
//!
//! Objects and opaque types of the Kubernetes libraries are names only: none has fields, except
//! the device itself, whose fields are in `names`.

use std::fmt::Write as _;
use std::sync::Arc;

pub(super) const DEVICE: &str = "kubernetes.DRADevice";
pub(super) const QUANTITY: &str = "kubernetes.Quantity";
pub(super) const SEMVER: &str = "kubernetes.Semver";
pub(super) const URL: &str = "kubernetes.URL";
pub(super) const IP: &str = "net.IP";
pub(super) const CIDR: &str = "net.CIDR";
pub(super) const FORMAT: &str = "kubernetes.NamedFormat";
/// The name of optional values without a type parameter.
pub(super) const OPTIONAL: &str = "optional_type";

/// A type parameter that is never bound: the element type of the bare name `list`, or the key type of `map`.
pub(super) const UNBOUND_PARAM_A: Type = Type::Param(u32::MAX - 1);
pub(super) const UNBOUND_PARAM_B: Type = Type::Param(u32::MAX);

/// How a notation spells the types of `null`, of any message, of durations and of timestamps, in which notations differ.
type Spelling = [&'static str; 4];
const COMPILE_ERROR: Spelling = ["null", "any", "duration", "timestamp"];
const RESULT_ERROR: Spelling =
    ["null_type", "google.protobuf.Any", "google.protobuf.Duration", "google.protobuf.Timestamp"];

/// The type of an expression or value, for type checking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Type {
    /// The type of a node with an error, which is compatible with every type.
    Error,
    Dyn,
    Any,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Duration,
    Timestamp,
    Named(&'static str),
    List(Arc<Type>),
    Map(Arc<Type>, Arc<Type>),
    Optional(Arc<Type>),
    /// A scalar that may be null: `google.protobuf.Int64Value` is `wrapper(int)`.
    Wrapper(Arc<Type>),
    /// The type of a type: `type(1)` is `type(int)`.
    Meta(Arc<Type>),
    /// The type of types: `type` is `type(type)`.
    AnyMeta,
    /// A type parameter, bound or free; see `unify`.
    Param(u32),
}

impl Type {
    pub(super) fn list(element: Type) -> Type {
        Type::List(Arc::new(element))
    }

    pub(super) fn map(key: Type, value: Type) -> Type {
        Type::Map(Arc::new(key), Arc::new(value))
    }

    pub(super) fn optional(value: Type) -> Type {
        Type::Optional(Arc::new(value))
    }

    /// True for `dyn` and `any`, which are compatible with every type.
    pub(super) fn is_dyn_or_any(&self) -> bool {
        matches!(self, Type::Dyn | Type::Any)
    }

    pub(super) fn is_dyn_any_or_error(&self) -> bool {
        self.is_dyn_or_any() || *self == Type::Error
    }

    /// True for named types that may have fields; the others are opaque.
    pub(super) fn is_object(&self) -> bool {
        matches!(self, Type::Named(name) if !matches!(*name, IP | CIDR | OPTIONAL))
    }

    /// The first type parameter: that of the elements of a list, or of the keys of a map. `None` if there is none.
    pub(super) fn first_type_argument(&self) -> Option<&Type> {
        match self {
            Type::List(inner) | Type::Map(inner, _) | Type::Optional(inner) | Type::Meta(inner) => {
                Some(inner)
            }
            _ => None,
        }
    }

    /// The scalar type that a wrapper wraps; the type itself if it is not a wrapper.
    pub(super) fn without_wrapper(&self) -> &Type {
        if let Type::Wrapper(of) = self { of } else { self }
    }

    /// True if the types are equal, except that a scalar is equal to its wrapper: for cel-go, a wrapper is a copy of the
    /// scalar type.
    pub(super) fn is_equal_ignoring_nullability(&self, other: &Type) -> bool {
        // A type can be exponentially larger than its expression, and then it shares its parts.
        if std::ptr::eq(self, other) {
            return true;
        }
        match (self.without_wrapper(), other.without_wrapper()) {
            (Type::List(left), Type::List(right))
            | (Type::Optional(left), Type::Optional(right))
            | (Type::Meta(left), Type::Meta(right)) => left.is_equal_ignoring_nullability(right),
            (Type::Map(left_key, left_value), Type::Map(right_key, right_value)) => {
                left_key.is_equal_ignoring_nullability(right_key)
                    && left_value.is_equal_ignoring_nullability(right_value)
            }
            (left, right) => left == right,
        }
    }

    /// The name without type parameters: `list`.
    pub(super) fn bare_name(&self) -> String {
        match self {
            Type::List(_) => "list".to_owned(),
            Type::Map(..) => "map".to_owned(),
            Type::Optional(_) => OPTIONAL.to_owned(),
            Type::Meta(_) => "type".to_owned(),
            other => other.result_type_error_spelling(),
        }
    }

    /// The type as spelled in a result-type error.
    pub(super) fn result_type_error_spelling(&self) -> String {
        self.spelled(RESULT_ERROR)
    }

    /// The type as spelled in a compilation error.
    pub(super) fn compile_error_spelling(&self) -> String {
        self.spelled(COMPILE_ERROR)
    }

    fn spelled(&self, spelling: Spelling) -> String {
        let mut text = String::new();
        self.write_spelled(spelling, &mut text);
        text
    }

    /// The compilation error for a value of another type.
    pub(super) fn mismatch_message(&self, found: &Type) -> String {
        let (expected, found) = (self.compile_error_spelling(), found.compile_error_spelling());
        format!("expected type '{expected}' but found '{found}'")
    }

    /// Appends the type in one of the two spellings.
    fn write_spelled(&self, spelling: Spelling, text: &mut String) {
        // A type can be exponentially larger than its expression; nobody reads such a message.
        if text.len() > 4096 {
            return;
        }
        let [null, any, duration, timestamp] = spelling;
        match self {
            Type::Error => text.push_str("!error!"),
            Type::Dyn => text.push_str("dyn"),
            Type::Any => text.push_str(any),
            Type::Null => text.push_str(null),
            Type::Bool => text.push_str("bool"),
            Type::Int => text.push_str("int"),
            Type::Uint => text.push_str("uint"),
            Type::Double => text.push_str("double"),
            Type::String => text.push_str("string"),
            Type::Bytes => text.push_str("bytes"),
            Type::Duration => text.push_str(duration),
            Type::Timestamp => text.push_str(timestamp),
            Type::Named(name) => text.push_str(name),
            Type::List(element) => Self::write_name_with_parameters("list", &[element], spelling, text),
            Type::Map(key, value) => Self::write_name_with_parameters("map", &[key, value], spelling, text),
            Type::Optional(value) => Self::write_name_with_parameters(OPTIONAL, &[value], spelling, text),
            Type::Wrapper(of) => Self::write_name_with_parameters("wrapper", &[of], spelling, text),
            Type::AnyMeta => text.push_str("type"),
            Type::Meta(of) => Self::write_name_with_parameters("type", &[of], spelling, text),
            param if *param == UNBOUND_PARAM_A => text.push('A'),
            param if *param == UNBOUND_PARAM_B => text.push('B'),
            Type::Param(id) => {
                // Writing to a string does not fail.
                let _ = write!(text, "_var{id}");
            }
        }
    }

    /// Appends a type with its parameters in parentheses.
    fn write_name_with_parameters(name: &str, parameters: &[&Type], spelling: Spelling, text: &mut String) {
        text.push_str(name);
        for (position, parameter) in parameters.iter().enumerate() {
            text.push_str(if position == 0 { "(" } else { ", " });
            parameter.write_spelled(spelling, text);
        }
        text.push(')');
    }
}
