//! Fast path: whether a document decodes without any error or warning, as nearly all do. The same walk, without
//! building paths or messages.
//!
//! Invariant: a document that it lets pass is one of which the whole walk has nothing to tell. Where it does not
//! know, it says no, and the whole walk decides.

use super::{Schema, SeenKeys, quantity_text};
use crate::schema::{StructTy, Ty, Unlisted};
use tollgate_document::doc::{Value, ValueKind};
use tollgate_formats::gotime;
use tollgate_formats::quantity;

/// True if `value` surely decodes without any error or warning. False if the whole walk must decide.
pub(super) fn is_clean(value: Value<'_>, schema: Schema) -> bool {
    // Items of a list may be of different kinds: what one of them is written as may be of another type.
    let quick = FastDecoder { schema, trusts_copies: !value.is_in_list() };
    // Types that are modelled in part usually have unknown keys, so the fast path does not apply.
    schema.root.unlisted == Unlisted::Dropped && quick.is_clean_object(value, schema.root)
}

/// Decodes one document without reporting errors, to find out quickly whether it has any.
#[derive(Clone, Copy)]
struct FastDecoder {
    schema: Schema,
    /// True if a value that [is a copy](Value::is_copied) has the type of its original, which was checked before.
    trusts_copies: bool,
}

impl FastDecoder {
    /// True if an object surely decodes as the struct `ty` without any error or warning.
    fn is_clean_object(self, value: Value<'_>, ty: &'static StructTy) -> bool {
        let mut rows = 0_u64;
        value.members().all(|(key, member)| {
            let (key, kind) = (key.as_key(), member.kind());
            if let Some(row) = ty.rows.field_bit_if_plain(key, kind) {
                let is_first = rows & row == 0;
                rows |= row;
                return is_first;
            }
            let Some((row, field)) = ty.field_of(key, self.schema.fields) else { return false };
            let is_first = rows & (1 << row) == 0;
            rows |= 1 << row;
            is_first
                && (field.ty.accepts_any(kind)
                    || self.is_checked_copy(member)
                    || self.schema.unread.has(field.name)
                    || self.is_clean_value(member, &field.ty))
        })
    }

    /// True if the value is a copy of one that was checked.
    fn is_checked_copy(self, value: Value<'_>) -> bool {
        self.trusts_copies && value.is_copied()
    }

    /// True if a value surely decodes as `ty` without any error or warning.
    fn is_clean_value(self, value: Value<'_>, ty: &'static Ty) -> bool {
        match (ty, value.kind()) {
            (Ty::Struct(inner) | Ty::StringOr(inner), ValueKind::Object) => {
                self.is_clean_object(value, inner)
            }
            (Ty::List(item), ValueKind::Array) => value
                .items()
                .all(|element| self.is_checked_copy(element) || self.is_clean_value(element, item)),
            (Ty::Map { value: inner, .. }, ValueKind::Object) => self.is_clean_map(value, inner),
            (Ty::Int, ValueKind::Number) => value.int().is_some(),
            (Ty::Time, ValueKind::String) => gotime::parse(value.text()).is_ok(),
            (Ty::Quantity, _) => quantity::Quantity::parse(quantity_text(value)).is_ok(),
            (ty, kind) => ty.accepts_any(kind),
        }
    }

    /// True if an object surely decodes as a map with values of type `inner`, without duplicate keys.
    fn is_clean_map(self, value: Value<'_>, inner: &'static Ty) -> bool {
        // Copies of different keys of one object, in which none is there twice.
        let (mut copies, mut seen) = (self.trusts_copies, None::<SeenKeys<'_>>);
        value.members().enumerate().all(|(position, (key, member))| {
            copies &= key.is_copied();
            let is_again = !copies
                && seen
                    .get_or_insert_with(|| SeenKeys::of_first(value, position))
                    .is_repeated(key.text(), position);
            !is_again
                && (inner.accepts_any(member.kind())
                    || self.is_checked_copy(member)
                    || self.is_clean_value(member, inner))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Schema, conform_by_walk};
    use super::is_clean;
    use crate::fields;
    use crate::profile::{ApiKind, Profile, Version};
    use crate::schema::Unlisted;
    use tollgate_document::doc::{self, NameSet};

    static UNREAD: NameSet = NameSet::of(&["attributes", "labels"]);
    const CLAIM: &str = r#"{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":"c",
        "creationTimestamp":"2026-01-01T00:00:00Z","labels":{"a":"1","b":"2"}},"spec":{"devices":{"requests":[
        {"name":"r","exactly":{"deviceClassName":"d","count":1,"capacity":{"requests":{"m":"1Gi"}},"tolerations":[
        {"key":"k","operator":"Exists","tolerationSeconds":5},{"key":"k","operator":"Exists","tolerationSeconds":6}]}}]}},
        "status":{"reservedFor":[{"resource":"pods","name":"p","uid":"u"}]}}"#;
    const SLICE: &str = r#"{"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","spec":{"driver":"d","pool":
        {"name":"p","generation":1},"devices":[{"name":"a","attributes":{"m":{"string":"x"},"n":{"int":1}},
        "taints":[{"key":"k","effect":"NoSchedule","timeAdded":"2026-01-01T00:00:00Z"}]},{"name":"b","attributes":
        {"m":{"string":"x"},"n":{"int":1}},"taints":[{"key":"k","effect":"NoSchedule"}]}]}}"#;
    const DEPLOYMENT: &str = r#"{"apiVersion":"apps/v1","kind":"Deployment","spec":{"template":{"spec":
        {"resourceClaims":[{"name":"a"}]}}}}"#;

    /// The text, and the text with each of its values and keys replaced by others, or written twice.
    fn damaged(text: &str) -> Vec<String> {
        let document = doc::parse(text).unwrap();
        let mut texts = vec![text.to_owned()];
        for value in document.root().descendants() {
            let span = value.span();
            let (from, to) = (span.start as usize, span.end as usize);
            let put = |other: &str| format!("{}{other}{}", &text[..from], &text[to..]);
            let here = &text[from..to];
            let others =
                ["null", "1", "1.5", "99999999999999999999", "true", "\"x\"", "[]", "[1]", "{}", "\"name\""];
            texts.extend(others.iter().map(|other| put(other)));
            texts.push(put(&format!("{here},{here}")));
            for (key, member) in value.members() {
                let (first, last) = (key.span().start as usize, member.span().end as usize);
                let member = &text[first..last];
                // The same key in other words: its first letter as an escape.
                let escaped = format!("\"\\u{:04x}{}", member.as_bytes()[1], &member[2..]);
                for again in [member, &escaped] {
                    texts.push(put(&format!("{},{again}}}", &here[..here.len() - 1])));
                }
            }
        }
        texts.retain(|text| doc::parse(text).is_ok());
        texts
    }

    /// A slice whose device has more attributes than are searched one by one, with an earlier one again at the end.
    fn many(again: &str) -> String {
        let attributes: Vec<String> = (0..60).map(|number| format!(r#""a{number}":{{"int":1}}"#)).collect();
        SLICE.replace(r#""m":{"string":"x"}"#, &format!("{}{again}", attributes.join(",")))
    }

    #[test]
    fn it_lets_pass_what_the_whole_walk_has_nothing_to_tell_of() {
        let (mut passed, mut refused) = (0, 0);
        let mut texts: Vec<(ApiKind, String)> = Vec::new();
        for (kind, text) in [
            (ApiKind::ResourceClaim, CLAIM),
            (ApiKind::ResourceSlice, SLICE),
            (ApiKind::Deployment, DEPLOYMENT),
        ] {
            texts.extend(damaged(text).into_iter().map(|text| (kind, text)));
        }
        texts.push((ApiKind::ResourceSlice, many("")));
        texts.push((ApiKind::ResourceSlice, many(r#","a7":{"int":1}"#)));
        texts.push((ApiKind::ResourceSlice, many(r#","\u00617":{"int":1}"#)));
        let profiles = ["1.33", "1.36", "kep-5055"].map(|name| Profile::named(name).unwrap());
        for (kind, text) in &texts {
            let document = doc::parse(text).unwrap();
            for version in [Version::V1, Version::V1beta1] {
                for (profile, unread) in
                    profiles.iter().flat_map(|profile| [(profile, NameSet::NONE), (profile, &UNREAD)])
                {
                    let root = fields::root(*kind, version);
                    let schema = Schema { root, version, fields: profile.fields, unread };
                    let whole = conform_by_walk(document.root(), schema);
                    let is_expected = whole.errors.is_empty() && whole.strict.is_empty();
                    let is_whole = root.unlisted == Unlisted::Dropped;
                    assert_eq!(is_clean(document.root(), schema), is_expected && is_whole, "{text}");
                    *if is_expected { &mut passed } else { &mut refused } += 1;
                }
            }
        }
        assert!(passed > 1_000 && refused > 5_000, "{passed} passed, {refused} refused");
    }

    #[test]
    fn a_copy_of_what_another_kind_has_is_looked_at() {
        // As an item it is of its own kind; what the first one is, nobody has looked at.
        let list = r#"[{"kind":"Other","spec":{"devices":{"requests":[{"name":1}]}},"x":1},
            {"kind":"ResourceClaim","spec":{"devices":{"requests":[{"name":1}]}}}]"#;
        let document = doc::parse(list).unwrap();
        let claim = document.root().items().nth(1).unwrap();
        assert!(claim.get("spec").is_copied());
        let (root, version) = (fields::root(ApiKind::ResourceClaim, Version::V1), Version::V1);
        let fields = Profile::named("1.36").unwrap().fields;
        assert!(!is_clean(claim, Schema { root, version, fields, unread: NameSet::NONE }));
    }
}
