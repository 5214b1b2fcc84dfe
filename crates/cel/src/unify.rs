//! Type parameters: which type may stand where another is expected, and what parameters become.
//!
//! Follows cel-go's rules, not the textbook: `dyn` and `any` agree with everything, `null` with any
//! object, and a parameter already bound is widened to the more general type when both agree.
//!
//! Invariant: a failed attempt leaves no binding behind. Work is bounded by fuel, since a type can be
//! exponentially larger than the expression that builds it.

use std::sync::Arc;

use super::types::Type;

/// Maximum number of unification steps for one expression. Real selectors need some thousands.
const MAX_UNIFICATION_STEPS: u32 = 500_000;

/// The type parameters of one expression, and the types that they are bound to.
pub(super) struct Unifier {
    bindings: Vec<Option<Type>>,
    /// Bindings to restore if the current attempt fails.
    trail: Vec<(u32, Option<Type>)>,
    fuel: u32,
}

impl Unifier {
    pub(super) fn new() -> Self {
        Unifier { bindings: Vec::new(), trail: Vec::new(), fuel: MAX_UNIFICATION_STEPS }
    }

    /// True if the step limit is reached, so that results are no longer reliable.
    pub(super) fn is_exhausted(&self) -> bool {
        self.fuel == 0
    }

    /// Creates a new type parameter.
    pub(super) fn new_type_parameter(&mut self) -> Type {
        let id = u32::try_from(self.bindings.len()).unwrap_or(u32::MAX);
        self.bindings.push(None);
        Type::Param(id)
    }

    /// True if a value of type `from` is assignable to `to`. Binds parameters if so.
    pub(super) fn bind_if_assignable(&mut self, from: &Type, to: &Type) -> bool {
        self.unify_or_revert(|unifier| unifier.unify_assignable_without_revert(from, to))
    }

    /// True if both lists have the same length and each type is assignable; binds parameters only if all are.
    pub(super) fn bind_if_all_assignable(&mut self, from: &[Type], to: &[Type]) -> bool {
        from.len() == to.len()
            && self.unify_or_revert(|unifier| {
                from.iter().zip(to).all(|(from, to)| unifier.unify_assignable_without_revert(from, to))
            })
    }

    /// The type with bound parameters replaced; free ones stay.
    pub(super) fn resolve_bound(&mut self, found: &Type) -> Type {
        self.substitute(found, None)
    }

    /// The type with bound parameters replaced and free ones as `dyn`.
    pub(super) fn resolve_free_as_dyn(&mut self, found: &Type) -> Type {
        self.substitute(found, Some(&Type::Dyn))
    }

    /// Calls `unify`, and reverts its bindings if it returns false.
    fn unify_or_revert(&mut self, unify: impl FnOnce(&mut Self) -> bool) -> bool {
        self.trail.clear();
        let agreed = unify(self);
        if !agreed {
            while let Some((id, old)) = self.trail.pop() {
                if let Some(slot) = self.bindings.get_mut(id as usize) {
                    *slot = old;
                }
            }
        }
        agreed
    }

    /// Counts a step; returns true if the limit is reached.
    fn is_exhausted_after_counting_step(&mut self) -> bool {
        self.fuel = self.fuel.saturating_sub(1);
        self.fuel == 0
    }

    /// The type that a parameter is bound to; `None` if it is free.
    fn binding(&self, id: u32) -> Option<&Type> {
        self.bindings.get(id as usize).and_then(Option::as_ref)
    }

    /// Binds a parameter to a type, and remembers the earlier binding so that the attempt can be reverted.
    fn bind(&mut self, id: u32, bound: Type) {
        if let Some(slot) = self.bindings.get_mut(id as usize) {
            let old = slot.replace(bound);
            self.trail.push((id, old));
        }
    }

    /// True if a value of type `from` is assignable to `to`. Binds parameters on the way, even if the result is false.
    fn unify_assignable_without_revert(&mut self, from: &Type, to: &Type) -> bool {
        if self.is_exhausted_after_counting_step() {
            return true;
        }
        if let Type::Param(id) = to {
            match self.bind_or_widen(from, *id) {
                SubstitutionResult::Agreed => return true,
                SubstitutionResult::Refused => return false,
                // Try the other direction below.
                SubstitutionResult::Cyclic => {}
            }
        }
        if let Type::Param(id) = from {
            return self.bind_or_widen(to, *id) == SubstitutionResult::Agreed;
        }
        if from.is_dyn_any_or_error() || to.is_dyn_any_or_error() {
            return true;
        }
        match (from, to) {
            (Type::Null, other) | (other, Type::Null) => is_nullable(other),
            (Type::Wrapper(from), Type::Wrapper(to)) => from == to,
            (Type::Wrapper(of), other) | (other, Type::Wrapper(of)) => **of == *other,
            // A type is a type: what it is a type of does not matter for agreement.
            (Type::Meta(_) | Type::AnyMeta, Type::Meta(_) | Type::AnyMeta) => true,
            (Type::List(from), Type::List(to)) | (Type::Optional(from), Type::Optional(to)) => {
                self.unify_assignable_without_revert(from, to)
            }
            (Type::Map(from_key, from_value), Type::Map(to_key, to_value)) => {
                self.unify_assignable_without_revert(from_key, to_key)
                    && self.unify_assignable_without_revert(from_value, to_value)
            }
            (from, to) => from == to,
        }
    }

    /// Checks whether parameter `id` can be `found`, and binds or widens the parameter if so.
    fn bind_or_widen(&mut self, found: &Type, id: u32) -> SubstitutionResult {
        if *found == Type::Param(id) {
            return SubstitutionResult::Agreed;
        }
        let Some(bound) = self.binding(id).cloned() else {
            if self.occurs(id, found) {
                return SubstitutionResult::Cyclic;
            }
            self.bind(id, found.clone());
            return SubstitutionResult::Agreed;
        };
        // Between a scalar and its wrapper, the first one stays.
        if found.is_equal_ignoring_nullability(&bound) {
            return SubstitutionResult::Agreed;
        }
        if !self.unify_assignable_without_revert(found, &bound) {
            return SubstitutionResult::Refused;
        }
        let general = if is_equal_or_less_specific(found, &bound) { found.clone() } else { bound };
        if !self.occurs(id, &general) {
            self.bind(id, general);
        }
        SubstitutionResult::Agreed
    }

    /// True if a parameter occurs in a type, so that binding it would make the type contain itself.
    fn occurs(&mut self, id: u32, within: &Type) -> bool {
        if self.is_exhausted_after_counting_step() {
            return true;
        }
        match within {
            Type::Param(other) if *other == id => true,
            Type::Param(other) => match self.binding(*other).cloned() {
                Some(bound) => self.occurs(id, &bound),
                None => false,
            },
            Type::List(inner) | Type::Optional(inner) | Type::Meta(inner) => self.occurs(id, inner),
            Type::Map(key, value) => self.occurs(id, key) || self.occurs(id, value),
            _ => false,
        }
    }

    /// The type with bound parameters replaced, and free ones by `free` if given.
    fn substitute(&mut self, found: &Type, free: Option<&Type>) -> Type {
        if self.is_exhausted_after_counting_step() {
            return Type::Dyn;
        }
        match found {
            Type::Param(id) => match self.binding(*id).cloned() {
                Some(bound) => self.substitute(&bound, free),
                None => free.unwrap_or(found).clone(),
            },
            Type::List(inner) => Type::List(Arc::new(self.substitute(inner, free))),
            Type::Optional(inner) => Type::Optional(Arc::new(self.substitute(inner, free))),
            Type::Meta(inner) => Type::Meta(Arc::new(self.substitute(inner, free))),
            Type::Map(key, value) => {
                Type::Map(Arc::new(self.substitute(key, free)), Arc::new(self.substitute(value, free)))
            }
            plain => plain.clone(),
        }
    }
}

/// Whether a type can replace a type parameter.
#[derive(PartialEq)]
enum SubstitutionResult {
    Agreed,
    /// The parameter is bound to an incompatible type.
    Refused,
    /// Binding the parameter would make the type contain itself.
    Cyclic,
}

/// True if `null` is a valid value of the type.
fn is_nullable(found: &Type) -> bool {
    matches!(
        found,
        Type::Null | Type::Named(_) | Type::Optional(_) | Type::Duration | Type::Timestamp | Type::Wrapper(_)
    )
}

/// The more general of two types that are known to agree.
pub(super) fn most_general(left: &Type, right: &Type) -> Type {
    if is_equal_or_less_specific(left, right) { left.clone() } else { right.clone() }
}

/// True if the left type is equal to the right one, or more general.
fn is_equal_or_less_specific(left: &Type, right: &Type) -> bool {
    if left.is_dyn_or_any() || matches!(left, Type::Param(_)) {
        return true;
    }
    if right.is_dyn_or_any() || matches!(right, Type::Param(_)) {
        return false;
    }
    match (left, right) {
        (Type::List(left), Type::List(right)) | (Type::Optional(left), Type::Optional(right)) => {
            Arc::ptr_eq(left, right) || is_equal_or_less_specific(left, right)
        }
        (Type::Map(left_key, left_value), Type::Map(right_key, right_value)) => {
            (Arc::ptr_eq(left_key, right_key) || is_equal_or_less_specific(left_key, right_key))
                && (Arc::ptr_eq(left_value, right_value)
                    || is_equal_or_less_specific(left_value, right_value))
        }
        (Type::Meta(_) | Type::AnyMeta, Type::Meta(_) | Type::AnyMeta) => true,
        (Type::Wrapper(of), other) | (other, Type::Wrapper(of)) => {
            other == &**of || matches!(other, Type::Wrapper(same) if same == of)
        }
        (left, right) => left == right,
    }
}
