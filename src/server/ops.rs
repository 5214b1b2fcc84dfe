//! The plain port: is it alive, is it ready, what has it counted, how much does it say.
//!
//! The log level can be changed here, but only from the pod itself (`kubectl port-forward` arrives so).

use std::fmt::Write as _;

use actix_web::http::header::{self, HeaderValue};
use actix_web::{HttpRequest, HttpResponse, web};
use tracing::level_filters::LevelFilter;

use super::{Shared, beside, clock};

pub(super) fn routes(config: &mut web::ServiceConfig) {
    config
        .route("/livez", web::get().to(livez))
        .route("/readyz", web::get().to(readyz))
        .route("/metrics", web::get().to(metrics))
        .route("/log-level", web::get().to(log_level))
        .route("/log-level", web::put().to(set_log_level));
}

async fn livez() -> HttpResponse {
    HttpResponse::Ok().body("ok\n")
}

async fn readyz(request: HttpRequest, shared: web::Data<Shared>) -> HttpResponse {
    let checks = checks(&shared);
    let ready = checks.iter().all(|check| check.ok);
    let mut text = String::new();
    if request.query_string().split('&').any(|word| word == "verbose" || word.starts_with("verbose=")) {
        for check in &checks {
            let sign = match (check.ok, check.degraded) {
                (false, _) => '-',
                (true, true) => '!',
                (true, false) => '+',
            };
            let _ = writeln!(text, "[{sign}]{} {}", check.name, check.says);
        }
    }
    text.push_str(if ready { "ok\n" } else { "not ready\n" });
    if ready { HttpResponse::Ok() } else { HttpResponse::ServiceUnavailable() }.body(text)
}

struct Check {
    name: &'static str,
    ok: bool,
    /// Something is wrong that does not keep the server from answering.
    degraded: bool,
    says: String,
}

fn checks(shared: &Shared) -> Vec<Check> {
    let draining = shared.is_draining();
    let mut checks = vec![Check {
        name: "serving",
        ok: !draining,
        degraded: false,
        says: if draining { "draining" } else { "ok" }.to_owned(),
    }];
    for source in &shared.sources {
        let standing = source.standing();
        let left = standing.expires - clock::unix();
        let mut says = match &standing.fault {
            None => "ok".to_owned(),
            Some(fault) => format!("not reloaded, the last good one is in use: {fault}"),
        };
        let _ = write!(says, " (expires in {} hours)", left / 3600);
        checks.push(Check { name: source.which, ok: left > 0, degraded: standing.fault.is_some(), says });
    }
    for job in shared.jobs() {
        let report = (job.look)();
        checks.push(Check { name: job.name, ok: report.ready, degraded: report.degraded, says: report.says });
    }
    let judging = shared.policies.current();
    let policies = &judging.engine.policies;
    let fault = shared.policies.fault();
    if fault.is_some() || !policies.is_empty() {
        let mut says = match &fault {
            None => "ok".to_owned(),
            Some(fault) => format!("not reloaded, the last good set is in use: {fault}"),
        };
        let _ = write!(says, " ({} policies, digest {})", policies.len(), policies.digest());
        // A set that does not load is no reason to take a server away that answers by the last good one.
        checks.push(Check { name: "policies", ok: true, degraded: fault.is_some(), says });
    }
    let profiles: Vec<&str> = judging.engine.profiles.iter().map(|profile| profile.name).collect();
    let says = format!("ok (profiles {})", profiles.join(", "));
    checks.push(Check { name: "engine", ok: true, degraded: false, says });
    checks
}

async fn metrics(shared: web::Data<Shared>) -> HttpResponse {
    if let Some(log) = &shared.log {
        shared.metrics.dropped_lines.inc_by(log.take_dropped());
    }
    let mut text = shared.metrics.render();
    beside::append(&mut text, shared.jobs().flat_map(|job| (job.look)().samples).collect());
    let media_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    HttpResponse::Ok().insert_header((header::CONTENT_TYPE, HeaderValue::from_static(media_type))).body(text)
}

async fn log_level(shared: web::Data<Shared>) -> HttpResponse {
    match &shared.log {
        Some(log) => HttpResponse::Ok().body(format!("{}\n", log.level())),
        None => HttpResponse::NotFound().body("there is no log\n"),
    }
}

async fn set_log_level(request: HttpRequest, body: String, shared: web::Data<Shared>) -> HttpResponse {
    if !request.peer_addr().is_some_and(|peer| peer.ip().is_loopback()) {
        return HttpResponse::Forbidden().body("the log level is changed from the pod itself\n");
    }
    let (Some(log), Ok(level)) = (&shared.log, body.trim().parse::<LevelFilter>()) else {
        return HttpResponse::BadRequest().body("one of: off, error, warn, info, debug, trace\n");
    };
    match log.set_level(level) {
        Ok(()) => HttpResponse::Ok().body(format!("{level}\n")),
        Err(error) => HttpResponse::InternalServerError().body(format!("{error}\n")),
    }
}
