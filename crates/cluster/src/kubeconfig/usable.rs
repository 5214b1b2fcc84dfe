//! Refuses the clusters and users of a kubeconfig that kubectl refuses, and parses `server` as kubectl does. Reads
//! nothing but the clock.
// upstream v1.37 client-go tools/clientcmd/validation.go, rest/url_utils.go, transport/transport.go

use anyhow::Context as _;
use http::Uri;
use kube::config::{AuthInfo, Cluster, ExecConfig};
use secrecy::ExposeSecret as _;
use x509_parser::pem::Pem;

use crate::client::redact_unusable_url;

/// The URL of an API server.
#[derive(Debug)]
pub(super) struct ServerUrl {
    pub(super) url: Uri,
    /// True if the URL was written without a scheme, so that http is assumed.
    pub(super) is_assumed_http: bool,
}

/// Parses the `server` of a kubeconfig. Without a scheme it is a host, perhaps with a port, and http is assumed.
pub(super) fn parse_server_url(server: &str) -> anyhow::Result<ServerUrl> {
    anyhow::ensure!(!server.is_empty(), "the cluster in the kubeconfig has no server");
    let address = server.split(['?', '#']).next().unwrap_or_default();
    let has_scheme = address.split_once("://").is_some_and(|(scheme, rest)| {
        let is_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
        let begins = scheme.starts_with(|letter: char| letter.is_ascii_alphabetic());
        begins && scheme.bytes().all(is_scheme) && !rest.is_empty() && !rest.starts_with('/')
    });
    let url = if has_scheme { address.to_owned() } else { format!("http://{address}") };
    let after_user = || server.rsplit_once('@').map_or(server, |(_, host)| host).to_owned();
    let shown = || if has_scheme { redact_unusable_url(server) } else { after_user() };
    let url: Uri = url.parse().ok().with_context(|| format!("server `{}` is not a URL", shown()))?;
    let is_http = matches!(url.scheme_str(), Some("http" | "https"));
    anyhow::ensure!(is_http, "server `{}` uses neither http nor https", shown());
    anyhow::ensure!(url.host().is_some_and(|host| !host.is_empty()), "server `{}` has no host", shown());
    let is_host = has_scheme || matches!(url.path(), "" | "/");
    anyhow::ensure!(is_host, "server `{}` is neither a URL nor HOST:PORT: write https://…", shown());
    Ok(ServerUrl { url, is_assumed_http: !has_scheme })
}

/// Returns an error, as kubectl does, for a cluster with two certificate authorities.
pub(super) fn check_single_certificate_authority(cluster: &Cluster) -> anyhow::Result<()> {
    anyhow::ensure!(
        cluster.certificate_authority.is_none() || cluster.certificate_authority_data.is_none(),
        "certificate-authority and certificate-authority-data are both set in the kubeconfig: remove one of them"
    );
    Ok(())
}

/// Returns an error, as kubectl does, for a user with two credentials of one kind, or with incomplete ones.
pub(super) fn check_user_credentials(user: &AuthInfo) -> anyhow::Result<()> {
    let is_set = |value: &Option<String>| value.as_ref().is_some_and(|value| !value.is_empty());
    let has_token = user.token.as_ref().is_some_and(|token| !token.expose_secret().is_empty());
    let has_key_data = user.client_key_data.as_ref().is_some_and(|key| !key.expose_secret().is_empty());
    let (has_certificate, has_data) =
        (is_set(&user.client_certificate), is_set(&user.client_certificate_data));
    let pairs = [
        (has_token, "token", is_set(&user.username), "username"),
        (has_certificate, "client-certificate", has_data, "client-certificate-data"),
        (is_set(&user.client_key), "client-key", has_key_data, "client-key-data"),
        (user.exec.is_some(), "exec", user.auth_provider.is_some(), "auth-provider"),
    ];
    for (first, name, second, other) in pairs {
        anyhow::ensure!(
            !(first && second),
            "{name} and {other} are both set for the user in the kubeconfig: remove one of them"
        );
    }
    let has_key = is_set(&user.client_key) || has_key_data;
    anyhow::ensure!(
        has_key || !(has_certificate || has_data),
        "the user in the kubeconfig has a client certificate, but neither client-key nor client-key-data"
    );
    user.exec.as_ref().map_or(Ok(()), check_exec_plugin_fields)
}

/// Refuses an exec plugin without the fields that kubectl requires.
fn check_exec_plugin_fields(exec: &ExecConfig) -> anyhow::Result<()> {
    let command = exec.command.as_deref().unwrap_or_default();
    anyhow::ensure!(!command.is_empty(), "the exec plugin in the kubeconfig has no command");
    let version = exec.api_version.as_deref().unwrap_or_default();
    match version.strip_prefix("client.authentication.k8s.io/") {
        Some("v1beta1") => Ok(()),
        Some("v1") if exec.interactive_mode.is_some() => Ok(()),
        Some("v1") => {
            anyhow::bail!(
                "the exec plugin in the kubeconfig requires interactiveMode: Never, IfAvailable or Always"
            )
        }
        _ => anyhow::bail!(
            "the exec plugin in the kubeconfig has apiVersion `{version}`, which is not supported; use \
             client.authentication.k8s.io/v1 or v1beta1"
        ),
    }
}

/// The certificates of a CA bundle that are valid now, as DER; an error if there are none. kubectl trusts no others.
pub(super) fn valid_ca_certificates(pem: &[u8]) -> anyhow::Result<Vec<Vec<u8>>> {
    let blocks = Pem::iter_from_buffer(pem).flatten().filter(|block| block.label == "CERTIFICATE");
    let (mut valid, mut invalid) = (Vec::new(), None);
    for block in blocks {
        let parsed = block.parse_x509().map(|certificate| certificate.validity().clone());
        let Ok(validity) = parsed else { continue };
        if validity.is_valid() {
            valid.push(block.contents);
        } else {
            invalid = Some(format!("it is valid from {} until {}", validity.not_before, validity.not_after));
        }
    }
    if !valid.is_empty() {
        return Ok(valid);
    }
    let why = invalid.unwrap_or_else(|| "it contains no PEM certificate".to_owned());
    anyhow::bail!("the certificate authority in the kubeconfig cannot be used: {why}")
}

#[cfg(test)]
mod tests {
    use super::{
        check_single_certificate_authority, check_user_credentials, parse_server_url, valid_ca_certificates,
    };
    use kube::config::Kubeconfig;

    #[test]
    fn a_server_without_a_scheme_is_an_http_one() {
        for (server, expected) in [
            ("https://a.example.com:6443", Ok(("https://a.example.com:6443/", false))),
            ("HTTPS://a.example.com", Ok(("https://a.example.com/", false))),
            ("https://a.example.com/k8s/c-1?x=1#y", Ok(("https://a.example.com/k8s/c-1", false))),
            ("http://127.0.0.1:8001", Ok(("http://127.0.0.1:8001/", false))),
            ("127.0.0.1:8080", Ok(("http://127.0.0.1:8080/", true))),
            ("localhost:8080", Ok(("http://localhost:8080/", true))),
            ("localhost", Ok(("http://localhost/", true))),
            ("[::1]:8080/", Ok(("http://[::1]:8080/", true))),
            ("a.example.com/k8s", Err("neither a URL nor HOST:PORT")),
            ("//a.example.com", Err("")),
            ("https:///k8s", Err("")),
            ("https://", Err("")),
            ("ftp://u:SECRET@a.example.com", Err("server `ftp://a.example.com` uses neither http nor https")),
            ("a b", Err("is not a URL")),
            ("a b://u:SECRET@h, c: SECRET@d e", Err("server `d e` is not a URL")),
            ("", Err("has no server")),
        ] {
            match (parse_server_url(server), expected) {
                (Ok(found), Ok((url, assumed))) => {
                    assert_eq!((found.url.to_string().as_str(), found.is_assumed_http), (url, assumed));
                }
                (Err(error), Err(said)) => assert!(error.to_string().contains(said), "{server}: {error}"),
                (found, expected) => panic!("{server}: {found:?}, not {expected:?}"),
            }
        }
    }

    #[test]
    fn no_error_about_a_server_shows_its_password() {
        for server in [
            "u:SECRET@a.example.com/k8s",
            "://u:SECRET@a.example.com",
            "1http://u:SECRET@a.example.com",
            "http://u s:r :SECRET@a.example.com",
            "ftp://u)s:SECRET@a.example.com",
            "http:///u:SECRET@a.example.com",
            "ftp://u:SECRET/1@a.example.com",
            "http://u:SECRET 1@a.example.com",
            "ftp://u:SECRET@a.example.com/@b",
        ] {
            let error = parse_server_url(server).expect_err("not a server").to_string();
            assert!(!error.contains("SECRET"), "{server}: {error}");
        }
    }

    #[test]
    fn what_kubectl_refuses_is_refused() {
        let exec = |version: &str, rest: &str| {
            format!("exec: {{apiVersion: client.authentication.k8s.io/{version}, command: get{rest}}}")
        };
        for (user, refused) in [
            ("token: a".to_owned(), None),
            ("token: a, tokenFile: b".to_owned(), None),
            ("token: a, username: b".to_owned(), Some("token and username are both set")),
            ("client-certificate: a, client-key: b".to_owned(), None),
            ("client-certificate: a".to_owned(), Some("neither client-key nor client-key-data")),
            ("client-certificate: a, client-certificate-data: b, client-key: c".to_owned(), Some("both set")),
            (exec("v1", ", interactiveMode: Never"), None),
            (exec("v1", ""), Some("requires interactiveMode")),
            (exec("v1beta1", ""), None),
            (exec("v1alpha1", ""), Some("use client.authentication.k8s.io/v1 or v1beta1")),
        ] {
            let text = format!("users: [{{name: u, user: {{{user}}}}}]");
            let config = Kubeconfig::from_yaml(&text).expect("YAML");
            let user = config.auth_infos.first().and_then(|user| user.auth_info.as_ref()).expect("a user");
            match (check_user_credentials(user), refused) {
                (Ok(()), None) => {}
                (Err(error), Some(why)) if error.to_string().contains(why) => {}
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
        let text =
            "clusters: [{name: c, cluster: {certificate-authority: a, certificate-authority-data: Yg==}}]";
        let config = Kubeconfig::from_yaml(text).expect("YAML");
        let cluster = config.clusters.first().and_then(|named| named.cluster.as_ref()).expect("a cluster");
        assert!(check_single_certificate_authority(cluster).is_err());
        let none =
            valid_ca_certificates(b"-----BEGIN NOTHING-----\n").expect_err("no certificate").to_string();
        assert!(none.ends_with("it contains no PEM certificate"), "{none}");
    }
}
