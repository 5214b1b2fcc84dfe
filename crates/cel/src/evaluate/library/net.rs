//! Addresses and networks in expressions.

use std::fmt;
use std::net::IpAddr;

use super::netparse;
use crate::evaluate::value::{Evaluated, Value, eval_error};
use tollgate_formats::gofmt::quote;

/// An address and a prefix length. Bits of the address after the prefix may be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::evaluate) struct CidrPrefix {
    address: IpAddr,
    bits: u8,
}

impl fmt::Display for CidrPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

fn parse_unmapped_address_without_zone(text: &str) -> Result<IpAddr, String> {
    let (address, zone) = netparse::parse_address_and_zone(text).map_err(|problem| {
        format!("IP Address {} parse error during conversion from string: {problem}", quote(text))
    })?;
    if zone.is_some() {
        return Err(format!("IP address {} with zone value is not allowed", quote(text)));
    }
    refuse_mapped_address(address, text)?;
    Ok(address)
}

fn is_link_local_unicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

fn is_link_local_multicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => matches!(address.octets(), [224, 0, 0, _]),
        IpAddr::V6(address) => address.segments()[0] & 0xff0f == 0xff02,
    }
}

fn is_global_unicast(address: IpAddr) -> bool {
    let is_broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    !is_broadcast
        && !address.is_unspecified()
        && !address.is_loopback()
        && !address.is_multicast()
        && !is_link_local_unicast(address)
}

impl CidrPrefix {
    /// The prefix length in bytes, rounded up. Costs are computed from it.
    pub(in crate::evaluate) fn prefix_length_bytes(self) -> usize {
        usize::from(self.bits).div_ceil(8)
    }

    fn parse(text: &str) -> Result<CidrPrefix, String> {
        let (address, bits) = netparse::parse_prefix(text).map_err(|problem| {
            format!("network address parse error during conversion from string: {problem}")
        })?;
        refuse_mapped_address(address, text)?;
        Ok(CidrPrefix { address, bits })
    }

    fn masked(self) -> CidrPrefix {
        CidrPrefix { address: masked(self.address, self.bits), ..self }
    }

    fn contains(self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4()
            && masked(address, self.bits) == masked(self.address, self.bits)
    }
}

fn refuse_mapped_address(address: IpAddr, text: &str) -> Result<(), String> {
    match address {
        IpAddr::V6(address) if address.to_ipv4_mapped().is_some() => {
            Err(format!("IPv4-mapped IPv6 address {} is not allowed", quote(text)))
        }
        _ => Ok(()),
    }
}

fn masked(address: IpAddr, bits: u8) -> IpAddr {
    let bits = u32::from(bits);
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - bits.min(32)).unwrap_or(0);
            IpAddr::V4((address.to_bits() & mask).into())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - bits.min(128)).unwrap_or(0);
            IpAddr::V6((address.to_bits() & mask).into())
        }
    }
}

pub(super) fn try_call(name: &str, args: &[Value]) -> Option<Evaluated> {
    Some(match (name, args) {
        ("ip", [Value::String(text)]) => {
            parse_unmapped_address_without_zone(text).map_or_else(eval_error, |ip| Ok(Value::Ip(ip)))
        }
        ("ip", [Value::Cidr(prefix)]) => Ok(Value::Ip(prefix.address)),
        ("isIP", [Value::String(text)]) => Ok(Value::Bool(parse_unmapped_address_without_zone(text).is_ok())),
        ("ip.isCanonical", [Value::String(text)]) => parse_unmapped_address_without_zone(text)
            .map_or_else(eval_error, |address| Ok(Value::Bool(address.to_string() == **text))),
        ("family", [Value::Ip(address)]) => Ok(Value::Int(if address.is_ipv4() { 4 } else { 6 })),
        ("isUnspecified", [Value::Ip(address)]) => Ok(Value::Bool(address.is_unspecified())),
        ("isLoopback", [Value::Ip(address)]) => Ok(Value::Bool(address.is_loopback())),
        ("isLinkLocalMulticast", [Value::Ip(address)]) => Ok(Value::Bool(is_link_local_multicast(*address))),
        ("isLinkLocalUnicast", [Value::Ip(address)]) => Ok(Value::Bool(is_link_local_unicast(*address))),
        ("isGlobalUnicast", [Value::Ip(address)]) => Ok(Value::Bool(is_global_unicast(*address))),
        ("cidr", [Value::String(text)]) => parse_prefix(text).map(Value::Cidr),
        ("isCIDR", [Value::String(text)]) => Ok(Value::Bool(CidrPrefix::parse(text).is_ok())),
        ("containsIP", [Value::Cidr(prefix), Value::Ip(address)]) => {
            Ok(Value::Bool(prefix.contains(*address)))
        }
        ("containsIP", [Value::Cidr(prefix), Value::String(text)]) => {
            Ok(Value::Bool(prefix.contains(parse_unmapped_address_without_zone(text).ok()?)))
        }
        ("containsCIDR", [Value::Cidr(outer), Value::Cidr(inner)]) => {
            Ok(Value::Bool(contains_prefix(*outer, *inner)))
        }
        ("containsCIDR", [Value::Cidr(outer), Value::String(text)]) => {
            parse_prefix(text).map(|inner| Value::Bool(contains_prefix(*outer, inner)))
        }
        ("prefixLength", [Value::Cidr(prefix)]) => Ok(Value::Int(prefix.bits.into())),
        ("masked", [Value::Cidr(prefix)]) => Ok(Value::Cidr(prefix.masked())),
        _ => return None,
    })
}

fn parse_prefix(text: &str) -> Result<CidrPrefix, crate::evaluate::value::EvalFailure> {
    let problem =
        |problem| eval_error(format!("network address parse error during conversion from string: {problem}"));
    CidrPrefix::parse(text).or_else(problem)
}

fn contains_prefix(outer: CidrPrefix, inner: CidrPrefix) -> bool {
    outer.bits <= inner.bits && outer.contains(inner.address)
}
