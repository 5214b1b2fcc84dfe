//! Interface addresses in CIDR form, as Kubernetes' lenient parser reads them.
//!
//! The parser is the one Go had before 1.17: leading zeros in octets, groups and prefix lengths are decimal or
//! hexadecimal padding. std's parsers refuse it, so it is removed first. No zones, no bare addresses. An address that
//! is already canonical costs no allocation.

use std::fmt::{self, Write as _};
use std::net::IpAddr;

/// The error for a text that is not an IP address with a prefix length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InvalidCidr;

/// The canonical form of an address with a prefix length; `None` if `value` is already in this form.
///
/// upstream v1.36 `IsValidInterfaceAddress`
pub fn canonical_cidr_if_different(value: &str) -> Result<Option<String>, InvalidCidr> {
    let (address, length) = value.split_once('/').ok_or(InvalidCidr)?;
    let address = address.parse().or_else(|_| without_leading_zeros(address).parse());
    let address: IpAddr = address.map_err(|_not_one| InvalidCidr)?;
    let bits = if address.is_ipv4() { 32 } else { 128 };
    let is_number = length.bytes().all(|byte| byte.is_ascii_digit());
    let length = Some(length).filter(|_| is_number).and_then(|length| length.parse().ok());
    let mut length: i32 = length.filter(|length| *length <= bits).ok_or(InvalidCidr)?;
    let address = address.to_canonical();
    // Lengths up to 32 of a mapped address are left alone upstream, although they cut the `::ffff:`; from 33 to 95, the
    // canonical form that the API server names has a negative length.
    if address.is_ipv4() && length > 32 {
        length -= 96;
    }
    let mut same = ComparingWriter { rest: Some(value) };
    let _ = write!(same, "{address}/{length}");
    Ok(if same.rest == Some("") { None } else { Some(format!("{address}/{length}")) })
}

/// A writer that compares what is written with a text instead of storing it; `rest` is `None` once they differ.
struct ComparingWriter<'a> {
    rest: Option<&'a str>,
}

impl fmt::Write for ComparingWriter<'_> {
    fn write_str(&mut self, written: &str) -> fmt::Result {
        self.rest = self.rest.and_then(|rest| rest.strip_prefix(written));
        Ok(())
    }
}

/// The address without leading zeros in its octets and groups.
fn without_leading_zeros(address: &str) -> String {
    let mut plain = String::with_capacity(address.len());
    for part in address.split_inclusive(['.', ':']) {
        let digits = part.trim_end_matches(['.', ':']);
        let trimmed = digits.trim_start_matches('0');
        plain.push_str(if trimmed.is_empty() && !digits.is_empty() { "0" } else { trimmed });
        plain.push_str(part.strip_prefix(digits).unwrap_or_default());
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interface_addresses() {
        for value in
            ["1.2.3.4/24", "0.0.0.0/0", "2001:db8::1/64", "::/0", "::1/128", "1:0:0:2::/64", "fe80::1/64"]
        {
            assert_eq!(canonical_cidr_if_different(value), Ok(None), "{value}");
        }
        for (value, canonical) in [
            ("01.2.3.4/24", "1.2.3.4/24"),
            ("1.2.3.4/024", "1.2.3.4/24"),
            ("10.0.0.1/0000024", "10.0.0.1/24"),
            ("::ffff:1.2.3.4/120", "1.2.3.4/24"),
            ("::ffff:1.2.3.4/128", "1.2.3.4/32"),
            ("::ffff:1.2.3.4/20", "1.2.3.4/20"),
            ("::ffff:102:304/96", "1.2.3.4/0"),
            ("::ffff:10.0.0.0/80", "10.0.0.0/-16"),
            ("::ffff:10.0.0.0/33", "10.0.0.0/-63"),
            ("2001:DB8::1/64", "2001:db8::1/64"),
            ("2001:db8:0:0:0:0:0:1/64", "2001:db8::1/64"),
            ("1:2:3:4:5:6:1.2.3.4/64", "1:2:3:4:5:6:102:304/64"),
            ("00001::/64", "1::/64"),
            ("1:0:0:0:2::/64", "1::2:0:0:0/64"),
            ("1:2:3:4:5:6:7::/64", "1:2:3:4:5:6:7:0/64"),
            ("::1.2.3.4/64", "::102:304/64"),
        ] {
            assert_eq!(canonical_cidr_if_different(value), Ok(Some(canonical.to_owned())), "{value}");
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
            assert_eq!(canonical_cidr_if_different(value), Err(InvalidCidr), "{value}");
        }
    }
}
