//! Messages written out, `google.protobuf.Duration{seconds: 1}`, and the fields of messages.
//!
//! The device is a message too; the types of the Kubernetes libraries are objects nobody can look into.

use super::{Checker, undeclared};
use crate::names::{self, Field, Message};
use crate::tree::{NodeId, StructField};
use crate::types::Type;

impl<'t> Checker<'t, '_> {
    /// Checks a message that is written out, and its fields; returns its type.
    pub(super) fn check_message(&mut self, id: NodeId, name: &str, fields: &'t [StructField]) -> Type {
        let message = match self.local(name) {
            Some(found) if !self.env.scoped_names => Message::Variable(found, name.to_owned()),
            _ => names::message(name, self.env),
        };
        let (found, message) = match message {
            Message::Of(found, message) => (found, message),
            Message::OtherType(found, message) => {
                self.report(id, format!("'{message}' is not a message type"));
                (found, message)
            }
            Message::Variable(found, message) => {
                self.report(id, format!("'{}' is not a type", found.bare_name()));
                (Type::Error, message)
            }
            Message::Undeclared => {
                self.report(id, undeclared(name));
                return Type::Error;
            }
        };
        for field in fields {
            let value = self.check(field.value);
            let expected = self.field_of(field.at, &message, &field.name);
            let value = if field.optional { self.unwrap_optional(field.value, &value) } else { value };
            if !self.unifier.is_assignable(&expected, &value) {
                let text = format!(
                    "expected type of field '{}' is '{}' but provided type is '{}'",
                    field.name,
                    expected.shown(),
                    value.shown()
                );
                self.issues.report(field.at, text);
            }
        }
        found
    }

    /// The type of a field of a message; reports if there is no such field.
    pub(super) fn field_of(&mut self, at: usize, message: &str, field: &str) -> Type {
        let problem = match names::field(message, field, self.env) {
            Field::Of(found) => return found,
            Field::Undefined => format!("undefined field '{field}'"),
            Field::Unresolved => format!("unexpected failed resolution of '{message}'"),
        };
        self.issues.report(at, problem);
        Type::Error
    }
}
