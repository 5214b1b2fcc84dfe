//! HTTP/1.1 on loopback: listeners, limits and timeouts, and the way from a request to the [`Site`].
//!
//! Each connection serves one request: on loopback a new one costs nothing, and then no client can keep one open
//! between requests. The paths are a closed list, compared byte by byte; no file is ever opened for a request.
//!
//! Invariant: nothing of the site is answered unless the guard passed and the request has a session, and every answer
//! has the headers that keep it from being stored, framed, sniffed or given to another origin.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use actix_web::body::BoxBody;
use actix_web::http::header::{
    ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, COOKIE, HeaderName, LOCATION,
    REFERRER_POLICY, SET_COOKIE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use actix_web::http::{KeepAlive, Method, StatusCode};
use actix_web::web::{Bytes, Data, Payload};
use actix_web::{App, HttpRequest, HttpResponse, HttpResponseBuilder, HttpServer, rt, web};
use anyhow::Context as _;
use percent_encoding::percent_decode_str;
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::time::timeout;

use crate::guard::{
    AcceptedHosts, BROKEN_BODY, NO_REVISION, NO_SESSION, NOT_FOUND, Refusal, TOO_LARGE, TOO_MANY_OPEN_PAGES,
    TOO_SLOW, USED_TOKEN,
};
use crate::session::Sessions;

/// Maximum size in bytes of the body of a question.
const MAX_QUESTION_BYTES: usize = 1 << 20;

/// Timeouts of clients, and limits on their number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Time limit for the head of a request.
    pub head: Duration,
    /// Time limit for the body of a request.
    pub body: Duration,
    /// Time that a page's request for changes waits before it is answered without any.
    pub poll: Duration,
    /// Time limit for the answer to a question.
    pub question: Duration,
    /// Maximum number of open connections; more of them wait to be accepted.
    pub connections: usize,
    /// Maximum number of pages that wait for a change at the same time.
    pub polls: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            head: Duration::from_secs(5),
            body: Duration::from_secs(10),
            poll: Duration::from_secs(25),
            question: Duration::from_mins(10),
            connections: 512,
            polls: 64,
        }
    }
}

/// Content-Security-Policy of an answer that is not a page: it loads nothing and runs nothing.
const CSP_FOR_NON_PAGES: &str =
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The path to which questions are posted.
const QUESTION_PATH: &str = "/what-if";

const HTML: &str = "text/html; charset=utf-8";

/// The body and content type of a response, without the headers that all responses have.
#[derive(Clone, Debug)]
pub struct Answer {
    pub content_type: &'static str,
    pub body: Bytes,
    /// The Content-Security-Policy, if the response is a page.
    policy: Option<String>,
}

impl Answer {
    /// A page with its Content-Security-Policy. No other site may show it in a frame.
    pub fn page(body: impl Into<Bytes>, policy: &str) -> Answer {
        let policy = Some(format!("{policy}; frame-ancestors 'none'"));
        Answer { content_type: HTML, body: body.into(), policy }
    }

    /// A fragment of HTML that a page inserts.
    pub fn html_fragment(body: impl Into<Bytes>) -> Answer {
        Answer { content_type: HTML, body: body.into(), policy: None }
    }

    /// Data for the script of the pages.
    pub fn json(body: impl Into<Bytes>) -> Answer {
        Answer { content_type: "application/json", body: body.into(), policy: None }
    }
}

/// The parameters of a request, decoded.
#[derive(Debug)]
pub struct Query(Vec<(String, String)>);

impl Query {
    fn parse_valid_pairs(text: &str) -> Query {
        let decode =
            |part: &str| percent_decode_str(part).decode_utf8().ok().map(std::borrow::Cow::into_owned);
        let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
        Query(pairs.filter_map(|(name, value)| Some((decode(name)?, decode(value)?))).collect())
    }

    /// The value of a query parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// The content that a [`LoopbackServer`] serves.
pub trait Site: Send + Sync + 'static {
    /// The answer for a path; `None` if there is no such page.
    fn get(&self, path: &str, query: &Query) -> Option<Answer>;

    /// Watches the revision of the content, a number that grows with every change.
    fn revision(&self) -> watch::Receiver<u64>;

    /// The changes of the content after that revision, as JSON.
    fn changes_since(&self, revision: u64) -> Answer;

    /// Starts to answer a question on another thread. The sender is dropped if a newer question of the same page replaces
    /// it, or if too many pages ask.
    fn ask_replacing_earlier_question(&self, question: Bytes) -> oneshot::Receiver<Answer>;
}

/// A server that is bound to a port of the loopback interface.
#[derive(Debug)]
pub struct LoopbackServer {
    listeners: Vec<TcpListener>,
    port: u16,
    sessions: Arc<Sessions>,
}

/// Creates URLs that open a session in the browser.
#[derive(Clone, Debug)]
pub struct SessionUrlIssuer {
    port: u16,
    sessions: Arc<Sessions>,
}

impl SessionUrlIssuer {
    /// Creates a URL, which opens one session.
    pub fn issue_session_url(&self) -> anyhow::Result<String> {
        let SessionUrlIssuer { port, sessions } = self;
        Ok(format!("http://127.0.0.1:{port}/?token={}", sessions.issue_token()?))
    }
}

impl LoopbackServer {
    /// Listens on a port, or on any free one if it is 0: on 127.0.0.1, and on ::1 if this machine has it.
    pub fn bind(port: u16) -> anyhow::Result<LoopbackServer> {
        let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
            .with_context(|| format!("cannot listen on 127.0.0.1:{port}"))?;
        let port = listener.local_addr()?.port();
        let other = TcpListener::bind(SocketAddr::from((Ipv6Addr::LOCALHOST, port))).ok();
        let listeners = std::iter::once(listener).chain(other).collect();
        Ok(LoopbackServer { listeners, port, sessions: Arc::new(Sessions::new(port)) })
    }

    /// Returns the creator of URLs that open sessions on this server.
    pub fn session_url_issuer(&self) -> SessionUrlIssuer {
        SessionUrlIssuer { port: self.port, sessions: self.sessions.clone() }
    }

    /// Serves the site until the process is interrupted.
    pub fn serve(self, site: Arc<dyn Site>, limits: Limits) -> anyhow::Result<()> {
        let context = Data::new(UiServerState {
            hosts: AcceptedHosts::of_port(self.port),
            sessions: self.sessions,
            site,
            polls: Semaphore::new(limits.polls),
            limits,
        });
        let factory = move || App::new().app_data(context.clone()).default_service(web::to(handle));
        let mut server = HttpServer::new(factory)
            .workers(1)
            .keep_alive(KeepAlive::Disabled)
            .client_request_timeout(limits.head)
            .client_disconnect_timeout(Duration::from_secs(1))
            .max_connections(limits.connections)
            .shutdown_timeout(1);
        for listener in self.listeners {
            server = server.listen(listener)?;
        }
        rt::System::new().block_on(server.run())?;
        Ok(())
    }
}

/// The data that all requests share: site, sessions, accepted hosts and limits.
struct UiServerState {
    hosts: AcceptedHosts,
    sessions: Arc<Sessions>,
    site: Arc<dyn Site>,
    polls: Semaphore,
    limits: Limits,
}

/// Answers one HTTP request.
async fn handle(request: HttpRequest, payload: Payload, context: Data<UiServerState>) -> HttpResponse {
    context.respond(&request, payload).await.unwrap_or_else(|refusal| refuse(&request, refusal))
}

impl UiServerState {
    async fn respond(&self, request: &HttpRequest, payload: Payload) -> Result<HttpResponse, Refusal> {
        let path = request.uri().path();
        self.hosts.check_head(request.head(), path == QUESTION_PATH)?;
        let query = Query::parse_valid_pairs(request.query_string());
        if let Some(token) = query.get("token").filter(|_| path == "/" && request.method() == Method::GET) {
            return self.open_session(token);
        }
        let cookies = request.headers().get_all(COOKIE).filter_map(|value| value.to_str().ok());
        if !cookies.into_iter().any(|cookies| self.sessions.has_open_session(cookies)) {
            return Err(NO_SESSION);
        }
        if request.method() == Method::POST {
            return self.answer_question(payload).await.map(respond_with);
        }
        if path == "/updates" {
            let since = query.get("since").and_then(|since| since.parse().ok()).ok_or(NO_REVISION)?;
            return self.wait_for_change(since).await.map(respond_with);
        }
        let (site, path) = (self.site.clone(), path.to_owned());
        // A page of a large cluster takes a while to draw; meanwhile others are served.
        let found = web::block(move || site.get(&path, &query)).await.map_err(|_error| NO_ANSWER)?;
        found.map(respond_with).ok_or(NOT_FOUND)
    }

    /// Exchanges a token for a session, and sends the browser to an address without it.
    fn open_session(&self, token: &str) -> Result<HttpResponse, Refusal> {
        let cookie = self.sessions.exchange_token_for_set_cookie(token).ok_or(USED_TOKEN)?;
        Ok(response_builder_with_security_headers(StatusCode::SEE_OTHER)
            .insert_header((SET_COOKIE, cookie))
            .insert_header((LOCATION, "/"))
            .finish())
    }

    async fn answer_question(&self, payload: Payload) -> Result<Answer, Refusal> {
        let body = timeout(self.limits.body, payload.to_bytes_limited(MAX_QUESTION_BYTES)).await;
        let body =
            body.map_err(|_error| TOO_SLOW)?.map_err(|_error| TOO_LARGE)?.map_err(|_error| BROKEN_BODY)?;
        match timeout(self.limits.question, self.site.ask_replacing_earlier_question(body)).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_)) => Err(SUPERSEDED),
            Err(_) => Err(NO_ANSWER),
        }
    }

    /// Waits until the content is newer than that revision, at most for the poll timeout. Then the page asks again.
    async fn wait_for_change(&self, since: u64) -> Result<Answer, Refusal> {
        let _permit = self.polls.try_acquire().map_err(|_error| TOO_MANY_OPEN_PAGES)?;
        let mut revision = self.site.revision();
        // Neither the end of the wait nor that of the sender is an error: the answer says what is current.
        _ = timeout(self.limits.poll, revision.wait_for(|current| *current > since)).await;
        let site = self.site.clone();
        web::block(move || site.changes_since(since)).await.map_err(|_error| NO_ANSWER)
    }
}

const SUPERSEDED: Refusal =
    Refusal { status: StatusCode::CONFLICT, text: "newer questions took the place of this one" };
const NO_ANSWER: Refusal = Refusal {
    status: StatusCode::GATEWAY_TIMEOUT,
    text: "there is no answer after ten minutes; close other windows, use the command line, or ask about fewer devices",
};

/// A response with the headers that all responses have.
fn response_builder_with_security_headers(status: StatusCode) -> HttpResponseBuilder {
    const OPENER: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
    const RESOURCE: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
    let mut builder = HttpResponse::build(status);
    for (name, value) in [
        (CACHE_CONTROL, "no-store"),
        (CONTENT_SECURITY_POLICY, CSP_FOR_NON_PAGES),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
        (OPENER, "same-origin"),
        (RESOURCE, "same-origin"),
    ] {
        builder.insert_header((name, value));
    }
    builder
}

fn respond_with(answer: Answer) -> HttpResponse {
    let mut builder = response_builder_with_security_headers(StatusCode::OK);
    if let Some(policy) = answer.policy {
        builder.insert_header((CONTENT_SECURITY_POLICY, policy));
    }
    builder.insert_header((CONTENT_TYPE, answer.content_type)).body(answer.body)
}

/// A refusal in words. A browser that navigates gets a small page, because plain text has no language and no title.
fn refuse(request: &HttpRequest, refusal: Refusal) -> HttpResponse<BoxBody> {
    let mut builder = response_builder_with_security_headers(refusal.status);
    if refusal.status == StatusCode::METHOD_NOT_ALLOWED {
        builder.insert_header((ALLOW, "GET, HEAD"));
    }
    let is_page =
        request.headers().get(ACCEPT).is_some_and(|accept| accept.as_bytes().starts_with(b"text/html"));
    let text = refusal.text;
    if !is_page {
        return builder.insert_header((CONTENT_TYPE, "text/plain; charset=utf-8")).body(format!("{text}\n"));
    }
    let page = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>Tollgate</title><h1>Tollgate</h1><p>{text}</p></html>\n"
    );
    builder.insert_header((CONTENT_TYPE, HTML)).body(page)
}
