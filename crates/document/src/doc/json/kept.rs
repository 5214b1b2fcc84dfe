//! Reads parts of JSON text: only the members that are wanted, and the items of a list one by one. Whatever is not
//! wanted is skipped by its brackets and quotes and takes no memory.
//!
//! For the responses of an API server, whose JSON is well formed: what is skipped is not checked.
//!
//! Invariant: a value that is kept whole is what [`super::parse`] makes of its bytes.

use super::{BoxedSyntaxError, Reader, SyntaxError, span};
use crate::doc::repeat_template::NO_TEMPLATE;
use crate::doc::{Builder, Doc, Syntax, Value, ValueKind};

/// The parts of a value that are kept when it is read. A value of an unexpected type is kept completely, so
/// that the caller can report it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeptFields {
    /// The whole value is kept.
    All,
    /// Only these members of an object, each with the parts to keep.
    Fields(&'static [(&'static str, KeptFields)]),
    /// All members of an object are kept: of these as much as is given beside the name, of the others everything.
    AllBut(&'static [(&'static str, KeptFields)]),
    /// Every item of a list is kept, of each as much as is given.
    Items(&'static KeptFields),
    /// Nothing is kept, not even the key.
    Nothing,
}

impl KeptFields {
    /// The parts to keep of the member `key`.
    fn for_member(&self, key: &[u8]) -> KeptFields {
        let find = |fields: &'static [(&'static str, KeptFields)]| {
            fields.iter().find(|(name, _)| name.as_bytes() == key).map(|(_, keep)| *keep)
        };
        match *self {
            KeptFields::All | KeptFields::Items(_) => KeptFields::All,
            KeptFields::Nothing => KeptFields::Nothing,
            KeptFields::Fields(fields) => find(fields).unwrap_or(KeptFields::Nothing),
            KeptFields::AllBut(fields) => find(fields).unwrap_or(KeptFields::All),
        }
    }
}

/// Only the fields that identify an object: name, namespace and version.
const IDENTITY_FIELDS: KeptFields = KeptFields::Fields(&[(
    "metadata",
    KeptFields::Fields(&[
        ("name", KeptFields::All),
        ("namespace", KeptFields::All),
        ("resourceVersion", KeptFields::All),
    ]),
)]);

/// An object of which only the parts that [`KeptFields`] selects were read.
#[derive(Debug)]
pub struct KeptObject<'a> {
    pub doc: Doc<'a>,
    /// False if the object has more keys and values than were allowed: then `doc` has only its name, namespace and
    /// version.
    pub is_whole: bool,
}

/// Reads the parts of a JSON text that `keep` selects. Fails if they have more than `most` keys and values.
/// Text after the value is ignored.
pub fn parse_kept<'a>(source: &'a str, keep: &KeptFields, most: usize) -> Result<Doc<'a>, SyntaxError> {
    let mut reader = Reader { most, ..Reader::from_source(source) };
    let mut out = Builder::with_capacity(source, Syntax::Json, 64);
    reader.read_kept(&mut out, keep).map_err(|fault| *fault)?;
    Ok(out.finish())
}

/// A JSON object, such as a list or a watch event, of which one member (the content) is read apart from the others.
#[derive(Debug)]
pub struct ObjectWithDeferredMember<'a> {
    source: &'a str,
    rest: Doc<'a>,
    /// Byte offset at which the deferred member's value begins; `None` if there is no such member.
    member: Option<usize>,
}

impl<'a> ObjectWithDeferredMember<'a> {
    /// Reads all members of the object in `source` except `member`, whose value is skipped and can be read later.
    pub fn parse_deferring(
        source: &'a str,
        member: &str,
    ) -> Result<ObjectWithDeferredMember<'a>, SyntaxError> {
        let mut reader = Reader::from_source(source);
        let mut out = Builder::with_capacity(source, Syntax::Json, 64);
        let mut found = None;
        reader.skip_space();
        let read = if reader.peek() == Some(b'{') {
            reader.read_members(&mut out, &mut |reader, key, out| {
                if key != member.as_bytes() {
                    return reader.read_kept_member(out, &KeptFields::All);
                }
                reader.skip_key_and_colon()?;
                reader.skip_space();
                found = Some(reader.at);
                reader.skip_value_without_validation()
            })
        } else {
            reader.read_kept(&mut out, &KeptFields::All)
        };
        read.map_err(|fault| *fault)?;
        reader.skip_space();
        match reader.peek() {
            None => Ok(ObjectWithDeferredMember { source, rest: out.finish(), member: found }),
            Some(_) => Err(*reader.unexpected("after top-level value")),
        }
    }

    /// Returns the object without the deferred member.
    pub fn without_deferred_member(&self) -> Value<'_> {
        self.rest.root()
    }

    /// True if the deferred member can be decoded as a list: it is one, or it is null or absent, which Go reads as an
    /// empty list.
    pub fn deferred_member_is_list_null_or_absent(&self) -> bool {
        let first = self.member.and_then(|at| self.source.as_bytes().get(at));
        matches!(first, None | Some(b'[' | b'n'))
    }

    /// Reads the parts of the deferred member that `keep` selects. If they have more than `most` keys and values, only
    /// the name, namespace and version of the object are read. An absent member gives an empty document.
    pub fn read_deferred_member_or_identity(
        &self,
        keep: &KeptFields,
        most: usize,
    ) -> Result<KeptObject<'a>, SyntaxError> {
        let mut reader = Reader::from_source(self.source);
        match self.member {
            Some(at) => reader.at = at,
            None => reader.at = self.source.len(),
        }
        reader.read_kept_or_identity(keep, most)
    }

    /// Reads the items of the deferred member one by one, as
    /// [`ObjectWithDeferredMember::read_deferred_member_or_identity`] reads the member; none if it is not a list.
    pub fn read_deferred_items<'k>(&self, keep: &'k KeptFields, most: usize) -> KeptItems<'a, 'k> {
        let mut reader = Reader::from_source(self.source);
        reader.at = match self.member {
            Some(at) if self.source.as_bytes().get(at) == Some(&b'[') => at + 1,
            _ => self.source.len(),
        };
        KeptItems { reader, keep, most }
    }
}

/// Iterates over the objects in the deferred member; ends after an error.
pub struct KeptItems<'a, 'k> {
    reader: Reader<'a>,
    keep: &'k KeptFields,
    most: usize,
}

impl<'a> Iterator for KeptItems<'a, '_> {
    type Item = Result<KeptObject<'a>, SyntaxError>;

    fn next(&mut self) -> Option<Result<KeptObject<'a>, SyntaxError>> {
        let reader = &mut self.reader;
        reader.skip_space();
        if matches!(reader.peek(), None | Some(b']')) {
            return None;
        }
        let part = reader.read_kept_or_identity(self.keep, self.most);
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

/// Reads one member, whose key begins at the reader's position and is given as the second argument.
type ReadMember<'r, 'a, 'o> =
    &'r mut dyn FnMut(&mut Reader<'a>, &[u8], &mut Builder<'o>) -> Result<(), BoxedSyntaxError>;

impl<'a> Reader<'a> {
    /// Reads the parts that `keep` selects of the value at the current position. If they have more than `most` keys and
    /// values, reads [`IDENTITY_FIELDS`] instead. At the end of the text, the document is empty.
    fn read_kept_or_identity(
        &mut self,
        keep: &KeptFields,
        most: usize,
    ) -> Result<KeptObject<'a>, SyntaxError> {
        let start = self.at;
        self.most = most;
        let mut out = Builder::with_capacity(self.source, Syntax::Json, 64).with_repeat_copying();
        let read = if self.peek().is_some() { self.read_kept(&mut out, keep) } else { Ok(()) };
        match read {
            Ok(()) => Ok(KeptObject { doc: out.finish_verbatim(), is_whole: true }),
            Err(fault) if fault.is_too_dense => {
                drop(out);
                (self.at, self.most, self.base) = (start, usize::MAX, 0);
                let mut out = Builder::with_capacity(self.source, Syntax::Json, 16);
                self.read_kept(&mut out, &IDENTITY_FIELDS).map_err(|fault| *fault)?;
                Ok(KeptObject { doc: out.finish(), is_whole: false })
            }
            Err(fault) => Err(*fault),
        }
    }

    /// Reads the parts that `keep` selects of the value at the current position. The depth of the recursion is that of
    /// `keep`, which is fixed.
    fn read_kept(&mut self, out: &mut Builder<'_>, keep: &KeptFields) -> Result<(), BoxedSyntaxError> {
        self.skip_space();
        match (keep, self.peek()) {
            (KeptFields::Nothing, _) => self.skip_value_without_validation(),
            (KeptFields::Fields(_) | KeptFields::AllBut(_), Some(b'{')) => self
                .read_members(out, &mut |reader, key, out| {
                    reader.read_kept_member(out, &keep.for_member(key))
                }),
            (KeptFields::Items(keep), Some(b'[')) => {
                self.open_container(out, ValueKind::Array);
                while self.advance_or_close(out, b']')? {
                    self.read_kept(out, keep)?;
                }
                Ok(())
            }
            _ => {
                (self.template, self.base) = (NO_TEMPLATE, out.depth());
                let read = self.read_document(out);
                self.base = 0;
                read
            }
        }
    }

    /// Opens the object that begins here, and calls `read` for each of its members.
    fn read_members<'o>(
        &mut self,
        out: &mut Builder<'o>,
        read: ReadMember<'_, 'a, 'o>,
    ) -> Result<(), BoxedSyntaxError> {
        self.open_container(out, ValueKind::Object);
        while self.advance_or_close(out, b'}')? {
            let (start, end) = (self.at + 1, self.plain_end());
            let bytes = self.bytes;
            // A key with escapes is none that anybody asks for.
            let key = bytes.get(start..end).filter(|_| bytes.get(end) == Some(&b'"')).unwrap_or_default();
            read(self, key, out)?;
        }
        Ok(())
    }

    /// Reads the member whose key begins at the current position, or skips it if nothing of it is kept.
    fn read_kept_member(&mut self, out: &mut Builder<'_>, keep: &KeptFields) -> Result<(), BoxedSyntaxError> {
        if matches!(keep, KeptFields::Nothing) {
            self.skip_key_and_colon()?;
            return self.skip_value_without_validation();
        }
        if !self.try_read_plain_key_and_colon(out) {
            self.read_any_key_and_colon(out)?;
        }
        self.read_kept(out, keep)
    }

    /// Reads the opening bracket at the current position.
    fn open_container(&mut self, out: &mut Builder<'_>, kind: ValueKind) {
        out.open(kind, span(self.at, self.at + 1));
        self.at += 1;
    }

    /// Moves to the next member or item of the innermost container and returns true; at its end, closes it and returns
    /// false. `end` is its closing bracket.
    fn advance_or_close(&mut self, out: &mut Builder<'_>, end: u8) -> Result<bool, BoxedSyntaxError> {
        if out.len() > self.most {
            return Err(Box::new(self.too_many_nodes_error()));
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

    /// Moves past a key and its colon.
    fn skip_key_and_colon(&mut self) -> Result<(), BoxedSyntaxError> {
        self.skip_string()?;
        self.skip_colon()
    }

    /// Moves past a value of any size. Only counts brackets and skips strings; does not check the syntax.
    fn skip_value_without_validation(&mut self) -> Result<(), BoxedSyntaxError> {
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

    /// Moves past the string whose opening quote is at the current position.
    fn skip_string(&mut self) -> Result<(), BoxedSyntaxError> {
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
    use super::{KeptFields, KeptObject, ObjectWithDeferredMember};

    const KEEP: KeptFields = KeptFields::Fields(&[
        (
            "metadata",
            KeptFields::AllBut(&[("managedFields", KeptFields::Nothing), ("labels", KeptFields::Nothing)]),
        ),
        (
            "spec",
            KeptFields::Fields(&[
                ("list", KeptFields::Items(&KeptFields::Fields(&[("name", KeptFields::All)]))),
                ("all", KeptFields::All),
            ]),
        ),
    ]);

    fn json(part: &KeptObject<'_>) -> (String, bool) {
        (part.doc.root().to_json(), part.is_whole)
    }

    #[test]
    fn only_what_is_kept_is_read() {
        let object = r#" { "metadata" : {"labels":{"a":"}\"]","b":{}},"name":"x", "managedFields":[{"f":[-1.5E+3,null,"\\"]}],"uid":"u"},
            "spec":{"list":[{"x":[],"name":"1"},{},{"name":"2","y":true}],"all":{"deep":[[{"k":"\u0041"}]]},"no":1},"status":{"no":2}} "#;
        let text = format!(
            r#"{{"kind":"L","items":[{object},{{"metadata":{{}}}} , 5],"metadata":{{"continue":"c"}}}}"#
        );
        let list = ObjectWithDeferredMember::parse_deferring(&text, "items").unwrap();
        assert!(list.deferred_member_is_list_null_or_absent());
        assert_eq!(list.without_deferred_member().to_json(), r#"{"kind":"L","metadata":{"continue":"c"}}"#);
        let items: Vec<_> = list.read_deferred_items(&KEEP, 100).map(|item| json(&item.unwrap())).collect();
        let first = r#"{"metadata":{"name":"x","uid":"u"},"spec":{"all":{"deep":[[{"k":"A"}]]},"list":[{"name":"1"},{},{"name":"2"}]}}"#;
        let expected = [first, r#"{"metadata":{}}"#, "5"].map(|text| (text.to_owned(), true));
        assert_eq!(items, expected);
        let text = format!(r#"{{"type":"ADDED","object":{object}}}"#);
        let event = ObjectWithDeferredMember::parse_deferring(&text, "object").unwrap();
        assert_eq!(
            json(&event.read_deferred_member_or_identity(&KEEP, 100).unwrap()),
            (first.to_owned(), true)
        );
        assert_eq!(event.without_deferred_member().to_json(), r#"{"type":"ADDED"}"#);
    }

    #[test]
    fn an_object_that_is_too_large_keeps_its_name_and_the_next_one_is_read() {
        for many in ["[0,0,0,0,0,0,0,0,0]", r#"{"a":[],"b":{},"c":"","d":1}"#, r#"[[[[[[[[0]]]]]]]]"#] {
            let text = format!(
                r#"{{"items":[{{"metadata":{{"name":"x","namespace":"n","uid":"u"}},"spec":{{"all":{many}}}}},{{"metadata":{{"name":"y"}}}}]}}"#
            );
            let list = ObjectWithDeferredMember::parse_deferring(&text, "items").unwrap();
            let items: Vec<_> =
                list.read_deferred_items(&KEEP, 14).map(|item| json(&item.unwrap())).collect();
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
            let items = ObjectWithDeferredMember::parse_deferring(text, "items")
                .map(|list| list.read_deferred_items(&KEEP, 9).any(|item| item.is_err()));
            assert!(items.is_err() || items == Ok(true), "{text}: {items:?}");
        }
        for (text, has_list) in
            [(r#"{"items":null}"#, true), ("{}", true), (r#"{"items":{}}"#, false), ("[]", true)]
        {
            let list = ObjectWithDeferredMember::parse_deferring(text, "items").unwrap();
            assert_eq!(
                (list.read_deferred_items(&KEEP, 9).count(), list.deferred_member_is_list_null_or_absent()),
                (0, has_list),
                "{text}"
            );
        }
    }
}
