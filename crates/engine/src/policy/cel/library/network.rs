//! Addresses and networks: `ip`, `isIP`, `cidr`, `isCIDR` and what Kubernetes lets expressions ask of them. Names are
//! never resolved.
#![expect(clippy::needless_pass_by_value, reason = "the interpreter fixes the signature of a function")]

use std::net::{IpAddr, Ipv6Addr};

use ::cel::common::types::STRING_TYPE;
use ::cel::common::value::CowVal;
use ::cel::{DeclarationError, Env, ExecutionError};

use super::{CelResult, argument, boolean, cel_type, charge_value, function_error, integer, string, text};

/// An IP address as a CEL value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct CelIp(IpAddr);

/// A network: an address in it and how many of its bits name the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct CelCidr {
    address: CelIp,
    length: u8,
}

cel_type! { CelIp, ADDRESS, "net.IP"; }
cel_type! { CelCidr, NETWORK, "net.CIDR"; }

impl CelIp {
    /// Reads an address: no zone, no IPv4 in the clothes of IPv6.
    pub(super) fn read(text: &str) -> Result<CelIp, String> {
        let address: IpAddr = text.parse().map_err(|_not_one| format!("{text:?} is not an IP address"))?;
        match address {
            IpAddr::V6(six) if six.to_ipv4_mapped().is_some() => {
                Err(format!("{text:?}: IPv4-mapped IPv6 addresses are not allowed"))
            }
            address => Ok(CelIp(address)),
        }
    }

    /// The bits, from the left.
    fn bits(self) -> u128 {
        match self.0 {
            IpAddr::V4(four) => u128::from(four.to_bits()) << 96,
            IpAddr::V6(six) => six.to_bits(),
        }
    }

    fn width(self) -> u8 {
        if self.0.is_ipv4() { 32 } else { 128 }
    }

    fn has_prefix(self, first: u128, length: u32) -> bool {
        (self.bits() ^ first).leading_zeros() >= length
    }

    fn is_link_local(self) -> bool {
        match self.0 {
            IpAddr::V4(four) => four.is_link_local(),
            IpAddr::V6(_) => self.has_prefix(0xfe80 << 112, 10),
        }
    }

    fn is_link_local_multicast(self) -> bool {
        match self.0 {
            IpAddr::V4(_) => self.has_prefix(0xe000_0000 << 96, 24),
            IpAddr::V6(_) => self.bits() >> 112 & 0xff0f == 0xff02,
        }
    }

    /// True for global unicast addresses. As in Go, this includes private addresses.
    fn is_global(self) -> bool {
        let broadcast = matches!(self.0, IpAddr::V4(four) if four.is_broadcast());
        let special = self.0.is_unspecified() || self.0.is_loopback() || self.0.is_multicast();
        !broadcast && !special && !self.is_link_local()
    }
}

impl CelCidr {
    /// Reads `address/length`.
    pub(super) fn read(text: &str) -> Result<CelCidr, String> {
        let fault = || format!("{text:?} is not a network such as 10.0.0.0/8");
        let (address, digits) = text.split_once('/').ok_or_else(fault)?;
        let address = CelIp::read(address).map_err(|_not_one| fault())?;
        let plain =
            digits.bytes().all(|byte| byte.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'));
        let length = digits.parse::<u8>().ok().filter(|length| plain && *length <= address.width());
        Ok(CelCidr { address, length: length.ok_or_else(fault)? })
    }

    fn contains(self, address: CelIp) -> bool {
        let same_family = self.address.0.is_ipv4() == address.0.is_ipv4();
        same_family && self.address.has_prefix(address.bits(), u32::from(self.length))
    }

    fn contains_network(self, other: CelCidr) -> bool {
        self.length <= other.length && self.contains(other.address)
    }

    fn masked(self) -> CelCidr {
        let mask = u128::MAX.checked_shl(128 - u32::from(self.length)).unwrap_or(0);
        let bits = self.address.bits() & mask;
        let address = match self.address.0 {
            IpAddr::V4(_) => IpAddr::V4(u32::try_from(bits >> 96).unwrap_or_default().into()),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from_bits(bits)),
        };
        CelCidr { address: CelIp(address), length: self.length }
    }
}

/// Adds a question about an address.
macro_rules! about {
    ($env:ident, $name:literal, $look:expr) => {
        $env.add_member_overload($name, concat!("ip.", $name), ADDRESS, Vec::new(), |arguments| {
            let look: fn(CelIp) -> bool = $look;
            Ok(boolean(look(*argument::<CelIp>(&arguments, 0)?)))
        })?;
    };
}

pub(super) fn add(env: &mut Env) -> Result<(), DeclarationError> {
    let word = || vec![STRING_TYPE];
    env.add_overload("ip", "string_to_ip", word(), |arguments| address(&arguments, 0).map(CowVal::owned))?;
    env.add_overload("isIP", "is_ip", word(), |arguments| {
        charge_value()?;
        Ok(boolean(CelIp::read(text(&arguments, 0)?).is_ok()))
    })?;
    env.add_overload("ip.isCanonical", "ip.isCanonical", word(), |arguments| {
        let address = address(&arguments, 0)?;
        Ok(boolean(address.0.to_string() == text(&arguments, 0)?))
    })?;
    env.add_member_overload("family", "ip.family", ADDRESS, Vec::new(), |arguments| {
        Ok(integer(if argument::<CelIp>(&arguments, 0)?.0.is_ipv4() { 4 } else { 6 }))
    })?;
    about!(env, "isUnspecified", |address| address.0.is_unspecified());
    about!(env, "isLoopback", |address| address.0.is_loopback());
    about!(env, "isLinkLocalMulticast", CelIp::is_link_local_multicast);
    about!(env, "isLinkLocalUnicast", CelIp::is_link_local);
    about!(env, "isGlobalUnicast", CelIp::is_global);
    env.add_overload("string", "ip_to_string", vec![ADDRESS], |arguments| {
        Ok(string(argument::<CelIp>(&arguments, 0)?.0.to_string()))
    })?;
    env.add_overload("cidr", "string_to_cidr", word(), |arguments| {
        network(&arguments, 0).map(CowVal::owned)
    })?;
    env.add_overload("isCIDR", "is_cidr", word(), |arguments| {
        charge_value()?;
        Ok(boolean(CelCidr::read(text(&arguments, 0)?).is_ok()))
    })?;
    env.add_member_overload("containsIP", "cidr.containsIP", NETWORK, vec![ADDRESS], |arguments| {
        Ok(boolean(argument::<CelCidr>(&arguments, 0)?.contains(*argument::<CelIp>(&arguments, 1)?)))
    })?;
    env.add_member_overload("containsIP", "cidr.containsIP.string", NETWORK, word(), |arguments| {
        Ok(boolean(argument::<CelCidr>(&arguments, 0)?.contains(address(&arguments, 1)?)))
    })?;
    env.add_member_overload("containsCIDR", "cidr.containsCIDR", NETWORK, vec![NETWORK], |arguments| {
        Ok(boolean(
            argument::<CelCidr>(&arguments, 0)?.contains_network(*argument::<CelCidr>(&arguments, 1)?),
        ))
    })?;
    env.add_member_overload("containsCIDR", "cidr.containsCIDR.string", NETWORK, word(), |arguments| {
        Ok(boolean(argument::<CelCidr>(&arguments, 0)?.contains_network(network(&arguments, 1)?)))
    })?;
    env.add_member_overload("ip", "cidr.ip", NETWORK, Vec::new(), |arguments| {
        Ok(CowVal::owned(argument::<CelCidr>(&arguments, 0)?.address))
    })?;
    env.add_member_overload("masked", "cidr.masked", NETWORK, Vec::new(), |arguments| {
        Ok(CowVal::owned(argument::<CelCidr>(&arguments, 0)?.masked()))
    })?;
    env.add_member_overload("prefixLength", "cidr.prefixLength", NETWORK, Vec::new(), |arguments| {
        Ok(integer(argument::<CelCidr>(&arguments, 0)?.length.into()))
    })?;
    env.add_overload("string", "cidr_to_string", vec![NETWORK], to_string)
}

fn address(arguments: &[CowVal<'_, '_>], index: usize) -> Result<CelIp, ExecutionError> {
    charge_value()?;
    CelIp::read(text(arguments, index)?).map_err(|reason| function_error("ip", reason))
}

fn network(arguments: &[CowVal<'_, '_>], index: usize) -> Result<CelCidr, ExecutionError> {
    charge_value()?;
    CelCidr::read(text(arguments, index)?).map_err(|reason| function_error("cidr", reason))
}

fn to_string<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> CelResult<'b, 'v> {
    let network = argument::<CelCidr>(&arguments, 0)?;
    Ok(string(format!("{}/{}", network.address.0, network.length)))
}
