//! Fixes of findings: edits in terms of field paths.
//!
//! A fix exists only if exactly one is correct. It does not depend on the text: `source::fix` converts it to edits of
//! the user's file, or declines if that is not safe. [`Fix::is_safe`] alone decides whether a fix may be applied
//! without `--unsafe-fixes`; `docs/reference/fixes.md` gives the reasons.
//!
//! Invariant: a safe fix never changes the meaning of a valid object.

use crate::field::FieldPath;

tollgate_formats::named_enum! {
    /// Whether a fix is applied by `--fix` or only with `--unsafe-fixes`; the names are those in reports.
    #[derive(PartialOrd, Ord, Hash)]
    pub enum Applicability {
        /// Changes nothing that a server accepted, and puts no taint into effect.
        Safe = "safe",
        /// The fix may change the meaning of an accepted object or put a taint into effect, so a user must review
        /// it.
        Unsafe = "unsafe",
    }
}

/// A scalar value of an edit.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum NewValue {
    /// A string; quoted where the syntax needs it.
    Str(Box<str>),
    /// A number, `true`, `false`, `[]` or `{}`, as JSON writes it.
    Literal(Box<str>),
}

/// A change to a document. Paths refer to the document before any change.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Edit {
    /// Replaces a scalar or an empty container.
    Set {
        /// Path of the value.
        at: FieldPath,
        /// The value to set.
        value: NewValue,
    },
    /// Renames a key.
    Rename {
        /// Path of the member.
        at: FieldPath,
        /// The new key.
        to: Box<str>,
    },
    /// Removes an item or a member; of a key given twice, the last one.
    Remove {
        /// Path of the item or member.
        at: FieldPath,
    },
    /// Adds a member to an object.
    Insert {
        /// Path of the object.
        into: FieldPath,
        /// The new key.
        key: Box<str>,
        /// Value of the new member.
        value: NewValue,
    },
    /// Moves members of an object into a new nested object, such as `exactly`.
    Nest {
        /// Path of the object.
        into: FieldPath,
        /// Key of the nested object.
        key: Box<str>,
        /// Keys of the members to move.
        members: Vec<Box<str>>,
    },
    /// Replaces an object by its members: the opposite of `Nest`.
    Unnest {
        /// Path of the object that its members replace.
        at: FieldPath,
    },
    /// Moves a member into another object.
    Move {
        /// Path of the member.
        at: FieldPath,
        /// Path of the object that gets the member.
        into: FieldPath,
    },
    /// Replaces a scalar with an object that has it as its only member.
    WrapInObject {
        /// Path of the scalar.
        at: FieldPath,
        /// The key of the member.
        key: Box<str>,
    },
    /// Replaces a value with a list that has it as its only item.
    WrapInList {
        /// Path of the value.
        at: FieldPath,
    },
    /// Replaces a list with its only item.
    UnwrapList {
        /// Path of the list.
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

/// A fix for a finding, whose edits are those of fields unless stated otherwise.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Fix<E = Edit> {
    /// Title for users, such as ``Replace `NoExec` with `NoExecute` ``.
    pub title: Box<str>,
    /// Whether the fix needs `--unsafe-fixes`.
    pub applicability: Applicability,
    /// The edits; all or none are applied.
    pub edits: Vec<E>,
}

impl Fix {
    /// A safe fix of one edit.
    pub fn safe(title: impl Into<Box<str>>, edit: Edit) -> Fix {
        Fix { title: title.into(), applicability: Applicability::Safe, edits: vec![edit] }
    }

    /// Adds an edit. All edits of a fix are applied together or not at all.
    #[must_use]
    pub fn with_edit(mut self, edit: Edit) -> Fix {
        self.edits.push(edit);
        self
    }

    /// Marks the fix as unsafe, because it changes a value that the API server accepts.
    #[must_use]
    pub fn marked_unsafe(mut self) -> Fix {
        self.applicability = Applicability::Unsafe;
        self
    }

    /// A safe fix that replaces the value at `at`, `written`, with the string `new`.
    pub fn replace(at: FieldPath, written: &str, new: &str) -> Fix {
        let title = format!("Replace `{}` with `{new}`", tollgate_formats::gofmt::byte_prefix(written, 64));
        Fix::safe(title, Edit::Set { at, value: NewValue::Str(new.into()) })
    }

    /// A safe fix that renames the key at `at`, `written`, to `new`.
    pub fn rename(at: FieldPath, written: &str, new: &str) -> Fix {
        let title = format!("Rename `{}` to `{new}`", tollgate_formats::gofmt::byte_prefix(written, 64));
        Fix::safe(title, Edit::Rename { at, to: new.into() })
    }

    /// Replaces every path of the fix with the result of `within`, such as the path in the list that contains the
    /// object.
    pub fn map_paths(&mut self, within: impl Fn(FieldPath) -> FieldPath) {
        for path in self.edits.iter_mut().flat_map(Edit::paths) {
            *path = within(std::mem::take(path));
        }
    }

    /// True if the fix may be applied without `--unsafe-fixes`. `has_taints` is true for a DeviceTaintRule
    /// and for objects that contain taints.
    ///
    /// A taint that takes effect evicts pods, and fixing a rejected object puts its taints into effect. So no
    /// fix is safe in an object with taints, or if it creates one.
    pub fn is_safe(&self, has_taints: bool) -> bool {
        let makes_taints = |edit: &Edit| match edit {
            Edit::Rename { to, .. } => is_taint_holding_field(to),
            Edit::Nest { key, members, .. } => {
                is_taint_holding_field(key) || members.iter().any(|key| is_taint_holding_field(key))
            }
            _ => false,
        };
        self.applicability == Applicability::Safe && !has_taints && !self.edits.iter().any(makes_taints)
    }
}

/// True if a field of that name holds taints.
pub fn is_taint_holding_field(name: &str) -> bool {
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
            (set(&spec.field("driver")).marked_unsafe(), false, false),
        ];
        for (fix, has_taints, expected) in table {
            assert_eq!(fix.is_safe(has_taints), expected, "{has_taints} {fix:?}");
        }
    }
}
