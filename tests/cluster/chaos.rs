//! The short form of `make chaos`: three replicas behind a balancer, under load, while things break.
//!
//! No time is measured here. All answers must be right, none may be missing, and after each fault all replicas must
//! come to decide by the policies and pods of that moment.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::balancer::{Balancer, Caller};
use crate::client::{Client, request};
use crate::double::policies::TOLERATION_POLICIES;
use crate::double::{Double, Lies};
use crate::process::Process;
use crate::running::{Authority, Folder, until};
use crate::state::{BUDGETS, CLAIMS, PODS, RULES, SLICES, claim, pod, slice};

const FLAGS: [&str; 4] = ["--cluster=all", "--policy-source", "files,cluster", "--policy"];

fn toleration_policy(name: &str, namespace: &str, generation: usize) -> Value {
    json!({"apiVersion": "tollgate.dev/v1alpha1", "kind": "TolerationPolicy",
        "metadata": {"name": name, "uid": format!("uid-{name}"), "generation": generation},
        "spec": {"match": {"namespaces": [namespace]}, "allow": []}})
}

/// A review of an object, as a request.
fn review(resource: &str, namespace: &str, object: &Value) -> Vec<u8> {
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u-1", "operation": "CREATE", "namespace": namespace, "name": object["metadata"]["name"],
            "kind": {"group": "resource.k8s.io", "version": "v1", "kind": object["kind"]},
            "resource": {"group": "resource.k8s.io", "version": "v1", "resource": resource},
            "object": object,
        },
    });
    request("POST", "/validate?timeout=10s", "application/json", review.to_string().as_bytes())
}

/// A claim that tolerates something in a namespace.
fn tolerating_claim(namespace: &str) -> Vec<u8> {
    let tolerations = json!([{"key": "gpu.example.com/lost", "operator": "Exists", "effect": "NoSchedule"}]);
    let object = json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
        "metadata": {"name": "c", "namespace": namespace},
        "spec": {"devices": {"requests": [
            {"name": "r", "exactly": {"deviceClassName": "gpu", "tolerations": tolerations}},
        ]}},
    });
    review("resourceclaims", namespace, &object)
}

/// A rule that drains the only pool.
fn drain() -> Vec<u8> {
    let object = json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "DeviceTaintRule", "metadata": {"name": "drain"},
        "spec": {
            "deviceSelector": {"driver": "gpu.example.com", "pool": "node-1"},
            "taint": {"key": "example.com/broken", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"},
        },
    });
    review("devicetaintrules", "", &object)
}

struct World {
    folder: Folder,
    authority: Authority,
    double: Double,
    balancer: Balancer,
    replicas: Vec<Process>,
    /// How often everything was changed.
    changes: usize,
}

impl World {
    fn start() -> World {
        let (folder, authority, double) = (Folder::new("chaos"), Authority::new(), Double::start("chaos"));
        for collection in [SLICES, CLAIMS, RULES, PODS, BUDGETS, "/api/v1/namespaces"] {
            double.serves(collection);
        }
        double.put(SLICES, slice("node-1", 4));
        double.install_policies();
        double.put(TOLERATION_POLICIES, toleration_policy("fixed-resource", "denied-by-resource", 1));
        let fixed = toleration_policy("fixed-file", "denied-by-file", 1).to_string();
        std::fs::create_dir(folder.0.join("policies")).expect("a folder");
        std::fs::write(folder.0.join("policies/fixed.yaml"), fixed).expect("written");
        let mut world = World {
            folder,
            authority,
            double,
            balancer: Balancer::start(),
            replicas: Vec::new(),
            changes: 0,
        };
        world.swap_certificate();
        world.change_everything();
        world.replicas = (0..3).map(|_| world.start_replica()).collect();
        world.until_all_agree("the start");
        world
    }

    fn start_replica(&self) -> Process {
        let [certificate, key, policies] = ["tls.crt", "tls.key", "policies"].map(|name| self.path(name));
        let files = ["--tls-cert", &certificate, "--tls-key", &key];
        Process::start(&self.double, &[&FLAGS[..], &[&policies], &files].concat())
    }

    fn path(&self, name: &str) -> String {
        self.folder.0.join(name).to_str().expect("UTF-8").to_owned()
    }

    fn client(&self, replica: &Process) -> Client {
        Client::new(replica.address, &self.authority.pem).patient(Duration::from_secs(2))
    }

    fn probe(&self) {
        let replicas: Vec<_> = self.replicas.iter().map(|replica| (replica.ops, replica.address)).collect();
        self.balancer.probe(&replicas);
    }

    fn swap_certificate(&self) {
        let (chain, key) = self.authority.pair("tollgate");
        replace(&self.folder.0.join("tls.key"), &key);
        replace(&self.folder.0.join("tls.crt"), &chain);
    }

    fn write_policy_file(&self, text: &str) {
        replace(&self.folder.0.join("policies/changing.yaml"), text);
    }

    /// Changes a policy in a file and one in the cluster, and starts a pod.
    fn change_everything(&mut self) {
        self.changes += 1;
        let number = self.changes;
        let file = toleration_policy("changing-file", &format!("file-{number}"), number);
        self.write_policy_file(&file.to_string());
        let resource = toleration_policy("changing-resource", &format!("resource-{number}"), number);
        self.double.put(TOLERATION_POLICIES, resource);
        let name = format!("pod-{number}");
        self.double.put(CLAIMS, claim("a", &name, "node-1", "gpu-0"));
        self.double.put(PODS, pod("a", &name));
    }

    /// Waits until all replicas decide by what is true now.
    fn until_all_agree(&self, after: &str) {
        let number = self.changes;
        let checks = [
            (tolerating_claim(&format!("file-{number}")), "changing-file".to_owned()),
            (tolerating_claim(&format!("resource-{number}")), "changing-resource".to_owned()),
            (drain(), format!("evicts {number} pod")),
        ];
        for (place, replica) in self.replicas.iter().enumerate() {
            for (bytes, text) in &checks {
                until(&format!("replica {place} says {text} after {after}"), || {
                    self.probe();
                    let sent = self.client(replica).connect().and_then(|mut link| {
                        link.send(bytes)?;
                        link.receive()
                    });
                    sent.is_ok_and(|reply| reply.text().contains(text))
                });
            }
        }
    }
}

fn replace(file: &Path, text: &str) {
    std::fs::write(file.with_extension("new"), text).expect("written");
    std::fs::rename(file.with_extension("new"), file).expect("renamed");
}

#[derive(Default)]
struct Counts {
    right: AtomicUsize,
    wrong: AtomicUsize,
    lost: AtomicUsize,
}

/// Sends requests whose answers are known until it is over.
fn send(client: Client, over: &AtomicBool, counts: &Counts) {
    let requests = [
        (tolerating_claim("other"), r#""allowed":true"#),
        (tolerating_claim("denied-by-file"), "fixed-file"),
        (tolerating_claim("denied-by-resource"), "fixed-resource"),
    ];
    let mut caller = Caller::new(client);
    for (bytes, expected) in requests.iter().cycle() {
        if over.load(Ordering::Relaxed) {
            return;
        }
        let count = match caller.call(bytes) {
            Some(reply) if reply.text().contains(expected) => &counts.right,
            Some(_) => &counts.wrong,
            None => &counts.lost,
        };
        count.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(5));
    }
}

type Fault = fn(&mut World);

/// What breaks. The world changes once more after each of them.
const FAULTS: [(&str, Fault); 8] = [
    ("kill -9", |world| {
        world.replicas[0].signal(Signal::KILL);
        world.probe();
        world.replicas[0] = world.start_replica();
    }),
    ("SIGSTOP", |world| {
        world.replicas[1].signal(Signal::STOP);
        world.probe();
        std::thread::sleep(Duration::from_millis(500));
        world.replicas[1].signal(Signal::CONT);
    }),
    ("certificates", |world| {
        for _ in 0..5 {
            world.swap_certificate();
            std::thread::sleep(Duration::from_millis(50));
        }
    }),
    ("policies", |world| {
        for _ in 0..5 {
            world.change_everything();
            std::thread::sleep(Duration::from_millis(50));
            world.write_policy_file("kind: {broken");
            std::thread::sleep(Duration::from_millis(50));
        }
    }),
    ("no API server", |world| {
        world.double.stop_listening();
        std::thread::sleep(Duration::from_millis(300));
        world.double.listen_again();
    }),
    ("duplicate events", |world| world.double.lie(Lies { duplicates: true, ..Lies::default() })),
    ("old events", |world| world.double.lie(Lies { stale: true, ..Lies::default() })),
    ("lost events", |world| {
        world.double.lie(Lies { gaps: true, ..Lies::default() });
        for _ in 0..5 {
            world.change_everything();
            std::thread::sleep(Duration::from_millis(50));
        }
        world.double.lie(Lies::default());
        world.double.forget();
        world.double.end_watches();
    }),
];

#[test]
fn no_answer_is_wrong_or_lost_whatever_breaks() {
    let mut world = World::start();
    world.probe();
    let (over, counts) = (AtomicBool::new(false), Counts::default());
    std::thread::scope(|scope| {
        // Ends the load when a check fails, too.
        let over = Over(&over);
        for _ in 0..3 {
            let client =
                Client::new(world.balancer.address, &world.authority.pem).patient(Duration::from_secs(2));
            let (over, counts) = (over.0, &counts);
            scope.spawn(move || send(client, over, counts));
        }
        for (name, fault) in FAULTS {
            fault(&mut world);
            world.change_everything();
            world.until_all_agree(name);
            world.double.lie(Lies::default());
            let seen = [&counts.wrong, &counts.lost].map(|count| count.load(Ordering::Relaxed));
            assert_eq!(seen, [0, 0], "wrong and lost after {name}");
        }
    });
    assert!(counts.right.load(Ordering::Relaxed) > 100, "there was load");
}

/// Sets the flag when it is dropped.
struct Over<'f>(&'f AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
