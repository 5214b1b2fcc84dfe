//! The Kubernetes libraries: lists, regular expressions, URLs, quantities, versions, addresses,
//! named formats, and the authorizer's functions, which exist without a variable to call them on.

use super::ORDERED_TYPES;
use crate::overload::{A, Overload, global, in_policies, in_selectors, member};
use crate::types;
use crate::types::Type::{self, Bool, Double, Duration, Dyn, Int, Named, String as Str, Uint};

const QUANTITY: Type = Named(types::QUANTITY);
const SEMVER: Type = Named(types::SEMVER);
const URL: Type = Named(types::URL);
const IP: Type = Named(types::IP);
const CIDR: Type = Named(types::CIDR);
const FORMAT: Type = Named(types::FORMAT);
const AUTHORIZER: Type = Named("kubernetes.authorization.Authorizer");
const PATH_CHECK: Type = Named("kubernetes.authorization.PathCheck");
const GROUP_CHECK: Type = Named("kubernetes.authorization.GroupCheck");
const RESOURCE_CHECK: Type = Named("kubernetes.authorization.ResourceCheck");
const DECISION: Type = Named("kubernetes.authorization.Decision");

pub(super) fn overloads() -> Vec<Overload> {
    let mut all = vec![
        // Lists and regular expressions.
        member("indexOf", [Type::list(A), A], Int),
        member("lastIndexOf", [Type::list(A), A], Int),
        // Works on single values too, so that a selector survives an attribute becoming a list.
        member("includes", [Dyn, Dyn], Bool).requiring(|env| env.includes),
        member("find", [Str, Str], Str),
        member("findAll", [Str, Str], Type::list(Str)),
        member("findAll", [Str, Str, Int], Type::list(Str)),
        // URLs.
        global("url", [Str], URL).requiring(in_selectors),
        global("isURL", [Str], Bool).requiring(in_selectors),
        member("getScheme", [URL], Str).requiring(in_selectors),
        member("getHost", [URL], Str).requiring(in_selectors),
        member("getHostname", [URL], Str).requiring(in_selectors),
        member("getPort", [URL], Str).requiring(in_selectors),
        member("getEscapedPath", [URL], Str).requiring(in_selectors),
        member("getQuery", [URL], Type::map(Str, Type::list(Str))).requiring(in_selectors),
        // Quantities.
        global("quantity", [Str], QUANTITY),
        global("isQuantity", [Str], Bool),
        global("sign", [QUANTITY], Int),
        member("sign", [QUANTITY], Int).requiring(in_policies),
        member("isInteger", [QUANTITY], Bool),
        member("asInteger", [QUANTITY], Int),
        member("asApproximateFloat", [QUANTITY], Double),
        member("add", [QUANTITY, QUANTITY], QUANTITY),
        member("add", [QUANTITY, Int], QUANTITY),
        member("sub", [QUANTITY, QUANTITY], QUANTITY),
        member("sub", [QUANTITY, Int], QUANTITY),
        member("compareTo", [QUANTITY, QUANTITY], Int),
        member("isLessThan", [QUANTITY, QUANTITY], Bool),
        member("isGreaterThan", [QUANTITY, QUANTITY], Bool),
        // Versions.
        global("semver", [Str], SEMVER),
        global("semver", [Str, Bool], SEMVER).requiring(|env| env.semver_normalize),
        global("isSemver", [Str], Bool),
        global("isSemver", [Str, Bool], Bool).requiring(|env| env.semver_normalize),
        member("major", [SEMVER], Int),
        member("minor", [SEMVER], Int),
        member("patch", [SEMVER], Int),
        member("compareTo", [SEMVER, SEMVER], Int),
        member("isLessThan", [SEMVER, SEMVER], Bool),
        member("isGreaterThan", [SEMVER, SEMVER], Bool),
        // Addresses and networks.
        global("ip", [Str], IP),
        global("isIP", [Str], Bool),
        global("ip.isCanonical", [Str], Bool),
        member("family", [IP], Int),
        member("isUnspecified", [IP], Bool),
        member("isLoopback", [IP], Bool),
        member("isLinkLocalMulticast", [IP], Bool),
        member("isLinkLocalUnicast", [IP], Bool),
        member("isGlobalUnicast", [IP], Bool),
        global("string", [IP], Str),
        global("cidr", [Str], CIDR),
        global("isCIDR", [Str], Bool),
        member("containsIP", [CIDR, Str], Bool),
        member("containsIP", [CIDR, IP], Bool),
        member("containsCIDR", [CIDR, Str], Bool),
        member("containsCIDR", [CIDR, CIDR], Bool),
        member("ip", [CIDR], IP),
        member("masked", [CIDR], CIDR),
        member("prefixLength", [CIDR], Int),
        global("string", [CIDR], Str),
        // Named formats.
        global("format.named", [Str], Type::optional(FORMAT)).requiring(in_selectors),
        global("format.dns1123Label", [], FORMAT).requiring(in_selectors),
        global("format.dns1123Subdomain", [], FORMAT).requiring(in_selectors),
        global("format.dns1035Label", [], FORMAT).requiring(in_selectors),
        global("format.dns1123LabelPrefix", [], FORMAT).requiring(in_selectors),
        global("format.dns1123SubdomainPrefix", [], FORMAT).requiring(in_selectors),
        global("format.dns1035LabelPrefix", [], FORMAT).requiring(in_selectors),
        global("format.qualifiedName", [], FORMAT).requiring(in_selectors),
        global("format.labelValue", [], FORMAT).requiring(in_selectors),
        global("format.uri", [], FORMAT).requiring(in_selectors),
        global("format.uuid", [], FORMAT).requiring(in_selectors),
        global("format.byte", [], FORMAT).requiring(in_selectors),
        global("format.date", [], FORMAT).requiring(in_selectors),
        global("format.datetime", [], FORMAT).requiring(in_selectors),
        member("validate", [FORMAT, Str], Type::optional(Type::list(Str))).requiring(in_selectors),
        // The authorizer.
        member("path", [AUTHORIZER, Str], PATH_CHECK).requiring(in_selectors),
        member("group", [AUTHORIZER, Str], GROUP_CHECK).requiring(in_selectors),
        member("serviceAccount", [AUTHORIZER, Str, Str], AUTHORIZER).requiring(in_selectors),
        member("resource", [GROUP_CHECK, Str], RESOURCE_CHECK).requiring(in_selectors),
        member("subresource", [RESOURCE_CHECK, Str], RESOURCE_CHECK).requiring(in_selectors),
        member("namespace", [RESOURCE_CHECK, Str], RESOURCE_CHECK).requiring(in_selectors),
        member("name", [RESOURCE_CHECK, Str], RESOURCE_CHECK).requiring(in_selectors),
        member("fieldSelector", [RESOURCE_CHECK, Str], RESOURCE_CHECK).requiring(in_selectors),
        member("labelSelector", [RESOURCE_CHECK, Str], RESOURCE_CHECK).requiring(in_selectors),
        member("check", [PATH_CHECK, Str], DECISION).requiring(in_selectors),
        member("check", [RESOURCE_CHECK, Str], DECISION).requiring(in_selectors),
        member("allowed", [DECISION], Bool).requiring(in_selectors),
        member("reason", [DECISION], Str).requiring(in_selectors),
        member("errored", [DECISION], Bool).requiring(in_selectors),
        member("error", [DECISION], Str).requiring(in_selectors),
    ];
    all.extend(ORDERED_TYPES.map(|element| member("isSorted", [Type::list(element)], Bool)));
    for name in ["min", "max"] {
        all.extend(ORDERED_TYPES.map(|element| member(name, [Type::list(element.clone())], element)));
    }
    let sums = [Int, Uint, Double, Duration];
    all.extend(sums.map(|element| member("sum", [Type::list(element.clone())], element)));
    all
}
