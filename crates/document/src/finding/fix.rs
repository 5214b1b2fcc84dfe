//! How a finding can be mended: edits in terms of field paths.
//!
//! A fix exists only where there is exactly one right answer. It knows no text: `source::fix` turns it into edits of the
//! user's file, and declines where that cannot be done surely. Whether a fix may be applied without being asked for is
//! decided in one place, [`Fix::is_safe`]; `docs/reference/fixes.md` gives the reasons.
//!
//! Invariant: a fix of a finding that was reported as safe never changes what a valid object means.

use crate::field::FieldPath;

/// Whether a fix needs `--unsafe-fixes`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Applicability {
    /// Changes nothing that a server accepted, and puts no taint into effect.
    Safe,
    /// May change what an accepted object means, or put a taint into effect: somebody must read it.
    Unsafe,
}

impl Applicability {
    /// The name in reports: `safe` or `unsafe`.
    pub fn name(self) -> &'static str {
        match self {
            Applicability::Safe => "safe",
            Applicability::Unsafe => "unsafe",
        }
    }
}

/// A scalar to write.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum NewValue {
    /// A string; quoted where the syntax needs it.
    Str(Box<str>),
    /// A number, `true`, `false`, `[]` or `{}`, as JSON writes it.
    Literal(Box<str>),
}

/// One change of a document. Paths are those of the document as it is before any change.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Edit {
    /// Replaces a scalar or an empty container.
    Set {
        /// The value.
        at: FieldPath,
        /// What to write.
        value: NewValue,
    },
    /// Renames a key.
    Rename {
        /// The member.
        at: FieldPath,
        /// Its new key.
        to: Box<str>,
    },
    /// Removes an item or a member; of a key given twice, the last one.
    Remove {
        /// The item or member.
        at: FieldPath,
    },
    /// Adds a member to an object.
    Insert {
        /// The object.
        into: FieldPath,
        /// The new key.
        key: Box<str>,
        /// Its value.
        value: NewValue,
    },
    /// Puts members of an object into a new object that is a member of it: `exactly`.
    Nest {
        /// The object.
        into: FieldPath,
        /// The new member.
        key: Box<str>,
        /// The keys of those that move.
        members: Vec<Box<str>>,
    },
    /// Puts the members of an object in its place: the opposite of `Nest`.
    Unnest {
        /// The object that goes away.
        at: FieldPath,
    },
    /// Moves a member into another object.
    Move {
        /// The member.
        at: FieldPath,
        /// The object that gets it.
        into: FieldPath,
    },
    /// Makes an object with one member out of a scalar.
    WrapInObject {
        /// The scalar.
        at: FieldPath,
        /// The key of the member.
        key: Box<str>,
    },
    /// Makes a list of one item out of a value.
    WrapInList {
        /// The value.
        at: FieldPath,
    },
    /// Puts the only item of a list in its place.
    UnwrapList {
        /// The list.
        at: FieldPath,
    },
}

impl Edit {
    /// The paths in the edit: one, or two for a move.
    fn paths(&mut self) -> impl Iterator<Item = &mut FieldPath> {
        let (first, second) = match self {
            Edit::Move { at, into } => (at, Some(into)),
            Edit::Set { at, .. }
            | Edit::Rename { at, .. }
            | Edit::Remove { at }
            | Edit::Insert { into: at, .. }
            | Edit::Nest { into: at, .. }
            | Edit::Unnest { at }
            | Edit::WrapInObject { at, .. }
            | Edit::WrapInList { at }
            | Edit::UnwrapList { at } => (at, None),
        };
        std::iter::once(first).chain(second)
    }
}

/// How a finding can be mended.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Fix {
    /// For people: ``Replace `NoExec` with `NoExecute` ``.
    pub title: Box<str>,
    /// Whether it needs `--unsafe-fixes`.
    pub applicability: Applicability,
    /// The edits; all or none are applied.
    pub edits: Vec<Edit>,
}

impl Fix {
    /// A safe fix of one edit.
    pub fn safe(title: impl Into<Box<str>>, edit: Edit) -> Fix {
        Fix { title: title.into(), applicability: Applicability::Safe, edits: vec![edit] }
    }

    /// The fix with one more edit; all of its edits are applied together or not at all.
    #[must_use]
    pub fn and(mut self, edit: Edit) -> Fix {
        self.edits.push(edit);
        self
    }

    /// Makes the fix unsafe: it changes a value that a server accepts.
    #[must_use]
    pub fn changing_a_value(mut self) -> Fix {
        self.applicability = Applicability::Unsafe;
        self
    }

    /// A safe fix that replaces the value at `at`, `written`, with the string `new`.
    pub fn replace(at: FieldPath, written: &str, new: &str) -> Fix {
        let title = format!("Replace `{}` with `{new}`", tollgate_formats::gofmt::head(written, 64));
        Fix::safe(title, Edit::Set { at, value: NewValue::Str(new.into()) })
    }

    /// A safe fix that renames the key at `at`, `written`, to `new`.
    pub fn rename(at: FieldPath, written: &str, new: &str) -> Fix {
        let title = format!("Rename `{}` to `{new}`", tollgate_formats::gofmt::head(written, 64));
        Fix::safe(title, Edit::Rename { at, to: new.into() })
    }

    /// Replaces every path of the fix by what `within` makes of it.
    pub fn relocate(&mut self, within: impl Fn(FieldPath) -> FieldPath) {
        for path in self.edits.iter_mut().flat_map(Edit::paths) {
            *path = within(std::mem::take(path));
        }
    }

    /// Whether it may be applied without being asked for: the one place that decides it. `has_taints` is true for a
    /// DeviceTaintRule, and for an object that carries taints.
    ///
    /// A taint that takes effect evicts pods, and what the server refused takes effect once it is mended, wherever the
    /// mistake was. So nothing is mended unasked in an object with taints, nor does anything become one.
    pub fn is_safe(&self, has_taints: bool) -> bool {
        let makes_taints = |edit: &Edit| match edit {
            Edit::Rename { to, .. } => is_taint(to),
            Edit::Nest { key, members, .. } => is_taint(key) || members.iter().any(|key| is_taint(key)),
            _ => false,
        };
        self.applicability == Applicability::Safe && !has_taints && !self.edits.iter().any(makes_taints)
    }
}

/// True if a field of that name holds taints.
pub fn is_taint(name: &str) -> bool {
    matches!(name, "taints" | "taint")
}

#[cfg(test)]
mod tests {
    use super::{Edit, Fix, NewValue};
    use crate::field::Path;

    #[test]
    fn what_could_put_a_taint_into_effect_is_not_safe() {
        let (spec, metadata) = (Path::ROOT.field("spec"), Path::ROOT.field("metadata"));
        let devices = spec.field("devices");
        let device = devices.index(0);
        let set =
            |at: &Path<'_>| Fix::safe("", Edit::Set { at: at.owned(), value: NewValue::Str("x".into()) });
        let rename = |at: &Path<'_>, to: &str| Fix::rename(at.owned(), "", to);
        let table = [
            (rename(&metadata.field("lables"), "labels"), true, false),
            (set(&Path::ROOT.field("apiVersion")), true, false),
            (set(&Path::ROOT.field("kind")), false, true),
            (rename(&device.field("taint"), "taints"), false, false),
            (rename(&device.field("taitns"), "taints"), false, false),
            (rename(&device.field("atributes"), "attributes"), false, true),
            (set(&spec.field("driver")).changing_a_value(), false, false),
        ];
        for (fix, has_taints, expected) in table {
            assert_eq!(fix.is_safe(has_taints), expected, "{has_taints} {fix:?}");
        }
    }
}
