//! Paths of fields in an object: [`Path`] on the stack while walking, [`FieldPath`] owned in a finding.
//!
//! A path prints in three ways. The user's path leads through the file as written. The API server validates the
//! internal *hub* version, so its paths differ: they lack `basic` of v1beta1 and have `exactly`. Declarative
//! validation prints the *native* path of the request's version. Each segment knows where it appears; no strings are
//! rewritten.
//!
//! Invariant: walking costs no allocation; [`Path::owned`] is the only place that copies.

use std::borrow::Cow;
use std::fmt::Write as _;

/// A segment of a path, used while a document is walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segment<'a> {
    /// The root of the object.
    Root,
    /// A field `.name`, printed in every style.
    Field(&'a str),
    /// A field printed in the user's path and in native paths, but not in hub paths, such as `basic`.
    WireField(&'a str),
    /// A field printed only in hub paths, such as `exactly` for a v1beta1 request.
    HubField(&'a str),
    /// A field printed only in the user's path, because the server omits it.
    UserField(&'a str),
    /// A list index `[i]`, printed in every style.
    Index(usize),
    /// A list index printed only in the user's path.
    UserIndex(usize),
    /// A list index that is `[from]` in the user's path and `[to]` in the server's, because the server
    /// removed earlier items.
    Moved {
        /// The index in the user's file.
        from: usize,
        /// The index after the server removed earlier items.
        to: usize,
    },
    /// A map key `[key]`. The server shortens keys longer than the limit (0: never).
    Key(&'a str, usize),
    /// A map key printed only in the user's path.
    UserKey(&'a str),
}

/// A path during a walk: 40 bytes on the stack, with borrowed parents.
#[derive(Clone, Copy, Debug)]
pub struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    seg: Segment<'a>,
}

impl<'a> Path<'a> {
    /// The path of the root object.
    pub const ROOT: Path<'static> = Path { parent: None, seg: Segment::Root };

    /// Appends a segment.
    pub const fn with_segment(&'a self, seg: Segment<'a>) -> Path<'a> {
        Path { parent: Some(self), seg }
    }

    /// Appends the field `.name`.
    pub const fn field(&'a self, name: &'a str) -> Path<'a> {
        self.with_segment(Segment::Field(name))
    }

    /// Calls `visit` with this path extended by `fields`.
    pub fn call_with_nested_field_path(&self, fields: &[&str], visit: &mut dyn FnMut(&Path<'_>)) {
        match fields.split_first() {
            Some((step, rest)) => self.field(step).call_with_nested_field_path(rest, visit),
            None => visit(self),
        }
    }

    /// Appends the list index `[i]`.
    pub const fn index(&'a self, index: usize) -> Path<'a> {
        self.with_segment(Segment::Index(index))
    }

    /// Appends a map key `[key]`, which is never shortened.
    pub const fn key(&'a self, key: &'a str) -> Path<'a> {
        self.with_segment(Segment::Key(key, 0))
    }

    /// Appends a map key `[key]`, which the server shortens beyond `limit` bytes.
    pub const fn key_shortened_by_server(&'a self, key: &'a str, limit: usize) -> Path<'a> {
        self.with_segment(Segment::Key(key, limit))
    }

    /// Appends a map key `[key]` that appears only in the user's path, not in the API server's.
    pub const fn user_only_key(&'a self, key: &'a str) -> Path<'a> {
        self.with_segment(Segment::UserKey(key))
    }

    /// Appends a list index `[i]` that appears only in the user's path, not in the API server's.
    pub const fn user_only_index(&'a self, index: usize) -> Path<'a> {
        self.with_segment(Segment::UserIndex(index))
    }

    /// An owned copy of the path.
    pub fn owned(&self) -> FieldPath {
        let depth = std::iter::successors(Some(self), |path| path.parent).count();
        let mut steps = Vec::with_capacity(depth);
        let mut at = Some(self);
        while let Some(path) = at {
            if let Some(step) = OwnedSegment::from_segment(path.seg) {
                steps.push(step);
            }
            at = path.parent;
        }
        steps.reverse();
        FieldPath { steps }
    }
}

/// A segment of an owned path, with the path styles in which it is printed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OwnedSegment {
    /// The field, key or index of the segment.
    pub name: SegmentName,
    visibility: Visibility,
}

/// The field, key or index of a path segment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SegmentName {
    /// A list index.
    Index(usize),
    /// A field of a struct.
    Field(Box<str>),
    /// A key of a map.
    Key(Box<str>),
}

/// The path styles in which a segment is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Visibility {
    Everywhere { limit: usize },
    Wire,
    Hub,
    User,
    Moved { to: usize },
}

/// The reader for whom a path is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathAudience {
    /// The user's path in the file.
    User,
    /// The path of the API server's hand-written validation.
    Hub,
    /// The path of the API server's declarative validation.
    Native,
}

impl OwnedSegment {
    /// Converts a segment to an owned one; `None` for the root.
    fn from_segment(seg: Segment<'_>) -> Option<OwnedSegment> {
        let everywhere = Visibility::Everywhere { limit: 0 };
        let field = |name| SegmentName::Field(truncated_key(name).into());
        let key = |name| SegmentName::Key(truncated_key(name).into());
        let (name, visibility) = match seg {
            Segment::Root => return None,
            Segment::Field(name) => (field(name), everywhere),
            Segment::WireField(name) => (field(name), Visibility::Wire),
            Segment::HubField(name) => (field(name), Visibility::Hub),
            Segment::UserField(name) => (field(name), Visibility::User),
            Segment::Index(index) => (SegmentName::Index(index), everywhere),
            Segment::UserIndex(index) => (SegmentName::Index(index), Visibility::User),
            Segment::Moved { from, to } => (SegmentName::Index(from), Visibility::Moved { to }),
            Segment::Key(name, limit) => (key(name), Visibility::Everywhere { limit }),
            Segment::UserKey(name) => (key(name), Visibility::User),
        };
        Some(OwnedSegment { name, visibility })
    }

    /// True if the segment is printed in this style.
    fn is_visible_to(&self, audience: PathAudience) -> bool {
        match self.visibility {
            Visibility::Everywhere { .. } | Visibility::Moved { .. } => true,
            Visibility::Wire => audience != PathAudience::Hub,
            Visibility::Hub => audience == PathAudience::Hub,
            Visibility::User => audience == PathAudience::User,
        }
    }
}

/// Bytes of a key that are kept: a key of megabytes could otherwise be copied into thousands of findings.
const MAX_KEY_BYTES: usize = 16 << 10;
/// Bytes kept of the end of a longer key, because servers print some.
const KEY_TAIL_BYTES: usize = 256;

/// The name or key itself, or, if it is longer than [`MAX_KEY_BYTES`], its beginning and end with `…` between them.
fn truncated_key(name: &str) -> Cow<'_, str> {
    if name.len() <= MAX_KEY_BYTES {
        return Cow::Borrowed(name);
    }
    let whole = |at: &usize| name.is_char_boundary(*at);
    let head = (0..=MAX_KEY_BYTES).rev().find(whole).unwrap_or_default();
    let tail = (name.len() - KEY_TAIL_BYTES..name.len()).find(whole).unwrap_or(name.len());
    Cow::Owned([name.get(..head).unwrap_or_default(), "…", name.get(tail..).unwrap_or_default()].concat())
}

/// An owned path. Paths are sorted as they are printed: fields by name, indices by number.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldPath {
    steps: Vec<OwnedSegment>,
}

impl FieldPath {
    /// The segments of the path in the user's file.
    pub fn user_steps(&self) -> impl Iterator<Item = &SegmentName> {
        self.steps.iter().filter(|step| step.is_visible_to(PathAudience::User)).map(|step| &step.name)
    }

    /// Approximate length in bytes of the printed path.
    pub fn estimated_printed_bytes(&self) -> usize {
        let step = |step: &OwnedSegment| match &step.name {
            SegmentName::Index(_) => 4,
            SegmentName::Field(name) | SegmentName::Key(name) => name.len() + 1,
        };
        self.steps.iter().map(step).sum()
    }

    /// The path as text, `spec.devices[0].attributes[a.b/c]`, with the steps that the audience sees; empty for the
    /// root.
    pub fn print(&self, audience: PathAudience) -> String {
        let mut out = String::new();
        for step in self.steps.iter().filter(|step| step.is_visible_to(audience)) {
            match &step.name {
                SegmentName::Index(index) => match step.visibility {
                    Visibility::Moved { to } if audience != PathAudience::User => _ = write!(out, "[{to}]"),
                    _ => _ = write!(out, "[{index}]"),
                },
                SegmentName::Field(name) if out.is_empty() => out.push_str(name),
                SegmentName::Field(name) => _ = write!(out, ".{name}"),
                SegmentName::Key(key) => match step.visibility {
                    Visibility::Everywhere { limit } if audience != PathAudience::User && limit > 0 => {
                        _ = write!(out, "[{}]", server_shortened(key, limit));
                    }
                    _ => _ = write!(out, "[{key}]"),
                },
            }
        }
        out
    }

    /// The user's path as an RFC 6901 JSON pointer; empty for the root.
    pub fn user_json_pointer(&self) -> String {
        let mut out = String::new();
        for name in self.user_steps() {
            out.push('/');
            match name {
                SegmentName::Index(index) => _ = write!(out, "{index}"),
                SegmentName::Field(name) | SegmentName::Key(name) => {
                    out.push_str(&name.replace('~', "~0").replace('/', "~1"))
                }
            }
        }
        out
    }

    /// Removes the field `field` that follows `prefix`. Returns `None` if the path does not begin with
    /// `prefix` and this field.
    pub fn without_field_after_prefix(&self, prefix: &FieldPath, field: &str) -> Option<FieldPath> {
        let visible = |(_, step): &(usize, &OwnedSegment)| step.is_visible_to(PathAudience::User);
        let mut steps = self.steps.iter().enumerate().filter(visible);
        for name in prefix.user_steps() {
            steps.next().filter(|(_, step)| step.name == *name)?;
        }
        let (at, _) = steps.next().filter(|(_, step)| step.name == SegmentName::Field(field.into()))?;
        let mut rest = self.clone();
        rest.steps.remove(at);
        Some(rest)
    }

    /// Prepends the segments of `prefix`, such as a list's `items[i]`.
    #[must_use]
    pub fn with_prefix(mut self, prefix: &Path<'_>) -> FieldPath {
        let mut steps = prefix.owned().steps;
        steps.append(&mut self.steps);
        FieldPath { steps }
    }
}

/// A map key as the API server prints it in paths: longer than `limit` bytes, only its beginning and end with `...`
/// between.
// upstream v1.36 truncateIfTooLong
fn server_shortened(key: &str, limit: usize) -> String {
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
    use super::{Path, PathAudience, Segment};

    #[test]
    fn each_reader_sees_its_own_path() {
        let spec = Path::ROOT.field("spec");
        let devices = spec.field("devices");
        let device = devices.index(3);
        let basic = device.with_segment(Segment::WireField("basic"));
        let taints = basic.field("taints");
        let path = taints.owned();
        assert_eq!(path.print(PathAudience::User), "spec.devices[3].basic.taints");
        assert_eq!(path.print(PathAudience::Native), "spec.devices[3].basic.taints");
        assert_eq!(path.print(PathAudience::Hub), "spec.devices[3].taints");
        assert_eq!(path.user_json_pointer(), "/spec/devices/3/basic/taints");
        let exactly = device.with_segment(Segment::HubField("exactly"));
        assert_eq!(exactly.field("count").owned().print(PathAudience::User), "spec.devices[3].count");
        assert_eq!(exactly.field("count").owned().print(PathAudience::Hub), "spec.devices[3].exactly.count");
        let key = "k".repeat(100);
        let long = device.key_shortened_by_server(&key, 96);
        assert_eq!(long.owned().print(PathAudience::Hub).len(), "spec.devices[3][]".len() + 96);
        assert_eq!(long.owned().print(PathAudience::User).len(), "spec.devices[3][]".len() + 100);
    }

    #[test]
    fn a_key_of_megabytes_keeps_its_beginning_and_its_end() {
        let key = format!("a{}é", "ü".repeat(20_000));
        let path = Path::ROOT.key(&key).owned();
        assert!(path.estimated_printed_bytes() < 17 << 10, "{}", path.estimated_printed_bytes());
        let printed = path.print(PathAudience::User);
        assert!(printed.starts_with("[aü") && printed.contains('…') && printed.ends_with("üé]"));
    }

    #[test]
    fn a_pointer_escapes_slashes_and_tildes() {
        assert_eq!(Path::ROOT.key("a/b~c").owned().user_json_pointer(), "/a~1b~0c");
    }
}
