//! The texts of Kubernetes' format checks, byte for byte.
//!
//! Macros rather than constants where a text is part of a longer one: `concat!` takes literals only, and a
//! check that fails should not have to allocate. The two spaces in `',  or '` are upstream's.

macro_rules! subdomain {
    () => {
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
         start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
         '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
    };
}

macro_rules! qname {
    () => {
        "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
         character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
         '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
    };
}

macro_rules! key_shape {
    ($word:literal) => {
        concat!($word, qname!(), " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')")
    };
}

/// Error for a value that is not a DNS-1123 subdomain.
pub const INVALID_SUBDOMAIN: &str = subdomain!();

/// Error of the case-insensitive subdomain check of 1.37.
pub const INVALID_SUBDOMAIN_CASELESS: &str = "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and \
     must start and end with an alphanumeric character (e.g. 'Example.com', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

/// Error for a value that is not a DNS-1123 label.
pub const INVALID_LABEL1123: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', \
     and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for \
     validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

/// Error for a subdomain that must be a single label.
pub const NO_DOTS: &str = "must not contain dots";

/// Error for an invalid label value.
pub const INVALID_LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or \
     '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex \
     used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// Error for a value that is not a C identifier.
pub const INVALID_C_IDENTIFIER: &str = "a valid C identifier must start with alphabetic character or '_', followed by a string of \
     alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is \
     '[A-Za-z_][A-Za-z0-9_]*')";

/// Error for an invalid condition reason.
pub const INVALID_CONDITION_REASON: &str = "a condition reason must start with alphabetic character, optionally followed by \
     a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. \
     'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation \
     is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')";

/// Error for an attribute value that is not a semantic version.
pub const INVALID_SEMVER: &str = "must be a string compatible with semver.org spec 2.0.0";

/// Error for an invalid extended resource name in 1.34 to 1.36.
pub const INVALID_EXTENDED_RESOURCE: &str = "must be a valid extended resource name";

/// Error for an invalid share ID in 1.37.
pub const NOT_LOWERCASE_UUID: &str = "must be a lowercase UUID in 8-4-4-4-12 format";

/// Error for an interface address that is not in CIDR form.
pub const INVALID_CIDR: &str = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)";

/// Error for a label key with more than one slash, up to 1.34.
pub(super) const INVALID_QUALIFIED_KEY: &str = key_shape!("a qualified name ");
/// Error for a label key with more than one slash, from 1.35.
pub(super) const INVALID_LABEL_KEY: &str = key_shape!("a valid label key ");

pub(super) const NAME_EMPTY: &str = "name part must be non-empty";
pub(super) const INVALID_NAME_PART: &str = concat!("name part ", qname!());
pub(super) const PREFIX_EMPTY: &str = "prefix part must be non-empty";
pub(super) const INVALID_PREFIX_PART: &str = concat!("prefix part ", subdomain!());

pub(super) const INVALID_UID: &str = "error validating uid: invalid UUID format";
pub(super) const INVALID_UID_BRACKETS: &str = "error validating uid: invalid bracketed UUID format";
pub(super) const UID_NOT_NORMALIZED: &str = "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` \
     with lowercase hexadecimal characters";

pub(super) const MISSING_DOMAIN_PREFIX: &str =
    "a name must be a domain-prefixed path, such as 'example.com/my-prop'";
pub(super) const NO_REQUESTS: &str = "must not have \"requests.\" prefix";
pub(super) const NO_KUBERNETES: &str = "must not have \"kubernetes.io/\" domain";
