//! How a function is declared: name, call style, parameter types, result type, and which
//! environments have it. The declarations themselves are in `functions`.
//!
//! Declarations are constants, so parameter types are written as a small static language and turned
//! into checker types, with fresh parameters, at each use.

use super::outcome::{CelEnv, VariableScope};
use super::types::Type;
use super::unify::Unifier;

/// The type of a parameter or result in the declaration of a function, such as `List(&A)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeclaredType {
    Dyn,
    Bool,
    Int,
    Uint,
    Double,
    Str,
    Bytes,
    Duration,
    Timestamp,
    Named(&'static str),
    List(&'static DeclaredType),
    Map(&'static DeclaredType, &'static DeclaredType),
    Opt(&'static DeclaredType),
    Meta(&'static DeclaredType),
    /// The first type parameter of the declaration.
    A,
    B,
}

/// The call syntax of a function: as a method, or as a function or operator without a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallStyle {
    Global,
    /// Called as `x.name(…)`, where `x` is the first parameter.
    Member,
}

/// The library or option of an environment that declares a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequiredLibrary {
    Always,
    ExtLists,
    Includes,
    SemverNormalize,
    DurationOfInt,
    /// Declared only for device selectors, because policies cannot evaluate it.
    Selectors,
    /// Declared only for policies, where it can be evaluated although no server has it.
    Policies,
}

/// One overload of a function.
#[derive(Debug, Clone, Copy)]
pub(super) struct Overload {
    pub(super) name: &'static str,
    pub(super) style: CallStyle,
    pub(super) params: &'static [DeclaredType],
    pub(super) result: DeclaredType,
    since: RequiredLibrary,
}

/// A function called as `name(…)`.
pub(super) const fn global(
    name: &'static str,
    params: &'static [DeclaredType],
    result: DeclaredType,
) -> Overload {
    Overload { name, style: CallStyle::Global, params, result, since: RequiredLibrary::Always }
}

/// A function called as `x.name(…)`; `x` is the first parameter.
pub(super) const fn member(
    name: &'static str,
    params: &'static [DeclaredType],
    result: DeclaredType,
) -> Overload {
    Overload { name, style: CallStyle::Member, params, result, since: RequiredLibrary::Always }
}

impl Overload {
    /// Restricts the overload to environments with this library or option.
    pub(super) const fn requiring(self, since: RequiredLibrary) -> Overload {
        Overload { since, ..self }
    }

    /// True if the function is called as a method, `x.name(…)`.
    pub(super) fn is_member(&self) -> bool {
        self.style == CallStyle::Member
    }

    /// True if the environment declares this overload.
    pub(super) fn is_declared(&self, env: CelEnv) -> bool {
        match self.since {
            RequiredLibrary::Always => true,
            RequiredLibrary::ExtLists => env.ext_lists,
            RequiredLibrary::Includes => env.includes,
            RequiredLibrary::SemverNormalize => env.semver_normalize,
            RequiredLibrary::DurationOfInt => env.duration_of_int,
            RequiredLibrary::Selectors => env.scope == VariableScope::Device,
            // A server has no list of mixed types either.
            RequiredLibrary::Policies => env.scope == VariableScope::Request && env.mixed_literals,
        }
    }

    /// The types of the parameters and of the result, with fresh type parameters.
    pub(super) fn instantiate(&self, unifier: &mut Unifier) -> (Vec<Type>, Type) {
        let mut own = [None, None];
        let params = self.params.iter().map(|param| param.checker_type(unifier, &mut own)).collect();
        let result = self.result.checker_type(unifier, &mut own);
        (params, result)
    }
}

impl DeclaredType {
    /// The checker's type; `own` are the fresh type parameters of this use.
    fn checker_type(&self, unifier: &mut Unifier, own: &mut [Option<Type>; 2]) -> Type {
        match self {
            DeclaredType::Dyn => Type::Dyn,
            DeclaredType::Bool => Type::Bool,
            DeclaredType::Int => Type::Int,
            DeclaredType::Uint => Type::Uint,
            DeclaredType::Double => Type::Double,
            DeclaredType::Str => Type::String,
            DeclaredType::Bytes => Type::Bytes,
            DeclaredType::Duration => Type::Duration,
            DeclaredType::Timestamp => Type::Timestamp,
            DeclaredType::Named(name) => Type::Named(name),
            DeclaredType::List(element) => Type::list(element.checker_type(unifier, own)),
            DeclaredType::Map(key, value) => {
                let key = key.checker_type(unifier, own);
                Type::map(key, value.checker_type(unifier, own))
            }
            DeclaredType::Opt(value) => Type::optional(value.checker_type(unifier, own)),
            DeclaredType::Meta(of) => Type::Meta(std::rc::Rc::new(of.checker_type(unifier, own))),
            DeclaredType::A | DeclaredType::B => {
                let [first, second] = own;
                let slot = if *self == DeclaredType::A { first } else { second };
                slot.get_or_insert_with(|| unifier.new_type_parameter()).clone()
            }
        }
    }
}
