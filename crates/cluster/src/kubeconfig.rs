//! Finds the kubeconfig, its context and the proxy, or the service account of the pod. Does not connect.
//!
//! What kubectl refuses to use is refused (`usable`), and a server without a scheme is the one that kubectl takes it
//! for.
//!
//! The files are those that kubectl reads: `--kubeconfig`, or those of `KUBECONFIG` that exist, or `~/.kube/config`.
//!
//! Invariants: the service account is used only if there is no kubeconfig, so the context that is named is the one that
//! is used; no error shows a line of a kubeconfig or what a credential plugin wrote.

mod usable;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use kube::Config;
use kube::config::{AuthInfo, Cluster, ExecAuthCluster, Kubeconfig, KubeconfigError};

use super::client::{ClusterTarget, error_chain, without_url_credentials};
use super::proxy::proxy_for;
use usable::{
    check_single_certificate_authority, check_user_credentials, parse_server_url, valid_ca_certificates,
};

/// Maximum size of a kubeconfig in bytes; a hundred clusters with certificates fit.
const MAX_KUBECONFIG: u64 = 1 << 20;
/// Maximum number of contexts that an error message lists.
const MAX_LISTED_CONTEXTS: usize = 20;

/// Reads the client configuration of a target, and the name of its context. The name is `None` for the service account
/// of a pod.
pub(super) fn load_config(target: ClusterTarget<'_>) -> anyhow::Result<(Config, Option<String>)> {
    let Some(kubeconfig) = load_kubeconfig(target.kubeconfig)? else {
        if let Some(context) = target.context {
            anyhow::bail!(
                "cannot use context `{context}`: no kubeconfig was found (KUBECONFIG, ~/.kube/config)"
            );
        }
        let config = Config::incluster().map_err(|error| error_without_secrets(&error)).context(
            "cannot connect to a cluster: found neither a kubeconfig (KUBECONFIG, ~/.kube/config) nor a service account",
        )?;
        return Ok((config, None));
    };
    let (config, context) = config_for_context(&kubeconfig, target.context)?;
    Ok((config, Some(context)))
}

/// Returns the client configuration of a context of a kubeconfig, and the name of the context.
pub(crate) fn config_for_context(
    kubeconfig: &Kubeconfig,
    context: Option<&str>,
) -> anyhow::Result<(Config, String)> {
    let (context, mut cluster, mut user) = choose_context(kubeconfig, context)?;
    remove_empty_values(&mut cluster, &mut user);
    for file in
        [&cluster.certificate_authority, &user.client_certificate, &user.client_key].into_iter().flatten()
    {
        // A file that is missing is reported where it is used.
        if Path::new(file).exists() {
            check_regular_file_and_size(Path::new(file))?;
        }
    }
    check_single_certificate_authority(&cluster)?;
    check_user_credentials(&user)?;
    let server = parse_server_url(cluster.server.as_deref().unwrap_or_default())?;
    let is_https = server.url.scheme_str() == Some("https");
    let mut config = Config::new(server.url);
    // The environment of kubectl, not a setting of Tollgate: it cannot be a flag.
    let variable = |name: &str| std::env::var_os(name).and_then(|value| value.into_string().ok());
    config.proxy_url = proxy_for(&config.cluster_url, cluster.proxy_url.as_deref(), &variable)?;
    config.accept_invalid_certs = cluster.insecure_skip_tls_verify.unwrap_or(false);
    config.disable_compression = cluster.disable_compression.unwrap_or(false);
    config.tls_server_name.clone_from(&cluster.tls_server_name);
    let known = ExecAuthCluster::try_from(&cluster).map_err(|error| error_without_secrets(&error))?;
    if let Some(pem) = known.certificate_authority_data.as_deref().filter(|_| is_https) {
        anyhow::ensure!(
            !config.accept_invalid_certs,
            "insecure-skip-tls-verify and a certificate authority are both set in the kubeconfig: remove one of them"
        );
        config.root_cert = Some(valid_ca_certificates(pem)?);
    }
    // kubectl sends no credentials to a server that it takes for one without TLS.
    if !server.is_assumed_http {
        config.auth_info = user;
    }
    if let Some(exec) = config.auth_info.exec.as_mut().filter(|exec| exec.provide_cluster_info) {
        exec.cluster = Some(known);
    }
    Ok((config, context))
}

/// Removes empty values, as kubectl does. kube has made paths absolute before, so an empty path is that of a folder.
fn remove_empty_values(cluster: &mut Cluster, user: &mut AuthInfo) {
    let paths = [
        &mut cluster.certificate_authority,
        &mut user.token_file,
        &mut user.client_certificate,
        &mut user.client_key,
    ];
    for path in paths {
        *path = path.take().filter(|path| !path.is_empty() && !path.ends_with(std::path::MAIN_SEPARATOR));
    }
    let values = [
        &mut cluster.certificate_authority_data,
        &mut cluster.tls_server_name,
        &mut user.username,
        &mut user.client_certificate_data,
    ];
    for value in values {
        *value = value.take().filter(|value| !value.is_empty());
    }
}

/// Reads the named kubeconfig, which must exist, or merges those of `KUBECONFIG` or `~/.kube/config`, which may be
/// missing. `None` if there is nothing in them.
fn load_kubeconfig(named: Option<&Path>) -> anyhow::Result<Option<Kubeconfig>> {
    if let Some(file) = named {
        check_regular_file_and_size(file)?;
        return read_kubeconfig(file).map(Some);
    }
    let listed: Vec<PathBuf> = std::env::var_os("KUBECONFIG")
        .map(|list| std::env::split_paths(&list).filter(|path| !path.as_os_str().is_empty()).collect())
        .unwrap_or_default();
    let files = if listed.is_empty() {
        std::env::home_dir().map(|home| home.join(".kube").join("config")).into_iter().collect()
    } else {
        listed
    };
    let mut merged = Kubeconfig::default();
    for file in files {
        // `KUBECONFIG=/dev/null` is how people say that there is none.
        if file == Path::new("/dev/null") || !exists(&file)? {
            continue;
        }
        check_regular_file_and_size(&file)?;
        merged = merged.merge(read_kubeconfig(&file)?).map_err(|error| error_without_secrets(&error))?;
    }
    let is_empty =
        merged.contexts.is_empty() && merged.clusters.is_empty() && merged.current_context.is_none();
    Ok(if is_empty { None } else { Some(merged) })
}

/// True if a file exists. Returns an error if that cannot be determined, such as without permission.
fn exists(file: &Path) -> anyhow::Result<bool> {
    file.try_exists().with_context(|| format!("cannot read {}", file.display()))
}

/// Reads and parses one kubeconfig file.
fn read_kubeconfig(file: &Path) -> anyhow::Result<Kubeconfig> {
    let mut kubeconfig = Kubeconfig::read_from(file).map_err(|error| match error {
        KubeconfigError::Parse(why) => kubeconfig_parse_error_without_text(file, &why.to_string()),
        error => error_without_secrets(&error),
    })?;
    // `current-context: ""` is what kubectl writes if there is none: another file may set it.
    kubeconfig.current_context = kubeconfig.current_context.filter(|context| !context.is_empty());
    Ok(kubeconfig)
}

/// Finds the named context, or the current one if none is named, with its cluster and user. If the kubeconfig does not
/// contain the user, it has no credentials, as for kubectl.
fn choose_context(
    kubeconfig: &Kubeconfig,
    named: Option<&str>,
) -> anyhow::Result<(String, Cluster, AuthInfo)> {
    let available = || {
        let names: Vec<&str> = kubeconfig.contexts.iter().map(|context| context.name.as_str()).collect();
        let more = names.len().saturating_sub(MAX_LISTED_CONTEXTS);
        match (names.get(..MAX_LISTED_CONTEXTS), names.as_slice()) {
            (_, []) => "it has no contexts".to_owned(),
            (Some(first), _) if more > 0 => format!("available: {} and {more} more", first.join(", ")),
            (_, all) => format!("available: {}", all.join(", ")),
        }
    };
    let Some(name) = named.or(kubeconfig.current_context.as_deref()) else {
        anyhow::bail!("the kubeconfig has no current context; {}", available());
    };
    let context = kubeconfig.contexts.iter().find(|context| context.name == name);
    let Some(context) = context.and_then(|context| context.context.as_ref()) else {
        anyhow::bail!("context `{name}` is not in the kubeconfig; {}", available());
    };
    let cluster = kubeconfig.clusters.iter().find(|cluster| cluster.name == context.cluster);
    let cluster = cluster.and_then(|cluster| cluster.cluster.as_ref()).with_context(|| {
        format!("context `{name}` refers to cluster `{}`, which is not in the kubeconfig", context.cluster)
    })?;
    let user = kubeconfig.auth_infos.iter().find(|user| Some(&user.name) == context.user.as_ref());
    let user = user.and_then(|user| user.auth_info.clone()).unwrap_or_default();
    Ok((name.to_owned(), cluster.clone(), user))
}

/// The error for a file that cannot be parsed. It has only the number of the line: a parser quotes lines, which may
/// contain tokens.
fn kubeconfig_parse_error_without_text(file: &Path, why: &str) -> anyhow::Error {
    let first = why.lines().next().unwrap_or_default();
    let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>();
    let line = first.split_once("line ").map(|(_, place)| digits(place)).filter(|line| !line.is_empty());
    let at = line.map_or_else(String::new, |line| format!(":{line}"));
    anyhow::anyhow!(
        "{}{at}: not a valid kubeconfig (line not shown: it may contain credentials)",
        file.display()
    )
}

/// The first line of an error, with its causes, as it may be printed: without the output of a credential plugin, and
/// without user names and passwords in URLs.
pub(super) fn error_without_secrets(error: &dyn std::error::Error) -> anyhow::Error {
    let text = error_chain(error);
    let first = text.lines().next().unwrap_or_default();
    let first = first.split_once(": Output {").map_or(first, |(before, _)| before);
    anyhow::anyhow!("{}", without_url_credentials(first))
}

/// Refuses a file that is too large or not a regular file: kube reads files to their end, and a device may have none.
fn check_regular_file_and_size(file: &Path) -> anyhow::Result<()> {
    let name = || format!("cannot read {}", file.display());
    let found = std::fs::metadata(file).with_context(name)?;
    let fits = found.is_file() && found.len() <= MAX_KUBECONFIG;
    anyhow::ensure!(fits, "{}: must be a regular file of at most 1 MiB", file.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{
        check_regular_file_and_size, choose_context, error_without_secrets,
        kubeconfig_parse_error_without_text,
    };
    use kube::config::Kubeconfig;

    #[test]
    fn a_kubeconfig_is_a_file() {
        let error = check_regular_file_and_size(Path::new("/dev/zero")).expect_err("endless").to_string();
        assert_eq!(error, "/dev/zero: must be a regular file of at most 1 MiB");
        let missing = check_regular_file_and_size(Path::new("/nonexistent/kubeconfig")).expect_err("missing");
        assert_eq!(missing.to_string(), "cannot read /nonexistent/kubeconfig");
    }

    #[derive(Debug)]
    struct Plain(&'static str);

    impl std::fmt::Display for Plain {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str(self.0)
        }
    }

    impl std::error::Error for Plain {}

    #[test]
    fn no_credential_is_printed() {
        let cases = [
            (
                "auth exec command 'get' failed with status 1: Output { stdout: \"SECRET\" }",
                "auth exec command 'get' failed with status 1",
            ),
            ("cannot reach https://u:SECRET@127.0.0.1:1/x", "cannot reach https://127.0.0.1:1/x"),
            ("failed to determine current context", "failed to determine current context"),
        ];
        for (text, expected) in cases {
            assert_eq!(error_without_secrets(&Plain(text)).to_string(), expected);
        }
        let cases = [
            ("duplicate key at line 7 column 3\n 7 | token: SECRET", "a.kc:7: "),
            ("invalid type [SECRET]", "a.kc: "),
        ];
        for (text, place) in cases {
            let expected =
                format!("{place}not a valid kubeconfig (line not shown: it may contain credentials)");
            assert_eq!(kubeconfig_parse_error_without_text(Path::new("a.kc"), text).to_string(), expected);
        }
    }

    #[test]
    fn a_long_list_of_contexts_is_counted() {
        let context = |number: usize| format!("- {{name: c{number}, context: {{cluster: gone, user: u}}}}\n");
        let contexts = (0..22).map(context).collect::<Vec<_>>().concat();
        let kubeconfig = Kubeconfig::from_yaml(&format!("contexts:\n{contexts}")).expect("YAML");
        let refused = |name| choose_context(&kubeconfig, name).expect_err("none").to_string();
        let none = refused(None);
        assert!(none.starts_with("the kubeconfig has no current context; available: c0, c1, "), "{none}");
        assert!(none.ends_with(", c19 and 2 more"), "{none}");
        assert_eq!(
            refused(Some("c3")),
            "context `c3` refers to cluster `gone`, which is not in the kubeconfig"
        );
    }
}
