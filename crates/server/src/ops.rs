//! The port without TLS: liveness, readiness, metrics, log level.
//!
//! The log level can be changed only from the pod itself (`kubectl port-forward` arrives so), and only by requests for
//! localhost: a browser that was sent here under another name (DNS rebinding) is rejected.

use std::fmt::Write as _;
use std::net::IpAddr;

use actix_web::http::header::{self, HeaderMap, HeaderValue};
use actix_web::{HttpRequest, HttpResponse, web};
use tracing::level_filters::LevelFilter;

use super::{SharedState, background, clock, reload};

/// Adds the routes of health checks, metrics and log level.
pub(super) fn add_routes(config: &mut web::ServiceConfig) {
    config
        // The name of a log level is the longest valid body.
        .app_data(web::PayloadConfig::new(64))
        .route("/livez", web::get().to(livez))
        .route("/readyz", web::get().to(readyz))
        .route("/metrics", web::get().to(metrics))
        .route("/log-level", web::get().to(log_level))
        .route("/log-level", web::put().to(set_log_level));
}

async fn livez() -> HttpResponse {
    HttpResponse::Ok().body("ok\n")
}

async fn readyz(request: HttpRequest, shared: web::Data<SharedState>) -> HttpResponse {
    let checks = readiness_checks(&shared);
    let ready = checks.iter().all(|check| check.ok);
    let mut text = String::new();
    if request.query_string().split('&').any(|word| word == "verbose" || word.starts_with("verbose=")) {
        for check in &checks {
            let sign = match (check.ok, check.degraded) {
                (false, _) => '-',
                (true, true) => '!',
                (true, false) => '+',
            };
            let _ = writeln!(text, "[{sign}]{} {}", check.name, check.message);
        }
    }
    text.push_str(if ready { "ok\n" } else { "not ready\n" });
    if ready { HttpResponse::Ok() } else { HttpResponse::ServiceUnavailable() }.body(text)
}

/// A line of `/readyz?verbose`: the status of one component.
struct ReadyCheck {
    name: &'static str,
    ok: bool,
    /// True if something is wrong with the component that does not affect requests.
    degraded: bool,
    message: String,
}

/// Checks everything that readiness depends on.
fn readiness_checks(shared: &SharedState) -> Vec<ReadyCheck> {
    let draining = shared.is_draining();
    let mut checks = vec![ReadyCheck {
        name: "serving",
        ok: !draining,
        degraded: false,
        message: if draining { "draining" } else { "ok" }.to_owned(),
    }];
    for source in &shared.sources {
        let status = source.status();
        let left = status.expires - clock::unix_seconds();
        let expiry = expiry_text(left);
        let message = match &status.fault {
            None if left <= 0 => expiry,
            None => format!("ok ({expiry})"),
            Some(fault) => {
                format!("not reloaded; the last valid certificate is in use: {fault} ({expiry})")
            }
        };
        checks.push(ReadyCheck {
            name: source.name,
            ok: left > 0,
            degraded: status.fault.is_some(),
            message,
        });
    }
    for task in shared.tasks() {
        let report = (task.status)();
        checks.push(ReadyCheck {
            name: task.name,
            ok: report.ready,
            degraded: report.degraded,
            message: report.message,
        });
    }
    let config = shared.config.current();
    let policies = &config.engine.policies;
    let fault = shared.config.reload_error();
    if fault.is_some() || !policies.is_empty() {
        let is_waiting = shared.config.has_config_waiting_for_labels();
        let lacks_labels = config.policies_lack_label_source(shared.namespaces());
        let mut message = match &fault {
            None if is_waiting => {
                "new policies are not used until the namespaces are listed; the last valid policies are in use"
                    .to_owned()
            }
            None if lacks_labels => reload::NO_LABELS_MESSAGE.to_owned(),
            None => "ok".to_owned(),
            Some(fault) => format!("not reloaded; the last valid policies are in use: {fault}"),
        };
        let degraded = fault.is_some() || is_waiting || lacks_labels;
        let _ = write!(message, " ({} policies, digest {})", policies.len(), policies.digest());
        // Policies that do not load do not make the server unready: the last good set answers.
        checks.push(ReadyCheck { name: "policies", ok: true, degraded, message });
    }
    let profiles: Vec<&str> = config.engine.profiles.iter().map(|profile| profile.name).collect();
    let message = format!("ok (profiles {})", profiles.join(", "));
    checks.push(ReadyCheck { name: "engine", ok: true, degraded: false, message });
    checks
}

/// Returns `expires in 2159 hours` or `expired 3 hours ago`; `left` is in seconds.
fn expiry_text(left: i64) -> String {
    let time = match left.unsigned_abs() / 3600 {
        0 => "less than 1 hour".to_owned(),
        1 => "1 hour".to_owned(),
        hours => format!("{hours} hours"),
    };
    if left > 0 { format!("expires in {time}") } else { format!("expired {time} ago") }
}

async fn metrics(shared: web::Data<SharedState>) -> HttpResponse {
    if let Some(log) = &shared.log {
        shared.metrics.dropped_lines.inc_by(log.take_dropped_line_count());
    }
    let mut text = shared.metrics.render();
    let limiter = &shared.limiter;
    let held = [
        ("common", limiter.common.used()),
        ("small", limiter.small.used()),
        ("working", limiter.working.used() + limiter.small_working.used()),
    ];
    let held = held.map(|(name, used)| background::MetricSample {
        name: "held_bytes",
        help: "Memory reserved for requests, by share",
        label: Some(("share", name)),
        value: i64::try_from(used).unwrap_or(i64::MAX),
    });
    let tasks = shared.tasks().flat_map(|task| (task.status)().samples);
    background::insert_samples_before_eof(&mut text, held.into_iter().chain(tasks).collect());
    let media_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    HttpResponse::Ok().insert_header((header::CONTENT_TYPE, HeaderValue::from_static(media_type))).body(text)
}

async fn log_level(shared: web::Data<SharedState>) -> HttpResponse {
    match &shared.log {
        Some(log) => HttpResponse::Ok().body(format!("{}\n", log.level())),
        None => HttpResponse::NotFound().body("logging is not enabled\n"),
    }
}

async fn set_log_level(request: HttpRequest, body: String, shared: web::Data<SharedState>) -> HttpResponse {
    if !request.peer_addr().is_some_and(|peer| peer.ip().is_loopback()) {
        return HttpResponse::Forbidden().body("the log level can be changed only from within the pod\n");
    }
    if !is_local_and_not_from_browser(request.headers()) {
        return HttpResponse::Forbidden()
            .body("the log level can be changed only through localhost, and not by a web page\n");
    }
    let (Some(log), Ok(level)) = (&shared.log, body.trim().parse::<LevelFilter>()) else {
        return HttpResponse::BadRequest().body("use one of: off, error, warn, info, debug, trace\n");
    };
    match log.set_level(level) {
        Ok(()) => HttpResponse::Ok().body(format!("{level}\n")),
        Err(error) => HttpResponse::InternalServerError().body(format!("{error}\n")),
    }
}

/// True if the request is addressed to localhost, and was not made by a web page.
fn is_local_and_not_from_browser(headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(header::HOST);
    let host = match (hosts.next(), hosts.next()) {
        (Some(only), None) => only.to_str().unwrap_or_default(),
        _ => return false,
    };
    let name = match host.strip_prefix('[') {
        Some(address) => address.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let is_local = name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    is_local && !headers.contains_key(header::ORIGIN) && !headers.contains_key(header::REFERER)
}

#[cfg(test)]
mod tests {
    use super::{HeaderMap, HeaderValue, expiry_text, header, is_local_and_not_from_browser};

    #[test]
    fn an_expired_certificate_has_expired() {
        for (left, expected) in [
            (2159 * 3600 + 5, "expires in 2159 hours"),
            (3600, "expires in 1 hour"),
            (1, "expires in less than 1 hour"),
            (0, "expired less than 1 hour ago"),
            (-3600, "expired 1 hour ago"),
            (-3 * 3600, "expired 3 hours ago"),
        ] {
            assert_eq!(expiry_text(left), expected);
        }
    }

    #[test]
    fn only_this_machine_by_name_changes_the_log_level() {
        let headers = |host: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_static(host));
            headers
        };
        for host in ["localhost", "LocalHost:8081", "127.0.0.1:8081", "127.9.9.9", "[::1]:8081", "[::1]"] {
            assert!(is_local_and_not_from_browser(&headers(host)), "{host}");
        }
        for host in [
            "",
            "example.com",
            "localhost.example.com:8081",
            "127.0.0.1.nip.example",
            "10.0.0.1",
            "[::2]:8081",
            "0.0.0.0",
            "localhost@example.com",
        ] {
            assert!(!is_local_and_not_from_browser(&headers(host)), "{host}");
        }
        let mut twice = headers("localhost");
        twice.append(header::HOST, HeaderValue::from_static("localhost"));
        let mut page = headers("localhost:8081");
        page.insert(header::ORIGIN, HeaderValue::from_static("http://localhost:8081"));
        assert!(
            !is_local_and_not_from_browser(&twice)
                && !is_local_and_not_from_browser(&page)
                && !is_local_and_not_from_browser(&HeaderMap::new())
        );
    }
}
