//! Certificates that change under load, certificates that are broken, and clients that must show one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use tollgate::server::{CertificateSettings, Server, Settings};

use crate::client::Client;
use crate::running::{Authority, Folder, Running, Volume, until};

const REVIEW: &[u8] = br#"{"request":{"uid":"u","operation":"DELETE"}}"#;

fn der(pem: &str) -> Vec<u8> {
    CertificateDer::from_pem_slice(pem.as_bytes()).expect("PEM").to_vec()
}

fn files(settings: &mut Settings, volume: &Volume) {
    settings.certificates =
        CertificateSettings::Files { certificate: volume.file("tls.crt"), key: volume.file("tls.key") };
    // Directory events alone must do.
    settings.reload_period = Duration::from_hours(1);
}

#[test]
fn twenty_rotations_under_load_fail_no_request() {
    let authority = Authority::new();
    let (certificate, key) = authority.pair("first");
    let mut volume = Volume::new("rotate", &[("tls.crt", &certificate), ("tls.key", &key)]);
    let server = Running::start(|settings| files(settings, &volume));
    let client = Client::new(server.address, &authority.pem);
    let (stop, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let load: Vec<_> = [true, true, false, false]
        .into_iter()
        .map(|keeps| {
            let (client, stop, answered) = (client.clone(), stop.clone(), answered.clone());
            std::thread::spawn(move || {
                let mut link = client.connect().expect("connected");
                while !stop.load(Ordering::Relaxed) {
                    if !keeps {
                        link = client.connect().expect("connected");
                    }
                    assert_eq!(link.post("/validate", REVIEW).expect("an answer").status, 200);
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for round in 0..20 {
        let (certificate, key) = authority.pair(&format!("round {round}"));
        volume.replace(&[("tls.crt", &certificate), ("tls.key", &key)]);
        let expected = der(&certificate);
        let swapped = Instant::now();
        until("the new certificate", || client.connect().expect("connected").certificate() == expected);
        // The bar for a directory event; the timer is an hour away.
        assert!(swapped.elapsed() <= Duration::from_secs(2), "seen after {:?}", swapped.elapsed());
    }
    stop.store(true, Ordering::Relaxed);
    for thread in load {
        thread.join().expect("no request failed");
    }
    assert!(answered.load(Ordering::Relaxed) > 20);
    assert_eq!(reloads(&server, "server", "success"), 21);
    assert_eq!(reloads(&server, "server", "failure"), 0);
}

fn reloads(server: &Running, which: &str, result: &str) -> i64 {
    server
        .metric(&format!("tollgate_certificate_reloads_total{{certificate=\"{which}\",result=\"{result}\"}}"))
}

#[test]
fn broken_files_change_nothing_and_are_told() {
    let authority = Authority::new();
    let (certificate, key) = authority.pair("good");
    let (other_certificate, other_key) = authority.pair("other");
    let mut volume = Volume::new("broken", &[("tls.crt", &certificate), ("tls.key", &key)]);
    let server = Running::start(|settings| files(settings, &volume));
    let client = Client::new(server.address, &authority.pem);
    let half = &other_certificate[..other_certificate.len() / 2];
    let broken = [
        (
            "half a certificate",
            vec![("tls.crt", half), ("tls.key", &other_key)],
            "the certificate is not PEM",
        ),
        ("an empty file", vec![("tls.crt", ""), ("tls.key", &other_key)], "the file contains no certificate"),
        (
            "another's key",
            vec![("tls.crt", &other_certificate), ("tls.key", &key)],
            "the key does not match the certificate",
        ),
        ("no key", vec![("tls.crt", &other_certificate), ("tls.key", "hello")], "the key is not PEM"),
        ("nothing", vec![], "cannot read"),
    ];
    for (name, contents, fault) in broken {
        volume.replace(&contents);
        until(name, || server.get("/readyz?verbose").text().contains(fault));
        let readiness = server.get("/readyz?verbose");
        assert_eq!(readiness.status, 200, "{name}: the old pair serves well");
        assert!(
            readiness.text().contains("[!]server not reloaded; the last valid certificate is in use"),
            "{name}"
        );
        assert_eq!(server.metric("tollgate_certificate_reload_ok{certificate=\"server\"}"), 0, "{name}");
        let mut link = client.connect().expect("connected");
        assert_eq!(link.certificate(), der(&certificate), "{name}");
        assert_eq!(link.post("/validate", REVIEW).expect("an answer").status, 200, "{name}");
    }
    assert!(reloads(&server, "server", "failure") >= 5);
    volume.replace(&[("tls.crt", &other_certificate), ("tls.key", &other_key)]);
    until("the mended pair", || {
        client.connect().expect("connected").certificate() == der(&other_certificate)
    });
    assert!(server.get("/readyz?verbose").text().contains("[+]server ok"));
    assert_eq!(server.metric("tollgate_certificate_reload_ok{certificate=\"server\"}"), 1);
}

#[test]
fn plain_files_written_in_place_are_seen_too() {
    let authority = Authority::new();
    let (certificate, key) = authority.pair("first");
    let folder = Folder::new("plain");
    let write = |certificate: &str, key: &str| {
        std::fs::write(folder.0.join("tls.key"), key).expect("written");
        std::fs::write(folder.0.join("tls.crt"), certificate).expect("written");
    };
    write(&certificate, &key);
    let server = Running::start(|settings| {
        settings.certificates = CertificateSettings::Files {
            certificate: folder.0.join("tls.crt"),
            key: folder.0.join("tls.key"),
        };
        settings.reload_period = Duration::from_hours(1);
    });
    let client = Client::new(server.address, &authority.pem);
    let (certificate, key) = authority.pair("second");
    write(&certificate, &key);
    until("the new certificate", || client.connect().expect("connected").certificate() == der(&certificate));
}

#[test]
fn the_timer_alone_is_enough() {
    let authority = Authority::new();
    let (certificate, key) = authority.pair("first");
    let volume = Volume::new("timer", &[("tls.crt", &certificate), ("tls.key", &key)]);
    // Seen through a link to the volume: the events are those of the directory the link pointed to at start.
    let outer = Folder::new("timer-outer");
    let link = outer.0.join("certs");
    std::os::unix::fs::symlink(&volume.folder.0, &link).expect("a link");
    let server = Running::start(|settings| {
        settings.certificates =
            CertificateSettings::Files { certificate: link.join("tls.crt"), key: link.join("tls.key") };
        settings.reload_period = Duration::from_millis(50);
    });
    let client = Client::new(server.address, &authority.pem);
    let (certificate, key) = authority.pair("second");
    let other = Volume::new("timer-other", &[("tls.crt", &certificate), ("tls.key", &key)]);
    std::fs::remove_file(&link).expect("removed");
    std::os::unix::fs::symlink(&other.folder.0, &link).expect("a link");
    until("the new certificate", || client.connect().expect("connected").certificate() == der(&certificate));
}

#[test]
fn whole_chains_are_shown() {
    let authority = Authority::new();
    let (certificate, key) = authority.pair("leaf");
    let chain = format!("{certificate}{}", authority.pem);
    let volume = Volume::new("chain", &[("tls.crt", &chain), ("tls.key", &key)]);
    let server = Running::start(|settings| files(settings, &volume));
    let link = Client::new(server.address, &authority.pem).connect().expect("connected");
    assert_eq!(link.chain_length(), 2);
}

/// Keys in PKCS#8, PKCS#1 and SEC1 format, RSA and ECDSA. `tests/serve/keys/README.md` describes how they
/// were created.
#[test]
fn every_kind_of_key_is_read() {
    for kind in ["rsa-pkcs1", "rsa-pkcs8", "ec-sec1", "ec-pkcs8"] {
        let read = |name: &str| {
            let path = format!("{}/tests/serve/keys/{name}", env!("CARGO_MANIFEST_DIR"));
            std::fs::read_to_string(path).expect("a fixture")
        };
        let (certificate, key) = (read(&format!("{kind}.crt")), read(&format!("{kind}.key")));
        let volume = Volume::new(kind, &[("tls.crt", &certificate), ("tls.key", &key)]);
        let server = Running::start(|settings| files(settings, &volume));
        let reply = Client::new(server.address, &read("ca.crt")).post("/validate", REVIEW);
        assert_eq!(reply.unwrap_or_else(|error| panic!("{kind}: {error}")).status, 200, "{kind}");
    }
}

#[test]
fn only_the_named_clients_of_the_ca_may_connect_and_the_ca_is_reloaded() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let mut volume = Volume::new("clients", &[("ca.crt", &authority.pem)]);
    let server = Running::start(|settings| {
        settings.client_ca = Some(volume.file("ca.crt"));
        settings.client_names = vec!["kube-apiserver".to_owned()];
        settings.reload_period = Duration::from_hours(1);
    });
    let asks = |pair: Option<(String, String)>| {
        let client = match &pair {
            Some((certificate, key)) => {
                Client::named(server.address, &server.authorities, (certificate.as_str(), key.as_str()))
            }
            None => server.client(),
        };
        client.post("/validate", REVIEW).is_ok_and(|reply| reply.status == 200)
    };
    assert!(asks(Some(authority.pair("kube-apiserver"))));
    assert!(!asks(Some(authority.pair("somebody"))));
    assert!(!asks(Some(stranger.pair("kube-apiserver"))));
    assert!(!asks(None));
    volume.replace(&[("ca.crt", "broken")]);
    until("the fault", || server.get("/readyz?verbose").text().contains("[!]client-ca not reloaded"));
    assert!(asks(Some(authority.pair("kube-apiserver"))));
    volume.replace(&[("ca.crt", &stranger.pem)]);
    until("the new CA", || asks(Some(stranger.pair("kube-apiserver"))));
    assert!(!asks(Some(authority.pair("kube-apiserver"))));
}

#[test]
fn self_made_certificates_outlive_the_process() {
    let folder = Folder::new("kept");
    let start = || {
        Running::start(|settings| {
            let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
            settings.certificates =
                CertificateSettings::SelfSigned { directory: Some(folder.0.clone()), names };
        })
    };
    let (first, second) = (start(), start());
    assert_eq!(first.authorities, second.authorities);
    let reply = Client::new(second.address, &first.authorities).post("/validate", REVIEW);
    assert_eq!(reply.expect("an answer").status, 200);
}

#[test]
fn a_client_with_several_common_names_is_none_of_them() {
    let authority = Authority::new();
    let folder = Folder::new("common-names");
    std::fs::write(folder.0.join("ca.crt"), &authority.pem).expect("written");
    let server = Running::start(|settings| {
        settings.client_ca = Some(folder.0.join("ca.crt"));
        settings.client_names = vec!["kube-apiserver".to_owned()];
    });
    let asks = |names: &[&str], dns: &str| {
        let (certificate, key) = authority.pair_of(names, dns);
        let client = Client::named(server.address, &server.authorities, (&certificate, &key));
        client.post("/validate", REVIEW).is_ok_and(|reply| reply.status == 200)
    };
    assert!(asks(&["kube-apiserver"], "localhost"));
    assert!(!asks(&["kube-apiserver", "somebody"], "localhost"));
    assert!(!asks(&["somebody", "kube-apiserver"], "localhost"));
    assert!(!asks(&["kube-apiserver", "kube-apiserver"], "localhost"));
    assert!(!asks(&[], "localhost"));
    assert!(asks(&["somebody", "else"], "kube-apiserver"), "a DNS name is one that was vouched for");
}

#[test]
fn a_cert_dir_that_everybody_can_write_to_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("shared-folder");
    let mode = |path: &std::path::Path| std::fs::metadata(path).expect("there").permissions().mode() & 0o7777;
    let open = |directory: std::path::PathBuf| {
        let any = "127.0.0.1:0".parse().expect("an address");
        let mut settings = Settings::new(any, any);
        settings.certificates = CertificateSettings::SelfSigned {
            directory: Some(directory),
            names: vec!["localhost".to_owned()],
        };
        Server::bind(settings, crate::running::engine(), None, None).map(drop)
    };
    // With the sticky bit others cannot replace a file, but they can be first.
    for shared in [0o777, 0o1777, 0o702] {
        std::fs::set_permissions(&folder.0, PermissionsExt::from_mode(shared)).expect("set");
        let told = open(folder.0.clone()).expect_err("refused").to_string();
        assert!(told.contains("is world-writable") && told.contains("chmod 700"), "{told}");
        assert!(std::fs::read_dir(&folder.0).expect("a folder").next().is_none(), "nothing was written");
    }
    // A folder of our own in it is not.
    open(folder.0.join("own")).expect("taken");
    assert_eq!(mode(&folder.0.join("own")), 0o700);
    for key in ["ca.key", "tls.key"] {
        assert_eq!(mode(&folder.0.join("own").join(key)), 0o600, "{key}");
    }
    std::fs::set_permissions(&folder.0, PermissionsExt::from_mode(0o755)).expect("set");
    open(folder.0.clone()).expect("taken");
}
