//! Which proxy a connection to an API server uses, decided as kubectl decides it. Not the connection itself.
//!
//! `proxy-url` of the kubeconfig always wins. Without it, `HTTPS_PROXY` counts for https and `HTTP_PROXY` for http,
//! unless the API server is on this machine or `NO_PROXY` lists it. kube's own reading is not used: it compares
//! `NO_PROXY` with the host of the proxy and not with that of the API server.
//!
//! Invariant: pure; the variables are passed in.

use std::net::IpAddr;

use http::Uri;

use super::client::redact_unusable_url;

/// The proxy to use for an API server: `proxy-url` of the kubeconfig, or that of the environment, which `variable`
/// reads. `None` to connect directly.
pub(super) fn proxy_for(
    server: &Uri,
    proxy_url: Option<&str>,
    variable: &dyn Fn(&str) -> Option<String>,
) -> anyhow::Result<Option<Uri>> {
    if let Some(url) = proxy_url.filter(|url| !url.is_empty()) {
        return parse_proxy_url("proxy-url in the kubeconfig", url).map(Some);
    }
    let either = |upper: &'static str, lower: &'static str| {
        let set = |name: &'static str| {
            variable(name).filter(|value| !value.trim().is_empty()).map(|value| (name, value))
        };
        set(upper).or_else(|| set(lower))
    };
    let is_https = server.scheme_str() == Some("https");
    let found =
        if is_https { either("HTTPS_PROXY", "https_proxy") } else { either("HTTP_PROXY", "http_proxy") };
    let Some((name, url)) = found else { return Ok(None) };
    let host = server.host().unwrap_or_default().trim_matches(['[', ']']).to_ascii_lowercase();
    let port = server.port_u16().unwrap_or(if is_https { 443 } else { 80 });
    let is_local = host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
    let listed =
        || either("NO_PROXY", "no_proxy").is_some_and(|(_, list)| bypasses_proxy(&list, &host, port));
    if is_local || listed() { Ok(None) } else { parse_proxy_url(name, &url).map(Some) }
}

/// Parses the URL of a proxy, which `source` names in errors. Without a scheme it is http; `socks5h` is the same as
/// `socks5`.
fn parse_proxy_url(source: &str, url: &str) -> anyhow::Result<Uri> {
    let url = url.trim();
    let with_scheme = match url.split_once("://") {
        Some(("socks5h", rest)) => format!("socks5://{rest}"),
        Some(_) => url.to_owned(),
        None => format!("http://{url}"),
    };
    let parsed = with_scheme.parse::<Uri>().ok();
    let usable = parsed.filter(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https" | "socks5"))
            && uri.host().is_some_and(|host| !host.is_empty())
    });
    usable.ok_or_else(|| {
        let shown = redact_unusable_url(&with_scheme);
        anyhow::anyhow!("{source}: `{shown}` is not a proxy URL; use http, https or socks5")
    })
}

/// True if an entry of `NO_PROXY` matches the host: a name (with its subdomains), `.name` or `*.name` (subdomains
/// only), an address, a range of addresses, or `*`. Names and addresses may have a port.
fn bypasses_proxy(list: &str, host: &str, port: u16) -> bool {
    let ip = host.parse::<IpAddr>().ok();
    list.split(',').map(|entry| entry.trim().to_ascii_lowercase()).any(|entry| {
        if let (Some(range), Some(ip)) = (parse_range(&entry), ip) {
            return is_in_range(range, ip);
        }
        let (name, wanted) = split_port(&entry);
        if name.is_empty() || wanted.is_some_and(|wanted| wanted.parse() != Ok(port)) {
            return false;
        }
        if name == "*" {
            return true;
        }
        if let (Ok(listed), Some(ip)) = (name.parse::<IpAddr>(), ip) {
            return listed.to_canonical() == ip.to_canonical();
        }
        let name = name.strip_prefix('*').filter(|rest| rest.starts_with('.')).unwrap_or(name);
        let parent = host.strip_suffix(name);
        if name.starts_with('.') {
            parent.is_some()
        } else {
            parent.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        }
    })
}

/// Splits an entry of `NO_PROXY` into host and port: `name:port` or `[address]:port`. An IPv6 address without brackets
/// has no port.
fn split_port(entry: &str) -> (&str, Option<&str>) {
    if let Some((address, rest)) = entry.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return (address, rest.strip_prefix(':'));
    }
    match entry.split_once(':') {
        Some((name, port)) if !port.contains(':') => (name, Some(port)),
        _ => (entry, None),
    }
}

/// Parses `10.0.0.0/8` into address and number of bits; `None` if it is not a range.
fn parse_range(entry: &str) -> Option<(IpAddr, u32)> {
    let (address, bits) = entry.split_once('/')?;
    Some((address.parse().ok()?, bits.parse().ok()?))
}

/// True if the address is in the range.
fn is_in_range((network, bits): (IpAddr, u32), ip: IpAddr) -> bool {
    let (network, ip, width) = match (network.to_canonical(), ip.to_canonical()) {
        (IpAddr::V4(network), IpAddr::V4(ip)) => {
            (u128::from(network.to_bits()), u128::from(ip.to_bits()), 32)
        }
        (IpAddr::V6(network), IpAddr::V6(ip)) => (network.to_bits(), ip.to_bits(), 128),
        _ => return false,
    };
    // A shift by the whole width is what `/0` is.
    bits <= width && (network ^ ip).checked_shr(width - bits).unwrap_or(0) == 0
}

#[cfg(test)]
mod tests {
    use super::{bypasses_proxy, proxy_for};

    fn chosen(server: &str, proxy_url: Option<&str>, variables: &[(&str, &str)]) -> Result<String, String> {
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        let proxy = proxy_for(&server.parse().expect("a URL"), proxy_url, &variable);
        proxy
            .map(|uri| uri.map_or_else(String::new, |uri| uri.to_string()))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_proxy_is_that_of_kubectl() {
        let corp = ("HTTPS_PROXY", "http://proxy.corp:3128");
        for (server, variables, expected) in [
            ("https://api.example.com:6443", &[corp][..], "http://proxy.corp:3128/"),
            (
                "https://api.example.com:6443",
                &[("https_proxy", "proxy.corp:3128")],
                "http://proxy.corp:3128/",
            ),
            ("https://api.example.com", &[("HTTPS_PROXY", "socks5h://p:1080")], "socks5://p:1080/"),
            ("https://api.example.com", &[("HTTP_PROXY", "http://p:1")], ""),
            ("http://api.example.com", &[corp], ""),
            ("http://api.example.com", &[("HTTP_PROXY", "http://p:1")], "http://p:1/"),
            ("https://127.0.0.1:6443", &[corp], ""),
            ("https://[::1]:6443", &[corp], ""),
            ("https://localhost:6443", &[corp], ""),
            ("https://api.example.com", &[corp, ("NO_PROXY", "example.com")], ""),
            ("https://api.example.com", &[corp, ("no_proxy", "example.com")], ""),
            // The entry is that of the proxy itself: the server is not meant.
            ("https://api.example.com", &[corp, ("NO_PROXY", ".corp")], "http://proxy.corp:3128/"),
            ("https://api.example.com", &[("HTTPS_PROXY", " ")], ""),
        ] {
            assert_eq!(chosen(server, None, variables), Ok(expected.to_owned()), "{server} {variables:?}");
        }
        let named = chosen("https://127.0.0.1", Some("http://p:1"), &[corp, ("NO_PROXY", "*")]);
        assert_eq!(named, Ok("http://p:1/".to_owned()), "a proxy-url is meant for this very server");
        assert_eq!(
            chosen("https://a.example.com", None, &[("HTTPS_PROXY", "ftp://u:SECRET@p:1")]),
            Err("HTTPS_PROXY: `ftp://p:1` is not a proxy URL; use http, https or socks5".into())
        );
    }

    #[test]
    fn a_password_that_makes_a_url_invalid_is_not_shown() {
        for (url, shown) in [
            ("ftp://u:SEC/RET@p:1", "ftp://p:1"),
            ("ftp://u:SE@C/RET@p:1", "ftp://p:1"),
            ("http://u:SEC RET@p:1", "http://p:1"),
            ("u:SEC RET@p:1", "http://p:1"),
            ("http://u:1 2/SECRET@p:1", "http://p:1"),
            ("ftp://u:12/SECRET@p:1", "ftp://p:1"),
        ] {
            let error = format!("HTTPS_PROXY: `{shown}` is not a proxy URL; use http, https or socks5");
            assert_eq!(chosen("https://a.example.com", None, &[("HTTPS_PROXY", url)]), Err(error), "{url}");
        }
    }

    #[test]
    fn no_proxy_lists_names_addresses_and_ranges() {
        for (list, host, expected) in [
            ("example.com", "example.com", true),
            ("Example.com", "api.example.com", true),
            ("example.com", "myexample.com", false),
            (".example.com", "example.com", false),
            (".example.com", "api.example.com", true),
            ("*.example.com", "api.example.com", true),
            ("a.com,, b.com ,", "b.com", true),
            ("a.com,*", "b.com", true),
            ("", "b.com", false),
            ("b.com:6443", "b.com", true),
            ("b.com:443", "b.com", false),
            ("10.0.0.7", "10.0.0.7", true),
            ("10.0.0.7:6443", "10.0.0.7", true),
            ("10.0.0.0/8", "10.9.9.9", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("0.0.0.0/0", "11.0.0.1", true),
            ("10.0.0.0/33", "10.0.0.0", false),
            ("fd00::/8", "fd12::1", true),
            ("::/0", "fd12::1", true),
            ("fd12::1", "fd12::1", true),
            ("[fd12::1]:6443", "fd12::1", true),
            ("[fd12::1]:1", "fd12::1", false),
            ("10.0.0.0/8", "ten.example.com", false),
        ] {
            assert_eq!(bypasses_proxy(list, host, 6443), expected, "{list} {host}");
        }
    }
}
