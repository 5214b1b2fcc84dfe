//! Reads URLs as Go's `net/url` does, with its errors.

use tollgate_formats::gofmt::quote;
use tollgate_formats::names::split_optional;

use super::netparse;
use super::url::Url;

/// A part of a URL, which determines its escaping rules.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum UrlPart {
    Host,
    Zone,
    UserPassword,
    Path,
    Query,
    Fragment,
}

/// Go `url.ParseRequestURI`: an absolute URL, or a path. The error is Go's.
pub(super) fn parse_request_uri(text: &str) -> Result<Url, String> {
    parse(text, true).map_err(|problem| format!("parse {}: {problem}", quote(text)))
}

/// Parses a URL like Go's `url.Parse`.
pub(super) fn parse_reference(text: &str) -> Result<Url, String> {
    let (front, fragment) = text.split_once('#').unwrap_or((text, ""));
    let problem = |problem| format!("parse {}: {problem}", quote(text));
    let mut url = parse(front, false).map_err(|what| format!("parse {}: {what}", quote(front)))?;
    unescape(fragment, UrlPart::Fragment).map_err(problem)?;
    fragment.clone_into(&mut url.fragment);
    Ok(url)
}

fn parse(text: &str, is_request: bool) -> Result<Url, String> {
    if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    if text.is_empty() && is_request {
        return Err("empty url".to_owned());
    }
    let mut url = Url::default();
    if text == "*" {
        text.clone_into(&mut url.path);
        return Ok(url);
    }
    let (scheme, rest) = split_scheme(text)?;
    url.scheme = scheme.to_ascii_lowercase();
    let (mut rest, query) = split_optional(rest, '?');
    url.query = query.map(str::to_owned);
    if !rest.starts_with('/') {
        if !url.scheme.is_empty() {
            rest.clone_into(&mut url.opaque);
            return Ok(url);
        }
        if is_request {
            return Err("invalid URI for request".to_owned());
        }
        if rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
    }
    let may_have_host = !url.scheme.is_empty() || (!is_request && !rest.starts_with("///"));
    if may_have_host && let Some(authority) = rest.strip_prefix("//") {
        let slash = authority.find('/').unwrap_or(authority.len());
        let (authority, path) = authority.split_at_checked(slash).unwrap_or((authority, ""));
        rest = path;
        url.has_authority = true;
        (url.user, url.host) = parse_authority(authority)?;
    }
    unescape(rest, UrlPart::Path)?;
    rest.clone_into(&mut url.path);
    Ok(url)
}

fn split_scheme(text: &str) -> Result<(&str, &str), String> {
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if index > 0 => {}
            b':' if index == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => {
                return Ok((
                    text.get(..index).unwrap_or_default(),
                    text.get(index + 1..).unwrap_or_default(),
                ));
            }
            _ => break,
        }
    }
    Ok(("", text))
}

fn parse_authority(authority: &str) -> Result<(Option<String>, String), String> {
    let Some((user, host)) = authority.rsplit_once('@') else {
        return Ok((None, parse_host(authority)?));
    };
    let host = parse_host(host)?;
    let is_user = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte);
    if !user.bytes().all(is_user) {
        return Err("net/url: invalid userinfo".to_owned());
    }
    let (name, password) = user.split_once(':').unwrap_or((user, ""));
    unescape(name, UrlPart::UserPassword)?;
    unescape(password, UrlPart::UserPassword)?;
    Ok((Some(user.to_owned()), host))
}

fn parse_host(host: &str) -> Result<String, String> {
    let bad_port = |port: &str| Err(format!("invalid port {} after host", quote(port)));
    if host.rfind('[').is_some_and(|at| at > 0) {
        return Err("invalid IP-literal".to_owned());
    }
    if let Some(literal) = host.strip_prefix('[') {
        let Some((literal, port)) = literal.rsplit_once(']') else {
            return Err("missing ']' in host".to_owned());
        };
        if !is_optional_port(port) {
            return bad_port(port);
        }
        let literal = match literal.find("%25").and_then(|zone| literal.split_at_checked(zone)) {
            Some((address, zone)) => unescape(address, UrlPart::Host)? + &unescape(zone, UrlPart::Zone)?,
            None => unescape(literal, UrlPart::Host)?,
        };
        return match netparse::parse_address_and_zone(&literal) {
            Err(problem) => Err(format!("invalid host: {problem}")),
            Ok((address, _)) if address.is_ipv4() => Err("invalid IP-literal".to_owned()),
            Ok(_) => Ok(format!("[{literal}]{port}")),
        };
    }
    if let Some(colon) = host.find(':')
        && let Some(port) = host.get(colon..)
        && !is_optional_port(port)
    {
        return bad_port(port);
    }
    unescape(host, UrlPart::Host)
}

/// True if the text is empty, or a colon followed by digits.
pub(super) fn is_optional_port(port: &str) -> bool {
    port.is_empty()
        || port.strip_prefix(':').is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Removes percent-encoding like Go's `unescape`.
pub(super) fn unescape(text: &str, part: UrlPart) -> Result<String, String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [byte, after @ ..] = rest {
        match (byte, after) {
            (b'%', &[high, low, ref behind @ ..]) if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                let value = hex_digit_value(high) << 4 | hex_digit_value(low);
                let is_bad = match part {
                    UrlPart::Host => value < 0x80 && value != b'%',
                    UrlPart::Zone => value != b'%' && value != b' ' && needs_escape(value, UrlPart::Host),
                    _ => false,
                };
                if is_bad {
                    return bad_escape(rest);
                }
                out.push(value);
                rest = behind;
            }
            (b'%', _) => return bad_escape(rest),
            (b'+', _) if part == UrlPart::Query => {
                out.push(b' ');
                rest = after;
            }
            (byte, _) => {
                if matches!(part, UrlPart::Host | UrlPart::Zone)
                    && byte.is_ascii()
                    && needs_escape(*byte, part)
                {
                    let character = quote(&char::from(*byte).to_string());
                    return Err(format!("invalid character {character} in host name"));
                }
                out.push(*byte);
                rest = after;
            }
        }
    }
    Ok(String::from_utf8_lossy(&out).into_owned())
}

fn bad_escape(rest: &[u8]) -> Result<String, String> {
    let shown = rest.get(..3).unwrap_or(rest);
    Err(format!("invalid URL escape {}", tollgate_formats::gofmt::quote_bytes(shown)))
}

fn hex_digit_value(digit: u8) -> u8 {
    char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok()).unwrap_or_default()
}

/// True if the byte must be percent-encoded, like Go's `shouldEscape`.
pub(super) fn needs_escape(byte: u8, part: UrlPart) -> bool {
    if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
        return false;
    }
    match part {
        UrlPart::Host | UrlPart::Zone => !b"!$&'()*+,;=:[]<>\"".contains(&byte),
        UrlPart::Path => !b"$&+,/:;=@".contains(&byte),
        UrlPart::UserPassword => !b"$&+,;=".contains(&byte),
        UrlPart::Query => true,
        UrlPart::Fragment => !b"$&+,/:;=?@!()*".contains(&byte),
    }
}
