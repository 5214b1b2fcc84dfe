//! Checks who sent a request, by its head, before its body is read or anything is answered.
//!
//! A web page in the same browser can send requests to a port of this machine, and a name that an attacker controls can
//! point to 127.0.0.1. Such requests are recognized by headers that the browser sets and a page cannot forge: `Host`,
//! `Origin` and `Sec-Fetch-Site`. Whether the client has a session is checked afterwards.
//!
//! Invariant: a request that passes was addressed to this server by a name of the loopback interface, and no page of
//! another origin caused it.

use actix_web::dev::RequestHead;
use actix_web::http::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderName, ORIGIN};
use actix_web::http::{Method, StatusCode};

/// Maximum size in bytes of all headers of a request. A browser sends about one thousand.
const MAX_HEADER_BYTES: usize = 16 << 10;
/// Maximum length in bytes of a path with its query.
const MAX_TARGET_BYTES: usize = 4 << 10;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Why a request is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) text: &'static str,
}

const fn refusal(status: StatusCode, text: &'static str) -> Refusal {
    Refusal { status, text }
}

pub(crate) const NOT_FOUND: Refusal =
    refusal(StatusCode::NOT_FOUND, "not found; the pages are / and /what-if");
pub(crate) const NO_SESSION: Refusal = refusal(
    StatusCode::FORBIDDEN,
    "this browser has no session; open the address that `tollgate ui` printed, or press Enter there to get a new one",
);
pub(crate) const USED_TOKEN: Refusal = refusal(
    StatusCode::FORBIDDEN,
    "this address was used before or is not valid; press Enter where `tollgate ui` runs to get a new one",
);
pub(crate) const TOO_LARGE: Refusal =
    refusal(StatusCode::PAYLOAD_TOO_LARGE, "the request is larger than 1 MiB");
pub(crate) const TOO_SLOW: Refusal =
    refusal(StatusCode::REQUEST_TIMEOUT, "the request took too long to arrive");
pub(crate) const TOO_MANY_OPEN_PAGES: Refusal =
    refusal(StatusCode::SERVICE_UNAVAILABLE, "too many pages are open; close some of them");
pub(crate) const BROKEN_BODY: Refusal = refusal(StatusCode::BAD_REQUEST, "the request ended early");
pub(crate) const NO_REVISION: Refusal =
    refusal(StatusCode::BAD_REQUEST, "expected the number of a revision, such as /updates?since=0");
const WRONG_TARGET: Refusal = refusal(StatusCode::BAD_REQUEST, "expected a path, such as /what-if");
const WRONG_HOST: Refusal = refusal(
    StatusCode::MISDIRECTED_REQUEST,
    "the host in the address is not this server; use the address that `tollgate ui` printed",
);
const WRONG_ORIGIN: Refusal = refusal(
    StatusCode::FORBIDDEN,
    "requests from other sites are refused; paste the address into the address bar instead",
);
const NO_ORIGIN: Refusal = refusal(StatusCode::FORBIDDEN, "the header Origin is required");
const WRONG_METHOD: Refusal = refusal(StatusCode::METHOD_NOT_ALLOWED, "use GET");
const WRONG_CONTENT_TYPE: Refusal =
    refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the header Content-Type must be application/json");
const LARGE_HEAD: Refusal =
    refusal(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "the headers are larger than 16 KiB");

/// The accepted values of the header `Host`, which are the names of this server on loopback.
#[derive(Clone, Debug)]
pub(crate) struct AcceptedHosts(Vec<String>);

impl AcceptedHosts {
    /// The accepted hosts of a server that listens on that port.
    pub(crate) fn of_port(port: u16) -> AcceptedHosts {
        // A browser leaves the port of the scheme out.
        let port = if port == 80 { String::new() } else { format!(":{port}") };
        AcceptedHosts(["127.0.0.1", "localhost", "[::1]"].map(|name| format!("{name}{port}")).to_vec())
    }

    /// Checks the size, target, host, origin, method and content type of a request; its session and body are checked
    /// later. `takes_body` says that the path takes a POST.
    pub(crate) fn check_head(&self, head: &RequestHead, takes_body: bool) -> Result<(), Refusal> {
        let target = head.uri.path_and_query().map_or(0, |target| target.as_str().len());
        let headers = head.headers().iter();
        let header_bytes: usize = headers.map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
        if header_bytes > MAX_HEADER_BYTES || target > MAX_TARGET_BYTES {
            return Err(LARGE_HEAD);
        }
        // A proxy would be asked with a whole address.
        if head.uri.authority().is_some() || !head.uri.path().starts_with('/') {
            return Err(WRONG_TARGET);
        }
        let host =
            header_value_if_not_repeated(head.headers(), &HOST).ok_or(WRONG_HOST)?.ok_or(WRONG_HOST)?;
        if !self.0.iter().any(|known| known == host) {
            return Err(WRONG_HOST);
        }
        let site = header_value_if_not_repeated(head.headers(), &SEC_FETCH_SITE).ok_or(WRONG_ORIGIN)?;
        // `none`: typed, pasted or a bookmark. `same-site` is another port of this machine.
        if site.is_some_and(|site| site != "same-origin" && site != "none") {
            return Err(WRONG_ORIGIN);
        }
        let origin = header_value_if_not_repeated(head.headers(), &ORIGIN).ok_or(WRONG_ORIGIN)?;
        if origin.is_some_and(|origin| origin.strip_prefix("http://") != Some(host)) {
            return Err(WRONG_ORIGIN);
        }
        match head.method {
            Method::POST if !takes_body => Err(WRONG_METHOD),
            Method::POST if origin.is_none() => Err(NO_ORIGIN),
            Method::POST
                if header_value_if_not_repeated(head.headers(), &CONTENT_TYPE)
                    != Some(Some("application/json")) =>
            {
                Err(WRONG_CONTENT_TYPE)
            }
            Method::GET | Method::HEAD | Method::POST => Ok(()),
            _ => Err(WRONG_METHOD),
        }
    }
}

/// The only value of a header, and `Some(None)` if the header is absent; `None` if it is there twice or is not ASCII.
#[expect(clippy::option_option, reason = "an absent header is allowed where a doubled one is not")]
fn header_value_if_not_repeated<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<Option<&'h str>> {
    let mut values = headers.get_all(name);
    let Some(first) = values.next() else { return Some(None) };
    match values.next() {
        None => first.to_str().ok().map(Some),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{AcceptedHosts, StatusCode};
    use actix_web::test::TestRequest;

    /// The status for a request with these headers; 200 if it passes.
    fn status(method: &str, headers: &[(&'static str, &str)], takes_body: bool) -> u16 {
        let mut request = TestRequest::default().method(method.parse().unwrap()).uri("/what-if");
        for (name, value) in headers {
            request = request.append_header((*name, *value));
        }
        let request = request.to_http_request();
        let found = AcceptedHosts::of_port(8000).check_head(request.head(), takes_body);
        found.map_or_else(|refusal| refusal.status, |()| StatusCode::OK).as_u16()
    }

    #[test]
    fn only_the_own_names_and_the_own_origin_pass() {
        let host = ("Host", "127.0.0.1:8000");
        for (headers, expected) in [
            (vec![host], 200),
            (vec![("Host", "localhost:8000")], 200),
            (vec![("Host", "[::1]:8000")], 200),
            (vec![], 421),
            (vec![host, host], 421),
            (vec![("Host", "127.0.0.1")], 421),
            (vec![("Host", "127.0.0.1:8001")], 421),
            (vec![("Host", "127.0.0.1:8000.attacker.example")], 421),
            (vec![("Host", "attacker.example:8000")], 421),
            (vec![("Host", "LOCALHOST:8000")], 421),
            (vec![("Host", "0.0.0.0:8000")], 421),
            (vec![host, ("Sec-Fetch-Site", "none")], 200),
            (vec![host, ("Sec-Fetch-Site", "same-origin")], 200),
            (vec![host, ("Sec-Fetch-Site", "same-site")], 403),
            (vec![host, ("Sec-Fetch-Site", "cross-site")], 403),
            (vec![host, ("Sec-Fetch-Site", "none"), ("Sec-Fetch-Site", "cross-site")], 403),
            (vec![host, ("Origin", "http://127.0.0.1:8000")], 200),
            (vec![host, ("Origin", "http://localhost:8000")], 403),
            (vec![host, ("Origin", "https://127.0.0.1:8000")], 403),
            (vec![host, ("Origin", "http://127.0.0.1:8001")], 403),
            (vec![host, ("Origin", "null")], 403),
            (vec![host, ("Origin", "http://attacker.example")], 403),
        ] {
            assert_eq!(status("GET", &headers, true), expected, "{headers:?}");
        }
    }

    #[test]
    fn a_post_needs_an_origin_and_json() {
        let host = ("Host", "127.0.0.1:8000");
        let origin = ("Origin", "http://127.0.0.1:8000");
        let json = ("Content-Type", "application/json");
        assert_eq!(status("POST", &[host, origin, json], true), 200);
        assert_eq!(status("POST", &[host, origin, json], false), 405);
        assert_eq!(status("POST", &[host, json], true), 403);
        assert_eq!(status("POST", &[host, origin], true), 415);
        assert_eq!(status("POST", &[host, origin, ("Content-Type", "text/plain")], true), 415);
        for method in ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "PROPFIND"] {
            assert_eq!(status(method, &[host, origin, json], true), 405, "{method}");
        }
        let long = "x".repeat(17 << 10);
        assert_eq!(status("GET", &[host, ("X", &long)], true), 431);
    }
}
