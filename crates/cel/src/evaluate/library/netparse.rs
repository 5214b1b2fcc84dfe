//! Reads addresses and prefixes as Go's `net/netip` does, with its errors.
//!
//! Stricter than `tollgate_formats::netaddr`, which also reads addresses that older releases stored. IPv6 zones are
//! returned to the caller. The checks here find Go's errors; std's parsers accept the same texts and then parse them.

use std::net::IpAddr;

use tollgate_formats::gofmt::quote;

/// Parses an IP address, and the zone that it was written with.
pub(super) fn parse_address_and_zone(text: &str) -> Result<(IpAddr, Option<&str>), String> {
    match text.bytes().find(|byte| matches!(byte, b'.' | b':' | b'%')) {
        Some(b'.') => check_ipv4(text, text).and_then(|()| Ok((parse_with_std(text)?, None))),
        Some(b':') => parse_ipv6_and_zone(text),
        Some(_) => parse_error(text, "missing IPv6 address", None),
        None => parse_error(text, "unable to parse IP", None),
    }
}

fn parse_with_std(text: &str) -> Result<IpAddr, String> {
    text.parse().or_else(|_| parse_error(text, "unable to parse IP", None))
}

/// An address and a number of bits.
pub(super) fn parse_prefix(text: &str) -> Result<(IpAddr, u8), String> {
    let prefix_error = |what: &str| Err(format!("netip.ParsePrefix({}): {what}", quote(text)));
    let Some((front, bits)) = text.rsplit_once('/') else { return prefix_error("no '/'") };
    let (address, zone) = match parse_address_and_zone(front) {
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

/// Checks the four decimal fields of an IPv4 address.
fn check_ipv4(whole: &str, text: &str) -> Result<(), String> {
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
                (value, digits) = (0, 0);
                position += 1;
            }
            _ => return parse_error(whole, "unexpected character", rest()),
        }
    }
    if position < 3 { parse_error(whole, "IPv4 address too short", None) } else { Ok(()) }
}

fn parse_ipv6_and_zone(whole: &str) -> Result<(IpAddr, Option<&str>), String> {
    let (text, zone) = match whole.split_once('%') {
        Some((_, "")) => return parse_error(whole, "zone must be a non-empty string", None),
        Some((text, zone)) => (text, Some(zone)),
        None => (whole, None),
    };
    match check_ipv6_counting_bytes_and_ellipsis(whole, text)? {
        (16, true) => parse_error(whole, "the :: must expand to at least one field of zeros", None),
        (0..16, false) => parse_error(whole, "address string too short", None),
        _ => Ok((parse_with_std(text)?, zone)),
    }
}

/// Checks the groups of an IPv6 address. Returns the number of their bytes, and whether there is an ellipsis (`::`).
fn check_ipv6_counting_bytes_and_ellipsis(whole: &str, text: &str) -> Result<(usize, bool), String> {
    let mut octets = 0;
    let (mut rest, mut has_ellipsis) = match text.strip_prefix("::") {
        Some("") => return Ok((octets, true)),
        Some(rest) => (rest, true),
        None => (text, false),
    };
    while octets < 16 {
        let length = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
        if length > 4 {
            return parse_error(whole, "each group must have 4 or less digits", Some(rest));
        }
        if length == 0 {
            let what = "each colon-separated field must have at least one digit";
            return parse_error(whole, what, Some(rest));
        }
        let after = rest.get(length..).unwrap_or_default();
        if after.starts_with('.') {
            if !has_ellipsis && octets != 12 {
                let what = "embedded IPv4 address must replace the final 2 fields of the address";
                return parse_error(whole, what, Some(rest));
            }
            if octets + 4 > 16 {
                let what = "too many hex fields to fit an embedded IPv4 at the end of the address";
                return parse_error(whole, what, Some(rest));
            }
            check_ipv4(whole, rest)?;
            return Ok((octets + 4, has_ellipsis));
        }
        octets += 2;
        rest = match after.strip_prefix(':') {
            None if after.is_empty() => return Ok((octets, has_ellipsis)),
            None => return parse_error(whole, "unexpected character, want colon", Some(after)),
            Some("") => return parse_error(whole, "colon must be followed by more characters", Some(after)),
            Some(behind) => behind,
        };
        if let Some(behind) = rest.strip_prefix(':') {
            if has_ellipsis {
                return parse_error(whole, "multiple :: in address", Some(rest));
            }
            has_ellipsis = true;
            rest = behind;
            if rest.is_empty() {
                return Ok((octets, has_ellipsis));
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
            assert_eq!(
                parse_address_and_zone(text).ok().map(|(found, _)| found),
                text.parse().ok(),
                "{text}"
            );
        }
    }
}
