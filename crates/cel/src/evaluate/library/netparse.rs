//! Reads addresses and prefixes as Go's `net/netip` does, with its errors.
//!
//! Stricter than `tollgate_formats::netaddr`, which reads what older releases stored, and with zones, which the callers
//! refuse. std's parsers accept the same texts but do not say what is wrong.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use tollgate_formats::gofmt::quote;

/// Parses an IP address, and the zone that it was written with.
pub(super) fn parse_address(text: &str) -> Result<(IpAddr, Option<&str>), String> {
    match text.bytes().find(|byte| matches!(byte, b'.' | b':' | b'%')) {
        Some(b'.') => ipv4_octets(text, text).map(|octets| (IpAddr::V4(Ipv4Addr::from(octets)), None)),
        Some(b':') => parse_ipv6(text),
        Some(_) => parse_error(text, "missing IPv6 address", None),
        None => parse_error(text, "unable to parse IP", None),
    }
}

/// An address and a number of bits.
pub(super) fn parse_prefix(text: &str) -> Result<(IpAddr, u8), String> {
    let prefix_error = |what: &str| Err(format!("netip.ParsePrefix({}): {what}", quote(text)));
    let Some((front, bits)) = text.rsplit_once('/') else { return prefix_error("no '/'") };
    let (address, zone) = match parse_address(front) {
        Ok(found) => found,
        Err(what) => return prefix_error(&what),
    };
    if zone.is_some() {
        return prefix_error("IPv6 zones cannot be present in a prefix");
    }
    let is_plain = bits.len() <= 1 || bits.starts_with(|c: char| ('1'..='9').contains(&c));
    let Some(bits) = Some(bits).filter(|_| is_plain).and_then(|bits| bits.parse::<u64>().ok()) else {
        return prefix_error(&format!("bad bits after slash: {}", quote(bits)));
    };
    let most = if address.is_ipv4() { 32 } else { 128 };
    match u8::try_from(bits) {
        Ok(bits) if bits <= most => Ok((address, bits)),
        _ => prefix_error("prefix length out of range"),
    }
}

fn parse_error<T>(whole: &str, what: &str, at: Option<&str>) -> Result<T, String> {
    let at = at.filter(|at| !at.is_empty()).map(|at| format!(" (at {})", quote(at)));
    Err(format!("ParseAddr({}): {what}{}", quote(whole), at.unwrap_or_default()))
}

/// Parses four decimal fields of an IPv4 address.
fn ipv4_octets(whole: &str, text: &str) -> Result<[u8; 4], String> {
    let mut octets = [0; 4];
    let (mut value, mut position, mut digits) = (0_u32, 0, 0);
    let bytes = text.as_bytes();
    for (index, &byte) in bytes.iter().enumerate() {
        let rest = || text.get(index..);
        match byte {
            b'0'..=b'9' => {
                if digits == 1 && value == 0 {
                    return parse_error(whole, "IPv4 field has octet with leading zero", None);
                }
                value = value * 10 + u32::from(byte - b'0');
                digits += 1;
                if value > 255 {
                    return parse_error(whole, "IPv4 field has value >255", None);
                }
            }
            b'.' => {
                let follows_dot = index.checked_sub(1).and_then(|before| bytes.get(before)) == Some(&b'.');
                if index == 0 || index + 1 == bytes.len() || follows_dot {
                    return parse_error(whole, "IPv4 field must have at least one digit", rest());
                }
                if position == 3 {
                    return parse_error(whole, "IPv4 address too long", None);
                }
                if let Some(octet) = octets.get_mut(position) {
                    *octet = u8::try_from(value).unwrap_or_default();
                }
                (value, digits) = (0, 0);
                position += 1;
            }
            _ => return parse_error(whole, "unexpected character", rest()),
        }
    }
    if position < 3 {
        return parse_error(whole, "IPv4 address too short", None);
    }
    octets[3] = u8::try_from(value).unwrap_or_default();
    Ok(octets)
}

fn parse_ipv6(whole: &str) -> Result<(IpAddr, Option<&str>), String> {
    let (text, zone) = match whole.split_once('%') {
        Some((_, "")) => return parse_error(whole, "zone must be a non-empty string", None),
        Some((text, zone)) => (text, Some(zone)),
        None => (whole, None),
    };
    let (groups, ellipsis) = ipv6_groups(whole, text)?;
    let mut octets = [0_u8; 16];
    let missing = 16_usize.saturating_sub(groups.len());
    let ellipsis = match (missing, ellipsis) {
        (0, Some(_)) => {
            return parse_error(whole, "the :: must expand to at least one field of zeros", None);
        }
        (1.., None) => return parse_error(whole, "address string too short", None),
        (_, ellipsis) => ellipsis.unwrap_or(16),
    };
    for (index, octet) in groups.into_iter().enumerate() {
        let index = if index < ellipsis { index } else { index + missing };
        if let Some(slot) = octets.get_mut(index) {
            *slot = octet;
        }
    }
    Ok((IpAddr::V6(Ipv6Addr::from(octets)), zone))
}

/// Parses the groups of an IPv6 address. Returns their bytes, and the number of bytes before the ellipsis (`::`).
fn ipv6_groups(whole: &str, text: &str) -> Result<(Vec<u8>, Option<usize>), String> {
    let mut octets = Vec::with_capacity(16);
    let (mut rest, mut ellipsis) = match text.strip_prefix("::") {
        Some("") => return Ok((octets, Some(0))),
        Some(rest) => (rest, Some(0)),
        None => (text, None),
    };
    while octets.len() < 16 {
        let length = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
        if length > 4 {
            return parse_error(whole, "each group must have 4 or less digits", Some(rest));
        }
        if length == 0 {
            let what = "each colon-separated field must have at least one digit";
            return parse_error(whole, what, Some(rest));
        }
        let (group, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
        if after.starts_with('.') {
            if ellipsis.is_none() && octets.len() != 12 {
                let what = "embedded IPv4 address must replace the final 2 fields of the address";
                return parse_error(whole, what, Some(rest));
            }
            if octets.len() + 4 > 16 {
                let what = "too many hex fields to fit an embedded IPv4 at the end of the address";
                return parse_error(whole, what, Some(rest));
            }
            octets.extend(ipv4_octets(whole, rest)?);
            return Ok((octets, ellipsis));
        }
        octets.extend(u16::from_str_radix(group, 16).unwrap_or_default().to_be_bytes());
        rest = match after.strip_prefix(':') {
            None if after.is_empty() => return Ok((octets, ellipsis)),
            None => return parse_error(whole, "unexpected character, want colon", Some(after)),
            Some("") => return parse_error(whole, "colon must be followed by more characters", Some(after)),
            Some(behind) => behind,
        };
        if let Some(behind) = rest.strip_prefix(':') {
            if ellipsis.is_some() {
                return parse_error(whole, "multiple :: in address", Some(rest));
            }
            ellipsis = Some(octets.len());
            rest = behind;
            if rest.is_empty() {
                return Ok((octets, ellipsis));
            }
        }
    }
    parse_error(whole, "trailing garbage after address", Some(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_std_reads_them() {
        for text in [
            "1.2.3.4",
            "0.0.0.0",
            "::",
            "::1",
            "1::",
            "fe80::1",
            "1:2:3:4:5:6:7:8",
            "::ffff:1.2.3.4",
            "1::2:3.4.5.6",
            "1:2:3:4:5:6:1.2.3.4",
            "",
            "x",
            "1.2.3",
            "1.2.3.4.5",
            "01.2.3.4",
            "256.1.1.1",
            "1..2.3",
            "1:::2",
            "1:2:3:4:5:6:7",
            "1:2:3:4:5:6:7::",
            "12345::",
            "1:2",
            ":1",
            "1:",
            "g::",
            "::1::",
            "1.2.3.4::",
            "1:2:3:4:5:6:7:8:9",
            "1:2:3:4:5:6:7::8",
        ] {
            assert_eq!(parse_address(text).ok().map(|(found, _)| found), text.parse().ok(), "{text}");
        }
    }
}
