//! How a function is declared: name, call style, parameter types, result type, and which
//! environments have it. The declarations themselves are in `functions`.
//!
//! Type parameters are written as [`A`] and [`B`]; each use of a function gets fresh ones.

use super::outcome::{CelEnv, VariableScope};
use super::types::Type;
use super::unify::Unifier;

/// The first type parameter of a declaration.
pub(super) const A: Type = Type::Param(0);
/// The second type parameter of a declaration.
pub(super) const B: Type = Type::Param(1);

/// The call syntax of a function: as a method, or as a function or operator without a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallStyle {
    Global,
    /// Called as `x.name(…)`, where `x` is the first parameter.
    Member,
}

/// One overload of a function.
#[derive(Debug, Clone)]
pub(super) struct Overload {
    pub(super) name: &'static str,
    pub(super) style: CallStyle,
    pub(super) params: Vec<Type>,
    pub(super) result: Type,
    /// True if an environment declares this overload.
    pub(super) is_declared: fn(CelEnv) -> bool,
}

/// A function called as `name(…)`.
pub(super) fn global(name: &'static str, params: impl Into<Vec<Type>>, result: Type) -> Overload {
    Overload { name, style: CallStyle::Global, params: params.into(), result, is_declared: |_| true }
}

/// A function called as `x.name(…)`; `x` is the first parameter.
pub(super) fn member(name: &'static str, params: impl Into<Vec<Type>>, result: Type) -> Overload {
    Overload { style: CallStyle::Member, ..global(name, params, result) }
}

impl Overload {
    /// Restricts the overload to environments with a library or option.
    pub(super) fn requiring(self, is_declared: fn(CelEnv) -> bool) -> Overload {
        Overload { is_declared, ..self }
    }

    /// True if the function is called as a method, `x.name(…)`.
    pub(super) fn is_member(&self) -> bool {
        self.style == CallStyle::Member
    }

    /// The types of the parameters and of the result, with fresh type parameters.
    pub(super) fn instantiate(&self, unifier: &mut Unifier) -> (Vec<Type>, Type) {
        let mut own = [None, None];
        let params =
            self.params.iter().map(|param| with_fresh_parameters(param, unifier, &mut own)).collect();
        (params, with_fresh_parameters(&self.result, unifier, &mut own))
    }
}

/// Declared only for device selectors, because policies cannot evaluate it.
pub(super) fn in_selectors(env: CelEnv) -> bool {
    env.scope == VariableScope::Device
}

/// Declared only for policies, where it can be evaluated although no server has it. A server has no list of mixed types
/// either.
pub(super) fn in_policies(env: CelEnv) -> bool {
    env.scope == VariableScope::Request && env.mixed_literals
}

/// A declared type in which fresh type parameters, those of this use in `own`, stand for [`A`] and [`B`].
fn with_fresh_parameters(declared: &Type, unifier: &mut Unifier, own: &mut [Option<Type>; 2]) -> Type {
    match declared {
        Type::List(element) => Type::list(with_fresh_parameters(element, unifier, own)),
        Type::Map(key, value) => {
            let key = with_fresh_parameters(key, unifier, own);
            Type::map(key, with_fresh_parameters(value, unifier, own))
        }
        Type::Optional(value) => Type::optional(with_fresh_parameters(value, unifier, own)),
        Type::Meta(of) => Type::Meta(with_fresh_parameters(of, unifier, own).into()),
        Type::Param(_) => {
            let [first, second] = own;
            let slot = if *declared == A { first } else { second };
            slot.get_or_insert_with(|| unifier.new_type_parameter()).clone()
        }
        plain => plain.clone(),
    }
}
