//! Addresses and networks in expressions.

use std::fmt;
use std::net::IpAddr;

use super::netparse;
use crate::evaluate::value::{Evaluated, Value, error, no_such_overload};
use tollgate_formats::gofmt::quote;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::evaluate) struct Address(IpAddr);

/// An address and a number of bits; the address need not end where the bits do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::evaluate) struct Prefix {
    address: IpAddr,
    bits: u8,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

impl Address {
    /// The size that costs are counted by.
    pub(in crate::evaluate) fn bytes(self) -> usize {
        if self.0.is_ipv4() { 4 } else { 16 }
    }

    fn parse(text: &str) -> Result<Address, String> {
        let (address, zone) = netparse::address(text).map_err(|problem| {
            format!("IP Address {} parse error during conversion from string: {problem}", quote(text))
        })?;
        if zone.is_some() {
            return Err(format!("IP address {} with zone value is not allowed", quote(text)));
        }
        not_mapped(address, text)?;
        Ok(Address(address))
    }

    fn is_link_local_unicast(self) -> bool {
        match self.0 {
            IpAddr::V4(address) => address.is_link_local(),
            IpAddr::V6(address) => address.segments()[0] & 0xffc0 == 0xfe80,
        }
    }

    fn is_link_local_multicast(self) -> bool {
        match self.0 {
            IpAddr::V4(address) => matches!(address.octets(), [224, 0, 0, _]),
            IpAddr::V6(address) => address.segments()[0] & 0xff0f == 0xff02,
        }
    }

    fn is_global_unicast(self) -> bool {
        let is_broadcast = matches!(self.0, IpAddr::V4(address) if address.is_broadcast());
        !is_broadcast
            && !self.0.is_unspecified()
            && !self.0.is_loopback()
            && !self.0.is_multicast()
            && !self.is_link_local_unicast()
    }
}

impl Prefix {
    /// The size that costs are counted by.
    pub(in crate::evaluate) fn bytes(self) -> usize {
        usize::from(self.bits).div_ceil(8)
    }

    fn parse(text: &str) -> Result<Prefix, String> {
        let (address, bits) = netparse::prefix(text).map_err(|problem| {
            format!("network address parse error during conversion from string: {problem}")
        })?;
        not_mapped(address, text)?;
        Ok(Prefix { address, bits })
    }

    fn masked(self) -> Prefix {
        Prefix { address: masked(self.address, self.bits), ..self }
    }

    fn contains(self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4()
            && masked(address, self.bits) == masked(self.address, self.bits)
    }
}

fn not_mapped(address: IpAddr, text: &str) -> Result<(), String> {
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

pub(super) fn find(name: &str) -> Option<super::Function> {
    Some(match name {
        "ip" => |args, _| match args {
            [Value::String(text)] => {
                Address::parse(text).map_or_else(error, |address| Ok(Value::Ip(address)))
            }
            [Value::Cidr(prefix)] => Ok(Value::Ip(Address(prefix.address))),
            _ => no_such_overload(),
        },
        "isIP" => |args, _| text(args, |text| Address::parse(text).is_ok()),
        "ip.isCanonical" => |args, _| match args {
            [Value::String(text)] => Address::parse(text)
                .map_or_else(error, |address| Ok(Value::Bool(address.to_string() == **text))),
            _ => no_such_overload(),
        },
        "family" => |args, _| match args {
            [Value::Ip(address)] => Ok(Value::Int(if address.0.is_ipv4() { 4 } else { 6 })),
            _ => no_such_overload(),
        },
        "isUnspecified" => |args, _| address(args, |address| address.0.is_unspecified()),
        "isLoopback" => |args, _| address(args, |address| address.0.is_loopback()),
        "isLinkLocalMulticast" => |args, _| address(args, Address::is_link_local_multicast),
        "isLinkLocalUnicast" => |args, _| address(args, Address::is_link_local_unicast),
        "isGlobalUnicast" => |args, _| address(args, Address::is_global_unicast),
        "cidr" => |args, _| match args {
            [Value::String(text)] => prefix(text).map(Value::Cidr),
            _ => no_such_overload(),
        },
        "isCIDR" => |args, _| text(args, |text| Prefix::parse(text).is_ok()),
        "containsIP" => |args, _| match args {
            [Value::Cidr(prefix), Value::Ip(address)] => Ok(Value::Bool(prefix.contains(address.0))),
            // What is no address is no argument, to upstream.
            [Value::Cidr(prefix), Value::String(text)] => match Address::parse(text) {
                Ok(address) => Ok(Value::Bool(prefix.contains(address.0))),
                Err(_) => no_such_overload(),
            },
            _ => no_such_overload(),
        },
        "containsCIDR" => |args, _| match args {
            [Value::Cidr(outer), Value::Cidr(inner)] => Ok(Value::Bool(holds(*outer, *inner))),
            [Value::Cidr(outer), Value::String(text)] => Ok(Value::Bool(holds(*outer, prefix(text)?))),
            _ => no_such_overload(),
        },
        "prefixLength" => |args, _| match args {
            [Value::Cidr(prefix)] => Ok(Value::Int(prefix.bits.into())),
            _ => no_such_overload(),
        },
        "masked" => |args, _| match args {
            [Value::Cidr(prefix)] => Ok(Value::Cidr(prefix.masked())),
            _ => no_such_overload(),
        },
        _ => return None,
    })
}

fn prefix(text: &str) -> Result<Prefix, crate::evaluate::value::Failure> {
    let problem =
        |problem| error(format!("network address parse error during conversion from string: {problem}"));
    Prefix::parse(text).or_else(problem)
}

fn holds(outer: Prefix, inner: Prefix) -> bool {
    outer.bits <= inner.bits && outer.contains(inner.address)
}

fn text(args: &[Value], test: fn(&str) -> bool) -> Evaluated {
    match args {
        [Value::String(text)] => Ok(Value::Bool(test(text))),
        _ => no_such_overload(),
    }
}

fn address(args: &[Value], test: fn(Address) -> bool) -> Evaluated {
    match args {
        [Value::Ip(address)] => Ok(Value::Bool(test(*address))),
        _ => no_such_overload(),
    }
}
