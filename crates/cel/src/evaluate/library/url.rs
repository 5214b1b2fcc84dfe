//! URLs in expressions. How they are read is in `urlparse`.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::sync::Arc;

use super::urlparse::{self, UrlPart};
use crate::evaluate::collections::{Map, MapLookup};
use crate::evaluate::value::{Evaluated, Value, eval_error};

#[derive(Debug, Default)]
pub(in crate::evaluate) struct Url {
    pub(super) scheme: String,
    /// The part after the scheme if it is not a path.
    pub(super) opaque: String,
    pub(super) has_authority: bool,
    pub(super) user: Option<String>,
    /// Host, including the port.
    pub(super) host: String,
    /// The path as written.
    pub(super) path: String,
    pub(super) query: Option<String>,
    pub(super) fragment: String,
}

impl Url {
    fn host_and_port(&self) -> (&str, &str) {
        let (host, port) = match self.host.rfind(':').and_then(|colon| self.host.split_at_checked(colon)) {
            Some((host, port)) if urlparse::is_optional_port(port) => {
                (host, port.get(1..).unwrap_or_default())
            }
            _ => (self.host.as_str(), ""),
        };
        (host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host), port)
    }

    fn escaped_path(&self) -> String {
        let is_valid = |byte: u8| b"!'()*[]%".contains(&byte) || !urlparse::needs_escape(byte, UrlPart::Path);
        if self.path == "*" || self.path.bytes().all(is_valid) {
            return self.path.clone();
        }
        let path = urlparse::unescape(&self.path, UrlPart::Path).unwrap_or_default();
        let mut escaped = String::with_capacity(path.len());
        for byte in path.bytes() {
            if urlparse::needs_escape(byte, UrlPart::Path) {
                // Writing to a string does not fail.
                let _ = write!(escaped, "%{byte:02X}");
            } else {
                escaped.push(char::from(byte));
            }
        }
        escaped
    }

    /// The query parameters: the values of each name, as far as they are valid.
    fn query(&self) -> Map {
        let mut values: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for pair in self.query.iter().flat_map(|query| query.split('&')) {
            if pair.is_empty() || pair.contains(';') {
                continue;
            }
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            if let (Ok(name), Ok(value)) =
                (urlparse::unescape(name, UrlPart::Query), urlparse::unescape(value, UrlPart::Query))
            {
                values.entry(name).or_default().push(Value::string(value));
            }
        }
        Map::of_names(
            values.into_iter().map(|(name, values)| (name.into(), Value::list(values))),
            MapLookup::Values,
        )
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.scheme.is_empty() {
            write!(f, "{}:", self.scheme)?;
        }
        f.write_str(&self.opaque)?;
        if self.has_authority && (!self.host.is_empty() || !self.path.is_empty() || self.user.is_some()) {
            f.write_str("//")?;
        }
        if let Some(user) = &self.user {
            write!(f, "{user}@")?;
        }
        write!(f, "{}{}", self.host, self.escaped_path())?;
        if let Some(query) = &self.query {
            write!(f, "?{query}")?;
        }
        if !self.fragment.is_empty() {
            write!(f, "#{}", self.fragment)?;
        }
        Ok(())
    }
}

pub(super) fn try_call(name: &str, args: &[Value]) -> Option<Evaluated> {
    Some(match (name, args) {
        ("url", [Value::String(text)]) => {
            let url = urlparse::parse_request_uri(text).and_then(|_| urlparse::parse_reference(text));
            let failed =
                |problem| eval_error(format!("URL parse error during conversion from string: {problem}"));
            url.map_or_else(failed, |url| Ok(Value::Url(Arc::new(url))))
        }
        ("isURL", [Value::String(text)]) => Ok(Value::Bool(urlparse::parse_request_uri(text).is_ok())),
        ("getScheme", [Value::Url(url)]) => Ok(Value::string(url.scheme.as_str())),
        ("getHost", [Value::Url(url)]) => Ok(Value::string(url.host.as_str())),
        ("getHostname", [Value::Url(url)]) => Ok(Value::string(url.host_and_port().0)),
        ("getPort", [Value::Url(url)]) => Ok(Value::string(url.host_and_port().1)),
        ("getEscapedPath", [Value::Url(url)]) => Ok(Value::string(url.escaped_path())),
        ("getQuery", [Value::Url(url)]) => Ok(Value::Map(Arc::new(url.query()))),
        _ => return None,
    })
}
