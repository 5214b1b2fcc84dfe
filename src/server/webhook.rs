//! The two ports: sockets → TLS → HTTP/1.1 → the handlers of `admit`, and the same without TLS → those of `ops`.
//!
//! Put together here and not by `HttpServer`, whose clocks answer a silent connection with a 408 that nobody asked for,
//! and leave slow heads after the first, and clients that do not read, alone. Ours are in `sweep`.

use std::io;
use std::net::TcpListener;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix_http::error::DispatchError;
use actix_http::{HttpService, KeepAlive, Protocol};
use actix_server::Server;
use actix_service::{IntoServiceFactory as _, Service as _, ServiceFactoryExt as _, fn_service, map_config};
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
use super::sweep::{self, Patience};
use super::{Settings, Shared, admit, clock, ops};

/// Connections of the plain port.
const OPS_CONNECTIONS: usize = 256;

/// What connections of this listener are like: the system holds only so much of an answer, and gives up on a client
/// that takes none of it.
pub(super) fn prepare(listener: &TcpListener, write_timeout: Duration) -> anyhow::Result<()> {
    let millis = u32::try_from(write_timeout.as_millis()).unwrap_or(u32::MAX);
    // The system doubles it.
    sockopt::set_socket_send_buffer_size(listener, connection::SENT / 2)
        .and_then(|()| sockopt::set_tcp_user_timeout(listener, millis))
        .context("cannot prepare the socket")
}

/// Starts to serve the webhook.
pub(super) fn start(
    settings: &Settings,
    shared: Arc<Shared>,
    mut tls: rustls::ServerConfig,
    listener: TcpListener,
) -> anyhow::Result<Server> {
    let workers = settings.workers.max(1);
    let per_worker = shared.limits.max_connections.div_ceil(workers);
    let patience = Patience::new(shared.limits, per_worker);
    let (age, handshake) = (settings.max_connection_age, shared.limits.head_timeout);
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    // Handshakes that never come are connections like others; the cap on those is the one that counts.
    max_concurrent_tls_connect(per_worker);
    let builder = Server::build().workers(workers).max_concurrent_connections(per_worker).disable_signals();
    let builder = builder.listen("webhook", listener, move || {
        let data = web::Data::from(shared.clone());
        let app = App::new()
            .app_data(data)
            .app_data(clock::Seconds::default())
            .route("/validate", web::route().to(admit::validate))
            .route("/mutate", web::route().to(admit::mutate))
            .default_service(web::to(admit::not_found))
            .into_factory()
            .map_err(|error| error.error_response());
        let connected = shared.clone();
        let http = HttpService::build()
            .keep_alive(KeepAlive::Os)
            .client_request_timeout(Duration::ZERO)
            .client_disconnect_timeout(Duration::from_secs(1))
            .on_connect_ext(move |stream: &TlsStream<Stream>, data| {
                let (socket, session) = stream.get_ref();
                let connection = socket.connection();
                // Ages differ by up to a fifth: connections that began together do not end together.
                let spread = u32::try_from(connected.seen() % 16).unwrap_or_default();
                let until = clock::instant() + age.saturating_sub(age / 80 * spread);
                // It wants none if it has something that was not taken yet.
                connection.opened(Some(until), !session.wants_read());
                data.insert(connection.clone());
            })
            .finish(map_config(app, |()| AppConfig::default()));
        let mut acceptor = Acceptor::new(tls.clone());
        acceptor.set_handshake_timeout(handshake);
        let accepted = shared.clone();
        fn_service(move |socket: TcpStream| {
            sweep::start(patience);
            let open = accepted.metrics.connections.clone();
            let stream = Stream::new(socket, Connection::new(accepted.gate.clone(), open));
            std::future::ready(Ok::<_, TlsError<io::Error, DispatchError>>(stream))
        })
        .and_then(acceptor.map_err(TlsError::into_service_error))
        .and_then(|stream: TlsStream<Stream>| {
            let peer = stream.get_ref().0.peer();
            std::future::ready(Ok((stream, Protocol::Http1, peer)))
        })
        .and_then(http.map_err(TlsError::Service))
    })?;
    Ok(builder.run())
}

/// Starts to serve health and metrics, with one worker.
pub(super) fn start_ops(shared: Arc<Shared>, listener: TcpListener) -> anyhow::Result<Server> {
    let patience = Patience::new(shared.limits, OPS_CONNECTIONS);
    let builder = Server::build().workers(1).max_concurrent_connections(OPS_CONNECTIONS).disable_signals();
    let builder = builder.listen("ops", listener, move || {
        let app = App::new()
            .app_data(web::Data::from(shared.clone()))
            .configure(ops::routes)
            .wrap_fn(|request, service| {
                let connection = request.request().conn_data::<Rc<Connection>>().cloned();
                if let Some(connection) = &connection {
                    connection.begins();
                }
                let answer = service.call(request);
                async move {
                    let answer = answer.await;
                    if let Some(connection) = &connection {
                        // No client decides how long it is.
                        let _ = connection.answers(0, false);
                    }
                    answer
                }
            })
            .into_factory()
            .map_err(|error| error.error_response());
        let http = HttpService::build()
            .keep_alive(KeepAlive::Os)
            .client_request_timeout(Duration::ZERO)
            .client_disconnect_timeout(Duration::from_secs(1))
            .on_connect_ext(|stream: &Stream, data| {
                data.insert(stream.connection().clone());
            })
            .finish(map_config(app, |()| AppConfig::default()));
        let accepted = shared.clone();
        fn_service(move |socket: TcpStream| {
            sweep::start(patience);
            let connection = Connection::new(accepted.gate.clone(), Gauge::default());
            connection.opened(None, false);
            let stream = Stream::new(socket, connection);
            let peer = stream.peer();
            std::future::ready(Ok::<_, DispatchError>((stream, Protocol::Http1, peer)))
        })
        .and_then(http)
    })?;
    Ok(builder.run())
}
