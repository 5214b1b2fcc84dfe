//! HTTP handlers around `engine::admit`: requests that are not AdmissionReviews are rejected with a reason.
//!
//! A decision takes microseconds, so it is made on the worker thread. A panic fails one request with status 500.
//! Errors are `metav1.Status` documents: the API server shows their message to the user.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::time::{Duration, Instant};

use actix_web::http::header::{self, HeaderValue};
use actix_web::http::{Method, StatusCode};
use actix_web::rt::time::sleep;
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder, web};

use super::background::{NamespaceLabelCache, NamespaceLabelsResult};
use super::body::{BodyError, BodyLimits, BodyTimeout, ReceivedBody, receive_body};
use super::clock::{self, SecondClock};
use super::connection::Connection;
use super::limiter::{LimitReached, MAX_SMALL_BODY_BYTES, MemoryReservation};
use super::metrics::{RequestOutcome, endpoint_name, resource_label};
use super::{ServingConfig, SharedState, log};
use tollgate_api::review::{BadReview, Request, Response, Status};
use tollgate_engine::engine::{
    Decision, Endpoint, LabelsIfKnown, NamespaceLabelLookup, Review, decode_review_text_like_go,
    parse_review_unless_too_dense,
};
use tollgate_formats::gofmt;

/// Longest message of an error response, in characters.
const MAX_REASON_CHARS: usize = 300;
/// Interval between attempts to reserve working memory.
const MEMORY_RETRY_INTERVAL: Duration = Duration::from_millis(2);
/// A review of more bytes than this that cannot be parsed is denied instead of rejected with 400, so that a failure
/// policy of Ignore does not admit it.
const DENY_UNREADABLE_ABOVE: usize = 2 << 20;
/// Longest name or list in a log line.
const MAX_LOGGED_BYTES: usize = 1 << 10;

pub(super) async fn not_found(request: HttpRequest, shared: web::Data<SharedState>) -> HttpResponse {
    let fault = HttpError::new(404, "NotFound", "not found; use /validate or /mutate");
    fault.with_unread_body_if_any(&request).into_counted_error_response(&request, &shared)
}

/// An error response: the request gets no decision.
struct HttpError {
    code: u16,
    reason: &'static str,
    message: String,
    /// True if the body was read. Otherwise the connection is closed after the response, instead of reading the body.
    body_read: bool,
}

impl HttpError {
    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> HttpError {
        HttpError { code, reason, message: message.into(), body_read: true }
    }

    fn with_unread_body(self) -> HttpError {
        HttpError { body_read: false, ..self }
    }

    /// Marks an error that was found before the body of the request was read, if it has one.
    fn with_unread_body_if_any(self, request: &HttpRequest) -> HttpError {
        let has_body = match content_length(request) {
            Some(length) => length > 0,
            None => request.headers().contains_key(header::TRANSFER_ENCODING),
        };
        if has_body { self.with_unread_body() } else { self }
    }

    fn into_counted_error_response(self, request: &HttpRequest, shared: &SharedState) -> HttpResponse {
        shared.metrics.count_error(self.code);
        let one_line = self.message.chars().map(|c| if c.is_control() { ' ' } else { c });
        let message: String = one_line.take(MAX_REASON_CHARS).collect();
        tracing::debug!(code = self.code, reason = %message, "request rejected");
        let code = StatusCode::from_u16(self.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = HttpResponse::build(code);
        match self.code {
            405 => drop(response.insert_header((header::ALLOW, HeaderValue::from_static("POST")))),
            503 => drop(response.insert_header((header::RETRY_AFTER, HeaderValue::from_static("1")))),
            _ => {}
        }
        let body = Status::failure(self.code, self.reason, message, None).encode_status_document();
        let closes = !self.body_read || closes_after_response(request, shared);
        if let Some(connection) = connection(request) {
            // It is short and needs no reservation.
            let _ = connection.reserve_and_start_response(0, closes);
        }
        finish_response(response, closes, body)
    }
}

/// Handles one request, from its headers to its response.
pub(super) async fn handle_review(
    request: HttpRequest,
    payload: web::Payload,
    shared: web::Data<SharedState>,
    endpoint: Endpoint,
) -> HttpResponse {
    let started = clock::monotonic_now();
    shared.increment_activity_counter();
    if let Some(connection) = connection(&request) {
        connection.request_started();
    }
    if shared.config.current().awaits_policies {
        let message = "the policies are not loaded from the cluster yet; try again";
        let error = HttpError::new(503, "ServiceUnavailable", message);
        return error.with_unread_body_if_any(&request).into_counted_error_response(&request, &shared);
    }
    let answer = match receive_review(&request, payload, &shared, endpoint, started).await {
        Ok(received) => {
            let times = RequestTimes { started, received: clock::monotonic_now() };
            answer_review(&request, &shared, endpoint, &received.body.bytes, times).await
        }
        Err(not_checked) => Err(not_checked),
    };
    let response = match answer {
        Ok(bytes) | Err(ResponseWithoutEvaluation::Denied(bytes)) => {
            reserve_and_build_response(&request, &shared, bytes)
        }
        Err(ResponseWithoutEvaluation::Failed(fault)) => Err(fault),
    };
    match response {
        Ok(response) => {
            shared.metrics.observe_duration(endpoint, started.elapsed());
            response
        }
        Err(fault) => {
            if fault.code == 503 {
                shared.limiter.count_rejected_request();
            }
            fault.into_counted_error_response(&request, &shared)
        }
    }
}

/// When the parts of a request arrived.
#[derive(Clone, Copy)]
struct RequestTimes {
    /// The headers.
    started: Instant,
    /// The whole body.
    received: Instant,
}

/// The response to a request that the engine did not check.
enum ResponseWithoutEvaluation {
    /// The request is denied with this AdmissionReview response.
    Denied(Vec<u8>),
    /// The request fails with this error response.
    Failed(HttpError),
}

impl From<HttpError> for ResponseWithoutEvaluation {
    fn from(fault: HttpError) -> ResponseWithoutEvaluation {
        ResponseWithoutEvaluation::Failed(fault)
    }
}

/// The body of a request, and the memory that is reserved to check it.
struct ReceivedReview<'g> {
    body: ReceivedBody<'g>,
    _reservation: MemoryReservation<'g>,
}

/// Checks the headers, receives the body and reserves memory.
async fn receive_review<'g>(
    request: &'g HttpRequest,
    payload: web::Payload,
    shared: &'g SharedState,
    endpoint: Endpoint,
    started: Instant,
) -> Result<ReceivedReview<'g>, ResponseWithoutEvaluation> {
    check_method_and_content_headers(request).map_err(|fault| fault.with_unread_body_if_any(request))?;
    let limits = BodyLimits {
        max_bytes: shared.limits.max_body,
        content_length: content_length(request),
        timeout: BodyTimeout { query: request.query_string(), most: shared.limits.body_timeout },
    };
    let connection = connection(request);
    let mut body =
        receive_body(payload, limits, &shared.limiter, connection).await.map_err(|fault| match fault {
            BodyError::TooLarge(Some(head)) => deny_too_large(&head, endpoint, shared),
            fault => body_error(&fault, shared).into(),
        })?;
    if let Some(connection) = connection {
        connection.body_received();
    }
    let reserved = wait_for_working_memory(shared, &mut body, || started + limits.timeout.duration()).await;
    let reservation = reserved.map_err(|LimitReached| too_busy_error())?;
    if body.bytes.len() > MAX_SMALL_BODY_BYTES {
        yield_to_notice_disconnect().await;
    }
    Ok(ReceivedReview { body, _reservation: reservation })
}

/// Answers a review: reads it, gets the namespace labels that policies need, and asks the engine.
async fn answer_review(
    request: &HttpRequest,
    shared: &SharedState,
    endpoint: Endpoint,
    body: &[u8],
    times: RequestTimes,
) -> Result<Vec<u8>, ResponseWithoutEvaluation> {
    let stopped = |stop| answer_step_error(stop, body, endpoint, shared);
    let config = shared.config.current();
    let text = decode_review_text_like_go(body);
    let document = catch_panic(|| parse_review_unless_too_dense(&text)).map_err(stopped)?;
    let review = catch_panic(|| Review::read(&config.engine, document.root())).map_err(stopped)?;
    let labels = look_up_or_fetch_namespace_labels(&review, shared.namespaces(), &config).await;
    let now =
        request.app_data::<SecondClock>().map_or_else(|| SecondClock::default().now(), SecondClock::now);
    let answered = catch_unwind(AssertUnwindSafe(|| {
        let decision = review.decide(&config.engine, endpoint, &now, &labels);
        record_decision(shared, endpoint, &review.request, &decision, times);
        (shared.respond)(&config.engine, &review.request, &decision)
    }));
    match answered {
        Ok(answer) => Ok(answer),
        Err(_) => Err(stopped(StepError::Panic)),
    }
}

/// Returns the response with this answer, or an error response if there is no memory for it.
fn reserve_and_build_response(
    request: &HttpRequest,
    shared: &SharedState,
    answer: Vec<u8>,
) -> Result<HttpResponse, HttpError> {
    let closes = closes_after_response(request, shared);
    if let Some(connection) = connection(request) {
        connection
            .reserve_and_start_response(answer.len(), closes)
            .map_err(|LimitReached| too_busy_error())?;
    }
    Ok(finish_response(HttpResponse::Ok(), closes, answer))
}

/// Reserves the memory for evaluating a body. Other requests hold it only briefly, so a large body waits for it.
/// While it waits it is not in flight, and small requests overtake it.
async fn wait_for_working_memory<'g>(
    shared: &'g SharedState,
    received: &mut ReceivedBody<'g>,
    until: impl Fn() -> Instant,
) -> Result<MemoryReservation<'g>, LimitReached> {
    loop {
        let reservation = shared.limiter.reserve_evaluation_memory(received.bytes.len());
        match reservation
            .and_then(|reservation| received.acquire_permit_if_missing(&shared.limiter).map(|()| reservation))
        {
            Ok(reservation) => return Ok(reservation),
            Err(LimitReached) if clock::monotonic_now() < until() => {
                received.permit = None;
                sleep(MEMORY_RETRY_INTERVAL).await;
            }
            Err(LimitReached) => return Err(LimitReached),
        }
    }
}

/// Yields until a disconnected client has been noticed, which drops the request: an API server that gave up asks again,
/// and both evaluations of a large body would keep others waiting. actix reads from the socket before it polls the
/// handler, and closes the connection after, so it takes two rounds.
async fn yield_to_notice_disconnect() {
    for _ in 0..2 {
        tokio::task::yield_now().await;
    }
}

fn connection(request: &HttpRequest) -> Option<&Connection> {
    request.conn_data::<Rc<Connection>>().map(|connection| &**connection)
}

/// True if the connection is closed after this response.
fn closes_after_response(request: &HttpRequest, shared: &SharedState) -> bool {
    shared.is_draining() || connection(request).is_some_and(Connection::should_close_after_response)
}

fn finish_response(mut response: HttpResponseBuilder, closes: bool, body: Vec<u8>) -> HttpResponse {
    if closes {
        response.force_close();
    }
    response.insert_header((header::CONTENT_TYPE, HeaderValue::from_static("application/json"))).body(body)
}

/// Checks method, media type and encoding.
fn check_method_and_content_headers(request: &HttpRequest) -> Result<(), HttpError> {
    if request.method() != Method::POST {
        let message = format!("method {} is not allowed; use POST", request.method());
        return Err(HttpError::new(405, "MethodNotAllowed", message));
    }
    let media_type = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = media_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case("application/json") {
        let message = format!("content type \"{essence}\" is not supported; use application/json");
        return Err(HttpError::new(415, "UnsupportedMediaType", message));
    }
    if request.headers().get(header::CONTENT_ENCODING).is_some_and(|coding| coding != "identity") {
        return Err(HttpError::new(415, "UnsupportedMediaType", "compressed bodies are not supported"));
    }
    Ok(())
}

fn too_busy_error() -> HttpError {
    HttpError::new(503, "ServiceUnavailable", "too many requests in flight; try again")
}

fn too_large_message(shared: &SharedState) -> String {
    format!("the AdmissionReview is larger than {} bytes (--max-body)", shared.limits.max_body)
}

/// Denies a review that is too large to be checked, whatever the failure policy of the webhook: padding an object must
/// not get a denied taint past the policies. The mutating endpoint has nothing to add.
fn deny_too_large(head: &[u8], endpoint: Endpoint, shared: &SharedState) -> ResponseWithoutEvaluation {
    let message = too_large_message(shared);
    match try_deny_unchecked(head, endpoint, shared, &message) {
        Some(denied) => ResponseWithoutEvaluation::Denied(denied),
        None => HttpError::new(413, "RequestEntityTooLarge", message).into(),
    }
}

/// A denial with this reason for a validating request that was not checked; `None` if its uid is not at the beginning
/// of the body.
fn try_deny_unchecked(head: &[u8], endpoint: Endpoint, shared: &SharedState, why: &str) -> Option<Vec<u8>> {
    let uid = leading_uid(head).filter(|_| endpoint == Endpoint::Validate)?;
    shared.metrics.count_error(413);
    tracing::warn!(uid, why, "denied: the object cannot be checked");
    let message = format!("the object cannot be checked: {why}");
    Some(
        Response::denied(uid, Status::failure(413, "RequestEntityTooLarge", message, None))
            .encode_admission_review(),
    )
}

/// The uid of a review, if it comes first, where an API server writes it: before any field that a user controls.
fn leading_uid(body: &[u8]) -> Option<&str> {
    const UID_PREFIX: &[u8] = br#""request":{"uid":""#;
    let start = body.get(..body.len().min(256))?;
    let at = start.windows(UID_PREFIX.len()).position(|part| part == UID_PREFIX)? + UID_PREFIX.len();
    let rest = body.get(at..)?;
    let length = rest.iter().take(128).position(|byte| *byte == b'"')?;
    let uid = std::str::from_utf8(rest.get(..length)?).ok()?;
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    (!uid.is_empty() && uid.chars().all(is_plain)).then_some(uid)
}

fn body_error(fault: &BodyError, shared: &SharedState) -> HttpError {
    let fault = match fault {
        BodyError::TooLarge(_) => HttpError::new(413, "RequestEntityTooLarge", too_large_message(shared)),
        BodyError::TooSlow => HttpError::new(408, "Timeout", "the body did not arrive in time"),
        BodyError::TooBusy => too_busy_error(),
        BodyError::Broken(error) => {
            HttpError::new(400, "BadRequest", format!("cannot read the body: {error}"))
        }
    };
    fault.with_unread_body()
}

/// The source of the namespace labels by which a request is decided.
enum RequestNamespaceLabels<'c> {
    /// Labels of the file given to `serve`, if there is one.
    File(&'c ServingConfig),
    /// Labels of a namespace in the cluster, and the age of the cache if they may have changed since.
    Cluster { labels: NamespaceLabelsResult, age: Option<u64> },
}

impl NamespaceLabelLookup for RequestNamespaceLabels<'_> {
    fn labels(&self, namespace: &str) -> LabelsIfKnown<'_> {
        match self {
            RequestNamespaceLabels::File(config) => config.labels_from_file(namespace),
            RequestNamespaceLabels::Cluster { labels: NamespaceLabelsResult::Known(labels), .. } => {
                labels.labels()
            }
            RequestNamespaceLabels::Cluster { .. } => LabelsIfKnown::Unknown,
        }
    }

    fn age_seconds_if_stale(&self) -> Option<u64> {
        match self {
            RequestNamespaceLabels::File(_) => None,
            RequestNamespaceLabels::Cluster { age, .. } => *age,
        }
    }
}

/// The labels that decide about a review. Fetches those of a namespace that is not cached, if a policy needs them.
async fn look_up_or_fetch_namespace_labels<'c>(
    review: &Review<'_>,
    source: Option<&dyn NamespaceLabelCache>,
    config: &'c ServingConfig,
) -> RequestNamespaceLabels<'c> {
    let (Some(source), Some(namespace)) = (source, review.namespace_to_look_up()) else {
        return RequestNamespaceLabels::File(config);
    };
    let is_needed = config.engine.policies.needs_namespace_labels();
    if is_needed {
        source.start_label_watch_if_not_running();
    }
    let labels = match source.cached_labels(namespace) {
        NamespaceLabelsResult::NotCached if is_needed => match source.fetch(namespace).await {
            Ok(labels) => NamespaceLabelsResult::Known(labels),
            Err(why) => {
                tracing::warn!(why, "cannot get the labels of a namespace");
                NamespaceLabelsResult::Unavailable
            }
        },
        labels => labels,
    };
    RequestNamespaceLabels::Cluster { labels, age: source.age_seconds_if_stale() }
}

/// Why a step of answering a review failed: the review cannot be read, or the step panicked.
enum StepError {
    Unreadable(BadReview),
    Panic,
}

/// Runs a step and catches its panics. This is safe because everything that the step has changed is dropped with
/// the request.
fn catch_panic<T>(step: impl FnOnce() -> Result<T, BadReview>) -> Result<T, StepError> {
    match catch_unwind(AssertUnwindSafe(step)) {
        Ok(result) => result.map_err(StepError::Unreadable),
        Err(_) => Err(StepError::Panic),
    }
}

/// Returns the answer to a review whose evaluation failed: a denial if the review looks crafted, otherwise an error
/// response.
fn answer_step_error(
    stop: StepError,
    body: &[u8],
    endpoint: Endpoint,
    shared: &SharedState,
) -> ResponseWithoutEvaluation {
    match stop {
        StepError::Unreadable(BadReview { detail, is_too_dense, .. }) => {
            // An API server sends no review that cannot be parsed, unless a user crafted it.
            let is_hostile = body.len() > DENY_UNREADABLE_ABOVE || is_too_dense;
            let denied = is_hostile.then(|| try_deny_unchecked(body, endpoint, shared, &detail)).flatten();
            denied.map_or_else(
                || HttpError::new(400, "BadRequest", detail).into(),
                ResponseWithoutEvaluation::Denied,
            )
        }
        StepError::Panic => {
            shared.metrics.panics.inc();
            tracing::error!(
                webhook = endpoint_name(endpoint),
                bytes = body.len(),
                "panic while handling a request"
            );
            let message = "internal error while handling this request; other requests are not affected";
            HttpError::new(500, "InternalError", message).into()
        }
    }
}

/// Counts and logs a decision.
fn record_decision(
    shared: &SharedState,
    endpoint: Endpoint,
    review: &Request<'_>,
    decision: &Decision,
    times: RequestTimes,
) {
    let resource = resource_label(review.resource, review.sub_resource);
    let outcome = RequestOutcome::from_decision(decision);
    let findings = decision.verdict.findings();
    shared.metrics.count_decision(endpoint, resource, review.operation, outcome, findings);
    if !tracing::enabled!(tracing::Level::INFO) {
        return;
    }
    let rules = log::join_distinct_names(findings.iter().map(|diagnostic| diagnostic.finding.rule.id));
    let policies = log::join_distinct_names(
        findings.iter().filter_map(|diagnostic| Some(diagnostic.policy.as_ref()?.kind_and_name())),
    );
    tracing::info!(
        uid = review.uid,
        webhook = endpoint_name(endpoint),
        resource,
        operation = review.operation.name(),
        namespace = gofmt::byte_prefix(review.namespace, MAX_LOGGED_BYTES),
        name = gofmt::byte_prefix(review.name, MAX_LOGGED_BYTES),
        dryRun = review.dry_run,
        decision = outcome.name(),
        rules,
        policies,
        bodyMicros = micros(times.received.duration_since(times.started)),
        micros = micros(times.started.elapsed()),
        "decision"
    );
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

fn content_length(request: &HttpRequest) -> Option<usize> {
    request.headers().get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
