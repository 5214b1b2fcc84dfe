//! Requests to the API server: JSON text in, JSON text out.
//!
//! kube brings credentials, TLS and the connection; texts are read with `doc`, as everywhere, so that an object is
//! parsed once and copied never. An answer that is not a success is a [`Trouble`] that says what the API server said.

use std::future::poll_fn;
use std::path::Path;
use std::pin::Pin;
use std::time::Duration;

use anyhow::Context as _;
use http::{Method, Request, Response};
use http_body::Body as _;
use kube::Config;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};

use super::retry::Timing;
use crate::doc;

/// Longest line of a watch: an object of the API server has at most a few MiB.
const LONGEST_LINE: usize = 32 << 20;

/// Largest kubeconfig; certificates of a hundred clusters fit.
const MAX_KUBECONFIG: u64 = 1 << 20;

/// The full objects.
pub(super) const OBJECTS: &str = "application/json";

/// Why there is no answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Trouble {
    /// The API server refuses.
    Refused {
        /// 403, 404, 410, …
        code: u16,
        /// In its own words.
        message: String,
    },
    /// The API server cannot be reached, or stopped in the middle.
    Unreachable(String),
}

impl Trouble {
    /// The status code, 0 if there was no answer.
    pub fn code(&self) -> u16 {
        match self {
            Trouble::Refused { code, .. } => *code,
            Trouble::Unreachable(_) => 0,
        }
    }
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Trouble::Refused { code, message } => write!(f, "the API server answers {code}: {message}"),
            Trouble::Unreachable(why) => write!(f, "the API server cannot be reached: {why}"),
        }
    }
}

impl std::error::Error for Trouble {}

/// A connection to an API server.
#[derive(Clone)]
pub(super) struct Client {
    client: kube::Client,
    timing: Timing,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

impl Client {
    /// Reads the configuration; connects to nothing.
    pub(super) async fn open(kubeconfig: Option<&Path>, timing: Timing) -> anyhow::Result<Client> {
        let mut config = match kubeconfig {
            Some(file) => {
                check_size(file)?;
                let text = Kubeconfig::read_from(file)?;
                Config::from_custom_kubeconfig(text, &KubeConfigOptions::default()).await?
            }
            None => Config::infer().await.context(
                "cannot connect to a cluster: no kubeconfig (KUBECONFIG, ~/.kube/config) and no service account",
            )?,
        };
        config.connect_timeout = Some(timing.answer.min(Duration::from_secs(10)));
        // Every caller has its own way to try again.
        config.default_retry = false;
        let client = kube::Client::try_from(config).context("the credentials cannot be used")?;
        Ok(Client { client, timing })
    }

    /// What is at a path.
    pub(super) async fn get(&self, path: &str, accept: &str) -> Result<String, Trouble> {
        self.whole(request(Method::GET, path, accept, Body::empty())?).await
    }

    /// Server-side apply; what others own and we name becomes ours.
    pub(super) async fn apply(&self, path: &str, manager: &str, object: String) -> Result<String, Trouble> {
        let path = format!("{path}?fieldManager={manager}&force=true");
        let mut request = request(Method::PATCH, &path, OBJECTS, Body::from(object.into_bytes()))?;
        let media_type = http::HeaderValue::from_static("application/apply-patch+yaml");
        request.headers_mut().insert(http::header::CONTENT_TYPE, media_type);
        self.whole(request).await
    }

    /// A JSON merge patch.
    pub(super) async fn merge(&self, path: &str, manager: &str, patch: String) -> Result<String, Trouble> {
        let path = format!("{path}?fieldManager={manager}");
        let mut request = request(Method::PATCH, &path, OBJECTS, Body::from(patch.into_bytes()))?;
        let media_type = http::HeaderValue::from_static("application/merge-patch+json");
        request.headers_mut().insert(http::header::CONTENT_TYPE, media_type);
        self.whole(request).await
    }

    /// A watch, line by line.
    pub(super) async fn watch(&self, path: &str, accept: &str) -> Result<Lines, Trouble> {
        let response = self.head(request(Method::GET, path, accept, Body::empty())?).await?;
        Ok(Lines { body: response.into_body(), unread: Vec::new(), looked_at: 0 })
    }

    async fn whole(&self, request: Request<Body>) -> Result<String, Trouble> {
        let work = async { text(self.head(request).await?.into_body()).await };
        let late = || Trouble::Unreachable(format!("no answer in {:?}", self.timing.answer));
        // What is given up on here is dropped: a request that came too late cannot surprise anybody.
        tokio::time::timeout(self.timing.answer, work).await.map_err(|_elapsed| late())?
    }

    async fn head(&self, request: Request<Body>) -> Result<Response<Body>, Trouble> {
        let work = self.client.send(request);
        let late = || Trouble::Unreachable(format!("no answer in {:?}", self.timing.answer));
        let answered = tokio::time::timeout(self.timing.answer, work).await.map_err(|_elapsed| late())?;
        let response = answered.map_err(|error| Trouble::Unreachable(chain(&error)))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let code = response.status().as_u16();
        let text = tokio::time::timeout(self.timing.answer, text(response.into_body())).await;
        let text = text.ok().and_then(Result::ok).unwrap_or_default();
        Err(refusal(code, &text))
    }
}

/// kube reads the whole file, and paths in it are relative to where it is: a device without end must not get there.
fn check_size(kubeconfig: &Path) -> anyhow::Result<()> {
    let name = || format!("cannot read {}", kubeconfig.display());
    let found = std::fs::metadata(kubeconfig).with_context(name)?;
    let fits = found.is_file() && found.len() <= MAX_KUBECONFIG;
    anyhow::ensure!(fits, "{}: not a file of at most 1 MiB", kubeconfig.display());
    Ok(())
}

/// What a `Status` says.
pub(super) fn refusal(code: u16, text: &str) -> Trouble {
    let status = doc::parse(text).ok();
    let said = status.as_ref().map_or("", |status| status.root().get("message").str());
    let message = if said.is_empty() { text.lines().next().unwrap_or_default() } else { said };
    Trouble::Refused { code, message: message.chars().take(500).collect() }
}

fn request(method: Method, path: &str, accept: &str, body: Body) -> Result<Request<Body>, Trouble> {
    let request = Request::builder().method(method).uri(path).header(http::header::ACCEPT, accept);
    request.body(body).map_err(|error| Trouble::Unreachable(format!("{path}: {error}")))
}

async fn text(body: Body) -> Result<String, Trouble> {
    let bytes = body.collect_bytes().await.map_err(|error| Trouble::Unreachable(chain(&error)))?;
    Ok(readable(bytes.to_vec()))
}

/// The API server stores opaque parameters byte by byte, whatever they are. Go reads each bad byte as U+FFFD: one claim
/// must not keep everybody's from being read.
fn readable(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// An error with its causes: "client error (Connect): connection refused" and not only its first half.
fn chain(error: &dyn std::error::Error) -> String {
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
    text
}

/// The lines of a watch.
pub(super) struct Lines {
    body: Body,
    unread: Vec<u8>,
    /// So far there is no end of line.
    looked_at: usize,
}

impl Lines {
    /// The next line; `None` at an orderly end. What was received is kept if the caller gives up waiting.
    pub(super) async fn next(&mut self) -> Result<Option<String>, Trouble> {
        loop {
            let rest = self.unread.get(self.looked_at..).unwrap_or_default();
            if let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=self.looked_at + end).collect();
                self.looked_at = 0;
                let line = readable(line);
                if line.trim().is_empty() {
                    continue;
                }
                return Ok(Some(line));
            }
            self.looked_at = self.unread.len();
            if self.unread.len() > LONGEST_LINE {
                return Err(Trouble::Unreachable(format!("a line of more than {LONGEST_LINE} bytes")));
            }
            match poll_fn(|cx| Pin::new(&mut self.body).poll_frame(cx)).await {
                Some(Ok(frame)) => {
                    if let Ok(bytes) = frame.into_data() {
                        self.unread.extend_from_slice(&bytes);
                    }
                }
                Some(Err(error)) => return Err(Trouble::Unreachable(chain(&error))),
                None => return Ok(None),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::readable;

    #[test]
    fn a_bad_byte_is_read_as_go_reads_it() {
        assert_eq!(readable(b"{\"a\":\"\xff\xc3\xa9\"}".to_vec()), "{\"a\":\"\u{fffd}\u{e9}\"}");
    }
}
