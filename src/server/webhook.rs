//! The two listeners: socket → TLS → HTTP/1.1 → the handlers of `handler`, and the same without TLS → those of `ops`.
//!
//! Built from actix's parts and not with `HttpServer`, whose timeouts answer a silent connection with an unsolicited
//! 408 and do not cover slow heads after the first, or clients that do not read. The timeouts here are in `sweep`.

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
use super::sweep::{self, ConnectionTimeouts};
use super::{Settings, SharedState, clock, handler, ops};

/// Connections of the port without TLS.
const OPS_CONNECTIONS: usize = 256;

/// Socket options of the listener's connections: the system buffers only so much of a response, and gives up on a
/// client that reads none of it.
pub(super) fn configure_socket(listener: &TcpListener, write_timeout: Duration) -> anyhow::Result<()> {
    let millis = u32::try_from(write_timeout.as_millis()).unwrap_or(u32::MAX);
    // The system doubles it.
    sockopt::set_socket_send_buffer_size(listener, connection::SEND_BUFFER / 2)
        .and_then(|()| sockopt::set_tcp_user_timeout(listener, millis))
        .context("cannot prepare the socket")
}

/// Starts the webhook.
pub(super) fn start(
    settings: &Settings,
    shared: Arc<SharedState>,
    mut tls: rustls::ServerConfig,
    listener: TcpListener,
) -> anyhow::Result<Server> {
    let workers = settings.workers.max(1);
    let per_worker = shared.limits.max_connections.div_ceil(workers);
    let timeouts = ConnectionTimeouts::new(shared.limits, per_worker);
    let (age, handshake) = (settings.max_connection_age, shared.limits.head_timeout);
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    // Handshakes count as connections; the limit on connections is the one that matters.
    max_concurrent_tls_connect(per_worker);
    let builder = Server::build().workers(workers).max_concurrent_connections(per_worker).disable_signals();
    let builder = builder.listen("webhook", listener, move || {
        let data = web::Data::from(shared.clone());
        let app = App::new()
            .app_data(data)
            .app_data(clock::Seconds::default())
            .route("/validate", web::route().to(handler::validate))
            .route("/mutate", web::route().to(handler::mutate))
            .default_service(web::to(handler::not_found))
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
                // Ages differ by up to a fifth, so that connections opened together do not close together.
                let spread = u32::try_from(connected.record_activity() % 16).unwrap_or_default();
                let expires = clock::instant() + age.saturating_sub(age / 80 * spread);
                // It does not want to read if it has data that was not consumed yet.
                connection.handshake_done(Some(expires), !session.wants_read());
                data.insert(connection.clone());
            })
            .finish(map_config(app, |()| AppConfig::default()));
        let mut acceptor = Acceptor::new(tls.clone());
        acceptor.set_handshake_timeout(handshake);
        let accepted = shared.clone();
        fn_service(move |socket: TcpStream| {
            sweep::start(timeouts);
            let open = accepted.metrics.connections.clone();
            let stream = Stream::new(socket, Connection::new(accepted.limiter.clone(), open));
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

/// Starts health checks and metrics, with one worker.
pub(super) fn start_ops(shared: Arc<SharedState>, listener: TcpListener) -> anyhow::Result<Server> {
    let timeouts = ConnectionTimeouts::new(shared.limits, OPS_CONNECTIONS);
    let builder = Server::build().workers(1).max_concurrent_connections(OPS_CONNECTIONS).disable_signals();
    let builder = builder.listen("ops", listener, move || {
        let app = App::new()
            .app_data(web::Data::from(shared.clone()))
            .configure(ops::routes)
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
                        let _ = connection.response_started(0, false);
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
            sweep::start(timeouts);
            let connection = Connection::new(accepted.limiter.clone(), Gauge::default());
            connection.handshake_done(None, false);
            let stream = Stream::new(socket, connection);
            let peer = stream.peer();
            std::future::ready(Ok::<_, DispatchError>((stream, Protocol::Http1, peer)))
        })
        .and_then(http)
    })?;
    Ok(builder.run())
}
