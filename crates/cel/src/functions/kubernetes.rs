//! The Kubernetes libraries: lists, regular expressions, URLs, quantities, versions, addresses,
//! named formats, and the authorizer's functions, which exist without a variable to call them on.

use crate::overload::Decl::{
    self, A, Bool, Bytes, Double, Duration, Dyn, Int, List, Map, Named, Opt, Str, Timestamp, Uint,
};
use crate::overload::{Overload, Since, global, member};
use crate::types;

const QUANTITY: Decl = Named(types::QUANTITY);
const SEMVER: Decl = Named(types::SEMVER);
const URL: Decl = Named(types::URL);
const IP: Decl = Named(types::IP);
const CIDR: Decl = Named(types::CIDR);
const FORMAT: Decl = Named(types::FORMAT);
const AUTHORIZER: Decl = Named("kubernetes.authorization.Authorizer");
const PATH_CHECK: Decl = Named("kubernetes.authorization.PathCheck");
const GROUP_CHECK: Decl = Named("kubernetes.authorization.GroupCheck");
const RESOURCE_CHECK: Decl = Named("kubernetes.authorization.ResourceCheck");
const DECISION: Decl = Named("kubernetes.authorization.Decision");
const LIST_A: Decl = List(&A);

macro_rules! of_lists {
    ($name:literal: $($element:ident -> $result:ident),*) => {
        [$(member($name, &[List(&$element)], $result)),*]
    };
}

const IS_SORTED: [Overload; 8] = of_lists!("isSorted": Int -> Bool, Uint -> Bool, Double -> Bool, Bool -> Bool,
    Duration -> Bool, Timestamp -> Bool, Str -> Bool, Bytes -> Bool);
const MIN: [Overload; 8] = of_lists!("min": Int -> Int, Uint -> Uint, Double -> Double, Bool -> Bool,
    Duration -> Duration, Timestamp -> Timestamp, Str -> Str, Bytes -> Bytes);
const MAX: [Overload; 8] = of_lists!("max": Int -> Int, Uint -> Uint, Double -> Double, Bool -> Bool,
    Duration -> Duration, Timestamp -> Timestamp, Str -> Str, Bytes -> Bytes);
const SUM: [Overload; 4] = of_lists!("sum": Int -> Int, Uint -> Uint, Double -> Double, Duration -> Duration);

pub(super) const OVERLOADS: &[&[Overload]] = &[
    &IS_SORTED,
    &MIN,
    &MAX,
    &SUM,
    LISTS_AND_REGEX,
    URLS,
    QUANTITIES,
    VERSIONS,
    ADDRESSES,
    FORMATS,
    AUTHORIZATION,
];

const LISTS_AND_REGEX: &[Overload] = &[
    member("indexOf", &[LIST_A, A], Int),
    member("lastIndexOf", &[LIST_A, A], Int),
    // Works on single values too, so that a selector survives an attribute becoming a list.
    member("includes", &[Dyn, Dyn], Bool).since(Since::Includes),
    member("find", &[Str, Str], Str),
    member("findAll", &[Str, Str], List(&Str)),
    member("findAll", &[Str, Str, Int], List(&Str)),
];

const URLS: &[Overload] = &[
    global("url", &[Str], URL).since(Since::Selectors),
    global("isURL", &[Str], Bool).since(Since::Selectors),
    member("getScheme", &[URL], Str).since(Since::Selectors),
    member("getHost", &[URL], Str).since(Since::Selectors),
    member("getHostname", &[URL], Str).since(Since::Selectors),
    member("getPort", &[URL], Str).since(Since::Selectors),
    member("getEscapedPath", &[URL], Str).since(Since::Selectors),
    member("getQuery", &[URL], Map(&Str, &List(&Str))).since(Since::Selectors),
];

const QUANTITIES: &[Overload] = &[
    global("quantity", &[Str], QUANTITY),
    global("isQuantity", &[Str], Bool),
    global("sign", &[QUANTITY], Int),
    member("sign", &[QUANTITY], Int).since(Since::Policies),
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

const VERSIONS: &[Overload] = &[
    global("semver", &[Str], SEMVER),
    global("semver", &[Str, Bool], SEMVER).since(Since::SemverNormalize),
    global("isSemver", &[Str], Bool),
    global("isSemver", &[Str, Bool], Bool).since(Since::SemverNormalize),
    member("major", &[SEMVER], Int),
    member("minor", &[SEMVER], Int),
    member("patch", &[SEMVER], Int),
    member("compareTo", &[SEMVER, SEMVER], Int),
    member("isLessThan", &[SEMVER, SEMVER], Bool),
    member("isGreaterThan", &[SEMVER, SEMVER], Bool),
];

const ADDRESSES: &[Overload] = &[
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
    global("format.named", &[Str], Opt(&FORMAT)).since(Since::Selectors),
    global("format.dns1123Label", &[], FORMAT).since(Since::Selectors),
    global("format.dns1123Subdomain", &[], FORMAT).since(Since::Selectors),
    global("format.dns1035Label", &[], FORMAT).since(Since::Selectors),
    global("format.dns1123LabelPrefix", &[], FORMAT).since(Since::Selectors),
    global("format.dns1123SubdomainPrefix", &[], FORMAT).since(Since::Selectors),
    global("format.dns1035LabelPrefix", &[], FORMAT).since(Since::Selectors),
    global("format.qualifiedName", &[], FORMAT).since(Since::Selectors),
    global("format.labelValue", &[], FORMAT).since(Since::Selectors),
    global("format.uri", &[], FORMAT).since(Since::Selectors),
    global("format.uuid", &[], FORMAT).since(Since::Selectors),
    global("format.byte", &[], FORMAT).since(Since::Selectors),
    global("format.date", &[], FORMAT).since(Since::Selectors),
    global("format.datetime", &[], FORMAT).since(Since::Selectors),
    member("validate", &[FORMAT, Str], Opt(&List(&Str))).since(Since::Selectors),
];

const AUTHORIZATION: &[Overload] = &[
    member("path", &[AUTHORIZER, Str], PATH_CHECK).since(Since::Selectors),
    member("group", &[AUTHORIZER, Str], GROUP_CHECK).since(Since::Selectors),
    member("serviceAccount", &[AUTHORIZER, Str, Str], AUTHORIZER).since(Since::Selectors),
    member("resource", &[GROUP_CHECK, Str], RESOURCE_CHECK).since(Since::Selectors),
    member("subresource", &[RESOURCE_CHECK, Str], RESOURCE_CHECK).since(Since::Selectors),
    member("namespace", &[RESOURCE_CHECK, Str], RESOURCE_CHECK).since(Since::Selectors),
    member("name", &[RESOURCE_CHECK, Str], RESOURCE_CHECK).since(Since::Selectors),
    member("fieldSelector", &[RESOURCE_CHECK, Str], RESOURCE_CHECK).since(Since::Selectors),
    member("labelSelector", &[RESOURCE_CHECK, Str], RESOURCE_CHECK).since(Since::Selectors),
    member("check", &[PATH_CHECK, Str], DECISION).since(Since::Selectors),
    member("check", &[RESOURCE_CHECK, Str], DECISION).since(Since::Selectors),
    member("allowed", &[DECISION], Bool).since(Since::Selectors),
    member("reason", &[DECISION], Str).since(Since::Selectors),
    member("errored", &[DECISION], Bool).since(Since::Selectors),
    member("error", &[DECISION], Str).since(Since::Selectors),
];
