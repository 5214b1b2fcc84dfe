//! What the server is told at start. Checked by whoever fills it in; the server takes it as it is.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::TlsVersions;
use crate::api::review::{BadReview, Request};
use crate::engine::{self, Decision, Engine, NamespaceLookup, Side};

/// What answers a review. Tests put one that fails or takes its time here.
pub type Admit = fn(
    &Engine,
    &[u8],
    Side,
    &str,
    &dyn NamespaceLookup,
    &mut dyn FnMut(&Request<'_>, &Decision),
) -> Result<Vec<u8>, BadReview>;

/// Everything the server is told.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The webhook.
    pub listen: SocketAddr,
    /// Health and metrics, without TLS.
    pub ops_listen: SocketAddr,
    /// The server's own certificate.
    pub certificates: Certificates,
    /// Versions of TLS.
    pub tls_versions: TlsVersions,
    /// CA of the clients that may connect; all may without it.
    pub client_ca: Option<PathBuf>,
    /// Names of those clients; all of that CA if empty.
    pub client_names: Vec<String>,
    /// What one client may cost.
    pub limits: Limits,
    /// Threads that answer.
    pub workers: usize,
    /// How long to go on serving after SIGTERM, until the end of the process.
    pub drain: Duration,
    /// How old a connection may get.
    pub max_connection_age: Duration,
    /// How often certificates and policies are looked at without a directory event.
    pub reload_period: Duration,
    /// What answers a review.
    pub admit: Admit,
}

impl Settings {
    /// Sensible values for everything that has one; self-made certificates in memory.
    pub fn new(listen: SocketAddr, ops_listen: SocketAddr) -> Settings {
        Settings {
            listen,
            ops_listen,
            certificates: Certificates::SelfMade { directory: None, names: vec!["localhost".to_owned()] },
            tls_versions: TlsVersions::Tls13,
            client_ca: None,
            client_names: Vec::new(),
            limits: Limits::default(),
            workers: std::thread::available_parallelism().map_or(2, usize::from),
            drain: Duration::from_secs(10),
            max_connection_age: Duration::from_mins(5),
            reload_period: Duration::from_mins(1),
            admit: engine::admit_observed,
        }
    }
}

/// Where the server's certificate comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Certificates {
    /// Files that others write.
    Files {
        /// PEM, the server's certificate first.
        certificate: PathBuf,
        /// PEM: PKCS#8, PKCS#1 or SEC1.
        key: PathBuf,
    },
    /// Made here.
    SelfMade {
        /// Where they are kept; in memory without it.
        directory: Option<PathBuf>,
        /// DNS names and addresses of the server.
        names: Vec<String>,
    },
}

/// What clients may cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Largest body in bytes.
    pub max_body: usize,
    /// Requests in flight; more are told to come back.
    pub max_in_flight: usize,
    /// Open connections; more wait to be accepted. There may be fewer, if memory is not enough for so many.
    pub max_connections: usize,
    /// Memory of the whole process.
    pub max_memory: usize,
    /// For the TLS handshake, and for the head of each request from its first byte.
    pub head_timeout: Duration,
    /// For the body.
    pub body_timeout: Duration,
    /// Between two requests, and before the first.
    pub idle_timeout: Duration,
    /// For a client to take an answer.
    pub write_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            max_body: 8 << 20,
            max_in_flight: 512,
            max_connections: 16_384,
            // The limit of the manifest.
            max_memory: 256 << 20,
            head_timeout: Duration::from_secs(5),
            body_timeout: Duration::from_secs(10),
            // Longer than the 90 seconds after which Go's client gives up an idle connection: it should be the first.
            idle_timeout: Duration::from_mins(2),
            write_timeout: Duration::from_secs(10),
        }
    }
}
