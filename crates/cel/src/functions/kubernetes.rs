//! The Kubernetes libraries: lists, regular expressions, URLs, quantities, versions, addresses,
//! named formats, and the authorizer's functions, which exist without a variable to call them on.

use crate::overload::DeclaredType::{
    self, A, Bool, Bytes, Double, Duration, Dyn, Int, List, Map, Named, Opt, Str, Timestamp, Uint,
};
use crate::overload::{Overload, RequiredLibrary, global, member};
use crate::types;

const QUANTITY: DeclaredType = Named(types::QUANTITY);
const SEMVER: DeclaredType = Named(types::SEMVER);
const URL: DeclaredType = Named(types::URL);
const IP: DeclaredType = Named(types::IP);
const CIDR: DeclaredType = Named(types::CIDR);
const FORMAT: DeclaredType = Named(types::FORMAT);
const AUTHORIZER: DeclaredType = Named("kubernetes.authorization.Authorizer");
const PATH_CHECK: DeclaredType = Named("kubernetes.authorization.PathCheck");
const GROUP_CHECK: DeclaredType = Named("kubernetes.authorization.GroupCheck");
const RESOURCE_CHECK: DeclaredType = Named("kubernetes.authorization.ResourceCheck");
const DECISION: DeclaredType = Named("kubernetes.authorization.Decision");
const LIST_A: DeclaredType = List(&A);

macro_rules! of_lists {
    ($name:literal: $($element:ident -> $result:ident),*) => {
        [$(member($name, &[List(&$element)], $result)),*]
    };
}

pub(super) const OVERLOADS: &[&[Overload]] = &[
    &of_lists!("isSorted": Int -> Bool, Uint -> Bool, Double -> Bool, Bool -> Bool,
        Duration -> Bool, Timestamp -> Bool, Str -> Bool, Bytes -> Bool),
    &of_lists!("min": Int -> Int, Uint -> Uint, Double -> Double, Bool -> Bool,
        Duration -> Duration, Timestamp -> Timestamp, Str -> Str, Bytes -> Bytes),
    &of_lists!("max": Int -> Int, Uint -> Uint, Double -> Double, Bool -> Bool,
        Duration -> Duration, Timestamp -> Timestamp, Str -> Str, Bytes -> Bytes),
    &of_lists!("sum": Int -> Int, Uint -> Uint, Double -> Double, Duration -> Duration),
    LISTS_AND_REGEX,
    URLS,
    QUANTITIES,
    SEMVER_OVERLOADS,
    IP_AND_CIDR_FUNCTIONS,
    FORMATS,
    AUTHORIZATION,
];

const LISTS_AND_REGEX: &[Overload] = &[
    member("indexOf", &[LIST_A, A], Int),
    member("lastIndexOf", &[LIST_A, A], Int),
    // Works on single values too, so that a selector survives an attribute becoming a list.
    member("includes", &[Dyn, Dyn], Bool).requiring(RequiredLibrary::Includes),
    member("find", &[Str, Str], Str),
    member("findAll", &[Str, Str], List(&Str)),
    member("findAll", &[Str, Str, Int], List(&Str)),
];

const URLS: &[Overload] = &[
    global("url", &[Str], URL).requiring(RequiredLibrary::Selectors),
    global("isURL", &[Str], Bool).requiring(RequiredLibrary::Selectors),
    member("getScheme", &[URL], Str).requiring(RequiredLibrary::Selectors),
    member("getHost", &[URL], Str).requiring(RequiredLibrary::Selectors),
    member("getHostname", &[URL], Str).requiring(RequiredLibrary::Selectors),
    member("getPort", &[URL], Str).requiring(RequiredLibrary::Selectors),
    member("getEscapedPath", &[URL], Str).requiring(RequiredLibrary::Selectors),
    member("getQuery", &[URL], Map(&Str, &List(&Str))).requiring(RequiredLibrary::Selectors),
];

const QUANTITIES: &[Overload] = &[
    global("quantity", &[Str], QUANTITY),
    global("isQuantity", &[Str], Bool),
    global("sign", &[QUANTITY], Int),
    member("sign", &[QUANTITY], Int).requiring(RequiredLibrary::Policies),
    member("isInteger", &[QUANTITY], Bool),
    member("asInteger", &[QUANTITY], Int),
    member("asApproximateFloat", &[QUANTITY], Double),
    member("add", &[QUANTITY, QUANTITY], QUANTITY),
    member("add", &[QUANTITY, Int], QUANTITY),
    member("sub", &[QUANTITY, QUANTITY], QUANTITY),
    member("sub", &[QUANTITY, Int], QUANTITY),
    member("compareTo", &[QUANTITY, QUANTITY], Int),
    member("isLessThan", &[QUANTITY, QUANTITY], Bool),
    member("isGreaterThan", &[QUANTITY, QUANTITY], Bool),
];

const SEMVER_OVERLOADS: &[Overload] = &[
    global("semver", &[Str], SEMVER),
    global("semver", &[Str, Bool], SEMVER).requiring(RequiredLibrary::SemverNormalize),
    global("isSemver", &[Str], Bool),
    global("isSemver", &[Str, Bool], Bool).requiring(RequiredLibrary::SemverNormalize),
    member("major", &[SEMVER], Int),
    member("minor", &[SEMVER], Int),
    member("patch", &[SEMVER], Int),
    member("compareTo", &[SEMVER, SEMVER], Int),
    member("isLessThan", &[SEMVER, SEMVER], Bool),
    member("isGreaterThan", &[SEMVER, SEMVER], Bool),
];

const IP_AND_CIDR_FUNCTIONS: &[Overload] = &[
    global("ip", &[Str], IP),
    global("isIP", &[Str], Bool),
    global("ip.isCanonical", &[Str], Bool),
    member("family", &[IP], Int),
    member("isUnspecified", &[IP], Bool),
    member("isLoopback", &[IP], Bool),
    member("isLinkLocalMulticast", &[IP], Bool),
    member("isLinkLocalUnicast", &[IP], Bool),
    member("isGlobalUnicast", &[IP], Bool),
    global("string", &[IP], Str),
    global("cidr", &[Str], CIDR),
    global("isCIDR", &[Str], Bool),
    member("containsIP", &[CIDR, Str], Bool),
    member("containsIP", &[CIDR, IP], Bool),
    member("containsCIDR", &[CIDR, Str], Bool),
    member("containsCIDR", &[CIDR, CIDR], Bool),
    member("ip", &[CIDR], IP),
    member("masked", &[CIDR], CIDR),
    member("prefixLength", &[CIDR], Int),
    global("string", &[CIDR], Str),
];

const FORMATS: &[Overload] = &[
    global("format.named", &[Str], Opt(&FORMAT)).requiring(RequiredLibrary::Selectors),
    global("format.dns1123Label", &[], FORMAT).requiring(RequiredLibrary::Selectors),
    global("format.dns1123Subdomain", &[], FORMAT).requiring(RequiredLibrary::Selectors),
    global("format.dns1035Label", &[], FORMAT).requiring(RequiredLibrary::Selectors),
    global("format.dns1123LabelPrefix", &[], FORMAT).requiring(RequiredLibrary::Selectors),
    global("format.dns1123SubdomainPrefix", &[], FORMAT).requiring(RequiredLibrary::Selectors),
    global("format.dns1035LabelPrefix", &[], FORMAT).requiring(RequiredLibrary::Selectors),
    global("format.qualifiedName", &[], FORMAT).requiring(RequiredLibrary::Selectors),
    global("format.labelValue", &[], FORMAT).requiring(RequiredLibrary::Selectors),
    global("format.uri", &[], FORMAT).requiring(RequiredLibrary::Selectors),
    global("format.uuid", &[], FORMAT).requiring(RequiredLibrary::Selectors),
    global("format.byte", &[], FORMAT).requiring(RequiredLibrary::Selectors),
    global("format.date", &[], FORMAT).requiring(RequiredLibrary::Selectors),
    global("format.datetime", &[], FORMAT).requiring(RequiredLibrary::Selectors),
    member("validate", &[FORMAT, Str], Opt(&List(&Str))).requiring(RequiredLibrary::Selectors),
];

const AUTHORIZATION: &[Overload] = &[
    member("path", &[AUTHORIZER, Str], PATH_CHECK).requiring(RequiredLibrary::Selectors),
    member("group", &[AUTHORIZER, Str], GROUP_CHECK).requiring(RequiredLibrary::Selectors),
    member("serviceAccount", &[AUTHORIZER, Str, Str], AUTHORIZER).requiring(RequiredLibrary::Selectors),
    member("resource", &[GROUP_CHECK, Str], RESOURCE_CHECK).requiring(RequiredLibrary::Selectors),
    member("subresource", &[RESOURCE_CHECK, Str], RESOURCE_CHECK).requiring(RequiredLibrary::Selectors),
    member("namespace", &[RESOURCE_CHECK, Str], RESOURCE_CHECK).requiring(RequiredLibrary::Selectors),
    member("name", &[RESOURCE_CHECK, Str], RESOURCE_CHECK).requiring(RequiredLibrary::Selectors),
    member("fieldSelector", &[RESOURCE_CHECK, Str], RESOURCE_CHECK).requiring(RequiredLibrary::Selectors),
    member("labelSelector", &[RESOURCE_CHECK, Str], RESOURCE_CHECK).requiring(RequiredLibrary::Selectors),
    member("check", &[PATH_CHECK, Str], DECISION).requiring(RequiredLibrary::Selectors),
    member("check", &[RESOURCE_CHECK, Str], DECISION).requiring(RequiredLibrary::Selectors),
    member("allowed", &[DECISION], Bool).requiring(RequiredLibrary::Selectors),
    member("reason", &[DECISION], Str).requiring(RequiredLibrary::Selectors),
    member("errored", &[DECISION], Bool).requiring(RequiredLibrary::Selectors),
    member("error", &[DECISION], Str).requiring(RequiredLibrary::Selectors),
];
