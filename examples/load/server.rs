//! The servers under measurement: processes of their own, ended with the value.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, Signal};

use crate::client::{Client, plain};
use crate::double::Double;

/// Variable with the maximum age of a connection.
const MAX_AGE: &str = "TOLLGATE_MAX_CONNECTION_AGE";

/// A running server.
pub(crate) struct Server {
    child: Child,
    address: SocketAddr,
    ops: Option<SocketAddr>,
    authorities: String,
}

/// A program built beside this one: examples are one folder below it.
fn program(name: &str) -> PathBuf {
    let own = std::env::current_exe().expect("a path");
    let examples = own.parent().expect("a folder");
    match name {
        "tollgate" => examples.parent().expect("a folder").join(name),
        _ => examples.join(name),
    }
}

/// A CA and a pair that all servers use.
pub(crate) fn make_certificates(folder: &Path) {
    let made = Command::new(program("tollgate")).arg("certs").arg(folder).stdout(Stdio::null()).status();
    assert!(made.expect("run").success());
}

/// Replaces the certificate and the key by new ones of the same CA, each by rename.
pub(crate) fn renew_certificate(folder: &Path) {
    let new = folder.join("new");
    std::fs::create_dir_all(&new).expect("a folder");
    for name in ["ca.crt", "ca.key"] {
        std::fs::copy(folder.join(name), new.join(name)).expect("copied");
    }
    make_certificates(&new);
    for name in ["tls.key", "tls.crt"] {
        std::fs::rename(new.join(name), folder.join(name)).expect("renamed");
    }
}

/// How the manifest sets up the allocator: `{name: MALLOC_…, value: "…"}`.
fn allocator_settings() -> Vec<(&'static str, &'static str)> {
    const DEPLOYMENT: &str = include_str!("../../manifests/base/deployment.yaml");
    let lines = DEPLOYMENT.lines().filter_map(|line| line.trim().strip_prefix("- {name: MALLOC_"));
    let settings: Vec<_> = lines
        .filter_map(|rest| {
            let (name, value) = rest.split_once(", value: ")?;
            let name =
                DEPLOYMENT.split([' ', ',']).find(|word| word.strip_prefix("MALLOC_") == Some(name))?;
            Some((name, value.trim_end_matches('}').trim_matches('"')))
        })
        .collect();
    assert_eq!(settings.len(), 3, "{settings:?}");
    settings
}

impl Server {
    pub(crate) fn floor(folder: &Path) -> Server {
        let mut command = Command::new(program("floor"));
        command.arg(folder.join("tls.crt")).arg(folder.join("tls.key"));
        Server::start(command, folder, false)
    }

    /// `tollgate serve` with two workers; its log goes to a file, if one is given.
    pub(crate) fn tollgate(folder: &Path, arguments: &[&str], log: Option<&Path>) -> Server {
        Server::start(Server::command(folder, arguments, log), folder, true)
    }

    /// The same with the allocator set up as in the manifest.
    pub(crate) fn deployed(folder: &Path, arguments: &[&str]) -> Server {
        let mut command = Server::command(folder, arguments, None);
        command.envs(allocator_settings());
        Server::start(command, folder, true)
    }

    /// The same in a cluster, with a log that goes to a file and more variables of the environment. Connections have
    /// the default maximum age.
    pub(crate) fn in_cluster(
        folder: &Path,
        cluster: &Double,
        arguments: &[&str],
        log: &Path,
        variables: &[(&str, &str)],
    ) -> Server {
        let mut command = Server::command(folder, arguments, Some(log));
        command.env_remove(MAX_AGE).env("KUBECONFIG", cluster.kubeconfig());
        command.envs(allocator_settings()).envs(variables.iter().copied());
        Server::start(command, folder, true)
    }

    fn command(folder: &Path, arguments: &[&str], log: Option<&Path>) -> Command {
        let mut command = Command::new(program("tollgate"));
        command.args(["serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--workers", "2"]);
        command.env(MAX_AGE, "1h");
        command.arg("--tls-cert").arg(folder.join("tls.crt")).arg("--tls-key").arg(folder.join("tls.key"));
        command.args(arguments);
        if let Some(log) = log {
            command.stderr(std::fs::File::options().append(true).create(true).open(log).expect("a log"));
        }
        command
    }

    fn start(mut command: Command, folder: &Path, has_ops: bool) -> Server {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("started");
        let mut lines = BufReader::new(child.stdout.take().expect("stdout")).lines();
        let mut address = || {
            let line = lines.next().expect("a line").expect("UTF-8");
            let rest = line.split("://").nth(1).and_then(|rest| rest.split('/').next()).expect("a URL");
            rest.parse().expect("an address")
        };
        let webhook = address();
        let ops = has_ops.then(address);
        let authorities = std::fs::read_to_string(folder.join("ca.crt")).expect("a CA");
        Server { child, address: webhook, ops, authorities }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn ops(&self) -> SocketAddr {
        self.ops.expect("the floor has none")
    }

    /// Waits until it is ready, for half a minute.
    pub(crate) fn until_ready(&self) {
        crate::running::until("ready", || {
            plain(self.ops(), "GET", "/readyz", "").is_ok_and(|reply| reply.status == 200)
        });
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.address, &self.authorities)
    }

    /// A client that trusts this server and connects to another address, such as that of a balancer.
    pub(crate) fn client_at(&self, address: SocketAddr) -> Client {
        Client::new(address, &self.authorities)
    }

    fn pid(&self) -> Pid {
        let id = i32::try_from(self.child.id()).expect("a process id");
        Pid::from_raw(id).expect("not zero")
    }

    /// Sends a signal to the process.
    pub(crate) fn signal(&self, signal: Signal) {
        rustix::process::kill_process(self.pid(), signal).expect("it runs");
    }

    /// Sets a limit of the process and returns the one before.
    pub(crate) fn limit(&self, resource: Resource, limit: Rlimit) -> Rlimit {
        rustix::process::prlimit(Some(self.pid()), resource, limit).expect("a limit")
    }

    /// Number of open file descriptors.
    pub(crate) fn descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).map_or(0, Iterator::count)
    }

    /// Number of threads.
    pub(crate) fn threads(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/task", self.child.id())).map_or(0, Iterator::count)
    }

    /// Time on a processor so far, user and system, of all threads.
    pub(crate) fn processor_time(&self) -> Duration {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).expect("it runs");
        let times = tasks.map(|task| -> u64 {
            let path = task.expect("a thread").path().join("schedstat");
            let line = std::fs::read_to_string(path).unwrap_or_default();
            line.split(' ').next().and_then(|nanos| nanos.parse().ok()).unwrap_or_default()
        });
        Duration::from_nanos(times.sum::<u64>())
    }

    /// A line of /proc/…/status in MiB.
    pub(crate) fn resident(&self, name: &str) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a line");
        let kib: f64 =
            line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number");
        kib / 1024.0
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
