//! Message literals, such as `google.protobuf.Duration{seconds: 1}`, and the fields of messages.
//!
//! The device is a message too. The types of the Kubernetes libraries have no fields.

use super::{Checker, undeclared_message};
use crate::names;
use crate::tree::{NodeId, StructField};
use crate::types::Type;

impl<'t> Checker<'t, '_> {
    /// Checks a message literal and its fields; returns its type.
    pub(super) fn check_message(&mut self, id: NodeId, name: &str, fields: &'t [StructField]) -> Type {
        let (env, plain) = (self.env, name.strip_prefix('.').unwrap_or(name));
        // Only names of types are looked for since names have scopes.
        let unscoped = |found: Option<Type>| found.filter(|_| !env.scoped_names);
        let local = unscoped(self.loop_variable_type(name)).map(|found| (found, name));
        let (found, message) = match names::type_named(plain, env) {
            Some(found) if local.is_none() => {
                if let Some(message) = names::field_lookup_name(&found, plain, env) {
                    (found, message.to_owned())
                } else {
                    self.report(id, format!("'{}' is not a message type", found.bare_name()));
                    (Type::Error, found.bare_name())
                }
            }
            _ => {
                let declared = || Some((unscoped(names::declared_identifier_type(plain, env))?, plain));
                let Some((found, message)) = local.or_else(declared) else {
                    self.report(id, undeclared_message(name));
                    return Type::Error;
                };
                self.report(id, format!("'{}' is not a type", found.bare_name()));
                (Type::Error, message.to_owned())
            }
        };
        for field in fields {
            let value = self.check_node(field.value);
            let expected = self.message_field_type(field.at, &message, &field.name);
            let value = if field.optional { self.unwrap_optional(field.value, &value) } else { value };
            if !self.unifier.bind_if_assignable(&expected, &value) {
                let text = format!(
                    "expected type of field '{}' is '{}' but provided type is '{}'",
                    field.name,
                    expected.compile_error_spelling(),
                    value.compile_error_spelling()
                );
                self.issues.report(field.at, text);
            }
        }
        found
    }

    /// The type of a field of a message; reports if there is no such field.
    pub(super) fn message_field_type(&mut self, at: usize, message: &str, field: &str) -> Type {
        names::field_type(message, field, self.env).unwrap_or_else(|problem| {
            self.issues.report(at, problem);
            Type::Error
        })
    }
}
