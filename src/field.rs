//! Where something is in an object: [`Path`] on the stack while walking, [`FieldPath`] owned in a finding.
//!
//! One path, three printings. The user's is the way through the file as written. The API server validates a *hub*
//! form, so its paths differ: `basic` of v1beta1 is not there, `exactly` is. Declarative checks print the *native*
//! path of the request's version. A segment knows in which printings it appears; nobody rewrites strings.
//!
//! Invariant: walking costs no allocation; [`Path::owned`] is the only place that copies.

use std::fmt::Write as _;

/// One step of a path that is still being walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seg<'a> {
    /// The start of the object.
    Root,
    /// `.name`, in every printing.
    Field(&'a str),
    /// `.name` in the file and in native paths, not in hub paths: `basic`.
    Wire(&'a str),
    /// `.name` in hub paths only: `exactly` for a v1beta1 request.
    Hub(&'a str),
    /// `.name` only for the user: what the server's path leaves out.
    Own(&'a str),
    /// `[i]`, in every printing.
    Index(usize),
    /// `[i]` only for the user.
    OwnIndex(usize),
    /// `[from]` for the user, `[to]` for the server, which has removed what was before.
    Moved {
        /// The index in the file.
        from: usize,
        /// The index that is left.
        to: usize,
    },
    /// `[key]`; the server shortens keys longer than the limit (0: never).
    Key(&'a str, usize),
    /// `[key]` only for the user.
    OwnKey(&'a str),
}

/// A path being walked: 40 bytes on the stack, parents borrowed.
#[derive(Clone, Copy, Debug)]
pub struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    seg: Seg<'a>,
}

impl<'a> Path<'a> {
    /// The object itself.
    pub const ROOT: Path<'static> = Path { parent: None, seg: Seg::Root };

    /// One step further.
    pub const fn then(&'a self, seg: Seg<'a>) -> Path<'a> {
        Path { parent: Some(self), seg }
    }

    /// `.name`
    pub const fn field(&'a self, name: &'a str) -> Path<'a> {
        self.then(Seg::Field(name))
    }

    /// Goes down a way of fields and calls `visit` at its end.
    pub fn down(&self, way: &[&str], visit: &mut dyn FnMut(&Path<'_>)) {
        match way.split_first() {
            Some((step, rest)) => self.field(step).down(rest, visit),
            None => visit(self),
        }
    }

    /// `[i]`
    pub const fn index(&'a self, index: usize) -> Path<'a> {
        self.then(Seg::Index(index))
    }

    /// `[key]`, printed whole everywhere.
    pub const fn key(&'a self, key: &'a str) -> Path<'a> {
        self.then(Seg::Key(key, 0))
    }

    /// `[key]`, shortened by the server beyond `limit` bytes.
    pub const fn short_key(&'a self, key: &'a str, limit: usize) -> Path<'a> {
        self.then(Seg::Key(key, limit))
    }

    /// `[key]` that only the user's printing shows.
    pub const fn own_key(&'a self, key: &'a str) -> Path<'a> {
        self.then(Seg::OwnKey(key))
    }

    /// `[i]` that only the user's printing shows.
    pub const fn own_index(&'a self, index: usize) -> Path<'a> {
        self.then(Seg::OwnIndex(index))
    }

    /// A copy that outlives the walk.
    pub fn owned(&self) -> FieldPath {
        let depth = std::iter::successors(Some(self), |path| path.parent).count();
        let mut steps = Vec::with_capacity(depth);
        let mut at = Some(self);
        while let Some(path) = at {
            if let Some(step) = Step::of(path.seg) {
                steps.push(step);
            }
            at = path.parent;
        }
        steps.reverse();
        FieldPath { steps }
    }
}

/// One step of an owned path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Step {
    /// What the step is.
    pub name: Name,
    shown: Shown,
}

/// The name of a step.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Name {
    /// A list index.
    Index(usize),
    /// A field of a struct.
    Field(Box<str>),
    /// A key of a map.
    Key(Box<str>),
}

/// In which printings a step appears.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Shown {
    Everywhere { limit: usize },
    Wire,
    Hub,
    User,
    Moved { to: usize },
}

/// Who reads the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// The user: the way through the file.
    User,
    /// The API server's hand-written validation.
    Hub,
    /// The API server's declarative validation.
    Native,
}

impl Step {
    fn of(seg: Seg<'_>) -> Option<Step> {
        let (name, shown) = match seg {
            Seg::Root => return None,
            Seg::Field(name) => (Name::Field(kept(name)), Shown::Everywhere { limit: 0 }),
            Seg::Wire(name) => (Name::Field(kept(name)), Shown::Wire),
            Seg::Hub(name) => (Name::Field(kept(name)), Shown::Hub),
            Seg::Own(name) => (Name::Field(kept(name)), Shown::User),
            Seg::Index(index) => (Name::Index(index), Shown::Everywhere { limit: 0 }),
            Seg::OwnIndex(index) => (Name::Index(index), Shown::User),
            Seg::Moved { from, to } => (Name::Index(from), Shown::Moved { to }),
            Seg::Key(key, limit) => (Name::Key(kept(key)), Shown::Everywhere { limit }),
            Seg::OwnKey(key) => (Name::Key(kept(key)), Shown::User),
        };
        Some(Step { name, shown })
    }

    fn shown_to(&self, reader: Reader) -> bool {
        match self.shown {
            Shown::Everywhere { .. } | Shown::Moved { .. } => true,
            Shown::Wire => reader != Reader::Hub,
            Shown::Hub => reader == Reader::Hub,
            Shown::User => reader == Reader::User,
        }
    }
}

/// Bytes of a key that are kept: one of megabytes can hold a thousand faults, and each would have it in its path.
const KEY: usize = 16 << 10;
/// Bytes of the end of a longer one, of which servers print some.
const KEY_END: usize = 256;

/// A name or key; of one that is too long, its beginning and its end.
fn kept(name: &str) -> Box<str> {
    if name.len() <= KEY {
        return name.into();
    }
    let whole = |at: &usize| name.is_char_boundary(*at);
    let head = (0..=KEY).rev().find(whole).unwrap_or_default();
    let tail = (name.len() - KEY_END..name.len()).find(whole).unwrap_or(name.len());
    [name.get(..head).unwrap_or_default(), "…", name.get(tail..).unwrap_or_default()].concat().into()
}

/// A path that outlives the walk. Ordered as it prints: fields by name, indexes by number.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldPath {
    steps: Vec<Step>,
}

impl FieldPath {
    /// The steps of the user's way through the file.
    pub fn user_steps(&self) -> impl Iterator<Item = &Name> {
        self.steps.iter().filter(|step| step.shown_to(Reader::User)).map(|step| &step.name)
    }

    /// About as many bytes as it prints.
    pub fn bytes(&self) -> usize {
        let step = |step: &Step| match &step.name {
            Name::Index(_) => 4,
            Name::Field(name) | Name::Key(name) => name.len() + 1,
        };
        self.steps.iter().map(step).sum()
    }

    /// The dotted path for a reader: `spec.devices[0].attributes[a.b/c]`.
    pub fn print(&self, reader: Reader) -> String {
        let mut out = String::new();
        for step in self.steps.iter().filter(|step| step.shown_to(reader)) {
            match &step.name {
                Name::Index(index) => match step.shown {
                    Shown::Moved { to } if reader != Reader::User => _ = write!(out, "[{to}]"),
                    _ => _ = write!(out, "[{index}]"),
                },
                Name::Field(name) if out.is_empty() => out.push_str(name),
                Name::Field(name) => _ = write!(out, ".{name}"),
                Name::Key(key) => match step.shown {
                    Shown::Everywhere { limit } if reader != Reader::User && limit > 0 => {
                        _ = write!(out, "[{}]", shortened(key, limit));
                    }
                    _ => _ = write!(out, "[{key}]"),
                },
            }
        }
        out
    }

    /// RFC 6901 pointer of the user's path.
    pub fn pointer(&self) -> String {
        let mut out = String::new();
        for name in self.user_steps() {
            out.push('/');
            match name {
                Name::Index(index) => _ = write!(out, "{index}"),
                Name::Field(name) | Name::Key(name) => {
                    out.push_str(&name.replace('~', "~0").replace('/', "~1"))
                }
            }
        }
        out
    }

    /// This path with `prefix` (a list's `items[i]`) before it, for the user only.
    #[must_use]
    pub fn within(mut self, prefix: &Path<'_>) -> FieldPath {
        let mut steps = prefix.owned().steps;
        steps.append(&mut self.steps);
        FieldPath { steps }
    }
}

/// Long map keys as the API server prints them in paths.
// upstream v1.36 truncateIfTooLong
fn shortened(key: &str, limit: usize) -> String {
    if key.len() <= limit {
        return key.to_owned();
    }
    let keep = limit.max(16) - 3;
    let (head, tail) = (keep.div_ceil(2), keep / 2);
    let bytes = key.as_bytes();
    let cut =
        [bytes.get(..head).unwrap_or(bytes), b"...", bytes.get(bytes.len() - tail..).unwrap_or(b"")].concat();
    String::from_utf8_lossy(&cut).into_owned()
}

#[cfg(test)]
mod tests {
    use super::{Path, Reader, Seg};

    #[test]
    fn each_reader_sees_its_own_path() {
        let spec = Path::ROOT.field("spec");
        let devices = spec.field("devices");
        let device = devices.index(3);
        let basic = device.then(Seg::Wire("basic"));
        let taints = basic.field("taints");
        let path = taints.owned();
        assert_eq!(path.print(Reader::User), "spec.devices[3].basic.taints");
        assert_eq!(path.print(Reader::Native), "spec.devices[3].basic.taints");
        assert_eq!(path.print(Reader::Hub), "spec.devices[3].taints");
        assert_eq!(path.pointer(), "/spec/devices/3/basic/taints");
        let exactly = device.then(Seg::Hub("exactly"));
        assert_eq!(exactly.field("count").owned().print(Reader::User), "spec.devices[3].count");
        assert_eq!(exactly.field("count").owned().print(Reader::Hub), "spec.devices[3].exactly.count");
        let key = "k".repeat(100);
        let long = device.short_key(&key, 96);
        assert_eq!(long.owned().print(Reader::Hub).len(), "spec.devices[3][]".len() + 96);
        assert_eq!(long.owned().print(Reader::User).len(), "spec.devices[3][]".len() + 100);
    }
}
