//! `make chaos`: three replicas behind a balancer, under load, while things break.
//!
//! The clients behave like an API server: they keep connections, wait two seconds for an answer, and try once more,
//! with a new connection, if there was none. They send the requests of `mix.rs` and know the right answers. The
//! replicas watch the cluster of `cluster.rs`, whose objects change all the time. After each fault, the policies in
//! files and in the cluster and a pod change once more, and every replica must soon decide by what is true now. A line
//! says how many answers were wrong, lost and late, and how long it took until all were right and in time again.

mod faults;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::balancer::{Balancer, Caller};
use crate::client::{Client, request};
use crate::cluster::{self, FLAGS, FakeCluster};
use crate::double::Lies;
use crate::server::Server;
use crate::{mix, reviews};

const REPLICAS: usize = 3;
const CLIENTS: u32 = 6;
/// Time between two requests of a client.
const PAUSE: Duration = Duration::from_millis(10);
/// So many requests of a client on one connection, and then a new one.
const REQUESTS_PER_CONNECTION: u32 = 50;
/// How long a client waits for an answer.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Later answers are late.
const LATE: Duration = Duration::from_millis(500);
/// Everything is right again after so long.
const MAX_RECOVERY: Duration = Duration::from_secs(5);
/// How long a watch of policies lasts, and so how long an event can be missed that was never sent.
const POLICY_WATCH: Duration = Duration::from_secs(20);
/// How often readiness is checked.
const PROBE_INTERVAL: Duration = Duration::from_millis(500);

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
    /// Wrong answers and lost requests since the last line, and how often each was seen.
    details: Mutex<BTreeMap<String, usize>>,
}

impl Seen {
    fn note(&self, detail: String) {
        *self.details.lock().expect("no panic").entry(detail).or_default() += 1;
    }
}

struct World<'f> {
    folder: &'f Path,
    /// Where policy files are; a replica may have a folder of its own.
    policies: Vec<PathBuf>,
    replicas: Vec<Server>,
    balancer: Balancer,
    cluster: FakeCluster,
    seen: Arc<Seen>,
    start: Instant,
    /// Number of the namespace that the policy file forbids tolerations in.
    file: u32,
    /// A namespace in which tolerations must be denied after the fault, and the policy that does so.
    forbidden: Option<(&'static str, &'static str)>,
    /// The pods that were started on node 9 in addition to those that are always there.
    pods: u32,
}

/// Runs all faults whose name contains `only`. Returns true if the bars hold.
pub(crate) fn run(folder: &Path, only: &str) -> bool {
    let policies = folder.join("policies");
    cluster::write_policies(&policies);
    let cluster = FakeCluster::start("chaos");
    let mut world = World {
        folder,
        policies: vec![policies],
        replicas: Vec::new(),
        balancer: Balancer::start(),
        cluster,
        seen: Arc::default(),
        start: Instant::now(),
        file: 0,
        forbidden: None,
        pods: 0,
    };
    world.replicas = (0..REPLICAS).map(|place| world.start_replica(place, &[])).collect();
    let over = AtomicBool::new(false);
    let mut holds = true;
    std::thread::scope(|scope| {
        world.replicas.iter().for_each(Server::until_ready);
        world.probe();
        for number in 0..CLIENTS {
            let client = world.replicas[0].client_at(world.balancer.address).patient(TIMEOUT);
            let (seen, over, start) = (Arc::clone(&world.seen), &over, world.start);
            scope.spawn(move || send(client, number, &seen, over, start));
        }
        world.wait(Duration::from_secs(2));
        println!(
            "{:<48}{:>9}{:>7}{:>6}{:>6}{:>9}{:>11}",
            "fault", "answered", "wrong", "lost", "late", "retried", "recovery s"
        );
        for (name, fault) in faults::ALL {
            if name.contains(only) {
                holds &= world.play(name, *fault);
            }
        }
        over.store(true, Ordering::Relaxed);
    });
    println!("{}", if holds { "all bars hold" } else { "a bar is broken" });
    holds
}

impl World<'_> {
    /// Starts a replica; each has a log of its own.
    fn start_replica(&self, place: usize, variables: &[(&str, &str)]) -> Server {
        let log = self.folder.join(format!("log-{place}"));
        self.start_replica_with(self.folder, &self.policies[0], &log, variables)
    }

    fn start_replica_with(
        &self,
        certificates: &Path,
        policies: &Path,
        log: &Path,
        variables: &[(&str, &str)],
    ) -> Server {
        let policies = policies.to_str().expect("UTF-8");
        let flags = [&FLAGS[..], &["--policy", policies, "--drain", "2s", "--log-level", "info"]].concat();
        Server::in_cluster(certificates, &self.cluster.api_server, &flags, log, variables)
    }

    /// Plays a fault, waits until everything is right again, and prints a line. Returns true if the bars hold.
    fn play(&mut self, name: &str, fault: faults::Fault) -> bool {
        let counts = |seen: &Seen| {
            [&seen.answered, &seen.wrong, &seen.lost, &seen.late, &seen.retried]
                .map(|count| count.load(Ordering::Relaxed))
        };
        let before = counts(&self.seen);
        if let Err(why) = fault(self) {
            println!("{name:<48}not run: {why}");
            return true;
        }
        let ended = self.start.elapsed();
        self.change_everything();
        let converged = self.until_all_agree(ended);
        self.cluster.api_server.lie(Lies::default());
        self.wait((ended + MAX_RECOVERY + Duration::from_secs(1)).saturating_sub(self.start.elapsed()));
        let [answered, wrong, lost, late, retried] =
            std::array::from_fn(|place| counts(&self.seen)[place] - before[place]);
        let trouble = Duration::from_millis(self.seen.last_trouble.load(Ordering::Relaxed));
        let recovery = trouble.saturating_sub(ended).max(converged);
        println!(
            "{name:<48}{answered:>9}{wrong:>7}{lost:>6}{late:>6}{retried:>9}{:>11.2}",
            recovery.as_secs_f64()
        );
        for (detail, count) in
            std::mem::take(&mut *self.seen.details.lock().expect("no panic")).iter().take(5)
        {
            println!("    {count} × {detail}");
        }
        let limit = MAX_RECOVERY + self.forbidden.take().map_or(Duration::ZERO, |_| POLICY_WATCH);
        wrong == 0 && lost == 0 && recovery <= limit
    }

    /// Changes the policies in files and in the cluster, and starts a pod.
    fn change_everything(&mut self) {
        self.swap_policy_file();
        self.cluster.swap_policy();
        self.pods += 1;
        self.cluster.start_pod(9, &format!("chaos-{}", self.pods));
    }

    fn swap_policy_file(&mut self) {
        self.file += 1;
        for folder in &self.policies {
            cluster::swap_policy_file(folder, self.file);
        }
    }

    /// Reviews, and what the answers must contain now.
    fn checks(&self) -> Vec<(Vec<u8>, String)> {
        let claim = String::from_utf8(reviews::claim()).expect("UTF-8");
        let in_namespace = |namespace: &str| claim.replace("ml-research", namespace).into_bytes();
        let mut checks = vec![
            (in_namespace(&format!("file-{}", self.file)), "swapped-file".to_owned()),
            (in_namespace(&self.cluster.forbidden_namespace()), "swapped-resource".to_owned()),
            (
                mix::rule("node-9", "NoExecute"),
                format!("evicts {} pods", self.pods + cluster::PODS_ON_NODE_9),
            ),
        ];
        checks.extend(self.forbidden.map(|(namespace, policy)| (in_namespace(namespace), policy.to_owned())));
        checks
    }

    /// Waits until all replicas decide by what is true now; returns how long that took since `ended`.
    fn until_all_agree(&mut self, ended: Duration) -> Duration {
        let mut missing = String::new();
        for _ in 0..300 {
            let checks = self.checks();
            let found = self.replicas.iter().enumerate().find_map(|(place, replica)| {
                let client = replica.client().patient(TIMEOUT);
                let (_, text) = checks.iter().find(|(body, text)| !says(&client, body, text))?;
                Some(format!("replica {place} does not say \"{text}\""))
            });
            match found {
                None => return self.start.elapsed().saturating_sub(ended),
                Some(found) => missing = found,
            }
            self.wait(Duration::from_millis(100));
        }
        self.seen.note(missing);
        self.start.elapsed().saturating_sub(ended)
    }

    /// Waits; meanwhile the cluster changes, and readiness is checked.
    fn wait(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            self.probe();
            self.cluster.next_second();
            std::thread::sleep(PROBE_INTERVAL.min(end.saturating_duration_since(Instant::now())));
        }
    }

    fn probe(&self) {
        let replicas: Vec<_> =
            self.replicas.iter().map(|replica| (replica.ops(), replica.address())).collect();
        self.balancer.probe(&replicas);
    }
}

/// True if the answer to a review contains a text.
fn says(client: &Client, body: &[u8], text: &str) -> bool {
    client.post("/validate", body).is_ok_and(|reply| reply.text().contains(text))
}

/// Sends the requests of a cluster until it is over.
fn send(client: Client, number: u32, seen: &Seen, over: &AtomicBool, start: Instant) {
    let mut samples = mix::samples();
    let deck = mix::deck(&samples);
    let mut caller = Caller::new(client);
    for turn in 0_u32.. {
        if over.load(Ordering::Relaxed) {
            return;
        }
        if turn % REQUESTS_PER_CONNECTION == 0 {
            caller.disconnect();
        }
        let sample = &mut samples[deck[(turn + number * 17) as usize % deck.len()]];
        let (expected, name) = (sample.expected, sample.name);
        let sent = Instant::now();
        let reply = caller.call(sample.bytes(turn * CLIENTS + number));
        seen.retried.fetch_add(std::mem::take(&mut caller.retried), Ordering::Relaxed);
        let (trouble, detail) = match reply {
            None => (Some(&seen.lost), Some(format!("lost: {name}"))),
            Some(reply) => {
                seen.answered.fetch_add(1, Ordering::Relaxed);
                if expected.is_met(&reply) {
                    ((sent.elapsed() > LATE).then_some(&seen.late), None)
                } else {
                    let text: String = reply.text().chars().take(400).collect();
                    (Some(&seen.wrong), Some(format!("wrong: {name}: {} {text}", reply.status)))
                }
            }
        };
        if let Some(count) = trouble {
            count.fetch_add(1, Ordering::Relaxed);
            let now = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
            seen.last_trouble.fetch_max(now, Ordering::Relaxed);
        }
        if let Some(detail) = detail {
            seen.note(detail);
        }
        std::thread::sleep(PAUSE);
    }
}

/// A request for the memory to be taken.
fn large_request() -> Vec<u8> {
    request("POST", "/validate", "application/json", &reviews::largest())
}
