//! What calls of the Kubernetes libraries cost, and calls of other libraries that Kubernetes estimates itself.
//! upstream v1.36 `library.CostEstimator.EstimateCallCost`

use super::Estimator;
use super::call::{Estimate, Operand, OverloadCall, pattern_cost};
use crate::size::{
    COST_PER_CHARACTER, COST_PER_COPIED_CHARACTER, COST_PER_PATTERN_CHARACTER, SizeRange,
    multiply_rounding_up,
};
use crate::tree::{ExprKind, Literal, NodeId};
use crate::types::{self, Type};

/// Cost of an authorization check. Two of them are below the limit.
const AUTHORIZER_CHECK_COST: u64 = 350_000;
/// Factor by which matching a text with the longest pattern behind a named format costs more than reading it: that of a
/// pattern of upstream's `MaxNameFormatRegexSize` characters.
const FORMAT_MATCH_COST_FACTOR: f64 = 128.0 * COST_PER_PATTERN_CHARACTER;
/// Maximum length of the name of a format, as in upstream's `MaxFormatSize`.
const MAX_FORMAT_NAME_LENGTH: u64 = 64;
/// Number of bytes of an IP address: 4 for IPv4, 16 for IPv6.
const ADDRESS_SIZE: SizeRange = SizeRange { min: 4, max: 16 };
/// Maximum number of items that `includes` reads, upstream's `ResourceSliceMaxAttributeValuesPerDevice`.
const MAX_ATTRIBUTE_VALUES: u64 = 48;

impl Estimator<'_> {
    /// Returns the estimate of Kubernetes for a call, without its arguments; `None` if cel-go's own estimate
    /// applies.
    pub(super) fn kubernetes_estimate(&self, call: &OverloadCall<'_, '_>) -> Option<Estimate> {
        let cost = match (call.overload.name, call.target, call.args) {
            ("check", ..) => AUTHORIZER_CHECK_COST,
            ("fieldSelector" | "labelSelector", _, [text]) => field_or_label_selector_cost(text.size()),
            ("includes", Some(_), _) if !self.env.includes_is_traversal => MAX_ATTRIBUTE_VALUES,
            ("isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" | "includes", Some(list), _) => {
                self.traversal_cost(list, call.overload.name == "includes")
            }
            ("url", None, [text]) | ("lowerAscii" | "upperAscii" | "substring" | "trim", Some(text), _) => {
                return Some(Estimate::of_size(text.size().max_text_read_cost(), text.size()));
            }
            ("replace", Some(text), [old, new, ..]) => {
                let result = text.size().size_after_replace(old.size(), new.size());
                return Some(Estimate::of_size(text.size().max_read_cost(COST_PER_COPIED_CHARACTER), result));
            }
            ("split", Some(text), [_, limit @ ..]) => {
                let pieces = limit.first().and_then(|limit| self.literal_split_limit(limit.id));
                let result = SizeRange::up_to(pieces.unwrap_or(text.size().max));
                return Some(Estimate::of_size(text.size().max_read_cost(COST_PER_COPIED_CHARACTER), result));
            }
            ("join", Some(list), separator) => {
                let result = self.joined_size(list, separator.first());
                return Some(Estimate::of_size(result.max_text_read_cost(), result));
            }
            ("find" | "findAll", Some(text), [pattern, ..]) => {
                let cost = pattern_cost(text.size(), pattern.size());
                return Some(Estimate::of_size(cost, SizeRange::up_to(text.size().max)));
            }
            (
                "quantity" | "isQuantity" | "semver" | "isSemver" | "ip" | "isIP" | "cidr" | "isCIDR",
                None,
                [text, ..],
            ) => text.size().max_text_read_cost(),
            // Parsed, and compared with what it was parsed from.
            ("ip.isCanonical", None, [text]) => text.size().max_read_cost(COST_PER_COPIED_CHARACTER),
            ("containsIP", Some(_), [other]) => {
                address_comparison_cost().saturating_add(address_parsing_cost_if_text(call, other))
            }
            ("containsCIDR", Some(_), [other]) => {
                let masked = ADDRESS_SIZE.max_text_read_cost() + 1;
                (address_comparison_cost() + masked).saturating_add(address_parsing_cost_if_text(call, other))
            }
            ("validate", _, [text]) => {
                multiply_rounding_up(text.size().max_text_read_cost(), FORMAT_MATCH_COST_FACTOR)
            }
            ("_==_", None, [left, right]) => self.library_type_equality_cost(left, right)?,
            _ => return None,
        };
        Some(Estimate::of_unknown_size(cost))
    }

    /// The cost of `==` between two values of the same library type; `None` for other types. Kubernetes does
    /// not define `!=`, which compares values of unknown size and always exceeds the limit.
    fn library_type_equality_cost(&self, left: &Operand<'_>, right: &Operand<'_>) -> Option<u64> {
        let found = self.checked.type_of(left.id);
        if found != self.checked.type_of(right.id) {
            return None;
        }
        match found {
            Type::Named(types::FORMAT) => {
                Some(multiply_rounding_up(MAX_FORMAT_NAME_LENGTH, COST_PER_CHARACTER))
            }
            Type::Named(types::URL) => {
                Some(right.known.unwrap_or(SizeRange::exactly(1)).max_text_read_cost())
            }
            Type::Named(name) if type_has_unit_equality_cost(name) => Some(1),
            _ => None,
        }
    }

    /// The cost of reading a list's elements once, or a string's characters.
    fn traversal_cost(&self, target: &Operand<'_>, is_includes: bool) -> u64 {
        match self.checked.type_of(target.id).first_type_argument().map(Type::without_wrapper) {
            Some(Type::String | Type::Bytes) => {
                let each = device_list_item_size_or_unknown(target).max_text_read_cost().saturating_add(1);
                target.size().max.saturating_mul(each)
            }
            Some(_) => target.size().max,
            None if is_includes => target.size().max,
            None => target.size().max_text_read_cost(),
        }
    }

    /// The size of the text that `join` makes.
    fn joined_size(&self, list: &Operand<'_>, separator: Option<&Operand<'_>>) -> SizeRange {
        let pieces = list.size();
        let is_list = self.checked.type_of(list.id).first_type_argument().is_some();
        // Of what may be a list nothing is counted but the separators.
        let text = if is_list {
            pieces.times(device_list_item_size_or_unknown(list))
        } else {
            SizeRange::exactly(0)
        };
        let Some(separator) = separator else { return text };
        let gaps = SizeRange { min: pieces.min.saturating_sub(1), max: pieces.max.saturating_sub(1) };
        text.plus(separator.size().times(gaps))
    }

    /// The limit of `split` if it is a literal; a negative one is a huge number to the server.
    fn literal_split_limit(&self, id: NodeId) -> Option<u64> {
        match self.tree.kind(id) {
            ExprKind::Literal(Literal::Int(value)) => Some(value.cast_unsigned()),
            _ => None,
        }
    }
}

/// The size of a list's elements; unknown unless the list is a part of the device, even for a literal. upstream v1.36
/// `listElementNode`
fn device_list_item_size_or_unknown(list: &Operand<'_>) -> SizeRange {
    list.path.item_size().unwrap_or(SizeRange::UNKNOWN)
}

/// True if comparing two values of the type costs 1.
fn type_has_unit_equality_cost(name: &str) -> bool {
    matches!(name, types::QUANTITY | types::SEMVER | types::IP | types::CIDR)
        || name.starts_with("kubernetes.authorization.")
}

/// The cost of comparing two addresses.
fn address_comparison_cost() -> u64 {
    ADDRESS_SIZE.plus(ADDRESS_SIZE).max_text_read_cost()
}

/// The cost of parsing the argument if the overload takes it as a string; 0 if it is an address.
fn address_parsing_cost_if_text(call: &OverloadCall<'_, '_>, other: &Operand<'_>) -> u64 {
    let is_text = call.parameter(1) == Some(&Type::String);
    if is_text { other.size().max_text_read_cost() } else { 0 }
}

/// The cost of a field or label selector: of parsing it, of a list, and of a requirement (a list and an object) for every
/// second character.
fn field_or_label_selector_cost(text: SizeRange) -> u64 {
    let requirements = multiply_rounding_up(text.max_read_cost(0.5), 50.0);
    text.max_text_read_cost().saturating_add(10).saturating_add(requirements)
}
