//! Format checks with Kubernetes' texts: label keys and values, DNS names, identifiers, versions, share ids.
//!
//! A check calls `report` once per problem, in upstream's order, with the detail text alone; field paths, error
//! types and which release uses which check belong to the rules. A clean value calls nothing and allocates
//! nothing. Lengths are counted in bytes; only the word for them differs between releases.

use std::borrow::Cow;

mod semver;
mod shapes;
mod texts;
mod uuid;

pub use semver::{is_semver, split_optional};
pub use shapes::{has_subdomain_shape, is_c_identifier, is_condition_reason};
pub use texts::{
    INVALID_C_IDENTIFIER, INVALID_CIDR, INVALID_CONDITION_REASON, INVALID_EXTENDED_RESOURCE,
    INVALID_LABEL_VALUE, INVALID_LABEL1123, INVALID_SEMVER, INVALID_SUBDOMAIN, INVALID_SUBDOMAIN_CASELESS,
    NO_DOTS, NOT_LOWERCASE_UUID,
};
pub use uuid::{is_lowercase_uuid, uid_problem};

/// The detail text of one problem.
pub type Problem = Cow<'static, str>;

/// The word that a release uses for lengths in `must be no more than N …`. Bytes are counted in any case.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LengthUnitWord {
    /// Lengths are stated in characters: up to 1.34, and for object names later too.
    Characters,
    /// Lengths are stated in bytes: in 1.35 and later for label keys and values.
    Bytes,
}

impl LengthUnitWord {
    fn choose(self, in_characters: &'static str, in_bytes: &'static str) -> &'static str {
        if self == LengthUnitWord::Characters { in_characters } else { in_bytes }
    }
}

/// The first word of the error for a label key with more than one slash, which depends on the release.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyErrorWord {
    /// `a qualified name …`, up to 1.34.
    QualifiedName,
    /// `a valid label key …`, from 1.35.
    LabelKey,
}

/// Reports what is wrong with a label key: an optional subdomain and `/`, then a name.
pub fn check_label_key(
    value: &str,
    unit: LengthUnitWord,
    word: KeyErrorWord,
    report: &mut dyn FnMut(Problem),
) {
    if is_label_key(value) {
        return;
    }
    let (prefix, name) = match value.split_once('/') {
        None => (None, value),
        Some((prefix, name)) if !name.contains('/') => (Some(prefix), name),
        Some(_) => {
            return report(Cow::Borrowed(match word {
                KeyErrorWord::QualifiedName => texts::INVALID_QUALIFIED_KEY,
                KeyErrorWord::LabelKey => texts::INVALID_LABEL_KEY,
            }));
        }
    };
    if let Some(prefix) = prefix {
        let too_long = unit.choose(
            "prefix part must be no more than 253 characters",
            "prefix part must be no more than 253 bytes",
        );
        let problems = match prefix {
            "" => [Some(texts::PREFIX_EMPTY), None],
            _ => [
                (prefix.len() > SUBDOMAIN_MAX).then_some(too_long),
                (!has_subdomain_shape(prefix)).then_some(texts::INVALID_PREFIX_PART),
            ],
        };
        report_all(problems, report);
    }
    let too_long = unit
        .choose("name part must be no more than 63 characters", "name part must be no more than 63 bytes");
    let length =
        if name.is_empty() { Some(texts::NAME_EMPTY) } else { (name.len() > LABEL_MAX).then_some(too_long) };
    let is_valid = shapes::has_qualified_name_part_shape(name);
    report_all([length, (!is_valid).then_some(texts::INVALID_NAME_PART)], report);
}

/// True if [`check_label_key`] reports nothing. One pass: nearly every key is fine.
pub fn is_label_key(value: &str) -> bool {
    LastValidDomainCache::default().is_label_key(value)
}

/// Checks the domains of many names. Adjacent names usually have the same domain, so a domain is compared with the last
/// valid one first. Use one value for each kind of name, because the maximum length of its domain is not remembered.
#[derive(Clone, Copy, Debug, Default)]
pub struct LastValidDomainCache<'a>(&'a str);

impl<'a> LastValidDomainCache<'a> {
    /// The rest of a name that begins with the last valid domain and a slash; `None` if it begins otherwise.
    #[inline]
    pub fn strip_cached_domain(self, name: &'a str) -> Option<&'a str> {
        if self.0.is_empty() { None } else { name.strip_prefix(self.0)?.strip_prefix('/') }
    }

    /// True if `domain` is a DNS-1123 subdomain, as in [`has_subdomain_shape`].
    #[inline]
    pub fn has_subdomain_shape(&mut self, domain: &'a str) -> bool {
        if domain == self.0 {
            return !domain.is_empty();
        }
        let is_valid = has_subdomain_shape(domain);
        if is_valid {
            self.0 = domain;
        }
        is_valid
    }

    /// True if [`check_label_key`] reports nothing about `key`.
    pub fn is_label_key(&mut self, key: &'a str) -> bool {
        let is_name = |name: &str| name.len() <= LABEL_MAX && shapes::has_qualified_name_part_shape(name);
        if self.strip_cached_domain(key).is_some_and(is_name) {
            return true;
        }
        let (prefix, name) = split_prefix(key);
        prefix.is_none_or(|prefix| prefix.len() <= SUBDOMAIN_MAX && self.has_subdomain_shape(prefix))
            && is_name(name)
    }
}

/// The parts before and after the last `/`; `None` and the whole value if there is none.
pub fn split_prefix(value: &str) -> (Option<&str>, &str) {
    // From the end: the part after the slash is the short one.
    match memchr::memrchr(b'/', value.as_bytes()) {
        Some(slash) => (value.get(..slash), value.get(slash + 1..).unwrap_or_default()),
        None => (None, value),
    }
}

/// True if the value has no slash, or one.
pub fn has_at_most_one_slash(value: &str) -> bool {
    memchr::memchr_iter(b'/', value.as_bytes()).count() <= 1
}

/// Reports what is wrong with a label value; nothing for an empty one.
pub fn check_label_value(value: &str, unit: LengthUnitWord, report: &mut dyn FnMut(Problem)) {
    let is_valid = value.is_empty() || shapes::has_qualified_name_part_shape(value);
    report_all([too_long_label(value, unit), (!is_valid).then_some(INVALID_LABEL_VALUE)], report);
}

/// Reports what is wrong with a DNS-1123 label: device and request names, counter sets, namespaces.
pub fn check_dns_label(value: &str, unit: LengthUnitWord, report: &mut dyn FnMut(Problem)) {
    let problem = || if has_subdomain_shape(value) { NO_DOTS } else { INVALID_LABEL1123 };
    let is_valid = shapes::has_dns_label_shape(value);
    report_all([too_long_label(value, unit), (!is_valid).then(problem)], report);
}

/// True if [`check_dns_label`] reports nothing.
pub fn is_dns_label(value: &str) -> bool {
    value.len() <= LABEL_MAX && shapes::has_dns_label_shape(value)
}

/// Reports what is wrong with a DNS-1123 subdomain: object, class and node names, pool segments.
pub fn check_dns_subdomain(value: &str, unit: LengthUnitWord, report: &mut dyn FnMut(Problem)) {
    let is_valid = has_subdomain_shape(value);
    report_all([too_long_subdomain(value, unit), (!is_valid).then_some(INVALID_SUBDOMAIN)], report);
}

/// Reports what is wrong with a subdomain whose letters may be in any case, which 1.37 has for opaque and result
/// drivers.
pub fn check_subdomain_caseless(value: &str, unit: LengthUnitWord, report: &mut dyn FnMut(Problem)) {
    let is_valid = shapes::has_caseless_subdomain_shape(value);
    report_all([too_long_subdomain(value, unit), (!is_valid).then_some(INVALID_SUBDOMAIN_CASELESS)], report);
}

/// Reports what is wrong with an object name as a part of a URL path.
pub fn check_path_segment(value: &str, report: &mut dyn FnMut(Problem)) {
    match value {
        "." => report(Cow::Borrowed("may not be '.'")),
        ".." => report(Cow::Borrowed("may not be '..'")),
        _ => check_path_segment_prefix(value, report),
    }
}

/// Reports what is wrong with a `generateName` as the beginning of a part of a URL path.
pub fn check_path_segment_prefix(value: &str, report: &mut dyn FnMut(Problem)) {
    let problems = [
        value.contains('/').then_some("may not contain '/'"),
        value.contains('%').then_some("may not contain '%'"),
    ];
    report_all(problems, report);
}

/// True if Kubernetes 1.34 to 1.36 accept an extended resource name. The error text is [`INVALID_EXTENDED_RESOURCE`].
///
/// upstream v1.36 `IsExtendedResourceName`
pub fn is_extended_resource_name(value: &str) -> bool {
    !value.contains(KUBERNETES_DOMAIN)
        && !value.starts_with(QUOTA_PREFIX)
        && is_valid_with_quota_prefix_prepended(value)
}

/// Reports what 1.37 finds wrong with an extended resource name.
pub fn check_extended_resource(value: &str, report: &mut dyn FnMut(Problem)) {
    let problems = [
        (!value.contains('/')).then_some(texts::MISSING_DOMAIN_PREFIX),
        value.starts_with(QUOTA_PREFIX).then_some(texts::NO_REQUESTS),
        // Any occurrence of the domain counts, even `notkubernetes.io/`.
        value.contains(KUBERNETES_DOMAIN).then_some(texts::NO_KUBERNETES),
    ];
    report_all(problems, report);
    if !is_valid_with_quota_prefix_prepended(value) {
        check_label_key(
            &format!("{QUOTA_PREFIX}{value}"),
            LengthUnitWord::Bytes,
            KeyErrorWord::LabelKey,
            report,
        );
    }
}

/// The text in lower case as Go's `strings.ToLower` makes it, character by character; borrowed if nothing changes.
pub fn go_to_lower(value: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii() && !byte.is_ascii_uppercase();
    if value.bytes().all(is_plain) || value.chars().all(|letter| simple_lower(letter) == letter) {
        Cow::Borrowed(value)
    } else {
        Cow::Owned(value.chars().map(simple_lower).collect())
    }
}

const LABEL_MAX: usize = 63;
const SUBDOMAIN_MAX: usize = 253;
/// The domain of Kubernetes' own resources.
const KUBERNETES_DOMAIN: &str = "kubernetes.io/";
/// Prefix of extended resource names in quotas.
const QUOTA_PREFIX: &str = "requests.";

/// True if `requests.` + `value` is a label key with a prefix, checked without building it.
fn is_valid_with_quota_prefix_prepended(value: &str) -> bool {
    value.split_once('/').is_some_and(|(prefix, name)| {
        prefix.len() + QUOTA_PREFIX.len() <= SUBDOMAIN_MAX
            && has_subdomain_shape(prefix)
            && name.len() <= LABEL_MAX
            && shapes::has_qualified_name_part_shape(name)
    })
}

/// The text about a label with more than [`LABEL_MAX`] bytes; `None` if it has not.
fn too_long_label(value: &str, unit: LengthUnitWord) -> Option<&'static str> {
    let text = unit.choose("must be no more than 63 characters", "must be no more than 63 bytes");
    (value.len() > LABEL_MAX).then_some(text)
}

/// The text about a subdomain with more than [`SUBDOMAIN_MAX`] bytes; `None` if it has not.
fn too_long_subdomain(value: &str, unit: LengthUnitWord) -> Option<&'static str> {
    let text = unit.choose("must be no more than 253 characters", "must be no more than 253 bytes");
    (value.len() > SUBDOMAIN_MAX).then_some(text)
}

/// Reports the problems that there are, in this order.
fn report_all<const N: usize>(problems: [Option<&'static str>; N], report: &mut dyn FnMut(Problem)) {
    problems.into_iter().flatten().for_each(|problem| report(Cow::Borrowed(problem)));
}

/// The one character that Unicode's simple mapping gives for a letter in lower case.
fn simple_lower(letter: char) -> char {
    match letter {
        // The one character whose full mapping (`i` and a combining dot) is longer than its simple one.
        '\u{130}' => 'i',
        _ => letter.to_lowercase().next().unwrap_or(letter),
    }
}

#[cfg(test)]
mod tests;
