//! The socket of a connection, below TLS: reports reads and writes, and reads only if the connection may.
//!
//! Below TLS every byte is visible: handshakes, incomplete records, and whether the system accepts what is written.

use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use actix_web::rt::net::{ActixStream, Ready, TcpStream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::connection::Connection;

/// A socket and the state of its connection.
#[derive(Debug)]
pub(super) struct Stream {
    socket: TcpStream,
    connection: Rc<Connection>,
}

impl Stream {
    pub(super) fn new(socket: TcpStream, connection: Rc<Connection>) -> Stream {
        Stream { socket, connection }
    }

    pub(super) fn connection(&self) -> &Rc<Connection> {
        &self.connection
    }

    pub(super) fn peer(&self) -> Option<std::net::SocketAddr> {
        self.socket.peer_addr().ok()
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.connection.reserve_for_read_or_pause() {
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.socket).poll_read(cx, buffer);
        self.connection.on_read(buffer.filled().len() - before);
        polled
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    /// Reports that everything is written, because TLS flushes the socket only when it has nothing left to write.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.socket).poll_flush(cx);
        if polled.is_ready() {
            self.connection.on_flushed();
        }
        polled
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

impl ActixStream for Stream {
    fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<Ready>> {
        self.socket.poll_read_ready(cx).map_ok(|()| Ready::READABLE)
    }

    fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<Ready>> {
        self.socket.poll_write_ready(cx).map_ok(|()| Ready::WRITABLE)
    }
}
