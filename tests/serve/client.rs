//! A small HTTPS client: HTTP/1.1 over rustls, blocking, with nothing hidden.
//!
//! It can also send half a request and wait, which no ordinary client does.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion};

/// A client with its trusted CAs and connection settings.
#[derive(Clone)]
pub(crate) struct Client {
    config: Arc<ClientConfig>,
    address: SocketAddr,
    source: IpAddr,
    timeout: Duration,
}

/// An HTTP response.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// True if the server closes the connection after this response.
    pub(crate) fn closes(&self) -> bool {
        self.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }
}

impl Client {
    /// Trusts the CAs given as PEM.
    pub(crate) fn new(address: SocketAddr, authorities: &str) -> Client {
        Client::with(address, config(authorities, &[&rustls::version::TLS13], None))
    }

    /// Creates a client that supports only this version of TLS.
    pub(crate) fn only(
        address: SocketAddr,
        authorities: &str,
        version: &'static SupportedProtocolVersion,
    ) -> Client {
        Client::with(address, config(authorities, &[version], None))
    }

    /// Creates a client with a client certificate (chain and key, PEM).
    pub(crate) fn named(address: SocketAddr, authorities: &str, own: (&str, &str)) -> Client {
        Client::with(address, config(authorities, &[&rustls::version::TLS13], Some(own)))
    }

    fn with(address: SocketAddr, config: ClientConfig) -> Client {
        let source = Ipv4Addr::LOCALHOST.into();
        Client { config: Arc::new(config), address, source, timeout: Duration::from_secs(30) }
    }

    /// Offers these protocols in ALPN.
    pub(crate) fn offering(mut self, protocols: &[&str]) -> Client {
        let mut config = (*self.config).clone();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        self.config = Arc::new(config);
        self
    }

    /// Connects from this address: all of 127.0.0.0/8 is this machine.
    pub(crate) fn from(&self, source: impl Into<IpAddr>) -> Client {
        Client { source: source.into(), ..self.clone() }
    }

    /// Waits so long for bytes of the server.
    #[allow(dead_code, reason = "only programs that break servers need it")]
    pub(crate) fn patient(&self, timeout: Duration) -> Client {
        Client { timeout, ..self.clone() }
    }

    /// Connects, handshake included.
    pub(crate) fn connect(&self) -> io::Result<Link> {
        let mut socket = connect_from(self.source, self.address)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(self.timeout))?;
        let name = ServerName::try_from("localhost").expect("a name");
        let mut connection = ClientConnection::new(self.config.clone(), name).map_err(io::Error::other)?;
        while connection.is_handshaking() {
            connection.complete_io(&mut socket)?;
        }
        Ok(Link { stream: StreamOwned::new(connection, socket), unread: Vec::new() })
    }

    /// Sends one request on a new connection.
    pub(crate) fn post(&self, path: &str, body: &[u8]) -> io::Result<Reply> {
        self.connect()?.post(path, body)
    }
}

fn config(
    authorities: &str,
    versions: &[&'static SupportedProtocolVersion],
    own: Option<(&str, &str)>,
) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    for authority in CertificateDer::pem_slice_iter(authorities.as_bytes()) {
        roots.add(authority.expect("PEM")).expect("a CA");
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_protocol_versions(versions)
        .expect("versions")
        .with_root_certificates(roots);
    match own {
        None => builder.with_no_client_auth(),
        Some((chain, key)) => {
            let chain =
                CertificateDer::pem_slice_iter(chain.as_bytes()).map(|der| der.expect("PEM")).collect();
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("a key");
            builder.with_client_auth_cert(chain, key).expect("a pair")
        }
    }
}

/// A connection to the server.
pub(crate) struct Link {
    stream: StreamOwned<ClientConnection, TcpStream>,
    unread: Vec<u8>,
}

impl Link {
    /// Sends a review as the API server does, and reads the answer.
    pub(crate) fn post(&mut self, path: &str, body: &[u8]) -> io::Result<Reply> {
        self.send(&request("POST", path, "application/json", body))?;
        self.receive()
    }

    /// Sends bytes as they are.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)?;
        self.stream.flush()
    }

    /// Reads one response.
    pub(crate) fn receive(&mut self) -> io::Result<Reply> {
        let head = loop {
            if let Some(end) = find(&self.unread, b"\r\n\r\n") {
                break end + 4;
            }
            self.fill()?;
        };
        let text = String::from_utf8_lossy(&self.unread[..head]).into_owned();
        let mut lines = text.split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|code| code.parse().ok());
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let mut reply = Reply { status: status.unwrap_or_default(), headers, body: Vec::new() };
        let length: usize = reply.header("content-length").and_then(|value| value.parse().ok()).unwrap_or(0);
        while self.unread.len() < head + length {
            self.fill()?;
        }
        reply.body = self.unread[head..head + length].to_vec();
        self.unread.drain(..head + length);
        Ok(reply)
    }

    /// The bytes that arrive in this time, which may be none; `None` if the connection is closed.
    pub(crate) fn silence(&mut self, time: Duration) -> Option<Vec<u8>> {
        self.stream.sock.set_read_timeout(Some(time)).expect("set");
        let result = self.fill();
        self.stream.sock.set_read_timeout(Some(Duration::from_secs(30))).expect("set");
        match result {
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                Some(self.unread.clone())
            }
            Ok(()) => Some(self.unread.clone()),
            Err(_) => None,
        }
    }

    /// The bytes until the server closes the connection.
    pub(crate) fn until_end(&mut self) -> Vec<u8> {
        self.wait_for_end();
        self.unread.clone()
    }

    /// The TCP socket below TLS.
    pub(crate) fn socket(&mut self) -> &mut TcpStream {
        &mut self.stream.sock
    }

    /// Sends as much as the system and the server take within two seconds.
    pub(crate) fn send_what_fits(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.sock.set_write_timeout(Some(Duration::from_secs(2)))?;
        self.send(bytes)
    }

    /// Waits until the server closes the connection, and discards remaining bytes.
    pub(crate) fn wait_for_end(&mut self) {
        while self.fill().is_ok() {}
    }

    /// The server's certificate.
    pub(crate) fn certificate(&self) -> Vec<u8> {
        let chain = self.stream.conn.peer_certificates().expect("a certificate");
        chain[0].to_vec()
    }

    /// Number of certificates that the server presented.
    pub(crate) fn chain_length(&self) -> usize {
        self.stream.conn.peer_certificates().map_or(0, <[_]>::len)
    }

    /// The protocol negotiated with ALPN.
    pub(crate) fn protocol(&self) -> Option<String> {
        self.stream.conn.alpn_protocol().map(|name| String::from_utf8_lossy(name).into_owned())
    }

    fn fill(&mut self) -> io::Result<()> {
        let mut buffer = [0_u8; 16 << 10];
        let count = self.stream.read(&mut buffer)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.unread.extend_from_slice(&buffer[..count]);
        Ok(())
    }
}

/// The bytes of a request, with the headers an API server sends.
pub(crate) fn request(method: &str, path: &str, media_type: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: kube-apiserver-admission\r\nContent-Length: {}\r\n\
         Accept: application/json, */*\r\nContent-Type: {media_type}\r\nAccept-Encoding: gzip\r\n\r\n",
        body.len()
    )
    .into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// Connects from this address.
pub(crate) fn connect_from(source: IpAddr, address: SocketAddr) -> io::Result<TcpStream> {
    use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket(family, SocketType::STREAM, None)?;
    bind(&socket, &SocketAddr::new(source, 0))?;
    connect(&socket, &address)?;
    Ok(socket.into())
}

/// Sends one request to the port without TLS.
pub(crate) fn plain(address: SocketAddr, method: &str, path: &str, body: &str) -> io::Result<Reply> {
    let mut socket = connect_from(Ipv4Addr::LOCALHOST.into(), address)?;
    socket.set_read_timeout(Some(Duration::from_secs(30)))?;
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(head.as_bytes())?;
    let mut all = Vec::new();
    socket.read_to_end(&mut all)?;
    let end = find(&all, b"\r\n\r\n").ok_or(io::ErrorKind::UnexpectedEof)? + 4;
    let head = String::from_utf8_lossy(&all[..end]).into_owned();
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_default();
    let headers = head
        .split("\r\n")
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    Ok(Reply { status, headers, body: all[end..].to_vec() })
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}
