//! Interface addresses in CIDR form, as Kubernetes' lenient parser reads them.
//!
//! The parser is the one Go had before 1.17: leading zeros in octets, groups and prefix lengths are decimal or
//! hexadecimal padding, IPv4 inside IPv6 is read. std's parsers refuse those, so only std's printing is used. No
//! zones, no bare addresses. An address that is already canonical costs no allocation.

use std::fmt::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The text is no address with a prefix length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InvalidCidr;

/// The canonical form of `value` when it is written otherwise, `None` when it is canonical already.
///
/// upstream v1.36 `IsValidInterfaceAddress`
pub fn canonical_cidr(value: &str) -> Result<Option<String>, InvalidCidr> {
    let (address, length) = value.split_once('/').ok_or(InvalidCidr)?;
    let (address, bits) = match parse_v4(address.as_bytes()) {
        Some(octets) => (IpAddr::V4(Ipv4Addr::from(octets)), 32),
        None => (IpAddr::V6(Ipv6Addr::from(parse_v6(address).ok_or(InvalidCidr)?)), 128),
    };
    let (mut length, rest) = read_number(length.as_bytes(), 10).ok_or(InvalidCidr)?;
    if !rest.is_empty() || length > bits {
        return Err(InvalidCidr);
    }
    let address = address.to_canonical();
    // Lengths up to 32 of a mapped address are left alone upstream, although they cut the `::ffff:`.
    if address.is_ipv4() && length > 32 {
        length -= 96;
    }
    let mut same = PrefixMatcher { rest: Some(value) };
    let _ = write!(same, "{address}/{length}");
    Ok(if same.rest == Some("") { None } else { Some(format!("{address}/{length}")) })
}

/// A writer that compares what is written with a text instead of storing it; `rest` is `None` once they differ.
struct PrefixMatcher<'a> {
    rest: Option<&'a str>,
}

impl fmt::Write for PrefixMatcher<'_> {
    fn write_str(&mut self, written: &str) -> fmt::Result {
        self.rest = self.rest.and_then(|rest| rest.strip_prefix(written));
        Ok(())
    }
}

/// The octets of an IPv4 address; `None` if it is none. Leading zeros are allowed.
fn parse_v4(text: &[u8]) -> Option<[u8; 4]> {
    let mut octets = [0; 4];
    let mut rest = text;
    for (idx, octet) in octets.iter_mut().enumerate() {
        if idx > 0 {
            rest = rest.strip_prefix(b".")?;
        }
        let (value, after) = read_number(rest, 10)?;
        *octet = u8::try_from(value).ok()?;
        rest = after;
    }
    rest.is_empty().then_some(octets)
}

/// The octets of an IPv6 address, of which the last part may be IPv4; `None` if it is none.
fn parse_v6(text: &str) -> Option<[u8; 16]> {
    let (head, tail) = match text.split_once("::") {
        Some((head, tail)) => (head, Some(tail)),
        None => (text, None),
    };
    let mut octets = [0; 16];
    let front = read_groups(head, tail.is_some(), &mut octets)?;
    let Some(tail) = tail else {
        return (front == 16).then_some(octets);
    };
    let mut behind = [0; 16];
    let back = read_groups(tail, true, &mut behind)?;
    // The ellipsis stands for at least one group.
    if front + back > 14 {
        return None;
    }
    let end = octets.iter_mut().rev().take(back).rev();
    for (octet, &value) in end.zip(behind.iter()) {
        *octet = value;
    }
    // Only the last group may be IPv4, and what stands before an ellipsis is not last.
    (!head.contains('.')).then_some(octets)
}

/// Reads colon-separated groups into `octets` and returns how many octets they fill; `None` if they are wrong, or empty
/// where they may not be.
fn read_groups(text: &str, may_be_empty: bool, octets: &mut [u8; 16]) -> Option<usize> {
    if text.is_empty() {
        return may_be_empty.then_some(0);
    }
    let mut filled = 0;
    let mut parts = text.split(':').peekable();
    while let Some(part) = parts.next() {
        if part.contains('.') {
            if parts.peek().is_some() {
                return None;
            }
            let four = parse_v4(part.as_bytes())?;
            octets.get_mut(filled..filled + 4)?.copy_from_slice(&four);
            filled += 4;
        } else {
            let (value, rest) = read_number(part.as_bytes(), 16)?;
            let group = u16::try_from(value).ok()?;
            if !rest.is_empty() {
                return None;
            }
            octets.get_mut(filled..filled + 2)?.copy_from_slice(&group.to_be_bytes());
            filled += 2;
        }
    }
    Some(filled)
}

/// The number at the start of `text`, and what follows it; `None` if there is no digit, or from 0xFFFFFF on, where Go
/// gives up.
fn read_number(text: &[u8], radix: u32) -> Option<(u32, &[u8])> {
    let mut value = 0;
    let mut length = 0;
    for &byte in text {
        let Some(digit) = char::from(byte).to_digit(radix) else { break };
        value = value * radix + digit;
        length += 1;
        if value >= 0x00ff_ffff {
            return None;
        }
    }
    let rest = text.get(length..)?;
    (length > 0).then_some((value, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interface_addresses() {
        for value in
            ["1.2.3.4/24", "0.0.0.0/0", "2001:db8::1/64", "::/0", "::1/128", "1:0:0:2::/64", "fe80::1/64"]
        {
            assert_eq!(canonical_cidr(value), Ok(None), "{value}");
        }
        for (value, canonical) in [
            ("01.2.3.4/24", "1.2.3.4/24"),
            ("1.2.3.4/024", "1.2.3.4/24"),
            ("10.0.0.1/0000024", "10.0.0.1/24"),
            ("::ffff:1.2.3.4/120", "1.2.3.4/24"),
            ("::ffff:1.2.3.4/128", "1.2.3.4/32"),
            ("::ffff:1.2.3.4/20", "1.2.3.4/20"),
            ("::ffff:102:304/96", "1.2.3.4/0"),
            ("2001:DB8::1/64", "2001:db8::1/64"),
            ("2001:db8:0:0:0:0:0:1/64", "2001:db8::1/64"),
            ("1:2:3:4:5:6:1.2.3.4/64", "1:2:3:4:5:6:102:304/64"),
            ("00001::/64", "1::/64"),
            ("1:0:0:0:2::/64", "1::2:0:0:0/64"),
            ("1:2:3:4:5:6:7::/64", "1:2:3:4:5:6:7:0/64"),
            ("::1.2.3.4/64", "::102:304/64"),
        ] {
            assert_eq!(canonical_cidr(value), Ok(Some(canonical.to_owned())), "{value}");
        }
        for value in [
            "",
            "/",
            "1.2.3.4",
            "1.2.3.4/",
            "1.2.3.4/33",
            "1.2.3.4/-1",
            "1.2.3.4/+1",
            "1.2.3/8",
            "1.2.3.4.5/8",
            "256.1.1.1/8",
            " 1.2.3.4/8",
            "1.2.3.4/8 ",
            "1.2.3.4/8/8",
            "fe80::1%eth0/64",
            "::/129",
            ":/64",
            ":1::/64",
            "1::2::3/64",
            ":::/64",
            "1:2:3:4:5:6:7:8:9/64",
            "1:2:3:4:5:6:7/64",
            "1:2:3:4:5:6:7::8/64",
            "12345::/64",
            "1.2.3.4::/64",
            "1:1.2.3.4:2::/64",
            "::1:/64",
            "g::/64",
        ] {
            assert_eq!(canonical_cidr(value), Err(InvalidCidr), "{value}");
        }
    }
}
