//! The two listeners: socket → TLS → HTTP/1.1 → the handlers of `handler`, and the same without TLS → those of `ops`.
//!
//! Built from actix's parts and not with `HttpServer`, whose timeouts answer a silent connection with an unsolicited
//! 408 and do not cover slow heads after the first, or clients that do not read. The timeouts here are in `sweep`.
//!
//! Connections are accepted even if there are too many. Otherwise a connection of an API server could wait in the
//! accept queue of the system behind those of other clients. The new connection displaces another one.

use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix_http::{HttpService, KeepAlive, Protocol};
use actix_server::Server;
use actix_service::{
    IntoServiceFactory as _, Service as _, ServiceFactoryExt as _, apply_fn_factory, map_config,
};
use actix_tls::accept::rustls_0_23::{Acceptor, TlsStream};
use actix_tls::accept::{TlsError, max_concurrent_tls_connect};
use actix_web::dev::AppConfig;
use actix_web::rt::net::TcpStream;
use actix_web::{App, web};
use anyhow::Context as _;
use prometheus_client::metrics::gauge::Gauge;
use rustix::net::sockopt;

use super::connection::{self, Connection};
use super::stream::Stream;
use super::sweep::{self, ConnectionTimeouts, WorkerConnectionLimits};
use super::{Settings, SharedState, clock, handler, ops};
use tollgate_engine::engine::Endpoint;

/// Limits on connections of the port without TLS, for health checks and metrics.
const OPS_LIMITS: WorkerConnectionLimits = WorkerConnectionLimits { connections: 256, per_address: 64 };
/// Number of connections per worker that may wait, beyond the limit, until the worker has closed others for them.
const MAX_WAITING_CONNECTIONS: usize = 64;

/// Number of connections that all workers may have open beyond the limit, while they close others.
pub(super) fn max_connections_beyond_limit(workers: usize) -> usize {
    OPS_LIMITS.connections + MAX_WAITING_CONNECTIONS * (workers + 1)
}

/// Sets options that the listener's connections inherit: how much of a response the system buffers, and after how long
/// it gives up on a client that reads none of it.
pub(super) fn set_send_buffer_and_write_timeout(
    listener: &TcpListener,
    write_timeout: Duration,
) -> anyhow::Result<()> {
    let millis = u32::try_from(write_timeout.as_millis()).unwrap_or(u32::MAX);
    // The system doubles it.
    sockopt::set_socket_send_buffer_size(listener, connection::SEND_BUFFER / 2)
        .and_then(|()| sockopt::set_tcp_user_timeout(listener, millis))
        .context("cannot prepare the socket")
}

/// Starts the listener of the webhook.
pub(super) fn start_webhook(
    settings: &Settings,
    shared: Arc<SharedState>,
    mut tls: rustls::ServerConfig,
    listener: TcpListener,
) -> anyhow::Result<Server> {
    let workers = settings.workers.max(1);
    let per_worker = shared.limits.max_connections.div_ceil(workers);
    let room = WorkerConnectionLimits { connections: per_worker, per_address: per_worker };
    let timeouts = ConnectionTimeouts::new(shared.limits);
    let (age, handshake) = (settings.max_connection_age, shared.limits.head_timeout);
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    // Handshakes count as connections; the limit on connections is the one that matters.
    max_concurrent_tls_connect(usize::MAX);
    let builder = Server::build().workers(workers).disable_signals();
    let builder = builder.max_concurrent_connections(per_worker + MAX_WAITING_CONNECTIONS);
    let builder = builder.listen("webhook", listener, move || {
        let data = web::Data::from(shared.clone());
        let app = App::new()
            .app_data(data)
            .app_data(clock::SecondClock::default())
            .route(
                "/validate",
                web::route().to(|request, payload, shared| {
                    handler::handle_review(request, payload, shared, Endpoint::Validate)
                }),
            )
            .route(
                "/mutate",
                web::route().to(|request, payload, shared| {
                    handler::handle_review(request, payload, shared, Endpoint::Mutate)
                }),
            )
            .default_service(web::to(handler::not_found))
            .into_factory()
            .map_err(|error| error.error_response());
        let connected = shared.clone();
        let http = HttpService::build()
            .keep_alive(KeepAlive::Os)
            .client_request_timeout(Duration::ZERO)
            .client_disconnect_timeout(Duration::from_secs(1))
            .h1_allow_half_closed(false)
            .on_connect_ext(move |stream: &TlsStream<Stream>, data| {
                let (socket, session) = stream.get_ref();
                let connection = socket.connection();
                // Ages differ by up to a fifth, so that connections opened together do not close together.
                let spread = u32::try_from(connected.increment_activity_counter() % 16).unwrap_or_default();
                let expires = clock::monotonic_now() + age.saturating_sub(age / 80 * spread);
                // It does not want to read if it has data that was not consumed yet.
                connection.handshake_done(Some(expires), !session.wants_read());
                data.insert(connection.clone());
            })
            .finish(map_config(app, |()| AppConfig::default()));
        let mut acceptor = Acceptor::new(tls.clone());
        acceptor.set_handshake_timeout(handshake);
        let accepted = shared.clone();
        let service = acceptor
            .map_err(TlsError::into_service_error)
            .and_then(|stream: TlsStream<Stream>| {
                let peer = stream.get_ref().0.peer();
                std::future::ready(Ok((stream, Protocol::Http1, peer)))
            })
            .and_then(http.map_err(TlsError::Service));
        apply_fn_factory(service, move |socket: TcpStream, service| {
            sweep::ensure_worker_sweep(timeouts);
            let connection = track_connection_aborting_others_if_full(
                &socket,
                room,
                &accepted,
                accepted.metrics.connections.clone(),
            );
            let serving = service.call(Stream::new(socket, connection.clone()));
            async move { connection.serve_until_aborted(serving).await }
        })
    })?;
    Ok(builder.run())
}

/// Starts health checks and metrics, with one worker. A connection ends with its first response: probes and scrapes
/// come seconds apart, and a connection kept open meanwhile takes the place of another.
pub(super) fn start_health_and_metrics_server(
    shared: Arc<SharedState>,
    listener: TcpListener,
) -> anyhow::Result<Server> {
    let timeouts = ConnectionTimeouts::new(shared.limits);
    let builder = Server::build().workers(1).disable_signals();
    let builder = builder.max_concurrent_connections(OPS_LIMITS.connections + MAX_WAITING_CONNECTIONS);
    let builder = builder.listen("ops", listener, move || {
        let app = App::new()
            .app_data(web::Data::from(shared.clone()))
            .configure(ops::add_routes)
            .wrap_fn(|request, service| {
                let connection = request.request().conn_data::<Rc<Connection>>().cloned();
                if let Some(connection) = &connection {
                    connection.request_started();
                }
                let answer = service.call(request);
                async move {
                    let answer = answer.await;
                    if let Some(connection) = &connection {
                        // Its length does not depend on the client.
                        let _ = connection.reserve_and_start_response(0, true);
                    }
                    answer
                }
            })
            .into_factory()
            .map_err(|error| error.error_response());
        let http = HttpService::build()
            .keep_alive(KeepAlive::Disabled)
            .client_request_timeout(Duration::ZERO)
            .client_disconnect_timeout(Duration::from_secs(1))
            .on_connect_ext(|stream: &Stream, data| {
                data.insert(stream.connection().clone());
            })
            .finish(map_config(app, |()| AppConfig::default()));
        let accepted = shared.clone();
        apply_fn_factory(http, move |socket: TcpStream, service| {
            sweep::ensure_worker_sweep(timeouts);
            // Without a TLS handshake, all of the first phase is for the head of the request.
            let connection =
                track_connection_aborting_others_if_full(&socket, OPS_LIMITS, &accepted, Gauge::default());
            let stream = Stream::new(socket, connection.clone());
            let peer = stream.peer();
            let serving = service.call((stream, Protocol::Http1, peer));
            async move { connection.serve_until_aborted(serving).await }
        })
    })?;
    Ok(builder.run())
}

/// Returns the state of a new connection, for which others are aborted if there are too many.
fn track_connection_aborting_others_if_full(
    socket: &TcpStream,
    room: WorkerConnectionLimits,
    shared: &SharedState,
    open: Gauge,
) -> Rc<Connection> {
    // A client that is already gone has no address.
    let address =
        socket.peer_addr().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.ip().to_canonical());
    let evicted = sweep::abort_to_make_room(room, address);
    shared.metrics.evicted.inc_by(u64::try_from(evicted).unwrap_or_default());
    Connection::new(shared.limiter.clone(), open, address)
}
