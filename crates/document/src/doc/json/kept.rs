//! Reads parts of JSON text: only the members that are wanted, and the items of a list one by one. Whatever is not wanted
//! is skipped by its brackets and quotes and takes no memory.
//!
//! For the responses of an API server, whose JSON is well formed: what is skipped is not checked.
//!
//! Invariant: a value that is kept whole is what [`super::parse`] makes of its bytes.

use super::{Fault, Reader, SyntaxError, span};
use crate::doc::repeat_template::NONE;
use crate::doc::{Builder, Doc, Syntax, Value, ValueKind};

/// What is kept of a value. A value of another type than expected is kept whole: whoever reads it reports that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keep {
    /// All of it.
    All,
    /// These members of an object.
    Fields(&'static [(&'static str, Keep)]),
    /// All members of an object, but of these only so much.
    AllBut(&'static [(&'static str, Keep)]),
    /// Every item of a list, of each only so much.
    Items(&'static Keep),
    /// Nothing, not even its key.
    Nothing,
}

impl Keep {
    fn member(&self, key: &[u8]) -> Keep {
        let find = |fields: &'static [(&'static str, Keep)]| {
            fields.iter().find(|(name, _)| name.as_bytes() == key).map(|(_, keep)| *keep)
        };
        match *self {
            Keep::All | Keep::Items(_) => Keep::All,
            Keep::Nothing => Keep::Nothing,
            Keep::Fields(fields) => find(fields).unwrap_or(Keep::Nothing),
            Keep::AllBut(fields) => find(fields).unwrap_or(Keep::All),
        }
    }
}

/// What identifies an object.
const IDENTITY: Keep = Keep::Fields(&[(
    "metadata",
    Keep::Fields(&[("name", Keep::All), ("namespace", Keep::All), ("resourceVersion", Keep::All)]),
)]);

/// An object that was read out of a larger text.
#[derive(Debug)]
pub struct Part<'a> {
    pub doc: Doc<'a>,
    /// False if it has more keys and values than it may have: then only its name is there.
    pub is_whole: bool,
}

/// Reads what is kept of a text, if it has no more keys and values than that.
pub fn parse_kept<'a>(source: &'a str, keep: &Keep, most: usize) -> Result<Doc<'a>, SyntaxError> {
    let mut reader = Reader { most, ..Reader::of(source) };
    let mut out = Builder::with_capacity(source, Syntax::Json, 64);
    reader.kept(&mut out, keep).map_err(|fault| *fault)?;
    Ok(out.finish())
}

/// An object that has another one, or a list of them, in one of its members.
#[derive(Debug)]
pub struct Envelope<'a> {
    source: &'a str,
    rest: Doc<'a>,
    /// Where the member begins.
    member: Option<usize>,
}

impl<'a> Envelope<'a> {
    /// Reads everything but the member.
    pub fn open(source: &'a str, member: &str) -> Result<Envelope<'a>, SyntaxError> {
        let mut reader = Reader::of(source);
        let mut out = Builder::with_capacity(source, Syntax::Json, 64);
        let mut found = None;
        reader.skip_space();
        let read = if reader.peek() == Some(b'{') {
            reader.members(&mut out, &mut |reader, key, out| {
                if key != member.as_bytes() {
                    return reader.kept_member(out, &Keep::All);
                }
                reader.skip_key()?;
                reader.skip_space();
                found = Some(reader.at);
                reader.skip_value()
            })
        } else {
            reader.kept(&mut out, &Keep::All)
        };
        read.map_err(|fault| *fault)?;
        reader.skip_space();
        match reader.peek() {
            None => Ok(Envelope { source, rest: out.finish(), member: found }),
            Some(_) => Err(*reader.unexpected("after top-level value")),
        }
    }

    /// What was read: all but the member.
    pub fn rest(&self) -> Value<'_> {
        self.rest.root()
    }

    /// True if the member is a list, null or absent.
    pub fn has_list(&self) -> bool {
        let first = self.member.and_then(|at| self.source.as_bytes().get(at));
        matches!(first, None | Some(b'[' | b'n'))
    }

    /// The member, with at most so many keys and values; an absent one is an empty document.
    pub fn value(&self, keep: &Keep, most: usize) -> Result<Part<'a>, SyntaxError> {
        let mut reader = Reader::of(self.source);
        match self.member {
            Some(at) => reader.at = at,
            None => reader.at = self.source.len(),
        }
        reader.part(keep, most)
    }

    /// The items of the member, one by one, each with at most so many keys and values.
    pub fn items<'k>(&self, keep: &'k Keep, most: usize) -> Parts<'a, 'k> {
        let mut reader = Reader::of(self.source);
        reader.at = match self.member {
            Some(at) if self.source.as_bytes().get(at) == Some(&b'[') => at + 1,
            _ => self.source.len(),
        };
        Parts { reader, keep, most }
    }
}

/// The items of a list; none after an error.
pub struct Parts<'a, 'k> {
    reader: Reader<'a>,
    keep: &'k Keep,
    most: usize,
}

impl<'a> Iterator for Parts<'a, '_> {
    type Item = Result<Part<'a>, SyntaxError>;

    fn next(&mut self) -> Option<Result<Part<'a>, SyntaxError>> {
        let reader = &mut self.reader;
        reader.skip_space();
        if matches!(reader.peek(), None | Some(b']')) {
            return None;
        }
        let part = reader.part(self.keep, self.most);
        reader.skip_space();
        if reader.peek() == Some(b',') {
            reader.at += 1;
        }
        if part.is_err() {
            reader.at = reader.source.len();
        }
        Some(part)
    }
}

/// Reads one member: its key begins here.
type ReadMember<'r, 'a, 'o> =
    &'r mut dyn FnMut(&mut Reader<'a>, &[u8], &mut Builder<'o>) -> Result<(), Fault>;

impl<'a> Reader<'a> {
    /// The value that begins here, or only its name if it is too large.
    fn part(&mut self, keep: &Keep, most: usize) -> Result<Part<'a>, SyntaxError> {
        let start = self.at;
        self.most = most;
        let mut out = Builder::with_capacity(self.source, Syntax::Json, 64).with_repeat_copying();
        let read = if self.peek().is_some() { self.kept(&mut out, keep) } else { Ok(()) };
        match read {
            Ok(()) => Ok(Part { doc: out.finish_verbatim(), is_whole: true }),
            Err(fault) if fault.is_too_dense => {
                drop(out);
                (self.at, self.most, self.base) = (start, usize::MAX, 0);
                let mut out = Builder::with_capacity(self.source, Syntax::Json, 16);
                self.kept(&mut out, &IDENTITY).map_err(|fault| *fault)?;
                Ok(Part { doc: out.finish(), is_whole: false })
            }
            Err(fault) => Err(*fault),
        }
    }

    /// Reads what is kept of a value. Recursion ends with `keep`, whose depth is fixed.
    fn kept(&mut self, out: &mut Builder<'_>, keep: &Keep) -> Result<(), Fault> {
        self.skip_space();
        match (keep, self.peek()) {
            (Keep::Nothing, _) => self.skip_value(),
            (Keep::Fields(_) | Keep::AllBut(_), Some(b'{')) => {
                self.members(out, &mut |reader, key, out| reader.kept_member(out, &keep.member(key)))
            }
            (Keep::Items(keep), Some(b'[')) => {
                self.begin(out, ValueKind::Array);
                while self.goes_on(out, b']')? {
                    self.kept(out, keep)?;
                }
                Ok(())
            }
            _ => {
                (self.template, self.base) = (NONE, out.depth());
                let read = self.document(out);
                self.base = 0;
                read
            }
        }
    }

    /// The members of the object that begins here.
    fn members<'o>(&mut self, out: &mut Builder<'o>, read: ReadMember<'_, 'a, 'o>) -> Result<(), Fault> {
        self.begin(out, ValueKind::Object);
        while self.goes_on(out, b'}')? {
            let (start, end) = (self.at + 1, self.plain_end());
            let bytes = self.bytes;
            // A key with escapes is none that anybody asks for.
            let key = bytes.get(start..end).filter(|_| bytes.get(end) == Some(&b'"')).unwrap_or_default();
            read(self, key, out)?;
        }
        Ok(())
    }

    /// A key, and what is kept of its value.
    fn kept_member(&mut self, out: &mut Builder<'_>, keep: &Keep) -> Result<(), Fault> {
        if matches!(keep, Keep::Nothing) {
            self.skip_key()?;
            return self.skip_value();
        }
        if !self.short_key(out) && !self.long_key(out) {
            self.other_key(out)?;
        }
        self.kept(out, keep)
    }

    fn begin(&mut self, out: &mut Builder<'_>, kind: ValueKind) {
        out.open(kind, span(self.at, self.at + 1));
        self.at += 1;
    }

    /// True before the next member or item of the innermost container; closes it at its end.
    fn goes_on(&mut self, out: &mut Builder<'_>, end: u8) -> Result<bool, Fault> {
        if out.len() > self.most {
            return Err(Box::new(self.too_dense()));
        }
        self.skip_space();
        match self.peek() {
            Some(byte) if byte == end => {
                self.close(out);
                return Ok(false);
            }
            Some(b',') => {
                self.at += 1;
                self.skip_space();
            }
            _ => {}
        }
        match (end, self.peek()) {
            (b'}', Some(b'"')) => Ok(true),
            (b'}', _) => Err(self.unexpected("looking for beginning of object key string")),
            _ => Ok(true),
        }
    }

    fn skip_key(&mut self) -> Result<(), Fault> {
        self.skip_string()?;
        self.skip_space();
        if self.peek() != Some(b':') {
            return Err(self.unexpected("after object key"));
        }
        self.at += 1;
        Ok(())
    }

    /// A value of any size.
    fn skip_value(&mut self) -> Result<(), Fault> {
        self.skip_space();
        let mut depth = 0_usize;
        loop {
            match self.peek() {
                Some(b'"') => self.skip_string()?,
                Some(b'{' | b'[') => {
                    depth += 1;
                    self.at += 1;
                }
                Some(b'}' | b']') if depth > 0 => {
                    depth -= 1;
                    self.at += 1;
                }
                Some(b',' | b':' | b' ' | b'\t' | b'\n' | b'\r') if depth > 0 => {
                    self.at += 1;
                    continue;
                }
                Some(b'-' | b'0'..=b'9' | b'a'..=b'z') => {
                    while matches!(self.peek(), Some(b'-' | b'+' | b'.' | b'0'..=b'9' | b'a'..=b'z' | b'E')) {
                        self.at += 1;
                    }
                }
                _ => return Err(self.unexpected("looking for beginning of value")),
            }
            if depth == 0 {
                return Ok(());
            }
        }
    }

    fn skip_string(&mut self) -> Result<(), Fault> {
        self.at = self.plain_end();
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => self.at += 2,
                Some(_) => self.at += 1,
                None => return Err(self.unexpected("in string literal")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Envelope, Keep, Part};

    const KEEP: Keep = Keep::Fields(&[
        ("metadata", Keep::AllBut(&[("managedFields", Keep::Nothing), ("labels", Keep::Nothing)])),
        (
            "spec",
            Keep::Fields(&[("list", Keep::Items(&Keep::Fields(&[("name", Keep::All)]))), ("all", Keep::All)]),
        ),
    ]);

    fn json(part: &Part<'_>) -> (String, bool) {
        (part.doc.root().to_json(), part.is_whole)
    }

    #[test]
    fn only_what_is_kept_is_read() {
        let object = r#" { "metadata" : {"labels":{"a":"}\"]","b":{}},"name":"x", "managedFields":[{"f":[-1.5E+3,null,"\\"]}],"uid":"u"},
            "spec":{"list":[{"x":[],"name":"1"},{},{"name":"2","y":true}],"all":{"deep":[[{"k":"\u0041"}]]},"no":1},"status":{"no":2}} "#;
        let text = format!(
            r#"{{"kind":"L","items":[{object},{{"metadata":{{}}}} , 5],"metadata":{{"continue":"c"}}}}"#
        );
        let list = Envelope::open(&text, "items").unwrap();
        assert!(list.has_list());
        assert_eq!(list.rest().to_json(), r#"{"kind":"L","metadata":{"continue":"c"}}"#);
        let items: Vec<_> = list.items(&KEEP, 100).map(|item| json(&item.unwrap())).collect();
        let first = r#"{"metadata":{"name":"x","uid":"u"},"spec":{"all":{"deep":[[{"k":"A"}]]},"list":[{"name":"1"},{},{"name":"2"}]}}"#;
        let expected = [first, r#"{"metadata":{}}"#, "5"].map(|text| (text.to_owned(), true));
        assert_eq!(items, expected);
        let text = format!(r#"{{"type":"ADDED","object":{object}}}"#);
        let event = Envelope::open(&text, "object").unwrap();
        assert_eq!(json(&event.value(&KEEP, 100).unwrap()), (first.to_owned(), true));
        assert_eq!(event.rest().to_json(), r#"{"type":"ADDED"}"#);
    }

    #[test]
    fn an_object_that_is_too_large_keeps_its_name_and_the_next_one_is_read() {
        for many in ["[0,0,0,0,0,0,0,0,0]", r#"{"a":[],"b":{},"c":"","d":1}"#, r#"[[[[[[[[0]]]]]]]]"#] {
            let text = format!(
                r#"{{"items":[{{"metadata":{{"name":"x","namespace":"n","uid":"u"}},"spec":{{"all":{many}}}}},{{"metadata":{{"name":"y"}}}}]}}"#
            );
            let list = Envelope::open(&text, "items").unwrap();
            let items: Vec<_> = list.items(&KEEP, 14).map(|item| json(&item.unwrap())).collect();
            let expected = [
                (r#"{"metadata":{"name":"x","namespace":"n"}}"#.to_owned(), false),
                (r#"{"metadata":{"name":"y"}}"#.to_owned(), true),
            ];
            assert_eq!(items, expected, "{many}");
        }
    }

    #[test]
    fn other_texts_are_errors_or_empty() {
        for text in
            ["", "{", r#"{"items":[{"a":1]}"#, r#"{"items":[}"#, r#"{"a":1} x"#, r#"{"items" 1}"#, "{]"]
        {
            let items =
                Envelope::open(text, "items").map(|list| list.items(&KEEP, 9).any(|item| item.is_err()));
            assert!(items.is_err() || items == Ok(true), "{text}: {items:?}");
        }
        for (text, has_list) in
            [(r#"{"items":null}"#, true), ("{}", true), (r#"{"items":{}}"#, false), ("[]", true)]
        {
            let list = Envelope::open(text, "items").unwrap();
            assert_eq!((list.items(&KEEP, 9).count(), list.has_list()), (0, has_list), "{text}");
        }
    }
}
