//! The Kubernetes libraries: lists, regular expressions, URLs, quantities, versions, addresses,
//! named formats, and the authorizer's functions, which exist without a variable to call them on.

use super::ORDERED_TYPES;
use crate::overload::{A, Overload, RequiredLibrary, global, member};
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
        member("includes", [Dyn, Dyn], Bool).requiring(RequiredLibrary::Includes),
        member("find", [Str, Str], Str),
        member("findAll", [Str, Str], Type::list(Str)),
        member("findAll", [Str, Str, Int], Type::list(Str)),
        // URLs.
        global("url", [Str], URL).requiring(RequiredLibrary::Selectors),
        global("isURL", [Str], Bool).requiring(RequiredLibrary::Selectors),
        member("getScheme", [URL], Str).requiring(RequiredLibrary::Selectors),
        member("getHost", [URL], Str).requiring(RequiredLibrary::Selectors),
        member("getHostname", [URL], Str).requiring(RequiredLibrary::Selectors),
        member("getPort", [URL], Str).requiring(RequiredLibrary::Selectors),
        member("getEscapedPath", [URL], Str).requiring(RequiredLibrary::Selectors),
        member("getQuery", [URL], Type::map(Str, Type::list(Str))).requiring(RequiredLibrary::Selectors),
        // Quantities.
        global("quantity", [Str], QUANTITY),
        global("isQuantity", [Str], Bool),
        global("sign", [QUANTITY], Int),
        member("sign", [QUANTITY], Int).requiring(RequiredLibrary::Policies),
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
        global("semver", [Str, Bool], SEMVER).requiring(RequiredLibrary::SemverNormalize),
        global("isSemver", [Str], Bool),
        global("isSemver", [Str, Bool], Bool).requiring(RequiredLibrary::SemverNormalize),
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
        global("format.named", [Str], Type::optional(FORMAT)).requiring(RequiredLibrary::Selectors),
        global("format.dns1123Label", [], FORMAT).requiring(RequiredLibrary::Selectors),
        global("format.dns1123Subdomain", [], FORMAT).requiring(RequiredLibrary::Selectors),
        global("format.dns1035Label", [], FORMAT).requiring(RequiredLibrary::Selectors),
        global("format.dns1123LabelPrefix", [], FORMAT).requiring(RequiredLibrary::Selectors),
        global("format.dns1123SubdomainPrefix", [], FORMAT).requiring(RequiredLibrary::Selectors),
        global("format.dns1035LabelPrefix", [], FORMAT).requiring(RequiredLibrary::Selectors),
        global("format.qualifiedName", [], FORMAT).requiring(RequiredLibrary::Selectors),
        global("format.labelValue", [], FORMAT).requiring(RequiredLibrary::Selectors),
        global("format.uri", [], FORMAT).requiring(RequiredLibrary::Selectors),
        global("format.uuid", [], FORMAT).requiring(RequiredLibrary::Selectors),
        global("format.byte", [], FORMAT).requiring(RequiredLibrary::Selectors),
        global("format.date", [], FORMAT).requiring(RequiredLibrary::Selectors),
        global("format.datetime", [], FORMAT).requiring(RequiredLibrary::Selectors),
        member("validate", [FORMAT, Str], Type::optional(Type::list(Str)))
            .requiring(RequiredLibrary::Selectors),
        // The authorizer.
        member("path", [AUTHORIZER, Str], PATH_CHECK).requiring(RequiredLibrary::Selectors),
        member("group", [AUTHORIZER, Str], GROUP_CHECK).requiring(RequiredLibrary::Selectors),
        member("serviceAccount", [AUTHORIZER, Str, Str], AUTHORIZER).requiring(RequiredLibrary::Selectors),
        member("resource", [GROUP_CHECK, Str], RESOURCE_CHECK).requiring(RequiredLibrary::Selectors),
        member("subresource", [RESOURCE_CHECK, Str], RESOURCE_CHECK).requiring(RequiredLibrary::Selectors),
        member("namespace", [RESOURCE_CHECK, Str], RESOURCE_CHECK).requiring(RequiredLibrary::Selectors),
        member("name", [RESOURCE_CHECK, Str], RESOURCE_CHECK).requiring(RequiredLibrary::Selectors),
        member("fieldSelector", [RESOURCE_CHECK, Str], RESOURCE_CHECK).requiring(RequiredLibrary::Selectors),
        member("labelSelector", [RESOURCE_CHECK, Str], RESOURCE_CHECK).requiring(RequiredLibrary::Selectors),
        member("check", [PATH_CHECK, Str], DECISION).requiring(RequiredLibrary::Selectors),
        member("check", [RESOURCE_CHECK, Str], DECISION).requiring(RequiredLibrary::Selectors),
        member("allowed", [DECISION], Bool).requiring(RequiredLibrary::Selectors),
        member("reason", [DECISION], Str).requiring(RequiredLibrary::Selectors),
        member("errored", [DECISION], Bool).requiring(RequiredLibrary::Selectors),
        member("error", [DECISION], Str).requiring(RequiredLibrary::Selectors),
    ];
    all.extend(ORDERED_TYPES.map(|element| member("isSorted", [Type::list(element)], Bool)));
    for name in ["min", "max"] {
        all.extend(ORDERED_TYPES.map(|element| member(name, [Type::list(element.clone())], element)));
    }
    let sums = [Int, Uint, Double, Duration];
    all.extend(sums.map(|element| member("sum", [Type::list(element.clone())], element)));
    all
}
