//! Requests to the API server: JSON text in, JSON text out.
//!
//! kube handles credentials, TLS and the connection; responses are parsed with `doc`, as everywhere, so that an object
//! is parsed once and never copied. A response that is not a success is an [`ApiError`] with the API server's message.

use std::future::poll_fn;
use std::ops::ControlFlow;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Method, Request, Response};
use http_body::Body as _;
use kube::client::Body;
use kube::config::AuthInfo;
use secrecy::ExposeSecret as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::api_error::{ApiError, status_error};
use super::exec_plugin::ExecPlugin;
use super::kubeconfig::{self, error_without_secrets};
use super::retry::Timing;
use super::token_file::{TokenFile, bearer_header};
use super::watch_lines::WatchLines;

/// Number of bytes that are kept of a response or line that is too long: its beginning names the object.
pub(super) const KEPT_HEAD_BYTES: usize = 16 << 10;

/// Media type that requests full objects, instead of their metadata only.
pub(super) const FULL_OBJECTS: &str = "application/json";

/// Largest response that is read line by line; the metrics of an API server have a few MiB.
const MAX_LINES_RESPONSE_BYTES: usize = 64 << 20;
/// Maximum length in bytes of a line of `/metrics`.
const MAX_METRIC_LINE_BYTES: usize = 1 << 20;

/// Maximum size in bytes of a response with one object, and of the text of an error response.
const MAX_RESPONSE_BYTES: usize = 32 << 20;
/// User agent of all requests, by which the audit log of an API server shows those of Tollgate.
const USER_AGENT: &str = concat!("tollgate/", env!("CARGO_PKG_VERSION"));

/// Which API server to connect to: a kubeconfig, a context, or the cluster of this pod.
#[derive(Clone, Copy, Default, Debug)]
pub struct ClusterTarget<'t> {
    /// Path of a kubeconfig. Without it, `KUBECONFIG`, `~/.kube/config`, or the service account of the pod is used.
    pub kubeconfig: Option<&'t Path>,
    /// Name of a context of the kubeconfig. Without it, the current context is used.
    pub context: Option<&'t str>,
}

/// The context and URL of the API server that a client connects to, for messages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ApiEndpoint {
    /// The context of the kubeconfig; `None` for the service account of a pod.
    pub context: Option<String>,
    /// The URL of the API server.
    pub server: String,
}

impl std::fmt::Display for ApiEndpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.context {
            Some(context) => write!(f, "context {context} ({})", self.server),
            None => write!(f, "the cluster of this pod ({})", self.server),
        }
    }
}

/// Sends requests to one API server, with its credentials and timeouts.
#[derive(Clone)]
pub(super) struct ApiClient {
    client: kube::Client,
    /// The token, if it is in a file; other credentials are in the client.
    token: Option<TokenFile>,
    /// The plugin that issues tokens.
    plugin: Option<ExecPlugin>,
    pub(super) timing: Timing,
    pub(super) endpoint: ApiEndpoint,
    /// Held while a page or a long line is in memory, so that all watches together have only one in memory.
    large: Arc<Semaphore>,
}

/// The text of one page of a list, and the permit to keep it in memory.
pub(super) struct Page {
    pub(super) text: String,
    /// `None` only if the client has ended.
    _permit: Option<OwnedSemaphorePermit>,
}

impl std::fmt::Debug for ApiClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

impl ApiClient {
    /// Reads the configuration; does not connect. For inside of a runtime.
    pub(super) fn from_target_without_connecting(
        target: ClusterTarget<'_>,
        timing: Timing,
    ) -> anyhow::Result<ApiClient> {
        let (mut config, context) = kubeconfig::load_config(target)?;
        config.connect_timeout = Some(timing.request_timeout.min(Duration::from_secs(10)));
        // Every caller retries in its own way.
        config.default_retry = false;
        let server =
            without_url_credentials(&config.cluster_url.to_string()).trim_end_matches('/').to_owned();
        // kube takes for granted that it is.
        let token = config.auth_info.token.as_ref();
        if token.is_some_and(|token| bearer_header(token.expose_secret()).is_none()) {
            anyhow::bail!(
                "the token in the kubeconfig contains characters that are not allowed in a token, such as a line break"
            );
        }
        // kube prefers these to a token file. Of a token and a file kubectl uses the file, while it can be read.
        let auth = &mut config.auth_info;
        let has_other = auth.username.is_some() || auth.auth_provider.is_some();
        let token_file = if has_other { None } else { auth.token_file.take() };
        let token = match token_file.map(|file| TokenFile::open(Path::new(&file))) {
            Some(Err(_)) if auth.token.is_some() => None,
            token => token.transpose()?,
        };
        if token.is_some() {
            auth.token = None;
        }
        let plugin = run_exec_plugin_if_only_credential(auth, token.is_some())
            .context("cannot use the credentials")?;
        let client = kube::Client::try_from(config)
            .map_err(|error| error_without_secrets(&error))
            .context("cannot use the credentials")?;
        let (endpoint, large) = (ApiEndpoint { context, server }, Arc::new(Semaphore::new(1)));
        Ok(ApiClient { client, token, plugin, timing, endpoint, large })
    }

    /// Returns the same client with other timeouts and retry intervals.
    pub(super) fn with_timing(&self, timing: Timing) -> ApiClient {
        ApiClient { timing, ..self.clone() }
    }

    /// Gets the object or list at a path.
    pub(super) async fn get(&self, path: &str) -> Result<String, ApiError> {
        self.get_object(path, FULL_OBJECTS, MAX_RESPONSE_BYTES).await
    }

    /// Gets the object at a path; `None` if there is none.
    pub(super) async fn get_if_exists(&self, path: &str) -> Result<Option<String>, ApiError> {
        match self.get(path).await {
            Err(error) if error.http_status_or_zero() == 404 => Ok(None),
            answer => answer.map(Some),
        }
    }

    /// Gets the resource at a path, up to `limit` bytes. Returns the response even if its status is an error.
    pub(super) async fn get_with_any_status(
        &self,
        path: &str,
        limit: usize,
    ) -> Result<Response<String>, ApiError> {
        self.send_and_read_any_status(build_request(Method::GET, path, FULL_OBJECTS, None)?, limit).await
    }

    /// Gets a page of a list; an error if it has more than `limit` bytes.
    pub(super) async fn get_page(&self, path: &str, accept: &str, limit: usize) -> Result<Page, ApiError> {
        let permit = self.large.clone().acquire_owned().await.ok();
        let text = self.get_object(path, accept, limit).await?;
        Ok(Page { text, _permit: permit })
    }

    /// Gets one object; an error if it has more than `limit` bytes.
    pub(super) async fn get_object(
        &self,
        path: &str,
        accept: &str,
        limit: usize,
    ) -> Result<String, ApiError> {
        self.send_and_read(build_request(Method::GET, path, accept, None)?, limit).await
    }

    /// Sends a request with an object, or without one; returns the response even if its status is an error.
    pub(super) async fn send_with_any_status(
        &self,
        method: Method,
        path: &str,
        object: Option<String>,
    ) -> Result<Response<String>, ApiError> {
        let content = object.map(|object| (FULL_OBJECTS, object));
        self.send_and_read_any_status(build_request(method, path, FULL_OBJECTS, content)?, MAX_RESPONSE_BYTES)
            .await
    }

    /// Adds the `Authorization` header to a request, if there is a token file or an exec plugin.
    async fn add_token(&self, mut request: Request<Body>) -> Result<Request<Body>, ApiError> {
        let header = match (&self.token, &self.plugin) {
            (Some(token), _) => Some(token.auth_header()),
            (None, Some(plugin)) => {
                plugin.auth_header().await.map_err(|error| ApiError::Unexpected(format!("{error:#}")))?
            }
            (None, None) => None,
        };
        if let Some(header) = header {
            request.headers_mut().insert(http::header::AUTHORIZATION, header);
        }
        Ok(request)
    }

    /// Sends a request with its credentials. After a 401, the exec plugin issues new ones for the next request.
    async fn send_authorized(&self, request: Request<Body>) -> Result<Response<Body>, ApiError> {
        let response = self.client.send(self.add_token(request).await?).await;
        let response = response.map_err(|error| ApiError::Unreachable(error_chain(&error)))?;
        if let Some(plugin) = self.plugin.as_ref().filter(|_| response.status().as_u16() == 401) {
            plugin.mark_refused().await;
        }
        Ok(response)
    }

    /// Sends a request and reads the body; an error if it has more than `limit` bytes. Returns the response even if its
    /// status is an error.
    async fn send_and_read_any_status(
        &self,
        request: Request<Body>,
        limit: usize,
    ) -> Result<Response<String>, ApiError> {
        let work = async {
            let response = self.send_authorized(request).await?;
            let (head, body) = response.into_parts();
            Ok(Response::from_parts(head, read_body_or_fail_beyond_limit(body, limit).await?))
        };
        self.within_timeout(work).await
    }

    /// Runs `work`, and returns an error if it takes longer than a request may. The work is dropped then, so that a
    /// late request has no effect.
    async fn within_timeout<T>(
        &self,
        work: impl Future<Output = Result<T, ApiError>>,
    ) -> Result<T, ApiError> {
        let timeout = self.timing.request_timeout;
        let timed_out = |_elapsed| ApiError::Unreachable(format!("no response within {timeout:?}"));
        tokio::time::timeout(timeout, work).await.map_err(timed_out)?
    }

    /// Sends a server-side apply, which takes over fields that other managers own; returns the stored object.
    pub(super) async fn force_server_side_apply(
        &self,
        path: &str,
        manager: &str,
        object: String,
    ) -> Result<String, ApiError> {
        let path = format!("{path}?fieldManager={manager}&force=true");
        self.patch(&path, "application/apply-patch+yaml", object).await
    }

    /// Sends a JSON merge patch; returns the stored object.
    pub(super) async fn merge_patch(
        &self,
        path: &str,
        manager: &str,
        patch: String,
    ) -> Result<String, ApiError> {
        let path = format!("{path}?fieldManager={manager}");
        self.patch(&path, "application/merge-patch+json", patch).await
    }

    async fn patch(&self, path: &str, media_type: &'static str, patch: String) -> Result<String, ApiError> {
        let request = build_request(Method::PATCH, path, FULL_OBJECTS, Some((media_type, patch)))?;
        self.send_and_read(request, MAX_RESPONSE_BYTES).await
    }

    /// Opens a watch, which is read line by line.
    pub(super) async fn watch(&self, path: &str, accept: &str) -> Result<WatchLines, ApiError> {
        let response = self.send_and_require_success(build_request(Method::GET, path, accept, None)?).await?;
        Ok(WatchLines::new(response.into_body(), self.large.clone()))
    }

    /// Reads a response of any size line by line, until `read` says that it has enough. Only one line is in memory.
    pub(super) async fn read_lines(
        &self,
        path: &str,
        accept: &str,
        mut read: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<(), ApiError> {
        let work = async {
            let mut body = self
                .send_and_require_success(build_request(Method::GET, path, accept, None)?)
                .await?
                .into_body();
            let (mut rest, mut size) = (Vec::new(), 0_usize);
            while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
                let frame = frame.map_err(|error| ApiError::Unreachable(error_chain(&error)))?;
                let Ok(bytes) = frame.into_data() else { continue };
                size = size.saturating_add(bytes.len());
                if size > MAX_LINES_RESPONSE_BYTES {
                    return Err(ApiError::Unreachable(format!(
                        "{path} has more than {MAX_LINES_RESPONSE_BYTES} bytes"
                    )));
                }
                rest.extend_from_slice(&bytes);
                if let Some(end) = rest.iter().rposition(|byte| *byte == b'\n') {
                    let complete = rest.get(..end).unwrap_or_default();
                    if complete.split(|byte| *byte == b'\n').any(|line| read(line).is_break()) {
                        return Ok(());
                    }
                    rest.drain(..=end);
                }
                if rest.len() > MAX_METRIC_LINE_BYTES {
                    return Err(ApiError::Unreachable(format!(
                        "{path} has a line of more than {MAX_METRIC_LINE_BYTES} bytes"
                    )));
                }
            }
            let _ = read(&rest);
            Ok(())
        };
        self.within_timeout(work).await
    }

    /// Sends a request and reads the body; an error if the status is one, or if the body has more than `limit` bytes.
    async fn send_and_read(&self, request: Request<Body>, limit: usize) -> Result<String, ApiError> {
        let response = self.send_and_read_any_status(request, limit).await?;
        let (code, text) = (response.status(), response.into_body());
        if code.is_success() { Ok(text) } else { Err(status_error(code.as_u16(), &text)) }
    }

    /// Sends a request; an error status is an error, with the message of the API server. The body is not read yet.
    async fn send_and_require_success(&self, request: Request<Body>) -> Result<Response<Body>, ApiError> {
        let response = self.within_timeout(self.send_authorized(request)).await?;
        if response.status().is_success() {
            return Ok(response);
        }
        let code = response.status().as_u16();
        let text = self
            .within_timeout(read_body_or_fail_beyond_limit(response.into_body(), MAX_RESPONSE_BYTES))
            .await;
        Err(status_error(code, &text.unwrap_or_default()))
    }
}

/// Runs the exec plugin of a user and puts the client certificate that it issues into `auth`. Returns `None` if there
/// is no plugin, or other credentials, which kubectl prefers to it.
fn run_exec_plugin_if_only_credential(
    auth: &mut AuthInfo,
    has_token_file: bool,
) -> anyhow::Result<Option<ExecPlugin>> {
    let has_certificate = auth.client_certificate.is_some() || auth.client_certificate_data.is_some();
    let has_other = has_token_file || auth.token.is_some() || auth.username.is_some() || has_certificate;
    let Some(exec) = auth.exec.take().filter(|_| !has_other) else { return Ok(None) };
    let (plugin, pair) = ExecPlugin::from_first_run(exec)?;
    if let Some(pair) = pair {
        auth.client_certificate_data = Some(STANDARD.encode(pair.certificate));
        auth.client_key_data = Some(STANDARD.encode(pair.key).into());
    }
    Ok(Some(plugin))
}

/// Removes user name and password from an unusable URL, so that an error message can name it. In such a URL, it is not
/// clear where a password begins or ends, so everything between the scheme and the last `@` is removed.
pub(super) fn redact_unusable_url(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").map_or((None, url), |(scheme, rest)| (Some(scheme), rest));
    let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    scheme.map_or_else(|| host.to_owned(), |scheme| format!("{scheme}://{host}"))
}

/// The text with user names and passwords removed from the URLs in it. A password may contain characters that end a
/// host: unless a URL starts with a host, everything up to the last `@` is removed.
pub(super) fn without_url_credentials(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let before_path = rest.split('/').next().unwrap_or_default();
    // After the URL, the text goes on. An `@` there may also belong to a password with such characters.
    let authority = before_path.split([' ', ')']).next().unwrap_or_default();
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let is_host = !authority.is_empty()
        && !before_path.contains('@')
        && (authority.ends_with(']') || authority.rsplit_once(':').is_none_or(|(_, port)| is_port(port)));
    match rest.strip_prefix(authority).filter(|_| is_host) {
        Some(after) => format!("{scheme}://{authority}{}", without_url_credentials(after)),
        None => format!("{scheme}://{}", rest.rsplit_once('@').map_or(rest, |(_, host)| host)),
    }
}

/// Builds a request with the headers `Accept` and `User-Agent`.
fn build_request(
    method: Method,
    path: &str,
    accept: &str,
    content: Option<(&'static str, String)>,
) -> Result<Request<Body>, ApiError> {
    let mut request = Request::builder().method(method).uri(path).header(http::header::ACCEPT, accept);
    request = request.header(http::header::USER_AGENT, USER_AGENT);
    let mut body = Body::empty();
    if let Some((media_type, text)) = content {
        request = request.header(http::header::CONTENT_TYPE, media_type);
        body = Body::from(text.into_bytes());
    }
    request.body(body).map_err(|error| ApiError::Unreachable(format!("{path}: {error}")))
}

/// Reads a body as text; an error with its beginning if it has more than `limit` bytes.
async fn read_body_or_fail_beyond_limit(mut body: Body, limit: usize) -> Result<String, ApiError> {
    let mut read = Vec::new();
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let frame = frame.map_err(|error| ApiError::Unreachable(error_chain(&error)))?;
        if let Ok(bytes) = frame.into_data() {
            append_without_doubling(&mut read, &bytes);
        }
        if read.len() > limit {
            read.truncate(KEPT_HEAD_BYTES);
            return Err(ApiError::TooLarge { limit, head: decode_lossy(read) });
        }
    }
    Ok(decode_lossy(read))
}

/// Appends bytes to a buffer. A buffer of more than 1 MiB grows only by what is needed, instead of doubling.
pub(super) fn append_without_doubling(read: &mut Vec<u8>, bytes: &[u8]) {
    if read.capacity() - read.len() < bytes.len() && read.len() > 1 << 20 {
        read.reserve_exact(bytes.len().max(1 << 20));
    }
    read.extend_from_slice(bytes);
}

/// Decodes UTF-8 as Go does: invalid bytes, such as in the opaque parameters of one claim, become U+FFFD.
pub(super) fn decode_lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// An error with its causes: "client error (Connect): connection refused", not only the first part.
pub(super) fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let cause = error.to_string();
        if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
        source = error.source();
    }
    without_library_details(&text)
}

/// The text of an error without what only helps developers: the name of kube's error, and the link of rustls.
fn without_library_details(text: &str) -> String {
    let text = text.strip_prefix("ServiceError: ").unwrap_or(text);
    let Some((before, link)) = text.split_once(": https://docs.rs/rustls/") else { return text.to_owned() };
    match link.split_once(": ") {
        Some((_, after)) => format!("{before}: {after}"),
        None => before.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{decode_lossy, without_library_details, without_url_credentials};

    #[test]
    fn an_error_names_no_library() {
        let eof = "peer closed connection without sending TLS close_notify";
        let link = "https://docs.rs/rustls/latest/rustls/manual/_03_howto/index.html#unexpected-eof";
        let connect = "ServiceError: client error (Connect): refused";
        assert_eq!(without_library_details(connect), "client error (Connect): refused");
        assert_eq!(without_library_details(&format!("read: {eof}: {link}")), format!("read: {eof}"));
        assert_eq!(without_library_details(&format!("{eof}: {link}: again")), format!("{eof}: again"));
    }

    #[test]
    fn a_bad_byte_is_read_as_go_reads_it() {
        assert_eq!(decode_lossy(b"{\"a\":\"\xff\xc3\xa9\"}".to_vec()), "{\"a\":\"\u{fffd}\u{e9}\"}");
    }

    #[test]
    fn a_url_is_printed_without_a_password() {
        assert_eq!(without_url_credentials("https://u:SECRET@127.0.0.1:1/x"), "https://127.0.0.1:1/x");
        assert_eq!(without_url_credentials("https://u)s :SECRET@a.example.com"), "https://a.example.com");
        assert_eq!(without_url_credentials("https://a.example.com/@b"), "https://a.example.com/@b");
        let chain = "https://a.example.com/x: http://u:SECRET@b.example.com: refused";
        assert_eq!(without_url_credentials(chain), "https://a.example.com/x: http://b.example.com: refused");
        for (host, port) in [("a.example.com", ":6443"), ("[::1]", ""), ("[::1]", ":1")] {
            let url = format!("https://{host}{port}/@b");
            assert_eq!(without_url_credentials(&url), url);
        }
    }
}
