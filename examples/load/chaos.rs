//! `make chaos`: three replicas behind a balancer, under load, while things break.
//!
//! The clients behave like an API server: they keep connections, wait two seconds for an answer, and try once more, with
//! a new connection, if a connection breaks. The balancer behaves like a Service: it spreads connections over the
//! replicas that were ready half a second ago, and leaves open connections alone. After each fault it is said how many
//! answers were wrong, lost and late, and how long it took until all were right and in time again.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, Signal};

use crate::client::{Client, request};
use crate::reviews;
use crate::server::{self, Server};

const REPLICAS: usize = 3;
const CLIENTS: u32 = 6;
/// Time between two requests of a client.
const PAUSE: Duration = Duration::from_millis(5);
/// How long a client waits for an answer.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Later answers are late.
const LATE: Duration = Duration::from_millis(500);
/// Everything is right again after so long.
const MAX_RECOVERY: Duration = Duration::from_secs(5);
/// How long a fault lasts, if it does not end at once.
const FAULT: Duration = Duration::from_secs(4);

/// What the clients saw.
#[derive(Default)]
struct Seen {
    answered: AtomicUsize,
    wrong: AtomicUsize,
    /// Neither of two attempts had an answer.
    lost: AtomicUsize,
    late: AtomicUsize,
    retried: AtomicUsize,
    /// When something was wrong, lost or late for the last time, in milliseconds since the start.
    last_trouble: AtomicU64,
}

/// The replicas that new connections go to.
#[derive(Default)]
struct Endpoints(Mutex<Vec<SocketAddr>>);

/// Something that breaks, and may last for a while.
type Fault = fn(&mut World<'_>);

struct World<'f> {
    folder: &'f Path,
    replicas: Vec<Server>,
    endpoints: Arc<Endpoints>,
    seen: Arc<Seen>,
    start: Instant,
}

/// Runs all faults. Returns true if the bars hold.
pub(crate) fn run(folder: &Path) -> bool {
    let policies = folder.join("policies");
    std::fs::create_dir_all(&policies).expect("a folder");
    write_policy(&policies, "team-a");
    let mut world = World {
        folder,
        replicas: (0..REPLICAS).map(|_| start_replica(folder, &[])).collect(),
        endpoints: Arc::default(),
        seen: Arc::default(),
        start: Instant::now(),
    };
    let over = Arc::new(AtomicBool::new(false));
    let balancer = start_balancer(Arc::clone(&world.endpoints), Arc::clone(&over));
    let mut holds = true;
    std::thread::scope(|scope| {
        world.look_for_ready_replicas();
        for number in 0..CLIENTS {
            let client = world.replicas[0].client_at(balancer).patient(TIMEOUT);
            let (seen, over, start) = (Arc::clone(&world.seen), Arc::clone(&over), world.start);
            scope.spawn(move || send(&client, number, &seen, &over, start));
        }
        world.wait(Duration::from_secs(2));
        println!(
            "{:<44}{:>9}{:>7}{:>6}{:>6}{:>9}{:>11}",
            "fault", "answered", "wrong", "lost", "late", "retried", "recovery s"
        );
        let faults: [(&str, Fault); 10] = [
            ("nothing", |world| world.wait(FAULT)),
            ("kill -9 one replica, restart after 2 s", kill_one),
            ("SIGTERM one after the other, restart", roll),
            ("SIGSTOP one replica for 4 s", stop_one),
            ("new certificate every 200 ms", swap_certificates),
            ("new or broken policies every 200 ms", swap_policies),
            ("no free file descriptors in one replica", exhaust_descriptors),
            ("16 threads take the processors", starve),
            ("16 senders of 8 MiB bodies", fill_memory),
            ("1,500 connections that say nothing", half_open),
        ];
        for (name, fault) in faults {
            holds &= world.play(name, fault);
        }
        match faketime() {
            Some(library) => {
                holds &= world.play("clock +1 h, then -1 h, in one replica", |world| jump(world, &library))
            }
            None => println!(
                "{:<44}not run: libfaketime is not installed",
                "clock +1 h, then -1 h, in one replica"
            ),
        }
        let full = world.play("the log of one replica is on a full disk", fill_disk);
        holds &= full;
        over.store(true, Ordering::Relaxed);
    });
    println!("{}", if holds { "all bars hold" } else { "a bar is broken" });
    holds
}

fn start_replica(folder: &Path, more: &[&str]) -> Server {
    let policies = folder.join("policies").display().to_string();
    Server::tollgate(
        folder,
        &[&["--log-level", "error", "--policies", &policies], more].concat(),
        Some(&folder.join("log")),
    )
}

fn write_policy(folder: &Path, namespace: &str) {
    let text = format!(
        "apiVersion: tollgate.dev/v1alpha1\nkind: TolerationPolicy\nmetadata: {{name: chaos}}\nspec:\n  match: {{namespaces: [{namespace}]}}\n  deny:\n  - {{key: example.com/never}}\n"
    );
    write_by_rename(folder, &text);
}

fn write_by_rename(folder: &Path, text: &str) {
    std::fs::write(folder.join("policy.new"), text).expect("written");
    std::fs::rename(folder.join("policy.new"), folder.join("policy.yaml")).expect("renamed");
}

impl World<'_> {
    /// Plays a fault, waits until everything is right again, and prints a line. Returns true if the bars hold.
    fn play(&mut self, name: &str, fault: impl FnOnce(&mut World<'_>)) -> bool {
        let counts = |seen: &Seen| {
            [&seen.answered, &seen.wrong, &seen.lost, &seen.late, &seen.retried]
                .map(|count| count.load(Ordering::Relaxed))
        };
        let before = counts(&self.seen);
        fault(self);
        let ended = self.start.elapsed();
        self.wait(MAX_RECOVERY + Duration::from_secs(1));
        let [answered, wrong, lost, late, retried] =
            std::array::from_fn(|place| counts(&self.seen)[place] - before[place]);
        let trouble = Duration::from_millis(self.seen.last_trouble.load(Ordering::Relaxed));
        let recovery = trouble.saturating_sub(ended);
        println!(
            "{name:<44}{answered:>9}{wrong:>7}{lost:>6}{late:>6}{retried:>9}{:>11.2}",
            recovery.as_secs_f64()
        );
        wrong == 0 && lost == 0 && recovery <= MAX_RECOVERY
    }

    /// Waits, and looks twice a second which replicas are ready, as a kubelet does.
    fn wait(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            self.look_for_ready_replicas();
            std::thread::sleep(Duration::from_millis(500).min(end.saturating_duration_since(Instant::now())));
        }
    }

    fn look_for_ready_replicas(&self) {
        let ready: Vec<SocketAddr> = std::thread::scope(|scope| {
            let probes: Vec<_> = self
                .replicas
                .iter()
                .map(|replica| scope.spawn(|| is_ready(replica.ops()).then(|| replica.address())))
                .collect();
            probes.into_iter().filter_map(|probe| probe.join().ok().flatten()).collect()
        });
        *self.endpoints.0.lock().expect("no panic") = ready;
    }
}

/// Asks a replica whether it is ready, and waits half a second for the answer.
fn is_ready(address: SocketAddr) -> bool {
    let half_a_second = Duration::from_millis(500);
    let Ok(mut stream) = TcpStream::connect_timeout(&address, half_a_second) else { return false };
    _ = stream.set_read_timeout(Some(half_a_second));
    let mut reply = [0; 12];
    stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").is_ok()
        && stream.read_exact(&mut reply).is_ok()
        && reply.ends_with(b"200")
}

fn start_balancer(endpoints: Arc<Endpoints>, over: Arc<AtomicBool>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        let mut next = 0_usize;
        for incoming in listener.incoming().flatten() {
            if over.load(Ordering::Relaxed) {
                return;
            }
            let ready = endpoints.0.lock().expect("no panic").clone();
            next = next.wrapping_add(1);
            let Some(target) = ready.get(next % ready.len().max(1)).copied() else { continue };
            std::thread::spawn(move || forward(incoming, target));
        }
    });
    address
}

fn forward(client: TcpStream, target: SocketAddr) {
    let Ok(replica) = TcpStream::connect_timeout(&target, Duration::from_secs(1)) else { return };
    let copy = |mut from: TcpStream, mut to: TcpStream| {
        _ = std::io::copy(&mut from, &mut to);
        _ = to.shutdown(Shutdown::Both);
        _ = from.shutdown(Shutdown::Both);
    };
    let (Ok(back), Ok(forth)) = (replica.try_clone(), client.try_clone()) else { return };
    std::thread::spawn(move || copy(back, forth));
    copy(client, replica);
}

/// Sends claims, every third of which must be denied, until it is over.
fn send(client: &Client, number: u32, seen: &Seen, over: &AtomicBool, start: Instant) {
    let valid = reviews::claim();
    let invalid = String::from_utf8(valid.clone())
        .expect("UTF-8")
        .replace("\"operator\":\"Exists\"", "\"operator\":\"Never\"");
    let as_request = |body: &[u8]| request("POST", "/validate?timeout=10s", "application/json", body);
    let (valid, invalid) = (as_request(&valid), as_request(invalid.as_bytes()));
    let (mut link, mut turn) = (None, number);
    while !over.load(Ordering::Relaxed) {
        turn += 1;
        let is_allowed = turn % 3 != 0;
        let bytes = if is_allowed { &valid } else { &invalid };
        let sent = Instant::now();
        let mut reply = None;
        for attempt in 0..2 {
            let open = link.take().map_or_else(|| client.connect(), Ok);
            let answer = open.and_then(|mut open| {
                open.send(bytes).and_then(|()| open.receive()).map(|reply| (open, reply))
            });
            if let Ok((open, answered)) = answer {
                link = (!answered.closes()).then_some(open);
                reply = Some(answered);
                break;
            }
            if attempt == 0 {
                seen.retried.fetch_add(1, Ordering::Relaxed);
            }
        }
        let trouble = match reply {
            None => Some(&seen.lost),
            Some(reply) => {
                seen.answered.fetch_add(1, Ordering::Relaxed);
                let said = reply.text().contains("\"allowed\":true");
                if reply.status != 200 || said != is_allowed {
                    Some(&seen.wrong)
                } else {
                    (sent.elapsed() > LATE).then_some(&seen.late)
                }
            }
        };
        if let Some(count) = trouble {
            count.fetch_add(1, Ordering::Relaxed);
            let now = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
            seen.last_trouble.fetch_max(now, Ordering::Relaxed);
        }
        std::thread::sleep(PAUSE);
    }
}

fn kill_one(world: &mut World<'_>) {
    world.replicas[0].signal(Signal::KILL);
    world.wait(Duration::from_secs(2));
    world.replicas[0] = start_replica(world.folder, &[]);
    world.wait(Duration::from_secs(1));
}

fn roll(world: &mut World<'_>) {
    for place in 0..REPLICAS {
        world.replicas[place].signal(Signal::TERM);
        world.wait(Duration::from_secs(3));
        world.replicas[place] = start_replica(world.folder, &[]);
        world.wait(Duration::from_secs(1));
    }
}

fn stop_one(world: &mut World<'_>) {
    world.replicas[1].signal(Signal::STOP);
    world.wait(FAULT);
    world.replicas[1].signal(Signal::CONT);
}

fn swap_certificates(world: &mut World<'_>) {
    let end = Instant::now() + FAULT;
    while Instant::now() < end {
        server::renew_certificate(world.folder);
        world.wait(Duration::from_millis(200));
    }
}

fn swap_policies(world: &mut World<'_>) {
    let folder = world.folder.join("policies");
    let end = Instant::now() + FAULT;
    for turn in 0_u32.. {
        if Instant::now() >= end {
            break;
        }
        match turn % 3 {
            0 => write_policy(&folder, "team-a"),
            1 => write_policy(&folder, "team-b"),
            _ => write_by_rename(&folder, "kind: {broken"),
        }
        world.wait(Duration::from_millis(200));
    }
    write_policy(&folder, "team-a");
}

fn exhaust_descriptors(world: &mut World<'_>) {
    let replica = &world.replicas[2];
    let open = replica.descriptors() as u64;
    let before = replica.limit(Resource::Nofile, Rlimit { current: Some(open), maximum: None });
    world.wait(FAULT);
    world.replicas[2].limit(Resource::Nofile, before);
}

fn starve(world: &mut World<'_>) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        world.wait(FAULT);
        over.store(true, Ordering::Relaxed);
    });
}

fn fill_memory(world: &mut World<'_>) {
    let over = AtomicBool::new(false);
    let body = reviews::largest();
    let clients: Vec<Client> = world.replicas.iter().map(Server::client).collect();
    std::thread::scope(|scope| {
        for number in 0..16 {
            let (client, body, over) = (&clients[number % REPLICAS], &body, &over);
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    _ = client.connect().and_then(|mut link| link.post("/validate", body));
                }
            });
        }
        world.wait(FAULT);
        over.store(true, Ordering::Relaxed);
    });
}

fn half_open(world: &mut World<'_>) {
    let silent: Vec<TcpStream> = (0..1_500)
        .filter_map(|number| TcpStream::connect(world.replicas[number % REPLICAS].address()).ok())
        .collect();
    world.wait(FAULT);
    drop(silent);
}

/// The library that changes the time that a process sees.
fn faketime() -> Option<String> {
    let folders =
        ["/usr/lib/x86_64-linux-gnu/faketime", "/usr/lib/aarch64-linux-gnu/faketime", "/usr/lib/faketime"];
    folders.iter().map(|folder| format!("{folder}/libfaketimeMT.so.1")).find(|path| Path::new(path).exists())
}

fn jump(world: &mut World<'_>, library: &str) {
    let file = world.folder.join("faketime");
    std::fs::write(&file, "+0").expect("written");
    world.replicas[0].signal(Signal::KILL);
    let policies = world.folder.join("policies").display().to_string();
    world.replicas[0] = Server::with_environment(
        world.folder,
        &["--log-level", "error", "--policies", &policies],
        &[
            ("LD_PRELOAD", library),
            ("FAKETIME_TIMESTAMP_FILE", &file.display().to_string()),
            ("FAKETIME_NO_CACHE", "1"),
            // Timers count time that has passed, which does not jump in a machine whose clock is set.
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ],
    );
    for offset in ["+1h", "-1h", "+0"] {
        std::fs::write(&file, offset).expect("written");
        world.wait(Duration::from_secs(2));
    }
}

fn fill_disk(world: &mut World<'_>) {
    world.replicas[1].signal(Signal::KILL);
    world.wait(Duration::from_secs(1));
    let policies = world.folder.join("policies").display().to_string();
    let arguments = ["--log-level", "info", "--policies", &policies];
    world.replicas[1] = Server::tollgate(world.folder, &arguments, Some(Path::new("/dev/full")));
    world.wait(FAULT);
}
