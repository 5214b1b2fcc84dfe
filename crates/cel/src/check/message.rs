//! Message literals, such as `google.protobuf.Duration{seconds: 1}`, and the fields of messages.
//!
//! The device is a message too. The types of the Kubernetes libraries have no fields.

use super::{Checker, undeclared_message};
use crate::names::{self, MessageTypeLookup};
use crate::tree::{NodeId, StructField};
use crate::types::Type;

impl<'t> Checker<'t, '_> {
    /// Checks a message literal and its fields; returns its type.
    pub(super) fn check_message(&mut self, id: NodeId, name: &str, fields: &'t [StructField]) -> Type {
        let message = match self.loop_variable_type(name) {
            Some(found) if !self.env.scoped_names => MessageTypeLookup::Variable(found, name.to_owned()),
            _ => names::message_type(name, self.env),
        };
        let (found, message) = match message {
            MessageTypeLookup::Of(found, message) => (found, message),
            MessageTypeLookup::OtherType(message) => {
                self.report(id, format!("'{message}' is not a message type"));
                (Type::Error, message)
            }
            MessageTypeLookup::Variable(found, message) => {
                self.report(id, format!("'{}' is not a type", found.bare_name()));
                (Type::Error, message)
            }
            MessageTypeLookup::Undeclared => {
                self.report(id, undeclared_message(name));
                return Type::Error;
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
