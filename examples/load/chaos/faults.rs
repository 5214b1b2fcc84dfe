//! What breaks, one after the other. Each returns when it is over, or says why it cannot be played here.
#![expect(
    clippy::unnecessary_wraps,
    reason = "all faults have one signature, and some cannot be played everywhere"
)]

use std::collections::BTreeMap;
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, Signal};

use super::{REPLICAS, World, large_request};
use crate::client::Client;
use crate::cluster;
use crate::double::Lies;
use crate::server::{self, Server};

pub(super) type Fault = fn(&mut World<'_>) -> Result<(), String>;

/// How long a fault lasts, if it does not end at once.
const LENGTH: Duration = Duration::from_secs(4);
const SWAP_INTERVAL: Duration = Duration::from_millis(200);

pub(super) const ALL: &[(&str, Fault)] = &[
    ("nothing", |world| {
        world.wait(LENGTH);
        Ok(())
    }),
    ("kill -9 one replica, restart after 2 s", kill_one),
    ("SIGTERM one after the other, restart", roll),
    ("SIGSTOP one replica for 4 s", stop_one),
    ("new certificate every 200 ms", swap_certificates),
    ("new or broken policy files every 200 ms", swap_policy_files),
    ("new or broken policy resources every 200 ms", swap_policy_resources),
    ("CRDs of policies deleted and installed", swap_definitions),
    ("no free file descriptors in one replica", exhaust_descriptors),
    ("16 threads take the processors", starve),
    ("16 senders of 8 MiB bodies", fill_memory),
    ("1,500 connections that say nothing", half_open),
    ("clock +1 h, then -1 h, in one replica", jump),
    ("full disk under log, policies and certificates", fill_disk),
    ("API server gone for 4 s", lose_api_server),
    ("API server answers 500 for 4 s", break_api_server),
    ("watch: events twice", |world| lie(world, Lies { duplicates: true, ..Lies::default() })),
    ("watch: old versions after new ones", |world| lie(world, Lies { stale: true, ..Lies::default() })),
    ("watch: events missing, then 410", lose_events),
    ("watch: a policy is missing, and nothing says so", lose_policy),
    ("watch: objects of 9 MiB and 100,000 fields", send_huge_objects),
];

fn kill_one(world: &mut World<'_>) -> Result<(), String> {
    world.replicas[0].signal(Signal::KILL);
    world.wait(Duration::from_secs(2));
    world.replicas[0] = world.start_replica(0, &[]);
    world.wait(Duration::from_secs(1));
    Ok(())
}

fn roll(world: &mut World<'_>) -> Result<(), String> {
    for place in 0..REPLICAS {
        world.replicas[place].signal(Signal::TERM);
        world.wait(Duration::from_secs(3));
        world.replicas[place] = world.start_replica(place, &[]);
        // The next one is stopped when this one is ready, as in a rollout.
        world.replicas[place].until_ready();
        world.wait(Duration::from_secs(1));
    }
    Ok(())
}

fn stop_one(world: &mut World<'_>) -> Result<(), String> {
    world.replicas[1].signal(Signal::STOP);
    world.wait(LENGTH);
    world.replicas[1].signal(Signal::CONT);
    Ok(())
}

/// Does something every 200 ms, given its number.
fn repeat(world: &mut World<'_>, mut change: impl FnMut(&mut World<'_>, u32)) -> Result<(), String> {
    let end = Instant::now() + LENGTH;
    for turn in 0.. {
        if Instant::now() >= end {
            break;
        }
        change(world, turn);
        world.wait(SWAP_INTERVAL);
    }
    Ok(())
}

fn swap_certificates(world: &mut World<'_>) -> Result<(), String> {
    repeat(world, |world, _| server::renew_certificate(world.folder))
}

fn swap_policy_files(world: &mut World<'_>) -> Result<(), String> {
    repeat(world, |world, turn| match turn % 3 {
        0 | 1 => world.swap_policy_file(),
        _ => cluster::write_by_rename(&world.policies[0], "kind: {broken"),
    })
}

fn swap_policy_resources(world: &mut World<'_>) -> Result<(), String> {
    repeat(world, |world, turn| {
        world.cluster.swap_policy();
        world.cluster.store_broken(turn % 2 == 0);
    })?;
    world.cluster.store_broken(false);
    Ok(())
}

/// Policies of definitions that are being deleted, or are gone, stay in force.
fn swap_definitions(world: &mut World<'_>) -> Result<(), String> {
    for _ in 0..2 {
        world.cluster.api_server.delete_definitions();
        world.wait(Duration::from_secs(1));
        world.cluster.api_server.forget_definitions();
        world.wait(Duration::from_secs(1));
        world.cluster.install_policies();
        world.wait(Duration::from_secs(1));
    }
    Ok(())
}

fn exhaust_descriptors(world: &mut World<'_>) -> Result<(), String> {
    let maximum = rustix::process::getrlimit(Resource::Nofile).maximum;
    let open = u64::try_from(world.replicas[2].descriptors()).ok();
    let before = world.replicas[2].limit(Resource::Nofile, Rlimit { current: open, maximum });
    repeat(world, |world, _| world.swap_policy_file())?;
    world.replicas[2].limit(Resource::Nofile, before);
    Ok(())
}

/// Does something in 16 threads for the length of a fault.
fn in_threads(world: &mut World<'_>, work: impl Fn(usize) + Sync) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for number in 0..16 {
            let (over, work) = (&over, &work);
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    work(number);
                }
            });
        }
        world.wait(LENGTH);
        over.store(true, Ordering::Relaxed);
    });
}

fn starve(world: &mut World<'_>) -> Result<(), String> {
    in_threads(world, |_| std::hint::spin_loop());
    Ok(())
}

fn fill_memory(world: &mut World<'_>) -> Result<(), String> {
    let body = large_request();
    let clients: Vec<Client> = world.replicas.iter().map(Server::client).collect();
    let answers: Mutex<BTreeMap<u16, usize>> = Mutex::default();
    in_threads(world, |number| {
        let reply = clients[number % REPLICAS].connect().and_then(|mut link| {
            // A server that rejects a request closes the connection before it has read all of it.
            _ = link.send(&body);
            link.receive()
        });
        let status = reply.map_or(0, |reply| reply.status);
        *answers.lock().expect("no panic").entry(status).or_default() += 1;
    });
    let peaks = world.replicas.iter().map(|replica| replica.resident("VmHWM"));
    println!(
        "    8 MiB bodies by HTTP status (0: none): {:?}; peak memory {:.0} MiB",
        answers.lock().expect("no panic"),
        peaks.fold(0.0, f64::max)
    );
    Ok(())
}

fn half_open(world: &mut World<'_>) -> Result<(), String> {
    let silent: Vec<TcpStream> = (0..1_500)
        .filter_map(|number| TcpStream::connect(world.replicas[number % REPLICAS].address()).ok())
        .collect();
    world.wait(LENGTH);
    drop(silent);
    Ok(())
}

/// The library that changes the time that a process sees.
fn faketime() -> Option<String> {
    let folders =
        ["/usr/lib/x86_64-linux-gnu/faketime", "/usr/lib/aarch64-linux-gnu/faketime", "/usr/lib/faketime"];
    folders.iter().map(|folder| format!("{folder}/libfaketimeMT.so.1")).find(|path| Path::new(path).exists())
}

fn jump(world: &mut World<'_>) -> Result<(), String> {
    let library = faketime().ok_or("libfaketime is not installed")?;
    let file = world.folder.join("faketime");
    std::fs::write(&file, "+0").map_err(|error| error.to_string())?;
    world.replicas[0] = world.start_replica(
        0,
        &[
            ("LD_PRELOAD", &library),
            ("FAKETIME_TIMESTAMP_FILE", &file.display().to_string()),
            ("FAKETIME_NO_CACHE", "1"),
            // Timers count time that has passed, which does not jump in a machine whose clock is set.
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ],
    );
    world.replicas[0].until_ready();
    for offset in ["+1h", "-1h", "+0"] {
        std::fs::write(&file, offset).map_err(|error| error.to_string())?;
        world.wait(Duration::from_secs(2));
    }
    Ok(())
}

/// One replica has its log, its policies and its certificates on a disk of 256 KiB that is full.
fn fill_disk(world: &mut World<'_>) -> Result<(), String> {
    let disk = world.folder.join("disk");
    let policies = disk.join("policies");
    std::fs::create_dir_all(&disk).map_err(|error| error.to_string())?;
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=256k", "tmpfs"]).arg(&disk).output();
    if !mounted.is_ok_and(|output| output.status.success()) {
        return Err("only root can mount a small tmpfs".to_owned());
    }
    for name in ["tls.crt", "tls.key", "ca.crt"] {
        std::fs::copy(world.folder.join(name), disk.join(name)).map_err(|error| error.to_string())?;
    }
    cluster::write_policies(&policies);
    world.policies.push(policies.clone());
    world.swap_policy_file();
    world.replicas[1] = world.start_replica_with(&disk, &policies, &disk.join("log"), &[]);
    world.replicas[1].until_ready();
    world.wait(Duration::from_secs(1));
    // Everything that is left, and then a policy and a certificate that do not fit.
    let mut filler = std::fs::File::create(disk.join("filler")).map_err(|error| error.to_string())?;
    while std::io::Write::write_all(&mut filler, &[0; 512]).is_ok() {}
    for name in ["policies/swapped.yaml", "tls.crt"] {
        let text = std::fs::read(disk.join(name)).unwrap_or_default();
        _ = std::fs::write(disk.join("new"), [text.as_slice(), &[b'\n'; 4096]].concat());
        _ = std::fs::rename(disk.join("new"), disk.join(name));
    }
    world.wait(LENGTH);
    drop(filler);
    std::fs::remove_file(disk.join("filler")).map_err(|error| error.to_string())?;
    for name in ["tls.crt", "tls.key"] {
        std::fs::copy(world.folder.join(name), disk.join(name)).map_err(|error| error.to_string())?;
    }
    world.change_everything();
    let ended = world.start.elapsed();
    world.until_all_agree(ended);
    // The disk goes away with its replica.
    world.replicas[1] = world.start_replica(1, &[]);
    world.replicas[1].until_ready();
    world.policies.pop();
    _ = Command::new("umount").arg(&disk).status();
    Ok(())
}

fn lose_api_server(world: &mut World<'_>) -> Result<(), String> {
    world.cluster.api_server.stop_listening();
    world.wait(LENGTH);
    world.cluster.api_server.listen_again();
    Ok(())
}

fn break_api_server(world: &mut World<'_>) -> Result<(), String> {
    world.cluster.api_server.refuse(&[("", 500)]);
    world.cluster.api_server.close_connections();
    world.wait(LENGTH);
    world.cluster.api_server.refuse(&[]);
    Ok(())
}

/// The lies end when all replicas know what is true: the last change is told as a lie, too, and must count
/// nevertheless.
fn lie(world: &mut World<'_>, lies: Lies) -> Result<(), String> {
    world.cluster.api_server.lie(lies);
    repeat(world, |world, _| world.change_everything())
}

/// Events are missing; then the API server has forgotten them, as after a restart with an empty watch cache.
fn lose_events(world: &mut World<'_>) -> Result<(), String> {
    world.cluster.api_server.lie(Lies { gaps: true, ..Lies::default() });
    repeat(world, |world, _| world.change_everything())?;
    world.cluster.api_server.lie(Lies::default());
    world.cluster.api_server.forget();
    world.cluster.api_server.end_watches();
    Ok(())
}

/// An event is missing that nothing else makes up for: the next list of policies must.
fn lose_policy(world: &mut World<'_>) -> Result<(), String> {
    world.cluster.api_server.lie(Lies { silence: true, ..Lies::default() });
    world.cluster.forbid_in("lost", "missed-policy");
    world.wait(Duration::from_secs(1));
    world.cluster.api_server.lie(Lies::default());
    world.forbidden = Some(("lost", "missed-policy"));
    Ok(())
}

fn send_huge_objects(world: &mut World<'_>) -> Result<(), String> {
    world.cluster.put_huge_objects();
    world.wait(LENGTH);
    world.cluster.remove_huge_objects();
    Ok(())
}
