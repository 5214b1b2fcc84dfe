//! HTTP ↔ `engine::admit`: what is not a review is refused with a reason, what is one is answered.
//!
//! A verdict takes microseconds, so it is made on the worker, without a hop to another thread. One panic is one 500.
//! Errors are `metav1.Status` documents: the API server shows their message to the user.

use std::cell::OnceCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::time::{Duration, Instant};

use actix_web::http::header::{self, HeaderValue};
use actix_web::http::{Method, StatusCode};
use actix_web::rt::time::sleep;
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder, web};

use super::beside::{Found, NamespaceSource};
use super::body::{Limits, NoBody, Received, receive};
use super::clock::{self, Seconds};
use super::connection::Connection;
use super::gate::{Full, Hold};
use super::metrics::{Outcome, resource_label, side_name};
use super::{Judging, Shared};
use crate::api::review::{BadReview, Request, Response, Status};
use crate::doc;
use crate::engine::{Decision, Labels, NamespaceLookup, Side};
use crate::gotime;

/// Characters of a reason.
const REASON_LENGTH: usize = 300;
/// How long to wait before looking again whether there is room to work in.
const TURN: Duration = Duration::from_millis(2);
/// A review that is larger and cannot be read is denied instead of refused with 400: see `too_large`.
const UNREAD: usize = 2 << 20;
/// Bytes of a name or a list in a line of the log.
const LOGGED: usize = 1 << 10;

pub(super) async fn validate(
    request: HttpRequest,
    payload: web::Payload,
    shared: web::Data<Shared>,
) -> HttpResponse {
    handle(&request, payload, &shared, Side::Validate).await
}

pub(super) async fn mutate(
    request: HttpRequest,
    payload: web::Payload,
    shared: web::Data<Shared>,
) -> HttpResponse {
    handle(&request, payload, &shared, Side::Mutate).await
}

pub(super) async fn not_found(request: HttpRequest, shared: web::Data<Shared>) -> HttpResponse {
    let fault = Fault::new(404, "NotFound", "there is /validate and /mutate here, nothing else");
    fault.before_body(&request).answer(&request, &shared)
}

/// A request that gets no decision.
struct Fault {
    code: u16,
    reason: &'static str,
    message: String,
    /// Its body was read. One that was not is not worth reading: the connection ends.
    is_read: bool,
}

impl Fault {
    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Fault {
        Fault { code, reason, message: message.into(), is_read: true }
    }

    fn unread(self) -> Fault {
        Fault { is_read: false, ..self }
    }

    /// Found before the body was read, if there is one.
    fn before_body(self, request: &HttpRequest) -> Fault {
        let has_body = match announced(request) {
            Some(length) => length > 0,
            None => request.headers().contains_key(header::TRANSFER_ENCODING),
        };
        if has_body { self.unread() } else { self }
    }

    fn answer(self, request: &HttpRequest, shared: &Shared) -> HttpResponse {
        shared.metrics.refused(self.code);
        let one_line = self.message.chars().map(|c| if c.is_control() { ' ' } else { c });
        let message: String = one_line.take(REASON_LENGTH).collect();
        tracing::debug!(code = self.code, reason = %message, "refused");
        let code = StatusCode::from_u16(self.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = HttpResponse::build(code);
        match self.code {
            405 => drop(response.insert_header((header::ALLOW, HeaderValue::from_static("POST")))),
            503 => drop(response.insert_header((header::RETRY_AFTER, HeaderValue::from_static("1")))),
            _ => {}
        }
        let body = Status::failure(self.code, self.reason, message, None).encode();
        let closes = !self.is_read || is_to_go(request, shared);
        if let Some(connection) = connection(request) {
            // It is short: no room is needed for it.
            let _ = connection.answers(0, closes);
        }
        respond(response, closes, body)
    }
}

async fn handle(request: &HttpRequest, payload: web::Payload, shared: &Shared, side: Side) -> HttpResponse {
    let started = clock::instant();
    shared.seen();
    let connection = connection(request);
    if let Some(connection) = connection {
        connection.begins();
    }
    let limits = Limits {
        most: shared.limits.max_body,
        announced: announced(request),
        patience: patience(request.query_string(), shared.limits.body_timeout),
    };
    let judged = match check(request) {
        Ok(()) => match receive(payload, limits, &shared.gate, connection).await {
            Ok(mut received) => {
                if let Some(connection) = connection {
                    connection.is_judging();
                }
                let until = started + limits.patience;
                match room_to_work(shared, &mut received, until).await {
                    Ok(_room) => answer_review(request, shared, side, &received.bytes, started).await,
                    Err(Full) => Err(too_busy()),
                }
            }
            Err(NoBody::TooLarge(Some(head))) => too_large(&head, side, shared),
            Err(fault) => Err(no_body(&fault, shared)),
        },
        Err(fault) => Err(fault.before_body(request)),
    };
    let answered = judged.and_then(|bytes| {
        let closes = is_to_go(request, shared);
        let room = connection.map_or(Ok(()), |connection| connection.answers(bytes.len(), closes));
        room.map(|()| respond(HttpResponse::Ok(), closes, bytes)).map_err(|Full| too_busy())
    });
    match answered {
        Ok(response) => {
            shared.metrics.took(side, started.elapsed());
            response
        }
        Err(fault) => {
            if fault.code == 503 {
                shared.gate.shed();
            }
            fault.answer(request, shared)
        }
    }
}

/// The memory that checking a body takes. Whoever has it now needs it for a moment only, so a large body waits for it;
/// while it waits it is not in flight, and small requests go past it.
async fn room_to_work<'g>(
    shared: &'g Shared,
    received: &mut Received<'g>,
    until: Instant,
) -> Result<Hold<'g>, Full> {
    loop {
        let room = shared.gate.work_on(received.bytes.len());
        match room.and_then(|room| received.enter_flight(&shared.gate).map(|()| room)) {
            Ok(room) => return Ok(room),
            Err(Full) if clock::instant() < until => {
                received.leave_flight();
                sleep(TURN).await;
            }
            Err(Full) => return Err(Full),
        }
    }
}

fn connection(request: &HttpRequest) -> Option<&Connection> {
    request.conn_data::<Rc<Connection>>().map(|connection| &**connection)
}

/// The connection ends with this answer.
fn is_to_go(request: &HttpRequest, shared: &Shared) -> bool {
    shared.is_draining() || connection(request).is_some_and(Connection::is_to_go)
}

fn respond(mut response: HttpResponseBuilder, closes: bool, body: Vec<u8>) -> HttpResponse {
    if closes {
        response.force_close();
    }
    response.insert_header((header::CONTENT_TYPE, HeaderValue::from_static("application/json"))).body(body)
}

/// Method and media type.
fn check(request: &HttpRequest) -> Result<(), Fault> {
    if request.method() != Method::POST {
        let message = format!("an AdmissionReview is sent with POST, not {}", request.method());
        return Err(Fault::new(405, "MethodNotAllowed", message));
    }
    let media_type = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = media_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case("application/json") {
        let message = format!("an AdmissionReview is application/json, not \"{essence}\"");
        return Err(Fault::new(415, "UnsupportedMediaType", message));
    }
    if request.headers().get(header::CONTENT_ENCODING).is_some_and(|coding| coding != "identity") {
        return Err(Fault::new(415, "UnsupportedMediaType", "a compressed body is not read"));
    }
    Ok(())
}

fn too_busy() -> Fault {
    Fault::new(503, "ServiceUnavailable", "too many requests in flight, try again")
}

fn larger_than(shared: &Shared) -> String {
    format!("the AdmissionReview is larger than {} bytes (--max-body)", shared.limits.max_body)
}

/// What cannot be checked is denied, and not left to whether the webhook fails open: padding an object must not get a
/// denied taint past the policies. The mutating side has nothing to add.
fn too_large(head: &[u8], side: Side, shared: &Shared) -> Result<Vec<u8>, Fault> {
    let message = larger_than(shared);
    unchecked(head, side, shared, &message).ok_or_else(|| Fault::new(413, "RequestEntityTooLarge", message))
}

fn unchecked(head: &[u8], side: Side, shared: &Shared, why: &str) -> Option<Vec<u8>> {
    let uid = uid_at_start(head).filter(|_| side == Side::Validate)?;
    shared.metrics.refused(413);
    tracing::warn!(uid, why, "denied: the object cannot be checked");
    let message = format!("the object cannot be checked: {why}");
    Some(Response::denied(uid, Status::failure(413, "RequestEntityTooLarge", message, None)).encode())
}

/// The uid of a review as an API server writes it: before anything that a user can choose.
fn uid_at_start(body: &[u8]) -> Option<&str> {
    const BEFORE: &[u8] = br#""request":{"uid":""#;
    let start = body.get(..body.len().min(256))?;
    let at = start.windows(BEFORE.len()).position(|part| part == BEFORE)? + BEFORE.len();
    let rest = body.get(at..)?;
    let length = rest.iter().take(128).position(|byte| *byte == b'"')?;
    let uid = std::str::from_utf8(rest.get(..length)?).ok()?;
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    (!uid.is_empty() && uid.chars().all(is_plain)).then_some(uid)
}

fn no_body(fault: &NoBody, shared: &Shared) -> Fault {
    let fault = match fault {
        NoBody::TooLarge(_) => Fault::new(413, "RequestEntityTooLarge", larger_than(shared)),
        NoBody::TooSlow => Fault::new(408, "Timeout", "the body did not arrive in time"),
        NoBody::TooBusy => too_busy(),
        NoBody::Broken(error) => Fault::new(400, "BadRequest", format!("the body cannot be read: {error}")),
    };
    fault.unread()
}

/// Answers a review. If it needs the labels of a namespace that the watch has not delivered yet, they are fetched, and
/// the engine is called again.
async fn answer_review(
    request: &HttpRequest,
    shared: &Shared,
    side: Side,
    body: &[u8],
    started: Instant,
) -> Result<Vec<u8>, Fault> {
    let source = shared.company.get().and_then(|company| company.namespaces.as_deref());
    let fetched = Fetched { source, missing: OnceCell::new(), found: OnceCell::new() };
    let answer = call_engine(request, shared, side, body, started, &fetched);
    let (Some(source), Some(namespace)) = (source, fetched.missing.get()) else { return answer };
    let found = match source.ask(namespace).await {
        Ok(labels) => Found::Known(labels),
        Err(why) => {
            tracing::warn!(why, "the labels of a namespace are not known");
            Found::Unknown
        }
    };
    let fetched = Fetched { source: Some(source), missing: OnceCell::new(), found: OnceCell::from(found) };
    call_engine(request, shared, side, body, started, &fetched)
}

/// Labels that were looked up for one request: every question gets the same answer.
struct Fetched<'s> {
    source: Option<&'s dyn NamespaceSource>,
    /// A namespace that can be fetched; a decision without it does not count.
    missing: OnceCell<String>,
    found: OnceCell<Found>,
}

/// Where one request looks up the labels of its namespace: the cluster, or the file that `serve` was given.
struct RequestNamespaces<'s> {
    fetched: &'s Fetched<'s>,
    judging: &'s Judging,
}

impl NamespaceLookup for RequestNamespaces<'_> {
    fn labels(&self, namespace: &str) -> Labels<'_> {
        let Fetched { source, missing, found } = self.fetched;
        let Some(source) = source.filter(|_| !namespace.is_empty()) else {
            return self.judging.labels(namespace);
        };
        let needed = self.judging.engine.policies.needs_labels();
        if needed {
            source.need();
        }
        match found.get_or_init(|| source.labels(namespace)) {
            Found::Known(labels) => labels.labels(),
            Found::Missing if needed => {
                missing.get_or_init(|| namespace.to_owned());
                Labels::Unknown
            }
            Found::Missing | Found::Unknown => Labels::Unknown,
        }
    }

    fn age(&self) -> Option<u64> {
        self.fetched.source.and_then(NamespaceSource::age)
    }
}

/// Calls the engine; a panic in it is this request's alone.
fn call_engine(
    request: &HttpRequest,
    shared: &Shared,
    side: Side,
    body: &[u8],
    started: Instant,
    fetched: &Fetched<'_>,
) -> Result<Vec<u8>, Fault> {
    let judging = shared.policies.current();
    let mut observe = |review: &Request<'_>, decision: &Decision| {
        if fetched.missing.get().is_none() {
            record(shared, side, review, decision, started);
        }
    };
    let namespaces = RequestNamespaces { fetched, judging: &judging };
    let mut admit = |now: &str| (shared.admit)(&judging.engine, body, side, now, &namespaces, &mut observe);
    // What a panic may leave half-done is dropped with it: the engine is read-only, the rest is this request's.
    let admitted = catch_unwind(AssertUnwindSafe(|| match request.app_data::<Seconds>() {
        Some(seconds) => seconds.with(&mut admit),
        None => Seconds::default().with(&mut admit),
    }));
    match admitted {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(BadReview { detail, .. })) => {
            // A real API server sends no review that cannot be read, unless somebody made it so.
            let is_hostile = body.len() > UNREAD || detail.ends_with(doc::TOO_DENSE);
            let denied = is_hostile.then(|| unchecked(body, side, shared, &detail)).flatten();
            denied.ok_or_else(|| Fault::new(400, "BadRequest", detail))
        }
        Err(_) => {
            shared.metrics.panics.inc();
            tracing::error!(webhook = side_name(side), bytes = body.len(), "a request ended in a panic");
            Err(Fault::new(500, "InternalError", "tollgate failed on this request; the next is not affected"))
        }
    }
}

/// Counts and logs one decision.
fn record(shared: &Shared, side: Side, review: &Request<'_>, decision: &Decision, started: Instant) {
    let resource = resource_label(review.resource, review.sub_resource);
    let outcome = Outcome::of(decision);
    let findings = decision.judgement.findings();
    shared.metrics.decided(side, resource, review.operation, outcome, findings);
    if !tracing::enabled!(tracing::Level::INFO) {
        return;
    }
    let mut rules = String::new();
    for judged in findings {
        if !rules.is_empty() {
            rules.push(',');
        }
        if rules.len() > LOGGED {
            rules.push('…');
            break;
        }
        rules.push_str(judged.finding.rule.0);
    }
    tracing::info!(
        uid = review.uid,
        webhook = side_name(side),
        resource,
        operation = review.operation.name(),
        namespace = logged(review.namespace),
        name = logged(review.name),
        dryRun = review.dry_run,
        decision = outcome.name(),
        rules,
        micros = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX),
        "decision"
    );
}

/// The part of a name that is logged; no object has a longer one.
fn logged(name: &str) -> &str {
    let end = (0..=LOGGED.min(name.len())).rev().find(|&end| name.is_char_boundary(end));
    name.get(..end.unwrap_or_default()).unwrap_or_default()
}

fn announced(request: &HttpRequest) -> Option<usize> {
    request.headers().get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// How long to wait for a body: never longer than the caller waits for the answer (`?timeout=10s`).
fn patience(query: &str, most: Duration) -> Duration {
    let asked = query.split('&').find_map(|pair| pair.strip_prefix("timeout=")).and_then(|text| {
        let nanos = gotime::parse_duration(text).ok()?;
        u64::try_from(nanos).ok().map(Duration::from_nanos)
    });
    asked.map_or(most, |asked| asked.min(most))
}

#[cfg(test)]
mod tests {
    use super::patience;
    use std::time::Duration;

    #[test]
    fn the_callers_timeout_is_kept() {
        let most = Duration::from_secs(10);
        for (query, millis) in [
            ("", 10_000),
            ("timeout=3s", 3000),
            ("a=b&timeout=1500ms", 1500),
            ("timeout=1m30s", 10_000),
            ("timeout=0s", 0),
            ("timeout=soon", 10_000),
            ("timeout=99999999999999999999h", 10_000),
            ("timeout=5", 10_000),
            ("timeout=-5s", 10_000),
            ("timeout=", 10_000),
        ] {
            assert_eq!(patience(query, most), Duration::from_millis(millis), "{query}");
        }
    }
}
