//! Tests how commands find the API server: kubeconfigs, contexts, token files and proxies, with real files and
//! sockets.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::double::Double;
use crate::live::{double, files, fill, run_in};

const IMPACT: [&str; 2] = ["impact", "rule.yaml"];
const TOTAL: &str = "total: 7 of 7 pods evicted in 2 namespaces";

/// Writes a changed copy of the double's kubeconfig to a file.
fn kubeconfig(double: &Double, folder: &Path, name: &str, change: impl FnOnce(&mut Value)) -> PathBuf {
    let text = std::fs::read(double.kubeconfig()).expect("written");
    let mut config: Value = serde_json::from_slice(&text).expect("JSON");
    change(&mut config);
    let file = folder.join(name);
    std::fs::write(&file, config.to_string()).expect("written");
    file
}

/// Runs `impact` with only these environment variables.
fn impact(double: &Double, folder: &Path, variables: &[(&str, &str)]) -> (i32, String, String) {
    let names = ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy"];
    let mut all: Vec<(&str, &str)> = names.iter().map(|name| (*name, "")).collect();
    all.extend(variables);
    run_in(double, folder, &IMPACT, &all)
}

/// A proxy that supports CONNECT and forwards everything to one address. Returns the first lines of the
/// requests.
fn proxy(to: SocketAddr) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = seen.clone();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let seen = seen.clone();
            std::thread::spawn(move || tunnel(client, to, &seen));
        }
    });
    (format!("http://{address}"), kept)
}

fn tunnel(mut client: TcpStream, to: SocketAddr, seen: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") && client.read(&mut byte)? == 1 {
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    seen.lock().expect("no panic").push(head.lines().next().unwrap_or_default().to_owned());
    let mut server = TcpStream::connect(to)?;
    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
    let (mut from, mut back) = (client.try_clone()?, server.try_clone()?);
    std::thread::spawn(move || std::io::copy(&mut back, &mut client));
    std::io::copy(&mut from, &mut server)?;
    server.shutdown(std::net::Shutdown::Write)
}

#[test]
fn a_server_on_this_machine_needs_no_proxy() {
    let (double, folder) = (double("connect-local"), files("connect-local"));
    let dead = "http://proxy.invalid:3128";
    for variables in [
        &[("HTTPS_PROXY", dead), ("HTTP_PROXY", dead)][..],
        &[("HTTPS_PROXY", dead), ("HTTP_PROXY", dead), ("NO_PROXY", "127.0.0.1")],
        &[("https_proxy", dead), ("http_proxy", dead), ("no_proxy", "10.0.0.0/8,.svc")],
    ] {
        let (code, out, err) = impact(&double, &folder, variables);
        assert!(code == 0 && out.contains(TOTAL), "{variables:?} {err}");
    }
}

#[test]
fn a_proxy_leads_to_the_server() {
    let (double, folder) = (Double::start_tls("connect-proxy"), files("connect-proxy"));
    fill(&double);
    let (url, seen) = proxy(double.address);
    let file = kubeconfig(&double, &folder, "far", |config| {
        config["clusters"][0]["cluster"]["server"] = json!("https://cluster.invalid:6443");
        config["clusters"][0]["cluster"]["tls-server-name"] = json!("localhost");
    });
    let file = file.display().to_string();
    // The second list names the proxy's own host, which says nothing about the server.
    for listed in ["", "127.0.0.1,.svc"] {
        let variables = [("KUBECONFIG", file.as_str()), ("HTTPS_PROXY", &url), ("NO_PROXY", listed)];
        let (code, out, err) = impact(&double, &folder, &variables);
        assert!(code == 0 && out.contains(TOTAL), "{err}");
    }
    let seen = std::mem::take(&mut *seen.lock().expect("no panic"));
    assert!(seen.len() >= 2, "{seen:?}");
    assert!(seen.iter().all(|line| line == "CONNECT cluster.invalid:6443 HTTP/1.1"), "{seen:?}");
}

#[test]
fn the_proxy_of_a_kubeconfig_is_used() {
    let (double, folder) = (double("connect-proxy-url"), files("connect-proxy-url"));
    let (url, seen) = proxy(double.address);
    let named = |proxy: &str| {
        let file = kubeconfig(&double, &folder, "proxied", |config| {
            config["clusters"][0]["cluster"]["proxy-url"] = json!(proxy);
        });
        file.display().to_string()
    };
    let (code, out, err) = impact(&double, &folder, &[("KUBECONFIG", &named(&url)), ("NO_PROXY", "*")]);
    assert!(code == 0 && out.contains(TOTAL), "{err}");
    assert!(!seen.lock().expect("no panic").is_empty());
    let (code, _, err) = impact(&double, &folder, &[("KUBECONFIG", &named("ftp://u:SECRET@a.invalid"))]);
    let expected = "proxy-url in the kubeconfig: `ftp://a.invalid` is not a proxy URL";
    assert!(code == 3 && err.contains(expected) && !err.contains("SECRET"), "{code} {err}");
}

#[test]
fn a_kubeconfig_that_cannot_be_used_is_an_error_in_a_pod_too() {
    let (double, folder) = (double("connect-pod"), files("connect-pod"));
    let pod = [("KUBERNETES_SERVICE_HOST", "127.0.0.1"), ("KUBERNETES_SERVICE_PORT", "1")];
    let said = |change: &dyn Fn(&mut Value)| {
        let file = kubeconfig(&double, &folder, "broken", change).display().to_string();
        let (code, out, err) = impact(&double, &folder, &[&pod[..], &[("KUBECONFIG", &file)]].concat());
        assert_eq!((code, out.as_str()), (3, ""), "{err}");
        err
    };
    let err = said(&|config| config["contexts"][0]["context"]["cluster"] = json!("gone"));
    let expected = "context `double` refers to cluster `gone`, which is not in the kubeconfig";
    assert!(err.contains(expected) && !err.contains("service account"), "{err}");
    let err = said(&|config| config["current-context"] = json!(""));
    assert!(err.contains("the kubeconfig has no current context; available: double"), "{err}");
    // An empty one is none.
    let (_, _, err) = impact(&double, &folder, &[("KUBECONFIG", "/dev/null")]);
    assert!(err.contains("neither a kubeconfig (KUBECONFIG, ~/.kube/config) nor a service account"), "{err}");
}

#[test]
fn missing_files_of_kubeconfig_are_skipped() {
    let (double, folder) = (double("connect-files"), files("connect-files"));
    let good = double.kubeconfig().display().to_string();
    let empty = kubeconfig(&double, &folder, "empty", |config| {
        *config = json!({"apiVersion": "v1", "kind": "Config", "current-context": "", "contexts": null,
                         "clusters": null, "users": null});
    });
    let list = format!("{}:{}::{good}", folder.join("missing").display(), empty.display());
    let (code, out, err) = impact(&double, &folder, &[("KUBECONFIG", &list)]);
    assert!(code == 0 && out.contains(TOTAL), "{err}");
    assert!(err.starts_with("note: context double ("), "{err}");
    // A file that was named must exist.
    let arguments = [&IMPACT[..], &["--kubeconfig", "missing"]].concat();
    let (code, _, err) = run_in(&double, &folder, &arguments, &[]);
    assert!(code == 3 && err.contains("cannot read missing"), "{code} {err}");
}

#[test]
fn a_token_file_may_end_with_a_line_break() {
    let (double, folder) = (double("connect-token"), files("connect-token"));
    let file = kubeconfig(&double, &folder, "with-file", |config| {
        config["users"][0]["user"] = json!({"tokenFile": "token"});
    });
    let variables = [("KUBECONFIG", file.to_str().expect("UTF-8"))];
    std::fs::write(folder.join("token"), "a token of ours\n").expect("written");
    let (code, out, err) = impact(&double, &folder, &variables);
    assert!(code == 0 && out.contains(TOTAL), "{err}");
    std::fs::write(folder.join("token"), "SEC\nRET\n").expect("written");
    let (code, _, err) = impact(&double, &folder, &variables);
    assert!(code == 3 && err.contains("token: the token contains characters"), "{code} {err}");
    assert!(!err.contains("SEC\n"), "{err}");
    std::fs::write(folder.join("token"), "\n").expect("written");
    let (code, _, err) = impact(&double, &folder, &variables);
    assert!(code == 3 && err.contains("token: the token file is empty"), "{code} {err}");
}

/// kubectl takes a server without a scheme for an http one, and sends it no credentials.
#[test]
fn a_server_without_a_scheme_is_asked_over_http() {
    let (double, folder) = (double("connect-scheme"), files("connect-scheme"));
    for host in ["127.0.0.1", "localhost"] {
        let server = format!("{host}:{}", double.address.port());
        let file = kubeconfig(&double, &folder, "bare", |config| {
            config["clusters"][0]["cluster"]["server"] = json!(server);
        });
        let (code, _, err) = impact(&double, &folder, &[("KUBECONFIG", &file.display().to_string())]);
        let expected = format!("context double (http://{server}): the API server returned 401: Unauthorized");
        assert!(code == 3 && err.contains(&expected), "{code} {err}");
    }
    for (server, why) in [
        ("cluster.invalid/k8s", "is neither a URL nor HOST:PORT"),
        ("ftp://cluster.invalid", "uses neither http nor https"),
        ("/", "server `/`"),
        ("", "the cluster in the kubeconfig has no server"),
    ] {
        let file = kubeconfig(&double, &folder, "odd", |config| {
            config["clusters"][0]["cluster"]["server"] = json!(server);
        });
        let (code, _, err) = impact(&double, &folder, &[("KUBECONFIG", &file.display().to_string())]);
        assert!(code == 3 && err.contains(why), "{server}: {code} {err}");
    }
}

/// A variable that names no proxy does no harm where the proxy is not used.
#[test]
fn a_bad_proxy_is_named_where_it_is_used() {
    let (double, folder) = (double("connect-bad-proxy"), files("connect-bad-proxy"));
    let bad = [("HTTPS_PROXY", "http://[bad"), ("HTTP_PROXY", "http://[bad")];
    let (code, out, err) = impact(&double, &folder, &bad);
    assert!(code == 0 && out.contains(TOTAL), "{err}");
    let file = kubeconfig(&double, &folder, "far", |config| {
        config["clusters"][0]["cluster"]["server"] = json!("https://cluster.invalid:6443");
    });
    let file = file.display().to_string();
    let (code, _, err) = impact(&double, &folder, &[&bad[..], &[("KUBECONFIG", &file)]].concat());
    assert!(code == 3 && err.contains("HTTPS_PROXY: `http://[bad` is not a proxy URL"), "{code} {err}");
    let others = [("KUBECONFIG", file.as_str()), ("NO_PROXY", "cluster.invalid")];
    let (code, _, err) = impact(&double, &folder, &[&bad[..], &others].concat());
    assert!(code == 3 && err.contains("cannot reach the API server"), "{code} {err}");
}

/// The certificate of a CA that was valid in 2020, PEM.
fn expired_authority() -> String {
    let key = rcgen::KeyPair::generate().expect("a key");
    let mut params = rcgen::CertificateParams::default();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    (params.not_before, params.not_after) =
        (rcgen::date_time_ymd(2020, 1, 1), rcgen::date_time_ymd(2021, 1, 1));
    params.self_signed(&key).expect("signed").pem()
}

#[test]
fn certificate_authorities_are_used_as_kubectl_does() {
    let (double, folder) = (Double::start_tls("connect-ca"), files("connect-ca"));
    fill(&double);
    let said = |change: &dyn Fn(&mut Value)| {
        let file = kubeconfig(&double, &folder, "ca", |config| change(&mut config["clusters"][0]["cluster"]));
        impact(&double, &folder, &[("KUBECONFIG", &file.display().to_string())])
    };
    let (code, out, err) = said(&|cluster| cluster["certificate-authority-data"] = json!(""));
    assert!(code == 0 && out.contains(TOTAL), "an empty value is none: {err}");
    let (code, _, err) = said(&|cluster| cluster["certificate-authority-data"] = json!("QQ=="));
    assert!(code == 3 && err.contains("certificate-authority-data are both set"), "{code} {err}");
    let (code, _, err) = said(&|cluster| cluster["insecure-skip-tls-verify"] = json!(true));
    assert!(
        code == 3 && err.contains("insecure-skip-tls-verify and a certificate authority"),
        "{code} {err}"
    );
    let (code, out, err) = said(&|cluster| {
        cluster["insecure-skip-tls-verify"] = json!(true);
        cluster["certificate-authority"] = json!("");
    });
    assert!(code == 0 && out.contains(TOTAL), "{err}");
    // Expired, and followed by a good one.
    let expired = expired_authority();
    std::fs::write(folder.join("expired.crt"), &expired).expect("written");
    let (code, _, err) = said(&|cluster| cluster["certificate-authority"] = json!("expired.crt"));
    assert!(
        code == 3 && err.contains("certificate authority in the kubeconfig cannot be used"),
        "{code} {err}"
    );
    let good = double.authority.as_deref().expect("a CA");
    std::fs::write(folder.join("both.crt"), format!("{expired}{good}")).expect("written");
    let (code, out, err) = said(&|cluster| cluster["certificate-authority"] = json!("both.crt"));
    assert!(code == 0 && out.contains(TOTAL), "{err}");
}

#[test]
fn of_a_token_and_a_token_file_the_file_is_used() {
    let (double, folder) = (double("connect-both"), files("connect-both"));
    let with = |token: &str| {
        let file = kubeconfig(&double, &folder, "both", |config| {
            config["users"][0]["user"] = json!({"token": token, "tokenFile": "token"});
        });
        impact(&double, &folder, &[("KUBECONFIG", &file.display().to_string())])
    };
    let (code, out, err) = with("a token of ours");
    assert!(code == 0 && out.contains(TOTAL), "without the file the token is used: {err}");
    std::fs::write(folder.join("token"), "a token of ours\n").expect("written");
    let (code, out, err) = with("another one");
    assert!(code == 0 && out.contains(TOTAL), "{err}");
}

#[cfg(unix)]
#[test]
fn a_plugin_runs_once_and_without_a_terminal() {
    use std::os::unix::fs::PermissionsExt as _;
    let (double, folder) = (Double::start_tls("connect-plugin"), files("connect-plugin"));
    fill(&double);
    let plugin = |version: &str, user: &dyn Fn(&mut Value)| {
        let script = format!(
            "#!/bin/sh\necho \"$KUBERNETES_EXEC_INFO\" >> \"$LOG\"\necho '{{\"apiVersion\":\
             \"client.authentication.k8s.io/{version}\",\"kind\":\"ExecCredential\",\"status\":{{\"token\":\
             \"a token of ours\"}}}}'\n"
        );
        let (path, log) = (folder.join("plugin"), folder.join("log"));
        std::fs::write(&path, script).expect("written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("set");
        std::fs::write(&log, "").expect("written");
        let file = kubeconfig(&double, &folder, "plugged", |config| {
            config["users"][0]["user"] = json!({"exec": {
                "apiVersion": "client.authentication.k8s.io/v1", "command": path, "interactiveMode": "IfAvailable",
                "provideClusterInfo": true, "env": [{"name": "LOG", "value": log}]}});
            user(&mut config["users"][0]["user"]);
        });
        let said = impact(&double, &folder, &[("KUBECONFIG", &file.display().to_string())]);
        (said, std::fs::read_to_string(&log).expect("written"))
    };
    let ((code, out, err), log) = plugin("v1", &|_| {});
    assert!(code == 0 && out.contains(TOTAL), "{err}");
    assert_eq!(log.lines().count(), 1, "{log}");
    let info: Value = serde_json::from_str(&log).expect("JSON");
    assert_eq!(info["spec"]["interactive"], false);
    assert_eq!(
        info["spec"]["cluster"]["server"],
        json!(format!("https://localhost:{}", double.address.port()))
    );
    let ((code, _, err), _) = plugin("v1beta1", &|_| {});
    assert!(code == 3 && err.contains("the plugin returns another apiVersion"), "{code} {err}");
    let ((code, _, err), log) = plugin("v1", &|user| user["exec"]["interactiveMode"] = json!("Always"));
    assert!(code == 3 && err.contains("requires a terminal") && log.is_empty(), "{code} {err}");
    let ((code, _, err), log) = plugin("v1", &|user| {
        user["exec"].as_object_mut().expect("an object").remove("interactiveMode");
    });
    assert!(code == 3 && err.contains("requires interactiveMode") && log.is_empty(), "{code} {err}");
    // Whoever has a token needs no plugin.
    let ((code, _, err), log) = plugin("v1", &|user| user["token"] = json!("a token of ours"));
    assert!(code == 0 && log.is_empty(), "{code} {err}");
    let ((code, _, err), _) = plugin("v1", &|user| user["exec"]["command"] = json!("/nonexistent/plugin"));
    assert!(code == 3 && err.contains("exec plugin `/nonexistent/plugin` cannot be run"), "{code} {err}");
}

#[test]
fn what_is_wrong_with_a_kubeconfig_is_said() {
    let (double, folder) = (double("connect-texts"), files("connect-texts"));
    let two = kubeconfig(&double, &folder, "two", |config| {
        let mut other = config["contexts"][0].clone();
        other["name"] = json!("other");
        config["contexts"].as_array_mut().expect("a list").push(other);
    });
    let variables = [("KUBECONFIG", two.to_str().expect("UTF-8"))];
    let arguments = [&IMPACT[..], &["--context", "nosuch"]].concat();
    let (code, _, err) = run_in(&double, &folder, &arguments, &variables);
    let expected = "context `nosuch` is not in the kubeconfig; available: double, other";
    assert!(code == 3 && err.contains(expected), "{code} {err}");
    std::fs::write(folder.join("broken.kc"), "users: [{name: a, user: {token: SECRET}]\n").expect("written");
    let arguments = [&IMPACT[..], &["--kubeconfig", "broken.kc"]].concat();
    let (code, _, err) = run_in(&double, &folder, &arguments, &[]);
    let expected = "broken.kc:1: not a valid kubeconfig (line not shown: it may contain credentials)";
    assert!(code == 3 && err.contains(expected) && !err.contains("SECRET"), "{code} {err}");
}
