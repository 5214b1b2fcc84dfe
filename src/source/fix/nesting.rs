//! Members put into an object of their own, and out of it: `exactly`, `basic`, `spec`.

use super::{Editor, Place, Replacement};
use crate::doc::{Value, ValueKind};

impl<'d> Editor<'d> {
    /// Puts members that follow each other into a new object.
    pub(super) fn nest(&self, place: Place<'d>, key: &str, members: &[Box<str>]) -> Option<Vec<Replacement>> {
        let object = place.value;
        if object.kind() != ValueKind::Object || object.get(key).exists() {
            return None;
        }
        let is_moved = |name: Value<'_>| members.iter().any(|member| name.text_is(member));
        let all: Vec<(Value<'d>, Value<'d>)> = object.members().collect();
        let first = all.iter().position(|(name, _)| is_moved(*name))?;
        let moved: Vec<&(Value<'d>, Value<'d>)> =
            all.iter().skip(first).take_while(|(name, _)| is_moved(*name)).collect();
        // One that stands apart would have to be moved past others.
        if moved.len() != members.len() {
            return None;
        }
        let (first_key, _) = moved.first()?;
        let (last_key, last_value) = moved.last()?;
        let part = Self::bytes(*first_key).start..self.member_end(*last_key, *last_value)?;
        let name = self.string(key, self.written(*first_key));
        if self.is_flow(object) {
            return Some(self.enclose(part, &format!("{name}: {{"), "}"));
        }
        let column = self.column(*first_key)?;
        let line_break = self.line_break(part.start);
        let mut out =
            vec![(part.start..part.start, format!("{name}:{line_break}{}", " ".repeat(column + 2)))];
        out.extend(self.indent(part, 2));
        Some(out)
    }

    /// Puts the members of an object in its place.
    pub(super) fn unnest(&self, place: Place<'d>) -> Option<Vec<Replacement>> {
        let (key, object) = (place.key?, place.value);
        let (first, _) = object.members().next()?;
        let (last, of_last) = object.members().last()?;
        if object.members().any(|(name, _)| place.parent.get(name.text()).exists()) {
            return None;
        }
        let (start, inner, end) =
            (Self::bytes(key).start, Self::bytes(first).start, self.member_end(last, of_last)?);
        if self.is_flow(object) {
            let (head, tail) = (self.text(start..inner), self.text(end..Self::bytes(object).end));
            if !self.is_flow(place.parent) || head.contains('#') || tail.contains('#') {
                return None;
            }
            return Some(vec![(start..inner, String::new()), (end..Self::bytes(object).end, String::new())]);
        }
        let by = self.column(first)?.checked_sub(self.column(key)?)?;
        let between = self.text(Self::bytes(key).end..inner);
        if !between.contains('#') {
            let mut out = vec![(start..inner, String::new())];
            out.extend(self.dedent(inner..end, by)?);
            return Some(out);
        }
        // The comments stay where they are; only `key:` goes.
        let colon = Self::bytes(key).end + between.find(':')?;
        let mut out = vec![(start..colon + 1, String::new())];
        out.extend(self.dedent(colon..end, by)?);
        Some(out)
    }
}
