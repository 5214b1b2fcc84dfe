//! What a check is asked ([`ExpressionPurpose`], [`CelEnv`]) and what it answers ([`CheckOutcome`]), with the rule
//! for result types.
//!
//! An environment is what one release offers to a *new* expression: the libraries introduced at or
//! before the release it must stay compatible with, normally the previous one. Expressions already
//! stored see more; the caller does not re-check those.

use super::types::Type;

/// The variables that an expression can use, which also determine its functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VariableScope {
    /// `device`, with every function of the release.
    Device,
    /// `object`, `oldObject`, `request` and `namespaceObject`, whose types are not known, with the functions that can
    /// be evaluated.
    Request,
}

impl VariableScope {
    /// Returns the names of the variables that expressions can use.
    pub fn variables(self) -> &'static [&'static str] {
        match self {
            VariableScope::Device => &["device"],
            VariableScope::Request => &["object", "oldObject", "request", "namespaceObject"],
        }
    }
}

/// The environment of an expression: variables, functions and limits. Differences between releases are flags.
#[allow(clippy::struct_excessive_bools, reason = "each is one library or option a release has or lacks")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CelEnv {
    /// The available variables.
    pub scope: VariableScope,
    /// True if attribute values have the type `dyn` and may be lists. Otherwise their type is `any`.
    pub list_attributes: bool,
    /// True if the list functions `sort`, `slice`, `distinct`, `lists.range` and others exist.
    pub ext_lists: bool,
    /// True if `includes` on lists and attributes exists.
    pub includes: bool,
    /// True if `device.allowMultipleAllocations` exists.
    pub allow_multiple_allocations: bool,
    /// True if `semver(s, normalize)` and `isSemver(s, normalize)` exist.
    pub semver_normalize: bool,
    /// True if field names can be written in backticks.
    pub escaped_identifiers: bool,
    /// True if a leading dot skips loop variables, and only type names create messages.
    pub scoped_names: bool,
    /// True if `duration(1)` is declared, although conversion of numbers always fails.
    pub duration_of_int: bool,
    /// True if a selector may evaluate to `google.protobuf.Any`, even if attribute values are `dyn`.
    pub any_is_unknown: bool,
    /// True if `matches(text, pattern)` has the same cost as `text.matches(pattern)`.
    pub matches_function_has_cost: bool,
    /// True if the cost of `includes` depends on the length of its list. Otherwise it depends on the longest attribute.
    pub includes_is_traversal: bool,
    /// True if lists and maps may contain items of different types.
    pub mixed_literals: bool,
}

/// The CEL environment of Kubernetes 1.33.
pub const V1_33: CelEnv = CelEnv {
    scope: VariableScope::Device,
    list_attributes: false,
    ext_lists: false,
    includes: false,
    allow_multiple_allocations: false,
    semver_normalize: false,
    escaped_identifiers: false,
    scoped_names: false,
    duration_of_int: true,
    any_is_unknown: true,
    matches_function_has_cost: false,
    includes_is_traversal: false,
    mixed_literals: false,
};
/// The CEL environment of Kubernetes 1.34.
pub const V1_34: CelEnv = CelEnv { allow_multiple_allocations: true, semver_normalize: true, ..V1_33 };
/// The CEL environment of Kubernetes 1.35.
pub const V1_35: CelEnv = CelEnv { ext_lists: true, ..V1_34 };
/// The CEL environment of Kubernetes 1.36.
pub const V1_36: CelEnv = CelEnv { list_attributes: true, includes: true, ..V1_35 };
/// The CEL environment of Kubernetes 1.37.
pub const V1_37: CelEnv = CelEnv {
    scoped_names: true,
    duration_of_int: false,
    any_is_unknown: false,
    matches_function_has_cost: true,
    includes_is_traversal: true,
    escaped_identifiers: true,
    ..V1_36
};

/// Environment of policy expressions: that of the newest release, without libraries that are not evaluated.
pub const POLICY_ENV: CelEnv = CelEnv { mixed_literals: true, ..ADMISSION_POLICY_ENV };

/// Environment of policy expressions that are also valid in a ValidatingAdmissionPolicy.
pub const ADMISSION_POLICY_ENV: CelEnv = CelEnv {
    scope: VariableScope::Request,
    ext_lists: false,
    includes: false,
    semver_normalize: false,
    ..V1_37
};

/// The purpose of an expression, which determines its result type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExpressionPurpose {
    /// A device selector: a boolean, or a value whose type is unknown before evaluation.
    Selector,
    /// A derived attribute: a scalar that an attribute can have, or a list of such scalars.
    DerivedAttribute,
    /// A condition or validation of a policy: a boolean, or a value whose type is unknown before evaluation.
    Condition,
    /// The message of a validation: a string, or a value whose type is unknown before evaluation.
    Message,
}

/// The result of checking an expression, with the API server's message if it is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckOutcome {
    /// The expression compiles, has the right type, and its worst-case cost is within the limit.
    Accepted {
        /// The API server's estimate of the worst-case cost.
        cost: u64,
    },
    /// The expression does not compile. The text is the API server's: `compilation failed: ERROR: <input>:1:1: …`.
    CompileError(String),
    /// The expression has the wrong type. The text is the API server's: `must evaluate to …, not …`.
    WrongType(String),
    /// The expression compiles, but a constant in it cannot be computed. The text is the API server's: `program
    /// instantiation failed: …`.
    ProgramError(String),
    /// The worst-case cost exceeds the API server's limit.
    TooComplex {
        /// The API server's estimate of the worst-case cost, which exceeds the limit.
        cost: u64,
    },
    /// Not checked because of Tollgate's own safety limits; with the reason. The expression may be valid.
    Unchecked(&'static str),
}

/// The detail text if a result of this type is wrong for the target; `None` if it is right.
pub(super) fn wrong_type_message(result: &Type, target: ExpressionPurpose, env: CelEnv) -> Option<String> {
    match target {
        ExpressionPurpose::Selector => is_wrong_selector_type(result, env).then(|| {
            format!("must evaluate to bool or the unknown type, not {}", result.result_type_error_spelling())
        }),
        ExpressionPurpose::DerivedAttribute => is_wrong_derived_attribute_type(result, env).then(|| {
            let lists = if env.list_attributes { " or a list of these scalars" } else { "" };
            format!(
                "must evaluate to a primitive scalar (string, integer, boolean, semver){lists}, not {}",
                result.result_type_error_spelling()
            )
        }),
        ExpressionPurpose::Condition => {
            is_certainly_other_type(result, &Type::Bool).then(|| "must evaluate to bool".to_owned())
        }
        ExpressionPurpose::Message => {
            is_certainly_other_type(result, &Type::String).then(|| "must evaluate to string".to_owned())
        }
    }
}

/// True if the type is known and is not the wanted one. A server rejects unknown types as well, which may
/// turn out to be right.
fn is_certainly_other_type(result: &Type, wanted: &Type) -> bool {
    !result.is_dyn_any_or_error() && result != wanted
}

/// True if a selector must not have this type: it must be bool or the unknown type, which is the type of an attribute
/// value. So `dyn(1)` is wrong where attribute values are `any`.
fn is_wrong_selector_type(result: &Type, env: CelEnv) -> bool {
    match result {
        Type::Bool => false,
        Type::Dyn => !env.list_attributes,
        Type::Any => env.list_attributes && !env.any_is_unknown,
        Type::Wrapper(of) => env.any_is_unknown || **of != Type::Bool,
        _ => true,
    }
}

/// True if a derived attribute must not have this type.
fn is_wrong_derived_attribute_type(result: &Type, env: CelEnv) -> bool {
    match result {
        Type::List(element) if env.list_attributes => !is_attribute_scalar(element),
        other => !is_attribute_scalar(other),
    }
}

/// True if an attribute can hold a value of this type.
fn is_attribute_scalar(value: &Type) -> bool {
    matches!(
        value.without_wrapper(),
        Type::String
            | Type::Int
            | Type::Bool
            | Type::Named(super::types::SEMVER)
            | Type::Dyn
            | Type::Any
            | Type::Error
    )
}
