//! A Service in front of several replicas, and a client that calls it as an API server does.
//!
//! The balancer spreads new connections over the replicas that were ready when they were last asked, and leaves open
//! connections alone. The client keeps its connection, and tries a request that had no answer once more on a new one.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::client::{Client, Link, Reply};

/// How long a replica has to say that it is ready, as a kubelet waits.
const PROBE_TIMEOUT: Duration = Duration::from_millis(500);

/// Pause before a second attempt. A process that was killed accepts connections for a few milliseconds longer.
const RETRY_DELAY: Duration = Duration::from_millis(50);

/// Spreads connections over the replicas that are ready. It ends with the process.
pub(crate) struct Balancer {
    pub(crate) address: SocketAddr,
    ready: Arc<Mutex<Vec<SocketAddr>>>,
}

impl Balancer {
    pub(crate) fn start() -> Balancer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let ready: Arc<Mutex<Vec<SocketAddr>>> = Arc::default();
        let targets = Arc::clone(&ready);
        std::thread::spawn(move || {
            for (turn, incoming) in listener.incoming().flatten().enumerate() {
                let mut ready = targets.lock().expect("no panic inside").clone();
                let first = turn % ready.len().max(1);
                ready.rotate_left(first);
                std::thread::spawn(move || forward(incoming, &ready));
            }
        });
        Balancer { address, ready }
    }

    /// Asks all replicas, given by the address of their health checks and that of the webhook, whether they are ready.
    pub(crate) fn probe(&self, replicas: &[(SocketAddr, SocketAddr)]) {
        let ready = std::thread::scope(|scope| {
            let probes: Vec<_> = replicas
                .iter()
                .map(|(ops, webhook)| scope.spawn(|| is_ready(*ops).then_some(*webhook)))
                .collect();
            probes.into_iter().filter_map(|probe| probe.join().ok().flatten()).collect()
        });
        *self.ready.lock().expect("no panic inside") = ready;
    }
}

fn is_ready(address: SocketAddr) -> bool {
    let Ok(mut stream) = TcpStream::connect_timeout(&address, PROBE_TIMEOUT) else { return false };
    _ = stream.set_read_timeout(Some(PROBE_TIMEOUT));
    let mut reply = [0; 12];
    stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").is_ok()
        && stream.read_exact(&mut reply).is_ok()
        && reply.ends_with(b"200")
}

/// Connects a client to the first replica that accepts a connection.
fn forward(client: TcpStream, replicas: &[SocketAddr]) {
    let connect = |replica| TcpStream::connect_timeout(replica, PROBE_TIMEOUT).ok();
    let Some(replica) = replicas.iter().find_map(connect) else { return };
    _ = (client.set_nodelay(true), replica.set_nodelay(true));
    let copy = |mut from: TcpStream, mut to: TcpStream| {
        _ = std::io::copy(&mut from, &mut to);
        _ = to.shutdown(Shutdown::Both);
        _ = from.shutdown(Shutdown::Both);
    };
    let (Ok(back), Ok(forth)) = (replica.try_clone(), client.try_clone()) else { return };
    std::thread::spawn(move || copy(back, forth));
    copy(client, replica);
}

/// A client that keeps its connection.
pub(crate) struct Caller {
    client: Client,
    link: Option<Link>,
    /// Requests that were sent a second time.
    pub(crate) retried: usize,
}

impl Caller {
    pub(crate) fn new(client: Client) -> Caller {
        Caller { client, link: None, retried: 0 }
    }

    /// Closes its connection, so that the next request opens a new one.
    #[allow(dead_code, reason = "only `make chaos` needs it")]
    pub(crate) fn disconnect(&mut self) {
        self.link = None;
    }

    /// Sends a request, and once more if it had no answer or was rejected with 503; `None` if that did not help.
    pub(crate) fn call(&mut self, bytes: &[u8]) -> Option<Reply> {
        if let Some(reply) = self.attempt(bytes) {
            return Some(reply);
        }
        self.retried += 1;
        std::thread::sleep(RETRY_DELAY);
        self.attempt(bytes)
    }

    fn attempt(&mut self, bytes: &[u8]) -> Option<Reply> {
        let mut link = match self.link.take() {
            Some(link) => link,
            None => self.client.connect().ok()?,
        };
        let reply = link.send(bytes).and_then(|()| link.receive()).ok()?;
        if !reply.closes() {
            self.link = Some(link);
        }
        (reply.status != 503).then_some(reply)
    }
}
