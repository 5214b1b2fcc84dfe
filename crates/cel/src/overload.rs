//! How a function is declared: name, call style, parameter types, result type, and which
//! environments have it. The declarations themselves are in `functions`.
//!
//! Declarations are constants, so parameter types are written as a small static language and turned
//! into checker types, with fresh parameters, at each use.

use super::outcome::{CelEnv, Scope};
use super::types::Type;
use super::unify::Unifier;

/// The type of a parameter or result in the declaration of a function, such as `List(&A)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decl {
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
    List(&'static Decl),
    Map(&'static Decl, &'static Decl),
    Opt(&'static Decl),
    Meta(&'static Decl),
    /// The first type parameter of the declaration.
    A,
    B,
}

/// The call syntax of a function: as a method, globally, or as an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallStyle {
    Global,
    /// Called as `x.name(…)`, where `x` is the first parameter.
    Member,
}

/// The library or option of an environment that declares a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Since {
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

impl Since {
    /// True if the environment declares functions of this library or option.
    fn is_in(self, env: CelEnv) -> bool {
        match self {
            Since::Always => true,
            Since::ExtLists => env.ext_lists,
            Since::Includes => env.includes,
            Since::SemverNormalize => env.semver_normalize,
            Since::DurationOfInt => env.duration_of_int,
            Since::Selectors => env.scope == Scope::Device,
            // A server has no list of mixed types either.
            Since::Policies => env.scope == Scope::Request && env.mixed_literals,
        }
    }
}

/// One overload of a function.
#[derive(Debug, Clone, Copy)]
pub(super) struct Overload {
    pub(super) name: &'static str,
    pub(super) style: CallStyle,
    pub(super) params: &'static [Decl],
    pub(super) result: Decl,
    since: Since,
}

/// A function called as `name(…)`.
pub(super) const fn global(name: &'static str, params: &'static [Decl], result: Decl) -> Overload {
    Overload { name, style: CallStyle::Global, params, result, since: Since::Always }
}

/// A function called as `x.name(…)`; `x` is the first parameter.
pub(super) const fn member(name: &'static str, params: &'static [Decl], result: Decl) -> Overload {
    Overload { name, style: CallStyle::Member, params, result, since: Since::Always }
}

impl Overload {
    /// Restricts the overload to environments with this library or option.
    pub(super) const fn since(self, since: Since) -> Overload {
        Overload { since, ..self }
    }

    /// True if the function is called as a method, `x.name(…)`.
    pub(super) fn is_member(&self) -> bool {
        self.style == CallStyle::Member
    }

    /// True if the environment declares this overload.
    pub(super) fn is_declared(&self, env: CelEnv) -> bool {
        self.since.is_in(env)
    }

    /// The types of the parameters and of the result, with fresh type parameters.
    pub(super) fn instantiate(&self, unifier: &mut Unifier) -> (Vec<Type>, Type) {
        let mut own = [None, None];
        let params = self.params.iter().map(|param| param.instantiate(unifier, &mut own)).collect();
        let result = self.result.instantiate(unifier, &mut own);
        (params, result)
    }
}

impl Decl {
    /// The checker's type; `own` are the fresh type parameters of this use.
    fn instantiate(&self, unifier: &mut Unifier, own: &mut [Option<Type>; 2]) -> Type {
        match self {
            Decl::Dyn => Type::Dyn,
            Decl::Bool => Type::Bool,
            Decl::Int => Type::Int,
            Decl::Uint => Type::Uint,
            Decl::Double => Type::Double,
            Decl::Str => Type::String,
            Decl::Bytes => Type::Bytes,
            Decl::Duration => Type::Duration,
            Decl::Timestamp => Type::Timestamp,
            Decl::Named(name) => Type::Named(name),
            Decl::List(element) => Type::list(element.instantiate(unifier, own)),
            Decl::Map(key, value) => {
                let key = key.instantiate(unifier, own);
                Type::map(key, value.instantiate(unifier, own))
            }
            Decl::Opt(value) => Type::optional(value.instantiate(unifier, own)),
            Decl::Meta(of) => Type::Meta(std::rc::Rc::new(of.instantiate(unifier, own))),
            Decl::A | Decl::B => {
                let [first, second] = own;
                let slot = if *self == Decl::A { first } else { second };
                slot.get_or_insert_with(|| unifier.fresh()).clone()
            }
        }
    }
}
