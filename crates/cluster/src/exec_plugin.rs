//! The credentials of an exec plugin of a kubeconfig, as a header or a client certificate.
//!
//! The plugin runs once, and again when its token expires or the API server refuses it. kube runs it for every part of
//! a client and tells it that there is a terminal even if there is none.
//!
//! Invariant: nothing that a plugin prints on stdout is shown. Its stderr is that of the program, as for kubectl.
// upstream v1.37 client-go plugin/pkg/client/auth/exec/exec.go

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use kube::config::{ExecAuthCluster, ExecConfig, ExecInteractiveMode};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::token_file::bearer_header;
use tollgate_document::source::documents;
use tollgate_formats::gofmt::json_string;
use tollgate_formats::gotime;

/// Minimum time between two runs of a plugin whose credentials are refused.
const MIN_RERUN_INTERVAL: Duration = Duration::from_secs(10);

/// An exec credential plugin of a kubeconfig, and the credentials that it issued last.
#[derive(Clone)]
pub(super) struct ExecPlugin {
    config: Arc<ExecConfig>,
    last: Arc<Mutex<IssuedToken>>,
}

/// The credentials that a plugin issued.
#[derive(Clone)]
struct IssuedToken {
    /// The `Authorization` header with the token; `None` if the plugin issues only a client certificate.
    header: Option<HeaderValue>,
    /// Expiry of the token in seconds since 1970; `None` if it does not expire.
    expires: Option<i64>,
    at: Instant,
    /// True if the API server refused the credentials.
    is_refused: bool,
}

/// A client certificate and its key, PEM.
pub(super) struct ClientCertAndKey {
    pub(super) certificate: String,
    pub(super) key: String,
}

impl ExecPlugin {
    /// Runs the plugin. A client certificate is used as long as the program runs.
    pub(super) fn from_first_run(
        config: ExecConfig,
    ) -> anyhow::Result<(ExecPlugin, Option<ClientCertAndKey>)> {
        let (issued, pair) = run_plugin(&config)?;
        Ok((ExecPlugin { config: Arc::new(config), last: Arc::new(Mutex::new(issued)) }, pair))
    }

    /// Returns the header `Bearer …`. Runs the plugin again if the token has expired or was refused.
    pub(super) async fn auth_header(&self) -> anyhow::Result<Option<HeaderValue>> {
        let mut last = self.last.lock().await;
        let has_expired = last.expires.is_some_and(|expires| unix_seconds() > expires);
        if has_expired || (last.is_refused && last.at.elapsed() >= MIN_RERUN_INTERVAL) {
            let config = self.config.clone();
            let (issued, _) = tokio::task::spawn_blocking(move || run_plugin(&config)).await??;
            *last = issued;
        }
        Ok(last.header.clone())
    }

    /// Records that the API server refused the credentials, so that the plugin runs again before the next request.
    pub(super) async fn mark_refused(&self) {
        self.last.lock().await.is_refused = true;
    }
}

#[expect(clippy::disallowed_methods, reason = "a shell: the credentials of its requests")]
fn unix_seconds() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_secs()).unwrap_or(i64::MAX)
}

/// Runs the plugin and returns the credentials that it prints.
fn run_plugin(config: &ExecConfig) -> anyhow::Result<(IssuedToken, Option<ClientCertAndKey>)> {
    let name = config.command.as_deref().unwrap_or_default();
    let is_interactive = is_interactive(config.interactive_mode.as_ref(), std::io::stdin().is_terminal())?;
    let mut command = Command::new(name);
    command.args(config.args.iter().flatten());
    for variable in config.env.iter().flatten() {
        if let (Some(name), Some(value)) = (variable.get("name"), variable.get("value")) {
            command.env(name, value);
        }
    }
    command.env("KUBERNETES_EXEC_INFO", exec_credential_request(config, is_interactive));
    for variable in config.drop_env.iter().flatten() {
        command.env_remove(variable);
    }
    command.stdin(if is_interactive { Stdio::inherit() } else { Stdio::null() }).stderr(Stdio::inherit());
    let output = command.output().with_context(|| {
        let hint = config.install_hint.as_deref().unwrap_or_default().trim();
        let colon = if hint.is_empty() { "" } else { ": " };
        format!("exec plugin `{name}` cannot be run{colon}{hint}")
    })?;
    anyhow::ensure!(output.status.success(), "exec plugin `{name}` failed: {}", output.status);
    let text = String::from_utf8_lossy(&output.stdout);
    parse_credential(config, &text).with_context(|| format!("exec plugin `{name}`"))
}

/// True if the plugin may use the terminal to ask the user. Returns an error if it must and stdin is not a
/// terminal.
fn is_interactive(mode: Option<&ExecInteractiveMode>, has_terminal: bool) -> anyhow::Result<bool> {
    match mode {
        Some(ExecInteractiveMode::Never) => Ok(false),
        Some(ExecInteractiveMode::IfAvailable) | None => Ok(has_terminal),
        Some(ExecInteractiveMode::Always) => {
            anyhow::ensure!(has_terminal, "the exec plugin requires a terminal, but stdin is not a terminal");
            Ok(true)
        }
    }
}

/// The ExecCredential that a plugin gets as its input, as JSON.
fn exec_credential_request(config: &ExecConfig, is_interactive: bool) -> String {
    let cluster = config.cluster.as_ref().filter(|_| config.provide_cluster_info);
    let cluster =
        cluster.map_or_else(String::new, |cluster| format!(r#","cluster":{}"#, cluster_json(cluster)));
    format!(
        r#"{{"kind":"ExecCredential","apiVersion":{},"spec":{{"interactive":{is_interactive}{cluster}}}}}"#,
        json_string(config.api_version.as_deref().unwrap_or_default()),
    )
}

/// The `cluster` member of a plugin's input, as JSON.
fn cluster_json(cluster: &ExecAuthCluster) -> String {
    let mut out = format!(r#"{{"server":{}"#, json_string(cluster.server.as_deref().unwrap_or_default()));
    let authority = cluster.certificate_authority_data.as_ref().map(|pem| STANDARD.encode(pem));
    for (name, value) in [
        ("tls-server-name", cluster.tls_server_name.as_deref()),
        ("certificate-authority-data", authority.as_deref()),
        ("proxy-url", cluster.proxy_url.as_deref()),
    ] {
        if let Some(value) = value {
            _ = write!(out, r#","{name}":{}"#, json_string(value));
        }
    }
    if cluster.insecure_skip_tls_verify == Some(true) {
        out.push_str(r#","insecure-skip-tls-verify":true"#);
    }
    if let Some(config) = &cluster.config {
        _ = write!(out, r#","config":{config}"#);
    }
    out.push('}');
    out
}

/// Parses the ExecCredential, JSON or YAML, that a plugin prints.
fn parse_credential(
    config: &ExecConfig,
    text: &str,
) -> anyhow::Result<(IssuedToken, Option<ClientCertAndKey>)> {
    let document = documents(text).next().and_then(Result::ok);
    let document = document.context("the output is not an ExecCredential")?;
    let root = document.doc.root();
    anyhow::ensure!(root.get("kind").str() == "ExecCredential", "the output is not an ExecCredential");
    let (wanted, found) = (config.api_version.as_deref().unwrap_or_default(), root.get("apiVersion").str());
    anyhow::ensure!(
        wanted == found,
        "the kubeconfig has apiVersion {wanted}, but the plugin returns another apiVersion"
    );
    let status = root.get("status");
    let (token, certificate, key) = (
        status.get("token").str(),
        status.get("clientCertificateData").str(),
        status.get("clientKeyData").str(),
    );
    anyhow::ensure!(
        !(token.is_empty() && certificate.is_empty() && key.is_empty()),
        "the output contains neither a token nor a client certificate"
    );
    anyhow::ensure!(
        certificate.is_empty() == key.is_empty(),
        "the output contains only a certificate or only a key"
    );
    let header = bearer_header(token).context("the token contains characters that are not allowed")?;
    let header = Some(header).filter(|_| !token.is_empty());
    let expires = Some(status.get("expirationTimestamp").str()).filter(|time| !time.is_empty());
    let expires = expires
        .map(gotime::parse_rfc3339)
        .transpose()
        .ok()
        .context("expirationTimestamp is not a valid time")?;
    let pair = (!key.is_empty())
        .then(|| ClientCertAndKey { certificate: certificate.to_owned(), key: key.to_owned() });
    let expires = expires.map(|time| time.seconds);
    Ok((IssuedToken { header, expires, at: Instant::now(), is_refused: false }, pair))
}

#[cfg(test)]
mod tests {
    use super::{exec_credential_request, is_interactive, parse_credential};
    use kube::config::{ExecAuthCluster, ExecConfig, ExecInteractiveMode};

    fn plugin() -> ExecConfig {
        let version = "client.authentication.k8s.io/v1".to_owned();
        exec_config(Some(version))
    }

    /// The configuration has no default of its own.
    fn exec_config(api_version: Option<String>) -> ExecConfig {
        let text = "users: [{name: u, user: {exec: {command: get}}}]";
        let config = kube::config::Kubeconfig::from_yaml(text).expect("YAML");
        let user = config.auth_infos.into_iter().next().and_then(|user| user.auth_info).expect("a user");
        ExecConfig { api_version, ..user.exec.expect("a plugin") }
    }

    #[test]
    fn a_plugin_is_interactive_at_a_terminal_only() {
        use ExecInteractiveMode::{Always, IfAvailable, Never};
        for (mode, has_terminal, expected) in [
            (Some(Never), true, Some(false)),
            (Some(IfAvailable), true, Some(true)),
            (Some(IfAvailable), false, Some(false)),
            (None, false, Some(false)),
            (Some(Always), true, Some(true)),
            (Some(Always), false, None),
        ] {
            assert_eq!(is_interactive(mode.as_ref(), has_terminal).ok(), expected, "{mode:?} {has_terminal}");
        }
    }

    #[test]
    fn a_plugin_learns_of_its_cluster_if_it_asks() {
        let mut config = plugin();
        let cluster =
            ExecAuthCluster { server: Some("https://a\"b".to_owned()), ..ExecAuthCluster::default() };
        config.cluster = Some(cluster);
        let plain = r#"{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{"interactive":false}}"#;
        assert_eq!(exec_credential_request(&config, false), plain);
        config.provide_cluster_info = true;
        assert!(
            exec_credential_request(&config, true)
                .ends_with(r#""spec":{"interactive":true,"cluster":{"server":"https://a\"b"}}}"#)
        );
    }

    #[test]
    fn what_a_plugin_prints_is_checked() {
        let credential = |version: &str, status: &str| {
            format!(
                r#"{{"apiVersion":"client.authentication.k8s.io/{version}","kind":"ExecCredential","status":{status}}}"#
            )
        };
        for (text, refused) in [
            (credential("v1", r#"{"token":"a"}"#), None),
            (
                "apiVersion: client.authentication.k8s.io/v1\nkind: ExecCredential\nstatus: {token: a}\n"
                    .to_owned(),
                None,
            ),
            (credential("v1", r#"{"token":"a","expirationTimestamp":"2030-01-01T00:00:00Z"}"#), None),
            (credential("v1", r#"{"clientCertificateData":"a","clientKeyData":"b"}"#), None),
            (credential("v1beta1", r#"{"token":"SECRET"}"#), Some("returns another apiVersion")),
            (credential("v1", "{}"), Some("neither a token")),
            (credential("v1", r#"{"clientKeyData":"SECRET"}"#), Some("only a certificate or only a key")),
            (credential("v1", r#"{"token":"SEC\nRET"}"#), Some("not allowed")),
            (credential("v1", r#"{"token":"SECRET","expirationTimestamp":"x"}"#), Some("not a valid time")),
            ("SECRET".to_owned(), Some("the output is not an ExecCredential")),
        ] {
            let said = parse_credential(&plugin(), &text).err().map(|error| error.to_string());
            match (&said, refused) {
                (None, None) => {}
                (Some(said), Some(why)) => assert!(said.contains(why) && !said.contains("SEC"), "{said}"),
                _ => panic!("{text}: {said:?}"),
            }
        }
    }
}
