//! A server of this process on ports of its own, and certificates to give it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tollgate::server::{Server, Settings};
use tollgate::{Engine, Profile, RuleOrigin, RuleSet};

use crate::client::{Client, Reply, plain};

/// A server that runs until the tests end.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) ops: SocketAddr,
    pub(crate) authorities: String,
}

impl Running {
    /// Starts a server with self-signed certificates and changed settings.
    pub(crate) fn start(change: impl FnOnce(&mut Settings)) -> Running {
        let any: SocketAddr = "127.0.0.1:0".parse().expect("an address");
        let mut settings = Settings::new(any, any);
        settings.workers = 2;
        change(&mut settings);
        let server = Server::bind(settings, engine(), None, None).expect("bound");
        let running = Running {
            address: server.webhook_address().expect("an address"),
            ops: server.ops_address().expect("an address"),
            authorities: server.self_signed_ca_bundle().unwrap_or_default(),
        };
        std::thread::spawn(move || server.run().expect("served"));
        running
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.address, &self.authorities)
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        plain(self.ops, "GET", path, "").expect("an answer")
    }

    /// The value of a metric, `name{labels}`.
    pub(crate) fn metric(&self, name: &str) -> i64 {
        let text = self.get("/metrics").text();
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|value| value.parse().ok()).unwrap_or_default()
    }
}

/// The engine of `tollgate serve` without flags.
pub(crate) fn engine() -> Engine {
    Engine::new(
        vec![Profile::named("kep-5055").expect("a profile")],
        RuleSet::compile(|rule| rule.origin != RuleOrigin::Strict),
    )
}

/// A CA for tests.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub(crate) pem: String,
}

impl Authority {
    pub(crate) fn new() -> Authority {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "a test CA");
        let pem = params.self_signed(&key).expect("signed").pem();
        Authority { issuer: Issuer::new(params, key), pem }
    }

    /// A certificate and its key, PEM.
    pub(crate) fn pair(&self, name: &str) -> (String, String) {
        self.pair_of(&[name], "localhost")
    }

    /// Issues a certificate with up to two common names and this DNS name.
    pub(crate) fn pair_of(&self, names: &[&str], dns: &str) -> (String, String) {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(vec![dns.to_owned()]).expect("a name");
        params.distinguished_name = rcgen::DistinguishedName::new();
        // One of each type is all that rcgen keeps; the number of the type is another type to it.
        let types = [DnType::CommonName, DnType::CustomDnType(vec![2, 5, 4, 3])];
        for (kind, name) in types.into_iter().zip(names) {
            params.distinguished_name.push(kind, *name);
        }
        let certificate = params.signed_by(&key, &self.issuer).expect("signed");
        (certificate.pem(), key.serialize_pem())
    }
}

/// A temporary directory, which is removed when the value is dropped.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("tollgate-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A Secret volume as written by a kubelet: `..data` links to a directory per generation, and the files are
/// links through it.
pub(crate) struct Volume {
    pub(crate) folder: Folder,
    generation: usize,
}

impl Volume {
    pub(crate) fn new(name: &str, files: &[(&str, &str)]) -> Volume {
        let mut volume = Volume { folder: Folder::new(name), generation: 0 };
        volume.replace(files);
        for (name, _) in files {
            let link = Path::new("..data").join(name);
            std::os::unix::fs::symlink(link, volume.folder.0.join(name)).expect("a link");
        }
        volume
    }

    /// Replaces the files like a kubelet: creates a new directory and a new link, and renames it over the old
    /// one.
    pub(crate) fn replace(&mut self, files: &[(&str, &str)]) {
        self.generation += 1;
        let old = self.folder.0.join("..data").canonicalize().ok();
        let name = format!("..2026_01_01_{}", self.generation);
        let directory = self.folder.0.join(&name);
        std::fs::create_dir(&directory).expect("a folder");
        for (name, text) in files {
            std::fs::write(directory.join(name), text).expect("written");
        }
        let link = self.folder.0.join("..data_tmp");
        std::os::unix::fs::symlink(&name, &link).expect("a link");
        std::fs::rename(link, self.folder.0.join("..data")).expect("swapped");
        if let Some(old) = old {
            std::fs::remove_dir_all(old).expect("removed");
        }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.0.join(name)
    }
}

/// Polls until `holds` returns true; fails after two minutes.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = std::time::Instant::now();
    while !holds() {
        assert!(start.elapsed().as_secs() < 120, "waited for: {what}");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}
